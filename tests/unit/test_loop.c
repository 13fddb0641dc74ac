// SPDX-License-Identifier: GPL-2.0
/*
 * Control loop of kernel/abe_loop.h against long double.
 *
 * The reference is [ABE99] 4.3 and 4.5, Eqs. (1), (2), (5), (10), with the
 * rules that the documentation adds where the paper is silent: alpha holds
 * without losses, a loss ratio is at least the measurement's resolution, one
 * step of alpha is at most a factor of two, alpha in [1, alpha_max] and D in
 * [0, offset_max], share of green saturated at 4, delays at 2^36 - 1 ns; loads
 * are smoothed, not their ratio; loop load takes at least 100 green arrivals.
 */
#include <stdlib.h>

#include "abe_loop.h"
#include "unit.h"

#define MSEC	1000000LL
#define SEC	1000000000LL

static const char * const kinds[] = {
	[TCA_ABE_LOOP_PAPER] = "loop paper",
	[TCA_ABE_LOOP_LOAD] = "loop load",
};

static u64 seed = 4;

static s64 log_of(long double x)
{
	return log2l(x) * Q32;
}

/* The defaults: [ABE99] 5.2, and tc-abe(8) for what is ours. */
static struct abe_loop_parms default_parms(u32 kind)
{
	return (struct abe_loop_parms) {
		.kind = kind,
		.k1 = 1.1 * 65536,
		.gamma1 = 0.8 * Q31,
		.gamma2 = 0.4 * Q31,
		.gamma3 = 0.4 * Q31,
		.lambda = 0.4 * Q31,
		.rtt = 180 * MSEC,
		.k2 = 20 * MSEC,
		.k3 = 2 * SEC,
		.k4 = MSEC / 2,
		.offset_max = 200 * MSEC,
		.log_alpha_max = log_of(100),
	};
}

/* --- required bias --- */

static long double ref_bias(u32 kind, long double tau_b, long double tau_g,
			    long double a, long double most)
{
	long double divisor, beta;

	if (kind == TCA_ABE_LOOP_PAPER) {
		divisor = tau_g * (2 * tau_g * tau_g - tau_b * tau_b);
	} else {
		a = fminl(fmaxl(a, 0), 1);
		divisor = tau_g * (tau_b * tau_b -
				   a * (tau_b * tau_b - tau_g * tau_g));
	}
	if (divisor <= 0)
		return most;
	beta = tau_b * tau_b * tau_b / divisor;
	return fminl(fmaxl(1, beta * beta), most);
}

static long double bias_of(const struct abe_loop_parms *prm, u64 d_b, u64 d_g,
			   long double share)
{
	struct abe_loop loop = {
		.delay = { [ABE_BLUE] = d_b, [ABE_GREEN] = d_g },
		.share = share * Q40,
	};

	return exp2l(abe_required_bias(prm, &loop) / Q32);
}

static void test_bias_grid(u32 kind)
{
	static const long double shares[] = {
		0, 0.001L, 0.1L, 1 / 3.0L, 0.5L, 0.9L, 0.999L, 1, 1.5L, 4
	};
	static const u64 rtts[] = { 1000, 20 * MSEC, 180 * MSEC, 10 * SEC };
	struct abe_loop_parms prm = default_parms(kind);
	long double worst = 0, most;
	unsigned int i, s, r;
	u64 bad = 0;

	for (i = 0; i < 4 * ARRAY_SIZE(shares) * ARRAY_SIZE(rtts); i++) {
		s = i % ARRAY_SIZE(shares);
		r = i / ARRAY_SIZE(shares) % ARRAY_SIZE(rtts);
		most = powl(10, i / ARRAY_SIZE(shares) / ARRAY_SIZE(rtts) + 1);
		prm.rtt = rtts[r];
		prm.log_alpha_max = log_of(most);
		for (u64 j = 0; j < unit_samples(4000); j++) {
			/* x = tau_b / tau_g from below 1 to 3, dense at 1.4 */
			u64 d_g = unit_log_upto(&seed, 300 * MSEC);
			long double x = j % 4 ? 0.9L + 2 * unit_unit(&seed) :
				1.3L + 0.12L * unit_unit(&seed), want, got;
			long double d_b = x * (prm.rtt + d_g) - prm.rtt;

			d_b = floorl(fmaxl(d_b, 0));
			want = ref_bias(kind, prm.rtt + d_b, prm.rtt + d_g,
					shares[s], most);
			got = bias_of(&prm, d_b, d_g, shares[s]);
			unit_worst(&worst, fabsl(got / want - 1));
			bad += got < 1 || got > most * (1 + 1e-9L);
		}
	}
	note("%s: required bias off by %.2Le at most", kinds[kind], worst);
	ok(worst < 1e-4L, "%s: required bias, grid of x, a, rtt, alpha_max",
	   kinds[kind]);
	ok(!bad, "%s: required bias within [1, alpha_max]", kinds[kind]);
}

