// SPDX-License-Identifier: GPL-2.0
/*
 * Alternative Best-Effort: low delay for green packets, no less throughput
 * for blue ones.
 *
 * Hurley, Le Boudec, Thiran, "The Alternative Best-Effort Service", EPFL
 * SSC/1999/036 [ABE99]; spacing of losses after Misra, Ott, Baras, ICCS 2000
 * [BIAS00].
 *
 * Two FIFOs, green and blue, in earliest-deadline-first order: a green
 * packet's deadline is its arrival, a blue one's is D later. Deadlines within
 * a colour never decrease, so the order is a comparison of two heads, and
 * packets of one colour are never reordered. On arrival a packet passes
 *
 *  1. RED over both colours' queue, green with alpha times the probability
 *     (abe_red.h);
 *  2. green only: the green bound. With more than green_limit queued whose
 *     deadline has come, it could not leave within green_limit / rate;
 *  3. the buffer's limit.
 *
 * Once an interval the control loop (abe_loop.h) sets alpha, so that blue is
 * paid back for waiting, and D. It runs on the first packet after the
 * interval's end: no timer, and nothing to do while the link is idle.
 *
 * All that depends on time is worked out when the clock is read, which is at
 * departures: a busy link tells the time by them. Between two readings a
 * packet costs a few additions.
 *
 * Thresholds given as durations are multiplied by the drain rate, measured
 * from departures while the queue is busy.
 */

#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/flow_dissector.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#include "abe_compat.h"
#include "abe_config.h"
#include "abe_flows.h"
#include "abe_loop.h"
#include "abe_math.h"
#include "abe_red.h"

#define CREATE_TRACE_POINTS
#include "abe_trace.h"

/* Where a packet was lost, as in the tracepoint abe_drop. */
enum abe_stage { ABE_EARLY, ABE_LATE, ABE_LIMIT, ABE_STAGES };

/* Floors of the thresholds in unit time, in full-size packets. */
#define ABE_FLOOR_LIMIT	30
#define ABE_FLOOR_GREEN	2
#define ABE_FLOOR_MIN	5
#define ABE_FLOOR_MAX	15

/*
 * Unit time: while the drain rate is not known its limit in bytes means
 * nothing. Until then a queue has this many packets at most, and as one of
 * several queues of a device its share of them, but this many at least.
 */
#define ABE_START_PACKETS	1000
#define ABE_START_SHARE		300

/* Likewise the default of memory_limit, in bytes: each queue has so much. */
#define ABE_MEMORY_SHARE	(4U << 20)

/*
 * A look at the drain rate takes this long and this many full-size packets. The
 * first one is shorter, as thresholds in time mean nothing before it; then each
 * counts as much as those before it until there are so many. A busy period begins
 * with the burst of the token bucket above, which passes in no time.
 */
#define ABE_DRAIN_NS		(25 * NSEC_PER_MSEC)
#define ABE_DRAIN_PKTS		4
#define ABE_DRAIN_FIRST_NS	(2 * NSEC_PER_MSEC)
#define ABE_DRAIN_FIRST_PKTS	2
#define ABE_DRAIN_LOOKS		8
#define ABE_DRAIN_BURST_NS	(2 * NSEC_PER_MSEC)

/* A GSO packet stays whole that is less than such a part of green_limit. */
#define ABE_SPLIT_SHIFT	4

/* The least time from one sampled departure to the next (protect), if load lasts. */
#define ABE_FLOWS_NS	(NSEC_PER_SEC / 256)

/* Large packets are remembered for so many samples, 2^6. The most bytes for a sample. */
#define ABE_STEP_SHIFT	6
#define ABE_STEP_MAX	(16U << 20)

/* Samples are forgotten when there was none for so long. */
#define ABE_FLOWS_STALE_NS	(10ULL * NSEC_PER_SEC)

/*
 * From one sample to the next, 4 ms or more: how often the queue is searched for a
 * packet to be lost in another's place, and among how many. A flood must not cost more.
 */
#define ABE_WALKS		16
#define ABE_WALK		8

/* A flow with half of the mean part is large. */
#define ABE_LARGE	(ABE_Q31_ONE / 2)

/* How old a reading of the clock may be, and for how many departures. */
#define ABE_CLOCK_NS	(128 * NSEC_PER_USEC)
#define ABE_CLOCK_TICKS	32

/*
 * What comes due so soon counts as due, and with a D below this all of blue: it
 * could happen before the next reading of the clock, as time goes on by a nanosecond
 * for each of 100,000 arrivals.
 */
#define ABE_SOON	(100 * NSEC_PER_USEC)

/* No packet takes less memory: 2^8 bytes. */
#define ABE_PACKET_SHIFT	8

/*
 * No arrival counts more packets that came due than this. What may be due beyond
 * those is told by marks: so many of the blue queue's packets at most, one after
 * as many packets as a call may count and 1/32 of the queue. They last for a queue
 * that has grown to 100,000 packets.
 */
#define ABE_DUE_WALK	64
#define ABE_DUE_MARKS	128
#define ABE_DUE_SHIFT	5

/*
 * Sojourn times are counted by powers of two, from 64 us on. abe_sojourn_bin() takes
 * the highest bit of 33, so that nothing has to be cut off for each packet; what
 * statistics have no place for is added up there.
 */
#define ABE_SOJOURN_NS	(64 * NSEC_PER_USEC)
#define ABE_SOJOURNS	33

/**
 * struct abe_cb - what a queued packet carries in its control block
 * @arrived:	arrival, ns
 * @deadline:	finishing service deadline, ns
 */
struct abe_cb {
	u64	arrived;
	u64	deadline;
};

/* What of a queue's size is counted. */
enum abe_unit { ABE_PACKETS, ABE_BYTES, ABE_UNITS };

/**
 * struct abe_counters - one colour since the qdisc was made
 * @in:		packets that got into the queue and were not thrown out again,
 *		and their bytes
 * @out:	packets sent, and their bytes
 * @delay:	sum of the sent packets' sojourn times, ns; it may wrap
 * @delay_max:	longest sojourn of a sent packet, ns
 * @drops:	packets that were lost, by stage, and their bytes
 * @marks:	packets
 * @excused:	packets that were let off a loss or mark of stage one
 *
 * What is in the queue now is a difference, see abe_held(): one counter less
 * to write at either end.
 */
struct abe_counters {
	u64	in[ABE_UNITS];
	u64	out[ABE_UNITS];
	u64	delay;
	u64	delay_max;
	u64	drops[ABE_STAGES][ABE_UNITS];
	u64	marks;
	u64	excused;
};

/**
 * struct abe_due - how far the blue queue has been searched for due packets
 * @counted:	blue packets up to where their counter was have reached their deadline
 * @last:	the last one that this includes, unless it has left
 * @mark:	marks that have been passed
 */
struct abe_due {
	u64		counted;
	struct sk_buff	*last;
	unsigned int	mark;
};

/**
 * struct abe_mark - a place in the blue queue
 * @skb:	the last packet then, unless it has left
 * @in:		counter of blue packets then, in the unit
 */
struct abe_mark {
	struct sk_buff	*skb;
	u64		in;
};

/**
 * struct abe_fifo - the queue of one colour
 * @head:	next to leave
 * @tail:	where the next one to come is linked
 * @offset:	from the arrival of a packet that comes now to its deadline, ns
 * @slope:	of the colour's probability, see abe_slope()
 * @range:	how far from min on it is as simple as that, Q32.32
 * @weighed:	likewise, if packets are weighed by their size
 * @gap:	way to the next first-stage loss
 * @green:	it has the green bound
 * @n:		counters
 * @delay_us:	sum of sojourn times up to the last update of the loop, us
 * @sojourns:	departures that read the clock, by sojourn: see abe_sojourn_bin()
 *
 * Two cache lines, one for losses, and one or two of @sojourns.
 */
struct abe_fifo {
	struct sk_buff	*head;
	struct sk_buff	**tail;
	u64		offset;
	u64		slope;
	u64		range;
	u64		weighed;
	struct abe_gap	gap;
	bool		green;
	struct abe_counters n;
	u64		delay_us;
	u64		sojourns[ABE_SOJOURNS];
} ____cacheline_aligned;

/**
 * struct abe_sched_data - a qdisc
 *
 * Read at each arrival:
 * @filters:	tc filters
 * @green_dscp:	bit n: DSCP n is green
 * @colour:	the queues of the colours; with flat blue's for both
 * @priority:	from this skb->priority on a packet's colour may be another
 * @unit:	what sizes are counted in
 * @queued:	size of the queue, in the core's books
 * @weight:	w, Q31
 * @min:	lower threshold of stage one, Q32.32
 * @spare:	bytes up to which stage one takes nothing (unit time), else 0
 *
 * Moved by packets:
 * @average:	average queue, Q32.32
 * @now:	last reading of the clock, ns, and one for each arrival since
 * @tick:	jiffies then; something else if the next arrival is to read it
 * @ticks:	departures until the next reading
 * @green_room:	what may be ahead of green without a second look: @green_limit,
 *		or -1 if more blue may be due than @due says
 * @memory:	queued now, bytes of skb->truesize
 * @quota:	bytes of skb->truesize that fit without a look at the limits
 * @due:	blue packets up to where this counter was have reached their
 *		deadline: @searched.counted, or with hardly any D all of them
 * @ahead:	sum of what green arrivals found ahead
 * @event_at:	when a reading of the clock has more to do, ns: see abe_event()
 * @stop_at:	likewise, of a departure; 0: each counts its bytes (protect)
 * @mark_at:	blue packets, likewise
 * @fifo:	the two queues
 *
 * Less often:
 * @red:	first stage
 * @rnd:	drop decisions
 * @spacing:	of first-stage losses
 * @flags:	TCA_ABE_F_*
 * @limit:	in force, bytes or packets
 * @green_limit: likewise
 * @memory_limit: in force, bytes of skb->truesize
 * @packet_limit: packets, while the drain rate is not known (unit time)
 * @memory_max:	the most that @memory has been when the clock was read
 * @searched:	see @due
 * @marked:	marks that have been set
 * @marks:	a ring of them, from @searched.mark to @marked
 * @ticks_max:	see @ticks
 * @ticks_plain: that without @segments
 * @segments:	there may be whole GSO packets in the queue: then each departure
 *		reads the clock, and counts them in abe_dequeue_event()
 * @update_at:	when the control loop is due, ns
 * @sampled:	when the flow of a departure was sampled last, ns
 * @drain_at:	when to look at the drain rate, ns
 * @drain_from:	start of the running look at the drain rate, ns; 0: none
 * @drain_bytes: bytes sent by then
 * @idle_from:	when the queue went empty, ns
 * @decay:	ageing of the average while idle, see abe_red_decay()
 * @green_mark:	value of skb->mark that is green
 * @green_mask:	bits of it that count; 0: none
 * @protect:	which flows are slow, see abe_flows_add(); 0: none
 * @largest:	the largest packets, bytes
 * @step:	bytes of departures that read the clock for each sample
 * @credit:	bytes until the next one
 * @walks:	how often the queue may be searched before the next sample
 * @splitting:	a GSO packet is being split
 * @flows_rnd:	how long the steps are
 * @loop:	control loop
 * @loop_parms:	its configuration
 * @before:	counters at the last update
 * @drain_rate:	bytes/s, given or estimated
 * @drain_looks:	looks that it is made of, ABE_DRAIN_LOOKS at most
 * @drain_known: it is not just the link's speed
 * @queues:	queues of the device, of which this is one; else 1
 * @prob:	P in force (adaptive), Q31
 * @config:	options as given
 * @block:	filter block
 * @flows:	samples; NULL as long as there was no @protect
 */
