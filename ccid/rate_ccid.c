// SPDX-License-Identifier: GPL-2.0
/*
 * What connects a rate-based congestion control with DCCP: TFRC and TEAR use it. The
 * congestion control says how fast (tfrc_tx.c), what losses mean (tfrc_rx.c,
 * tear_rx.c), and what the options of feedback say (tfrc_ccid.c).
 *
 * A packet that may not be sent yet waits for a high-resolution timer, which
 * also stands for the nofeedback timer, and sends the feedback that waits for a
 * packet of data to ride on. It holds no reference of the socket,
 * which would live on after its end for as long as that, and has memory of its
 * own, as it may be waiting for the socket's lock while its half-connection
 * goes. That lasts for an RCU grace period more.
 */

#include <linux/interrupt.h>
#include <linux/log2.h>
#include <linux/refcount.h>
#include <net/inet_ecn.h>

#include "rate_ccid.h"
#include "feat.h"

#define CREATE_TRACE_POINTS
#include "tfrc_trace.h"

/* Is it a half-connection of this module? The other may be the kernel's. */
static bool hc_tx_is_ours(const struct sock *sk)
{
	const struct ccid *ccid = dccp_sk(sk)->dccps_hc_tx_ccid;

	return ccid && ccid->ccid_ops->ccid_hc_tx_send_packet == rate_hc_tx_send;
}

static bool hc_rx_is_ours(const struct sock *sk)
{
	const struct ccid *ccid = dccp_sk(sk)->dccps_hc_rx_ccid;

	return ccid && ccid->ccid_ops->ccid_hc_rx_packet_recv == rate_hc_rx_packet_recv;
}

/* Sender */

static bool hc_feedback_due(const struct sock *sk)
{
	return rate_may_report(sk) &&
	       hc_rx_is_ours(sk) && rate_hc_rx(sk)->due;
}

static void hc_send_feedback(struct sock *sk)
{
	dccp_sk(sk)->dccps_hc_rx_insert_options = 1;
	dccp_send_ack(sk);
}

static void hc_timer_start(struct rate_timer *t, u64 when)
{
	spin_lock_bh(&t->lock);
	if (!t->dead)
		hrtimer_start(&t->timer, ns_to_ktime(when),
			      HRTIMER_MODE_ABS_SOFT);
	spin_unlock_bh(&t->lock);
}