static void test_bias_limits(void)
{
	struct abe_loop_parms paper = default_parms(TCA_ABE_LOOP_PAPER);
	struct abe_loop_parms load = default_parms(TCA_ABE_LOOP_LOAD);
	const u64 max_delay = ABE_DELAY_MAX;
	long double x = 1.25L;
	u64 d = 45 * MSEC, i, bad = 0;

	/* rtt 180 ms, d_g = 0: x = 1 + d/180 ms */
	ok(fabsl(bias_of(&load, d, 0, 0) / powl(x, 2) - 1) < 1e-5L,
	   "loop load: x^2 with few green");
	ok(fabsl(bias_of(&load, d, 0, 1) / powl(x, 6) - 1) < 1e-5L,
	   "loop load: x^6 with as many green as blue");
	ok(bias_of(&load, d, 0, 4) == bias_of(&load, d, 0, 1),
	   "loop load: x^6 with more green than blue");
	ok(fabsl(bias_of(&paper, d, 0, 0) /
		 powl(x * x * x / (2 - x * x), 2) - 1) < 1e-5L,
	   "loop paper: Eq. (1)");
	ok(bias_of(&paper, 0, 0, 0) == 1 && bias_of(&load, 0, 0, 1) == 1 &&
	   bias_of(&paper, 5, 10 * MSEC, 0) == 1 &&
	   bias_of(&load, 5, 10 * MSEC, 1) == 1, "1 where blue waits no longer");
	/* The pole: sqrt(2) * 180 ms = 254.558441 ms */
	ok(bias_of(&paper, 74558442, 0, 0) > 99.999L &&
	   bias_of(&paper, 74559000, 0, 0) > 99.999L &&
	   bias_of(&paper, max_delay, 0, 0) > 99.999L,
	   "loop paper: alpha_max at the pole and beyond");
	paper.log_alpha_max = log_of(10000);
	ok(bias_of(&paper, 70 * MSEC, 0, 0) < 1500,
	   "loop paper: not yet before it");
	/* x = 2^17: its square has no bit left in 64 of Q30 */
	paper.rtt = 1000;
	load.rtt = 1000;
	d = (1000ULL << 17) - 1000;
	ok(bias_of(&paper, d, 0, 0) > 9999 && bias_of(&load, d, 0, 0) > 99.9L &&
	   bias_of(&load, d, 0, 1) > 99.9L, "alpha_max at a huge ratio");
	paper.log_alpha_max = 0;
	load.log_alpha_max = 0;
	ok(bias_of(&paper, d, 0, 0) == 1 && bias_of(&load, d, 0, 1) == 1,
	   "alpha_max 1 leaves no bias");
	load.log_alpha_max = log_of(10000);
	paper.log_alpha_max = log_of(10000);
	for (i = 0; i < unit_samples(300000); i++) {
		u64 d_b = unit_log_upto(&seed, max_delay);
		u64 d_g = unit_log_upto(&seed, max_delay);
		u64 share = unit_log_upto(&seed, ABE_SHARE_MAX);

		load.rtt = 1000 + unit_log_upto(&seed, 10 * SEC - 1000);
		paper.rtt = load.rtt;
		bad += bias_of(&load, d_b, d_g, share / Q40) <
		       bias_of(&load, d_b, d_g, 0) * (1 - 1e-6L);
		bad += bias_of(&paper, d_b, d_g, 0) <
		       bias_of(&load, d_b, d_g, 1) * (1 - 1e-4L);
		bad += bias_of(&load, d_b, d_g, share / Q40) > 10000.001L;
	}
	ok(!bad, "x^2 <= load <= x^6 <= paper over all delays");
}

/* --- one update --- */

/* The state in plain units: ratios, ns, natural alpha. */
struct ref_loop {
	long double q_b;
	long double q_early;
	long double q_late;
	long double load[ABE_COLOURS];
	long double share;
	long double d[ABE_COLOURS];
	long double offset;
	long double log_alpha;
	long double target;
};

static void ref_inputs(struct ref_loop *r, const struct abe_loop *loop)
{
	r->q_b = loop->loss_blue / Q40;
	r->q_early = loop->loss_early / Q40;
	r->q_late = loop->loss_late / Q40;
	r->load[ABE_BLUE] = loop->load[ABE_BLUE] / 0x1p24L;
	r->load[ABE_GREEN] = loop->load[ABE_GREEN] / 0x1p24L;
	r->share = loop->share / Q40;
	r->d[ABE_BLUE] = loop->delay[ABE_BLUE];
	r->d[ABE_GREEN] = loop->delay[ABE_GREEN];
}

static struct ref_loop ref_from(const struct abe_loop *loop)
{
	struct ref_loop r = {
		.offset = loop->offset,
		.log_alpha = loop->log_alpha / Q32,
	};

	ref_inputs(&r, loop);
	return r;
}

static void filter(long double *y, long double sample, u32 gamma)
{
	*y = gamma / Q31 * *y + (1 - gamma / Q31) * sample;
}

static long double bound(long double x, long double lo, long double hi)
{
	return fminl(fmaxl(x, lo), hi);
}

static void ref_measure(struct ref_loop *r, const struct abe_loop_parms *prm,
			const struct abe_loop_sample *s)
{
	long double blue = s->exposed[ABE_BLUE], green = s->exposed[ABE_GREEN];
	long double arrived = s->arrived[ABE_GREEN];
	int c;

	if (blue)
		filter(&r->q_b, fminl(s->lost[ABE_BLUE] / blue, 1), prm->gamma1);
	if (green)
		filter(&r->q_early, fminl(s->lost[ABE_GREEN] / green, 1),
		       prm->gamma1);
	if (prm->kind == TCA_ABE_LOOP_LOAD)
		arrived = fmaxl(arrived, 100);
	if (s->arrived[ABE_GREEN])
		filter(&r->q_late, s->late / arrived, prm->gamma3);
	if (s->load[ABE_BLUE] || s->load[ABE_GREEN]) {
		for (c = 0; c < ABE_COLOURS; c++)
			filter(&r->load[c], fminl(s->load[c], 0x1p39L - 1),
			       prm->gamma1);
		r->share = 0;
		if (r->load[ABE_GREEN] > 0)
			r->share = fminl(4, r->load[ABE_GREEN] /
					    r->load[ABE_BLUE]);
	}
	for (c = 0; c < ABE_COLOURS; c++)
		if (s->sent[c])
			filter(&r->d[c], fminl((long double)s->delay[c] /
					       s->sent[c], 0x1p36L - 1),
			       prm->gamma2);
}

