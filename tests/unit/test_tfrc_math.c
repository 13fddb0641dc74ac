// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of ccid/tfrc_math.h against long double: the throughput equation
 * (RFC 5348, 3.1), its inverse (6.3.1), the tables of RFC 4828, averages.
 */
#include "test_tfrc.h"

#define PINV_MOST	(TFRC_PINV_MAX << TFRC_PINV_SHIFT)
#define PINV_UNIT	((long double)TFRC_PINV_ONE)
#define RATE_UNIT	((long double)(1 << TFRC_RATE_SHIFT))

static u64 seed = 11;

static void test_sqrt(void)
{
	u64 i, bad = 0;

	for (i = 0; i < unit_samples(1000000); i++) {
		u64 x = unit_log_upto(&seed, U64_MAX);
		unsigned __int128 root;

		/* On both sides of a square, too. */
		if (i % 2) {
			root = unit_log_upto(&seed, U32_MAX);
			x = root * root - i / 2 % 2;
		}
		root = tfrc_sqrt(x);
		bad += root * root > x || (root + 1) * (root + 1) <= x;
	}
	ok(!bad, "sqrt: exact, rounded down");
	ok(tfrc_sqrt(0) == 0 && tfrc_sqrt(1) == 1 &&
	   tfrc_sqrt(U64_MAX) == U32_MAX, "sqrt: ends");
}

static long double f_error(u32 pinv)
{
	return fabsl(tfrc_f(pinv) / Q32 / ref_f(PINV_UNIT / pinv) - 1);
}

static void test_f(void)
{
	long double worst = 0;
	u64 bad = 0, p, x;
	u32 pinv;

	for (p = TFRC_PINV_ONE; p <= 256000000; p += 1 + p / 100000) {
		unit_worst(&worst, f_error(p));
		bad += tfrc_f(p + 1) > tfrc_f(p);
	}
	note("f(p): worst relative error %.2Le for p = 1e-6 .. 1", worst);
	ok(worst < 1e-4L, "f(p): within 0.01 %% for p = 1e-6 .. 1");
	for (; p <= PINV_MOST; p += 1 + p / 100000) {
		unit_worst(&worst, f_error(p));
		bad += tfrc_f(p + 1) > tfrc_f(p);
	}
	ok(worst < 1e-4L, "f(p): and down to p = 2^-24");
	ok(!bad, "f(p): never increases with 1/p");
	ok(tfrc_f(TFRC_PINV_NONE - 1) > 0 && tfrc_f(TFRC_PINV_NONE) > 0,
	   "f(p): positive for every 1/p");

	/* 6.3.1: the inverse gives a rate within 5 %. */
	worst = 0;
	bad = 0;
	for (x = 0; x < unit_samples(300000); x++) {
		long double f;
		u64 wanted;

		wanted = tfrc_f(PINV_MOST) +
			 unit_log_upto(&seed, tfrc_f(TFRC_PINV_ONE) -
				       tfrc_f(PINV_MOST));
		pinv = tfrc_pinv(wanted);
		f = ref_f(PINV_UNIT / pinv) * Q32;
		unit_worst(&worst, fabsl(wanted / f - 1));
		bad += tfrc_f(pinv) > wanted;
		bad += pinv > TFRC_PINV_ONE && tfrc_f(pinv - 1) <= wanted;
	}
	note("inverse: rate within %.3Lf %%", 100 * worst);
	ok(worst < 0.05L, "inverse: rate within 5 %% of the one wanted");
	ok(!bad, "inverse: the least 1/p that will do");
	ok(tfrc_pinv(0) == PINV_MOST && tfrc_pinv(1) == PINV_MOST,
	   "inverse: of no divisor the greatest 1/p");
	ok(tfrc_pinv(U64_MAX) == TFRC_PINV_ONE, "inverse: of the greatest 1");
}

static u32 random_rtt(void)
{
	return max_t(u32, unit_log_upto(&seed, TFRC_RTT_MAX), TFRC_RTT_MIN);
}

