// SPDX-License-Identifier: GPL-2.0
/*
 * TEAR's receiver, ccid/tear_rx.c, and what the sender makes of its window: by hand,
 * against a TCP in floating point, and as a flow with Bernoulli losses [TRANS00] 2.2,
 * 4.1, App. C.
 */
#include <stdlib.h>
#include <string.h>

#include "test_tfrc.h"
#include "tear_rx.h"

#define RTT	(100 * MSEC)

static u64 seed = 254;

/* A receiver that is fed packet by packet, so many a round trip. */
struct hand {
	struct tfrc_rx	rx;
	struct tear	own;
	u64		now;
	u64		seq;
	u64		gap;
	u32		quarters;	/* Q16 */
	enum rate_feedback why;
};

static void hand_init(struct hand *h, u32 per_rtt)
{
	*h = (struct hand){ .now = SEC, .seq = 1, .gap = RTT / per_rtt };
	h->rx.own = &h->own;
	tear_method.init(&h->own, 0);
	tfrc_rx_init(&h->rx, &tear_method, &tear_method.defaults, 0, RTT / USEC);
}

/* Time passes to the next packet, which has the next number. */
static void hand_next(struct hand *h, u64 gap)
{
	h->now += gap;
	h->quarters += (gap << 18) / RTT;
}

static enum rate_feedback hand_arrives(struct hand *h, bool ce)
{
	struct rate_packet pkt = { .seq = h->seq++, .size = 1000, .data = true, .ce = ce };

	h->why = rate_rx_packet(&h->rx.rate, &pkt, h->quarters >> 16 & 15, h->now);
	/* Not by options, whose contents this test is not about. */
	h->rx.rate.rtt = RTT / USEC;
	if (h->why != RATE_FEEDBACK_NONE)
		tfrc_rx_report(&h->rx, h->why, h->now);
	return h->why;
}

static void hand_packet(struct hand *h)
{
	hand_next(h, h->gap);
	hand_arrives(h, false);
}

/* The next one is marked: lost, but known at once. */
static void hand_mark(struct hand *h)
{
	hand_next(h, h->gap);
	hand_arrives(h, true);
}

/* As after an event, with a window, and seven epochs before of so many packets. */
static void set(struct hand *h, u32 cwnd, u32 ssthresh, u32 before)
{
	struct tear *t = &h->own;
	u32 i;

	*t = (struct tear){ .cwnd = cwnd, .left = cwnd, .ssthresh = ssthresh,
			    .most = TEAR_CWND_MAX };
	for (i = 0; before && i < TEAR_EPOCHS - 1; i++)
		t->mean[t->n++] = before << 8;
}

/* Packets that are data, in the window's own time: the ops alone, no channel. */
static void steps(struct hand *h, u32 n)
{
	struct rate_packet pkt = { .size = 1000, .data = true };

	while (n--)
		tear_method.rx_ops->received(&h->rx.rate, &pkt);
}

static bool lose(struct hand *h, u32 n, u64 time)
{
	struct rate_hole hole = { .n = n, .size = 1000, .time = time >> 8,
				  .steps = n + 1 };

	/* Out of the LIP of the event before. */
	h->rx.rate.last.wc += 9;
	return tear_method.rx_ops->lost(&h->rx.rate, &hole, h->seq, h->now);
}

