// SPDX-License-Identifier: GPL-2.0
/* The average loss interval (RFC 5348, 5.4 and 5.5). */

#include "tfrc_loss.h"

#define DF_THRESHOLD	(TFRC_DF_ONE / 4)

/* Five times w_0 to w_7. */
static const u8 weights[TFRC_NINTERVAL] = { 5, 5, 5, 5, 4, 3, 2, 1 };

/* Of i[1] on: the weighted average. A weight has 15 bits, a length 32. */
static u32 loss_closed_mean(const struct tfrc_history *h)
{
	u64 total = 0, weight = 0;
	u32 i;

	for (i = 1; i < h->n; i++) {
		u32 w = weights[i - 1] * h->i[i].df;

		total += (u64)h->i[i].length * w;
		weight += w;
	}
	return weight ? div64_u64(total, weight) : 0;
}

/* DF: how much less the older intervals count beside a long current one. */
static u32 loss_discount_factor(const struct tfrc_history *h, u32 mean)
{
	u64 df;

	if (h->i[0].length <= 2ULL * mean)
		return TFRC_DF_ONE;
	df = div_u64(2ULL * mean * TFRC_DF_ONE, h->i[0].length);
	return max_t(u32, df, DF_THRESHOLD);
}

/**
 * tfrc_history_push() - begin a new interval
 * @h: history; the length of its current interval has its final value
 * @discount: history discounting is on
 *
 * The oldest interval is forgotten. The caller fills in h->i[0].
 */
void tfrc_history_push(struct tfrc_history *h, bool discount)
{
	u32 df = TFRC_DF_ONE, i;

	if (discount && h->n > 1)
		df = loss_discount_factor(h, loss_closed_mean(h));
	if (h->n <= TFRC_NINTERVAL)
		h->n++;
	for (i = h->n - 1; i; i--) {
		h->i[i] = h->i[i - 1];
		if (i > 1)
			h->i[i].df = h->i[i].df * df / TFRC_DF_ONE;
	}
	h->i[0] = (struct tfrc_interval){ .df = TFRC_DF_ONE };
}

/**
 * tfrc_history_pinv() - inverse of the loss event rate
 * @h: history
 * @skip_current: leave the current interval out, RFC 4828, 3
 * @discount: history discounting is on
 *
 * The current interval counts only if that makes the average greater.
 *
 * Return: 1/p, Q24.8, at least one packet; TFRC_PINV_NONE before the first
 * loss event.
 */
u32 tfrc_history_pinv(const struct tfrc_history *h, bool skip_current,
		      bool discount)
{
	u64 total, weight;
	u32 mean, df, i;

	if (h->n < 2)
		return TFRC_PINV_NONE;
	mean = loss_closed_mean(h);
	if (!skip_current) {
		df = discount ? loss_discount_factor(h, mean) : TFRC_DF_ONE;
		weight = weights[0] * TFRC_DF_ONE;
		total = h->i[0].length * weight;
		/* With fewer than n closed intervals the last one's place in
		 * the sum is the current one's, RFC 5348, 5.4.
		 */
		for (i = 1; i < h->n - 1; i++) {
			u32 w = weights[i] * h->i[i].df * df / TFRC_DF_ONE;

			total += (u64)h->i[i].length * w;
			weight += w;
		}
		mean = max_t(u32, mean, div64_u64(total, weight));
	}
	return max(mean, TFRC_PINV_ONE);
}
