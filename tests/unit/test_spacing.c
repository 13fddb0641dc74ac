// SPDX-License-Identifier: GPL-2.0
/*
 * Spacing of first-stage losses and the ratio between the colours.
 *
 * Reference: the five strategies of [BIAS00] II.A.1 as distributions of the
 * gap between losses at a constant p. Where 1/p is not whole, a gap of the
 * threshold strategies is the real-valued gap rounded up to whole packets.
 *
 * All generators have fixed seeds, so a result repeats. Bounds are for a
 * false alarm in a thousand or rarer.
 */
#include <stdlib.h>

#include "abe_red.h"
#include "unit.h"

/* A generator and a gap that has just begun. */
static void begin(struct abe_gap *gap, u32 spacing, struct abe_rnd *rnd, u64 seed)
{
	abe_rnd_seed(rnd, seed);
	abe_gap_draw(gap, &abe_spacings[spacing], 0, 0, rnd);
}

/* The first stage's verdict on one packet, as sch_abe.c has it. */
static bool abe_gap_loss(struct abe_gap *gap, u32 spacing, u64 p, bool carry,
			 u64 packet, struct abe_rnd *rnd)
{
	const struct abe_spacing *s = &abe_spacings[spacing];

	if (p >= ABE_Q31_ONE)
		return true;
	if (!abe_gap_due(gap, p))
		return false;
	if (!s->each) {
		abe_gap_end(gap, s, carry, packet, rnd);
		return true;
	}
	if (!abe_gap_each(gap, rnd))
		return false;
	abe_gap_delay(gap, s, 0);
	return true;
}

#define SPACINGS	__TCA_ABE_SPACING_MAX
#define DET		TCA_ABE_SPACING_DETERMINISTIC

static const char * const names[SPACINGS] = {
	[TCA_ABE_SPACING_UNIFORM] = "uniform",
	[TCA_ABE_SPACING_GEOMETRIC] = "geometric",
	[TCA_ABE_SPACING_DELAYED_UNIFORM] = "delayed_uniform",
	[TCA_ABE_SPACING_DELAYED_GEOMETRIC] = "delayed_geometric",
	[TCA_ABE_SPACING_DETERMINISTIC] = "deterministic",
};

/* Standard deviation of a gap over its mean, as p goes to 0. */
static const double spread[SPACINGS] = { 0.5774, 1, 0.1925, 0.5, 0 };

static u64 seed = 3;

static u32 q31(double p)
{
	return p * (double)Q31;
}

/* P(gap <= k), k >= 0 */
static double gap_cdf(u32 spacing, double p, double k)
{
	double first = ceil(1 / p);

	switch (spacing) {
	case TCA_ABE_SPACING_UNIFORM:
		return fmin(1, k * p);
	case TCA_ABE_SPACING_GEOMETRIC:
		return -expm1(k * log1p(-p));
	case TCA_ABE_SPACING_DELAYED_UNIFORM:
		return fmin(1, fmax(0, k * p - 1));
	case TCA_ABE_SPACING_DELAYED_GEOMETRIC:
		/* the first exposure is what exceeds the delay */
		if (k < first)
			return 0;
		return 1 - (2 - first * p) * exp((k - first) * log1p(-p));
	default:
		return k >= 1 / p;
	}
}

/* Means of [BIAS00] II.A.1, rounding up to whole packets added. */
static double gap_mean(u32 spacing, double p)
{
	double k, mean = 0, tail;

	for (k = 0; k < 80 / p; k++) {
		tail = 1 - gap_cdf(spacing, p, k);
		mean += tail;
		if (tail < 1e-12)
			break;
	}
	return spacing == DET ? 1 / p : mean;
}

static double gap_min(u32 spacing, double p)
{
	switch (spacing) {
	case TCA_ABE_SPACING_UNIFORM:
	case TCA_ABE_SPACING_GEOMETRIC:
		return 1;
	case TCA_ABE_SPACING_DETERMINISTIC:
		return floor(1 / p);
	default:
		return floor(1 / p) + 1;
	}
}

