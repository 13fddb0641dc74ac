// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-Friendly Rate Control for DCCP: CCIDs 4 and 248 to 253; and TEAR, CCID 254.
 *
 * One core serves all of them. A CCID is a method of measuring loss (see
 * tfrc_loss.h) with defaults; its sender and receiver are tfrc_tx.c and
 * tfrc_rx.c, which know nothing of sockets. This file is what connects them
 * with DCCP: options, timers, socket options.
 *
 * A packet that may not be sent yet waits for a high-resolution timer, which
 * also stands for the nofeedback timer, and sends the feedback that waits for a
 * packet of data to ride on. It holds no reference of the socket,
 * which would live on after its end for as long as that, and has memory of its
 * own, as it may be waiting for the socket's lock while its half-connection
 * goes. That lasts for an RCU grace period more.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/tfrc.h>
#include <net/inet_ecn.h>

#include "ccid.h"
#include "dccp.h"
#include "feat.h"

#include "include/uapi/linux/dccp_tfrc.h"
#include "tear_rx.h"
#include "tfrc_rx.h"
#include "tfrc_tx.h"

#define CREATE_TRACE_POINTS
#include "tfrc_trace.h"

/* Adding a method is adding a line. */
static const struct tfrc_method *const methods[] = {
	&tfrc_sp,
	&tfrc_standard,
	&tfrc_vp_packet,
	&tfrc_vp_byte,
	&tfrc_sampling,
	&tfrc_lip_scaling,
	&tfrc_unbiasing,
	&tear_method,
};

static struct ccid_operations tfrc_ops[ARRAY_SIZE(methods)];

/**
 * struct tfrc_range - a module parameter and the values that it may have
 * @value: its value
 * @low: the least
 * @high: the greatest
 */
struct tfrc_range {
	unsigned int	value;
	unsigned int	low;
	unsigned int	high;
};

static int tfrc_range_set(const char *val, const struct kernel_param *kp)
{
	struct tfrc_range *range = kp->arg;
	struct kernel_param number = { .name = kp->name, .arg = &range->value };

	return param_set_uint_minmax(val, &number, range->low, range->high);
}

static int tfrc_range_get(char *buffer, const struct kernel_param *kp)
{
	const struct tfrc_range *range = kp->arg;

	return sysfs_emit(buffer, "%u\n", range->value);
}

static const struct kernel_param_ops range_ops = {
	.set = tfrc_range_set,
	.get = tfrc_range_get,
};

#define S_MIN			32
#define S_MAX			65535
#define H_MAX			255
#define MIN_INTERVAL_MAX	1000000

static struct tfrc_range segment = { 1460, S_MIN, S_MAX };
module_param_cb(segment, &range_ops, &segment, 0644);
MODULE_PARM_DESC(segment,
		 "segment size of CCIDs 4 and 249 to 253, bytes (32 to 65535)");

static struct tfrc_range header = { 36, 0, H_MAX };
module_param_cb(header, &range_ops, &header, 0644);
MODULE_PARM_DESC(header,
		 "header size that CCIDs 4 and 249 to 253 charge for, bytes (0 to 255)");

static struct tfrc_range min_interval = { 10000, 0, MIN_INTERVAL_MAX };
module_param_cb(min_interval, &range_ops, &min_interval, 0644);
MODULE_PARM_DESC(min_interval,
		 "least time between data packets of CCID 4, and of 249 to 253 if they are empty, us (0 to 1000000)");

static struct tfrc_range discount = { 1, 0, 1 };
module_param_cb(discount, &range_ops, &discount, 0644);
MODULE_PARM_DESC(discount,
		 "history discounting of CCIDs 248 to 251, 253 and 254 (0 or 1)");

/* Numbers from 248 on are for experiments (RFC 4340, 19.5). */
#define EXPERIMENTAL		248

static bool experimental;
static bool rtt_estimate;

static void tfrc_update_ops(void);

static int tfrc_switch_set(const char *val, const struct kernel_param *kp)
{
	int err = param_set_bool(val, kp);

	if (!err)
		tfrc_update_ops();
	return err;
}

static const struct kernel_param_ops switch_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = tfrc_switch_set,
	.get = param_get_bool,
};

module_param_cb(experimental, &switch_ops, &experimental, 0644);
MODULE_PARM_DESC(experimental,
		 "CCIDs 248 to 254 for every user, and offered by default (N or Y)");

module_param_cb(rtt_estimate, &switch_ops, &rtt_estimate, 0644);
MODULE_PARM_DESC(rtt_estimate,
		 "ask peers for their round-trip time on each data packet, RFC 6323 (N or Y)");

static void tfrc_default_params(const struct tfrc_method *method,
				struct tfrc_params *par)
{
	*par = method->defaults;
	if (par->s)
		par->s = READ_ONCE(segment.value);
	if (par->header)
		par->header = READ_ONCE(header.value);
	if (par->min_interval)
		par->min_interval = READ_ONCE(min_interval.value);
	if (par->discount)
		par->discount = READ_ONCE(discount.value);
}

static const struct tfrc_method *tfrc_ccid_method(const struct ccid *ccid)
{
	return methods[ccid->ccid_ops - tfrc_ops];
}

/* Sender */

/**
 * struct tfrc_timer - a timer that may outlive the half-connection
 * @timer: fires in softirq
 * @sk: socket, which exists as long as @dead is false
 * @lock: of @dead, and of starting @timer
 * @dead: the half-connection has gone; never to be started again
 * @rcu: to free it
 */
struct tfrc_timer {
	struct hrtimer	timer;
	struct sock	*sk;
	spinlock_t	lock;		/* dead, start */
	bool		dead;
	struct rcu_head	rcu;
};

/**
 * struct tfrc_hc_tx - sending half-connection
 * @tx: TFRC
 * @timer: for the next packet, and for missing feedback
 * @waiting: one does
 * @queued: there was another packet behind the last one
 * @t_ack: when feedback goes alone that waits for a packet to ride on; 0: none
 *	does
 * @feedback_seen: feedback has come
 * @seq: sequence number of the last one
 * @ackno: its acknowledgment number
 * @event: sequence number where the last loss event began
 * @slow: the last one said Slow Receiver
 * @dropped: packets that the receiver got and dropped, by Data Dropped
 */
struct tfrc_hc_tx {
	struct tfrc_tx		tx;
	struct tfrc_timer	*timer;
	u64			t_ack;
	bool			waiting;
	bool			queued;
	bool			feedback_seen;
	bool			slow;
	u32			dropped;
	u64			seq;
	u64			ackno;
	u64			event;
};

static struct tfrc_hc_tx *hc_tx(const struct sock *sk)
{
	return ccid_priv(dccp_sk(sk)->dccps_hc_tx_ccid);
}

static const struct tfrc_method *hc_tx_method(const struct sock *sk)
{
	return tfrc_ccid_method(dccp_sk(sk)->dccps_hc_tx_ccid);
}

/**
 * struct tfrc_hc_rx - receiving half-connection
 * @rx: TFRC
 * @due: why feedback is due that has not been sent, an enum rate_feedback
 * @slow: the application cannot keep up
 * @own: the method's own state
 */
