/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM abe

#if !defined(_ABE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _ABE_TRACE_H

#include <linux/tracepoint.h>
#include <net/sch_generic.h>

#include "abe_loop.h"

TRACE_DEFINE_ENUM(ABE_BLUE);
TRACE_DEFINE_ENUM(ABE_GREEN);

#define abe_show_colour(c) \
	__print_symbolic(c, { ABE_BLUE, "blue" }, { ABE_GREEN, "green" })

#define abe_show_stage(s) \
	__print_symbolic(s, { 0, "early" }, { 1, "late" }, { 2, "limit" })

/*
 * One update of the control loop: what was measured, what came out. exposed_*
 * and lost_* are packets with 8 fraction bits, weighed by size with bytemode;
 * load_* bytes, or packets if that is the unit. Loss ratios and share are Q40,
 * delays and D ns, alpha and its target Q16.16.
 */
TRACE_EVENT(abe_control,
	TP_PROTO(const struct Qdisc *sch, const struct abe_loop *loop,
		 const struct abe_loop_sample *s, u32 target, u64 average,
		 u64 drain_rate),
	TP_ARGS(sch, loop, s, target, average, drain_rate),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u32, arrived_blue)
		__field(u32, arrived_green)
		__field(u32, sent_blue)
		__field(u32, sent_green)
		__field(u64, exposed_blue)
		__field(u64, exposed_green)
		__field(u64, lost_blue)
		__field(u64, lost_green)
		__field(u64, load_blue)
		__field(u64, load_green)
		__field(u32, late_green)
		__field(u32, looks)
		__field(u64, ahead)
		__field(u64, green_limit)
		__field(u64, delay_sum_blue)
		__field(u64, delay_sum_green)
		__field(u64, loss_blue)
		__field(u64, loss_green_early)
		__field(u64, loss_green_late)
		__field(u64, share)
		__field(u64, delay_blue)
		__field(u64, delay_green)
		__field(u64, offset)
		__field(u64, average)
		__field(u64, drain_rate)
		__field(u32, alpha)
		__field(u32, target)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->arrived_blue = s->arrived[ABE_BLUE];
		__entry->arrived_green = s->arrived[ABE_GREEN];
		__entry->sent_blue = s->sent[ABE_BLUE];
		__entry->sent_green = s->sent[ABE_GREEN];
		__entry->exposed_blue = s->exposed[ABE_BLUE];
		__entry->exposed_green = s->exposed[ABE_GREEN];
		__entry->lost_blue = s->lost[ABE_BLUE];
		__entry->lost_green = s->lost[ABE_GREEN];
		__entry->load_blue = s->load[ABE_BLUE];
		__entry->load_green = s->load[ABE_GREEN];
		__entry->late_green = s->late;
		__entry->looks = s->looks;
		__entry->ahead = s->ahead;
		__entry->green_limit = s->green_limit;
		__entry->delay_sum_blue = s->delay[ABE_BLUE];
		__entry->delay_sum_green = s->delay[ABE_GREEN];
		__entry->loss_blue = loop->loss_blue;
		__entry->loss_green_early = loop->loss_early;
		__entry->loss_green_late = loop->loss_late;
		__entry->share = loop->share;
		__entry->delay_blue = loop->delay[ABE_BLUE];
		__entry->delay_green = loop->delay[ABE_GREEN];
		__entry->offset = loop->offset;
		__entry->average = average;
		__entry->drain_rate = drain_rate;
		__entry->alpha = loop->alpha;
		__entry->target = target;
	),
	TP_printk("ifindex=%d handle=%x: arrived_blue=%u arrived_green=%u sent_blue=%u sent_green=%u exposed_blue=%llu exposed_green=%llu lost_blue=%llu lost_green=%llu load_blue=%llu load_green=%llu late_green=%u looks=%u ahead=%llu green_limit=%llu delay_sum_blue=%llu delay_sum_green=%llu loss_blue=%llu loss_green_early=%llu loss_green_late=%llu share=%llu delay_blue=%llu delay_green=%llu offset=%llu average=%llu drain_rate=%llu alpha=%u target=%u",
		  __entry->ifindex, __entry->handle >> 16,
		  __entry->arrived_blue, __entry->arrived_green,
		  __entry->sent_blue, __entry->sent_green,
		  __entry->exposed_blue, __entry->exposed_green,
		  __entry->lost_blue, __entry->lost_green,
		  __entry->load_blue, __entry->load_green,
		  __entry->late_green, __entry->looks, __entry->ahead,
		  __entry->green_limit, __entry->delay_sum_blue,
		  __entry->delay_sum_green, __entry->loss_blue,
		  __entry->loss_green_early, __entry->loss_green_late,
		  __entry->share, __entry->delay_blue, __entry->delay_green,
		  __entry->offset, __entry->average, __entry->drain_rate,
		  __entry->alpha, __entry->target)
);

/* A packet lost; a mark is not a loss here. */
TRACE_EVENT(abe_drop,
	TP_PROTO(const struct Qdisc *sch, u32 colour, u32 stage, u32 len),
	TP_ARGS(sch, colour, stage, len),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u32, colour)
		__field(u32, stage)
		__field(u32, len)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->colour = colour;
		__entry->stage = stage;
		__entry->len = len;
	),
	TP_printk("ifindex=%d handle=%x: colour=%s stage=%s len=%u",
		  __entry->ifindex, __entry->handle >> 16,
		  abe_show_colour(__entry->colour),
		  abe_show_stage(__entry->stage), __entry->len)
);

/* A packet sent; sojourn in ns. */
TRACE_EVENT(abe_dequeue,
	TP_PROTO(const struct Qdisc *sch, u32 colour, u64 sojourn, u32 len),
	TP_ARGS(sch, colour, sojourn, len),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u32, colour)
		__field(u32, len)
		__field(u64, sojourn)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->colour = colour;
		__entry->len = len;
		__entry->sojourn = sojourn;
	),
	TP_printk("ifindex=%d handle=%x: colour=%s sojourn=%llu len=%u",
		  __entry->ifindex, __entry->handle >> 16,
		  abe_show_colour(__entry->colour), __entry->sojourn,
		  __entry->len)
);

#endif /* _ABE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE abe_trace
#include <trace/define_trace.h>
