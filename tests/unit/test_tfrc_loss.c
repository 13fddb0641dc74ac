// SPDX-License-Identifier: GPL-2.0
/*
 * The average loss interval of ccid/tfrc_loss.c (RFC 5348, 5.4 and 5.5) and
 * the loss methods' lengths, each by itself.
 */
#include "test_tfrc.h"

static u64 seed = 21;

/* A history as lists of what RFC 5348 has; lengths are packets in Q24.8. */
static void both_push(struct tfrc_history *h, struct ref_history *r, u32 length,
		      bool discount)
{
	h->i[0].length = length;
	r->i[0] = length / 256.;
	tfrc_history_push(h, discount);
	ref_push(r, discount);
}

static void first(struct tfrc_history *h, struct ref_history *r)
{
	*h = (struct tfrc_history){ .n = 1, .i = { { .df = 4096 } } };
	*r = (struct ref_history){ .df = { 1 } };
}

static u32 random_length(u32 most)
{
	return 256 + unit_log_upto(&seed, most - 256);
}

static double error(const struct tfrc_history *h, struct ref_history *r,
		    bool skip, bool discount)
{
	double want;
	u32 got;

	r->i[0] = h->i[0].length / 256.;
	want = fmax(ref_mean(r, skip, discount), 1);
	got = tfrc_history_pinv(h, skip, discount);
	return (fabs(got / 256. - want) - 2 / 256.) / want;
}

static void test_random(bool discount, bool skip, double most_error)
{
	struct tfrc_history h;
	struct ref_history r;
	double worst = 0;
	u64 i, j;

	for (i = 0; i < unit_samples(20000); i++) {
		u32 most = 512 + unit_log_upto(&seed, 1 << 28);
		u32 last = unit_upto(&seed, 20), length;

		first(&h, &r);
		for (j = 0; j <= last; j++) {
			length = random_length(most);
			if (unit_upto(&seed, 3) == 0)
				length = min(length, 256 * 20U);
			both_push(&h, &r, length, discount);
			/* 5.5: DF is updated on every packet. */
			for (length = 0; length < 4; length++) {
				h.i[0].length = random_length(most);
				worst = fmax(worst, error(&h, &r, skip,
							  discount));
			}
		}
	}
	note("mean: worst relative error %.2e", worst);
	ok(worst < most_error, "mean interval: random histories%s%s",
	   discount ? ", discounting" : "", skip ? ", I_0 left out" : "");
}

static u32 filled(struct tfrc_history *h, u32 n, u32 packets)
{
	struct ref_history r;

	for (first(h, &r); n; n--)
		both_push(h, &r, packets << 8, false);
	h->i[0].length = 256;
	return tfrc_history_pinv(h, false, false);
}