struct tfrc_hc_rx {
	struct tfrc_rx		rx;
	u8			due;
	bool			slow;
	u64			own[];
};

static struct tfrc_hc_rx *hc_rx(const struct sock *sk)
{
	return ccid_priv(dccp_sk(sk)->dccps_hc_rx_ccid);
}

/* Is it a half-connection of this module? The other may be the kernel's. */
static bool tfrc_is_ours(const struct ccid *ccid)
{
	return ccid && ccid->ccid_ops >= tfrc_ops &&
	       ccid->ccid_ops < tfrc_ops + ARRAY_SIZE(tfrc_ops);
}

/* Not while the connection is being closed. */
static bool hc_may_report(const struct sock *sk)
{
	return sk->sk_state == DCCP_OPEN || sk->sk_state == DCCP_PARTOPEN;
}

static bool hc_feedback_due(const struct sock *sk)
{
	return hc_may_report(sk) &&
	       tfrc_is_ours(dccp_sk(sk)->dccps_hc_rx_ccid) && hc_rx(sk)->due;
}

static void hc_send_feedback(struct sock *sk)
{
	dccp_sk(sk)->dccps_hc_rx_insert_options = 1;
	dccp_send_ack(sk);
}

static void hc_timer_start(struct tfrc_timer *t, u64 when)
{
	spin_lock_bh(&t->lock);
	if (!t->dead)
		hrtimer_start(&t->timer, ns_to_ktime(when),
			      HRTIMER_MODE_ABS_SOFT);
	spin_unlock_bh(&t->lock);
}

/* Set the timer to what comes first, if it is not. */
static void hc_arm(struct tfrc_hc_tx *hc)
{
	u64 when = hc->tx.t_nofeedback;

	if (hc->waiting && (!when || hc->tx.t_due < when))
		when = hc->tx.t_due;
	if (hc->t_ack && (!when || hc->t_ack < when))
		when = hc->t_ack;
	if (!when || (hrtimer_is_queued(&hc->timer->timer) &&
		      hrtimer_get_expires_ns(&hc->timer->timer) == when))
		return;
	hc_timer_start(hc->timer, when);
}

/* Have DCCP try its queue again, as CCID-2 does. */
static void hc_dequeue(struct sock *sk)
{
	struct tasklet_struct *t = &dccp_sk(sk)->dccps_xmitlet;

	if (test_and_set_bit(TASKLET_STATE_SCHED, &t->state))
		return;
	sock_hold(sk);
	__tasklet_schedule(t);
}

static void hc_expired(struct sock *sk, struct tfrc_hc_tx *hc)
{
	u64 now = ktime_get_ns();

	if (hc->tx.t_nofeedback && hc->tx.t_nofeedback <= now) {
		tfrc_tx_expired(&hc->tx, now);
		trace_tfrc_feedback(sk, hc_tx_method(sk)->ccid, &hc->tx, 0, 0,
				    true);
	}
	if (hc->t_ack && hc->t_ack <= now) {
		hc->t_ack = 0;
		if (hc_feedback_due(sk))
			hc_send_feedback(sk);
	}
	if (hc->waiting && hc->tx.t_due <= now)
		hc_dequeue(sk);		/* tfrc_hc_tx_send() arms the timer */
	else
		hc_arm(hc);
}

static bool hc_connected(const struct sock *sk)
{
	return !((1 << sk->sk_state) &
		 (DCCPF_CLOSED | DCCPF_LISTEN | DCCPF_REQUESTING));
}

static enum hrtimer_restart tfrc_timer(struct hrtimer *timer)
{
	struct tfrc_timer *t = container_of(timer, struct tfrc_timer, timer);
	struct sock *sk = t->sk;
	bool alive;

	/* While it is not dead, the socket is there, if without references. */
	spin_lock(&t->lock);
	alive = !t->dead && refcount_inc_not_zero(&sk->sk_refcnt);
	spin_unlock(&t->lock);
	if (!alive)
		return HRTIMER_NORESTART;

	bh_lock_sock(sk);
	/* The owner may change the CCIDs: look at nothing else. */
	if (sock_owned_by_user(sk))
		set_bit(DCCP_CCID_DEFERRED, &sk->sk_tsq_flags);
	else if (!t->dead && hc_connected(sk))
		hc_expired(sk, hc_tx(sk));
	bh_unlock_sock(sk);
	sock_put(sk);
	return HRTIMER_NORESTART;
}

/* The timer has expired while the socket had an owner. */
static void tfrc_hc_tx_deferred(struct sock *sk)
{
	if (hc_connected(sk))
		hc_expired(sk, hc_tx(sk));
}

