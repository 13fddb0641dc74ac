// SPDX-License-Identifier: GPL-2.0
/* The sender of TFRC (RFC 5348, 4; RFC 4342, 5 and 8.1; RFC 4828, 3). */

#include "tfrc_rx.h"
#include "tfrc_tx.h"

/**
 * tfrc_tx_init() - before the first packet
 * @tx: zeroed
 * @par: parameters of the method
 */
void tfrc_tx_init(struct tfrc_tx *tx, const struct tfrc_params *par)
{
	tx->par = *par;
	rate_tx_init(&tx->rate);
	tx->rate.min_interval = par->min_interval;
	tx->pinv = TFRC_PINV_NONE;
	tx->x_calc = TFRC_RATE_MAX;
}

/**
 * tfrc_tx_segment() - segment size of the throughput equation
 * @tx: sender
 *
 * Return: bytes.
 */
u32 tfrc_tx_segment(const struct tfrc_tx *tx)
{
	return min(tx->par.s ?: tfrc_mean(tx->s_mean), tx->rate.s_max);
}

/* s/t_mbi: a packet in 64 s. */
static u64 tx_least_rate(const struct tfrc_tx *tx)
{
	return max(((u64)tfrc_mean(tx->s_mean) << TFRC_RATE_SHIFT) / TFRC_T_MBI,
		   1ULL);
}

/* W_init / R, RFC 5348, 4.2; R is known. */
static u64 tx_initial_rate(const struct tfrc_tx *tx)
{
	u32 s = tfrc_tx_segment(tx), window = min(4 * s, max(2 * s, 4380U));

	return tfrc_bytes_rate(window, tx->rate.rtt * 1000ULL);
}

/*
 * The equation's rate is that of the payload of packets of mean size, less what
 * their headers take. Where it limits, a packet of another size pays for its
 * own header, from the rate with headers.
 */
static void tx_set_paced(struct tfrc_tx *tx, u64 x_inst)
{
	u32 s = tfrc_mean(tx->s_mean);

	tx->x_inst = x_inst;
	tx->rate.header_paid = tx->x == tx->x_calc ? tx->par.header : 0;
	tx->rate.x_paid = x_inst;
	if (tx->rate.header_paid)
		tx->rate.x_paid = div_u64(x_inst * (s + tx->rate.header_paid), s);
}

static void tx_set_rate(struct tfrc_tx *tx, u64 x)
{
	tx->x = clamp(x, tx_least_rate(tx), TFRC_RATE_MAX);
	tx_set_paced(tx, tx->x);
}

/**
 * tfrc_tx_x_recv() - the receive rate that limits the sender
 * @tx: sender
 *
 * Return: the greatest of X_recv_set; TFRC_RATE_MAX if that is infinite.
 */
u64 tfrc_tx_x_recv(const struct tfrc_tx *tx)
{
	u64 x = 0;
	u32 i;

	for (i = 0; i < tx->n_recv; i++)
		x = max(x, tx->x_recv_set[i].x);
	return x;
}

static void tx_recv_set_only(struct tfrc_tx *tx, u64 x, u64 now)
{
	tx->x_recv_set[0].x = x;
	tx->x_recv_set[0].time = now;
	tx->n_recv = 1;
}

/* Maximize X_recv_set(): keep the greatest, without the initial value. */
static void tx_recv_set_maximize(struct tfrc_tx *tx, u64 x, u64 now)
{
	u32 i;

	for (i = 0; i < tx->n_recv; i++)
		if (tx->x_recv_set[i].x != TFRC_RATE_MAX)
			x = max(x, tx->x_recv_set[i].x);
	tx_recv_set_only(tx, x, now);
}

/* Update X_recv_set(): those of two round trips, N at most. */
static void tx_recv_set_update(struct tfrc_tx *tx, u64 x, u64 now)
{
	u64 age = 2000ULL * rate_tx_rtt(&tx->rate);
	u32 i, n = 0;

	tx->x_recv_set[tx->n_recv].x = x;
	tx->x_recv_set[tx->n_recv++].time = now;
	for (i = 0; i < tx->n_recv; i++) {
		if (now - tx->x_recv_set[i].time > age ||
		    tx->n_recv - i > TFRC_X_RECV_SET)
			continue;
		tx->x_recv_set[n++] = tx->x_recv_set[i];
	}
	tx->n_recv = n;
}

