// SPDX-License-Identifier: GPL-2.0
/*
 * ablossy: lose packets on an interface, by a model, from a seed.
 *
 * Loads the program of ablossy.bpf.c, compiled into this one, and attaches it
 * with tc's clsact; "show" finds it and its maps again by what is attached.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "../../lib/cli.h"
#include "../../lib/clock.h"
#include "../../lib/fds.h"
#include "ablossy.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define HANDLE		0xab1
#define PRIORITY	0xab1

static const char help_text[] =
"usage: ablossy add DEV MODEL [OPTION...]\n"
"       ablossy show DEV [--egress]\n"
"       ablossy del DEV [--egress]\n"
"\n"
"Loses packets that come in at DEV, or go out with --egress. Examples:\n"
"  ablossy add eth0 bernoulli --p 0.01 --seed 7\n"
"  ablossy add eth0 bytes --p 0.01 --of 1000 --proto udp,dccp\n"
"  ablossy add eth0 alternating --p 0.02 --per-flow\n"
"  ablossy add eth0 gilbert --loss 0.05 --a 0.8 --per-flow --min-len 100\n"
"  ablossy add eth0 periodic --every 100\n"
"  ablossy add eth0 none --holes\n"
"On the way out of a host's own traffic a loss is not one: TCP is told and\n"
"sends again at once, send() fails. So lose on a router, or on the way in.\n"
"\n"
"add: begins, in place of what was there. The models and their options:\n"
"  none          no losses, counts only\n"
"  periodic      one packet of each N\n"
"    --every N\n"
"    --then M    of each M in the second, fourth, ... half (10 s) of time\n"
"    --half S    each for so many seconds\n"
"  bernoulli     each packet with probability P\n"
"    --p P\n"
"  bytes         each byte with probability P: packets with 1-(1-P)^bytes\n"
"    --p P       of a byte, or of packets of --of BYTES\n"
"    --of BYTES\n"
"  alternating   each packet, the probability alternates, the lower one first\n"
"    --p P       mean probability\n"
"    --swing F   (1-F)P and (1+F)P in turn (0.5)\n"
"    --half S    each for so many seconds (10)\n"
"  gilbert       two states that last whole slots of time, all packets are lost in one\n"
"    --p P       probability to go from no loss to loss at the end of a slot\n"
"    --q Q       and back; 0.02 <= P+Q. Mean loss P/(P+Q), mean burst 1/Q slots.\n"
"    --loss L --a A   the same as P = A*L, Q = A*(1-L)\n"
"    --tau S     length of a slot (0.01)\n"
"  clock         the first packet that comes in each slot of time\n"
"    --tick S    length of a slot\n"
"    --after S   from then on (0)\n"
"    --p P       each packet with probability P before (0)\n"
"Time begins with \"add\". Packets of any length count with their IP header.\n"
"  --egress        packets that leave DEV\n"
"  --seed N        of all losses (1): same seed and packets, same losses; those of\n"
"                  gilbert depend on the time only\n"
"  --per-flow      a process for each flow (addresses, protocol, ports), with random\n"
"                  numbers by their order of appearance; 4096 flows, others pass\n"
"  --proto LIST    of udp, tcp, dccp (all three); other packets pass\n"
"  --dport N       only packets to this port\n"
"  --min-len BYTES shorter packets pass (0)\n"
"  --holes         report, too, which packets of each flow were lost before they came\n"
"                  here: [first, number] of each run, counted from the flow's first.\n"
"                  By IPv4 ID, so of connected sockets, all of whose packets come this\n"
"                  way in order: --min-len 0, implies --per-flow. 262144 runs.\n"
"  --bins S        count, too, what comes of each flow in each S seconds, lost or not; 64 flows,\n"
"                  4096 bins, implies --per-flow\n"
"  --mark          set CE on packets that can bear it instead of dropping them\n"
"  --rehash        forget the hash that the sender's host gave a packet, as it is forgotten\n"
"                  on a wire: queues behind make one of the headers that they see\n"
"\n"
"show: what was seen and lost, as JSON; origin is when time began,\n"
"CLOCK_MONOTONIC. del: ends; takes clsact away with it.\n"
"\n"
"Exit: 0 done, 1 failed, 2 wrong usage.\n";

static const __u64 program[] = {
#include ABLOSSY_INSNS
};

static const char *const models[LOSS_MODELS] = {
	[LOSS_NONE] = "none", [LOSS_PERIODIC] = "periodic", [LOSS_BERNOULLI] = "bernoulli",
	[LOSS_BYTES] = "bytes", [LOSS_ALTERNATING] = "alternating", [LOSS_GILBERT] = "gilbert",
	[LOSS_CLOCK] = "clock",
};

static const struct {
	const char	*name;
	unsigned int	bit;
	unsigned int	number;
} protos[] = {
	{ "udp", PROTO_UDP, IPPROTO_UDP },
	{ "tcp", PROTO_TCP, IPPROTO_TCP },
	{ "dccp", PROTO_DCCP, 33 },
};

/**
 * struct opts - the command line
 * @dev:	interface
 * @egress:	packets that leave it
 * @p:		--p, -1: not given; so are the others
 * @q:		--q
 * @loss:	--loss
 * @a:		--a
 * @swing:	--swing
 * @half:	--half, s
 * @tau:	--tau or --tick, s
 * @after:	--after, s
 * @of:		--of, bytes
 * @config:	what the program gets
 */
