/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sender of TFRC: allowed rate, pacing, window counter.
 */
#ifndef _TFRC_TX_H
#define _TFRC_TX_H

#include "tfrc_loss.h"

#define TFRC_X_RECV_SET		3	/* RFC 5348, 8.2.2 */

/* Packets remembered: these to begin with, and as many at most; powers of two. */
#define TFRC_SENT_FIRST		16
#define TFRC_SENT		128

/* Packets of a round trip, at most. */
#define TFRC_FLIGHT_MAX		0x100000U

/*
 * A late timer may be made up for, but there are never more packets than this
 * in as many Min Intervals (RFC 5622, 5).
 */
#define TFRC_MIN_PACKETS	3

/* The mean size is that over the current loss interval and so many before. */
#define TFRC_S_INTERVALS	4

/* A late timer is made up for by as much: the accuracy of pacing, ns. */
#define TFRC_CREDIT		500000ULL

/**
 * struct tfrc_feedback_in - what a feedback packet says
 * @x_recv: receive rate, bytes/s
 * @pinv: 1/p, Q24.8
 * @window: what TEAR's receiver allows in a round trip, packets, Q24.8; 0: as before
 * @rtt: sample, us; 0 if there is none
 * @t_sent: when the packet was sent that it acknowledges, 0 if unknown
 * @new_event: it reports a loss event that no earlier one did
 * @slow: the receiver cannot keep up (Slow Receiver)
 * @dropped: packets that the receiver's buffer had no room for, as far as that is news
 * @corrupt: those with Drop Codes that count as marks
 */
struct tfrc_feedback_in {
	u32	x_recv;
	u32	pinv;
	u32	window;
	u32	rtt;
	u64	t_sent;
	bool	new_event;
	bool	slow;
	u32	dropped;
	u32	corrupt;
};

/**
 * struct tfrc_reported - a loss interval as options 193 and 195 report it
 * @start: sequence number where it begins
 * @packets: Data Length
 * @drops: Drop Count
 */
struct tfrc_reported {
	u64	start;
	u32	packets;
	u32	drops;
};

/**
 * struct tfrc_told - a loss interval as the sender keeps it
 * @start: sequence number where it begins, the low bits
 * @packets: data packets in it
 * @drops: those lost or marked
 * @older: it began before the oldest packet that was remembered
 * @wc: window counter of the packet before it, as the receiver sees its begin,
 *	or of that oldest one
 */
struct tfrc_told {
	u32	start;
	u32	packets;
	u32	drops : 31;
	u32	older : 1;
	u32	wc;
};

/**
 * struct tfrc_sent - a packet that was sent
 * @time: when, 1024 ns, the low bits
 * @seq: how far its sequence number is from that noted before
 * @wc: and its window counter
 * @limited: it, or one since the last one noted, had to wait for its time
 */
struct tfrc_sent {
	u32	time;
	u16	seq;
	u16	wc : 15;
	u16	limited : 1;
};

/**
 * struct tfrc_tx - sender's state
 * @par: parameters of the method
 * @s_max: payload that fits the path's MTU, bytes
 * @interval_s: if not 0, of a packet smaller than so many bytes, or the path's
 *	segment, as large a part of @par.min_interval counts as it is smaller
 * @x: allowed rate X
 * @x_calc: rate of the equation, X_Bps, or of the window; TFRC_RATE_MAX while p = 0
 * @x_inst: @x after the reduction of oscillations, RFC 5348, 4.5
 * @x_paid: the same with headers, where packets pay for theirs
 * @header_paid: of each packet, bytes; 0 where the equation does not limit
 * @x_recv_set: receive rates and when they came; the initial one is infinite
 * @n_recv: how many
 * @pinv: 1/p, Q24.8, as reported
 * @window: TEAR: what the receiver allows in a round trip, packets, Q24.8; 0: it is
 *	not known, and the equation limits
 * @corrupt_gap: mean interval between events of corrupt packets, Q24.8; 0: none
 * @intact: packets sent since the last such event
 * @t_corrupt: when that was, 256 ns, the low bits
 * @x_drop: limit of @x for a round trip for the sake of the receiver, bytes/s;
 *	0: none was set since @t_drop
 * @t_drop: when it was set, 256 ns, the low bits
 * @unbias: what to make of it in the equation; NULL: that is it
 * @n_rtt: packets sent in a round trip, on average, Q24.8, if there is @unbias
 * @rtt: round-trip time R, us; 0 before the first sample
 * @r_sqmean: mean square root of its samples, sqrt(us) in Q16
 * @t_doubled: tld, last doubling in slow start
 * @s_mean: mean payload at the last feedback, bytes, Q24.8
 * @sizes: payload, and packets that had any, by loss intervals; the first is
 *	the current one
 * @started: a packet has been sent
 * @had_feedback: a feedback packet has come
 * @tear: the receiver's @window limits, not the equation
 * @data_limited: of the last interval
 * @idle: nothing was sent since the nofeedback timer was set
 * @t_nofeedback: when that timer expires; 0: it is off until a packet is sent
 * @t_last: when the last packet was due, or sent if that was later
 * @t_due: when the next one is, as tfrc_tx_due() found it last
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
 * @told: loss intervals as far as they are known, the current one first
 * @n_told: how many
 * @t_covered: when the packet was sent that feedback acknowledged last
 * @nofeedback: expiries of the timer
 * @feedback: feedback packets
 * @first: the ring, at first
 */
