/* SPDX-License-Identifier: GPL-2.0 */
/*
 * First stage of the packet admission control: RED with a controlled gap
 * between losses and a drop bias between the colours.
 *
 * The average queue [BIAS00] Eq. (3), moved at each arrival,
 *
 *	avg <- avg + w * (queue - avg),
 *
 * gives the blue probability p [BIAS00] Eq. (1), linear from 0 at min to
 * P at max; above max it is 1, or with "gentle" it climbs on to 1 at 2*max.
 * A green packet's probability is alpha*p [ABE99] 4.2.
 *
 * p says how many packets are lost, the spacing says how far apart. All five
 * are one mechanism here: a packet adds its probability to the risk that has
 * run up since the last loss, and is lost once the risk reaches a threshold
 * drawn after that loss. What is kept is how much is left. With u uniform
 * in (0, 1]:
 *
 *	spacing			threshold	gap in packets, constant p
 *	uniform			u		1 .. 1/p, equally likely
 *	geometric		(each packet)	geometric, mean 1/p
 *	delayed_uniform		1 + u		1/p + 1 .. 2/p, equally likely
 *	delayed_geometric	1, then each	1/p + geometric, mean 2/p
 *	deterministic		1		1/p
 *
 * Adding up p instead of multiplying a count by the newest p is the same
 * while p is constant, and stays right when p moves or follows packet sizes.
 * There is one draw a loss in the three threshold spacings.
 *
 * Each colour has its own risk and threshold, so that the ratio of the two
 * loss rates is alpha whatever the pattern of arrivals: with a common count a
 * loss that has come due takes the packet at hand, whatever its colour, and
 * the ratio tends to 1 as the spacing gets regular. A green packet stands for
 * alpha blue ones, so a green threshold can be passed by a fraction of a
 * packet: what is left over is carried to the next gap, else rounding to
 * whole green packets would make green losses too few.
 */
#ifndef _ABE_RED_H
#define _ABE_RED_H

#include <uapi/linux/pkt_sch_abe.h>

#include "abe_math.h"

/**
 * struct abe_red - what an arrival needs of the RED configuration
 * @min:	lower threshold, Q32.32 bytes or packets
 * @max:	upper threshold, likewise; @max > @min
 * @prob:	P, Q31 in (0, 1]
 * @slope:	P / (max - min), see abe_slope()
 * @gentle_slope: (1 - P) / max, see abe_slope()
 * @gentle:	climb to 1 at 2*max instead of jumping there at max
 */
struct abe_red {
	u64	min;
	u64	max;
	u32	prob;
	u64	slope;
	u64	gentle_slope;
	bool	gentle;
};

/* A halving in half a microsecond; keeps 2^40 ns of idle time within 64 bits. */
#define ABE_DECAY_MAX	0x8000000000ULL	/* 2^39 */

/**
 * struct abe_gap - the way of one colour to its next first-stage loss
 * @left:	probability that may still run up without one, Q31; below 0 when
 *		that is used up
 */
struct abe_gap {
	s64	left;
};

/**
 * struct abe_spacing - a spacing of losses: a delay, and what comes after it
 * @delay:	risk up to which no packet is lost, Q31
 * @drawn:	then the loss comes anywhere within as much again as 1/p
 * @each:	then each packet is exposed by itself
 *
 * With neither the packet that completes the delay is lost.
 */
struct abe_spacing {
	u32	delay;
	bool	drawn;
	bool	each;
};

static const struct abe_spacing abe_spacings[] = {
	[TCA_ABE_SPACING_UNIFORM]		= { .drawn = true },
	[TCA_ABE_SPACING_GEOMETRIC]		= { .each = true },
	[TCA_ABE_SPACING_DELAYED_UNIFORM]	= { ABE_Q31_ONE, .drawn = true },
	[TCA_ABE_SPACING_DELAYED_GEOMETRIC]	= { ABE_Q31_ONE, .each = true },
	[TCA_ABE_SPACING_DETERMINISTIC]		= { ABE_Q31_ONE },
};

/**
 * struct abe_rnd - generator of the drop decisions
 * @state:	of a linear congruential generator modulo 2^64
 */
struct abe_rnd {
	u64	state;
};

