// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver of a rate-based CCID (RFC 4342, 6, 8 and 10; RFC 5348, 5.1 and 6; RFC
 * 6323).
 *
 * Sequence space is decided from the bottom up. A packet that follows the last
 * one decided, or after a gap of packets without data, is taken at once. One
 * above a hole waits, until the hole is filled, or until it is one of three
 * above it, or until a packet with CE comes: then the hole is lost. So packets
 * reach the congestion control in order, and each is lost or received, for good.
 */

#include "rate_rx.h"

/**
 * rate_rx_init() - begin to receive
 * @rx: zeroed
 * @ops: of the congestion control
 * @seq: greatest sequence number that the handshake has received
 * @rtt: round-trip time of the handshake, us; 0 if there is none
 */
void rate_rx_init(struct rate_rx *rx, const struct rate_rx_ops *ops, u64 seq, u32 rtt)
{
	rx->ops = ops;
	rx->last.seq = seq;
	rx->first_seq = seq;
	rx->seq_high = seq;
	rx->seen = 1;
	rx->rtt = rtt ? clamp(rtt, TFRC_RTT_MIN, TFRC_RTT_MAX) : 0;
}

/* Times that are not long ago are kept as 32 bits, in units of 256 ns. */
static u64 rx_since(u32 then, u64 now)
{
	u32 ticks = (u32)(now >> 8) - then;

	return ticks == U32_MAX ? 0 : (u64)ticks << 8;
}

/**
 * rate_rx_receive_rate() - the rate at which data come
 * @rx: receiver
 * @now: time
 *
 * It is that over the last round trip, or over the time since feedback was sent
 * last, if that is longer (RFC 4342, 8.3), but no less than a packet per round
 * trip: a sender that is slower than that is so for its losses, and must not be
 * held there by its own rate (RFC 5348, 6.2).
 *
 * Return: bytes/s, as all rates.
 */
u64 rate_rx_receive_rate(const struct rate_rx *rx, u64 now)
{
	u64 rtt = rate_rx_rtt(rx) * 1000ULL, time = now - rx->t_first, least;
	u64 bytes = rx->bytes;
	u32 i, n = min_t(u32, rx->n_mark, RATE_MARKS);

	for (i = 1; i <= n; i++) {
		u32 j = (rx->n_mark - i) % RATE_MARKS;

		time = rx_since(rx->mark[j].time, now);
		bytes = (u32)rx->bytes - rx->mark[j].bytes;
		if (time >= rtt)
			break;
	}
	least = tfrc_bytes_rate(tfrc_mean(rx->s_mean), rtt);
	return max(least, tfrc_bytes_rate(bytes, max(time, rtt)));
}

/*
 * The time from the last packet to this one, which wraps after 1099 s. They may have
 * changed places, which takes less than 17 s.
 */
static u32 rx_step(const struct rate_rx *rx, const struct rate_packet *pkt)
{
	u32 step = pkt->time - rx->last.time;

	return step > U32_MAX - (1U << 26) ? 0 : step;
}

/* The hole below @pkt is lost, as far as it held data. */
static bool rx_lose_hole(struct rate_rx *rx, const struct rate_packet *pkt, u64 now)
{
	u64 gap = rate_seq_diff(rx->last.seq, pkt->seq) - 1;
	u32 n = min_t(u64, gap - min_t(u64, gap, pkt->ndp), 1U << 24);
	struct rate_hole hole = {
		.n = n, .size = tfrc_mean(rx->s_mean), .from = rx->last.time,
		.time = rx_step(rx, pkt), .steps = min_t(u64, gap + 1, U32_MAX),
	};

	if (!n)
		return false;
	rx->lost += n;
	return rx->ops->lost(rx, &hole, (rx->last.seq + 1) & RATE_SEQ_MASK, now);
}

static bool rx_mark(struct rate_rx *rx, const struct rate_packet *pkt, u64 now)
{
	struct rate_hole hole = {
		.n = 1, .size = max(pkt->size, 1U), .from = rx->last.time,
		.time = rx_step(rx, pkt), .steps = 1,
	};

	rx->marked++;
	return rx->ops->lost(rx, &hole, pkt->seq, now);
}

/* Take the next packet in order. */
static bool rx_take(struct rate_rx *rx, const struct rate_packet *pkt, u64 now)
{
	u64 step = rate_seq_diff(rx->last.seq, pkt->seq);
	bool event;

	if (rx->last.seq == rx->first_seq)
		rx->last.time = pkt->time;	/* there was none before */
	event = rx_lose_hole(rx, pkt, now);
	if (pkt->data && pkt->ce)
		event |= rx_mark(rx, pkt, now);
	else if (pkt->data)
		rx->ops->received(rx, pkt);
	rx->seen = (step < 64 ? rx->seen << step : 0) | 1;
	rx->last.seq = pkt->seq;
	rx->last.time += rx_step(rx, pkt);
	if (pkt->data)
		rx->last.wc = pkt->wc;
	rx->event_seen |= event;
	return event;
}

