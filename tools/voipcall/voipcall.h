/* SPDX-License-Identifier: GPL-2.0 */
/*
 * voipcall: options, sockets, calls, reports.
 *
 * Times are nanoseconds. Schedules run on CLOCK_MONOTONIC. What travels in a
 * packet is the call's time: what CLOCK_REALTIME was when the call began, and
 * CLOCK_MONOTONIC since, so that no step of the system's clock moves it.
 */
#ifndef VOIPCALL_H
#define VOIPCALL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <sys/socket.h>
#include <time.h>
#include "adapt.h"
#include "codec.h"
#include "quality.h"
#include "rtp.h"

#define NSEC_PER_SEC	1000000000LL
#define NSEC_PER_MSEC	1000000LL
#define NEVER		INT64_MAX
#define __printf(a, b)	__attribute__((	\
				__format__(__printf__, a, b)))

#define MAX_CCIDS	8
#define ADDRESS_LEN	64

/**
 * struct options - the command line
 * @listen:	wait for calls
 * @host:	or whom to call
 * @port:	port to listen at or to call
 * @family:	AF_INET, AF_INET6 or AF_UNSPEC
 * @udp:	instead of DCCP
 * @ccid:	CCIDs in order of preference
 * @ccids:	their number, 0: the system's default
 * @tx_queue:	packets in the DCCP socket's queue, 0: the system's default
 * @codec:	codec of both directions
 * @ptime:	ms a packet
 * @time:	how long to talk
 * @dscp:	mark of what is sent; -1: none given
 * @ecn:	UDP: set ECT(0)
 * @silence:	talk in spurts
 * @one_way:	only the caller talks
 * @seed:	of the spurts
 * @playout_ms:	fixed playout buffer; negative: adaptive
 * @interval:	between progress lines, 0: none
 * @timeout:	for call setup and tear-down
 * @json:	report as JSON
 * @once:	listen: end after one call
 */
struct options {
	bool			listen;
	const char		*host;
	const char		*port;
	int			family;
	bool			udp;
	__u8			ccid[MAX_CCIDS];
	unsigned int		ccids;
	unsigned int		tx_queue;
	const struct codec	*codec;
	unsigned int		ptime;
	__s64			time;
	int			dscp;
	bool			ecn;
	bool			silence;
	bool			one_way;
	__u64			seed;
	double			playout_ms;
	__s64			interval;
	__s64			timeout;
	bool			json;
	bool			once;
};

/**
 * struct rate - what the congestion control allows
 * @known:	there is such a figure
 * @allowed:	bytes/s that the application may send, RTP headers included
 * @rtt_ms:	its round-trip time
 * @p:		its loss event rate
 */
struct rate {
	bool	known;
	__u64	allowed;
	double	rtt_ms;
	double	p;
};

bool rate_read(int fd, unsigned int ptime, struct rate *r);

/**
 * struct datagram - something received
 * @data:	the bytes
 * @len:	their number
 * @arrived:	CLOCK_REALTIME; call_datagram() turns it into the call's time
 * @ce:		with Congestion Experienced
 * @from:	UDP listener: who sent it
 * @from_len:	length of @from
 * @to:		UDP listener: to which of our addresses, port included
 */
struct datagram {
	__u8			data[MAX_PACKET];
	size_t			len;
	__s64			arrived;
	bool			ce;
	struct sockaddr_storage	from;
	socklen_t		from_len;
	struct sockaddr_storage	to;
};

int net_listen(const struct options *o);
int net_connect(const struct options *o);
int net_accept_dccp(int fd);
int net_accept_udp(const struct options *o, int fd, const struct datagram *d);
int net_receive(int fd, struct datagram *d);
void net_mark(int fd, int dscp, bool ecn);
void net_name(const struct sockaddr_storage *a, char *name);
void net_names(int fd, char *local, char *remote);
int net_ccid(int fd, bool tx);
const char *net_error(int err);
bool net_unreachable(int err);

