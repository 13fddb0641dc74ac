/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: reading the statistics of all abe from the kernel. */
#ifndef NETLINK_H
#define NETLINK_H

#include "sample.h"

struct nl_sock;

struct nl_sock *open_netlink(void);
void close_netlink(struct nl_sock *sock);
const char *read_qdiscs(struct nl_sock *sock, struct reading *reading);
void decode_qdisc(struct reading *reading, const void *message);

#endif /* NETLINK_H */
