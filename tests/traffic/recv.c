// SPDX-License-Identifier: GPL-2.0
/*
 * abeload recv: the sink of all flows of a host.
 *
 * Nothing wakes it per packet: UDP packets get the kernel's receive stamp and
 * wait in the socket, TCP bytes wait in the window, and every TICK both are
 * taken out in bulk, without copying what nobody reads. Only packets to the
 * --aimd-port are answered at once, because their senders wait for it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "abeload.h"

#define TICK		(50 * NSEC_PER_SEC / 1000)
#define BATCH		64
#define ACK_BATCH	4
#define UDP_BUFFER	(16 << 20)
#define TCP_BUFFER	(8 << 20)
#define TCP_LOWAT	(1024 * 1024)
#define DUP_WINDOW	64

/**
 * struct udp_flow - what arrived of one UDP flow in the measured time
 * @id:		flow id
 * @packets:	packets, without duplicates
 * @bytes:	payload bytes of @packets
 * @reordered:	packets that came after one with a higher number
 * @duplicates:	packets that came again within DUP_WINDOW numbers
 * @ce:		packets with Congestion Experienced
 * @first:	lowest sequence number
 * @top:	highest sequence number
 * @seen:	bit n: @top - n has come
 * @tos:	TOS byte or traffic class of the last packet without CE
 * @jitter:	interarrival jitter of RFC 3550, ns
 * @delay:	one-way delay of each packet, ns
 * @sent:	when each was sent, CLOCK_REALTIME
 * @room:	size of @delay and @sent
 */
struct udp_flow {
	__u32		id;
	__u64		packets;
	__u64		bytes;
	__u64		reordered;
	__u64		duplicates;
	__u64		ce;
	__u32		first;
	__u32		top;
	__u64		seen;
	__u8		tos;
	double		jitter;
	__s64		*delay;
	__s64		*sent;
	size_t		room;
};

/**
 * struct udp_sink - one UDP socket and its flows
 * @fd:		socket, -1: none
 * @acks:	answer every packet
 * @drops:	packets the socket buffer had no room for
 * @alien:	datagrams that are not ours
 * @flow:	by flow id
 */
struct udp_sink {
	int		fd;
	bool		acks;
	__u32		drops;
	__u64		alien;
	struct udp_flow	*flow[MAX_FLOWS];
};

/**
 * struct tcp_flow - one TCP connection
 * @fd:		socket, -1: closed
 * @id:		flow id, once @hello is whole
 * @hello:	how much of the greeting was read
 * @greeting:	the greeting
 * @bytes:	bytes received in the measured time
 */
struct tcp_flow {
	int		fd;
	__u32		id;
	size_t		hello;
	struct tcp_hello greeting;
	__u64		bytes;
};

/**
 * struct batch - buffers of one recvmmsg()
 * @msg:	message headers
 * @iov:	where packets go, and where acknowledgments are sent from
 * @from:	senders
 * @packet:	heads of the packets; the rest of each is not copied
 * @control:	receive stamp, TOS, overflow count
 */
struct batch {
	struct mmsghdr		msg[BATCH];
	struct iovec		iov[BATCH];
	struct sockaddr_storage	from[BATCH];
	struct packet		packet[BATCH];
	char			control[BATCH][128];
};

/**
 * struct sink - everything of this process
 * @udp:	silent UDP flows
 * @aimd:	acknowledged ones
 * @listener:	TCP listening socket, -1: none
 * @tcp:	connections
 * @tcp_len:	their number
 * @real_from:	packets sent from then on count, CLOCK_REALTIME
 * @measuring:	the warm-up is over
 * @batch:	scratch
 */
struct sink {
	struct udp_sink	udp;
	struct udp_sink	aimd;
	int		listener;
	struct tcp_flow	*tcp;
	size_t		tcp_len;
	__s64		real_from;
	bool		measuring;
	struct batch	batch;
};

/* An IPv6 socket serves both; without IPv6 in the kernel an IPv4 one must do. */
static int open_port(int type, unsigned int port, const char *what)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd, err;

	type |= SOCK_NONBLOCK | SOCK_CLOEXEC;
	fd = socket(AF_INET6, type, 0);
	if (fd >= 0) {
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, "dual stack");
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "address reuse");
		err = bind(fd, (struct sockaddr *)&a6, sizeof(a6));
	} else {
		fd = socket(AF_INET, type, 0);
		if (fd < 0)
			die_errno("cannot open a socket");
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "address reuse");
		err = bind(fd, (struct sockaddr *)&a4, sizeof(a4));
	}
	if (err)
		die_errno("cannot listen on %s port %u", what, port);
	return fd;
}

