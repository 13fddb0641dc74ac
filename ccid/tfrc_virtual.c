// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual packets [VPS02]: small packets are put together to packets of S
 * bytes, the segment size. The unit of the meter is bytes.
 */

#include "tfrc_rx.h"
#include "include/uapi/linux/dccp_tfrc.h"

static void vp_received(struct tfrc_rx *rx, const struct rate_packet *pkt, bool lip)
{
	rx->meter.total += pkt->size;
	if (!lip)
		rx->meter.after += pkt->size;
}

/*
 * Packet mode, 3.3.1, Definition 1: an event begins when S bytes have been
 * lost since the end of the LIP. The packet that completes them still counts
 * to the interval that it ends (Definition 2).
 *
 * What it has beyond S is lost for the next event: by Definition 1 alone, two
 * packets of 950 bytes are lost for each event where S is 1000, and intervals
 * are nearly twice as long.
 */
static s64 vp_packet_lost(struct tfrc_rx *rx, const struct rate_hole *hole)
{
	u32 s = rx->par.s, size = hole->size;
	struct tfrc_meter *m = &rx->meter;
	u64 wanted = 1;

	if (m->lost < s)
		wanted = div_u64(s - m->lost + size - 1, size);
	if (hole->lip || wanted > hole->n) {
		m->total += (u64)hole->n * size;
		if (!hole->lip)
			m->lost += (u64)hole->n * size;
		return -1;
	}
	m->total += wanted * size;
	if (rx->par.variant != TFRC_VARIANT_DEFINITION_1)
		m->carry = min_t(u64, m->lost + wanted * size - s, s - 1);
	return wanted;
}

static u32 vp_packet_length(const struct tfrc_rx *rx, bool is_short)
{
	return tfrc_length(rx->meter.total, rx->par.s);
}

/* Byte mode, 3.4.1, Definition 3: any loss after the LIP begins an event. */
static s64 vp_byte_lost(struct tfrc_rx *rx, const struct rate_hole *hole)
{
	struct tfrc_meter *m = &rx->meter;

	if (!hole->lip) {
		m->total += hole->size;
		m->lost += hole->size;
		return 1;
	}
	m->total += (u64)hole->n * hole->size;
	return -1;
}

/*
 * Eq. (13): what came after the LIP counts in units of S. Where a drop-tail
 * queue loses large packets 2*eta times as often as small ones (4.2.3), the
 * same losses stand for half as many bytes.
 *
 * Appendix B.3, Definition 4: the packet that ends the interval counts as a
 * whole virtual packet, and of those between it and the LIP only whole ones.
 */
static u32 vp_byte_length(const struct tfrc_rx *rx, bool is_short)
{
	const struct tfrc_params *par = &rx->par;
	const struct tfrc_meter *m = &rx->meter;
	u64 lip = m->total - m->after - m->lost;

	switch (par->variant) {
	case TFRC_VARIANT_DROP_TAIL:
		return tfrc_length(2 * lip + m->after + m->lost, 2 * par->s);
	case TFRC_VARIANT_BYTE_ERROR:
		return tfrc_length(lip + (div_u64(m->after, par->s) +
					  !!m->lost) * par->s, par->s);
	default:
		return tfrc_length(m->total, par->s);
	}
}

const struct tfrc_method tfrc_vp_packet = {
	.ccid		= 249,
	.name		= "TFRC with virtual packets, packet mode",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000,
			    .discount = 1 },
	.scale_interval	= true,
	.variants	= 2,
	.received	= vp_received,
	.lost		= vp_packet_lost,
	.length		= vp_packet_length,
};

const struct tfrc_method tfrc_vp_byte = {
	.ccid		= 250,
	.name		= "TFRC with virtual packets, byte mode",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000,
			    .discount = 1 },
	.scale_interval	= true,
	.variants	= 3,
	.free_variant	= TFRC_VARIANT_DROP_TAIL,
	.received	= vp_received,
	.lost		= vp_byte_lost,
	.length		= vp_byte_length,
};
