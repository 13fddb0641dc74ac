// SPDX-License-Identifier: GPL-2.0
/*
 * Random sampling [VPS02] 3.3.2, 3.4.2: loss is measured over a random sample of
 * the packets, in which each one is with probability s/S. The unit of the meter
 * is bytes, of which one in the sample has S.
 */

#include "tfrc_rx.h"
#include "include/uapi/linux/dccp_tfrc.h"

/* So many lost packets are drawn one by one; of more, the mean is taken. */
#define SAMPLING_LIP	64U

/* The packet with this number begins an event, if none before it does. */
#define SAMPLING_MOST	1024U

static void sampling_init(void *own, u64 random)
{
	*(u64 *)own = random;
}

/* splitmix64, the upper half. */
static u32 sampling_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) >> 32;
}

/* Is a packet of this size in the sample? An empty one never is, one of S bytes always. */
static bool sampling_takes(struct tfrc_rx *rx, u32 size)
{
	u32 s = rx->par.s;

	return (u64)sampling_random(rx->own) * s >> 32 < size;
}

static void sampling_received(struct tfrc_rx *rx, const struct rate_packet *pkt,
			      bool lip)
{
	if (sampling_takes(rx, pkt->size))
		rx->meter.total += rx->par.s;
}

static void sampling_lost_in_lip(struct tfrc_rx *rx, const struct rate_hole *hole)
{
	u32 i;

	if (hole->n > SAMPLING_LIP) {
		rx->meter.total += (u64)hole->n * min(hole->size, rx->par.s);
		return;
	}
	for (i = 0; i < hole->n; i++)
		if (sampling_takes(rx, hole->size))
			rx->meter.total += rx->par.s;
}

/*
 * Packet mode: the first lost packet of the sample begins an event and is the last
 * of the interval that ends. Byte mode: small packets are lost less often
 * already, so any does. It has s/S of a packet there, which takes off the bias of
 * Eq. (24).
 */
static s64 sampling_lost(struct tfrc_rx *rx, const struct rate_hole *hole)
{
	u32 i, n = min(hole->n, SAMPLING_MOST);

	if (hole->lip) {
		sampling_lost_in_lip(rx, hole);
		return -1;
	}
	if (rx->par.variant == TFRC_VARIANT_BYTES) {
		rx->meter.total += min(hole->size, rx->par.s);
		return 1;
	}
	for (i = 1; i <= n; i++) {
		if (sampling_takes(rx, hole->size) || i == SAMPLING_MOST) {
			rx->meter.total += rx->par.s;
			return i;
		}
	}
	return -1;
}

static u32 sampling_length(const struct tfrc_rx *rx, bool is_short)
{
	return tfrc_length(rx->meter.total, rx->par.s);
}

const struct tfrc_method tfrc_sampling = {
	.ccid		= 251,
	.name		= "TFRC with random sampling",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000,
			    .discount = 1 },
	.scale_interval	= true,
	.variants	= 2,
	.free_variant	= TFRC_VARIANT_BYTES,
	.state		= sizeof(u64),
	.init		= sampling_init,
	.received	= sampling_received,
	.lost		= sampling_lost,
	.length		= sampling_length,
};
