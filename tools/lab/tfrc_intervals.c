// SPDX-License-Identifier: GPL-2.0
/*
 * Loss intervals that dccp_tfrc's receiver measures on a channel with
 * independent losses. Reads lines of method, segment size, packet size,
 * packets per round trip, loss rate, seed and number of intervals; writes for
 * each the mean of an interval, the mean of its loss insensitive period (LIP),
 * and mean and variance of the interval less its LIP.
 *
 * The LIP is counted here, by what was sent: the packets after the loss that
 * began the event, up to the first received one whose window counter is 5
 * above that of the packet received before that loss (RFC 4342, 10.2); only
 * after that packet can a loss begin another event. That of LIP scaling is by time:
 * the receiver is given a round trip with which it is 8.5 packets long, so that 8 are
 * in it. What TFRC-SP has divided
 * by its losses (RFC 4828, 4.4) is multiplied by them.
 *
 * tools/lab/computed.py compiles and runs it, with ccid/tfrc_*.c.
 */
#include <stdio.h>
#include <string.h>

#include "include/uapi/linux/dccp_tfrc.h"
#include "tfrc_rx.h"
#include "../lib/rng.h"

/* Sent packets that are remembered: more than an interval, power of two. */
#define REACH	(1 << 20)

static const struct {
	const char *name;
	const struct tfrc_method *method;
	u32	variant;
} methods[] = {
	{ "standard", &tfrc_standard, 0 },
	{ "sp", &tfrc_sp, 0 },
	{ "packet", &tfrc_vp_packet, 0 },
	{ "byte", &tfrc_vp_byte, TFRC_VARIANT_DEFAULT },
	{ "drop_tail", &tfrc_vp_byte, TFRC_VARIANT_DROP_TAIL },
	{ "byte_error", &tfrc_vp_byte, TFRC_VARIANT_BYTE_ERROR },
	{ "sampling", &tfrc_sampling, 0 },
	{ "sampling_byte", &tfrc_sampling, TFRC_VARIANT_BYTES },
	{ "lip", &tfrc_lip_scaling, 0 },
};

struct channel {
	u32	packets;	/* per window counter */
	double	p;
	u64	random;
	u8	lost[REACH];
};

/* Is packet @k lost? Not the first: there is always one before a loss. */
static bool is_lost(struct channel *c, u64 k)
{
	bool lost = rng_uniform(&c->random) < c->p && k;

	c->lost[k % REACH] = lost;
	return lost;
}

/* The last packet before @at that was received. */
static u64 received_before(const struct channel *c, u64 at)
{
	do
		at--;
	while (c->lost[at % REACH]);
	return at;
}

/* Window counters from one packet to another. */
static u64 counters(const struct channel *c, u64 from, u64 to)
{
	return to / c->packets - from / c->packets;
}

/* Packets in the LIP of the event that the loss of @start began. */
static u64 lip(const struct channel *c, u64 start)
{
	u64 before = received_before(c, start), after = start + 1;

	while (c->lost[after % REACH] || counters(c, before, after) <= TFRC_LIP)
		after++;
	return after - start;
}

/* By what TFRC-SP divides an interval of at most two round trips: its losses. */
static u64 divisor(const struct channel *c, u64 start, u64 end)
{
	u64 losses = 0;

	if (counters(c, received_before(c, start), received_before(c, end)) > TFRC_SHORT)
		return 1;
	while (start < end)
		losses += c->lost[start++ % REACH];
	return losses;
}

static void measure(struct channel *c, u32 method, u32 s, u32 size, u32 n)
{
	struct tfrc_params par = { .s = s, .variant = methods[method].variant };
	bool scaled = methods[method].method == &tfrc_lip_scaling;
	bool sp = methods[method].method == &tfrc_sp;
	/* of lengths: packets, or virtual ones */
	double unit = sp || scaled || methods[method].method == &tfrc_standard ?
		      1 : (double)size / s;
	double length, insensitive, rest, sum[4] = {};
	u64 events = 0, start = 0, k, own[128] = {};
	struct tfrc_rx rx = { .own = own };

	if (methods[method].method->init)
		methods[method].method->init(own, ~c->random);
	tfrc_rx_init(&rx, methods[method].method, &par, RATE_SEQ_MASK, 0);
	/* The first interval is not measured, and the second begins it all. */
	for (k = 0; events < n + 2; k++) {
		struct rate_packet pkt = { .seq = k, .size = size, .data = true };

		if (is_lost(c, k))
			continue;
		if (scaled)
			rx.rate.rtt = 8500ULL * s / size * 8 / 9;
		rate_rx_packet(&rx.rate, &pkt, k / c->packets & 15, (k + 1) * 1000000);
		if (rx.events == events)
			continue;
		events = rx.events;
		if (events > 2) {
			length = rx.history.i[1].length / 256.;
			if (sp)
				length *= divisor(c, start, rx.history.i[0].start);
			insensitive = scaled ? 8 : lip(c, start) * unit;
			rest = length - insensitive;
			sum[0] += length;
			sum[1] += insensitive;
			sum[2] += rest;
			sum[3] += rest * rest;
		}
		start = rx.history.i[0].start;
	}
	for (k = 0; k < 4; k++)
		sum[k] /= n;
	printf("%.9g %.9g %.9g %.9g\n", sum[0], sum[1], sum[2],
	       (sum[3] - sum[2] * sum[2]) * n / (n - 1));
}

int main(void)
{
	static struct channel c;
	u32 s, size, per_rtt, n, i;
	char name[16];

	while (scanf("%15s %u %u %u %lf %llu %u", name, &s, &size, &per_rtt,
		     &c.p, &c.random, &n) == 7) {
		for (i = 0; i < ARRAY_SIZE(methods); i++)
			if (!strcmp(name, methods[i].name))
				break;
		if (i == ARRAY_SIZE(methods) || per_rtt % 4)
			return 2;
		c.packets = per_rtt / 4;
		measure(&c, i, s, size, n);
	}
	return 0;
}
