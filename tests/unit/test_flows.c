// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of kernel/abe_flows.h: the mean part against the sum of the squares of the
 * flows' parts, and which flows are slow, over many mixes of flows.
 */
#include "abe_flows.h"
#include "unit.h"

#define FLOWS_MOST	64
#define PART		(ABE_Q31_ONE / 3)

static u64 seed = 26;

/* A mix of flows: their parts, which add up to one. */
struct mix {
	unsigned int n;
	double part[FLOWS_MOST];
};

static double uniform(void)
{
	return (unit_random(&seed) >> 11) / 9007199254740992.0;
}

static struct mix random_mix(void)
{
	struct mix m = { .n = 1 + unit_upto(&seed, FLOWS_MOST - 1) };
	double sum = 0;
	unsigned int i;

	for (i = 0; i < m.n; i++) {
		m.part[i] = -log(1 - uniform());
		sum += m.part[i];
	}
	for (i = 0; i < m.n; i++)
		m.part[i] /= sum;
	return m;
}

static double squares(const struct mix *m)
{
	double sum = 0;
	unsigned int i;

	for (i = 0; i < m->n; i++)
		sum += m->part[i] * m->part[i];
	return sum;
}

/* Hashes that have nothing to do with the number, and are not 0. */
static u16 hash_of(unsigned int flow)
{
	return (flow + 1) * 40503U;
}

/* Is flow @i of the ring's slow? */
static bool is_slow(const struct abe_flows *flows, u32 i)
{
	return abe_flows_below(flows, abe_flows_part(flows, hash_of(i)), PART);
}

static void add(struct abe_flows *flows, const struct mix *m)
{
	double x = uniform();
	unsigned int i;

	for (i = 0; i < m->n - 1 && x >= m->part[i]; i++)
		x -= m->part[i];
	abe_flows_add(flows, hash_of(i), true, PART, unit_random(&seed) >> 33);
}

/* The mean of hit, and its spread, beside the sum of squares. */
static void test_hit(void)
{
	u64 mixes = unit_samples(400), k, i;
	double worst = 0, worst_spread = 0;

	for (k = 0; k < mixes; k++) {
		struct mix m = random_mix();
		struct abe_flows flows = {};
		double want = squares(&m), mean = 0, square = 0, spread;
		u64 looks = 20000;

		for (i = 0; i < 8 * ABE_FLOWS; i++)
			add(&flows, &m);
		for (i = 0; i < looks; i++) {
			double hit;

			add(&flows, &m);
			hit = flows.hit / (double)ABE_Q31_ONE;
			mean += hit / looks;
			square += hit * hit / looks;
		}
		/* An EWMA of weight w of independent hits: h(1-h)w/(2-w). */
		spread = sqrt(fmax(square - mean * mean, 0));
		worst = fmax(worst, fabs(mean - want) / sqrt(want));
		if (m.n > 1)
			worst_spread = fmax(worst_spread, spread /
					    sqrt(want * (1 - want) /
						 (2 * ABE_FLOWS - 1)));
	}
	note("hit: mean off by %.4f of the root at most, spread %.2f times as expected",
	     worst, worst_spread);
	/* 20000 samples of a correlation of 512: a standard error of 0.007 sqrt(h). */
	ok(worst < 0.04, "the mean part is the sum of the squares");
	ok(worst_spread > 0.5 && worst_spread < 2,
	   "and scatters as an average of so many does");
}

/* How often each flow is called slow, far from the border and on either side. */
static void test_slow(void)
{
	u64 mixes = unit_samples(2000), k, i, wrong = 0, slow = 0, fast = 0;

	for (k = 0; k < mixes; k++) {
		struct mix m = random_mix();
		struct abe_flows flows = {};
		double border = squares(&m) / 3;

		for (i = 0; i < 4 * ABE_FLOWS; i++)
			add(&flows, &m);
		for (i = 0; i < m.n; i++) {
			/* Five standard deviations of the count, and of hit. */
			double far = 5 * sqrt(m.part[i] / ABE_FLOWS) +
				     5 * sqrt(squares(&m) / ABE_FLOWS / 2) / 3;
			bool is = is_slow(&flows, i);

			if (m.part[i] < border - far) {
				wrong += !is;
				slow++;
			} else if (m.part[i] > border + far) {
				wrong += is;
				fast++;
			}
		}
	}
	note("slow: %llu flows below the border, %llu above", (unsigned long long)slow,
	     (unsigned long long)fast);
	ok(slow > 20 && fast > 20 && wrong * 1000 <= slow + fast,
	   "flows far from the border are on their side of it (%llu not)",
	   (unsigned long long)wrong);
}

/* A call beside four TCP flows at 2 Mb/s, and beside eight at 10: the case it is for. */
static void test_call(void)
{
	static const struct {
		double call;
		unsigned int bulk;
	} cases[] = { { 0.043, 4 }, { 0.0086, 8 } };
	unsigned int c, i;
	u64 k;

	for (c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct mix m = { .n = cases[c].bulk + 1, .part = { cases[c].call } };
		struct abe_flows flows = {};
		u64 looks = unit_samples(100000), call = 0, bulk = 0;

		for (i = 1; i < m.n; i++)
			m.part[i] = (1 - cases[c].call) / cases[c].bulk;
		for (k = 0; k < 4 * ABE_FLOWS; k++)
			add(&flows, &m);
		for (k = 0; k < looks; k++) {
			add(&flows, &m);
			call += is_slow(&flows, 0);
			bulk += is_slow(&flows, 1);
		}
		ok(call > 0.97 * looks && bulk < 0.001 * looks,
		   "a call of %.2g of the link beside %u: slow %.4f of the time, a bulk flow %.5f",
		   cases[c].call, cases[c].bulk, (double)call / looks,
		   (double)bulk / looks);
	}
}

