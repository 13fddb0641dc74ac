// SPDX-License-Identifier: GPL-2.0
/*
 * Unit tests of voipcall's pure parts: E-model, RTP sequence numbers and
 * jitter, RTCP packets, playout buffer, figures, choice of the codec's mode.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapt.h"
#include "codec.h"
#include "emodel.h"
#include "quality.h"
#include "rtp.h"
#include "../unit/unit.h"

#define MS	1000000LL
#define STAMP	1700000000000000000LL

static bool close_to(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance;
}

static void test_emodel(void)
{
	/* by hand: 93.2 - 0.024 * 100; and past the knee; and 2 % random loss */
	ok(close_to(emodel_r(100, 0, 25.1, 0, 1), 90.8, 1e-9), "R of G.711 at 100 ms");
	ok(close_to(emodel_r(277.3, 0, 25.1, 0, 1), 93.2 - 6.6552 - 11, 1e-9),
	   "R of G.711 at 277.3 ms");
	ok(close_to(emodel_r(0, 11, 19, 0.02, 1), 93.2 - 11 - 84 * 2 / 21., 1e-9),
	   "R of G.729A with 2 %% of random loss");
	ok(close_to(emodel_r(0, 11, 19, 0.02, 2), 93.2 - 11 - 84 * 2 / 20., 1e-9),
	   "R of G.729A with 2 %% of loss in bursts");
	ok(emodel_r(900, 0, 25.1, 0.5, 1) == 0, "R is 0 at least");
	ok(close_to(emodel_mos(93.2), 4.409286, 1e-6), "MOS of R 93.2");
	ok(close_to(emodel_mos(60), 3.1, 1e-9), "MOS of R 60");
	ok(emodel_mos(-5) == 1 && emodel_mos(0) == 1 && emodel_mos(3) == 1, "MOS is 1 at least");
	ok(emodel_mos(100) == 4.5 && emodel_mos(130) == 4.5, "MOS is 4.5 at most");
}

static void test_seq(void)
{
	struct rtp_seq s = { 0 };
	__u32 n, first;
	int wrong = 0;

	rtp_seq_start(&s, 65000);
	first = s.base;
	for (unsigned int i = 0; i < 200000; i++) {
		if (rtp_seq_add(&s, (__u16)(65000 + i), &n) != RTP_NEW || n != first + i)
			wrong++;
	}
	ok(!wrong && s.max - s.base == 199999, "sequence numbers over three cycles");
	wrong = 0;
	for (unsigned int i = 0; i < 100; i++)
		wrong += rtp_seq_add(&s, (__u16)(s.max - i), &n) != RTP_DUPLICATE;
	ok(!wrong, "duplicates up to 100 back");

	rtp_seq_start(&s, 10);
	first = s.base;
	ok(rtp_seq_add(&s, 12, &n) == RTP_NEW && n == first + 2 &&
	   rtp_seq_add(&s, 10, &n) == RTP_REORDERED && n == first &&
	   rtp_seq_add(&s, 11, &n) == RTP_REORDERED && n == first + 1 &&
	   rtp_seq_add(&s, 11, &n) == RTP_DUPLICATE && s.base == first, "reordered packets");
	ok(rtp_seq_add(&s, 8, &n) == RTP_REORDERED && s.base == first - 2,
	   "a packet from before the first");
	ok(rtp_seq_add(&s, 40000, &n) == RTP_BAD && rtp_seq_add(&s, 13, &n) == RTP_NEW &&
	   rtp_seq_add(&s, 40001, &n) == RTP_BAD && rtp_seq_add(&s, 40002, &n) == RTP_NEW &&
	   n == s.base, "a jump is believed the second time");

	rtp_seq_start(&s, 0);
	rtp_seq_add(&s, 0, &n);
	ok(rtp_seq_add(&s, 2999, &n) == RTP_NEW && rtp_seq_add(&s, 2950, &n) == RTP_REORDERED,
	   "a gap of 2998 packets is one");
}

static void test_jitter(void)
{
	struct rtp_jitter j = { 0 };

	for (int i = 0; i < 2000; i++)
		rtp_jitter_add(&j, STAMP + i * 20 * MS, 0xfffff000 + i * 160, 8000);
	ok(close_to(j.jitter, 0, 1), "no jitter, over a wrap of the time stamp");
	/* 5 ms early and late in turn: |D| is 10 ms */
	for (int i = 2000; i < 4000; i++)
		rtp_jitter_add(&j, STAMP + i * 20 * MS + (i & 1 ? 5 : -5) * MS,
			       0xfffff000 + i * 160, 8000);
	ok(close_to(j.jitter, 10 * MS, 1), "jitter converges to the mean difference");
}

