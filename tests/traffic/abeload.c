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
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "abeload.h"

static const char help_text[] =
"usage: abeload recv [--port P] [--aimd-port P] [--tcp-port P] --duration S --json FILE\n"
"                    [--warmup S] [--raw]\n"
"       abeload send udp  --to HOST:PORT --size BYTES --pps RATE --duration S [--poisson] [...]\n"
"       abeload send tcp  --to HOST:PORT --duration S [--cc NAME] [...]\n"
"       abeload send aimd --to HOST:PORT --size BYTES --duration S [...]\n"
"\n"
"recv: the sink of all flows of a host. Prints \"ready\" when its ports are open.\n"
"  --port P        UDP flows of \"send udp\"\n"
"  --aimd-port P   UDP flows of \"send aimd\"; each packet is acknowledged\n"
"  --tcp-port P    TCP flows of \"send tcp\"\n"
"  --duration S    stop and report after S seconds (or on SIGINT, SIGTERM)\n"
"  --warmup S      do not count the first S seconds (0)\n"
"  --raw           report the time and the delay of each packet, too\n"
"  --json FILE     where to report, - for standard output\n"
"\n"
"send: the sources of a host.\n"
"  --to HOST:PORT  numeric address, IPv6 as [ADDRESS]:PORT\n"
"  --flows N       number of flows (1), each with a socket of its own\n"
"  --id N          id of the first flow in the reports (0)\n"
"  --size BYTES    UDP payload, 20 to 65507\n"
"  --pps RATE      packets a second and flow\n"
"  --poisson       exponential gaps instead of constant ones\n"
"  --cc NAME       TCP congestion control\n"
"  --dscp N        DSCP, 0 to 63 (0)\n"
"  --ecn N         UDP: ECN field, 0 not-ECT, 1 ECT(1), 2 ECT(0) (0); for TCP see tcp_ecn\n"
"  --mark N        SO_MARK\n"
"  --priority N    SO_PRIORITY\n"
"  --duration S    stop after S seconds\n"
"  --warmup S      UDP: packets of the first S seconds do not count, here and at the sink (0)\n"
"  --jitter S      flows start at random in S seconds (udp: one gap; tcp, aimd: 0.1)\n"
"  --seed N        of start times and gaps (1)\n"
"  --json FILE     report what was sent\n"
"\n"
"Exit: 0 done, 1 failed, 2 wrong usage.\n";

enum option_id {
	OPT_HELP = 1, OPT_PORT, OPT_AIMD_PORT, OPT_TCP_PORT, OPT_DURATION, OPT_WARMUP, OPT_RAW,
	OPT_JSON, OPT_TO, OPT_FLOWS, OPT_ID, OPT_SIZE, OPT_PPS, OPT_POISSON, OPT_CC, OPT_DSCP,
	OPT_ECN, OPT_MARK, OPT_PRIORITY, OPT_JITTER, OPT_SEED,
};

#define ARG(name, id)	{ name, required_argument, NULL, id }
#define FLAG(name, id)	{ name, no_argument, NULL, id }

static const struct option recv_options[] = {
	FLAG("help", OPT_HELP), ARG("port", OPT_PORT), ARG("aimd-port", OPT_AIMD_PORT),
	ARG("tcp-port", OPT_TCP_PORT), ARG("duration", OPT_DURATION), ARG("warmup", OPT_WARMUP),
	FLAG("raw", OPT_RAW), ARG("json", OPT_JSON), { 0 }
};

static const struct option send_options[] = {
	FLAG("help", OPT_HELP), ARG("to", OPT_TO), ARG("flows", OPT_FLOWS), ARG("id", OPT_ID),
	ARG("size", OPT_SIZE), ARG("pps", OPT_PPS), FLAG("poisson", OPT_POISSON),
	ARG("cc", OPT_CC), ARG("dscp", OPT_DSCP), ARG("ecn", OPT_ECN), ARG("mark", OPT_MARK),
	ARG("priority", OPT_PRIORITY), ARG("duration", OPT_DURATION), ARG("jitter", OPT_JITTER),
	ARG("warmup", OPT_WARMUP), ARG("seed", OPT_SEED), ARG("json", OPT_JSON), { 0 }
};

