// SPDX-License-Identifier: GPL-2.0
/*
 * What one end of a call sends: speech on a clock of its own, and RTCP.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "../lib/rng.h"
#include "call.h"

/* Means of exponential distributions, seconds. */
#define TALK_MEAN	1.0
#define PAUSE_MEAN	1.35

/* RFC 3550 6.2, 6.3.1: 5 s, times 0.5 to 1.5, over e - 3/2. */
#define RTCP_INTERVAL	(5 * NSEC_PER_SEC / 1.21828)
#define RTCP_RETRY	(20 * NSEC_PER_MSEC)

/* Prepare to talk as c->offer says, from the first frame on. */
void sender_init(struct call *c)
{
	struct sender *tx = &c->tx;
	const struct codec *codec = c->offer.codec;
	/* without a rate to follow, the best is the place to start from */
	bool rated = !c->opt->udp && c->ccid_tx > 2;

	tx->seq = c->our_seq;
	tx->rng = rng_seed(c->offer.seed, c->caller ? 1 : 2);
	adapt_init(&tx->adapt, codec, c->offer.ptime, RTP_HEADER,
		   rated ? 0 : codec->modes - 1);
}

/* Does the next frame, due at @at, have speech in it? */
static bool sender_speaks(struct call *c, __s64 at)
{
	struct sender *tx = &c->tx;

	if (!c->offer.silence) {
		tx->marker |= !tx->frame;
		return true;
	}
	if (!tx->frame)
		tx->turn = at;
	while (at >= tx->turn) {
		tx->talking = !tx->talking;
		tx->marker |= tx->talking;
		tx->turn -= (__s64)(log(1 - rng_uniform(&tx->rng)) * NSEC_PER_SEC *
				    (tx->talking ? TALK_MEAN : PAUSE_MEAN));
	}
	return tx->talking;
}

/*
 * Not now: the socket or the device below has no room, or there is no route.
 * If that stays so, the peer will not be heard any more, and that is the end.
 */
static bool not_now(int err)
{
	return err == EAGAIN || err == ENOBUFS || err == EINTR || net_unreachable(err);
}

/* 0, or a negative errno that ends the call. */
static int send_frame(struct call *c)
{
	struct sender *tx = &c->tx;
	__u8 payload[PAYLOAD_MAX] = { 0 }, buf[sizeof(payload) + RTP_HEADER];
	struct rtp_packet p = {
		.marker = tx->marker,
		.payload_type = c->offer.codec->payload_type,
		.seq = tx->seq,
		.timestamp = tx->start +
			     (__u32)(tx->frame * c->offer.ptime * (c->offer.codec->clock / 1000)),
		.ssrc = tx->ssrc,
		.payload = payload,
		.len = codec_payload(c->offer.codec, tx->adapt.mode, c->offer.ptime),
	};
	size_t len;

	stamp_put(payload, call_time(c));
	len = rtp_pack(buf, sizeof(buf), &p);
	if (send(c->fd, buf, len, MSG_NOSIGNAL) >= 0) {
		tx->seq++;
		tx->packets++;
		tx->octets += p.len;
		tx->mode[tx->adapt.mode]++;
		tx->marker = false;
	} else if (not_now(errno)) {
		tx->not_sent++;
		tx->refused = true;
	} else {
		return -errno;
	}
	return 0;
}

static void sender_adapt(struct call *c, __s64 now)
{
	struct sender *tx = &c->tx;

	tx->next_rate = now + ADAPT_INTERVAL_MS * NSEC_PER_MSEC;
	if (c->opt->udp)
		return;
	if (rate_read(c->fd, c->offer.ptime, &tx->rate)) {
		tx->allowed_sum += (double)tx->rate.allowed;
		tx->readings++;
	}
	if (c->offer.codec->modes > 1)
		adapt_reading(&tx->adapt, tx->rate.known, tx->rate.allowed, tx->refused);
	tx->refused = false;
}

/**
 * sender_talk - send the frames that are due
 * @c:		call
 * @now:	CLOCK_MONOTONIC
 *
 * The clock goes on whatever becomes of them.
 *
 * Return: 0, or a negative errno that ends the call.
 */
int sender_talk(struct call *c, __s64 now)
{
	struct sender *tx = &c->tx;
	int err = 0;

	while (c->next_frame <= now && c->next_frame < c->stop && c->state == CALL_TALKING &&
	       !err) {
		/* nothing is known before the first packet, nothing true in a pause */
		if (tx->packets && (tx->talking || !c->offer.silence) &&
		    c->next_frame >= tx->next_rate)
			sender_adapt(c, c->next_frame);
		if (sender_speaks(c, c->next_frame))
			err = send_frame(c);
		tx->frame++;
		c->next_frame += c->offer.ptime * NSEC_PER_MSEC;
	}
	return err;
}

static size_t message_pack(struct call *c, enum message msg, __u8 *buf)
{
	double metrics[METRICS];
	struct offer own = c->offer;

	switch (msg) {
	case MSG_OFFER:
	case MSG_ANSWER:
		own.seq = c->our_seq;
		own.cookie = c->cookie;
		return offer_pack(buf, &own);
	case MSG_READY:
		return ready_pack(buf, c->cookie);
	case MSG_END:
		call_marks(c);
		if (!c->caller)
			receiver_metrics(&c->rx, metrics);
		return end_pack(buf, c->tx.not_sent, c->caller ? NULL : metrics);
	case MSG_ACK:
	case MSG_NONE:
		break;
	}
	return 0;
}

/**
 * send_rtcp - send a report, with a message to the other voipcall
 * @c:		call
 * @msg:	the message, or MSG_NONE
 * @bye:	this end leaves
 *
 * Return: 0; -EAGAIN if it has to be tried again; another negative errno ends the call.
 */
int send_rtcp(struct call *c, enum message msg, bool bye)
{
	__u64 ntp = ntp_time(call_time(c));
	__u8 app[MESSAGE_MAX], buf[SEND_MAX];
	struct rtcp_packet p = {
		.ssrc = c->tx.ssrc,
		.has_sr = c->tx.packets > 0,
		.ntp = ntp,
		.packets = c->tx.packets,
		.octets = c->tx.octets,
		/* a message that ends the call needs the room, and has more to say */
		.has_block = c->rx.has_ssrc && c->rx.packets && msg != MSG_END,
		.cname = c->cname,
		.app_subtype = msg,
		.app = msg ? app : NULL,
		.app_len = message_pack(c, msg, app),
		.bye = bye,
	};
	size_t len;

	if (p.has_sr)
		p.timestamp = c->tx.start + (__u32)(c->tx.frame * c->offer.ptime *
						    (c->offer.codec->clock / 1000));
	if (p.has_block) {
		receiver_block(&c->rx, &p.block);
		p.block.lsr = c->sr_ntp;
		p.block.dlsr = c->sr_ntp ? (__u32)((ntp - c->sr_at) >> 16) : 0;
	}
	len = rtcp_pack(buf, sizeof(buf), &p);
	if (send(c->fd, buf, len, MSG_NOSIGNAL) < 0) {
		int err = errno;

		c->next_rtcp = now(CLOCK_MONOTONIC) + RTCP_RETRY;
		return not_now(err) ? -EAGAIN : -err;
	}
	/* the first comes sooner, so that short calls have a round trip, too */
	c->next_rtcp = now(CLOCK_MONOTONIC) +
		       (__s64)(RTCP_INTERVAL * (0.5 + rng_uniform(&c->rng)));
	return 0;
}