/* The control laws, from smoothed inputs. */
static void ref_control(struct ref_loop *r, const struct abe_loop_parms *prm,
			const struct abe_loop_sample *s)
{
	long double most = exp2l(prm->log_alpha_max / Q32), step;
	long double passed = 1 - prm->gamma1 / Q31;
	const u64 *n = s->exposed;

	r->target = ref_bias(prm->kind, prm->rtt + r->d[ABE_BLUE],
			     prm->rtt + r->d[ABE_GREEN], r->share, most);
	if (n[ABE_GREEN] && n[ABE_BLUE] &&
	    (s->lost[ABE_BLUE] || s->lost[ABE_GREEN])) {
		step = log2l(fmaxl(r->q_b, passed * 128.0L / n[ABE_BLUE])) +
		       log2l(r->target);
		if (prm->kind == TCA_ABE_LOOP_LOAD)
			step = fminl(step, -1);	/* at most half of green */
		step -= log2l(fmaxl(r->q_early, passed * 128.0L / n[ABE_GREEN]));
		r->log_alpha += bound(step * prm->k1 / 65536, -1, 1);
	}
	r->log_alpha = bound(r->log_alpha, 0, prm->log_alpha_max / Q32);
	if (s->arrived[ABE_GREEN]) {
		r->offset += prm->k3 * r->q_late;
		if (prm->kind == TCA_ABE_LOOP_LOAD)
			r->offset -= prm->k4;
		else if (s->looks)
			r->offset += prm->k2 *
				((long double)s->ahead / s->looks /
				 (prm->lambda / Q31 * s->green_limit) - 1);
	}
	r->offset = bound(r->offset, 0, prm->offset_max);
}

static void ref_update(struct ref_loop *r, const struct abe_loop_parms *prm,
		       const struct abe_loop_sample *s)
{
	ref_measure(r, prm, s);
	ref_control(r, prm, s);
}

static u32 fraction(u32 of)
{
	return unit_upto(&seed, 1) ? unit_log_upto(&seed, of) :
				     unit_upto(&seed, of);
}

/* @early of @n packets were lost; none is weighed, and their number is the load. */
static void counted(struct abe_loop_sample *s, int c, u32 n, u32 early)
{
	s->arrived[c] = n;
	s->exposed[c] = (u64)n << ABE_WEIGHED_SHIFT;
	s->lost[c] = (u64)early << ABE_WEIGHED_SHIFT;
	s->load[c] = n;
}

/* Likewise, but they are weighed by their size, and bytes are the load. */
static void weighed(struct abe_loop_sample *s, int c, u32 n, u32 early, u32 size,
		    u32 avpkt)
{
	counted(s, c, n, early);
	s->load[c] = (u64)n * size;
	s->exposed[c] = ((s->load[c] << ABE_WEIGHED_SHIFT) + avpkt - 1) / avpkt;
}

/* Packet counts of an interval; one colour or all losses missing at times. */
static struct abe_loop_sample random_sample(u32 most)
{
	struct abe_loop_sample s = {};
	u32 size, n, early, most_late = 0;
	u64 per_look;
	int c;

	for (c = 0; c < ABE_COLOURS; c++) {
		if (unit_upto(&seed, 19) == 0)
			continue;
		n = 1 + unit_log_upto(&seed, most - 1);
		early = unit_upto(&seed, 3) ? fraction(n) : 0;
		size = 64 + unit_log_upto(&seed, 65535 - 64);
		if (unit_upto(&seed, 1))
			counted(&s, c, n, early);
		else
			weighed(&s, c, n, early, size, 64 +
				unit_log_upto(&seed, 65535 - 64));
		most_late = n - early;
		s.sent[c] = fraction(s.arrived[c]);
		s.delay[c] = s.sent[c] * unit_log_upto(&seed, 2 * SEC);
	}
	if (s.arrived[ABE_GREEN] && unit_upto(&seed, 1))
		s.late = fraction(most_late);
	s.looks = s.arrived[ABE_GREEN];
	s.green_limit = 1 + unit_log_upto(&seed, (1 << 30) - 1);
	per_look = unit_upto(&seed, s.green_limit + s.green_limit / 8 + 1);
	s.ahead = s.looks * per_look;
	if (s.looks)
		s.ahead += unit_upto(&seed, s.looks - 1);
	return s;
}

/* Options anywhere in their ranges, near the defaults half of the time. */
static struct abe_loop_parms random_parms(void)
{
	struct abe_loop_parms prm = default_parms(unit_upto(&seed, 1));

	if (unit_upto(&seed, 1))
		return prm;
	prm.k1 = unit_log_upto(&seed, 16 << 16);
	prm.gamma1 = unit_upto(&seed, 0.95 * Q31);
	prm.gamma2 = unit_upto(&seed, ABE_Q31_ONE - 1);
	prm.gamma3 = unit_upto(&seed, ABE_Q31_ONE - 1);
	prm.lambda = ABE_Q31_ONE / 100 +
		     unit_upto(&seed, ABE_Q31_ONE - ABE_Q31_ONE / 100);
	prm.rtt = 1000 * (1 + unit_log_upto(&seed, 10000000 - 1));
	prm.k2 = 1000 * unit_log_upto(&seed, 10000000);
	prm.k3 = 1000 * unit_log_upto(&seed, 10000000);
	prm.k4 = 1000 * unit_log_upto(&seed, 10000000);
	prm.offset_max = 1000 * unit_log_upto(&seed, 10000000);
	prm.log_alpha_max = log_of(1 + 9999 * powl(unit_unit(&seed), 3));
	return prm;
}

static u64 random_ratio(void)
{
	return unit_upto(&seed, 1) ? unit_upto(&seed, 1ULL << 40) :
				     unit_log_upto(&seed, 1ULL << 40);
}

