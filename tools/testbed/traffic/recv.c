// SPDX-License-Identifier: GPL-2.0
/*
 * abeload recv: the sink of all flows of a host.
 *
 * Nothing wakes it per packet: UDP packets get the kernel's receive stamp and
 * wait in the socket, TCP bytes wait in the window, and every TICK both are
 * taken out in bulk, without copying what nobody reads. Only packets to the
 * --aimd-port are answered at once, because their senders wait for it, and
 * connections to the --web-port are closed at once when their file is there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
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
 * @seq:	its number
 * @room:	size of @delay, @sent and @seq
 * @series:	bytes in each interval of --series
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
	__u32		*seq;
	size_t		room;
	__u64		*series;
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
 * @series:	bytes in each interval of --series
 */
struct tcp_flow {
	int		fd;
	__u32		id;
	size_t		hello;
	struct tcp_hello greeting;
	__u64		bytes;
	__u64		*series;
};

/**
 * struct web_flow - all files of a user
 * @files:	connections that ended in the measured time
 * @bytes:	bytes received in the measured time
 * @series:	bytes in each interval of --series
 */
struct web_flow {
	__u64		files;
	__u64		bytes;
	__u64		*series;
};

/**
 * struct web_sink - the --web-port
 * @listener:	listening socket, -1: none
 * @epoll:	it, as NULL, and its connections, as struct tcp_flow
 * @flow:	by flow id
 */
struct web_sink {
	int		listener;
	int		epoll;
	struct web_flow	*flow[MAX_FLOWS];
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
 * @web:	connections that are one file each
 * @o:		what was asked for
 * @from:	when the measured time begins, CLOCK_MONOTONIC
 * @tick:	until when bytes that are found now have come, CLOCK_MONOTONIC
 * @slots:	length of all series
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
	struct web_sink	web;
	const struct recv_opts *o;
	__s64		from;
	__s64		tick;
	size_t		slots;
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
static int open_tcp(unsigned int port)
{
	int fd;

	if (!port)
		return -1;
	fd = open_port(SOCK_STREAM, port, "TCP");
	set_buffer(fd, true, TCP_BUFFER);
	set_option(fd, SOL_SOCKET, SO_RCVLOWAT, TCP_LOWAT, "low-water mark");
	if (listen(fd, 1024))
		die_errno("cannot listen on TCP port %u", port);
	return fd;
}

static void watch(int epoll, int fd, unsigned int events, void *data)
{
	struct epoll_event ev = { .events = events, .data.ptr = data };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		die_errno("epoll");
}

static void open_web(struct web_sink *w, unsigned int port)
{
	w->listener = open_tcp(port);
	w->epoll = -1;
	if (!port)
		return;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		die_errno("epoll");
	watch(w->epoll, w->listener, EPOLLIN, NULL);
}

/* Counts bytes that came at @at, ns after the measurement began. */
static void series_add(const struct sink *s, __u64 **series, __s64 at, size_t bytes)
{
	size_t slot;

	if (!s->slots)
		return;
	if (!*series)
		*series = xcalloc(s->slots, sizeof(**series));
	slot = at > 0 ? (size_t)(at / s->o->series) : 0;
	(*series)[slot < s->slots ? slot : s->slots - 1] += bytes;
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

static void udp_flow_add(const struct sink *s, struct udp_flow *f, const struct packet *p,
			 size_t len, __s64 arrived, __u8 tos)
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
		f->seq = xrealloc(f->seq, f->room, sizeof(*f->seq));
	}
	f->delay[f->packets] = delay;
	f->sent[f->packets] = sent;
	f->seq[f->packets] = ntohl(p->seq);
	f->packets++;
	f->bytes += len;
	series_add(s, &f->series, arrived - s->real_from, len);
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
				udp_flow_add(s, udp_flow_get(u, p), p, len, arrived, tos);
			if (u->acks)
				make_ack(b, acks++, i, tos);
		}
		if (acks)
			sendmmsg(u->fd, b->msg, acks, MSG_DONTWAIT);
	} while (n == room);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die_errno("cannot receive");
}

