// SPDX-License-Identifier: GPL-2.0
/*
 * First stage of kernel/abe_red.h without the spacing: average queue, blue
 * probability, Adaptive RED, ageing; and the generator of the drop decisions.
 *
 * The reference is long double, from [BIAS00] Eqs. (1) and (3), Floyd,
 * "gentle" RED (2000), and Floyd, Gummadi, Shenker, Adaptive RED (2001).
 */
#include "abe_red.h"
#include "unit.h"

static u64 seed = 2;

static long double ref_probability(long double avg, long double min,
				   long double max, long double p, bool gentle)
{
	if (avg < min)
		return 0;
	if (avg < max)
		return p * (avg - min) / (max - min);
	if (!gentle || avg >= 2 * max)
		return 1;
	return p + (1 - p) * (avg - max) / max;
}

static void test_average(void)
{
	u64 i, bad = 0, outside = 0, instant = 0;
	long double worst = 0;

	for (i = 0; i < unit_samples(3000000); i++) {
		u64 avg = unit_log_upto(&seed, U64_MAX >> 1);
		u64 queue = unit_log_upto(&seed, (1ULL << 31) - 1);
		u32 weight = i % 2 ? 1U << unit_upto(&seed, 31) :
				     1 + unit_upto(&seed, ABE_Q31_ONE - 1);
		long double target = queue * Q32;
		long double want = avg + weight / Q31 * (target - avg);
		u64 got = abe_red_average(avg, queue, weight);

		unit_worst(&worst, fabsl(got - want));
		outside += got > max(avg, queue << 32);
		outside += got < min(avg, queue << 32);
		bad += queue << 32 != avg && weight == ABE_Q31_ONE &&
		       got != queue << 32;
		instant += abe_red_average(avg, queue, ABE_Q31_ONE) !=
			   queue << 32;
	}
	note("average: worst error %.3Lf units of 2^-32", worst);
	ok(worst < 1.01L, "average: one step within 2^-32");
	ok(!outside, "average: moves towards the queue, never beyond");
	ok(!bad && !instant, "average: weight 1 is the queue itself");
}

/* From 0 towards a constant queue: queue * (1 - (1 - w)^m) after m packets. */
static void test_average_run(void)
{
	static const struct {
		u32 weight;
		u64 queue;
		unsigned int packets;
	} runs[] = {
		{ 1, (1ULL << 30) - 1, 100000 },
		{ 2, 1, 100000 },
		{ ABE_Q31_ONE / 500, 25, 5000 },
		{ ABE_Q31_ONE / 500, 1000000, 500 },
		{ ABE_Q31_ONE / 2, 1 << 30, 40 },
		{ 1700, 1250000, 1000000 },
	};
	unsigned int i, m, bad = 0, stuck = 0;

	for (i = 0; i < ARRAY_SIZE(runs); i++) {
		long double w = runs[i].weight / Q31, want;
		u64 avg = 0;

		for (m = 0; m < runs[i].packets; m++)
			avg = abe_red_average(avg, runs[i].queue,
					      runs[i].weight);
		want = runs[i].queue * Q32 * -expm1l(m * log1pl(-w));
		/* Each step loses less than a unit, and w of that a step. */
		if (want - avg > m || avg > want * (1 + 1e-12L))
			bad++;
		for (m = 0; m < 200; m++)
			avg = abe_red_average(avg, 0, ABE_Q31_ONE / 2);
		stuck += avg > 2;
	}
	ok(!bad, "average: approaches a constant queue with (1 - w)^m");
	ok(!stuck, "average: falls back to zero");
}

struct red_case {
	struct abe_red red;
	u64 min;
	u64 max;
};

/* Thresholds 0 .. 2^30, P from one unit to 1. */
static void random_red(struct red_case *c)
{
	static const u32 probs[] = {
		1, 2, ABE_Q31_ONE / 100, ABE_Q31_ONE / 20 * 3,
		ABE_Q31_ONE / 2, ABE_Q31_ONE - 1, ABE_Q31_ONE
	};

	c->min = unit_log_upto(&seed, (1ULL << 30) - 1);
	c->max = c->min + 1 + unit_log_upto(&seed, (1ULL << 30) - 1 - c->min);
	c->red = (struct abe_red) {
		.prob = unit_upto(&seed, 1) ? probs[unit_upto(&seed, 6)] :
			1 + unit_log_upto(&seed, ABE_Q31_ONE - 1),
		.gentle = unit_upto(&seed, 1),
	};
	abe_red_set(&c->red, c->min, c->max);
}