/* The 99.9 % point of chi-square, Wilson and Hilferty. */
static double chi_limit(double freedom)
{
	double c = 2 / (9 * freedom);

	return freedom * pow(1 - c + 3.0902 * sqrt(c), 3);
}

struct gaps {
	u32	*n;	/* [length] = how often */
	u32	most;	/* longest that is counted apart */
	u32	least;
	u64	losses;
	u64	packets;
	double	pair;	/* sum of (gap - mean) * (gap before - mean) */
	double	square;
};

static void gaps_take(struct gaps *g, u32 spacing, double p, u64 losses,
		      u64 rnd_seed)
{
	double mean = gap_mean(spacing, p), last = 0;
	struct abe_gap gap = {};
	struct abe_rnd rnd;
	u32 length = 0, prob = q31(p);

	*g = (struct gaps) { .most = 40 / p, .least = U32_MAX };
	g->n = calloc(g->most + 1, sizeof(*g->n));
	if (!g->n)
		abort();
	begin(&gap, spacing, &rnd, rnd_seed);
	while (g->losses < losses) {
		length++;
		if (!abe_gap_loss(&gap, spacing, prob, false, 0, &rnd))
			continue;
		g->n[min(length, g->most)]++;
		g->least = min(g->least, length);
		g->losses++;
		g->packets += length;
		g->pair += (length - mean) * last;
		last = length - mean;
		g->square += last * last;
		length = 0;
	}
}

static bool gaps_fit(const struct gaps *g, u32 spacing, double p)
{
	double chi = 0, freedom = -1, seen = 0, want = 0, before = 0, cdf;
	double cell = g->losses / 60.0;
	u32 k;

	for (k = 1; k <= g->most; k++) {
		cdf = k < g->most ? gap_cdf(spacing, p, k) : 1;
		want += (cdf - before) * g->losses;
		before = cdf;
		seen += g->n[k];
		/* A last cell too small to stand alone joins this one. */
		if (want < cell || ((1 - cdf) * g->losses < cell &&
				    k < g->most))
			continue;
		chi += (seen - want) * (seen - want) / want;
		freedom++;
		seen = 0;
		want = 0;
	}
	if (want > 1e-6 || seen)
		chi += (seen - want) * (seen - want) / fmax(want, 1e-9);
	return freedom < 1 ? chi < 1e-6 : chi < chi_limit(freedom);
}

static void test_gaps(u32 spacing)
{
	static const double probs[] = {
		0.5, 0.3, 0.15, 0.07, 0.05, 0.01, 0.001, 0.7, 1.0 / 3,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probs); i++) {
		double p = q31(probs[i]) / (double)Q31;
		double mean = gap_mean(spacing, p), bound, apart, least;
		u64 losses = unit_samples(probs[i] < 0.01 ? 5000 : 60000);
		struct gaps g;

		gaps_take(&g, spacing, p, losses, 100 * spacing + i);
		bound = 3.3 * sqrt(g.square / g.losses / g.losses) + 1.0 / losses;
		apart = (double)g.packets / g.losses - mean;
		if (spacing == DET)
			ok(g.least >= floor(1 / p) &&
			   fabs(apart) * losses <= 1 && !g.n[g.most],
			   "%s, p = %g: every 1/p-th packet", names[spacing],
			   probs[i]);
		else
			ok(gaps_fit(&g, spacing, p),
			   "%s, p = %g: distribution of the gap",
			   names[spacing], probs[i]);
		least = gap_min(spacing, p);
		/* The shortest gap is reached, or nearly so by few losses. */
		ok(fabs(apart) < bound && g.least >= least &&
		   (g.least - least) * p * losses < 10,
		   "%s, p = %g: mean gap %.3f, least %.0f", names[spacing],
		   probs[i], mean, gap_min(spacing, p));
		/* Any order of gaps may be regular only where nothing is drawn. */
		if (spacing != DET)
			ok(fabs(g.pair / g.square) < 3.3 / sqrt(losses),
			   "%s, p = %g: gaps independent of each other",
			   names[spacing], probs[i]);
		free(g.n);
	}
}