/* How long feedback may wait for data, us: as the receiver, RATE_FEEDBACK_WAIT. */
static u32 tx_feedback_wait(const struct tfrc_tx *tx)
{
	u32 packets = DIV_ROUND_UP(RATE_FEEDBACK_BYTES * RATE_FEEDBACK_SHARE,
				   tfrc_mean(tx->s_mean) + RATE_EMPTY);

	if (packets == 1)
		return 0;
	return min_t(u64, (u64)packets * tx->rate.gap >> 8, RATE_FEEDBACK_WAIT);
}

/**
 * tfrc_tx_rto() - the nofeedback timeout, RFC 5348, 4.3 (3)
 * @tx: sender
 *
 * Return: max(4R, 2s/X), us, or four times as long as the receiver waits with
 * feedback, if that is longer; two seconds before the first sample of R.
 */
u32 tfrc_tx_rto(const struct tfrc_tx *tx)
{
	u32 gap;

	if (!tx->rate.rtt)
		return 2000000;
	gap = div_u64(tfrc_spacing(tfrc_mean(tx->s_mean), tx->x), 1000);
	return max(max(4 * tx->rate.rtt, 2 * gap), 4 * tx_feedback_wait(tx));
}

/**
 * tfrc_tx_flight() - packets that may be sent in a round trip
 * @tx: sender
 *
 * Return: 1 to TFRC_FLIGHT_MAX.
 */
u32 tfrc_tx_flight(const struct tfrc_tx *tx)
{
	u32 s = tfrc_mean(tx->s_mean);
	u64 gap = tfrc_spacing(s, tx->x), n;

	gap = max(max(gap, rate_tx_least_gap(&tx->rate, s)), 1ULL);
	n = div64_u64(1000ULL * rate_tx_rtt(&tx->rate), gap);
	return clamp_t(u64, n, 1, TFRC_FLIGHT_MAX);
}

static void tx_set_nofeedback(struct tfrc_tx *tx, u64 now)
{
	tx->t_nofeedback = now + 1000ULL * tfrc_tx_rto(tx);
	tx->idle = true;
}

/**
 * tfrc_tx_start() - the first packet is at hand
 * @tx: sender
 * @size: its payload, bytes
 * @rtt: round-trip time of the handshake, us; 0 if there is none
 * @now: time
 */
void tfrc_tx_start(struct tfrc_tx *tx, u32 size, u32 rtt, u64 now)
{
	tx->started = true;
	tx->s_mean = (size ?: RATE_EMPTY) << 8;
	tx_recv_set_only(tx, TFRC_RATE_MAX, now);
	if (rtt) {
		tx->rate.rtt = clamp(rtt, TFRC_RTT_MIN, TFRC_RTT_MAX);
		tx->t_doubled = now;
		tx_set_rate(tx, tx_initial_rate(tx));
	} else {
		tx_set_rate(tx, (u64)tfrc_tx_segment(tx) << TFRC_RATE_SHIFT);
	}
	tx->rate.t_wc = now;
	tx_set_nofeedback(tx, now);
}

/**
 * tfrc_tx_send() - a packet is sent now, after rate_tx_due()
 * @tx: sender
 * @size: payload, bytes
 * @waited: it was in the queue before it was due
 * @now: time
 */
void tfrc_tx_send(struct tfrc_tx *tx, u32 size, bool waited, u64 now)
{
	rate_tx_send(&tx->rate, size, waited, now);
	if (tx->sizes[0].bytes >> 31) {
		tx->sizes[0].bytes /= 2;
		tx->sizes[0].packets /= 2;
	}
	tx->intact = min(tx->intact + 1, TFRC_COUNT_MAX);
	if (size) {
		tx->sizes[0].bytes += size;
		tx->sizes[0].packets++;
	}
	if (!tx->t_nofeedback)
		tx_set_nofeedback(tx, now);
	tx->idle = false;
}

/**
 * tfrc_tx_tell() - what a report says of loss intervals
 * @tx: sender
 * @li: loss intervals, the current one first
 * @n: how many, 1 to TFRC_NINTERVAL + 1
 *
 * A receiver need not repeat intervals that have not changed (RFC 4342, 8.6),
 * so those that it leaves out are as they were. All are known if there are as
 * many as count, or if the oldest one is that before the first loss: only that
 * begins without one.
 *
 * Return: whether all are known.
 */