static int tfrc_hc_tx_init(struct ccid *ccid, struct sock *sk)
{
	const struct tfrc_method *method = tfrc_ccid_method(ccid);
	struct tfrc_hc_tx *hc = ccid_priv(ccid);
	struct tfrc_params par;

	hc->timer = kzalloc(sizeof(*hc->timer), gfp_any() | __GFP_ACCOUNT);
	if (!hc->timer)
		return -ENOMEM;
	hrtimer_init(&hc->timer->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	hc->timer->timer.function = tfrc_timer;
	hc->timer->sk = sk;
	spin_lock_init(&hc->timer->lock);

	tfrc_default_params(method, &par);
	tfrc_tx_init(&hc->tx, &par);
	if (method->scale_interval)
		hc->tx.interval_s = par.s;
	hc->tx.unbias = method->unbias;
	hc->tx.tear = method->window;
	return 0;
}

static void hc_timer_free(struct rcu_head *head)
{
	struct tfrc_timer *t = container_of(head, struct tfrc_timer, rcu);

	/* It may have been started again while its handler was running. */
	hrtimer_cancel(&t->timer);
	kfree(t);
}

static void tfrc_hc_tx_exit(struct sock *sk)
{
	struct tfrc_timer *t = hc_tx(sk)->timer;

	spin_lock_bh(&t->lock);
	t->dead = true;
	spin_unlock_bh(&t->lock);
	/* The handler may be waiting for a lock of ours, or be what led here. */
	call_rcu(&t->rcu, hc_timer_free);
	kfree(hc_tx(sk)->tx.grown);
}

/*
 * The nominal segment is no larger than what the path takes (RFC 4828, 3),
 * counting as TCP does: the MTU less 40 bytes.
 */
static u32 hc_path_segment(const struct sock *sk)
{
	u32 mtu = inet_csk(sk)->icsk_pmtu_cookie;

	return mtu >= 40 + S_MIN ? mtu - 40 : U32_MAX;
}

/*
 * An acknowledgment of a packet that is farther back than the Sequence Window
 * is invalid, and the feedback on it is lost. RFC 4340, 7.5.2 wants five round
 * trips in the window. It begins with 100 packets (a sysctl) and only grows. A
 * Change has to go again until it is confirmed (6.6.3), and DCCP puts it into
 * packets that acknowledge only, of which a one-way sender has none by itself.
 */
static void hc_grow_window(struct sock *sk, const struct tfrc_tx *tx)
{
	u64 want = roundup_pow_of_two(5 * tfrc_tx_flight(tx));
	u64 asked = dccp_feat_nn_get(sk, DCCPF_SEQUENCE_WINDOW);

	if (want > asked)
		dccp_feat_signal_nn_change(sk, DCCPF_SEQUENCE_WINDOW, want);
	else if (asked > dccp_sk(sk)->dccps_l_seq_win)
		inet_csk_schedule_ack(sk);
}

/*
 * Feedback that is due rides on a packet of data, if it is short and the path's
 * MTU has room for both.
 */
static void hc_ride(struct sock *sk, const struct sk_buff *skb)
{
	hc_tx(sk)->t_ack = 0;
	if (hc_rx(sk)->due != RATE_FEEDBACK_PERIODIC ||
	    skb->len + RATE_FEEDBACK_BYTES > dccp_sk(sk)->dccps_mss_cache) {
		hc_send_feedback(sk);
		return;
	}
	dccp_sk(sk)->dccps_hc_rx_insert_options = 1;
	inet_csk_schedule_ack(sk);
}

static int tfrc_hc_tx_send(struct sock *sk, struct sk_buff *skb)
{
	struct tfrc_hc_tx *hc = hc_tx(sk);
	u64 now = ktime_get_ns();

	hc->tx.s_max = hc_path_segment(sk);
	if (!hc->tx.started) {
		tfrc_tx_start(&hc->tx, skb->len, dccp_sk(sk)->dccps_syn_rtt, now);
		hc_grow_window(sk, &hc->tx);
	}
	if (tfrc_tx_due(&hc->tx, now) > now) {
		/* When the socket is closed, DCCP waits itself. */
		if (sk->sk_shutdown & SEND_SHUTDOWN)
			return min_t(u64, CCID_PACKET_DELAY_MAX,
				     DIV_ROUND_UP_ULL(hc->tx.t_due - now,
						      NSEC_PER_MSEC));
		hc->waiting = true;
		hc_arm(hc);
		return CCID_PACKET_WILL_DEQUEUE_LATER;
	}
	tfrc_tx_send(&hc->tx, skb->len, hc->waiting || hc->queued, now);
	hc->waiting = false;
	hc->queued = skb_queue_len(&sk->sk_write_queue) > 1;
	if (hc_feedback_due(sk))
		hc_ride(sk, skb);
	hc_arm(hc);
	DCCP_SKB_CB(skb)->dccpd_ccval = hc->tx.wc & 15;
	/* Each time: the application's IP_TOS overwrites it. */
	INET_ECN_dontxmit(sk);
	if (dccp_sk(sk)->dccps_peer_ecn)
		INET_ECN_xmit(sk);
	return CCID_PACKET_SEND_AT_ONCE;
}

/* Without memory, fewer packets are remembered. */
static void hc_grow_ring(struct tfrc_tx *tx)
{
	struct tfrc_sent *ring;

	ring = kmalloc_array(2 * tx->room, sizeof(*ring),
			     gfp_any() | __GFP_ACCOUNT | __GFP_NOWARN);
	if (ring)
		kfree(tfrc_tx_grow(tx, ring));
}

static void tfrc_hc_tx_packet_sent(struct sock *sk, unsigned int len)
{
	struct tfrc_tx *tx = &hc_tx(sk)->tx;
	u64 now = ktime_get_ns();

	if (tfrc_tx_crowded(tx, now))
		hc_grow_ring(tx);
	tfrc_tx_note(tx, dccp_sk(sk)->dccps_gss, now);
}

/**
 * struct tfrc_options - options of a feedback packet
 * @seen: which ones it has, a bit each
 * @x_recv: Receive Rate, bytes/s
 * @pinv: Loss Event Rate, packets
 * @mean: Mean Interval or Window, packets, Q24.8
 * @li: Loss Intervals; @start is how far before the acknowledgment number an
 *	interval begins, @drops is the Loss Length
 * @n_li: how many
 * @far: the current interval is so long that nobody knows where it began
 * @drops: Dropped Packets
 * @n_drops: how many
 * @slow: Slow Receiver
 * @acked: packets that it is the first to acknowledge
 * @told: as many, counted back from the acknowledgment number, has Data Dropped told of
 * @dropped: of @acked, those dropped for want of a buffer
 * @corrupt: those with Drop Codes that count as marks
 * @not_delivered: those that the application did not get, for whatever reason
 */
struct tfrc_options {
	u8			seen;
	u32			x_recv;
	u32			pinv;
	u32			mean;
	struct tfrc_reported	li[TFRC_NINTERVAL + 1];
	u8			n_li;
	bool			far;
	u32			drops[TFRC_NINTERVAL + 1];
	u8			n_drops;
	bool			slow;
	u32			acked;
	u32			told;
	u32			dropped;
	u32			corrupt;
	u32			not_delivered;
};

#define SEEN(option)	BIT((option) - TFRC_OPT_LOSS_EVENT_RATE)

static u32 tfrc_get24(const u8 *val)
{
	return val[0] << 16 | val[1] << 8 | val[2];
}

static void hc_parse_intervals(struct tfrc_options *o, const u8 *val, u8 len)
{
	u64 back = *val++;
	u32 i;

	o->n_li = min_t(u32, len / 9, ARRAY_SIZE(o->li));
	o->far = tfrc_get24(val) == 0xffffff;
	for (i = 0; i < o->n_li; i++, val += 9) {
		o->li[i].drops = tfrc_get24(val + 3) & 0x7fffff;
		o->li[i].packets = tfrc_get24(val + 6);
		back += tfrc_get24(val) + o->li[i].drops;
		o->li[i].start = back;
	}
}

static void hc_parse_dropped(struct tfrc_options *o, const u8 *val, u8 len)
{
	u32 i;

	o->n_drops = min_t(u32, len / 3, ARRAY_SIZE(o->drops));
	for (i = 0; i < o->n_drops; i++, val += 3)
		o->drops[i] = tfrc_get24(val);
}

#define DROP_BLOCK		0x80	/* else so many packets less one were delivered */
#define DROP_CODE_BUFFER	2
#define DROP_CODE_CORRUPT	3	/* this and greater ones count as a mark */
#define DROP_CODE_DELIVERED	7	/* corrupt, but the application got it */

/*
 * Data Dropped (RFC 4340, 11.7) comes again and again until the receiver knows that
 * it has arrived; only what is acknowledged for the first time is news.
 */
static void hc_parse_data_dropped(struct tfrc_options *o, const u8 *val, u8 len)
{
	for (; len; len--, val++) {
		u32 n = (*val & DROP_BLOCK ? *val & 15 : *val) + 1;
		u32 news = min(n, o->acked - min(o->acked, o->told));
		u8 code = *val >> 4 & 7;

		o->told += n;
		if (!(*val & DROP_BLOCK))
			continue;
		if (code != DROP_CODE_DELIVERED)
			o->not_delivered += news;
		if (code == DROP_CODE_BUFFER)
			o->dropped += news;
		else if (code >= DROP_CODE_CORRUPT)
			o->corrupt += news;
	}
}

/* An option of a length that it cannot have is ignored (RFC 4340, 5.8). */
static void hc_parse_option(struct tfrc_options *o, u8 option, const u8 *val,
			    u8 len)
{
	switch (option) {
	case DCCPO_DATA_DROPPED:
		hc_parse_data_dropped(o, val, len);
		return;
	case TFRC_OPT_LOSS_EVENT_RATE:
		if (len != 4)
			return;
		o->pinv = get_unaligned_be32(val);
		break;
	case TFRC_OPT_RECEIVE_RATE:
		if (len != 4)
			return;
		o->x_recv = get_unaligned_be32(val);
		break;
	case TFRC_OPT_MEAN_INTERVAL:
		if (len != 4)
			return;
		o->mean = get_unaligned_be32(val);
		break;
	case TFRC_OPT_LOSS_INTERVALS:
		/* Of several, the first one begins with the current interval. */
		if (len < 10 || len % 9 != 1 || o->seen & SEEN(option))
			return;
		hc_parse_intervals(o, val, len);
		break;
	case TFRC_OPT_DROPPED_PACKETS:
		if (!len || len % 3 || o->seen & SEEN(option))
			return;
		hc_parse_dropped(o, val, len);
		break;
	default:
		return;
	}
	o->seen |= SEEN(option);
}

/*
 * DCCP hands over each option as it comes to it, also those of packets that it
 * then discards: what was kept would be taken for the next packet's. So the
 * options are read here, from the packet that arrived.
 */
static void hc_parse(struct tfrc_options *o, const struct sk_buff *skb)
{
	const u8 *at = (const u8 *)dccp_hdr(skb) + dccp_hdr_len(skb);
	const u8 *end = (const u8 *)dccp_hdr(skb) +
			dccp_hdr(skb)->dccph_doff * 4;

	o->seen = 0;
	o->slow = false;
	o->told = 0;
	o->dropped = 0;
	o->corrupt = 0;
	o->not_delivered = 0;
	while (at < end) {
		u8 option = *at++, len;

		if (option <= DCCPO_MAX_RESERVED) {	/* of one byte */
			o->slow |= option == DCCPO_SLOW_RECEIVER;
			continue;
		}
		if (at == end || *at < 2 || *at - 1 > end - at)
			return;
		len = *at++ - 2;
		hc_parse_option(o, option, at, len);
		at += len;
	}
}

/*
 * RFC 4342, 6 wants the receive rate and the loss event rate. What the latter is,
 * the sender of CCID 4 can tell by the loss intervals (RFC 5622, 8.7), which a
 * peer may send alone.
 */
static bool hc_is_feedback(const struct tfrc_method *method,
			   const struct tfrc_options *o)
{
	u8 loss = SEEN(TFRC_OPT_LOSS_EVENT_RATE);

	if (method->sender_counts)
		loss |= SEEN(TFRC_OPT_LOSS_INTERVALS);
	return o->seen & SEEN(TFRC_OPT_RECEIVE_RATE) && o->seen & loss;
}

/* Does the Loss Intervals option tell of an event that is news? */
static bool hc_new_event(struct tfrc_hc_tx *hc, const struct tfrc_options *o)
{
	u64 start = o->li[0].start;
	bool news;

	if (!o->li[0].drops || o->far)
		return false;
	news = !hc->event || rate_seq_diff(hc->event, start) > 0;
	if (news)
		hc->event = start;
	return news;
}

/*
 * What the intervals say of 1/p, with those that were told before. If some are
 * missing, the Loss Event Rate counts, if there is one.
 */
static void hc_count_intervals(struct tfrc_hc_tx *hc, struct tfrc_options *o, u32 wc,
			       struct tfrc_feedback_in *fb)
{
	bool complete = tfrc_tx_tell(&hc->tx, o->li, o->n_li);

	if (!complete && fb->pinv != TFRC_PINV_NONE)
		return;
	/* Without a window counter, which says how long ago: nothing new. */
	if (hc->tx.n_told > 1 && (fb->t_sent || hc->tx.pinv == TFRC_PINV_NONE))
		fb->pinv = tfrc_tx_pinv(&hc->tx, fb->t_sent ? wc : hc->tx.wc);
	else if (fb->pinv == TFRC_PINV_NONE || !fb->t_sent)
		fb->pinv = hc->tx.pinv;
}

/* What the options say of loss. */
static void hc_loss_report(struct tfrc_hc_tx *hc, const struct tfrc_method *method,
			   struct tfrc_options *o, u32 wc,
			   struct tfrc_feedback_in *fb)
{
	u32 i;

	/* Without it, there is no loss unless the intervals have one. */
	if (!(o->seen & SEEN(TFRC_OPT_LOSS_EVENT_RATE)))
		o->pinv = U32_MAX;
	fb->pinv = o->pinv == U32_MAX ? TFRC_PINV_NONE :
		   clamp(o->pinv, 1U, TFRC_PINV_MAX) << TFRC_PINV_SHIFT;
	/* Not rounded up to whole packets, which would be generous. */
	if (method->window && o->seen & SEEN(TFRC_OPT_WINDOW))
		fb->window = min(o->mean, TEAR_WINDOW_MAX);
	else if (o->seen & SEEN(TFRC_OPT_MEAN_INTERVAL) &&
		 !method->sender_counts && fb->pinv != TFRC_PINV_NONE)
		fb->pinv = clamp(o->mean, TFRC_PINV_ONE, fb->pinv);
	if (!(o->seen & SEEN(TFRC_OPT_LOSS_INTERVALS)))
		return;
	for (i = 0; i < o->n_li; i++)
		o->li[i].start = SUB48(hc->ackno + 1, o->li[i].start);
	/* A Drop Count that is not given is the Loss Length, RFC 5622, 8.7. */
	if (o->seen & SEEN(TFRC_OPT_DROPPED_PACKETS))
		for (i = 0; i < min(o->n_li, o->n_drops); i++)
			o->li[i].drops = min(o->li[i].drops, o->drops[i]);
	fb->new_event = hc_new_event(hc, o);
	if (method->sender_counts)
		hc_count_intervals(hc, o, wc, fb);
}

static void tfrc_hc_tx_packet_recv(struct sock *sk, struct sk_buff *skb)
{
	struct dccp_sock *dp = dccp_sk(sk);
	struct tfrc_hc_tx *hc = hc_tx(sk);
	const struct tfrc_method *method = hc_tx_method(sk);
	u8 type = DCCP_SKB_CB(skb)->dccpd_type;
	u64 ackno = DCCP_SKB_CB(skb)->dccpd_ack_seq, now = ktime_get_ns();
	u64 seq = DCCP_SKB_CB(skb)->dccpd_seq;
	struct tfrc_feedback_in fb = {};
	struct tfrc_options o;
	bool fresh;
	u32 wc = 0;

	if (type != DCCP_PKT_ACK && type != DCCP_PKT_DATAACK)
		return;
	o.acked = clamp_t(s64, rate_seq_diff(hc->feedback_seen ? hc->ackno : dp->dccps_iss,
					     ackno), 0, U32_MAX);
	hc_parse(&o, skb);
	if (!hc_is_feedback(method, &o) || !hc->tx.started)
		return;
	/* A duplicate, or overtaken by newer feedback? */
	if (hc->feedback_seen && (seq == hc->seq ||
				  rate_seq_diff(hc->ackno, ackno) < 0))
		return;
	fresh = !hc->feedback_seen || hc->ackno != ackno;
	hc->feedback_seen = true;
	hc->seq = seq;
	hc->ackno = ackno;

	fb.t_sent = tfrc_tx_sent_time(&hc->tx, ackno, &wc);
	if (fb.t_sent) {
		s64 us = div_u64(now - fb.t_sent, NSEC_PER_USEC) -
			 10LL * dp->dccps_options_received.dccpor_elapsed_time;

		/*
		 * What came after the last data packet was not noted. And a
		 * packet is one sample, however often it is acknowledged.
		 */
		if (fresh && rate_seq_diff(hc->tx.seq_last, ackno) <= 0)
			fb.rtt = clamp_t(s64, us, TFRC_RTT_MIN, TFRC_RTT_MAX);
		tfrc_tx_acked_wc(&hc->tx, wc, now);
	}
	fb.x_recv = o.x_recv;
	fb.slow = o.slow;
	fb.dropped = o.dropped;
	fb.corrupt = o.corrupt;
	hc->slow = o.slow;
	hc->dropped += o.not_delivered;
	hc_loss_report(hc, method, &o, wc, &fb);
	tfrc_tx_feedback(&hc->tx, &fb, now);
	trace_tfrc_feedback(sk, method->ccid, &hc->tx, fb.x_recv, fb.rtt,
			    false);
	hc_grow_window(sk, &hc->tx);

	/* The rate has changed, and with it when the next packet may go. */
	if (hc->waiting)
		hc_dequeue(sk);
	else
		hc_arm(hc);
}

static u32 tfrc_hc_tx_rtt(struct sock *sk)
{
	return hc_tx(sk)->tx.rtt;
}

static void tfrc_hc_tx_get_info(struct sock *sk, struct tcp_info *info)
{
	const struct tfrc_tx *tx = &hc_tx(sk)->tx;

	info->tcpi_rto = tfrc_tx_rto(tx);
	info->tcpi_rtt = tx->rtt;
}

/* p in millionths of 1/p in Q24.8 */
static u32 tfrc_millionths(u32 pinv)
{
	if (pinv == TFRC_PINV_NONE)
		return 0;
	return max(div_u64(1000000ULL << TFRC_PINV_SHIFT, pinv), 1ULL);
}

static void hc_tx_info(const struct tfrc_hc_tx *hc, u8 ccid,
		       struct tfrc_tx_info_ext *info)
{
	const struct tfrc_tx *tx = &hc->tx;
	u64 x_recv = tfrc_tx_x_recv(tx);
	u32 pinv = tfrc_tx_mean_interval(tx);
	bool loss = pinv != TFRC_PINV_NONE;

	*info = (struct tfrc_tx_info_ext){
		.x		= tx->x,
		.x_recv		= x_recv == TFRC_RATE_MAX ? 0 : x_recv,
		.x_calc		= loss ? min_t(u64, U32_MAX, tx->x_calc >>
					       TFRC_RATE_SHIFT) : 0,
		.rtt		= tx->rtt,
		.p		= tfrc_millionths(pinv),
		.rto		= tfrc_tx_rto(tx),
		.ipi		= div_u64(tfrc_spacing(tfrc_mean(tx->s_mean),
						       tx->x_inst), 1000),
		.size		= sizeof(*info),
		.x_inst		= tx->x_inst >> TFRC_RATE_SHIFT,
		.interval	= info->interval ?: tx->gap >> 8,
		.s		= tfrc_tx_segment(tx),
		.s_mean		= tfrc_mean(tx->s_mean),
		.header		= tx->par.header,
		.min_interval	= tx->par.min_interval,
		.ccid		= ccid,
		.slow_start	= !loss,
		.data_limited	= tx->data_limited,
		.loss_interval	= loss ? pinv >> TFRC_PINV_SHIFT : 0,
		.nofeedback	= tx->nofeedback,
		.feedback	= tx->feedback,
		.slow_receiver	= hc->slow,
		.dropped	= hc->dropped,
		.window		= tx->window,
	};
	info->packet = tfrc_tx_packet(tx, info->interval);
}

/* Give the caller what fits of a value. */
static int tfrc_give(const void *val, int size, int len, u32 __user *optval,
		     int __user *optlen)
{
	if (len < (int)sizeof(u32))
		return -EINVAL;
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(optval, val, len))
		return -EFAULT;
	return 0;
}