static inline void abe_rnd_seed(struct abe_rnd *rnd, u64 seed)
{
	/* Spread small seeds over the state: splitmix64's finaliser. */
	seed += 0x9e3779b97f4a7c15ULL;
	seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebULL;
	seed ^= seed >> 31;
	rnd->state = seed;
}

/**
 * abe_rnd_q31() - a uniform random number
 * @rnd: generator
 *
 * In line and per qdisc, so that a seed replays every decision, and at a
 * tenth of the cost of get_random_u32(). Of the state only the upper half is
 * used, where a generator of this kind is good. Constants: Knuth, TAOCP 3.3.4.
 *
 * Return: uniform in [0, 1), Q31.
 */
static inline u32 abe_rnd_q31(struct abe_rnd *rnd)
{
	rnd->state = rnd->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return rnd->state >> 33;
}

/**
 * abe_slope() - rise over run
 * @rise:	Q31 in [0, 1]
 * @run:	whole bytes or packets, 1 .. 2^31
 *
 * The product with a distance in Q32.32 has the result, in Q31, in its upper
 * half: one multiplication and no shift. Off by less than two units of Q31 for
 * distances below 2^63.
 *
 * Return: @rise / @run with 32 more fraction bits, at most 2^63.
 */
static inline u64 abe_slope(u32 rise, u64 run)
{
	return abe_ratio(rise, run, 32);
}

static inline u64 abe_along(u64 distance, u64 slope)
{
	return mul_u64_u64_shr(distance, slope, 64);
}

/**
 * abe_red_set() - derive the slopes from the thresholds
 * @red:	its prob and gentle are given
 * @min:	bytes or packets
 * @max:	bytes or packets, raised to @min + 1 if it is not above @min
 */
static inline void abe_red_set(struct abe_red *red, u64 min, u64 max)
{
	if (max <= min)
		max = min + 1;
	red->min = min << 32;
	red->max = max << 32;
	red->slope = abe_slope(red->prob, max - min);
	red->gentle_slope = abe_slope(ABE_Q31_ONE - red->prob, max);
}

/**
 * abe_red_average() - move the average queue at an arrival
 * @avg:	old average, Q32.32, below 2^63
 * @queue:	bytes or packets queued, below 2^31
 * @weight:	w, Q31
 *
 * Return: the new average, Q32.32.
 */
static inline u64 abe_red_average(u64 avg, u64 queue, u64 weight)
{
	return avg + abe_mul_q31((queue << 32) - avg, weight);
}

/**
 * abe_red_probability() - p of a blue packet of average size
 * @red:	configuration
 * @avg:	average queue, Q32.32
 *
 * Return: Q31, at most ABE_Q31_ONE, which is a loss that is certain.
 */
static inline u32 abe_red_probability(const struct abe_red *red, u64 avg)
{
	if (avg < red->min)
		return 0;
	if (avg < red->max)
		return abe_along(avg - red->min, red->slope);
	if (!red->gentle || avg >= 2 * red->max)
		return ABE_Q31_ONE;
	return min_t(u64, ABE_Q31_ONE,
		     red->prob + abe_along(avg - red->max, red->gentle_slope));
}

/**
 * abe_red_adapt() - P of Adaptive RED after another interval
 * @prob:	P, Q31
 * @avg:	average queue, Q32.32
 * @min:	lower threshold, Q32.32
 * @max:	upper threshold, Q32.32
 *
 * Floyd, Gummadi, Shenker 2001: additive increase by min(0.01, P/4) above
 * the target, multiplicative decrease by 0.9 below it, while P is
 * in [0.01, 0.5]; the target is the middle fifth between the thresholds.
 *
 * Return: the new P, Q31.
 */
static inline u32 abe_red_adapt(u32 prob, u64 avg, u64 min, u64 max)
{
	const u32 percent = ABE_Q31_ONE / 100;
	u64 fifth = div_u64(max - min, 5);

	if (avg > min + 3 * fifth && prob <= ABE_Q31_ONE / 2)
		prob += min_t(u32, percent, prob / 4);
	else if (avg < min + 2 * fifth && prob >= percent)
		prob = mul_u64_u32_shr(prob, ABE_Q31_ONE / 10 * 9, 31);
	return prob;
}

/**
 * abe_red_decay() - average queue after an idle time
 * @avg:	average when the queue went empty, Q32.32
 * @idle:	length of the idle time, ns
 * @rate:	halvings of the average for each ns, 48 fraction bits:
 *		-log2(1 - w) * packets per ns, at most ABE_DECAY_MAX
 *
 * As if @idle's worth of packets had found the queue empty.
 *
 * Return: the aged average, Q32.32.
 */
