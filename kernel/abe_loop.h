/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control of the drop bias alpha and the offset D, [ABE99] 4.3.
 *
 * Blue packets wait longer than green ones, by the delay boost. What that
 * costs a TCP-friendly blue flow in throughput is given back by losing green
 * packets more often: the *required bias* is the ratio of green first-stage
 * to blue losses at which no blue flow is worse off than in a flat network.
 * With x = tau_b / tau_g, the ratio of the round trips of both colours,
 *
 *	loop paper:  (x^3 / (2 - x^2))^2,  at least 1	[ABE99] Eq. (1)
 *	loop load:   (x^3 / (x^2 - a*(x^2 - 1)))^2,  at least 1
 *
 * where a in [0, 1] is the ratio of green to blue arrivals. The first has a
 * pole: from x = sqrt(2) on it is alpha_max. The second is [ABE99] Eq. (10)
 * at tau_f^2 = (tau_b^2 + a*tau_g^2) / (1 + a): x^2 with few green packets,
 * x^6 with as many as blue ones, and no pole.
 *
 * Once an interval, alpha is multiplied by (wanted / measured ratio)^K1. It
 * is kept as a logarithm, so products and powers are sums here. D follows
 *
 *	loop paper:  D += K2 * (w_l / (lambda*L_0) - 1) + K3 * q''_g
 *	loop load:   D += K3 * q''_g - K4
 *
 * Losses are compared as the first stage hands them out. Where that weighs
 * packets by size (bytemode), arrivals are counted in bytes: else the loop would
 * raise alpha until small green packets were lost as often as large ones.
 *
 * Where blue loses a sixth of its packets, the bias asks for more green losses
 * than there is green: the square root law that it comes from ends there. A
 * TCP-friendly flow that loses every second packet sends about one a round
 * trip, so nobody gains by green there, and loop load asks for no more.
 */
#ifndef _ABE_LOOP_H
#define _ABE_LOOP_H

#include <uapi/linux/pkt_sch_abe.h>

#include "abe_math.h"

enum abe_colour { ABE_BLUE, ABE_GREEN, ABE_COLOURS };

/* Fraction bits of loss ratios and of the share of green. */
#define ABE_LOSS_SHIFT	40
/* One step of log2(alpha) is at most a factor of two either way. */
#define ABE_ALPHA_STEP	0x100000000LL
/* loop load never asks for more than half of green: log2(1/2), Q40. */
#define ABE_LOG_LOSS_MOST	((ABE_LOSS_SHIFT - 1) * 0x100000000LL)
/* The ratio of green to blue saturates here. */
#define ABE_SHARE_MAX	(4ULL << ABE_LOSS_SHIFT)
/* Fraction bits of packets that were weighed by size. */
#define ABE_WEIGHED_SHIFT	8
/* Fraction bits of the smoothed loads, which saturate: 0.4 Tb/s for 10 s. */
#define ABE_LOAD_SHIFT	24
#define ABE_LOAD_MAX	((1ULL << 39) - 1)
/*
 * loop load takes an interval's second-stage losses for those of so many green
 * arrivals at least: one of ten packets lost is no ratio of a tenth yet.
 */
#define ABE_LATE_BASE	100U
/* Queueing delays saturate here (ns, 68 s): tau fits into 37 bits. */
#define ABE_DELAY_MAX	0xfffffffffULL

/**
 * struct abe_loop_parms - configuration of the control loop
 * @kind:	enum tca_abe_loop
 * @k1:		gain of log(alpha), Q16.16
 * @gamma1:	smoothing of q_b, q'_g and the loads, Q31 in [0, 1)
 * @gamma2:	smoothing of the delays, Q31
 * @gamma3:	smoothing of q''_g, Q31
 * @lambda:	safety margin of the green bound, Q31 in (0, 1]
 * @rtt:	tau_e, ns
 * @k2:		gain of D on w_l, ns
 * @k3:		gain of D on q''_g, ns
 * @k4:		decay of D an update (loop load), ns
 * @offset_max:	highest D, ns
 * @log_alpha_max: log2 of the highest alpha, 32 fraction bits
 */