static struct abe_loop random_state(const struct abe_loop_parms *prm)
{
	return (struct abe_loop) {
		.loss_blue = random_ratio(),
		.loss_early = random_ratio(),
		.loss_late = random_ratio() >> unit_upto(&seed, 12),
		.load = { (1 + unit_log_upto(&seed, ABE_LOAD_MAX - 1)) <<
			  ABE_LOAD_SHIFT,
			  (1 + unit_log_upto(&seed, ABE_LOAD_MAX - 1)) <<
			  ABE_LOAD_SHIFT },
		.share = unit_log_upto(&seed, ABE_SHARE_MAX),
		.delay = { unit_log_upto(&seed, 2 * SEC),
			   unit_log_upto(&seed, 2 * SEC) },
		.offset = unit_upto(&seed, prm->offset_max),
		.log_alpha = unit_upto(&seed, prm->log_alpha_max),
	};
}

struct errors {
	long double alpha;
	long double offset;
	long double target;
	long double inputs;
	long double share;
};

/* A smoothed input is whole ns or 2^-40, of up to three roundings. */
static void input_error(long double *worst, u64 got, long double want)
{
	unit_worst(worst, fmaxl(0, fabsl(got - want) - 3) / fmaxl(want, 1));
}

static void compare_inputs(struct errors *e, const struct abe_loop *loop,
			   const struct ref_loop *r)
{
	input_error(&e->inputs, loop->loss_blue, r->q_b * Q40);
	input_error(&e->inputs, loop->loss_early, r->q_early * Q40);
	input_error(&e->inputs, loop->loss_late, r->q_late * Q40);
	/* a load is some units of 2^-24 off, and may be of a single packet */
	unit_worst(&e->share, fabsl(loop->share / Q40 - r->share) /
			      fmaxl(r->share, 1));
	input_error(&e->inputs, loop->delay[0], r->d[0]);
	input_error(&e->inputs, loop->delay[1], r->d[1]);
}

static void compare(struct errors *e, const struct abe_loop_parms *prm,
		    const struct abe_loop *loop, const struct ref_loop *r)
{
	unit_worst(&e->alpha, fabsl(loop->alpha / 65536.0L /
				    exp2l(r->log_alpha) - 1));
	unit_worst(&e->target, fabsl(exp2l(loop->log_target / Q32) /
				     r->target - 1));
	/* D is whole ns, of two roundings, and a step of K2 is exact to 2^-23 */
	unit_worst(&e->offset, fmaxl(0, fabsl(loop->offset - r->offset) - 2 -
					0x1p-23L * prm->k2) /
			       fmaxl(r->offset, 1000));
}

static bool in_range(const struct abe_loop *loop,
		     const struct abe_loop_parms *prm)
{
	/* abe_ratio() may round up by 2^-23 from 2^16 packets on */
	const u64 one = (1ULL << 40) + (1 << 17);

	return loop->offset >= 0 && loop->offset <= prm->offset_max &&
	       loop->log_alpha >= 0 &&
	       loop->log_alpha <= prm->log_alpha_max &&
	       loop->log_target >= 0 &&
	       loop->log_target <= prm->log_alpha_max &&
	       loop->alpha >= 65536 && loop->alpha <= 10000 << 16 &&
	       loop->loss_blue <= one && loop->loss_early <= one &&
	       loop->loss_late <= one &&
	       loop->share <= ABE_SHARE_MAX &&
	       loop->delay[0] <= ABE_DELAY_MAX &&
	       loop->delay[1] <= ABE_DELAY_MAX;
}

/*
 * The delays of a real state are such that the bias varies; most random ones
 * only meet alpha_max. So half the cases get delays of the rtt's order.
 */
static void test_update(u32 kind)
{
	u64 i, held = 0, moved = 0, outside = 0, count = 0;
	struct errors e = {};

	for (i = 0; i < unit_samples(1000000); i++) {
		struct abe_loop_parms prm = random_parms();
		struct abe_loop_sample s = random_sample(1000000);
		struct abe_loop loop;
		struct ref_loop ref;
		s64 before;

		prm.kind = kind;
		loop = random_state(&prm);
		if (i & 1) {
			loop.delay[0] = unit_upto(&seed, prm.rtt);
			loop.delay[1] = unit_upto(&seed, prm.rtt / 4);
			s.delay[0] = s.sent[0] * unit_upto(&seed, prm.rtt);
			s.delay[1] = s.sent[1] * unit_upto(&seed, prm.rtt / 4);
		}
		count = loop.updates;
		before = loop.log_alpha;
		ref = ref_from(&loop);
		abe_loop_update(&loop, &prm, &s);
		ref_measure(&ref, &prm, &s);
		compare_inputs(&e, &loop, &ref);
		/* Whole ns are coarse beside a round trip of microseconds. */
		if (prm.rtt < 10 * MSEC)
			ref_inputs(&ref, &loop);
		ref_control(&ref, &prm, &s);
		compare(&e, &prm, &loop, &ref);
		held += loop.log_alpha == before;
		moved += loop.log_alpha != before;
		outside += !in_range(&loop, &prm);
		outside += loop.updates != count + 1;
	}
	note("%s: alpha %.2Le, D %.2Le, target %.2Le, inputs %.2Le, share %.2Le off",
	     kinds[kind], e.alpha, e.offset, e.target, e.inputs, e.share);
	ok(e.alpha < 0.001L, "%s: alpha within 0.1 %% of the reference",
	   kinds[kind]);
	ok(e.offset < 0.001L, "%s: D within 0.1 %% of the reference",
	   kinds[kind]);
	ok(e.target < 0.001L, "%s: required bias within 0.1 %%", kinds[kind]);
	/* a quotient of more than 2^24 is exact to 2^-23, see abe_ratio() */
	ok(e.inputs < 0x1p-23L, "%s: smoothed inputs", kinds[kind]);
	ok(e.share < 1e-5L, "%s: share of green", kinds[kind]);
	ok(!outside, "%s: all results in range", kinds[kind]);
	ok(held > i / 100 && moved > i / 10, "%s: alpha held and moved",
	   kinds[kind]);
}