struct opts {
	const char		*dev;
	bool			egress;
	double			p;
	double			q;
	double			loss;
	double			a;
	double			swing;
	double			half;
	double			tau;
	double			after;
	double			of;
	struct loss_config	config;
};

enum option_id {
	OPT_HELP = 1, OPT_EGRESS, OPT_EVERY, OPT_P, OPT_Q, OPT_LOSS, OPT_A, OPT_SWING, OPT_HALF,
	OPT_TAU, OPT_OF, OPT_SEED, OPT_PER_FLOW, OPT_PROTO, OPT_DPORT, OPT_MIN_LEN, OPT_MARK,
	OPT_HOLES, OPT_REHASH, OPT_THEN, OPT_TICK, OPT_AFTER, OPT_BINS,
};

#define BIT(n)		(1U << (n))

static const struct option options[] = {
	FLAG("help", OPT_HELP), FLAG("egress", OPT_EGRESS), ARG("every", OPT_EVERY),
	ARG("p", OPT_P), ARG("q", OPT_Q), ARG("loss", OPT_LOSS), ARG("a", OPT_A),
	ARG("swing", OPT_SWING), ARG("half", OPT_HALF), ARG("tau", OPT_TAU), ARG("of", OPT_OF),
	ARG("seed", OPT_SEED), FLAG("per-flow", OPT_PER_FLOW), ARG("proto", OPT_PROTO),
	ARG("dport", OPT_DPORT), ARG("min-len", OPT_MIN_LEN), FLAG("mark", OPT_MARK),
	FLAG("holes", OPT_HOLES), FLAG("rehash", OPT_REHASH), ARG("then", OPT_THEN),
	ARG("tick", OPT_TICK), ARG("after", OPT_AFTER), ARG("bins", OPT_BINS), { 0 }
};

/* Options of single models. */
#define SPECIAL	(BIT(OPT_EVERY) | BIT(OPT_P) | BIT(OPT_Q) | BIT(OPT_LOSS) | BIT(OPT_A) | \
		 BIT(OPT_SWING) | BIT(OPT_HALF) | BIT(OPT_TAU) | BIT(OPT_OF) | BIT(OPT_THEN) | \
		 BIT(OPT_TICK) | BIT(OPT_AFTER))

static const unsigned int takes[LOSS_MODELS] = {
	[LOSS_PERIODIC] = BIT(OPT_EVERY) | BIT(OPT_THEN) | BIT(OPT_HALF),
	[LOSS_BERNOULLI] = BIT(OPT_P),
	[LOSS_BYTES] = BIT(OPT_P) | BIT(OPT_OF),
	[LOSS_ALTERNATING] = BIT(OPT_P) | BIT(OPT_SWING) | BIT(OPT_HALF),
	[LOSS_GILBERT] = BIT(OPT_P) | BIT(OPT_Q) | BIT(OPT_LOSS) | BIT(OPT_A) | BIT(OPT_TAU),
	[LOSS_CLOCK] = BIT(OPT_TICK) | BIT(OPT_AFTER) | BIT(OPT_P),
};