/* Options that only some sources take. */
#define UDP_OPTIONS	(BIT(OPT_SIZE) | BIT(OPT_ECN) | BIT(OPT_WARMUP))
#define SPECIAL	(UDP_OPTIONS | BIT(OPT_PPS) | BIT(OPT_POISSON) | BIT(OPT_CC))

/**
 * struct kind - a kind of source
 * @name:	as typed
 * @takes:	bits of its options among SPECIAL
 * @run:	sends
 */
static const struct kind {
	const char	*name;
	unsigned int	takes;
	int		(*run)(const struct send_opts *o);
} kinds[] = {
	{ "udp", UDP_OPTIONS | BIT(OPT_PPS) | BIT(OPT_POISSON), send_udp },
	{ "tcp", BIT(OPT_CC), send_tcp },
	{ "aimd", UDP_OPTIONS, send_aimd },
};

static noreturn void __printf(1, 2) usage(const char *fmt, ...)
{
	va_list ap;

	fputs("abeload: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(" (see abeload --help)\n", stderr);
	exit(2);
}

static long long get_integer(const char *option, const char *text, long long min, long long max)
{
	long long value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (errno || end == text || *end || value < min || value > max)
		usage("--%s %s: want an integer from %lld to %lld", option, text, min, max);
	return value;
}

static double get_real(const char *option, const char *text, double min, double max)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !(value >= min && value <= max))
		usage("--%s %s: want a number from %g to %g", option, text, min, max);
	return value;
}

static __s64 get_seconds(const char *option, const char *text, double min)
{
	return (__s64)(get_real(option, text, min, 1e6) * NSEC_PER_SEC);
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

/* The next option's id, 0 at the end. A wrong or missing one ends the program. */
static int next_option(int argc, char **argv, const struct option *options, const char **name)
{
	int index = -1, at, id;

	at = optind;
	id = getopt_long(argc, argv, ":", options, &index);
	if (id == '?')
		usage("%s: unknown option", argv[at]);
	if (id == ':')
		usage("%s: its value is missing", argv[at]);
	if (id == -1) {
		if (optind < argc)
			usage("%s: not expected", argv[optind]);
		return 0;
	}
	if (id == OPT_HELP) {
		fputs(help_text, stdout);
		exit(0);
	}
	*name = options[index].name;
	return id;
}

static int cmd_recv(int argc, char **argv)
{
	struct recv_opts o = { 0 };
	const char *name;
	int id;

	while ((id = next_option(argc, argv, recv_options, &name))) {
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
		case OPT_RAW:
			o.raw = true;
			break;
		case OPT_JSON:
			o.json = optarg;
			break;
		}
	}
	if (!o.udp_port && !o.aimd_port && !o.tcp_port)
		usage("recv: no port given");
	if (!o.duration || !o.json)
		usage("recv: --%s is missing", o.duration ? "json" : "duration");
	if (o.warmup >= o.duration)
		usage("recv: --warmup leaves nothing of --duration");
	return recv_main(&o);
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
	}
}

static int cmd_send(int argc, char **argv)
{
	struct send_opts o = { .flows = 1, .mark = -1, .priority = -1, .jitter = -1, .seed = 1 };
	const struct kind *k = NULL;
	const char *name;
	int id;

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(argv[1], kinds[i].name))
			k = &kinds[i];
	}
	if (!k)
		usage("send: want udp, tcp or aimd");
	while ((id = next_option(argc - 1, argv + 1, send_options, &name))) {
		if (BIT(id) & SPECIAL & ~k->takes)
			usage("send %s: --%s is not for it", k->name, name);
		send_option(&o, id, name);
	}
	if (!o.to_len || !o.duration)
		usage("send %s: --%s is missing", k->name, o.to_len ? "duration" : "to");
	if (k->run != send_tcp && !o.size)
		usage("send %s: --size is missing", k->name);
	if (k->run == send_udp && !(o.pps > 0))
		usage("send udp: --pps is missing");
	if (o.id + o.flows > MAX_FLOWS)
		usage("--id %u --flows %u: ids end at %u", o.id, o.flows, MAX_FLOWS - 1);
	return k->run(&o);
}

int main(int argc, char **argv)
{
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
