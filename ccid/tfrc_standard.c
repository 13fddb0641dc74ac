// SPDX-License-Identifier: GPL-2.0
/*
 * Loss intervals in packets: TFRC (RFC 5348) as CCID 248, the reference, and
 * TFRC-SP (RFC 4828, RFC 5622, [VOIP05]) as CCID 4.
 */

#include "tfrc_loss.h"

static void standard_received(struct tfrc_meter *m, const struct tfrc_params *par,
			      u32 size, bool lip)
{
	m->total++;
}

static s64 standard_lost(struct tfrc_meter *m, const struct tfrc_params *par, u32 n,
			 u32 size, bool lip)
{
	if (!lip)
		return 0;
	m->total += n;
	return -1;
}

static u32 standard_length(const struct tfrc_meter *m, const struct tfrc_params *par,
			   bool is_short)
{
	return tfrc_length(m->total, 1);
}

/* N packets with K losses are N/K in a short interval, RFC 4828, 4.4. */
static u32 standard_sp_length(const struct tfrc_meter *m, const struct tfrc_params *par,
			      bool is_short)
{
	return tfrc_length(m->total, is_short && m->drops ? m->drops : 1);
}

const struct tfrc_method tfrc_standard = {
	.ccid		= 248,
	.name		= "TCP-Friendly Rate Control (RFC 5348)",
	.defaults	= { .discount = 1 },
	.variants	= 1,
	.received	= standard_received,
	.lost		= standard_lost,
	.length		= standard_length,
};

const struct tfrc_method tfrc_sp = {
	.ccid		= 4,
	.name		= "TFRC for small packets (RFC 5622)",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000 },
	.variants	= 1,
	.skip_short	= true,
	.sender_counts	= true,
	.received	= standard_received,
	.lost		= standard_lost,
	.length		= standard_sp_length,
};
