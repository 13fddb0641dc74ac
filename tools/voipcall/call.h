/* SPDX-License-Identifier: GPL-2.0 */
/*
 * voipcall: a call.
 *
 * Times are nanoseconds. Schedules run on CLOCK_MONOTONIC. What travels in a
 * packet is the call's time: what CLOCK_REALTIME was when the call began, and
 * CLOCK_MONOTONIC since, so that no step of the system's clock moves it.
 */
#ifndef CALL_H
#define CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>
#include "../lib/clock.h"
#include "message.h"
#include "net.h"
#include "options.h"
#include "quality.h"
#include "talk.h"

#define NEVER		INT64_MAX

/*
 * How a call goes on: the caller offers until it is answered, both talk, the
 * caller says goodbye until the listener's report has come. The listener waits
 * a little for stragglers before it reports, and a little after that, lest its
 * report was lost.
 */
enum call_state {
	CALL_OFFERING,
	CALL_WAITING,	/* listener: answered, the caller is not ready yet */
	CALL_TALKING,
	CALL_CLOSING,	/* goodbye said, waiting for the report */
	CALL_GRACE,	/* listener: goodbye heard, waiting for stragglers */
	CALL_REPORTED,	/* listener: report sent */
	CALL_DONE,
};

/**
 * struct call - one call
 * @opt:	the command line
 * @fd:		connected socket
 * @caller:	this end called
 * @state:	see there
 * @local:	our address, as text
 * @remote:	the peer's
 * @ccid_tx:	CCID of what is sent, -1: not DCCP
 * @ccid_rx:	CCID of what is received, likewise
 * @offer:	what was agreed
 * @our_seq:	first sequence number of what we send
 * @cookie:	of the answer, for MSG_READY
 * @proven:	the peer gets what is sent to its address: DCCP's handshake says so, and
 *		over UDP the cookie; until then a listener does not talk nor report
 * @peer_ready:	caller: the listener was heard since it answered
 * @talks:	this end talks
 * @tx:		what it sends
 * @rx:		what it receives
 * @cname:	RTCP canonical name
 * @clock:	the call's time less CLOCK_MONOTONIC
 * @clock_now:	CLOCK_REALTIME less CLOCK_MONOTONIC when a datagram came last
 * @clock_set:	when that was seen to have changed last, in the call's time; 0: never
 * @start:	when talking began
 * @stop:	when it ended, or is to end
 * @next_frame:	when the next frame is due
 * @next_rtcp:	when the next report is
 * @next_state:	when this state wants something done
 * @next_progress: when a line of progress is due
 * @give_up:	when waiting in this state ends
 * @heard:	when the peer was heard last
 * @sr_ntp:	middle of the NTP time of the peer's last SR
 * @sr_at:	when it came, NTP time
 * @rng:	random state of RTCP's timing
 * @far:	what the peer reported
 * @has_far:	it did
 * @said_goodbye: once at least; the answer to the first takes a while
 * @failure:	why the call ended before its time, or empty
 * @deadline:	the endpoint's: call_deadline(), when it asked last
 * @place:	the endpoint's: where this is in its heap
 */
struct call {
	const struct options	*opt;
	int			fd;
	bool			caller;
	enum call_state		state;
	char			local[ADDRESS_LEN];
	char			remote[ADDRESS_LEN];
	int			ccid_tx;
	int			ccid_rx;
	struct offer		offer;
	__u16			our_seq;
	__u64			cookie;
	bool			proven;
	bool			peer_ready;
	bool			talks;
	struct sender		tx;
	struct receiver		rx;
	char			cname[24];
	__s64			clock;
	__s64			clock_now;
	__s64			clock_set;
	__s64			start;
	__s64			stop;
	__s64			next_frame;
	__s64			next_rtcp;
	__s64			next_state;
	__s64			next_progress;
	__s64			give_up;
	__s64			heard;
	__u32			sr_ntp;
	__u64			sr_at;
	__u64			rng;
	double			far[METRICS];
	bool			has_far;
	bool			said_goodbye;
	char			failure[128];
	__s64			deadline;
	unsigned int		place;
};

struct call *call_new(const struct options *o, int fd, bool caller);
void call_marks(struct call *c);
void call_free(struct call *c);
__s64 call_deadline(const struct call *c);
void call_timers(struct call *c, __s64 now);
void call_readable(struct call *c);
void call_datagram(struct call *c, const struct datagram *d);
void call_hang_up(struct call *c);
__s64 call_clock_step(const struct call *c);

/* What travels in packets. */
static inline __s64 call_time(const struct call *c)
{
	return now(CLOCK_MONOTONIC) + c->clock;
}

#endif /* CALL_H */
