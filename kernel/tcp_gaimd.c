// SPDX-License-Identifier: GPL-2.0
/*
 * TCP congestion control "gaimd": general additive increase, multiplicative decrease.
 *
 * Reno, but in congestion avoidance the window grows by alpha packets a round trip, and
 * a loss or an ECN mark leaves beta of it (gaimd.h). With the defaults, 0.31 and 7/8,
 * those of [TRANS00], it has Reno's rate, or up to a quarter more, with half of its ups
 * and downs.
 *
 * In slow start and after a time-out it is Reno: a loss leaves half. [TRANS00] does not
 * say what they do; ns-2's AIMD sender, which it was probably made with, does so.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "gaimd.h"

#define GAIMD_HALF	(GAIMD_ONE / 2)

/**
 * struct gaimd - what a connection has
 * @credit: see gaimd_acked()
 * @prior: @credit before the last reduction, to be undone
 */
struct gaimd {
	u64	credit;
	u64	prior;
};

static unsigned int alpha = 310;
static unsigned int beta = 875;

static int gaimd_alpha_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 0, GAIMD_ONE);
}

static int gaimd_beta_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, GAIMD_HALF, 990);
}

static const struct kernel_param_ops gaimd_alpha_ops = {
	.set = gaimd_alpha_set,
	.get = param_get_uint,
};

static const struct kernel_param_ops gaimd_beta_ops = {
	.set = gaimd_beta_set,
	.get = param_get_uint,
};

module_param_cb(alpha, &gaimd_alpha_ops, &alpha, 0644);
MODULE_PARM_DESC(alpha,
		 "packets that the window grows by in a round trip, in thousandths (0 to 1000); 0: as fast as TCP with this beta");

module_param_cb(beta, &gaimd_beta_ops, &beta, 0644);
MODULE_PARM_DESC(beta, "what a loss leaves of the window, in thousandths (500 to 990)");

static void gaimd_init(struct sock *sk)
{
	struct gaimd *ca = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(struct gaimd) > ICSK_CA_PRIV_SIZE);
	ca->credit = 0;
	ca->prior = 0;
}

static void gaimd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct gaimd *ca = inet_csk_ca(sk);
	u32 alpha_now, cwnd;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	alpha_now = READ_ONCE(alpha) ?: gaimd_friendly(READ_ONCE(beta));
	cwnd = gaimd_acked(tcp_snd_cwnd(tp), &ca->credit, acked, alpha_now);
	tcp_snd_cwnd_set(tp, min(cwnd, tp->snd_cwnd_clamp));
}

/* snd_cwnd_cnt, which Reno keeps its credit in, is 0 before TCP asks this. */
static u32 gaimd_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct gaimd *ca = inet_csk_ca(sk);

	ca->prior = ca->credit;
	ca->credit = 0;
	return gaimd_reduce(tcp_snd_cwnd(tp), ca->prior,
			    tcp_in_slow_start(tp) ? GAIMD_HALF : READ_ONCE(beta));
}

/* A loss that was none costs no growth. */
static u32 gaimd_undo_cwnd(struct sock *sk)
{
	struct gaimd *ca = inet_csk_ca(sk);

	ca->credit = max(ca->credit, ca->prior);
	return tcp_reno_undo_cwnd(sk);
}

static void gaimd_halve(struct tcp_sock *tp)
{
	WRITE_ONCE(tp->snd_ssthresh, max(tp->prior_cwnd / 2, 2U));
}

/* Of a time-out ssthresh() knows nothing. */
static void gaimd_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_LOSS)
		gaimd_halve(tcp_sk(sk));
}

/*
 * For a time-out in a fast recovery TCP asks for no threshold again, and there is no event.
 * Without undo_marker it is none of it: an ECN mark, or a retransmission for the path's MTU.
 */
static void gaimd_set_state(struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct gaimd *ca = inet_csk_ca(sk);

	if (state != TCP_CA_Loss)
		return;
	ca->credit = 0;
	if (tcp_in_cwnd_reduction(sk) && tp->undo_marker)
		gaimd_halve(tp);
}

static struct tcp_congestion_ops gaimd_ops __read_mostly = {
	.init		= gaimd_init,
	.cong_avoid	= gaimd_cong_avoid,
	.ssthresh	= gaimd_ssthresh,
	.cwnd_event	= gaimd_cwnd_event,
	.set_state	= gaimd_set_state,
	.undo_cwnd	= gaimd_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "gaimd",
};

static int __init gaimd_module_init(void)
{
	return tcp_register_congestion_control(&gaimd_ops);
}

static void __exit gaimd_module_exit(void)
{
	tcp_unregister_congestion_control(&gaimd_ops);
}

module_init(gaimd_module_init)
module_exit(gaimd_module_exit)
MODULE_AUTHOR("Alternative Best-Effort for Linux");
MODULE_DESCRIPTION("TCP congestion control GAIMD");
MODULE_VERSION("0.9");
MODULE_LICENSE("GPL");