struct abe_loop_parms {
	u32	kind;
	u32	k1;
	u32	gamma1;
	u32	gamma2;
	u32	gamma3;
	u32	lambda;
	u64	rtt;
	s64	k2;
	s64	k3;
	s64	k4;
	s64	offset_max;
	s64	log_alpha_max;
};

/**
 * struct abe_loop_sample - what was measured over one interval
 * @arrived:	packets of each colour
 * @exposed:	likewise, but as the first stage weighs them: with bytemode each
 *		by its size over avpkt; ABE_WEIGHED_SHIFT fraction bits
 * @lost:	first-stage losses and marks of each colour, one each, and losses
 *		in the full buffer, weighed like @exposed
 * @load:	bytes of each colour, or packets if that is the unit
 * @late:	second-stage losses of green
 * @sent:	departures of each colour
 * @delay:	sum of the departures' queueing delays, ns
 * @ahead:	sum over green arrivals of what was found ahead (w_l)
 * @looks:	green arrivals that looked
 * @green_limit: L_0, in the unit of @ahead, at least 1
 *
 * q_b is the blue loss ratio, whatever took the packet, and q'_g that of green
 * but for the second stage, which is no price for anything.
 */
struct abe_loop_sample {
	u32	arrived[ABE_COLOURS];
	u32	sent[ABE_COLOURS];
	u32	late;
	u32	looks;
	u64	exposed[ABE_COLOURS];
	u64	lost[ABE_COLOURS];
	u64	load[ABE_COLOURS];
	u64	delay[ABE_COLOURS];
	u64	ahead;
	u64	green_limit;
};

/**
 * struct abe_loop - state of the control loop
 * @loss_blue:	q_b, Q40
 * @loss_early:	q'_g, Q40
 * @loss_late:	q''_g, Q40
 * @load:	bytes or packets of an interval, ABE_LOAD_SHIFT fraction bits
 * @share:	ratio of green to blue @load, Q40, at most ABE_SHARE_MAX
 * @delay:	d_b and d_g, ns
 * @offset:	D, ns, in [0, offset_max]
 * @log_alpha:	log2(alpha), 32 fraction bits, in [0, log_alpha_max]
 * @log_target:	log2 of the required bias, likewise
 * @alpha:	2^log_alpha, Q16.16
 * @updates:	updates so far
 */
struct abe_loop {
	u64	loss_blue;
	u64	loss_early;
	u64	loss_late;
	u64	load[ABE_COLOURS];
	u64	share;
	u64	delay[ABE_COLOURS];
	s64	offset;
	s64	log_alpha;
	s64	log_target;
	u32	alpha;
	u64	updates;
};

/**
 * abe_required_bias() - logarithm of the required bias
 * @prm:	configuration
 * @loop:	delays and share
 *
 * x is Q24 and at most 2^11; from there on either formula is far beyond the
 * largest alpha_max. Squares are Q30 so that they fit into 52 bits.
 *
 * Return: log2 of the bias, 32 fraction bits, in [0, log_alpha_max].
 */
static inline s64 abe_required_bias(const struct abe_loop_parms *prm,
				    const struct abe_loop *loop)
{
	const u64 one = 1ULL << 30;
	u64 x, square, share, divisor;
	s64 bias;

	x = abe_ratio(prm->rtt + loop->delay[ABE_BLUE],
		      prm->rtt + loop->delay[ABE_GREEN], 24);
	if (x <= 1ULL << 24)
		return 0;
	x = min(x, 1ULL << 35);
	square = mul_u64_u64_shr(x, x, 18);	/* Q30 */
	if (prm->kind == TCA_ABE_LOOP_PAPER) {
		if (square >= 2 * one)
			return prm->log_alpha_max;
		divisor = 2 * one - square;
	} else {
		share = min(loop->share, 1ULL << ABE_LOSS_SHIFT);
		divisor = square - mul_u64_u64_shr(square - one, share,
						   ABE_LOSS_SHIFT);
	}
	bias = 3 * (abe_log2(x) - (24LL << 32)) -
	       (abe_log2(divisor) - (30LL << 32));
	return clamp(2 * bias, 0LL, prm->log_alpha_max);
}

