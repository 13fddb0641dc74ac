// SPDX-License-Identifier: GPL-2.0
/*
 * The sender, ccid/tfrc_tx.c, against RFC 5348, 4.2 to 4.6 and 8.2, written
 * down in floating point; RFC 4342, 8.1 (window counter) and RFC 5622, 5
 * (headers, Min Interval).
 */
#include <stdlib.h>
#include <string.h>

#include "test_tfrc.h"

#define START	(100 * SEC)
#define SENT	4096

static u64 seed = 51;

static double rate(u64 x)
{
	return x / 64.;
}

/* RFC 5348 as it is printed: seconds, bytes, bytes per second. */
struct ref {
	struct tfrc_params par;
	double	X, X_Bps, X_inst;
	double	X_paid, header;		/* with headers, where these are paid for */
	double	R, R_sqmean;
	double	p;
	double	tld;
	double	s;
	double	bytes[5], packets[5];	/* by loss intervals, the current one first */
	struct {
		double	x, t;
	}	set[TFRC_X_RECV_SET + 1];
	int	n;
	bool	measured;		/* R is */
	bool	feedback;
	bool	limited;		/* the last interval was data-limited */
	bool	idle;
	double	nofeedback;		/* when; infinite: asleep */
	double	rto;
	double	mean_gap;		/* between packets */
	double	covered;		/* when sent what was acknowledged last */
	double	oldest;			/* sent of those remembered */
	double	last, cost;
	double	when[3], gap[3];	/* of the last packets, the newest first */
	double	scale;			/* Min Interval is for smaller packets */
	bool	wait;			/* a packet does */
	struct {
		double	t;
		bool	waited;
	}	sent[SENT];
	u32	n_sent;
};

static bool no_memory;		/* now and then */

/* As the socket layer does it. */
static void note_sent(struct tfrc_tx *tx, u64 seq, u64 now)
{
	static struct rate_sent rings[2][RATE_SENT];	/* of one at a time */
	static u32 turn;

	if (rate_tx_crowded(&tx->rate, now) && (!no_memory || unit_upto(&seed, 9)))
		rate_tx_grow(&tx->rate, rings[turn++ % 2]);
	rate_tx_note(&tx->rate, seq, now);
}

static double mean_size(const struct ref *r)
{
	return fmax(floor(r->s + .5), 1);
}

static double segment(const struct ref *r)
{
	return r->par.s ?: mean_size(r);
}

/* 4.2 */
static double initial_rate(const struct ref *r)
{
	double mss = segment(r);

	return fmin(4 * mss, fmax(2 * mss, 4380)) / r->R;
}

/* RFC 4828, 3, for each packet by itself */
static void pace(struct ref *r, double x)
{
	r->X_inst = x;
	r->header = r->X == r->X_Bps ? r->par.header : 0;
	r->X_paid = x * (mean_size(r) + r->header) / mean_size(r);
}

static void allow(struct ref *r, double x)
{
	r->X = fmax(x, mean_size(r) / 64);
	pace(r, r->X);
}

static double max_recv(const struct ref *r)
{
	double x = 0;
	int i;

	for (i = 0; i < r->n; i++)
		x = fmax(x, r->set[i].x);
	return x;
}

static void only(struct ref *r, double x, double now)
{
	r->set[0].x = x;
	r->set[0].t = now;
	r->n = 1;
}

/* Feedback waits for packets of 560 bytes with headers, 160 ms at most. */
static double feedback_wait(const struct ref *r)
{
	double packets = ceil(560 / (mean_size(r) + 36));

	return packets > 1 ? fmin(packets * r->mean_gap, .16) : 0;
}

static void restart_timer(struct ref *r, double now)
{
	double rto = r->measured ? fmax(4 * r->R, 2 * mean_size(r) / r->X) : 2;

	if (r->measured)
		rto = fmax(rto, 4 * feedback_wait(r));
	r->rto = fmin(rto, 128);
	r->nofeedback = now + r->rto;
	r->idle = true;
}

static void ref_start(struct ref *r, const struct tfrc_params *par, double size,
		      double R, double now)
{
	*r = (struct ref){ .par = *par, .s = size, .X_Bps = INFINITY };
	only(r, INFINITY, now);
	if (R) {
		r->R = R;
		r->measured = true;
		r->tld = now;
		allow(r, initial_rate(r));
	} else {
		allow(r, segment(r));
	}
	restart_timer(r, now);
}

/* No packet waits longer than t_mbi, RFC 5348, 3.1. */
static double ref_due(struct ref *r, double now)
{
	double due = r->last + fmin(r->cost / r->X_paid, TFRC_T_MBI);

	if (!r->last)
		return now;
	r->wait |= due > now;
	due = fmax(due, r->last + r->gap[0]);
	return fmax(due, r->when[2] + r->gap[0] + r->gap[1] + r->gap[2]);
}

static void ref_send(struct ref *r, double size, bool waited, double now)
{
	double due = r->last ? ref_due(r, now) : now;
	double gap = fmin(now - r->last, 4.294967296);

	if (r->last)
		r->mean_gap = r->mean_gap ? .9 * r->mean_gap + .1 * gap : gap;
	r->bytes[0] += size;
	r->packets[0] += size > 0;
	r->last = waited ? fmin(fmax(due, now - .0005), now) : now;
	r->sent[r->n_sent % SENT].t = now;
	r->sent[r->n_sent++ % SENT].waited = r->wait;
	r->wait = false;
	r->cost = size ? size + r->header : 36;
	memmove(r->when + 1, r->when, 2 * sizeof(*r->when));
	memmove(r->gap + 1, r->gap, 2 * sizeof(*r->gap));
	r->when[0] = now;
	r->gap[0] = r->par.min_interval / 1e6;
	if (r->scale)
		r->gap[0] *= fmax(0, 1 - size / r->scale);
	if (r->nofeedback == INFINITY)
		restart_timer(r, now);
	r->idle = false;
}

/* 4.3, step 4, from where recv_limit is known */
static void update(struct ref *r, double limit, double now)
{
	if (r->p > 0) {
		allow(r, fmin(r->X_Bps, limit));
	} else if (now - r->tld >= r->R) {
		allow(r, fmax(fmin(2 * r->X, limit), initial_rate(r)));
		r->tld = now;
	}
}

static void maximize(struct ref *r, double x, double now)
{
	int i;

	for (i = 0; i < r->n; i++)
		if (r->set[i].x != INFINITY)
			x = fmax(x, r->set[i].x);
	only(r, x, now);
}

static void update_set(struct ref *r, double x, double now)
{
	int i, n = 0;

	r->set[r->n].x = x;
	r->set[r->n++].t = now;
	for (i = 0; i < r->n; i++)
		if (now - r->set[i].t <= 2 * r->R)
			r->set[n++] = r->set[i];
	r->n = n;
	if (n > 3) {
		memmove(r->set, r->set + 1, 3 * sizeof(*r->set));
		r->n = 3;
	}
}

/* 4.3: did no packet of the interval covered have to wait? */
static bool data_limited(const struct ref *r, double begin, double end)
{
	u32 i, n = r->n_sent < SENT ? r->n_sent : SENT;

	for (i = 0; i < n; i++)
		if (r->sent[i].t > begin && r->sent[i].t <= end &&
		    r->sent[i].t > r->oldest - 2e-6 &&
		    r->sent[i].waited)
			return false;
	return true;
}

/*
 * @limited: what to take where that hangs on a 32nd of a round trip, for not
 * each packet is noted
 */
