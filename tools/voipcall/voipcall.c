// SPDX-License-Identifier: GPL-2.0
/*
 * voipcall: a VoIP endpoint over DCCP (RFC 5762) or UDP that measures.
 *
 * Packets have the sizes and times of a codec's, but no speech. Each carries
 * the time it was sent, so that the receiver knows one-way delays.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "../lib/fds.h"
#include "endpoint.h"

static const char help_text[] =
"usage: voipcall listen [OPTION...]\n"
"       voipcall call HOST [OPTION...]\n"
"\n"
"Make a call with RTP over DCCP or UDP, without sound, and report loss, delay,\n"
"jitter and the estimated quality of both directions.\n"
"\n"
"  --udp            UDP instead of DCCP\n"
"  --ccid LIST      CCIDs to offer, best first, such as 4,3 (the system's default)\n"
"  --tx-queue N     DCCP: packets that may wait in the socket (the system's default, 5)\n"
"  --port P         port to call or to listen at (5004)\n"
"  -4, -6           only IPv4, only IPv6\n"
"  --green          DSCP 46: low delay rather than throughput\n"
"  --blue           DSCP 0\n"
"  --dscp N         DSCP, 0 to 63 (0; listen: the caller's)\n"
"  --playout MS     playout buffer: the first packet of a talk spurt waits so long\n"
"                   (adaptive)\n"
"  --interval S     a line of progress every S seconds\n"
"  --timeout S      for setting up and ending the call (10)\n"
"  --json           report one JSON object a call\n"
"  -h, --help       this text\n"
"listen:\n"
"  --once           end after one call\n"
"  --sdp ADDRESS    print a session description with this address of the host\n"
"call:\n"
"  --codec NAME     g711, g722, g729, or, to follow the rate that DCCP allows,\n"
"                   amr-nb, amr-wb, evs or opus (g711)\n"
"  --ptime MS       speech in a packet, 10 to 60 in steps of a frame, which is 10,\n"
"                   with amr-nb, amr-wb and evs 20 (20)\n"
"  --time S         how long to talk (10)\n"
"  --silence on|off talk spurts of 1 s with pauses of 1.35 s on average (off)\n"
"  --seed N         of the spurts (1)\n"
"  --one-way        the listener does not talk\n"
"  --duplex         it does (the default)\n"
"  --ecn            UDP: set ECT(0)\n"
"\n"
"Exit: 0 the call went well, 1 it did not, 2 wrong usage.\n";

enum option_id {
	OPT_HELP = 'h', OPT_V4 = '4', OPT_V6 = '6',
	OPT_FIRST = 256,
	OPT_UDP = OPT_FIRST, OPT_CCID, OPT_TX_QUEUE, OPT_PORT, OPT_GREEN, OPT_BLUE, OPT_DSCP,
	OPT_PLAYOUT, OPT_INTERVAL, OPT_TIMEOUT, OPT_JSON,
	OPT_ONCE, OPT_SDP,
	OPT_CODEC, OPT_PTIME, OPT_TIME, OPT_SILENCE, OPT_SEED, OPT_ONE_WAY, OPT_DUPLEX, OPT_ECN,
};

static const struct option long_options[] = {
	FLAG("help", OPT_HELP), FLAG("udp", OPT_UDP), ARG("ccid", OPT_CCID),
	ARG("tx-queue", OPT_TX_QUEUE), ARG("port", OPT_PORT), FLAG("green", OPT_GREEN),
	FLAG("blue", OPT_BLUE), ARG("dscp", OPT_DSCP), ARG("playout", OPT_PLAYOUT),
	ARG("interval", OPT_INTERVAL), ARG("timeout", OPT_TIMEOUT), FLAG("json", OPT_JSON),
	FLAG("once", OPT_ONCE), ARG("sdp", OPT_SDP), ARG("codec", OPT_CODEC),
	ARG("ptime", OPT_PTIME), ARG("time", OPT_TIME), ARG("silence", OPT_SILENCE),
	ARG("seed", OPT_SEED),
	FLAG("one-way", OPT_ONE_WAY), FLAG("duplex", OPT_DUPLEX), FLAG("ecn", OPT_ECN), { 0 }
};

static void get_ccids(struct options *o, const char *text)
{
	const char *at = text;

	o->ccids = 0;
	do {
		char *end;
		unsigned long ccid = strtoul(at, &end, 10);

		if (*at < '0' || *at > '9' || ccid > 255 || (*end && *end != ','))
			usage("--ccid %s: want numbers from 0 to 255 with commas between them",
			      text);
		if (memchr(o->ccid, (int)ccid, o->ccids))
			usage("--ccid %s: %lu is there twice", text, ccid);
		if (o->ccids == MAX_CCIDS)
			usage("--ccid %s: at most %d", text, MAX_CCIDS);
		o->ccid[o->ccids++] = ccid;
		at = *end ? end + 1 : end;
		if (*end && !*at)
			usage("--ccid %s: a number is missing at the end", text);
	} while (*at);
}

static void get_codec(struct options *o, const char *text)
{
	o->codec = codec_by_name(text);
	if (!o->codec)
		usage("--codec %s: want g711, g722, g729, amr-nb, amr-wb, evs or opus", text);
}

static void get_address(struct options *o, const char *text)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, text, address) != 1 && inet_pton(AF_INET6, text, address) != 1)
		usage("--sdp %s: want an IP address of this host", text);
	o->sdp = text;
}

static bool get_switch(const char *option, const char *text)
{
	if (strcmp(text, "on") && strcmp(text, "off"))
		usage("--%s %s: want on or off", option, text);
	return !strcmp(text, "on");
}

static void get_mark(struct options *o, int dscp)
{
	if (o->dscp >= 0 && o->dscp != dscp)
		usage("--green, --blue and --dscp exclude each other");
	o->dscp = dscp;
}

static void common_option(struct options *o, int id, const char *name)
{
	switch (id) {
	case OPT_V4:
	case OPT_V6:
		if (o->family != AF_UNSPEC && o->family != (id == OPT_V4 ? AF_INET : AF_INET6))
			usage("-4 and -6 exclude each other");
		o->family = id == OPT_V4 ? AF_INET : AF_INET6;
		break;
	case OPT_UDP:
		o->udp = true;
		break;
	case OPT_CCID:
		get_ccids(o, optarg);
		break;
	case OPT_TX_QUEUE:
		o->tx_queue = get_integer(name, optarg, 1, 1000);
		break;
	case OPT_PORT:
		get_integer(name, optarg, 1, 65535);
		o->port = optarg;
		break;
	case OPT_GREEN:
		get_mark(o, 46);
		break;
	case OPT_BLUE:
		get_mark(o, 0);
		break;
	case OPT_DSCP:
		get_mark(o, get_integer(name, optarg, 0, 63));
		break;
	case OPT_PLAYOUT:
		o->playout_ms = get_real(name, optarg, 0, 10000);
		break;
	case OPT_INTERVAL:
		o->interval = get_seconds(name, optarg, 0.01);
		break;
	case OPT_TIMEOUT:
		o->timeout = get_seconds(name, optarg, 0.1);
		break;
	case OPT_JSON:
		o->json = true;
		break;
	}
}

static void call_option(struct options *o, int id, const char *name)
{
	switch (id) {
	case OPT_CODEC:
		get_codec(o, optarg);
		break;
	case OPT_PTIME:
		o->ptime = get_integer(name, optarg, PTIME_MIN, PTIME_MAX);
		break;
	case OPT_TIME:
		o->time = get_seconds(name, optarg, 0.02);
		break;
	case OPT_SILENCE:
		o->silence = get_switch(name, optarg);
		break;
	case OPT_SEED:
		o->seed = get_integer(name, optarg, 0, INT64_MAX);
		break;
	case OPT_ONE_WAY:
	case OPT_DUPLEX:
		o->one_way = id == OPT_ONE_WAY;
		break;
	case OPT_ECN:
		o->ecn = true;
		break;
	}
}

/* What no single option can know. */
static void check_options(const struct options *o)
{
	if (o->udp && (o->ccids || o->tx_queue))
		usage("--%s is for DCCP, not with --udp", o->ccids ? "ccid" : "tx-queue");
	if (o->ecn && !o->udp)
		usage("--ecn is for UDP; with DCCP the CCID sees to it");
	if (!o->listen && !codec_has_ptime(o->codec, o->ptime))
		usage("--ptime %u: %s has frames of %u ms", o->ptime, o->codec->name,
		      o->codec->frame);
}

