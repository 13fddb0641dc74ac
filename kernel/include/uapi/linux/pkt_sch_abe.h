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
	TCA_ABE_PAD,
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
	__TCA_ABE_MAX
};

#define TCA_ABE_MAX (__TCA_ABE_MAX - 1)

/*
 * The default of TCA_ABE_MEMORY_LIMIT. It alone is fitted to the limit in force:
 * twice that is allowed where it is more, and less to each of a device's queues.
 */
#define TCA_ABE_MEMORY_LIMIT_DEFAULT	(32U << 20)

/**
 * struct tc_abe_colour - counters of one colour
 * @arrived:	packets that came to the queue
 * @sent:	packets that left it towards the link
 * @bytes:	bytes sent
 * @qlen:	packets queued now
 * @backlog:	bytes queued now
 * @early_drops: packets dropped in the first stage (RED)
 * @late_drops:	packets dropped in the second stage (the green bound)
 * @limit_drops: packets dropped because the buffer was full, or because a
 *		change or reset took its place away
 * @marks:	packets marked CE instead of dropped in the first stage
 * @delay_max:	longest time a sent packet was queued, us
 *
 * @arrived = @sent + drops of all three kinds + @qlen, always.
 */
struct tc_abe_colour {
	__u64	arrived;
	__u64	sent;
	__u64	bytes;
	__u64	qlen;
	__u64	backlog;
	__u64	early_drops;
	__u64	late_drops;
	__u64	limit_drops;
	__u64	marks;
	__u64	delay_max;
};

/**
 * struct tc_abe_xstats - TCA_STATS_APP of the qdisc
 * @updates:	updates of the control loop
 * @drain_rate:	rate the thresholds in unit time rest on, bytes/s
 * @average:	average queue, in the unit's bytes or packets, 32.32 fixed
 *		point
 * @limit_in_force: limit as the queue is held to it, bytes or packets
 * @green_limit_in_force: likewise green_limit
 * @green_ahead: what a green packet arriving now would find ahead of it,
 *		bytes or packets; counted until it exceeds the green limit
 * @alpha:	drop bias, Q16.16
 * @alpha_target: required bias, Q16.16
 * @probability: first-stage probability of a blue packet now, Q1.31
 * @green_share: ratio of green to blue smoothed arrivals in [0, 1], Q1.31; in
 *		bytes, or packets if that is the unit
 * @offset:	D, us
 * @delay_blue:	smoothed queueing delay of blue, us
 * @delay_green: smoothed queueing delay of green, us
 * @loss_blue:	smoothed loss ratio q_b, Q1.31
 * @loss_green_early: smoothed loss ratio q'_g but for the second stage, Q1.31
 * @loss_green_late: smoothed second-stage loss ratio q''_g, Q1.31
 * @green:	counters of the green packets
 * @blue:	counters of the blue packets
 * @memory_used: memory of the queued packets, bytes
 * @memory_max:	the most that was seen of it, at readings of the clock and here
 * @memory_limit: the limit in force
 *
 * New members go to the end; a reader checks the size it was given.
 */
struct tc_abe_xstats {
	__u64	updates;
	__u64	drain_rate;
	__u64	average;
	__u64	limit_in_force;
	__u64	green_limit_in_force;
	__u64	green_ahead;
	__u32	alpha;
	__u32	alpha_target;
	__u32	probability;
	__u32	green_share;
	__u32	offset;
	__u32	delay_blue;
	__u32	delay_green;
	__u32	loss_blue;
	__u32	loss_green_early;
	__u32	loss_green_late;
	struct tc_abe_colour green;
	struct tc_abe_colour blue;
	__u64	memory_used;
	__u64	memory_max;
	__u64	memory_limit;
};

/* TCA_STATS_APP of a class is the struct tc_abe_colour of its colour. */

#endif /* _UAPI_LINUX_PKT_SCH_ABE_H */