static void ref_feedback(struct ref *r, double x_recv, double p, double sample,
			 double t_sent, bool event, bool limited, double now)
{
	bool loss = event || p > r->p, first = !r->measured;
	double limit, begin, end, slack, bytes = 0, packets = 0;
	int i;

	/* To the microsecond, on which may hang what is two round trips old. */
	r->R = r->feedback ? .9 * r->R + .1 * sample : sample;
	r->R = floor(r->R * 1e6 + .5001) / 1e6;
	r->R_sqmean = r->R_sqmean ? .9 * r->R_sqmean + .1 * sqrt(sample) :
				    sqrt(sample);
	r->measured = true;
	r->p = p;
	/* RFC 4828, 3 */
	for (i = 0; i < 5; i++) {
		bytes += r->bytes[i];
		packets += r->packets[i];
	}
	if (packets)
		r->s = bytes / packets;
	if (loss) {
		memmove(r->bytes + 1, r->bytes, 4 * sizeof(*r->bytes));
		memmove(r->packets + 1, r->packets, 4 * sizeof(*r->packets));
		r->bytes[0] = 0;
		r->packets[0] = 0;
	}
	r->X_Bps = INFINITY;
	if (p > 0) {
		r->X_Bps = segment(r) / (r->R * ref_f(p));
		if (r->par.header)
			r->X_Bps *= mean_size(r) / (mean_size(r) + r->par.header);
	}

	end = t_sent ? t_sent : now - r->R;
	/* Before there was a round-trip time, 0.2 s stood for it. */
	slack = fmax(r->R / 16, .2 / 32);
	begin = end - r->R;
	if (r->covered)
		begin = fmin(begin, r->covered);
	r->covered = t_sent;
	r->limited = data_limited(r, begin - slack, end + slack);
	if (r->limited != data_limited(r, begin + slack, end - slack))
		r->limited = limited;
	if (!x_recv)
		r->limited = false;

	if (first) {
		r->tld = now;
		allow(r, fmin(initial_rate(r), r->X_Bps));
	} else {
		if (!x_recv && !r->feedback) {
			limit = INFINITY;
		} else if (!r->limited) {
			update_set(r, x_recv, now);
			limit = 2 * max_recv(r);
		} else if (loss) {
			for (i = 0; i < r->n; i++)
				r->set[i].x /= 2;
			maximize(r, .85 * x_recv, now);
			limit = max_recv(r);
		} else {
			maximize(r, x_recv, now);
			limit = 2 * max_recv(r);
		}
		update(r, limit, now);
	}
	r->feedback = true;
	pace(r, fmax(r->X * r->R_sqmean / sqrt(sample), mean_size(r) / 64));
	restart_timer(r, now);
}

/* 4.4. Where there is nothing to do the timer sleeps until a packet is sent. */
static void ref_expired(struct ref *r, double now)
{
	double X_recv = max_recv(r), recover = 0, limit;

	if (r->measured)
		recover = initial_rate(r);
	if (!r->measured && !r->feedback && !r->idle) {
		allow(r, r->X / 2);
	} else if (!r->measured) {
		;
	} else if (((r->p > 0 && X_recv < recover) ||
		    (r->p == 0 && r->X < 2 * recover)) && r->idle) {
		r->nofeedback = INFINITY;
		return;
	} else if (r->p == 0) {
		allow(r, r->X / 2);
	} else {
		limit = r->X_Bps > 2 * X_recv ? X_recv : r->X_Bps / 2;
		limit = fmax(limit, mean_size(r) / 64);
		only(r, limit / 2, now);
		update(r, 2 * max_recv(r), now);
	}
	restart_timer(r, now);
}

/* Both of them, and what has gone wrong. */
struct pair {
	struct tfrc_tx	tx;
	struct ref	r;
	double		tolerance;
	u64		seq;
	u64		rates, sets, timers, dues, flags;
};

static bool off(double got, double want, double tolerance)
{
	if (want == INFINITY || want > rate(TFRC_RATE_MAX))
		want = rate(TFRC_RATE_MAX);
	return fabs(got - want) > want * tolerance + .1;
}

/* Which of two limits counts may hang on the last digit, and with it the headers. */
static void same_limit(struct pair *c)
{
	struct ref *r = &c->r;

	if (fabs(r->X - r->X_Bps) > 2 * c->tolerance * r->X_Bps + .1)
		return;
	r->header = c->tx.rate.header_paid;
	r->X_paid = r->X_inst * (mean_size(r) + r->header) / mean_size(r);
}

static void compare(struct pair *c)
{
	const struct tfrc_tx *tx = &c->tx;
	const struct ref *r = &c->r;
	double tolerance = c->tolerance, x_recv = max_recv(r);

	same_limit(c);
	c->rates += off(rate(tx->x), r->X, tolerance) ||
		    off(rate(tx->x_inst), r->X_inst, tolerance) ||
		    off(rate(tx->x_calc), r->X_Bps, tolerance);
	c->rates += r->measured && off(tx->rate.rtt, r->R * 1e6, 1e-3);
	c->sets += off(rate(tfrc_tx_x_recv(tx)), x_recv, tolerance) ||
		   (x_recv != INFINITY && tx->n_recv != r->n);
	if (r->nofeedback == INFINITY)
		c->timers += tx->t_nofeedback != 0;
	else
		c->timers += fabs(tx->t_nofeedback / 1e9 - r->nofeedback) >
			     1e-5 + (tolerance + .1 / r->X) * r->rto;
	c->flags += tx->data_limited != r->limited || tx->idle != r->idle;
}

/*
 * What is older than two and a half round trips, and than what is acknowledged,
 * may be forgotten. Where the round trip grows, it is missed.
 */
static void forget(struct pair *c, u64 now)
{
	const struct tfrc_tx *tx = &c->tx;
	const struct rate_sent *ring = tx->rate.grown ?: tx->rate.first;
	u32 oldest = tx->rate.n_sent >= tx->rate.room ? tx->rate.n_sent : 0;
	u64 age = (u32)(now >> 10) - ring[oldest & (tx->rate.room - 1)].time;

	c->r.oldest = oldest ? (now - (age << 10)) / 1e9 : 0;
}

static void pair_feedback(struct pair *c, u32 x_recv, u32 pinv, u32 rtt,
			  u64 t_sent, bool event, u64 now)
{
	struct tfrc_feedback_in fb = {
		.x_recv = x_recv, .pinv = pinv, .rtt = rtt, .t_sent = t_sent,
		.new_event = event,
	};

	forget(c, now);
	tfrc_tx_feedback(&c->tx, &fb, now);
	ref_feedback(&c->r, x_recv, pinv == TFRC_PINV_NONE ? 0 : 256. / pinv,
		     rtt / 1e6, t_sent / 1e9, event, c->tx.data_limited,
		     now / 1e9);
	compare(c);
}

/* Time passes, and the nofeedback timer with it. */
static void pair_wait(struct pair *c, u64 *now, u64 time)
{
	u64 until = *now + time;

	while (c->tx.t_nofeedback && c->tx.t_nofeedback <= until) {
		*now = c->tx.t_nofeedback;
		tfrc_tx_expired(&c->tx, *now);
		ref_expired(&c->r, *now / 1e9);
		compare(c);
	}
	*now = max(*now, until);
}

static void pair_offer(struct pair *c, u64 *now, u32 size)
{
	u64 due = rate_tx_due(&c->tx.rate, *now);
	double want = ref_due(&c->r, *now / 1e9);
	double slack = 2e-6 + (c->tolerance + .1 / c->r.X_inst) *
			      fabs(want - c->r.last);
	double early = c->r.last - *now / 1e9 +
		       fmin(c->r.cost / c->r.X_paid, TFRC_T_MBI);
	bool waited = false;

	c->dues += fabs(due / 1e9 - want) > slack;
	/* Whether it is limited may hang on a microsecond. */
	c->flags += c->tx.rate.limited != c->r.wait && fabs(early) > slack;
	c->r.wait = c->tx.rate.limited;

	if (due > *now) {
		if (due - *now > 2 * SEC)
			return;
		waited = true;
		/* Timers are late. The next thing may come first. */
		pair_wait(c, now, due - *now + 10 * USEC +
			  unit_upto(&seed, MSEC));
		due = rate_tx_due(&c->tx.rate, *now);
		want = ref_due(&c->r, *now / 1e9);
		if (due > *now || want > *now / 1e9)
			return;
	}
	tfrc_tx_send(&c->tx, size, waited, *now);
	note_sent(&c->tx, ++c->seq, *now);
	ref_send(&c->r, size, waited, *now / 1e9);
	compare(c);
	/* Errors of many spacings are not to add up. */
	c->r.last = c->tx.rate.t_last / 1e9;
}

