// SPDX-License-Identifier: GPL-2.0
/*
 * Unbiasing [VPS02] 3.1, 3.2: the receiver is that of TFRC; the sender takes off
 * what more the loss intervals of small packets have, for the loss insensitive
 * period has S/s times as many of them.
 */

#include "tfrc_rx.h"
#include "tfrc_tx.h"
#include "include/uapi/linux/dccp_tfrc.h"

/* What @n packets a round trip have too much, and 1/p with it; all Q24.8. */
static u32 unbias_bias(u32 n, u32 size, u32 s)
{
	/* The paper's LIP is a round trip; by window counters it is 9/8 of one. */
	return min_t(u64, U32_MAX, div64_u64((u64)n * 9 * (s - size), 8ULL * s));
}

/* The length from which unbias_sender() makes @length. */
static u32 unbias_first(const struct tfrc_rx *rx, u32 length, u32 n)
{
	u32 s = rx->par.s, size = min(tfrc_mean(rx->rate.s_mean), s);
	u64 more;

	if (rx->par.variant == TFRC_VARIANT_BYTES)
		more = div_u64((length + TFRC_PINV_ONE / 2ULL) * s, size) -
		       TFRC_PINV_ONE / 2;
	else
		more = (u64)length + unbias_bias(n, size, s);
	return min_t(u64, more, (u64)TFRC_PINV_MAX << TFRC_PINV_SHIFT);
}

/*
 * Packet mode: 1/p less 9/8 (eta - 1) N, where eta N are the packets that are sent
 * in a round trip, if the application sends less than allowed, too. Byte
 * mode: (1/p + 1/2) / eta - 1/2. Not below two packets, if 1/p is not: N follows when
 * losses become more, and at one packet the equation has a packet in many round trips.
 */
static u32 unbias_sender(const struct tfrc_tx *tx, u32 pinv)
{
	u32 s = tfrc_tx_segment(tx), size = tfrc_mean(tx->s_mean), bias;
	u64 less;

	if (size >= s)
		return pinv;
	if (tx->par.variant == TFRC_VARIANT_BYTES) {
		less = div_u64((pinv + TFRC_PINV_ONE / 2ULL) * size, s);
		bias = TFRC_PINV_ONE / 2;
	} else {
		less = pinv;
		bias = unbias_bias(tx->n_rtt, size, s);
	}
	return max_t(s64, less - bias, min(pinv, 2 * TFRC_PINV_ONE));
}

const struct tfrc_method tfrc_unbiasing = {
	.ccid		= 253,
	.name		= "TFRC with unbiasing",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000,
			    .discount = 1 },
	.scale_interval	= true,
	.variants	= 2,
	.received	= tfrc_standard_received,
	.lost		= tfrc_standard_lost,
	.length		= tfrc_standard_length,
	.first		= unbias_first,
	.unbias		= unbias_sender,
};
