// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: watch and record what the queueing discipline abe does.
 *
 * Each reading is one netlink dump. What is shown of it is a view on a terminal, or lines.
 */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "../lib/fds.h"
#include "advise.h"
#include "netlink.h"
#include "replay.h"
#include "sample.h"
#include "server.h"
#include "view.h"

static const char help_text[] =
"usage: abemon [OPTION...] [DEV...]\n"
"       abemon --advise RATE [RTT [DEV]]\n"
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
"  --record FILE    besides, write the readings to FILE, as --json does\n"
"  --replay FILE    take the readings from such a file\n"
"  --speed X        with --replay on a terminal: X times as fast, 0.01 to 1000 (1)\n"
"  --prometheus [ADDR:]PORT\n"
"                   serve http://ADDR:PORT/metrics (127.0.0.1): a reading for each scrape\n"
"  --advise RATE    print what to type for a link of that rate, and why: RATE as 20mbit,\n"
"                   RTT as 50ms (100ms)\n"
"  --help           this text\n"
"\n"
"Exit: 0 well, 1 something failed or there is no abe, 2 wrong usage.\n";

enum option_id {
	OPT_HELP = 1, OPT_ONCE, OPT_COUNT, OPT_INTERVAL, OPT_JSON, OPT_CSV, OPT_RECORD, OPT_REPLAY,
	OPT_SPEED, OPT_PROMETHEUS, OPT_ADVISE
};

static const struct option long_options[] = {
	FLAG("help", OPT_HELP), FLAG("once", OPT_ONCE), ARG("count", OPT_COUNT),
	ARG("interval", OPT_INTERVAL), FLAG("json", OPT_JSON), FLAG("csv", OPT_CSV),
	ARG("record", OPT_RECORD), ARG("replay", OPT_REPLAY), ARG("speed", OPT_SPEED),
	ARG("prometheus", OPT_PROMETHEUS), ARG("advise", OPT_ADVISE), { 0 }
};

#define FAILURES	5	/* in a row that end the program */

enum output { OUTPUT_VIEW, OUTPUT_JSON, OUTPUT_CSV };

/* Replayed, a longer pause is no longer than this. */
#define LONGEST_PAUSE	(10 * NSEC_PER_SEC)

static struct {
	enum output	output;
	long long	count;		/* readings; 0: no end */
	__s64		interval;	/* ns; 0: not given */
	const char	*record, *replay, *prometheus, *advise;
	double		speed;		/* 0: not given */
	char		(*dev)[IF_NAMESIZE];
	int		devs;		/* 0: all */
	FILE		*recording;
	struct nl_sock	*sock;
} cfg;

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

static void check_options(void)
{
	if (cfg.advise && (cfg.output || cfg.count || cfg.interval || cfg.record || cfg.replay ||
			   cfg.speed || cfg.prometheus))
		usage("--advise stands alone");
	if (cfg.prometheus && (cfg.output || cfg.count || cfg.interval || cfg.record || cfg.speed))
		usage("--prometheus goes with --replay and devices only");
	if (cfg.replay && (cfg.interval || cfg.record))
		usage("--replay does not go with --interval and --record");
	if (cfg.speed && !cfg.replay)
		usage("--speed is for --replay");
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
		case OPT_RECORD:
			cfg.record = optarg;
			break;
		case OPT_REPLAY:
			cfg.replay = optarg;
			break;
		case OPT_SPEED:
			cfg.speed = get_real(name, optarg, 0.01, 1000);
			break;
		case OPT_PROMETHEUS:
			cfg.prometheus = optarg;
			break;
		case OPT_ADVISE:
			cfg.advise = optarg;
			break;
		}
	}
	check_options();
	if (cfg.advise)
		return;
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
		unsigned int index = cfg.replay ? 0 : if_nametoindex(words[i]);

		/* What a recording is of is not here. */
		if (cfg.replay) {
			strcpy(cfg.dev[i], words[i]);
			continue;
		}
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
	if (cfg.recording) {
		write_json(cfg.recording, reading);
		/* As it is wanted most when something goes wrong. */
		if (fflush(cfg.recording) || ferror(cfg.recording))
			die_errno("%s", cfg.record);
	}
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

/*
 * Wait for a timer, or for a line of a pipe; false: the user has had enough. Missed beats of
 * the timer are left out.
 */
static bool wait_for(int timer, int line)
{
	struct pollfd fds[] = {
		{ timer, POLLIN, 0 }, { view_input(), POLLIN, 0 }, { view_signals(), POLLIN, 0 },
		{ line, POLLIN, 0 }
	};
	__u64 beats;

	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			die_errno("poll");
		if (view_ended(fds[1].revents))
			return false;
		if (fds[3].revents ||
		    (timer >= 0 && read(timer, &beats, sizeof(beats)) == sizeof(beats)))
			return true;
	}
}

