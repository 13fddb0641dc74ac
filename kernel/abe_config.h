/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options: ranges, defaults, and the way from netlink's attributes to
 * struct abe_config and back. Nothing here knows of a queue.
 */
#ifndef _ABE_CONFIG_H
#define _ABE_CONFIG_H

#include <linux/ktime.h>
#include <net/netlink.h>
#include <uapi/linux/pkt_sch_abe.h>

#include "abe_math.h"

/* The largest queue that a configuration can ask for. */
#define ABE_MAX_TIME	10000000U	/* us */
#define ABE_MAX_BYTES	0x40000000U	/* 2^30 */
#define ABE_MAX_PACKETS	0x100000U	/* 2^20 */

/*
 * gamma2: 0.4 of [ABE99] 5.2; in unit time loop load smooths the delays over ten
 * seconds instead, as blue's move with each of TCP's cycles, which a bias that
 * followed them would miss by half of one.
 */
#define ABE_GAMMA2_PAPER	((u32)(ABE_Q31_ONE * 2ULL / 5))
#define ABE_GAMMA2_SLOW		((u32)DIV_ROUND_CLOSEST(ABE_Q31_ONE * 19ULL, 20))

/* 0.3 of the mean, as tc takes it. */
#define ABE_PROTECT_TIME	((u32)DIV_ROUND_CLOSEST(ABE_Q31_ONE * 3ULL, 10))

/*
 * The fastest link, bytes/s: no rate is taken for more, or the quotients of
 * mul_u64_u64_div_u64(), which traps when they do not fit, might not fit.
 */
#define ABE_MAX_RATE	0x10000000000ULL	/* 2^40 */

/**
 * struct abe_config - the options as they were given
 * @v:		u32 attributes, indexed by number, in their netlink formats;
 *		TCA_ABE_FLAGS holds the bits
 * @rate:	bytes/s, 0: estimate
 * @green_dscp:	bit n: DSCP n is green
 * @seed:	0: random
 */
struct abe_config {
	u32	v[__TCA_ABE_MAX];
	u64	rate;
	u64	green_dscp;
	u64	seed;
};

/*
 * Ranges of the options, and what to say outside of them. Those of the queue
 * sizes depend on the unit and are checked again in abe_check(). Not const,
 * because 6.1's policies point at ranges without that.
 */
