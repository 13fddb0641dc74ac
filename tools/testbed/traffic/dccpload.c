// SPDX-License-Identifier: GPL-2.0
/*
 * dccpload - DCCP flows between two network namespaces, in one process
 *
 * dccpload [OPTION...] CCID FLOWS [+ [OPTION...] CCID FLOWS]..., see help().
 * Every flow has its own connection from one namespace to another (of
 * tests/selftests/lib.py, or -n), sends packets of one size at a fixed rate and
 * never waits: what the socket does not take is counted. What the receivers
 * saw comes out as one JSON object. What follows a + is another group of flows,
 * with its own options and report: a thread, since to change between
 * processes costs a VM half of its time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/dccp.h>
#include <linux/types.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../../../ccid/include/uapi/linux/dccp_tfrc.h"
#include "../../lib/cli.h"
#include "../../lib/clock.h"
#include "../../lib/fds.h"

#define SOL_DCCP	269
#define MAX_FLOWS	2000
#define MAX_OPTIONS	8
#define MAX_GROUPS	32

struct tx_info {		/* struct tfrc_tx_info of <linux/tfrc.h> */
	__u64 x, x_recv;
	__u32 x_calc, rtt, p, rto, ipi, pad;
};

struct config {
	int ccid, flows, size, small, port, dscp;
	char from[32], to[32], address[INET_ADDRSTRLEN];
	const char *json;
	double rate, seconds, warm, pause, silence, grid;
	bool arrivals, gate, intervals, vary;
	int n_options;
	struct {
		int name;
		__u32 value;
	} option[MAX_OPTIONS];
};

/* Of the group whose thread it is, or which is being read by main(). */
static __thread struct config cfg;

/* Of which mean and standard deviation are wanted. */
struct values {
	double n, sum, squares;
};

static __thread struct flow {
	int tx, rx;
	__s64 next;
	__u64 offered, sent, refused;
	__u64 out, out_bytes;	/* sent after the warm-up */
	__u64 packets, bytes;	/* received after the warm-up */
	__u64 all;			/* received */
	__s64 last;
	__u64 n_gap, off;		/* gaps; those off the mean by 0.5 ms */
	__u64 second, second_bytes;	/* sent in the current second */
	struct values rate;		/* of whole seconds after the warm-up */
	__u64 events;			/* loss events seen by -i */
	struct values intervals;	/* closed loss intervals after the warm-up */
} *flow;

static struct group {
	struct config cfg;
	pthread_t thread;
	sem_t go;
} group[MAX_GROUPS];

static sem_t opened;
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;

static void enter(const char *ns)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die_errno("%s", path);
	close(fd);
}

static int dccp_socket(void)
{
	__u32 service = htonl(42);
	__u8 ccid = cfg.ccid;
	int tos = cfg.dscp << 2;
	int fd = socket(AF_INET, SOCK_DCCP, IPPROTO_DCCP);

	if (fd < 0)
		die_errno("socket");
	if (setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_SERVICE, &service, 4) ||
	    setsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID, &ccid, 1) ||
	    setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)))
		die_errno("setsockopt");
	return fd;
}

static void set_options(struct flow *f)
{
	int i;

	for (i = 0; i < cfg.n_options; i++) {
		int name = cfg.option[i].name;

		if (setsockopt(name < 192 ? f->rx : f->tx, SOL_DCCP, name,
			       &cfg.option[i].value, 4))
			die_errno("setsockopt of the CCID");
	}
}

static void open_flows(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int one = 1, listener, i;

	addr.sin_port = htons(cfg.port);
	inet_pton(AF_INET, cfg.address, &addr.sin_addr);
	enter(cfg.to);
	listener = dccp_socket();
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&addr, sizeof(addr)) ||
	    listen(listener, 64))
		die_errno("listen");
	enter(cfg.from);
	for (i = 0; i < cfg.flows; i++) {
		struct flow *f = &flow[i];

		f->tx = dccp_socket();
		if (connect(f->tx, (void *)&addr, sizeof(addr)))
			die_errno("connect");
		f->rx = accept(listener, NULL, NULL);
		if (f->rx < 0)
			die_errno("accept");
		fcntl(f->tx, F_SETFL, O_NONBLOCK);
		fcntl(f->rx, F_SETFL, O_NONBLOCK);
		set_options(f);
	}
	close(listener);
}

static void values_add(struct values *v, double x)
{
	v->n++;
	v->sum += x;
	v->squares += x * x;
}