struct abe_sched_data {
	struct tcf_proto __rcu *filters;
	u64		green_dscp;
	struct abe_fifo	*colour[ABE_COLOURS];
	u32		priority;
	enum abe_unit	unit;
	const u32	*queued;
	u64		weight;
	u64		min;
	u32		spare;

	u64		average ____cacheline_aligned;
	u64		now;
	unsigned long	tick;
	int		ticks;
	int		quota;
	u64		memory;
	s64		green_room;
	const u64	*due;
	u64		ahead;
	u64		event_at;
	u64		stop_at;
	u64		mark_at;
	struct abe_fifo	fifo[ABE_COLOURS];

	struct abe_red	red;
	struct abe_rnd	rnd;
	const struct abe_spacing *spacing;
	u32		flags;
	u64		limit;
	u64		green_limit;
	u64		memory_limit;
	u32		packet_limit;
	u64		memory_max;
	struct abe_due	searched;
	unsigned int	marked;
	struct abe_mark	marks[ABE_DUE_MARKS];
	int		ticks_max;
	int		ticks_plain;
	bool		segments;
	u64		update_at;
	u64		sampled;
	u64		drain_at;
	u64		drain_from;
	u64		drain_bytes;
	u64		idle_from;
	u64		decay;
	u32		green_mark;
	u32		green_mask;
	u32		protect;
	u32		largest;
	u32		step;
	int		credit;
	u32		walks;
	bool		splitting;
	struct abe_rnd	flows_rnd;
	struct abe_loop	loop;
	struct abe_loop_parms loop_parms;
	struct abe_counters before[ABE_COLOURS];
	u64		drain_rate;
	u32		drain_looks;
	bool		drain_known;
	u32		queues;
	u32		prob;
	struct abe_config config;
	struct tcf_block *block;
	struct abe_flows *flows;
};

static struct abe_cb *abe_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct abe_cb));
	return (struct abe_cb *)qdisc_skb_cb(skb)->data;
}

/* What a packet takes of limits and thresholds: its length, or one. */
static u32 abe_size(const struct abe_sched_data *q, const struct sk_buff *skb)
{
	return q->unit == ABE_PACKETS ? 1 : qdisc_pkt_len(skb);
}

/* What is queued of a colour. */
static u64 abe_held(const struct abe_fifo *f, enum abe_unit unit)
{
	return f->n.in[unit] - f->n.out[unit];
}

/*
 * Packets of both colours. The core's qlen can be more: of a root qdisc it has
 * what the device gave back, too.
 */
static u32 abe_qlen(const struct abe_sched_data *q)
{
	return abe_held(&q->fifo[ABE_BLUE], ABE_PACKETS) +
	       abe_held(&q->fifo[ABE_GREEN], ABE_PACKETS);
}

static bool abe_empty(const struct abe_sched_data *q)
{
	return !q->fifo[ABE_BLUE].head && !q->fifo[ABE_GREEN].head;
}

static int abe_colour_of(const struct abe_sched_data *q,
			 const struct abe_fifo *f)
{
	return f - q->fifo;
}

/* The next arrival is to read the clock. */
static void abe_tick_over(struct abe_sched_data *q)
{
	q->tick = jiffies - 1;
}

/* --- thresholds and control, a few times a second at most --- */

static u64 abe_time_to_bytes(u32 us, u64 rate)
{
	return min_t(u64, mul_u64_u64_div_u64(us, rate, USEC_PER_SEC),
		     ABE_MAX_BYTES);
}

/*
 * A unit-time threshold in bytes: at least @packets full-size ones, and for
 * devices of huge MTU still within the queue sizes that the maths is made for.
 */
static u64 abe_threshold(const struct abe_sched_data *q, int attr,
			 u32 mtu, u32 packets)
{
	return clamp_t(u64, abe_time_to_bytes(q->config.v[attr], q->drain_rate),
		       min_t(u64, (u64)mtu * packets, ABE_MAX_BYTES),
		       ABE_MAX_BYTES);
}

/* The weight in force, Q31, from the drain rate if it is auto. */
static u32 abe_weight(const struct abe_sched_data *q)
{
	u32 weight = q->config.v[TCA_ABE_WEIGHT];
	u32 avpkt = q->config.v[TCA_ABE_AVPKT];

	if (weight)
		return weight;
	/*
	 * 1 - exp(-x), x = avpkt / drain rate, a time constant of a second,
	 * as x / (1 + x/2): 0.1 % off at ten packets a second, less above.
	 */
	return clamp_t(u64, abe_ratio(2 * avpkt, 2 * q->drain_rate + avpkt, 31),
		       1, ABE_Q31_ONE);
}

/* Length of a full-size packet. A device may have an MTU and header of 0. */
static u32 abe_mtu(const struct Qdisc *sch)
{
	return max(psched_mtu(qdisc_dev(sch)), 64U);
}

/*
 * Memory that the queue may hold. The default is meant for what small packets
 * take beyond their length, and must not keep full-size ones from filling the
 * buffer, which with most drivers they do with twice their length. A buffer
 * whose size is not known yet needs none for that.
 */
static u64 abe_memory_limit(const struct abe_sched_data *q, u32 mtu)
{
	u32 limit = q->config.v[TCA_ABE_MEMORY_LIMIT];

	if (limit != TCA_ABE_MEMORY_LIMIT_DEFAULT)
		return limit;
	limit = max(limit / q->queues, ABE_MEMORY_SHARE);
	if (q->packet_limit != U32_MAX)
		return limit;
	return max_t(u64, limit,
		     2 * q->limit * (q->unit == ABE_PACKETS ? mtu : 1));
}

/*
 * Stage one is a multiplication with the slope while the average is within range
 * of min: as long as p is linear and below one.
 */
static void abe_slope_plain(struct abe_fifo *f, u64 slope, u32 alpha, u64 linear)
{
	if (slope >= div_u64(U64_MAX, (alpha >> 16) + 1))
		return;
	f->slope = max(mul_u64_u32_shr(slope, alpha, 16), 1ULL);
	f->range = min(linear, min(div64_u64(U64_MAX, f->slope), 1ULL << 32) *
			       (ABE_Q31_ONE - 1));
}

/*
 * With sizes it is two, the slope being that of a byte, with 16 more fraction
 * bits. They fit as long as the first product has 44 bits and the size 20.
 */
static void abe_slope_weighed(struct abe_fifo *f, u64 slope, u32 alpha, u32 avpkt,
			      u64 linear)
{
	if (slope >= div_u64(U64_MAX, alpha) * avpkt)
		return;
	f->slope = max(mul_u64_u64_div_u64(slope, alpha, avpkt), 1ULL);
	f->weighed = min(linear, min(div64_u64(U64_MAX, f->slope), 1ULL << 18) <<
				 44);
}

/* What alpha, D and P make of the colours. */
static void abe_bias(struct abe_sched_data *q)
{
	const u32 alpha[ABE_COLOURS] = {
		[ABE_BLUE] = 1 << 16,
		[ABE_GREEN] = q->loop.alpha,
	};
	u64 linear = q->red.max - q->red.min;
	struct abe_fifo *f;
	int c;

	f = &q->fifo[ABE_BLUE];
	q->due = q->loop.offset < ABE_SOON ? &f->n.in[q->unit] :
						  &q->searched.counted;
	for (c = 0; c < ABE_COLOURS; c++) {
		f = &q->fifo[c];
		f->range = 0;
		f->weighed = 0;
		if (q->flags & TCA_ABE_F_BYTEMODE)
			abe_slope_weighed(f, q->red.slope, alpha[c],
					  q->config.v[TCA_ABE_AVPKT], linear);
		else
			abe_slope_plain(f, q->red.slope, alpha[c], linear);
	}
}

/*
 * Green can overtake all of blue only with a D of all its delay. So in unit time D
 * may be as long as the shortest buffer there takes to drain.
 */
static s64 abe_offset_max(const struct abe_sched_data *q, u32 mtu)
{
	u64 us = q->config.v[TCA_ABE_OFFSET_MAX];

	if (q->config.v[TCA_ABE_UNIT] == TCA_ABE_UNIT_TIME)
		us = max(us, min_t(u64, ABE_MAX_TIME,
				   mul_u64_u64_div_u64((u64)mtu * ABE_FLOOR_LIMIT,
						       USEC_PER_SEC,
						       q->drain_rate)));
	return us * NSEC_PER_USEC;
}

/* The next reading of the clock has more to do. */
static void abe_event_soon(struct abe_sched_data *q)
{
	q->event_at = 0;
	q->stop_at = 0;
}

static void abe_set_segments(struct abe_sched_data *q, bool segments)
{
	q->segments = segments;
	q->ticks_max = segments ? 0 : q->ticks_plain;
	abe_event_soon(q);
}

/* Bring everything that depends on the drain rate, P or MTU up to date. */
static void abe_scale(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	const u32 *v = q->config.v;
	u32 mtu = abe_mtu(sch);
	u64 min, max, halving, ticks;

	q->weight = abe_weight(q);
	q->red.prob = q->prob;
	if (v[TCA_ABE_UNIT] == TCA_ABE_UNIT_TIME) {
		q->limit = abe_threshold(q, TCA_ABE_LIMIT, mtu,
					 ABE_FLOOR_LIMIT);
		q->green_limit = abe_threshold(q, TCA_ABE_GREEN_LIMIT, mtu,
					       ABE_FLOOR_GREEN);
		min = abe_threshold(q, TCA_ABE_MIN_TH, mtu, ABE_FLOOR_MIN);
		max = abe_threshold(q, TCA_ABE_MAX_TH, mtu, ABE_FLOOR_MAX);
		/*
		 * An average over a second is still high when the burst that
		 * raised it has long gone. Losing packets from a queue below
		 * min would then leave the link idle.
		 */
		q->spare = min;
		q->packet_limit = q->drain_known ? U32_MAX :
				  max_t(u32, ABE_START_PACKETS / q->queues,
					ABE_START_SHARE);
	} else {
		q->spare = 0;
		q->packet_limit = U32_MAX;
		q->limit = v[TCA_ABE_LIMIT];
		q->green_limit = v[TCA_ABE_GREEN_LIMIT];
		min = v[TCA_ABE_MIN_TH];
		max = v[TCA_ABE_MAX_TH];
	}
	abe_red_set(&q->red, min, max);
	q->min = q->red.min;
	q->loop_parms.offset_max = abe_offset_max(q, mtu);
	abe_bias(q);
	q->memory_limit = abe_memory_limit(q, mtu);
	q->quota = 0;		/* these were by other limits */
	q->green_room = -1;

	/* -log2(1 - w) for each packet, 48 fraction bits, times packets/ns */
	if (q->weight >= ABE_Q31_ONE)
		halving = 32ULL << 48;
	else
		halving = ((31LL << 32) -
			   abe_log2(ABE_Q31_ONE - q->weight)) << 16;
	halving = mul_u64_u64_div_u64(halving, q->drain_rate,
				      (u64)v[TCA_ABE_AVPKT] * NSEC_PER_SEC);
	q->decay = min(halving, ABE_DECAY_MAX);

	/* A departure for each full-size packet's time, or see @segments. */
	ticks = mul_u64_u64_div_u64(q->drain_rate, ABE_CLOCK_NS, NSEC_PER_SEC);
	q->ticks_plain = clamp_t(u64, div_u64(ticks, mtu), 1, ABE_CLOCK_TICKS) - 1;
	abe_set_segments(q, q->segments);
}