bool tfrc_tx_tell(struct tfrc_tx *tx, const struct tfrc_reported *li, u32 n)
{
	struct tfrc_told old[TFRC_NINTERVAL + 1], *to;
	u32 i, j = 0, n_old = tx->n_told;
	u64 start;

	for (i = 0; i < n_old; i++)
		old[i] = tx->told[i];
	for (i = 0; i < n; i++) {
		to = &tx->told[i];
		*to = (struct tfrc_told){
			.start = li[i].start, .packets = li[i].packets,
			.drops = li[i].drops,
		};
		for (j = 0; j < n_old && old[j].start != to->start; j++)
			;
		if (j < n_old) {
			to->wc = old[j].wc;
			to->older = old[j].older;
		} else {
			start = (li[i].start - 1) & RATE_SEQ_MASK;
			to->older = !rate_tx_sent_time(&tx->rate, start, &to->wc);
		}
	}
	while (++j < n_old && n < ARRAY_SIZE(tx->told))
		tx->told[n++] = old[j];
	tx->n_told = n;
	return n == ARRAY_SIZE(tx->told) || !tx->told[n - 1].drops;
}

/**
 * tfrc_tx_pinv() - 1/p of TFRC-SP from what the receiver counted
 * @tx: sender, which has been told
 * @wc: window counter of the packet that is acknowledged
 *
 * The Loss Event Rate option is in whole packets, rounded up, which is much at
 * high loss. RFC 5622, 8.7 has the receiver send what the sender needs to do
 * better: N and K of each interval. Which intervals took at most two round
 * trips both know by the window counter; one that began before the oldest packet
 * that is remembered counts as short if it may have been. Discounting, which has a history, is
 * the receiver's alone.
 *
 * Return: 1/p, Q24.8.
 */
u32 tfrc_tx_pinv(const struct tfrc_tx *tx, u32 wc)
{
	struct tfrc_history h = { .n = tx->n_told };
	bool is_short = false;
	u32 i, k;

	for (i = tx->n_told; i; i--) {
		const struct tfrc_told *li = &tx->told[i - 1];
		u32 end = i == 1 ? wc : li[-1].wc, took = end - li->wc;

		is_short = took <= TFRC_SHORT || (i > 1 && li[-1].older) ||
			   (li->older && (s32)took < 0);
		k = is_short && li->drops ? li->drops : 1;
		h.i[i - 1].length = tfrc_length(max(li->packets, 1U), k);
		h.i[i - 1].df = TFRC_DF_ONE;
	}
	return tfrc_history_pinv(&h, is_short, false);
}

/*
 * Packets that are sent in a round trip. The average is long enough that the
 * rate, which follows from it, does not oscillate. It is over round trips, not over
 * feedback: a sender that has become very slow gets that for its packets only,
 * and would stay slow.
 */
static void tx_update_n_rtt(struct tfrc_tx *tx, u64 t_sent)
{
	u64 trips = div64_u64(max_t(s64, t_sent - tx->rate.t_covered, 0), tx->rate.rtt * 1000ULL);
	u32 n, i;

	if (!tx->rate.gap)
		return;
	n = min_t(u64, U32_MAX, div_u64((u64)tx->rate.rtt << 16, tx->rate.gap));
	trips = clamp_t(u64, trips, 1, 32);
	for (i = 0; i < trips; i++)
		tx->n_rtt = tfrc_ewma(tx->n_rtt, n, 9);
}

/*
 * Packets from one event of corruption to the next, Q24.8. As with loss intervals, the
 * open one counts if it makes the mean longer.
 */
static u32 tx_corrupt_interval(const struct tfrc_tx *tx)
{
	u32 gap = tx->corrupt_gap, open = tx->intact << TFRC_PINV_SHIFT;

	return open > gap ? tfrc_ewma(gap, open, 8) : gap;
}

/**
 * tfrc_tx_mean_interval() - 1/p as the sender has it
 * @tx: sender
 *
 * That is the receiver's, but for what it has reported as corrupt.
 *
 * Return: packets, Q24.8; TFRC_PINV_NONE: no loss yet.
 */
u32 tfrc_tx_mean_interval(const struct tfrc_tx *tx)
{
	u64 gap, pinv = tx->pinv;

	if (!tx->corrupt_gap)
		return pinv;
	gap = tx_corrupt_interval(tx);
	if (pinv == TFRC_PINV_NONE)
		return gap;
	return max_t(u64, div64_u64(pinv * gap, pinv + gap), TFRC_PINV_ONE);
}

