/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Integer arithmetic of TCP-Friendly Rate Control.
 *
 * Pure functions: no socket, no clock. They are compiled into the module and,
 * with tools/testbed/shim, into the user-space tests that compare them with
 * floating point.
 *
 * Formats:
 *   rate   u64, bytes per second with 6 fraction bits, as in struct
 *          tfrc_tx_info; TFRC_RATE_MAX stands for "no limit"
 *   pinv   u32 Q24.8, 1/p: packets per loss event. TFRC_PINV_NONE is p = 0
 *   time   u64, nanoseconds; round-trip times are u32, microseconds
 */
#ifndef _TFRC_MATH_H
#define _TFRC_MATH_H

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

#define TFRC_RATE_SHIFT		6
#define TFRC_RATE_MAX		0x40000000000ULL	/* 64 GiB/s */

#define TFRC_PINV_SHIFT		8
#define TFRC_PINV_ONE		0x100U
#define TFRC_PINV_MAX		((1U << 24) - 1)	/* packets */
#define TFRC_PINV_NONE		U32_MAX

/* Round-trip times that a sample may have, us. */
#define TFRC_RTT_MIN		100U
#define TFRC_RTT_MAX		16000000U
#define TFRC_RTT_FALLBACK	200000U		/* RFC 4340, 3.4 */
#define TFRC_RTT_UNTOLD		500000U		/* RFC 6323, 3.4 */

#define TFRC_NSEC_PER_SEC	1000000000ULL
#define TFRC_T_MBI		64		/* s, RFC 5348, 4.3 */

/**
 * tfrc_sqrt() - square root of a fraction
 * @x: Q0.64
 *
 * One bit of the result per step, from the top.
 *
 * Return: sqrt(@x), Q0.32, rounded down.
 */
static inline u32 tfrc_sqrt(u64 x)
{
	u64 root = 0, bit;

	for (bit = 1ULL << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

/**
 * tfrc_f() - the throughput equation's divisor
 * @pinv: 1/p, Q24.8, at least TFRC_PINV_ONE and not TFRC_PINV_NONE
 *
 * RFC 5348, 3.1 with t_RTO = 4R and b = 1 has X = s / (R * f(p)) with
 * f(p) = sqrt(2p/3) + 12 * sqrt(3p/8) * p * (1 + 32p^2). As 3/8 is 9/16 of
 * 2/3, that is f(p) = sqrt(2p/3) * (1 + 9p + 288p^3).
 *
 * 2^65 / 3 is (2/3) in Q64. Of p as Q20 the error is under 2^-20, times 9
 * against 1; the cube is taken in steps that stay below 2^50.
 *
 * Return: f(p), Q32: from 2.0e-4 for the greatest @pinv to 243.3 for p = 1.
 */
static inline u64 tfrc_f(u32 pinv)
{
	u64 root = tfrc_sqrt(div64_u64(12297829382473034410ULL, pinv) << 8);
	u64 p = 0x10000000U / pinv;			/* Q20 */
	u64 g = (1ULL << 20) + 9 * p + ((288 * ((p * p) >> 20) * p) >> 20);

	return (root * g) >> 20;			/* 2^32 * 2^29 at most */
}

/**
 * tfrc_rate() - the throughput equation
 * @s: segment size, bytes, at most 65535
 * @rtt: round-trip time, us, at least TFRC_RTT_MIN
 * @pinv: 1/p, Q24.8
 *
 * The first quotient, bytes per round trip in Q16, is below 2^64 / 2^17.
 *
 * Return: the rate.
 */
static inline u64 tfrc_rate(u32 s, u32 rtt, u32 pinv)
{
	u64 x;

	if (pinv == TFRC_PINV_NONE)
		return TFRC_RATE_MAX;
	x = div64_u64((u64)s << 48, tfrc_f(max(pinv, TFRC_PINV_ONE)));
	x = mul_u64_u32_div(x, 1000000, rtt) >> (16 - TFRC_RATE_SHIFT);
	return min(x, TFRC_RATE_MAX);
}

/**
 * tfrc_pinv() - the throughput equation solved for 1/p
 * @f: s / (R * X), Q32
 *
 * By bisection; f(p) falls as 1/p grows.
 *
 * Return: the least 1/p, Q24.8, with f(p) <= @f, so the rate is not below
 * the one asked for by more than the last digit.
 */
static inline u32 tfrc_pinv(u64 f)
{
	u32 low = TFRC_PINV_ONE, high = TFRC_PINV_MAX << TFRC_PINV_SHIFT;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (tfrc_f(mid) <= f)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/**
 * tfrc_ewma() - exponentially weighted moving average
 * @avg: average so far; 0 before the first sample
 * @sample: new value
 * @weight: of the old average, in tenths
 *
 * Return: the new average, rounded, for what is cut off adds up to ten times
 * as much.
 */
static inline u32 tfrc_ewma(u32 avg, u32 sample, u32 weight)
{
	if (!avg)
		return sample;
	return div_u64((u64)avg * weight + (u64)sample * (10 - weight) + 5, 10);
}

/* A mean size, Q24.8, as a size that one can divide by. */
static inline u32 tfrc_mean(u32 mean)
{
	return max((mean + 128) >> 8, 1U);
}

/**
 * tfrc_bytes_rate() - bytes in a time
 * @bytes: at most 2^40
 * @ns: time they took, at least TFRC_RTT_MIN; beyond 2^32 us it counts as that
 *
 * Return: the rate.
 */
static inline u64 tfrc_bytes_rate(u64 bytes, u64 ns)
{
	u32 us = min_t(u64, div_u64(ns, 1000), U32_MAX);

	return min(mul_u64_u32_div(bytes << TFRC_RATE_SHIFT, 1000000, us),
		   TFRC_RATE_MAX);
}

/**
 * tfrc_window_rate() - a window in each round trip
 * @window: packets, Q24.8, below 2^28
 * @s: bytes of each, at most 65535
 * @rtt: round-trip time, us, at least TFRC_RTT_MIN
 *
 * Return: the rate.
 */
static inline u64 tfrc_window_rate(u32 window, u32 s, u32 rtt)
{
	u64 x = mul_u64_u32_div((u64)window * s, 1000000, rtt);

	return min(x >> (8 - TFRC_RATE_SHIFT), TFRC_RATE_MAX);
}

/**
 * tfrc_spacing() - time that bytes take at a rate
 * @bytes: at most 2^17
 * @x: rate; 0 counts as the least
 *
 * Return: ns, at most TFRC_T_MBI.
 */
static inline u64 tfrc_spacing(u32 bytes, u64 x)
{
	u64 ns = div64_u64(((u64)bytes << TFRC_RATE_SHIFT) * TFRC_NSEC_PER_SEC,
			   max(x, 1ULL));

	return min(ns, TFRC_T_MBI * TFRC_NSEC_PER_SEC);
}

#endif