static void test_rtp(void)
{
	__u8 payload[160], buf[200], other[200];
	struct rtp_packet p = {
		.marker = true, .payload_type = 18, .seq = 0xfffe, .timestamp = 0xdeadbeef,
		.ssrc = 0x12345678, .payload = payload, .len = 20,
	}, q;
	size_t len;

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = i;
	len = rtp_pack(buf, sizeof(buf), &p);
	ok(len == 32 && rtp_parse(&q, buf, len) && q.marker && q.payload_type == 18 &&
	   q.seq == 0xfffe && q.timestamp == 0xdeadbeef && q.ssrc == 0x12345678 && q.len == 20 &&
	   !memcmp(q.payload, payload, 20), "RTP: what was packed");
	p.len = 160;
	ok(!rtp_pack(buf, 171, &p), "RTP: no room");
	/* two contributing sources, an extension of one word, three bytes of padding */
	memcpy(other, buf, 12);
	other[0] = 0x80 | 0x20 | 0x10 | 2;
	memset(other + 12, 0, 8 + 8);
	other[23] = 1;
	memset(other + 28, 7, 5);
	other[32] = 3;
	ok(rtp_parse(&q, other, 33) && q.len == 2 && q.payload == other + 28,
	   "RTP: sources, extension, padding");
	other[32] = 6;
	ok(!rtp_parse(&q, other, 33), "RTP: more padding than packet");
	ok(!rtp_parse(&q, other, 23) && !rtp_parse(&q, other, 27) && !rtp_parse(&q, other, 11) &&
	   !rtp_parse(&q, other, 0), "RTP: too short");
	other[0] = 0x40;
	ok(!rtp_parse(&q, other, 33), "RTP: another version");
}

/* RTP payloads as the codecs' documents have them, in bytes; 0: none of the kind. */
static void test_sizes(void)
{
	static const struct {
		const char	*codec;
		unsigned int	mode;
		unsigned int	size[6];	/* of 10, 20, ... 60 ms */
	} cases[] = {
		{ "g711", 0, { 80, 160, 240, 320, 400, 480 } },
		{ "g722", 0, { 80, 160, 240, 320, 400, 480 } },
		{ "g729", 0, { 10, 20, 30, 40, 50, 60 } },
		{ "opus", 0, { 10, 20, 30, 40, 50, 60 } },
		{ "opus", 6, { 50, 100, 150, 200, 250, 300 } },
		/* RFC 4867, 4.3: 4 bits, 6 for each frame, the frames */
		{ "amr-nb", 0, { 0, 14, 0, 26, 0, 39 } },
		{ "amr-nb", 7, { 0, 32, 0, 63, 0, 95 } },
		{ "amr-wb", 0, { 0, 18, 0, 35, 0, 53 } },
		{ "amr-wb", 8, { 0, 61, 0, 122, 0, 182 } },
		/* TS 26.445, A.2.1 and A.2.2: several with a byte each */
		{ "evs", 0, { 0, 18, 0, 38, 0, 57 } },
		{ "evs", 3, { 0, 33, 0, 68, 0, 102 } },
		{ "evs", 8, { 0, 160, 0, 322, 0, 483 } },
	};
	unsigned int bad = 0, most = 0, least = ~0U;

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct codec *c = codec_by_name(cases[i].codec);

		for (unsigned int n = 1; n <= 6; n++) {
			unsigned int want = cases[i].size[n - 1];

			bad += codec_has_ptime(c, 10 * n) != (want > 0);
			if (!want)
				continue;
			bad += codec_payload(c, cases[i].mode, 10 * n) != want;
			bad += codec_mode_of(c, want, 10 * n) != (int)cases[i].mode;
			bad += codec_ptime_of(c, want, 10 * n) != 10 * n;
		}
		bad += codec_has_ptime(c, 0) || codec_has_ptime(c, 70) || codec_has_ptime(c, 15);
	}
	ok(!bad, "codecs: sizes of packets with one to six frames");
	ok(codec_ptime_of(codec_by_name("g711"), 240, 20) == 30 &&
	   codec_ptime_of(codec_by_name("g711"), 99, 20) == 20,
	   "codecs: how much speech is in a packet of a size");
	for (unsigned int i = 0; i < codec_count; i++) {
		const struct codec *c = &codecs[i];

		bad += codec_number(c) != i || codec_by_payload_type(c->payload_type) != c;
		for (unsigned int mode = 0; mode < c->modes; mode++) {
			for (unsigned int t = PTIME_MIN; t <= PTIME_MAX; t++) {
				unsigned int size = codec_has_ptime(c, t) ?
						    codec_payload(c, mode, t) : STAMP_LEN;

				most = size > most ? size : most;
				least = size < least ? size : least;
			}
			/* Connection tracking must let calls of 20 ms pass; see rtp.h. */
			bad += RTP_HEADER + codec_payload(c, mode, PTIME_DEFAULT) > SEND_MAX;
		}
	}
	ok(!bad && most == PAYLOAD_MAX && least >= STAMP_LEN,
	   "codecs: each payload has room for the stamp, and is no longer than %u", most);
}

