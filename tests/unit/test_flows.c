// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of kernel/abe_flows.h: the mean part against the sum of the squares of the
 * flows' parts, and which flows are slow, over many mixes of flows.
 */
#include "abe_flows.h"
#include "unit.h"

#define FLOWS_MOST	64
#define PART		(ABE_Q31_ONE / 10 * 3)

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

/* Hashes that have nothing to do with the number. */
static u32 hash_of(unsigned int flow)
{
	return (flow + 1) * 40503U;
}

/* Is flow @i of the ring's slow? */
static bool is_slow(const struct abe_flows *flows, u32 i)
{
	return abe_flows_below(flows, abe_flows_count(flows, hash_of(i)), PART);
}

static void add(struct abe_flows *flows, const struct mix *m)
{
	double x = uniform();
	unsigned int i;

	for (i = 0; i < m->n - 1 && x >= m->part[i]; i++)
		x -= m->part[i];
	abe_flows_add(flows, hash_of(i), true, PART);
}

/* What two samples out of the ring are of one flow with. */
static double mean_part(const struct abe_flows *flows)
{
	return flows->pairs / ((double)flows->samples * (flows->samples - 1));
}

/* Of a full ring: its mean, and how much it scatters, beside the sum of squares. */
static void test_mean(void)
{
	u64 mixes = unit_samples(400), k, i;
	double worst = 0;

	for (k = 0; k < mixes; k++) {
		struct mix m = random_mix();
		struct abe_flows flows = {};
		double want = squares(&m), mean = 0, cubes = 0, error;
		u64 rings = 20;

		for (i = 0; i < rings * ABE_FLOWS; i++) {
			add(&flows, &m);
			if (i % ABE_FLOWS == ABE_FLOWS - 1)
				mean += mean_part(&flows) / rings;
		}
		for (i = 0; i < m.n; i++)
			cubes += pow(m.part[i], 3);
		/* The standard error of such a mean over pairs, n of them (Hoeffding 1948). */
		error = sqrt((4 * (cubes - want * want) +
			      2 * want / ABE_FLOWS) / ABE_FLOWS / rings);
		worst = fmax(worst, fabs(mean - want) / error);
	}
	note("mean: off by %.1f standard errors at most, of %llu mixes", worst,
	     (unsigned long long)mixes);
	ok(worst < 5, "the mean part is the sum of the squares");
}

/* All is as in the ring's last samples, counted anew: while it fills, and a while after. */
static void test_count(void)
{
	u64 rounds = unit_samples(30), k, wrong = 0, found = 0;

	for (k = 0; k < rounds; k++) {
		static u32 hash[4 * ABE_FLOWS];
		struct abe_flows flows = {};
		u32 flows_most = 1 + unit_upto(&seed, 2000);
		u32 i, j;

		for (i = 0; i < 4 * ABE_FLOWS; i++) {
			u32 begin = i < ABE_FLOWS ? 0 : i + 1 - ABE_FLOWS, pairs = 0;

			hash[i] = hash_of(unit_upto(&seed, flows_most));
			abe_flows_add(&flows, hash[i], true, PART);
			if (i % 97)
				continue;
			for (j = begin; j <= i; j++) {
				u32 l, n = 0;

				for (l = begin; l <= i; l++)
					n += !((hash[l] ^ hash[j]) & ABE_FLOWS_MASK);
				wrong += abe_flows_count(&flows, hash[j]) != n;
				pairs += n - 1;
				found++;
			}
			wrong += flows.pairs != pairs || flows.samples != i + 1 - begin;
		}
	}
	ok(!wrong && found > 10000 * rounds,
	   "%llu samples, and the pairs of each ring, were counted as one by one",
	   (unsigned long long)found);
}