static void test_golden(void)
{
	static const struct {
		u32 packet, cwnd, window, n, mean[2];
	} want[] = {
		{ 7, 8, 2048, 0, { 0, 0 } },
		{ 8, 9, 2048, 0, { 0, 0 } },
		{ 17, 10, 2176, 0, { 0, 0 } },
		{ 19, 10, 2176, 0, { 0, 0 } },
		{ 20, 5, 1728, 1, { 2176, 0 } },
		{ 39, 8, 1856, 1, { 2176, 0 } },
		{ 40, 4, 1578, 2, { 1536, 2176 } },
		{ 60, 3, 1440, 3, { 1280, 1536 } },
		{ 80, 3, 1349, 4, { 1152, 1280 } },
		{ 100, 3, 1275, 5, { 1152, 1152 } },
		{ 160, 3, 1109, 7, { 1152, 1152 } },
		{ 219, 7, 1152, 7, { 1152, 1152 } },
		{ 220, 3, 1088, 7, { 1152, 1152 } },
		{ 239, 7, 1152, 7, { 1152, 1152 } },
		{ 240, 3, 1088, 7, { 1152, 1152 } },
		{ 400, 3, 1088, 7, { 1152, 1152 } },
	};
	struct hand h;
	u32 i, packet = 0, bad = 0;

	hand_init(&h, 8);
	set(&h, 8, 8, 0);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		while (packet < want[i].packet) {
			if (++packet % 20)
				steps(&h, 1);
			else
				lose(&h, 1, RTT / 4);
		}
		if (h.own.cwnd != want[i].cwnd || tear_window(&h.own) != want[i].window ||
		    h.own.n != want[i].n || h.own.mean[0] != want[i].mean[0] ||
		    h.own.mean[1] != want[i].mean[1]) {
			note("packet %u: cwnd %u, window %u, %u epochs, the last one %u",
			     packet, h.own.cwnd, tear_window(&h.own), h.own.n,
			     h.own.mean[0]);
			bad++;
		}
	}
	ok(!bad, "each 20th packet lost: windows and epochs");
}

static void test_growth(void)
{
	static const u32 window[] = { 2048, 2069, 2090, 2112, 2133 };
	struct hand h;
	u32 i, bad = 0, before;

	hand_init(&h, 8);
	set(&h, 8, 8, 8);
	for (i = 0; i < 5; i++) {
		steps(&h, h.own.cwnd);
		bad += h.own.cwnd != 9 + i || tear_window(&h.own) != window[i];
	}
	ok(!bad, "growth: windows of the first rounds");
	before = tear_window(&h.own);
	for (i = 0; i < 100; i++)
		steps(&h, h.own.cwnd);
	ok(fabs((tear_window(&h.own) - before) / 25600. - 1 / 12.) < 1e-4,
	   "growth: by 1/12 of a packet a round");
}

static void test_decrease(void)
{
	static const u32 cwnd[] = { 8, 4, 2, 1, 1 };
	static const double part[] = { 0.944, 0.833, 0.694, 0.542, 0.400 };
	struct hand h;
	u32 i, start, bad = 0, half = 0;

	hand_init(&h, 16);
	set(&h, 8, 8, 12);
	for (i = 8; i < 16; i++)
		steps(&h, i);
	/* From 8 to 16: the mean is 12, as those before. */
	h.own.sum += 16;
	h.own.rounds++;
	start = tear_window(&h.own);
	for (i = 0; i < 5; i++) {
		lose(&h, 1, RTT / 8);
		bad += h.own.cwnd != cwnd[i] ||
		       fabs(tear_window(&h.own) / (double)start - part[i]) > 0.001;
		half += tear_window(&h.own) * 2 > start;
	}
	ok(start == 12 << 8 && !bad && half == 4,
	   "an event with each packet: half the window with the fifth");
}