/* The equation's rate, less what headers take (RFC 4828, 3), or that of the window. */
static void tx_update_x_calc(struct tfrc_tx *tx)
{
	u32 s = tfrc_mean(tx->s_mean), pinv = tfrc_tx_mean_interval(tx);
	bool loss = pinv != TFRC_PINV_NONE;

	if (tx->unbias && loss)
		pinv = tx->unbias(tx, pinv);
	/* Of packets that came, but corrupt, the receiver's window knows nothing. */
	if (tx->window && loss)
		pinv = tx->corrupt_gap ? tx_corrupt_interval(tx) : TFRC_PINV_NONE;
	tx->x_calc = tfrc_rate(tfrc_tx_segment(tx), rate_tx_rtt(&tx->rate), pinv);
	if (tx->window && loss)
		tx->x_calc = min(tx->x_calc,
				 tfrc_window_rate(tx->window, s, rate_tx_rtt(&tx->rate)));
	if (tx->par.header && loss)
		tx->x_calc = div_u64(tx->x_calc * s, s + tx->par.header);
}

/* RFC 5348, 4.3 (4), with recv_limit known. */
static void tx_update_x(struct tfrc_tx *tx, u64 recv_limit, u64 now)
{
	if (tfrc_tx_mean_interval(tx) != TFRC_PINV_NONE) {
		tx_set_rate(tx, min(tx->x_calc, recv_limit));
	} else if (now - tx->t_doubled >= 1000ULL * tx->rate.rtt) {
		tx_set_rate(tx, max(min(2 * tx->x, recv_limit), tx_initial_rate(tx)));
		tx->t_doubled = now;
	}
}

/* Times of the last 1099 s, kept as 32 bits, in units of 256 ns. */
static u64 tx_since(u32 then, u64 now)
{
	return (u64)((u32)(now >> 8) - then) << 8;
}

/*
 * What a receiver drops that has got it does not count in its loss events. Drop
 * Codes 3 to 7 do count as marks (RFC 4340, 11.7.2): they are events of their own,
 * one in a round trip at most, whose rate adds to that of the others.
 *
 * Return: whether one begins.
 */
static bool tx_note_corrupt(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
			    u64 now)
{
	u32 gap = tx->corrupt_gap;

	if (!fb->corrupt)
		return false;
	if (gap && tx_since(tx->t_corrupt, now) < 1000ULL * rate_tx_rtt(&tx->rate))
		return false;
	tx->corrupt_gap = tfrc_ewma(gap, max(tx->intact, 1U) << TFRC_PINV_SHIFT, 8);
	tx->t_corrupt = now >> 8;
	tx->intact = 0;
	return true;
}

/*
 * RFC 4342, 5.2: no more than the receive rate for a round trip, if the receiver
 * is slow, and a packet per round trip less for each that it had no room for. The RFC
 * lowers X_recv to half of that, which the greatest of several receive rates (RFC
 * 5348, 4.3) would undo; here it is X that is limited. While it is, being slow changes
 * nothing: what is received is of before, or varies.
 *
 * @x_before: X when this feedback came, for where there is no receive rate yet
 */
static void tx_spare_receiver(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
			      u64 x_before, u64 now)
{
	u64 rtt = 1000ULL * rate_tx_rtt(&tx->rate), age = tx_since(tx->t_drop, now), x, one, limit;

	if (age >= 2 * rtt)
		tx->x_drop = 0;
	if (fb->slow || fb->dropped) {
		x = fb->x_recv ?: x_before >> TFRC_RATE_SHIFT;
		one = tfrc_bytes_rate(tfrc_mean(tx->s_mean), rtt) >> TFRC_RATE_SHIFT;
		x = clamp_t(u64, max(x - min(x, one * fb->dropped), min(x, one)),
			    1, U32_MAX);
		if (!tx->x_drop || (fb->dropped && x < tx->x_drop))
			tx->x_drop = x;
		tx->t_drop = now >> 8;
		age = 0;
	}
	limit = (u64)tx->x_drop << TFRC_RATE_SHIFT;
	if (limit && age < rtt && tx->x > limit)
		tx_set_rate(tx, limit);
}

static u64 tx_recv_limit(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
			 bool loss, u64 now)
{
	u64 x_recv = (u64)fb->x_recv << TFRC_RATE_SHIFT;
	u32 i;

	/* On the first packet there is none, RFC 5348, 6.3. */
	if (!x_recv && !tx->had_feedback)
		return TFRC_RATE_MAX;
	if (!tx->data_limited) {
		tx_recv_set_update(tx, x_recv, now);
		return 2 * tfrc_tx_x_recv(tx);
	}
	if (!loss) {
		tx_recv_set_maximize(tx, x_recv, now);
		return 2 * tfrc_tx_x_recv(tx);
	}
	for (i = 0; i < tx->n_recv; i++)
		if (tx->x_recv_set[i].x != TFRC_RATE_MAX)
			tx->x_recv_set[i].x /= 2;
	tx_recv_set_maximize(tx, div_u64(x_recv * 85, 100), now);
	return tfrc_tx_x_recv(tx);
}