/*
 * Whole 1/p: the paper's per-packet probabilities must lead to the same
 * distribution as gap_cdf(), Eq. (2) and the corrected pseudo code.
 */
static void test_paper_hazard(void)
{
	double worst = 0, p = 0.05, left[2] = { 1, 1 };
	int cnt;

	for (cnt = 0; cnt < 40; cnt++) {
		double uniform = cnt * p < 1 - 1e-9 ? p / (1 - cnt * p) : 1;
		double delayed = cnt * p < 1 - 1e-9 ? 0 : p / (2 - cnt * p);

		left[0] *= 1 - fmin(1, uniform);
		left[1] *= 1 - fmin(1, delayed);
		worst = fmax(worst, fabs(1 - left[0] -
			     gap_cdf(TCA_ABE_SPACING_UNIFORM, p, cnt + 1)));
		worst = fmax(worst, fabs(1 - left[1] -
			     gap_cdf(TCA_ABE_SPACING_DELAYED_UNIFORM, p,
				     cnt + 1)));
	}
	ok(worst < 1e-9, "reference agrees with the paper's probabilities");
}

static void test_certain(u32 spacing)
{
	struct abe_gap gap = {}, before;
	struct abe_rnd rnd;
	unsigned int i, kept = 0, lost = 0;

	begin(&gap, spacing, &rnd, 5);
	for (i = 0; i < 1000; i++)
		kept += !abe_gap_loss(&gap, spacing, ABE_Q31_ONE, i & 1, 0,
				      &rnd);
	for (i = 0; i < 1000; i++)
		kept += !abe_gap_loss(&gap, spacing, (u64)ABE_Q31_ONE << 30,
				      i & 1, 0, &rnd);
	abe_gap_loss(&gap, spacing, ABE_Q31_ONE / 4, false, 0, &rnd);
	before = gap;
	for (i = 0; i < 100000; i++)
		lost += abe_gap_loss(&gap, spacing, 0, false, 0, &rnd);
	ok(!kept && !lost && gap.left == before.left,
	   "%s: p = 1 is certain, p = 0 never", names[spacing]);
}

/* --- the ratio of the colours --- */

enum pattern {
	RANDOM_MIX,	/* a fifth green */
	ALTERNATING,
	BURSTS,		/* of 1 .. 50 of a colour */
	PERIODIC,	/* every tenth green: 1/p locks in */
	MOSTLY_GREEN,	/* every twentieth blue: likewise */
	PATTERNS
};

static const char * const pattern_names[PATTERNS] = {
	"random mix", "alternating", "bursts", "every 10th green",
	"every 20th blue",
};

static bool is_green(enum pattern pattern, u64 i)
{
	static u64 burst_end;
	static bool burst_green;

	switch (pattern) {
	case RANDOM_MIX:
		return unit_random(&seed) % 5 == 0;
	case ALTERNATING:
		return i & 1;
	case PERIODIC:
		return i % 10 == 0;
	case MOSTLY_GREEN:
		return i % 20 != 0;
	default:
		if (!i || i == burst_end) {
			burst_end = i + 1 + unit_upto(&seed, 49);
			burst_green = !burst_green;
		}
		return burst_green;
	}
}

/* How p goes with the packets' number. */
enum motion { STEADY, SQUARE, WAVE, NOISE, MOTIONS };

static const char * const motion_names[MOTIONS] = {
	"steady p", "p in steps", "p in waves", "p at random",
};

static double moved(enum motion motion, double p, u64 i)
{
	switch (motion) {
	case SQUARE:
		return i / 700 % 2 ? p : p / 20;
	case WAVE:
		return p * (0.55 + 0.45 * sin(i * 0.0031));
	case NOISE:
		return p * unit_unit(&seed);
	default:
		return p;
	}
}

struct tally {
	double	risk[2];	/* sum of the probabilities, alpha left out */
	u64	lost[2];
};