static inline u64 abe_red_decay(u64 avg, u64 idle, u64 rate)
{
	u64 halvings;	/* 32 fraction bits */

	if (idle >> 40)		/* 18 minutes; keeps the product in range */
		return 0;
	halvings = mul_u64_u64_shr(idle, rate, 16);
	if (halvings >> 38)	/* 2^-64 of it is left */
		return 0;
	return mul_u64_u64_shr(avg, abe_exp2(-(s64)halvings, 31), 31);
}

/* Begin another gap of a spacing that draws no threshold; see abe_gap_draw(). */
static inline void abe_gap_delay(struct abe_gap *gap, const struct abe_spacing *s,
				 u64 rest)
{
	gap->left = (s64)s->delay - 1 - (s64)rest;
}

/**
 * abe_gap_draw() - begin another gap
 * @gap:	state of the packet's colour
 * @s:		spacing
 * @rest:	what has run up beyond the last threshold, Q31 in [0, 1]
 * @packet:	as for abe_gap_end()
 * @rnd:	generator
 *
 * A threshold that is drawn is rounded up to whole packets of probability
 * @packet, as a blue gap is by its last packet.
 *
 * Without that, and with something left over from the last gap, packets are
 * weighed by size. A threshold below what is left would take the next packet
 * whatever its size, so a draw without a delay is made narrower by twice as much
 * instead.
 */
static inline void abe_gap_draw(struct abe_gap *gap, const struct abe_spacing *s,
				u64 rest, u64 packet, struct abe_rnd *rnd)
{
	u64 draw, part;		/* the threshold less one */

	if (!s->drawn) {
		abe_gap_delay(gap, s, rest);
		return;
	}
	draw = abe_rnd_q31(rnd);
	if (!packet && !s->delay) {
		rest = min_t(u64, rest, ABE_Q31_ONE / 2);
		gap->left = (draw + 1) * (ABE_Q31_ONE - 2 * rest) >> 31;
		return;
	}
	draw += s->delay;
	if (packet) {
		div64_u64_rem(draw, packet, &part);
		draw += packet - 1 - part;
	}
	gap->left = draw - rest;
}

/**
 * abe_gap_due() - take a packet's probability off what is left
 * @gap:	state of the packet's colour
 * @p:		this packet's probability, Q31 below ABE_Q31_ONE: alpha and size
 *		included
 *
 * Most packets cost a subtraction.
 *
 * Return: true if it is lost, or if abe_gap_each() has to decide, by the spacing
 */
static inline bool abe_gap_due(struct abe_gap *gap, u64 p)
{
	gap->left -= p;
	return gap->left < 0;
}

/**
 * abe_gap_each() - is a packet lost that is exposed by itself?
 * @gap:	state of the packet's colour, after abe_gap_due()
 * @rnd:	generator
 *
 * The packet that completes a delay is exposed only to the part of its
 * probability beyond it, which makes the mean gap 2/p exactly.
 *
 * Return: true if the packet is to be lost; then another gap begins.
 */
static inline bool abe_gap_each(struct abe_gap *gap, struct abe_rnd *rnd)
{
	u64 over = -gap->left - 1;

	gap->left = -1;
	return abe_rnd_q31(rnd) < over;
}

/**
 * abe_gap_end() - a packet is lost that has used up what was left
 * @gap:	state of the packet's colour, after abe_gap_due()
 * @s:		spacing that does not expose each packet by itself
 * @carry:	keep what the risk exceeds the threshold by (green, and packets
 *		weighed by size); else the gap is a whole number of packets
 * @packet:	probability of a blue packet, Q31, if this one is green and sizes
 *		do not count; else 0. A blue gap ends with a whole packet, and
 *		a carried green gap has to be as long.
 * @rnd:	generator
 */
static inline void abe_gap_end(struct abe_gap *gap, const struct abe_spacing *s,
			       bool carry, u64 packet, struct abe_rnd *rnd)
{
	u64 over = -gap->left - 1;

	if (!carry && s->drawn)
		over = 0;
	abe_gap_draw(gap, s, min_t(u64, over, ABE_Q31_ONE), packet, rnd);
}

#endif /* _ABE_RED_H */