/*
 * The segment size is the mean over four loss intervals at least (RFC 4828, 3),
 * so that a few packets of another size change nothing.
 */
static void tx_update_s_mean(struct tfrc_tx *tx, bool loss)
{
	u64 bytes = 0, packets = 0;
	u32 i;

	for (i = 0; i <= TFRC_S_INTERVALS; i++) {
		bytes += tx->sizes[i].bytes;
		packets += tx->sizes[i].packets;
	}
	if (packets)
		tx->s_mean = div64_u64(bytes << 8, packets);
	if (!loss)
		return;
	for (i = TFRC_S_INTERVALS; i; i--)
		tx->sizes[i] = tx->sizes[i - 1];
	tx->sizes[0].bytes = 0;
	tx->sizes[0].packets = 0;
}

static u32 tx_sqrt_rtt(u32 rtt)
{
	return tfrc_sqrt((u64)rtt << 32);	/* Q32 under the root */
}

/**
 * tfrc_tx_feedback() - a feedback packet, RFC 5348, 4.3
 * @tx: sender
 * @fb: what it says
 * @now: time
 */
void tfrc_tx_feedback(struct tfrc_tx *tx, const struct tfrc_feedback_in *fb,
		      u64 now)
{
	bool loss = fb->new_event || fb->pinv < tx->pinv;
	bool first_rtt = !tx->rate.rtt;
	u64 x_before = tx->x;
	u32 root = 0;

	tx->feedback++;
	if (fb->rtt) {
		root = tx_sqrt_rtt(fb->rtt);
		tx->rate.rtt = tx->had_feedback ? tfrc_ewma(tx->rate.rtt, fb->rtt, 9) :
					     fb->rtt;
		tx->r_sqmean = tfrc_ewma(tx->r_sqmean, root, 9);
	}
	tx->pinv = fb->pinv;
	if (fb->pinv != TFRC_PINV_NONE && fb->window)
		tx->window = fb->window;
	loss |= tx_note_corrupt(tx, fb, now);
	tx_update_s_mean(tx, loss);
	if (!tx->rate.rtt) {
		tx_set_nofeedback(tx, now);
		return;
	}
	if (tx->unbias)
		tx_update_n_rtt(tx, fb->t_sent);
	tx_update_x_calc(tx);
	tx->data_limited = !rate_tx_limited(&tx->rate, fb->t_sent, now) && fb->x_recv;
	tx->rate.t_covered = fb->t_sent;
	if (first_rtt) {
		/* RFC 5348, 4.2: in place of step 4 */
		tx->t_doubled = now;
		tx_set_rate(tx, min(tx_initial_rate(tx), tx->x_calc));
	} else {
		tx_update_x(tx, tx_recv_limit(tx, fb, loss, now), now);
	}
	tx_spare_receiver(tx, fb, x_before, now);
	tx->had_feedback = true;
	/* RFC 5348, 4.5, for the equation's sake. */
	if (root && !tx->tear)
		tx_set_paced(tx, clamp(mul_u64_u32_div(tx->x, tx->r_sqmean, root),
				       tx_least_rate(tx), TFRC_RATE_MAX));
	tx_set_nofeedback(tx, now);
}

/**
 * tfrc_tx_expired() - the nofeedback timer has expired, RFC 5348, 4.4
 * @tx: sender
 * @now: time
 */
void tfrc_tx_expired(struct tfrc_tx *tx, u64 now)
{
	u64 x_recv = tfrc_tx_x_recv(tx), recover = 0, limit;
	bool slow_start = tfrc_tx_mean_interval(tx) == TFRC_PINV_NONE;

	tx->nofeedback++;
	if (tx->rate.rtt)
		recover = tx_initial_rate(tx);

	if (tx->rate.rtt && tx->idle &&
	    (slow_start ? tx->x < 2 * recover : x_recv < recover)) {
		/* An idle period does no more harm: wait for a packet. */
		tx->t_nofeedback = 0;
		return;
	}
	if (slow_start) {
		if (tx->rate.rtt || !tx->idle)
			tx_set_rate(tx, tx->x / 2);
		goto restart;
	}
	limit = tx->x_calc > 2 * x_recv ? x_recv : tx->x_calc / 2;
	limit = max(limit, tx_least_rate(tx));
	tx_recv_set_only(tx, limit / 2, now);
	tx_update_x(tx, 2 * tfrc_tx_x_recv(tx), now);
restart:
	tx_set_nofeedback(tx, now);
}
