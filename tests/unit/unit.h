/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Unit tests of the maths: TAP output, random test data, sample sizes.
 */
#ifndef _ABE_UNIT_H
#define _ABE_UNIT_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/types.h>

#define Q31	((long double)(1ULL << 31))
#define Q32	((long double)(1ULL << 32))
#define Q40	((long double)(1ULL << 40))

/* The sanitised build is slower by far and looks for other things. */
#ifdef UNIT_QUICK
#define UNIT_DIVISOR	10
#else
#define UNIT_DIVISOR	(getenv("LONG") ? 1 : 4)
#endif

static int unit_tests, unit_failures;

__attribute__((format(printf, 2, 3), unused))
static void ok(bool passed, const char *format, ...)
{
	va_list args;

	unit_failures += !passed;
	printf("%sok %d - ", passed ? "" : "not ", ++unit_tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

__attribute__((format(printf, 1, 2), unused))
static void note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* To be returned by main(). */
static inline int unit_end(void)
{
	printf("1..%d\n", unit_tests);
	return unit_failures ? 1 : 0;
}

/* How many samples to take where a long run takes @n. */
static inline u64 unit_samples(u64 n)
{
	return n / UNIT_DIVISOR;
}

/* splitmix64: test data that owe nothing to the generator under test. */
static inline u64 unit_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* 0 .. @most, equally likely. */
static inline u64 unit_upto(u64 *state, u64 most)
{
	u64 r = unit_random(state);

	return most == ~0ULL ? r : r % (most + 1);
}

/* 0 .. @most, every order of magnitude equally likely. */
static inline u64 unit_log_upto(u64 *state, u64 most)
{
	unsigned int bits = most ? 64 - __builtin_clzll(most) : 0;
	u64 r = unit_upto(state, bits);

	r = r ? unit_random(state) >> (64 - r) : 0;
	return r < most ? r : most;
}

static inline double unit_unit(u64 *state)
{
	return (unit_random(state) >> 11) * 0x1p-53;
}

static inline void unit_worst(long double *worst, long double error)
{
	if (!(error <= *worst))
		*worst = error;
}

#endif
