/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiver of TFRC: which packets are lost, the receive rate, the
 * round-trip time by window counters, and when feedback is due.
 */
#ifndef _TFRC_RX_H
#define _TFRC_RX_H

#include "tfrc_loss.h"

#define TFRC_NDUPACK	3	/* RFC 5348, 5.1 */
#define TFRC_MARKS	8	/* power of two */
#define TFRC_COUNTERS	8	/* power of two, more than a round trip */

#define TFRC_SEQ_MASK	((1ULL << 48) - 1)

/* Signed distance from a to b on the circle of 48 bits. */
static inline s64 tfrc_seq_diff(u64 a, u64 b)
{
	return (s64)((b - a) << 16) >> 16;
}

/**
 * struct tfrc_packet - what the receiver must know of a packet
 * @seq: sequence number
 * @size: payload, bytes
 * @wc: window counter, counted on beyond 15
 * @time: when it came, 256 ns, the low bits
 * @ndp: non-data packets sent right before it (RFC 4340, 7.7)
 * @data: it carries data, if only of length 0
 * @ce: Congestion Experienced
 */
struct tfrc_packet {
	u64	seq;
	u32	size;
	u32	wc;
	u32	time;
	u32	ndp : 30;
	bool	data : 1;
	bool	ce : 1;
};

#define TFRC_NDP_MAX	((1U << 30) - 1)

/* Why to send feedback. */
enum tfrc_feedback {
	TFRC_FEEDBACK_NONE,
	TFRC_FEEDBACK_FIRST,		/* first data packet, RFC 5348, 6.3 */
	TFRC_FEEDBACK_LOSS,		/* new loss event, 6.1 */
	TFRC_FEEDBACK_PERIODIC,		/* a round trip has passed, and data
					 * enough has come
					 */
};

/**
 * struct tfrc_rx - receiver's state
 * @method: of measuring loss
 * @own: the method's own state, zeroed and init()ed
 * @par: its parameters
 * @last: last packet of the part of sequence space that is decided
 * @seen: bit i: packet @last.seq - i was received
 * @waiting: packets above a hole in order of sequence numbers
 * @n_waiting: how many; with the third the hole counts as lost
 * @data_seen: a data packet has come
 * @rtt_told: the sender tells its round-trip time (RFC 6323), which is @rtt since
 * @rtt_known: and has told a number
 * @rtt_missing: since @t_missing, 256 ns, the low bits, it has told none
 * @wc_high: greatest window counter of a data packet
 * @wc_feedback: @wc_high when feedback was sent last
 * @packets_feedback: @packets then
 * @wc_event: of the packet before the loss that began the current event
 * @arrival_wc: the counter that @arrival is for, by its low bits
 * @arrival: when the first packet with that counter came, 256 ns, the low bits;
 *	0: none has
 * @rtt: round-trip time, us; 0: not known yet
 * @t_missing: see @rtt_missing; or when @rtt was doubled last
 * @s_mean: mean payload, bytes, Q24.8
 * @bytes: payload received
 * @mark: @bytes and the time, 256 ns, at the last feedback packets, the low bits
 * @n_mark: how many there have been
 * @t_first: time of the first data packet
 * @t_high: time of the packet that an acknowledgment would name
 * @seq_high: its number
 * @seq_data: number of the newest data packet
 * @x_recv: receive rate as reported last, bytes/s, no fraction
 * @x_max: greatest so far
 * @pinv: 1/p at the last feedback or event
 * @meter: the current interval
 * @history: its predecessors
 * @first_seq: predecessor of the first packet of the connection
 * @packets: data packets received, without duplicates
 * @lost: data packets found lost
 * @marked: data packets received with CE
 * @late: data packets that came after they had been found lost
 * @duplicates: packets received more than once
 * @events: loss events
 */
struct tfrc_rx {
	const struct tfrc_method *method;
	void			*own;
	struct tfrc_params	par;

	struct tfrc_packet	last;
	u64			seen;
	struct tfrc_packet	waiting[TFRC_NDUPACK];
	u8			n_waiting;
	bool			data_seen;
	bool			rtt_told;
	bool			rtt_known;
	bool			rtt_missing;

	u32			wc_high;
	u32			wc_feedback;
	u64			packets_feedback;
	u32			wc_event;
	u32			arrival_wc[TFRC_COUNTERS];
	u32			arrival[TFRC_COUNTERS];
	u32			rtt;
	u32			t_missing;

	u32			s_mean;
	u64			bytes;
	struct {
		u32	time;
		u32	bytes;
	}			mark[TFRC_MARKS];
	u32			n_mark;
	u64			t_first;
	u64			t_high;
	u64			seq_high;
	u64			seq_data;
	u32			x_recv;
	u32			x_max;
	u32			pinv;

	struct tfrc_meter	meter;
	struct tfrc_history	history;
	u64			first_seq;

	u64			packets;
	u64			lost;
	u64			marked;
	u64			late;
	u64			duplicates;
	u64			events;
};

void tfrc_rx_init(struct tfrc_rx *rx, const struct tfrc_method *method,
		  const struct tfrc_params *par, u64 seq, u32 rtt);
enum tfrc_feedback tfrc_rx_packet(struct tfrc_rx *rx, struct tfrc_packet *pkt,
				  u8 ccval, u64 now);
void tfrc_rx_rtt_estimate(struct tfrc_rx *rx, u32 us, u64 now);
u64 tfrc_rx_may_wait(const struct tfrc_rx *rx, u64 now);
void tfrc_rx_report(struct tfrc_rx *rx, enum tfrc_feedback why, u64 now);
u32 tfrc_rx_interval(const struct tfrc_rx *rx, u32 i);

/* Intervals in packets, as several methods count them. */
void tfrc_standard_received(struct tfrc_rx *rx, const struct tfrc_packet *pkt,
			    bool lip);
s64 tfrc_standard_lost(struct tfrc_rx *rx, const struct tfrc_hole *hole);
u32 tfrc_standard_length(const struct tfrc_rx *rx, bool is_short);

/* Options, RFC 6323, 3.2, RFC 4342, 8 and RFC 5622, 8. */
#define TFRC_OPT_RTT_ESTIMATE		128
#define TFRC_OPT_LOSS_EVENT_RATE	192
#define TFRC_OPT_LOSS_INTERVALS		193
#define TFRC_OPT_RECEIVE_RATE		194
#define TFRC_OPT_DROPPED_PACKETS	195
#define TFRC_OPT_MEAN_INTERVAL		196	/* ours, of 248 to 253: 1/p, Q24.8 */

/* No number, but that the round-trip time is longer than the option can say. */
#define TFRC_RTT_SPIKE		0xffffffU

/* Intervals that change from one periodic feedback to the next, at most. */
#define TFRC_INTERVALS_BRIEF		2U

#define TFRC_INTERVALS_SIZE	(1 + 9 * (TFRC_NINTERVAL + 1))
#define TFRC_DROPPED_SIZE	(3 * (TFRC_NINTERVAL + 1))

u8 tfrc_rx_intervals(const struct tfrc_rx *rx, u64 ackno, u32 most, u8 *data);
u8 tfrc_rx_dropped(const struct tfrc_rx *rx, u32 most, u8 *data);
u32 tfrc_rx_loss_event_rate(const struct tfrc_rx *rx);

#endif