/* Standard deviation over mean; 0 if there is none. */
static double values_cov(const struct values *v)
{
	double mean = v->sum / v->n, var = v->squares / v->n - mean * mean;

	return v->n > 1 && mean > 0 && var > 0 ? sqrt(var * v->n / (v->n - 1)) / mean : 0;
}

/* What the CCID allows a packet to have at our rate, with -V. */
static int allowed_size(struct flow *f)
{
	struct tfrc_tx_info_ext tx = { .interval = 1000000 / cfg.rate };
	socklen_t len = sizeof(tx);

	if (getsockopt(f->tx, SOL_DCCP, DCCP_SOCKOPT_CCID_TX_INFO, &tx, &len))
		die_errno("getsockopt");
	if (!tx.packet)
		return 1;
	return tx.packet < (__u32)cfg.size ? (int)tx.packet : cfg.size;
}

static void offer(struct flow *f, __s64 t, __s64 begin, __s64 warm)
{
	static const char data[65536];
	double at = (double)(t - begin) / NSEC_PER_SEC;
	__u64 second = t < warm ? 0 : (t - warm) / NSEC_PER_SEC + 1;
	int size = cfg.size;

	if (second != f->second) {
		if (f->second)
			values_add(&f->rate, f->second_bytes);
		f->second = second;
		f->second_bytes = 0;
	}

	/* Two sizes take turns each second. */
	if (cfg.small && (int)at % 2)
		size = cfg.small;
	if (cfg.silence > 0 && at >= cfg.pause && at < cfg.pause + cfg.silence)
		return;
	if (cfg.vary)
		size = allowed_size(f);
	f->offered++;
	if (send(f->tx, data, size, 0) < 0) {
		if (errno != EAGAIN)
			die_errno("send");
		f->refused++;
	} else {
		f->sent++;
		if (t >= warm) {
			f->out++;
			f->out_bytes += size;
			f->second_bytes += size;
		}
	}
}

/* The loss intervals that have been closed since the last look. */
static void look_at_intervals(struct flow *f, bool count)
{
	struct tfrc_rx_info_ext rx = { 0 };
	socklen_t len = sizeof(rx);
	__u64 i, n;

	if (getsockopt(f->rx, SOL_DCCP, DCCP_SOCKOPT_CCID_RX_INFO, &rx, &len) ||
	    len < sizeof(rx))
		die_errno("getsockopt");
	n = rx.events - f->events;
	f->events = rx.events;
	for (i = 1; count && i <= n && i < rx.intervals; i++)
		values_add(&f->intervals, rx.interval[i] / 256.0);
}

static void collect(struct flow *f, __s64 t, __s64 warm)
{
	char data[65536];
	double gap;
	ssize_t n;

	while ((n = recv(f->rx, data, sizeof(data), 0)) >= 0) {
		f->all++;
		if (cfg.intervals)
			look_at_intervals(f, t >= warm);
		if (cfg.arrivals)
			printf("%td %lld %zd\n", f - flow, t, n);
		if (t < warm)
			continue;
		f->packets++;
		f->bytes += n;
		if (f->last) {
			gap = (double)(t - f->last) / NSEC_PER_SEC;
			f->n_gap++;
			f->off += fabs(gap - 1 / cfg.rate) > 0.0005;
		}
		f->last = t;
	}
	if (errno != EAGAIN && errno != ENOTCONN)
		die_errno("recv");
}

static void loop(void)
{
	struct pollfd *fds = calloc(cfg.flows, sizeof(*fds));
	__s64 begin = now(CLOCK_MONOTONIC) + NSEC_PER_SEC / 10, end, warm, step = 0, t;
	__s64 grid = cfg.grid * NSEC_PER_SEC / 1000;
	int i;

	if (!fds)
		die_errno("calloc");
	end = begin + cfg.seconds * NSEC_PER_SEC;
	warm = begin + cfg.warm * NSEC_PER_SEC;
	if (cfg.rate > 0)
		step = NSEC_PER_SEC / cfg.rate;
	for (i = 0; i < cfg.flows; i++) {
		fds[i].fd = flow[i].rx;
		fds[i].events = POLLIN;
		/* not all at once */
		flow[i].next = begin + step * i / cfg.flows;
	}
	for (t = now(CLOCK_MONOTONIC); t < end; t = now(CLOCK_MONOTONIC)) {
		__s64 next = end;
		struct timespec ts;

		for (i = 0; i < cfg.flows; i++) {
			if (flow[i].next <= t) {
				offer(&flow[i], t, begin, warm);
				flow[i].next += step;
			}
			if (flow[i].next < next)
				next = flow[i].next;
		}
		if (grid)
			next += grid - (next - begin) % grid;
		t = now(CLOCK_MONOTONIC);
		next = next > t ? next - t : 0;
		ts.tv_sec = next / NSEC_PER_SEC;
		ts.tv_nsec = next % NSEC_PER_SEC;
		if (grid) {
			nanosleep(&ts, NULL);
			ts = (struct timespec){ 0 };
		}
		if (ppoll(fds, cfg.flows, &ts, NULL) < 0)
			die_errno("poll");
		t = now(CLOCK_MONOTONIC);
		for (i = 0; i < cfg.flows; i++)
			if (fds[i].revents)
				collect(&flow[i], t, warm);
	}
	free(fds);
}

