// SPDX-License-Identifier: GPL-2.0
/*
 * RTCP packets; see rtp.h.
 */
#include <string.h>
#include "rtp.h"

#define BLOCK_LEN	24
#define SENDER_LEN	20

/* Seconds from 1900 to 1970. */
#define NTP_OFFSET	2208988800ULL

/* Realtime clock, ns, as 32.32 bits. */
__u64 ntp_time(__s64 realtime)
{
	__u64 sec = realtime / 1000000000, nsec = realtime % 1000000000;

	return (sec + NTP_OFFSET) << 32 | (nsec << 32) / 1000000000;
}

/* RFC 3550 6.4.1, DLSR; negative: unknown. */
double rtcp_round_trip_ms(const struct rtcp_block *b, __u64 ntp_now)
{
	__s32 trip = (__u32)(ntp_now >> 16) - b->lsr - b->dlsr;

	return b->lsr && trip >= 0 ? trip * 1000.0 / 65536 : -1;
}

/* The header of one packet of a compound, @len bytes with it. */
static __u8 *rtcp_head(__u8 *p, unsigned int count, __u8 type, size_t len, __u32 ssrc)
{
	p[0] = RTP_VERSION << 6 | count;
	p[1] = type;
	put16(p + 2, len / 4 - 1);
	put32(p + 4, ssrc);
	return p + 8;
}

static __u8 *pack_block(__u8 *p, const struct rtcp_block *b)
{
	__s32 lost = b->lost > 0x7fffff ? 0x7fffff : b->lost < -0x800000 ? -0x800000 : b->lost;

	put32(p, b->ssrc);
	put32(p + 4, (__u32)b->fraction << 24 | (lost & 0xffffff));
	put32(p + 8, b->max);
	put32(p + 12, b->jitter);
	put32(p + 16, b->lsr);
	put32(p + 20, b->dlsr);
	return p + BLOCK_LEN;
}

static void parse_block(struct rtcp_block *b, const __u8 *p)
{
	__u32 lost = get32(p + 4);

	*b = (struct rtcp_block) {
		.ssrc = get32(p),
		.fraction = lost >> 24,
		.lost = (__s32)(lost << 8) >> 8,
		.max = get32(p + 8),
		.jitter = get32(p + 12),
		.lsr = get32(p + 16),
		.dlsr = get32(p + 20),
	};
}

/* Returns the length, 0 if there is no room. */
size_t rtcp_pack(__u8 *buf, size_t room, const struct rtcp_packet *p)
{
	size_t name = strlen(p->cname);
	/* type, length, the name and at least one zero, in words */
	size_t sdes = 8 + (2 + name + 1 + 3) / 4 * 4;
	size_t report = 8 + (p->has_sr ? SENDER_LEN : 0) + (p->has_block ? BLOCK_LEN : 0);
	size_t app = p->app ? 12 + p->app_len : 0;
	__u8 *at = buf;

	if (report + sdes + app + (p->bye ? 8 : 0) > room || name > 255)
		return 0;
	at = rtcp_head(at, p->has_block, p->has_sr ? RTCP_SR : RTCP_RR, report, p->ssrc);
	if (p->has_sr) {
		put64(at, p->ntp);
		put32(at + 8, p->timestamp);
		put32(at + 12, p->packets);
		put32(at + 16, p->octets);
		at += SENDER_LEN;
	}
	if (p->has_block)
		at = pack_block(at, &p->block);

	memset(rtcp_head(at, 1, RTCP_SDES, sdes, p->ssrc), 0, sdes - 8);
	at[8] = 1; /* CNAME */
	at[9] = name;
	memcpy(at + 10, p->cname, name);
	at += sdes;

	if (p->app) {
		at = rtcp_head(at, p->app_subtype, RTCP_APP, app, p->ssrc);
		memcpy(at, RTCP_APP_NAME, 4);
		memcpy(at + 4, p->app, p->app_len);
		at += 4 + p->app_len;
	}
	if (p->bye)
		at = rtcp_head(at, 1, RTCP_BYE, 8, p->ssrc);
	return at - buf;
}

static bool parse_report(struct rtcp_packet *p, const __u8 *at, size_t len, __u32 own_ssrc)
{
	size_t head = at[1] == RTCP_SR ? 8 + SENDER_LEN : 8;
	unsigned int count = at[0] & 31;

	if (len < head + count * BLOCK_LEN)
		return false;
	if (at[1] == RTCP_SR) {
		p->has_sr = true;
		p->ntp = get64(at + 8);
		p->timestamp = get32(at + 16);
		p->packets = get32(at + 20);
		p->octets = get32(at + 24);
	}
	for (unsigned int i = 0; i < count; i++) {
		const __u8 *block = at + head + i * BLOCK_LEN;

		if (get32(block) == own_ssrc) {
			parse_block(&p->block, block);
			p->has_block = true;
		}
	}
	return true;
}

/**
 * rtcp_parse - read a compound packet
 * @p:		set to what is in it; what points into @buf lives as long as that
 * @buf:	the packet
 * @len:	its length
 * @own_ssrc:	whose report blocks to take
 *
 * Return: false if it is not a valid one (RFC 3550, A.2); that it starts with
 * a report and that the lengths add up must be true.
 */
bool rtcp_parse(struct rtcp_packet *p, const __u8 *buf, size_t len, __u32 own_ssrc)
{
	const __u8 *at = buf, *end = buf + len;

	memset(p, 0, sizeof(*p));
	if (len < 8 || (buf[1] != RTCP_SR && buf[1] != RTCP_RR))
		return false;
	p->ssrc = get32(buf + 4);
	while (at < end) {
		size_t left = end - at, size;

		if (left < 4 || at[0] >> 6 != RTP_VERSION)
			return false;
		size = 4 * (get16(at + 2) + 1UL);
		if (size > left)
			return false;
		switch (at[1]) {
		case RTCP_SR:
		case RTCP_RR:
			if (size < 8 || !parse_report(p, at, size, own_ssrc))
				return false;
			break;
		case RTCP_BYE:
			p->bye = true;
			break;
		case RTCP_APP:
			if (size < 12)
				return false;
			if (memcmp(at + 8, RTCP_APP_NAME, 4))
				break;
			p->app_subtype = at[0] & 31;
			p->app = at + 12;
			p->app_len = size - 12;
			break;
		}
		at += size;
	}
	return true;
}