/* One update each from a known state, in numbers worked out by hand. */
static struct abe_loop one_update(const struct abe_loop_parms *prm,
				  const struct abe_loop_sample *s)
{
	struct abe_loop loop = {
		.loss_blue = (1ULL << 40) / 100,
		.loss_early = (1ULL << 40) / 50,
		.share = 1ULL << 39,
		.offset = 50 * MSEC,
		.log_alpha = 1LL << 32,
	};

	abe_loop_update(&loop, prm, s);
	return loop;
}

static void test_rules(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	struct abe_loop_sample base = {
		.looks = 490,
		.ahead = 490 * 4,
		.green_limit = 10,
	}, s;
	const s64 two = 1LL << 32;
	struct abe_loop loop;

	counted(&base, ABE_BLUE, 1000, 10);
	counted(&base, ABE_GREEN, 500, 10);
	s = base;

	/* q_b stays 0.01, q'_g stays 0.02; no delays: a target of 1 */
	prm.k1 = 65536 / 4;
	loop = one_update(&prm, &base);
	ok(fabsl(exp2l((loop.log_alpha - two) / Q32) - powl(0.5L, 0.25L)) < 1e-6L,
	   "%s: alpha times (wanted / measured)^K1", kinds[kind]);
	prm.k1 = 65536 * 1.1;
	loop = one_update(&prm, &base);
	if (kind == TCA_ABE_LOOP_PAPER)
		ok(llabs(loop.offset - 50 * MSEC) < 50,
		   "loop paper: D rests at w_l = lambda * L_0");
	else
		ok(loop.offset == 50 * MSEC - prm.k4,
		   "loop load: D falls by k4");

	s.lost[ABE_BLUE] = 0;
	s.lost[ABE_GREEN] = 0;
	ok(one_update(&prm, &s).log_alpha == two, "%s: no losses hold alpha",
	   kinds[kind]);
	s = base;
	counted(&s, ABE_GREEN, 0, 0);
	s.looks = 0;
	s.ahead = 0;
	loop = one_update(&prm, &s);
	ok(loop.log_alpha == two && loop.offset == 50 * MSEC &&
	   loop.loss_early == (1ULL << 40) / 50,
	   "%s: no green arrivals hold alpha, D and q'_g", kinds[kind]);
	s = base;
	counted(&s, ABE_GREEN, 500, 0);
	counted(&s, ABE_BLUE, 1000, 1000);
	ok(one_update(&prm, &s).log_alpha == 2 * two,
	   "%s: at most a factor of two up", kinds[kind]);
	s = base;
	counted(&s, ABE_BLUE, 1000, 0);
	counted(&s, ABE_GREEN, 500, 500);
	ok(one_update(&prm, &s).log_alpha == 0,
	   "%s: at most a factor of two down", kinds[kind]);
	s = base;
	s.late = 50;
	loop = one_update(&prm, &s);
	/* q''_g = 0.6 * 0.1, K3 2 s */
	ok(llabs(loop.offset - one_update(&prm, &base).offset - 120 * MSEC) < 50,
	   "%s: second-stage losses raise D by K3 * q''_g", kinds[kind]);
	s = base;
	s.sent[ABE_BLUE] = 10;
	s.delay[ABE_BLUE] = 10 * 30 * MSEC;
	s.sent[ABE_GREEN] = 5;
	s.delay[ABE_GREEN] = 5 * 5 * MSEC;
	loop = one_update(&prm, &s);
	ok(llabs((s64)loop.delay[ABE_BLUE] - 18 * MSEC) < 3 &&
	   llabs((s64)loop.delay[ABE_GREEN] - 3 * MSEC) < 3,
	   "%s: delays are means of the departures, smoothed", kinds[kind]);
	s.delay[ABE_BLUE] = 10ULL << 40;
	loop = one_update(&prm, &s);
	ok(fabsl(loop.delay[ABE_BLUE] / (0.6L * ((1ULL << 36) - 1)) - 1) < 1e-6L,
	   "%s: delays saturate at 68 s", kinds[kind]);
}

/*
 * Green is small and blue is large, and both lose the same in bytes: 2 % of what
 * was exposed. That is 0.2 % of the green packets and 3 % of the blue ones.
 */
static void test_weighed(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	struct abe_loop_sample s = { .green_limit = 10 };
	struct abe_loop loop = {
		.loss_blue = (1ULL << 40) / 50,
		.loss_early = (1ULL << 40) / 50,
	};

	weighed(&s, ABE_BLUE, 1000, 30, 1500, 1000);
	weighed(&s, ABE_GREEN, 5000, 10, 100, 1000);
	abe_loop_update(&loop, &prm, &s);
	ok(!loop.log_alpha &&
	   fabsl(loop.loss_early / Q40 - 0.02L) < 1e-6L &&
	   fabsl(loop.loss_blue / Q40 - 0.02L) < 1e-6L,
	   "%s: losses are weighed as stage one weighs packets", kinds[kind]);
	ok(fabsl(loop.share / Q40 - 1 / 3.0L) < 1e-6L,
	   "%s: share of green by what was counted", kinds[kind]);
	/* Small packets that the full buffer took: no more than all were lost. */
	s.lost[ABE_GREEN] = 2 * s.exposed[ABE_GREEN];
	loop.loss_early = 1ULL << 40;
	abe_loop_update(&loop, &prm, &s);
	ok(loop.loss_early == 1ULL << 40, "%s: a loss ratio is at most 1",
	   kinds[kind]);
}