static void test_timeout(void)
{
	struct hand h;
	u32 bad;

	hand_init(&h, 16);
	set(&h, 16, 8, 12);
	h.own.sum = 12;
	h.own.rounds = 1;
	lose(&h, 1, 4 * RTT + 1000);
	bad = h.own.cwnd != 1 || h.own.rounds != 4 || tear_window(&h.own) != 2560;
	steps(&h, 1);
	bad += h.own.cwnd != 2 || tear_window(&h.own) != 2568;
	steps(&h, 2);
	bad += h.own.cwnd != 4 || tear_window(&h.own) != 2581;
	steps(&h, 4);
	bad += h.own.cwnd != 8 || tear_window(&h.own) != 2602;
	ok(!bad, "a hole of more than 4 round trips: slow start from one packet");

	set(&h, 16, 8, 12);
	lose(&h, 1, 4 * RTT);
	ok(h.own.cwnd == 8, "a hole of 4 round trips is a loss event");
	set(&h, 16, 8, 12);
	lose(&h, 200, 400 * RTT);
	ok(h.own.cwnd == 1 && h.own.left == 1 && h.own.rounds == 64,
	   "a time-out: the packets of the hole count to no round, silence to 64");

	/* In the LIP of an event it begins none, but is to be told as one is. */
	set(&h, 16, 8, 12);
	lose(&h, 1, RTT / 4);
	h.rx.rate.last.wc -= 9;
	bad = lose(&h, 1, RTT / 4);
	h.rx.rate.last.wc -= 9;
	ok(!bad && lose(&h, 1, 5 * RTT) && h.own.cwnd == 1,
	   "a time-out in a loss event is told at once");

	/* Through the channel: packets that come again after a silence. */
	hand_init(&h, 16);
	while (h.seq < 64)
		hand_packet(&h);
	hand_mark(&h);
	while (h.seq < 320)
		hand_packet(&h);
	bad = !h.own.cwnd;
	hand_next(&h, 10 * RTT);
	hand_packet(&h);
	hand_packet(&h);
	hand_packet(&h);
	ok(!bad && h.own.cwnd > 3 && h.own.n == 0, "a pause without a hole is none");
	h.seq += 100;
	hand_next(&h, 10 * RTT);
	hand_packet(&h);
	hand_packet(&h);
	hand_packet(&h);
	/* One packet, and two more */
	ok(h.own.cwnd == 4 && h.own.n == 1 && h.own.rounds == 12 && h.own.sum == 3,
	   "a pause with a hole is one");
	/* A marked packet after a pause has come. */
	set(&h, 16, 8, 12);
	hand_next(&h, 10 * RTT);
	hand_mark(&h);
	ok(h.own.cwnd == 8, "a mark after a pause is a loss event");

	/* Before any other event: one packet a round trip, not none. */
	hand_init(&h, 16);
	while (h.seq < 64)
		hand_packet(&h);
	h.seq += 100;
	hand_next(&h, 10 * RTT);
	hand_packet(&h);
	hand_packet(&h);
	hand_packet(&h);
	ok(h.own.cwnd >= 1 && tear_window(&h.own) >= 256, "a time-out before any loss: %u",
	   tear_window(&h.own));
}

/* The mean window of a flow with losses now and then, that pauses or not. */
static double paused(u32 pause)
{
	double sum = 0;
	struct hand h;
	u32 i;

	hand_init(&h, 100);
	for (i = 1; i < 600000; i++) {
		if (pause && !(i % 2000)) {
			/* The window counter goes on by five at most. */
			h.now += (u64)pause * RTT;
			h.quarters += 5 << 16;
			hand_arrives(&h, false);
		} else if (!(i % 3001)) {
			hand_mark(&h);
		} else {
			hand_packet(&h);
		}
		if (i >= 60000)
			sum += tear_window(&h.own) / 256.;
	}
	return sum / (i - 60000);
}

/*
 * An application that pauses: the first report after is of few packets in many round
 * trips, and the emulated TCP, which lives in packets, has lost none.
 */
static void test_pause(void)
{
	static const u32 pauses[] = { 2, 10, 20, 300 };
	double none = paused(0);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(pauses); i++) {
		double some = paused(pauses[i]);

		ok(fabs(some / none - 1) < 0.03,
		   "pauses of %u round trips: window %.1f, without %.1f", pauses[i], some,
		   none);
	}
}

/* The first event: half of what arrives in a round trip. */
static void test_first(void)
{
	u32 per_rtt, bad = 0;
	struct hand h;

	for (per_rtt = 1; per_rtt <= 256; per_rtt *= 2) {
		u32 want = max(per_rtt, 2U) / 2, i;

		hand_init(&h, per_rtt);
		for (i = 0; i < 8 * per_rtt; i++)
			hand_packet(&h);
		if (tear_window(&h.own) || h.rx.window)
			bad++;
		hand_mark(&h);
		if (abs((int)(h.own.cwnd - want)) > 1 || h.own.n ||
		    h.why != RATE_FEEDBACK_LOSS || h.rx.window != tear_window(&h.own) ||
		    h.rx.window != h.own.cwnd << 8) {
			note("%u a round trip: cwnd %u", per_rtt, h.own.cwnd);
			bad++;
		}
	}
	ok(!bad, "first event: half of what arrives in a round trip, feedback at once");

	/* The first packets of all are lost. */
	hand_init(&h, 8);
	h.seq += 5;
	hand_packet(&h);
	hand_packet(&h);
	hand_packet(&h);
	/* One packet, then what else was lost or came: rounds of 1, 2, 3. */
	ok(h.own.cwnd == 4 && tear_window(&h.own) == 512, "first event: before anything came");
}

