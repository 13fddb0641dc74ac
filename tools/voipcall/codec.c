// SPDX-License-Identifier: GPL-2.0
/*
 * The codecs. Sizes: RFC 3551 (G.711, G.729), RFC 4867 bandwidth-efficient
 * (AMR, with its 10 bits of header), RFC 7587 (Opus, for which any rate will
 * do). Ie and Bpl: ITU-T G.113, Appendix I; G.711 is with the loss concealment
 * of its own Appendix I. That table has AMR at 12.2 kbit/s, as GSM-EFR; for
 * the other modes and for Opus there is nothing that the narrow-band E-model
 * could use.
 */
#include <math.h>
#include <string.h>
#include "codec.h"

#define NO_FIGURES	NAN, NAN

const struct codec codecs[] = {
	{
		.name = "g711", .payload_type = 0, .clock = 8000, .ptime_min = 10, .modes = 1,
		.mode = { { "64", 160, 0, 25.1 } },
	}, {
		.name = "g729", .payload_type = 18, .clock = 8000, .lookahead_us = 5000,
		.ptime_min = 20, .modes = 1,
		.mode = { { "8", 20, 11, 19 } },
	}, {
		.name = "amr-nb", .payload_type = 96, .clock = 8000, .lookahead_us = 5000,
		.ptime_min = 20, .modes = 8,
		.mode = {
			{ "4.75", 14, NO_FIGURES }, { "5.15", 15, NO_FIGURES },
			{ "5.9", 16, NO_FIGURES }, { "6.7", 18, NO_FIGURES },
			{ "7.4", 20, NO_FIGURES }, { "7.95", 22, NO_FIGURES },
			{ "10.2", 27, NO_FIGURES }, { "12.2", 32, 5, 10 },
		},
	}, {
		.name = "amr-wb", .payload_type = 97, .clock = 16000, .lookahead_us = 5000,
		.ptime_min = 20, .modes = 9,
		.mode = {
			{ "6.6", 18, NO_FIGURES }, { "8.85", 24, NO_FIGURES },
			{ "12.65", 33, NO_FIGURES }, { "14.25", 37, NO_FIGURES },
			{ "15.85", 41, NO_FIGURES }, { "18.25", 47, NO_FIGURES },
			{ "19.85", 51, NO_FIGURES }, { "23.05", 59, NO_FIGURES },
			{ "23.85", 61, NO_FIGURES },
		},
	}, {
		.name = "opus", .payload_type = 98, .clock = 48000, .lookahead_us = 6500,
		.ptime_min = 20, .modes = 7,
		.mode = {
			{ "8", 20, NO_FIGURES }, { "12", 30, NO_FIGURES },
			{ "16", 40, NO_FIGURES }, { "20", 50, NO_FIGURES },
			{ "24", 60, NO_FIGURES }, { "32", 80, NO_FIGURES },
			{ "40", 100, NO_FIGURES },
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

/* Payload bytes of a packet of @ptime ms. */
unsigned int codec_payload(const struct codec *c, unsigned int mode, unsigned int ptime)
{
	return c->mode[mode].payload * ptime / PTIME_MAX;
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
