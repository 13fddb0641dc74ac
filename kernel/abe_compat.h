/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and nothing else. Kbuild looks for each
 * feature in the headers it builds against; stable branches backport, so
 * version numbers would lie.
 */
#ifndef _ABE_COMPAT_H
#define _ABE_COMPAT_H

#include <linux/netdevice.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#ifdef ABE_HAVE_NET_GSO_H
#include <net/gso.h>
#endif

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("sch_" id)
#endif

/* Drop reasons of qdiscs. */
#ifdef ABE_HAVE_QDISC_DROP_REASON
#define abe_qdisc_drop(skb, sch, to_free, reason) \
	qdisc_drop_reason(skb, sch, to_free, SKB_DROP_REASON_QDISC_##reason)
#else
#define abe_qdisc_drop(skb, sch, to_free, reason) \
	qdisc_drop(skb, sch, to_free)
#endif

/* Segments cached by the qdisc layer, from 7.0 on. */
static inline void abe_cb_set_one_segment(struct sk_buff *skb)
{
#ifdef ABE_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

#endif /* _ABE_COMPAT_H */
