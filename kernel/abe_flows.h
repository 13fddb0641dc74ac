/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which flows are slow, without a state for any of them.
 *
 * As in SRED (Ott, Lakshman, Wong, INFOCOM 1999), which [BIAS00] cites: a ring keeps
 * the flows of the last packets that were sampled, each byte being as likely as any
 * other. Of what left towards the link a flow has the part that it has of the ring,
 * and two samples are of one flow with the sum of the squares of all flows' parts:
 * the part of the flow that a byte taken at random belongs to, on average. A flow is
 * slow beside that.
 */
#ifndef _ABE_FLOWS_H
#define _ABE_FLOWS_H

#include "abe_math.h"

#define ABE_FLOWS_SHIFT	8
#define ABE_FLOWS	256U	/* 2^ABE_FLOWS_SHIFT */

/* Slow green flows may have so much of the link together: who splits up is not spared. */
#define ABE_FLOWS_MOST	(ABE_Q31_ONE / 4)

/**
 * struct abe_flows - the flows of the last samples
 * @hash:	of each sample's flow, a ring; 0: none yet
 * @word:	four of them at a time
 * @samples:	so far; it may wrap
 * @hit:	EWMA over as many samples of how often one is of the same flow as an
 *		older one, Q31: the mean part
 * @slow:	likewise, of how often one was of a slow green flow
 */
struct abe_flows {
	union {
		u16	hash[ABE_FLOWS];
		u64	word[ABE_FLOWS / 4];
	};
	u32	samples;
	u32	hit;
	u32	slow;
};

/* How many of the samples are of a flow. */
static inline u32 abe_flows_count(const struct abe_flows *flows, u16 hash)
{
	const u64 each = 0x0001000100010001ULL, low = 0x7fff * each;
	u64 x, sum = 0;
	int i;

	for (i = 0; i < (int)ABE_FLOWS / 4; i++) {
		x = flows->word[i] ^ hash * each;
		/* The highest bit of those that are 0, as a 1. */
		sum += ~(((x & low) + low) | x | low) >> 15;
	}
	return sum * each >> 48;
}

/**
 * abe_flows_part() - what a flow has of the link
 * @flows:	ring
 * @hash:	of the flow
 *
 * It takes a look at the whole ring: nothing for every packet.
 * Return: its part, Q31
 */
static inline u32 abe_flows_part(const struct abe_flows *flows, u16 hash)
{
	return abe_flows_count(flows, hash) << (31 - ABE_FLOWS_SHIFT);
}

/**
 * abe_flows_below() - is that less than a part of the mean part?
 * @flows:	ring
 * @part:	what the flow has, Q31
 * @of_mean:	Q31
 */
static inline bool abe_flows_below(const struct abe_flows *flows, u32 part,
				   u32 of_mean)
{
	return part < abe_mul_q31(flows->hit, of_mean);
}

/**
 * abe_flows_add() - a sample
 * @flows:	ring
 * @hash:	of its flow
 * @green:	its colour: slow blue flows are nobody's concern
 * @part:	what a slow flow has less of than this times the mean part, Q31
 * @random:	uniform in [0, 1), Q31: which older one it is compared with
 *
 * While the ring is not full yet @hit is too low, and hardly any flow is slow.
 */
static inline void abe_flows_add(struct abe_flows *flows, u16 hash, bool green,
				 u32 part, u32 random)
{
	const u32 one = ABE_Q31_ONE >> ABE_FLOWS_SHIFT;

	flows->slow -= flows->slow >> ABE_FLOWS_SHIFT;
	if (green && abe_flows_below(flows, abe_flows_part(flows, hash), part))
		flows->slow += one;
	flows->hit -= flows->hit >> ABE_FLOWS_SHIFT;
	if (flows->hash[random >> (31 - ABE_FLOWS_SHIFT)] == hash)
		flows->hit += one;
	flows->hash[flows->samples++ % ABE_FLOWS] = hash;
}

/**
 * abe_flows_few() - have the slow green flows little enough to be left alone?
 * @flows:	ring
 *
 * Each packet of a flood that changes its ports is of a new flow, which is slow. So
 * are those of a flow that has split up into very many.
 */
static inline bool abe_flows_few(const struct abe_flows *flows)
{
	return flows->slow < ABE_FLOWS_MOST;
}

#endif /* _ABE_FLOWS_H */