static u32 random_pinv(void)
{
	return TFRC_PINV_ONE + unit_log_upto(&seed, PINV_MOST - TFRC_PINV_ONE);
}

static void test_rate(void)
{
	static const u32 sizes[] = { 14, 536, 1460, 65535 };
	static const u32 rtts[] = { TFRC_RTT_MIN, 240000, TFRC_RTT_MAX };
	long double worst = 0;
	u64 i, bad = 0;
	u32 p;

	for (i = 0; i < unit_samples(2000000); i++) {
		u32 s = i % 3 ? 14 + unit_upto(&seed, 65521) :
				sizes[i / 3 % ARRAY_SIZE(sizes)];
		u32 rtt = i % 5 ? random_rtt() : rtts[i / 5 % ARRAY_SIZE(rtts)];
		long double want;

		p = random_pinv();
		want = s / (rtt * 1e-6L * ref_f(PINV_UNIT / p)) * RATE_UNIT;
		want = fminl(want, TFRC_RATE_MAX);
		unit_worst(&worst, (fabsl(tfrc_rate(s, rtt, p) - want) - 1) /
				   want);
		bad += tfrc_rate(s, rtt, p + 1) < tfrc_rate(s, rtt, p);
		bad += tfrc_rate(s, rtt + 1, p) > tfrc_rate(s, rtt, p);
		bad += tfrc_rate(s - 1, rtt, p) > tfrc_rate(s, rtt, p);
	}
	note("rate: worst relative error %.2Le", worst);
	ok(worst < 5e-4L, "rate: within 0.05 %% and a unit");
	ok(!bad, "rate: grows with 1/p and s, falls with R");

	for (p = TFRC_PINV_ONE, bad = 0; p < TFRC_PINV_NONE - p / 64; p += p / 64)
		for (i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(rtts); i++)
			bad += tfrc_rate(sizes[i % ARRAY_SIZE(sizes)],
					 rtts[i / ARRAY_SIZE(sizes)], p) >
			       TFRC_RATE_MAX;
	ok(!bad, "rate: never above the greatest");
	ok(tfrc_rate(65535, 100, TFRC_PINV_NONE) == TFRC_RATE_MAX &&
	   tfrc_rate(1, TFRC_RTT_MAX, TFRC_PINV_NONE) == TFRC_RATE_MAX,
	   "rate: p = 0 is no limit");
	ok(tfrc_rate(1460, 100000, 0) == tfrc_rate(1460, 100000, TFRC_PINV_ONE),
	   "rate: p is 1 at most");
}

/*
 * RFC 4828, 4.1, in KBps for a round trip of 100 ms. The sizes there leave
 * out 40 bytes of headers, which the rates include.
 */
struct row {
	double	p;
	double	rate[3];
};

static const struct row table1[] = {
	{ 0.00001, { 209.25, 2232.00, 5812.49 } },
	{ 0.00003, { 120.79, 1288.41, 3355.24 } },
	{ 0.00010, { 66.12, 705.25, 1836.58 } },
	{ 0.00030, { 38.10, 406.44, 1058.45 } },
	{ 0.00100, { 20.74, 221.23, 576.12 } },
	{ 0.00300, { 11.76, 125.49, 326.79 } },
	{ 0.01000, { 6.07, 64.75, 168.61 } },
	{ 0.03000, { 2.99, 31.90, 83.07 } },
	{ 0.10000, { 0.96, 10.21, 26.58 } },
	{ 0.20000, { 0.29, 3.09, 8.06 } },
	{ 0.30000, { 0.11, 1.12, 2.93 } },
	{ 0.40000, { 0.05, 0.48, 1.26 } },
	{ 0.50000, { 0.02, 0.24, 0.63 } },
};

