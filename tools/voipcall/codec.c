// SPDX-License-Identifier: GPL-2.0
/*
 * The codecs. Sizes: RFC 3551 (G.711, G.722, whose RTP clock is 8000 Hz by an old
 * mistake, G.729), RFC 4867 bandwidth-efficient (AMR: four bits, and six for each
 * frame), RFC 7587 (Opus, for which any rate will do), 3GPP TS 26.445 Annex A (EVS: a
 * single frame in the compact format, several in the other, with a byte for each; of the
 * primary modes those up to 64 kbit/s). Ie and Bpl: ITU-T G.113, Appendix I; G.711 is
 * with the loss concealment of its own Appendix I. That table has AMR at 12.2 kbit/s, as
 * GSM-EFR; for the other modes and the wideband codecs there is nothing that the
 * narrow-band E-model could use.
 */
#include <math.h>
#include <string.h>
#include "codec.h"

#define NO_FIGURES	NAN, NAN

const struct codec codecs[] = {
	{
		.name = "g711", .payload_type = 0, .clock = 8000, .frame = 10, .modes = 1,
		.mode = { { "64", 640, 0, 25.1 } },
	}, {
		.name = "g729", .payload_type = 18, .clock = 8000, .lookahead_us = 5000,
		.frame = 10, .modes = 1,
		.mode = { { "8", 80, 11, 19 } },
	}, {
		.name = "amr-nb", .payload_type = 96, .clock = 8000, .lookahead_us = 5000,
		.frame = 20, .head = 4, .toc = 6, .modes = 8,
		.mode = {
			{ "4.75", 95, NO_FIGURES }, { "5.15", 103, NO_FIGURES },
			{ "5.9", 118, NO_FIGURES }, { "6.7", 134, NO_FIGURES },
			{ "7.4", 148, NO_FIGURES }, { "7.95", 159, NO_FIGURES },
			{ "10.2", 204, NO_FIGURES }, { "12.2", 244, 5, 10 },
		},
	}, {
		.name = "amr-wb", .payload_type = 97, .clock = 16000, .lookahead_us = 5000,
		.frame = 20, .head = 4, .toc = 6, .modes = 9,
		.mode = {
			{ "6.6", 132, NO_FIGURES }, { "8.85", 177, NO_FIGURES },
			{ "12.65", 253, NO_FIGURES }, { "14.25", 285, NO_FIGURES },
			{ "15.85", 317, NO_FIGURES }, { "18.25", 365, NO_FIGURES },
			{ "19.85", 397, NO_FIGURES }, { "23.05", 461, NO_FIGURES },
			{ "23.85", 477, NO_FIGURES },
		},
	}, {
		.name = "opus", .payload_type = 98, .clock = 48000, .lookahead_us = 6500,
		.frame = 10, .modes = 7,
		.mode = {
			{ "8", 80, NO_FIGURES }, { "12", 120, NO_FIGURES },
			{ "16", 160, NO_FIGURES }, { "20", 200, NO_FIGURES },
			{ "24", 240, NO_FIGURES }, { "32", 320, NO_FIGURES },
			{ "40", 400, NO_FIGURES },
		},
	}, {
		.name = "g722", .payload_type = 9, .clock = 8000, .lookahead_us = 1500,
		.frame = 10, .modes = 1,
		.mode = { { "64", 640, NO_FIGURES } },
	}, {
		.name = "evs", .payload_type = 99, .clock = 16000, .lookahead_us = 12000,
		.frame = 20, .toc = 8, .compact = true, .modes = 9,
		.mode = {
			{ "7.2", 144, NO_FIGURES }, { "8", 160, NO_FIGURES },
			{ "9.6", 192, NO_FIGURES }, { "13.2", 264, NO_FIGURES },
			{ "16.4", 328, NO_FIGURES }, { "24.4", 488, NO_FIGURES },
			{ "32", 640, NO_FIGURES }, { "48", 960, NO_FIGURES },
			{ "64", 1280, NO_FIGURES },
		},
	},
};

const unsigned int codec_count = ARRAY_SIZE(codecs);

const struct codec *codec_by_name(const char *name)
{
	for (unsigned int i = 0; i < codec_count; i++) {
		if (!strcmp(codecs[i].name, name))
			return &codecs[i];
	}
	return NULL;
}

const struct codec *codec_by_payload_type(__u8 payload_type)
{
	for (unsigned int i = 0; i < codec_count; i++) {
		if (codecs[i].payload_type == payload_type)
			return &codecs[i];
	}
	return NULL;
}

unsigned int codec_number(const struct codec *c)
{
	return c - codecs;
}

/* Can a packet have so much speech, in whole frames? */
bool codec_has_ptime(const struct codec *c, unsigned int ptime)
{
	return ptime >= PTIME_MIN && ptime <= PTIME_MAX && ptime % c->frame == 0;
}

/* Payload bytes of a packet of @ptime ms. */
unsigned int codec_payload(const struct codec *c, unsigned int mode, unsigned int ptime)
{
	unsigned int frames = ptime / c->frame;

	if (c->compact && frames == 1)
		return (c->mode[mode].bits + 7) / 8;
	return (c->head + frames * (c->toc + c->mode[mode].bits) + 7) / 8;
}

/* The mode that has payloads of that size; -1: none. */
int codec_mode_of(const struct codec *c, unsigned int payload, unsigned int ptime)
{
	for (unsigned int i = 0; i < c->modes; i++) {
		if (codec_payload(c, i, ptime) == payload)
			return i;
	}
	return -1;
}

/* How much speech is in a payload of that size; @usual, if that fits, or if nothing does. */
unsigned int codec_ptime_of(const struct codec *c, unsigned int payload, unsigned int usual)
{
	if (codec_mode_of(c, payload, usual) >= 0)
		return usual;
	for (unsigned int ptime = c->frame; ptime <= PTIME_MAX; ptime += c->frame) {
		if (codec_mode_of(c, payload, ptime) >= 0)
			return ptime;
	}
	return usual;
}