/* One packet as the qdisc treats it, [ABE99] 4.2. */
static void offer(struct tally *t, struct abe_gap *gaps, u32 spacing,
		  u32 p, double alpha, bool green, struct abe_rnd *rnd)
{
	u64 scaled = green ? p * (u64)(alpha * 65536) >> 16 : p;

	t->risk[green] += p;
	t->lost[green] += abe_gap_loss(&gaps[green], spacing, scaled, green,
				       green ? p : 0, rnd);
}

/* Loss rate of green over that of blue, over alpha, less one. */
static double tally_off(const struct tally *t, double alpha)
{
	return (t->lost[1] / t->risk[1]) / (t->lost[0] / t->risk[0]) / alpha -
	       1;
}

/* What chance may add: four standard deviations of the ratio. */
static double tally_chance(const struct tally *t, u32 spacing)
{
	return 4 * spread[spacing] * sqrt(1.0 / t->lost[0] + 1.0 / t->lost[1]) +
	       1.0 / t->lost[0] + 1.0 / t->lost[1];
}

struct mix {
	u32		spacing;
	double		p;
	double		alpha;
	enum pattern	pattern;
	enum motion	motion;
};

/* True if the ratio is within 1 % of alpha, or within chance of it. */
static bool mix_good(const struct mix *m, double *worst)
{
	struct abe_gap gaps[2] = {};
	double off, chance = 1;
	struct tally t = {};
	struct abe_rnd rnd;
	u64 i = 0, end;

	begin(&gaps[0], m->spacing, &rnd,
	      m->spacing * 1000 + m->pattern * 100 + m->motion);
	abe_gap_draw(&gaps[1], &abe_spacings[m->spacing], 0, 0, &rnd);
	/* Until chance is below 1 %, or patience is at an end. */
	while (i < unit_samples(4000000) && (i < 300000 || chance > 0.009)) {
		for (end = i + 100000; i < end; i++)
			offer(&t, gaps, m->spacing,
			      q31(moved(m->motion, m->p, i)), m->alpha,
			      is_green(m->pattern, i), &rnd);
		chance = tally_chance(&t, m->spacing);
	}
	off = tally_off(&t, m->alpha);
	*worst = fmax(*worst, fabs(off));
	if (fabs(off) <= fmax(0.01, chance))
		return true;
	note("%s, %s, %s, p = %g, alpha = %g: %+.2f %%, chance %.2f %%",
	     names[m->spacing], pattern_names[m->pattern],
	     motion_names[m->motion], m->p, m->alpha, 100 * off, 100 * chance);
	return false;
}

/* Mean loss rate of green at a constant p; 1 is saturation. */
static double green_rate(const struct mix *m)
{
	/* mean thresholds; a carried gap ends with half a blue packet more */
	static const double mean[SPACINGS] = { 0.5, 1, 1.5, 2, 1 };
	bool whole = m->spacing == TCA_ABE_SPACING_UNIFORM ||
		     m->spacing == TCA_ABE_SPACING_DELAYED_UNIFORM;

	return m->alpha * m->p / (mean[m->spacing] + (whole ? m->p / 2 : 0));
}

static void test_ratio(u32 spacing)
{
	static const double alphas[] = { 1, 1.46, 2, 5, 20 };
	static const double probs[] = { 0.1, 0.03, 0.07, 0.02, 0.15 };
	unsigned int a, pattern;

	for (a = 0; a < ARRAY_SIZE(alphas); a++) {
		double worst = 0;
		bool good = true;

		for (pattern = 0; pattern < PATTERNS; pattern++) {
			struct mix m = {
				.spacing = spacing,
				.alpha = alphas[a],
				.p = probs[(a + pattern) % ARRAY_SIZE(probs)],
				.pattern = pattern,
			};

			while (m.alpha * m.p > 0.7 || green_rate(&m) > 0.7)
				m.p /= 2;
			good &= mix_good(&m, &worst);
		}
		ok(good, "%s, alpha = %g: ratio of the colours (%.2f %% off)",
		   names[spacing], alphas[a], 100 * worst);
	}
}