static void report(void)
{
	double seconds = cfg.seconds - cfg.warm;
	FILE *out = cfg.json ? fopen(cfg.json, "w") : stdout;
	int i;

	if (!out)
		die_errno("%s", cfg.json);
	fprintf(out, "{\"ccid\": %d, \"seconds\": %g, \"flows\": [", cfg.ccid, seconds);
	for (i = 0; i < cfg.flows; i++) {
		struct flow *f = &flow[i];
		struct tx_info tx = { 0 };
		struct tfrc_rx_info_ext rx = { 0 };
		socklen_t len = sizeof(tx);

		getsockopt(f->tx, SOL_DCCP, DCCP_SOCKOPT_CCID_TX_INFO, &tx, &len);
		len = sizeof(rx);
		getsockopt(f->rx, SOL_DCCP, DCCP_SOCKOPT_CCID_RX_INFO, &rx, &len);
		fprintf(out, "%s{\"offered\": %llu, \"sent\": %llu, \"refused\": %llu, ",
			i ? ",\n" : "", f->offered, f->sent, f->refused);
		fprintf(out, "\"out\": %llu, \"out_bytes\": %llu, ",
			f->out, f->out_bytes);
		fprintf(out, "\"all\": %llu, \"packets\": %llu, \"bytes\": %llu, ",
			f->all, f->packets, f->bytes);
		fprintf(out, "\"gaps\": %llu, \"off\": %llu, \"x\": %g, \"rtt\": %u, ",
			f->n_gap, f->off, tx.x / 64.0, tx.rtt);
		fprintf(out, "\"p\": %u, \"x_calc\": %u, \"rx_packets\": %llu, ",
			tx.p, tx.x_calc, rx.packets);
		fprintf(out, "\"rx_lost\": %llu, \"rx_events\": %llu, \"rx_marked\": %llu, ",
			rx.lost, rx.events, rx.marked);
		fprintf(out, "\"mean_interval\": %g, \"rx_rtt\": %u, ",
			rx.mean_interval / 256.0, rx.rtt);
		fprintf(out, "\"rate_cov\": %g, \"intervals\": %g, \"interval_mean\": %g, \"interval_cov\": %g}",
			values_cov(&f->rate), f->intervals.n,
			f->intervals.n ? f->intervals.sum / f->intervals.n : 0,
			values_cov(&f->intervals));
	}
	fprintf(out, "]}\n");
	if (fflush(out) || ferror(out))
		die_errno("%s", cfg.json ? cfg.json : "standard output");
	if (cfg.json)
		fclose(out);
}

static void *run_group(void *arg)
{
	struct group *g = arg;

	cfg = g->cfg;
	flow = calloc(cfg.flows, sizeof(*flow));
	if (!flow)
		die_errno("calloc");
	open_flows();
	sem_post(&opened);
	while (sem_wait(&g->go))
		;
	loop();
	pthread_mutex_lock(&reporting);
	report();
	pthread_mutex_unlock(&reporting);
	return NULL;
}

static noreturn void help(int status)
{
	fputs("usage: dccpload [OPTION...] CCID FLOWS [+ [OPTION...] CCID FLOWS]...\n"
	      "  -n FROM,TO,ADDRESS  namespaces, and TO's address (a,b,10.0.2.1)\n"
	      "  -s BYTES    payload (200)\n"
	      "  -S BYTES    payload in every other second\n"
	      "  -V          payload as the CCID allows at this rate, up to -s\n"
	      "  -r RATE     packets per second and flow (100)\n"
	      "  -t SECONDS  how long (10)\n"
	      "  -w SECONDS  of that, before receivers count (0)\n"
	      "  -p AT,LONG  say nothing for LONG seconds from AT on\n"
	      "  -W MS       only wake up that often, for many flows\n"
	      "  -o NR=VALUE socket option of the CCID\n"
	      "  -P PORT     (6000)\n"
	      "  -d DSCP     (0)\n"
	      "  -a          print each arrival: flow, ns, bytes\n"
	      "  -i          look at the loss intervals with each packet, for their variation\n"
	      "  -g          say \"ready\" when all are connected, and wait for a line\n"
	      "  -j FILE     where the report goes (standard output)\n",
	      status ? stderr : stdout);
	exit(status);
}

