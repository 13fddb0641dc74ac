/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixed-point arithmetic of the Alternative Best-Effort qdisc.
 *
 * Pure functions over integers: no skb, no lock, no clock. They are compiled
 * into the module and, with tools/testbed/shim, into the user-space tests that
 * compare them with floating point.
 *
 * Formats: Q31 is a fraction of which 1 << 31 is one (u32 or u64); Q16.16
 * and Q32.32 are what they say; "log2" values are s64 with 32 fraction bits.
 */
#ifndef _ABE_MATH_H
#define _ABE_MATH_H

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/types.h>

#define ABE_Q31_ONE	0x80000000U

/**
 * abe_ratio() - a/b as a fixed-point number
 * @a: dividend
 * @b: divisor; 0 saturates the result unless @a is 0 as well
 * @q: fraction bits of the result, at most 63
 *
 * Where @a << @q does not fit into 64 bits the divisor gives up its lowest
 * bits instead. The relative error is then below b's share of them, and zero
 * where @a < 2^(64 - q).
 *
 * Return: floor(@a * 2^@q / @b), U64_MAX when that is out of range or close.
 */
static inline u64 abe_ratio(u64 a, u64 b, unsigned int q)
{
	unsigned int room;

	if (!a)
		return 0;
	room = 64 - fls64(a);
	if (q > room) {
		a <<= room;
		b >>= q - room;
	} else {
		a <<= q;
	}
	return b ? div64_u64(a, b) : U64_MAX;
}

/**
 * abe_mul_q31() - product with a fraction
 * @a: factor
 * @b: factor, Q31 in [0, 1]
 *
 * Return: floor(@a * @b).
 */
static inline s64 abe_mul_q31(s64 a, s64 b)
{
#ifdef __SIZEOF_INT128__
	return (__int128)a * b >> 31;
#else
	return (a >> 31) * b + ((a & S32_MAX) * b >> 31);
#endif
}

/**
 * abe_log2() - binary logarithm
 * @x: argument, at least 1
 *
 * One fraction bit per squaring of the mantissa (Q31 in [1, 2), so a square
 * is below 2^64); 32 squarings. Truncation costs less than 2^-28.
 *
 * Return: log2(@x) with 32 fraction bits.
 */
static inline s64 abe_log2(u64 x)
{
	unsigned int top = fls64(x) - 1;
	u64 m = top > 31 ? x >> (top - 31) : x << (31 - top);
	u64 frac = 0;
	int i;

	for (i = 0; i < 32; i++) {
		m = (m * m) >> 31;
		frac <<= 1;
		if (m >> 32) {
			m >>= 1;
			frac |= 1;
		}
	}
	return ((s64)top << 32) | frac;
}

/**
 * abe_exp2_frac() - 2^f for a fraction f
 * @f: exponent in [0, 1), 32 fraction bits
 *
 * Taylor's series to the sixth power in f*ln 2 for f below one half; the
 * upper half goes through sqrt(2). Relative error below 2e-7.
 *
 * Return: 2^@f as Q31 in [1, 2).
 */
static inline u32 abe_exp2_frac(u32 f)
{
	/* ln(2)^k / k! as Q31, k = 6 .. 0 */
	static const u32 c[] = {
		330788, 2863360, 20654775, 119194166,
		515882496, 1488522236, 1U << 31,
	};
	u64 x = f >> 1, sum = 0;	/* x: Q31, below 1/2 from here on */
	bool upper = f >> 31;
	unsigned int i;

	if (upper)
		x -= 1U << 30;
	for (i = 0; i < ARRAY_SIZE(c); i++)
		sum = ((sum * x) >> 31) + c[i];	/* sum < 2^32, x < 2^30 */
	if (upper)
		sum = (sum * 3037000500ULL) >> 31;	/* sqrt(2) as Q31 */
	return min_t(u64, sum, U32_MAX);
}

/**
 * abe_exp2() - power of two
 * @y: exponent with 32 fraction bits
 * @q: fraction bits of the result, at most 31
 *
 * Return: 2^@y with @q fraction bits, rounded, 0 when it is below the
 * resolution, U64_MAX when it does not fit.
 */
static inline u64 abe_exp2(s64 y, unsigned int q)
{
	s64 shift = (y >> 32) + (s64)q - 31;
	u64 m = abe_exp2_frac(lower_32_bits(y));

	if (shift > 31)
		return U64_MAX;
	if (shift >= 0)
		return m << shift;
	if (shift < -32)
		return 0;
	return (m + (1ULL << (-shift - 1))) >> -shift;
}

/**
 * abe_ewma() - one step of an exponentially weighted moving average
 * @old:   y(n-1), below 2^63
 * @new:   the sample, same format
 * @gamma: weight of the old value, Q31 in [0, 1]
 *
 * Return: gamma * y(n-1) + (1 - gamma) * sample, [ABE99] 4.3.
 */
static inline u64 abe_ewma(u64 old, u64 new, u32 gamma)
{
	return mul_u64_u32_shr(old, gamma, 31) +
	       mul_u64_u32_shr(new, ABE_Q31_ONE - gamma, 31);
}

#endif /* _ABE_MATH_H */