/* A TCP in floating point, told of the same. */
struct ref {
	double	cwnd, left, ssthresh, sum, rounds, mean[7];
	int	n;
};

static double ref_epoch(const struct ref *r)
{
	return r->rounds ? r->sum / r->rounds : r->cwnd;
}

static double ref_window(const struct ref *r)
{
	double sum = ref_epoch(r), weight = 1;
	int i;

	for (i = 1; i <= r->n; i++) {
		double w = i < 4 ? 1 : (8 - i) / 5.;

		sum += w * r->mean[i - 1];
		weight += w;
	}
	return sum / weight;
}

static void ref_step(struct ref *r)
{
	if (--r->left > 0)
		return;
	r->sum += r->cwnd;
	r->rounds++;
	r->cwnd = r->cwnd < r->ssthresh ? fmin(2 * r->cwnd, r->ssthresh) : r->cwnd + 1;
	r->left = r->cwnd;
}

static void ref_indication(struct ref *r, double silence)
{
	memmove(r->mean + 1, r->mean, 6 * sizeof(*r->mean));
	r->mean[0] = ref_epoch(r);
	r->n = r->n < 7 ? r->n + 1 : 7;
	r->ssthresh = fmax(floor(r->cwnd / 2), 2);
	r->cwnd = silence ? 1 : fmax(floor(r->cwnd / 2), 1);
	r->left = r->cwnd;
	r->sum = 0;
	r->rounds = fmin(silence, 64);
}

static void test_reference(void)
{
	u64 n = unit_samples(300000), i, events = 0, timeouts = 0, k;
	double worst = 0, p = 0.01;
	struct ref r = { .cwnd = 8, .left = 8, .ssthresh = 8 };
	struct hand h;
	u32 bad = 0;

	hand_init(&h, 8);
	set(&h, 8, 8, 0);
	for (i = 0; i < n; i++) {
		if (i % 1000 == 0)
			p = pow(10, -3 * unit_unit(&seed));
		if (unit_unit(&seed) >= p) {
			steps(&h, 1);
			ref_step(&r);
		} else if (unit_unit(&seed) < 0.1) {
			u64 silence = 5 + unit_upto(&seed, 95);

			lose(&h, 1 + unit_upto(&seed, 20), silence * RTT + 1000);
			ref_indication(&r, silence);
			timeouts++;
		} else {
			u64 hole = 1 + unit_upto(&seed, 20);

			lose(&h, hole, RTT);
			ref_indication(&r, 0);
			for (k = 1; k < hole; k++)
				ref_step(&r);
			events++;
		}
		bad += h.own.cwnd != r.cwnd || h.own.left != r.left || h.own.n != r.n;
		worst = fmax(worst, fabs(tear_window(&h.own) / 256. - ref_window(&r)));
	}
	/* Two figures cut off at 1/256: an epoch, and the mean. */
	ok(!bad && worst < 2 / 256., "%llu packets, %llu events, %llu time-outs: off by %.4f",
	   (unsigned long long)n, (unsigned long long)events, (unsigned long long)timeouts,
	   worst);
}

