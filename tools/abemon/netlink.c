// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: one dump of the qdiscs of this network namespace is one reading.
 *
 * Attributes are taken by their length and number, known or not: what a newer
 * kernel sends more is passed over, and what an older one does not send is not known.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "netlink.h"

/*
 * All attributes of a nest that hold a number. A hundred of them come with a qdisc: calls
 * of the library for each would be most of what a reading costs.
 */
static void get_numbers(struct numbers *numbers, const struct nlattr *nest)
{
	const char *at = (const char *)nest + NLA_HDRLEN, *end = (const char *)nest + nest->nla_len;

	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *attr = (const struct nlattr *)at;
		unsigned int type = attr->nla_type & NLA_TYPE_MASK;
		__u64 value64;
		__u32 value;

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > end - at)
			return;
		if (type < ATTRS && attr->nla_len == NLA_HDRLEN + sizeof(value64)) {
			memcpy(&value64, at + NLA_HDRLEN, sizeof(value64));
			set_number(numbers, type, value64);
		} else if (type < ATTRS && attr->nla_len == NLA_HDRLEN + sizeof(value)) {
			memcpy(&value, at + NLA_HDRLEN, sizeof(value));
			set_number(numbers, type, value);
		}
		at += NLA_ALIGN(attr->nla_len);
	}
}

static void get_colour(struct sample *s, enum colour which, struct nlattr *nest)
{
	struct nlattr *times;
	size_t n;

	if (!nest)
		return;
	get_numbers(&s->colour[which], nest);
	times = nla_find(nla_data(nest), nla_len(nest), TCA_ABE_COLOUR_SOJOURN);
	n = times ? nla_len(times) / sizeof(__u64) : 0;
	s->sojourns[which] = n < SOJOURNS ? n : SOJOURNS;
	if (n)
		memcpy(s->sojourn[which], nla_data(times), s->sojourns[which] * sizeof(__u64));
}

static void get_stats(struct sample *s, struct nlattr *stats2)
{
	struct nlattr *tb[TCA_STATS_MAX + 1], *app[TCA_ABE_STATS_MAX + 1];
	struct gnet_stats_basic basic;
	struct gnet_stats_queue queue;

	if (nla_parse_nested(tb, TCA_STATS_MAX, stats2, NULL))
		return;
	if (tb[TCA_STATS_BASIC] && nla_len(tb[TCA_STATS_BASIC]) >= (int)sizeof(basic.bytes)) {
		memset(&basic, 0, sizeof(basic));
		nla_memcpy(&basic, tb[TCA_STATS_BASIC], sizeof(basic));
		set_number(&s->basic, BASIC_BYTES, basic.bytes);
		set_number(&s->basic, BASIC_PACKETS, basic.packets);
	}
	/* What 32 bits are too few for. */
	if (tb[TCA_STATS_PKT64] && nla_len(tb[TCA_STATS_PKT64]) >= (int)sizeof(__u64))
		set_number(&s->basic, BASIC_PACKETS, nla_get_u64(tb[TCA_STATS_PKT64]));
	if (tb[TCA_STATS_QUEUE] && nla_len(tb[TCA_STATS_QUEUE]) >= (int)sizeof(queue)) {
		nla_memcpy(&queue, tb[TCA_STATS_QUEUE], sizeof(queue));
		set_number(&s->basic, BASIC_QLEN, queue.qlen);
		set_number(&s->basic, BASIC_BACKLOG, queue.backlog);
		set_number(&s->basic, BASIC_DROPS, queue.drops);
		set_number(&s->basic, BASIC_REQUEUES, queue.requeues);
		set_number(&s->basic, BASIC_OVERLIMITS, queue.overlimits);
	}
	if (!tb[TCA_STATS_APP] ||
	    nla_parse_nested(app, TCA_ABE_STATS_MAX, tb[TCA_STATS_APP], NULL))
		return;
	get_numbers(&s->stat, tb[TCA_STATS_APP]);
	get_colour(s, GREEN, app[TCA_ABE_STATS_GREEN]);
	get_colour(s, BLUE, app[TCA_ABE_STATS_BLUE]);
}

