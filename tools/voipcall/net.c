// SPDX-License-Identifier: GPL-2.0
/*
 * voipcall's sockets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "dccp.h"
#include "net.h"

static const char no_dccp[] =
	"the kernel has no DCCP (it left Linux in 6.16): modprobe -a dccp_ipv4 dccp_ipv6, or --udp";

static void set_option(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		die_errno("cannot set %s", what);
}

/* Name the CCID that the kernel does not have. */
static noreturn void ccid_refused(int fd, const struct options *o)
{
	socklen_t len = 255;
	__u8 have[255];
	int err = errno;

	if (!getsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_AVAILABLE_CCIDS, have, &len)) {
		for (unsigned int i = 0; i < o->ccids; i++) {
			if (!memchr(have, o->ccid[i], len))
				die("CCID %u is not in this kernel: load its module",
				    o->ccid[i]);
		}
	}
	if (err == EPERM)
		die("CCIDs 248 to 254 are experimental, and not for every user here: see dccp_tfrc's parameter \"experimental\"");
	errno = err;
	die_errno("the kernel refuses the list of CCIDs");
}

static void dccp_options(int fd, const struct options *o)
{
	set_option(fd, SOL_DCCP, DCCP_SOCKOPT_SERVICE, htonl(SERVICE_RTPA), "the service code");
	if (o->ccids && setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID, o->ccid, o->ccids))
		ccid_refused(fd, o);
	if (o->tx_queue)
		set_option(fd, SOL_DCCP, DCCP_SOCKOPT_QPOLICY_TXQLEN, o->tx_queue,
			   "the queue length");
}

static void udp_options(int fd, int family)
{
	set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, "receive stamps");
	set_option(fd, IPPROTO_IP, IP_RECVTOS, 1, "TOS reporting");
	set_option(fd, IPPROTO_IP, IP_PKTINFO, 1, "address reporting");
	if (family != AF_INET6)
		return;
	set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "traffic class reporting");
	set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "address reporting");
}

/*
 * The mark of what is sent. For DCCP the ECN bits are the CCID's; for UDP they
 * are @ecn's. An IPv6 socket may be talking IPv4.
 */
void net_mark(int fd, int dscp, bool ecn)
{
	int domain = AF_INET, type = 0, tos = 0;
	socklen_t len = sizeof(int);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
	if (type == SOCK_DCCP)
		getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &len);
	tos = dscp << 2 | (ecn ? 2 : tos & 3);
	set_option(fd, IPPROTO_IP, IP_TOS, tos, "the DSCP");
	if (domain == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_TCLASS, tos, "the DSCP");
}

/* Returns -1 if the kernel has no such protocol. */
static int net_socket(const struct options *o, int family)
{
	int type = (o->udp ? SOCK_DGRAM : SOCK_DCCP) | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int fd = socket(family, type, o->udp ? IPPROTO_UDP : IPPROTO_DCCP);

	if (fd < 0) {
		if (errno != EPROTONOSUPPORT && errno != ESOCKTNOSUPPORT && errno != EAFNOSUPPORT)
			die_errno("cannot open a socket");
		return -1;
	}
	if (o->udp)
		udp_options(fd, family);
	else
		dccp_options(fd, o);
	if (o->dscp > 0 || o->ecn)
		net_mark(fd, o->dscp > 0 ? o->dscp : 0, o->ecn);
	return fd;
}

/* An IPv6 socket serves both; where the kernel has no IPv6, an IPv4 one must do. */
int net_listen(const struct options *o)
{
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM
	}, *a;
	int family = o->family == AF_INET ? AF_INET : AF_INET6;
	int fd = net_socket(o, family), err;

	if (fd < 0 && o->family == AF_UNSPEC) {
		family = AF_INET;
		fd = net_socket(o, family);
	}
	if (fd < 0)
		die("%s", o->udp ? "this kernel has no such address family" : no_dccp);
	if (family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, o->family == AF_INET6, "dual stack");
	hints.ai_family = family;
	err = getaddrinfo(NULL, o->port, &hints, &a);
	if (err)
		die("port %s: %s", o->port, gai_strerror(err));
	/* UDP: only after bind(), which is to fail where somebody listens already */
	if (!o->udp)
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "address reuse");
	if (bind(fd, a->ai_addr, a->ai_addrlen))
		die_errno("cannot listen at port %s", o->port);
	if (o->udp)
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "address reuse");
	else if (listen(fd, 128))
		die_errno("cannot listen at port %s", o->port);
	freeaddrinfo(a);
	return fd;
}

/* Returns 0 or minus an error number. */
static int finish_connect(const struct options *o, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0, n;

	n = poll(&p, 1, (int)(o->timeout / NSEC_PER_MSEC));
	if (n < 0)
		return -errno;
	if (!n)
		return -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return -err;
}

/* A way to the peer may come back. */
bool net_unreachable(int err)
{
	return err == ENETUNREACH || err == EHOSTUNREACH || err == ENETDOWN;
}

/* What an error of a connection means; the kernel turns DCCP's reset codes into odd ones. */
const char *net_error(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "Connection refused (nobody listens there)";
	case ECONNRESET:
		return "Connection reset by the other side";
	case EILSEQ:
	case EOPNOTSUPP:
		return "the other side refuses our options (no CCID in common? see --ccid)";
	case EBADRQC:
		return "the other side does not offer RTP audio there";
	case EUSERS:
		return "the other side is too busy";
	default:
		return strerror(err);
	}
}