static void pair_init(struct pair *c, const struct tfrc_params *par, u32 size,
		      u32 rtt, u64 now)
{
	memset(c, 0, sizeof(*c));
	c->tolerance = 2e-3;
	tfrc_tx_init(&c->tx, par);
	tfrc_tx_start(&c->tx, size, rtt, now);
	ref_start(&c->r, par, size, rtt / 1e6, now / 1e9);
	compare(c);
}

/*
 * @greedy: packets wait most of the time; else the sender is data-limited, if
 * not always. @pause: how often all is silent, times a thousand.
 */
static void test_random(const char *name, const struct tfrc_method *method,
			bool mixed, bool greedy, u32 pause)
{
	u64 i, j, rates = 0, sets = 0, timers = 0, dues = 0, flags = 0;
	u64 limited = 0, expired = 0;

	for (i = 0; i < unit_samples(1500); i++) {
		u32 base = 10000 + unit_log_upto(&seed, 500000), losses = 0;
		u32 size = 100 + unit_upto(&seed, 1300), pinv = TFRC_PINV_NONE;
		u64 now = START + unit_upto(&seed, SEC);
		static struct pair c;

		pair_init(&c, &method->defaults, size,
			  unit_upto(&seed, 1) ? base : 0, now);
		if (mixed)
			c.tolerance = 1e-2;
		for (j = 0; j < 400; j++) {
			u32 rtt = base / 2 + unit_upto(&seed, base);
			u64 t_sent = now - rtt * USEC;
			bool event = false;
			double x;

			if (unit_upto(&seed, 999) < pause)
				pair_wait(&c, &now,
					  unit_log_upto(&seed, 100 * SEC));
			if (unit_upto(&seed, 2)) {
				u64 silence = unit_upto(&seed, 2 * rtt * USEC);

				if (!greedy)
					pair_wait(&c, &now, silence);
				if (mixed)
					size = 100 + unit_upto(&seed, 1300);
				pair_offer(&c, &now, size);
				continue;
			}
			pair_wait(&c, &now, unit_upto(&seed, rtt * USEC));
			if (unit_upto(&seed, 9) == 0 || losses) {
				if (!losses++)
					pinv = 256 + unit_log_upto(&seed, 1 << 20);
				else
					pinv = max(256., pinv * (.9 + .2 *
						   unit_unit(&seed)));
				event = !unit_upto(&seed, 4);
			}
			x = c.r.X * (.2 + 1.2 * unit_unit(&seed));
			pair_feedback(&c, c.r.feedback ? fmin(x, 1e9) : 0, pinv,
				      rtt, unit_upto(&seed, 9) ? t_sent : 0,
				      event, now);
			limited += c.r.limited;
		}
		expired += c.tx.nofeedback;
		rates += c.rates;
		sets += c.sets;
		timers += c.timers;
		dues += c.dues;
		flags += c.flags;
	}
	note("%s: %llu data-limited, %llu expiries", name, limited, expired);
	ok(!rates, "%s: X, X_inst, X_Bps, R", name);
	ok(!sets, "%s: X_recv_set", name);
	ok(!timers, "%s: nofeedback timer", name);
	ok(!dues, "%s: nominal send times", name);
	ok(!flags, "%s: data-limited or idle", name);
}

static void feed(struct tfrc_tx *tx, u32 x_recv, u32 pinv, u32 rtt, u64 t_sent,
		 u64 now)
{
	tfrc_tx_feedback(tx, &(struct tfrc_feedback_in){ .x_recv = x_recv,
			 .pinv = pinv, .rtt = rtt, .t_sent = t_sent }, now);
}

static void begin(struct tfrc_tx *tx, const struct tfrc_params *par, u32 size,
		  u32 rtt)
{
	memset(tx, 0, sizeof(*tx));
	tfrc_tx_init(tx, par);
	tfrc_tx_start(tx, size, rtt, START);
}

static const struct tfrc_params plain;

static void test_start(void)
{
	static const struct { u32 s, window; } windows[] = {
		{ 14, 56 }, { 1000, 4000 }, { 1095, 4380 }, { 1460, 4380 },
		{ 2190, 4380 }, { 3000, 6000 }, { 65535, 131070 },
	};
	struct tfrc_tx tx;
	u32 i, bad = 0;
	u64 now, x;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		begin(&tx, &plain, windows[i].s, 100000);
		bad += off(rate(tx.x), windows[i].window * 10, 1e-6);
	}
	ok(!bad, "initial rate: min(4s, max(2s, 4380)) / R");
	begin(&tx, &tfrc_sp.defaults, 160, 100000);
	ok(!off(rate(tx.x), 43800, 1e-6), "initial rate: of TFRC-SP, with 1460");
	begin(&tx, &plain, 1000, 0);
	ok(rate(tx.x) == 1000 && tfrc_tx_rto(&tx) == 2000000,
	   "start: s a second and a timer of 2 s without a round-trip time");
	tfrc_tx_send(&tx, 1000, false, START);
	for (i = 0, now = START; i < 20; i++) {
		now = tx.t_nofeedback;
		tfrc_tx_expired(&tx, now);
		tfrc_tx_send(&tx, 1000, false, now);
		bad += rate(tx.x) != fmax(1000. / (2ULL << i), 1000 / 64.);
	}
	ok(!bad && now - START == 20 * 2 * SEC,
	   "start: halved at each expiry, to a packet in 64 s");
	feed(&tx, 0, TFRC_PINV_NONE, 100000, 0, now);
	ok(!off(rate(tx.x), 40000, 1e-6) && tx.rate.rtt == 100000,
	   "start: initial rate at the first feedback");

	/* 4.3: feedback four times a round trip, doubled once in it */
	begin(&tx, &plain, 1000, 100000);
	for (i = 1; i <= 40; i++) {
		x = tx.x;
		feed(&tx, 1000000000, TFRC_PINV_NONE, 100000, 0,
		     START + i * 25 * MSEC);
		bad += tx.x != x << !(i % 4);
	}
	ok(!bad && !off(rate(tx.x), 40000 * 1024, 1e-6),
	   "slow start: doubles once per round trip");
	/* At most twice what arrives, but for the first two round trips. */
	begin(&tx, &plain, 1000, 100000);
	now = START;
	for (i = 0; i < 6; i++) {
		now += 100 * MSEC;
		tx.rate.limited = true;
		note_sent(&tx, i, now - 150 * MSEC);
		feed(&tx, 50000, TFRC_PINV_NONE, 100000, now - 100 * MSEC, now);
		if (i == 0)
			bad += off(rate(tx.x), 80000, 1e-6);
	}
	ok(!bad && rate(tx.x) == 100000,
	   "slow start: not beyond twice the receive rate");
}

/*
 * The first feedback says that the receive rate is 0 (RFC 5348, 6.3), which is
 * no measurement, also if it comes late and has a loss event.
 */
static void test_first_feedback(void)
{
	struct tfrc_tx tx;

	begin(&tx, &plain, 1000, 100000);
	feed(&tx, 0, 4 << 8, 100000, 0, START + SEC);
	ok(!off(rate(tx.x), 1000 / (.1 * ref_f(.25)), 1e-3),
	   "first feedback: a loss event, and no receive rate yet");
	feed(&tx, 0, 4 << 8, 100000, 0, START + 2 * SEC);
	ok(rate(tx.x) == 1000 / 64., "first feedback: the next one measures");
}

