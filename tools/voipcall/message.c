// SPDX-License-Identifier: GPL-2.0
/*
 * The messages between two voipcalls, in APP packets of RTCP.
 */
#include <string.h>
#include "message.h"

#define OFFER_VERSION	4

#define OFFER_ONE_WAY	0x01
#define OFFER_SILENCE	0x02
#define OFFER_ECN	0x04

/* Version, codec, ptime, flags; DSCP, 0, first number; seed; name of the codec; cookie. */
size_t offer_pack(__u8 *buf, const struct offer *o)
{
	buf[0] = OFFER_VERSION;
	buf[1] = codec_number(o->codec);
	buf[2] = o->ptime;
	buf[3] = (o->one_way ? OFFER_ONE_WAY : 0) | (o->silence ? OFFER_SILENCE : 0) |
		 (o->ecn ? OFFER_ECN : 0);
	buf[4] = o->dscp;
	buf[5] = 0;
	put16(buf + 6, o->seq);
	put64(buf + 8, o->seed);
	strncpy((char *)buf + 16, o->codec->name, 4);
	put64(buf + 20, o->cookie);
	return OFFER_LEN;
}

bool offer_parse(struct offer *o, const __u8 *buf, size_t len)
{
	if (len < OFFER_LEN || buf[0] != OFFER_VERSION || buf[1] >= codec_count)
		return false;
	*o = (struct offer) {
		.codec = &codecs[buf[1]],
		.ptime = buf[2],
		.one_way = buf[3] & OFFER_ONE_WAY,
		.silence = buf[3] & OFFER_SILENCE,
		.ecn = buf[3] & OFFER_ECN,
		.dscp = buf[4] & 63,
		.seq = get16(buf + 6),
		.seed = get64(buf + 8),
		.cookie = get64(buf + 20),
	};
	return codec_has_ptime(o->codec, o->ptime) &&
	       !strncmp((const char *)buf + 16, o->codec->name, 4);
}

size_t ready_pack(__u8 *buf, __u64 cookie)
{
	put64(buf, cookie);
	return READY_LEN;
}

/* Is it the answer's? */
bool ready_parse(const __u8 *buf, size_t len, __u64 cookie)
{
	return len >= READY_LEN && get64(buf) == cookie;
}

/* Frames not sent, number of figures, the figures as IEEE 754 single precision. */
size_t end_pack(__u8 *buf, __u32 not_sent, const double *metrics)
{
	put32(buf, not_sent);
	put32(buf + 4, metrics ? METRICS : 0);
	for (int i = 0; metrics && i < METRICS; i++) {
		float value = (float)metrics[i];
		__u32 bits;

		memcpy(&bits, &value, sizeof(bits));
		put32(buf + END_LEN + 4 * i, bits);
	}
	return END_LEN + (metrics ? 4 * METRICS : 0);
}

bool end_parse(const __u8 *buf, size_t len, __u32 *not_sent, double *metrics, bool *has_metrics)
{
	if (len < END_LEN)
		return false;
	*not_sent = get32(buf);
	*has_metrics = get32(buf + 4) >= METRICS && len >= MESSAGE_MAX;
	for (int i = 0; *has_metrics && i < METRICS; i++) {
		__u32 bits = get32(buf + END_LEN + 4 * i);
		float value;

		memcpy(&value, &bits, sizeof(value));
		metrics[i] = value;
	}
	return true;
}