static __u32 get_protos(char *list)
{
	__u32 bits = 0;

	for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
		size_t i = 0;

		while (i < ARRAY_SIZE(protos) && strcmp(word, protos[i].name))
			i++;
		if (i == ARRAY_SIZE(protos))
			usage("--proto %s: want udp, tcp or dccp", word);
		bits |= protos[i].bit;
	}
	if (!bits)
		usage("--proto: want udp, tcp or dccp");
	return bits;
}

static __u64 nsec(double seconds)
{
	return (__u64)llround(seconds * NSEC_PER_SEC);
}

static void get_option(struct opts *o, int id, const char *name)
{
	switch (id) {
	case OPT_EGRESS:
		o->egress = true;
		break;
	case OPT_EVERY:
		o->config.every = get_integer(name, optarg, 1, UINT32_MAX);
		break;
	case OPT_THEN:
		o->config.then = get_integer(name, optarg, 1, UINT32_MAX);
		break;
	case OPT_P:
		o->p = get_real(name, optarg, 0, 1);
		break;
	case OPT_Q:
		o->q = get_real(name, optarg, 0, 1);
		break;
	case OPT_LOSS:
		o->loss = get_real(name, optarg, 0, 1);
		break;
	case OPT_A:
		o->a = get_real(name, optarg, 0, 2);
		break;
	case OPT_SWING:
		o->swing = get_real(name, optarg, 0, 1);
		break;
	case OPT_HALF:
		o->half = get_real(name, optarg, 1e-6, 1e6);
		break;
	case OPT_TAU:
	case OPT_TICK:
		o->tau = get_real(name, optarg, 1e-6, 1e6);
		break;
	case OPT_AFTER:
		o->after = get_real(name, optarg, 0, 1e6);
		break;
	case OPT_OF:
		o->of = get_real(name, optarg, 1, 65535);
		break;
	case OPT_SEED:
		o->config.seed = get_u64(name, optarg);
		break;
	case OPT_PER_FLOW:
		o->config.per_flow = 1;
		break;
	case OPT_PROTO:
		o->config.protos = get_protos(optarg);
		break;
	case OPT_DPORT:
		o->config.dport = get_integer(name, optarg, 1, 65535);
		break;
	case OPT_MIN_LEN:
		o->config.min_len = get_integer(name, optarg, 0, 65535);
		break;
	case OPT_MARK:
		o->config.mark = 1;
		break;
	case OPT_HOLES:
		o->config.holes = 1;
		o->config.per_flow = 1;
		break;
	case OPT_BINS:
		o->config.bin = nsec(get_real(name, optarg, 1e-6, 1e6));
		o->config.per_flow = 1;
		break;
	case OPT_REHASH:
		o->config.rehash = 1;
		break;
	}
}

/* Reads all options, which must be among @allowed; returns which were given. */
static unsigned int get_options(struct opts *o, int argc, char **argv, unsigned int allowed,
				const char *whose)
{
	unsigned int given = 0;
	const char *name;
	int id;

	while ((id = next_option(argc, argv, options, help_text, &name))) {
		if (!(BIT(id) & allowed))
			usage("%s: --%s is not for it", whose, name);
		get_option(o, id, name);
		given |= BIT(id);
	}
	return given;
}

static __u64 probability(double p)
{
	return (__u64)llround(p * (double)PROB_ONE);
}

