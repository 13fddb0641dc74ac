// SPDX-License-Identifier: GPL-2.0
/*
 * A call from offer to report; see enum call_state. Nothing here waits: the
 * endpoint says when time has come and when a packet has.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../lib/cli.h"
#include "call.h"
#include "report.h"

/* Repetition of offers and goodbyes. */
#define RETRY		(500 * NSEC_PER_MSEC)
#define RETRY_BUSY	(20 * NSEC_PER_MSEC)

/* How long the listener waits for packets that the goodbye overtook. */
#define GRACE		(500 * NSEC_PER_MSEC)

/* How long a listener that has reported is there to repeat it. */
#define LINGER		(3 * NSEC_PER_SEC)

/* Not a packet, not a report: three reports of five seconds are missing. */
#define SILENCE_MAX	(15 * NSEC_PER_SEC)

#define FIRST_RTCP	NSEC_PER_SEC

/* Two readings of the clock's offset differ by less, unless it was set. */
#define CLOCK_STEP	NSEC_PER_MSEC

/* CLOCK_REALTIME less CLOCK_MONOTONIC: it changes when the clock is set, not while it is slewed. */
static __s64 clock_offset(void)
{
	__s64 offset, before, took, least = INT64_MAX, best = 0;

	/* the reading that was interrupted least */
	for (int i = 0; i < 3; i++) {
		before = now(CLOCK_MONOTONIC);
		offset = now(CLOCK_REALTIME) - before;
		took = now(CLOCK_MONOTONIC) - before;
		if (took < least) {
			least = took;
			best = offset;
		}
	}
	return best;
}

/* Not to be guessed, for RTP's identifiers and first numbers. */
static __u64 random_number(void)
{
	__u64 n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		die_errno("no random numbers");
	return n;
}

/* By how much the system's clock was set since the call began, ns; 0: not at all. */
__s64 call_clock_step(const struct call *c)
{
	__s64 step = clock_offset() - c->clock;

	return llabs(step) < CLOCK_STEP ? 0 : step;
}

/* A reading of CLOCK_REALTIME, perhaps the kernel's stamp of a packet, in the call's time. */
static __s64 call_arrival(struct call *c, __s64 realtime)
{
	__s64 offset = clock_offset(), at = call_time(c);

	if (llabs(offset - c->clock_now) >= CLOCK_STEP) {
		c->clock_now = offset;
		c->clock_set = at;
	}
	/* each reading of the offset is off by a little: none where nothing was set */
	if (llabs(offset - c->clock) >= CLOCK_STEP)
		realtime -= offset - c->clock;
	/* what was stamped before the clock was set is only known to be here */
	return realtime < c->clock_set || realtime > at ? at : realtime;
}

struct call *call_new(const struct options *o, int fd, bool caller)
{
	struct call *c = calloc(1, sizeof(*c));
	__s64 at = now(CLOCK_MONOTONIC);

	if (!c)
		die("out of memory");
	c->opt = o;
	c->fd = fd;
	c->caller = caller;
	c->state = caller ? CALL_OFFERING : CALL_WAITING;
	c->our_seq = (__u16)random_number() & 0x7fff;
	c->tx.ssrc = (__u32)random_number();
	c->tx.start = (__u32)random_number();
	c->rng = random_number();
	c->cookie = caller ? 0 : random_number();
	c->proven = caller || !o->udp;
	snprintf(c->cname, sizeof(c->cname), "%016llx", random_number());
	c->clock = clock_offset();
	c->clock_now = c->clock;
	c->next_frame = NEVER;
	c->next_rtcp = NEVER;
	c->next_progress = NEVER;
	c->stop = NEVER;
	c->next_state = caller ? at : NEVER;
	c->give_up = at + o->timeout;
	c->heard = at;
	c->start = at;
	if (caller)
		c->offer = (struct offer) {
			.codec = o->codec, .ptime = o->ptime, .one_way = o->one_way,
			.silence = o->silence, .ecn = o->ecn,
			.dscp = o->dscp < 0 ? 0 : o->dscp, .seed = o->seed,
		};
	receiver_init(&c->rx, caller ? o->codec : NULL, caller ? o->ptime : PTIME_DEFAULT,
		      o->playout_ms);
	net_names(fd, c->local, c->remote);
	c->ccid_tx = o->udp ? -1 : net_ccid(fd, true);
	c->ccid_rx = o->udp ? -1 : net_ccid(fd, false);
	return c;
}

