// SPDX-License-Identifier: GPL-2.0
/*
 * The figures of one direction, from its packets; see quality.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "emodel.h"
#include "quality.h"

#define NSEC_PER_MSEC	1e6

/* Stamps that cannot be from one clock: beyond this, round trips must show it. */
#define APART_MS	50

static const __s64 farthest = (__s64)DELAY_BINS << (DELAY_PARTS - 1);	/* us */

/* Which bin a distance in us belongs to, and what one stands for: its middle. */
static unsigned int delay_bin(__s64 us)
{
	unsigned int octave = 0;

	while (us >> octave >= 2 * DELAY_BINS)
		octave++;
	return octave * DELAY_BINS + (unsigned int)(us >> octave);
}

static double delay_of_bin(unsigned int bin)
{
	unsigned int octave = bin < 2 * DELAY_BINS ? 0 : bin / DELAY_BINS - 1;
	__s64 us = (__s64)(bin - octave * DELAY_BINS) << octave;

	return (double)us + (octave ? (double)(1U << octave) / 2 : 0);
}

/* Return: false if memory is short. */
bool delays_add(struct delays *d, __s64 delay)
{
	__s64 us = (llabs(delay - (d->n ? d->first : delay)) + 500) / 1000;
	unsigned int bin = delay_bin(us < farthest ? us : farthest - 1);
	__u32 **part = &d->bin[d->n && delay < d->first][bin / DELAY_BINS];

	if (!*part)
		*part = calloc(DELAY_BINS, sizeof(**part));
	if (!*part)
		return false;
	(*part)[bin % DELAY_BINS]++;
	if (!d->n)
		d->first = delay;
	if (!d->n || delay < d->min)
		d->min = delay;
	if (!d->n || delay > d->max)
		d->max = delay;
	if (!d->n || delay > d->peak)
		d->peak = delay;
	d->sum += (double)delay;
	d->n++;
	return true;
}

/* From the greatest delay below the first one's down, or from that up. */
static unsigned int delay_walk(const struct delays *d, bool below, __u64 *rank)
{
	unsigned int bins = DELAY_PARTS * DELAY_BINS;

	for (unsigned int i = 0; i < bins; i++) {
		unsigned int bin = below ? bins - 1 - i : i;
		const __u32 *part = d->bin[below][bin / DELAY_BINS];
		__u32 n = part ? part[bin % DELAY_BINS] : 0;

		if (n >= *rank)
			return bin;
		*rank -= n;
	}
	return bins;
}

/**
 * delays_quantile - a delay that a share of the packets do not exceed
 * @d:	delays, of one packet at least
 * @q:	the share
 *
 * Return: the smallest such, ms.
 */
double delays_quantile(const struct delays *d, double q)
{
	__u64 rank = (__u64)ceil(q * (double)d->n);
	double value;
	unsigned int bin;

	if (rank <= 1)
		return (double)d->min / NSEC_PER_MSEC;
	if (rank >= d->n)
		return (double)d->max / NSEC_PER_MSEC;
	bin = delay_walk(d, true, &rank);
	if (bin < DELAY_PARTS * DELAY_BINS)
		value = (double)d->first - delay_of_bin(bin) * 1000;
	else
		value = (double)d->first + delay_of_bin(delay_walk(d, false, &rank)) * 1000;
	return fmin(fmax(value, (double)d->min), (double)d->max) / NSEC_PER_MSEC;
}

void delays_free(struct delays *d)
{
	for (int below = 0; below < 2; below++) {
		for (int i = 0; i < DELAY_PARTS; i++)
			free(d->bin[below][i]);
	}
	*d = (struct delays) { 0 };
}

/* Frames between two packets in sequence that the sender left out, not for silence. */
static __u64 unsent_between(const struct receiver *r, const struct arrival *a,
			    const struct arrival *b)
{
	__u32 step;
	__s64 frames;

	if (!r->ours || !r->codec || b->marker)
		return 0;
	step = r->codec->clock / 1000 * r->ptime;
	frames = (__s32)(b->timestamp - a->timestamp) / (__s32)step - (__s64)(b->seq - a->seq);
	return frames > 0 ? frames : 0;
}

/* The next packet by number. */
static void losses_count(const struct receiver *r, struct losses *l, const struct arrival *a)
{
	__u64 unsent = l->any ? unsent_between(r, &l->last, a) : 0;

	if (!l->any)
		l->next = r->seq.base;
	l->unsent += unsent;
	l->run += a->seq - l->next + unsent + a->late;
	l->next = a->seq + 1;
	l->last = *a;
	l->any = true;
	if (l->run && !a->late) {
		l->total += l->run;
		l->bursts++;
		l->run = 0;
	}
}

/* A packet has come, in whatever order. */
void losses_add(const struct receiver *r, struct losses *l, const struct arrival *a)
{
	unsigned int i;

	if (l->any && a->seq < l->next)
		return;		/* it was not heard */
	for (i = l->n_waiting++; i && l->waiting[i - 1].seq > a->seq; i--)
		l->waiting[i] = l->waiting[i - 1];
	l->waiting[i] = *a;
	if (l->n_waiting > MAX_MISORDER) {
		losses_count(r, l, &l->waiting[0]);
		memmove(l->waiting, l->waiting + 1, --l->n_waiting * sizeof(*a));
	}
}