static u64 random_average(const struct red_case *c)
{
	u64 min = c->min << 32, max = c->max << 32;

	switch (unit_upto(&seed, 7)) {
	case 0:
		return min - !!min;
	case 1:
		return min;
	case 2:
		return max - 1;
	case 3:
		return max;
	case 4:
		return 2 * max - unit_upto(&seed, 2);
	case 5:
		return max + unit_upto(&seed, max - 1);
	default:
		return min + unit_upto(&seed, max - min - 1);
	}
}

static void test_probability(void)
{
	long double worst = 0;
	u64 i, bad = 0, falls = 0;
	struct red_case c;

	for (i = 0; i < unit_samples(3000000); i++) {
		long double want;
		u64 avg, more;
		u32 got;

		random_red(&c);
		avg = random_average(&c);
		got = abe_red_probability(&c.red, avg);
		want = ref_probability(avg / Q32, c.min, c.max,
				       c.red.prob / Q31, c.red.gentle) * Q31;
		unit_worst(&worst, fabsl(got - want));
		bad += got > ABE_Q31_ONE;
		bad += avg >= 2 * c.red.max && got != ABE_Q31_ONE;
		bad += avg < c.red.min && got;
		more = unit_upto(&seed, 1) ? avg + 1 : random_average(&c);
		falls += more >= avg && abe_red_probability(&c.red, more) < got;
	}
	note("probability: worst error %.3Lf units of 2^-31", worst);
	/* half a unit of the slope, and one for the truncation */
	ok(worst < 1.51L, "probability: within 1.5 * 2^-31 of the reference");
	ok(!bad, "probability: 0 below min, 1 from 2*max on, never above 1");
	ok(!falls, "probability: never falls as the average grows");
}

/* Rise over run at any distance, up to slopes that no thresholds have. */
static void test_slope(void)
{
	long double worst = 0;
	u64 i, bad = 0;

	for (i = 0; i < unit_samples(2000000); i++) {
		u32 rise = i % 16 ? unit_log_upto(&seed, ABE_Q31_ONE) :
				    ABE_Q31_ONE;
		u64 run = 1 + unit_log_upto(&seed, (1ULL << 31) - 1);
		u64 distance = unit_upto(&seed, (run << 32) - 1);
		long double want = (long double)rise * distance / run / Q32;
		u64 got = abe_along(distance, abe_slope(rise, run));

		bad += got > want;
		unit_worst(&worst, want - got);
	}
	note("slope: worst error %.3Lf units of 2^-31", worst);
	ok(!bad && worst < 1.51L, "slope: from below, within 1.5 * 2^-31");
}

static void test_red_set(void)
{
	struct abe_red red = { .prob = ABE_Q31_ONE / 10 };

	abe_red_set(&red, 7, 7);
	ok(red.min == 7ULL << 32 && red.max == 8ULL << 32,
	   "set: max is raised above min");
	abe_red_set(&red, 9, 3);
	ok(red.max == 10ULL << 32, "set: max below min is raised above it");
	abe_red_set(&red, 10, 30);
	ok(abe_red_probability(&red, 20ULL << 32) - ABE_Q31_ONE / 20 + 2 < 4,
	   "set: half of P in the middle");
	ok(abe_red_probability(&red, 30ULL << 32) == ABE_Q31_ONE,
	   "set: certain from max on");
	red.gentle = true;
	ok(abe_red_probability(&red, 30ULL << 32) == red.prob,
	   "set: gentle continues from P");
	ok(abe_red_probability(&red, 45ULL << 32) -
	   (red.prob + ABE_Q31_ONE) / 2 + 2 < 4,
	   "set: gentle is half way up at 1.5*max");
}

/* Halvings a ns, 48 fraction bits, of weight @w at @pps packets a second. */
static long double decay_rate(long double w, long double pps)
{
	return -log1pl(-w) / logl(2) * pps * 1e-9L * 0x1p48L;
}