/* Programs do not see the ECN field of DCCP's packets, but the CCID does. */
void call_marks(struct call *c)
{
	if (!c->opt->udp)
		rate_marks(c->fd, &c->rx.ce);
}

void call_free(struct call *c)
{
	close(c->fd);
	receiver_free(&c->rx);
	free(c);
}

/* The call is over before its time. */
static void __printf(2, 3) call_fail(struct call *c, const char *fmt, ...)
{
	va_list ap;

	if (c->state == CALL_DONE)
		return;
	/* when all has been said the rest does not matter */
	if (c->state != CALL_REPORTED) {
		va_start(ap, fmt);
		vsnprintf(c->failure, sizeof(c->failure), fmt, ap);
		va_end(ap);
	}
	if (c->stop == NEVER || c->stop > now(CLOCK_MONOTONIC))
		c->stop = now(CLOCK_MONOTONIC);
	c->state = CALL_DONE;
}

/* Send a report, with a message to the other voipcall; false if it has to be tried again. */
static bool call_say(struct call *c, enum message msg, bool bye)
{
	int err = send_rtcp(c, msg, bye);

	if (err && err != -EAGAIN)
		call_fail(c, "cannot send: %s", strerror(-err));
	return !err;
}

static void call_talk(struct call *c)
{
	__s64 at = now(CLOCK_MONOTONIC);

	c->state = CALL_TALKING;
	c->talks = c->caller || !c->offer.one_way;
	c->start = at;
	c->next_state = NEVER;
	c->next_rtcp = at + FIRST_RTCP;
	if (c->caller)
		c->stop = at + c->opt->time;
	if (c->opt->interval)
		c->next_progress = at + c->opt->interval;
	if (c->talks)
		c->next_frame = at;
	sender_init(c);
}

/* The listener learns what the caller wants. */
static void call_offered(struct call *c, const struct rtcp_packet *p)
{
	struct offer o;
	int dscp;

	if (!offer_parse(&o, p->app, p->app_len)) {
		call_fail(c, "the caller wants what this version does not know");
		return;
	}
	if (!c->offer.codec) {
		c->offer = o;
		receiver_init(&c->rx, o.codec, o.ptime, c->opt->playout_ms);
		rtp_seq_start(&c->rx.seq, o.seq);
		c->rx.ours = true;
		c->rx.has_ssrc = true;
		c->rx.ssrc = p->ssrc;
		/* the caller's mark, unless this end was told one */
		dscp = c->opt->dscp < 0 ? o.dscp : c->opt->dscp;
		c->offer.dscp = dscp;
		net_mark(c->fd, dscp, c->opt->udp && o.ecn);
	}
	call_say(c, MSG_ANSWER, false);
	c->next_rtcp = NEVER;
}

/*
 * Tell the listener that it may talk, too, with what only who has its answer
 * can know; again until it is heard, for this may get lost.
 */
static void call_ready(struct call *c)
{
	if (call_say(c, MSG_READY, false))
		c->next_rtcp = now(CLOCK_MONOTONIC) + RETRY;
}

/* The caller learns that the listener is there. */
static void call_answered(struct call *c, const struct rtcp_packet *p)
{
	struct offer o;

	if (!offer_parse(&o, p->app, p->app_len))
		return;
	rtp_seq_start(&c->rx.seq, o.seq);
	c->rx.ours = true;
	c->rx.has_ssrc = true;
	c->rx.ssrc = p->ssrc;
	c->cookie = o.cookie;
	call_talk(c);
	call_ready(c);
}

/* The peer says how much it has sent; the listener, also what it got. */
static void call_ended(struct call *c, const struct rtcp_packet *p)
{
	__u32 not_sent;
	bool has_metrics;

	if (!end_parse(p->app, p->app_len, &not_sent, c->far, &has_metrics))
		return;
	c->rx.final = true;
	c->rx.sent = p->has_sr ? p->packets : 0;
	c->rx.not_sent = not_sent;
	if (!c->caller || !has_metrics)
		return;
	c->has_far = true;
	if (c->opt->udp)
		call_say(c, MSG_ACK, true);
	if (c->state == CALL_TALKING)
		call_fail(c, "the other side hung up");
	c->state = CALL_DONE;
}

