/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sender of a rate-based CCID: when packets go at a rate, their window counter,
 * and when those were sent that are acknowledged. The rate is the congestion control's
 * business.
 */
#ifndef _RATE_TX_H
#define _RATE_TX_H

#include "rate_rx.h"

/* Packets remembered: these to begin with, and as many at most; powers of two. */
#define RATE_SENT_FIRST		16
#define RATE_SENT		128

/*
 * A late timer may be made up for, but there are never more packets than this
 * in as many Min Intervals (RFC 5622, 5).
 */
#define RATE_MIN_PACKETS	3

/* A late timer is made up for by as much: the accuracy of pacing, ns. */
#define RATE_CREDIT		500000ULL

/**
 * struct rate_sent - a packet that was sent
 * @time: when, 1024 ns, the low bits
 * @seq: how far its sequence number is from that noted before
 * @wc: and its window counter
 * @limited: it, or one since the last one noted, had to wait for its time
 */
struct rate_sent {
	u32	time;
	u16	seq;
	u16	wc : 15;
	u16	limited : 1;
};

/**
 * struct rate_tx - sender's state
 * @rtt: round-trip time R, us; 0 before the first sample
 * @s_max: payload that fits the path's MTU, bytes
 * @min_interval: least time between data packets, us; 0: none
 * @interval_s: if not 0, of a packet smaller than so many bytes, or the path's
 *	segment, as large a part of @min_interval counts as it is smaller
 * @x_paid: rate in force; with headers, where packets pay for theirs
 * @header_paid: of each packet, bytes; 0 where the equation does not limit
 * @t_last: when the last packet was due, or sent if that was later
 * @t_due: when the next one is, as rate_tx_due() found it last
 * @recent: when the last packets were sent
 * @recent_gap: the least time from each to the next, ns
 * @n_recent: how many there have been
 * @cost: its size, and headers as far as they are paid for, bytes
 * @limited: a packet had to wait for its time since the last one noted
 * @wc: window counter; 4 bits of it are sent
 * @t_wc: when it took that value
 * @gap: mean time between packets, us, Q24.8
 * @n_sent: packets noted since the ring has its size; not each at high rates
 * @room: of the ring, for so many
 * @grown: the ring of packets noted, by the low bits of @n_sent, if @first has
 *	become too small
 * @t_noted: when the last one was sent
 * @seq_noted: its sequence number
 * @wc_noted: and its window counter
 * @seq_last: sequence number of the last data packet
 * @t_covered: when the packet was sent that feedback acknowledged last
 * @first: the ring, at first
 */
struct rate_tx {
	u32			rtt;
	u32			s_max;
	u32			min_interval;
	u32			interval_s;

	u64			x_paid;
	u32			header_paid;
	u32			cost;

	u64			t_last;
	u64			t_due;
	u64			recent[RATE_MIN_PACKETS];
	u32			recent_gap[RATE_MIN_PACKETS];
	u32			n_recent;
	bool			limited;

	u32			wc;
	u64			t_wc;
	u32			gap;

	u32			n_sent;
	u32			room;
	struct rate_sent	*grown;
	u64			t_noted;
	u64			seq_noted;
	u32			wc_noted;
	u64			seq_last;
	u64			t_covered;

	struct rate_sent	first[RATE_SENT_FIRST];
};

void rate_tx_init(struct rate_tx *tx);
u64 rate_tx_due(struct rate_tx *tx, u64 now);
void rate_tx_send(struct rate_tx *tx, u32 size, bool waited, u64 now);
u64 rate_tx_least_gap(const struct rate_tx *tx, u32 size);
u32 rate_tx_packet(const struct rate_tx *tx, u32 us);
bool rate_tx_crowded(const struct rate_tx *tx, u64 now);
struct rate_sent *rate_tx_grow(struct rate_tx *tx, struct rate_sent *ring);
void rate_tx_note(struct rate_tx *tx, u64 seq, u64 now);
u64 rate_tx_sent_time(const struct rate_tx *tx, u64 seq, u32 *wc);
void rate_tx_acked_wc(struct rate_tx *tx, u32 wc, u64 now);
bool rate_tx_limited(const struct rate_tx *tx, u64 t_sent, u64 now);

/* The round-trip time, or what stands for it, us. */
static inline u32 rate_tx_rtt(const struct rate_tx *tx)
{
	return tx->rtt ?: TFRC_RTT_FALLBACK;
}

#endif