/* Half a packet of the interval's arrivals, as the filter lets it through. */
static inline u64 abe_resolution(u64 exposed, u32 gamma1)
{
	return max(1ULL, mul_u64_u32_shr(abe_ratio(1 << (ABE_WEIGHED_SHIFT - 1),
						   exposed, ABE_LOSS_SHIFT),
					 ABE_Q31_ONE - gamma1, 31));
}

/* Loss ratio of a colour; without arrivals it stays. */
static inline u64 abe_loop_loss(u64 old, const struct abe_loop_sample *s,
				enum abe_colour c, u32 gamma1)
{
	if (!s->exposed[c])
		return old;
	return abe_ewma(old, abe_ratio(min(s->lost[c], s->exposed[c]),
				       s->exposed[c], ABE_LOSS_SHIFT), gamma1);
}

/*
 * Share of green. The loads are smoothed and not their ratio, so that an interval
 * with hardly any packets counts for hardly anything.
 */
static inline void abe_loop_share(struct abe_loop *loop,
				  const struct abe_loop_sample *s, u32 gamma1)
{
	int c;

	if (!s->load[ABE_BLUE] && !s->load[ABE_GREEN])
		return;
	for (c = 0; c < ABE_COLOURS; c++)
		loop->load[c] = abe_ewma(loop->load[c],
					 min(s->load[c], ABE_LOAD_MAX) <<
					 ABE_LOAD_SHIFT, gamma1);
	loop->share = min(abe_ratio(loop->load[ABE_GREEN], loop->load[ABE_BLUE],
				    ABE_LOSS_SHIFT), ABE_SHARE_MAX);
}

/* Smooth the interval's losses, delays and loads; what was not seen stays. */
static inline void abe_loop_measure(struct abe_loop *loop,
				    const struct abe_loop_parms *prm,
				    const struct abe_loop_sample *s)
{
	u32 green = s->arrived[ABE_GREEN];
	int c;

	loop->loss_blue = abe_loop_loss(loop->loss_blue, s, ABE_BLUE,
					prm->gamma1);
	loop->loss_early = abe_loop_loss(loop->loss_early, s, ABE_GREEN,
					 prm->gamma1);
	if (green) {
		if (prm->kind == TCA_ABE_LOOP_LOAD)
			green = max(green, ABE_LATE_BASE);
		loop->loss_late = abe_ewma(loop->loss_late,
					   abe_ratio(s->late, green,
						     ABE_LOSS_SHIFT),
					   prm->gamma3);
	}
	abe_loop_share(loop, s, prm->gamma1);
	for (c = 0; c < ABE_COLOURS; c++)
		if (s->sent[c])
			loop->delay[c] =
				abe_ewma(loop->delay[c],
					 min(div64_u64(s->delay[c], s->sent[c]),
					     ABE_DELAY_MAX),
					 prm->gamma2);
}

/*
 * alpha(n) = alpha(n-1) * (q'*_g / q'_g)^K1. Without arrivals of both colours,
 * or without any loss, nothing was learnt and alpha stays.
 */
