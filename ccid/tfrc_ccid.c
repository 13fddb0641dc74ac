// SPDX-License-Identifier: GPL-2.0
/*
 * TCP-Friendly Rate Control for DCCP: CCIDs 4 and 248 to 253; and TEAR, CCID 254.
 *
 * One core serves all of them. A CCID is a method of measuring loss (see
 * tfrc_loss.h) with defaults; its sender and receiver are tfrc_tx.c and
 * tfrc_rx.c, which know nothing of sockets. What connects them with DCCP is
 * rate_ccid.c; here are the options of feedback, socket options, and the module.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/tfrc.h>

#include "rate_ccid.h"
#include "feat.h"

#include "include/uapi/linux/dccp_tfrc.h"
#include "tear_rx.h"
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

#define S_MIN			RATE_SEGMENT_MIN
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

static const struct tfrc_method *hc_tx_method(const struct sock *sk)
{
	return tfrc_ccid_method(dccp_sk(sk)->dccps_hc_tx_ccid);
}

/* Sender */

static int tfrc_hc_tx_init(struct ccid *ccid, struct sock *sk)
{
	const struct tfrc_method *method = tfrc_ccid_method(ccid);
	struct rate_hc_tx *hc = ccid_priv(ccid);
	struct tfrc_params par;
	int err;

	err = rate_timer_init(hc, sk);
	if (err)
		return err;
	tfrc_default_params(method, &par);
	tfrc_tx_init(&hc->tx, &par);
	if (method->scale_interval)
		hc->tx.rate.interval_s = par.s;
	hc->tx.unbias = method->unbias;
	hc->tx.tear = method->window;
	return 0;
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
static bool hc_new_event(struct rate_hc_tx *hc, const struct tfrc_options *o)
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
static void hc_count_intervals(struct rate_hc_tx *hc, struct tfrc_options *o, u32 wc,
			       struct tfrc_feedback_in *fb)
{
	bool complete = tfrc_tx_tell(&hc->tx, o->li, o->n_li);

	if (!complete && fb->pinv != TFRC_PINV_NONE)
		return;
	/* Without a window counter, which says how long ago: nothing new. */
	if (hc->tx.n_told > 1 && (fb->t_sent || hc->tx.pinv == TFRC_PINV_NONE))
		fb->pinv = tfrc_tx_pinv(&hc->tx, fb->t_sent ? wc : hc->tx.rate.wc);
	else if (fb->pinv == TFRC_PINV_NONE || !fb->t_sent)
		fb->pinv = hc->tx.pinv;
}

/* What the options say of loss. */
static void hc_loss_report(struct rate_hc_tx *hc, const struct tfrc_method *method,
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
	struct rate_hc_tx *hc = rate_hc_tx(sk);
	const struct tfrc_method *method = hc_tx_method(sk);
	u8 type = DCCP_SKB_CB(skb)->dccpd_type;
	u64 now = ktime_get_ns();
	struct tfrc_feedback_in fb = {};
	struct tfrc_options o;
	u32 wc = 0;

	if (type != DCCP_PKT_ACK && type != DCCP_PKT_DATAACK)
		return;
	o.acked = rate_acked(sk, skb);
	hc_parse(&o, skb);
	if (!hc_is_feedback(method, &o) || !hc->tx.started)
		return;
	if (!rate_feedback_taken(sk, skb, &fb, &wc, now))
		return;
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
	rate_changed(sk);
}

/* p in millionths of 1/p in Q24.8 */
static u32 tfrc_millionths(u32 pinv)
{
	if (pinv == TFRC_PINV_NONE)
		return 0;
	return max(div_u64(1000000ULL << TFRC_PINV_SHIFT, pinv), 1ULL);
}

static void hc_tx_info(const struct rate_hc_tx *hc, u8 ccid,
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
		.rtt		= tx->rate.rtt,
		.p		= tfrc_millionths(pinv),
		.rto		= tfrc_tx_rto(tx),
		.ipi		= div_u64(tfrc_spacing(tfrc_mean(tx->s_mean),
						       tx->x_inst), 1000),
		.size		= sizeof(*info),
		.x_inst		= tx->x_inst >> TFRC_RATE_SHIFT,
		.interval	= info->interval ?: tx->rate.gap >> 8,
		.s		= tfrc_tx_segment(tx),
		.s_mean		= tfrc_mean(tx->s_mean),
		.header		= tx->par.header,
		.min_interval	= tx->rate.min_interval,
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
	info->packet = rate_tx_packet(&tx->rate, info->interval);
}

/* A caller may name an interval by which @packet is meant. */
static int tfrc_hc_tx_getsockopt(struct sock *sk, const int optname, int len,
				 u32 __user *optval, int __user *optlen)
{
	const size_t at = offsetof(struct tfrc_tx_info_ext, interval);
	/* What programs have that were built with the structure as it was first. */
	const int first = offsetofend(struct tfrc_tx_info_ext, feedback);
	struct rate_hc_tx *hc = rate_hc_tx(sk);
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
		number = hc->tx.rate.min_interval;
		break;
	case DCCP_SOCKOPT_TFRC_TX_VARIANT:
		if (!hc->tx.unbias)
			return -ENOPROTOOPT;
		number = hc->tx.par.variant;
		break;
	default:
		return -ENOPROTOOPT;
	}
	return rate_give(val, size, len, optval, optlen);
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
	return rate_set_u32(to, val, by_default ? S_MIN : 0, S_MAX, free_low,
			  by_default, admin);
}