static void test_decay(void)
{
	u64 i, bad = 0, grows = 0;

	for (i = 0; i < unit_samples(1000000); i++) {
		long double w = exp2l(-1 - 30 * unit_unit(&seed));
		long double pps = exp2l(30 * unit_unit(&seed));
		long double exact = decay_rate(w, pps), want, slack;
		u64 avg = unit_log_upto(&seed, U64_MAX >> 1);
		u64 idle = unit_log_upto(&seed, (1ULL << 40) - 1);
		u64 rate, got;

		if (exact > ABE_DECAY_MAX)
			exact = ABE_DECAY_MAX;
		rate = exact;
		got = abe_red_decay(avg, idle, rate);
		want = avg * exp2l(-ldexpl(rate, -48) * idle);
		/* halvings cut to 2^-32, result of exp2 to 2^-31 */
		slack = want * (logl(2) * 0x1p-32L + 2e-7L) +
			avg * 0x1p-31L + 1;
		bad += fabsl(got - want) > slack;
		/* (1 - w)^m itself, as far as a whole rate can say it */
		if (exact < ABE_DECAY_MAX) {
			want = avg * expl(log1pl(-w) * pps * 1e-9L * idle);
			slack += want * expm1l(logl(2) * 0x1p-48L * idle);
			bad += fabsl(got - want) > slack;
		}
		grows += got > avg;
	}
	ok(!bad, "decay: (1 - w)^m of the average after m packets' time");
	ok(!grows, "decay: never raises the average");
	ok(abe_red_decay(1ULL << 62, 0, ABE_DECAY_MAX) == 1ULL << 62,
	   "decay: no time, no change");
	ok(abe_red_decay(1ULL << 62, (1ULL << 40) - 1, ABE_DECAY_MAX) == 0 &&
	   abe_red_decay(U64_MAX >> 1, U64_MAX, ABE_DECAY_MAX) == 0 &&
	   abe_red_decay(U64_MAX >> 1, U64_MAX, 0) == 0,
	   "decay: extremes empty it");
	ok(abe_red_decay(U64_MAX >> 1, (1ULL << 40) - 1, 0) == U64_MAX >> 1,
	   "decay: rate 0 keeps it");
	ok(abe_red_decay(1000ULL << 32, 512, ABE_DECAY_MAX) == 500ULL << 32,
	   "decay: 512 ns halve it at the highest rate");
}

/* Floyd, Gummadi, Shenker 2001, Figure 2. */
static long double ref_adapt(long double p, long double avg, long double min,
			     long double max)
{
	if (avg > min + 0.6L * (max - min) && p <= 0.5L)
		return p + fminl(0.01L, p / 4);
	if (avg < min + 0.4L * (max - min) && p >= 0.01L)
		return p * 0.9L;
	return p;
}

static void test_adapt(void)
{
	const u64 min = 10000ULL << 32, max = 30000ULL << 32;
	u64 i, bad = 0, outside = 0;
	u32 p = ABE_Q31_ONE / 10;
	u64 avg = 0;

	for (i = 0; i < unit_samples(2000000); i++) {
		long double want;

		/* Stretches of one kind, so that the limits are reached. */
		if (i % 64 == 0 || unit_upto(&seed, 15) == 0)
			avg = unit_upto(&seed, 1ULL << 47);
		want = ref_adapt(p / Q31, avg, min, max) * Q31;
		p = abe_red_adapt(p, avg, min, max);
		bad += fabsl(p - want) > 2 + 1e-8L * want;
		outside += p > 0.51L * Q31 + 2 || p < 0.009L * Q31 - 2;
	}
	ok(!bad, "adapt: each step as Floyd 2001");
	ok(!outside, "adapt: P stays within [0.009, 0.51]");
}