static void test_cases(void)
{
	static const u8 weights[] = { 10, 10, 10, 10, 8, 6, 4, 2 };
	struct tfrc_history h = { .n = 0 };
	struct ref_history r;
	u32 i, bad = 0;

	ok(tfrc_history_pinv(&h, false, true) == TFRC_PINV_NONE,
	   "mean interval: p = 0 before the first loss event");
	h.n = 1;
	ok(tfrc_history_pinv(&h, false, true) == TFRC_PINV_NONE,
	   "mean interval: and with nothing but the first interval");
	for (i = 1; i <= 12; i++)
		bad += filled(&h, i, 100) != 100 << 8 ||
		       h.n != min(i + 1, TFRC_NINTERVAL + 1U);
	ok(!bad, "mean interval: equal intervals, k = 1 .. n and beyond");

	/* 5.4: one interval of 600 more than 0; the sum of the weights is 6. */
	for (i = 1; i <= TFRC_NINTERVAL; i++) {
		filled(&h, TFRC_NINTERVAL, 1);
		h.i[i].length += 600 << 8;
		bad += tfrc_history_pinv(&h, true, false) !=
		       256U + (weights[i - 1] * 10 << 8);
	}
	ok(!bad, "mean interval: weights 1, 1, 1, 1, .8, .6, .4, .2");

	/* I_0 counts only where that makes the mean greater. */
	filled(&h, TFRC_NINTERVAL, 100);
	h.i[0].length = 50 << 8;
	ok(tfrc_history_pinv(&h, false, false) == 100 << 8,
	   "mean interval: a shorter I_0 does not count");
	h.i[0].length = 160 << 8;
	ok(tfrc_history_pinv(&h, false, false) == 110 << 8,
	   "mean interval: a longer I_0 does");
	ok(tfrc_history_pinv(&h, true, false) == 100 << 8,
	   "mean interval: but not where it is short (RFC 4828, 3)");

	/* 5.5: DF = 2 * 100 / 400 = .5, weights 1 and 5 * .5 of 100 */
	h.i[0].length = 400 << 8;
	i = tfrc_history_pinv(&h, false, true);
	ok(fabs(i / 256. - (400 + 500 * .5) / (1 + 5 * .5)) < .01,
	   "discounting: I_0 four times the mean");
	h.i[0].length = 200 << 8;
	ok(fabs(tfrc_history_pinv(&h, false, true) / 256. - 700 / 6.) < .01,
	   "discounting: not before twice the mean");
	h.i[0].length = 1000000 << 8;
	i = tfrc_history_pinv(&h, false, true);
	ok(fabs(i / 256. / ((1e6 + 500 * .25) / (1 + 5 * .25)) - 1) < 1e-4,
	   "discounting: a quarter at least");

	/* The factors are kept with their intervals and multiply. */
	first(&h, &r);
	for (i = 0; i < 10; i++)
		both_push(&h, &r, 100 << 8, true);
	both_push(&h, &r, 400 << 8, true);
	for (i = bad = 0; i <= TFRC_NINTERVAL; i++)
		bad += h.i[i].df != (i < 2 ? 4096 : 2048);
	ok(!bad, "discounting: DF goes to the intervals that were closed");
	both_push(&h, &r, 1000000 << 8, true);
	for (i = bad = 0; i <= TFRC_NINTERVAL; i++)
		bad += h.i[i].df != (i < 2 ? 4096 : i < 3 ? 1024 : 512);
	ok(!bad, "discounting: and multiplies with what they had");

	filled(&h, TFRC_NINTERVAL, 1);
	for (i = 0; i <= TFRC_NINTERVAL; i++)
		h.i[i].length = 0;
	ok(tfrc_history_pinv(&h, false, true) == TFRC_PINV_ONE,
	   "mean interval: at least one packet");
	for (i = 0; i <= TFRC_NINTERVAL; i++)
		h.i[i].length = TFRC_PINV_MAX << TFRC_PINV_SHIFT;
	ok(tfrc_history_pinv(&h, false, true) ==
	   TFRC_PINV_MAX << TFRC_PINV_SHIFT, "mean interval: the greatest");
}

static void test_lengths(void)
{
	struct tfrc_rx rx = { .par = { .s = 1000 },
			      .meter = { .total = 12, .packets = 12, .drops = 4 } };
	struct tfrc_meter *m = &rx.meter;

	ok(tfrc_standard.length(&rx, true) == 12 << 8 &&
	   tfrc_standard.length(&rx, false) == 12 << 8,
	   "length: TFRC counts packets");
	ok(tfrc_sp.length(&rx, true) == 3 << 8 &&
	   tfrc_sp.length(&rx, false) == 12 << 8,
	   "length: TFRC-SP, N/K in a short interval (RFC 4828, 4.4)");
	m->drops = 0;
	ok(tfrc_sp.length(&rx, true) == 12 << 8, "length: TFRC-SP, K = 0");

	*m = (struct tfrc_meter){ .total = 12300, .after = 5100, .lost = 200 };
	ok(tfrc_vp_packet.length(&rx, false) == 12300 * 256 / 1000,
	   "length: virtual packets, packet mode");
	ok(tfrc_vp_byte.length(&rx, false) == 12300 * 256 / 1000,
	   "length: byte mode");
	rx.par.variant = TFRC_VARIANT_DROP_TAIL;
	ok(tfrc_vp_byte.length(&rx, false) ==
	   (7000 + 5300 / 2) * 256 / 1000, "length: byte mode, drop-tail");
	rx.par.variant = TFRC_VARIANT_BYTE_ERROR;
	ok(tfrc_vp_byte.length(&rx, false) == 13 * 256,
	   "length: byte mode, byte errors: 7 + 5 + 1 ([VPS02], B.3)");
	m->total = U64_MAX >> 9;
	ok(tfrc_standard.length(&rx, false) ==
	   TFRC_PINV_MAX << TFRC_PINV_SHIFT, "length: the greatest");
}

static s64 lose(struct tfrc_rx *rx, u32 n, u32 size, bool lip)
{
	return tfrc_vp_packet.lost(rx, &(struct rate_hole){
				   .n = n, .size = size, .lip = lip });
}