/* An interval without blue is no share of four, and an empty one none at all. */
static void test_share(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	struct abe_loop_sample s = { .green_limit = 10 };
	struct abe_loop loop = {};
	u64 share;

	counted(&s, ABE_BLUE, 900, 0);
	counted(&s, ABE_GREEN, 90, 0);
	abe_loop_update(&loop, &prm, &s);
	ok(fabsl(loop.share / Q40 - 0.1L) < 1e-9L,
	   "%s: the first interval's share counts whole", kinds[kind]);
	share = loop.share;
	s = (struct abe_loop_sample) { .green_limit = 10 };
	abe_loop_update(&loop, &prm, &s);
	ok(loop.share == share, "%s: without packets the share stays",
	   kinds[kind]);
	counted(&s, ABE_GREEN, 9, 0);
	abe_loop_update(&loop, &prm, &s);
	/* 0.8 * 90 + 9 to 0.8 * 900, both times 0.2 */
	ok(fabsl(loop.share / Q40 - 81 / 720.0L) < 1e-6L,
	   "%s: an interval of a few green ones moves the share by them",
	   kinds[kind]);
	counted(&s, ABE_GREEN, 0, 0);
	counted(&s, ABE_BLUE, U32_MAX, 0);
	s.load[ABE_BLUE] = U64_MAX;
	abe_loop_update(&loop, &prm, &s);
	ok(loop.load[ABE_BLUE] >> 63 == 0 && loop.share < share,
	   "%s: a load saturates", kinds[kind]);
}

/* D of loop load: one loss of ten packets is not taken for one of each ten. */
static void test_few_late(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	struct abe_loop_sample s = { .green_limit = 10 };
	s64 few, many, base;
	struct abe_loop loop;

	prm.offset_max = 10 * SEC;
	counted(&s, ABE_BLUE, 1000, 10);
	counted(&s, ABE_GREEN, 100, 2);
	base = one_update(&prm, &s).offset;
	s.late = 1;
	many = one_update(&prm, &s).offset - base;
	counted(&s, ABE_GREEN, 10, 0);
	few = one_update(&prm, &s).offset - base;
	ok(llabs(many - 12 * MSEC) < 50, "%s: one late of 100 raises D by 12 ms",
	   kinds[kind]);
	if (kind == TCA_ABE_LOOP_LOAD)
		ok(few == many, "loop load: one of ten by no more");
	else
		ok(llabs(few - 120 * MSEC) < 50,
		   "loop paper: one of ten by ten times as much");
	counted(&s, ABE_GREEN, 1000, 0);
	s.late = 100;
	loop = one_update(&prm, &s);
	ok(llabs(loop.offset - base - 120 * MSEC) < 50,
	   "%s: many arrivals are the divisor", kinds[kind]);
}

/* No losses ever seen of one colour: half a packet through the filter. */
static void test_resolution(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	struct abe_loop loop = { .log_alpha = 2LL << 32 };
	struct abe_loop_sample s = {};

	counted(&s, ABE_BLUE, 100, 1);
	counted(&s, ABE_GREEN, 200, 0);

	/* q_b = 0.2 * 0.01 from 0, q'_g taken as 0.2 * 0.5/200 */
	prm.k1 = 6554;
	abe_loop_update(&loop, &prm, &s);
	ok(fabsl(loop.log_alpha / Q32 - 2 - 0.1L * log2l(4)) < 1e-4L,
	   "%s: no green loss counts as half a packet", kinds[kind]);
	counted(&s, ABE_BLUE, 100, 0);
	counted(&s, ABE_GREEN, 200, 1);
	loop = (struct abe_loop) { .log_alpha = 2LL << 32 };
	abe_loop_update(&loop, &prm, &s);
	ok(fabsl(loop.log_alpha / Q32 - 2) < 1e-4L,
	   "%s: no blue loss counts as half a packet", kinds[kind]);
	/* Even where that is below the unit of the ratios, 0 has no log. */
	prm.gamma1 = ABE_Q31_ONE - 1;
	counted(&s, ABE_BLUE, 1000000000, 0);
	counted(&s, ABE_GREEN, 1000000000, 1);
	loop = (struct abe_loop) { .log_alpha = 2LL << 32 };
	abe_loop_update(&loop, &prm, &s);
	ok(loop.log_alpha == 2LL << 32,
	   "%s: a resolution below 2^-40 counts as that", kinds[kind]);
}

static void test_init(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	struct abe_loop loop;
	long double want;

	abe_loop_init(&loop, &prm, 100 * MSEC);
	/* d_b = 50 ms, d_g = 0, share 0 */
	want = ref_bias(kind, 230, 180, 0, 100);
	ok(loop.offset == 100 * MSEC && loop.delay[ABE_BLUE] == 50 * MSEC &&
	   !loop.delay[ABE_GREEN] && !loop.loss_late && !loop.updates,
	   "%s: D(0), d_b(0), d_g(0), q''_g(0)", kinds[kind]);
	ok(fabsl(loop.loss_blue / Q40 - 0.01L) < 1e-9L &&
	   fabsl(loop.alpha / 65536.0L / want - 1) < 1e-4L &&
	   fabsl(loop.loss_early / Q40 / want / 0.01L - 1) < 1e-3L,
	   "%s: q_b(0), alpha(0), q'_g(0) by Formula (2)", kinds[kind]);
	prm.log_alpha_max = log_of(10000);
	abe_loop_init(&loop, &prm, 10 * SEC);
	prm.offset_max = 10 * SEC;
	ok(in_range(&loop, &prm), "%s: extreme start in range", kinds[kind]);
}

/* --- extremes: the ranges of the options in kernel/sch_abe.c --- */

enum { K1, GAMMA1, GAMMA2, GAMMA3, LAMBDA, RTT, K2, K3, K4, D_MAX, A_MAX, OPTIONS };

static struct abe_loop_parms corner(u32 kind, unsigned int bits)
{
	const u64 us_max = 10000000ULL * 1000;
	struct abe_loop_parms prm = { .kind = kind };
#define PICK(option, least, most)	(bits >> (option) & 1 ? (most) : (least))