/* @end: first number that was not sent. */
static struct losses losses_so_far(const struct receiver *r, __u64 end)
{
	struct losses l = r->losses;

	for (unsigned int i = 0; i < l.n_waiting; i++)
		losses_count(r, &l, &l.waiting[i]);
	l.run += end > l.next ? end - l.next : 0;
	l.total += l.run;
	l.bursts += l.run > 0;
	return l;
}

static void loss_metrics(const struct receiver *r, double *m)
{
	__u64 expected = r->final ? r->sent : r->seq.max - r->seq.base + 1;
	struct losses l = losses_so_far(r, r->seq.base + expected);
	__u64 lost = expected > r->packets ? expected - r->packets : 0;
	__u64 unsent = r->final && r->not_sent > l.unsent ? r->not_sent : l.unsent;
	double effective = (double)(lost + r->late + unsent) / (double)(expected + unsent);

	m[M_PACKETS] = r->packets;
	m[M_BYTES] = r->bytes;
	m[M_LOST] = lost;
	m[M_DUPLICATES] = r->duplicates;
	m[M_REORDERED] = r->reordered;
	m[M_LATE] = r->late;
	m[M_NOT_SENT] = unsent;
	m[M_CE] = r->ce;
	m[M_LOSS] = (double)lost / (double)expected;
	m[M_EFFECTIVE_LOSS] = effective;
	/* G.107: observed mean length over that of random loss, 1 / (1 - p) */
	m[M_BURST_RATIO] = l.bursts && effective < 1 ?
			   (double)l.total / (double)l.bursts * (1 - effective) : 1;
}

/*
 * Without a common clock only what is relative to the
 * smallest delay means anything. A clock that is off shows when packets take
 * less than nothing, or much longer than the round trip.
 */
static void delay_metrics(const struct receiver *r, double *m)
{
	const struct delays *d = &r->delays;
	double base = delays_quantile(d, 0), median = delays_quantile(d, 0.5);
	double p99 = delays_quantile(d, 0.99), max = delays_quantile(d, 1);
	bool apart;

	m[M_VARIATION_MEDIAN] = median - base;
	m[M_VARIATION_P99] = p99 - base;
	m[M_VARIATION_MAX] = max - base;
	m[M_JITTER] = r->jitter.jitter / NSEC_PER_MSEC;
	m[M_JITTER_MAX] = r->jitter_max / NSEC_PER_MSEC;
	m[M_BUFFER] = r->playout.sum / (double)d->n / NSEC_PER_MSEC - base;
	if (r->round_trip_min >= 0)
		m[M_ROUND_TRIP] = r->round_trip_min;

	apart = r->unstamped || base < -1 ||
		(r->round_trip_min >= 0 && base > 1.5 * r->round_trip_min + APART_MS);
	if (apart) {
		base = m[M_ROUND_TRIP] / 2;
	} else {
		m[M_DELAY_MIN] = base;
		m[M_DELAY_MEDIAN] = median;
		m[M_DELAY_P99] = p99;
		m[M_DELAY_MAX] = max;
		m[M_DELAY_MEAN] = d->sum / (double)d->n / NSEC_PER_MSEC;
	}
	if (r->codec)
		m[M_MOUTH_TO_EAR] = base + m[M_BUFFER] + r->ptime + r->codec->lookahead_us / 1e3;
}

/* R is that of one mode, which must have had nearly all packets. */
static void rating_metrics(const struct receiver *r, double *m)
{
	unsigned int most = 0;

	if (!r->codec)
		return;
	for (unsigned int i = 1; i < r->codec->modes; i++) {
		if (r->mode[i] > r->mode[most])
			most = i;
	}
	m[M_RATED] = (double)r->mode[most] / (double)r->packets;
	if (m[M_RATED] < RATED_MIN)
		return;
	m[M_IE] = r->codec->mode[most].ie;
	m[M_BPL] = r->codec->mode[most].bpl;
	m[M_R] = emodel_r(m[M_MOUTH_TO_EAR], m[M_IE], m[M_BPL], m[M_EFFECTIVE_LOSS],
			  m[M_BURST_RATIO]);
	if (!isnan(m[M_R]))
		m[M_MOS] = emodel_mos(m[M_R]);
}

/* No packet has come: nothing but counts. */
static void empty_metrics(const struct receiver *r, double *m)
{
	for (int i = M_PACKETS; i <= M_CE; i++)
		m[i] = 0;
	if (r->final) {
		m[M_LOST] = r->sent;
		m[M_NOT_SENT] = r->not_sent;
		if (r->sent)
			m[M_LOSS] = 1;
	}
	if (r->round_trip_min >= 0)
		m[M_ROUND_TRIP] = r->round_trip_min;
}

/**
 * receiver_metrics - all figures
 * @r:		receiver
 * @m:		METRICS of them; NAN: not known
 */
void receiver_metrics(const struct receiver *r, double *m)
{
	for (int i = 0; i < METRICS; i++)
		m[i] = NAN;
	if (!r->packets) {
		empty_metrics(r, m);
		return;
	}
	loss_metrics(r, m);
	delay_metrics(r, m);
	rating_metrics(r, m);
}