/* [VPS02] 3.3.1: which of @n lost packets completes S bytes. */
static void test_packet_mode(void)
{
	struct tfrc_rx rx = { .par = { .s = 1000 } };
	struct tfrc_meter *m = &rx.meter;
	u32 bad = 0;

	bad += lose(&rx, 3, 200, true) != -1;
	bad += m->total != 600 || m->lost;
	bad += lose(&rx, 4, 200, false) != -1;
	bad += m->total != 1400 || m->lost != 800;
	bad += lose(&rx, 4, 200, false) != 1;
	bad += m->total != 1600;
	ok(!bad, "packet mode: an event when S bytes are lost, exactly");
	*m = (struct tfrc_meter){ .lost = 800 };
	ok(lose(&rx, 4, 199, false) == 2,
	   "packet mode: a byte less takes one more packet");
	*m = (struct tfrc_meter){};
	ok(lose(&rx, 1, 1500, false) == 1,
	   "packet mode: a packet larger than S");

	/* An application may make S smaller than what is lost already. */
	*m = (struct tfrc_meter){ .lost = 900 };
	rx.par.s = 32;
	ok(lose(&rx, 2, 100, false) == 1,
	   "packet mode: S made smaller than what is lost already");
}

/*
 * Whatever the sizes, and however losses come in a row: S bytes lost after the
 * LIP are an event, no more and no less, as long as an event has no more than one
 * S. By Definition 1 they are fewer.
 */
static void test_carry(void)
{
	u32 bad = 0, fewer = 0, i, j, variant;

	for (i = 0; i < unit_samples(1000); i++) {
		u32 s = 32 + unit_log_upto(&seed, 65503);
		u64 found[2];

		for (variant = 0; variant < 2; variant++) {
			struct tfrc_rx rx = { .par = { .s = s, .variant = variant } };
			u64 lost = 0, events = 0, of = i + 1;

			for (j = 0; j < 1000; j++) {
				u32 size = 1 + unit_upto(&of, s - 1);
				u32 n = 1 + unit_log_upto(&of, 20);
				bool lip = unit_upto(&of, 1);
				s64 old = lose(&rx, n, size, lip);

				if (!lip)
					lost += (u64)size * (old < 0 ? n : old);
				if (old < 0)
					continue;
				events++;
				rx.meter = (struct tfrc_meter){ .lost = rx.meter.carry };
			}
			found[variant] = events;
			if (!variant)
				bad += lost != events * s + rx.meter.lost ||
				       rx.meter.lost >= s;
		}
		fewer += found[1] < found[0];
	}
	ok(!bad, "packet mode: each S bytes lost are an event");
	ok(fewer > i * 9 / 10, "packet mode, Definition 1: fewer events, %u of %u times",
	   fewer, i);
}

/* [VPS02] 3.3.2: each packet is in the sample with probability s/S. */
static void test_sampling(void)
{
	u64 own = 7;
	struct tfrc_rx rx = { .own = &own, .par = { .s = 1000 } };
	struct rate_hole hole = { .n = 1 << 24, .size = 100, .lip = true };
	struct rate_packet pkt = { .size = 100 };
	u32 i, n = 1000000;
	double found;

	for (i = 0; i < n; i++)
		tfrc_sampling.received(&rx, &pkt, false);
	found = rx.meter.total / 1000.;
	/* 4 sigma */
	ok(fabs(found - n / 10) < 1200, "sampling: %.0f of %u packets", found, n);
	rx.meter.total = 0;
	pkt.size = 0;
	for (i = 0; i < 1000; i++)
		tfrc_sampling.received(&rx, &pkt, false);
	ok(!rx.meter.total, "sampling: never an empty packet");
	pkt.size = 1000;
	for (i = 0; i < 1000; i++)
		tfrc_sampling.received(&rx, &pkt, false);
	ok(rx.meter.total == 1000000, "sampling: always one of S bytes");
	rx.meter.total = 0;
	ok(tfrc_sampling.lost(&rx, &hole) == -1 &&
	   rx.meter.total == (100ULL << 24), "sampling: a long hole in the LIP");
	rx.par.s = 65535;
	rx.meter.total = 0;
	hole = (struct rate_hole){ .n = 5000, .size = 1 };
	ok(tfrc_sampling.lost(&rx, &hole) == 1024 && rx.meter.total == 65535,
	   "sampling: one of 1024 tiny packets begins an event");
	rx.par.variant = TFRC_VARIANT_BYTES;
	rx.meter.total = 0;
	ok(tfrc_sampling.lost(&rx, &hole) == 1 && rx.meter.total == 1,
	   "sampling: byte mode, any packet begins one, and is s/S of a packet");
}

