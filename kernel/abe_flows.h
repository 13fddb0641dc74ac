/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which flows are slow, without a state for any of them.
 *
 * As in SRED (Ott, Lakshman, Wong, INFOCOM 1999), which [BIAS00] cites: a ring keeps
 * the flows of the last packets that were sampled, each byte being as likely as any
 * other. Of what left towards the link a flow has the part that it has of the ring,
 * and two samples are of one flow with the sum of the squares of all flows' parts:
 * the part of the flow that a byte taken at random belongs to, on average. A flow is
 * slow beside that. SRED compares two samples now and then and has the average of
 * that; here all pairs are counted, sample by sample.
 */
#ifndef _ABE_FLOWS_H
#define _ABE_FLOWS_H

#include "abe_math.h"

#define ABE_FLOWS_SHIFT	10
#define ABE_FLOWS	1024U	/* samples that are kept: 2^ABE_FLOWS_SHIFT */
#define ABE_FLOWS_LEAST	(ABE_FLOWS / 8)	/* with fewer nothing is known yet */

/* Flows whose hashes have these bits in common are one. */
#define ABE_FLOWS_BITS	12
#define ABE_FLOWS_MASK	((1U << ABE_FLOWS_BITS) - 1)

/*
 * A flow with no more samples may be a new one, of a flood that changes its ports. That
 * such a flood has left one in the same bucket is not rare.
 */
#define ABE_FLOWS_NEW	1

/* Slow green flows may have so much of the link together: who splits up is not spared. */
#define ABE_FLOWS_MOST	(ABE_Q31_ONE / 4)

/**
 * struct abe_flows - the flows of the last samples
 * @ring:	the last bits of each sample's flow
 * @count:	how many samples of the ring are of each flow
 * @samples:	in the ring
 * @next:	where the next one goes
 * @pairs:	of samples of the ring, in either order, that are of one flow:
 *		less than 2^20
 * @slow:	EWMA over as many samples of how often one was of a slow green flow, Q31. A
 *		shorter one would take each flow that is about to become large for many
 */
struct abe_flows {
	u16	ring[ABE_FLOWS];
	u16	count[1U << ABE_FLOWS_BITS];
	u32	samples;
	u32	next;
	u32	pairs;
	u32	slow;
};

/**
 * abe_flows_count() - what a flow has of the link
 * @flows:	ring
 * @hash:	of the flow
 *
 * Return: how many of the samples are its own
 */
static inline u32 abe_flows_count(const struct abe_flows *flows, u32 hash)
{
	return flows->count[hash & ABE_FLOWS_MASK];
}

/**
 * abe_flows_below() - is that less than a part of what flows have in the mean?
 * @flows:	ring
 * @count:	what the flow has
 * @of_mean:	Q31
 *
 * Return: false while there are few samples, whatever the flow has
 */
static inline bool abe_flows_below(const struct abe_flows *flows, u32 count,
				   u32 of_mean)
{
	return flows->samples >= ABE_FLOWS_LEAST &&
	       count * flows->samples < abe_mul_q31(flows->pairs, of_mean);
}

/**
 * abe_flows_add() - a sample
 * @flows:	ring
 * @hash:	of its flow
 * @green:	its colour: slow blue flows are nobody's concern
 * @part:	what a slow flow has less of than this times the mean, Q31
 */
static inline void abe_flows_add(struct abe_flows *flows, u32 hash, bool green,
				 u32 part)
{
	u16 *oldest = &flows->ring[flows->next], flow = hash & ABE_FLOWS_MASK;

	flows->slow -= flows->slow >> ABE_FLOWS_SHIFT;
	if (green && abe_flows_below(flows, flows->count[flow], part))
		flows->slow += ABE_Q31_ONE >> ABE_FLOWS_SHIFT;

	if (flows->samples < ABE_FLOWS)
		flows->samples++;
	else
		flows->pairs -= 2 * --flows->count[*oldest];
	*oldest = flow;
	flows->pairs += 2 * flows->count[flow]++;
	flows->next = (flows->next + 1) % ABE_FLOWS;
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