/* A caller may name an interval by which @packet is meant. */
static int tfrc_hc_tx_getsockopt(struct sock *sk, const int optname, int len,
				 u32 __user *optval, int __user *optlen)
{
	const size_t at = offsetof(struct tfrc_tx_info_ext, interval);
	/* What programs have that were built with the structure as it was first. */
	const int first = offsetofend(struct tfrc_tx_info_ext, feedback);
	struct tfrc_hc_tx *hc = hc_tx(sk);
	struct tfrc_tx_info_ext info = {};
	int size = sizeof(u32);
	const void *val;
	u32 number;

	val = &number;		/* not of the slab, which users may not read */

	switch (optname) {
	case DCCP_SOCKOPT_CCID_TX_INFO:
		if (len < (int)sizeof(struct tfrc_tx_info))
			return -EINVAL;
		size = sizeof(info);
		val = &info;
		if (len >= first && copy_from_user(&info.interval,
						   (u8 __user *)optval + at,
						   sizeof(info.interval)))
			return -EFAULT;
		hc_tx_info(hc, hc_tx_method(sk)->ccid, &info);
		break;
	case DCCP_SOCKOPT_TFRC_TX_SEGMENT:
		number = hc->tx.par.s;
		break;
	case DCCP_SOCKOPT_TFRC_TX_HEADER:
		number = hc->tx.par.header;
		break;
	case DCCP_SOCKOPT_TFRC_TX_INTERVAL:
		number = hc->tx.par.min_interval;
		break;
	case DCCP_SOCKOPT_TFRC_TX_VARIANT:
		if (!hc->tx.unbias)
			return -ENOPROTOOPT;
		number = hc->tx.par.variant;
		break;
	default:
		return -ENOPROTOOPT;
	}
	return tfrc_give(val, size, len, optval, optlen);
}

