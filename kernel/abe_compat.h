/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and nothing else. Kbuild looks for each
 * feature in the headers it builds against; stable branches backport, so
 * version numbers would lie.
 */
#ifndef _ABE_COMPAT_H
#define _ABE_COMPAT_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#ifdef ABE_HAVE_NET_GSO_H
#include <net/gso.h>
#endif

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("sch_" id)
#endif

/* Drop reasons of qdiscs, which have an enumeration of their own from 7.1 on. */
#if defined(ABE_HAVE_QDISC_DROP_ENUM)
#define ABE_DROP_OVERLIMIT	QDISC_DROP_OVERLIMIT
#define ABE_DROP_CONGESTED	QDISC_DROP_CONGESTED
#elif defined(ABE_HAVE_QDISC_DROP_REASON)
#define ABE_DROP_OVERLIMIT	SKB_DROP_REASON_QDISC_OVERLIMIT
#define ABE_DROP_CONGESTED	SKB_DROP_REASON_QDISC_CONGESTED
#else
#define ABE_DROP_OVERLIMIT	0
#define ABE_DROP_CONGESTED	0
#endif

#if defined(ABE_HAVE_QDISC_DROP_ENUM) || defined(ABE_HAVE_QDISC_DROP_REASON)
#define abe_qdisc_drop(skb, sch, to_free, reason) \
	qdisc_drop_reason(skb, sch, to_free, reason)
#else
#define abe_qdisc_drop(skb, sch, to_free, reason) \
	qdisc_drop(skb, sch, to_free)
#endif

/*
 * What the device says of its link; the caller is within tc's locks. Where
 * those are the device's own lock, too (7.1 on), the other would take it twice.
 */
static inline int abe_link_ksettings(struct net_device *dev,
				     struct ethtool_link_ksettings *link)
{
#ifdef ABE_HAVE_NETIF_KSETTINGS
	return netif_get_link_ksettings(dev, link);
#else
	return __ethtool_get_link_ksettings(dev, link);
#endif
}

/*
 * The core's books of what is queued. From 7.2 on they are read without a lock, and
 * so written in one piece.
 */
static inline void abe_book(struct Qdisc *sch, u32 len)
{
#ifdef ABE_HAVE_QLEN_INC
	qdisc_qlen_inc(sch);
	qstats_backlog_add(sch, len);
#else
	sch->q.qlen++;
	sch->qstats.backlog += len;
#endif
}

static inline void abe_unbook(struct Qdisc *sch, u32 len)
{
#ifdef ABE_HAVE_QLEN_INC
	qstats_backlog_sub(sch, len);
	qdisc_qlen_dec(sch);
#else
	sch->qstats.backlog -= len;
	sch->q.qlen--;
#endif
}

/* Segments cached by the qdisc layer, from 7.0 on. */
static inline void abe_cb_set_one_segment(struct sk_buff *skb)
{
#ifdef ABE_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/*
 * A packet sent. Older kernels look into the shared information at its end for
 * segments, which is a cache line for that alone: not where there can be none.
 */
static inline void abe_bstats_update(struct Qdisc *sch,
				     const struct sk_buff *skb, u32 len)
{
#ifdef ABE_HAVE_PKT_SEGS
	qdisc_bstats_update(sch, skb);
#else
	_bstats_update(&sch->bstats, len, 1);
#endif
}

/* And that it was perhaps several. */
static inline void abe_bstats_segments(struct Qdisc *sch,
				       const struct sk_buff *skb)
{
#ifndef ABE_HAVE_PKT_SEGS
	if (skb_is_gso(skb))
		_bstats_update(&sch->bstats, 0,
			       max_t(u16, skb_shinfo(skb)->gso_segs, 1) - 1);
#endif
}

#endif /* _ABE_COMPAT_H */
