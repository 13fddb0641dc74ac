/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ablossy: what its BPF program and its loader share.
 *
 * Probabilities are Q0.32 in a u64, so that one can be said. Times are ns.
 */
#ifndef ABLOSSY_H
#define ABLOSSY_H

#include <linux/types.h>

#define PROB_ONE	(1ULL << 32)
#define MAX_FLOWS	4096
#define MAX_HOLES	(1 << 18)
/* Slots that are searched back for one whose state does not depend on earlier ones. */
#define GILBERT_REACH	1024
/* Flows and bins that are counted, see struct bin. */
#define BIN_FLOWS	64
#define MAX_BINS	4096

enum loss_model {
	LOSS_NONE,		/* counts only */
	LOSS_PERIODIC,		/* each n-th packet */
	LOSS_BERNOULLI,		/* each packet with probability p */
	LOSS_BYTES,		/* each byte: 1 - (1 - p)^bytes */
	LOSS_ALTERNATING,	/* p changes between two values */
	LOSS_GILBERT,		/* two states, each lasts whole slots of time */
	LOSS_CLOCK,		/* the first packet of each slot of time, from some time on */
	LOSS_MODELS
};

enum { PROTO_UDP = 1, PROTO_TCP = 2, PROTO_DCCP = 4 };

/**
 * struct loss_config - what the program is to do; it reads only
 * @seed:	of all its decisions
 * @origin:	CLOCK_MONOTONIC when time-based models begin
 * @model:	enum loss_model
 * @protos:	protocols concerned, PROTO_*
 * @dport:	destination port concerned, host order; 0: all
 * @min_len:	shorter packets pass; bytes, with IP header
 * @l2_len:	bytes before the IP header
 * @per_flow:	each flow has a loss process of its own
 * @holes:	note packets that were lost before they came here
 * @mark:	set CE where the packet allows it, drop only others
 * @every:	LOSS_PERIODIC: n
 * @then:	LOSS_PERIODIC: n in odd halves; 0: as in the others
 * @rehash:	forget the hash of each packet, of any protocol
 * @p:		LOSS_BERNOULLI: p; LOSS_GILBERT: probability to enter loss; LOSS_CLOCK: before
 *		@after
 * @q:		LOSS_GILBERT: probability to leave loss
 * @tau:	LOSS_GILBERT, LOSS_CLOCK: length of a slot
 * @half:	LOSS_ALTERNATING, LOSS_PERIODIC: length of each half
 * @level:	LOSS_ALTERNATING: probability in even and odd halves
 * @after:	LOSS_CLOCK: when the slots begin
 * @bin:	length of a bin; 0: no bins
 * @survive:	LOSS_BYTES: (1 - p)^(2^i)
 */
struct loss_config {
	__u64	seed;
	__u64	origin;
	__u32	model;
	__u32	protos;
	__u32	dport;
	__u32	min_len;
	__u32	l2_len;
	__u32	per_flow;
	__u32	mark;
	__u32	holes;
	__u32	every;
	__u32	then;
	__u32	rehash;
	__u64	p;
	__u64	q;
	__u64	tau;
	__u64	half;
	__u64	level[2];
	__u64	after;
	__u64	bin;
	__u64	survive[17];
};

/**
 * struct loss_common - for all flows
 * @streams:	numbers given out
 * @overflow:	packets of flows that found no room
 * @holes:	found, also beyond MAX_HOLES
 * @unbinned:	packets that no bin is for
 */
struct loss_common {
	__u64	streams;
	__u64	overflow;
	__u64	holes;
	__u64	unbinned;
};

/**
 * struct hole - packets of a flow, one after the other, that did not come
 * @stream:	the flow
 * @first:	the first of them, counted from the flow's first packet here
 * @len:	how many
 */
struct hole {
	__u32	stream;
	__u32	first;
	__u32	len;
};

/**
 * struct bin - what came of a flow in some time, before losses
 * @packets:	how many
 * @bytes:	of them, with IP header
 *
 * Bin i of stream s is at s * MAX_BINS + i of their map.
 */
struct bin {
	__u32	packets;
	__u32	bytes;
};

#define ID_KNOWN	0x10000
#define ID_FAR		0x1000	/* such a step is not a hole: it came out of order */

/* All zero when flows are not told apart; IPv4 addresses are in the first word. */
struct flow_key {
	__u32	from[4];
	__u32	to[4];
	__u32	ports;		/* as in the packet */
	__u32	proto;
};

/**
 * struct flow_state - a loss process and its books
 * @stream:	its number in order of appearance, picks its random numbers
 * @packets:	seen, without those that the filter exempts
 * @bytes:	of them, with IP header
 * @lost:	dropped
 * @lost_bytes:	of them
 * @marked:	marked CE instead
 * @missing:	packets in holes
 * @next_id:	IPv4 ID that the next packet should have, | ID_KNOWN
 * @slot:	LOSS_GILBERT: last slot looked at, + 1; LOSS_CLOCK: last one with a loss, + 1
 * @bad:	LOSS_GILBERT: it is one of loss
 */
struct flow_state {
	__u64	stream;
	__u64	packets;
	__u64	bytes;
	__u64	lost;
	__u64	lost_bytes;
	__u64	marked;
	__u64	missing;
	__u64	next_id;
	__u64	slot;
	__u64	bad;
};

/* The loader replaces loads of these constants by the maps. */
#define MAGIC_CONFIG	0x61626c6f73737901ULL
#define MAGIC_COMMON	0x61626c6f73737902ULL
#define MAGIC_FLOWS	0x61626c6f73737903ULL
#define MAGIC_HOLES	0x61626c6f73737904ULL
#define MAGIC_BINS	0x61626c6f73737905ULL

#endif /* ABLOSSY_H */