static const struct row table2[] = {
	{ 0.00001, { 5.40, 57.60, 150.00 } },
	{ 0.00003, { 5.40, 57.60, 150.00 } },
	{ 0.00010, { 5.40, 57.60, 150.00 } },
	{ 0.00030, { 5.40, 57.60, 150.00 } },
	{ 0.00100, { 5.40, 57.60, 150.00 } },
	{ 0.00300, { 5.40, 57.60, 150.00 } },
	{ 0.01000, { 5.40, 57.60, 150.00 } },
	{ 0.03000, { 5.40, 57.60, 83.07 } },
	{ 0.10000, { 5.40, 26.58, 26.58 } },
	{ 0.20000, { 5.40, 8.06, 8.06 } },
	{ 0.30000, { 2.93, 2.93, 2.93 } },
	{ 0.40000, { 1.26, 1.26, 1.26 } },
	{ 0.50000, { 0.63, 0.63, 0.63 } },
};

static const struct row table3[] = {
	{ 0.0000001, { 284.76, 929.61, 1498.95 } },
	{ 0.0000003, { 164.39, 536.17, 863.16 } },
	{ 0.0000010, { 90.01, 292.64, 468.49 } },
	{ 0.0000030, { 51.92, 167.28, 263.68 } },
	{ 0.0000100, { 28.34, 88.56, 132.75 } },
	{ 0.0000300, { 16.21, 46.67, 61.70 } },
	{ 0.0001000, { 8.60, 19.20, 16.25 } },
	{ 0.0003000, { 4.56, 4.95, 1.70 } },
	{ 0.0010000, { 1.90, 0.37, 0.15 } },
	{ 0.0030000, { 0.52, 0.05, 0.06 } },
	{ 0.0100000, { 0.04, 0.02, 0.06 } },
	{ 0.0300000, { 0.00, 0.02, 0.06 } },
};

static const struct row table4[] = {
	{ 0.0000001, { 5.40, 57.60, 150.00 } },
	{ 0.0000003, { 5.40, 57.60, 150.00 } },
	{ 0.0000010, { 5.40, 57.60, 150.00 } },
	{ 0.0000030, { 5.40, 57.60, 150.00 } },
	{ 0.0000100, { 5.40, 57.60, 132.75 } },
	{ 0.0000300, { 5.40, 57.60, 61.70 } },
	{ 0.0001000, { 5.40, 50.00, 16.25 } },
	{ 0.0003000, { 5.40, 12.89, 1.70 } },
	{ 0.0010000, { 5.40, 0.95, 0.15 } },
	{ 0.0030000, { 5.40, 0.12, 0.06 } },
	{ 0.0100000, { 1.10, 0.06, 0.06 } },
	{ 0.0300000, { 0.13, 0.06, 0.06 } },
};

static void test_table(const char *name, const struct row *row, u32 rows,
		       bool bytes, bool sp)
{
	static const u32 payload[] = { 14, 536, 1460 };
	double worst = 0;
	u32 i, bad = 0;

	for (i = 0; i < rows * 3; i++) {
		u32 size = payload[i % 3] + 40, s = sp ? 1500 : size;
		double p = row[i / 3].p, want = row[i / 3].rate[i % 3];
		double got, error, near, far;
		u32 pinv;

		if (bytes)
			p = 1 - pow(1 - p, size);
		pinv = lrint(TFRC_PINV_ONE / p);
		got = tfrc_rate(s, 100000, pinv) / 64. / 1000;
		if (sp)
			got = fmin(got, size * 100 / 1000.);
		/* Printed digits, and those that 1/p has. */
		near = s / (.1 * ref_f(256. / (pinv + .5))) / 1000;
		far = s / (.1 * ref_f(256. / fmax(pinv - .5, 256))) / 1000;
		error = fabs(got - want) - .0051 - fabs(near - far);
		bad += error > .001 * want;
		worst = fmax(worst, error / want);
	}
	note("%s: worst error beyond the rounding %.4f %%", name, 100 * worst);
	ok(!bad, "RFC 4828, %s: within 0.1 %% and the rounding", name);
}