static u64 abe_arrived(const struct abe_counters *n, enum abe_unit unit)
{
	return n->in[unit] + n->drops[ABE_EARLY][unit] +
	       n->drops[ABE_LATE][unit] + n->drops[ABE_LIMIT][unit];
}

static void abe_sample(const struct abe_sched_data *q,
		       struct abe_loop_sample *s)
{
	enum abe_unit unit = ABE_PACKETS;
	u64 lost;
	u32 one = 1;
	int c;

	if (q->flags & TCA_ABE_F_BYTEMODE) {
		unit = ABE_BYTES;
		one = q->config.v[TCA_ABE_AVPKT];
	}
	for (c = 0; c < ABE_COLOURS; c++) {
		const struct abe_counters *now = &q->fifo[c].n;
		const struct abe_counters *old = &q->before[c];

		s->arrived[c] = abe_arrived(now, ABE_PACKETS) -
				abe_arrived(old, ABE_PACKETS);
		s->load[c] = abe_arrived(now, q->unit) -
			     abe_arrived(old, q->unit);
		s->exposed[c] = abe_arrived(now, unit) - abe_arrived(old, unit);
		s->exposed[c] = DIV64_U64_ROUND_UP(s->exposed[c] <<
						   ABE_WEIGHED_SHIFT, one);
		lost = now->drops[ABE_LIMIT][unit] - old->drops[ABE_LIMIT][unit];
		s->lost[c] = div_u64(lost << ABE_WEIGHED_SHIFT, one);
		lost = now->drops[ABE_EARLY][ABE_PACKETS] -
		       old->drops[ABE_EARLY][ABE_PACKETS] +
		       now->marks - old->marks + now->excused - old->excused;
		s->lost[c] += lost << ABE_WEIGHED_SHIFT;
		s->sent[c] = now->out[ABE_PACKETS] - old->out[ABE_PACKETS];
		s->delay[c] = now->delay - old->delay;
	}
	s->late = q->fifo[ABE_GREEN].n.drops[ABE_LATE][ABE_PACKETS] -
		  q->before[ABE_GREEN].drops[ABE_LATE][ABE_PACKETS];
	s->ahead = q->ahead;
	s->looks = s->arrived[ABE_GREEN];
	s->green_limit = max(q->green_limit, 1ULL);
}

/* An interval of the control loop has ended. */
static noinline void abe_control(struct Qdisc *sch, u64 now)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_loop_sample sample;
	int c;

	abe_sample(q, &sample);
	abe_loop_update(&q->loop, &q->loop_parms, &sample);
	if (q->flags & TCA_ABE_F_ADAPTIVE)
		q->prob = abe_red_adapt(q->prob, q->average, q->red.min,
					q->red.max);
	abe_scale(sch);
	trace_abe_control(sch, &q->loop, &sample,
			  abe_exp2(q->loop.log_target, 16), q->average,
			  q->drain_rate);
	for (c = 0; c < ABE_COLOURS; c++) {
		q->fifo[c].delay_us += div_u64(sample.delay[c], NSEC_PER_USEC);
		q->before[c] = q->fifo[c].n;
	}
	q->ahead = 0;
	q->update_at = now + (u64)q->config.v[TCA_ABE_INTERVAL] * NSEC_PER_USEC;
}

/* --- colours --- */

/*
 * The octet of an IP packet that has its DSCP and ECN, also behind VLAN tags; -1
 * if it is not IP. @offset: of the IP header from skb->data.
 */
static int abe_dsfield(const struct sk_buff *skb, int *offset)
{
	__be16 proto = skb->protocol;
	const u8 *ip;
	u8 buf[2];

	*offset = skb_network_offset(skb);
	if (unlikely(eth_type_vlan(proto))) {
		*offset = 0;
		proto = __vlan_get_protocol(skb, proto, offset);
	}
	if (proto != htons(ETH_P_IP) && proto != htons(ETH_P_IPV6))
		return -1;
	ip = skb_header_pointer(skb, *offset, sizeof(buf), buf);
	if (!ip)
		return -1;
	if (proto == htons(ETH_P_IP))
		return ip[1];
	return (ip[0] & 0xf) << 4 | ip[1] >> 4;
}

/* DSCP of a packet; -1 if it is not IP. */
static noinline int abe_dscp(const struct sk_buff *skb)
{
	int offset, dsfield = abe_dsfield(skb, &offset);

	return dsfield < 0 ? -1 : dsfield >> 2;
}

/*
 * Mark a packet CE, if it can be. Not one whose IP header is not where the network
 * header is said to be (a bridged frame with a VLAN tag): INET_ECN_set_ce() would
 * write into the tag. Nor one with ECT(1): its sender takes a mark for far less
 * than a loss (RFC 9331), and would get far more than its neighbours in this queue.
 */
static bool abe_mark(struct sk_buff *skb)
{
	int offset, dsfield = abe_dsfield(skb, &offset);

	if (dsfield < 0 || offset != skb_network_offset(skb) ||
	    (dsfield & INET_ECN_MASK) == INET_ECN_ECT_1)
		return false;
	return INET_ECN_set_ce(skb);
}

/* The same for most packets; false where their colour takes more than a look. */
static __always_inline bool abe_plain_dscp(const struct abe_sched_data *q,
					   const struct sk_buff *skb, u8 *dscp)
{
	const u8 *ip = skb_network_header(skb);

	if (unlikely(skb_tail_pointer(skb) - ip < 2 ||
		     skb->priority >= q->priority ||
		     rcu_access_pointer(q->filters)))
		return false;
	if (likely(skb->protocol == htons(ETH_P_IP)))
		*dscp = ip[1] >> 2;
	else if (skb->protocol == htons(ETH_P_IPV6))
		*dscp = (ip[0] & 0xf) << 2 | ip[1] >> 6;
	else
		return false;
	return true;
}

static __always_inline struct abe_fifo *
abe_dscp_colour(const struct abe_sched_data *q, u8 dscp)
{
	return q->colour[q->green_dscp >> dscp & 1];
}

/*
 * Colour that the attached filters give: a colour, -1 if they say nothing, or
 * -2 if they took the packet, with *taken what to return, or -1: they have it,
 * and it must not be freed.
 */
static int abe_filter(struct sk_buff *skb, const struct tcf_proto *filters,
		      int *taken)
{
	struct tcf_result res;

	switch (tcf_classify(skb, NULL, filters, &res, false)) {
#ifdef CONFIG_NET_CLS_ACT
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		*taken = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		return -2;
	case TC_ACT_CONSUMED:
		*taken = -1;
		return -2;
	case TC_ACT_REDIRECT:	/* only where the device's own filters are */
	case TC_ACT_SHOT:
		*taken = NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
		return -2;
#endif
	case TC_ACT_UNSPEC:
		return -1;
	}
	switch (TC_H_MIN(res.classid)) {
	case 1:
		return ABE_GREEN;
	case 2:
		return ABE_BLUE;
	default:
		return -1;
	}
}

/*
 * Queue of a packet: a filter's word, else skb->priority, else the mark, else
 * the DSCP. NULL: a filter took it, and *taken is as for abe_filter().
 */
static struct abe_fifo *abe_colour(struct Qdisc *sch, struct sk_buff *skb,
				   int *taken)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct tcf_proto *filters = rcu_dereference_bh(q->filters);
	int colour = -1, dscp;

	if (filters)
		colour = abe_filter(skb, filters, taken);
	if (colour == -2)
		return NULL;
	if (colour >= 0)
		return q->colour[colour];
	if (TC_H_MAJ(skb->priority) &&
	    TC_H_MAJ(skb->priority) == sch->handle) {
		if (TC_H_MIN(skb->priority) == 1)
			return q->colour[ABE_GREEN];
		if (TC_H_MIN(skb->priority) == 2)
			return q->colour[ABE_BLUE];
	}
	if (q->green_mask && (skb->mark & q->green_mask) == q->green_mark)
		return q->colour[ABE_GREEN];
	dscp = abe_dscp(skb);
	return dscp < 0 ? q->colour[ABE_BLUE] : abe_dscp_colour(q, dscp);
}

/* --- packet admission control --- */

/*
 * Count blue packets whose deadline has come: each once, only until they are
 * enough, and no more than ABE_DUE_WALK in one call. If there are more, all up to
 * the next mark are taken for due: what is returned may then be too much for a
 * call or two, but never too little, and on that the green bound rests.
 */
static u64 abe_count_due(const struct abe_sched_data *q, u64 now,
			 struct abe_due *d)
{
	const struct abe_fifo *blue = &q->fifo[ABE_BLUE];
	u64 gone = blue->n.out[q->unit];
	struct sk_buff *skb;
	int n;

	for (; d->mark != q->marked; d->mark++) {
		const struct abe_mark *m = &q->marks[d->mark % ABE_DUE_MARKS];

		if (m->in <= gone)	/* and its packet is, too */
			continue;
		if (abe_cb(m->skb)->deadline > now)
			break;
		if (m->in > d->counted) {
			d->counted = m->in;
			d->last = m->skb;
		}
	}
	skb = blue->head;
	if (d->counted > gone)
		skb = d->last->next;
	else
		d->counted = gone;
	for (n = 0; skb && abe_cb(skb)->deadline <= now &&
	     d->counted - gone <= q->green_limit; n++) {
		if (n == ABE_DUE_WALK)
			return d->mark != q->marked ?
			       q->marks[d->mark % ABE_DUE_MARKS].in :
			       blue->n.in[q->unit];
		d->counted += abe_size(q, skb);
		d->last = skb;
		skb = skb->next;
	}
	return d->counted;
}

/*
 * What a green packet arriving now finds ahead of it: green, and blue whose
 * deadline has come.
 */
