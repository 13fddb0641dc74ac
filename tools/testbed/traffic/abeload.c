// SPDX-License-Identifier: GPL-2.0
/*
 * abeload: traffic between network namespaces of one machine.
 *
 * One process is all sources or the sink of a host, and is thrifty, because
 * the lab runs where each instruction costs virtual time. Every UDP payload
 * carries the time it was sent, so that the sink knows one-way delays.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../lib/fds.h"
#include "abeload.h"

static const char help_text[] =
"usage: abeload recv [--port P] [--aimd-port P] [--tcp-port P] [--web-port P] --duration S\n"
"                    --json FILE [--warmup S] [--raw] [--series S] [...]\n"
"       abeload send udp    --to HOST:PORT --size BYTES --pps RATE --duration S [--poisson] [...]\n"
"       abeload send pareto --to HOST:PORT --size BYTES --pps RATE --duration S [--on S] [...]\n"
"       abeload send aimd   --to HOST:PORT --size BYTES --duration S [...]\n"
"       abeload send tcp    --to HOST:PORT --duration S [--cc NAME] [--cwnd-interval S] [...]\n"
"       abeload send web    --to HOST:PORT --duration S [--model NAME] [...]\n"
"\n"
"Examples, sinks first:\n"
"  abeload recv --port 5000 --tcp-port 5001 --web-port 5003 --duration 60 --warmup 10\n"
"          --series 1 --rtp-window 0.25 --spread-window 10 --json /out/recv\n"
"  abeload send tcp --to 10.0.2.1:5001 --flows 10 --cc reno --jitter 1 --duration 62\n"
"          --cwnd-interval 0.05 --json /out/tcp\n"
"  abeload send udp --to 10.0.2.1:5000 --id 50 --size 484 --pps 15.625 --duration 62\n"
"  abeload send pareto --to 10.0.2.1:5000 --id 60 --flows 5 --size 972 --pps 62.5 --on 1 --off 2\n"
"          --duration 62\n"
"  abeload send web --to 10.0.2.1:5003 --id 100 --flows 70 --cc reno --duration 62 --json /out/web\n"
"\n"
"recv: the sink of all flows of a host. Prints \"ready\" when its ports are open.\n"
"  --port P        UDP flows of \"send udp\" and \"send pareto\"\n"
"  --aimd-port P   UDP flows of \"send aimd\"; each packet is acknowledged\n"
"  --tcp-port P    TCP flows of \"send tcp\"\n"
"  --web-port P    TCP connections of \"send web\", closed when their file has come\n"
"  --duration S    stop and report after S seconds (or on SIGINT, SIGTERM)\n"
"  --warmup S      do not count the first S seconds (0)\n"
"  --raw           report the time, delay and number of each packet, too\n"
"  --series S      report the bytes of each flow in each S seconds, too; TCP is\n"
"                  looked at each 50 ms\n"
"  --rtp-window S     UDP: report the largest RTP jitter (RFC 3550) in each S seconds\n"
"  --spread-window S  UDP: report the 95th less the 5th percentile of delay in each S seconds\n"
"  --json FILE     where to report, - for standard output\n"
"\n"
"send: the sources of a host.\n"
"  --to HOST:PORT  numeric address, IPv6 as [ADDRESS]:PORT\n"
"  --flows N       number of flows or users (1), each with a socket of its own\n"
"  --id N          id of the first flow in the reports (0)\n"
"  --size BYTES    UDP payload, 20 to 65507\n"
"  --pps RATE      packets a second and flow; pareto: while it is ON\n"
"  --poisson       exponential gaps instead of constant ones\n"
"  --on S          pareto: mean ON time (1)\n"
"  --off S         pareto: mean OFF time (2)\n"
"  --shape A       pareto: shape of both distributions, above 1 (1.5)\n"
"  --cc NAME       TCP congestion control\n"
"  --cwnd-interval S  tcp: report each flow's congestion window each S seconds\n"
"  --dscp N        DSCP, 0 to 63 (0)\n"
"  --ecn N         UDP: ECN field, 0 not-ECT, 1 ECT(1), 2 ECT(0) (0); for TCP see tcp_ecn\n"
"  --mark N        SO_MARK\n"
"  --priority N    SO_PRIORITY\n"
"  --duration S    stop after S seconds\n"
"  --warmup S      UDP: packets of the first S seconds do not count, here and at the sink (0)\n"
"  --jitter S      flows start at random in S seconds (udp: one gap; pareto: one ON and OFF;\n"
"                  tcp, aimd: 0.1; web: after a pause between pages)\n"
"  --seed N        of start times, gaps, sizes (1)\n"
"  --json FILE     report what was sent\n"
"SACK, ECN, RTO and the like are per namespace or route: see tools/lab/tcp-profiles.yaml.\n"
"\n"
"send web: users load pages of files, each file over a connection of its own, and\n"
"pause. The report lists all files: flow, bytes, start, end (null: not yet, false: broken).\n"
"  --model surge   Barford and Crovella's, as in [BIAS00], one file after the other:\n"
"                  --body 9.357,1.318,0.93 --tail 133000,1.1 --objects 1,2.43\n"
"                  --pause 1,1.5 --gap 0 --size-max 1e9 (the default)\n"
"  --model requests   the same with Barford and Crovella's sizes of requests, not of\n"
"                  files, which fits the 10 to 30 active flows of [BIAS00] Fig. 6:\n"
"                  --body 0,1,0 --tail 1000,1 --size-max 1e7\n"
"  --model webtraf ns-2's, as in [VOIP05] 7.2, files of a page overlap:\n"
"                  --body 0,1,0 --tail 87600,1.05 --objects 10 --pause 1 --gap 0.01\n"
"  --body MU,SIGMA,SHARE  sizes below the tail: lognormal, by a share of all files\n"
"  --tail K,SHAPE  other sizes in bytes: Pareto from K on; webtraf: Pareto II of mean K\n"
"  --size-max BYTES  no file is larger\n"
"  --objects N[,SHAPE]  files of a page: Pareto from N on, rounded down; or N\n"
"  --pause S[,SHAPE]  between pages, s: Pareto from S on; or exponential with mean S\n"
"  --gap S         files begin at exponential gaps of this mean; 0: one after the other\n"
"\n"
"Exit: 0 done, 1 failed, 2 wrong usage.\n";

enum option_id {
	OPT_HELP = 1, OPT_PORT, OPT_AIMD_PORT, OPT_TCP_PORT, OPT_DURATION, OPT_WARMUP, OPT_RAW,
	OPT_JSON, OPT_TO, OPT_FLOWS, OPT_ID, OPT_SIZE, OPT_PPS, OPT_POISSON, OPT_CC, OPT_DSCP,
	OPT_ECN, OPT_MARK, OPT_PRIORITY, OPT_JITTER, OPT_SEED, OPT_WEB_PORT, OPT_SERIES,
	OPT_RTP_WINDOW, OPT_SPREAD_WINDOW, OPT_ON, OPT_OFF, OPT_SHAPE, OPT_CWND_INTERVAL,
	OPT_MODEL, OPT_BODY, OPT_TAIL, OPT_SIZE_MAX, OPT_OBJECTS, OPT_PAUSE, OPT_GAP,
};

static const struct option recv_options[] = {
	FLAG("help", OPT_HELP), ARG("port", OPT_PORT), ARG("aimd-port", OPT_AIMD_PORT),
	ARG("tcp-port", OPT_TCP_PORT), ARG("duration", OPT_DURATION), ARG("warmup", OPT_WARMUP),
	FLAG("raw", OPT_RAW), ARG("json", OPT_JSON), ARG("web-port", OPT_WEB_PORT),
	ARG("series", OPT_SERIES), ARG("rtp-window", OPT_RTP_WINDOW),
	ARG("spread-window", OPT_SPREAD_WINDOW), { 0 }
};

static const struct option send_options[] = {
	FLAG("help", OPT_HELP), ARG("to", OPT_TO), ARG("flows", OPT_FLOWS), ARG("id", OPT_ID),
	ARG("size", OPT_SIZE), ARG("pps", OPT_PPS), FLAG("poisson", OPT_POISSON),
	ARG("cc", OPT_CC), ARG("dscp", OPT_DSCP), ARG("ecn", OPT_ECN), ARG("mark", OPT_MARK),
	ARG("priority", OPT_PRIORITY), ARG("duration", OPT_DURATION), ARG("jitter", OPT_JITTER),
	ARG("warmup", OPT_WARMUP), ARG("seed", OPT_SEED), ARG("json", OPT_JSON),
	ARG("on", OPT_ON), ARG("off", OPT_OFF), ARG("shape", OPT_SHAPE),
	ARG("cwnd-interval", OPT_CWND_INTERVAL), ARG("model", OPT_MODEL), ARG("body", OPT_BODY),
	ARG("tail", OPT_TAIL), ARG("size-max", OPT_SIZE_MAX), ARG("objects", OPT_OBJECTS),
	ARG("pause", OPT_PAUSE), ARG("gap", OPT_GAP), { 0 }
};

/* Options that only some sources take. */
#define UDP_OPTIONS	(BIT(OPT_SIZE) | BIT(OPT_ECN) | BIT(OPT_WARMUP))
#define PARETO_OPTIONS	(BIT(OPT_ON) | BIT(OPT_OFF) | BIT(OPT_SHAPE))
#define WEB_OPTIONS	(BIT(OPT_MODEL) | BIT(OPT_BODY) | BIT(OPT_TAIL) | BIT(OPT_SIZE_MAX) | \
			 BIT(OPT_OBJECTS) | BIT(OPT_PAUSE) | BIT(OPT_GAP))