static void open_udp(struct udp_sink *s, unsigned int port, bool acks)
{
	int domain;
	socklen_t len = sizeof(domain);

	s->fd = -1;
	s->acks = acks;
	if (!port)
		return;
	s->fd = open_port(SOCK_DGRAM, port, "UDP");
	set_buffer(s->fd, true, UDP_BUFFER);
	set_option(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, "receive stamps");
	set_option(s->fd, SOL_SOCKET, SO_RXQ_OVFL, 1, "overflow count");
	set_option(s->fd, IPPROTO_IP, IP_RECVTOS, 1, "TOS reporting");
	if (!getsockopt(s->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_INET6)
		set_option(s->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "traffic class reporting");
}

/*
 * The buffer is fixed before the handshake, which fixes the window scale, and
 * the low-water mark is high: then the kernel acknowledges every second
 * segment although nobody reads (__tcp_ack_snd_check()).
 */
static void open_tcp(struct sink *s, unsigned int port)
{
	s->listener = -1;
	if (!port)
		return;
	s->listener = open_port(SOCK_STREAM, port, "TCP");
	set_buffer(s->listener, true, TCP_BUFFER);
	set_option(s->listener, SOL_SOCKET, SO_RCVLOWAT, TCP_LOWAT, "low-water mark");
	if (listen(s->listener, 1024))
		die_errno("cannot listen on TCP port %u", port);
}

static struct udp_flow *udp_flow_get(struct udp_sink *s, const struct packet *p)
{
	__u32 id = ntohl(p->flow);
	struct udp_flow *f = s->flow[id];

	if (!f) {
		f = xcalloc(1, sizeof(*f));
		f->id = id;
		f->first = ntohl(p->seq);
		f->top = f->first - 1;
		s->flow[id] = f;
	}
	return f;
}

/* Returns false for a duplicate. */
static bool udp_flow_seq(struct udp_flow *f, __u32 seq)
{
	__s32 ahead = (__s32)(seq - f->top);

	if (ahead > 0) {
		f->seen = ahead < DUP_WINDOW ? f->seen << ahead | 1 : 1;
		f->top = seq;
		return true;
	}
	if (-ahead < DUP_WINDOW) {
		if (f->seen >> -ahead & 1) {
			f->duplicates++;
			return false;
		}
		f->seen |= 1ULL << -ahead;
	}
	f->reordered++;
	if ((__s32)(seq - f->first) < 0)
		f->first = seq;
	return true;
}

static void udp_flow_add(struct udp_flow *f, const struct packet *p, size_t len, __s64 arrived,
			 __u8 tos)
{
	__s64 sent = packet_stamp(p), delay = arrived - sent;
	double step;

	if (!udp_flow_seq(f, ntohl(p->seq)))
		return;
	if ((tos & 3) == 3)
		f->ce++;
	else
		f->tos = tos;
	if (f->packets) {
		step = (double)(delay - f->delay[f->packets - 1]);
		f->jitter += ((step < 0 ? -step : step) - f->jitter) / 16;
	}
	if (f->packets == f->room) {
		f->room = f->room ? 2 * f->room : 4096;
		f->delay = xrealloc(f->delay, f->room, sizeof(*f->delay));
		f->sent = xrealloc(f->sent, f->room, sizeof(*f->sent));
	}
	f->delay[f->packets] = delay;
	f->sent[f->packets] = sent;
	f->packets++;
	f->bytes += len;
}

static void read_control(struct msghdr *m, __s64 *arrived, __u8 *tos, __u32 *drops)
{
	struct timespec ts;
	struct cmsghdr *c;
	int value;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&ts, CMSG_DATA(c), sizeof(ts));
			*arrived = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(drops, CMSG_DATA(c), sizeof(*drops));
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			*tos = *(unsigned char *)CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			*tos = (__u8)value;
		}
	}
}

/* Turns message @i of the batch into number @n of the acknowledgments. */
static void make_ack(struct batch *b, int n, int i, __u8 tos)
{
	b->packet[n] = b->packet[i];
	b->packet[n].kind = PACKET_ACK;
	b->packet[n].flags = (tos & 3) == 3 ? PACKET_F_CE : 0;
	b->from[n] = b->from[i];
	b->msg[n].msg_hdr = (struct msghdr) {
		.msg_name = &b->from[n],
		.msg_namelen = b->msg[i].msg_hdr.msg_namelen,
		.msg_iov = &b->iov[n],
		.msg_iovlen = 1,
	};
}

/* Readies the first @n messages for receiving. */
static void batch_prepare(struct batch *b, int n, bool want_sender)
{
	for (int i = 0; i < n; i++) {
		b->iov[i] = (struct iovec) { &b->packet[i], sizeof(b->packet[i]) };
		b->msg[i].msg_hdr = (struct msghdr) {
			.msg_name = want_sender ? &b->from[i] : NULL,
			.msg_namelen = want_sender ? sizeof(b->from[i]) : 0,
			.msg_iov = &b->iov[i],
			.msg_iovlen = 1,
			.msg_control = b->control[i],
			.msg_controllen = sizeof(b->control[i]),
		};
	}
}