/* What is missing, or contradicts itself, ends the program. */
static void fill_config(struct opts *o, const char *model)
{
	struct loss_config *c = &o->config;
	double p = o->p;

	if (c->holes && c->min_len)
		usage("%s: --holes and --min-len exclude each other", model);
	if (c->model == LOSS_PERIODIC && !c->every)
		usage("%s: --every is missing", model);
	if (c->model == LOSS_GILBERT && (o->loss >= 0 || o->a >= 0)) {
		if (o->loss < 0 || o->a < 0 || p >= 0 || o->q >= 0)
			usage("%s: want either --p and --q, or --loss and --a", model);
		p = o->a * o->loss;
		o->q = o->a * (1 - o->loss);
		if (p > 1 || o->q > 1)
			usage("%s: --a %g is too much for --loss %g", model, o->a, o->loss);
	}
	if (c->model == LOSS_CLOCK && o->tau < 0)
		usage("%s: --tick is missing", model);
	if (takes[c->model] & BIT(OPT_P) && c->model != LOSS_CLOCK && p < 0)
		usage("%s: --p is missing", model);
	c->p = probability(p < 0 ? 0 : p);

	if (c->model == LOSS_GILBERT) {
		if (o->q < 0)
			usage("%s: --q is missing", model);
		if (p + o->q < 0.02)
			usage("%s: P+Q is less than 0.02", model);
		c->q = probability(o->q);
		c->tau = nsec(o->tau < 0 ? 0.01 : o->tau);
	}
	if (c->model == LOSS_CLOCK) {
		c->tau = nsec(o->tau);
		c->after = nsec(o->after);
	}
	if (c->model == LOSS_PERIODIC)
		c->half = nsec(o->half);
	if (c->model == LOSS_ALTERNATING) {
		if (p * (1 + o->swing) > 1)
			usage("%s: --p %g --swing %g: more than 1", model, p, o->swing);
		c->level[0] = probability(p * (1 - o->swing));
		c->level[1] = probability(p * (1 + o->swing));
		c->half = nsec(o->half);
	}
	if (c->model == LOSS_BYTES) {
		/* log of what a byte survives with */
		double log_s = log1p(-p) / o->of;

		for (size_t i = 0; i < ARRAY_SIZE(c->survive); i++)
			c->survive[i] = probability(exp(ldexp(log_s, i)));
	}
}

/* Bytes before the IP header on this kind of interface. */
static unsigned int link_header(const char *dev)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(request.ifr_name, dev, strlen(dev) + 1);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		die_errno("%s", dev);
	close(fd);
	switch (request.ifr_hwaddr.sa_family) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return 14;
	case ARPHRD_NONE:
		return 0;
	}
	die_error(EOPNOTSUPP, "%s: not Ethernet", dev);
}

static int make_map(enum bpf_map_type type, const char *name, __u32 key, __u32 value, __u32 entries,
		    __u32 flags)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = flags);
	int fd = bpf_map_create(type, name, key, value, entries, &opts);

	if (fd < 0)
		die_errno("cannot make a BPF map");
	return fd;
}

/* The program, with map references where it has the constants that stand for them. */
static int load_program(const struct loss_config *c)
{
	static const __u32 zero;
	size_t len = ARRAY_SIZE(program);
	struct bpf_insn *insns = calloc(len, sizeof(*insns));
	static char log[1 << 16];
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = sizeof(log));
	int config, common, flows, holes, bins, fd;

	config = make_map(BPF_MAP_TYPE_ARRAY, "ablossy_config", 4, sizeof(*c), 1,
			  BPF_F_RDONLY_PROG);
	common = make_map(BPF_MAP_TYPE_ARRAY, "ablossy_common", 4, sizeof(struct loss_common), 1,
			  0);
	flows = make_map(BPF_MAP_TYPE_HASH, "ablossy_flows", sizeof(struct flow_key),
			 sizeof(struct flow_state), c->per_flow ? MAX_FLOWS : 1, 0);
	holes = make_map(BPF_MAP_TYPE_ARRAY, "ablossy_holes", 4, sizeof(struct hole),
			 c->holes ? MAX_HOLES : 1, 0);
	bins = make_map(BPF_MAP_TYPE_ARRAY, "ablossy_bins", 4, sizeof(struct bin),
			c->bin ? BIN_FLOWS * MAX_BINS : 1, BPF_F_MMAPABLE);
	/* frozen, it is constants to the verifier, which drops the other models' code */
	if (bpf_map_update_elem(config, &zero, c, BPF_ANY) || bpf_map_freeze(config))
		die_errno("cannot fill a BPF map");

	if (!insns)
		die_error(ENOMEM, "program");
	memcpy(insns, program, sizeof(program));
	for (size_t i = 0; i + 1 < len; i++) {
		__u64 constant = (__u32)insns[i].imm | (__u64)(__u32)insns[i + 1].imm << 32;

		if (insns[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (constant == MAGIC_CONFIG || constant == MAGIC_COMMON) {
			insns[i].src_reg = BPF_PSEUDO_MAP_VALUE;
			insns[i].imm = constant == MAGIC_CONFIG ? config : common;
			insns[i + 1].imm = 0;
		} else if (constant == MAGIC_FLOWS || constant == MAGIC_HOLES ||
			   constant == MAGIC_BINS) {
			insns[i].src_reg = BPF_PSEUDO_MAP_FD;
			insns[i].imm = constant == MAGIC_FLOWS ? flows :
				       constant == MAGIC_HOLES ? holes : bins;
			insns[i + 1].imm = 0;
		}
		i++;
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "ablossy", "GPL", insns, len, &opts);
	if (fd < 0) {
		fputs(log, stderr);
		die_errno("cannot load the BPF program");
	}
	free(insns);
	return fd;
}

static struct bpf_tc_hook hook_of(const struct opts *o)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = if_nametoindex(o->dev),
		    .attach_point = o->egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);

	if (!hook.ifindex)
		die_errno("%s", o->dev);
	return hook;
}

