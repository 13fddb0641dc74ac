/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Alternative Best-Effort qdisc: the netlink interface.
 *
 * All durations are microseconds. "Q1.31" is a 32-bit fraction of which
 * 1 << 31 is one; "Q16.16" has 1 << 16 as one. A missing attribute keeps the
 * value in force (change) or the default (add). Every range is enforced by
 * the kernel, and a refusal names the option and its range in extack.
 */
#ifndef _UAPI_LINUX_PKT_SCH_ABE_H
#define _UAPI_LINUX_PKT_SCH_ABE_H

#include <linux/types.h>

/* What limit, green_limit, min and max are counted in. */
enum tca_abe_unit {
	TCA_ABE_UNIT_TIME,	/* durations times the drain rate */
	TCA_ABE_UNIT_BYTES,
	TCA_ABE_UNIT_PACKETS,
	__TCA_ABE_UNIT_MAX
};

/* Distribution of the gap between first-stage losses, [BIAS00] II.A.1. */
enum tca_abe_spacing {
	TCA_ABE_SPACING_UNIFORM,
	TCA_ABE_SPACING_GEOMETRIC,
	TCA_ABE_SPACING_DELAYED_UNIFORM,
	TCA_ABE_SPACING_DELAYED_GEOMETRIC,
	TCA_ABE_SPACING_DETERMINISTIC,
	__TCA_ABE_SPACING_MAX
};

enum tca_abe_loop {
	TCA_ABE_LOOP_PAPER,	/* [ABE99] 4.3 */
	TCA_ABE_LOOP_LOAD,	/* required bias from the load, slow D */
	__TCA_ABE_LOOP_MAX
};

/* Bits of TCA_ABE_FLAGS. */
#define TCA_ABE_F_GENTLE	(1U << 0)
#define TCA_ABE_F_ADAPTIVE	(1U << 1)
#define TCA_ABE_F_BYTEMODE	(1U << 2)
#define TCA_ABE_F_ECN		(1U << 3)
#define TCA_ABE_F_HARDDROP	(1U << 4)
#define TCA_ABE_F_FLAT		(1U << 5)
#define TCA_ABE_F_SPLIT_GSO	(1U << 6)
#define TCA_ABE_F_ALL		((1U << 7) - 1)

enum {
	TCA_ABE_UNSPEC,
	TCA_ABE_UNIT,		/* u32, enum tca_abe_unit */
	TCA_ABE_RATE,		/* u64, bytes/s; 0: estimate the drain rate */
	TCA_ABE_LIMIT,		/* u32, in TCA_ABE_UNIT: us, bytes or packets */
	TCA_ABE_GREEN_LIMIT,	/* u32, likewise */
	TCA_ABE_MIN_TH,		/* u32, likewise */
	TCA_ABE_MAX_TH,		/* u32, likewise */
	TCA_ABE_PROBABILITY,	/* u32, Q1.31, at the threshold max */
	TCA_ABE_WEIGHT,		/* u32, Q1.31; 0: auto */
	TCA_ABE_AVPKT,		/* u32, bytes */
	TCA_ABE_FLAGS,		/* struct nla_bitfield32 of TCA_ABE_F_* */
	TCA_ABE_SPACING,	/* u32, enum tca_abe_spacing */
	TCA_ABE_LOOP,		/* u32, enum tca_abe_loop */
	TCA_ABE_RTT,		/* u32, us: tau_e */
	TCA_ABE_INTERVAL,	/* u32, us: T_1 */
	TCA_ABE_K1,		/* u32, Q16.16 */
	TCA_ABE_K2,		/* u32, us */
	TCA_ABE_K3,		/* u32, us */
	TCA_ABE_K4,		/* u32, us */
	TCA_ABE_GAMMA1,		/* u32, Q1.31 */
	TCA_ABE_GAMMA2,		/* u32, Q1.31 */
	TCA_ABE_GAMMA3,		/* u32, Q1.31 */
	TCA_ABE_LAMBDA,		/* u32, Q1.31 */
	TCA_ABE_OFFSET,		/* u32, us: D at the start */
	TCA_ABE_OFFSET_MAX,	/* u32, us; unit time: 30 full packets at least */
	TCA_ABE_ALPHA_MAX,	/* u32, Q16.16 */
	TCA_ABE_GREEN_DSCP,	/* u64, bit n set: DSCP n is green */
	TCA_ABE_GREEN_MARK,	/* u32, green if mark & mask == value */
	TCA_ABE_GREEN_MASK,	/* u32; 0: the mark is not looked at */
	TCA_ABE_SEED,		/* u64, of the drop decisions; 0: random */
	TCA_ABE_MEMORY_LIMIT,	/* u32, bytes that the queued packets may take */
	TCA_ABE_PROTECT,	/* u32, Q1.31: green flows with less than so much of the
				 * mean part of the link are let off first-stage losses,
				 * and others have the later ones in their place; 0: off
				 */
	TCA_ABE_PAD,
	__TCA_ABE_MAX
};

#define TCA_ABE_MAX (__TCA_ABE_MAX - 1)

/*
 * The default of TCA_ABE_MEMORY_LIMIT. It alone is fitted to the limit in force:
 * twice that is allowed where it is more, and less to each of a device's queues.
 */
#define TCA_ABE_MEMORY_LIMIT_DEFAULT	(32U << 20)

