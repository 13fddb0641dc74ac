// SPDX-License-Identifier: GPL-2.0
/*
 * RTP packets, sequence numbers, jitter; see rtp.h.
 */
#include <string.h>
#include "rtp.h"

#define MAX_DROPOUT	3000
#define SEQ_MOD		0x10000
#define SEQ_NONE	(SEQ_MOD + 1)

/* Returns the length, 0 if there is no room. */
size_t rtp_pack(__u8 *buf, size_t room, const struct rtp_packet *p)
{
	if (RTP_HEADER + p->len > room)
		return 0;
	buf[0] = RTP_VERSION << 6;
	buf[1] = (p->marker ? 0x80 : 0) | p->payload_type;
	put16(buf + 2, p->seq);
	put32(buf + 4, p->timestamp);
	put32(buf + 8, p->ssrc);
	memcpy(buf + RTP_HEADER, p->payload, p->len);
	return RTP_HEADER + p->len;
}

/* Returns false for what is not RTP. */
bool rtp_parse(struct rtp_packet *p, const __u8 *buf, size_t len)
{
	size_t head = RTP_HEADER;

	if (len < head || buf[0] >> 6 != RTP_VERSION)
		return false;
	head += 4 * (buf[0] & 15);
	if (buf[0] & 0x10) {
		if (len < head + 4)
			return false;
		head += 4 + 4 * get16(buf + head + 2);
	}
	if (len < head)
		return false;
	if (buf[0] & 0x20) {
		size_t padding = buf[len - 1];

		if (!padding || padding > len - head)
			return false;
		len -= padding;
	}
	*p = (struct rtp_packet) {
		.marker = buf[1] & 0x80,
		.payload_type = buf[1] & 0x7f,
		.seq = get16(buf + 2),
		.timestamp = get32(buf + 4),
		.ssrc = get32(buf + 8),
		.payload = buf + head,
		.len = len - head,
	};
	return true;
}

/* RFC 5761, 4: the type tells, since no payload type of ours is 64 to 95. */
bool rtcp_is(const __u8 *buf, size_t len)
{
	return len >= 8 && buf[0] >> 6 == RTP_VERSION && buf[1] >= 192 && buf[1] <= 223;
}

/* Forget all; @first is the number of the first packet that was or will be sent. */
void rtp_seq_start(struct rtp_seq *s, __u16 first)
{
	memset(s, 0, sizeof(*s));
	s->started = true;
	s->base = SEQ_MOD + first;
	s->max = s->base - 1;
	s->bad = SEQ_NONE;
}

static bool rtp_seq_mark(struct rtp_seq *s, __u32 n)
{
	__u64 *word = &s->seen[n % RTP_WINDOW / 64];
	__u64 bit = 1ULL << n % 64;
	bool was = *word & bit;

	*word |= bit;
	return was;
}

static void rtp_seq_advance(struct rtp_seq *s, __u32 to)
{
	while (s->max != to) {
		s->max++;
		s->seen[s->max % RTP_WINDOW / 64] &= ~(1ULL << s->max % 64);
	}
	rtp_seq_mark(s, to);
}

/**
 * rtp_seq_add - a packet with this number has come
 * @s:		the source's numbers
 * @seq:	number in the packet
 * @extended:	set to the extended number, unless the packet is bad
 *
 * RTP_BAD is a number far off; a second one in sequence with it means that the
 * source has started again, which the caller sees from an extended number that
 * is the new base.
 */
enum rtp_verdict rtp_seq_add(struct rtp_seq *s, __u16 seq, __u32 *extended)
{
	__u16 delta;

	if (!s->started)
		rtp_seq_start(s, seq);
	delta = seq - (__u16)s->max;
	if (delta && delta < MAX_DROPOUT) {
		*extended = s->max + delta;
		rtp_seq_advance(s, *extended);
		s->bad = SEQ_NONE;
		return RTP_NEW;
	}
	if (delta && delta <= SEQ_MOD - MAX_MISORDER) {
		if (seq != s->bad) {
			s->bad = (seq + 1) % SEQ_MOD;
			return RTP_BAD;
		}
		rtp_seq_start(s, seq);
		*extended = s->base;
		rtp_seq_advance(s, *extended);
		return RTP_NEW;
	}
	*extended = s->max - (__u16)(s->max - seq);
	if (rtp_seq_mark(s, *extended))
		return RTP_DUPLICATE;
	if (*extended < s->base)
		s->base = *extended;
	return RTP_REORDERED;
}

/* D(i-1, i) of RFC 3550 6.4.1, in ns instead of units of the clock. */
void rtp_jitter_add(struct rtp_jitter *j, __s64 arrived, __u32 timestamp, unsigned int clock)
{
	__s64 d;

	if (j->started) {
		d = arrived - j->arrived -
		    (__s64)(__s32)(timestamp - j->timestamp) * 1000000000 / clock;
		j->jitter += ((double)(d < 0 ? -d : d) - j->jitter) / 16;
	}
	j->started = true;
	j->arrived = arrived;
	j->timestamp = timestamp;
}