	prm.k1 = PICK(K1, 0, 16 << 16);
	prm.gamma1 = PICK(GAMMA1, 0, ABE_Q31_ONE - 1);
	prm.gamma2 = PICK(GAMMA2, 0, ABE_Q31_ONE - 1);
	prm.gamma3 = PICK(GAMMA3, 0, ABE_Q31_ONE - 1);
	prm.lambda = PICK(LAMBDA, ABE_Q31_ONE / 100, ABE_Q31_ONE);
	prm.rtt = PICK(RTT, 1000, us_max);
	prm.k2 = PICK(K2, 0, us_max);
	prm.k3 = PICK(K3, 0, us_max);
	prm.k4 = PICK(K4, 0, us_max);
	prm.offset_max = PICK(D_MAX, 0, us_max);
	prm.log_alpha_max = PICK(A_MAX, 0, abe_log2(10000 << 16) - (16LL << 32));
#undef PICK
	return prm;
}

static u32 extreme_count(void)
{
	const u32 most = 1000000000;

	switch (unit_upto(&seed, 3)) {
	case 0:
		return unit_upto(&seed, 2);
	case 1:
		return most;
	default:
		return unit_log_upto(&seed, most);
	}
}

/* Every field 0, 1 or as large as ten seconds at 10^8 packets/s make it. */
static struct abe_loop_sample extreme_sample(void)
{
	static const u64 limits[] = { 1, 2, 1000, 1 << 30 };
	static const u64 delays[] = { 0, 1, ABE_DELAY_MAX, 1ULL << 40 };
	struct abe_loop_sample s = {};
	u32 n, early = 0;
	int c;

	for (c = 0; c < ABE_COLOURS; c++) {
		n = extreme_count();
		early = min(extreme_count(), n);
		if (unit_upto(&seed, 1))
			counted(&s, c, n, early);
		else
			weighed(&s, c, n, early, 65535, 64);
		s.sent[c] = extreme_count();
		s.delay[c] = (u64)min(s.sent[c], 1U << 24) *
			     delays[unit_upto(&seed, 3)];
	}
	s.late = min(extreme_count(), s.arrived[ABE_GREEN] - early);
	s.looks = s.arrived[ABE_GREEN];
	s.green_limit = limits[unit_upto(&seed, 3)];
	s.ahead = s.looks * unit_upto(&seed, s.green_limit + 1);
	return s;
}

static void test_corners(u32 kind)
{
	long double worst = 0, error;
	u64 outside = 0, i;
	unsigned int bits;

	for (bits = 0; bits < 1U << OPTIONS; bits++) {
		struct abe_loop_parms prm = corner(kind, bits);
		struct abe_loop loop;

		abe_loop_init(&loop, &prm, prm.offset_max);
		for (i = 0; i < 300; i++) {
			struct abe_loop_sample s = extreme_sample();
			struct ref_loop ref = ref_from(&loop);

			abe_loop_update(&loop, &prm, &s);
			ref_update(&ref, &prm, &s);
			outside += !in_range(&loop, &prm);
			error = fabsl(loop.offset - ref.offset) / 10 / SEC;
			unit_worst(&worst, error);
		}
	}
	note("%s: D off by %.2Le of its range at most", kinds[kind], worst);
	ok(!outside, "%s: in range for all options at their limits",
	   kinds[kind]);
	ok(worst < 1e-3L, "%s: D still right at the limits", kinds[kind]);
}

/* Wilder than any traffic: u32 and u64 anything, states carried along. */
static void test_walk(u32 kind)
{
	struct abe_loop_parms prm = corner(kind, ~0);
	struct abe_loop loop;
	u64 i, outside = 0;

	abe_loop_init(&loop, &prm, 0);
	for (i = 0; i < unit_samples(1000000); i++) {
		struct abe_loop_sample s = {
			.arrived = { unit_log_upto(&seed, U32_MAX),
				     unit_log_upto(&seed, U32_MAX) },
			.exposed = { unit_log_upto(&seed, U64_MAX),
				     unit_log_upto(&seed, U64_MAX) },
			.lost = { unit_log_upto(&seed, U64_MAX),
				  unit_log_upto(&seed, U64_MAX) },
			.load = { unit_log_upto(&seed, U64_MAX),
				  unit_log_upto(&seed, U64_MAX) },
			.sent = { unit_log_upto(&seed, U32_MAX),
				  unit_log_upto(&seed, U32_MAX) },
			.looks = unit_log_upto(&seed, U32_MAX),
			.delay = { unit_log_upto(&seed, U64_MAX),
				   unit_log_upto(&seed, U64_MAX) },
			.ahead = unit_log_upto(&seed, U64_MAX),
			.green_limit = 1 + unit_log_upto(&seed, (1 << 30) - 1),
		};

		s.late = fraction(s.arrived[1]);
		if (i % 50 == 0) {
			prm = i % 100 ? random_parms() :
				corner(kind, unit_random(&seed));
			prm.kind = kind;
			abe_loop_clamp(&loop, &prm);
		}
		abe_loop_update(&loop, &prm, &s);
		outside += !in_range(&loop, &prm);
	}
	ok(!outside, "%s: random walk stays in range", kinds[kind]);
}