static int cmd_add(struct opts *o)
{
	struct bpf_tc_hook hook = hook_of(o);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY,
		    .flags = BPF_TC_F_REPLACE);
	struct timespec ts;
	int err;

	o->config.l2_len = link_header(o->dev);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	o->config.origin = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
	opts.prog_fd = load_program(&o->config);
	err = bpf_tc_hook_create(&hook);
	if (err && err != -EEXIST)
		die_error(-err, "%s: clsact", o->dev);
	err = bpf_tc_attach(&hook, &opts);
	if (err)
		die_error(-err, "%s: cannot attach the BPF program", o->dev);
	return 0;
}

/* Descriptors of the maps of what is attached. */
struct maps {
	int	config;
	int	common;
	int	flows;
	int	holes;
	int	bins;
};

static struct maps find_maps(const struct opts *o)
{
	struct bpf_tc_hook hook = hook_of(o);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY);
	struct bpf_prog_info info = { 0 };
	__u32 ids[8], len = sizeof(info);
	int fd, err = bpf_tc_query(&hook, &opts);
	struct maps maps = { -1, -1, -1, -1, -1 };

	if (err)
		die_error(-err, "%s: no losses %s", o->dev, o->egress ? "on egress" : "on ingress");
	fd = bpf_prog_get_fd_by_id(opts.prog_id);
	info.nr_map_ids = ARRAY_SIZE(ids);
	info.map_ids = (unsigned long)ids;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		die_errno("%s: program %u", o->dev, opts.prog_id);
	for (__u32 i = 0; i < info.nr_map_ids && i < ARRAY_SIZE(ids); i++) {
		struct bpf_map_info map = { 0 };

		len = sizeof(map);
		fd = bpf_map_get_fd_by_id(ids[i]);
		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &map, &len))
			die_errno("%s: map %u", o->dev, ids[i]);
		if (map.type == BPF_MAP_TYPE_HASH)
			maps.flows = fd;
		else if (map.value_size == sizeof(struct loss_config))
			maps.config = fd;
		else if (map.value_size == sizeof(struct loss_common))
			maps.common = fd;
		else if (map.value_size == sizeof(struct bin))
			maps.bins = fd;
		else
			maps.holes = fd;
	}
	return maps;
}

static void print_counts(const struct flow_state *f)
{
	printf("\"packets\": %llu, \"bytes\": %llu", (unsigned long long)f->packets,
	       (unsigned long long)f->bytes);
	printf(", \"lost\": %llu, \"lost_bytes\": %llu, \"marked\": %llu",
	       (unsigned long long)f->lost, (unsigned long long)f->lost_bytes,
	       (unsigned long long)f->marked);
}