/* High probabilities, where a packet is a large part of a gap. */
static void test_ratio_high(u32 spacing)
{
	static const double probs[] = { 0.2, 0.23, 0.3, 0.4, 0.45 };
	static const double alphas[] = { 1, 1.46, 2 };
	unsigned int i, a;

	for (i = 0; i < ARRAY_SIZE(probs); i++) {
		double worst = 0;
		bool good = true;

		for (a = 0; a < ARRAY_SIZE(alphas); a++) {
			struct mix m = {
				.spacing = spacing,
				.alpha = alphas[a],
				.p = probs[i],
			};

			if (m.alpha * m.p < 0.75 && green_rate(&m) < 0.75)
				good &= mix_good(&m, &worst);
		}
		ok(good, "%s, p = %g: ratio of the colours (%.2f %% off)",
		   names[spacing], probs[i], 100 * worst);
	}
}

static void test_ratio_moving(u32 spacing)
{
	unsigned int motion;

	for (motion = SQUARE; motion < MOTIONS; motion++) {
		struct mix m = {
			.spacing = spacing,
			.p = 0.1,
			.alpha = 3,
			.motion = motion,
		};
		double worst = 0;
		bool good = mix_good(&m, &worst);

		m.pattern = BURSTS;
		good &= mix_good(&m, &worst);
		ok(good, "%s, %s: ratio of the colours (%.2f %% off)",
		   names[spacing], motion_names[motion], 100 * worst);
	}
}

/*
 * Packets of two sizes, probability by size, both colours carried: the loss
 * rates are as 15 to 1 between the sizes, as alpha to 1 between the colours,
 * and on average those of the strategy.
 */
static void test_by_size(u32 spacing)
{
	static const double mean[SPACINGS] = { 0.5, 1, 1.5, 2, 1 };
	const double p = 0.02, alpha = 2.5, sizes[2] = { 0.1, 1.5 };
	u64 seen[2][2] = {}, lost[2][2] = {};
	struct abe_gap gaps[2] = {};
	double bad = 0, chance = 0;
	struct abe_rnd rnd;
	int green, large;
	u64 i;

	begin(&gaps[0], spacing, &rnd, 77 + spacing);
	abe_gap_draw(&gaps[1], &abe_spacings[spacing], 0, 0, &rnd);
	for (i = 0; i < unit_samples(6000000); i++) {
		u64 r = unit_random(&seed);

		green = r & 1;
		large = r >> 1 & 1;
		seen[green][large]++;
		lost[green][large] +=
			abe_gap_loss(&gaps[green], spacing,
				     q31(p * sizes[large] *
					 (green ? alpha : 1)), true, 0, &rnd);
	}
	for (green = 0; green < 2; green++)
		for (large = 0; large < 2; large++) {
			double want = p * sizes[large] * (green ? alpha : 1) /
				      mean[spacing];
			double rate = (double)lost[green][large] /
				      seen[green][large];

			/* Which packet is hit is always left to chance. */
			chance = 4 / sqrt(lost[green][large]);
			bad = fmax(bad, fabs(rate / want - 1) - chance);
		}
	for (green = 0; green < 2; green++) {
		double want = (seen[green][0] * sizes[0] +
			       seen[green][1] * sizes[1]) * p *
			      (green ? alpha : 1) / mean[spacing];
		double sum = lost[green][0] + lost[green][1];

		chance = fmax(0.01, 4 * spread[spacing] / sqrt(sum));
		bad = fmax(bad, fabs(sum / want - 1) - chance);
	}
	ok(bad <= 0, "%s: losses in proportion to the size, and to alpha",
	   names[spacing]);
}