/* RFC 4342, 5.2: X_drop, for a round trip. */
static void test_spare_receiver(void)
{
	static const struct { u32 x_recv, dropped, slow; double x; } cases[] = {
		{ 10000, 0, 1, 10000 }, { 10000, 3, 0, 7000 }, { 10000, 3, 1, 7000 },
		{ 10000, 9, 0, 1000 }, { 10000, 10, 0, 1000 },
		{ 10000, 0xffffffff, 1, 1000 }, { 500, 1, 0, 500 }, { 500, 0, 1, 500 },
		{ 0, 2, 0, 41800 }, { 0xffffffff, 0xffffffff, 0, 1000 },
	};
	struct tfrc_feedback_in fb = { .pinv = TFRC_PINV_NONE, .rtt = 100000 };
	u32 i, now_bad = 0, then_bad = 0, later_bad = 0;
	struct tfrc_tx tx;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&tx, &plain, 100, 100000);
		tx.x = 43800ULL << TFRC_RATE_SHIFT;
		fb.x_recv = cases[i].x_recv;
		fb.dropped = cases[i].dropped;
		fb.slow = cases[i].slow;
		tfrc_tx_feedback(&tx, &fb, START + SEC);
		now_bad += rate(tx.x) > cases[i].x * 1.000001 ||
			   off(rate(tx.x), cases[i].x, 1e-6);
		feed(&tx, 20000, TFRC_PINV_NONE, 100000, 0, START + SEC + 99 * MSEC);
		then_bad += rate(tx.x) > cases[i].x * 1.000001;
		feed(&tx, 20000, TFRC_PINV_NONE, 100000, 0, START + SEC + 101 * MSEC);
		later_bad += rate(tx.x) < fmin(2 * cases[i].x, 25000);
	}
	/* Under the limit a packet less is received, and one less again. */
	begin(&tx, &plain, 100, 100000);
	tx.x = 43800ULL << TFRC_RATE_SHIFT;
	fb.dropped = 0;
	fb.slow = 1;
	for (i = 0; i < 5; i++) {
		fb.x_recv = 10000 - 1000 * i;
		tfrc_tx_feedback(&tx, &fb, START + SEC + i * 110 * MSEC);
		now_bad += rate(tx.x) != 10000;
	}
	fb.dropped = 1;
	tfrc_tx_feedback(&tx, &fb, START + SEC + i * 110 * MSEC);
	now_bad += rate(tx.x) != 5000;
	/* What was received before the limit, or by chance, does not raise it. */
	fb.dropped = 0;
	for (i = 0; i < 200; i++) {
		fb.x_recv = 8000 + unit_upto(&seed, 4000);
		tfrc_tx_feedback(&tx, &fb, START + SEC + (6 + i) * 110 * MSEC);
		then_bad += rate(tx.x) > 5000;
	}
	fb.x_recv = 4000;
	tfrc_tx_feedback(&tx, &fb, START + SEC + (6 + i) * 110 * MSEC + 201 * MSEC);
	now_bad += rate(tx.x) != 4000;
	ok(!now_bad, "Slow Receiver, Data Dropped: X is X_drop");
	ok(!then_bad, "Slow Receiver, Data Dropped: within a round trip it stays");
	ok(!later_bad, "Slow Receiver, Data Dropped: after that nothing is left of it");
}

/* RFC 4340, 11.7.2: what was corrupt counts as marked, also where nothing is lost. */
static void test_corrupt(void)
{
	struct tfrc_feedback_in fb = { .rtt = 100000 };
	struct tfrc_tx tx;
	u64 now = START;
	u32 i, before;

	begin(&tx, &plain, 1000, 100000);
	fb.x_recv = 1000000;
	for (i = 0; i < 200; i++) {
		now += 100 * MSEC;
		fb.pinv = TFRC_PINV_NONE;
		fb.corrupt = i & 1;
		tx.intact += 50;
		tfrc_tx_feedback(&tx, &fb, now);
	}
	ok(tfrc_tx_mean_interval(&tx) == 100 << 8 && tx.pinv == TFRC_PINV_NONE,
	   "corrupt: an event in 100 packets, of which the report knows nothing");
	ok(!off(rate(tx.x), 1000 / (.1 * ref_f(.01)), 1e-3), "corrupt: and its rate");
	fb.pinv = 300 << 8;
	fb.corrupt = 0;
	tfrc_tx_feedback(&tx, &fb, now += 100 * MSEC);
	ok(tfrc_tx_mean_interval(&tx) == 75 << 8,
	   "corrupt: its rate adds to that of loss events");

	before = tx.corrupt_gap;
	tx.intact = 100;
	fb.pinv = TFRC_PINV_NONE;
	fb.corrupt = 100;
	tfrc_tx_feedback(&tx, &fb, now += 100 * MSEC);
	for (i = 0; i < 9; i++)
		tfrc_tx_feedback(&tx, &fb, now += 10 * MSEC);
	ok(tx.corrupt_gap == before, "corrupt: one event in a round trip");

	fb.corrupt = 0;
	for (i = 0; i < 10000; i++)
		tfrc_tx_send(&tx, 1000, false, now);
	tfrc_tx_feedback(&tx, &fb, now += 100 * MSEC);
	i = tfrc_tx_mean_interval(&tx) >> 8;
	ok(i > 2000 && i < 2500, "corrupt: a long interval since then counts: %u", i);
	fb.pinv = TFRC_PINV_ONE;
	for (i = 0; i < 100; i++) {
		fb.corrupt = 1;
		tfrc_tx_feedback(&tx, &fb, now += 100 * MSEC);
	}
	ok(tfrc_tx_mean_interval(&tx) == TFRC_PINV_ONE, "corrupt: p is not above 1");
}

static void test_idle(void)
{
	struct tfrc_tx tx;
	u32 i, n;
	u64 now;

	/* RFC 4342, 5.1: a pause of 30 s in slow start */
	begin(&tx, &plain, 1000, 100000);
	for (i = 1; i <= 6; i++) {
		tfrc_tx_send(&tx, 1000, false, START + i * 100 * MSEC);
		feed(&tx, 1000000000, TFRC_PINV_NONE, 100000, 0,
		     START + i * 100 * MSEC);
	}
	now = START + SEC;
	for (n = 0; tx.t_nofeedback && tx.t_nofeedback < now + 30 * SEC; n++)
		tfrc_tx_expired(&tx, tx.t_nofeedback);
	ok(!tx.t_nofeedback && n > 3 && n < 10,
	   "idle: the timer goes to sleep");
	ok(rate(tx.x) >= 40000 && rate(tx.x) < 80000,
	   "idle: not below the initial rate");
	now += 30 * SEC;
	ok(rate_tx_due(&tx.rate, now) <= now, "idle: may send at once");
	tfrc_tx_send(&tx, 1000, false, now);
	ok(tx.t_nofeedback == now + 4 * 100 * MSEC && !tx.idle,
	   "idle: a packet wakes the timer");
	tfrc_tx_expired(&tx, tx.t_nofeedback);
	ok(rate(tx.x) < 40000 && tx.t_nofeedback,
	   "idle: without feedback then it is halved");

	/* The same after a loss, by X_recv. */
	begin(&tx, &plain, 1000, 100000);
	tfrc_tx_send(&tx, 1000, false, START);
	feed(&tx, 400000, 10000 << 8, 100000, START, START + 100 * MSEC);
	feed(&tx, 400000, 10000 << 8, 100000, START + 250 * MSEC,
	     START + 350 * MSEC);
	while (tx.t_nofeedback)
		tfrc_tx_expired(&tx, tx.t_nofeedback);
	ok(rate(tx.x) >= 20000 && rate(tx.x) <= 80000,
	   "idle: after a loss not below half the initial rate");

	/* No burst after a silence. */
	tfrc_tx_send(&tx, 1000, false, now);
	now += 100 * SEC;
	tfrc_tx_send(&tx, 1000, false, now);
	ok(fabs((rate_tx_due(&tx.rate, now) - now) / 1e9 - 1000 / rate(tx.x)) < 1e-6,
	   "idle: no burst after it");
}

static void test_oscillation(void)
{
	struct tfrc_tx tx;
	double factor;
	u32 i;

	begin(&tx, &plain, 1000, 100000);
	for (i = 1; i < 10; i++)
		feed(&tx, 10000, 100 << 8, 100000, 0, START + i * 100 * MSEC);
	ok(!off(tx.x_inst, tx.x, 1e-6), "oscillations: R as ever");
	feed(&tx, 10000, 100 << 8, 200000, 0, START + 10 * 100 * MSEC);
	factor = (.9 * sqrt(.1) + .1 * sqrt(.2)) / sqrt(.2);
	ok(!off(tx.x_inst, tx.x * factor, 1e-5),
	   "oscillations: X * R_sqmean / sqrt(R_sample)");
	tx.x = 1;
	feed(&tx, 0, 256, 16000000, 0, START + SEC);
	ok(rate(tx.x_inst) == 1000 / 64., "oscillations: a packet in 64 s");
	tx.r_sqmean = 4000 << 16;
	tx.x_recv_set[0].x = TFRC_RATE_MAX;
	tx.x_recv_set[0].time = START + SEC;
	feed(&tx, U32_MAX, TFRC_PINV_MAX << 8, 100, 0, START + SEC + 1);
	tx.x = TFRC_RATE_MAX / 2;
	feed(&tx, U32_MAX, TFRC_PINV_NONE, 100, 0, START + 2 * SEC);
	ok(tx.x_inst <= TFRC_RATE_MAX, "oscillations: not above the greatest");
}