/* Whatever holes come, and however slow the flow is, it is done soon and stays within. */
static void test_bounds(void)
{
	u64 n = unit_samples(100000), i;
	u32 bad = 0, most = 0;
	struct hand h;

	hand_init(&h, 4);
	for (i = 0; i < n; i++) {
		u32 before = h.own.cwnd, most_before = h.own.most;

		if (unit_unit(&seed) < 0.1)
			h.seq += unit_upto(&seed, 1ULL << unit_upto(&seed, 40));
		hand_next(&h, unit_unit(&seed) < 0.01 ? unit_upto(&seed, SEC * 100) : h.gap);
		hand_arrives(&h, unit_unit(&seed) < 0.01);
		bad += h.own.cwnd > max(before, most_before) ||
		       h.own.cwnd > TEAR_CWND_MAX ||
		       (before && (!h.own.cwnd || !h.own.left || h.own.left > h.own.cwnd ||
				   !tear_window(&h.own))) ||
		       tear_window(&h.own) > TEAR_WINDOW_MAX;
	}
	ok(!bad, "garbage: the window is there, and in its bounds");

	/* 4 packets a round trip, and no loss ever again. */
	hand_init(&h, 4);
	for (i = 0; i < 100; i++)
		hand_packet(&h);
	hand_mark(&h);
	for (i = 0; i < 20000; i++) {
		hand_packet(&h);
		most = max(most, h.own.cwnd);
	}
	ok(most >= 12 * 4 && most <= 12 * 5, "a flow that sends less than it may: %u", most);
	h.own.sum = 1ULL << 43;
	h.own.rounds = (1U << 24) - 8;
	h.own.cwnd = 1U << 19;
	h.own.left = 1;
	h.own.most = TEAR_CWND_MAX;
	for (i = 0; i < 64; i++) {
		h.own.left = 1;
		steps(&h, 1);
	}
	ok(h.own.rounds < 1U << 24 && fabs(tear_window(&h.own) / 134217728. - 1) < 0.01,
	   "an epoch of more rounds than are counted: its mean stays");
}

/* The sender: W packets in a round trip, whatever the equation says. */
static void test_sender(void)
{
	struct tfrc_params par = { 0 };
	struct tfrc_feedback_in fb = { .x_recv = 1000000, .rtt = 100000,
				       .pinv = TFRC_PINV_NONE, .window = 256 };
	struct tfrc_tx tx = { .tear = true };
	u64 now = SEC, i, slow;
	u32 bad = 0;

	tfrc_tx_init(&tx, &par);
	tfrc_tx_start(&tx, 1000, 100000, now);
	for (i = 0; i < 200; i++) {
		now += 20 * MSEC;
		rate_tx_due(&tx.rate, now);
		tfrc_tx_send(&tx, 1000, true, now);
		rate_tx_note(&tx.rate, i + 1, now);
		if (i % 5 == 4) {
			fb.t_sent = now - 100 * MSEC;
			tfrc_tx_feedback(&tx, &fb, now);
		}
	}
	ok(!tx.window && tx.x_calc == TFRC_RATE_MAX,
	   "sender: a window before any loss is none");
	slow = tx.x;
	fb.pinv = 100 << 8;
	fb.window = 0;
	tfrc_tx_feedback(&tx, &fb, now);
	ok(tx.x < slow && fabsl(tx.x_calc / 64. / (1000 / .1 / ref_f(.01)) - 1) < .001,
	   "sender: without a window the equation limits");
	for (i = 1; i < 1U << 28; i = i * 5 / 3 + 1) {
		double want = i / 256. * 1000 / .1;

		fb.window = i;
		tfrc_tx_feedback(&tx, &fb, now);
		bad += fabs(tx.x_calc / 64. - want) > 1 / 64. + want * 1e-6 ||
		       (tx.x != tx.x_calc && tx.x < tx.x_calc && tx.x != 2 * 1000000ULL * 64) ||
		       tx.x_inst != tx.x;
	}
	ok(!bad, "sender: W * s / R, and the receive rate");
	fb.window = 0;
	slow = tx.x_calc;
	tfrc_tx_feedback(&tx, &fb, now);
	ok(tx.x_calc == slow, "sender: feedback without a window leaves it as it was");
	fb.window = 4 << 8;
	fb.rtt = 400000;
	tfrc_tx_feedback(&tx, &fb, now);
	ok(tx.x_inst == tx.x, "sender: no reduction of oscillations");
	slow = tx.x;
	tfrc_tx_expired(&tx, tx.t_nofeedback);
	ok(tx.x < slow, "sender: slower without feedback");

	/* What headers take, as of the equation's rate. */
	fb.x_recv = 1000000;
	fb.rtt = 100000;
	fb.window = 8 << 8;
	tx.par.header = 40;
	tfrc_tx_feedback(&tx, &fb, now);
	ok(fabsl(tx.x_calc / 64. / (8 * 1000 / (tx.rate.rtt * 1e-6) / 1.04) - 1) < 1e-4 &&
	   tx.rate.header_paid == 40, "sender: packets pay for their headers");
	tx.par.header = 0;

	/* What was corrupt limits as long as it counts, not for good. */
	fb.corrupt = 1;
	tfrc_tx_feedback(&tx, &fb, now);
	fb.corrupt = 0;
	fb.window = 100 << 8;
	tfrc_tx_feedback(&tx, &fb, now);
	ok(tx.corrupt_gap &&
	   tx.x_calc == tfrc_rate(1000, tx.rate.rtt, tx.corrupt_gap),
	   "sender: the equation limits by corrupt packets alone");
	for (i = 0; i < 100000; i++)
		tfrc_tx_send(&tx, 1000, false, now);
	tfrc_tx_feedback(&tx, &fb, now);
	ok(fabsl(tx.x_calc / 64. / (100 * 1000 / (tx.rate.rtt * 1e-6)) - 1) < 1e-4,
	   "sender: and no more after many that were not");
}

