/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What sch_dualpi2.c of Linux 7.2 calls and Linux 6.1 has under another name, or not at
 * all. Included before all else; see build.
 */
#ifndef DUALPI2_COMPAT_H
#define DUALPI2_COMPAT_H

#include <linux/hrtimer.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include "dualpi2_uapi.h"

/* The reasons are for the tracepoint of dropped packets. */
enum qdisc_drop_reason {
	QDISC_DROP_OVERLIMIT,
	QDISC_DROP_CONGESTED,
	QDISC_DROP_L4S_STEP_NON_ECN,
};

#define qdisc_drop_reason(skb, sch, to_free, reason)	qdisc_drop(skb, sch, to_free)

/*
 * 7.2 frees them after the lock of the tree, if the qdisc has the flag; what they were
 * counted as is the same.
 */
#define TCQ_F_DEQUEUE_DROPS	0
#define qdisc_dequeue_drop(sch, skb, reason)	kfree_skb(skb)

static inline void qdisc_qlen_inc(struct Qdisc *sch)
{
	sch->q.qlen++;
}

static inline void qdisc_qlen_dec(struct Qdisc *sch)
{
	sch->q.qlen--;
}

#define timer_container_of(var, timer, field)	container_of(timer, typeof(*(var)), field)
#define tcf_classify_qdisc(skb, filters, result, compat)	\
	tcf_classify(skb, NULL, filters, result, compat)
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("net-sch-" id)

static inline void dualpi2_hrtimer_setup(struct hrtimer *timer,
					 enum hrtimer_restart (*function)(struct hrtimer *),
					 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}

#define hrtimer_setup	dualpi2_hrtimer_setup

#endif
