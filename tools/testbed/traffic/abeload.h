/* SPDX-License-Identifier: GPL-2.0 */
/*
 * abeload: packets, options and helpers that its parts share.
 *
 * Times are nanoseconds. Schedules run on CLOCK_MONOTONIC; what travels in a
 * packet is CLOCK_REALTIME, because the kernel's receive stamps are.
 */
#ifndef ABELOAD_H
#define ABELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/types.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <netinet/in.h>
#include <time.h>
#include "../../lib/cli.h"
#include "../../lib/clock.h"
#include "../../lib/rng.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1ULL << (n))

#define PACKET_MAGIC	0xabe1
#define MAX_FLOWS	65536
#define PAGES_LEN	(256 << 10)
#define SEND_BUFFER	(4 << 20)

enum packet_kind {
	PACKET_DATA,
	PACKET_ACK,
	PACKET_KINDS
};

#define PACKET_F_CE	0x01	/* in an acknowledgment: the packet had CE */
#define PACKET_F_WARMUP	0x02	/* sent before its source began to count */

/**
 * struct packet - the start of every UDP payload; big endian
 * @magic:	PACKET_MAGIC
 * @kind:	enum packet_kind
 * @flags:	PACKET_F_*
 * @flow:	flow id, below MAX_FLOWS
 * @seq:	packets sent before this one by the flow
 * @stamp_hi:	CLOCK_REALTIME when sent, ns, upper half
 * @stamp_lo:	lower half
 *
 * Two halves keep it at 20 bytes, so that the smallest voice payloads fit.
 */
struct packet {
	__u16		magic;
	__u8		kind;
	__u8		flags;
	__u32		flow;
	__u32		seq;
	__u32		stamp_hi;
	__u32		stamp_lo;
};

/* The first bytes of a TCP connection; big endian. */
struct tcp_hello {
	__u32		magic;
	__u32		flow;
};

/**
 * struct recv_opts - what "abeload recv" was asked for
 * @udp_port:	port of the UDP flows, or 0
 * @aimd_port:	port of the flows whose packets are acknowledged, or 0
 * @tcp_port:	port of the TCP flows, or 0
 * @web_port:	port of TCP connections that are one file each, or 0
 * @duration:	ns from start to report
 * @warmup:	ns at the start that do not count
 * @raw:	report each packet's delay
 * @series:	ns that each number of a flow's series of bytes is for, or 0
 * @rtp_window:	ns that each maximum of RTP jitter is for, or 0
 * @spread_window: ns that each spread of delays is for, or 0
 * @json:	file of the report, "-" is standard output
 */
struct recv_opts {
	unsigned int	udp_port;
	unsigned int	aimd_port;
	unsigned int	tcp_port;
	unsigned int	web_port;
	__s64		duration;
	__s64		warmup;
	bool		raw;
	__s64		series;
	__s64		rtp_window;
	__s64		spread_window;
	const char	*json;
};

/**
 * struct web_opts - the web pages of "send web"
 * @gap:	mean ns from one file's start to the next's, exponential; 0:
 *		one after the other
 * @mu:		of log of sizes in the body, lognormal
 * @sigma:	likewise
 * @body:	share of the body, below @tail
 * @tail:	smallest size in the tail, Pareto; with @shifted its scale
 * @tail_shape:	of the tail
 * @shifted:	the tail begins at 0 (Pareto II)
 * @size_max:	no file is larger
 * @objects:	files of a page, at least
 * @objects_shape: Pareto; 0: always @objects
 * @off:	s between pages, at least; with shape 0 their mean
 * @off_shape:	Pareto; 0: exponential
 */
struct web_opts {
	__s64		gap;
	double		mu;
	double		sigma;
	double		body;
	double		tail;
	double		tail_shape;
	bool		shifted;
	double		size_max;
	double		objects;
	double		objects_shape;
	double		off;
	double		off_shape;
};

/**
 * struct send_opts - what "abeload send KIND" was asked for
 * @to:		destination
 * @to_len:	its length
 * @to_text:	as typed, for messages
 * @flows:	number of flows
 * @id:		id of the first flow
 * @size:	bytes of UDP payload
 * @pps:	packets per second and flow
 * @poisson:	exponential gaps instead of constant ones
 * @cc:		TCP congestion control, or NULL
 * @dscp:	DSCP
 * @ecn:	the two ECN bits
 * @mark:	SO_MARK, -1: none
 * @priority:	SO_PRIORITY, -1: none
 * @duration:	ns
 * @warmup:	ns at the start whose packets are marked as not counting
 * @jitter:	flows start at random within so many ns; -1: the default
 * @seed:	of start times and gaps
 * @mean_on:	ns that a pareto flow sends at a time, on average
 * @mean_off:	ns that it is silent
 * @shape:	of both distributions
 * @cwnd_interval: ns between two samples of congestion windows, 0: none
 * @web:	pages
 * @json:	file of the report, or NULL
 */
struct send_opts {
	struct sockaddr_storage	to;
	socklen_t	to_len;
	const char	*to_text;
	unsigned int	flows;
	unsigned int	id;
	unsigned int	size;
	double		pps;
	bool		poisson;
	const char	*cc;
	int		dscp;
	int		ecn;
	long long	mark;
	long long	priority;
	__s64		duration;
	__s64		warmup;
	__s64		jitter;
	__u64		seed;
	__s64		mean_on;
	__s64		mean_off;
	double		shape;
	__s64		cwnd_interval;
	struct web_opts	web;
	const char	*json;
};

/**
 * struct heap - the next event of each flow, earliest first
 * @at:		time of flow i's next event
 * @slot:	flows in heap order
 * @place:	where flow i stands in @slot
 * @len:	number of flows
 */
struct heap {
	__s64		*at;
	unsigned int	*slot;
	unsigned int	*place;
	unsigned int	len;
};

int recv_main(const struct recv_opts *o);
int send_udp(const struct send_opts *o);
int send_tcp(const struct send_opts *o);
int send_aimd(const struct send_opts *o);
int send_pareto(const struct send_opts *o);
int send_web(const struct send_opts *o);

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);

double cpu_seconds(void);

double rng_exponential(__u64 *state, double mean);
double rng_pareto(__u64 *state, double least, double shape);
double rng_normal(__u64 *state);

void heap_init(struct heap *h, unsigned int len);
void heap_set(struct heap *h, unsigned int flow, __s64 at);

void watch_signals(void);
bool stop_requested(void);

void set_option(int fd, int level, int name, int value, const char *what);
void set_buffer(int fd, bool receive, int bytes);
int open_flow(const struct send_opts *o, int type);
int open_pages(void);
ssize_t send_pages(int fd, int pages, size_t len);
void connect_flow(const struct send_opts *o, int fd);

void packet_fill(struct packet *p, unsigned int flags, __u32 flow, __u32 seq, __s64 stamp);
bool packet_valid(const struct packet *p, size_t len);
__s64 packet_stamp(const struct packet *p);

FILE *json_open(const char *path);
void json_close(FILE *f, const char *path);

#endif /* ABELOAD_H */
