/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receiver of TEAR, TCP Emulation at Receivers [TRANS00] 1, 4.1: the window that a
 * TCP would have which lost the same packets, averaged over eight epochs.
 */
#ifndef _TEAR_RX_H
#define _TEAR_RX_H

#include "tfrc_rx.h"

#define TEAR_EPOCHS		8	/* [TRANS00] 4.1, the current one among them */
#define TEAR_CWND_MAX		0x100000U
#define TEAR_WINDOW_MAX		((1U << 28) - 1)	/* packets, Q24.8 */

/* A TCP's time-out, in round trips: what it waits for with t_RTO = 4R. */
#define TEAR_TIMEOUT		4U

/* More round trips of silence, or rounds in one hole, count as so many. */
#define TEAR_ROUNDS_MAX		64U

/* Ten and two: a window that has grown is at most so many times the mean. */
#define TEAR_GROWTH		12U

/**
 * struct tear - the TCP that is emulated
 * @cwnd: its window, packets; 0 before the first loss event
 * @left: packets that are left of the round, which is @cwnd long
 * @ssthresh: up to which the window doubles each round
 * @most: that the window may have, by the receive rate, packets
 * @arrives: packets that arrive in a round trip, or did so of late
 * @sum: windows of the rounds that are over of the current epoch, added up
 * @rounds: how many these are
 * @mean: the mean window of each epoch before, the newest first, packets, Q24.8
 * @n: how many
 */
struct tear {
	u32	cwnd;
	u32	left;
	u32	ssthresh;
	u32	most;
	u32	arrives;
	u64	sum;
	u32	rounds;
	u32	mean[TEAR_EPOCHS - 1];
	u8	n;
};

extern const struct tfrc_method tear_method;

u32 tear_window(const struct tear *t);

#endif
