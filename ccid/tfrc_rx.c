// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver of TFRC (RFC 5348, 5 and 6; RFC 4342, 6, 8 and 10; RFC 6323).
 *
 * Sequence space is decided from the bottom up. A packet that follows the last
 * one decided, or after a gap of packets without data, is taken at once. One
 * above a hole waits, until the hole is filled, or until it is one of three
 * above it, or until a packet with CE comes: then the hole is lost. So packets
 * reach the loss method in order, and each is lost or received, for good.
 */

#include "tfrc_rx.h"

/**
 * tfrc_rx_init() - begin to receive
 * @rx: zeroed
 * @method: of measuring loss
 * @par: its parameters
 * @seq: greatest sequence number that the handshake has received
 * @rtt: round-trip time of the handshake, us; 0 if there is none
 */
void tfrc_rx_init(struct tfrc_rx *rx, const struct tfrc_method *method,
		  const struct tfrc_params *par, u64 seq, u32 rtt)
{
	rx->method = method;
	rx->par = *par;
	rx->last.seq = seq;
	rx->first_seq = seq;
	rx->seq_high = seq;
	rx->seen = 1;
	rx->pinv = TFRC_PINV_NONE;
	rx->rtt = rtt ? clamp(rtt, TFRC_RTT_MIN, TFRC_RTT_MAX) : 0;
}

static u32 rx_rtt(const struct tfrc_rx *rx)
{
	if (rx->rtt)
		return rx->rtt;
	return rx->rtt_told ? TFRC_RTT_UNTOLD : TFRC_RTT_FALLBACK;
}

/* Times that are not long ago are kept as 32 bits, in units of 256 ns. */
static u64 rx_since(u32 then, u64 now)
{
	u32 ticks = (u32)(now >> 8) - then;

	return ticks == U32_MAX ? 0 : (u64)ticks << 8;
}

/* Is a window counter at most so far above that of the current event? */
static bool rx_within(const struct tfrc_rx *rx, u32 wc, s32 quarters)
{
	return (s32)(wc - rx->wc_event) <= quarters;
}

static bool rx_in_lip(const struct tfrc_rx *rx)
{
	return rx->history.n && rx_within(rx, rx->last.wc, TFRC_LIP);
}

/**
 * tfrc_rx_interval() - length of a loss interval
 * @rx: receiver
 * @i: which one; 0 is the current one
 *
 * Return: packets, Q24.8.
 */
u32 tfrc_rx_interval(const struct tfrc_rx *rx, u32 i)
{
	if (i)
		return rx->history.i[i].length;
	return rx->method->length(rx, rx_within(rx, rx->wc_high, TFRC_SHORT));
}

/*
 * The receive rate over the last round trip, or over the time since feedback
 * was sent last, if that is longer (RFC 4342, 8.3), but no less than a packet
 * per round trip: a sender that is slower than that is so for its losses, and
 * must not be held there by its own rate (RFC 5348, 6.2).
 */
static u64 rx_receive_rate(const struct tfrc_rx *rx, u64 now)
{
	u64 rtt = rx_rtt(rx) * 1000ULL, time = now - rx->t_first, least;
	u64 bytes = rx->bytes;
	u32 i, n = min_t(u32, rx->n_mark, TFRC_MARKS);

	for (i = 1; i <= n; i++) {
		u32 j = (rx->n_mark - i) % TFRC_MARKS;

		time = rx_since(rx->mark[j].time, now);
		bytes = (u32)rx->bytes - rx->mark[j].bytes;
		if (time >= rtt)
			break;
	}
	least = tfrc_bytes_rate(tfrc_mean(rx->s_mean), rtt);
	return max(least, tfrc_bytes_rate(bytes, max(time, rtt)));
}

/*
 * The interval before the first loss is the one that the throughput equation
 * has at the greatest receive rate so far (RFC 5348, 6.3.1), and at half a
 * segment per round trip at least: at that where it has no packet, because the
 * first one was lost or marked. The sender scales what the equation gives
 * by s / (s + H), so here the rate is scaled back. How many packets these are,
 * is the method's business.
 */
