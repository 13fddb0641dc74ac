/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What became of the packets of one direction: counts, delays, the playout
 * buffer, and what the E-model makes of it. Pure: no sockets, no clocks.
 */
#ifndef VOIPCALL_QUALITY_H
#define VOIPCALL_QUALITY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include "codec.h"
#include "rtp.h"

/*
 * What is reported of a direction, in the order of the report. Also the order
 * on the wire, so new ones come last.
 */
enum metric {
	M_PACKETS, M_BYTES, M_LOST, M_DUPLICATES, M_REORDERED, M_LATE, M_NOT_SENT, M_CE,
	M_LOSS, M_EFFECTIVE_LOSS, M_BURST_RATIO,
	M_DELAY_MIN, M_DELAY_MEDIAN, M_DELAY_P99, M_DELAY_MAX, M_DELAY_MEAN,
	M_VARIATION_MEDIAN, M_VARIATION_P99, M_VARIATION_MAX,
	M_JITTER, M_JITTER_MAX, M_ROUND_TRIP, M_BUFFER, M_MOUTH_TO_EAR,
	M_RATED, M_IE, M_BPL, M_R, M_MOS,
	METRICS
};

/* Share of packets that must have been in one mode for R to mean anything. */
#define RATED_MIN	0.9

/**
 * struct playout - a model of the receiver's playout buffer
 * @fixed_ms:	first packet of a talk spurt waits so long; negative: adaptive
 * @started:	there has been a packet
 * @mean:	of the delay, adaptive, ns
 * @deviation:	mean one from @mean, ns
 * @point:	delay at which packets are played, ns
 * @set_at:	packets when @point was set
 * @packets:	packets so far
 * @sum:	of @point over them
 *
 * Adaptive is the first algorithm of Ramjee et al. (INFOCOM 1994), with a gain
 * of 1/32: point = mean + 4 deviations, but at least half a packet, set at the
 * start of a talk spurt, and within long ones once a second, as buffers do that
 * stretch speech.
 */
struct playout {
	double		fixed_ms;
	bool		started;
	double		mean;
	double		deviation;
	double		point;
	__u64		set_at;
	__u64		packets;
	double		sum;
};

bool playout_late(struct playout *p, __s64 delay, bool spurt, unsigned int ptime);

#define DELAY_BINS	256
#define DELAY_PARTS	21

/**
 * struct delays - how long packets took, without keeping each
 * @n:		packets
 * @first:	delay of the first one, ns
 * @min:	the least, ns
 * @max:	the greatest, ns
 * @peak:	the greatest since the last line of progress, ns
 * @shown:	packets up to it
 * @shown_sum:	and the sum of their delays, ns
 * @sum:	of all, ns
 * @bin:	counts by the distance from @first, [0] above it and [1] below; a part
 *		of DELAY_BINS is there once it is needed
 *
 * Distances are in us, and exact below 2 * DELAY_BINS; each part after that is
 * an octave. So quantiles are right within 0.2 % of the distance, up to 268 s, in 43 KB at
 * most.
 */
struct delays {
	__u64	n;
	__s64	first;
	__s64	min;
	__s64	max;
	__s64	peak;
	__u64	shown;
	double	shown_sum;
	double	sum;
	__u32	*bin[2][DELAY_PARTS];
};

bool delays_add(struct delays *d, __s64 delay);
double delays_quantile(const struct delays *d, double q);
void delays_free(struct delays *d);

/**
 * struct arrival - a packet that has come, duplicates excepted
 * @seq:	extended sequence number
 * @timestamp:	RTP time
 * @marker:	first of a talk spurt
 * @late:	too late for the playout buffer
 */
struct arrival {
	__u32	seq;
	__u32	timestamp;
	bool	marker;
	bool	late;
};

/**
 * struct losses - what the listener did not hear, by sequence numbers
 * @total:	frames, of whatever cause
 * @bursts:	runs of them
 * @unsent:	those that the sender could not send, as far as seen
 * @run:	the run that has not ended
 * @next:	number that comes after those counted
 * @any:	some have been:
 * @last:	the last one
 * @waiting:	packets that others may still come before, by number: those farther
 *		back are RTP_BAD
 * @n_waiting:	how many
 */
struct losses {
	__u64		total;
	__u64		bursts;
	__u64		unsent;
	__u64		run;
	__u32		next;
	bool		any;
	struct arrival	last;
	struct arrival	waiting[MAX_MISORDER + 1];
	unsigned int	n_waiting;
};

/**
 * struct receiver - one direction, as its receiver sees it
 * @codec:	the codec; NULL: unknown
 * @ptime:	ms a packet
 * @ours:	the peer is a voipcall: it stamps packets, and sets the marker
 *		wherever frames were not sent for silence
 * @has_ssrc:	@ssrc is known
 * @ssrc:	the source
 * @seq:	sequence numbers
 * @jitter:	jitter
 * @jitter_max:	its highest value, ns
 * @playout:	playout buffer
 * @delays:	delays, without stamps relative to the first packet
 * @losses:	what was not heard
 * @packets:	packets, without duplicates
 * @bytes:	theirs, RTP headers included
 * @duplicates:	packets that came again
 * @reordered:	packets that came after one with a higher number
 * @late:	packets too late to be played
 * @ce:		packets with Congestion Experienced
 * @mode:	packets in each mode of the codec
 * @odd:	packets of a size that the codec does not have
 * @unstamped:	packets without a stamp
 * @media:	RTP time of the last packet since the first, without wrapping
 * @first:	when the first packet came, ns
 * @expected_prior: packets expected up to the last report block
 * @received_prior: packets received up to it
 * @final:	the peer has told how many packets it has sent:
 * @sent:	so many
 * @not_sent:	frames that it spoke but could not send
 * @round_trip:	last round trip measured, ms; negative: none
 * @round_trip_min: the shortest
 */
struct receiver {
	const struct codec	*codec;
	unsigned int		ptime;
	bool			ours;
	bool			has_ssrc;
	__u32			ssrc;
	struct rtp_seq		seq;
	struct rtp_jitter	jitter;
	double			jitter_max;
	struct playout		playout;
	struct delays		delays;
	struct losses		losses;
	__u64			packets;
	__u64			bytes;
	__u64			duplicates;
	__u64			reordered;
	__u64			late;
	__u64			ce;
	__u64			mode[MAX_MODES];
	__u64			odd;
	__u64			unstamped;
	__s64			media;
	__s64			first;
	__u64			expected_prior;
	__u64			received_prior;
	bool			final;
	__u32			sent;
	__u32			not_sent;
	double			round_trip;
	double			round_trip_min;
};

void receiver_init(struct receiver *r, const struct codec *c, unsigned int ptime,
		   double playout_ms);
bool receiver_add(struct receiver *r, const struct rtp_packet *p, __s64 arrived, bool ce);
void receiver_round_trip(struct receiver *r, double ms);
void receiver_block(struct receiver *r, struct rtcp_block *b);
void receiver_metrics(const struct receiver *r, double *m);
void receiver_free(struct receiver *r);

void losses_add(const struct receiver *r, struct losses *l, const struct arrival *a);

#define STAMP_LEN	10

void stamp_put(__u8 *payload, __s64 realtime);
bool stamp_get(const struct rtp_packet *p, __s64 arrived, __s64 *realtime);

#endif /* VOIPCALL_QUALITY_H */