/**
 * struct offer - the call as the caller wants it; the answer has the same form
 * @codec:	codec
 * @ptime:	ms a packet
 * @one_way:	the listener is not to talk
 * @silence:	talk in spurts
 * @ecn:	UDP: set ECT(0)
 * @dscp:	mark of what the sender of this sends
 * @seq:	its first RTP sequence number
 * @seed:	of the spurts
 */
struct offer {
	const struct codec	*codec;
	unsigned int		ptime;
	bool			one_way;
	bool			silence;
	bool			ecn;
	__u8			dscp;
	__u16			seq;
	__u64			seed;
};

/* What the APP packets of RTCP say. */
enum message {
	MSG_NONE,
	MSG_OFFER,	/* the caller: struct offer */
	MSG_ANSWER,	/* the listener: the same */
	MSG_END,	/* frames not sent; the listener adds what it received */
	MSG_ACK,	/* the caller has that */
};

#define OFFER_LEN	20
#define END_LEN		8
#define MESSAGE_MAX	(END_LEN + 4 * METRICS)

size_t offer_pack(__u8 *buf, const struct offer *o);
bool offer_parse(struct offer *o, const __u8 *buf, size_t len);
size_t end_pack(__u8 *buf, __u32 not_sent, const double *metrics);
bool end_parse(const __u8 *buf, size_t len, __u32 *not_sent, double *metrics, bool *has_metrics);

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

/*
 * How a call goes on: the caller offers until it is answered, both talk, the
 * caller says goodbye until the listener's report has come. The listener waits
 * a little for stragglers before it reports, and a little after that, lest its
 * report was lost.
 */
enum call_state {
	CALL_OFFERING,
	CALL_WAITING,	/* listener: answered, the caller has not spoken yet */
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
 * @local, @remote: addresses, as text
 * @ccid_tx, @ccid_rx: CCIDs in use, -1: not DCCP
 * @offer:	what was agreed
 * @our_seq:	first sequence number of what we send
 * @talks:	this end talks
 * @tx:		what it sends
 * @rx:		what it receives
 * @cname:	RTCP canonical name
 * @clock:	the call's time less CLOCK_MONOTONIC
 * @clock_now:	CLOCK_REALTIME less CLOCK_MONOTONIC when a datagram came last
 * @clock_set:	when that was seen to have changed last, in the call's time; 0: never
 * @start:	when talking began
 * @stop:	when it ended, or is to end
 * @next_frame, @next_rtcp, @next_state, @next_progress: when to do what
 * @give_up:	when waiting in this state ends
 * @heard:	when the peer was heard last
 * @sr_ntp:	middle of the NTP time of the peer's last SR
 * @sr_at:	when it came, NTP time
 * @rng:	random state of RTCP's timing
 * @far:	what the peer reported
 * @has_far:	it did
 * @failure:	why the call ended before its time, or empty
 * @shown:	packets received at the last progress line
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
	char			failure[128];
	__u64			shown;
};

struct call *call_new(const struct options *o, int fd, bool caller);
void call_free(struct call *c);
__s64 call_deadline(const struct call *c);
void call_timers(struct call *c, __s64 now);
void call_readable(struct call *c);
void call_datagram(struct call *c, const struct datagram *d);
void call_hang_up(struct call *c);
__s64 call_time(const struct call *c);
__s64 call_clock_step(const struct call *c);

void sender_init(struct call *c);
void sender_talk(struct call *c, __s64 now);
bool send_rtcp(struct call *c, enum message msg, bool bye);
void call_fail(struct call *c, const char *fmt, ...) __printf(2, 3);

void report(const struct call *c);
void report_progress(struct call *c, __s64 now);

int endpoint_call(const struct options *o);
int endpoint_listen(const struct options *o);

noreturn void die(const char *fmt, ...) __printf(1, 2);
noreturn void die_errno(const char *fmt, ...) __printf(1, 2);
void complain(const char *fmt, ...) __printf(1, 2);

__s64 now(clockid_t clock);
__s64 clock_offset(void);
__u64 rng_seed(__u64 seed, __u64 stream);
double rng_uniform(__u64 *state);
__u64 random_number(void);

#endif /* VOIPCALL_H */
