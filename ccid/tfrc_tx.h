/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sender of TFRC: allowed rate, pacing, window counter.
 */
#ifndef _TFRC_TX_H
#define _TFRC_TX_H

#include "tfrc_loss.h"

#define TFRC_X_RECV_SET		3	/* RFC 5348, 8.2.2 */
#define TFRC_SENT		128	/* power of two */

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
 * @rtt: sample, us; 0 if there is none
 * @t_sent: when the packet was sent that it acknowledges, 0 if unknown
 * @new_event: it reports a loss event that no earlier one did
 */
struct tfrc_feedback_in {
	u32	x_recv;
	u32	pinv;
	u32	rtt;
	u64	t_sent;
	bool	new_event;
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
 * struct tfrc_tx - sender's state
 * @par: parameters of the method
 * @s_max: payload that fits the path's MTU, bytes
 * @interval_s: if not 0, of a packet smaller than so many bytes, or the path's
 *	segment, as large a part of @par.min_interval counts as it is smaller
 * @x: allowed rate X
 * @x_calc: rate of the equation, X_Bps; TFRC_RATE_MAX while p = 0
 * @x_inst: @x after the reduction of oscillations, RFC 5348, 4.5
 * @x_paid: the same with headers, where packets pay for theirs
 * @header_paid: of each packet, bytes; 0 where the equation does not limit
 * @x_recv_set: receive rates and when they came; the initial one is infinite
 * @n_recv: how many
 * @pinv: 1/p, Q24.8
 * @rtt: round-trip time R, us; 0 before the first sample
 * @r_sqmean: mean square root of its samples, sqrt(us) in Q16
 * @t_doubled: tld, last doubling in slow start
 * @s_mean: mean payload at the last feedback, bytes, Q24.8
 * @sizes: payload, and packets that had any, by loss intervals; the first is
 *	the current one
 * @started: a packet has been sent
 * @had_feedback: a feedback packet has come
 * @data_limited: of the last interval
 * @idle: nothing was sent since the nofeedback timer was set
 * @t_nofeedback: when that timer expires; 0: it is off until a packet is sent
 * @t_last: when the last packet was due, or sent if that was later
 * @recent: when the last packets were sent, and the least time from each to
 *	the next
 * @n_recent: how many there have been
 * @cost: its size, and headers as far as they are paid for, bytes
 * @limited: a packet had to wait for its time since the last one noted
 * @wc: window counter; 4 bits of it are sent
 * @t_wc: when it took that value
 * @gap: mean time between packets, us, Q24.8
 * @sent: packets sent, by the low bits of @n_sent; not each at high rates
 * @n_sent: how many were noted
 * @seq_last: sequence number of the last data packet
 * @begun: where loss intervals began, and the window counters then
 * @n_begun: how many have been seen
 * @told: loss intervals as far as they are known, the current one first
 * @n_told: how many
 * @t_covered: when the packet was sent that feedback acknowledged last
 * @nofeedback: expiries of the timer
 * @feedback: feedback packets
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
	bool			data_limited;
	bool			idle;
	u32			pinv;
	u32			rtt;
	u32			r_sqmean;
	u64			t_doubled;
	u32			s_mean;
	struct {
		u64	bytes;
		u32	packets;
	}			sizes[TFRC_S_INTERVALS + 1];

	u64			t_nofeedback;
	u64			t_last;
	struct {
		u64	time;
		u64	gap;
	}			recent[TFRC_MIN_PACKETS];
	u32			n_recent;
	u32			cost;
	bool			limited;

	u32			wc;
	u64			t_wc;
	u32			gap;

	struct {
		u64	seq;
		u64	time;
		u32	wc;
		bool	limited;
	}			sent[TFRC_SENT];
	u32			n_sent;
	u64			seq_last;

	struct {
		u64	start;
		u32	wc;
		bool	known;
	}			begun[TFRC_NINTERVAL + 1];
	u32			n_begun;
	struct tfrc_reported	told[TFRC_NINTERVAL + 1];
	u32			n_told;
	u64			t_covered;

	u32			nofeedback;
	u32			feedback;
};

void tfrc_tx_init(struct tfrc_tx *tx, const struct tfrc_params *par);
void tfrc_tx_start(struct tfrc_tx *tx, u32 size, u32 rtt, u64 now);
u64 tfrc_tx_due(struct tfrc_tx *tx, u64 now);
void tfrc_tx_send(struct tfrc_tx *tx, u32 size, bool waited, u64 now);
void tfrc_tx_note(struct tfrc_tx *tx, u64 seq, u64 now);
u64 tfrc_tx_sent_time(const struct tfrc_tx *tx, u64 seq, u32 *wc);
u32 tfrc_tx_merge(struct tfrc_tx *tx, struct tfrc_reported *li, u32 n,
		  bool *complete);
u32 tfrc_tx_pinv(struct tfrc_tx *tx, const struct tfrc_reported *li, u32 n,
		 u32 wc);
void tfrc_tx_acked_wc(struct tfrc_tx *tx, u32 wc, u64 now);
void tfrc_tx_feedback(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
		      u64 now);
void tfrc_tx_expired(struct tfrc_tx *tx, u64 now);
u64 tfrc_tx_x_recv(const struct tfrc_tx *tx);
u32 tfrc_tx_segment(const struct tfrc_tx *tx);
u32 tfrc_tx_rto(const struct tfrc_tx *tx);
u32 tfrc_tx_flight(const struct tfrc_tx *tx);
u32 tfrc_tx_packet(const struct tfrc_tx *tx, u32 us);

#endif
