// SPDX-License-Identifier: GPL-2.0
/*
 * Counting packets as they come, and the playout buffer; see quality.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "quality.h"

#define NSEC_PER_MSEC	1000000LL

#define GAIN		(1 / 32.0)
#define START_DEVIATION	(10 * NSEC_PER_MSEC)

/*
 * At the start of a payload: marks it as ours, then the sender's time in ns. No payload is
 * shorter. Foreign speech has such a mark now and then, but not with a time of that day.
 */
#define STAMP_MAGIC	0x566f
#define STAMP_APART	(24 * 3600 * 1000 * NSEC_PER_MSEC)

void stamp_put(__u8 *payload, __s64 realtime)
{
	put16(payload, STAMP_MAGIC);
	put64(payload + 2, realtime);
}

bool stamp_get(const struct rtp_packet *p, __s64 arrived, __s64 *realtime)
{
	if (p->len < STAMP_LEN || get16(p->payload) != STAMP_MAGIC)
		return false;
	*realtime = get64(p->payload + 2);
	return *realtime > arrived - STAMP_APART && *realtime < arrived + STAMP_APART;
}

static void playout_adapt(struct playout *p, double delay)
{
	if (!p->started) {
		p->mean = delay;
		p->deviation = START_DEVIATION;
		return;
	}
	p->mean += GAIN * (delay - p->mean);
	p->deviation += GAIN * (fabs(delay - p->mean) - p->deviation);
}

/* A packet comes, @spurt: as the first of a talk spurt. Is it too late to be played? */
bool playout_late(struct playout *p, __s64 delay, bool spurt, unsigned int ptime)
{
	bool fixed = p->fixed_ms >= 0;

	playout_adapt(p, delay);
	if (fixed && (!p->started || spurt)) {
		p->point = delay + p->fixed_ms * NSEC_PER_MSEC;
	} else if (!fixed && (!p->started || spurt ||
			      (p->packets - p->set_at) * ptime >= 1000)) {
		p->point = p->mean + fmax(4 * p->deviation, 0.5 * ptime * NSEC_PER_MSEC);
		p->set_at = p->packets;
	}
	p->started = true;
	p->packets++;
	p->sum += p->point;
	return delay > p->point;
}

void receiver_free(struct receiver *r)
{
	delays_free(&r->delays);
}

void receiver_init(struct receiver *r, const struct codec *c, unsigned int ptime,
		   double playout_ms)
{
	receiver_free(r);
	*r = (struct receiver) {
		.codec = c,
		.ptime = ptime,
		.playout.fixed_ms = playout_ms,
		.round_trip = -1,
		.round_trip_min = -1,
	};
}

/* The source has begun anew, or another one has taken its place. */
static void receiver_restart(struct receiver *r)
{
	struct receiver fresh = {
		.codec = r->codec,
		.ptime = r->ptime,
		.ours = r->ours,
		.has_ssrc = r->has_ssrc,
		.ssrc = r->ssrc,
		.seq = r->seq,
		.playout.fixed_ms = r->playout.fixed_ms,
		.round_trip = r->round_trip,
		.round_trip_min = r->round_trip_min,
	};

	receiver_free(r);
	*r = fresh;
}

static unsigned int receiver_clock(const struct receiver *r)
{
	return r->codec ? r->codec->clock : 8000;
}

/* From the sender's stamp, or else from RTP time, relative to the first packet. */
static __s64 receiver_delay(struct receiver *r, const struct rtp_packet *p, __s64 arrived)
{
	__s64 stamp;

	if (!r->packets)
		r->first = arrived;
	else
		r->media += (__s32)(p->timestamp - r->jitter.timestamp);
	if (stamp_get(p, arrived, &stamp))
		return arrived - stamp;
	r->unstamped++;
	return arrived - r->first - r->media * 1000000000 / receiver_clock(r);
}

static void receiver_count_mode(struct receiver *r, size_t payload)
{
	int mode = r->codec ? codec_mode_of(r->codec, payload, r->ptime) : -1;

	if (mode >= 0)
		r->mode[mode]++;
	else
		r->odd++;
}

/**
 * receiver_add - an RTP packet has come
 * @r:		receiver
 * @p:		the packet
 * @arrived:	when, ns
 * @ce:		with Congestion Experienced
 *
 * Return: false if memory is short.
 */
bool receiver_add(struct receiver *r, const struct rtp_packet *p, __s64 arrived, bool ce)
{
	enum rtp_verdict verdict;
	struct arrival a = { .timestamp = p->timestamp, .marker = p->marker };
	__u32 seq, top;
	__s64 delay;

	if (r->has_ssrc && p->ssrc != r->ssrc)
		return true;
	r->has_ssrc = true;
	r->ssrc = p->ssrc;

	top = r->seq.max;
	verdict = rtp_seq_add(&r->seq, p->seq, &seq);
	if (verdict == RTP_BAD)
		return true;
	if (verdict == RTP_DUPLICATE) {
		r->duplicates++;
		return true;
	}
	if (verdict == RTP_NEW && r->packets && seq - top >= 0x8000)
		receiver_restart(r);

	delay = receiver_delay(r, p, arrived);
	if (!delays_add(&r->delays, delay))
		return false;
	a.seq = seq;
	a.late = playout_late(&r->playout, delay, p->marker, r->ptime);
	losses_add(r, &r->losses, &a);

	rtp_jitter_add(&r->jitter, arrived, p->timestamp, receiver_clock(r));
	if (r->jitter.jitter > r->jitter_max)
		r->jitter_max = r->jitter.jitter;
	receiver_count_mode(r, p->len);
	r->packets++;
	r->bytes += RTP_HEADER + p->len;
	r->reordered += verdict == RTP_REORDERED;
	r->late += a.late;
	r->ce += ce;
	return true;
}

void receiver_round_trip(struct receiver *r, double ms)
{
	if (ms < 0)
		return;
	r->round_trip = ms;
	if (r->round_trip_min < 0 || ms < r->round_trip_min)
		r->round_trip_min = ms;
}

/* RFC 3550 A.3, all but the last SR's time. */
void receiver_block(struct receiver *r, struct rtcp_block *b)
{
	__u64 expected = r->seq.started ? r->seq.max - r->seq.base + 1 : 0;
	__u64 received = r->packets + r->duplicates;
	__s64 interval = expected - r->expected_prior;
	__s64 lost = interval - (__s64)(received - r->received_prior);

	r->expected_prior = expected;
	r->received_prior = received;
	*b = (struct rtcp_block) {
		.ssrc = r->ssrc,
		.fraction = interval > 0 && lost > 0 ? (lost << 8) / interval : 0,
		.lost = (__s32)(expected - received),
		.max = r->seq.max - 0x10000,
		.jitter = (__u32)(r->jitter.jitter * receiver_clock(r) / 1e9),
	};
	if (interval > 0 && lost >= interval)
		b->fraction = 255;
}
