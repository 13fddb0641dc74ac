/* SPDX-License-Identifier: GPL-2.0 */
/* The receiver of TFRC: loss events, and the options that tell of them. */
#ifndef _TFRC_RX_H
#define _TFRC_RX_H

#include "rate_rx.h"
#include "tfrc_loss.h"

/**
 * struct tfrc_rx - receiver's state
 * @rate: which packets are lost, receive rate, round-trip time
 * @method: of measuring loss
 * @own: the method's own state, zeroed and init()ed
 * @par: its parameters
 * @wc_event: window counter of the packet before the loss that began the current event
 * @pinv: 1/p at the last feedback or event
 * @window: at the last feedback, if the method has one, packets, Q24.8
 * @meter: the current interval
 * @history: its predecessors
 * @events: loss events
 */
struct tfrc_rx {
	struct rate_rx		rate;
	const struct tfrc_method *method;
	void			*own;
	struct tfrc_params	par;

	u32			wc_event;
	u32			pinv;
	u32			window;
	struct tfrc_meter	meter;
	struct tfrc_history	history;
	u64			events;
};

void tfrc_rx_init(struct tfrc_rx *rx, const struct tfrc_method *method,
		  const struct tfrc_params *par, u64 seq, u32 rtt);
bool tfrc_rx_lost(struct rate_rx *rate, struct rate_hole *hole, u64 seq, u64 now);
void tfrc_rx_received(struct rate_rx *rate, const struct rate_packet *pkt);
void tfrc_rx_report(struct tfrc_rx *rx, enum rate_feedback why, u64 now);
u32 tfrc_rx_interval(const struct tfrc_rx *rx, u32 i);

/* Intervals in packets, as several methods count them. */
void tfrc_standard_received(struct tfrc_rx *rx, const struct rate_packet *pkt,
			    bool lip);
s64 tfrc_standard_lost(struct tfrc_rx *rx, const struct rate_hole *hole);
u32 tfrc_standard_length(const struct tfrc_rx *rx, bool is_short);

/* Options, RFC 6323, 3.2, RFC 4342, 8 and RFC 5622, 8. */
#define TFRC_OPT_RTT_ESTIMATE		128
#define TFRC_OPT_LOSS_EVENT_RATE	192
#define TFRC_OPT_LOSS_INTERVALS		193
#define TFRC_OPT_RECEIVE_RATE		194
#define TFRC_OPT_DROPPED_PACKETS	195
#define TFRC_OPT_MEAN_INTERVAL		196	/* ours, of 248 to 253: 1/p, Q24.8 */
#define TFRC_OPT_WINDOW			196	/* ours, of 254: packets, Q24.8 */

/* Intervals that change from one periodic feedback to the next, at most. */
#define TFRC_INTERVALS_BRIEF		2U

#define TFRC_INTERVALS_SIZE	(1 + 9 * (TFRC_NINTERVAL + 1))
#define TFRC_DROPPED_SIZE	(3 * (TFRC_NINTERVAL + 1))

u8 tfrc_rx_intervals(const struct tfrc_rx *rx, u64 ackno, u32 most, u8 *data);
u8 tfrc_rx_dropped(const struct tfrc_rx *rx, u32 most, u8 *data);
u32 tfrc_rx_loss_event_rate(const struct tfrc_rx *rx);

#endif
