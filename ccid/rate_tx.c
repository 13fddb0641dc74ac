// SPDX-License-Identifier: GPL-2.0
/*
 * The sender of a rate-based CCID: pacing (RFC 5348, 4.6; RFC 5622, 5), the window
 * counter (RFC 4342, 8.1), and which packets were sent when.
 */

#include "rate_tx.h"

/**
 * rate_tx_init() - before the first packet
 * @tx: zeroed
 */
void rate_tx_init(struct rate_tx *tx)
{
	tx->s_max = U32_MAX;
	tx->room = RATE_SENT_FIRST;
}

/**
 * rate_tx_least_gap() - the least time from a packet to the next
 * @tx: sender
 * @size: the packet's payload, bytes
 *
 * Return: ns.
 */
u64 rate_tx_least_gap(const struct rate_tx *tx, u32 size)
{
	u32 s = min(tx->interval_s, tx->s_max);
	u64 gap = 1000ULL * tx->min_interval;

	return s ? div_u64(gap * (s - min(size, s)), s) : gap;
}

/**
 * rate_tx_due() - when the next packet may be sent
 * @tx: sender
 * @now: time; if the packet has to wait, the sender is not data-limited
 *
 * Nominal send times (RFC 5348, 4.6) are kept with the size of each packet,
 * and only from the last packet on: unused send time is no credit.
 *
 * Return: time, not later than @now if at once.
 */
u64 rate_tx_due(struct rate_tx *tx, u64 now)
{
	u32 first = tx->n_recent % RATE_MIN_PACKETS, i;
	u64 due, after;

	tx->t_due = now;
	if (!tx->t_last)
		return now;
	due = tx->t_last + tfrc_spacing(tx->cost, tx->x_paid);
	tx->limited |= due > now;
	i = (tx->n_recent - 1) % RATE_MIN_PACKETS;
	due = max(due, tx->t_last + tx->recent_gap[i]);
	/* As many as there may be have to be over, also if one was sent late. */
	after = tx->recent[first];
	for (i = 0; i < RATE_MIN_PACKETS; i++)
		after += tx->recent_gap[i];
	tx->t_due = max(due, after);
	return tx->t_due;
}

/* Increase the window counter each quarter of a round trip, RFC 4342, 8.1. */
static void tx_update_wc(struct rate_tx *tx, u64 now)
{
	u64 quarter = 250ULL * rate_tx_rtt(tx);
	u32 n;

	/* The RFC starts again at now, which makes counters longer than a
	 * quarter by half the time between packets.
	 */
	for (n = 0; now - tx->t_wc >= quarter; n++) {
		if (n == 5) {
			tx->t_wc = now;
			return;
		}
		tx->wc++;
		tx->t_wc += quarter;
	}
}

/**
 * rate_tx_send() - a packet is sent now, after rate_tx_due()
 * @tx: sender
 * @size: payload, bytes. An empty datagram costs as much as its headers
 * @waited: it was in the queue before it was due
 * @now: time
 */
void rate_tx_send(struct rate_tx *tx, u32 size, bool waited, u64 now)
{
	if (tx->t_last)
		tx->gap = tfrc_ewma(tx->gap,
				    div_u64(min_t(u64, now - tx->t_last,
						  1ULL << 32), 1000) << 8,
				    9);
	tx_update_wc(tx, now);
	tx->t_last = waited ? clamp(tx->t_due, now - RATE_CREDIT, now) : now;
	tx->cost = max_t(u32, size + tx->header_paid, size ?: RATE_EMPTY);
	tx->recent[tx->n_recent % RATE_MIN_PACKETS] = now;
	tx->recent_gap[tx->n_recent++ % RATE_MIN_PACKETS] = rate_tx_least_gap(tx, size);
}

/*
 * The least interval, us, of packets that the rate has room for: Min Interval,
 * or of that 1 - s/S.
 */
static u32 tx_least_interval(const struct rate_tx *tx)
{
	u32 us = tx->min_interval, s = min(tx->interval_s, tx->s_max);
	u64 bytes = mul_u64_u32_div(tx->x_paid, us, 1000000) >> TFRC_RATE_SHIFT;

	return s ? div64_u64((u64)us * (s + tx->header_paid), s + bytes) : us;
}

/**
 * rate_tx_packet() - payload that packets may have at an interval
 * @tx: sender
 * @us: interval, us
 *
 * Return: bytes, at most 65535.
 */
u32 rate_tx_packet(const struct rate_tx *tx, u32 us)
{
	u64 bytes;

	us = max(us, tx_least_interval(tx));
	bytes = mul_u64_u32_div(tx->x_paid, us, 1000000) >> TFRC_RATE_SHIFT;
	bytes -= min_t(u64, bytes, tx->header_paid);
	return min(bytes, 65535ULL);
}

/* Packets that follow each other faster than this are not all noted. */
static u64 tx_note_gap(const struct rate_tx *tx)
{
	return 1000ULL * rate_tx_rtt(tx) / 32;
}

static struct rate_sent *tx_noted(const struct rate_tx *tx, u32 n)
{
	struct rate_sent *ring = tx->grown ?: (struct rate_sent *)tx->first;

	return &ring[n & (tx->room - 1)];
}

/* When it was sent: one of 73 minutes before the last one. */
static u64 tx_noted_time(const struct rate_tx *tx, const struct rate_sent *sent)
{
	return tx->t_noted -
	       ((u64)((u32)(tx->t_noted >> 10) - sent->time) << 10);
}

