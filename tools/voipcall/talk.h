/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TALK_H
#define TALK_H

#include <stdbool.h>
#include <linux/types.h>
#include "adapt.h"
#include "codec.h"
#include "message.h"
#include "rate.h"

/**
 * struct sender - the direction that this end talks in
 * @ssrc:	RTP source
 * @seq:	next sequence number
 * @start:	RTP time at the first frame
 * @frame:	frames of talk and silence so far
 * @marker:	the next packet is the first of a spurt
 * @talking:	no silence now
 * @turn:	when that changes
 * @rng:	random state of the spurts
 * @adapt:	mode of the codec
 * @refused:	a frame was refused since the last look at the rate
 * @next_rate:	when to look again
 * @rate:	the last reading
 * @allowed_sum: of the readings
 * @readings:	their number
 * @packets:	sent
 * @octets:	their payload
 * @not_sent:	frames that the socket refused
 * @mode:	packets sent in each mode
 */
struct sender {
	__u32		ssrc;
	__u16		seq;
	__u32		start;
	__u64		frame;
	bool		marker;
	bool		talking;
	__s64		turn;
	__u64		rng;
	struct adapt	adapt;
	bool		refused;
	__s64		next_rate;
	struct rate	rate;
	double		allowed_sum;
	__u64		readings;
	__u64		packets;
	__u64		octets;
	__u32		not_sent;
	__u64		mode[MAX_MODES];
};

struct call;

void sender_init(struct call *c);
int sender_talk(struct call *c, __s64 now);
int send_rtcp(struct call *c, enum message msg, bool bye);

#endif /* TALK_H */