/* The peer leaves. */
static void call_goodbye(struct call *c, const struct rtcp_packet *p)
{
	__s64 at = now(CLOCK_MONOTONIC);

	if (c->state == CALL_REPORTED) {
		if (p->app && p->app_subtype == MSG_ACK)
			c->state = CALL_DONE;
		else
			call_say(c, MSG_END, true);
		return;
	}
	if (c->caller && c->state == CALL_TALKING) {
		call_fail(c, "the other side hung up");
		return;
	}
	if (c->state != CALL_TALKING && c->state != CALL_WAITING)
		return;
	if (c->state == CALL_WAITING && !c->proven) {
		call_fail(c, "the caller left before it was ready");
		return;
	}
	c->state = CALL_GRACE;
	c->stop = at;
	c->next_frame = NEVER;
	c->next_rtcp = NEVER;
	c->next_progress = NEVER;
	c->next_state = at + GRACE;
	c->give_up = at + GRACE + c->opt->timeout;
}

/* Is the peer at the address that it says? A stranger's offer gets an answer, not a talk. */
static bool call_proven(struct call *c, enum message msg, const struct rtcp_packet *p)
{
	if (msg == MSG_READY && ready_parse(p->app, p->app_len, c->cookie))
		c->proven = true;
	return c->proven;
}

static void call_rtcp(struct call *c, const struct datagram *d, __s64 arrived)
{
	enum message msg;
	struct rtcp_packet p;

	if (!rtcp_parse(&p, d->data, d->len, c->tx.ssrc))
		return;
	c->heard = now(CLOCK_MONOTONIC);
	msg = p.app ? p.app_subtype : MSG_NONE;
	if (p.has_sr) {
		c->sr_ntp = p.ntp >> 16;
		c->sr_at = ntp_time(arrived);
	}
	if (p.has_block)
		receiver_round_trip(&c->rx, rtcp_round_trip_ms(&p.block, ntp_time(arrived)));

	if (msg == MSG_OFFER && !c->caller && c->state <= CALL_TALKING)
		call_offered(c, &p);
	else if (msg == MSG_ANSWER && c->state == CALL_OFFERING)
		call_answered(c, &p);
	else if (c->state == CALL_WAITING && c->offer.codec && call_proven(c, msg, &p))
		call_talk(c);
	else if (c->state == CALL_TALKING && c->caller)
		c->peer_ready = true;
	if (msg == MSG_END)
		call_ended(c, &p);
	if (p.bye && c->state != CALL_DONE)
		call_goodbye(c, &p);
}

/*
 * A caller that is no voipcall makes no offer: its packets are counted as far
 * as they say what they are.
 */
static void call_adopt(struct call *c, const struct rtp_packet *p)
{
	const struct codec *codec = codec_by_payload_type(p->payload_type);

	/* dynamic types are by agreement: the session description, or none */
	if (codec && (codec->payload_type < 96 || c->opt->sdp)) {
		c->rx.codec = codec;
		c->rx.ptime = codec_ptime_of(codec, p->len, c->rx.ptime);
	}
	c->state = CALL_TALKING;
	c->start = c->heard;
	c->next_rtcp = c->start + FIRST_RTCP;
	if (c->opt->interval)
		c->next_progress = c->start + c->opt->interval;
}

static void call_rtp(struct call *c, const struct datagram *d, __s64 arrived)
{
	struct rtp_packet p;

	if (!rtp_parse(&p, d->data, d->len))
		return;
	c->heard = now(CLOCK_MONOTONIC);
	if (c->state == CALL_OFFERING || c->state == CALL_REPORTED)
		return;
	if (c->state == CALL_WAITING && !c->offer.codec)
		call_adopt(c, &p);
	else if (c->state == CALL_WAITING && c->proven)
		call_talk(c);
	c->peer_ready = true;
	if (!receiver_add(&c->rx, &p, arrived, d->ce))
		die("out of memory");
}

void call_datagram(struct call *c, const struct datagram *d)
{
	__s64 arrived = call_arrival(c, d->arrived);

	if (c->state == CALL_DONE)
		return;
	if (rtcp_is(d->data, d->len))
		call_rtcp(c, d, arrived);
	else
		call_rtp(c, d, arrived);
}

/* The connection is gone. */
static void call_lost(struct call *c, int err)
{
	if (c->state == CALL_OFFERING)
		call_fail(c, "no call: %s", err ? net_error(err) : "the other side hung up");
	else if (err)
		call_fail(c, "the connection broke: %s", net_error(err));
	else
		call_fail(c, "the other side is gone without a goodbye");
}

