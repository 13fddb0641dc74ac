/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the CCIDs of TFRC and TEAR need of DCCP: timers, pacing, ECN, feedback packets,
 * socket options.
 */
#ifndef _RATE_CCID_H
#define _RATE_CCID_H

#include <linux/hrtimer.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include "ccid.h"
#include "dccp.h"

#include "tfrc_rx.h"
#include "tfrc_tx.h"

#define RATE_SEGMENT_MIN	32	/* bytes */

/**
 * struct rate_timer - a timer that may outlive the half-connection
 * @timer: fires in softirq
 * @sk: socket, which exists as long as @dead is false
 * @lock: of @dead, and of starting @timer
 * @dead: the half-connection has gone; never to be started again
 * @rcu: to free it
 */
struct rate_timer {
	struct hrtimer	timer;
	struct sock	*sk;
	spinlock_t	lock;		/* dead, start */
	bool		dead;
	struct rcu_head	rcu;
};

/**
 * struct rate_hc_tx - sending half-connection
 * @tx: the rate
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
struct rate_hc_tx {
	struct tfrc_tx		tx;
	struct rate_timer	*timer;
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

/**
 * struct rate_hc_rx - receiving half-connection
 * @rx: which packets are lost
 * @due: why feedback is due that has not been sent, an enum rate_feedback
 * @slow: the application cannot keep up
 * @own: the method's own state
 */
struct rate_hc_rx {
	struct tfrc_rx		rx;
	u8			due;
	bool			slow;
	u64			own[];
};

static inline struct rate_hc_tx *rate_hc_tx(const struct sock *sk)
{
	return ccid_priv(dccp_sk(sk)->dccps_hc_tx_ccid);
}

static inline struct rate_hc_rx *rate_hc_rx(const struct sock *sk)
{
	return ccid_priv(dccp_sk(sk)->dccps_hc_rx_ccid);
}

/* Feedback may go; not while the connection is being closed. */
static inline bool rate_may_report(const struct sock *sk)
{
	return sk->sk_state == DCCP_OPEN || sk->sk_state == DCCP_PARTOPEN;
}

/* For struct ccid_operations. */
int rate_hc_tx_send(struct sock *sk, struct sk_buff *skb);
void rate_hc_tx_packet_sent(struct sock *sk, unsigned int len);
void rate_hc_tx_exit(struct sock *sk);
void rate_hc_tx_deferred(struct sock *sk);
u32 rate_hc_tx_rtt(struct sock *sk);
void rate_hc_tx_get_info(struct sock *sk, struct tcp_info *info);
int rate_hc_rx_parse(struct sock *sk, u8 type, u8 option, u8 *val, u8 len);
void rate_hc_rx_packet_recv(struct sock *sk, struct sk_buff *skb);
void rate_hc_rx_get_info(struct sock *sk, struct tcp_info *info);

int rate_timer_init(struct rate_hc_tx *hc, struct sock *sk);
u32 rate_acked(const struct sock *sk, const struct sk_buff *skb);
bool rate_feedback_taken(struct sock *sk, const struct sk_buff *skb,
			 struct tfrc_feedback_in *fb, u32 *wc, u64 now);
void rate_changed(struct sock *sk);
void rate_feedback_sent(struct sock *sk);
int rate_insert_elapsed(struct sk_buff *skb, u64 time);
int rate_insert_slow_receiver(struct sk_buff *skb);

int rate_give(const void *val, int size, int len, u32 __user *optval,
	      int __user *optlen);
int rate_set_u32(u32 *to, u32 val, u32 low, u32 high, u32 free_low, u32 free_high,
		 bool admin);

#endif