/* RFC 4828, 3: X * s/(s + H), where the equation limits. */
static void test_header(void)
{
	struct tfrc_params par = tfrc_sp.defaults;
	double eq = 1460 / (.1 * ref_f(.01));
	struct tfrc_tx tx;
	u32 b;

	begin(&tx, &par, 144, 100000);
	feed(&tx, 10000000, 100 << 8, 100000, 0, START + MSEC);
	ok(!off(rate(tx.x), eq * 144 / 180, 1e-4),
	   "headers: the equation's rate is scaled by s/(s + H)");
	b = rate_tx_packet(&tx.rate, 20000);
	ok(abs((int)b - (int)(eq * .02 - 36)) <= 1,
	   "headers: what a packet may carry has room for them");
	ok(rate_tx_packet(&tx.rate, 1) == rate_tx_packet(&tx.rate, 10000),
	   "packet: no more often than Min Interval");
	ok(rate_tx_packet(&tx.rate, 10000000) == 65535, "packet: 65535 at most");
	tx.rate.min_interval = 0;
	ok(rate_tx_packet(&tx.rate, 1) == 0, "packet: no room for headers alone");
	tx.par = par;

	tx.n_recv = 0;
	tx.rate.limited = true;
	note_sent(&tx, 1, START + 50 * MSEC);
	feed(&tx, 10000, 100 << 8, 100000, START + 60 * MSEC, START + 300 * MSEC);
	ok(rate(tx.x) == 20000, "headers: the receive rate's limit is not");
	ok(rate_tx_packet(&tx.rate, 20000) == 400,
	   "packet: without headers where that limits");
	begin(&tx, &par, 144, 100000);
	ok(!off(rate(tx.x), 43800, 1e-6), "headers: nor is slow start");

	/* RFC 4828, 3: s is no more than what the path takes at present. */
	begin(&tx, &tfrc_vp_packet.defaults, 144, 100000);
	tx.rate.s_max = 536;
	feed(&tx, 10000000, 100 << 8, 100000, 0, START + MSEC);
	ok(tfrc_tx_segment(&tx) == 536 &&
	   !off(rate(tx.x), eq * 536 / 1460 * 144 / 180, 1e-4),
	   "segment: of a path with a small MTU");
	tx.rate.s_max = 1460;
	feed(&tx, 10000000, 100 << 8, 100000, 0, START + 2 * MSEC);
	ok(!off(rate(tx.x), eq * 144 / 180, 1e-4),
	   "segment: when the MTU has grown");

	/* Whatever their size, packets take what TCP would, on the wire. */
	for (b = 1; b < 1460; b += b) {
		begin(&tx, &tfrc_vp_packet.defaults, b, 100000);
		feed(&tx, 10000000, 100 << 8, 100000, 0, START + MSEC);
		ok(!off(rate(tx.x) * (b + 36) / b, eq, b < 16 ? 1e-2 : 1e-4),
		   "headers: virtual packets of %u bytes pay for them", b);
	}
	par.header = 0;
	begin(&tx, &par, 144, 100000);
	feed(&tx, 10000000, 100 << 8, 100000, 0, START + MSEC);
	ok(!off(rate(tx.x), eq, 1e-4), "headers: none, if they are not charged");
	ok(abs((int)rate_tx_packet(&tx.rate, 20000) - (int)(eq * .02)) <= 1,
	   "packet: all of the rate then");
}

/* RFC 4828, 3: the mean over the current loss interval and four before. */
static void test_mean_size(void)
{
	static const u32 want[] = { 850, 742, 662, 600, 500, 100 };
	struct tfrc_tx tx;
	u64 now = START;
	u32 i, j, bad = 0;

	begin(&tx, &tfrc_sp.defaults, 1000, 100000);
	for (i = 0; i < 5; i++) {
		for (j = 0; j < 100; j++)
			tfrc_tx_send(&tx, 1000, false, now += 10 * MSEC);
		feed(&tx, 100000, (100 + i) << 8, 100000, 0, now);
	}
	ok(tx.s_mean == 1000 << 8, "mean size: of packets that are alike");
	/*
	 * Each 1/p is less than the one before: a loss event. The first interval
	 * had 100 packets, the next one 400 of the large ones.
	 */
	for (i = 0; i < 6; i++) {
		for (j = 0; j < 100; j++)
			tfrc_tx_send(&tx, 100, false, now += 10 * MSEC);
		feed(&tx, 100000, (90 - i) << 8, 100000, 0, now);
		bad += tx.s_mean >> 8 != want[i];
	}
	ok(!bad, "mean size: over the current interval and four before");
	tfrc_tx_send(&tx, 0, false, now += 10 * MSEC);
	feed(&tx, 100000, 85 << 8, 100000, 0, now);
	ok(tx.s_mean == 100 << 8, "mean size: not of empty packets");
}

/* Offer packets about each @gap; send as allowed, @late at most. */
static u32 paced(struct tfrc_tx *tx, u64 *sent, u32 n, u64 gap, u64 late,
		 u64 *bytes, bool mixed)
{
	u64 offered = START, now;
	u32 i, size = 200;

	for (i = 0; i < n; i++) {
		bool waited;
		u64 due;

		if (gap)
			offered += unit_upto(&seed, 2 * gap);
		now = max(offered, i ? sent[i - 1] : 0);
		if (mixed)
			size = 1 + unit_upto(&seed, 1459);
		due = rate_tx_due(&tx->rate, now);
		waited = due > now;
		if (waited)
			now = due + (late ? unit_upto(&seed, late) : 0);
		tfrc_tx_send(tx, size, waited, now);
		sent[i] = now;
		if (bytes && i < n - 1)
			*bytes += size;
	}
	return i;
}

/*
 * A codec that takes what rate_tx_packet() says can send it, from the first packet
 * on, however long the mean size is that of another mode.
 */
static void test_modes(void)
{
	static const u32 sizes[] = { 20, 60, 172, 400, 1000 };
	u64 bad = 0, sent, now;
	struct tfrc_tx tx;
	u32 i, j, k, b;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		begin(&tx, &tfrc_sp.defaults, sizes[i], 240000);
		now = START;
		for (j = 0; j < 3000; j++)
			tfrc_tx_send(&tx, sizes[i], false, now += 20 * MSEC);
		feed(&tx, 10000000, 20 << 8, 240000, 0, now);
		for (k = 20; k <= 200; k += 20) {
			b = rate_tx_packet(&tx.rate, k * 1000);
			now += SEC;
			for (sent = 0; sent < 10; sent++) {
				u64 due = rate_tx_due(&tx.rate, now);

				/* a byte more or less than it would be */
				bad += sent && (due > now + k * MSEC / b ||
						due + 2 * k * MSEC / b < now);
				tfrc_tx_send(&tx, b, due > now, max(due, now));
				now += k * MSEC;
			}
		}
	}
	ok(!bad, "packet: what it says can be sent at once, whatever was before");
}

