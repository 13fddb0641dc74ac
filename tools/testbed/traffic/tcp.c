// SPDX-License-Identifier: GPL-2.0
/*
 * abeload send tcp: flows that always have something to send.
 *
 * The socket buffer is large, so that a wake-up is worth hundreds of packets,
 * and is filled by reference from pages in memory: no byte is copied.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "abeload.h"

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

/**
 * struct windows - samples of all flows' congestion windows
 * @cwnd:	in packets, one row of all flows a sample; 0: not connected
 * @rows:	their number
 * @room:	rows allocated
 * @next:	when the next is due, CLOCK_MONOTONIC
 * @start:	when the first was taken, CLOCK_REALTIME
 */
struct windows {
	__u32		*cwnd;
	size_t		rows;
	size_t		room;
	__s64		next;
	__s64		start;
};

static void bulk_start(const struct send_opts *o, struct bulk *b, unsigned int i, int epoll)
{
	struct linger abort_on_close = { .l_onoff = 1 };
	struct epoll_event ev = { .events = EPOLLOUT | EPOLLET, .data.u32 = i };

	b->fd = open_flow(o, SOCK_STREAM);
	setsockopt(b->fd, SOL_SOCKET, SO_LINGER, &abort_on_close, sizeof(abort_on_close));
	connect_flow(o, b->fd);
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
		n = send_pages(b->fd, pages, PAGES_LEN);
		if (n > 0)
			b->bytes += n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	/* a sink that has ended wants no more: no event will come from this socket again */
	if (errno != EAGAIN && errno != ECONNRESET && errno != EPIPE)
		die_errno("connection to %s", o->to_text);
}

/* Of its own sockets, a process need not ask netlink. */
static void sample_windows(const struct send_opts *o, const struct bulk *b, struct windows *w)
{
	__u32 *row;

	if (w->rows == w->room) {
		w->room = w->room ? 2 * w->room : 1024;
		w->cwnd = xrealloc(w->cwnd, w->room * o->flows, sizeof(*w->cwnd));
	}
	if (!w->rows)
		w->start = now(CLOCK_REALTIME);
	row = w->cwnd + o->flows * w->rows++;
	for (unsigned int i = 0; i < o->flows; i++) {
		struct tcp_info info;
		/* no more than that is copied */
		socklen_t len = offsetof(struct tcp_info, tcpi_advmss);

		row[i] = 0;
		if (b[i].greeted && !getsockopt(b[i].fd, IPPROTO_TCP, TCP_INFO, &info, &len))
			row[i] = info.tcpi_snd_cwnd;
	}
	w->next += o->cwnd_interval;
}

static void report_windows(FILE *out, const struct send_opts *o, const struct windows *w)
{
	fprintf(out, ",\n \"cwnd\": {\"start\": %.6f, \"interval\": %.6f, \"flows\": [",
		(double)w->start / NSEC_PER_SEC, (double)o->cwnd_interval / NSEC_PER_SEC);
	for (unsigned int i = 0; i < o->flows; i++) {
		fputs(i ? "],\n  [" : "\n  [", out);
		for (size_t row = 0; row < w->rows; row++)
			fprintf(out, "%s%u", row ? "," : "", w->cwnd[row * o->flows + i]);
	}
	fputs("]]}", out);
}

static void report(const struct send_opts *o, const struct bulk *b, const struct windows *w)
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
	fputs("]", out);
	if (o->cwnd_interval)
		report_windows(out, o, w);
	fputs("}\n", out);
	json_close(out, o->json);
}

int send_tcp(const struct send_opts *o)
{
	__s64 jitter = o->jitter < 0 ? START_JITTER : o->jitter;
	struct bulk *b = xcalloc(o->flows, sizeof(*b));
	int epoll = epoll_create1(EPOLL_CLOEXEC), pages = open_pages();
	struct epoll_event ev[64];
	struct windows w = { .next = INT64_MAX };
	struct heap start;
	__s64 end, t;

	if (epoll < 0)
		die_errno("epoll");
	watch_signals();
	prctl(PR_SET_TIMERSLACK, 1);
	heap_init(&start, o->flows);
	end = now(CLOCK_MONOTONIC) + o->duration;
	if (o->cwnd_interval)
		w.next = end - o->duration;
	for (unsigned int i = 0; i < o->flows; i++) {
		__u64 rng = rng_seed(o->seed, o->id + i);

		b[i].fd = -1;
		heap_set(&start, i, end - o->duration +
			 (__s64)(rng_uniform(&rng) * (double)jitter));
	}

	while (!stop_requested() && (t = now(CLOCK_MONOTONIC)) < end) {
		unsigned int next = start.slot[0];
		__s64 at = start.at[next];
		struct timespec ts;
		int n;

		if (at <= t) {
			bulk_start(o, &b[next], next, epoll);
			heap_set(&start, next, INT64_MAX);
			continue;
		}
		if (w.next <= t) {
			sample_windows(o, b, &w);
			continue;
		}
		if (at > w.next)
			at = w.next;
		if (at > end)
			at = end;
		ts.tv_sec = (at - t) / NSEC_PER_SEC;
		ts.tv_nsec = (at - t) % NSEC_PER_SEC;
		n = epoll_pwait2(epoll, ev, ARRAY_SIZE(ev), &ts, NULL);
		for (int i = 0; i < n; i++) {
			unsigned int flow = ev[i].data.u32;

			if (!b[flow].greeted)
				bulk_greet(o, &b[flow], o->id + flow);
			bulk_fill(o, &b[flow], pages);
		}
	}
	if (o->json)
		report(o, b, &w);
	return 0;
}
