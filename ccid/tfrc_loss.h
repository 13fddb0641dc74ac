/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Loss events and loss intervals (RFC 5348, 5), and the methods of measuring
 * them.
 *
 * A method says when a lost packet begins a new loss event and how long the
 * interval was that it ends. All else is common: which packets are lost, the
 * loss insensitive period (LIP), the weighted average, the options that
 * report it.
 *
 * The LIP is one round trip by the sender's window counters: losses X and Y
 * belong to one event unless a packet arrived between them whose counter is
 * more than 4 quarters of a round trip above that of the packet before X (RFC
 * 4342, 10.2). As a counter stands for up to a quarter, that is 9/8 of a
 * round trip on average.
 */
#ifndef _TFRC_LOSS_H
#define _TFRC_LOSS_H

#include "tfrc_math.h"

#define TFRC_NINTERVAL		8	/* RFC 5348, 5.4: n */
#define TFRC_LIP		4	/* window counters */
#define TFRC_LIP_MOST		128U	/* intervals of LIP scaling, 8 * S/s at most */
#define TFRC_SHORT		8	/* two round trips, RFC 5622, 8.1 */

/**
 * struct tfrc_params - what an application may set
 * @s: segment size in the throughput equation, bytes; 0: the packets' mean
 * @header: bytes of headers that each packet costs [VOIP05] 4.2; 0: none
 * @min_interval: least time between data packets, us; 0: none
 * @discount: history discounting, RFC 5348, 5.5
 * @variant: of the method, one of enum tfrc_variant
 */
struct tfrc_params {
	u32	s;
	u32	header;
	u32	min_interval;
	u8	discount;
	u8	variant;
};

/**
 * struct tfrc_meter - the loss interval that is being measured
 * @total: packets or bytes in it, lost ones as well; the unit is the method's
 * @after: those of them that came after the LIP
 * @lost: those of @after that were lost
 * @carry: what @lost begins with in the next interval
 * @packets: data packets in it
 * @drops: packets lost or marked in it
 */
struct tfrc_meter {
	u64	total;
	u64	after;
	u64	lost;
	u32	carry;
	u32	packets;
	u32	drops;
};

struct tfrc_rx;
struct tfrc_tx;
struct rate_hole;
struct rate_packet;
struct rate_rx_ops;

/**
 * struct tfrc_method - a way to measure loss intervals
 * @ccid: number of the congestion control that uses it
 * @name: of that congestion control
 * @defaults: of its parameters
 * @variants: how many the method has
 * @free_variant: the last one that does not give longer intervals than the
 *	default, for everybody to choose
 * @scale_interval: the sender's Min Interval is for empty packets; the larger
 *	one is, the less of it counts, and nothing for a whole segment
 * @skip_short: an open interval of at most two round trips is left out of the
 *	average, RFC 4828, 3
 * @sender_counts: the sender takes 1/p from options 193 and 195, which have
 *	more digits than option 192
 * @no_discount: there is no history discounting
 * @state: size of what the method remembers of a receiver, rx->own, bytes
 * @received: a data packet arrived, in a LIP or not
 * @lost: data packets were lost in a row.
 *	Return: -1 if no event begins; else how many of them, 0 to all, belong to
 *	the interval that ends. Only these have been counted. If there are such,
 *	the last of them began the event, else the first of the hole did.
 * @length: of the interval in packets, Q24.8. @is_short: it took at most two
 *	round trips
 *
 * These may be NULL:
 *
 * @init: begin, with a random number
 * @in_lip: how many packets of the hole are in the LIP, the first ones.
 *	NULL: by the window counters, all or none
 * @event: one began with the first packet of the hole, and the interval before
 *	is history->i[1]
 * @pinv: 1/p, Q24.8, as tfrc_history_pinv() has it if NULL
 * @first: length of the first interval, whose packets would be as many as @n a
 *	round trip, if the equation has @length. Both are Q24.8
 * @unbias: what the sender makes of the receiver's 1/p, Q24.8
 * @rx_ops: of a receiver that does more than to measure loss
 * @window: what that reports in place of 1/p, to be sent in a round trip, packets,
 *	Q24.8; 0 before the first loss event
 */
struct tfrc_method {
	u8			ccid;
	const char		*name;
	struct tfrc_params	defaults;
	u8			variants;
	u8			free_variant;
	bool			scale_interval;
	bool			skip_short;
	bool			sender_counts;
	bool			no_discount;
	u16			state;

	void	(*received)(struct tfrc_rx *rx, const struct rate_packet *pkt,
			    bool lip);
	s64	(*lost)(struct tfrc_rx *rx, const struct rate_hole *hole);
	u32	(*length)(const struct tfrc_rx *rx, bool is_short);

	void	(*init)(void *own, u64 random);
	u32	(*in_lip)(const struct tfrc_rx *rx, const struct rate_hole *hole);
	void	(*event)(struct tfrc_rx *rx, const struct rate_hole *hole);
	u32	(*pinv)(const struct tfrc_rx *rx);
	u32	(*first)(const struct tfrc_rx *rx, u32 length, u32 n);
	u32	(*unbias)(const struct tfrc_tx *tx, u32 pinv);

	const struct rate_rx_ops *rx_ops;
	u32	(*window)(const struct tfrc_rx *rx);
};

extern const struct tfrc_method tfrc_standard;
extern const struct tfrc_method tfrc_sp;
extern const struct tfrc_method tfrc_vp_packet;
extern const struct tfrc_method tfrc_vp_byte;
extern const struct tfrc_method tfrc_sampling;
extern const struct tfrc_method tfrc_lip_scaling;
extern const struct tfrc_method tfrc_unbiasing;

/* A length as the methods give it: a/b packets, Q24.8. */
static inline u32 tfrc_length(u64 a, u64 b)
{
	return min_t(u64, div64_u64(a << TFRC_PINV_SHIFT, b),
		     (u64)TFRC_PINV_MAX << TFRC_PINV_SHIFT);
}

/* So many intervals of one hole are measured, more than any average has. */
#define TFRC_HOLE_EVENTS	(TFRC_LIP_MOST + 1)

/* More packets of an interval than this are not counted: 24 bits. */
#define TFRC_COUNT_MAX		TFRC_PINV_MAX

/**
 * struct tfrc_interval - a loss interval
 * @start: sequence number of the packet whose loss began it
 * @length: packets, Q24.8, as the average takes it
 * @lossy: how many sequence numbers from @start to the last packet lost or
 *	marked in it
 * @packets: data packets
 * @drops: packets lost or marked
 * @df: discount factor, Q12
 */
struct tfrc_interval {
	u64	start;
	u32	length;
	u32	lossy;
	u64	packets : 24;
	u64	drops	: 24;
	u64	df	: 13;
};

/**
 * struct tfrc_history - loss intervals, the newest first
 * @i: @i[0] is the current one
 * @n: how many there are; 0 before the first loss event
 */
struct tfrc_history {
	struct tfrc_interval	i[TFRC_NINTERVAL + 1];
	u32			n;
};

/* A discount factor of 1, Q12. */
#define TFRC_DF_ONE		4096U

void tfrc_history_push(struct tfrc_history *h, bool discount);
u32 tfrc_history_pinv(const struct tfrc_history *h, bool skip_current,
		      bool discount);

#endif
