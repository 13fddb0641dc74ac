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

/**
 * struct losses - what the listener did not hear
 * @total:	frames, of whatever cause
 * @bursts:	runs of them
 * @unsent:	those that the sender could not send, as far as seen
 */
struct losses {
	__u64	total;
	__u64	bursts;
	__u64	unsent;
};

static int by_seq(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

int by_value(const void *a, const void *b)
{
	__s64 x = *(const __s64 *)a, y = *(const __s64 *)b;

	return (x > y) - (x < y);
}

/* The smallest value that at least the share @q of the sorted values do not exceed, in ms. */
double quantile(const __s64 *sorted, size_t n, double q)
{
	size_t i = (size_t)ceil(q * (double)n);

	return (double)sorted[i ? i - 1 : 0] / NSEC_PER_MSEC;
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

/* @sorted: the packets by number, @end: first number that was not sent. */
static struct losses find_losses(const struct receiver *r, const struct arrival *sorted,
				 __u64 end)
{
	struct losses l = { 0 };
	__u64 run = 0, unsent;
	__u32 next = r->seq.base;

	for (size_t i = 0; i < r->packets; i++) {
		const struct arrival *a = &sorted[i];

		unsent = i ? unsent_between(r, &sorted[i - 1], a) : 0;
		l.unsent += unsent;
		run += a->seq - next + unsent + a->late;
		next = a->seq + 1;
		if (run && !a->late) {
			l.total += run;
			l.bursts++;
			run = 0;
		}
	}
	run += end > next ? end - next : 0;
	l.total += run;
	l.bursts += run > 0;
	return l;
}

static void loss_metrics(const struct receiver *r, const struct arrival *sorted, double *m)
{
	__u64 expected = r->final ? r->sent : r->seq.max - r->seq.base + 1;
	struct losses l = find_losses(r, sorted, r->seq.base + expected);
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
 * @d: sorted delays. Without a common clock only what is relative to the
 * smallest delay means anything. A clock that is off shows when packets take
 * less than nothing, or much longer than the round trip.
 */
static void delay_metrics(const struct receiver *r, const __s64 *d, double *m)
{
	size_t n = r->packets;
	double sum = 0, base = quantile(d, n, 0);
	bool apart;

	m[M_VARIATION_MEDIAN] = quantile(d, n, 0.5) - base;
	m[M_VARIATION_P99] = quantile(d, n, 0.99) - base;
	m[M_VARIATION_MAX] = quantile(d, n, 1) - base;
	m[M_JITTER] = r->jitter.jitter / NSEC_PER_MSEC;
	m[M_JITTER_MAX] = r->jitter_max / NSEC_PER_MSEC;
	m[M_BUFFER] = r->playout.sum / (double)n / NSEC_PER_MSEC - base;
	if (r->round_trip_min >= 0)
		m[M_ROUND_TRIP] = r->round_trip_min;

	apart = r->unstamped || base < -1 ||
		(r->round_trip_min >= 0 && base > 1.5 * r->round_trip_min + APART_MS);
	if (apart) {
		base = m[M_ROUND_TRIP] / 2;
	} else {
		for (size_t i = 0; i < n; i++)
			sum += (double)d[i];
		m[M_DELAY_MIN] = base;
		m[M_DELAY_MEDIAN] = quantile(d, n, 0.5);
		m[M_DELAY_P99] = quantile(d, n, 0.99);
		m[M_DELAY_MAX] = quantile(d, n, 1);
		m[M_DELAY_MEAN] = sum / (double)n / NSEC_PER_MSEC;
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
 *
 * Return: false if memory is short.
 */
bool receiver_metrics(const struct receiver *r, double *m)
{
	struct arrival *sorted;
	__s64 *delays;

	for (int i = 0; i < METRICS; i++)
		m[i] = NAN;
	if (!r->packets) {
		empty_metrics(r, m);
		return true;
	}
	sorted = malloc(r->packets * sizeof(*sorted));
	delays = malloc(r->packets * sizeof(*delays));
	if (sorted && delays) {
		memcpy(sorted, r->arrival, r->packets * sizeof(*sorted));
		qsort(sorted, r->packets, sizeof(*sorted), by_seq);
		for (size_t i = 0; i < r->packets; i++)
			delays[i] = r->arrival[i].delay;
		qsort(delays, r->packets, sizeof(*delays), by_value);
		loss_metrics(r, sorted, m);
		delay_metrics(r, delays, m);
		rating_metrics(r, m);
	}
	free(sorted);
	free(delays);
	return sorted && delays;
}