/* A green gap is at least as long as a blue one of alpha times p, or so. */
static void test_green_gap(u32 spacing)
{
	const double p = 0.02, alpha = 2.5;
	u32 least = U32_MAX, most = 0, length = 0, i;
	struct abe_gap gap = {};
	struct abe_rnd rnd;

	begin(&gap, spacing, &rnd, 99 + spacing);
	for (i = 0; i < unit_samples(2000000); i++) {
		length++;
		if (!abe_gap_loss(&gap, spacing, q31(p * alpha), true,
				  q31(p), &rnd))
			continue;
		least = min(least, length);
		most = max(most, length);
		length = 0;
	}
	switch (spacing) {
	case TCA_ABE_SPACING_UNIFORM:
		ok(least == 1 && most <= 22, "uniform: green gap 1 .. 1/p");
		break;
	case TCA_ABE_SPACING_GEOMETRIC:
		ok(least == 1 && most > 100, "geometric: green gap 1 and more");
		break;
	case TCA_ABE_SPACING_DELAYED_UNIFORM:
		ok(least >= 20 && least < 23 && most > 38 && most < 43,
		   "delayed_uniform: green gap 1/p .. 2/p");
		break;
	case TCA_ABE_SPACING_DELAYED_GEOMETRIC:
		ok(least >= 20 && least < 23 && most > 100,
		   "delayed_geometric: green gap 1/p and more");
		break;
	default:
		ok(least >= 20 && most <= 21, "deterministic: green gap 1/p");
	}
}

/* Greedy p and sizes for long: the carry stays bounded, all go on losing. */
static void test_extremes(u32 spacing)
{
	struct abe_gap gap = {};
	struct abe_rnd rnd;
	u64 i, bad = 0, lost = 0;

	begin(&gap, spacing, &rnd, 0);
	for (i = 0; i < unit_samples(1000000); i++) {
		lost += abe_gap_loss(&gap, spacing, ABE_Q31_ONE - 1, true,
				     i & 1 ? ABE_Q31_ONE : 0, &rnd);
		bad += gap.left < -(s64)ABE_Q31_ONE;
	}
	bad += lost < i / 3;
	/* What is carried out of it is one packet's worth, no backlog. */
	abe_gap_draw(&gap, &abe_spacings[spacing], 0, 0, &rnd);
	for (i = 0; i < 1000; i++)
		abe_gap_loss(&gap, spacing, ABE_Q31_ONE - 1, true, 0, &rnd);
	for (lost = i = 0; i < 1000; i++)
		lost += abe_gap_loss(&gap, spacing, 1, true, 0, &rnd);
	bad += lost > 10;
	for (i = 0; i < unit_samples(1000000); i++) {
		abe_gap_loss(&gap, unit_upto(&seed, SPACINGS - 1),
			     unit_log_upto(&seed, 1ULL << 62),
			     unit_upto(&seed, 1), unit_upto(&seed, 1U << 30),
			     &rnd);
		bad += gap.left < -(s64)ABE_Q31_ONE ||
		       gap.left > 3LL * ABE_Q31_ONE;
	}
	ok(!bad, "%s: risk stays bounded", names[spacing]);
}

static void test_replay(u32 spacing)
{
	u64 sum[3];
	int run, i;

	for (run = 0; run < 3; run++) {
		struct abe_gap gap = {};
		struct abe_rnd rnd;

		begin(&gap, spacing, &rnd, run < 2 ? 0 : 1);
		for (i = 0, sum[run] = 0; i < 5000; i++)
			sum[run] = sum[run] * 31 +
				   abe_gap_loss(&gap, spacing, q31(0.1), false,
						0, &rnd);
	}
	ok(sum[0] == sum[1] && (spacing == DET) == (sum[1] == sum[2]),
	   "%s: a seed replays the decisions, another does not",
	   names[spacing]);
}

int main(void)
{
	u32 s;

	test_paper_hazard();
	for (s = 0; s < SPACINGS; s++) {
		test_certain(s);
		test_extremes(s);
		test_replay(s);
		test_gaps(s);
		test_green_gap(s);
		test_ratio(s);
		test_ratio_high(s);
		test_ratio_moving(s);
		test_by_size(s);
	}
	return unit_end();
}