static void rx_insert(struct rate_rx *rx, const struct rate_packet *pkt)
{
	u32 i;

	for (i = rx->n_waiting++; i; i--) {
		if (rate_seq_diff(rx->waiting[i - 1].seq, pkt->seq) > 0)
			break;
		rx->waiting[i] = rx->waiting[i - 1];
	}
	rx->waiting[i] = *pkt;
}

/* Decide what can be decided. @n packets must be, whatever their holes. */
static bool rx_advance(struct rate_rx *rx, u32 n, u64 now)
{
	bool event = false;
	u32 i, done = 0;

	while (done < rx->n_waiting) {
		const struct rate_packet *pkt = &rx->waiting[done];
		u64 gap = rate_seq_diff(rx->last.seq, pkt->seq) - 1;

		if (gap > pkt->ndp && done >= n &&
		    rx->n_waiting - done < RATE_NDUPACK)
			break;
		event |= rx_take(rx, pkt, now);
		done++;
	}
	rx->n_waiting -= done;
	for (i = 0; i < rx->n_waiting; i++)
		rx->waiting[i] = rx->waiting[i + done];
	return event;
}

static void rx_rtt_sample(struct rate_rx *rx, u64 ns, u32 quarters)
{
	u32 us = clamp_t(u64, div_u64(ns * 4, 1000 * quarters), TFRC_RTT_MIN,
			 TFRC_RTT_MAX);

	rx->rtt = tfrc_ewma(rx->rtt, us, 9);
}

/*
 * The time between the first packets of counters that are 4 (else 3 or 2)
 * apart is a round trip (that part of one), RFC 4342, 8.1.
 *
 * Where packets are rarer than 5/4 round trips, counters tell no more than
 * that: they rise by 5, or by up to 9 with an acknowledgment between. But an
 * estimate above it would be there for good, and hold the sender down: the
 * receive rate is that over an estimated round trip.
 */
static void rx_sample_rtt(struct rate_rx *rx, u32 ahead, u64 now)
{
	u32 last = (rx->wc_high - ahead) % RATE_COUNTERS;
	u32 slot = rx->wc_high % RATE_COUNTERS, d;
	u64 pause = 0;

	if (ahead > 4 && ahead < 10 && rx->arrival[last] &&
	    rx->arrival_wc[last] == rx->wc_high - ahead)
		pause = rx_since(rx->arrival[last], now);
	rx->arrival[slot] = (u32)(now >> 8) ?: 1;
	rx->arrival_wc[slot] = rx->wc_high;
	for (d = 4; d > 1; d--) {
		u32 old = (rx->wc_high - d) % RATE_COUNTERS;

		if (!rx->arrival[old] || rx->arrival_wc[old] != rx->wc_high - d)
			continue;
		rx_rtt_sample(rx, rx_since(rx->arrival[old], now), d);
		return;
	}
	if (pause && pause * 4 < 5000ULL * rx->rtt)
		rx_rtt_sample(rx, pause, 5);
}

/**
 * rate_rx_rtt_estimate() - the sender tells its round-trip time, RFC 6323
 * @rx: receiver
 * @us: value of the option; 0 and RATE_RTT_SPIKE are no number
 * @now: time
 *
 * While it tells no number, the estimate is doubled, each time that it has passed, up
 * to TFRC_RTT_MAX; the RFC (3.4) goes on to 64 s.
 */
void rate_rx_rtt_estimate(struct rate_rx *rx, u32 us, u64 now)
{
	rx->rtt_told = true;
	if (us && us < RATE_RTT_SPIKE) {
		us = clamp(us, TFRC_RTT_MIN, TFRC_RTT_MAX);
		rx->rtt = rx->rtt_known ? tfrc_ewma(rx->rtt, us, 9) : us;
		rx->rtt_known = true;
		rx->rtt_missing = false;
		return;
	}
	if (rx->rtt_missing) {
		if (rx_since(rx->t_missing, now) <= 1000ULL * rate_rx_rtt(rx))
			return;
		rx->rtt = min(2 * rate_rx_rtt(rx), TFRC_RTT_MAX);
	}
	rx->rtt_missing = true;
	rx->t_missing = now >> 8;
}

/* A data packet that is no duplicate: rate, counters. */
static void rx_arrived(struct rate_rx *rx, struct rate_packet *pkt, u8 ccval,
		       u64 now)
{
	u32 ahead = (ccval - rx->wc_high) & 15;

	rx->packets++;
	rx->bytes += pkt->size;
	rx->s_mean = tfrc_ewma(rx->s_mean, pkt->size << 8, 9);
	if (!rx->data_seen) {
		rx->t_first = now;
		rx->wc_high = ccval;
		rx->last.wc = ccval;
		ahead = 0;
	}
	if (!rx->data_seen || rate_seq_diff(rx->seq_data, pkt->seq) > 0) {
		rx->seq_data = pkt->seq;
		rx->wc_high += ahead;
		pkt->wc = rx->wc_high;
		if ((ahead || !rx->data_seen) && !rx->rtt_told)
			rx_sample_rtt(rx, ahead, now);
	} else {
		/* The counter never falls with the sequence number. */
		pkt->wc = rx->wc_high - ((rx->wc_high - ccval) & 15);
	}
	rx->data_seen = true;
}