/* MSG_TRUNC: the length of the datagram, while only its head is copied. */
static void drain_udp(struct sink *s, struct udp_sink *u)
{
	/* who waits for acknowledgments sends few packets between two wake-ups */
	int room = u->acks ? ACK_BATCH : BATCH;
	struct batch *b = &s->batch;
	int n, acks;

	do {
		batch_prepare(b, room, u->acks);
		n = recvmmsg(u->fd, b->msg, room, MSG_DONTWAIT | MSG_TRUNC, NULL);
		acks = 0;
		for (int i = 0; i < n; i++) {
			struct packet *p = &b->packet[i];
			size_t len = b->msg[i].msg_len;
			__s64 arrived = 0;
			__u8 tos = 0;

			if (!packet_valid(p, len) || p->kind != PACKET_DATA) {
				u->alien++;
				continue;
			}
			read_control(&b->msg[i].msg_hdr, &arrived, &tos, &u->drops);
			if (packet_stamp(p) >= s->real_from && !(p->flags & PACKET_F_WARMUP))
				udp_flow_add(udp_flow_get(u, p), p, len, arrived, tos);
			if (u->acks)
				make_ack(b, acks++, i, tos);
		}
		if (acks)
			sendmmsg(u->fd, b->msg, acks, MSG_DONTWAIT);
	} while (n == room);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die_errno("cannot receive");
}