static void test_adapt_limits(void)
{
	const u64 min = 5ULL << 32, max = 15ULL << 32, low = 8ULL << 32;
	u32 p, i;

	p = abe_red_adapt(ABE_Q31_ONE / 10, low, min, max);
	ok(fabsl(p / Q31 - 0.09L) < 1e-8L, "adapt: times 0.9 below the target");
	p = abe_red_adapt(ABE_Q31_ONE / 10, 12ULL << 32, min, max);
	ok(fabsl(p / Q31 - 0.11L) < 1e-8L, "adapt: plus 0.01 above the target");
	p = abe_red_adapt(ABE_Q31_ONE / 50, 12ULL << 32, min, max);
	ok(fabsl(p / Q31 - 0.025L) < 1e-8L, "adapt: plus P/4 of a small P");
	ok(abe_red_adapt(ABE_Q31_ONE / 7, 10ULL << 32, min, max) ==
	   ABE_Q31_ONE / 7, "adapt: no change within the target");
	for (i = 0, p = 4; i < 200; i++)
		p = abe_red_adapt(p, max, min, max);
	ok(p > 0.5L * Q31 && p <= 0.51L * Q31, "adapt: a tiny P gets to 0.5");
	for (i = 0; i < 200; i++)
		p = abe_red_adapt(p, 0, min, max);
	ok(p < 0.01L * Q31 && p >= 0.009L * Q31 - 1, "adapt: and to 0.01");
	ok(abe_red_adapt(ABE_Q31_ONE, U64_MAX >> 1, min, max) == ABE_Q31_ONE,
	   "adapt: P of 1 is not raised");
	ok(abe_red_adapt(ABE_Q31_ONE, 1ULL << 62, 0, 1ULL << 62) == ABE_Q31_ONE,
	   "adapt: largest thresholds");
}

/* chi-square of 2^bits cells is within 3.3 sigma of its mean either way */
static bool rnd_cells(struct abe_rnd *rnd, unsigned int shift,
		      unsigned int bits)
{
	static u32 cells[1 << 12];
	unsigned int i, n = 1U << bits;
	u64 draws = (u64)n * 400;
	double chi = 0, expected = 400;

	for (i = 0; i < n; i++)
		cells[i] = 0;
	while (draws--)
		cells[(abe_rnd_q31(rnd) >> shift) & (n - 1)]++;
	for (i = 0; i < n; i++)
		chi += (cells[i] - expected) * (cells[i] - expected) / expected;
	return fabs(chi - (n - 1)) < 3.3 * sqrt(2.0 * (n - 1));
}

static void test_rnd_uniform(void)
{
	struct abe_rnd rnd;
	double sum = 0, pair = 0, last = 0;
	const int n = 1000000;
	u32 high = 0;
	int i;

	abe_rnd_seed(&rnd, 42);
	ok(rnd_cells(&rnd, 19, 12), "rnd: top 12 bits are uniform");
	ok(rnd_cells(&rnd, 10, 12), "rnd: middle 12 bits are uniform");
	ok(rnd_cells(&rnd, 0, 12), "rnd: lowest 12 bits are uniform");
	for (i = 0; i < n; i++) {
		u32 r = abe_rnd_q31(&rnd);
		double u = r / (double)Q31 - 0.5;

		high |= r >> 31;
		sum += u;
		pair += u * last;
		last = u;
	}
	ok(!high, "rnd: below 1");
	ok(fabs(sum / n) < 3.3 * sqrt(1 / 12.0 / n), "rnd: mean of one half");
	ok(fabs(pair / n) < 3.3 / 12 / sqrt(n), "rnd: no serial correlation");
}

static void test_rnd_seed(void)
{
	struct abe_rnd a, b, first[64];
	unsigned int i, j, same = 0, equal = 0, fixed = 0;
	long double bits = 0;

	abe_rnd_seed(&a, 7);
	abe_rnd_seed(&b, 7);
	for (i = 0; i < 1000; i++)
		same += abe_rnd_q31(&a) == abe_rnd_q31(&b);
	ok(same == 1000, "rnd: a seed replays its numbers");
	for (i = 0; i < 64; i++) {
		abe_rnd_seed(&first[i], i);
		for (j = 0; j < i; j++)
			equal += first[i].state == first[j].state;
		bits += __builtin_popcountll(first[i].state);
	}
	ok(!equal && fabsl(bits / 64 - 32) < 2,
	   "rnd: small seeds are spread over the state");
	abe_rnd_seed(&a, 0);
	ok(rnd_cells(&a, 19, 8), "rnd: seed 0 works");
	/* The one seed that the finaliser sends to 0. */
	abe_rnd_seed(&a, -0x9e3779b97f4a7c15ULL);
	for (i = 0; i < 1000; i++) {
		u32 r = abe_rnd_q31(&a);

		fixed += r == abe_rnd_q31(&a);
	}
	ok(fixed < 3, "rnd: that seed works too");
}

int main(void)
{
	test_average();
	test_average_run();
	test_probability();
	test_slope();
	test_red_set();
	test_decay();
	test_adapt();
	test_adapt_limits();
	test_rnd_uniform();
	test_rnd_seed();
	return unit_end();
}