#define SPECIAL	(UDP_OPTIONS | PARETO_OPTIONS | WEB_OPTIONS | BIT(OPT_PPS) | BIT(OPT_POISSON) | \
		 BIT(OPT_CC) | BIT(OPT_CWND_INTERVAL))

/**
 * struct kind - a kind of source
 * @name:	as typed
 * @takes:	bits of its options among SPECIAL
 * @run:	sends
 */
struct kind {
	const char	*name;
	__u64		takes;
	int		(*run)(const struct send_opts *o);
};

static const struct kind kinds[] = {
	{ "udp", UDP_OPTIONS | BIT(OPT_PPS) | BIT(OPT_POISSON), send_udp },
	{ "pareto", UDP_OPTIONS | PARETO_OPTIONS | BIT(OPT_PPS), send_pareto },
	{ "aimd", UDP_OPTIONS, send_aimd },
	{ "tcp", BIT(OPT_CC) | BIT(OPT_CWND_INTERVAL), send_tcp },
	{ "web", WEB_OPTIONS | BIT(OPT_CC), send_web },
};

/* Numbers separated by commas; returns how many, at least @least. */
static unsigned int get_list(const char *option, const char *text, double *values,
			     unsigned int least, unsigned int most)
{
	const char *at = text;
	unsigned int n = 0;
	char *end;

	do {
		values[n] = strtod(at, &end);
		if (end == at || !(values[n] >= 0 && values[n] <= 1e15))
			break;
		n++;
		at = end + 1;
	} while (*end == ',' && n < most);
	if (*end || n < least)
		usage("--%s %s: want %u%s numbers, separated by commas", option, text, least,
		      least < most ? " or more" : "");
	return n;
}