static void print_end(const char *name, const __u32 *address, unsigned int port)
{
	bool v6 = address[1] || address[2] || address[3];
	char text[INET6_ADDRSTRLEN];

	inet_ntop(v6 ? AF_INET6 : AF_INET, address, text, sizeof(text));
	printf(", \"%s\": \"%s%s%s:%u\"", name, v6 ? "[" : "", text, v6 ? "]" : "", ntohs(port));
}

/* The runs of lost packets of one flow. */
static void print_holes(const struct flow_state *f, const struct hole *holes, __u64 n)
{
	const char *sep = "";

	printf(", \"missing\": %llu, \"holes\": [", (unsigned long long)f->missing);
	for (__u64 i = 0; i < n; i++) {
		if (holes[i].stream != f->stream)
			continue;
		printf("%s[%u,%u]", sep, holes[i].first, holes[i].len);
		sep = ",";
	}
	putchar(']');
}

static struct hole *read_holes(const struct maps *maps, __u64 n)
{
	struct hole *holes = calloc(n + 1, sizeof(*holes));

	if (!holes)
		die_error(ENOMEM, "holes");
	for (__u32 i = 0; i < n; i++) {
		if (bpf_map_lookup_elem(maps->holes, &i, &holes[i]))
			die_errno("holes");
	}
	return holes;
}

/* A flow's bins up to the last one with a packet, packets and bytes of each. */
static void print_bins(const struct flow_state *f, const struct bin *bins)
{
	size_t n = MAX_BINS;

	if (f->stream >= BIN_FLOWS)
		return;
	bins += f->stream * MAX_BINS;
	while (n && !bins[n - 1].packets)
		n--;
	fputs(", \"bins\": [", stdout);
	for (size_t i = 0; i < n; i++)
		printf("%s[%u,%u]", i ? "," : "", bins[i].packets, bins[i].bytes);
	putchar(']');
}

static const struct bin *map_bins(const struct maps *maps)
{
	const struct bin *bins = mmap(NULL, sizeof(*bins) * BIN_FLOWS * MAX_BINS, PROT_READ,
				      MAP_SHARED, maps->bins, 0);

	if (bins == MAP_FAILED)
		die_errno("bins");
	return bins;
}

static void print_flow(const struct flow_key *key, const struct flow_state *f)
{
	printf("{\"stream\": %llu", (unsigned long long)f->stream);
	for (size_t i = 0; i < ARRAY_SIZE(protos); i++) {
		if (protos[i].number != key->proto)
			continue;
		printf(", \"proto\": \"%s\"", protos[i].name);
		print_end("from", key->from, key->ports & 0xffff);
		print_end("to", key->to, key->ports >> 16);
	}
	fputs(", ", stdout);
	print_counts(f);
}

struct listed {
	struct flow_key		key;
	struct flow_state	state;
};

static int by_stream(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return (x->state.stream > y->state.stream) - (x->state.stream < y->state.stream);
}

