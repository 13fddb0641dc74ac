// SPDX-License-Identifier: GPL-2.0
/*
 * Loss intervals on an erasure channel with independent losses against
 * [VPS02]: mean and variance of TFRC's (CCID 248, Eqs. 3 and 4), of virtual
 * packets in packet mode (249, Eqs. 8 and 9) and in byte mode (250, Eqs. 13
 * and 14; drop-tail, 4.2.3; byte errors, Eq. 27), of random sampling in packet mode
 * (251, Eqs. 10 to 12) and byte mode (Eq. 24 less its bias; the variance is not in
 * the paper), of LIP scaling (252).
 *
 * A sender sends eta packets per window counter. The paper has N packets of
 * size S in a round trip, of which N - 1 are in the loss insensitive period
 * (LIP). Here the LIP ends with the first packet received whose counter is
 * 5 above that of X_prev, the packet received before the loss (RFC 4342,
 * 10.2). Let X_prev be the packet f of those with its counter, h the losses
 * right before the one that began the event, and g the losses right before
 * the end of the LIP. Then the LIP has 5*eta - 1 - f - h + g packets.
 *
 * g is geometric. f and h follow from the interval before, which is also
 * geometric, and are independent of what comes after them. So only every
 * second interval is taken, for these are independent of each other.
 *
 * With random sampling the event is one of the losses after the LIP, a random one: the
 * first that is in the sample. And of the L packets in the LIP each is in it with
 * probability 1/eta. The LIP of LIP scaling is in time, and R is given, so that 9/8 R s/S
 * are 4.5 packets: 4 are within it, and no phase matters.
 */
#include "test_tfrc.h"

#define S	1000

static u64 seed = 41;

/* Losses in a row that are told from more. */
#define HOLE	40

/* z for 99 % and 99.99 %, both sides */
#define LIKELY	2.576
#define SURE	3.891

static u32 checks, unlikely, wrong;

struct moments {
	double	mean;
	double	var;
};

struct setup {
	const char *name;
	const struct tfrc_method *method;
	u32	variant;
};

static const struct setup setups[] = {
	{ "248", &tfrc_standard, 0 },
	{ "249", &tfrc_vp_packet, 0 },
	{ "250", &tfrc_vp_byte, TFRC_VARIANT_DEFAULT },
	{ "250 drop-tail", &tfrc_vp_byte, TFRC_VARIANT_DROP_TAIL },
	{ "250 byte errors", &tfrc_vp_byte, TFRC_VARIANT_BYTE_ERROR },
	{ "251", &tfrc_sampling, 0 },
	{ "251 byte mode", &tfrc_sampling, TFRC_VARIANT_BYTES },
	{ "252", &tfrc_lip_scaling, 0 },
};

/* Loss rate of the small packets where that of large ones is @p. */
static double small_rate(const struct setup *st, double p, u32 eta)
{
	if (st->method == &tfrc_sampling && st->variant == TFRC_VARIANT_BYTES)
		return p / eta;
	if (st->method != &tfrc_vp_byte)
		return p;
	if (st->variant == TFRC_VARIANT_DROP_TAIL)
		return p / (2 * eta);
	if (st->variant == TFRC_VARIANT_BYTE_ERROR)
		return 1 - pow(1 - p, 1. / eta);
	return p / eta;
}

/* P(m mod n) of a geometric m >= 0 that goes on with probability @q. */
static double residue(double q, u32 m, u32 n)
{
	return (1 - q) * pow(q, m) / (1 - pow(q, n));
}

/*
 * f + h. The event is the last of @losses after the LIP; if @sampled, each one of them
 * may be the last, with that probability. With a state for
 * each place modulo eta and each number of losses in a row, go from one loss
 * to the next: it follows at once, or after others that were received.
 */
static struct moments phase(double p, u32 eta, u32 losses, double sampled)
{
	double at[10][HOLE] = {}, next[10][HOLE], ends[10][HOLE] = {};
	double left = 1;
	struct moments m = {};
	u32 i, f, h, step, g;

	/* The first loss: a received packet is before it. */
	for (g = 0; g < eta; g++)
		for (step = 0; step < eta; step++)
			at[(g + step) % eta][0] += residue(p, g, eta) *
						   residue(1 - p, step, eta);
	for (i = 1; i < losses; i++) {
		for (f = 0; f < eta; f++) {
			for (h = 0; h < HOLE; h++) {
				ends[f][h] += at[f][h] * sampled * left;
				next[f][h] = 0;
			}
		}
		left *= 1 - sampled;
		for (f = 0; f < eta; f++) {
			for (h = 0; h < HOLE; h++) {
				/* X_prev stays what it was */
				if (h + 1 < HOLE)
					next[f][h + 1] += at[f][h] * p;
				/* at least one is received */
				for (step = 0; step < eta; step++)
					next[(f + h + 2 + step) % eta][0] +=
						at[f][h] * (1 - p) *
						residue(1 - p, step, eta);
			}
		}
		for (f = 0; f < eta; f++)
			for (h = 0; h < HOLE; h++)
				at[f][h] = next[f][h];
	}
	for (f = 0; f < eta; f++) {
		for (h = 0; h < HOLE; h++) {
			double q = ends[f][h] + at[f][h] * left;

			m.mean += q * (f + h);
			m.var += q * (f + h) * (f + h);
		}
	}
	m.var -= m.mean * m.mean;
	return m;
}