static __always_inline s64 abe_green_ahead(const struct abe_sched_data *q)
{
	u64 gone = q->fifo[ABE_BLUE].n.out[q->unit];

	return max(*q->due, gone) - gone +
	       abe_held(&q->fifo[ABE_GREEN], q->unit);
}

/* Stage two: by how much the green bound could not be kept, if that is above 0. */
static s64 abe_late(struct abe_sched_data *q)
{
	u64 due = abe_count_due(q, q->now + ABE_SOON, &q->searched);
	u64 gone = q->fifo[ABE_BLUE].n.out[q->unit];
	s64 ahead, limit = q->green_limit;

	q->green_room = due != q->searched.counted || due - gone > limit ? -1 :
									   limit;
	ahead = abe_green_ahead(q);
	/* What is taken for due without being counted is no measure for the loop. */
	q->ahead += ahead;
	return ahead + (s64)(max(due, *q->due) - *q->due) - limit;
}

/*
 * The functions that a packet passes have the arguments of Qdisc_ops.enqueue
 * first. Whatever is rare is the last call of its path: then there is nothing
 * to keep across calls, and no register to save for most packets.
 */
static noinline int abe_lose(struct sk_buff *skb, struct Qdisc *sch,
			     struct sk_buff **to_free, struct abe_fifo *f,
			     enum abe_stage stage)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	f->n.drops[stage][ABE_PACKETS]++;
	f->n.drops[stage][ABE_BYTES] += qdisc_pkt_len(skb);
	if (abe_empty(q))
		abe_tick_over(q);	/* the average goes on ageing */
	trace_abe_drop(sch, abe_colour_of(q, f), stage, qdisc_pkt_len(skb));
	if (stage == ABE_LIMIT)
		return abe_qdisc_drop(skb, sch, to_free, ABE_DROP_OVERLIMIT);
	abe_qdisc_drop(skb, sch, to_free, ABE_DROP_CONGESTED);
	return NET_XMIT_CN;
}

/*
 * The flow of a packet. Not skb_get_hash(): that is the socket's where the sender is on
 * this host, and TCP takes another one with each timeout, as it does for IPv6's flow
 * label.
 */
static u16 abe_flow(const struct sk_buff *skb)
{
	struct flow_keys keys;

	skb_flow_dissect_flow_keys(skb, &keys, 0);
	keys.tags.flow_label = 0;
	return flow_hash_from_keys(&keys);
}

/* Is a packet of a slow flow, and are there few of these? */
static bool abe_slow(struct abe_sched_data *q, const struct sk_buff *skb)
{
	return q->protect && abe_flows_few(q->flows) &&
	       abe_flows_below(q->flows,
			       abe_flows_count(q->flows, abe_flow(skb)),
			       q->protect);
}

/* Take @skb, which @link points at, out of the middle of a queue and lose it. */
static void abe_drop_queued(struct sk_buff **link, struct Qdisc *sch,
			    struct sk_buff **to_free, struct abe_fifo *f,
			    enum abe_stage stage)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = *link;
	u32 len = qdisc_pkt_len(skb);

	*link = skb->next;
	if (!*link)
		f->tail = link;
	skb_mark_not_on_list(skb);
	q->memory -= skb->truesize;
	f->n.in[ABE_PACKETS]--;
	f->n.in[ABE_BYTES] -= len;
	abe_unbook(sch, len);
	qdisc_tree_reduce_backlog(sch, 1, len);
	abe_lose(skb, sch, to_free, f, stage);
}

/* Not one that a parent was shown, and no whole GSO packet for a plain one. */
static bool abe_displaceable(const struct sk_buff *queued,
			     const struct sk_buff *skb)
{
	return abe_cb(queued)->deadline &&
	       (!skb_is_gso(queued) || skb_is_gso(skb));
}

/*
 * Lose queued green packets so that @skb fits, and by @excess, as in CHOKe (Pan,
 * Prabhakar, Psounis, INFOCOM 2000): of the flow that has most bytes among the next ones
 * to leave, if these are more than twice what @flow has there with @skb, and not a single
 * packet that is no full one, since a call's keep nobody out. The last ones first. One
 * stays that parents know of, while they are waiting for what enqueue says: they must
 * not hear that there is none.
 */
static bool abe_displace(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free, enum abe_stage stage,
			 s64 excess, u16 flow)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_fifo *f = &q->fifo[ABE_GREEN];
	struct sk_buff **links[ABE_WALK], **link = &f->head;
	u32 own = qdisc_pkt_len(skb), most, bytes, packets;
	u32 stay = abe_qlen(q) - 1, memory = 0;
	int i, j, n, last = -1;
	u16 flows[ABE_WALK];
	s64 size = 0;

	for (n = 0; *link && n < ABE_WALK; n++) {
		links[n] = link;
		flows[n] = abe_flow(*link);
		if (flows[n] == flow)
			own += qdisc_pkt_len(*link);
		link = &(*link)->next;
	}
	most = 2 * own;
	for (i = 0; i < n; i++) {
		bytes = 0;
		packets = 0;
		for (j = 0; j < n; j++) {
			if (flows[j] == flows[i]) {
				bytes += qdisc_pkt_len(*links[j]);
				packets++;
			}
		}
		if (bytes > most && (packets > 1 || bytes >= abe_mtu(sch))) {
			most = bytes;
			last = i;
		}
	}
	if (last < 0)
		return false;
	flow = flows[last];
	excess = max_t(s64, excess, abe_size(q, skb));
	for (i = n - 1; i >= 0 && stay; i--) {
		if (flows[i] != flow || !abe_displaceable(*links[i], skb))
			continue;
		size += abe_size(q, *links[i]);
		memory += (*links[i])->truesize;
		if (size >= excess && memory >= skb->truesize)
			break;
		stay--;
	}
	if (size < excess || memory < skb->truesize)
		return false;
	/* From the last one on, so that the links before it stay right. */
	for (j = n - 1; j >= i; j--) {
		if (flows[j] == flow && abe_displaceable(*links[j], skb))
			abe_drop_queued(links[j], sch, to_free, f, stage);
	}
	return true;
}

/*
 * There is no place for a green packet. If its flow is not large, and has less queued
 * than another, packets of that one are lost instead. New flows, of which the ring has
 * hardly a sample, are spared only while there are few of them.
 * Return: true if there is place now.
 */
static noinline bool abe_make_room(struct sk_buff *skb, struct Qdisc *sch,
				   struct sk_buff **to_free,
				   enum abe_stage stage, s64 excess)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u16 flow;
	u32 count;

	if (!q->protect || !q->walks || abe_qlen(q) < 2 || q->splitting)
		return false;
	flow = abe_flow(skb);
	count = abe_flows_count(q->flows, flow);
	if (!abe_flows_below(q->flows, count, ABE_LARGE) ||
	    (count <= ABE_FLOWS_NEW && !abe_flows_few(q->flows)))
		return false;
	q->walks--;
	return abe_displace(skb, sch, to_free, stage, excess, flow);
}

/* A packet has passed all stages. */
static __always_inline int abe_append(struct sk_buff *skb, struct Qdisc *sch,
				      struct abe_fifo *f, u32 truesize)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_cb *cb = abe_cb(skb);
	u32 len = qdisc_pkt_len(skb);

	/* A nanosecond after the one before, so that they stay in order. */
	cb->arrived = ++q->now;
	cb->deadline = q->now + f->offset;
	skb->next = NULL;
	*f->tail = skb;
	f->tail = &skb->next;

	abe_book(sch, len);
	q->memory += truesize;
	f->n.in[ABE_PACKETS]++;
	f->n.in[ABE_BYTES] += len;
	return NET_XMIT_SUCCESS;
}

/*
 * Memory of packets that fit whatever they are. A packet takes more than its
 * length, but for what a size table (stab) adds.
 */
static int abe_quota(const struct abe_sched_data *q)
{
	u64 memory = q->memory_limit - min(q->memory, q->memory_limit);
	u64 size = q->limit - min_t(u64, *q->queued, q->limit);
	u64 packets = q->packet_limit - min(abe_qlen(q), q->packet_limit);

	if (q->unit == ABE_PACKETS)
		size <<= ABE_PACKET_SHIFT;
	return min_t(u64, min3(size, memory, packets << ABE_PACKET_SHIFT),
		     S32_MAX);
}

/* Stage three, where not any packet may fit. */
static noinline int abe_admit_tight(struct sk_buff *skb, struct Qdisc *sch,
				    struct sk_buff **to_free,
				    struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	q->quota = abe_quota(q) - (int)min_t(u32, skb->truesize, S32_MAX);
	if (((u64)*q->queued + abe_size(q, skb) > q->limit ||
	     q->memory + skb->truesize > q->memory_limit ||
	     abe_qlen(q) >= q->packet_limit) &&
	    !(f->green && abe_make_room(skb, sch, to_free, ABE_LIMIT, 0)))
		return abe_lose(skb, sch, to_free, f, ABE_LIMIT);
	return abe_append(skb, sch, f, skb->truesize);
}

/* Stage three. */
static __always_inline int abe_admit_in_time(struct sk_buff *skb,
					     struct Qdisc *sch,
					     struct sk_buff **to_free,
					     struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u32 truesize = skb->truesize;

	q->quota -= truesize;
	if (unlikely(q->quota < 0))
		return abe_admit_tight(skb, sch, to_free, f);
	return abe_append(skb, sch, f, truesize);
}

/* Stages two and three of a green packet that is late, or perhaps. */
static noinline int abe_admit_late(struct sk_buff *skb, struct Qdisc *sch,
				   struct sk_buff **to_free,
				   struct abe_fifo *f)
{
	s64 excess = abe_late(qdisc_priv(sch));

	if (excess > 0 &&
	    !abe_make_room(skb, sch, to_free, ABE_LATE, excess))
		return abe_lose(skb, sch, to_free, f, ABE_LATE);
	return abe_admit_in_time(skb, sch, to_free, f);
}

/* Stages two and three. */
static __always_inline int abe_admit_passed(struct sk_buff *skb,
					    struct Qdisc *sch,
					    struct sk_buff **to_free,
					    struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	s64 ahead;

	if (f->green) {
		ahead = abe_green_ahead(q);
		if (unlikely(ahead > q->green_room))
			return abe_admit_late(skb, sch, to_free, f);
		q->ahead += ahead;
	}
	return abe_admit_in_time(skb, sch, to_free, f);
}

/* A first-stage loss, unless the packet is let off or can be marked instead. */
static noinline int abe_admit_lost(struct sk_buff *skb, struct Qdisc *sch,
				   struct sk_buff **to_free,
				   struct abe_fifo *f, bool certain)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	/*
	 * Losses slow TCP-friendly flows down, and a slow one has less than its share
	 * anyway. For the control loop it is a loss: alpha says how many are to be.
	 */
	if (f->green && !certain && abe_slow(q, skb)) {
		f->n.excused++;
		return abe_admit_passed(skb, sch, to_free, f);
	}
	qdisc_qstats_overlimit(sch);
	if (q->flags & TCA_ABE_F_ECN &&
	    !(certain && q->flags & TCA_ABE_F_HARDDROP) &&
	    abe_mark(skb)) {
		f->n.marks++;
		return abe_admit_passed(skb, sch, to_free, f);
	}
	/* w_l is measured even while stage one takes all green. */
	if (f->green)
		abe_late(q);
	return abe_lose(skb, sch, to_free, f, ABE_EARLY);
}