/* Reads the greeting as far as it has come; false when the connection has ended. */
static bool read_greeting(struct tcp_flow *f)
{
	ssize_t n;

	while (f->hello < sizeof(f->greeting)) {
		n = recv(f->fd, (char *)&f->greeting + f->hello,
			 sizeof(f->greeting) - f->hello, MSG_DONTWAIT);
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		f->hello += n;
		if (f->hello == sizeof(f->greeting)) {
			f->id = ntohl(f->greeting.flow);
			if (ntohl(f->greeting.magic) != PACKET_MAGIC || f->id >= MAX_FLOWS)
				die("a TCP connection did not come from \"abeload send\"");
		}
	}
	return true;
}

/*
 * Takes out what there is, @bytes of it; false when the connection has ended,
 * which without @to_end is noticed only when there was nothing.
 */
static bool drain_bytes(int fd, bool to_end, size_t *bytes)
{
	ssize_t n;

	*bytes = 0;
	/* MSG_TRUNC drops the bytes in the kernel instead of copying them. */
	while ((n = recv(fd, NULL, TCP_BUFFER, MSG_DONTWAIT | MSG_TRUNC)) > 0) {
		*bytes += n;
		if (n < TCP_BUFFER && !to_end)
			return true;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Returns false when the connection has ended. */
static bool drain_connection(struct sink *s, struct tcp_flow *f)
{
	size_t bytes;
	bool open;

	if (!read_greeting(f))
		return false;
	if (f->hello < sizeof(f->greeting))
		return true;
	open = drain_bytes(f->fd, false, &bytes);
	if (s->measuring && bytes) {
		f->bytes += bytes;
		series_add(s, &f->series, s->tick - 1 - s->from, bytes);
	}
	return open;
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

/* Events of the --web-port: a connection, much of a file, or its end. */
static void web_accept(struct web_sink *w)
{
	int fd;

	while ((fd = accept4(w->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct tcp_flow *f = xcalloc(1, sizeof(*f));

		f->fd = fd;
		watch(w->epoll, fd, EPOLLIN | EPOLLRDHUP, f);
	}
}

static void web_drain(struct sink *s, struct tcp_flow *f)
{
	struct web_flow *w = NULL;
	bool open = read_greeting(f);
	size_t bytes = 0;

	if (f->hello == sizeof(f->greeting)) {
		if (!s->web.flow[f->id])
			s->web.flow[f->id] = xcalloc(1, sizeof(*w));
		w = s->web.flow[f->id];
		open = drain_bytes(f->fd, true, &bytes);
		bytes += f->bytes ? 0 : sizeof(f->greeting);
		f->bytes += bytes;
	}
	if (w && s->measuring) {
		w->bytes += bytes;
		w->files += !open;
		series_add(s, &w->series, now(CLOCK_MONOTONIC) - s->from, bytes);
	}
	if (!open) {
		close(f->fd);
		free(f);
	}
}

static void drain_web(struct sink *s)
{
	struct epoll_event ev[64];
	int n;

	do {
		n = epoll_wait(s->web.epoll, ev, ARRAY_SIZE(ev), 0);
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr)
				web_drain(s, ev[i].data.ptr);
			else
				web_accept(&s->web);
		}
	} while (n == ARRAY_SIZE(ev));
}

static void drain(struct sink *s)
{
	if (s->udp.fd >= 0)
		drain_udp(s, &s->udp);
	if (s->aimd.fd >= 0)
		drain_udp(s, &s->aimd);
	if (s->listener >= 0)
		drain_tcp(s);
	if (s->web.listener >= 0)
		drain_web(s);
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
	fputs("], \"seq\": [", out);
	for (size_t i = 0; i < f->packets; i++)
		fprintf(out, "%s%u", i ? "," : "", f->seq[i]);
	fputs("]}", out);
}

static void report_series(FILE *out, const struct sink *s, const __u64 *series)
{
	if (!s->slots)
		return;
	fputs(", \"series\": [", out);
	for (size_t i = 0; i < s->slots; i++)
		fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)(series ? series[i] : 0));
	fputc(']', out);
}

/* When packet i came, ns after the measurement began. */
static __s64 arrival(const struct sink *s, const struct udp_flow *f, size_t i)
{
	return f->sent[i] + f->delay[i] - s->real_from;
}

/*
 * [BIAS00] II.D: the largest value of RFC 3550's jitter in each interval; null
 * where no packet came. The moving average runs on over the intervals.
 */
static void report_rtp(FILE *out, const struct sink *s, const struct udp_flow *f)
{
	__s64 window = s->o->rtp_window;
	size_t windows = (s->o->duration - s->o->warmup) / window, i = 0;
	double jitter = 0;

	fputs(", \"rtp_jitter_us\": [", out);
	for (size_t w = 0; w < windows; w++) {
		double most = -1;

		for (; i < f->packets && arrival(s, f, i) < (__s64)(w + 1) * window; i++) {
			__s64 step = i ? f->delay[i] - f->delay[i - 1] : 0;

			jitter += ((double)(step < 0 ? -step : step) - jitter) / 16;
			most = jitter > most ? jitter : most;
		}
		fputs(w ? "," : "", out);
		if (most < 0)
			fputs("null", out);
		else
			fprintf(out, "%.1f", most / NSEC_PER_USEC);
	}
	fputc(']', out);
}

/* [BIAS00] II.D: 95th less 5th percentile of the delays in each interval. */
static void report_spread(FILE *out, const struct sink *s, const struct udp_flow *f)
{
	__s64 window = s->o->spread_window;
	size_t windows = (s->o->duration - s->o->warmup) / window, i = 0;
	__s64 *d = xcalloc(f->packets, sizeof(*d));

	fputs(", \"spread_us\": [", out);
	for (size_t w = 0; w < windows; w++) {
		size_t n = 0;

		for (; i < f->packets && arrival(s, f, i) < (__s64)(w + 1) * window; i++)
			d[n++] = f->delay[i];
		qsort(d, n, sizeof(*d), by_value);
		fputs(w ? "," : "", out);
		if (n)
			fprintf(out, "%.1f", quantile_us(d, n, 0.95) - quantile_us(d, n, 0.05));
		else
			fputs("null", out);
	}
	fputc(']', out);
	free(d);
}

static void report_flow(FILE *out, const struct sink *s, struct udp_flow *f, double window,
			__s64 start)
{
	__u64 expected = (__u64)(f->top - f->first) + 1;
	__u64 lost = expected > f->packets ? expected - f->packets : 0;
	__s64 *d = f->delay;
	size_t n = f->packets;
	double sum = 0;

	fprintf(out, "{\"flow\": %u, \"packets\": %llu, \"bytes\": %llu, \"goodput\": %.1f",
		f->id, (unsigned long long)n, (unsigned long long)f->bytes,
		window > 0 ? (double)f->bytes * 8 / window : 0);
	fprintf(out, ", \"lost\": %llu, \"loss\": %.6f", (unsigned long long)lost,
		(double)lost / (double)expected);
	fprintf(out, ", \"reordered\": %llu, \"duplicates\": %llu",
		(unsigned long long)f->reordered, (unsigned long long)f->duplicates);
	fprintf(out, ", \"ce\": %llu, \"tos\": %u, \"jitter_us\": %.3f",
		(unsigned long long)f->ce, f->tos, f->jitter / NSEC_PER_USEC);
	if (s->o->raw)
		report_raw(out, f, start);
	report_series(out, s, f->series);
	if (s->o->rtp_window)
		report_rtp(out, s, f);
	if (s->o->spread_window)
		report_spread(out, s, f);
	for (size_t i = 0; i < n; i++)
		sum += (double)d[i];
	qsort(d, n, sizeof(*d), by_value);
	fprintf(out, ", \"delay_us\": {\"min\": %.3f, \"median\": %.3f, \"mean\": %.3f",
		quantile_us(d, n, 0), quantile_us(d, n, 0.5), sum / (double)n / NSEC_PER_USEC);
	fprintf(out, ", \"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f}}",
		quantile_us(d, n, 0.99), quantile_us(d, n, 0.999), quantile_us(d, n, 1));
}

static void report_udp(FILE *out, const struct sink *s, const char *key, const struct udp_sink *u,
		       double window, __s64 start)
{
	const char *sep = "";

	fprintf(out, ",\n \"%s\": [", key);
	for (unsigned int i = 0; i < MAX_FLOWS; i++) {
		if (!u->flow[i])
			continue;
		fprintf(out, "%s\n  ", sep);
		report_flow(out, s, u->flow[i], window, start);
		sep = ",";
	}
	fputs("]", out);
}

static void report_web(FILE *out, const struct sink *s, double window)
{
	const char *sep = "";

	fputs(",\n \"web\": [", out);
	for (unsigned int i = 0; i < MAX_FLOWS; i++) {
		const struct web_flow *f = s->web.flow[i];

		if (!f)
			continue;
		fprintf(out, "%s\n  {\"flow\": %u, \"files\": %llu", sep, i,
			(unsigned long long)f->files);
		fprintf(out, ", \"bytes\": %llu, \"goodput\": %.1f", (unsigned long long)f->bytes,
			window > 0 ? (double)f->bytes * 8 / window : 0);
		report_series(out, s, f->series);
		fputc('}', out);
		sep = ",";
	}
	fputc(']', out);
}

static void report(struct sink *s, double window, __s64 start)
{
	FILE *out = json_open(s->o->json);
	const char *sep = "";

	fprintf(out, "{\"window\": %.6f, \"cpu\": %.6f, \"buffer_drops\": %u, \"alien\": %llu",
		window, cpu_seconds(), s->udp.drops + s->aimd.drops,
		(unsigned long long)(s->udp.alien + s->aimd.alien));
	report_udp(out, s, "udp", &s->udp, window, start);
	report_udp(out, s, "aimd", &s->aimd, window, start);
	fputs(",\n \"tcp\": [", out);
	for (size_t i = 0; i < s->tcp_len; i++) {
		struct tcp_flow *f = &s->tcp[i];

		if (f->hello < sizeof(f->greeting))
			continue;
		fprintf(out, "%s\n  {\"flow\": %u, \"bytes\": %llu, \"goodput\": %.1f", sep, f->id,
			(unsigned long long)f->bytes,
			window > 0 ? (double)f->bytes * 8 / window : 0);
		report_series(out, s, f->series);
		fputc('}', out);
		sep = ",";
	}
	fputc(']', out);
	if (s->web.listener >= 0)
		report_web(out, s, window);
	fputs("}\n", out);
	json_close(out, s->o->json);
}

/* Sleeps until @until, except that who waits for an answer gets it. */
static void wait_until(struct sink *s, __s64 until)
{
	/* a descriptor of -1 is passed over, but not for nothing */
	struct pollfd p[2] = {
		{ .fd = s->aimd.fd >= 0 ? s->aimd.fd : s->web.epoll, .events = POLLIN },
		{ .fd = s->web.epoll, .events = POLLIN },
	};
	int ports = (s->aimd.fd >= 0) + (s->web.epoll >= 0);
	__s64 left;

	while (!stop_requested() && (left = until - now(CLOCK_MONOTONIC)) > 0) {
		struct timespec ts = { left / NSEC_PER_SEC, left % NSEC_PER_SEC };

		if (ppoll(p, ports, &ts, NULL) <= 0)
			continue;
		if (s->aimd.fd >= 0 && p[0].revents)
			drain_udp(s, &s->aimd);
		if (s->web.epoll >= 0 && p[ports - 1].revents)
			drain_web(s);
	}
}

int recv_main(const struct recv_opts *o)
{
	__s64 start, real_start, end, next;
	struct sink *s = xcalloc(1, sizeof(*s));

	s->o = o;
	open_udp(&s->udp, o->udp_port, false);
	open_udp(&s->aimd, o->aimd_port, true);
	s->listener = open_tcp(o->tcp_port);
	open_web(&s->web, o->web_port);
	watch_signals();
	if (o->series)
		s->slots = (o->duration - o->warmup + o->series - 1) / o->series;

	start = now(CLOCK_MONOTONIC);
	real_start = now(CLOCK_REALTIME);
	s->from = start + o->warmup;
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
		if (!s->measuring && next > s->from)
			next = s->from;
		wait_until(s, next);
		s->tick = next;
		drain(s);
		if (!s->measuring && next >= s->from) {
			s->measuring = true;
			s->from = now(CLOCK_MONOTONIC);
		}
	}
	end = now(CLOCK_MONOTONIC);
	report(s, s->measuring ? (double)(end - s->from) / NSEC_PER_SEC : 0, real_start);
	return 0;
}