/* HOST:PORT or [HOST]:PORT, without a resolver. */
static void destination(struct send_opts *o, const char *text)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)&o->to;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)&o->to;
	const char *colon = strrchr(text, ':');
	bool bracket = *text == '[';
	unsigned int port;
	char host[64];
	size_t len;

	if (!colon || (bracket && (colon == text + 1 || colon[-1] != ']')))
		usage("--to %s: want HOST:PORT or [HOST]:PORT", text);
	len = bracket ? colon - text - 2 : colon - text;
	if (len >= sizeof(host))
		usage("--to %s: the address is too long", text);
	memcpy(host, text + bracket, len);
	host[len] = 0;
	port = htons(get_integer("to HOST:PORT, port", colon + 1, 1, 65535));

	o->to_text = text;
	if (!bracket && inet_pton(AF_INET, host, &a4->sin_addr) == 1) {
		a4->sin_family = AF_INET;
		a4->sin_port = port;
		o->to_len = sizeof(*a4);
	} else if (bracket && inet_pton(AF_INET6, host, &a6->sin6_addr) == 1) {
		a6->sin6_family = AF_INET6;
		a6->sin6_port = port;
		o->to_len = sizeof(*a6);
	} else {
		usage("--to %s: want a numeric address, IPv6 in brackets", text);
	}
}

