/* SPDX-License-Identifier: GPL-2.0 */
/* voipcall: sockets. */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <linux/types.h>
#include "options.h"
#include "rtp.h"

#define ADDRESS_LEN	64

/**
 * struct datagram - something received
 * @data:	the bytes
 * @len:	their number
 * @arrived:	CLOCK_REALTIME; call_datagram() turns it into the call's time
 * @ce:		with Congestion Experienced
 * @from:	UDP listener: who sent it
 * @from_len:	length of @from
 * @to:		UDP listener: to which of our addresses, port included
 */
struct datagram {
	__u8			data[MAX_PACKET];
	size_t			len;
	__s64			arrived;
	bool			ce;
	struct sockaddr_storage	from;
	socklen_t		from_len;
	struct sockaddr_storage	to;
};

int net_listen(const struct options *o);
int net_connect(const struct options *o);
int net_accept_dccp(int fd);
int net_accept_udp(const struct options *o, int fd, const struct datagram *d);
int net_receive(int fd, struct datagram *d);
void net_mark(int fd, int dscp, bool ecn);
void net_name(const struct sockaddr_storage *a, char *name);
void net_names(int fd, char *local, char *remote);
int net_ccid(int fd, bool tx);
const char *net_error(int err);
bool net_unreachable(int err);

#endif /* NET_H */