/* Next to nobody is slow while there is nothing to compare with, nor with a part of 0. */
static void test_empty(void)
{
	struct mix m = { .n = 8 };
	u64 rounds = unit_samples(10000), early[ABE_FLOWS / 8] = {}, full = 0, none = 0, k;
	u32 i;

	for (i = 0; i < m.n; i++)
		m.part[i] = 1.0 / m.n;
	for (k = 0; k < rounds; k++) {
		struct abe_flows flows = {};

		for (i = 0; i < ABE_FLOWS; i++) {
			if (i % 8 == 0)
				early[i / 8] += is_slow(&flows, 0);
			add(&flows, &m);
		}
		full += is_slow(&flows, FLOWS_MOST);
		none += abe_flows_below(&flows, abe_flows_part(&flows, hash_of(FLOWS_MOST)), 0);
	}
	for (i = k = 0; i < ABE_FLOWS / 8; i++)
		k = max(k, early[i]);
	ok(!early[0] && k * 8 < rounds,
	   "one of eight flows is slow in a ring that fills for %.3f of the time at most",
	   (double)k / rounds);
	ok(full == rounds && !none, "a new flow in a full ring is slow, unless the part is 0");
}

/* Slow flows are left alone only if they are few; a flood of new flows is not. */
static void test_few(void)
{
	static const struct {
		double calls, flood, one;
		bool few;
	} cases[] = {
		{ 0.04, 0, 0, true },
		{ 0.16, 0, 0, true },
		{ 0.04, 0.4, 0, false },
		{ 0.04, 0, 0.6, true },	/* beside which the four are slow */
	};
	unsigned int c;
	u64 k;

	for (c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct abe_flows flows = {};
		u64 looks = unit_samples(50000), few = 0;

		for (k = 0; k < looks + 4 * ABE_FLOWS; k++) {
			double x = uniform();
			u16 hash = unit_upto(&seed, 3) + 1;	/* one of four */
			bool green = true;

			if (x < cases[c].calls)
				hash = 100 + unit_upto(&seed, 3);
			else if (x < cases[c].calls + cases[c].flood)
				hash = 1000 + k % 60000;
			else if (x < cases[c].calls + cases[c].flood + cases[c].one)
				hash = 99;
			else
				green = false;
			abe_flows_add(&flows, hash, green, PART, unit_random(&seed) >> 33);
			few += k >= 4 * ABE_FLOWS && abe_flows_few(&flows);
		}
		ok(cases[c].few ? few > 0.99 * looks : few < 0.01 * looks,
		   "calls of %.2f, a flood of %.1f that changes its ports, one of %.1f: few %.4f of the time",
		   cases[c].calls, cases[c].flood, cases[c].one, (double)few / looks);
	}
}

/* The one flow there is has it all; when another takes over, the ring forgets it. */
static void test_change(void)
{
	struct abe_flows flows = {};
	u32 i;

	for (i = 0; i < 20 * ABE_FLOWS; i++)
		abe_flows_add(&flows, 7, true, PART, unit_random(&seed) >> 33);
	ok(flows.hit > ABE_Q31_ONE - ABE_Q31_ONE / 100 && flows.hit <= ABE_Q31_ONE,
	   "one flow: the mean part is 1, and not more");
	for (i = 0; i < ABE_FLOWS; i++)
		abe_flows_add(&flows, 8, true, PART, unit_random(&seed) >> 33);
	ok(abe_flows_below(&flows, abe_flows_part(&flows, 7), 1 << 20) &&
	   !abe_flows_below(&flows, abe_flows_part(&flows, 8), ABE_Q31_ONE / 2),
	   "256 samples of another later it is gone");
}

/* Counting four at a time is counting. */
static void test_count(void)
{
	u64 rounds = unit_samples(20000), k, wrong = 0, found = 0;

	for (k = 0; k < rounds; k++) {
		static const u16 odd[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
		struct abe_flows flows;
		u32 i, n = 0, got;
		u16 hash = unit_upto(&seed, 1) ? odd[unit_upto(&seed, 5)] :
						 unit_random(&seed);

		for (i = 0; i < ABE_FLOWS; i++) {
			u16 other = unit_upto(&seed, 1) ? odd[unit_upto(&seed, 5)] :
							  unit_random(&seed);

			flows.hash[i] = unit_upto(&seed, k % 9) ? other : hash;
			n += flows.hash[i] == hash;
		}
		got = abe_flows_count(&flows, hash);
		wrong += got != n;
		found += got;
	}
	ok(!wrong && found > 30 * rounds, "%llu hashes were counted, as one by one",
	   (unsigned long long)found);
}

int main(void)
{
	test_count();
	test_hit();
	test_slow();
	test_call();
	test_empty();
	test_few();
	test_change();
	return unit_end();
}