static int tfrc_hc_tx_setsockopt(struct sock *sk, int optname, u32 val,
				 bool admin)
{
	struct rate_hc_tx *hc = rate_hc_tx(sk);
	struct tfrc_params *par = &hc->tx.par, def;
	u32 number;
	int err;

	tfrc_default_params(hc_tx_method(sk), &def);

	switch (optname) {
	case DCCP_SOCKOPT_TFRC_TX_SEGMENT:
		return tfrc_set_segment(&par->s, val, def.s, 0, admin);
	case DCCP_SOCKOPT_TFRC_TX_HEADER:
		return rate_set_u32(&par->header, val, 0, H_MAX, def.header, H_MAX,
				  admin);
	case DCCP_SOCKOPT_TFRC_TX_INTERVAL:
		return rate_set_u32(&hc->tx.rate.min_interval, val, 0, MIN_INTERVAL_MAX,
				  def.min_interval, MIN_INTERVAL_MAX, admin);
	case DCCP_SOCKOPT_TFRC_TX_VARIANT:
		if (!hc->tx.unbias)
			return -ENOPROTOOPT;
		err = rate_set_u32(&number, val, 0, TFRC_VARIANT_BYTES, 0,
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
	struct rate_hc_rx *hc = ccid_priv(ccid);
	struct tfrc_params par;

	tfrc_default_params(method, &par);
	hc->rx.own = hc->own;
	if (method->init)
		method->init(hc->own, get_random_u64());
	tfrc_rx_init(&hc->rx, method, &par, dccp_sk(sk)->dccps_gsr,
		     dccp_sk(sk)->dccps_syn_rtt);
	return 0;
}

/*
 * Feedback: what RFC 4342, 6 and RFC 5622, 8 want on it. As long as there is no
 * new event, only the current interval changes; the one before goes with it, so
 * that an event is known if the feedback on it was lost.
 */
static int tfrc_hc_rx_insert(struct sock *sk, struct sk_buff *skb)
{
	struct rate_hc_rx *hc = rate_hc_rx(sk);
	struct tfrc_rx *rx = &hc->rx;
	u8 type = DCCP_SKB_CB(skb)->dccpd_type, why = hc->due;
	u32 most = why == RATE_FEEDBACK_PERIODIC ? TFRC_INTERVALS_BRIEF : U32_MAX;
	u8 data[TFRC_INTERVALS_SIZE];
	u64 now = ktime_get_ns();
	__be32 val;
	u8 len;

	BUILD_BUG_ON(TFRC_DROPPED_SIZE > TFRC_INTERVALS_SIZE);
	if (!rate_may_report(sk))
		return 0;
	if (!why || (type != DCCP_PKT_ACK && type != DCCP_PKT_DATAACK))
		return 0;

	tfrc_rx_report(rx, why, now);
	trace_tfrc_report(sk, rx, why);
	rate_feedback_sent(sk);

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
	if (rate_insert_elapsed(skb, div_u64(now - rx->rate.t_high, 10000)))
		return -1;
	if (hc->slow && rate_insert_slow_receiver(skb))
		return -1;
	len = tfrc_rx_intervals(rx, dccp_sk(sk)->dccps_gsr, most, data);
	if (dccp_insert_option(skb, TFRC_OPT_LOSS_INTERVALS, data, len))
		return -1;
	if (!rx->method->sender_counts && !rx->method->window)
		return 0;
	len = tfrc_rx_dropped(rx, most, data);
	return dccp_insert_option(skb, TFRC_OPT_DROPPED_PACKETS, data, len);
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
	const struct rate_hc_rx *hc = rate_hc_rx(sk);
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
	return rate_give(val, size, len, optval, optlen);
}

static int tfrc_hc_rx_setsockopt(struct sock *sk, int optname, u32 val,
				 bool admin)
{
	struct rate_hc_rx *hc = rate_hc_rx(sk);
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
		return rate_set_u32(&rx->par.header, val, 0, H_MAX, 0, def.header,
				  admin);
	case DCCP_SOCKOPT_TFRC_RX_DISCOUNT:
		err = rate_set_u32(&number, val, 0, !rx->method->no_discount, 0,
				   def.discount, admin);
		if (!err)
			rx->par.discount = number;
		return err;
	case DCCP_SOCKOPT_TFRC_RX_VARIANT:
		err = rate_set_u32(&number, val, 0, rx->method->variants - 1, 0,
				   rx->method->free_variant, admin);
		if (!err)
			rx->par.variant = number;
		return err;
	case DCCP_SOCKOPT_TFRC_RX_SLOW:
		err = rate_set_u32(&number, val, 0, 1, 0, 1, admin);
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
	.ccid_hc_tx_obj_size	  = sizeof(struct rate_hc_tx),
	.ccid_hc_tx_init	  = tfrc_hc_tx_init,
	.ccid_hc_tx_exit	  = rate_hc_tx_exit,
	.ccid_hc_tx_send_packet	  = rate_hc_tx_send,
	.ccid_hc_tx_packet_sent	  = rate_hc_tx_packet_sent,
	.ccid_hc_tx_packet_recv	  = tfrc_hc_tx_packet_recv,
	.ccid_hc_tx_rtt		  = rate_hc_tx_rtt,
	.ccid_hc_tx_deferred	  = rate_hc_tx_deferred,
	.ccid_hc_tx_get_info	  = rate_hc_tx_get_info,
	.ccid_hc_tx_getsockopt	  = tfrc_hc_tx_getsockopt,
	.ccid_hc_tx_setsockopt	  = tfrc_hc_tx_setsockopt,
	.ccid_hc_rx_obj_size	  = sizeof(struct rate_hc_rx),
	.ccid_hc_rx_init	  = tfrc_hc_rx_init,
	.ccid_hc_rx_insert_options = tfrc_hc_rx_insert,
	.ccid_hc_rx_packet_recv	  = rate_hc_rx_packet_recv,
	.ccid_hc_rx_parse_options = rate_hc_rx_parse,
	.ccid_hc_rx_get_info	  = rate_hc_rx_get_info,
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
