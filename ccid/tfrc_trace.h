/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of the TFRC CCIDs, one line per feedback packet: what the
 * receiver reports, and what the sender makes of it.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dccp_tfrc

#if !defined(_TFRC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TFRC_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>

#include "tfrc_rx.h"
#include "tfrc_tx.h"

#ifndef _TFRC_TRACE_ADDRESS
#define _TFRC_TRACE_ADDRESS

/* Its own address and port, or the peer's, as %pISpc wants them. */
static inline void tfrc_trace_address(void *to, const struct sock *sk, bool own)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct sockaddr_in *v4 = to;

	memset(to, 0, sizeof(struct sockaddr_in6));
	v4->sin_family = sk->sk_family;
	v4->sin_port = own ? inet->inet_sport : inet->inet_dport;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		((struct sockaddr_in6 *)to)->sin6_addr =
			own ? sk->sk_v6_rcv_saddr : sk->sk_v6_daddr;
		return;
	}
#endif
	v4->sin_addr.s_addr = own ? inet->inet_saddr : inet->inet_daddr;
}

#endif

TRACE_DEFINE_ENUM(RATE_FEEDBACK_FIRST);
TRACE_DEFINE_ENUM(RATE_FEEDBACK_LOSS);
TRACE_DEFINE_ENUM(RATE_FEEDBACK_PERIODIC);

/* lengths and window in packets * 256 */
TRACE_EVENT(tfrc_report,
	TP_PROTO(const struct sock *sk, const struct tfrc_rx *rx, int why),
	TP_ARGS(sk, rx, why),
	TP_STRUCT__entry(
		__field(const void *,	sk)
		__array(u8,		src, sizeof(struct sockaddr_in6))
		__array(u8,		dst, sizeof(struct sockaddr_in6))
		__field(u8,		ccid)
		__field(u8,		why)
		__field(u32,		x_recv)
		__field(u32,		pinv)
		__field(u32,		rtt)
		__field(u32,		current_interval)
		__field(u32,		last_interval)
		__field(u32,		window)
		__field(u64,		packets)
		__field(u64,		lost)
		__field(u64,		marked)
		__field(u64,		events)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->ccid = rx->method->ccid;
		__entry->why = why;
		tfrc_trace_address(__entry->src, sk, true);
		tfrc_trace_address(__entry->dst, sk, false);
		__entry->x_recv = rx->rate.x_recv;
		__entry->pinv = rx->pinv;
		__entry->rtt = rx->rate.rtt;
		__entry->current_interval = rx->history.n ?
					    rx->history.i[0].length : 0;
		__entry->last_interval = rx->history.n > 1 ?
					 rx->history.i[1].length : 0;
		__entry->window = rx->window;
		__entry->packets = rx->rate.packets;
		__entry->lost = rx->rate.lost;
		__entry->marked = rx->rate.marked;
		__entry->events = rx->events;
	),
	TP_printk("sk=%p src=%pISpc dst=%pISpc ccid=%u why=%s x_recv=%u pinv=%u rtt=%u current=%u last=%u window=%u packets=%llu lost=%llu marked=%llu events=%llu",
		  __entry->sk, __entry->src, __entry->dst, __entry->ccid,
		  __print_symbolic(__entry->why,
				   { RATE_FEEDBACK_FIRST, "first" },
				   { RATE_FEEDBACK_LOSS, "loss" },
				   { RATE_FEEDBACK_PERIODIC, "periodic" }),
		  __entry->x_recv, __entry->pinv, __entry->rtt,
		  __entry->current_interval, __entry->last_interval,
		  __entry->window, __entry->packets, __entry->lost, __entry->marked,
		  __entry->events)
);

/* expired: the nofeedback timer, instead of feedback; rates in bytes/s * 64, window as above */
TRACE_EVENT(tfrc_feedback,
	TP_PROTO(const struct sock *sk, u8 ccid, const struct tfrc_tx *tx,
		 u32 x_recv, u32 sample, bool expired),
	TP_ARGS(sk, ccid, tx, x_recv, sample, expired),
	TP_STRUCT__entry(
		__field(const void *,	sk)
		__array(u8,		src, sizeof(struct sockaddr_in6))
		__array(u8,		dst, sizeof(struct sockaddr_in6))
		__field(u8,		ccid)
		__field(bool,		expired)
		__field(bool,		data_limited)
		__field(u32,		x_recv)
		__field(u32,		sample)
		__field(u32,		rtt)
		__field(u32,		pinv)
		__field(u32,		s_mean)
		__field(u32,		window)
		__field(u64,		x)
		__field(u64,		x_calc)
		__field(u64,		x_inst)
		__field(u64,		x_recv_set)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->ccid = ccid;
		__entry->expired = expired;
		__entry->data_limited = tx->data_limited;
		tfrc_trace_address(__entry->src, sk, true);
		tfrc_trace_address(__entry->dst, sk, false);
		__entry->x_recv = x_recv;
		__entry->sample = sample;
		__entry->rtt = tx->rate.rtt;
		__entry->pinv = tfrc_tx_mean_interval(tx);
		__entry->s_mean = tx->s_mean;
		__entry->window = tx->window;
		__entry->x = tx->x;
		__entry->x_calc = tx->x_calc;
		__entry->x_inst = tx->x_inst;
		__entry->x_recv_set = tfrc_tx_x_recv(tx);
	),
	TP_printk("sk=%p src=%pISpc dst=%pISpc ccid=%u expired=%d data_limited=%d x_recv=%u sample=%u rtt=%u pinv=%u s_mean=%u window=%u x=%llu x_calc=%llu x_inst=%llu x_recv_set=%llu",
		  __entry->sk, __entry->src, __entry->dst, __entry->ccid,
		  __entry->expired, __entry->data_limited, __entry->x_recv,
		  __entry->sample, __entry->rtt, __entry->pinv,
		  __entry->s_mean, __entry->window, __entry->x, __entry->x_calc,
		  __entry->x_inst, __entry->x_recv_set)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tfrc_trace
#include <trace/define_trace.h>