/* RFC 5622, 5: no more than three packets in 30 ms. */
static void test_interval(void)
{
	static u64 sent[20000];
	struct tfrc_tx tx;
	u32 i, bad = 0, jitter;
	u64 n = unit_samples(20000), least = U64_MAX;

	for (jitter = 0; jitter < 20; jitter += 3) {
		begin(&tx, &tfrc_sp.defaults, 200, 1000);
		paced(&tx, sent, n, jitter * MSEC, 0, NULL, false);
		for (i = 3; i < n; i++)
			bad += sent[i] - sent[i - 3] < 30 * MSEC;
	}
	ok(!bad, "Min Interval: three packets in 30 ms at most");
	for (jitter = 0; jitter < 20; jitter += 3) {
		begin(&tx, &tfrc_sp.defaults, 200, 1000);
		paced(&tx, sent, n, jitter * MSEC, 2 * MSEC, NULL, false);
		for (i = 3; i < n; i++)
			least = min(least, sent[i] - sent[i - 3]);
	}
	ok(least >= 30 * MSEC, "Min Interval: with late timers, too");
	begin(&tx, &tfrc_sp.defaults, 200, 1000);
	paced(&tx, sent, n, 0, RATE_CREDIT, NULL, false);
	ok(!off(n / ((sent[n - 1] - START) / 1e9), 100, 1e-2),
	   "Min Interval: late timers cost less than a hundredth of the rate");
}

/* Of virtual packets, small ones alone wait for a Min Interval. */
static void test_scaled_interval(void)
{
	static const u32 sizes[] = { 0, 1, 36, 146, 730, 1459, 1460, 2000 };
	static u64 sent[20000];
	u64 n = unit_samples(20000), bytes = 0, bad = 0;
	double gaps = 0;
	struct tfrc_tx tx;
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		double gap = .01 * fmax(0, 1 - sizes[i] / 1460.);

		begin(&tx, &tfrc_vp_packet.defaults, 200, 1000);
		tx.rate.interval_s = 1460;
		tx.rate.x_paid = TFRC_RATE_MAX;
		for (j = 0; j < 9; j++) {
			sent[j] = rate_tx_due(&tx.rate, j ? sent[j - 1] : START);
			tfrc_tx_send(&tx, sizes[i], true, sent[j]);
		}
		bad += fabs((sent[8] - sent[0]) / 8e9 - gap) > 4e-8;
	}
	ok(!bad, "Min Interval, scaled: (1 - s/S) of it");

	begin(&tx, &tfrc_vp_packet.defaults, 200, 1000);
	tx.rate.interval_s = 1460;
	tx.rate.x_paid = TFRC_RATE_MAX;
	paced(&tx, sent, n, 0, 2 * MSEC, &bytes, true);
	gaps = .01 * (n - 1 - bytes / 1460.);
	ok((sent[n - 1] - sent[0]) / 1e9 > gaps,
	   "Min Interval, scaled: with sizes that vary, and late timers");

	begin(&tx, &tfrc_vp_packet.defaults, 200, 1000);
	tx.rate.interval_s = 1460;
	feed(&tx, 10000000, 100 << 8, 100000, 0, START + MSEC);
	for (i = 1; i <= 10000; i += 7) {
		double room = rate_tx_packet(&tx.rate, i);
		double at = rate(tx.rate.x_paid);
		double us = 1e6 * (room + 36.5) / at, error = 1e6 / at + 1;
		double least = 10000 * (1 - room / 1460);

		bad += us < least - error || us < i - error;
		bad += us > fmax(i, least) + error;
	}
	ok(!bad, "packet: what may go once in an interval");
}

/* R over the time between packets, which Min Interval may lengthen. */
static void test_flight(void)
{
	u64 n = unit_samples(100000), bad = 0, slow = 0, many = 0;
	struct tfrc_params par = {};

	for (; n; n--) {
		u32 size = unit_log_upto(&seed, 65535) + 1;
		u32 rtt = TFRC_RTT_MIN + unit_log_upto(&seed, 15000000), got;
		struct tfrc_tx tx;
		double gap, least, most;

		par.min_interval = n % 2 ? unit_log_upto(&seed, 1000000) : 0;
		begin(&tx, &par, size, rtt);
		tx.x = unit_log_upto(&seed, TFRC_RATE_MAX - 1) + 1;
		gap = fmin(size / rate(tx.x), TFRC_T_MBI);
		slow += gap < par.min_interval / 1e6;
		gap = fmax(gap, par.min_interval / 1e6) * 1e9;

		/* The module's gap is whole ns, rounded down; 1 at least. */
		least = 1e3 * rtt / fmax(gap * (1 + 1e-12), 1);
		most = 1e3 * rtt / fmax(floor(gap * (1 - 1e-12)), 1);
		many += least >= TFRC_FLIGHT_MAX;
		got = tfrc_tx_flight(&tx);
		bad += got > fmin(fmax(most, 1), TFRC_FLIGHT_MAX) ||
		       got < fmin(fmax(least - 1, 1), TFRC_FLIGHT_MAX);
	}
	note("in flight: %llu with Min Interval, %llu with the most", slow, many);
	ok(!bad && slow && many, "in flight: R over the time between packets");
}

static void test_pacing(void)
{
	static u64 sent[20000];
	struct tfrc_tx tx;
	u64 n = unit_samples(20000), bytes = 0;
	u32 i, bad = 0;

	begin(&tx, &plain, 200, 100000);
	tx.rate.x_paid = 1000000 << 6;
	paced(&tx, sent, n, 0, 0, &bytes, true);
	ok(!off(bytes / ((sent[n - 1] - START) / 1e9), 1000000, 1e-3),
	   "pacing: by bytes, with packets of all sizes");
	/* A timer that is later than that is no credit. */
	begin(&tx, &plain, 200, 100000);
	tx.rate.x_paid = 1000000 << 6;
	paced(&tx, sent, n, 0, 20 * MSEC, NULL, false);
	for (i = 1; i < n; i++)
		bad += sent[i] - sent[i - 1] + RATE_CREDIT <
		       tfrc_spacing(200, tx.rate.x_paid);
	for (i = 8; i < n; i++)
		bad += sent[i] - sent[i - 8] + RATE_CREDIT <
		       8 * tfrc_spacing(200, tx.rate.x_paid);
	ok(!bad, "pacing: at most half a millisecond early");
	begin(&tx, &plain, 200, 100000);
	tfrc_tx_send(&tx, 0, false, START);
	ok(rate_tx_due(&tx.rate, START) - START == tfrc_spacing(36, tx.x_inst),
	   "pacing: an empty packet costs its headers");
	ok(tx.s_mean == 200 << 8, "pacing: but tells nothing of the mean size");
}

/* RFC 4342, 8.1 */
static void test_counter(void)
{
	struct tfrc_tx tx;
	u64 now = START;
	u32 i, bad = 0, wc = 0, was[4];

	begin(&tx, &plain, 1000, 100000);
	for (i = 0; i < 1000; i++) {
		tfrc_tx_send(&tx, 1000, false, now);
		bad += tx.rate.wc != (now - START) / (25 * MSEC);
		now += unit_upto(&seed, 60 * MSEC);
	}
	ok(!bad, "counter: goes on each quarter of a round trip");
	for (i = 0; i < 1000; i++) {
		u32 silent = unit_upto(&seed, 20);

		wc = tx.rate.wc;
		tx.rate.t_wc = now;
		now += silent * 25 * MSEC + 1;
		tfrc_tx_send(&tx, 1000, false, now);
		bad += tx.rate.wc - wc != min(silent, 5U);
		/* Beyond 5 it begins anew: no counters are made up for. */
		wc = tx.rate.wc;
		tfrc_tx_send(&tx, 1000, false, now + 25 * MSEC - 2);
		bad += tx.rate.wc != wc;
	}
	ok(!bad, "counter: by 5 at most");

	for (i = 0; i < 16; i++) {
		tx.rate.wc = 30;
		tx.rate.t_wc = now - 1;
		rate_tx_acked_wc(&tx.rate, 30 - i, now + i);
		bad += tx.rate.wc != (i < 4 ? 34 - i : 30);
		bad += (i < 4) != (tx.rate.t_wc == now + i);
	}
	ok(!bad, "counter: 4 above that of an acknowledged packet at least");

	/*
	 * Packets each 37 ms, acknowledged after 100: the counter goes by the
	 * clock, 4 steps a round trip, and each is 4 above that acknowledged.
	 */
	begin(&tx, &plain, 1000, 100000);
	for (i = 0; i < 1000; i++) {
		now = START + i * 37 * MSEC;
		/* the one sent 111 ms ago was acknowledged 11 ms ago */
		if (i > 2)
			rate_tx_acked_wc(&tx.rate, was[(i - 3) % 4],
					 now - 11 * MSEC);
		tfrc_tx_send(&tx, 1000, false, now);
		bad += i > 2 && tx.rate.wc - was[(i - 3) % 4] < 4;
		was[i % 4] = tx.rate.wc;
	}
	ok(!bad && abs((int)tx.rate.wc - 1000 * 37 / 25) <= 2,
	   "counter: acknowledgments do not make it slower");
}