/* Returns false when the connection has ended. */
static bool drain_connection(struct sink *s, struct tcp_flow *f)
{
	ssize_t n;

	while (f->hello < sizeof(f->greeting)) {
		n = recv(f->fd, (char *)&f->greeting + f->hello,
			 sizeof(f->greeting) - f->hello, MSG_DONTWAIT);
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		f->hello += n;
		if (f->hello == sizeof(f->greeting)) {
			if (ntohl(f->greeting.magic) != PACKET_MAGIC)
				die("a TCP connection did not come from \"abeload send tcp\"");
			f->id = ntohl(f->greeting.flow);
		}
	}
	/* MSG_TRUNC drops the bytes in the kernel instead of copying them. */
	while ((n = recv(f->fd, NULL, TCP_BUFFER, MSG_DONTWAIT | MSG_TRUNC)) > 0) {
		if (s->measuring)
			f->bytes += n;
		if (n < TCP_BUFFER)
			return true;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void drain_tcp(struct sink *s)
{
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		s->tcp = xrealloc(s->tcp, s->tcp_len + 1, sizeof(*s->tcp));
		s->tcp[s->tcp_len++] = (struct tcp_flow) { .fd = fd };
	}
	for (size_t i = 0; i < s->tcp_len; i++) {
		struct tcp_flow *f = &s->tcp[i];

		if (f->fd >= 0 && !drain_connection(s, f)) {
			close(f->fd);
			f->fd = -1;
		}
	}
}

static void drain(struct sink *s)
{
	if (s->udp.fd >= 0)
		drain_udp(s, &s->udp);
	if (s->aimd.fd >= 0)
		drain_udp(s, &s->aimd);
	if (s->listener >= 0)
		drain_tcp(s);
}

static int by_value(const void *a, const void *b)
{
	__s64 x = *(const __s64 *)a, y = *(const __s64 *)b;

	return (x > y) - (x < y);
}

/* The smallest value that at least the share @q of the sorted values do not exceed. */
static double quantile_us(const __s64 *sorted, size_t n, double q)
{
	double rank = q * (double)n;
	size_t i = (size_t)rank;

	if ((double)i < rank)
		i++;
	return (double)sorted[i ? i - 1 : 0] / NSEC_PER_USEC;
}

static void report_raw(FILE *out, const struct udp_flow *f, __s64 start)
{
	fputs(", \"raw\": {\"sent_us\": [", out);
	for (size_t i = 0; i < f->packets; i++)
		fprintf(out, "%s%.1f", i ? "," : "", (double)(f->sent[i] - start) / NSEC_PER_USEC);
	fputs("], \"delay_us\": [", out);
	for (size_t i = 0; i < f->packets; i++)
		fprintf(out, "%s%.1f", i ? "," : "", (double)f->delay[i] / NSEC_PER_USEC);
	fputs("]}", out);
}

static void report_flow(FILE *out, struct udp_flow *f, double window, bool raw, __s64 start)
{
	__u64 expected = (__u64)(f->top - f->first) + 1;
	__u64 lost = expected > f->packets ? expected - f->packets : 0;
	__s64 *d = f->delay;
	size_t n = f->packets;
	double sum = 0;

	fprintf(out, "{\"flow\": %u, \"packets\": %llu, \"bytes\": %llu, \"goodput\": %.1f",
		f->id, (unsigned long long)n, (unsigned long long)f->bytes,
		window > 0 ? (double)f->bytes * 8 / window : 0);
	fprintf(out, ", \"lost\": %llu, \"loss\": %.6f, \"reordered\": %llu, \"duplicates\": %llu",
		(unsigned long long)lost, (double)lost / (double)expected,
		(unsigned long long)f->reordered, (unsigned long long)f->duplicates);
	fprintf(out, ", \"ce\": %llu, \"tos\": %u, \"jitter_us\": %.3f",
		(unsigned long long)f->ce, f->tos, f->jitter / NSEC_PER_USEC);
	if (raw)
		report_raw(out, f, start);
	for (size_t i = 0; i < n; i++)
		sum += (double)d[i];
	qsort(d, n, sizeof(*d), by_value);
	fprintf(out, ", \"delay_us\": {\"min\": %.3f, \"median\": %.3f, \"mean\": %.3f",
		quantile_us(d, n, 0), quantile_us(d, n, 0.5), sum / (double)n / NSEC_PER_USEC);
	fprintf(out, ", \"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f}}",
		quantile_us(d, n, 0.99), quantile_us(d, n, 0.999), quantile_us(d, n, 1));
}

static void report_udp(FILE *out, const char *key, struct udp_sink *u, double window,
		       const struct recv_opts *o, __s64 start)
{
	const char *sep = "";

	fprintf(out, ",\n \"%s\": [", key);
	for (unsigned int i = 0; i < MAX_FLOWS; i++) {
		if (!u->flow[i])
			continue;
		fprintf(out, "%s\n  ", sep);
		report_flow(out, u->flow[i], window, o->raw, start);
		sep = ",";
	}
	fputs("]", out);
}

static void report(struct sink *s, const struct recv_opts *o, double window, __s64 start)
{
	FILE *out = json_open(o->json);
	const char *sep = "";

	fprintf(out, "{\"window\": %.6f, \"cpu\": %.6f, \"buffer_drops\": %u, \"alien\": %llu",
		window, cpu_seconds(), s->udp.drops + s->aimd.drops,
		(unsigned long long)(s->udp.alien + s->aimd.alien));
	report_udp(out, "udp", &s->udp, window, o, start);
	report_udp(out, "aimd", &s->aimd, window, o, start);
	fputs(",\n \"tcp\": [", out);
	for (size_t i = 0; i < s->tcp_len; i++) {
		struct tcp_flow *f = &s->tcp[i];

		if (f->hello < sizeof(f->greeting))
			continue;
		fprintf(out, "%s\n  {\"flow\": %u, \"bytes\": %llu, \"goodput\": %.1f}", sep, f->id,
			(unsigned long long)f->bytes,
			window > 0 ? (double)f->bytes * 8 / window : 0);
		sep = ",";
	}
	fputs("]}\n", out);
	json_close(out, o->json);
}

/* Sleeps until @until, except that packets to the AIMD port are answered. */
static void wait_until(struct sink *s, __s64 until)
{
	struct pollfd p = { .fd = s->aimd.fd, .events = POLLIN };
	__s64 left;

	while (!stop_requested() && (left = until - now(CLOCK_MONOTONIC)) > 0) {
		struct timespec ts = { left / NSEC_PER_SEC, left % NSEC_PER_SEC };

		if (ppoll(&p, s->aimd.fd >= 0, &ts, NULL) > 0)
			drain_udp(s, &s->aimd);
	}
}

int recv_main(const struct recv_opts *o)
{
	__s64 start, real_start, from, end, next;
	struct sink *s = xcalloc(1, sizeof(*s));

	open_udp(&s->udp, o->udp_port, false);
	open_udp(&s->aimd, o->aimd_port, true);
	open_tcp(s, o->tcp_port);
	watch_signals();

	start = now(CLOCK_MONOTONIC);
	real_start = now(CLOCK_REALTIME);
	from = start + o->warmup;
	end = start + o->duration;
	next = start;
	s->real_from = real_start + o->warmup;
	s->measuring = !o->warmup;
	if (strcmp(o->json, "-")) {
		puts("ready");
		fflush(stdout);
	}

	while (next < end && !stop_requested()) {
		next += TICK;
		if (next > end)
			next = end;
		if (!s->measuring && next > from)
			next = from;
		wait_until(s, next);
		drain(s);
		if (!s->measuring && next >= from) {
			s->measuring = true;
			from = now(CLOCK_MONOTONIC);
		}
	}
	end = now(CLOCK_MONOTONIC);
	report(s, o, s->measuring ? (double)(end - from) / NSEC_PER_SEC : 0, real_start);
	return 0;
}