/* if_indextoname(), which opens a socket each time. */
static bool get_name(struct sample *s)
{
	static int sock = -1;
	struct ifreq ifr = { .ifr_ifindex = s->ifindex };

	if (sock < 0)
		sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ioctl(sock, SIOCGIFNAME, &ifr))
		return false;
	memcpy(s->dev, ifr.ifr_name, sizeof(s->dev));
	return true;
}

/**
 * decode_qdisc - add what a message says of a qdisc to a reading
 * @reading:	with any number of qdiscs
 * @message:	struct nlmsghdr, RTM_NEWQDISC; passed over if it is of another kind
 */
void decode_qdisc(struct reading *reading, const void *message)
{
	struct nlmsghdr *n = (struct nlmsghdr *)message;
	struct nlattr *tb[TCA_MAX + 1], *flags;
	struct sample *s;
	struct tcmsg *tcm;

	if (n->nlmsg_type != RTM_NEWQDISC || nlmsg_parse(n, sizeof(*tcm), tb, TCA_MAX, NULL) ||
	    !tb[TCA_KIND] || nla_strcmp(tb[TCA_KIND], "abe"))
		return;
	tcm = nlmsg_data(n);
	s = get_room(reading);
	s->ifindex = tcm->tcm_ifindex;
	s->handle = tcm->tcm_handle;
	s->parent = tcm->tcm_parent;
	/* It may have gone in the meantime. */
	if (!get_name(s) || (reading->wanted && !reading->wanted(s->dev)))
		return;
	if (tb[TCA_OPTIONS]) {
		get_numbers(&s->option, tb[TCA_OPTIONS]);
		flags = nla_find(nla_data(tb[TCA_OPTIONS]), nla_len(tb[TCA_OPTIONS]),
				 TCA_ABE_FLAGS);
		if (flags && nla_len(flags) >= (int)sizeof(struct nla_bitfield32))
			set_number(&s->option, TCA_ABE_FLAGS,
				   ((struct nla_bitfield32 *)nla_data(flags))->value);
	}
	if (tb[TCA_STATS2])
		get_stats(s, tb[TCA_STATS2]);
	reading->qdiscs++;
}

static int on_message(struct nl_msg *msg, void *arg)
{
	decode_qdisc(arg, nlmsg_hdr(msg));
	return NL_OK;
}

/* A socket to ask for qdiscs with; what fails ends the program. */
struct nl_sock *open_netlink(void)
{
	struct nl_sock *sock = nl_socket_alloc();
	int err;

	if (!sock)
		die("no memory for a netlink socket");
	/* A dump comes in pieces of 32 KiB at most: nobody has to ask how long one is. */
	nl_socket_disable_msg_peek(sock);
	nl_socket_set_msg_buf_size(sock, 32768);
	err = nl_connect(sock, NETLINK_ROUTE);
	if (err)
		die("netlink: %s", nl_geterror(err));
	return sock;
}

void close_netlink(struct nl_sock *sock)
{
	nl_socket_free(sock);
}

/**
 * read_qdiscs - ask the kernel for all abe
 * @sock:	of open_netlink()
 * @reading:	set; its memory is used again
 *
 * While devices come and go, a dump in more than two pieces may leave a qdisc out.
 *
 * Return: NULL, or what is wrong: the socket has to be opened anew.
 */
const char *read_qdiscs(struct nl_sock *sock, struct reading *reading)
{
	struct tcmsg tcm = { .tcm_family = AF_UNSPEC };
	int err;

	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_message, reading);
	reading->qdiscs = 0;
	reading->time = now(CLOCK_REALTIME);
	reading->clock = now(CLOCK_BOOTTIME);
	err = nl_send_simple(sock, RTM_GETQDISC, NLM_F_DUMP, &tcm, sizeof(tcm));
	if (err >= 0)
		err = nl_recvmsgs_default(sock);
	return err < 0 ? nl_geterror(err) : NULL;
}