static u32 rx_first_length(const struct tfrc_rx *rx, u64 now)
{
	u32 s_mean = tfrc_mean(rx->s_mean), s = rx->par.s ?: s_mean;
	u64 x = 0, per_rtt, payload;
	u32 length;

	if (rx->n_mark && rx->meter.packets > rx->meter.drops)
		x = max(rx_receive_rate(rx, now) >> TFRC_RATE_SHIFT,
			(u64)rx->x_max);
	/* Bytes per round trip, Q6: below 2^36 * 2^14 * 2^6. */
	payload = mul_u64_u32_div(x << 6, rx_rtt(rx), 1000000);
	if (rx->par.header)
		x += div_u64(x * rx->par.header, s_mean);
	per_rtt = mul_u64_u32_div(x << 6, rx_rtt(rx), 1000000);
	per_rtt = max(per_rtt, (u64)s << 5);
	length = tfrc_pinv(div64_u64((u64)s << 38, per_rtt));
	if (!rx->method->first || !rx->data_seen)
		return length;
	return rx->method->first(rx, length, min_t(u64, U32_MAX,
				 div64_u64(payload << 2, s_mean)));
}

/* Give the open interval its final figures. */
static void rx_close_interval(struct tfrc_rx *rx, u64 now)
{
	struct tfrc_interval *i = &rx->history.i[0];

	if (!rx->history.n) {
		rx->history.n = 1;
		*i = (struct tfrc_interval){
			.start	= rx->first_seq + 1,
			.df	= TFRC_DF_ONE,
			.length	= rx_first_length(rx, now),
		};
		i->packets = i->length >> TFRC_PINV_SHIFT;
		return;
	}
	i->length = rx->method->length(rx, rx_within(rx, rx->last.wc, TFRC_SHORT));
	i->packets = rx->meter.packets;
	i->drops = rx->meter.drops;
}

static void rx_count_lost(struct tfrc_meter *m, u32 n)
{
	m->packets = min(m->packets + n, TFRC_COUNT_MAX);
	m->drops = min(m->drops + n, TFRC_COUNT_MAX);
}

/* The last packet lost in the current interval is @seq. */
static void rx_set_lossy(struct tfrc_rx *rx, u64 seq)
{
	struct tfrc_interval *i = &rx->history.i[0];

	i->lossy = min_t(u64, tfrc_seq_diff(i->start, seq) + 1, U32_MAX);
}

/* The first @n packets of a hole are dealt with. */
static void rx_skip(struct tfrc_hole *hole, u32 n)
{
	u32 time = div_u64((u64)hole->time * n, hole->steps);

	hole->n -= n;
	hole->from += time;
	hole->time -= time;
	hole->steps -= n;
}

/* How many packets of a hole are in the LIP, the first ones? */
static u32 rx_lip(const struct tfrc_rx *rx, const struct tfrc_hole *hole)
{
	if (rx->method->in_lip)
		return rx->history.n ? rx->method->in_lip(rx, hole) : 0;
	return rx_in_lip(rx) ? hole->n : 0;
}

/*
 * An event begins with the first packet of the hole, whose number is @seq. The
 * methods that say so count it to the new interval, if @count, the others to
 * that which ends.
 */
static void rx_begin_event(struct tfrc_rx *rx, const struct tfrc_hole *hole, u64 seq,
			   bool count, u64 now)
{
	struct tfrc_hole one = *hole;

	rx_close_interval(rx, now);
	tfrc_history_push(&rx->history, rx->par.discount);
	rx->meter = (struct tfrc_meter){ .lost = rx->meter.carry };
	rx->wc_event = rx->last.wc;
	rx->history.i[0].start = seq;
	rx->events++;
	if (rx->method->event)
		rx->method->event(rx, hole);
	one.n = 1;
	one.lip = true;
	if (count)
		rx->method->lost(rx, &one);
	rx_count_lost(&rx->meter, 1);
	rx_set_lossy(rx, seq);
}

