// SPDX-License-Identifier: GPL-2.0
/*
 * Fixed-point arithmetic of kernel/abe_math.h against long double.
 */
#include "abe_math.h"
#include "unit.h"

static u64 seed = 1;

static void test_ratio_exact(void)
{
	u64 i, bad = 0;

	for (i = 0; i < unit_samples(2000000); i++) {
		unsigned int q = unit_upto(&seed, 63);
		u64 a = unit_log_upto(&seed, ~0ULL >> q);
		u64 b = unit_log_upto(&seed, ~0ULL);
		unsigned __int128 wide = (unsigned __int128)a << q;

		if (!b)
			b = 1;
		bad += abe_ratio(a, b, q) != (u64)(wide / b);
	}
	ok(!bad, "ratio: exact where a < 2^(64 - q)");
}

static void test_ratio_bound(void)
{
	u64 i, bad = 0, saturated = 0;

	for (i = 0; i < unit_samples(2000000); i++) {
		unsigned int q = unit_upto(&seed, 63);
		u64 a = unit_log_upto(&seed, ~0ULL);
		u64 b = unit_log_upto(&seed, ~0ULL);
		long double want = ldexpl(a, q) / b, share;
		u64 got = abe_ratio(a, b, q);
		unsigned int lost;

		if (!a || !b)
			continue;
		lost = 64 - __builtin_clzll(a) + q;
		lost = lost > 64 ? lost - 64 : 0;
		if (got == U64_MAX) {
			bad += want < 0x1p63L;
			saturated++;
			continue;
		}
		/* What b gave up, as a share of what is left of it. */
		share = (b & ((1ULL << lost) - 1)) / ldexpl(b >> lost, lost);
		bad += got > want * (1 + share) * (1 + 0x1p-60L);
		bad += got + 1 < want;
	}
	ok(!bad && saturated, "ratio: bound of the error beyond, saturation");
}

static void test_ratio_edges(void)
{
	ok(abe_ratio(0, 1, 63) == 0, "ratio: 0/1");
	ok(abe_ratio(1, 0, 0) == U64_MAX, "ratio: 1/0 saturates");
	ok(abe_ratio(U64_MAX, 0, 63) == U64_MAX, "ratio: max/0 saturates");
	ok(abe_ratio(U64_MAX, U64_MAX, 0) == 1, "ratio: max/max");
	ok(abe_ratio(U64_MAX, 1, 0) == U64_MAX, "ratio: max/1");
	ok(abe_ratio(U64_MAX, 1, 63) == U64_MAX, "ratio: max/1 in Q63");
	ok(abe_ratio(1, U64_MAX, 63) == 0, "ratio: 1/max in Q63");
	ok(abe_ratio(1, 3, 40) == (1ULL << 40) / 3, "ratio: 1/3 in Q40");
}

static long double log2_error(u64 x)
{
	return fabsl(abe_log2(x) / Q32 - log2l(x));
}

static void test_log2(void)
{
	long double worst = 0;
	u64 i, bad = 0;
	int bit;

	for (i = 0; i < unit_samples(1000000); i++) {
		u64 x = unit_log_upto(&seed, ~0ULL);

		unit_worst(&worst, log2_error(x ? x : 1));
	}
	for (bit = 0; bit < 64; bit++) {
		u64 x = 1ULL << bit;

		bad += abe_log2(x) != (s64)bit << 32;
		unit_worst(&worst, log2_error(x | 1));
		unit_worst(&worst, log2_error(x - (x > 1)));
		unit_worst(&worst, log2_error(x | (x - 1)));
	}
	note("log2: worst error 2^%.2Lf", log2l(worst));
	ok(worst < 0x1p-28L, "log2: error below 2^-28, 1 .. 2^64 - 1");
	ok(!bad, "log2: powers of two are exact");

	for (i = bad = 0; i < unit_samples(1000000); i++) {
		u64 x = 1 + unit_log_upto(&seed, U64_MAX - 2);

		bad += abe_log2(x + 1) < abe_log2(x);
	}
	ok(!bad, "log2: never decreases");
}

