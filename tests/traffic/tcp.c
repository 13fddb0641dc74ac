// SPDX-License-Identifier: GPL-2.0
/*
 * abeload send tcp: flows that always have something to send.
 *
 * The socket buffer is large, so that a wake-up is worth hundreds of packets,
 * and is filled by reference from pages in memory: no byte is copied.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "abeload.h"

#define PAGES_LEN	(256 << 10)
#define SEND_BUFFER	(4 << 20)
#define START_JITTER	(NSEC_PER_SEC / 10)

/**
 * struct bulk - one connection
 * @fd:		socket, -1: not yet opened
 * @greeted:	it is connected and has sent its flow id
 * @bytes:	bytes given to the kernel
 */
struct bulk {
	int		fd;
	bool		greeted;
	__u64		bytes;
};

static int make_pages(void)
{
	static const char zero[PAGES_LEN];
	int fd = memfd_create("abeload", MFD_CLOEXEC);

	if (fd < 0 || write(fd, zero, PAGES_LEN) != PAGES_LEN)
		die_errno("cannot make pages to send");
	return fd;
}

static void bulk_start(const struct send_opts *o, struct bulk *b, unsigned int i, int epoll)
{
	struct linger abort_on_close = { .l_onoff = 1 };
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET, .data.u32 = i };

	b->fd = open_flow(o, SOCK_STREAM);
	set_buffer(b->fd, false, SEND_BUFFER);
	setsockopt(b->fd, SOL_SOCKET, SO_LINGER, &abort_on_close, sizeof(abort_on_close));
	if (o->cc && setsockopt(b->fd, IPPROTO_TCP, TCP_CONGESTION, o->cc, strlen(o->cc)))
		die_errno("congestion control \"%s\"", o->cc);
	if (connect(b->fd, (const struct sockaddr *)&o->to, o->to_len) && errno != EINPROGRESS)
		die_errno("cannot connect to %s", o->to_text);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, b->fd, &ev))
		die_errno("epoll");
}

static void bulk_greet(const struct send_opts *o, struct bulk *b, unsigned int flow)
{
	struct tcp_hello hello = { htonl(PACKET_MAGIC), htonl(flow) };
	socklen_t len = sizeof(errno);
	int err = 0;

	getsockopt(b->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	errno = err;
	if (err || send(b->fd, &hello, sizeof(hello), 0) != sizeof(hello))
		die_errno("cannot connect to %s", o->to_text);
	b->greeted = true;
}

static void bulk_fill(const struct send_opts *o, struct bulk *b, int pages)
{
	ssize_t n;

	do {
		off_t from = 0;

		n = sendfile(b->fd, pages, &from, PAGES_LEN);
		if (n > 0)
			b->bytes += n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (errno != EAGAIN)
		die_errno("connection to %s", o->to_text);
}

static void report(const struct send_opts *o, const struct bulk *b)
{
	FILE *out = json_open(o->json);

	fprintf(out, "{\"cpu\": %.6f, \"tcp\": [", cpu_seconds());
	for (unsigned int i = 0; i < o->flows; i++) {
		struct tcp_info info = { 0 };
		socklen_t len = sizeof(info);

		if (b[i].fd >= 0)
			getsockopt(b[i].fd, IPPROTO_TCP, TCP_INFO, &info, &len);
		fprintf(out, "%s\n  {\"flow\": %u, \"acked\": %llu, \"segments\": %u",
			i ? "," : "", o->id + i, (unsigned long long)info.tcpi_bytes_acked,
			info.tcpi_data_segs_out);
		fprintf(out, ", \"retransmitted\": %u, \"delivered_ce\": %u, \"cwnd\": %u",
			info.tcpi_total_retrans, info.tcpi_delivered_ce, info.tcpi_snd_cwnd);
		fprintf(out, ", \"rtt_us\": %u, \"min_rtt_us\": %u, \"mss\": %u}", info.tcpi_rtt,
			info.tcpi_min_rtt, info.tcpi_snd_mss);
	}
	fputs("]}\n", out);
	json_close(out, o->json);
}

/* Returns the milliseconds to sleep, rounded up. */
static int sleep_ms(__s64 until)
{
	__s64 left = until - now(CLOCK_MONOTONIC);

	if (left <= 0)
		return 0;
	left = (left + 999999) / 1000000;
	return left < 1000000 ? (int)left : 1000000;
}

int send_tcp(const struct send_opts *o)
{
	__s64 jitter = o->jitter < 0 ? START_JITTER : o->jitter;
	struct bulk *b = xcalloc(o->flows, sizeof(*b));
	int epoll = epoll_create1(EPOLL_CLOEXEC), pages = make_pages();
	struct epoll_event ev[64];
	struct heap start;
	__s64 end;

	if (epoll < 0)
		die_errno("epoll");
	watch_signals();
	heap_init(&start, o->flows);
	end = now(CLOCK_MONOTONIC) + o->duration;
	for (unsigned int i = 0; i < o->flows; i++) {
		__u64 rng = rng_seed(o->seed, o->id + i);

		b[i].fd = -1;
		heap_set(&start, i, end - o->duration +
			 (__s64)(rng_uniform(&rng) * (double)jitter));
	}

	while (!stop_requested() && now(CLOCK_MONOTONIC) < end) {
		unsigned int next = start.slot[0];
		__s64 at = start.at[next];
		int n;

		if (at <= now(CLOCK_MONOTONIC)) {
			bulk_start(o, &b[next], next, epoll);
			heap_set(&start, next, INT64_MAX);
			continue;
		}
		n = epoll_wait(epoll, ev, ARRAY_SIZE(ev), sleep_ms(at < end ? at : end));
		for (int i = 0; i < n; i++) {
			unsigned int flow = ev[i].data.u32;

			if (!b[flow].greeted)
				bulk_greet(o, &b[flow], o->id + flow);
			bulk_fill(o, &b[flow], pages);
		}
	}
	if (o->json)
		report(o, b);
	return 0;
}