/* Set the timer to what comes first, if it is not. */
static void hc_arm(struct rate_hc_tx *hc)
{
	u64 when = hc->tx.t_nofeedback;

	if (hc->waiting && (!when || hc->tx.rate.t_due < when))
		when = hc->tx.rate.t_due;
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

static void hc_expired(struct sock *sk, struct rate_hc_tx *hc)
{
	const struct ccid *ccid = dccp_sk(sk)->dccps_hc_tx_ccid;
	u64 now = ktime_get_ns();

	if (hc->tx.t_nofeedback && hc->tx.t_nofeedback <= now) {
		tfrc_tx_expired(&hc->tx, now);
		trace_tfrc_feedback(sk, ccid->ccid_ops->ccid_id, &hc->tx, 0, 0, true);
	}
	if (hc->t_ack && hc->t_ack <= now) {
		hc->t_ack = 0;
		if (hc_feedback_due(sk))
			hc_send_feedback(sk);
	}
	if (hc->waiting && hc->tx.rate.t_due <= now)
		hc_dequeue(sk);		/* rate_hc_tx_send() arms the timer */
	else
		hc_arm(hc);
}

static bool hc_connected(const struct sock *sk)
{
	return !((1 << sk->sk_state) &
		 (DCCPF_CLOSED | DCCPF_LISTEN | DCCPF_REQUESTING));
}

static enum hrtimer_restart hc_timer(struct hrtimer *timer)
{
	struct rate_timer *t = container_of(timer, struct rate_timer, timer);
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
		hc_expired(sk, rate_hc_tx(sk));
	bh_unlock_sock(sk);
	sock_put(sk);
	return HRTIMER_NORESTART;
}

/* The timer has expired while the socket had an owner. */
void rate_hc_tx_deferred(struct sock *sk)
{
	if (hc_connected(sk))
		hc_expired(sk, rate_hc_tx(sk));
}

/**
 * rate_timer_init() - a sending half-connection begins
 * @hc: half-connection
 * @sk: socket
 *
 * Return: 0, or -ENOMEM.
 */
int rate_timer_init(struct rate_hc_tx *hc, struct sock *sk)
{
	hc->timer = kzalloc(sizeof(*hc->timer), gfp_any() | __GFP_ACCOUNT);
	if (!hc->timer)
		return -ENOMEM;
	hrtimer_init(&hc->timer->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	hc->timer->timer.function = hc_timer;
	hc->timer->sk = sk;
	spin_lock_init(&hc->timer->lock);
	return 0;
}

static void hc_timer_free(struct rcu_head *head)
{
	struct rate_timer *t = container_of(head, struct rate_timer, rcu);

	/* It may have been started again while its handler was running. */
	hrtimer_cancel(&t->timer);
	kfree(t);
}

void rate_hc_tx_exit(struct sock *sk)
{
	struct rate_timer *t = rate_hc_tx(sk)->timer;

	spin_lock_bh(&t->lock);
	t->dead = true;
	spin_unlock_bh(&t->lock);
	/* The handler may be waiting for a lock of ours, or be what led here. */
	call_rcu(&t->rcu, hc_timer_free);
	kfree(rate_hc_tx(sk)->tx.rate.grown);
}

/*
 * The nominal segment is no larger than what the path takes (RFC 4828, 3),
 * counting as TCP does: the MTU less 40 bytes.
 */
static u32 hc_path_segment(const struct sock *sk)
{
	u32 mtu = inet_csk(sk)->icsk_pmtu_cookie;

	return mtu >= 40 + RATE_SEGMENT_MIN ? mtu - 40 : U32_MAX;
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
	rate_hc_tx(sk)->t_ack = 0;
	if (rate_hc_rx(sk)->due != RATE_FEEDBACK_PERIODIC ||
	    skb->len + RATE_FEEDBACK_BYTES > dccp_sk(sk)->dccps_mss_cache) {
		hc_send_feedback(sk);
		return;
	}
	dccp_sk(sk)->dccps_hc_rx_insert_options = 1;
	inet_csk_schedule_ack(sk);
}

int rate_hc_tx_send(struct sock *sk, struct sk_buff *skb)
{
	struct rate_hc_tx *hc = rate_hc_tx(sk);
	u64 now = ktime_get_ns();

	hc->tx.rate.s_max = hc_path_segment(sk);
	if (!hc->tx.started) {
		tfrc_tx_start(&hc->tx, skb->len, dccp_sk(sk)->dccps_syn_rtt, now);
		hc_grow_window(sk, &hc->tx);
	}
	if (rate_tx_due(&hc->tx.rate, now) > now) {
		/* When the socket is closed, DCCP waits itself. */
		if (sk->sk_shutdown & SEND_SHUTDOWN)
			return min_t(u64, CCID_PACKET_DELAY_MAX,
				     DIV_ROUND_UP_ULL(hc->tx.rate.t_due - now,
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
	DCCP_SKB_CB(skb)->dccpd_ccval = hc->tx.rate.wc & 15;
	/* Each time: the application's IP_TOS overwrites it. */
	INET_ECN_dontxmit(sk);
	if (dccp_sk(sk)->dccps_peer_ecn)
		INET_ECN_xmit(sk);
	return CCID_PACKET_SEND_AT_ONCE;
}

/* Without memory, fewer packets are remembered. */
static void hc_grow_ring(struct tfrc_tx *tx)
{
	struct rate_sent *ring;

	ring = kmalloc_array(2 * tx->rate.room, sizeof(*ring),
			     gfp_any() | __GFP_ACCOUNT | __GFP_NOWARN);
	if (ring)
		kfree(rate_tx_grow(&tx->rate, ring));
}

void rate_hc_tx_packet_sent(struct sock *sk, unsigned int len)
{
	struct tfrc_tx *tx = &rate_hc_tx(sk)->tx;
	u64 now = ktime_get_ns();

	if (rate_tx_crowded(&tx->rate, now))
		hc_grow_ring(tx);
	rate_tx_note(&tx->rate, dccp_sk(sk)->dccps_gss, now);
}

/**
 * rate_acked() - packets that are acknowledged for the first time
 * @sk: socket
 * @skb: packet with an acknowledgment
 *
 * Return: how many sequence numbers.
 */
u32 rate_acked(const struct sock *sk, const struct sk_buff *skb)
{
	const struct rate_hc_tx *hc = rate_hc_tx(sk);
	u64 before = hc->feedback_seen ? hc->ackno : dccp_sk(sk)->dccps_iss;

	return clamp_t(s64, rate_seq_diff(before, DCCP_SKB_CB(skb)->dccpd_ack_seq), 0,
		       U32_MAX);
}

/**
 * rate_feedback_taken() - a feedback packet has come
 * @sk: socket
 * @skb: the packet
 * @fb: for the time at which the packet was sent that it acknowledges, and a sample of
 *	the round trip
 * @wc: for that packet's window counter
 * @now: time
 *
 * Return: false if it is a duplicate, or was overtaken by newer feedback.
 */
bool rate_feedback_taken(struct sock *sk, const struct sk_buff *skb,
			 struct tfrc_feedback_in *fb, u32 *wc, u64 now)
{
	u64 ackno = DCCP_SKB_CB(skb)->dccpd_ack_seq, seq = DCCP_SKB_CB(skb)->dccpd_seq;
	struct dccp_sock *dp = dccp_sk(sk);
	struct rate_hc_tx *hc = rate_hc_tx(sk);
	bool fresh;
	s64 us;

	if (hc->feedback_seen && (seq == hc->seq ||
				  rate_seq_diff(hc->ackno, ackno) < 0))
		return false;
	fresh = !hc->feedback_seen || hc->ackno != ackno;
	hc->feedback_seen = true;
	hc->seq = seq;
	hc->ackno = ackno;

	fb->t_sent = rate_tx_sent_time(&hc->tx.rate, ackno, wc);
	if (!fb->t_sent)
		return true;
	us = div_u64(now - fb->t_sent, NSEC_PER_USEC) -
	     10LL * dp->dccps_options_received.dccpor_elapsed_time;
	/*
	 * What came after the last data packet was not noted. And a
	 * packet is one sample, however often it is acknowledged.
	 */
	if (fresh && rate_seq_diff(hc->tx.rate.seq_last, ackno) <= 0)
		fb->rtt = clamp_t(s64, us, TFRC_RTT_MIN, TFRC_RTT_MAX);
	rate_tx_acked_wc(&hc->tx.rate, *wc, now);
	return true;
}

/**
 * rate_changed() - the rate has changed, and with it when the next packet may go
 * @sk: socket
 */
void rate_changed(struct sock *sk)
{
	struct rate_hc_tx *hc = rate_hc_tx(sk);

	hc_grow_window(sk, &hc->tx);
	if (hc->waiting)
		hc_dequeue(sk);
	else
		hc_arm(hc);
}

u32 rate_hc_tx_rtt(struct sock *sk)
{
	return rate_hc_tx(sk)->tx.rate.rtt;
}

void rate_hc_tx_get_info(struct sock *sk, struct tcp_info *info)
{
	const struct tfrc_tx *tx = &rate_hc_tx(sk)->tx;

	info->tcpi_rto = tfrc_tx_rto(tx);
	info->tcpi_rtt = tx->rate.rtt;
}

/* Receiver */

static bool hc_is_ce(const struct sk_buff *skb)
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
	u64 gap, most = rate_rx_may_wait(&rate_hc_rx(sk)->rx.rate, now);
	struct rate_hc_tx *hc;

	if (!hc_tx_is_ours(sk))
		return false;
	hc = rate_hc_tx(sk);
	gap = (u64)(hc->tx.rate.gap >> 8) * NSEC_PER_USEC;
	most = min_t(u64, most, 100 * NSEC_PER_MSEC);
	if (!gap || gap > most || now - hc->tx.rate.t_last > 2 * gap)
		return false;
	if (!hc->t_ack) {
		hc->t_ack = now + min(2 * gap, most);
		hc_arm(hc);
	}
	return true;
}

/* The sender's options. That of feature 128 has one to three bytes (RFC 6323, 3.2.1). */
int rate_hc_rx_parse(struct sock *sk, u8 type, u8 option, u8 *val, u8 len)
{
	u32 us = 0;
	u8 i;

	if (option != TFRC_OPT_RTT_ESTIMATE || !dccp_sk(sk)->dccps_recv_rtt)
		return 0;
	if (len < 1 || len > 3)
		return -EINVAL;		/* resets the connection */
	for (i = 0; i < len; i++)
		us = us << 8 | val[i];
	rate_rx_rtt_estimate(&rate_hc_rx(sk)->rx.rate, us, ktime_get_ns());
	return 0;
}

void rate_hc_rx_packet_recv(struct sock *sk, struct sk_buff *skb)
{
	struct dccp_sock *dp = dccp_sk(sk);
	struct rate_hc_rx *hc = rate_hc_rx(sk);
	struct tfrc_rx *rx = &hc->rx;
	struct rate_packet pkt = {
		.seq	= DCCP_SKB_CB(skb)->dccpd_seq,
		.ndp	= min_t(u64, dp->dccps_options_received.dccpor_ndp,
				RATE_NDP_MAX),
		.data	= dccp_data_packet(skb),
		.ce	= hc_is_ce(skb),
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

/**
 * rate_feedback_sent() - what was due is on its way
 * @sk: socket
 */
void rate_feedback_sent(struct sock *sk)
{
	rate_hc_rx(sk)->due = RATE_FEEDBACK_NONE;
	if (hc_tx_is_ours(sk))
		rate_hc_tx(sk)->t_ack = 0;
}

/* Elapsed Time, in tens of us: two bytes, or four (RFC 4340, 13.2). */
int rate_insert_elapsed(struct sk_buff *skb, u64 time)
{
	__be32 val = htonl(min_t(u64, time, U32_MAX));
	__be16 brief = htons(time);

	if (time > U16_MAX)
		return dccp_insert_option(skb, DCCPO_ELAPSED_TIME, &val,
					  sizeof(val));
	return dccp_insert_option(skb, DCCPO_ELAPSED_TIME, &brief,
				  sizeof(brief));
}

int rate_insert_slow_receiver(struct sk_buff *skb)
{
	if (DCCP_SKB_CB(skb)->dccpd_opt_len >= DCCP_MAX_OPT_LEN)
		return -1;
	DCCP_SKB_CB(skb)->dccpd_opt_len++;
	*(u8 *)skb_push(skb, 1) = DCCPO_SLOW_RECEIVER;
	return 0;
}

void rate_hc_rx_get_info(struct sock *sk, struct tcp_info *info)
{
	info->tcpi_options |= TCPI_OPT_TIMESTAMPS;
	info->tcpi_rcv_rtt = rate_hc_rx(sk)->rx.rate.rtt;
}

/* Socket options */

/* Give the caller what fits of a value. */
int rate_give(const void *val, int size, int len, u32 __user *optval,
	      int __user *optlen)
{
	if (len < (int)sizeof(u32))
		return -EINVAL;
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(optval, val, len))
		return -EFAULT;
	return 0;
}

/**
 * rate_set_u32() - take the value of a socket option
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
int rate_set_u32(u32 *to, u32 val, u32 low, u32 high, u32 free_low,
		 u32 free_high, bool admin)
{
	if (val < low || val > high)
		return -EINVAL;
	if (!admin && (val < free_low || val > free_high))
		return -EPERM;
	*to = val;
	return 0;
}