static void test_sent_time(void)
{
	u64 seq, base = SEQ(-1000), time, now, worst = 0, bad = 0, old = 0;
	u64 between = 0;
	struct tfrc_tx tx;
	u32 i, n, wc;

	begin(&tx, &plain, 1000, 100000);
	ok(!rate_tx_sent_time(&tx.rate, 1, &wc), "sent time: nothing sent yet");
	for (seq = 0; seq < 20000; seq++) {
		now = START + seq * 97 * USEC;
		tx.rate.wc = seq * 97 / 25000;
		note_sent(&tx, SEQ(base + seq), now);
		i = unit_upto(&seed, 4000);	/* 388 ms */
		if (i > seq)
			continue;
		time = rate_tx_sent_time(&tx.rate, SEQ(base + seq - i), &wc);
		old += !time;
		now -= i * 97 * USEC;
		time = time > now ? time - now : now - time;
		worst = max(worst, time);
		if (i * 97 > 100000 / 32)
			between = max(between, time);
		/* The counter is that of a packet within a 32nd before. */
		bad += (seq - i) * 97 / 25000 - wc > 1;
	}
	note("sent time: worst error %.3f ms of 100 ms", worst / 1e6);
	ok(!old && worst <= 100 * MSEC / 32 + 97 * USEC,
	   "sent time: for four round trips, within a 32nd of one");
	ok(between <= 97 * USEC, "sent time: interpolated");
	ok(!bad, "sent time: the counter then");
	ok(tx.rate.grown && tx.rate.room == RATE_SENT, "sent time: the ring has grown");
	ok(!rate_tx_sent_time(&tx.rate, SEQ(base + seq - 5000), &wc),
	   "sent time: too old");

	/* Each packet at a low rate. */
	begin(&tx, &plain, 1000, 100000);
	for (i = 0; i < 300; i++) {
		tx.rate.wc = i;
		tx.rate.t_covered = START + max(i, 5U) * 20 * MSEC - 100 * MSEC;
		note_sent(&tx, 3 * i, START + i * 20 * MSEC);
	}
	for (i = 300 - RATE_SENT_FIRST, n = 0; i < 300; i++) {
		now = START + i * 20 * MSEC;
		n += llabs((s64)(rate_tx_sent_time(&tx.rate, 3 * i, &wc) - now)) >
		     1024;
		n += wc != i;
	}
	ok(!n && !rate_tx_sent_time(&tx.rate, 3 * i - 3 * RATE_SENT_FIRST - 3, &wc),
	   "sent time: the last 16 packets at a low rate");
	ok(!tx.rate.grown, "sent time: where these are enough, no more memory");
	ok(!rate_tx_sent_time(&tx.rate, SEQ(3 * i - (1ULL << 32)), &wc) &&
	   wc == 300 - RATE_SENT_FIRST,
	   "sent time: not of a number far back, but the oldest counter");

	/* Two at once: the second was sent with the first, and not halfway. */
	begin(&tx, &plain, 1000, 100000);
	for (seq = worst = 0; seq < 100; seq++) {
		now = START + seq / 2 * 80 * MSEC + seq % 2;
		note_sent(&tx, seq, now);
		if (seq % 2 || !seq)
			continue;
		time = rate_tx_sent_time(&tx.rate, seq - 1, &wc);
		worst = max(worst, time - (now - 80 * MSEC));
	}
	note("sent time: of pairs, worst error %.3f ms", worst / 1e6);
	ok(worst <= 100 * MSEC / 32, "sent time: pairs of packets");
}

/* That a packet had to wait is known of it, and not of one long after. */
static void test_limited(void)
{
	struct tfrc_tx tx;
	u64 now = START;

	begin(&tx, &plain, 1000, 100000);
	tfrc_tx_send(&tx, 1000, false, now);
	note_sent(&tx, 1, now);
	tx.rate.x_paid = TFRC_RATE_MAX / 2;
	now += MSEC;
	tx.rate.limited = true;
	note_sent(&tx, 2, now);	/* too soon to be noted */
	now += 2 * SEC;
	tfrc_tx_send(&tx, 1000, false, now);
	note_sent(&tx, 3, now);
	feed(&tx, 10000, TFRC_PINV_NONE, 100000, now, now + 100 * MSEC);
	ok(tx.data_limited, "data-limited: after a pause, whatever was before");
	begin(&tx, &plain, 1000, 100000);
	now = START;
	tfrc_tx_send(&tx, 1000, false, now);
	note_sent(&tx, 1, now);
	tx.rate.limited = true;
	note_sent(&tx, 2, now + MSEC);
	feed(&tx, 10000, TFRC_PINV_NONE, 100000, now + 2 * MSEC,
	     now + 100 * MSEC);
	ok(!tx.data_limited, "data-limited: not if a packet had to wait");
}

/*
 * RFC 5622, 8.7: the sender of TFRC-SP finds the mean interval with what the
 * options report, as the receiver does, without rounding. It does so too if
 * they have all intervals only at loss events, else two, and one in ten of
 * them is lost; or it knows that it lacks some.
 */
static void test_pinv(bool told_once)
{
	u64 i, j, bad = 0, brief = 0, checks = 0, gaps = 0;
	u64 below = 0;
	double worst;

	for (i = 0; i < unit_samples(1000); i++) {
		double loss = pow(10, -2 * unit_unit(&seed)) * .6;
		struct tfrc_params par = tfrc_sp.defaults;
		u32 per_rtt = 1 + unit_upto(&seed, 20), wc;
		u64 now = START, seq = SEQ(0 - unit_upto(&seed, 300));
		struct tfrc_rx rx = {};
		struct tfrc_tx tx;

		par.min_interval = 0;
		begin(&tx, &par, 200, 100000);
		tfrc_rx_init(&rx, &tfrc_sp, &par, SEQ(seq - 1), 100000);
		for (j = 0; j < 400; j++, seq = SEQ(seq + 1)) {
			struct rate_packet pkt = { .seq = seq, .size = 200,
						   .data = true };
			struct tfrc_reported li[TFRC_NINTERVAL + 1];
			enum rate_feedback why;
			bool complete = true;
			u32 n, got;

			now += 100 * MSEC / per_rtt;
			tfrc_tx_send(&tx, 200, false, now);
			note_sent(&tx, seq, now);
			/* 15 counters are the most that one may go without. */
			if (unit_unit(&seed) < loss && j &&
			    tx.rate.wc - rx.rate.wc_high < 12)
				continue;
			why = rate_rx_packet(&rx.rate, &pkt, tx.rate.wc & 15, now);
			if (why == RATE_FEEDBACK_NONE)
				continue;
			tfrc_rx_report(&rx, why, now);
			if (rx.history.n < 2)
				continue;
			for (n = 0; n < rx.history.n; n++)
				li[n] = (struct tfrc_reported){
					.start = rx.history.i[n].start,
					.packets = rx.history.i[n].packets,
					.drops = rx.history.i[n].drops,
				};
			if (told_once && !unit_upto(&seed, 9))
				continue;
			if (told_once && why == RATE_FEEDBACK_PERIODIC)
				n = 2;
			complete = tfrc_tx_tell(&tx, li, n);
			tx.rate.t_covered = rate_tx_sent_time(&tx.rate, seq, &wc);
			got = tfrc_tx_pinv(&tx, wc);
			checks++;
			gaps += !complete;
			if (!complete)
				continue;
			bad += tx.n_told != rx.history.n;
			/* The first interval is reported in whole packets. */
			worst = rx.history.n == 9 && rx.events > 9 ? 2 : 258;
			bad += (double)got - rx.pinv > worst;
			below += (double)rx.pinv - got > worst;
			brief += rx.history.i[1].drops > 1;
		}
	}
	note("TFRC-SP: %llu feedbacks, %llu of many losses, %llu lack intervals, %llu times 1/p is low",
	     checks, brief, gaps, below);
	ok(!bad && brief, "TFRC-SP: the sender's mean interval%s",
	   told_once ? ", if intervals are told once" : "");
	ok(below < checks / 100,
	   "TFRC-SP: after an outage, 1/p is too low at most%s",
	   told_once ? ", if intervals are told once" : "");
	ok(told_once ? gaps && gaps < checks / 200 : !gaps,
	   "TFRC-SP: intervals that the sender lacks%s",
	   told_once ? ": few, and it knows" : ": none");
}