/*
 * Data packets are lost or marked, with the sequence numbers from @seq on.
 * Return whether a loss event began.
 *
 * An interval as the options report it begins with the loss that began the
 * event, also where the method counts that packet to the interval before.
 *
 * A long hole may have several events, but of more than TFRC_HOLE_EVENTS the
 * intervals are no longer known.
 */
static bool rx_lose(struct tfrc_rx *rx, struct tfrc_hole *hole, u64 seq, u64 now)
{
	u32 events = 0, done, lip = 0;

	for (; hole->n; rx_skip(hole, done), seq = (seq + done) & TFRC_SEQ_MASK) {
		struct tfrc_hole part = *hole;
		s64 old = -1;

		/* What comes after those in the LIP is not, whatever rounding says. */
		lip = lip ? 0 : rx_lip(rx, hole);

		part.lip = lip;
		part.n = lip ?: hole->n;
		if (events < TFRC_HOLE_EVENTS)
			old = rx->method->lost(rx, &part);
		else
			part.n = hole->n;
		done = old < 0 ? part.n : old ? old - 1 : 0;
		rx_count_lost(&rx->meter, done);
		if (done)
			rx_set_lossy(rx, (seq + done - 1) & TFRC_SEQ_MASK);
		if (old < 0)
			continue;
		rx_skip(&part, done);
		rx_begin_event(rx, &part, (seq + done++) & TFRC_SEQ_MASK, !old, now);
		events++;
		lip = 0;
	}
	return events;
}

/*
 * The time from the last packet to this one, which wraps after 1099 s. They may have
 * changed places, which takes less than 17 s.
 */
static u32 rx_step(const struct tfrc_rx *rx, const struct tfrc_packet *pkt)
{
	u32 step = pkt->time - rx->last.time;

	return step > U32_MAX - (1U << 26) ? 0 : step;
}

/* The hole below @pkt is lost, as far as it held data. */
static bool rx_lose_hole(struct tfrc_rx *rx, const struct tfrc_packet *pkt, u64 now)
{
	u64 gap = tfrc_seq_diff(rx->last.seq, pkt->seq) - 1;
	u32 n = min_t(u64, gap - min_t(u64, gap, pkt->ndp), 1U << 24);
	struct tfrc_hole hole = {
		.n = n, .size = tfrc_mean(rx->s_mean), .from = rx->last.time,
		.time = rx_step(rx, pkt), .steps = min_t(u64, gap + 1, U32_MAX),
	};

	if (!n)
		return false;
	rx->lost += n;
	return rx_lose(rx, &hole, (rx->last.seq + 1) & TFRC_SEQ_MASK, now);
}

static bool rx_mark(struct tfrc_rx *rx, const struct tfrc_packet *pkt, u64 now)
{
	struct tfrc_hole hole = {
		.n = 1, .size = max(pkt->size, 1U), .from = rx->last.time,
		.time = rx_step(rx, pkt), .steps = 1,
	};

	rx->marked++;
	return rx_lose(rx, &hole, pkt->seq, now);
}

/* Take the next packet in order. */
static bool rx_take(struct tfrc_rx *rx, const struct tfrc_packet *pkt, u64 now)
{
	u64 step = tfrc_seq_diff(rx->last.seq, pkt->seq);
	bool event;

	if (rx->last.seq == rx->first_seq)
		rx->last.time = pkt->time;	/* there was none before */
	event = rx_lose_hole(rx, pkt, now);
	if (pkt->data && pkt->ce) {
		event |= rx_mark(rx, pkt, now);
	} else if (pkt->data) {
		rx->method->received(rx, pkt, rx_in_lip(rx));
		rx->meter.packets = min(rx->meter.packets + 1,
					TFRC_COUNT_MAX);
	}
	rx->seen = (step < 64 ? rx->seen << step : 0) | 1;
	rx->last.seq = pkt->seq;
	rx->last.time += rx_step(rx, pkt);
	if (pkt->data)
		rx->last.wc = pkt->wc;
	return event;
}