/* Stage one for a packet that is exposed by itself. */
static noinline int abe_admit_each(struct sk_buff *skb, struct Qdisc *sch,
				   struct sk_buff **to_free, struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	if (!abe_gap_each(&f->gap, &q->rnd))
		return abe_admit_passed(skb, sch, to_free, f);
	abe_gap_delay(&f->gap, q->spacing, 0);
	return abe_admit_lost(skb, sch, to_free, f, false);
}

/* Stage one for a packet that is lost, unless it can be marked. */
static noinline int abe_admit_exposed(struct sk_buff *skb, struct Qdisc *sch,
				      struct sk_buff **to_free,
				      struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	bool green = f->green;
	bool bytemode = q->flags & TCA_ABE_F_BYTEMODE;
	u64 packet = 0;

	if (green && !bytemode && q->spacing->drawn)
		packet = abe_red_probability(&q->red, q->average);
	abe_gap_end(&f->gap, q->spacing, green || bytemode, packet, &q->rnd);
	return abe_admit_lost(skb, sch, to_free, f, false);
}

/* Stage one for a packet whose probability has used up what was left. */
static __always_inline int abe_admit_due(struct sk_buff *skb, struct Qdisc *sch,
					 struct sk_buff **to_free,
					 struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	if (q->spacing->each)
		return abe_admit_each(skb, sch, to_free, f);
	return abe_admit_exposed(skb, sch, to_free, f);
}

/* All stages for a packet that finds the average out of the simple range. */
static noinline int abe_admit_steep(struct sk_buff *skb, struct Qdisc *sch,
				    struct sk_buff **to_free,
				    struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u64 p = abe_red_probability(&q->red, q->average);

	if (!p)
		return abe_admit_passed(skb, sch, to_free, f);
	if (p >= ABE_Q31_ONE)
		return abe_admit_lost(skb, sch, to_free, f, true);
	if (q->flags & TCA_ABE_F_BYTEMODE)
		p = div_u64(p * qdisc_pkt_len(skb), q->config.v[TCA_ABE_AVPKT]);
	if (f->green)
		p = min_t(u64, p, ABE_Q31_ONE) * q->loop.alpha >> 16;
	if (p >= ABE_Q31_ONE)
		return abe_admit_lost(skb, sch, to_free, f, false);
	if (abe_gap_due(&f->gap, p))
		return abe_admit_due(skb, sch, to_free, f);
	return abe_admit_passed(skb, sch, to_free, f);
}

/* All three stages. */
static __always_inline int abe_admit(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free,
				     struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u64 size = *q->queued, excess, p;

	q->average = abe_red_average(q->average, size, q->weight);
	excess = q->average - q->min;	/* enormous below min */
	if (unlikely(size < q->spare))
		return abe_admit_passed(skb, sch, to_free, f);
	if (likely(excess < f->range)) {
		p = abe_along(excess, f->slope);
	} else if (likely(excess < f->weighed)) {
		p = abe_along(excess, f->slope) * qdisc_pkt_len(skb) >> 16;
		if (unlikely(p >= ABE_Q31_ONE))
			return abe_admit_lost(skb, sch, to_free, f, false);
	} else if ((s64)excess < 0) {
		return abe_admit_passed(skb, sch, to_free, f);
	} else {
		return abe_admit_steep(skb, sch, to_free, f);
	}
	if (unlikely(abe_gap_due(&f->gap, p)))
		return abe_admit_due(skb, sch, to_free, f);
	return abe_admit_passed(skb, sch, to_free, f);
}

/*
 * What a segment is charged: its length, or what the root's size table makes of
 * that, as the core does for whole packets (tc-stab(8)) with a function of its
 * own that is not exported.
 */
static u32 abe_charge(const struct Qdisc *sch, u32 len)
{
	const struct Qdisc *root = rcu_dereference_bh(sch->dev_queue->qdisc);
	const struct qdisc_size_table *stab = rcu_dereference_bh(root->stab);
	const struct tc_sizespec *spec;
	int size;
	u32 slot;

	if (!stab)
		return len;
	spec = &stab->szopts;
	size = len + spec->overhead;
	if (spec->tsize) {
		slot = max(size + spec->cell_align, 0) >> spec->cell_log;
		size = (stab->data[slot % spec->tsize] +
			slot / spec->tsize * stab->data[spec->tsize - 1]) <<
		       spec->size_log;
	}
	return max(size, 1);
}

/*
 * Is a GSO packet to be split? Where the whole of it takes less than a sixteenth
 * of green_limit it is no delay worth the name. In packets it would count as one;
 * and below a shaper whose rate is not known yet nobody knows how long it takes.
 */
static bool abe_splits(struct Qdisc *sch, const struct sk_buff *skb)
{
	const struct abe_sched_data *q = qdisc_priv(sch);

	if (!(q->flags & TCA_ABE_F_SPLIT_GSO))
		return false;
	return q->unit == ABE_PACKETS ||
	       qdisc_pkt_len(skb) > q->green_limit >> ABE_SPLIT_SHIFT ||
	       (q->config.v[TCA_ABE_UNIT] == TCA_ABE_UNIT_TIME &&
		!q->drain_known &&
		rcu_access_pointer(sch->dev_queue->qdisc) != sch);
}

/*
 * Split a GSO packet: a packet is then a packet to the probabilities, and no
 * green one waits behind 64 KiB that count as one.
 */
static noinline int abe_admit_gso(struct sk_buff *skb, struct Qdisc *sch,
				  struct sk_buff **to_free, struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	netdev_features_t features = netif_skb_features(skb);
	unsigned int len = qdisc_pkt_len(skb), queued = 0, packets = 0;
	struct sk_buff *segs, *next;
	int ret = NET_XMIT_DROP;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return abe_lose(skb, sch, to_free, f, ABE_LIMIT);
	/* The first segment of a fraglist is this packet: it stays with that. */
	consume_skb(skb);
	q->splitting = true;
	skb_list_walk_safe(segs, segs, next) {
		unsigned int seg_len = abe_charge(sch, segs->len);
		int err;

		skb_mark_not_on_list(segs);
		qdisc_skb_cb(segs)->pkt_len = seg_len;
		abe_cb_set_one_segment(segs);
		err = abe_admit(segs, sch, to_free, f);
		if (err == NET_XMIT_SUCCESS) {
			queued += seg_len;
			packets++;
		} else if (!packets) {
			ret = err;
		}
	}
	q->splitting = false;
	if (!packets)
		return ret;
	/* The ancestors will add one packet of the old length. */
	qdisc_tree_reduce_backlog(sch, 1 - (int)packets,
				  (int)len - (int)queued);
	return NET_XMIT_SUCCESS;
}

/* The queue has run empty: there is nothing to drain. */
static void abe_idle(struct abe_sched_data *q, u64 now)
{
	abe_tick_over(q);
	if (q->segments)
		abe_set_segments(q, false);
	q->idle_from = now;
	q->drain_from = 0;
	q->drain_at = U64_MAX;
}

/* The queue was empty: age the average, and be ready to see it drain. */
static void abe_wake(struct abe_sched_data *q, u64 now)
{
	if (q->average)
		q->average = abe_red_decay(q->average, now - q->idle_from,
					   q->decay);
	q->idle_from = now;	/* if this packet is not queued */
	if (!q->config.rate) {
		q->drain_at = now + ABE_DRAIN_BURST_NS;
		q->event_at = min(q->event_at, q->drain_at);
		q->stop_at = min(q->stop_at, q->drain_at);
	}
}

/* Where the blue queue ends now, unless there is no room for another mark. */
static void abe_mark_blue(struct abe_sched_data *q)
{
	struct abe_fifo *blue = &q->fifo[ABE_BLUE];

	q->mark_at = blue->n.in[ABE_PACKETS] + ABE_DUE_WALK +
		     (abe_held(blue, ABE_PACKETS) >> ABE_DUE_SHIFT);
	/* While no green comes, nobody passes those whose packets have left. */
	while (q->searched.mark != q->marked &&
	       q->marks[q->searched.mark % ABE_DUE_MARKS].in <=
	       blue->n.out[q->unit])
		q->searched.mark++;
	if (!blue->head || q->marked - q->searched.mark >= ABE_DUE_MARKS)
		return;
	q->marks[q->marked++ % ABE_DUE_MARKS] = (struct abe_mark) {
		.skb = container_of(blue->tail, struct sk_buff, next),
		.in = blue->n.in[q->unit],
	};
}

/*
 * The clock. On links of up to 190 Mb/s it is read at every departure; on faster
 * ones often enough that a reading is no older than ABE_CLOCK_NS while packets
 * leave. Each reading is followed by abe_set_clock() or abe_event().
 */
static __always_inline u64 abe_clock(const struct abe_sched_data *q)
{
	u64 now = ktime_get_ns();

	return unlikely(now < q->now) ? q->now : now;	/* arrivals ran ahead */
}

static __always_inline void abe_set_clock(struct abe_sched_data *q, u64 now)
{
	q->now = now;
	q->tick = jiffies;
	q->ticks = q->ticks_max;
	q->green_room = -1;
	if (q->memory > q->memory_max)
		q->memory_max = q->memory;
}

/* Is there more to do at a reading, from the time @at on? */
static __always_inline bool abe_event_due(const struct abe_sched_data *q,
					  u64 now, u64 at)
{
	return now >= at ||
	       q->fifo[ABE_BLUE].n.in[ABE_PACKETS] >= q->mark_at;
}

/* Mark the blue queue, follow D, run the control loop. */
static void abe_event(struct Qdisc *sch, u64 now)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_fifo *blue = &q->fifo[ABE_BLUE];

	/* D falls no faster than time passes: then no deadline decreases. */
	blue->offset = max_t(s64, q->loop.offset, blue->offset - (now - q->now));
	abe_set_clock(q, now);
	if (blue->n.in[ABE_PACKETS] >= q->mark_at)
		abe_mark_blue(q);
	if (now >= q->update_at) {
		abe_control(sch, now);
		blue->offset = max_t(s64, q->loop.offset, blue->offset);
	}
	if (q->segments || blue->offset != (u64)q->loop.offset)
		q->event_at = 0;
	else
		q->event_at = min(q->update_at, q->drain_at);
	q->stop_at = q->protect ? 0 : q->event_at;
}

/*
 * An arrival takes over the last departure's reading, unless the queue was empty,
 * or the kernel's tick tells that the device stalls.
 */
static void abe_read_clock(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u64 now = abe_clock(q);

	if (abe_empty(q))
		abe_wake(q, now);
	if (abe_event_due(q, now, q->event_at))
		abe_event(sch, now);
	else
		abe_set_clock(q, now);
}