/* Returns a connected socket; tries all addresses of the host. */
int net_connect(const struct options *o)
{
	struct addrinfo hints = {
		.ai_family = o->family, .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM
	}, *list, *a;
	int fd = -1, err;

	err = getaddrinfo(o->host, o->port, &hints, &list);
	if (err)
		die("%s: %s", o->host, err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	err = 0;
	for (a = list; a; a = a->ai_next) {
		fd = net_socket(o, a->ai_family);
		if (fd < 0)
			continue;
		err = connect(fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
		if (err == EINPROGRESS)
			err = -finish_connect(o, fd);
		if (!err)
			break;
		close(fd);
	}
	freeaddrinfo(list);
	if (err)
		die("cannot call %s port %s: %s", o->host, o->port, net_error(err));
	if (fd < 0)
		die("%s", o->udp ? "this kernel has no such address family" : no_dccp);
	return fd;
}

/* The next connection, or -1. */
int net_accept_dccp(int fd)
{
	return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* A socket for the one peer that sent the datagram, or -1. */
int net_accept_udp(const struct options *o, int fd, const struct datagram *d)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	int child;

	if (getsockname(fd, (struct sockaddr *)&own, &len))
		return -1;
	/* answer from the address that was called */
	if (own.ss_family == AF_INET)
		((struct sockaddr_in *)&own)->sin_addr = ((struct sockaddr_in *)&d->to)->sin_addr;
	else
		((struct sockaddr_in6 *)&own)->sin6_addr =
			((struct sockaddr_in6 *)&d->to)->sin6_addr;
	child = net_socket(o, own.ss_family);
	if (child < 0)
		return -1;
	set_option(child, SOL_SOCKET, SO_REUSEADDR, 1, "address reuse");
	if (own.ss_family == AF_INET6) {
		set_option(child, IPPROTO_IPV6, IPV6_V6ONLY, o->family == AF_INET6, "dual stack");
		((struct sockaddr_in6 *)&own)->sin6_scope_id =
			((struct sockaddr_in6 *)&d->from)->sin6_scope_id;
	}
	if (bind(child, (struct sockaddr *)&own, len) ||
	    connect(child, (struct sockaddr *)&d->from, d->from_len)) {
		complain("cannot answer a call: %s", strerror(errno));
		close(child);
		return -1;
	}
	return child;
}

static void read_control(struct msghdr *m, struct datagram *d)
{
	struct timespec ts;
	struct cmsghdr *c;
	int tclass;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		const void *data = CMSG_DATA(c);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&ts, data, sizeof(ts));
			d->arrived = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			d->ce = (*(const __u8 *)data & 3) == 3;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&tclass, data, sizeof(tclass));
			d->ce = (tclass & 3) == 3;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			((struct sockaddr_in *)&d->to)->sin_addr =
				((const struct in_pktinfo *)data)->ipi_addr;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			((struct sockaddr_in6 *)&d->to)->sin6_addr =
				((const struct in6_pktinfo *)data)->ipi6_addr;
		}
	}
}

/**
 * net_receive - take a datagram
 * @fd:		socket
 * @d:		the datagram
 *
 * DCCP has no receive stamps; there it is the time of this call.
 *
 * Return: 1, 0 at the end of a DCCP connection, or minus an error number.
 */
int net_receive(int fd, struct datagram *d)
{
	struct iovec iov = { d->data, sizeof(d->data) };
	char control[256];
	struct msghdr m = {
		.msg_name = &d->from, .msg_namelen = sizeof(d->from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	ssize_t n = recvmsg(fd, &m, 0);

	if (n < 0)
		return -errno;
	d->arrived = now(CLOCK_REALTIME);
	d->ce = false;
	d->len = n;
	d->from_len = m.msg_namelen;
	read_control(&m, d);
	/* a packet of no bytes keeps a connection alive (RFC 5762, 4.1) */
	if (!n && poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP))
		return 0;
	return 1;
}

void net_name(const struct sockaddr_storage *a, char *name)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	char text[INET6_ADDRSTRLEN] = "";

	if (a->ss_family == AF_INET) {
		inet_ntop(AF_INET, &a4->sin_addr, text, sizeof(text));
		snprintf(name, ADDRESS_LEN, "%s:%u", text, ntohs(a4->sin_port));
	} else if (IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr)) {
		inet_ntop(AF_INET, &a6->sin6_addr.s6_addr[12], text, sizeof(text));
		snprintf(name, ADDRESS_LEN, "%s:%u", text, ntohs(a6->sin6_port));
	} else {
		inet_ntop(AF_INET6, &a6->sin6_addr, text, sizeof(text));
		snprintf(name, ADDRESS_LEN, "[%s]:%u", text, ntohs(a6->sin6_port));
	}
}

void net_names(int fd, char *local, char *remote)
{
	struct sockaddr_storage a = { .ss_family = AF_INET };
	socklen_t len = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &len);
	net_name(&a, local);
	len = sizeof(a);
	getpeername(fd, (struct sockaddr *)&a, &len);
	net_name(&a, remote);
}

/* The CCID of a half-connection, -1: not DCCP. */
int net_ccid(int fd, bool tx)
{
	socklen_t len = sizeof(int);
	int ccid;

	if (getsockopt(fd, SOL_DCCP, tx ? DCCP_SOCKOPT_TX_CCID : DCCP_SOCKOPT_RX_CCID,
		       &ccid, &len))
		return -1;
	return ccid;
}