static void rx_insert(struct tfrc_rx *rx, const struct tfrc_packet *pkt)
{
	u32 i;

	for (i = rx->n_waiting++; i; i--) {
		if (tfrc_seq_diff(rx->waiting[i - 1].seq, pkt->seq) > 0)
			break;
		rx->waiting[i] = rx->waiting[i - 1];
	}
	rx->waiting[i] = *pkt;
}

/* Decide what can be decided. @n packets must be, whatever their holes. */
static bool rx_advance(struct tfrc_rx *rx, u32 n, u64 now)
{
	bool event = false;
	u32 i, done = 0;

	while (done < rx->n_waiting) {
		const struct tfrc_packet *pkt = &rx->waiting[done];
		u64 gap = tfrc_seq_diff(rx->last.seq, pkt->seq) - 1;

		if (gap > pkt->ndp && done >= n &&
		    rx->n_waiting - done < TFRC_NDUPACK)
			break;
		event |= rx_take(rx, pkt, now);
		done++;
	}
	rx->n_waiting -= done;
	for (i = 0; i < rx->n_waiting; i++)
		rx->waiting[i] = rx->waiting[i + done];
	return event;
}

static void rx_rtt_sample(struct tfrc_rx *rx, u64 ns, u32 quarters)
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
static void rx_sample_rtt(struct tfrc_rx *rx, u32 ahead, u64 now)
{
	u32 last = (rx->wc_high - ahead) % TFRC_COUNTERS;
	u32 slot = rx->wc_high % TFRC_COUNTERS, d;
	u64 pause = 0;

	if (ahead > 4 && ahead < 10 && rx->arrival[last] &&
	    rx->arrival_wc[last] == rx->wc_high - ahead)
		pause = rx_since(rx->arrival[last], now);
	rx->arrival[slot] = (u32)(now >> 8) ?: 1;
	rx->arrival_wc[slot] = rx->wc_high;
	for (d = 4; d > 1; d--) {
		u32 old = (rx->wc_high - d) % TFRC_COUNTERS;

		if (!rx->arrival[old] || rx->arrival_wc[old] != rx->wc_high - d)
			continue;
		rx_rtt_sample(rx, rx_since(rx->arrival[old], now), d);
		return;
	}
	if (pause && pause * 4 < 5000ULL * rx->rtt)
		rx_rtt_sample(rx, pause, 5);
}

/**
 * tfrc_rx_rtt_estimate() - the sender tells its round-trip time, RFC 6323
 * @rx: receiver
 * @us: value of the option; 0 and TFRC_RTT_SPIKE are no number
 * @now: time
 *
 * While it tells no number, the estimate is doubled, each time that it has passed, up
 * to TFRC_RTT_MAX; the RFC (3.4) goes on to 64 s.
 */
void tfrc_rx_rtt_estimate(struct tfrc_rx *rx, u32 us, u64 now)
{
	rx->rtt_told = true;
	if (us && us < TFRC_RTT_SPIKE) {
		us = clamp(us, TFRC_RTT_MIN, TFRC_RTT_MAX);
		rx->rtt = rx->rtt_known ? tfrc_ewma(rx->rtt, us, 9) : us;
		rx->rtt_known = true;
		rx->rtt_missing = false;
		return;
	}
	if (rx->rtt_missing) {
		if (rx_since(rx->t_missing, now) <= 1000ULL * rx_rtt(rx))
			return;
		rx->rtt = min(2 * rx_rtt(rx), TFRC_RTT_MAX);
	}
	rx->rtt_missing = true;
	rx->t_missing = now >> 8;
}

