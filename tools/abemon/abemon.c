// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: watch and record what the queueing discipline abe does.
 *
 * Each reading is one netlink dump. What is shown of it is a view on a terminal, or lines.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "../lib/fds.h"
#include "netlink.h"
#include "sample.h"
#include "view.h"

static const char help_text[] =
"usage: abemon [OPTION...] [DEV...]\n"
"\n"
"Show what each qdisc abe on the devices DEV does, or on all devices: on a terminal as\n"
"a view that is drawn anew, which q ends, otherwise as lines.\n"
"\n"
"  --once           one reading\n"
"  --count N        N readings\n"
"  --interval TIME  between two readings, 10ms to 10s (1s)\n"
"  --json           each reading as a line with a JSON object, with the keys of\n"
"                   tc -s -j qdisc show\n"
"  --csv            each qdisc of each reading as a line of comma-separated values\n"
"  --help           this text\n"
"\n"
"Exit: 0 well, 1 something failed or there is no abe, 2 wrong usage.\n";

enum option_id { OPT_HELP = 1, OPT_ONCE, OPT_COUNT, OPT_INTERVAL, OPT_JSON, OPT_CSV };

static const struct option long_options[] = {
	FLAG("help", OPT_HELP), FLAG("once", OPT_ONCE), ARG("count", OPT_COUNT),
	ARG("interval", OPT_INTERVAL), FLAG("json", OPT_JSON), FLAG("csv", OPT_CSV), { 0 }
};

#define FAILURES	5	/* in a row that end the program */

enum output { OUTPUT_VIEW, OUTPUT_JSON, OUTPUT_CSV };

static struct {
	enum output	output;
	long long	count;		/* readings; 0: no end */
	__s64		interval;	/* ns */
	char		(*dev)[IF_NAMESIZE];
	int		devs;		/* 0: all */
} cfg = { .interval = NSEC_PER_SEC };

static __s64 get_interval(const char *text)
{
	char *end;
	double ns = strtod(text, &end);

	if (!strcmp(end, "ms"))
		ns *= NSEC_PER_MSEC;
	else if (!strcmp(end, "s"))
		ns *= NSEC_PER_SEC;
	else
		end = (char *)text;
	if (end == text || !(ns >= 10 * NSEC_PER_MSEC && ns <= 10 * NSEC_PER_SEC))
		usage("--interval %s: want a time from 10ms to 10s", text);
	return ns;
}

static void get_output(enum output output)
{
	if (cfg.output && cfg.output != output)
		usage("--json and --csv exclude each other");
	cfg.output = output;
}

static void get_count(long long count)
{
	if (cfg.count)
		usage("--once and --count are given once, one of them");
	cfg.count = count;
}

static void get_options(int argc, char **argv)
{
	const char *name;
	int id;

	while ((id = next_option_among_words(argc, argv, long_options, help_text, &name))) {
		switch (id) {
		case OPT_ONCE:
			get_count(1);
			break;
		case OPT_COUNT:
			get_count(get_integer(name, optarg, 1, 1000000000));
			break;
		case OPT_INTERVAL:
			cfg.interval = get_interval(optarg);
			break;
		case OPT_JSON:
			get_output(OUTPUT_JSON);
			break;
		case OPT_CSV:
			get_output(OUTPUT_CSV);
			break;
		}
	}
	cfg.devs = argc - optind;
	for (int i = 0; i < cfg.devs; i++)
		if (!*argv[optind + i] || strlen(argv[optind + i]) >= IF_NAMESIZE)
			usage("%s: want the name of a device, of 1 to %d characters",
			      argv[optind + i], IF_NAMESIZE - 1);
}

/* Devices by their names; an alternative one is another name of the device. */
static void find_devices(char **words)
{
	cfg.dev = calloc(cfg.devs + 1, sizeof(*cfg.dev));
	if (!cfg.dev)
		die("no memory for %d names", cfg.devs);
	for (int i = 0; i < cfg.devs; i++) {
		unsigned int index = if_nametoindex(words[i]);

		if (!index || !if_indextoname(index, cfg.dev[i]))
			die("%s: no such device", words[i]);
	}
}

static bool is_wanted(const char *dev)
{
	for (int i = 0; i < cfg.devs; i++)
		if (!strcmp(dev, cfg.dev[i]))
			return true;
	return !cfg.devs;
}

/* What is there at the start may go later, and come again. */
static void check_devices(const struct reading *reading)
{
	for (int i = 0; i < cfg.devs; i++) {
		unsigned int j = 0;

		while (j < reading->qdiscs && strcmp(reading->qdisc[j]->dev, cfg.dev[i]))
			j++;
		if (j == reading->qdiscs)
			die("%s: no qdisc there is abe", cfg.dev[i]);
	}
	if (!reading->qdiscs)
		die("no device has the qdisc abe");
}

static void show(struct reading *reading)
{
	switch (cfg.output) {
	case OUTPUT_JSON:
		write_json(stdout, reading);
		break;
	case OUTPUT_CSV:
		write_csv(stdout, reading);
		break;
	case OUTPUT_VIEW:
		view_add(reading);
		break;
	}
	if (fflush(stdout) || ferror(stdout))
		die_errno("standard output");
}

/* Wait for the next reading; false: the user has had enough. Missed beats are left out. */
static bool wait_for(int timer)
{
	struct pollfd fds[] = {
		{ timer, POLLIN, 0 }, { view_input(), POLLIN, 0 }, { view_signals(), POLLIN, 0 }
	};
	__u64 beats;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			die_errno("poll");
		if (view_ended(fds[1].revents))
			return false;
		if (read(timer, &beats, sizeof(beats)) == sizeof(beats))
			return true;
	}
}

int main(int argc, char **argv)
{
	struct itimerspec beat = { 0 };
	struct reading reading = { .wanted = is_wanted };
	unsigned int failures = 0;
	struct nl_sock *sock;
	const char *wrong;
	int timer;

	occupy_standard_fds();
	setlocale(LC_CTYPE, "");
	get_options(argc, argv);
	find_devices(argv + optind);
	sock = open_netlink();
	wrong = read_qdiscs(sock, &reading);
	if (wrong)
		die("netlink: %s", wrong);
	check_devices(&reading);
	if (cfg.output == OUTPUT_CSV)
		write_csv_head(stdout);
	if (cfg.output == OUTPUT_VIEW)
		view_start(cfg.count != 1, cfg.interval);

	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (timer < 0)
		die_errno("timerfd_create");
	beat.it_interval.tv_sec = cfg.interval / NSEC_PER_SEC;
	beat.it_interval.tv_nsec = cfg.interval % NSEC_PER_SEC;
	beat.it_value = beat.it_interval;
	if (timerfd_settime(timer, 0, &beat, NULL))
		die_errno("timerfd_settime");
	for (;;) {
		if (!wrong)
			show(&reading);
		if (!wrong && cfg.count && !--cfg.count)
			break;
		if (!wait_for(timer))
			break;
		/* The kernel may be short of memory for a moment. */
		wrong = read_qdiscs(sock, &reading);
		failures = wrong ? failures + 1 : 0;
		if (failures == FAILURES)
			die("netlink: %s", wrong);
		if (wrong) {
			close_netlink(sock);
			sock = open_netlink();
		}
	}
	view_end();
	close_netlink(sock);
	free_reading(&reading);
	free(cfg.dev);
	return 0;
}