static inline void abe_loop_alpha(struct abe_loop *loop,
				  const struct abe_loop_parms *prm,
				  const struct abe_loop_sample *s)
{
	u64 blue, green;
	s64 wanted, step;

	if (!s->exposed[ABE_GREEN] || !s->exposed[ABE_BLUE] ||
	    !(s->lost[ABE_BLUE] | s->lost[ABE_GREEN]))
		return;
	blue = max(loop->loss_blue,
		   abe_resolution(s->exposed[ABE_BLUE], prm->gamma1));
	green = max(loop->loss_early,
		    abe_resolution(s->exposed[ABE_GREEN], prm->gamma1));
	wanted = abe_log2(blue) + loop->log_target;
	if (prm->kind == TCA_ABE_LOOP_LOAD)
		wanted = min(wanted, ABE_LOG_LOSS_MOST);
	step = wanted - abe_log2(green);
	/* |step| < 2^38, k1 <= 2^20: the product fits */
	step = (step * (s64)prm->k1) >> 16;
	loop->log_alpha += clamp(step, -ABE_ALPHA_STEP, ABE_ALPHA_STEP);
}

/* D(n); without green arrivals nothing was learnt and D stays. */
static inline void abe_loop_offset(struct abe_loop *loop,
				   const struct abe_loop_parms *prm,
				   const struct abe_loop_sample *s)
{
	u64 fill = 0;

	if (!s->arrived[ABE_GREEN])
		return;
	loop->offset += mul_u64_u64_shr(prm->k3, loop->loss_late,
					ABE_LOSS_SHIFT);
	if (prm->kind == TCA_ABE_LOOP_LOAD) {
		loop->offset -= prm->k4;
		return;
	}
	/* w_l / L_0, times K2 / lambda */
	if (s->looks)
		fill = min(abe_ratio(s->ahead, s->green_limit * s->looks, 40),
			   1ULL << 50);
	loop->offset += mul_u64_u64_shr(abe_ratio(prm->k2, prm->lambda, 31),
					fill, 40) - prm->k2;
}

/* Bring alpha, the target and D into their ranges. */
static inline void abe_loop_clamp(struct abe_loop *loop,
				  const struct abe_loop_parms *prm)
{
	loop->offset = clamp(loop->offset, 0LL, prm->offset_max);
	loop->log_alpha = clamp(loop->log_alpha, 0LL, prm->log_alpha_max);
	loop->log_target = clamp(loop->log_target, 0LL, prm->log_alpha_max);
	loop->alpha = abe_exp2(loop->log_alpha, 16);
}

/**
 * abe_loop_update() - one iteration, [ABE99] 4.3 "control action"
 * @loop:	state
 * @prm:	configuration
 * @s:		the interval's measurements
 */
static inline void abe_loop_update(struct abe_loop *loop,
				   const struct abe_loop_parms *prm,
				   const struct abe_loop_sample *s)
{
	abe_loop_measure(loop, prm, s);
	loop->log_target = abe_required_bias(prm, loop);
	abe_loop_alpha(loop, prm, s);
	abe_loop_offset(loop, prm, s);
	abe_loop_clamp(loop, prm);
	loop->updates++;
}

/**
 * abe_loop_init() - the paper's initial values
 * @loop:	state
 * @prm:	configuration
 * @offset:	D(0), ns
 *
 * q_b(0) = 0.01, q''_g(0) = 0, d_g(0) = 0, d_b(0) = D(0)/2; alpha(0) is the
 * required bias that follows, and q'_g(0) = alpha(0) * q_b(0).
 */
static inline void abe_loop_init(struct abe_loop *loop,
				 const struct abe_loop_parms *prm, s64 offset)
{
	*loop = (struct abe_loop) {
		.loss_blue = (1ULL << ABE_LOSS_SHIFT) / 100,
		.delay[ABE_BLUE] = offset / 2,
		.offset = offset,
	};
	loop->log_target = abe_required_bias(prm, loop);
	loop->log_alpha = loop->log_target;
	abe_loop_clamp(loop, prm);
	loop->loss_early = min(mul_u64_u32_shr(loop->loss_blue, loop->alpha,
					       16),
			       1ULL << ABE_LOSS_SHIFT);
}

#endif /* _ABE_LOOP_H */