static struct {
	struct netlink_range_validation range;
	const char *msg;
} abe_options[__TCA_ABE_MAX] = {
	[TCA_ABE_UNIT] = { { 0, __TCA_ABE_UNIT_MAX - 1 },
		"abe: unit must be time (0), bytes (1) or packets (2)" },
	[TCA_ABE_RATE] = { { 0, ABE_MAX_RATE },
		"abe: rate must be within 0 (estimate) .. 2^40 bytes/s" },
	[TCA_ABE_LIMIT] = { { 0, ABE_MAX_BYTES },
		"abe: limit must be within 0 .. 10 s, 2^30 bytes or 2^20 packets" },
	[TCA_ABE_GREEN_LIMIT] = { { 0, ABE_MAX_BYTES },
		"abe: green_limit must be within 0 .. 10 s, 2^30 bytes or 2^20 packets" },
	[TCA_ABE_MIN_TH] = { { 0, ABE_MAX_BYTES },
		"abe: min must be within 0 .. 10 s, 2^30 bytes or 2^20 packets" },
	[TCA_ABE_MAX_TH] = { { 1, ABE_MAX_BYTES },
		"abe: max must be within 1 .. 10 s, 2^30 bytes or 2^20 packets" },
	[TCA_ABE_PROBABILITY] = { { 1, ABE_Q31_ONE },
		"abe: probability must be above 0 and at most 1" },
	[TCA_ABE_WEIGHT] = { { 0, ABE_Q31_ONE },
		"abe: weight must be auto (0) or above 0 and at most 1" },
	[TCA_ABE_AVPKT] = { { 64, 65535 },
		"abe: avpkt must be within 64 .. 65535 bytes" },
	[TCA_ABE_FLAGS] = { { 0, 0 },
		"abe: unknown flag" },
	[TCA_ABE_SPACING] = { { 0, __TCA_ABE_SPACING_MAX - 1 },
		"abe: spacing must be within 0 .. 4, uniform .. deterministic" },
	[TCA_ABE_LOOP] = { { 0, __TCA_ABE_LOOP_MAX - 1 },
		"abe: loop must be paper (0) or load (1)" },
	[TCA_ABE_RTT] = { { 1, ABE_MAX_TIME },
		"abe: rtt must be within 1 us .. 10 s" },
	[TCA_ABE_INTERVAL] = { { 10000, ABE_MAX_TIME },
		"abe: interval must be within 10 ms .. 10 s" },
	[TCA_ABE_K1] = { { 0, 16 << 16 },
		"abe: k1 must be within 0 .. 16" },
	[TCA_ABE_K2] = { { 0, ABE_MAX_TIME },
		"abe: k2 must be within 0 .. 10 s" },
	[TCA_ABE_K3] = { { 0, ABE_MAX_TIME },
		"abe: k3 must be within 0 .. 10 s" },
	[TCA_ABE_K4] = { { 0, ABE_MAX_TIME },
		"abe: k4 must be within 0 .. 10 s" },
	[TCA_ABE_GAMMA1] = { { 0, ABE_Q31_ONE - 1 },
		"abe: gamma1 must be at least 0 and below 1" },
	[TCA_ABE_GAMMA2] = { { 0, ABE_Q31_ONE - 1 },
		"abe: gamma2 must be at least 0 and below 1" },
	[TCA_ABE_GAMMA3] = { { 0, ABE_Q31_ONE - 1 },
		"abe: gamma3 must be at least 0 and below 1" },
	[TCA_ABE_LAMBDA] = { { ABE_Q31_ONE / 100, ABE_Q31_ONE },
		"abe: lambda must be within 0.01 .. 1" },
	[TCA_ABE_OFFSET] = { { 0, ABE_MAX_TIME },
		"abe: offset must be within 0 .. 10 s" },
	[TCA_ABE_OFFSET_MAX] = { { 0, ABE_MAX_TIME },
		"abe: offset_max must be within 0 .. 10 s" },
	[TCA_ABE_ALPHA_MAX] = { { 1 << 16, 10000 << 16 },
		"abe: alpha_max must be within 1 .. 10000" },
	[TCA_ABE_GREEN_DSCP] = { { 0, U64_MAX },
		"abe: green_dscp must be a set of 64 bits" },
	[TCA_ABE_GREEN_MARK] = { { 0, U32_MAX },
		"abe: green_mark must be within 0 .. 0xffffffff" },
	[TCA_ABE_GREEN_MASK] = { { 0, U32_MAX },
		"abe: the mask of green_mark must be within 0 .. 0xffffffff" },
	[TCA_ABE_SEED] = { { 0, U64_MAX },
		"abe: seed must be within 0 (random) .. 2^64 - 1" },
	[TCA_ABE_MEMORY_LIMIT] = { { 1 << 16, U32_MAX },
		"abe: memory_limit must be within 64 KiB .. 2^32 - 1 bytes" },
	[TCA_ABE_PROTECT] = { { 0, ABE_Q31_ONE / 2 },
		"abe: protect must be within 0 (off) .. 0.5" },
};

#define ABE_U32(attr)	NLA_POLICY_FULL_RANGE(NLA_U32, &abe_options[attr].range)

