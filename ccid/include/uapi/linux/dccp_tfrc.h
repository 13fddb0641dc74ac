/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Socket options of the CCIDs 4 and 248 to 254, beside
 * DCCP_SOCKOPT_CCID_RX_INFO and DCCP_SOCKOPT_CCID_TX_INFO.
 *
 * Level SOL_DCCP, all of them a __u32. Before the connection stands they are kept
 * for it, and for those of a listener; what the CCID refuses then is ignored. Those
 * of the sender take effect on data sent, those of the receiver on data received.
 * Defaults are module parameters of dccp_tfrc. EINVAL: out of range; EPERM: more
 * from the network than by default, without CAP_NET_ADMIN, as with RX_SEGMENT
 * other than that, since it has to be the sender's. Only CCIDs 248 and 254 take the
 * packets' mean size for S.
 */
#ifndef _UAPI_LINUX_DCCP_TFRC_H
#define _UAPI_LINUX_DCCP_TFRC_H

#include <linux/types.h>

/* Receiver: 128 to 191. */
#define DCCP_SOCKOPT_TFRC_RX_SEGMENT	129	/* S, bytes, 32 to 65535; or 0: the mean */
#define DCCP_SOCKOPT_TFRC_RX_HEADER	130	/* H, bytes, 0 to 255 */
#define DCCP_SOCKOPT_TFRC_RX_DISCOUNT	131	/* history discounting, 0 or 1 */
#define DCCP_SOCKOPT_TFRC_RX_VARIANT	132	/* enum tfrc_variant */
#define DCCP_SOCKOPT_TFRC_RX_SLOW	133	/* 1: Slow Receiver (RFC 4340, 11.6) on feedback */

/* Sender: 192 to 255. */
#define DCCP_SOCKOPT_TFRC_TX_SEGMENT	193	/* S, bytes, 32 to 65535; or 0: the mean */
#define DCCP_SOCKOPT_TFRC_TX_HEADER	194	/* H, bytes, 0 to 255 */
#define DCCP_SOCKOPT_TFRC_TX_INTERVAL	195	/* Min Interval, us, 0 (off) to 1000000 */
#define DCCP_SOCKOPT_TFRC_TX_VARIANT	196	/* enum tfrc_variant, of 253 */

/**
 * enum tfrc_variant - of CCID 249, by what a loss event is; of 250, 251 and 253,
 *	by how losses depend on packet size
 * @TFRC_VARIANT_DEFAULT: 249: S bytes lost, of which what is over counts to the
 *	next; 250: losses in proportion to the size, p_S = eta * p_s; 251 and 253:
 *	packet mode, where packets of each size are lost as often
 * @TFRC_VARIANT_DEFINITION_1: 249: S bytes lost or more, as in the paper
 * @TFRC_VARIANT_BYTES: 251 and 253: byte mode, losses in proportion to the size. For
 *	253 it is for the sender, too
 * @TFRC_VARIANT_DROP_TAIL: 250: as a drop-tail queue in bytes, p_S = 2 * eta * p_s
 * @TFRC_VARIANT_BYTE_ERROR: 250: a packet is lost with any of its bytes
 */
enum tfrc_variant {
	TFRC_VARIANT_DEFAULT,
	TFRC_VARIANT_DEFINITION_1 = 1,
	TFRC_VARIANT_BYTES = 1,
	TFRC_VARIANT_DROP_TAIL = 1,
	TFRC_VARIANT_BYTE_ERROR,
};

/**
 * struct tfrc_tx_info_ext - sender, DCCP_SOCKOPT_CCID_TX_INFO
 * @x: allowed rate, payload bytes per second, times 64
 * @x_recv: greatest receive rate that limits it, likewise
 * @x_calc: rate of the throughput equation, or of @window, bytes per second
 * @rtt: round-trip time, us
 * @p: loss event rate, millionths
 * @rto: nofeedback timeout, us
 * @ipi: interval between packets of the mean size, us
 *
 * So far this is struct tfrc_tx_info, with its size of 40 bytes. A buffer that
 * has room gets the rest as well, or what fits of it.
 *
 * @size: of the kernel's structure, bytes
 * @x_inst: rate in force after the reduction of oscillations, payload bytes
 *	per second
 * @packet: payload that a packet may have at @interval, bytes
 * @interval: mean time between the packets that were sent, us. This is read
 *	first, if the buffer has room for all down to @feedback: other than 0, @packet
 *	is for that interval instead. So clear the buffer
 * @s: segment size in the equation, bytes, as far as the path's MTU allows
 * @s_mean: mean size of the data packets of the current loss interval and four
 *	before, by the last feedback, bytes
 * @header: H, bytes
 * @min_interval: Min Interval, us
 * @ccid: congestion control, which names the loss method
 * @slow_start: no loss event yet
 * @data_limited: the last interval was data-limited
 * @slow_receiver: the last feedback packet said Slow Receiver (RFC 4340, 11.6)
 * @loss_interval: mean loss interval 1/p, packets; 0: no loss
 * @nofeedback: times that the nofeedback timer expired
 * @feedback: feedback packets taken
 * @dropped: packets that came, but not to the application, by Data Dropped (RFC
 *	4340, 11.7)
 * @window: of 254: packets in a round trip that the receiver allows, times 256; 0: no
 *	loss, or it has not said, and with the other CCIDs
 */
struct tfrc_tx_info_ext {
	__u64	x;
	__u64	x_recv;
	__u32	x_calc;
	__u32	rtt;
	__u32	p;
	__u32	rto;
	__u32	ipi;
	__u32	size;
	__u64	x_inst;
	__u32	packet;
	__u32	interval;
	__u32	s;
	__u32	s_mean;
	__u32	header;
	__u32	min_interval;
	__u8	ccid;
	__u8	slow_start;
	__u8	data_limited;
	__u8	slow_receiver;
	__u32	loss_interval;
	__u32	nofeedback;
	__u32	feedback;
	__u32	dropped;
	__u32	window;
};

/**
 * struct tfrc_rx_info_ext - receiver, DCCP_SOCKOPT_CCID_RX_INFO
 * @x_recv: receive rate, bytes per second
 * @rtt: round-trip time by the sender's window counters, or its word (RFC 6323), us
 * @p: loss event rate, millionths
 *
 * So far this is struct tfrc_rx_info; a larger buffer gets the rest.
 *
 * @size: of the kernel's structure, bytes
 * @packets: data packets received, without duplicates
 * @lost: data packets found lost
 * @marked: data packets received with CE
 * @late: data packets that came after they had been found lost
 * @duplicates: packets received more than once
 * @events: loss events
 * @mean_interval: weighted mean loss interval, packets, times 256
 * @s: segment size of the loss method and the first interval, bytes
 * @s_mean: mean size of the data packets, bytes
 * @header: H, bytes
 * @ccid: congestion control
 * @discount: history discounting is on
 * @variant: enum tfrc_variant
 * @intervals: how many @interval has
 * @interval: loss intervals, the current one first, packets times 256
 * @window: of 254: that it reported last, packets in a round trip, times 256; 0: no
 *	loss
 * @pad: 0
 */
struct tfrc_rx_info_ext {
	__u32	x_recv;
	__u32	rtt;
	__u32	p;
	__u32	size;
	__u64	packets;
	__u64	lost;
	__u64	marked;
	__u64	late;
	__u64	duplicates;
	__u64	events;
	__u32	mean_interval;
	__u32	s;
	__u32	s_mean;
	__u32	header;
	__u8	ccid;
	__u8	discount;
	__u8	variant;
	__u8	intervals;
	__u32	interval[9];
	__u32	window;
	__u32	pad;
};

#endif