/* A filter took the packet; @taken as abe_filter() says. */
static int abe_taken(struct sk_buff *skb, struct Qdisc *sch,
		     struct sk_buff **to_free, int taken)
{
	if (taken < 0)
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	if (taken & __NET_XMIT_BYPASS)
		qdisc_qstats_drop(sch);
	__qdisc_drop(skb, to_free);
	return taken;
}

/* An arrival with more to do than its own admission, in the order of doing it. */
static noinline int abe_enqueue_slow(struct sk_buff *skb, struct Qdisc *sch,
				     struct sk_buff **to_free)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_fifo *f;
	int taken;

	f = abe_colour(sch, skb, &taken);
	if (!f)
		return abe_taken(skb, sch, to_free, taken);
	if (READ_ONCE(jiffies) != q->tick)
		abe_read_clock(sch);
	if (skb_is_gso(skb)) {
		if (abe_splits(sch, skb))
			return abe_admit_gso(skb, sch, to_free, f);
		abe_set_segments(q, true);
		q->ticks = 0;
	}
	return abe_admit(skb, sch, to_free, f);
}

static int abe_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u8 dscp;

	if (unlikely(!abe_plain_dscp(q, skb, &dscp) ||
		     READ_ONCE(jiffies) != q->tick || skb_is_gso(skb)))
		return abe_enqueue_slow(skb, sch, to_free);
	return abe_admit(skb, sch, to_free, abe_dscp_colour(q, dscp));
}

/* --- earliest deadline first --- */

/*
 * The packet that leaves next, and its queue: the earlier deadline. Of equals
 * green goes first, so a green packet waits for nothing that came after it.
 */
static __always_inline struct sk_buff *abe_next(struct abe_sched_data *q,
						struct abe_fifo **f)
{
	struct sk_buff *green = q->fifo[ABE_GREEN].head;
	struct sk_buff *blue = q->fifo[ABE_BLUE].head;

	if (!green || (blue && abe_cb(blue)->deadline <
			       abe_cb(green)->deadline)) {
		*f = &q->fifo[ABE_BLUE];
		return blue;
	}
	*f = &q->fifo[ABE_GREEN];
	return green;
}

/* Take the head of @f, @skb, off its queue and off the core's books. */
static __always_inline void abe_take(struct sk_buff *skb, struct Qdisc *sch,
				     struct abe_fifo *f, u32 len)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	q->memory -= skb->truesize;
	abe_unbook(sch, len);
	f->head = skb->next;
	if (unlikely(!f->head)) {
		f->tail = &f->head;
		if (abe_empty(q))
			abe_idle(q, q->now);
	}
	skb_mark_not_on_list(skb);
}

/* --- a queue that has become too long --- */

/* Which blue packets are due has to be counted anew, and without marks. */
static void abe_forget_due(struct abe_sched_data *q)
{
	q->searched.counted = 0;
	q->searched.mark = q->marked;
	q->mark_at = 0;
	q->green_room = -1;
}

/*
 * @packets of @bytes that had got into the queue are thrown out of it. They are
 * drops, but not losses of this interval: the control loop must not see them.
 */
static void abe_unqueue(struct abe_sched_data *q, struct abe_fifo *f,
			u64 packets, u64 bytes)
{
	const u64 gone[ABE_UNITS] = { packets, bytes };
	struct abe_counters *before = &q->before[abe_colour_of(q, f)];
	int unit;

	for (unit = 0; unit < ABE_UNITS; unit++) {
		f->n.in[unit] -= gone[unit];
		f->n.drops[ABE_LIMIT][unit] += gone[unit];
		before->in[unit] -= gone[unit];
		before->drops[ABE_LIMIT][unit] += gone[unit];
	}
	abe_forget_due(q);
}

/*
 * Where a packet is missed least: blue, the oldest, whose sender learns soonest
 * what the link is like. Green only where it could not keep its bound any more,
 * or where there is nothing else.
 */
static struct abe_fifo *abe_spare(struct abe_sched_data *q)
{
	struct abe_fifo *green = &q->fifo[ABE_GREEN];
	struct abe_fifo *blue = &q->fifo[ABE_BLUE];

	if (!blue->head ||
	    (green->head && abe_held(green, q->unit) > q->green_limit))
		return green;
	return blue;
}

/*
 * Drop what the limits in force have no room for, but leave @keep packets.
 * Return: the packets, to be freed.
 */
static struct sk_buff *abe_trim(struct Qdisc *sch, unsigned int keep)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	unsigned int packets = 0, bytes = 0;
	struct sk_buff *skb, *list = NULL;
	struct abe_fifo *f;

	while (abe_qlen(q) > keep &&
	       (*q->queued > q->limit || q->memory > q->memory_limit ||
		abe_qlen(q) > q->packet_limit)) {
		f = abe_spare(q);
		skb = f->head;
		abe_take(skb, sch, f, qdisc_pkt_len(skb));
		abe_unqueue(q, f, 1, qdisc_pkt_len(skb));
		trace_abe_drop(sch, abe_colour_of(q, f), ABE_LIMIT,
			       qdisc_pkt_len(skb));
		qdisc_qstats_drop(sch);
		bytes += qdisc_pkt_len(skb);
		packets++;
		skb->next = list;
		list = skb;
	}
	q->average = min(q->average, q->limit << 32);
	qdisc_tree_reduce_backlog(sch, packets, bytes);
	return list;
}

/* After a departure, where somebody listens. */
static noinline struct sk_buff *abe_dequeue_traced(struct sk_buff *skb,
						   struct Qdisc *sch,
						   struct abe_fifo *f)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	trace_abe_dequeue(sch, abe_colour_of(q, f),
			  q->now - abe_cb(skb)->arrived, qdisc_pkt_len(skb));
	return skb;
}

static __always_inline struct sk_buff *abe_sent(struct sk_buff *skb,
						struct Qdisc *sch,
						struct abe_fifo *f)
{
	if (trace_abe_dequeue_enabled())
		return abe_dequeue_traced(skb, sch, f);
	return skb;
}

/* The first i for which 2^i times ABE_SOJOURN_NS is more. */
static __always_inline unsigned long abe_sojourn_bin(u64 sojourn)
{
	const u64 inverse = DIV_ROUND_UP(1ULL << 32, ABE_SOJOURN_NS);

	return __fls(sojourn * inverse >> 31 | 1);
}

/* A departure; @reading: it has read the clock. */
static __always_inline void abe_send(struct sk_buff *skb, struct Qdisc *sch,
				     struct abe_fifo *f, bool reading)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u64 sojourn = q->now - abe_cb(skb)->arrived;
	u32 len = qdisc_pkt_len(skb);

	if (reading)
		f->sojourns[abe_sojourn_bin(sojourn)]++;
	abe_take(skb, sch, f, len);
	f->n.out[ABE_PACKETS]++;
	f->n.out[ABE_BYTES] += len;
	f->n.delay += sojourn;
	if (unlikely(sojourn > f->n.delay_max))
		f->n.delay_max = sojourn;
	abe_bstats_update(sch, skb, len);
}

/*
 * Measure the drain rate. A look runs within one busy period, long enough
 * that batches of the device below and single packets do not matter; one that
 * the queue runs empty in is thrown away, as the link may then have waited.
 */
static void abe_drain(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u64 bytes = q->fifo[ABE_BLUE].n.out[ABE_BYTES] +
		    q->fifo[ABE_GREEN].n.out[ABE_BYTES];
	bool first = !q->drain_known;
	u64 rate, now = q->now;

	if (q->drain_from) {
		if (bytes - q->drain_bytes < (u64)abe_mtu(sch) *
		    (first ? ABE_DRAIN_FIRST_PKTS : ABE_DRAIN_PKTS))
			return;
		rate = mul_u64_u64_div_u64(bytes - q->drain_bytes,
					   NSEC_PER_SEC, now - q->drain_from);
		q->drain_looks = first ? 1 : min(q->drain_looks + 1,
						 (u32)ABE_DRAIN_LOOKS);
		if (!first)
			rate = q->drain_rate - div_u64(q->drain_rate,
						       q->drain_looks) +
			       div_u64(rate, q->drain_looks);
		q->drain_rate = clamp(rate, 1ULL, ABE_MAX_RATE);
		q->drain_known = true;
		abe_scale(sch);
		/* Not empty: a parent must not hear that now. */
		if (first)
			kfree_skb_list(abe_trim(sch, 1));
	}
	q->drain_from = now;
	q->drain_bytes = bytes;
	q->drain_at = now + (q->drain_known ? ABE_DRAIN_NS :
					      ABE_DRAIN_FIRST_NS);
	abe_event_soon(q);
}

/* Start over the samples. */
static void abe_forget_flows(struct abe_sched_data *q)
{
	if (q->flows)
		memset(q->flows, 0, sizeof(*q->flows));
	q->largest = 0;
	q->step = 0;
	q->credit = 0;
	q->sampled = q->now;
}

/*
 * Sample the flow of a departure that reads the clock, so that each byte of theirs is as
 * likely as any other: that of the packet with the first byte after a step. A step is as
 * long as the largest packets, so that a whole GSO packet makes one sample and a small one
 * a part of one, or as what leaves in ABE_FLOWS_NS. Time must not choose the packet: how
 * long one leaves after another depends on the length of either.
 */
static noinline void abe_sample_flow(const struct sk_buff *skb,
				     struct Qdisc *sch, bool green)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	u64 since = q->now - q->sampled;

	if (since > ABE_FLOWS_STALE_NS)
		abe_forget_flows(q);
	q->largest = max3(q->largest - (q->largest >> ABE_STEP_SHIFT),
			  qdisc_pkt_len(skb), abe_mtu(sch));
	if (since < ABE_FLOWS_NS)
		q->step += q->step >> 2;
	else if (since > 16 * ABE_FLOWS_NS)
		q->step >>= 1;
	else
		q->step -= q->step >> ABE_STEP_SHIFT;
	q->step = clamp(q->step, q->largest, max(q->largest, ABE_STEP_MAX));
	abe_flows_add(q->flows, abe_flow(skb), green, q->protect);
	/* Not in step with what comes as regularly. */
	q->credit += q->step + abe_mul_q31(q->step >> 2, abe_rnd_q31(&q->flows_rnd));
	q->credit = max(q->credit, 0);
	q->sampled = q->now;
	q->walks = ABE_WALKS;
}

/* For each departure that reads the clock, with protect. */
static void abe_count_flow(const struct sk_buff *skb, struct Qdisc *sch,
			   bool green)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	q->credit -= (int)qdisc_pkt_len(skb);
	if (unlikely(q->credit < 0))
		abe_sample_flow(skb, sch, green);
}