static int cmd_recv(int argc, char **argv)
{
	struct recv_opts o = { 0 };
	const char *name;
	int id;

	while ((id = next_option(argc, argv, recv_options, help_text, &name))) {
		switch (id) {
		case OPT_PORT:
			o.udp_port = get_integer(name, optarg, 1, 65535);
			break;
		case OPT_AIMD_PORT:
			o.aimd_port = get_integer(name, optarg, 1, 65535);
			break;
		case OPT_TCP_PORT:
			o.tcp_port = get_integer(name, optarg, 1, 65535);
			break;
		case OPT_DURATION:
			o.duration = get_seconds(name, optarg, 0.001);
			break;
		case OPT_WARMUP:
			o.warmup = get_seconds(name, optarg, 0);
			break;
		case OPT_WEB_PORT:
			o.web_port = get_integer(name, optarg, 1, 65535);
			break;
		case OPT_SERIES:
			o.series = get_seconds(name, optarg, 0.001);
			break;
		case OPT_RTP_WINDOW:
			o.rtp_window = get_seconds(name, optarg, 0.001);
			break;
		case OPT_SPREAD_WINDOW:
			o.spread_window = get_seconds(name, optarg, 0.001);
			break;
		case OPT_RAW:
			o.raw = true;
			break;
		case OPT_JSON:
			o.json = optarg;
			break;
		}
	}
	if (!o.udp_port && !o.aimd_port && !o.tcp_port && !o.web_port)
		usage("recv: no port given");
	if (!o.duration || !o.json)
		usage("recv: --%s is missing", o.duration ? "json" : "duration");
	if (o.warmup >= o.duration)
		usage("recv: --warmup leaves nothing of --duration");
	return recv_main(&o);
}

static const struct web_opts web_surge = {
	.mu = 9.357, .sigma = 1.318, .body = 0.93, .tail = 133000, .tail_shape = 1.1,
	.size_max = 1e9, .objects = 1, .objects_shape = 2.43, .off = 1, .off_shape = 1.5,
};

static const struct web_opts web_requests = {
	.sigma = 1, .tail = 1000, .tail_shape = 1, .size_max = 1e7, .objects = 1,
	.objects_shape = 2.43, .off = 1, .off_shape = 1.5,
};

static const struct web_opts web_webtraf = {
	.gap = NSEC_PER_SEC / 100, .sigma = 1, .tail = 87600, .tail_shape = 1.05, .shifted = true,
	.size_max = 1e9, .objects = 10, .off = 1,
};

/* Options of "send web"; --model has to come before those that change it. */
static void web_option(struct web_opts *w, int id, const char *name)
{
	double v[3];

	switch (id) {
	case OPT_MODEL:
		if (!strcmp(optarg, "surge"))
			*w = web_surge;
		else if (!strcmp(optarg, "requests"))
			*w = web_requests;
		else if (!strcmp(optarg, "webtraf"))
			*w = web_webtraf;
		else
			usage("--model %s: want surge, requests or webtraf", optarg);
		break;
	case OPT_BODY:
		get_list(name, optarg, v, 3, 3);
		w->mu = v[0];
		w->sigma = v[1];
		w->body = v[2];
		if (w->body > 1)
			usage("--body %s: the share is more than 1", optarg);
		break;
	case OPT_TAIL:
		get_list(name, optarg, v, 2, 2);
		w->tail = v[0];
		w->tail_shape = v[1];
		if (w->tail < 1 || w->tail_shape <= (w->shifted ? 1 : 0))
			usage("--tail %s: too small", optarg);
		break;
	case OPT_SIZE_MAX:
		w->size_max = get_real(name, optarg, sizeof(struct tcp_hello), 1e15);
		break;
	case OPT_OBJECTS:
		w->objects_shape = get_list(name, optarg, v, 1, 2) > 1 ? v[1] : 0;
		w->objects = v[0];
		if (w->objects < 1)
			usage("--objects %s: want at least one", optarg);
		break;
	case OPT_PAUSE:
		w->off_shape = get_list(name, optarg, v, 1, 2) > 1 ? v[1] : 0;
		w->off = v[0];
		break;
	case OPT_GAP:
		w->gap = get_seconds(name, optarg, 0);
		break;
	}
}

