/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Speech codecs as the network sees them: packet sizes and intervals. Nothing
 * is encoded; payloads are of the right size and carry a time stamp.
 */
#ifndef VOIPCALL_CODEC_H
#define VOIPCALL_CODEC_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define MAX_MODES	9

/**
 * struct codec_mode - one bit rate of a codec
 * @name:	as the codec's specification names it, kbit/s
 * @payload:	bytes of RTP payload in each packet
 * @ie:		equipment impairment factor of the E-model; NAN: none published
 * @bpl:	packet-loss robustness factor of the E-model; NAN: none published
 */
struct codec_mode {
	const char	*name;
	unsigned int	payload;
	double		ie;
	double		bpl;
};

/**
 * struct codec - a codec
 * @name:	as typed and reported
 * @payload_type: of RTP: static (RFC 3551) or the dynamic one used here
 * @clock:	RTP clock, Hz
 * @lookahead_us: what the encoder has to hear beyond the packet
 * @ptime_min:	shortest packet, ms; payload sizes are for 20 ms, the longest
 * @modes:	number of entries in @mode; more than one: rate-adaptive
 * @mode:	ascending
 */
struct codec {
	const char		*name;
	__u8			payload_type;
	unsigned int		clock;
	unsigned int		lookahead_us;
	unsigned int		ptime_min;
	unsigned int		modes;
	struct codec_mode	mode[MAX_MODES];
};

#define PTIME_MAX	20

extern const struct codec codecs[];
extern const unsigned int codec_count;

const struct codec *codec_by_name(const char *name);
const struct codec *codec_by_payload_type(__u8 payload_type);
unsigned int codec_number(const struct codec *c);
unsigned int codec_payload(const struct codec *c, unsigned int mode, unsigned int ptime);
int codec_mode_of(const struct codec *c, unsigned int payload, unsigned int ptime);

#endif /* VOIPCALL_CODEC_H */