/**
 * tfrc_set_u32() - take the value of a socket option
 * @to: where it goes
 * @val: value
 * @low: the least that it may be
 * @high: the greatest
 * @free_low: what is below takes CAP_NET_ADMIN over the network namespace
 * @free_high: and so does what is above
 * @admin: the caller has that
 *
 * As with TCP's congestion controls, what would take more from the network
 * than the administrator's defaults is not for every program to choose.
 *
 * Return: 0, -EINVAL or -EPERM.
 */
static int tfrc_set_u32(u32 *to, u32 val, u32 low, u32 high, u32 free_low,
			u32 free_high, bool admin)
{
	if (val < low || val > high)
		return -EINVAL;
	if (!admin && (val < free_low || val > free_high))
		return -EPERM;
	*to = val;
	return 0;
}

/*
 * S, which may be lowered without a privilege to @free_low. Zero stands for the
 * mean, where that is the default.
 */
static int tfrc_set_segment(u32 *to, u32 val, u32 by_default, u32 free_low,
			    bool admin)
{
	if (val && val < S_MIN)
		return -EINVAL;
	return tfrc_set_u32(to, val, by_default ? S_MIN : 0, S_MAX, free_low,
			  by_default, admin);
}

static int tfrc_hc_tx_setsockopt(struct sock *sk, int optname, u32 val,
				 bool admin)
{
	struct tfrc_hc_tx *hc = hc_tx(sk);
	struct tfrc_params *par = &hc->tx.par, def;
	u32 number;
	int err;

	tfrc_default_params(hc_tx_method(sk), &def);

	switch (optname) {
	case DCCP_SOCKOPT_TFRC_TX_SEGMENT:
		return tfrc_set_segment(&par->s, val, def.s, 0, admin);
	case DCCP_SOCKOPT_TFRC_TX_HEADER:
		return tfrc_set_u32(&par->header, val, 0, H_MAX, def.header, H_MAX,
				  admin);
	case DCCP_SOCKOPT_TFRC_TX_INTERVAL:
		return tfrc_set_u32(&par->min_interval, val, 0, MIN_INTERVAL_MAX,
				  def.min_interval, MIN_INTERVAL_MAX, admin);
	case DCCP_SOCKOPT_TFRC_TX_VARIANT:
		if (!hc->tx.unbias)
			return -ENOPROTOOPT;
		err = tfrc_set_u32(&number, val, 0, TFRC_VARIANT_BYTES, 0,
				   TFRC_VARIANT_BYTES, admin);
		if (!err)
			par->variant = number;
		return err;
	default:
		return -ENOPROTOOPT;
	}
}