/* A body hardly ever below the tail would be drawn for ever. Pareto II is given by its mean. */
static void web_check(struct web_opts *w)
{
	if (w->body > 0 && w->mu - 3 * w->sigma > log(w->tail))
		usage("send web: --body is not below --tail");
	if (w->shifted)
		w->tail *= w->tail_shape - 1;
}

static void send_option(struct send_opts *o, int id, const char *name)
{
	switch (id) {
	case OPT_TO:
		destination(o, optarg);
		break;
	case OPT_FLOWS:
		o->flows = get_integer(name, optarg, 1, MAX_FLOWS);
		break;
	case OPT_ID:
		o->id = get_integer(name, optarg, 0, MAX_FLOWS - 1);
		break;
	case OPT_SIZE:
		o->size = get_integer(name, optarg, sizeof(struct packet), 65507);
		break;
	case OPT_PPS:
		o->pps = get_real(name, optarg, 0.001, 1e7);
		break;
	case OPT_POISSON:
		o->poisson = true;
		break;
	case OPT_CC:
		o->cc = optarg;
		break;
	case OPT_DSCP:
		o->dscp = get_integer(name, optarg, 0, 63);
		break;
	case OPT_ECN:
		o->ecn = get_integer(name, optarg, 0, 3);
		break;
	case OPT_MARK:
		o->mark = get_integer(name, optarg, 0, UINT32_MAX);
		break;
	case OPT_PRIORITY:
		o->priority = get_integer(name, optarg, 0, INT32_MAX);
		break;
	case OPT_DURATION:
		o->duration = get_seconds(name, optarg, 0.001);
		break;
	case OPT_WARMUP:
		o->warmup = get_seconds(name, optarg, 0);
		break;
	case OPT_JITTER:
		o->jitter = get_seconds(name, optarg, 0);
		break;
	case OPT_SEED:
		o->seed = get_integer(name, optarg, 0, INT64_MAX);
		break;
	case OPT_JSON:
		o->json = optarg;
		break;
	case OPT_ON:
		o->mean_on = get_seconds(name, optarg, 1e-6);
		break;
	case OPT_OFF:
		o->mean_off = get_seconds(name, optarg, 0);
		break;
	case OPT_SHAPE:
		o->shape = get_real(name, optarg, 1.001, 100);
		break;
	case OPT_CWND_INTERVAL:
		o->cwnd_interval = get_seconds(name, optarg, 1e-4);
		break;
	default:
		web_option(&o->web, id, name);
	}
}

static int cmd_send(int argc, char **argv)
{
	struct send_opts o = { .flows = 1, .mark = -1, .priority = -1, .jitter = -1, .seed = 1,
			       .mean_on = NSEC_PER_SEC, .mean_off = 2 * NSEC_PER_SEC, .shape = 1.5,
			       .web = web_surge };
	const struct kind *k = NULL;
	const char *name;
	int id;

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(argv[1], kinds[i].name))
			k = &kinds[i];
	}
	if (!k)
		usage("send: want udp, pareto, aimd, tcp or web");
	while ((id = next_option(argc - 1, argv + 1, send_options, help_text, &name))) {
		if (BIT(id) & SPECIAL & ~k->takes)
			usage("send %s: --%s is not for it", k->name, name);
		send_option(&o, id, name);
	}
	if (!o.to_len || !o.duration)
		usage("send %s: --%s is missing", k->name, o.to_len ? "duration" : "to");
	if (k->takes & BIT(OPT_SIZE) && !o.size)
		usage("send %s: --size is missing", k->name);
	if (k->takes & BIT(OPT_PPS) && !(o.pps > 0))
		usage("send %s: --pps is missing", k->name);
	if (k->run == send_web)
		web_check(&o.web);
	if (o.id + o.flows > MAX_FLOWS)
		usage("--id %u --flows %u: ids end at %u", o.id, o.flows, MAX_FLOWS - 1);
	return k->run(&o);
}

int main(int argc, char **argv)
{
	occupy_standard_fds();
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help_text, stdout);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "recv"))
		return cmd_recv(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "send"))
		return cmd_send(argc - 1, argv + 1);
	if (argc > 1)
		usage("%s: want recv or send", argv[1]);
	usage("want recv or send");
}