struct tfrc_tx {
	struct tfrc_params	par;
	u32			s_max;
	u32			interval_s;

	u64			x;
	u64			x_calc;
	u64			x_inst;
	u64			x_paid;
	u32			header_paid;
	struct {
		u64	x;
		u64	time;
	}			x_recv_set[TFRC_X_RECV_SET + 1];
	u8			n_recv;
	bool			started;
	bool			had_feedback;
	bool			tear;
	bool			data_limited;
	bool			idle;
	u32			pinv;
	u32			window;
	u32			corrupt_gap;
	u32			intact;
	u32			t_corrupt;
	u32			x_drop;
	u32			t_drop;
	u32			n_rtt;
	u32			(*unbias)(const struct tfrc_tx *tx, u32 pinv);
	u32			rtt;
	u32			r_sqmean;
	u64			t_doubled;
	u32			s_mean;
	struct {
		u32	bytes;
		u32	packets;
	}			sizes[TFRC_S_INTERVALS + 1];

	u64			t_nofeedback;
	u64			t_last;
	u64			t_due;
	u64			recent[TFRC_MIN_PACKETS];
	u32			recent_gap[TFRC_MIN_PACKETS];
	u32			n_recent;
	u32			cost;
	bool			limited;

	u32			wc;
	u64			t_wc;
	u32			gap;

	u32			n_sent;
	u32			room;
	struct tfrc_sent	*grown;
	u64			t_noted;
	u64			seq_noted;
	u32			wc_noted;
	u64			seq_last;

	struct tfrc_told	told[TFRC_NINTERVAL + 1];
	u32			n_told;
	u64			t_covered;

	u32			nofeedback;
	u32			feedback;

	struct tfrc_sent	first[TFRC_SENT_FIRST];
};

void tfrc_tx_init(struct tfrc_tx *tx, const struct tfrc_params *par);
void tfrc_tx_start(struct tfrc_tx *tx, u32 size, u32 rtt, u64 now);
u64 tfrc_tx_due(struct tfrc_tx *tx, u64 now);
void tfrc_tx_send(struct tfrc_tx *tx, u32 size, bool waited, u64 now);
bool tfrc_tx_crowded(const struct tfrc_tx *tx, u64 now);
struct tfrc_sent *tfrc_tx_grow(struct tfrc_tx *tx, struct tfrc_sent *ring);
void tfrc_tx_note(struct tfrc_tx *tx, u64 seq, u64 now);
u64 tfrc_tx_sent_time(const struct tfrc_tx *tx, u64 seq, u32 *wc);
bool tfrc_tx_tell(struct tfrc_tx *tx, const struct tfrc_reported *li, u32 n);
u32 tfrc_tx_pinv(const struct tfrc_tx *tx, u32 wc);
void tfrc_tx_acked_wc(struct tfrc_tx *tx, u32 wc, u64 now);
void tfrc_tx_feedback(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
		      u64 now);
void tfrc_tx_expired(struct tfrc_tx *tx, u64 now);
u64 tfrc_tx_x_recv(const struct tfrc_tx *tx);
u32 tfrc_tx_segment(const struct tfrc_tx *tx);
u32 tfrc_tx_mean_interval(const struct tfrc_tx *tx);
u32 tfrc_tx_rto(const struct tfrc_tx *tx);
u32 tfrc_tx_flight(const struct tfrc_tx *tx);
u32 tfrc_tx_packet(const struct tfrc_tx *tx, u32 us);

#endif