static void set_timer(int timer, __s64 first, __s64 interval)
{
	const struct itimerspec beat = {
		.it_value = { first / NSEC_PER_SEC, first % NSEC_PER_SEC },
		.it_interval = { interval / NSEC_PER_SEC, interval % NSEC_PER_SEC },
	};

	if (timerfd_settime(timer, 0, &beat, NULL))
		die_errno("timerfd_settime");
}

static int create_timer(void)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (timer < 0)
		die_errno("timerfd_create");
	return timer;
}

/* A reading from the kernel, with a new socket after one that failed. */
static const char *take(struct reading *reading)
{
	const char *wrong;

	if (!cfg.sock)
		cfg.sock = open_netlink();
	wrong = read_qdiscs(cfg.sock, reading);
	if (wrong) {
		close_netlink(cfg.sock);
		cfg.sock = NULL;
	}
	return wrong;
}

static void start_output(__s64 interval)
{
	if (cfg.output == OUTPUT_CSV)
		write_csv_head(stdout);
	if (cfg.output == OUTPUT_VIEW)
		view_start(cfg.count != 1, interval);
}

static void watch(struct reading *reading)
{
	__s64 interval = cfg.interval ? cfg.interval : NSEC_PER_SEC;
	const char *wrong = take(reading);
	unsigned int failures = 0;
	int timer;

	if (wrong)
		die("netlink: %s", wrong);
	check_devices(reading);
	if (cfg.record) {
		cfg.recording = fopen(cfg.record, "we");
		if (!cfg.recording)
			die_errno("%s", cfg.record);
	}
	start_output(interval);
	timer = create_timer();
	set_timer(timer, interval, interval);
	for (;;) {
		if (!wrong)
			show(reading);
		if (!wrong && cfg.count && !--cfg.count)
			break;
		if (!wait_for(timer, -1))
			break;
		/* The kernel may be short of memory for a moment. */
		wrong = take(reading);
		failures = wrong ? failures + 1 : 0;
		if (failures == FAILURES)
			die("netlink: %s", wrong);
	}
	if (cfg.recording && fclose(cfg.recording))
		die_errno("%s", cfg.record);
}

/* On a terminal at the pace of the recording, elsewhere as fast as it can be read. */
static void replay(struct reading *reading)
{
	double speed = cfg.speed ? cfg.speed : 1;
	int timer = create_timer();
	bool more = true, found = false;

	open_replay(cfg.replay);
	if (!read_replay(reading))
		die("%s: nothing is in it", cfg.replay);
	start_output(NSEC_PER_SEC);
	do {
		__s64 before = reading->clock, pause;

		found |= reading->qdiscs > 0;
		show(reading);
		if (cfg.count && !--cfg.count)
			break;
		if (view_input() >= 0 && replay_fd() >= 0 && !wait_for(-1, replay_fd()))
			break;
		more = read_replay(reading);
		pause = more ? reading->clock - before : 0;
		if (pause > LONGEST_PAUSE)
			pause = LONGEST_PAUSE;
		if (view_input() >= 0 && pause > 0) {
			set_timer(timer, llround(fmax(pause / speed, 1)), 0);
			if (!wait_for(timer, -1))
				break;
		}
	} while (more);
	if (!more && !found)
		die("%s: no qdisc abe%s in it", cfg.replay,
		    cfg.devs ? " on such a device is" : " is");
	if (!more && view_input() >= 0) {
		view_notice("this is the end of the recording");
		set_timer(timer, 0, 0);
		wait_for(timer, -1);
	}
	close_replay();
}

static const char *take_replay(struct reading *reading)
{
	return read_replay(reading) ? NULL : "the recording has come to its end";
}

int main(int argc, char **argv)
{
	struct reading reading = { .wanted = is_wanted };

	occupy_standard_fds();
	setlocale(LC_CTYPE, "");
	get_options(argc, argv);
	if (cfg.advise) {
		advise(cfg.advise, argc - optind, argv + optind);
		return 0;
	}
	find_devices(argv + optind);
	if (cfg.prometheus) {
		int listening = open_server(cfg.prometheus);

		if (cfg.replay)
			open_replay(cfg.replay);
		if (cfg.replay && replay_fd() >= 0)
			usage("--prometheus: %s is no regular file", cfg.replay);
		serve(listening, cfg.replay ? take_replay : take, &reading);
	}
	if (cfg.replay)
		replay(&reading);
	else
		watch(&reading);
	view_end();
	close_netlink(cfg.sock);
	free_reading(&reading);
	free(cfg.dev);
	return 0;
}