/* Receiver */

static int tfrc_hc_rx_init(struct ccid *ccid, struct sock *sk)
{
	const struct tfrc_method *method = tfrc_ccid_method(ccid);
	struct tfrc_hc_rx *hc = ccid_priv(ccid);
	struct tfrc_params par;

	tfrc_default_params(method, &par);
	hc->rx.own = hc->own;
	if (method->init)
		method->init(hc->own, get_random_u64());
	tfrc_rx_init(&hc->rx, method, &par, dccp_sk(sk)->dccps_gsr,
		     dccp_sk(sk)->dccps_syn_rtt);
	return 0;
}

static bool tfrc_is_ce(const struct sk_buff *skb)
{
	switch (skb->protocol) {
	case htons(ETH_P_IP):
		return INET_ECN_is_ce(ip_hdr(skb)->tos);
	case htons(ETH_P_IPV6):
		return INET_ECN_is_ce(ipv6_get_dsfield(ipv6_hdr(skb)));
	default:
		return false;
	}
}

/*
 * Let periodic feedback wait for the next packet of data, if one goes back soon:
 * two times between packets, and not longer than the sender can do without.
 * Elapsed Time says how long it was.
 */
static bool hc_wait_for_data(struct sock *sk, u64 now)
{
	u64 gap, most = rate_rx_may_wait(&hc_rx(sk)->rx.rate, now);
	struct tfrc_hc_tx *hc;

	if (!tfrc_is_ours(dccp_sk(sk)->dccps_hc_tx_ccid))
		return false;
	hc = hc_tx(sk);
	gap = (u64)(hc->tx.gap >> 8) * NSEC_PER_USEC;
	most = min_t(u64, most, 100 * NSEC_PER_MSEC);
	if (!gap || gap > most || now - hc->tx.t_last > 2 * gap)
		return false;
	if (!hc->t_ack) {
		hc->t_ack = now + min(2 * gap, most);
		hc_arm(hc);
	}
	return true;
}

/* The sender's options. That of feature 128 has one to three bytes (RFC 6323, 3.2.1). */
static int tfrc_hc_rx_parse(struct sock *sk, u8 type, u8 option, u8 *val, u8 len)
{
	u32 us = 0;
	u8 i;

	if (option != TFRC_OPT_RTT_ESTIMATE || !dccp_sk(sk)->dccps_recv_rtt)
		return 0;
	if (len < 1 || len > 3)
		return -EINVAL;		/* resets the connection */
	for (i = 0; i < len; i++)
		us = us << 8 | val[i];
	rate_rx_rtt_estimate(&hc_rx(sk)->rx.rate, us, ktime_get_ns());
	return 0;
}

static void tfrc_hc_rx_packet_recv(struct sock *sk, struct sk_buff *skb)
{
	struct dccp_sock *dp = dccp_sk(sk);
	struct tfrc_hc_rx *hc = hc_rx(sk);
	struct tfrc_rx *rx = &hc->rx;
	struct rate_packet pkt = {
		.seq	= DCCP_SKB_CB(skb)->dccpd_seq,
		.ndp	= min_t(u64, dp->dccps_options_received.dccpor_ndp,
				RATE_NDP_MAX),
		.data	= dccp_data_packet(skb),
		.ce	= tfrc_is_ce(skb),
	};
	struct tfrc_params par = rx->par;
	u64 now = ktime_get_ns();
	enum rate_feedback why;

	if (pkt.data)
		pkt.size = skb->len - dccp_hdr(skb)->dccph_doff * 4;
	/*
	 * DCCP keeps the packet to itself that makes a server's connection, and
	 * knows the round trip by it, unless the peer has told it. What is missing
	 * after that one is lost.
	 */
	if (dp->dccps_role == DCCP_ROLE_SERVER && !rx->rate.n_waiting &&
	    rx->rate.last.seq == rx->rate.first_seq)
		tfrc_rx_init(rx, rx->method, &par, dp->dccps_osr,
			     (rx->rate.rtt_known ? 0 : dp->dccps_syn_rtt) ?: rx->rate.rtt);
	why = rate_rx_packet(&rx->rate, &pkt, dccp_hdr(skb)->dccph_ccval, now);
	if (why == RATE_FEEDBACK_NONE)
		return;
	/* The more urgent reason has the smaller number. */
	hc->due = hc->due ? min_t(u8, hc->due, why) : why;
	if (hc->due != RATE_FEEDBACK_PERIODIC || !hc_wait_for_data(sk, now))
		hc_send_feedback(sk);
}

/* Elapsed Time, in tens of us: two bytes, or four (RFC 4340, 13.2). */
static int hc_insert_elapsed(struct sk_buff *skb, u64 time)
{
	__be32 val = htonl(min_t(u64, time, U32_MAX));
	__be16 brief = htons(time);

	if (time > U16_MAX)
		return dccp_insert_option(skb, DCCPO_ELAPSED_TIME, &val,
					  sizeof(val));
	return dccp_insert_option(skb, DCCPO_ELAPSED_TIME, &brief,
				  sizeof(brief));
}

