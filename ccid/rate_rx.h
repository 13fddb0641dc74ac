/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiver of a rate-based CCID: which packets are lost, the receive rate,
 * the round-trip time by window counters, and when feedback is due. What the
 * losses mean is the congestion control's business.
 */
#ifndef _RATE_RX_H
#define _RATE_RX_H

#include "tfrc_math.h"

#define RATE_NDUPACK	3	/* RFC 5348, 5.1 */
#define RATE_MARKS	8	/* power of two */
#define RATE_COUNTERS	8	/* power of two, more than a round trip */

#define RATE_SEQ_MASK	((1ULL << 48) - 1)

/* Signed distance from a to b on the circle of 48 bits. */
static inline s64 rate_seq_diff(u64 a, u64 b)
{
	return (s64)((b - a) << 16) >> 16;
}

/*
 * Feedback takes a tenth of the bytes of data that it is for: it waits for more
 * data, if not for longer than this.
 */
#define RATE_FEEDBACK_BYTES	56U	/* that a DataAck has more than Data */
#define RATE_FEEDBACK_SHARE	10
#define RATE_FEEDBACK_WAIT	160000U	/* us */

/* What an empty datagram costs, bytes: its headers (RFC 5622, 5). */
#define RATE_EMPTY		36

/* Is this, of packets with @s bytes each, data enough for feedback? */
static inline bool rate_feedback_earned(u64 packets, u32 s)
{
	return packets * (s + RATE_EMPTY) >=
	       RATE_FEEDBACK_BYTES * RATE_FEEDBACK_SHARE;
}

/**
 * struct rate_packet - what the receiver must know of a packet
 * @seq: sequence number
 * @size: payload, bytes
 * @wc: window counter, counted on beyond 15
 * @time: when it came, 256 ns, the low bits
 * @ndp: non-data packets sent right before it (RFC 4340, 7.7)
 * @data: it carries data, if only of length 0
 * @ce: Congestion Experienced
 */
struct rate_packet {
	u64	seq;
	u32	size;
	u32	wc;
	u32	time;
	u32	ndp : 30;
	bool	data : 1;
	bool	ce : 1;
};

#define RATE_NDP_MAX	((1U << 30) - 1)

/**
 * struct rate_hole - data packets lost in a row, or one that came with CE
 * @n: how many
 * @size: of about so many bytes each
 * @from: when the packet before them came, 256 ns, the low bits
 * @time: from then to the packet above the hole, 256 ns
 * @steps: sequence numbers from that packet to this: the lost packet with number
 *	i, from 1, was due at @from + i * @time / @steps (RFC 5348, 5.2)
 * @lip: they are in a LIP, and cannot begin an event
 */
struct rate_hole {
	u32	n;
	u32	size;
	u32	from;
	u32	time;
	u32	steps;
	bool	lip;
};

/* Why to send feedback. */
enum rate_feedback {
	RATE_FEEDBACK_NONE,
	RATE_FEEDBACK_FIRST,		/* first data packet, RFC 5348, 6.3 */
	RATE_FEEDBACK_LOSS,		/* new loss event, 6.1 */
	RATE_FEEDBACK_PERIODIC,		/* a round trip has passed, and data
					 * enough has come
					 */
};

struct rate_rx;

/**
 * struct rate_rx_ops - what a congestion control makes of packets, which it is told of
 *	in order
 * @received: a data packet, without CE
 * @lost: data packets were lost in a row, or one came with CE, the first with sequence
 *	number @seq; @hole is the function's to change. Return: a loss event began
 */
struct rate_rx_ops {
	void	(*received)(struct rate_rx *rx, const struct rate_packet *pkt);
	bool	(*lost)(struct rate_rx *rx, struct rate_hole *hole, u64 seq, u64 now);
};

/**
 * struct rate_rx - receiver's state
 * @ops: of the congestion control
 * @last: last packet of the part of sequence space that is decided
 * @seen: bit i: packet @last.seq - i was received
 * @waiting: packets above a hole in order of sequence numbers
 * @n_waiting: how many; with the third the hole counts as lost
 * @data_seen: a data packet has come
 * @event_seen: a loss event has begun
 * @rtt_told: the sender tells its round-trip time (RFC 6323), which is @rtt since
 * @rtt_known: and has told a number
 * @rtt_missing: since @t_missing, 256 ns, the low bits, it has told none
 * @wc_high: greatest window counter of a data packet
 * @wc_feedback: @wc_high when feedback was sent last
 * @packets_feedback: @packets then
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
 * @first_seq: predecessor of the first packet of the connection
 * @packets: data packets received, without duplicates
 * @lost: data packets found lost
 * @marked: data packets received with CE
 * @late: data packets that came after they had been found lost
 * @duplicates: packets received more than once
 */
struct rate_rx {
	const struct rate_rx_ops *ops;

	struct rate_packet	last;
	u64			seen;
	struct rate_packet	waiting[RATE_NDUPACK];
	u8			n_waiting;
	bool			data_seen;
	bool			event_seen;
	bool			rtt_told;
	bool			rtt_known;
	bool			rtt_missing;

	u32			wc_high;
	u32			wc_feedback;
	u64			packets_feedback;
	u32			arrival_wc[RATE_COUNTERS];
	u32			arrival[RATE_COUNTERS];
	u32			rtt;
	u32			t_missing;

	u32			s_mean;
	u64			bytes;
	struct {
		u32	time;
		u32	bytes;
	}			mark[RATE_MARKS];
	u32			n_mark;
	u64			t_first;
	u64			t_high;
	u64			seq_high;
	u64			seq_data;
	u32			x_recv;
	u32			x_max;
	u64			first_seq;

	u64			packets;
	u64			lost;
	u64			marked;
	u64			late;
	u64			duplicates;
};

void rate_rx_init(struct rate_rx *rx, const struct rate_rx_ops *ops, u64 seq, u32 rtt);
enum rate_feedback rate_rx_packet(struct rate_rx *rx, struct rate_packet *pkt,
				  u8 ccval, u64 now);
void rate_rx_rtt_estimate(struct rate_rx *rx, u32 us, u64 now);
u64 rate_rx_may_wait(const struct rate_rx *rx, u64 now);
u64 rate_rx_receive_rate(const struct rate_rx *rx, u64 now);
void rate_rx_report(struct rate_rx *rx, enum rate_feedback why, u64 now);

/* The round-trip time, or what stands for it, us. */
static inline u32 rate_rx_rtt(const struct rate_rx *rx)
{
	if (rx->rtt)
		return rx->rtt;
	return rx->rtt_told ? TFRC_RTT_UNTOLD : TFRC_RTT_FALLBACK;
}

/* No number, but that the round-trip time is longer than the option can say. */
#define RATE_RTT_SPIKE		0xffffffU

#endif