static void parse_options(struct options *o, int argc, char **argv)
{
	const char *command = o->listen ? "listen" : "call";
	int id, index;

	for (;;) {
		index = -1;
		id = getopt_long(argc, argv, ":46h", long_options, &index);
		if (id == -1)
			break;
		if (id == '?' && optopt && optopt < OPT_FIRST)
			usage("-%c: unknown option", optopt);
		if (id == '?')
			usage("%s: unknown option", argv[optind - 1]);
		if (id == ':')
			usage("%s: its value is missing", argv[optind - 1]);
		if (id == OPT_HELP) {
			fputs(help_text, stdout);
			exit(0);
		}
		if (o->listen ? id >= OPT_CODEC : id == OPT_ONCE || id == OPT_SDP)
			usage("%s: --%s is not for it", command, long_options[index].name);
		if (id == OPT_ONCE)
			o->once = true;
		else if (id == OPT_SDP)
			get_address(o, optarg);
		else if (id >= OPT_CODEC)
			call_option(o, id, long_options[index].name);
		else
			common_option(o, id, index < 0 ? NULL : long_options[index].name);
	}
	if (!o->listen) {
		if (optind == argc)
			usage("call: whom? HOST is missing");
		o->host = argv[optind++];
	}
	if (optind < argc)
		usage("%s: not expected", argv[optind]);
	check_options(o);
}

int main(int argc, char **argv)
{
	struct options o = {
		.port = "5004", .family = AF_UNSPEC, .codec = &codecs[0], .ptime = PTIME_DEFAULT,
		.time = 10 * NSEC_PER_SEC, .dscp = -1, .seed = 1, .playout_ms = -1,
		.timeout = 10 * NSEC_PER_SEC,
	};

	occupy_standard_fds();
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help_text, stdout);
		return 0;
	}
	if (argc < 2 || (strcmp(argv[1], "listen") && strcmp(argv[1], "call")))
		usage("want listen or call");
	o.listen = !strcmp(argv[1], "listen");
	parse_options(&o, argc - 1, argv + 1);
	return o.listen ? endpoint_listen(&o) : endpoint_call(&o);
}