/*
 * Statistics, TCA_STATS_APP of the qdisc and of its classes: attributes. All
 * numbers are u64 but for the two words that say what they are numbers of. A
 * reader passes over attributes that it does not know, and takes one that is
 * missing for a number that nobody has counted.
 */

enum tca_abe_stats_type {
	TCA_ABE_STATS_TYPE_QDISC,	/* has all of them but _COLOUR */
	TCA_ABE_STATS_TYPE_CLASS,	/* has _UNIT and _COLOUR */
};

enum {
	TCA_ABE_STATS_UNSPEC,
	TCA_ABE_STATS_PAD,
	TCA_ABE_STATS_TYPE,	/* u32, enum tca_abe_stats_type */
	TCA_ABE_STATS_UNIT,	/* u32, enum tca_abe_unit */
	TCA_ABE_STATS_ALPHA,	/* drop bias, Q16.16 */
	TCA_ABE_STATS_ALPHA_TARGET, /* required bias, Q16.16 */
	TCA_ABE_STATS_OFFSET,	/* D, us */
	TCA_ABE_STATS_AVERAGE,	/* average queue, bytes or packets, 32.32 fixed point */
	TCA_ABE_STATS_PROBABILITY, /* first stage's of a blue packet now, Q1.31 */
	TCA_ABE_STATS_GREEN_AHEAD, /* what a green packet arriving now would find ahead of
				    * it, bytes or packets. When more than 64 blue packets
				    * have come due since the last green one it may be too
				    * much, by 1/32 of the blue queue or more; what
				    * exceeds the green limit is not counted
				    */
	TCA_ABE_STATS_UPDATES,	/* updates of the control loop */
	TCA_ABE_STATS_GREEN_SHARE, /* ratio of green to blue smoothed arrivals in [0, 1],
				    * Q1.31; of bytes, or of packets if that is the unit
				    */
	TCA_ABE_STATS_DRAIN_RATE, /* what thresholds in unit time rest on, bytes/s */
	TCA_ABE_STATS_LIMIT,	/* in force, bytes or packets */
	TCA_ABE_STATS_GREEN_LIMIT, /* likewise */
	TCA_ABE_STATS_LOSS_BLUE, /* smoothed loss ratio q_b, Q1.31 */
	TCA_ABE_STATS_LOSS_GREEN_EARLY, /* smoothed loss ratio q'_g but for the second
					 * stage, Q1.31
					 */
	TCA_ABE_STATS_LOSS_GREEN_LATE, /* smoothed second-stage loss ratio q''_g, Q1.31 */
	TCA_ABE_STATS_DELAY_BLUE, /* smoothed queueing delay, us */
	TCA_ABE_STATS_DELAY_GREEN, /* likewise */
	TCA_ABE_STATS_MEMORY_USED, /* by the queued packets, bytes */
	TCA_ABE_STATS_MEMORY_MAX, /* the most of it, at readings of the clock and here */
	TCA_ABE_STATS_MEMORY_LIMIT, /* in force, bytes */
	TCA_ABE_STATS_GREEN,	/* nested, TCA_ABE_COLOUR_* of the green packets */
	TCA_ABE_STATS_BLUE,	/* nested, of the blue ones */
	TCA_ABE_STATS_COLOUR,	/* nested, of a class's */
	__TCA_ABE_STATS_MAX
};

#define TCA_ABE_STATS_MAX (__TCA_ABE_STATS_MAX - 1)

/*
 * One colour. Arrived = sent + drops of all three kinds + qlen, always.
 */
enum {
	TCA_ABE_COLOUR_UNSPEC,
	TCA_ABE_COLOUR_PAD,
	TCA_ABE_COLOUR_ARRIVED,	/* packets that came to the queue */
	TCA_ABE_COLOUR_SENT,	/* packets that left it towards the link */
	TCA_ABE_COLOUR_BYTES,	/* bytes sent */
	TCA_ABE_COLOUR_QLEN,	/* packets queued now */
	TCA_ABE_COLOUR_BACKLOG,	/* bytes queued now */
	TCA_ABE_COLOUR_EARLY_DROPS, /* packets dropped in the first stage (RED) */
	TCA_ABE_COLOUR_LATE_DROPS, /* in the second stage (the green bound) */
	TCA_ABE_COLOUR_LIMIT_DROPS, /* because the buffer was full, or because a change or
				     * reset took the packet's place away
				     */
	TCA_ABE_COLOUR_MARKS,	/* packets marked CE instead of dropped in the first stage */
	TCA_ABE_COLOUR_DELAY_MAX, /* longest time a sent packet was queued, us */
	TCA_ABE_COLOUR_DELAY_SUM, /* of all sent packets, us: by _SENT it is the mean */
	TCA_ABE_COLOUR_SOJOURN,	/* u64[TCA_ABE_SOJOURNS]: sent packets by the time they
				 * were queued, element i below 2^i times 64 us, the last
				 * one all others; above 190 Mb/s or so, and before the
				 * drain rate is known, only those at whose departure the
				 * clock is read
				 */
	TCA_ABE_COLOUR_EXCUSED,	/* packets that TCA_ABE_PROTECT let off a loss or mark */
	__TCA_ABE_COLOUR_MAX
};

#define TCA_ABE_COLOUR_MAX (__TCA_ABE_COLOUR_MAX - 1)

#define TCA_ABE_SOJOURNS	16

#endif /* _UAPI_LINUX_PKT_SCH_ABE_H */