/* A departure that reads the clock when there is more to do. */
static noinline struct sk_buff *abe_dequeue_event(struct sk_buff *skb,
						  struct Qdisc *sch,
						  struct abe_fifo *f, u64 now)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	if (abe_event_due(q, now, q->event_at))
		abe_event(sch, now);
	else
		abe_set_clock(q, now);
	if (q->protect)
		abe_count_flow(skb, sch, f->green);
	if (q->segments)
		abe_bstats_segments(sch, skb);
	abe_send(skb, sch, f, true);
	/* Not before: what it drops must not be what a parent was shown. */
	if (q->now >= q->drain_at)
		abe_drain(sch);
	return abe_sent(skb, sch, f);
}

/* A departure that reads the clock. */
static noinline struct sk_buff *abe_dequeue_clock(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_fifo *f;
	struct sk_buff *skb;
	u64 now;

	if (abe_empty(q))
		return NULL;
	now = abe_clock(q);
	skb = abe_next(q, &f);
	if (abe_event_due(q, now, q->stop_at))
		return abe_dequeue_event(skb, sch, f, now);
	abe_set_clock(q, now);
	abe_send(skb, sch, f, true);
	return abe_sent(skb, sch, f);
}

static struct sk_buff *abe_dequeue(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_fifo *f;
	struct sk_buff *skb;

	if (unlikely(--q->ticks < 0 || READ_ONCE(jiffies) != q->tick))
		return abe_dequeue_clock(sch);
	skb = abe_next(q, &f);
	if (!skb)
		return NULL;
	abe_send(skb, sch, f, false);
	return abe_sent(skb, sch, f);
}

/*
 * What dequeue will return. The packet stays in its queue and on the books;
 * from now on none has an earlier deadline, not even green that comes yet.
 */
static struct sk_buff *abe_peek(struct Qdisc *sch)
{
	struct abe_fifo *f;
	struct sk_buff *skb = abe_next(qdisc_priv(sch), &f);

	if (skb)
		abe_cb(skb)->deadline = 0;
	return skb;
}

/* --- configuration --- */

static void abe_apply_loop(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	const u32 *v = q->config.v;

	q->loop_parms = (struct abe_loop_parms) {
		.kind = v[TCA_ABE_LOOP],
		.k1 = v[TCA_ABE_K1],
		.gamma1 = v[TCA_ABE_GAMMA1],
		.gamma2 = v[TCA_ABE_GAMMA2],
		.gamma3 = v[TCA_ABE_GAMMA3],
		.lambda = v[TCA_ABE_LAMBDA],
		.rtt = (u64)v[TCA_ABE_RTT] * NSEC_PER_USEC,
		.k2 = (u64)v[TCA_ABE_K2] * NSEC_PER_USEC,
		.k3 = (u64)v[TCA_ABE_K3] * NSEC_PER_USEC,
		.k4 = (u64)v[TCA_ABE_K4] * NSEC_PER_USEC,
		.offset_max = abe_offset_max(q, abe_mtu(sch)),
		.log_alpha_max = abe_log2(v[TCA_ABE_ALPHA_MAX]) - (16LL << 32),
	};
	abe_loop_clamp(&q->loop, &q->loop_parms);
}

/* Sizes are counted in another unit now: start over what was added up. */
static void abe_recount(struct abe_sched_data *q)
{
	q->average = (u64)*q->queued << 32;
	abe_forget_due(q);
	q->ahead = 0;
	memset(q->loop.load, 0, sizeof(q->loop.load));
}

/* Start over the way to the next first-stage losses. */
static void abe_forget_gaps(struct abe_sched_data *q)
{
	int c;

	for (c = 0; c < ABE_COLOURS; c++)
		abe_gap_draw(&q->fifo[c].gap, q->spacing, 0, 0, &q->rnd);
}

/* Make @cfg the configuration in force. What is queued stays. */
static void abe_apply(struct Qdisc *sch, const struct abe_config *cfg)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	enum abe_unit unit = cfg->v[TCA_ABE_UNIT] == TCA_ABE_UNIT_PACKETS ?
			     ABE_PACKETS : ABE_BYTES;
	bool recount = !q->queued || unit != q->unit;
	const struct abe_spacing *spacing =
		&abe_spacings[cfg->v[TCA_ABE_SPACING]];
	const u32 *v = q->config.v;

	if (v[TCA_ABE_PROBABILITY] != cfg->v[TCA_ABE_PROBABILITY] ||
	    !(cfg->v[TCA_ABE_FLAGS] & TCA_ABE_F_ADAPTIVE))
		q->prob = cfg->v[TCA_ABE_PROBABILITY];
	if (q->config.seed != cfg->seed) {
		abe_rnd_seed(&q->rnd, cfg->seed ?: get_random_u64());
		abe_rnd_seed(&q->flows_rnd, cfg->seed);
	}
	if (q->config.seed != cfg->seed || q->spacing != spacing) {
		q->spacing = spacing;
		abe_forget_gaps(q);
	}

	/* A rate that was given is where an estimate begins, but is none. */
	if (q->config.rate && !cfg->rate) {
		q->drain_known = false;
		q->drain_from = 0;
	}
	q->config = *cfg;
	q->unit = unit;
	q->queued = unit == ABE_PACKETS ? &sch->q.qlen : &sch->qstats.backlog;
	q->flags = v[TCA_ABE_FLAGS];
	if (q->protect != v[TCA_ABE_PROTECT]) {
		q->protect = v[TCA_ABE_PROTECT];
		abe_forget_flows(q);
	}
	q->green_dscp = cfg->green_dscp;
	q->green_mark = v[TCA_ABE_GREEN_MARK];
	q->green_mask = v[TCA_ABE_GREEN_MASK];
	/* Those that may name a class; all, if the DSCP is not all that counts. */
	q->priority = q->green_mask ? 0 : 0x10000;
	q->colour[ABE_BLUE] = &q->fifo[ABE_BLUE];
	q->colour[ABE_GREEN] = &q->fifo[q->flags & TCA_ABE_F_FLAT ? ABE_BLUE :
								    ABE_GREEN];
	q->red.gentle = q->flags & TCA_ABE_F_GENTLE;
	if (cfg->rate) {
		q->drain_rate = cfg->rate;
		q->drain_known = true;
		q->drain_from = 0;
		q->drain_at = U64_MAX;
	} else if (!q->drain_from) {
		q->drain_at = 0;
	}
	q->update_at = min(q->update_at, ktime_get_ns() +
			   (u64)v[TCA_ABE_INTERVAL] * NSEC_PER_USEC);
	abe_event_soon(q);
	abe_apply_loop(sch);
	abe_scale(sch);
	if (recount)
		abe_recount(q);
}

/* D as it was given; it may still fall no faster than time passes. */
static void abe_set_offset(struct abe_sched_data *q)
{
	q->loop.offset = (u64)q->config.v[TCA_ABE_OFFSET] * NSEC_PER_USEC;
	abe_event_soon(q);
	abe_bias(q);
}

/* Before @cfg is in force. */
static int abe_alloc_flows(struct abe_sched_data *q,
			   const struct abe_config *cfg)
{
	if (!cfg->v[TCA_ABE_PROTECT] || q->flows)
		return 0;
	q->flows = kvzalloc(sizeof(*q->flows), GFP_KERNEL);
	return q->flows ? 0 : -ENOMEM;
}

static int abe_change(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_config cfg = q->config;
	struct sk_buff *dropped;
	int err;

	if (!opt)
		return 0;
	err = abe_parse(&cfg, opt, false, extack);
	if (err)
		return err;
	err = abe_alloc_flows(q, &cfg);
	if (err)
		return err;
	sch_tree_lock(sch);
	abe_apply(sch, &cfg);
	if (nla_find_nested(opt, TCA_ABE_OFFSET))
		abe_set_offset(q);
	dropped = abe_trim(sch, 0);
	sch_tree_unlock(sch);
	kfree_skb_list(dropped);
	return 0;
}

/* Bytes a second of the device, as far as it tells; else those of 1 Gb/s. */
static u64 abe_link_rate(struct net_device *dev)
{
	struct ethtool_link_ksettings link;

	if (abe_link_ksettings(dev, &link) ||
	    link.base.speed == (u32)SPEED_UNKNOWN || !link.base.speed)
		return 125000000;
	return min(125000ULL * link.base.speed, ABE_MAX_RATE);
}

/*
 * Queues of the device that this is perhaps one of. Below a root that is no mq
 * it is the only one: then it starts with less than it could have.
 */
static u32 abe_queues(const struct Qdisc *sch)
{
	if (sch->parent == TC_H_ROOT)
		return 1;
	return max(qdisc_dev(sch)->real_num_tx_queues, 1U);
}

static int abe_init(struct Qdisc *sch, struct nlattr *opt,
		    struct netlink_ext_ack *extack)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct abe_config cfg;
	u64 now = ktime_get_ns();
	int c, err;

	for (c = 0; c < ABE_COLOURS; c++)
		q->fifo[c].tail = &q->fifo[c].head;
	q->fifo[ABE_GREEN].green = true;
	q->due = &q->searched.counted;
	q->queues = abe_queues(sch);
	q->drain_rate = max(div_u64(abe_link_rate(qdisc_dev(sch)), q->queues),
			    1ULL);
	q->update_at = U64_MAX;
	abe_idle(q, now);

	err = abe_config_init(&cfg, opt, extack);
	if (err)
		return err;
	err = abe_alloc_flows(q, &cfg);
	if (err)
		return err;
	err = tcf_block_get(&q->block, &q->filters, sch, extack);
	if (err)
		return err;

	abe_rnd_seed(&q->rnd, get_random_u64());
	abe_apply(sch, &cfg);
	abe_loop_init(&q->loop, &q->loop_parms,
		      (u64)cfg.v[TCA_ABE_OFFSET] * NSEC_PER_USEC);
	abe_bias(q);
	return 0;
}

/* Empty the queue. Counters go on, so what is thrown away is counted. */
static void abe_reset(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	int c;

	for (c = 0; c < ABE_COLOURS; c++) {
		struct abe_fifo *f = &q->fifo[c];

		if (f->head)
			rtnl_kfree_skbs(f->head, container_of(f->tail,
							      struct sk_buff,
							      next));
		f->head = NULL;
		f->tail = &f->head;
		abe_unqueue(q, f, abe_held(f, ABE_PACKETS),
			    abe_held(f, ABE_BYTES));
	}
	q->memory = 0;
	q->average = 0;
	q->ahead = 0;
	abe_idle(q, ktime_get_ns());
	abe_forget_flows(q);
	if (q->spacing)		/* else the qdisc was never configured */
		abe_forget_gaps(q);
	WRITE_ONCE(sch->qstats.backlog, 0);
	WRITE_ONCE(sch->q.qlen, 0);
}

static void abe_destroy(struct Qdisc *sch)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	tcf_block_put(q->block);
	kvfree(q->flows);
}