static const struct nla_policy abe_policy[__TCA_ABE_MAX] = {
	[TCA_ABE_UNIT] = ABE_U32(TCA_ABE_UNIT),
	[TCA_ABE_RATE] = NLA_POLICY_FULL_RANGE(NLA_U64,
					       &abe_options[TCA_ABE_RATE].range),
	[TCA_ABE_LIMIT] = ABE_U32(TCA_ABE_LIMIT),
	[TCA_ABE_GREEN_LIMIT] = ABE_U32(TCA_ABE_GREEN_LIMIT),
	[TCA_ABE_MIN_TH] = ABE_U32(TCA_ABE_MIN_TH),
	[TCA_ABE_MAX_TH] = ABE_U32(TCA_ABE_MAX_TH),
	[TCA_ABE_PROBABILITY] = ABE_U32(TCA_ABE_PROBABILITY),
	[TCA_ABE_WEIGHT] = ABE_U32(TCA_ABE_WEIGHT),
	[TCA_ABE_AVPKT] = ABE_U32(TCA_ABE_AVPKT),
	[TCA_ABE_FLAGS] = NLA_POLICY_BITFIELD32(TCA_ABE_F_ALL),
	[TCA_ABE_SPACING] = ABE_U32(TCA_ABE_SPACING),
	[TCA_ABE_LOOP] = ABE_U32(TCA_ABE_LOOP),
	[TCA_ABE_RTT] = ABE_U32(TCA_ABE_RTT),
	[TCA_ABE_INTERVAL] = ABE_U32(TCA_ABE_INTERVAL),
	[TCA_ABE_K1] = ABE_U32(TCA_ABE_K1),
	[TCA_ABE_K2] = ABE_U32(TCA_ABE_K2),
	[TCA_ABE_K3] = ABE_U32(TCA_ABE_K3),
	[TCA_ABE_K4] = ABE_U32(TCA_ABE_K4),
	[TCA_ABE_GAMMA1] = ABE_U32(TCA_ABE_GAMMA1),
	[TCA_ABE_GAMMA2] = ABE_U32(TCA_ABE_GAMMA2),
	[TCA_ABE_GAMMA3] = ABE_U32(TCA_ABE_GAMMA3),
	[TCA_ABE_LAMBDA] = ABE_U32(TCA_ABE_LAMBDA),
	[TCA_ABE_OFFSET] = ABE_U32(TCA_ABE_OFFSET),
	[TCA_ABE_OFFSET_MAX] = ABE_U32(TCA_ABE_OFFSET_MAX),
	[TCA_ABE_ALPHA_MAX] = ABE_U32(TCA_ABE_ALPHA_MAX),
	[TCA_ABE_GREEN_DSCP] = { .type = NLA_U64 },
	[TCA_ABE_GREEN_MARK] = { .type = NLA_U32 },
	[TCA_ABE_GREEN_MASK] = { .type = NLA_U32 },
	[TCA_ABE_SEED] = { .type = NLA_U64 },
	[TCA_ABE_MEMORY_LIMIT] = ABE_U32(TCA_ABE_MEMORY_LIMIT),
	[TCA_ABE_PROTECT] = ABE_U32(TCA_ABE_PROTECT),
};

/*
 * Say which option was wrong, and its range, instead of just that one was. Set
 * directly, because NL_SET_ERR_MSG() only takes literals.
 */
static int abe_refuse(struct netlink_ext_ack *extack, const char *msg)
{
	if (extack && msg)
		extack->_msg = msg;
	return -EINVAL;
}

/* The queue sizes that come with a unit, unless they are named with it. */
static void abe_default_sizes(struct abe_config *cfg)
{
	u32 *v = cfg->v;
	u32 scale = 1;

	switch (v[TCA_ABE_UNIT]) {
	case TCA_ABE_UNIT_TIME:
		v[TCA_ABE_LIMIT] = 200 * USEC_PER_MSEC;
		v[TCA_ABE_GREEN_LIMIT] = 10 * USEC_PER_MSEC;
		v[TCA_ABE_MIN_TH] = 10 * USEC_PER_MSEC;
		v[TCA_ABE_MAX_TH] = 30 * USEC_PER_MSEC;
		v[TCA_ABE_WEIGHT] = 0;
		return;
	case TCA_ABE_UNIT_BYTES:
		scale = v[TCA_ABE_AVPKT];
		break;
	}
	/* [ABE99] 5.1 */
	v[TCA_ABE_LIMIT] = 60 * scale;
	v[TCA_ABE_GREEN_LIMIT] = 10 * scale;
	v[TCA_ABE_MIN_TH] = 10 * scale;
	v[TCA_ABE_MAX_TH] = 30 * scale;
	v[TCA_ABE_WEIGHT] = ABE_Q31_ONE / 500;
}

