/* SPDX-License-Identifier: GPL-2.0 */
/* RFC 5348 in floating point, for the tests of TFRC. */
#ifndef _TEST_TFRC_H
#define _TEST_TFRC_H

#include "include/uapi/linux/dccp_tfrc.h"
#include "tfrc_rx.h"
#include "tfrc_tx.h"
#include "unit.h"

#define SEC	1000000000ULL
#define MSEC	1000000ULL
#define USEC	1000ULL

#define SEQ(n)	((n) & RATE_SEQ_MASK)

/* 3.1: X = s / (R * f(p)) with t_RTO = 4R, b = 1. */
__attribute__((unused))
static long double ref_f(long double p)
{
	return sqrtl(2 * p / 3) + 12 * sqrtl(3 * p / 8) * p * (1 + 32 * p * p);
}

/* 5.4 and 5.5: intervals and their discount factors, the current one first. */
struct ref_history {
	double	i[TFRC_NINTERVAL + 1];
	double	df[TFRC_NINTERVAL + 1];
	u32	k;		/* greatest index; 0 before the first event */
};

static double ref_weight(u32 i)
{
	const double n = TFRC_NINTERVAL;

	return i < n / 2 ? 1 : 2 * (n - i) / (n + 2);
}

/* I_mean over I_1 to I_k. */
static double ref_closed(const struct ref_history *h)
{
	double total = 0, weight = 0;
	u32 i;

	for (i = 1; i <= h->k; i++) {
		total += h->i[i] * ref_weight(i - 1) * h->df[i];
		weight += ref_weight(i - 1) * h->df[i];
	}
	return total / weight;
}

static double ref_df(const struct ref_history *h, bool discount)
{
	double mean;

	if (!discount || !h->k)
		return 1;
	mean = ref_closed(h);
	return h->i[0] > 2 * mean ? fmax(2 * mean / h->i[0], 0.25) : 1;
}

/* A loss event: the current interval becomes I_1. */
__attribute__((unused))
static void ref_push(struct ref_history *h, bool discount)
{
	double df = ref_df(h, discount);
	u32 i;

	for (i = 1; i <= TFRC_NINTERVAL; i++)
		h->df[i] *= df;
	for (i = TFRC_NINTERVAL; i; i--) {
		h->i[i] = h->i[i - 1];
		h->df[i] = h->df[i - 1];
	}
	h->i[0] = 1;
	h->df[0] = 1;
	if (h->k < TFRC_NINTERVAL)
		h->k++;
}

/* 1/p. With @skip as RFC 4828, 3 has it for a short current interval. */
__attribute__((unused))
static double ref_mean(const struct ref_history *h, bool skip, bool discount)
{
	double df = ref_df(h, discount), total = h->i[0], weight = 1;
	u32 i;

	for (i = 1; i < h->k; i++) {
		total += h->i[i] * ref_weight(i) * h->df[i] * df;
		weight += ref_weight(i) * h->df[i] * df;
	}
	return skip ? ref_closed(h) : fmax(ref_closed(h), total / weight);
}

#endif