static void test_exp2_frac(void)
{
	long double worst = 0;
	u64 i, step = UNIT_DIVISOR * 2003, bad = 0;
	u32 last = 0;

	for (i = 0; i <= U32_MAX; i += step) {
		u32 got = abe_exp2_frac(i);

		unit_worst(&worst,
			   fabsl(got / Q31 / exp2l(i / Q32) - 1));
		bad += got < 1U << 31;
	}
	for (i = 0; i < 200001; i++) {
		u32 f = i < 100000 ? 0x80000000 - 50000 + i :
				     U32_MAX - (200000 - i);

		unit_worst(&worst, fabsl(abe_exp2_frac(f) / Q31 /
					 exp2l(f / Q32) - 1));
		if (i != 100000)
			bad += abe_exp2_frac(f) + 256U < last;
		last = abe_exp2_frac(f);
	}
	note("exp2_frac: worst relative error %.2Le", worst);
	ok(worst < 2e-7L, "exp2_frac: relative error below 2e-7");
	ok(!bad, "exp2_frac: within [1, 2), no step at one half");
	ok(abe_exp2_frac(0) == 1U << 31, "exp2_frac: 2^0 is exact");
}

static void test_exp2(void)
{
	u64 i, bad = 0;

	for (i = 0; i < unit_samples(1000000); i++) {
		unsigned int q = unit_upto(&seed, 31);
		s64 y = (s64)unit_upto(&seed, 140ULL << 32) - (70LL << 32);
		long double want = exp2l(y / Q32 + q);
		u64 got = abe_exp2(y, q);

		if (got == U64_MAX)
			bad += want < 0x1p62L;
		else
			bad += fabsl(got - want) > 1 + want * 2e-7L;
	}
	ok(!bad, "exp2: relative error below 2e-7 and one unit");
	for (i = bad = 0; i < 63; i++) {
		bad += abe_exp2((s64)i << 32, 0) != 1ULL << i;
		if (i < 32)
			bad += abe_exp2(-(s64)i * (1LL << 32), 31) !=
			       1ULL << (31 - i);
	}
	ok(!bad, "exp2: whole powers are exact");
	ok(abe_exp2(S64_MAX, 31) == U64_MAX && abe_exp2(S64_MAX, 0) == U64_MAX,
	   "exp2: the largest exponent saturates");
	ok(abe_exp2(-S64_MAX - 1, 31) == 0 && abe_exp2(-S64_MAX - 1, 0) == 0,
	   "exp2: the smallest exponent gives 0");
	ok(abe_exp2(-(33LL << 32), 31) == 0, "exp2: below the resolution is 0");
	for (i = bad = 0; i < unit_samples(200000); i++) {
		u64 x = 1 + unit_log_upto(&seed, 1ULL << 46);
		u64 got = abe_exp2(abe_log2(x), 16);

		bad += fabsl(ldexpl(got, -16) / x - 1) > 3e-7L + 0x1p-16L / x;
	}
	ok(!bad, "exp2: undoes log2");
}

static void test_ewma(void)
{
	static const u32 gammas[] = {
		0, 1, ABE_Q31_ONE / 5 * 2, ABE_Q31_ONE / 5 * 4,
		ABE_Q31_ONE - 1, ABE_Q31_ONE
	};
	u64 i, bad = 0, outside = 0, y = 0;
	long double ref = 0;

	for (i = 0; i < unit_samples(2000000); i++) {
		u64 old = unit_log_upto(&seed, ~0ULL >> 1);
		u64 new = unit_log_upto(&seed, ~0ULL >> 1);
		u32 gamma = i % 2 ? unit_upto(&seed, ABE_Q31_ONE) :
				    gammas[i / 2 % ARRAY_SIZE(gammas)];
		long double g = gamma / Q31;
		long double want = g * old + (1 - g) * new;
		u64 got = abe_ewma(old, new, gamma);

		bad += fabsl(got - want) > 2 + want * 0x1p-60L;
		outside += got > max(old, new);
		outside += got + 1 < min(old, new);
	}
	ok(!bad, "ewma: within two units of gamma*old + (1 - gamma)*new");
	ok(!outside, "ewma: between its arguments");
	ok(abe_ewma(12345, 67890, 0) == 67890, "ewma: gamma 0 is the sample");
	ok(abe_ewma(12345, 67890, ABE_Q31_ONE) == 12345,
	   "ewma: gamma 1 is the old value");
	for (i = 0; i < 1000; i++) {
		u64 sample = unit_upto(&seed, 1ULL << 40);

		y = abe_ewma(y, sample, gammas[3]);
		ref = 0.8L * ref + 0.2L * sample;
	}
	ok(fabsl(y - ref) < 1e-6L * ref, "ewma: no drift in 1000 steps");
}

int main(void)
{
	test_ratio_exact();
	test_ratio_bound();
	test_ratio_edges();
	test_log2();
	test_exp2_frac();
	test_exp2();
	test_ewma();
	return unit_end();
}
