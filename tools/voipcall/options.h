/* SPDX-License-Identifier: GPL-2.0 */
/* voipcall: what it was asked for. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <linux/types.h>
#include "codec.h"

#define MAX_CCIDS	8

/**
 * struct options - the command line
 * @listen:	wait for calls
 * @host:	or whom to call
 * @port:	port to listen at or to call
 * @family:	AF_INET, AF_INET6 or AF_UNSPEC
 * @udp:	instead of DCCP
 * @ccid:	CCIDs in order of preference
 * @ccids:	their number, 0: the system's default
 * @tx_queue:	packets in the DCCP socket's queue, 0: the system's default
 * @codec:	codec of both directions
 * @ptime:	ms a packet
 * @sdp:	listen: address for a session description; NULL: none
 * @time:	how long to talk
 * @dscp:	mark of what is sent; -1: none given
 * @ecn:	UDP: set ECT(0)
 * @silence:	talk in spurts
 * @one_way:	only the caller talks
 * @seed:	of the spurts
 * @playout_ms:	fixed playout buffer; negative: adaptive
 * @interval:	between progress lines, 0: none
 * @timeout:	for call setup and tear-down
 * @json:	report as JSON
 * @once:	listen: end after one call
 */
struct options {
	bool			listen;
	const char		*host;
	const char		*port;
	int			family;
	bool			udp;
	__u8			ccid[MAX_CCIDS];
	unsigned int		ccids;
	unsigned int		tx_queue;
	const struct codec	*codec;
	unsigned int		ptime;
	const char		*sdp;
	__s64			time;
	int			dscp;
	bool			ecn;
	bool			silence;
	bool			one_way;
	__u64			seed;
	double			playout_ms;
	__s64			interval;
	__s64			timeout;
	bool			json;
	bool			once;
};

#endif /* OPTIONS_H */