/* How often each flow is called slow, far from the border and on either side. */
static void test_slow(void)
{
	u64 mixes = unit_samples(2000), k, i, wrong = 0, slow = 0, fast = 0;

	for (k = 0; k < mixes; k++) {
		struct mix m = random_mix();
		struct abe_flows flows = {};
		double border = squares(&m) * .3, cubes = 0, scatter;

		for (i = 0; i < 4 * ABE_FLOWS; i++)
			add(&flows, &m);
		for (i = 0; i < m.n; i++)
			cubes += pow(m.part[i], 3);
		scatter = sqrt((4 * (cubes - squares(&m) * squares(&m)) +
				2 * squares(&m) / ABE_FLOWS) / ABE_FLOWS);
		for (i = 0; i < m.n; i++) {
			/* Five standard deviations of the count, and of the mean part. */
			double far = 5 * sqrt(m.part[i] / ABE_FLOWS) + 5 * scatter * .3;
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
	u64 rounds = unit_samples(2000), early = 0, late = 0, full = 0, none = 0, k;
	u32 i;

	for (i = 0; i < m.n; i++)
		m.part[i] = 1.0 / m.n;
	for (k = 0; k < rounds; k++) {
		struct abe_flows flows = {};

		for (i = 0; i < ABE_FLOWS_LEAST; i++) {
			early += is_slow(&flows, i % (FLOWS_MOST + 1));
			add(&flows, &m);
		}
		for (; i < ABE_FLOWS; i++) {
			late += is_slow(&flows, 0);
			add(&flows, &m);
		}
		full += is_slow(&flows, FLOWS_MOST);
		none += abe_flows_below(&flows, abe_flows_count(&flows, hash_of(FLOWS_MOST)), 0);
	}
	ok(!early, "no flow is slow while there are too few samples");
	ok(late < rounds, "one of eight is not slow in a fuller one (%.4f of the time)",
	   (double)late / rounds / (ABE_FLOWS - ABE_FLOWS_LEAST));
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
			abe_flows_add(&flows, hash, green, PART);
			few += k >= 4 * ABE_FLOWS && abe_flows_few(&flows);
		}
		ok(cases[c].few ? few > 0.99 * looks : few < 0.01 * looks,
		   "calls of %.2f, a flood of %.1f that changes its ports, one of %.1f: few %.4f of the time",
		   cases[c].calls, cases[c].flood, cases[c].one, (double)few / looks);
	}
}

/*
 * A green flow that begins is new for a while, and then large. It must not be taken for
 * a flood meanwhile: the call beside it would lose its protection.
 */
static void test_onset(void)
{
	static const struct {
		double call, begins;
		unsigned int blue;
	} cases[] = { { .05, .5, 1 }, { .05, .7, 1 }, { .05, .5, 2 }, { .04, .6, 4 } };
	unsigned int c;
	u64 k;

	for (c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		u64 rounds = unit_samples(200), many = 0, let_off = 0;

		for (k = 0; k < rounds; k++) {
			struct abe_flows flows = {};
			u32 i;

			for (i = 0; i < 6 * ABE_FLOWS; i++) {
				bool begun = i >= 4 * ABE_FLOWS;
				double x = uniform();
				u32 flow = 2 + unit_upto(&seed, cases[c].blue - 1);

				if (x < cases[c].call)
					flow = 0;
				else if (begun && x < cases[c].call + cases[c].begins)
					flow = 1;
				abe_flows_add(&flows, hash_of(flow), flow < 2, PART);
				many += !abe_flows_few(&flows);
				let_off += begun && abe_flows_few(&flows) && is_slow(&flows, 1);
			}
		}
		ok(many < rounds && let_off < ABE_FLOWS / 2 * rounds,
		   "%.1f of the link begins beside %u: a flood for %.2f samples, let off for %.0f",
		   cases[c].begins, cases[c].blue, (double)many / rounds,
		   (double)let_off / rounds);
	}
}

/* What of a flood that changes its ports is taken for a flow with samples. */
static void test_ports(void)
{
	struct abe_flows flows = {};
	u64 looks = unit_samples(100000), seen = 0, k;

	for (k = 0; k < 4 * ABE_FLOWS + looks; k++) {
		u32 hash = unit_random(&seed);

		if (k >= 4 * ABE_FLOWS)
			seen += abe_flows_count(&flows, hash) > ABE_FLOWS_NEW;
		abe_flows_add(&flows, uniform() < .5 ? hash : hash_of(unit_upto(&seed, 1)),
			      true, PART);
	}
	ok(seen < .015 * looks, "a flood of half the link: %.4f of its packets are not new",
	   (double)seen / looks);
}

/* The one flow there is has it all; when another takes over, the ring forgets it. */
static void test_change(void)
{
	struct abe_flows flows = {};
	u32 i;

	for (i = 0; i < 20 * ABE_FLOWS; i++)
		abe_flows_add(&flows, 7, true, PART);
	ok(mean_part(&flows) == 1, "one flow: the mean part is 1");
	for (i = 0; i < ABE_FLOWS; i++)
		abe_flows_add(&flows, 8, true, PART);
	ok(!abe_flows_count(&flows, 7) && abe_flows_count(&flows, 8) == ABE_FLOWS &&
	   mean_part(&flows) == 1,
	   "1024 samples of another later it is gone");
}

int main(void)
{
	test_count();
	test_mean();
	test_slow();
	test_call();
	test_empty();
	test_few();
	test_onset();
	test_ports();
	test_change();
	return unit_end();
}
