/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sender of TFRC: the allowed rate.
 */
#ifndef _TFRC_TX_H
#define _TFRC_TX_H

#include "rate_tx.h"
#include "tfrc_loss.h"

#define TFRC_X_RECV_SET		3	/* RFC 5348, 8.2.2 */

/* Packets of a round trip, at most. */
#define TFRC_FLIGHT_MAX		0x100000U

/* The mean size is that over the current loss interval and so many before. */
#define TFRC_S_INTERVALS	4

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
 * struct tfrc_tx - sender's state
 * @rate: when packets go, at which rate, and when they went
 * @par: parameters of the method
 * @x: allowed rate X
 * @x_calc: rate of the equation, X_Bps, or of the window; TFRC_RATE_MAX while p = 0
 * @x_inst: @x after the reduction of oscillations, RFC 5348, 4.5
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
 * @unbias: what to make of @pinv in the equation; NULL: that is it
 * @n_rtt: packets sent in a round trip, on average, Q24.8, if there is @unbias
 * @r_sqmean: mean square root of the round-trip time's samples, sqrt(us) in Q16
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
 * @told: loss intervals as far as they are known, the current one first
 * @n_told: how many
 * @nofeedback: expiries of the timer
 * @feedback: feedback packets
 */
struct tfrc_tx {
	struct rate_tx		rate;
	struct tfrc_params	par;

	u64			x;
	u64			x_calc;
	u64			x_inst;
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
	u32			r_sqmean;
	u64			t_doubled;
	u32			s_mean;
	struct {
		u32	bytes;
		u32	packets;
	}			sizes[TFRC_S_INTERVALS + 1];

	u64			t_nofeedback;
	struct tfrc_told	told[TFRC_NINTERVAL + 1];
	u32			n_told;
	u32			nofeedback;
	u32			feedback;
};

void tfrc_tx_init(struct tfrc_tx *tx, const struct tfrc_params *par);
void tfrc_tx_start(struct tfrc_tx *tx, u32 size, u32 rtt, u64 now);
void tfrc_tx_send(struct tfrc_tx *tx, u32 size, bool waited, u64 now);
bool tfrc_tx_tell(struct tfrc_tx *tx, const struct tfrc_reported *li, u32 n);
u32 tfrc_tx_pinv(const struct tfrc_tx *tx, u32 wc);
void tfrc_tx_feedback(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
		      u64 now);
void tfrc_tx_expired(struct tfrc_tx *tx, u64 now);
u64 tfrc_tx_x_recv(const struct tfrc_tx *tx);
u32 tfrc_tx_segment(const struct tfrc_tx *tx);
u32 tfrc_tx_mean_interval(const struct tfrc_tx *tx);
u32 tfrc_tx_rto(const struct tfrc_tx *tx);
u32 tfrc_tx_flight(const struct tfrc_tx *tx);

#endif
