// SPDX-License-Identifier: GPL-2.0
/*
 * The receiver of TFRC: loss events, and what feedback says of them (RFC 5348, 5; RFC
 * 4342, 8 and 10; RFC 5622, 8). Which packets are lost is rate_rx.c's matter.
 */

#include "tfrc_rx.h"

/* Is a window counter at most so far above that of the current event? */
static bool rx_within(const struct tfrc_rx *rx, u32 wc, s32 quarters)
{
	return (s32)(wc - rx->wc_event) <= quarters;
}

static bool rx_in_lip(const struct tfrc_rx *rx)
{
	return rx->history.n && rx_within(rx, rx->rate.last.wc, TFRC_LIP);
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
	return rx->method->length(rx, rx_within(rx, rx->rate.wc_high, TFRC_SHORT));
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
	u32 s_mean = tfrc_mean(rx->rate.s_mean), s = rx->par.s ?: s_mean;
	u64 x = 0, per_rtt, payload;
	u32 length;

	if (rx->rate.n_mark && rx->meter.packets > rx->meter.drops)
		x = max(rate_rx_receive_rate(&rx->rate, now) >> TFRC_RATE_SHIFT,
			(u64)rx->rate.x_max);
	/* Bytes per round trip, Q6: below 2^36 * 2^14 * 2^6. */
	payload = mul_u64_u32_div(x << 6, rate_rx_rtt(&rx->rate), 1000000);
	if (rx->par.header)
		x += div_u64(x * rx->par.header, s_mean);
	per_rtt = mul_u64_u32_div(x << 6, rate_rx_rtt(&rx->rate), 1000000);
	per_rtt = max(per_rtt, (u64)s << 5);
	length = tfrc_pinv(div64_u64((u64)s << 38, per_rtt));
	if (!rx->method->first || !rx->rate.data_seen)
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
			.start	= rx->rate.first_seq + 1,
			.df	= TFRC_DF_ONE,
			.length	= rx_first_length(rx, now),
		};
		i->packets = i->length >> TFRC_PINV_SHIFT;
		return;
	}
	i->length = rx->method->length(rx, rx_within(rx, rx->rate.last.wc, TFRC_SHORT));
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

	i->lossy = min_t(u64, rate_seq_diff(i->start, seq) + 1, U32_MAX);
}

/* The first @n packets of a hole are dealt with. */
static void rx_skip(struct rate_hole *hole, u32 n)
{
	u32 time = div_u64((u64)hole->time * n, hole->steps);

	hole->n -= n;
	hole->from += time;
	hole->time -= time;
	hole->steps -= n;
}