/* What an option or argument says, which must be in that range. */
static double get_number(const char *name, const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || isnan(value) || value < least || value > most)
		usage("%s %s: want a number from %g to %g", name, text, least, most);
	return value;
}

/* One group's options and arguments; argv[0] is not looked at. */
static void get_config(int argc, char **argv)
{
	int c;

	cfg = (struct config){ .size = 200, .rate = 100, .seconds = 10, .port = 6000,
			       .from = "a", .to = "b", .address = "10.0.2.1" };
	optind = 0;
	while ((c = getopt(argc, argv, "s:S:r:t:w:W:p:o:P:n:d:j:Vagih")) != -1) {
		switch (c) {
		case 's':
			cfg.size = (int)get_number("-s", optarg, 0, 65535);
			break;
		case 'S':
			cfg.small = (int)get_number("-S", optarg, 0, 65535);
			break;
		case 'r':
			cfg.rate = get_number("-r", optarg, 0.001, 1e6);
			break;
		case 't':
			cfg.seconds = get_number("-t", optarg, 0, 1e6);
			break;
		case 'w':
			cfg.warm = get_number("-w", optarg, 0, 1e6);
			break;
		case 'W':
			cfg.grid = get_number("-W", optarg, 0, 1e6);
			break;
		case 'P':
			cfg.port = (int)get_number("-P", optarg, 1, 65535);
			break;
		case 'n':
			if (sscanf(optarg, "%31[^,],%31[^,],%15s", cfg.from, cfg.to,
				   cfg.address) != 3)
				usage("-n %s: want FROM,TO,ADDRESS", optarg);
			break;
		case 'd':
			cfg.dscp = (int)get_number("-d", optarg, 0, 63);
			break;
		case 'j':
			cfg.json = optarg;
			break;
		case 'V':
			cfg.vary = true;
			break;
		case 'a':
			cfg.arrivals = true;
			break;
		case 'i':
			cfg.intervals = true;
			break;
		case 'g':
			cfg.gate = true;
			break;
		case 'p':
			if (sscanf(optarg, "%lf,%lf", &cfg.pause, &cfg.silence) != 2)
				usage("-p %s: want AT,LONG in seconds", optarg);
			break;
		case 'o':
			if (cfg.n_options == MAX_OPTIONS)
				usage("-o %s: at most %d of these", optarg, MAX_OPTIONS);
			if (sscanf(optarg, "%d=%u", &cfg.option[cfg.n_options].name,
				   &cfg.option[cfg.n_options].value) != 2)
				usage("-o %s: want NR=VALUE", optarg);
			cfg.n_options++;
			break;
		case 'h':
			help(0);
		default:
			help(2);
		}
	}
	if (argc - optind != 2)
		usage("want a CCID and a number of flows");
	cfg.ccid = (int)get_number("CCID", argv[optind], 0, 255);
	cfg.flows = (int)get_number("FLOWS", argv[optind + 1], 1, MAX_FLOWS);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 8192, 8192 };
	char *name = argv[0], line;
	int first, last, n = 0, i;
	bool gate = false;

	occupy_standard_fds();
	for (first = 0; first < argc; first = last) {
		for (last = first + 1; last < argc && strcmp(argv[last], "+"); last++)
			;
		if (n == MAX_GROUPS)
			usage("at most %d groups of flows", MAX_GROUPS);
		argv[first] = name; /* for getopt's messages, instead of "+" */
		get_config(last - first, argv + first);
		gate |= cfg.gate;
		group[n++].cfg = cfg;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	sem_init(&opened, 0, 0);
	/* one after the other, so that it is the same each time */
	for (i = 0; i < n; i++) {
		sem_init(&group[i].go, 0, 0);
		errno = pthread_create(&group[i].thread, NULL, run_group, &group[i]);
		if (errno)
			die_errno("pthread_create");
		while (sem_wait(&opened))
			;
	}
	if (gate) {
		puts("ready");
		fflush(stdout);
		while (read(STDIN_FILENO, &line, 1) < 0)
			if (errno != EINTR)
				die_errno("standard input");
	}
	for (i = 0; i < n; i++)
		sem_post(&group[i].go);
	for (i = 0; i < n; i++)
		pthread_join(group[i].thread, NULL);
	return 0;
}
