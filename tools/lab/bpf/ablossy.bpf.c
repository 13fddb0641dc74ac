// SPDX-License-Identifier: GPL-2.0
/*
 * ablossy: loss models as a classifier, for the direct-action mode of cls_bpf.
 *
 * Each random number is a hash of (seed, stream, n), where n counts packets
 * or slots of time. So models of time (Gilbert) are functions of the time
 * alone: whatever the traffic, the same seed has the same losses.
 *
 * One CPU at a time is assumed; on more, counters may miss some.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include "ablossy.h"

#define HELPER(id)	__attribute__((kernel_helper(id)))
#undef __always_inline
#define __always_inline	inline __attribute__((always_inline))

HELPER(1) void *map_lookup(void *map, const void *key);
HELPER(2) long map_update(void *map, const void *key, const void *value, __u64 flags);
HELPER(5) __u64 ktime_get_ns(void);
HELPER(26) long skb_load_bytes(const void *skb, __u32 offset, void *to, __u32 len);
HELPER(41) void set_hash_invalid(void *skb);
HELPER(97) long skb_ecn_set_ce(void *skb);

/* The compiler must not fold offsets into the constant. */
#define MAP(magic)	({						\
	__u64 __p;							\
									\
	asm volatile("lddw %0,%1" : "=r"(__p) : "i"(magic));		\
	(void *)__p;							\
})