static void test_rtcp(void)
{
	__u8 app[8] = "12345678", buf[256];
	struct rtcp_packet p = {
		.ssrc = 1, .has_sr = true, .ntp = 0x0123456789abcdef, .timestamp = 5,
		.packets = 6, .octets = 7, .has_block = true, .cname = "somebody",
		.block = { .ssrc = 9, .fraction = 10, .lost = -3, .max = 0x10005, .jitter = 11,
			   .lsr = 12, .dlsr = 13 },
		.app_subtype = 4, .app = app, .app_len = 8, .bye = true,
	}, q;
	bool same = true;
	size_t len;

	len = rtcp_pack(buf, sizeof(buf), &p);
	ok(len == 52 + 20 + 20 + 8 && rtcp_is(buf, len), "RTCP: length of a compound");
	ok(rtcp_parse(&q, buf, len, 9) && q.ssrc == 1 && q.has_sr && q.ntp == p.ntp &&
	   q.timestamp == 5 && q.packets == 6 && q.octets == 7 && q.bye && q.app_subtype == 4 &&
	   q.app_len == 8 && !memcmp(q.app, app, 8), "RTCP: what was packed");
	ok(q.has_block && q.block.ssrc == 9 && q.block.fraction == 10 && q.block.lost == -3 &&
	   q.block.max == 0x10005 && q.block.jitter == 11 && q.block.lsr == 12 &&
	   q.block.dlsr == 13, "RTCP: the report block, with a negative loss");
	ok(rtcp_parse(&q, buf, len, 8) && !q.has_block, "RTCP: a block for somebody else");
	for (size_t cut = 1; cut < len; cut++) {
		/* whole packets may be missing at the end */
		bool whole = cut == 52 || cut == 72 || cut == 92;

		same &= rtcp_parse(&q, buf, cut, 9) == whole;
	}
	ok(same, "RTCP: cut short");
	ok(!rtcp_pack(buf, len - 1, &p), "RTCP: no room");
	for (size_t name = 0; name < 12; name++) {
		char text[16] = "abcdefghijkl";

		text[name] = 0;
		p = (struct rtcp_packet) { .ssrc = 1, .cname = text };
		len = rtcp_pack(buf, sizeof(buf), &p);
		same &= len % 4 == 0 && rtcp_parse(&q, buf, len, 9) && !buf[len - 1];
	}
	ok(same, "RTCP: names of all lengths end in a zero");
	ok(rtcp_round_trip_ms(&(struct rtcp_block) { .dlsr = 1 }, 0x38000ULL << 16) < 0 &&
	   rtcp_round_trip_ms(&(struct rtcp_block) { .lsr = 0x38001 }, 0x38000ULL << 16) < 0,
	   "RTCP: no round trip without an SR, or before it");
	ok(close_to(rtcp_round_trip_ms(&(struct rtcp_block) { .lsr = 0x10000, .dlsr = 0x20000 },
				       0x38000ULL << 16), 500, 1e-6),
	   "RTCP: a round trip of 500 ms");
	ok(ntp_time(0) == 2208988800ULL << 32 &&
	   ntp_time(500 * MS) == (2208988800ULL << 32 | 1ULL << 31), "RTCP: NTP time");
}

