// SPDX-License-Identifier: GPL-2.0
/*
 * Loss intervals in packets: TFRC (RFC 5348) as CCID 248, the reference, and
 * TFRC-SP (RFC 4828, RFC 5622, [VOIP05]) as CCID 4.
 */

#include "tfrc_rx.h"

void tfrc_standard_received(struct tfrc_rx *rx, const struct rate_packet *pkt,
			    bool lip)
{
	rx->meter.total++;
}

s64 tfrc_standard_lost(struct tfrc_rx *rx, const struct rate_hole *hole)
{
	if (!hole->lip)
		return 0;
	rx->meter.total += hole->n;
	return -1;
}

u32 tfrc_standard_length(const struct tfrc_rx *rx, bool is_short)
{
	return tfrc_length(rx->meter.total, 1);
}

/* N packets with K losses are N/K in a short interval, RFC 4828, 4.4. */
static u32 standard_sp_length(const struct tfrc_rx *rx, bool is_short)
{
	const struct tfrc_meter *m = &rx->meter;

	return tfrc_length(m->total, is_short && m->drops ? m->drops : 1);
}

const struct tfrc_method tfrc_standard = {
	.ccid		= 248,
	.name		= "TCP-Friendly Rate Control (RFC 5348)",
	.defaults	= { .discount = 1 },
	.variants	= 1,
	.received	= tfrc_standard_received,
	.lost		= tfrc_standard_lost,
	.length		= tfrc_standard_length,
};

const struct tfrc_method tfrc_sp = {
	.ccid		= 4,
	.name		= "TFRC for small packets (RFC 5622)",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000 },
	.variants	= 1,
	.skip_short	= true,
	.sender_counts	= true,
	.received	= tfrc_standard_received,
	.lost		= tfrc_standard_lost,
	.length		= standard_sp_length,
};
