// SPDX-License-Identifier: GPL-2.0
/*
 * TEAR as CCID 254: the receiver [TRANS00].
 *
 * An epoch lasts from one loss event to the next. Its mean is that of the window
 * over rounds, [TRANS00] App. C, (42), and a round is as many packets as the window
 * has, sent or lost, however long they take: the TCP lives in packets, the flow in
 * time. What counts as a loss event is TFRC's, at most one in a round trip.
 *
 * The paper has no time-outs. Here a hole in the sequence that lasts as long as a
 * time-out is one. There is no timer: while nothing arrives, the sender's nofeedback
 * timer slows it down.
 */

#include "tear_rx.h"

/* Of rounds that are over; there are no more than this. */
#define ROUNDS_MAX	0x1000000U

static const u8 weights[TEAR_EPOCHS] = { 5, 5, 5, 5, 4, 3, 2, 1 };

/* The mean window of the current epoch, Q24.8. */
static u32 tear_epoch(const struct tear *t)
{
	if (!t->rounds)
		return t->cwnd << 8;
	return div_u64(t->sum << 8, t->rounds);
}

/**
 * tear_window() - the window that the receiver reports
 * @t: the TCP
 *
 * Return: packets a round trip, Q24.8, at most TEAR_WINDOW_MAX; 0 before the first
 * loss event.
 */
u32 tear_window(const struct tear *t)
{
	u32 weight = weights[0], i;
	u64 sum;

	if (!t->cwnd)
		return 0;
	sum = (u64)weights[0] * tear_epoch(t);
	for (i = 0; i < t->n; i++) {
		sum += (u64)weights[i + 1] * t->mean[i];
		weight += weights[i + 1];
	}
	return clamp_t(u64, div_u64(sum, weight), 1, TEAR_WINDOW_MAX);
}

/* A round is over. */
static void tear_round(struct tear *t)
{
	u32 cwnd = t->cwnd + 1;

	if (t->rounds == ROUNDS_MAX) {
		t->rounds /= 2;
		t->sum /= 2;
	}
	t->sum += t->cwnd;
	t->rounds++;
	if (t->cwnd < t->ssthresh)
		cwnd = min(2 * t->cwnd, t->ssthresh);
	t->cwnd = min(cwnd, t->most);
	t->left = t->cwnd;
}

/* Data packets that begin no event, received or lost. */
static void tear_step(struct tear *t, u32 n)
{
	u32 i;

	if (!t->cwnd)
		return;
	for (i = 0; n >= t->left && i < TEAR_ROUNDS_MAX; i++) {
		n -= t->left;
		tear_round(t);
	}
	t->left -= min(n, t->left - 1);
}

static void tear_close_epoch(struct tear *t)
{
	u32 i;

	t->n = min(t->n + 1, TEAR_EPOCHS - 1);
	for (i = t->n - 1; i; i--)
		t->mean[i] = t->mean[i - 1];
	t->mean[0] = tear_epoch(t);
	t->sum = 0;
	t->rounds = 0;
}

/* The window that the flow has at its first loss: what arrives in a round trip. */
static u32 tear_first(const struct rate_rx *rate, u64 now)
{
	u64 x = rate->n_mark ? rate_rx_receive_rate(rate, now) : 0;

	x = mul_u64_u32_div(x, rate_rx_rtt(rate), 1000000) >> TFRC_RATE_SHIFT;
	x = div_u64(x, tfrc_mean(rate->s_mean));
	return clamp_t(u64, x, 2, TEAR_CWND_MAX);
}

/* A loss event, for which a TCP halves its window. */
static void tear_halve(struct tear *t)
{
	t->cwnd = max(t->cwnd / 2, 1U);
	t->ssthresh = max(t->cwnd, 2U);
	t->left = t->cwnd;
}

/*
 * A time-out: so many round trips in which it sent nothing, then one packet. Without
 * epochs before, their mean would be no window at all.
 */
static void tear_restart(struct tear *t, u32 rounds)
{
	t->ssthresh = max(t->cwnd / 2, 2U);
	t->cwnd = 1;
	t->left = 1;
	t->rounds = t->n ? rounds : 0;
}

/*
 * A hole that lasts as long as a time-out is one, in a loss event or not, and its
 * packets count to no round, as the TCP would not have sent them. A packet with CE has
 * arrived, so there is no hole.
 *
 * Return: whether the sender is to hear of it at once.
 */
static bool tear_lost(struct rate_rx *rate, struct rate_hole *hole, u64 seq, u64 now)
{
	struct tear *t = container_of(rate, struct tfrc_rx, rate)->own;
	u64 time = (u64)hole->time << 8, rtt = 1000ULL * rate_rx_rtt(rate);
	bool timeout = hole->steps > 1 && time > TEAR_TIMEOUT * rtt, event;
	u32 n = hole->n;

	event = tfrc_rx_lost(rate, hole, seq, now);
	timeout = timeout && (event || t->cwnd);
	if (event || timeout) {
		if (t->cwnd)
			tear_close_epoch(t);
		else
			t->cwnd = tear_first(rate, now);
	}
	if (timeout) {
		tear_restart(t, min_t(u64, div64_u64(time, rtt), TEAR_ROUNDS_MAX));
	} else {
		if (event) {
			tear_halve(t);
			n--;
		}
		tear_step(t, n);
	}
	return event || timeout;
}

static void tear_received(struct rate_rx *rate, const struct rate_packet *pkt)
{
	struct tear *t = container_of(rate, struct tfrc_rx, rate)->own;

	tfrc_rx_received(rate, pkt);
	tear_step(t, 1);
}

static const struct rate_rx_ops tear_ops = {
	.received	= tear_received,
	.lost		= tear_lost,
};

static void tear_init(void *own, u64 random)
{
	struct tear *t = own;

	t->most = TEAR_CWND_MAX;
}

/*
 * The window is not to grow without end while the flow sends less than it may. What
 * grows by one a round, over the mean of eight epochs, is at most twelve times the
 * window that is reported, and so what arrives. After a pause some reports are of few
 * packets in many round trips, so what arrives becomes less by a quarter with each
 * report at most.
 */
static u32 tear_report(const struct tfrc_rx *rx)
{
	struct tear *t = rx->own;
	u64 n = mul_u64_u32_div(rx->rate.x_recv, rate_rx_rtt(&rx->rate), 1000000);

	if (rx->rate.x_recv) {
		n = min_t(u64, div_u64(n, tfrc_mean(rx->rate.s_mean)), TEAR_CWND_MAX);
		t->arrives = max_t(u32, n, 3 * t->arrives / 4);
		t->most = clamp(TEAR_GROWTH * t->arrives, TEAR_GROWTH, TEAR_CWND_MAX);
	}
	return tear_window(t);
}

const struct tfrc_method tear_method = {
	.ccid		= 254,
	.name		= "TCP Emulation at Receivers",
	.defaults	= { .discount = 1 },
	.variants	= 1,
	.state		= sizeof(struct tear),
	.rx_ops		= &tear_ops,
	.init		= tear_init,
	.received	= tfrc_standard_received,
	.lost		= tfrc_standard_lost,
	.length		= tfrc_standard_length,
	.window		= tear_report,
};