/* No input may read outside of its buffer: the sanitised build would tell. */
static void test_noise(void)
{
	__u64 state = 1;
	int parsed = 0;

	for (int i = 0; i < 200000; i++) {
		size_t len = unit_upto(&state, 120);
		__u8 *buf = malloc(len ? len : 1);
		struct rtcp_packet c;
		struct rtp_packet p;

		for (size_t k = 0; k < len; k++)
			buf[k] = unit_random(&state);
		if (len > 3 && i & 1) {
			buf[0] = 0x80 | (buf[0] & 0x3f);
			buf[1] = 200 + (buf[1] & 3);
			buf[2] = 0;
			buf[3] &= 31;
		}
		parsed += rtcp_parse(&c, buf, len, 1);
		if (rtp_parse(&p, buf, len) && p.len)
			parsed += p.payload[p.len - 1] & 1;
		free(buf);
	}
	ok(parsed > 0, "noise is no harm");
}

static struct rtp_packet packet(__u8 *payload, unsigned int frame, __s64 stamp)
{
	stamp_put(payload, stamp);
	return (struct rtp_packet) {
		.marker = !frame, .seq = (__u16)(100 + frame), .timestamp = 7 + frame * 160,
		.ssrc = 5, .payload = payload, .len = 160,
	};
}

/* A foreign payload that begins like a stamp is none, but for a time of that day. */
static void test_stamp(void)
{
	__u8 payload[160] = { 0 };
	struct rtp_packet p = packet(payload, 0, STAMP);
	__s64 stamp;

	ok(stamp_get(&p, STAMP + 3600000 * MS, &stamp) && stamp == STAMP,
	   "stamp: of an hour before");
	p.len = STAMP_LEN;
	ok(stamp_get(&p, STAMP - 3600000 * MS, &stamp) && stamp == STAMP,
	   "stamp: of an hour later, in the shortest packet");
	ok(!stamp_get(&p, STAMP + 48 * 3600000LL * MS, &stamp) &&
	   !stamp_get(&p, STAMP - 48 * 3600000LL * MS, &stamp), "stamp: not of another day");
	p.len = STAMP_LEN - 1;
	ok(!stamp_get(&p, STAMP, &stamp), "stamp: too short");
	payload[0]++;
	p.len = 160;
	ok(!stamp_get(&p, STAMP, &stamp), "stamp: none");
}

static void ours(struct receiver *r, double playout_ms)
{
	receiver_init(r, codec_by_name("g711"), 20, playout_ms);
	r->ours = true;
	rtp_seq_start(&r->seq, 100);
}

static void test_metrics(void)
{
	struct receiver r = { 0 };
	double m[METRICS];
	__u8 payload[160] = { 0 };

	/* 1000 packets; 10 ms; every tenth number of a hundred lost, from the first on */
	ours(&r, 40);
	for (unsigned int i = 0; i < 1000; i++) {
		struct rtp_packet p = packet(payload, i, STAMP + i * 20 * MS);

		if (i % 100 < 10)
			continue;
		p.marker = i == 10;
		receiver_add(&r, &p, STAMP + i * 20 * MS + (i % 100 == 50 ? 60 : 10) * MS, false);
	}
	r.final = true;
	r.sent = 1000;
	receiver_metrics(&r, m);
	ok(m[M_PACKETS] == 900 && m[M_LOST] == 100 && close_to(m[M_LOSS], 0.1, 1e-12),
	   "metrics: losses, those at the start too");
	ok(m[M_LATE] == 10 && close_to(m[M_EFFECTIVE_LOSS], 0.11, 1e-12), "metrics: late ones");
	ok(close_to(m[M_BURST_RATIO], 110 / 20. * 0.89, 1e-9), "metrics: burst ratio");
	ok(close_to(m[M_DELAY_MIN], 10, 1e-9) && close_to(m[M_DELAY_MEDIAN], 10, 1e-9) &&
	   close_to(m[M_DELAY_MAX], 60, 1e-9), "metrics: delay");
	ok(close_to(m[M_MOUTH_TO_EAR], 10 + 40 + 20, 1e-6), "metrics: mouth to ear");

	/* half of the sender's frames refused, without gaps in the numbers */
	ours(&r, 40);
	for (unsigned int i = 0; i < 1000; i += 2) {
		struct rtp_packet p = packet(payload, i, STAMP + i * 20 * MS);

		p.seq = 100 + i / 2;
		receiver_add(&r, &p, STAMP + i * 20 * MS + 10 * MS, false);
	}
	receiver_metrics(&r, m);
	ok(m[M_LOST] == 0 && m[M_NOT_SENT] == 499, "metrics: frames not sent show in RTP time");
	r.final = true;
	r.sent = 500;
	r.not_sent = 500;
	receiver_metrics(&r, m);
	ok(m[M_NOT_SENT] == 500 && close_to(m[M_EFFECTIVE_LOSS], 0.5, 1e-12),
	   "metrics: the sender knows better");

	/* clocks two hours apart: delays mean nothing, variation does */
	ours(&r, 40);
	for (unsigned int i = 0; i < 100; i++) {
		struct rtp_packet p = packet(payload, i, STAMP + i * 20 * MS);

		receiver_add(&r, &p, STAMP + i * 20 * MS + 7200000 * MS + i % 2 * MS, false);
	}
	receiver_round_trip(&r, 80);
	receiver_metrics(&r, m);
	ok(isnan(m[M_DELAY_MIN]) && close_to(m[M_VARIATION_MAX], 1, 1e-9) &&
	   close_to(m[M_MOUTH_TO_EAR], 40 + 40 + 20, 1e-6),
	   "metrics: clocks apart: half the round trip stands for the delay");
	ours(&r, 40);
	receiver_metrics(&r, m);
	ok(m[M_PACKETS] == 0 && isnan(m[M_R]) && isnan(m[M_LOSS]), "metrics: nothing came");
	receiver_free(&r);
}

