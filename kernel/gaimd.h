/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window of general additive-increase multiplicative-decrease (GAIMD).
 *
 * In congestion avoidance the window grows by alpha packets for each window of
 * packets acknowledged, and a loss leaves beta of it ([TRANS00] 3.1; Yang and Lam,
 * "General AIMD Congestion Control", ICNP 2000). TCP has alpha 1 and beta 1/2.
 *
 * Pure functions over integers, compiled into the module and into the user-space
 * tests. alpha and beta are in thousandths.
 *
 * What has been acknowledged since the window grew last is kept as a credit, in
 * thousandths of packets times alpha: 1000 * cwnd of it are one packet more. With
 * alpha 0.31 that takes three round trips, so the credit counts as a fraction of a
 * packet when the window is reduced. Without, with a loss every few round trips, the
 * window would stay a third too small.
 */
#ifndef _GAIMD_H
#define _GAIMD_H

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

#define GAIMD_ONE	1000	/* alpha or beta of 1 */

/**
 * gaimd_friendly() - the alpha that makes a beta as fast as TCP
 * @beta: 0 to 1000
 *
 * 4 (1 - beta^2) / 3, from the rate of TCP with time-outs (Yang and Lam).
 *
 * Return: alpha, rounded to the nearest: 1000 for 500, 313 for 875.
 */
static inline u32 gaimd_friendly(u32 beta)
{
	return (4 * (GAIMD_ONE * GAIMD_ONE - beta * beta) + 3 * GAIMD_ONE / 2) / (3 * GAIMD_ONE);
}

/**
 * gaimd_acked() - the window after packets were acknowledged, in congestion avoidance
 * @cwnd: the window before, in packets, at least 1
 * @credit: in and out; afterwards below 1000 * @cwnd
 * @acked: packets acknowledged
 * @alpha: 0 to 1000
 *
 * With @alpha 1000 this is what tcp_cong_avoid_ai() does. So a credit that was
 * collected under a larger window, which TCP made smaller without a loss, is good for
 * one packet.
 *
 * Return: the new window, in packets.
 */
static inline u32 gaimd_acked(u32 cwnd, u64 *credit, u32 acked, u32 alpha)
{
	u64 price = (u64)cwnd * GAIMD_ONE;

	if (*credit >= price) {
		*credit = 0;
		cwnd++;
	}
	*credit += (u64)acked * alpha;
	if (*credit >= price) {
		u64 more = div64_u64(*credit, price);

		*credit -= more * price;
		cwnd += more;
	}
	return cwnd;
}

/**
 * gaimd_reduce() - what a loss leaves of the window
 * @cwnd: the window before, in packets, at least 1
 * @credit: see gaimd_acked()
 * @beta: 0 to 1000
 *
 * Return: floor(@beta * (@cwnd + what @credit is worth, less than a packet)), in
 * packets, but 2 at least.
 */
static inline u32 gaimd_reduce(u32 cwnd, u64 credit, u32 beta)
{
	u64 part = min_t(u64, div_u64(credit, cwnd), GAIMD_ONE - 1);
	u64 left = ((u64)cwnd * GAIMD_ONE + part) * beta;

	return max_t(u64, div_u64(left, GAIMD_ONE * GAIMD_ONE), 2);
}

#endif /* _GAIMD_H */