/* 3.3.3: R = 100 ms, ten packets of 100 bytes for one of S. */
static void test_lip(void)
{
	u64 own[128] = {}, now = 0;
	struct tfrc_rx rx = { .own = own };
	struct tfrc_params par = { .s = 1000 };
	double closed = 0, open, weight = 0;
	u32 i, seq, bad = 0;

	tfrc_rx_init(&rx, &tfrc_lip_scaling, &par, RATE_SEQ_MASK, 100000);
	for (seq = 0; seq < 400; seq++) {
		struct rate_packet pkt = { .seq = seq, .size = 100, .data = true };

		now += MSEC;
		rx.rate.rtt = 100000;
		if (seq < 200 || seq >= 250)
			rate_rx_packet(&rx.rate, &pkt, seq / 25 & 15, now);
	}
	/* 9/80 R are 11.25 packets. */
	for (i = 0; i < 5; i++)
		bad += rx.history.i[4 - i].start != 200 + 12 * i;
	for (i = 1; i < 5; i++)
		bad += rx.history.i[i].length != 12 << 8;
	ok(rx.events == 5 && !bad,
	   "LIP scaling: 50 losses in a row are five events, each 12");
	/* The weights of 80 intervals: 1, then 2 (80 - i) / 82. */
	tfrc_rx_report(&rx, RATE_FEEDBACK_PERIODIC, now);
	ok(rx.rate.lost == 50 && rx.history.i[0].drops == 2 && rx.history.i[1].drops == 12,
	   "LIP scaling: each loss is counted once");
	closed = 4 * 12 + rx.history.i[5].length / 256.;
	open = rx.history.i[0].length / 256. + 4 * 12;
	ok(fabs(rx.pinv / 256. - fmax(closed, open) / 5) < .01,
	   "LIP scaling: the mean of five intervals");
	for (i = 0; rx.events < 200; i++) {
		struct rate_hole hole = {
			.n = 1, .size = 100, .from = rx.rate.last.time, .steps = 1,
			.time = 1 << 20,
		};

		rx.rate.last.time += hole.time;
		rx.history.i[0].length = (i + 20) << 8;
		tfrc_lip_scaling.event(&rx, &hole);
		rx.history.i[1].length = (i + 20) << 8;
		rx.events++;
	}
	/* event() takes the interval that has just been closed */
	closed = 0;
	for (i = 0; i < 80; i++) {
		double w = i < 40 ? 1 : 2 * (80. - i) / 82;

		closed += w * (213 - i);
		weight += w;
	}
	rx.history.i[0].length = 0;
	ok(fabs(tfrc_lip_scaling.pinv(&rx) / 256. - closed / weight) < .01,
	   "LIP scaling: %.3f, the weighted mean of 80 intervals is %.3f",
	   tfrc_lip_scaling.pinv(&rx) / 256., closed / weight);

	/* A hole with more events than count, and a limit to the work. */
	{
		struct rate_packet pkt = { .seq = 1 << 23, .size = 100,
					   .data = true };
		u64 before = rx.events;

		for (i = 0; i < 3; i++, pkt.seq++) {
			now += i ? MSEC : 400 * SEC;
			rate_rx_packet(&rx.rate, &pkt, 0, now);
		}
		ok(rx.events == before + TFRC_HOLE_EVENTS,
		   "LIP scaling: %llu events in a hole of 2^23 packets",
		   rx.events - before);
	}
}

/* 3.1, 3.2: theta 28, n 20, s/S 0.1. */
static void test_unbiasing(void)
{
	struct tfrc_tx tx = {
		.par = { .s = 1000 }, .rate.s_max = U32_MAX, .s_mean = 100 << 8,
		.n_rtt = 20 << 8,
	};
	struct tfrc_rx rx = { .par = { .s = 1000 }, .rate.s_mean = 100 << 8 };
	u32 (*make)(const struct tfrc_tx *tx, u32 pinv) = tfrc_unbiasing.unbias;
	u32 first;

	ok(make(&tx, 28 << 8) == 1984, "unbiasing: 28 - 9/8 * 20 * 0.9 = 7.75");
	ok(make(&tx, 20 << 8) == 2 << 8 && make(&tx, 300) == 300,
	   "unbiasing: not below two packets, and what is, is left alone");
	first = tfrc_unbiasing.first(&rx, 300 << 8, 20 << 8);
	ok(make(&tx, first) == 300 << 8, "unbiasing: the first interval");
	tx.par.variant = TFRC_VARIANT_BYTES;
	rx.par.variant = TFRC_VARIANT_BYTES;
	ok(make(&tx, 28 << 8) == 601, "unbiasing: byte mode, 28.5 / 10 - 0.5 = 2.35");
	first = tfrc_unbiasing.first(&rx, 300 << 8, 20 << 8);
	ok(fabs(make(&tx, first) - 300. * 256) <= 1,
	   "unbiasing: byte mode, the first interval");
	tx.s_mean = 1000 << 8;
	ok(make(&tx, 28 << 8) == 28 << 8, "unbiasing: none of packets of S bytes");
}

int main(void)
{
	test_sampling();
	test_lip();
	test_unbiasing();
	test_cases();
	test_lengths();
	test_packet_mode();
	test_carry();
	test_random(false, false, 1e-3);
	test_random(false, true, 1e-3);
	test_random(true, false, 2e-3);
	test_random(true, true, 2e-3);
	return unit_end();
}