static void test_ewma(void)
{
	u64 i, bad = 0, outside = 0;
	double drift = 0, ref = 2400;
	u32 y = ref;

	for (i = 0; i < unit_samples(1000000); i++) {
		u32 avg = unit_log_upto(&seed, U32_MAX);
		u32 sample = unit_log_upto(&seed, U32_MAX);
		u32 weight = unit_upto(&seed, 10);
		u32 got = tfrc_ewma(avg, sample, weight);
		double want = avg ? (avg * (double)weight +
				     sample * (10. - weight)) / 10 : sample;

		bad += fabs(got - want) > 1;
		outside += avg && (got > max(avg, sample) ||
				   got < min(avg, sample));
	}
	ok(!bad, "ewma: within a unit");
	ok(!outside, "ewma: between its arguments");
	for (i = 0; i < 10000; i++) {
		u32 sample = 2000 + unit_upto(&seed, 800);

		y = tfrc_ewma(y, sample, 9);
		ref = .9 * ref + .1 * sample;
		drift += (y - ref) / 10000;
	}
	ok(fabs(drift) < 1, "ewma: no drift");
	ok(tfrc_ewma(0, 12345, 9) == 12345, "ewma: the first sample as it is");
	ok(tfrc_mean(0) == 1 && tfrc_mean(127) == 1 && tfrc_mean(160 << 8) == 160 &&
	   tfrc_mean((160 << 8) + 127) == 160 &&
	   tfrc_mean((160 << 8) + 128) == 161 &&
	   tfrc_mean(65535 << 8) == 65535, "mean: rounded, at least 1");
}

static void test_bytes(void)
{
	long double worst = 0;
	u64 i, bad = 0;

	for (i = 0; i < unit_samples(1000000); i++) {
		u64 bytes = unit_log_upto(&seed, 1ULL << 40), got;
		u64 ns = TFRC_RTT_MIN * USEC + unit_log_upto(&seed, 1ULL << 50);
		long double want = bytes * RATE_UNIT * 1e9L / ns;

		got = tfrc_bytes_rate(bytes, ns);
		bad += got > TFRC_RATE_MAX;
		/* Whole microseconds, of which 2^32 are the most. */
		if (want < TFRC_RATE_MAX && ns >> 32 < 1000)
			unit_worst(&worst, (fabsl(got - want) - 1) / want -
					   1000.L / (ns - 1000));
	}
	ok(!bad, "bytes_rate: never above the greatest");
	ok(worst < 1e-9L, "bytes_rate: within a unit and a microsecond");
	ok(tfrc_bytes_rate(14, SEC) == 14 << TFRC_RATE_SHIFT,
	   "bytes_rate: a small packet per long round trip is not nothing");
	ok(tfrc_bytes_rate(0, SEC) == 0, "bytes_rate: nothing");
	ok(tfrc_bytes_rate(1000000, SEC) == 64000000, "bytes_rate: 1 MB in 1 s");
	ok(tfrc_bytes_rate(1ULL << 40, TFRC_RTT_MIN * USEC) == TFRC_RATE_MAX,
	   "bytes_rate: the extreme");

	worst = 0;
	for (i = bad = 0; i < unit_samples(1000000); i++) {
		u32 bytes = unit_log_upto(&seed, 1 << 17);
		u64 x = unit_log_upto(&seed, TFRC_RATE_MAX), got;
		long double want = bytes * RATE_UNIT * 1e9L / (x ? x : 1);

		got = tfrc_spacing(bytes, x);
		want = fminl(want, TFRC_T_MBI * 1e9L);
		bad += got > TFRC_T_MBI * SEC;
		unit_worst(&worst, fabsl(got - want));
	}
	ok(!bad && worst <= 1, "spacing: within a nanosecond, at most 64 s");
	ok(tfrc_spacing(65536 * 2, 0) == 64 * SEC && tfrc_spacing(0, 0) == 0,
	   "spacing: no rate at all");
}

int main(void)
{
	test_sqrt();
	test_f();
	test_rate();
	test_table("Table 1", table1, ARRAY_SIZE(table1), false, false);
	test_table("Table 2", table2, ARRAY_SIZE(table2), false, true);
	test_table("Table 3", table3, ARRAY_SIZE(table3), true, false);
	test_table("Table 4", table4, ARRAY_SIZE(table4), true, true);
	test_ewma();
	test_bytes();
	return unit_end();
}