/* A data packet that is no duplicate: rate, counters. */
static void rx_arrived(struct tfrc_rx *rx, struct tfrc_packet *pkt, u8 ccval,
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
	if (!rx->data_seen || tfrc_seq_diff(rx->seq_data, pkt->seq) > 0) {
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
static bool rx_periodic(const struct tfrc_rx *rx, u64 now)
{
	u32 last = rx->mark[(rx->n_mark - 1) % TFRC_MARKS].time;

	return (s32)(rx->wc_high - rx->wc_feedback) >= 4 &&
	       (tfrc_feedback_earned(rx->packets - rx->packets_feedback,
				     tfrc_mean(rx->s_mean)) ||
		rx_since(last, now) >= TFRC_FEEDBACK_WAIT * 1000ULL);
}

/**
 * tfrc_rx_may_wait() - how long periodic feedback may wait for data to ride on
 * @rx: receiver
 * @now: time
 *
 * A round trip; or, if one packet does not pay for feedback, as long as it took
 * enough of them to come, which the sender's nofeedback timer allows for.
 *
 * Return: ns.
 */
u64 tfrc_rx_may_wait(const struct tfrc_rx *rx, u64 now)
{
	u64 rtt = 1000ULL * rx->rtt;

	if (!rx->n_mark || tfrc_feedback_earned(1, tfrc_mean(rx->s_mean)))
		return rtt;
	return max(rtt, rx_since(rx->mark[(rx->n_mark - 1) % TFRC_MARKS].time,
				 now));
}

/**
 * tfrc_rx_packet() - a packet has arrived
 * @rx: receiver
 * @pkt: the packet, without its window counter and time
 * @ccval: window counter in its header, 4 bits
 * @now: time
 *
 * Return: whether feedback is due, and why.
 */
enum tfrc_feedback tfrc_rx_packet(struct tfrc_rx *rx, struct tfrc_packet *pkt,
				  u8 ccval, u64 now)
{
	s64 ahead = tfrc_seq_diff(rx->last.seq, pkt->seq);
	bool first = pkt->data && !rx->data_seen, event = false;
	u32 i;

	pkt->time = now >> 8;
	if (ahead <= 0) {
		/* Lost, or a duplicate. Too old to know: the latter. */
		if (ahead <= -64 || rx->seen & 1ULL << -ahead) {
			rx->duplicates++;
			return TFRC_FEEDBACK_NONE;
		}
		rx->seen |= 1ULL << -ahead;
		if (pkt->data) {
			rx->late++;
			rx->bytes += pkt->size;
		}
		return TFRC_FEEDBACK_NONE;
	}
	for (i = 0; i < rx->n_waiting; i++) {
		if (rx->waiting[i].seq == pkt->seq) {
			rx->duplicates++;
			return TFRC_FEEDBACK_NONE;
		}
	}
	if (tfrc_seq_diff(rx->seq_high, pkt->seq) > 0) {
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
		return rx->history.n ? TFRC_FEEDBACK_LOSS : TFRC_FEEDBACK_FIRST;
	if (event && rx->data_seen)
		return TFRC_FEEDBACK_LOSS;
	if (pkt->data && rx_periodic(rx, now))
		return TFRC_FEEDBACK_PERIODIC;
	return TFRC_FEEDBACK_NONE;
}

/**
 * tfrc_rx_report() - bring up to date what feedback says
 * @rx: receiver
 * @why: reason of the feedback
 * @now: time
 */
void tfrc_rx_report(struct tfrc_rx *rx, enum tfrc_feedback why, u64 now)
{
	u32 mark = rx->n_mark % TFRC_MARKS;
	bool skip;

	/*
	 * On the first packet that is not known (RFC 5348, 6.3); but after a loss
	 * event, of a packet before it, 0 would be a limit.
	 */
	if (why == TFRC_FEEDBACK_FIRST)
		rx->x_recv = 0;
	else
		rx->x_recv = min_t(u64, U32_MAX,
				   rx_receive_rate(rx, now) >> TFRC_RATE_SHIFT);
	rx->x_max = max(rx->x_max, rx->x_recv);
	rx->mark[mark].time = now >> 8;
	rx->mark[mark].bytes = rx->bytes;
	rx->n_mark++;
	rx->wc_feedback = rx->wc_high;
	rx->packets_feedback = rx->packets;
	/* Long ago stays long ago. */
	if ((s32)(rx->wc_high - rx->wc_event) > 1 << 30)
		rx->wc_event = rx->wc_high - (1 << 30);

	if (!rx->history.n)
		return;
	rx->history.i[0].length = tfrc_rx_interval(rx, 0);
	rx->history.i[0].packets = rx->meter.packets;
	rx->history.i[0].drops = rx->meter.drops;
	if (rx->method->pinv) {
		rx->pinv = rx->method->pinv(rx);
		return;
	}
	skip = rx->method->skip_short && rx_within(rx, rx->wc_high, TFRC_SHORT);
	rx->pinv = tfrc_history_pinv(&rx->history, skip, rx->par.discount);
}

/**
 * tfrc_rx_loss_event_rate() - value of option 192
 * @rx: receiver
 *
 * Return: 1/p in packets, rounded up; 2^32 - 1 before the first loss event
 * (RFC 4342, 8.5).
 */
u32 tfrc_rx_loss_event_rate(const struct tfrc_rx *rx)
{
	if (rx->pinv == TFRC_PINV_NONE)
		return U32_MAX;
	return (rx->pinv + TFRC_PINV_ONE - 1) >> TFRC_PINV_SHIFT;
}

static u8 *rx_put24(u8 *to, u64 value, u32 most)
{
	value = min_t(u64, value, most);
	*to++ = value >> 16;
	*to++ = value >> 8;
	*to++ = value;
	return to;
}

/**
 * tfrc_rx_intervals() - data of option 193, Loss Intervals (RFC 4342, 8.6)
 * @rx: receiver, after tfrc_rx_report()
 * @ackno: acknowledgment number of the packet that will carry it
 * @most: how many intervals, at most
 * @data: room for TFRC_INTERVALS_SIZE bytes
 *
 * The echo of the ECN nonce is 0: RFC 8311 has done away with nonces. At most
 * TFRC_NDUPACK packets may be skipped, but above a larger hole more of them are
 * undecided: these count as lossless meanwhile.
 *
 * Return: bytes used.
 */
u8 tfrc_rx_intervals(const struct tfrc_rx *rx, u64 ackno, u32 most, u8 *data)
{
	u64 undecided = max_t(s64, tfrc_seq_diff(rx->last.seq, ackno), 0);
	u64 skip = min_t(u64, undecided, TFRC_NDUPACK);
	u64 end = (rx->last.seq + undecided - skip) & TFRC_SEQ_MASK;
	u8 *to = data;
	u32 i;

	*to++ = skip;
	if (!rx->history.n) {
		to = rx_put24(to, tfrc_seq_diff(rx->first_seq, end), 0xffffff);
		to = rx_put24(to, 0, 0);
		return rx_put24(to, 0, 0) - data;
	}
	for (i = 0; i < min(rx->history.n, most); i++) {
		const struct tfrc_interval *li = &rx->history.i[i];
		u64 sequence = tfrc_seq_diff(li->start, end) + 1, lossy = 0;

		/* Only the connection's first interval begins without loss. */
		if (li->drops)
			lossy = li->lossy;
		lossy = min(lossy, sequence);
		to = rx_put24(to, sequence - lossy, 0xffffff);
		to = rx_put24(to, lossy, 0x7fffff);
		to = rx_put24(to, li->packets ?: 1, 0xffffff);
		end = (li->start - 1) & TFRC_SEQ_MASK;
	}
	return to - data;
}

/**
 * tfrc_rx_dropped() - data of option 195, Dropped Packets (RFC 5622, 8.7)
 * @rx: receiver, after tfrc_rx_report()
 * @most: as many intervals as tfrc_rx_intervals() was asked for
 * @data: room for TFRC_DROPPED_SIZE bytes
 *
 * Return: bytes used.
 */
u8 tfrc_rx_dropped(const struct tfrc_rx *rx, u32 most, u8 *data)
{
	u8 *to = data;
	u32 i;

	if (!rx->history.n)
		return rx_put24(to, 0, 0) - data;
	for (i = 0; i < min(rx->history.n, most); i++)
		to = rx_put24(to, rx->history.i[i].drops, 0xffffff);
	return to - data;
}
