/* SPDX-License-Identifier: GPL-2.0 */
/* voipcall: what two of them say to each other, in APP packets of RTCP. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>
#include "codec.h"
#include "quality.h"

/**
 * struct offer - the call as the caller wants it; the answer has the same form
 * @codec:	codec
 * @ptime:	ms a packet
 * @one_way:	the listener is not to talk
 * @silence:	talk in spurts
 * @ecn:	UDP: set ECT(0)
 * @dscp:	mark of what the sender of this sends
 * @seq:	its first RTP sequence number
 * @seed:	of the spurts
 * @cookie:	of the answer: a number that nobody can guess, for MSG_READY; else 0
 */
struct offer {
	const struct codec	*codec;
	unsigned int		ptime;
	bool			one_way;
	bool			silence;
	bool			ecn;
	__u8			dscp;
	__u16			seq;
	__u64			seed;
	__u64			cookie;
};

/* What the APP packets of RTCP say. */
enum message {
	MSG_NONE,
	MSG_OFFER,	/* the caller: struct offer */
	MSG_ANSWER,	/* the listener: the same */
	MSG_END,	/* frames not sent; the listener adds what it received */
	MSG_ACK,	/* the caller has that */
	MSG_READY,	/* the caller has the answer: its cookie */
};

#define OFFER_LEN	28
#define READY_LEN	8
#define END_LEN		8
#define MESSAGE_MAX	(END_LEN + 4 * METRICS)

size_t offer_pack(__u8 *buf, const struct offer *o);
bool offer_parse(struct offer *o, const __u8 *buf, size_t len);
size_t ready_pack(__u8 *buf, __u64 cookie);
bool ready_parse(const __u8 *buf, size_t len, __u64 cookie);
size_t end_pack(__u8 *buf, __u32 not_sent, const double *metrics);
bool end_parse(const __u8 *buf, size_t len, __u32 *not_sent, double *metrics, bool *has_metrics);

#endif /* MESSAGE_H */
