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
 * @bits:	of speech in a frame
 * @ie:		equipment impairment factor of the E-model; NAN: none published
 * @bpl:	packet-loss robustness factor of the E-model; NAN: none published
 */
struct codec_mode {
	const char	*name;
	unsigned int	bits;
	double		ie;
	double		bpl;
};

/**
 * struct codec - a codec
 * @name:	as typed and reported
 * @payload_type: of RTP: static (RFC 3551) or the dynamic one used here
 * @clock:	RTP clock, Hz
 * @lookahead_us: what the encoder has to hear beyond the packet
 * @frame:	ms; a packet has one or several
 * @head:	bits of payload before the frames
 * @toc:	bits of payload for each frame that say what it is
 * @compact:	a single frame has neither
 * @modes:	number of entries in @mode; more than one: rate-adaptive
 * @mode:	ascending
 */
struct codec {
	const char		*name;
	__u8			payload_type;
	unsigned int		clock;
	unsigned int		lookahead_us;
	unsigned int		frame;
	unsigned int		head;
	unsigned int		toc;
	bool			compact;
	unsigned int		modes;
	struct codec_mode	mode[MAX_MODES];
};

/* No payload is longer: three frames of EVS at 64 kbit/s. */
#define PAYLOAD_MAX	483

/* Speech in a packet, ms. */
#define PTIME_MIN	10
#define PTIME_DEFAULT	20
#define PTIME_MAX	60

extern const struct codec codecs[];
extern const unsigned int codec_count;

const struct codec *codec_by_name(const char *name);
const struct codec *codec_by_payload_type(__u8 payload_type);
unsigned int codec_number(const struct codec *c);
bool codec_has_ptime(const struct codec *c, unsigned int ptime);
unsigned int codec_payload(const struct codec *c, unsigned int mode, unsigned int ptime);
unsigned int codec_ptime_of(const struct codec *c, unsigned int payload, unsigned int usual);
int codec_mode_of(const struct codec *c, unsigned int payload, unsigned int ptime);

#endif /* VOIPCALL_CODEC_H */