void call_readable(struct call *c)
{
	struct datagram d;
	socklen_t len = sizeof(int);
	int n, err = 0;

	while (c->state != CALL_DONE) {
		n = net_receive(c->fd, &d);
		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n > 0) {
			call_datagram(c, &d);
			continue;
		}
		err = -n;
		if (c->opt->udp && c->state == CALL_TALKING && net_unreachable(err))
			continue;
		if (!err)
			getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
		call_lost(c, err);
	}
}

/* Stop talking and say so; the listener when it is told to end, too. */
void call_hang_up(struct call *c)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	__s64 at = now(CLOCK_MONOTONIC);

	if (c->state == CALL_OFFERING || (c->state == CALL_WAITING && !c->offer.codec)) {
		call_fail(c, "interrupted");
		return;
	}
	if (c->state != CALL_TALKING && c->state != CALL_WAITING)
		return;
	if (c->stop > at)
		c->stop = at;
	c->next_frame = NEVER;
	c->next_rtcp = NEVER;
	c->next_progress = NEVER;
	if (c->caller) {
		c->state = CALL_CLOSING;
		c->next_state = at;
		c->give_up = at + c->opt->timeout;
	} else {
		/* closing a DCCP socket forgets what waits in its queue, but for this */
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		call_say(c, MSG_END, true);
		c->state = CALL_DONE;
	}
}

/* c->next_state has come. */
static void call_step(struct call *c, __s64 at)
{
	bool sent;

	switch (c->state) {
	case CALL_OFFERING:
		sent = call_say(c, MSG_OFFER, false);
		c->next_state = at + (sent ? RETRY : RETRY_BUSY);
		break;
	case CALL_CLOSING:
		sent = call_say(c, MSG_END, true);
		c->next_state = at + (!sent ? RETRY_BUSY : c->said_goodbye ? RETRY : 2 * RETRY);
		c->said_goodbye |= sent;
		break;
	case CALL_GRACE:
		sent = call_say(c, MSG_END, true);
		c->next_state = at + RETRY_BUSY;
		if (!sent || c->state == CALL_DONE)
			break;
		c->state = CALL_REPORTED;
		c->next_state = NEVER;
		c->give_up = at + LINGER;
		break;
	default:
		c->next_state = NEVER;
		break;
	}
	c->next_rtcp = NEVER;
}

static void call_expired(struct call *c)
{
	switch (c->state) {
	case CALL_OFFERING:
		call_fail(c, "no call: no answer within %g s",
			  (double)c->opt->timeout / NSEC_PER_SEC);
		break;
	case CALL_WAITING:
		call_fail(c, "the caller said nothing");
		break;
	case CALL_CLOSING:
		call_fail(c, "the other side did not report what it received");
		break;
	default:
		c->state = CALL_DONE;
		break;
	}
}

/* When call_timers() wants to be called. */
__s64 call_deadline(const struct call *c)
{
	__s64 at = c->give_up;

	if (c->state == CALL_TALKING) {
		at = c->heard + SILENCE_MAX;
		if (c->next_frame < at)
			at = c->next_frame;
		if (c->next_rtcp < at)
			at = c->next_rtcp;
		if (c->next_progress < at)
			at = c->next_progress;
		if (c->stop < at)
			at = c->stop;
	}
	return c->next_state < at ? c->next_state : at;
}

void call_timers(struct call *c, __s64 at)
{
	int err = c->next_frame <= at ? sender_talk(c, at) : 0;

	if (err)
		call_fail(c, "cannot send: %s", strerror(-err));
	if (c->state == CALL_TALKING && at >= c->heard + SILENCE_MAX)
		call_fail(c, "nothing was heard for %d s", (int)(SILENCE_MAX / NSEC_PER_SEC));
	if (c->state == CALL_TALKING && at >= c->stop)
		call_hang_up(c);
	if (c->next_state <= at && c->state != CALL_DONE)
		call_step(c, at);
	if (c->next_rtcp <= at && c->state == CALL_TALKING) {
		if (c->caller && !c->peer_ready)
			call_ready(c);
		else
			call_say(c, MSG_NONE, false);
	}
	if (c->next_progress <= at && c->state == CALL_TALKING) {
		report_progress(c, at);
		c->next_progress += c->opt->interval;
	}
	if (c->state != CALL_TALKING && c->state != CALL_DONE && at >= c->give_up)
		call_expired(c);
}