static int by_value(const void *a, const void *b)
{
	__s64 x = *(const __s64 *)a, y = *(const __s64 *)b;

	return (x > y) - (x < y);
}

/* Quantiles of a million delays, against those of the sorted ones. */
static void test_delays(void)
{
	enum { N = 1000000 };
	static __s64 all[N];
	static const double q[] = { 0, 1e-6, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999, 1 };
	int bad = 0, most = 0;
	__u64 seed = 3;

	for (int spread = 10; spread <= 48; spread++) {
		int n = spread % 4 ? 1 + (int)unit_upto(&seed, 3000) : N;
		struct delays d = { 0 };
		int parts = 0;

		for (int i = 0; i < n; i++) {
			all[i] = (__s64)unit_log_upto(&seed, 1ULL << spread);
			if (unit_upto(&seed, 2))
				all[i] = -all[i];
			all[i] += 1000 * MS;
			bad += !delays_add(&d, all[i]);
		}
		for (int i = 0; i < 2 * DELAY_PARTS; i++)
			parts += !!d.bin[i % 2][i / 2];
		most = parts > most ? parts : most;
		qsort(all, (size_t)n, sizeof(*all), by_value);
		for (size_t i = 0; i < sizeof(q) / sizeof(*q); i++) {
			int rank = (int)ceil(q[i] * n);
			double want = (double)all[rank ? rank - 1 : 0] / 1e6;
			double far = fabs(want - (double)d.first / 1e6);

			if (far > 268e3 && q[i] > 0 && q[i] < 1)
				continue;
			bad += !close_to(delays_quantile(&d, q[i]), want,
					 0.0011 + 0.002 * far * (q[i] > 0 && q[i] < 1));
		}
		delays_free(&d);
	}
	ok(!bad, "delays: quantiles, also of delays below the first one's, and beyond the bins");
	ok(most > DELAY_PARTS && most <= 43, "delays: of a million packets, %d KB at most", most);
}

