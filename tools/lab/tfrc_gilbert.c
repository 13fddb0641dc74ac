// SPDX-License-Identifier: GPL-2.0
/*
 * A sender that follows the throughput equation, dccp_tfrc's receiver, and a
 * channel that loses packets by the time: no sockets, no queue, no other flow.
 * Reads lines of
 *
 *	method    standard, packet (virtual packets)
 *	pps       packets a second; 0: all packets have `size`
 *	size      bytes of a packet, or the most
 *	model     leave: each slot of 10 ms is lost or not; into the loss state
 *		  with a * loss, out of it with a * (1 - loss)
 *		  stay: a * (1 - loss) is the probability to stay in it
 *		  bernoulli: each packet with `loss`
 *	loss a seed seconds
 *
 * and writes for each bytes received a second, the loss event rate (the mean of
 * what feedback says), and the share of packets lost. The segment size is 1000
 * bytes, the round trip 100 ms, feedback is not lost. Half a minute before does
 * not count.
 *
 * tools/lab/computed.py compiles and runs it, with ccid/tfrc_*.c.
 */
#include <stdio.h>
#include <string.h>

#include "tfrc_rx.h"
#include "../lib/rng.h"

#define SEGMENT		1000
#define RTT		100000		/* us */
#define SLOT		10000
#define WARMUP		30000000ULL

struct channel {
	double	enter, leave;
	bool	slots;
	u64	random, slot;
	bool	bad;
};

static bool is_lost(struct channel *c, u64 now)
{
	if (!c->slots)
		return rng_uniform(&c->random) < c->enter;
	for (; c->slot <= now / SLOT; c->slot++)
		c->bad = rng_uniform(&c->random) < (c->bad ? 1 - c->leave : c->enter);
	return c->bad;
}

/* Feedback on its way: more than fit into a round trip. */
#define REPORTS		64

struct report {
	u64	at;		/* when the sender has it */
	u32	pinv, x_recv;
};

struct flow {
	struct tfrc_rx	rx;
	struct report	report[REPORTS];
	u32		sent, taken;	/* reports */
	u32		x_recv[2];	/* of the last two reports */
	double		rate;		/* bytes a second */
};

/* RFC 5348, 4.3: the equation, and twice what was received at most. */
static void react(struct flow *f, const struct report *report)
{
	double most;

	f->x_recv[1] = f->x_recv[0];
	f->x_recv[0] = report->x_recv;
	most = 2. * max(f->x_recv[0], f->x_recv[1]);
	f->rate = most;
	if (report->pinv != TFRC_PINV_NONE)
		f->rate = min(most, tfrc_rate(SEGMENT, RTT, report->pinv) /
				    (double)(1 << TFRC_RATE_SHIFT));
	f->rate = max(f->rate, SEGMENT / (double)TFRC_T_MBI);
}

static void run(const struct tfrc_method *method, u32 pps, u32 most, struct channel *c,
		u32 seconds)
{
	u64 end = WARMUP + 1000000ULL * seconds, k = 0;
	u64 bytes = 0, lost = 0, packets = 0, reports = 0;
	struct tfrc_params par = { .s = SEGMENT };
	struct flow f = { .rate = 4. * SEGMENT * 1000000 / RTT };
	double now, p = 0;

	tfrc_rx_init(&f.rx, method, &par, RATE_SEQ_MASK, 0);
	for (now = 0; now < end; k++) {
		u64 sent = now, arrival = sent + RTT / 2;
		struct rate_packet pkt = { .seq = k, .data = true };
		enum rate_feedback why;

		while (f.taken != f.sent && f.report[f.taken % REPORTS].at <= sent)
			react(&f, &f.report[f.taken++ % REPORTS]);
		pkt.size = pps ? max(min(f.rate / pps, (double)most), 1.) : most;
		now += pps ? 1e6 / pps : 1e6 * most / f.rate;
		packets += sent >= WARMUP;
		if (is_lost(c, sent) && k) {
			lost += sent >= WARMUP;
			continue;
		}
		if (sent >= WARMUP)
			bytes += pkt.size;
		why = rate_rx_packet(&f.rx.rate, &pkt, sent / (RTT / 4) & 15, arrival * 1000);
		if (why == RATE_FEEDBACK_NONE)
			continue;
		tfrc_rx_report(&f.rx, why, arrival * 1000);
		/* The first one tells the round trip only. */
		if (why == RATE_FEEDBACK_FIRST)
			continue;
		if (f.sent - f.taken < REPORTS)
			f.report[f.sent++ % REPORTS] = (struct report){
				arrival + RTT / 2, f.rx.pinv, f.rx.rate.x_recv };
		if (sent >= WARMUP) {
			p += f.rx.pinv == TFRC_PINV_NONE ? 0 : (double)TFRC_PINV_ONE / f.rx.pinv;
			reports++;
		}
	}
	printf("%.9g %.9g %.9g\n", (double)bytes / seconds, reports ? p / reports : 0,
	       packets ? (double)lost / packets : 0);
}

int main(void)
{
	char method[16], model[16];
	u32 pps, size, seconds;
	double loss, a;
	u64 seed;

	while (scanf("%15s %u %u %15s %lf %lf %llu %u", method, &pps, &size, model,
		     &loss, &a, &seed, &seconds) == 8) {
		struct channel c = {
			.enter = loss,
			.slots = strcmp(model, "bernoulli"),
			.random = seed,
		};

		if ((strcmp(method, "standard") && strcmp(method, "packet")) ||
		    (c.slots && strcmp(model, "leave") && strcmp(model, "stay")))
			return 2;
		if (c.slots) {
			c.enter = a * loss;
			c.leave = strcmp(model, "stay") ? a * (1 - loss) : 1 - a * (1 - loss);
		}
		run(strcmp(method, "standard") ? &tfrc_vp_packet : &tfrc_standard,
		    pps, size, &c, seconds);
	}
	return 0;
}