static void abe_defaults(struct abe_config *cfg, u32 unit)
{
	bool time = unit == TCA_ABE_UNIT_TIME;

	*cfg = (struct abe_config) {
		.v = {
			[TCA_ABE_UNIT] = unit,
			[TCA_ABE_PROBABILITY] = (u32)(ABE_Q31_ONE * 15ULL / 100),
			[TCA_ABE_AVPKT] = 1000,
			[TCA_ABE_FLAGS] = TCA_ABE_F_SPLIT_GSO |
					  (time ? TCA_ABE_F_ECN |
						  TCA_ABE_F_BYTEMODE : 0),
			[TCA_ABE_SPACING] = TCA_ABE_SPACING_UNIFORM,
			[TCA_ABE_LOOP] = time ? TCA_ABE_LOOP_LOAD :
						TCA_ABE_LOOP_PAPER,
			[TCA_ABE_RTT] = (time ? 100 : 180) * USEC_PER_MSEC,
			[TCA_ABE_INTERVAL] = 500 * USEC_PER_MSEC,
			[TCA_ABE_K1] = DIV_ROUND_CLOSEST(11 << 16, 10),
			[TCA_ABE_K2] = 20 * USEC_PER_MSEC,
			[TCA_ABE_K3] = 2 * USEC_PER_SEC,
			[TCA_ABE_K4] = 500,
			[TCA_ABE_GAMMA1] = (u32)(ABE_Q31_ONE * 4ULL / 5),
			[TCA_ABE_GAMMA2] = time ? ABE_GAMMA2_SLOW :
						  ABE_GAMMA2_PAPER,
			[TCA_ABE_GAMMA3] = (u32)(ABE_Q31_ONE * 2ULL / 5),
			[TCA_ABE_LAMBDA] = (u32)(ABE_Q31_ONE * 2ULL / 5),
			[TCA_ABE_OFFSET] = 100 * USEC_PER_MSEC,
			[TCA_ABE_OFFSET_MAX] = (time ? 100 : 200) *
					       USEC_PER_MSEC,
			[TCA_ABE_ALPHA_MAX] = 100 << 16,
			[TCA_ABE_MEMORY_LIMIT] = TCA_ABE_MEMORY_LIMIT_DEFAULT,
			[TCA_ABE_PROTECT] = time ? ABE_PROTECT_TIME : 0,
		},
		/* NQB and EF */
		.green_dscp = BIT_ULL(45) | BIT_ULL(46),
	};
}

/* What single ranges cannot say. @tb tells which options were named. */
static int abe_check(const struct abe_config *cfg, struct nlattr **tb,
		     struct netlink_ext_ack *extack)
{
	static const int sizes[] = {
		TCA_ABE_LIMIT, TCA_ABE_GREEN_LIMIT, TCA_ABE_MIN_TH,
		TCA_ABE_MAX_TH,
	};
	static const u32 most[__TCA_ABE_UNIT_MAX] = {
		[TCA_ABE_UNIT_TIME] = ABE_MAX_TIME,
		[TCA_ABE_UNIT_BYTES] = ABE_MAX_BYTES,
		[TCA_ABE_UNIT_PACKETS] = ABE_MAX_PACKETS,
	};
	const u32 *v = cfg->v;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (v[sizes[i]] > most[v[TCA_ABE_UNIT]])
			return abe_refuse(extack, abe_options[sizes[i]].msg);
	if (v[TCA_ABE_MIN_TH] >= v[TCA_ABE_MAX_TH])
		return abe_refuse(extack, "abe: min must be below max");
	if (tb[TCA_ABE_OFFSET] && v[TCA_ABE_OFFSET] > v[TCA_ABE_OFFSET_MAX])
		return abe_refuse(extack,
				  "abe: offset must not exceed offset_max");
	if (v[TCA_ABE_GREEN_MARK] & ~v[TCA_ABE_GREEN_MASK])
		return abe_refuse(extack,
				  "abe: green_mark has bits outside of its mask");
	return 0;
}

static void abe_parse_flags(u32 *flags, const struct nlattr *attr)
{
	struct nla_bitfield32 bits;

	if (!attr)
		return;
	bits = nla_get_bitfield32(attr);
	*flags = (*flags & ~bits.selector) | (bits.value & bits.selector);
}

/*
 * Lay what @opt names over @cfg; @cfg is only good if this returns 0. The
 * queue sizes not named are those of the unit if it is new or another.
 */
static int abe_parse(struct abe_config *cfg, struct nlattr *opt, bool new,
		     struct netlink_ext_ack *extack)
{
	struct nlattr *tb[__TCA_ABE_MAX] = {};
	u32 unit = cfg->v[TCA_ABE_UNIT];
	int attr, err;