/* Errors of single updates must not add up: the same samples for long. */
static void test_drift(u32 kind)
{
	struct abe_loop_parms prm = default_parms(kind);
	long double alpha = 0, offset = 0;
	struct abe_loop loop;
	struct ref_loop ref;
	u64 i;

	abe_loop_init(&loop, &prm, 100 * MSEC);
	ref = ref_from(&loop);
	for (i = 0; i < unit_samples(100000); i++) {
		struct abe_loop_sample s = {
			.sent = { 200, 60 },
			.green_limit = 10000,
		};

		counted(&s, ABE_BLUE, 200 + unit_upto(&seed, 200),
			unit_upto(&seed, 8));
		counted(&s, ABE_GREEN, 50 + unit_upto(&seed, 100),
			unit_upto(&seed, 8));
		s.late = unit_upto(&seed, 7) / 7;
		s.delay[0] = s.sent[0] * unit_upto(&seed, 80 * MSEC);
		s.delay[1] = s.sent[1] * unit_upto(&seed, 10 * MSEC);
		s.looks = s.arrived[1];
		s.ahead = s.looks * unit_upto(&seed, 8000);
		abe_loop_update(&loop, &prm, &s);
		ref_update(&ref, &prm, &s);
		unit_worst(&alpha, fabsl(loop.alpha / 65536.0L /
					 exp2l(ref.log_alpha) - 1));
		unit_worst(&offset, fabsl(loop.offset - ref.offset) /
				    fmaxl(ref.offset, MSEC));
	}
	note("%s: alpha %.2Le, D %.2Le off", kinds[kind], alpha, offset);
	ok(alpha < 0.001L && offset < 0.001L,
	   "%s: no drift over many updates", kinds[kind]);
}

/* --- closed loop --- */

static u32 binomial(u32 n, double p)
{
	u32 hits = 0;

	while (n--)
		hits += unit_unit(&seed) < p;
	return hits;
}

/*
 * A toy queue of 600 blue and 300 green arrivals an interval: blue lost with
 * p, green with alpha * p; blue waits 6 ms and half of D, green 2 ms. What is
 * ahead of green sinks with D, from twice lambda * L_0 at D = 0 to nothing at
 * 80 ms, and so does the second-stage loss, from 2 % to nothing at 30 ms.
 */
static struct abe_loop_sample plant(const struct abe_loop *loop, double p,
				    double off)
{
	double d = loop->offset / (double)MSEC, alpha = loop->alpha / 65536.0;
	struct abe_loop_sample s = { .green_limit = 10000 };
	u32 blue = binomial(600, p);
	u32 green = binomial(300, fmin(1, alpha * p * off));

	counted(&s, ABE_BLUE, 600, blue);
	counted(&s, ABE_GREEN, 300, green);
	s.looks = 300;
	s.late = binomial(300 - green, fmax(0, 0.02 * (1 - d / 30)));
	s.ahead = s.looks * fmax(0, 8000 * (1 - d / 80));
	s.sent[ABE_BLUE] = 600 - blue;
	s.sent[ABE_GREEN] = 300 - green - s.late;
	s.delay[ABE_BLUE] = s.sent[ABE_BLUE] * (6 + d / 2) * MSEC;
	s.delay[ABE_GREEN] = s.sent[ABE_GREEN] * 2 * MSEC;
	return s;
}

static void test_closed_loop(u32 kind, bool alpha_at_max, bool offset_at_max)
{
	struct abe_loop_parms prm = default_parms(kind);
	long double ratio[2] = {}, arrived[2] = {}, wanted, mean = 0, late = 0;
	const double p = 0.02, off = 0.7;
	struct abe_loop loop;
	int i, settle = 300, run = unit_samples(20000);

	abe_loop_init(&loop, &prm, offset_at_max ? prm.offset_max : 0);
	loop.log_alpha = alpha_at_max ? prm.log_alpha_max : 0;
	abe_loop_clamp(&loop, &prm);
	for (i = 0; i < settle + run; i++) {
		struct abe_loop_sample s = plant(&loop, p, off);

		abe_loop_update(&loop, &prm, &s);
		if (i < settle)
			continue;
		late += s.late;
		mean += loop.offset / (long double)run / MSEC;
		ratio[0] += s.lost[ABE_BLUE] / 256.0L;
		ratio[1] += s.lost[ABE_GREEN] / 256.0L;
		arrived[0] += s.arrived[ABE_BLUE];
		arrived[1] += s.arrived[ABE_GREEN];
	}
	late /= arrived[1];
	/*
	 * D rests where K2 (w_l/(lambda L_0) - 1) + K3 q''_g = 0: 40 ms; or
	 * where K3 q''_g = k4, q''_g = 0.025 %: about 30 ms.
	 */
	note("%s: D %.2Lf ms, late %.4Lf %%", kinds[kind], mean, 100 * late);
	ok(kind == TCA_ABE_LOOP_PAPER ?
	   fabsl(mean - 40) < 0.5L && !late :
	   fabsl(late / 0.00025L - 1) < 0.02L * sqrtl(UNIT_DIVISOR) &&
	   fabsl(mean - 30) < 4,
	   "%s from alpha %s, D %s: D settles", kinds[kind],
	   alpha_at_max ? "max" : "1", offset_at_max ? "max" : "0");
	wanted = ref_bias(kind, 186 + mean / 2, 182, 0.5L, 100);
	ratio[0] = ratio[1] / arrived[1] / (ratio[0] / arrived[0]);
	note("ratio %.3Lf, required %.3Lf", ratio[0], wanted);
	/* the noise of few losses in log(alpha) leaves some bias */
	ok(fabsl(ratio[0] / wanted - 1) < 0.05L,
	   "%s from alpha %s, D %s: ratio of the losses settles",
	   kinds[kind], alpha_at_max ? "max" : "1", offset_at_max ? "max" : "0");
}

int main(void)
{
	u32 kind;
	int i;

	test_bias_limits();
	for (kind = 0; kind < __TCA_ABE_LOOP_MAX; kind++) {
		test_bias_grid(kind);
		test_update(kind);
		test_rules(kind);
		test_weighed(kind);
		test_share(kind);
		test_few_late(kind);
		test_resolution(kind);
		test_init(kind);
		test_corners(kind);
		test_walk(kind);
		test_drift(kind);
		for (i = 0; i < 4; i++)
			test_closed_loop(kind, i & 1, i & 2);
	}
	return unit_end();
}