/* Of options that a peer has made up. */
static u32 random_pinv(struct tfrc_tx *tx, u64 seq)
{
	struct tfrc_reported li[TFRC_NINTERVAL + 1];
	u32 i, n = 2 + unit_upto(&seed, TFRC_NINTERVAL - 1);

	for (i = 0; i < n; i++)
		li[i] = (struct tfrc_reported){
			.start = SEQ(seq - unit_log_upto(&seed, 1 << 20)),
			.packets = unit_log_upto(&seed, 0xffffff),
			.drops = unit_log_upto(&seed, 0xffffff),
		};
	tfrc_tx_tell(tx, li, n);
	return tfrc_tx_pinv(tx, unit_random(&seed));
}

static u32 as_it_is(const struct tfrc_tx *tx, u32 pinv)
{
	return pinv;
}

/* Packets in a round trip: a tenth of the new value for each that feedback is about, up to 32. */
static void test_n_rtt(void)
{
	static const u32 rtts[] = { 1000, 100000, 4294967, 5000000, TFRC_RTT_MAX };
	static const u32 trips[] = { 0, 1, 2, 10, 32, 100 };
	u32 i, j, bad = 0;

	for (i = 0; i < ARRAY_SIZE(rtts); i++) {
		for (j = 0; j < ARRAY_SIZE(trips); j++) {
			struct tfrc_feedback_in fb = { .x_recv = 1000, .pinv = 100 << 8 };
			u32 n = min(max(trips[j], 1U), 32U);
			struct tfrc_params par = { .s = 1460 };
			struct tfrc_tx tx;
			double want;

			memset(&tx, 0, sizeof(tx));
			tfrc_tx_init(&tx, &par);
			tfrc_tx_start(&tx, 100, rtts[i], SEC);
			tx.unbias = as_it_is;
			tx.had_feedback = true;
			tx.rate.rtt = rtts[i];
			tx.rate.gap = ((u64)rtts[i] << 8) / 10;
			tx.n_rtt = 100 << 8;
			tx.rate.t_covered = SEC;
			fb.t_sent = SEC + (trips[j] * 1000ULL + 500) * rtts[i];
			tfrc_tx_feedback(&tx, &fb, fb.t_sent + rtts[i] * 1000ULL);
			want = 10 + 90 * pow(.9, n);
			bad += fabs(tx.n_rtt / 256. - want) > .1;
		}
	}
	ok(!bad, "packets in a round trip: an average over ten round trips, of any length");
}

static void test_fuzz(void)
{
	u64 i, j, bad = 0;

	no_memory = true;
	for (i = 0; i < unit_samples(6000); i++) {
		struct tfrc_params par = {
			.s = i % 2 ? 32 + unit_log_upto(&seed, 65503) : 0,
			.header = unit_upto(&seed, 255),
			.min_interval = unit_log_upto(&seed, 1000000),
		};
		u64 now = START, seq = unit_random(&seed), least, back;
		struct tfrc_tx tx = {};
		u32 wc;

		tfrc_tx_init(&tx, &par);
		if (i % 4 == 1) {
			tx.unbias = tfrc_unbiasing.unbias;
			tx.par.variant = unit_upto(&seed, 1);
		}
		tfrc_tx_start(&tx, unit_log_upto(&seed, 65535),
			      unit_log_upto(&seed, U32_MAX), now);
		for (j = 0; j < 200; j++) {
			struct tfrc_feedback_in fb = {
				.x_recv = unit_log_upto(&seed, U32_MAX),
				.rtt = TFRC_RTT_MIN +
				       unit_log_upto(&seed, TFRC_RTT_MAX -
						     TFRC_RTT_MIN),
				.t_sent = now - unit_log_upto(&seed, now),
				.new_event = unit_upto(&seed, 1),
				.slow = !unit_upto(&seed, 5),
			};

			bool fed = false;

			now += unit_log_upto(&seed, 1ULL << 42);
			switch (unit_upto(&seed, 7)) {
			case 0:
				fb.pinv = unit_upto(&seed, 3) ?
					256 + unit_log_upto(&seed,
						(TFRC_PINV_MAX - 1) << 8) :
					TFRC_PINV_NONE;
				if (!unit_upto(&seed, 3))
					fb.dropped = unit_log_upto(&seed, U32_MAX);
				if (!unit_upto(&seed, 3))
					fb.corrupt = unit_log_upto(&seed, U32_MAX);
				if (!unit_upto(&seed, 5))
					fb.rtt = 0;
				if (!unit_upto(&seed, 5))
					fb.t_sent = 0;
				tfrc_tx_feedback(&tx, &fb, now);
				fed = fb.pinv != TFRC_PINV_NONE;
				break;
			case 1:
				tfrc_tx_expired(&tx, now);
				break;
			case 2:
				rate_tx_acked_wc(&tx.rate, unit_random(&seed), now);
				break;
			case 3:
				if (par.s)
					tx.par.s = 32 + unit_log_upto(&seed,
								      65503);
				tx.par.header = unit_upto(&seed, 255);
				tx.rate.min_interval =
					unit_log_upto(&seed, 1000000);
				break;
			case 4:
				bad += random_pinv(&tx, seq) - TFRC_PINV_ONE >
				       TFRC_PINV_MAX << TFRC_PINV_SHIFT;
				break;
			default:
				bad += rate_tx_due(&tx.rate, now) > now + 64 * SEC;
				tfrc_tx_send(&tx, unit_log_upto(&seed, 65535),
					     unit_upto(&seed, 1), now);
				note_sent(&tx, SEQ(seq), now);
				seq += 1 + unit_log_upto(&seed, 1 << 20);
				break;
			}
			least = (u64)tfrc_mean(tx.s_mean);
			back = i % 2 ? unit_random(&seed) :
				       unit_log_upto(&seed, 1 << 24);
			bad += rate_tx_sent_time(&tx.rate, SEQ(seq - back), &wc) >
			       now;
			bad += rate_tx_packet(&tx.rate, unit_log_upto(&seed, U32_MAX)) >
			       65535;
			bad += tfrc_tx_rto(&tx) > 128000000 ||
			       tfrc_tx_rto(&tx) < 4 * TFRC_RTT_MIN;
			bad += tx.x > TFRC_RATE_MAX || !tx.x;
			bad += tx.x_inst > TFRC_RATE_MAX || !tx.x_inst;
			bad += tx.n_recv > TFRC_X_RECV_SET;
			/* Feedback has just set it. */
			bad += fed && tx.rate.rtt && tx.x < least;
		}
	}
	ok(!bad, "fuzz: everything stays within its bounds");
}

int main(void)
{
	test_start();
	test_first_feedback();
	test_spare_receiver();
	test_corrupt();
	test_idle();
	test_oscillation();
	test_header();
	test_mean_size();
	test_modes();
	test_interval();
	test_scaled_interval();
	test_flight();
	test_pacing();
	test_counter();
	test_sent_time();
	test_limited();
	test_pinv(false);
	test_pinv(true);
	test_random("TFRC, greedy", &tfrc_standard, false, true, 2);
	test_random("TFRC, data-limited", &tfrc_standard, false, false, 5);
	test_random("TFRC, pauses", &tfrc_standard, true, false, 100);
	test_random("TFRC-SP", &tfrc_sp, false, false, 10);
	test_random("TFRC-SP, mixed sizes", &tfrc_sp, true, true, 10);
	test_random("virtual packets", &tfrc_vp_packet, true, true, 10);
	test_n_rtt();
	test_fuzz();
	return unit_end();
}