static int hc_insert_slow_receiver(struct sk_buff *skb)
{
	if (DCCP_SKB_CB(skb)->dccpd_opt_len >= DCCP_MAX_OPT_LEN)
		return -1;
	DCCP_SKB_CB(skb)->dccpd_opt_len++;
	*(u8 *)skb_push(skb, 1) = DCCPO_SLOW_RECEIVER;
	return 0;
}

/*
 * Feedback: what RFC 4342, 6 and RFC 5622, 8 want on it. As long as there is no
 * new event, only the current interval changes; the one before goes with it, so
 * that an event is known if the feedback on it was lost.
 */
static int tfrc_hc_rx_insert(struct sock *sk, struct sk_buff *skb)
{
	struct tfrc_hc_rx *hc = hc_rx(sk);
	struct tfrc_rx *rx = &hc->rx;
	u8 type = DCCP_SKB_CB(skb)->dccpd_type, why = hc->due;
	u32 most = why == RATE_FEEDBACK_PERIODIC ? TFRC_INTERVALS_BRIEF : U32_MAX;
	u8 data[TFRC_INTERVALS_SIZE];
	u64 now = ktime_get_ns();
	__be32 val;
	u8 len;

	BUILD_BUG_ON(TFRC_DROPPED_SIZE > TFRC_INTERVALS_SIZE);
	if (!hc_may_report(sk))
		return 0;
	if (!why || (type != DCCP_PKT_ACK && type != DCCP_PKT_DATAACK))
		return 0;

	tfrc_rx_report(rx, why, now);
	trace_tfrc_report(sk, rx, why);
	hc->due = RATE_FEEDBACK_NONE;
	if (tfrc_is_ours(dccp_sk(sk)->dccps_hc_tx_ccid))
		hc_tx(sk)->t_ack = 0;

	val = htonl(tfrc_rx_loss_event_rate(rx));
	if (dccp_insert_option(skb, TFRC_OPT_LOSS_EVENT_RATE, &val, sizeof(val)))
		return -1;
	val = htonl(rx->method->window ? rx->window : rx->pinv);
	if (!rx->method->sender_counts &&
	    dccp_insert_option(skb, TFRC_OPT_MEAN_INTERVAL, &val, sizeof(val)))
		return -1;
	val = htonl(rx->rate.x_recv);
	if (dccp_insert_option(skb, TFRC_OPT_RECEIVE_RATE, &val, sizeof(val)))
		return -1;
	if (hc_insert_elapsed(skb, div_u64(now - rx->rate.t_high, 10000)))
		return -1;
	if (hc->slow && hc_insert_slow_receiver(skb))
		return -1;
	len = tfrc_rx_intervals(rx, dccp_sk(sk)->dccps_gsr, most, data);
	if (dccp_insert_option(skb, TFRC_OPT_LOSS_INTERVALS, data, len))
		return -1;
	if (!rx->method->sender_counts && !rx->method->window)
		return 0;
	len = tfrc_rx_dropped(rx, most, data);
	return dccp_insert_option(skb, TFRC_OPT_DROPPED_PACKETS, data, len);
}

static void tfrc_hc_rx_get_info(struct sock *sk, struct tcp_info *info)
{
	info->tcpi_options |= TCPI_OPT_TIMESTAMPS;
	info->tcpi_rcv_rtt = hc_rx(sk)->rx.rate.rtt;
}

static void hc_rx_info(const struct tfrc_rx *rx, struct tfrc_rx_info_ext *info)
{
	u32 i;

	*info = (struct tfrc_rx_info_ext){
		.x_recv		= rx->rate.x_recv,
		.rtt		= rx->rate.rtt,
		.p		= tfrc_millionths(rx->pinv),
		.size		= sizeof(*info),
		.packets	= rx->rate.packets,
		.lost		= rx->rate.lost,
		.marked		= rx->rate.marked,
		.late		= rx->rate.late,
		.duplicates	= rx->rate.duplicates,
		.events		= rx->events,
		.mean_interval	= rx->pinv == TFRC_PINV_NONE ? 0 : rx->pinv,
		.s		= rx->par.s ?: tfrc_mean(rx->rate.s_mean),
		.s_mean		= tfrc_mean(rx->rate.s_mean),
		.header		= rx->par.header,
		.ccid		= rx->method->ccid,
		.discount	= rx->par.discount,
		.variant	= rx->par.variant,
		.intervals	= rx->history.n,
		.window		= rx->window,
	};
	BUILD_BUG_ON(ARRAY_SIZE(info->interval) != ARRAY_SIZE(rx->history.i));
	for (i = 0; i < rx->history.n; i++)
		info->interval[i] = tfrc_rx_interval(rx, i);
}

static int tfrc_hc_rx_getsockopt(struct sock *sk, const int optname, int len,
				 u32 __user *optval, int __user *optlen)
{
	const struct tfrc_hc_rx *hc = hc_rx(sk);
	const struct tfrc_rx *rx = &hc->rx;
	struct tfrc_rx_info_ext info;
	int size = sizeof(u32);
	const void *val;
	u32 number;

	val = &number;
	switch (optname) {
	case DCCP_SOCKOPT_CCID_RX_INFO:
		if (len < (int)sizeof(struct tfrc_rx_info))
			return -EINVAL;
		hc_rx_info(rx, &info);
		val = &info;
		size = sizeof(info);
		break;
	case DCCP_SOCKOPT_TFRC_RX_SEGMENT:
		number = rx->par.s;
		break;
	case DCCP_SOCKOPT_TFRC_RX_HEADER:
		number = rx->par.header;
		break;
	case DCCP_SOCKOPT_TFRC_RX_DISCOUNT:
		number = rx->par.discount;
		break;
	case DCCP_SOCKOPT_TFRC_RX_VARIANT:
		number = rx->par.variant;
		break;
	case DCCP_SOCKOPT_TFRC_RX_SLOW:
		number = hc->slow;
		break;
	default:
		return -ENOPROTOOPT;
	}
	return tfrc_give(val, size, len, optval, optlen);
}

static int tfrc_hc_rx_setsockopt(struct sock *sk, int optname, u32 val,
				 bool admin)
{
	struct tfrc_hc_rx *hc = hc_rx(sk);
	struct tfrc_rx *rx = &hc->rx;
	struct tfrc_params def;
	u32 number;
	int err;

	tfrc_default_params(rx->method, &def);

	switch (optname) {
	case DCCP_SOCKOPT_TFRC_RX_SEGMENT:
		/*
		 * The smaller, the longer are the first interval and those in
		 * virtual packets; and it must be the sender's.
		 */
		return tfrc_set_segment(&rx->par.s, val, def.s, def.s, admin);
	case DCCP_SOCKOPT_TFRC_RX_HEADER:
		/* The more, the longer is the first loss interval. */
		return tfrc_set_u32(&rx->par.header, val, 0, H_MAX, 0, def.header,
				  admin);
	case DCCP_SOCKOPT_TFRC_RX_DISCOUNT:
		err = tfrc_set_u32(&number, val, 0, !rx->method->no_discount, 0,
				   def.discount, admin);
		if (!err)
			rx->par.discount = number;
		return err;
	case DCCP_SOCKOPT_TFRC_RX_VARIANT:
		err = tfrc_set_u32(&number, val, 0, rx->method->variants - 1, 0,
				   rx->method->free_variant, admin);
		if (!err)
			rx->par.variant = number;
		return err;
	case DCCP_SOCKOPT_TFRC_RX_SLOW:
		err = tfrc_set_u32(&number, val, 0, 1, 0, 1, admin);
		if (!err)
			hc->slow = number;
		return err;
	default:
		return -ENOPROTOOPT;
	}
}