static int cmd_show(struct opts *o)
{
	struct listed *list = calloc(MAX_FLOWS, sizeof(*list));
	struct flow_state sum = { 0 };
	struct flow_key key, *last = NULL;
	struct loss_common common;
	struct loss_config c;
	const struct bin *bins = NULL;
	struct hole *holes = NULL;
	struct timespec now;
	struct maps maps;
	__u64 n_holes = 0;
	size_t n = 0;
	__u32 zero = 0;

	if (!list)
		die_error(ENOMEM, "flows");
	maps = find_maps(o);
	if (bpf_map_lookup_elem(maps.config, &zero, &c) ||
	    bpf_map_lookup_elem(maps.common, &zero, &common))
		die_errno("%s: not ours", o->dev);
	while (n < MAX_FLOWS && !bpf_map_get_next_key(maps.flows, last, &key)) {
		list[n].key = key;
		last = &list[n].key;
		if (!bpf_map_lookup_elem(maps.flows, &key, &list[n].state))
			n++;
	}
	qsort(list, n, sizeof(*list), by_stream);
	for (size_t i = 0; i < n; i++) {
		sum.packets += list[i].state.packets;
		sum.bytes += list[i].state.bytes;
		sum.lost += list[i].state.lost;
		sum.lost_bytes += list[i].state.lost_bytes;
		sum.marked += list[i].state.marked;
	}
	printf("{\"model\": \"%s\", \"seed\": %llu, \"origin\": %llu.%09llu, ", models[c.model],
	       (unsigned long long)c.seed, (unsigned long long)c.origin / 1000000000,
	       (unsigned long long)c.origin % 1000000000);
	print_counts(&sum);
	printf(", \"overflow\": %llu", (unsigned long long)common.overflow);
	if (c.holes) {
		if (common.holes > MAX_HOLES)
			die_error(ENOSPC, "%s: %llu holes", o->dev,
				  (unsigned long long)common.holes);
		n_holes = common.holes;
		holes = read_holes(&maps, n_holes);
	}
	if (c.bin) {
		bins = map_bins(&maps);
		clock_gettime(CLOCK_MONOTONIC, &now);
		printf(", \"bin\": %g, \"now\": %lld.%09ld, \"unbinned\": %llu",
		       (double)c.bin / NSEC_PER_SEC, (long long)now.tv_sec, now.tv_nsec,
		       (unsigned long long)common.unbinned);
	}
	if (c.per_flow) {
		fputs(", \"flows\": [", stdout);
		for (size_t i = 0; i < n; i++) {
			fputs(i ? ",\n  " : "\n  ", stdout);
			print_flow(&list[i].key, &list[i].state);
			if (c.holes)
				print_holes(&list[i].state, holes, n_holes);
			if (bins)
				print_bins(&list[i].state, bins);
			putchar('}');
		}
		putchar(']');
	}
	puts("}");
	free(holes);
	free(list);
	return 0;
}

static int cmd_del(struct opts *o)
{
	struct bpf_tc_hook hook = hook_of(o);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = HANDLE, .priority = PRIORITY);
	int err = bpf_tc_detach(&hook, &opts);

	if (err)
		die_error(-err, "%s: no losses %s", o->dev, o->egress ? "on egress" : "on ingress");
	/* the qdisc too, when nothing is left on the other side */
	hook.attach_point = o->egress ? BPF_TC_INGRESS : BPF_TC_EGRESS;
	opts.flags = 0;
	opts.prog_id = 0;
	opts.prog_fd = 0;
	if (bpf_tc_query(&hook, &opts)) {
		hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
		bpf_tc_hook_destroy(&hook);
	}
	return 0;
}

/* libbpf reports what we handle ourselves, such as a clsact that is there already. */
static int be_quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

int main(int argc, char **argv)
{
	struct opts o = { .p = -1, .q = -1, .loss = -1, .a = -1, .swing = 0.5, .half = 10,
			  .tau = -1, .of = 1, .config = { .seed = 1,
			  .protos = PROTO_UDP | PROTO_TCP | PROTO_DCCP } };
	const char *command = argc > 1 ? argv[1] : "";
	bool add = !strcmp(command, "add");

	occupy_standard_fds();
	if (!strcmp(command, "--help") || !strcmp(command, "-h")) {
		fputs(help_text, stdout);
		return 0;
	}
	if (!add && strcmp(command, "show") && strcmp(command, "del"))
		usage("want add, show or del");
	if (argc < 3 || *argv[2] == '-')
		usage("%s: want an interface", command);
	o.dev = argv[2];
	if (strlen(o.dev) >= IF_NAMESIZE)
		usage("%s: too long for an interface", o.dev);
	libbpf_set_print(be_quiet);
	if (!add) {
		get_options(&o, argc - 2, argv + 2, BIT(OPT_HELP) | BIT(OPT_EGRESS), command);
		return *command == 's' ? cmd_show(&o) : cmd_del(&o);
	}
	while (o.config.model < LOSS_MODELS &&
	       (argc < 4 || strcmp(argv[3], models[o.config.model])))
		o.config.model++;
	if (o.config.model == LOSS_MODELS)
		usage("add: want a model: none, periodic, bernoulli, bytes, alternating, gilbert, clock");
	get_options(&o, argc - 3, argv + 3, ~SPECIAL | takes[o.config.model], argv[3]);
	fill_config(&o, argv[3]);
	return cmd_add(&o);
}