static int abe_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct nlattr *opts;

	opts = nla_nest_start(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;
	if (abe_config_put(skb, &q->config)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

/* --- statistics and classes --- */

/* All attributes from @first on, each with its element of @v. */
static int abe_put_numbers(struct sk_buff *skb, int first, int end, int pad,
			   const u64 *v)
{
	int attr;

	for (attr = first; attr < end; attr++)
		if (nla_put_u64_64bit(skb, attr, v[attr], pad))
			return -EMSGSIZE;
	return 0;
}

static int abe_put_colour(struct sk_buff *skb, int attr,
			  const struct abe_sched_data *q, const struct abe_fifo *f)
{
	const struct abe_counters *before = &q->before[abe_colour_of(q, f)];
	const struct abe_counters *n = &f->n;
	const u64 v[] = {
		[TCA_ABE_COLOUR_ARRIVED] = abe_arrived(n, ABE_PACKETS),
		[TCA_ABE_COLOUR_SENT] = n->out[ABE_PACKETS],
		[TCA_ABE_COLOUR_BYTES] = n->out[ABE_BYTES],
		[TCA_ABE_COLOUR_QLEN] = abe_held(f, ABE_PACKETS),
		[TCA_ABE_COLOUR_BACKLOG] = abe_held(f, ABE_BYTES),
		[TCA_ABE_COLOUR_EARLY_DROPS] = n->drops[ABE_EARLY][ABE_PACKETS],
		[TCA_ABE_COLOUR_LATE_DROPS] = n->drops[ABE_LATE][ABE_PACKETS],
		[TCA_ABE_COLOUR_LIMIT_DROPS] = n->drops[ABE_LIMIT][ABE_PACKETS],
		[TCA_ABE_COLOUR_MARKS] = n->marks,
		[TCA_ABE_COLOUR_DELAY_MAX] = div_u64(n->delay_max, NSEC_PER_USEC),
		[TCA_ABE_COLOUR_DELAY_SUM] = f->delay_us +
			div_u64(n->delay - before->delay, NSEC_PER_USEC),
	};
	u64 sojourns[TCA_ABE_SOJOURNS] = {};
	struct nlattr *nest;
	int i;

	for (i = 0; i < ABE_SOJOURNS; i++)
		sojourns[min(i, TCA_ABE_SOJOURNS - 1)] += f->sojourns[i];
	nest = nla_nest_start(skb, attr);
	if (!nest ||
	    abe_put_numbers(skb, TCA_ABE_COLOUR_ARRIVED, ARRAY_SIZE(v),
			    TCA_ABE_COLOUR_PAD, v) ||
	    nla_put_64bit(skb, TCA_ABE_COLOUR_SOJOURN, sizeof(sojourns), sojourns,
			  TCA_ABE_COLOUR_PAD) ||
	    nla_put_u64_64bit(skb, TCA_ABE_COLOUR_EXCUSED, n->excused,
			      TCA_ABE_COLOUR_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static u32 abe_us(u64 ns)
{
	return min_t(u64, div_u64(ns, NSEC_PER_USEC), U32_MAX);
}

static u32 abe_loss_q31(u64 q40)
{
	return min_t(u64, q40, 1ULL << ABE_LOSS_SHIFT) >> (ABE_LOSS_SHIFT - 31);
}

/* What the statistics of a qdisc or class begin with; tc wants no flag here. */
static struct nlattr *abe_stats_start(const struct abe_sched_data *q,
				      struct sk_buff *skb, u32 type)
{
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_STATS_APP);

	if (nest && (nla_put_u32(skb, TCA_ABE_STATS_TYPE, type) ||
		     nla_put_u32(skb, TCA_ABE_STATS_UNIT, q->config.v[TCA_ABE_UNIT]))) {
		nla_nest_cancel(skb, nest);
		return NULL;
	}
	return nest;
}

static int abe_put_qdisc(struct Qdisc *sch, struct sk_buff *skb)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	const struct abe_loop *loop = &q->loop;
	struct abe_due searched = q->searched;
	u64 memory_max = q->memory_max = max(q->memory_max, q->memory);
	u64 due = abe_count_due(q, ktime_get_ns(), &searched);
	const u64 v[] = {
		[TCA_ABE_STATS_ALPHA] = loop->alpha,
		[TCA_ABE_STATS_ALPHA_TARGET] = abe_exp2(loop->log_target, 16),
		[TCA_ABE_STATS_OFFSET] = abe_us(loop->offset),
		[TCA_ABE_STATS_AVERAGE] = q->average,
		[TCA_ABE_STATS_PROBABILITY] = abe_red_probability(&q->red, q->average),
		[TCA_ABE_STATS_GREEN_AHEAD] =
			due - q->fifo[ABE_BLUE].n.out[q->unit] +
			abe_held(&q->fifo[ABE_GREEN], q->unit),
		[TCA_ABE_STATS_UPDATES] = loop->updates,
		[TCA_ABE_STATS_GREEN_SHARE] = abe_loss_q31(loop->share),
		[TCA_ABE_STATS_DRAIN_RATE] = q->drain_rate,
		[TCA_ABE_STATS_LIMIT] = q->limit,
		[TCA_ABE_STATS_GREEN_LIMIT] = q->green_limit,
		[TCA_ABE_STATS_LOSS_BLUE] = abe_loss_q31(loop->loss_blue),
		[TCA_ABE_STATS_LOSS_GREEN_EARLY] = abe_loss_q31(loop->loss_early),
		[TCA_ABE_STATS_LOSS_GREEN_LATE] = abe_loss_q31(loop->loss_late),
		[TCA_ABE_STATS_DELAY_BLUE] = abe_us(loop->delay[ABE_BLUE]),
		[TCA_ABE_STATS_DELAY_GREEN] = abe_us(loop->delay[ABE_GREEN]),
		[TCA_ABE_STATS_MEMORY_USED] = q->memory,
		[TCA_ABE_STATS_MEMORY_MAX] = memory_max,
		[TCA_ABE_STATS_MEMORY_LIMIT] = q->memory_limit,
	};

	if (abe_put_numbers(skb, TCA_ABE_STATS_ALPHA, ARRAY_SIZE(v),
			    TCA_ABE_STATS_PAD, v) ||
	    abe_put_colour(skb, TCA_ABE_STATS_GREEN, q, &q->fifo[ABE_GREEN]))
		return -EMSGSIZE;
	return abe_put_colour(skb, TCA_ABE_STATS_BLUE, q, &q->fifo[ABE_BLUE]);
}

static int abe_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct abe_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = abe_stats_start(q, d->skb, TCA_ABE_STATS_TYPE_QDISC);
	int err;

	if (!nest)
		return -1;
	sch_tree_lock(sch);
	err = abe_put_qdisc(sch, d->skb);
	sch_tree_unlock(sch);
	if (err) {
		nla_nest_cancel(d->skb, nest);
		return -1;
	}
	nla_nest_end(d->skb, nest);
	return 0;
}

/* Classes: minor 1 is green, 2 is blue. They are always there. */
static const struct abe_fifo *abe_class(struct Qdisc *sch, unsigned long cl)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	return &q->fifo[cl == 1 ? ABE_GREEN : ABE_BLUE];
}

static struct Qdisc *abe_leaf(struct Qdisc *sch, unsigned long cl)
{
	return NULL;
}

static unsigned long abe_find(struct Qdisc *sch, u32 classid)
{
	u32 minor = TC_H_MIN(classid);

	return minor <= 2 ? minor : 0;
}

/* Filters may name a class; there is nothing to hold on to. */
static unsigned long abe_bind(struct Qdisc *sch, unsigned long parent,
			      u32 classid)
{
	return abe_find(sch, classid);
}

static void abe_unbind(struct Qdisc *sch, unsigned long cl)
{
}

static struct tcf_block *abe_tcf_block(struct Qdisc *sch, unsigned long cl,
				       struct netlink_ext_ack *extack)
{
	struct abe_sched_data *q = qdisc_priv(sch);

	return cl ? NULL : q->block;
}

static int abe_dump_class(struct Qdisc *sch, unsigned long cl,
			  struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(cl);
	return 0;
}

static int abe_put_class(const struct abe_sched_data *q, const struct abe_fifo *f,
			 struct gnet_dump *d)
{
	const struct abe_counters *n = &f->n;
	struct gnet_stats_queue queue = {
		.backlog = abe_held(f, ABE_BYTES),
		.drops = n->drops[ABE_EARLY][ABE_PACKETS] +
			 n->drops[ABE_LATE][ABE_PACKETS] +
			 n->drops[ABE_LIMIT][ABE_PACKETS],
		.overlimits = n->drops[ABE_EARLY][ABE_PACKETS] + n->marks,
	};
	struct gnet_stats_basic_sync basic;
	struct nlattr *nest;

	gnet_stats_basic_sync_init(&basic);
	_bstats_update(&basic, n->out[ABE_BYTES], n->out[ABE_PACKETS]);
	if (gnet_stats_copy_basic(d, NULL, &basic, false) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &queue, abe_held(f, ABE_PACKETS)) < 0)
		return -1;
	nest = abe_stats_start(q, d->skb, TCA_ABE_STATS_TYPE_CLASS);
	if (!nest)
		return -1;
	if (abe_put_colour(d->skb, TCA_ABE_STATS_COLOUR, q, f)) {
		nla_nest_cancel(d->skb, nest);
		return -1;
	}
	nla_nest_end(d->skb, nest);
	return 0;
}

static int abe_dump_class_stats(struct Qdisc *sch, unsigned long cl,
				struct gnet_dump *d)
{
	int err;

	sch_tree_lock(sch);
	err = abe_put_class(qdisc_priv(sch), abe_class(sch, cl), d);
	sch_tree_unlock(sch);
	return err;
}

static void abe_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	unsigned long cl;

	if (arg->stop)
		return;
	for (cl = 1; cl <= 2; cl++)
		if (!tc_qdisc_stats_dump(sch, cl, arg))
			return;
}

static const struct Qdisc_class_ops abe_class_ops = {
	.leaf		= abe_leaf,
	.find		= abe_find,
	.walk		= abe_walk,
	.tcf_block	= abe_tcf_block,
	.bind_tcf	= abe_bind,
	.unbind_tcf	= abe_unbind,
	.dump		= abe_dump_class,
	.dump_stats	= abe_dump_class_stats,
};

static struct Qdisc_ops abe_qdisc_ops __read_mostly = {
	.cl_ops		= &abe_class_ops,
	.id		= "abe",
	.priv_size	= sizeof(struct abe_sched_data),
	.enqueue	= abe_enqueue,
	.dequeue	= abe_dequeue,
	.peek		= abe_peek,
	.init		= abe_init,
	.reset		= abe_reset,
	.destroy	= abe_destroy,
	.change		= abe_change,
	.dump		= abe_dump,
	.dump_stats	= abe_dump_stats,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("abe");

static int __init abe_module_init(void)
{
	return register_qdisc(&abe_qdisc_ops);
}

static void __exit abe_module_exit(void)
{
	unregister_qdisc(&abe_qdisc_ops);
}

module_init(abe_module_init)
module_exit(abe_module_exit)
MODULE_AUTHOR("Alternative Best-Effort for Linux");
MODULE_DESCRIPTION("Alternative Best-Effort (ABE) qdisc");
MODULE_VERSION("0.9");
MODULE_LICENSE("GPL");