/* Once a round trip by the sender's counters, and not for less than it costs. */
static bool rx_periodic(const struct rate_rx *rx, u64 now)
{
	u32 last = rx->mark[(rx->n_mark - 1) % RATE_MARKS].time;

	return (s32)(rx->wc_high - rx->wc_feedback) >= 4 &&
	       (rate_feedback_earned(rx->packets - rx->packets_feedback,
				     tfrc_mean(rx->s_mean)) ||
		rx_since(last, now) >= RATE_FEEDBACK_WAIT * 1000ULL);
}

/**
 * rate_rx_may_wait() - how long periodic feedback may wait for data to ride on
 * @rx: receiver
 * @now: time
 *
 * A round trip; or, if one packet does not pay for feedback, as long as it took
 * enough of them to come, which the sender's nofeedback timer allows for.
 *
 * Return: ns.
 */
u64 rate_rx_may_wait(const struct rate_rx *rx, u64 now)
{
	u64 rtt = 1000ULL * rx->rtt;

	if (!rx->n_mark || rate_feedback_earned(1, tfrc_mean(rx->s_mean)))
		return rtt;
	return max(rtt, rx_since(rx->mark[(rx->n_mark - 1) % RATE_MARKS].time,
				 now));
}

/**
 * rate_rx_packet() - a packet has arrived
 * @rx: receiver
 * @pkt: the packet, without its window counter and time
 * @ccval: window counter in its header, 4 bits
 * @now: time
 *
 * Return: whether feedback is due, and why.
 */
enum rate_feedback rate_rx_packet(struct rate_rx *rx, struct rate_packet *pkt,
				  u8 ccval, u64 now)
{
	s64 ahead = rate_seq_diff(rx->last.seq, pkt->seq);
	bool first = pkt->data && !rx->data_seen, event = false;
	u32 i;

	pkt->time = now >> 8;
	if (ahead <= 0) {
		/* Lost, or a duplicate. Too old to know: the latter. */
		if (ahead <= -64 || rx->seen & 1ULL << -ahead) {
			rx->duplicates++;
			return RATE_FEEDBACK_NONE;
		}
		rx->seen |= 1ULL << -ahead;
		if (pkt->data) {
			rx->late++;
			rx->bytes += pkt->size;
		}
		return RATE_FEEDBACK_NONE;
	}
	for (i = 0; i < rx->n_waiting; i++) {
		if (rx->waiting[i].seq == pkt->seq) {
			rx->duplicates++;
			return RATE_FEEDBACK_NONE;
		}
	}
	if (rate_seq_diff(rx->seq_high, pkt->seq) > 0) {
		rx->seq_high = pkt->seq;
		rx->t_high = now;
	}
	if (pkt->data)
		rx_arrived(rx, pkt, ccval, now);

	rx_insert(rx, pkt);
	i = 0;
	if (pkt->data && pkt->ce)
		while (rx->waiting[i++].seq != pkt->seq)
			;
	event = rx_advance(rx, i, now);

	/*
	 * Packets without data may tell of a loss before any with data has come.
	 * As there is no receive rate then, feedback waits for that.
	 */
	if (first)
		return rx->event_seen ? RATE_FEEDBACK_LOSS : RATE_FEEDBACK_FIRST;
	if (event && rx->data_seen)
		return RATE_FEEDBACK_LOSS;
	if (pkt->data && rx_periodic(rx, now))
		return RATE_FEEDBACK_PERIODIC;
	return RATE_FEEDBACK_NONE;
}

/**
 * rate_rx_report() - bring up to date what feedback says
 * @rx: receiver
 * @why: reason of the feedback
 * @now: time
 */
void rate_rx_report(struct rate_rx *rx, enum rate_feedback why, u64 now)
{
	u32 mark = rx->n_mark % RATE_MARKS;

	/*
	 * On the first packet that is not known (RFC 5348, 6.3); but after a loss
	 * event, of a packet before it, 0 would be a limit.
	 */
	if (why == RATE_FEEDBACK_FIRST)
		rx->x_recv = 0;
	else
		rx->x_recv = min_t(u64, U32_MAX,
				   rate_rx_receive_rate(rx, now) >> TFRC_RATE_SHIFT);
	rx->x_max = max(rx->x_max, rx->x_recv);
	rx->mark[mark].time = now >> 8;
	rx->mark[mark].bytes = rx->bytes;
	rx->n_mark++;
	rx->wc_feedback = rx->wc_high;
	rx->packets_feedback = rx->packets;
}