	err = nla_parse_nested(tb, TCA_ABE_MAX, opt, abe_policy, extack);
	if (err < 0) {
		attr = 0;
		if (extack && extack->bad_attr && extack->bad_attr != opt)
			attr = nla_type(extack->bad_attr);
		if (attr <= TCA_ABE_MAX)
			abe_refuse(extack, abe_options[attr].msg);
		return err;
	}
	if (tb[TCA_ABE_AVPKT])
		cfg->v[TCA_ABE_AVPKT] = nla_get_u32(tb[TCA_ABE_AVPKT]);
	if (tb[TCA_ABE_UNIT])
		cfg->v[TCA_ABE_UNIT] = nla_get_u32(tb[TCA_ABE_UNIT]);
	if (new || cfg->v[TCA_ABE_UNIT] != unit)
		abe_default_sizes(cfg);
	for (attr = TCA_ABE_LIMIT; attr <= TCA_ABE_MAX; attr++)
		if (tb[attr] && abe_policy[attr].type == NLA_U32)
			cfg->v[attr] = nla_get_u32(tb[attr]);
	abe_parse_flags(&cfg->v[TCA_ABE_FLAGS], tb[TCA_ABE_FLAGS]);
	if (tb[TCA_ABE_GREEN_MARK] && !tb[TCA_ABE_GREEN_MASK] &&
	    !cfg->v[TCA_ABE_GREEN_MASK])
		cfg->v[TCA_ABE_GREEN_MASK] = U32_MAX;
	if (tb[TCA_ABE_RATE])
		cfg->rate = nla_get_u64(tb[TCA_ABE_RATE]);
	if (tb[TCA_ABE_GREEN_DSCP])
		cfg->green_dscp = nla_get_u64(tb[TCA_ABE_GREEN_DSCP]);
	if (tb[TCA_ABE_SEED])
		cfg->seed = nla_get_u64(tb[TCA_ABE_SEED]);
	if (new && !tb[TCA_ABE_GAMMA2] && cfg->v[TCA_ABE_LOOP] == TCA_ABE_LOOP_PAPER)
		cfg->v[TCA_ABE_GAMMA2] = ABE_GAMMA2_PAPER;
	if (!tb[TCA_ABE_OFFSET])	/* or a dump could not be given again */
		cfg->v[TCA_ABE_OFFSET] = min(cfg->v[TCA_ABE_OFFSET],
					     cfg->v[TCA_ABE_OFFSET_MAX]);
	return abe_check(cfg, tb, extack);
}

/* A configuration from nothing but @opt, which may be NULL. */
static int abe_config_init(struct abe_config *cfg, struct nlattr *opt,
			   struct netlink_ext_ack *extack)
{
	const struct nlattr *attr = NULL;
	u32 unit = TCA_ABE_UNIT_TIME;

	/* The defaults depend on the unit; abe_parse() judges a wrong one. */
	if (opt)
		attr = nla_find_nested(opt, TCA_ABE_UNIT);
	if (attr && nla_len(attr) == sizeof(u32))
		unit = min_t(u32, nla_get_u32(attr), __TCA_ABE_UNIT_MAX - 1);
	abe_defaults(cfg, unit);
	if (opt)
		return abe_parse(cfg, opt, true, extack);
	abe_default_sizes(cfg);
	return 0;
}

/* All options, as they were given; -EMSGSIZE if @skb has no room for them. */
static int abe_config_put(struct sk_buff *skb, const struct abe_config *cfg)
{
	int attr;

	for (attr = TCA_ABE_UNIT; attr <= TCA_ABE_MAX; attr++)
		if (abe_policy[attr].type == NLA_U32 &&
		    nla_put_u32(skb, attr, cfg->v[attr]))
			return -EMSGSIZE;
	if (nla_put_bitfield32(skb, TCA_ABE_FLAGS, cfg->v[TCA_ABE_FLAGS],
			       TCA_ABE_F_ALL) ||
	    nla_put_u64_64bit(skb, TCA_ABE_RATE, cfg->rate, TCA_ABE_PAD) ||
	    nla_put_u64_64bit(skb, TCA_ABE_GREEN_DSCP, cfg->green_dscp,
			      TCA_ABE_PAD) ||
	    nla_put_u64_64bit(skb, TCA_ABE_SEED, cfg->seed, TCA_ABE_PAD))
		return -EMSGSIZE;
	return 0;
}

#endif /* _ABE_CONFIG_H */