/* How many packets of a hole are in the LIP, the first ones? */
static u32 rx_lip(const struct tfrc_rx *rx, const struct rate_hole *hole)
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
static void rx_begin_event(struct tfrc_rx *rx, const struct rate_hole *hole, u64 seq,
			   bool count, u64 now)
{
	struct rate_hole one = *hole;

	rx_close_interval(rx, now);
	tfrc_history_push(&rx->history, rx->par.discount);
	rx->meter = (struct tfrc_meter){ .lost = rx->meter.carry };
	rx->wc_event = rx->rate.last.wc;
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

/**
 * tfrc_rx_lost() - data packets are lost or marked
 * @rate: receiver
 * @hole: how many, where
 * @seq: sequence number of the first one
 * @now: time
 *
 * An interval as the options report it begins with the loss that began the
 * event, also where the method counts that packet to the interval before.
 *
 * A long hole may have several events, but of more than TFRC_HOLE_EVENTS the
 * intervals are no longer known.
 *
 * Return: whether a loss event began.
 */
bool tfrc_rx_lost(struct rate_rx *rate, struct rate_hole *hole, u64 seq, u64 now)
{
	struct tfrc_rx *rx = container_of(rate, struct tfrc_rx, rate);
	u32 events = 0, done, lip = 0;

	for (; hole->n; rx_skip(hole, done), seq = (seq + done) & RATE_SEQ_MASK) {
		struct rate_hole part = *hole;
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
			rx_set_lossy(rx, (seq + done - 1) & RATE_SEQ_MASK);
		if (old < 0)
			continue;
		rx_skip(&part, done);
		rx_begin_event(rx, &part, (seq + done++) & RATE_SEQ_MASK, !old, now);
		events++;
		lip = 0;
	}
	return events;
}

/**
 * tfrc_rx_received() - a data packet without CE is next in order
 * @rate: receiver
 * @pkt: the packet
 */
void tfrc_rx_received(struct rate_rx *rate, const struct rate_packet *pkt)
{
	struct tfrc_rx *rx = container_of(rate, struct tfrc_rx, rate);

	rx->method->received(rx, pkt, rx_in_lip(rx));
	rx->meter.packets = min(rx->meter.packets + 1, TFRC_COUNT_MAX);
}

static const struct rate_rx_ops rx_ops = {
	.received	= tfrc_rx_received,
	.lost		= tfrc_rx_lost,
};

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
	rate_rx_init(&rx->rate, method->rx_ops ?: &rx_ops, seq, rtt);
	rx->method = method;
	rx->par = *par;
	rx->pinv = TFRC_PINV_NONE;
}

/**
 * tfrc_rx_report() - bring up to date what feedback says
 * @rx: receiver
 * @why: reason of the feedback
 * @now: time
 */
void tfrc_rx_report(struct tfrc_rx *rx, enum rate_feedback why, u64 now)
{
	struct rate_rx *rate = &rx->rate;
	bool skip;

	rate_rx_report(rate, why, now);
	/* Long ago stays long ago. */
	if ((s32)(rate->wc_high - rx->wc_event) > 1 << 30)
		rx->wc_event = rate->wc_high - (1 << 30);

	if (rx->method->window)
		rx->window = rx->method->window(rx);
	if (!rx->history.n)
		return;
	rx->history.i[0].length = tfrc_rx_interval(rx, 0);
	rx->history.i[0].packets = rx->meter.packets;
	rx->history.i[0].drops = rx->meter.drops;
	if (rx->method->pinv) {
		rx->pinv = rx->method->pinv(rx);
		return;
	}
	skip = rx->method->skip_short && rx_within(rx, rate->wc_high, TFRC_SHORT);
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
 * RATE_NDUPACK packets may be skipped, but above a larger hole more of them are
 * undecided: these count as lossless meanwhile.
 *
 * Return: bytes used.
 */
u8 tfrc_rx_intervals(const struct tfrc_rx *rx, u64 ackno, u32 most, u8 *data)
{
	u64 undecided = max_t(s64, rate_seq_diff(rx->rate.last.seq, ackno), 0);
	u64 skip = min_t(u64, undecided, RATE_NDUPACK);
	u64 end = (rx->rate.last.seq + undecided - skip) & RATE_SEQ_MASK;
	u8 *to = data;
	u32 i;

	*to++ = skip;
	if (!rx->history.n) {
		to = rx_put24(to, rate_seq_diff(rx->rate.first_seq, end), 0xffffff);
		to = rx_put24(to, 0, 0);
		return rx_put24(to, 0, 0) - data;
	}
	for (i = 0; i < min(rx->history.n, most); i++) {
		const struct tfrc_interval *li = &rx->history.i[i];
		u64 sequence = rate_seq_diff(li->start, end) + 1, lossy = 0;

		/* Only the connection's first interval begins without loss. */
		if (li->drops)
			lossy = li->lossy;
		lossy = min(lossy, sequence);
		to = rx_put24(to, sequence - lossy, 0xffffff);
		to = rx_put24(to, lossy, 0x7fffff);
		to = rx_put24(to, li->packets ?: 1, 0xffffff);
		end = (li->start - 1) & RATE_SEQ_MASK;
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
