// SPDX-License-Identifier: GPL-2.0
/*
 * abeload: clocks, random numbers, event heap, sockets, packets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "abeload.h"

#ifndef SO_SNDBUFFORCE
#define SO_SNDBUFFORCE	32
#define SO_RCVBUFFORCE	33
#endif

static int stop_flag;

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		die("out of memory");
	return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n, size);
	if (!p)
		die("out of memory");
	return p;
}

/* Processor time of this process so far, kernel side included. */
double cpu_seconds(void)
{
	return (double)now(CLOCK_PROCESS_CPUTIME_ID) / NSEC_PER_SEC;
}

/* Exponential. */
double rng_exponential(__u64 *state, double mean)
{
	return -log(1 - rng_uniform(state)) * mean;
}

/* Pareto from @least on; its mean is @least * shape / (shape - 1), if shape > 1. */
double rng_pareto(__u64 *state, double least, double shape)
{
	return least * pow(1 - rng_uniform(state), -1 / shape);
}

/* Normal with mean 0 and deviation 1, by Box and Muller; one of the two is thrown away. */
double rng_normal(__u64 *state)
{
	double r = sqrt(rng_exponential(state, 2));

	return r * cos(2 * M_PI * rng_uniform(state));
}

void heap_init(struct heap *h, unsigned int len)
{
	h->len = len;
	h->at = xcalloc(len, sizeof(*h->at));
	h->slot = xcalloc(len, sizeof(*h->slot));
	h->place = xcalloc(len, sizeof(*h->place));
	for (unsigned int i = 0; i < len; i++) {
		h->at[i] = INT64_MAX;
		h->slot[i] = i;
		h->place[i] = i;
	}
}

static void heap_put(struct heap *h, unsigned int place, unsigned int flow)
{
	h->slot[place] = flow;
	h->place[flow] = place;
}

void heap_set(struct heap *h, unsigned int flow, __s64 at)
{
	unsigned int i = h->place[flow];

	h->at[flow] = at;
	while (i && h->at[h->slot[(i - 1) / 2]] > at) {
		heap_put(h, i, h->slot[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		unsigned int child = 2 * i + 1;

		if (child + 1 < h->len && h->at[h->slot[child + 1]] < h->at[h->slot[child]])
			child++;
		if (child >= h->len || h->at[h->slot[child]] >= at)
			break;
		heap_put(h, i, h->slot[child]);
		i = child;
	}
	heap_put(h, i, flow);
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stop_flag, 1, __ATOMIC_RELAXED);
}

/* SIGINT and SIGTERM end the measurement early; the report is written. */
void watch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool stop_requested(void)
{
	return __atomic_load_n(&stop_flag, __ATOMIC_RELAXED);
}

void set_option(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		die_errno("cannot set %s", what);
}

/* Beyond net.core.[rw]mem_max when allowed to, else as far as that goes. */
void set_buffer(int fd, bool receive, int bytes)
{
	if (!setsockopt(fd, SOL_SOCKET, receive ? SO_RCVBUFFORCE : SO_SNDBUFFORCE,
			&bytes, sizeof(bytes)))
		return;
	set_option(fd, SOL_SOCKET, receive ? SO_RCVBUF : SO_SNDBUF, bytes, "socket buffer");
}

/* A non-blocking socket of @type with the marks of a flow, not yet connected. */
int open_flow(const struct send_opts *o, int type)
{
	bool v6 = o->to.ss_family == AF_INET6;
	int tos = o->dscp << 2 | o->ecn;
	int fd;

	fd = socket(o->to.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die_errno("cannot open a socket");
	set_option(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, tos, "DSCP");
	if (o->priority >= 0)
		set_option(fd, SOL_SOCKET, SO_PRIORITY, (int)o->priority, "priority");
	if (o->mark >= 0)
		set_option(fd, SOL_SOCKET, SO_MARK, (int)(__u32)o->mark, "mark");
	return fd;
}

/* Begins to connect a TCP socket. */
void connect_flow(const struct send_opts *o, int fd)
{
	set_buffer(fd, false, SEND_BUFFER);
	if (o->cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->cc, strlen(o->cc)))
		die_errno("congestion control \"%s\"", o->cc);
	if (connect(fd, (const struct sockaddr *)&o->to, o->to_len) && errno != EINPROGRESS)
		die_errno("cannot connect to %s", o->to_text);
}

/* A file of zeros for send_pages(). */
int open_pages(void)
{
	static const char zero[PAGES_LEN];
	int fd = memfd_create("abeload", MFD_CLOEXEC);

	if (fd < 0 || write(fd, zero, PAGES_LEN) != PAGES_LEN)
		die_errno("cannot make pages to send");
	return fd;
}

/* Sends at most PAGES_LEN bytes, by reference. */
ssize_t send_pages(int fd, int pages, size_t len)
{
	off_t from = 0;

	return sendfile(fd, pages, &from, len < PAGES_LEN ? len : PAGES_LEN);
}

void packet_fill(struct packet *p, unsigned int flags, __u32 flow, __u32 seq, __s64 stamp)
{
	p->magic = htons(PACKET_MAGIC);
	p->kind = PACKET_DATA;
	p->flags = flags;
	p->flow = htonl(flow);
	p->seq = htonl(seq);
	p->stamp_hi = htonl((__u64)stamp >> 32);
	p->stamp_lo = htonl((__u32)stamp);
}

bool packet_valid(const struct packet *p, size_t len)
{
	return len >= sizeof(*p) && p->magic == htons(PACKET_MAGIC) && p->kind < PACKET_KINDS &&
	       ntohl(p->flow) < MAX_FLOWS;
}

__s64 packet_stamp(const struct packet *p)
{
	return (__s64)((__u64)ntohl(p->stamp_hi) << 32 | ntohl(p->stamp_lo));
}

FILE *json_open(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "w") : stdout;

	if (!f)
		die_errno("cannot write %s", path);
	return f;
}

void json_close(FILE *f, const char *path)
{
	bool bad = ferror(f);

	if (fflush(f) || (f != stdout && fclose(f)))
		bad = true;
	if (bad)
		die("cannot write %s", path);
}