/* Packets that change places within MAX_MISORDER, lost and late ones: as if sorted first. */
static void test_misorder(void)
{
	enum { N = 20000, PLACES = MAX_MISORDER / 2 };
	static struct arrival sent[N];
	double m[METRICS];
	__u64 seed = 5;
	int bad = 0;

	for (int round = 0; round < 20; round++) {
		__u64 total = 0, bursts = 0, run = 0, late = 0, came = 0;
		struct receiver r = { 0 };

		ours(&r, 40);
		for (int i = 0; i < N; i++) {
			sent[i].seq = r.seq.base + (unsigned int)i;
			sent[i].late = !unit_upto(&seed, 50);
			sent[i].marker = true;
			/* lost: number 0 */
			if (!unit_upto(&seed, 10) || (i && !sent[i - 1].seq && unit_upto(&seed, 1)))
				sent[i].seq = 0;
			run += !sent[i].seq || sent[i].late;
			if (run && sent[i].seq && !sent[i].late) {
				total += run;
				bursts++;
				run = 0;
			}
			late += sent[i].seq && sent[i].late;
			came += sent[i].seq > 0;
		}
		total += run;
		bursts += run > 0;
		for (int i = 0; i < N; i += PLACES) {
			int most = N - i < PLACES ? N - i : PLACES;

			for (int k = most - 1; round && k > 0; k--) {
				int j = (int)unit_upto(&seed, (__u64)k);
				struct arrival a = sent[i + k];

				sent[i + k] = sent[i + j];
				sent[i + j] = a;
			}
		}
		for (int i = 0; i < N; i++) {
			if (!sent[i].seq)
				continue;
			losses_add(&r, &r.losses, &sent[i]);
			delays_add(&r.delays, 10 * MS);
			r.late += sent[i].late;
			r.packets++;
		}
		r.final = true;
		r.sent = N;
		receiver_metrics(&r, m);
		bad += m[M_LOST] != (double)(N - came) || m[M_LATE] != (double)late;
		bad += !close_to(m[M_BURST_RATIO], (double)total / (double)bursts *
				 (1 - m[M_EFFECTIVE_LOSS]), 1e-9);
		receiver_free(&r);
	}
	ok(!bad, "losses: in whatever order packets come");
}

static void test_playout(void)
{
	struct playout p = { .fixed_ms = 30 };
	bool late[4];

	late[0] = playout_late(&p, 10 * MS, true, 20);
	late[1] = playout_late(&p, 40 * MS, false, 20);
	late[2] = playout_late(&p, 41 * MS, false, 20);
	late[3] = playout_late(&p, 41 * MS, true, 20);
	ok(!late[0] && !late[1] && late[2] && !late[3], "playout: fixed, anew in each spurt");
	p = (struct playout) { .fixed_ms = -1 };
	for (int i = 0; i < 5000; i++)
		late[0] = playout_late(&p, 10 * MS, !i, 20);
	ok(!late[0] && close_to(p.point, 20 * MS, 0.1 * MS), "playout: adaptive, steady delay");
}

/* Readings of a rate for so long; returns the changes of mode. */
static unsigned int readings(struct adapt *a, unsigned int seconds, __u64 allowed)
{
	unsigned int before = a->switches;

	for (unsigned int i = 0; i < 10 * seconds; i++)
		adapt_reading(a, true, allowed, false);
	return a->switches - before;
}

static void test_adapt(void)
{
	const struct codec *c = codec_by_name("amr-nb");
	struct adapt a;
	unsigned int changes = 0;

	adapt_init(&a, c, 20, 12, 0);
	readings(&a, 3, 100000);
	ok(a.mode == 7, "adapt: up to the best in three seconds");
	readings(&a, 1, 50 * (20 + 12));
	ok(a.mode == 4, "adapt: down to what fits");
	adapt_reading(&a, true, 0, false);
	ok(a.mode == 4, "adapt: one low reading is none");
	adapt_reading(&a, true, 100000, true);
	ok(a.mode == 3, "adapt: a refusal counts");
	readings(&a, 60, 100000);
	ok(a.mode == 7, "adapt: up again");
	/* the rate just suffices for mode 5, but each time that is chosen it falls */
	for (unsigned int i = 0; i < 3000; i++) {
		unsigned int was = a.mode;

		adapt_reading(&a, true, a.mode >= 5 ? 50 * (20 + 12) : 50 * (22 + 12), false);
		changes += was != a.mode;
	}
	ok(changes < 60, "adapt: it swings %u times in five minutes", changes);
	adapt_init(&a, c, 20, 12, 7);
	adapt_reading(&a, false, 0, true);
	ok(a.mode == 6, "adapt: without a rate refusals tell");
	for (unsigned int i = 0; i < ADAPT_PATIENCE_MIN; i++)
		adapt_reading(&a, false, 0, false);
	ok(a.mode == 7, "adapt: and their absence");
}

int main(void)
{
	test_emodel();
	test_seq();
	test_jitter();
	test_rtp();
	test_sizes();
	test_rtcp();
	test_noise();
	test_stamp();
	test_metrics();
	test_delays();
	test_misorder();
	test_playout();
	test_adapt();
	return unit_end();
}