/**
 * rate_tx_crowded() - is there no room to note one more packet?
 * @tx: sender
 * @now: time
 *
 * There is if the oldest one is not of the last two and a half round trips, and
 * was sent before what is acknowledged; or if there are as many as there may be.
 */
bool rate_tx_crowded(const struct rate_tx *tx, u64 now)
{
	u64 oldest;

	if (tx->n_sent < tx->room || tx->room == RATE_SENT)
		return false;
	oldest = tx_noted_time(tx, tx_noted(tx, tx->n_sent));
	return now - oldest < 2500ULL * rate_tx_rtt(tx) || oldest > tx->t_covered;
}

/**
 * rate_tx_grow() - give the sender more room
 * @tx: sender
 * @ring: with room for twice as many as it has
 *
 * Return: the ring in use so far, to be freed; NULL if it was the sender's own.
 */
struct rate_sent *rate_tx_grow(struct rate_tx *tx, struct rate_sent *ring)
{
	struct rate_sent *old = tx->grown;
	u32 i, n = min(tx->n_sent, tx->room);

	for (i = 0; i < n; i++)
		ring[i] = *tx_noted(tx, tx->n_sent - n + i);
	tx->grown = ring;
	tx->room *= 2;
	tx->n_sent = n;
	return old;
}

/**
 * rate_tx_note() - remember when a data packet was sent
 * @tx: sender
 * @seq: its sequence number
 * @now: time
 *
 * At high rates only some are noted; there is room for four round trips of
 * them. In a ring that has not grown the oldest one makes room.
 */
void rate_tx_note(struct rate_tx *tx, u64 seq, u64 now)
{
	s64 step;

	tx->seq_last = seq;
	if (tx->n_sent && now - tx->t_noted < tx_note_gap(tx)) {
		tx_noted(tx, tx->n_sent - 1)->limited |= tx->limited;
		tx->limited = false;
		return;
	}
	step = rate_seq_diff(tx->seq_noted, seq);
	if (step > U16_MAX || tx->wc - tx->wc_noted > U16_MAX >> 1 ||
	    (now - tx->t_noted) >> 42)
		tx->n_sent = 0;		/* too far from those before */
	*tx_noted(tx, tx->n_sent++) = (struct rate_sent){
		.time = now >> 10, .seq = step, .wc = tx->wc - tx->wc_noted,
		.limited = tx->limited,
	};
	tx->t_noted = now;
	tx->seq_noted = seq;
	tx->wc_noted = tx->wc;
	tx->limited = false;
}

/**
 * rate_tx_sent_time() - when a packet was sent
 * @tx: sender
 * @seq: its sequence number
 * @wc: its window counter; that of the oldest one remembered if it is older
 *
 * Between noted packets the time is interpolated, and the counter that of the
 * one before.
 *
 * Return: time, 0 if it is too old.
 */
u64 rate_tx_sent_time(const struct rate_tx *tx, u64 seq, u32 *wc)
{
	u32 i, n = min(tx->n_sent, tx->room), step = 0;
	u64 at = tx->seq_noted, time, later = 0, gap;

	*wc = tx->wc_noted;
	for (i = 1; i <= n; i++) {
		const struct rate_sent *sent = tx_noted(tx, tx->n_sent - i);
		s64 d = rate_seq_diff(at, seq);

		time = tx_noted_time(tx, sent);
		if (!d || (d > 0 && i == 1))
			return time;
		if (d > 0) {
			/* Over a pause, the packets belong to its beginning. */
			gap = min(later - time, tx_note_gap(tx));
			return time + div_u64(gap * d, step);
		}
		later = time;
		step = sent->seq;
		if (i < n) {
			at -= step;
			*wc -= sent->wc;
		}
	}
	return 0;
}

/**
 * rate_tx_acked_wc() - a packet with this window counter is acknowledged
 * @tx: sender
 * @wc: window counter
 * @now: time
 *
 * A round trip has passed, so that of the next packet must be 4 above (RFC
 * 4342, 8.1), which it will be without help if our clock says so.
 */
void rate_tx_acked_wc(struct rate_tx *tx, u32 wc, u64 now)
{
	u64 n = div64_u64(now - tx->t_wc, 250ULL * rate_tx_rtt(tx));

	if (tx->wc + min_t(u32, n, 5) - wc < 4) {
		tx->wc = wc + 4;
		tx->t_wc = now;
	}
}

/**
 * rate_tx_limited() - did the rate limit what was sent?
 * @tx: sender
 * @t_sent: when the packet was sent that this feedback acknowledges; 0: unknown
 * @now: time
 *
 * That is over all that the feedback covers: the last round trip, or the time since
 * the packet that the feedback before acknowledges, up to the packet that this one
 * acknowledges. It did if a packet had to wait. That is remembered with each packet: the
 * two times of RFC 5348, 8.2.1 miss intervals when loss events bring feedback early.
 *
 * Return: whether it did; else the sender was data-limited.
 */
bool rate_tx_limited(const struct rate_tx *tx, u64 t_sent, u64 now)
{
	u64 rtt = 1000ULL * rate_tx_rtt(tx), end = t_sent ?: now - min(now, rtt);
	u64 begin = end - min(end, rtt);
	u32 i, n = min(tx->n_sent, tx->room);

	if (tx->t_covered)
		begin = min(begin, tx->t_covered);

	for (i = 1; i <= n; i++) {
		const struct rate_sent *sent = tx_noted(tx, tx->n_sent - i);
		u64 time = tx_noted_time(tx, sent);

		if (time <= begin)
			break;
		if (time <= end && sent->limited)
			return true;
	}
	return false;
}