/* splitmix64's mixer over seed, stream and count. */
static __always_inline __u64 random64(__u64 seed, __u64 stream, __u64 n)
{
	__u64 z = seed + stream * 0xd1342543de82ef95ULL + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static __always_inline __u64 random32(const struct loss_config *c, __u64 stream, __u64 n)
{
	return random64(c->seed, stream, n) >> 32;
}

/* (1 - p)^len of the powers that the bits of len name. */
static __always_inline __u64 survival(const struct loss_config *c, __u32 len)
{
	__u64 all = PROB_ONE;

#pragma GCC unroll 17
	for (int i = 0; i < 17; i++) {
		if (len & 1U << i)
			all = all * c->survive[i] >> 32;
	}
	return all;
}

/*
 * Is the slot one of loss? Its number u decides alone if it is below both or
 * above both of p (which enters loss) and 1 - q (which stays there), else it
 * carries over, or reverses, what was before: so the way back is short, and
 * the answer does not depend on when somebody asks.
 */
static __always_inline __u64 gilbert(const struct loss_config *c, struct flow_state *f, __u64 slot)
{
	__u64 stay = PROB_ONE - c->q, flips = 0, bad = 0, known = f->slot;
	__u64 low = c->p < stay ? c->p : stay, high = c->p < stay ? stay : c->p;
	__u64 reverses = c->p > stay;

	for (__u64 i = 0; i < GILBERT_REACH; i++) {
		__u64 at, u;

		/* the verifier has to see the counter count */
		asm volatile("" : "+r"(i));
		at = slot - i;
		if (at + 1 == known) {
			bad = f->bad;
			break;
		}
		u = random32(c, f->stream, at);
		if (u < low || u >= high) {
			bad = u < low;
			break;
		}
		flips ^= reverses;
	}
	bad ^= flips;
	f->slot = slot + 1;
	f->bad = bad;
	return bad;
}

static __always_inline int is_lost(const struct loss_config *c, struct flow_state *f, __u32 len)
{
	__u64 n = f->packets - 1, every = c->every, now, slot;

	switch (c->model) {
	case LOSS_PERIODIC:
		/* a phase of its own for each stream */
		n += random32(c, f->stream, 0) % c->every;
		if (c->then && (ktime_get_ns() - c->origin) / c->half & 1)
			every = c->then;
		return n % every == every - 1;
	case LOSS_BERNOULLI:
		return random32(c, f->stream, n) < c->p;
	case LOSS_BYTES:
		return random32(c, f->stream, n) >= survival(c, len);
	case LOSS_ALTERNATING:
		now = ktime_get_ns() - c->origin;
		return random32(c, f->stream, n) < c->level[now / c->half & 1];
	case LOSS_GILBERT:
		now = ktime_get_ns() - c->origin;
		return gilbert(c, f, now / c->tau);
	case LOSS_CLOCK:
		now = ktime_get_ns() - c->origin;
		if (now < c->after)
			return random32(c, f->stream, n) < c->p;
		slot = (now - c->after) / c->tau + 1;
		if (slot == f->slot)
			return 0;
		f->slot = slot;
		return 1;
	}
	return 0;
}

/*
 * Fills in the key, and the IPv4 ID with ID_KNOWN; the packet's protocol as
 * PROTO_*, 0 if it is none of them.
 */
static __always_inline __u32 dissect(struct __sk_buff *skb, const struct loss_config *c,
				     struct flow_key *key, __u32 *id)
{
	__u32 at = c->l2_len, proto;

	if (skb->protocol == __builtin_bswap16(ETH_P_IP)) {
		struct iphdr ip;

		if (skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		/* later fragments have no ports */
		if (ip.frag_off & __builtin_bswap16(0x1fff))
			return 0;
		key->from[0] = ip.saddr;
		key->to[0] = ip.daddr;
		proto = ip.protocol;
		*id = __builtin_bswap16(ip.id) | ID_KNOWN;
		at += ip.ihl * 4;
	} else if (skb->protocol == __builtin_bswap16(ETH_P_IPV6)) {
		if (skb_load_bytes(skb, at + 8, key->from, 32) ||
		    skb_load_bytes(skb, at + 6, &key->proto, 1))
			return 0;
		proto = key->proto & 0xff;
		at += sizeof(struct ipv6hdr);
	} else {
		return 0;
	}
	key->proto = proto;
	if (skb_load_bytes(skb, at, &key->ports, 4))
		return 0;
	return proto == IPPROTO_UDP ? PROTO_UDP : proto == IPPROTO_TCP ? PROTO_TCP :
	       proto == IPPROTO_DCCP ? PROTO_DCCP : 0;
}

static __always_inline struct flow_state *flow_get(const struct loss_config *c,
						   struct flow_key *key)
{
	struct loss_common *common = MAP(MAGIC_COMMON);
	struct flow_state fresh = { 0 }, *f;

	if (!c->per_flow)
		__builtin_memset(key, 0, sizeof(*key));
	f = map_lookup(MAP(MAGIC_FLOWS), key);
	if (f)
		return f;
	fresh.stream = common->streams;
	if (map_update(MAP(MAGIC_FLOWS), key, &fresh, BPF_NOEXIST)) {
		common->overflow++;
		return 0;
	}
	common->streams++;
	return map_lookup(MAP(MAGIC_FLOWS), key);
}

/*
 * A connected socket numbers its packets by IPv4 ID, one after the other,
 * those sent again too: what is missing in between was lost on the way.
 */
static __always_inline void note_hole(struct flow_state *f, __u32 id)
{
	struct loss_common *common = MAP(MAGIC_COMMON);
	__u32 len = (id - f->next_id) & 0xffff, at;
	struct hole *hole;

	if (!f->next_id)
		len = 0;
	if (len >= ID_FAR)
		return;
	/* what is sent for a closed connection, a late ACK or a RST, has 0 */
	if (len && id == ID_KNOWN)
		return;
	f->next_id = ((id + 1) & 0xffff) | ID_KNOWN;
	if (!len)
		return;
	at = common->holes++;
	hole = map_lookup(MAP(MAGIC_HOLES), &at);
	if (hole) {
		hole->stream = f->stream;
		hole->first = f->packets + f->missing;
		hole->len = len;
	}
	f->missing += len;
}

static __always_inline void note_bin(const struct loss_config *c, const struct flow_state *f,
				     __u32 len)
{
	__u64 bin = (ktime_get_ns() - c->origin) / c->bin;
	__u32 at = f->stream * MAX_BINS + bin;
	struct loss_common *common = MAP(MAGIC_COMMON);
	struct bin *b = 0;

	if (f->stream < BIN_FLOWS && bin < MAX_BINS)
		b = map_lookup(MAP(MAGIC_BINS), &at);
	if (!b) {
		common->unbinned++;
		return;
	}
	b->packets++;
	b->bytes += len;
}

__attribute__((section("tc"), used)) int ablossy(struct __sk_buff *skb)
{
	const struct loss_config *c = MAP(MAGIC_CONFIG);
	struct flow_key key = { 0 };
	struct flow_state *f;
	__u32 len = skb->len - c->l2_len, id = 0;

	if (c->rehash)
		set_hash_invalid(skb);
	if (!(dissect(skb, c, &key, &id) & c->protos) || len < c->min_len)
		return TC_ACT_UNSPEC;
	if (c->dport && __builtin_bswap16(key.ports >> 16) != c->dport)
		return TC_ACT_UNSPEC;
	f = flow_get(c, &key);
	if (!f)
		return TC_ACT_UNSPEC;
	if (c->holes && id)
		note_hole(f, id);
	f->packets++;
	f->bytes += len;
	if (c->bin)
		note_bin(c, f, len);
	if (!is_lost(c, f, len))
		return TC_ACT_UNSPEC;
	if (c->mark && skb_ecn_set_ce(skb)) {
		f->marked++;
		return TC_ACT_UNSPEC;
	}
	f->lost++;
	f->lost_bytes += len;
	return TC_ACT_SHOT;
}