/* What is sent in a round trip, over many of them. */
struct figures {
	double	sum;
	double	squares;
	u64	n;
};

static void figures_add(struct figures *f, u64 x)
{
	f->sum += x;
	f->squares += (double)x * x;
	f->n++;
}

static double figures_mean(const struct figures *f)
{
	return f->sum / f->n;
}

static double figures_cov(const struct figures *f)
{
	double mean = figures_mean(f);

	return sqrt(f->squares / f->n - mean * mean) / mean;
}

/*
 * A flow with Bernoulli losses that sends the window of a round trip ago in each round
 * trip: the receiver, and the TCP in floating point, to which the LIP is by whole
 * quarters of a round trip, too.
 */
static void flow(double p)
{
	u64 rounds = unit_samples(200000), r, here;
	struct ref ref = { .cwnd = 4, .left = 4, .ssthresh = 4 };
	struct figures got = {}, want = {};
	double due, event = -9, last = 0, window[2];
	struct hand h;

	hand_init(&h, 4);
	set(&h, 4, 4, 4);
	h.rx.history.n = 2;	/* a loss event has been */
	h.rx.history.i[1].length = 10 << 8;
	window[0] = 4;
	window[1] = 4;
	for (due = r = 0; r < rounds; r++) {
		for (here = 0; due < r + 1; due += 1 / window[0], here++) {
			hand_next(&h, SEC + (u64)(due * RTT) - h.now);
			if (unit_unit(&seed) < p)
				h.seq++;
			else
				hand_arrives(&h, false);
		}
		window[0] = window[1];
		window[1] = tear_window(&h.own) / 256.;
		if (r >= 100)
			figures_add(&got, here);
	}
	window[0] = 4;
	window[1] = 4;
	for (due = r = 0; r < rounds; r++) {
		for (here = 0; due < r + 1; due += 1 / window[0], here++) {
			bool lost = unit_unit(&seed) < p;

			if (lost && floor(4 * last) - floor(4 * event) > 4) {
				ref_indication(&ref, 0);
				event = last;
			} else {
				ref_step(&ref);
			}
			if (!lost)
				last = due;
		}
		window[0] = window[1];
		window[1] = ref_window(&ref);
		if (r >= 100)
			figures_add(&want, here);
	}
	ok(fabs(figures_mean(&got) / figures_mean(&want) - 1) < 0.05 &&
	   fabs(figures_cov(&got) - figures_cov(&want)) < 0.03,
	   "%g lost: %.2f packets a round trip (%.2f), CoV %.3f (%.3f)", p,
	   figures_mean(&got), figures_mean(&want), figures_cov(&got), figures_cov(&want));
}

int main(void)
{
	test_golden();
	test_growth();
	test_decrease();
	test_timeout();
	test_pause();
	test_first();
	test_reference();
	test_bounds();
	test_sender();
	flow(0.005);
	flow(0.01);
	flow(0.02);
	flow(0.05);
	flow(0.1);
	flow(0.2);
	return unit_end();
}