/* Module */

/*
 * As a receiver: no Ack Vector, but the Loss Event Rate, for which the peer
 * has to count what is no data; and CE is understood. A peer's CCID 4 may do
 * without the Loss Event Rate, as loss intervals are enough.
 */
#define RX_FEATURES(rate_is_mandatory, more) {				\
	{ DCCPF_SEND_ACK_VECTOR, true,  false, 0 },			\
	{ DCCPF_SEND_LEV_RATE,	 true,  rate_is_mandatory, 1 },		\
	{ DCCPF_SEND_NDP_COUNT,	 false, true,  1 },			\
	{ DCCPF_ECN_INCAPABLE,	 true,  false, 0 },			\
	{ more,			 false, false, 1 },			\
	{ } }

#define TX_FEATURES(rate_is_mandatory) {				\
	{ DCCPF_SEND_ACK_VECTOR, false, false, 0 },			\
	{ DCCPF_SEND_LEV_RATE,	 false, rate_is_mandatory, 1 },		\
	{ DCCPF_ACK_RATIO,	 true,  false, 0 },			\
	{ DCCPF_SEND_NDP_COUNT,	 true,  false, 1 },			\
	{ } }

/* By whether the sender counts, and whether to ask for its round-trip time. */
static const struct ccid_dependency rx_features[2][2][6] = {
	{ RX_FEATURES(true, 0), RX_FEATURES(true, DCCPF_SEND_RTT) },
	{ RX_FEATURES(false, 0), RX_FEATURES(false, DCCPF_SEND_RTT) },
};

static const struct ccid_dependency tx_features[2][5] = {
	TX_FEATURES(true), TX_FEATURES(false),
};

/* What may change with module parameters. */
static void tfrc_update_ops(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tfrc_ops); i++) {
		bool sp = methods[i]->sender_counts;

		WRITE_ONCE(tfrc_ops[i].ccid_restricted,
			   methods[i]->ccid >= EXPERIMENTAL && !experimental);
		WRITE_ONCE(tfrc_ops[i].ccid_deps[0],
			   rx_features[sp][rtt_estimate]);
	}
}

static const struct ccid_operations tfrc_template = {
	.owner			  = THIS_MODULE,
	.ccid_hc_tx_obj_size	  = sizeof(struct tfrc_hc_tx),
	.ccid_hc_tx_init	  = tfrc_hc_tx_init,
	.ccid_hc_tx_exit	  = tfrc_hc_tx_exit,
	.ccid_hc_tx_send_packet	  = tfrc_hc_tx_send,
	.ccid_hc_tx_packet_sent	  = tfrc_hc_tx_packet_sent,
	.ccid_hc_tx_packet_recv	  = tfrc_hc_tx_packet_recv,
	.ccid_hc_tx_rtt		  = tfrc_hc_tx_rtt,
	.ccid_hc_tx_deferred	  = tfrc_hc_tx_deferred,
	.ccid_hc_tx_get_info	  = tfrc_hc_tx_get_info,
	.ccid_hc_tx_getsockopt	  = tfrc_hc_tx_getsockopt,
	.ccid_hc_tx_setsockopt	  = tfrc_hc_tx_setsockopt,
	.ccid_hc_rx_obj_size	  = sizeof(struct tfrc_hc_rx),
	.ccid_hc_rx_init	  = tfrc_hc_rx_init,
	.ccid_hc_rx_insert_options = tfrc_hc_rx_insert,
	.ccid_hc_rx_packet_recv	  = tfrc_hc_rx_packet_recv,
	.ccid_hc_rx_parse_options = tfrc_hc_rx_parse,
	.ccid_hc_rx_get_info	  = tfrc_hc_rx_get_info,
	.ccid_hc_rx_getsockopt	  = tfrc_hc_rx_getsockopt,
	.ccid_hc_rx_setsockopt	  = tfrc_hc_rx_setsockopt,
};

static void __exit tfrc_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(tfrc_ops); i++)
		ccid_unregister(&tfrc_ops[i]);
	rcu_barrier();
}

/* Sockets may use a CCID as soon as it is there: one is enough to stay. */
static int __init tfrc_init(void)
{
	int i, err, last = 0, registered = 0;

	BUILD_BUG_ON(offsetof(struct tfrc_tx_info_ext, size) !=
		     offsetofend(struct tfrc_tx_info, tfrctx_ipi));
	BUILD_BUG_ON(offsetofend(struct tfrc_tx_info_ext, feedback) != 88);
	BUILD_BUG_ON(offsetof(struct tfrc_rx_info_ext, size) !=
		     sizeof(struct tfrc_rx_info));
	BUILD_BUG_ON(TFRC_OPT_WINDOW != TFRC_OPT_MEAN_INTERVAL);

	for (i = 0; i < ARRAY_SIZE(tfrc_ops); i++) {
		tfrc_ops[i] = tfrc_template;
		tfrc_ops[i].ccid_id = methods[i]->ccid;
		tfrc_ops[i].ccid_name = methods[i]->name;
		tfrc_ops[i].ccid_hc_rx_obj_size += methods[i]->state;
		tfrc_ops[i].ccid_deps[1] =
			tx_features[methods[i]->sender_counts];
	}
	tfrc_update_ops();
	for (i = 0; i < ARRAY_SIZE(tfrc_ops); i++) {
		err = ccid_register(&tfrc_ops[i]);
		if (err) {
			pr_warn("CCID %u cannot be registered: %d\n",
				methods[i]->ccid, err);
			last = err;
		} else {
			registered++;
		}
	}
	return registered ? 0 : last;
}

module_init(tfrc_init);
module_exit(tfrc_exit);

MODULE_AUTHOR("Alternative Best-Effort for Linux");
MODULE_DESCRIPTION("DCCP: TFRC, TFRC-SP, TFRC for packets of variable size, and TEAR");
MODULE_VERSION("0.9");
MODULE_LICENSE("GPL");
MODULE_ALIAS("net-dccp-ccid-4");
MODULE_ALIAS("net-dccp-ccid-248");
MODULE_ALIAS("net-dccp-ccid-249");
MODULE_ALIAS("net-dccp-ccid-250");
MODULE_ALIAS("net-dccp-ccid-251");
MODULE_ALIAS("net-dccp-ccid-252");
MODULE_ALIAS("net-dccp-ccid-253");
MODULE_ALIAS("net-dccp-ccid-254");
