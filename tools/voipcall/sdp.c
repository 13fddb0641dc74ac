// SPDX-License-Identifier: GPL-2.0
/*
 * What a listener is, as a session description (RFC 4566), for programs that take one:
 * over DCCP as in RFC 5762, 5, with RTCP on the same connection (RFC 5761).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../lib/cli.h"
#include "sdp.h"

/* Seconds from 1900 to 1970: SDP counts as NTP does. */
#define NTP_EPOCH	2208988800U

/* The name of RFC 3551 and others; EVS and AMR in the formats that codec.c has. */
static const struct {
	const char	*codec;
	const char	*name;
	const char	*fmtp;
} names[] = {
	{ "g711", "PCMU/8000", NULL },
	{ "g722", "G722/8000", NULL },
	{ "g729", "G729/8000", "annexb=no" },
	{ "amr-nb", "AMR/8000", NULL },
	{ "amr-wb", "AMR-WB/16000", NULL },
	{ "opus", "opus/48000/2", NULL },
	{ "evs", "EVS/16000", NULL },
};

static void describe(FILE *out, const struct options *o)
{
	const char *ip = strchr(o->sdp, ':') ? "IP6" : "IP4";
	unsigned long long id = (unsigned long long)time(NULL) + NTP_EPOCH;

	fprintf(out, "v=0\r\no=- %llu 1 IN %s %s\r\ns=voipcall\r\nc=IN %s %s\r\nt=0 0\r\n",
		id, ip, o->sdp, ip, o->sdp);
	fprintf(out, "m=audio %s %s", o->port, o->udp ? "RTP/AVP" : "DCCP/RTP/AVP");
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		fprintf(out, " %u", codec_by_name(names[i].codec)->payload_type);
	fprintf(out, "\r\na=rtcp-mux\r\n");
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		unsigned int type = codec_by_name(names[i].codec)->payload_type;

		fprintf(out, "a=rtpmap:%u %s\r\n", type, names[i].name);
		if (names[i].fmtp)
			fprintf(out, "a=fmtp:%u %s\r\n", type, names[i].fmtp);
	}
	fprintf(out, "a=ptime:%d\r\na=maxptime:%d\r\n", PTIME_DEFAULT, PTIME_MAX);
	/* RTPA: RTP with audio; the caller opens the connection */
	if (!o->udp)
		fprintf(out, "a=dccp-service-code:SC=x52545041\r\n"
			"a=setup:passive\r\na=connection:new\r\n");
}

/**
 * sdp_print - print the session description of a listener
 * @o:		its options; @o->sdp is its address, IPv6 if there is a colon in it
 *
 * With --json it is an object with the key "sdp", on a line.
 */
void sdp_print(const struct options *o)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		die("out of memory");
	describe(f, o);
	if (fclose(f))
		die("out of memory");
	if (o->json)
		fputs("{\"sdp\": \"", stdout);
	for (size_t i = 0; i < len; i++) {
		if (o->json && text[i] == '\r')
			fputs("\\r", stdout);
		else if (o->json && text[i] == '\n')
			fputs("\\n", stdout);
		else
			putchar(text[i]);
	}
	if (o->json)
		puts("\"}");
	fflush(stdout);
	free(text);
}
