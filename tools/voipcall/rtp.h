/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RTP and RTCP (RFC 3550): packets, sequence numbers, jitter. Pure: bytes in,
 * numbers out. Both share a connection as in RFC 5761.
 */
#ifndef VOIPCALL_RTP_H
#define VOIPCALL_RTP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define RTP_HEADER	12
#define RTP_VERSION	2
#define MAX_PACKET	1400

/*
 * With 20 ms of speech in a packet what this program sends is no longer than this, with
 * RTP or RTCP headers. Linux
 * takes any DCCP packet over IPv4 of more than 255 bytes for one with a wrong
 * checksum where it tracks connections (nf_ip_checksum_partial() swaps two
 * arguments, of which one has 8 bits). DCCP's header takes 16, an NDP count 8; with
 * CCID 2 a header of 24 and an Ack Vector, so the longest, MSG_END, stays at 200.
 */
#define SEND_MAX	(255 - 16 - 8)

#define RTCP_SR		200
#define RTCP_RR		201
#define RTCP_SDES	202
#define RTCP_BYE	203
#define RTCP_APP	204

/**
 * struct rtp_packet - an RTP packet
 * @marker:	first of a talk spurt
 * @payload_type: codec
 * @seq:	sequence number
 * @timestamp:	in units of the codec's clock
 * @ssrc:	source
 * @payload:	the payload
 * @len:	its length
 */
struct rtp_packet {
	bool		marker;
	__u8		payload_type;
	__u16		seq;
	__u32		timestamp;
	__u32		ssrc;
	const __u8	*payload;
	size_t		len;
};

size_t rtp_pack(__u8 *buf, size_t room, const struct rtp_packet *p);
bool rtp_parse(struct rtp_packet *p, const __u8 *buf, size_t len);
bool rtcp_is(const __u8 *buf, size_t len);

/* How many numbers back a duplicate is known as such. */
#define RTP_WINDOW	4096

/* Packets that may change places (RFC 3550, A.1). */
#define MAX_MISORDER	100

enum rtp_verdict {
	RTP_NEW,
	RTP_REORDERED,
	RTP_DUPLICATE,
	RTP_BAD,
};

/**
 * struct rtp_seq - the sequence numbers of a source (RFC 3550 A.1)
 * @started:	there has been one
 * @base:	first extended number; numbers start in the second cycle, so that
 *		what comes before the first one has a number, too
 * @max:	highest extended number
 * @bad:	number that would confirm a restart; above 0xffff: none
 * @seen:	bit n of RTP_WINDOW: the number congruent to n has come
 */
struct rtp_seq {
	bool	started;
	__u32	base;
	__u32	max;
	__u32	bad;
	__u64	seen[RTP_WINDOW / 64];
};

void rtp_seq_start(struct rtp_seq *s, __u16 first);
enum rtp_verdict rtp_seq_add(struct rtp_seq *s, __u16 seq, __u32 *extended);

/**
 * struct rtp_jitter - interarrival jitter (RFC 3550 A.8)
 * @started:	there has been a packet
 * @arrived:	when the last packet came, ns
 * @timestamp:	its time stamp
 * @jitter:	ns
 */
struct rtp_jitter {
	bool	started;
	__s64	arrived;
	__u32	timestamp;
	double	jitter;
};

void rtp_jitter_add(struct rtp_jitter *j, __s64 arrived, __u32 timestamp, unsigned int clock);

/**
 * struct rtcp_block - a report on a source
 * @ssrc:	the source
 * @fraction:	lost since the last report, of 256
 * @lost:	lost since the beginning
 * @max:	highest extended sequence number
 * @jitter:	in units of the codec's clock
 * @lsr:	middle of the NTP time of its last SR, or 0
 * @dlsr:	since then, 1/65536 s
 */
struct rtcp_block {
	__u32	ssrc;
	__u8	fraction;
	__s32	lost;
	__u32	max;
	__u32	jitter;
	__u32	lsr;
	__u32	dlsr;
};

/**
 * struct rtcp_packet - a compound packet: SR or RR, SDES, then APP and BYE
 * @ssrc:	who sends it
 * @has_sr:	it has the sender's part:
 * @ntp:	the time, NTP format
 * @timestamp:	the same in units of the codec's clock
 * @packets:	sent
 * @octets:	payload bytes sent
 * @has_block:	it has @block
 * @block:	report on the source that the receiver of this is
 * @cname:	canonical name, when packing
 * @app_subtype: of the APP packet, if @app is there
 * @app:	its data: a multiple of four bytes
 * @app_len:	their number
 * @bye:	the sender leaves
 */
struct rtcp_packet {
	__u32			ssrc;
	bool			has_sr;
	__u64			ntp;
	__u32			timestamp;
	__u32			packets;
	__u32			octets;
	bool			has_block;
	struct rtcp_block	block;
	const char		*cname;
	__u8			app_subtype;
	const __u8		*app;
	size_t			app_len;
	bool			bye;
};

#define RTCP_APP_NAME	"VoIP"

size_t rtcp_pack(__u8 *buf, size_t room, const struct rtcp_packet *p);
bool rtcp_parse(struct rtcp_packet *p, const __u8 *buf, size_t len, __u32 own_ssrc);

__u64 ntp_time(__s64 realtime);
double rtcp_round_trip_ms(const struct rtcp_block *b, __u64 ntp_now);

static inline void put16(__u8 *p, __u16 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline void put32(__u8 *p, __u32 v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static inline void put64(__u8 *p, __u64 v)
{
	put32(p, v >> 32);
	put32(p + 4, v);
}

static inline __u16 get16(const __u8 *p)
{
	return p[0] << 8 | p[1];
}

static inline __u32 get32(const __u8 *p)
{
	return (__u32)get16(p) << 16 | get16(p + 2);
}

static inline __u64 get64(const __u8 *p)
{
	return (__u64)get32(p) << 32 | get32(p + 4);
}

#endif /* VOIPCALL_RTP_H */