/* N - 1, in units of @eta packets. */
static struct moments lip(const struct setup *st, double p, u32 eta)
{
	bool sampled = st->method == &tfrc_sampling && !st->variant;
	u32 losses = st->method == &tfrc_vp_packet ? eta : 1;
	struct moments m = phase(p, eta, sampled ? 30 * eta : losses,
				 sampled ? 1. / eta : 0);

	m.mean = 5 * eta - 1 - m.mean + p / (1 - p);
	m.var += p / ((1 - p) * (1 - p));
	m.mean /= eta;
	m.var /= eta * eta;
	return m;
}

static struct moments expected(const struct setup *st, double p, u32 eta)
{
	double ps = small_rate(st, p, eta);
	double var = (1 - p) / (p * p);
	struct moments m;

	if (st->method == &tfrc_lip_scaling) {
		m = (struct moments){ 4 + 1 / p, var };
		return m;
	}
	m = lip(st, ps, eta);
	if (st->method == &tfrc_standard) {
		/* Eqs. (3), (4), with the N * eta packets that it takes for N */
		m.mean *= eta;
		m.var *= eta * eta;
	} else if (st->method == &tfrc_vp_packet) {
		var /= eta;			/* Eq. (9) */
	} else if (st->method == &tfrc_sampling) {
		/* of m.mean * eta packets a part is in the sample */
		m.var += m.mean * (1 - 1. / eta);
		if (st->variant) {
			double q = ps / (ps + (1 - ps) / eta);

			var = (1 - q) / (q * q);
		}
	} else if (st->variant == TFRC_VARIANT_DEFAULT) {
		var = (1 - ps) / (ps * ps) / (eta * eta);	/* Eq. (13) */
	} else if (st->variant == TFRC_VARIANT_DROP_TAIL) {
		var = (1 - ps) / (ps * ps) / (4 * eta * eta);
	}
	m.mean += 1 / p;
	m.var += var;
	return m;
}

static void check(bool in, bool surely)
{
	checks++;
	unlikely += !in;
	wrong += !surely;
}

static void test(const struct setup *st, double p, u32 eta, u32 n)
{
	struct tfrc_params par = { .s = S, .variant = st->variant };
	struct moments want = expected(st, p, eta);
	double sum[5] = {}, mean, var, fourth, error, bound, spread;
	double lost = small_rate(st, p, eta);
	u64 k, events = 0, own[128] = { 43 };
	struct tfrc_rx rx = { .own = own };
	u32 i;

	/* The first interval is not measured, and the second has no phase. */
	tfrc_rx_init(&rx, st->method, &par, RATE_SEQ_MASK, 0);
	for (k = 0; rx.events < 2 * n + 3; k++) {
		struct rate_packet pkt = { .seq = k, .size = S / eta,
					   .data = true };
		double length, power = 1;

		if (unit_unit(&seed) < lost)
			continue;
		if (st->method == &tfrc_lip_scaling)
			rx.rate.rtt = 4000 * eta;
		rate_rx_packet(&rx.rate, &pkt, k / eta & 15, (k + 1) * MSEC);
		if (rx.events == events)
			continue;
		events = rx.events;
		if (events < 3 || events % 2)
			continue;
		length = rx.history.i[1].length / 256. - want.mean;
		for (i = 0; i < 5; i++, power *= length)
			sum[i] += power;
	}
	/* Moments about the mean that was wanted, then about the real one. */
	for (i = 4; i; i--)
		sum[i] /= sum[0];
	mean = sum[1];
	var = sum[2] - mean * mean;
	fourth = sum[4] - 4 * mean * sum[3] + 6 * mean * mean * sum[2] -
		 3 * pow(mean, 4);

	/* Lengths are cut to 1/256. */
	error = fmax(fabs(mean + .5 / 256) - .5 / 256, 0);
	bound = sqrt(want.var / sum[0]);
	check(error <= LIKELY * bound, error <= SURE * bound);
	spread = sqrt((fourth - var * var) / sum[0]);
	check(fabs(var - want.var) <= LIKELY * spread,
	      fabs(var - want.var) <= SURE * spread);
	note("%s, eta %u, p %.2f: N %.3f, mean %.3f (%.3f), var %.3f (%.3f)",
	     st->name, eta, p, want.mean - 1 / p + 1,
	     mean + want.mean, want.mean, var, want.var);
}

int main(void)
{
	static const u32 etas[] = { 1, 5, 10 };
	static const double rates[] = { .02, .1, .3 };
	u32 i, j, k;

	for (i = 0; i < ARRAY_SIZE(setups); i++) {
		checks = 0;
		unlikely = 0;
		wrong = 0;
		for (j = 0; j < ARRAY_SIZE(etas); j++)
			for (k = 0; k < ARRAY_SIZE(rates); k++)
				test(&setups[i], rates[k], etas[j],
				     unit_samples(k ? 20000 : 10000));
		ok(!wrong, "vp-exact %s: mean and variance of the loss interval",
		   setups[i].name);
		/* mean and variance of a cell go together */
		ok(unlikely <= 2, "vp-exact %s: %u of %u within 99 %%",
		   setups[i].name, checks - unlikely, checks);
	}
	return unit_end();
}
