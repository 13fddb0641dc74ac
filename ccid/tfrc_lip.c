// SPDX-License-Identifier: GPL-2.0
/*
 * LIP scaling [VPS02] 3.3.3: intervals are counted in packets of whatever size. So
 * that they are as many as with packets of S bytes, the loss insensitive period
 * is shorter by s/S, and the history longer by S/s.
 *
 * A LIP so short can not be told by window counters, and a hole may have several
 * events. It is by time, and 9/8 of a round trip long with packets of S bytes, as the
 * counters' is on average.
 */

#include "tfrc_rx.h"

/**
 * struct lip_state - the history
 * @t_event: when the loss that began the current event was due, 256 ns
 * @n: intervals that have been closed
 * @length: the last of them, Q24.8; that with number i at i % LIP_MOST
 */
struct lip_state {
	u32	t_event;
	u32	n;
	u32	length[TFRC_LIP_MOST];
};

static u32 lip_size(const struct tfrc_rx *rx)
{
	return min(tfrc_mean(rx->rate.s_mean), rx->par.s);
}

/* In 256 ns. */
static u32 lip_time(const struct tfrc_rx *rx)
{
	u64 ns = 1125ULL * (rx->rate.rtt ?: TFRC_RTT_FALLBACK);

	return div_u64(ns * lip_size(rx), rx->par.s) >> 8;
}

static u32 lip_in_lip(const struct tfrc_rx *rx, const struct rate_hole *hole)
{
	const struct lip_state *own = rx->own;
	u32 first = hole->from + hole->time / hole->steps, lip = lip_time(rx);

	/* The time wraps after 1099 s: of a pause of that length a loss may seem to be in it. */
	if (first - own->t_event > lip)
		return 0;
	if (!hole->time)
		return hole->n;
	return min_t(u64, hole->n, div_u64((u64)(own->t_event + lip - hole->from) *
					   hole->steps, hole->time));
}

static void lip_event(struct tfrc_rx *rx, const struct rate_hole *hole)
{
	struct lip_state *own = rx->own;

	own->t_event = hole->from + hole->time / hole->steps;
	own->length[own->n % TFRC_LIP_MOST] = rx->history.i[1].length;
	/* The count stays in range, with the same remainder. */
	if (++own->n == 2 * TFRC_LIP_MOST)
		own->n = TFRC_LIP_MOST;
}

/* How many intervals count: 8 * S/s. */
static u32 lip_intervals(const struct tfrc_rx *rx)
{
	u32 size = lip_size(rx), eta = (rx->par.s + size / 2) / size;

	return min(TFRC_NINTERVAL * eta, TFRC_LIP_MOST);
}

/* RFC 5348, 5.4: 1 for the newer half, else 2 (n - i) / (n + 2). Times n + 2. */
static u32 lip_weight(u32 n, u32 i)
{
	return i < n / 2 ? n + 2 : 2 * (n - i);
}

/* As tfrc_history_pinv(), with more intervals. */
static u32 lip_pinv(const struct tfrc_rx *rx)
{
	const struct lip_state *own = rx->own;
	u32 n = lip_intervals(rx), have = min(own->n, n), i;
	u64 closed = 0, open, weight = 0, open_weight;

	if (!have)
		return TFRC_PINV_NONE;
	open_weight = lip_weight(n, 0);
	open = rx->history.i[0].length * open_weight;
	for (i = 0; i < have; i++) {
		u64 length = own->length[(own->n - 1 - i) % TFRC_LIP_MOST];

		closed += length * lip_weight(n, i);
		weight += lip_weight(n, i);
		if (i + 1 == have)
			break;
		open += length * lip_weight(n, i + 1);
		open_weight += lip_weight(n, i + 1);
	}
	closed = max(div64_u64(closed, weight), div64_u64(open, open_weight));
	return max_t(u32, closed, TFRC_PINV_ONE);
}

/*
 * Without discounting: one long interval among so many says less than among
 * eight.
 */
const struct tfrc_method tfrc_lip_scaling = {
	.ccid		= 252,
	.name		= "TFRC with LIP scaling",
	.defaults	= { .s = 1460, .header = 36, .min_interval = 10000 },
	.scale_interval	= true,
	.no_discount	= true,
	.variants	= 1,
	.state		= sizeof(struct lip_state),
	.received	= tfrc_standard_received,
	.lost		= tfrc_standard_lost,
	.length		= tfrc_standard_length,
	.in_lip		= lip_in_lip,
	.event		= lip_event,
	.pinv		= lip_pinv,
};
