// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: advice for a link: lines of tc, and comments that say why, so that the whole can
 * be given to a shell. tests/selftests/test_abemon_advise.py holds it to what it says.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "../lib/cli.h"
#include "advise.h"

/* What the shaper leaves to the modem or switch behind it. */
#define MARGIN		0.05
#define FULL_PACKET	1514
#define MIN_RATE	64e3
#define MAX_RATE	400e9
#define DEFAULT_RTT	0.1
/* A shaper's timer is rarely later. */
#define BURST		0.001

#define LETTERS		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@"

/* A number with one of the suffixes. */
static double get_scaled(const char *what, const char *text, double min, double max,
			 const char *const *suffix, const double *scale, const char *want)
{
	char *end;
	double x = strtod(text, &end);
	unsigned int i = 0;

	while (suffix[i] && strcasecmp(end, suffix[i]))
		i++;
	if (suffix[i])
		x *= scale[i];
	/* strtod() passes over blanks, lines among them, and this is printed. */
	if (!strspn(text, "0123456789.") || !suffix[i] ||
	    !(x >= min * 0.999 && x <= max * 1.001))
		usage("%s %s: want %s", what, text, want);
	return x;
}

static double get_rate(const char *text)
{
	static const char *const suffix[] = { "bit", "kbit", "mbit", "gbit", NULL };
	static const double scale[] = { 1, 1e3, 1e6, 1e9 };

	return get_scaled("--advise", text, MIN_RATE, MAX_RATE, suffix, scale,
			  "a rate from 64kbit to 400gbit");
}

static double get_rtt(const char *text)
{
	static const char *const suffix[] = { "us", "ms", "s", NULL };
	static const double scale[] = { 1e-6, 1e-3, 1 };

	return get_scaled("--advise RTT", text, 1e-6, 10, suffix, scale,
			  "a time from 1us to 10s");
}

/* The rate of a device, bit/s; NAN: it does not tell. */
static double link_speed(const char *dev)
{
	char path[64];
	double speed;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/speed", dev);
	f = fopen(path, "re");
	if (!f)
		return NAN;
	if (fscanf(f, "%lf", &speed) != 1 || speed <= 0)
		speed = NAN;
	fclose(f);
	return speed * 1e6;
}

/* Its hardware queues. */
static unsigned int count_queues(const char *dev)
{
	unsigned int queues = 0;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/queues", dev);
	dir = opendir(path);
	if (!dir)
		return 1;
	while ((entry = readdir(dir)))
		queues += !strncmp(entry->d_name, "tx-", 3);
	closedir(dir);
	return queues ? queues : 1;
}

/* tc's rates, which are whole bits, without zeros. */
static void put_rate(char buf[32], double rate)
{
	if (rate >= 1e6)
		snprintf(buf, 32, "%.0fkbit", rate / 1e3);
	else
		snprintf(buf, 32, "%.0fbit", rate);
}

static void put_time(char buf[32], double time)
{
	if (time >= 1)
		snprintf(buf, 32, "%.4gs", time);
	else if (time >= 1e-3)
		snprintf(buf, 32, "%.4gms", time * 1e3);
	else
		snprintf(buf, 32, "%.0fus", fmax(time * 1e6, 1));
}

/* abe's options, and the reasons as comments. */
static void make_options(char options[64], double rtt)
{
	char text[32];

	put_time(text, rtt);
	snprintf(options, 64, "rtt %s", text);
	printf("# rtt %s: the shortest round trip of those who use the link. A shorter one\n"
	       "#   protects blue more, and costs green more. Other options keep their defaults.\n",
	       text);
}

/* Of a qdisc that drains at that rate: the defaults of green_limit, min and max, and limit. */
static void put_delays(double rate)
{
	double packet = 8 * FULL_PACKET / rate;

	printf("# Green packets wait %.3g ms here at most: green_limit, which is 10 ms or two\n"
	       "#   full packets, and two more, which are being sent. Blue ones wait about %.3g ms on\n"
	       "#   average when TCP fills the link, and %.3g ms at most.\n",
	       1e3 * (fmax(0.01, 2 * packet) + 2 * packet), 1e3 * fmax(0.02, 10 * packet),
	       1e3 * fmax(0.2, 30 * packet));
}

/* Of whatever kind it is, so that the lines can be typed again. */
static void clear_root(const char *dev)
{
	printf("# What is at the root of %s goes.\n"
	       "tc qdisc del dev %s root 2>/dev/null || :\n", dev, dev);
}

/* The device sends as fast as the link is: the queue is its own. */
static void advise_device(const char *dev, double rate, double rtt)
{
	unsigned int queues = count_queues(dev);
	char options[64];

	printf("# %s is no faster than that: it is the bottleneck, and the queue is its own.\n",
	       dev);
	if (queues > 1)
		printf("# It has %u hardware queues. Each gets its own abe, which measures what\n"
		       "#   it has; the delays are for one that has all.\n", queues);
	make_options(options, rtt);
	put_delays(fmin(rate, link_speed(dev)));
	clear_root(dev);
	if (queues == 1) {
		printf("tc qdisc add dev %s root abe %s\n", dev, options);
		return;
	}
	printf("tc qdisc add dev %s root handle 1: mq\n", dev);
	for (unsigned int i = 1; i <= queues; i++)
		printf("tc qdisc replace dev %s parent 1:%x abe %s\n", dev, i, options);
}

static void advise_shaper(const char *dev, double rate, double rtt)
{
	double shaped = (1 - MARGIN) * rate, burst = fmax(BURST * shaped / 8, FULL_PACKET);
	char options[64], text[32];

	put_rate(text, shaped);
	printf("# rate %s: the queue has to be here and not in the modem behind. So the shaper\n"
	       "#   sends %.0f %% less than the link carries. If green's delay grows under load, it is\n"
	       "#   still there: take less. For DSL tell the shaper the overhead: tc-stab(8).\n"
	       "# burst %.0f: what 1 ms carries, and a full packet at least. Less costs throughput as\n"
	       "#   timers are late, more is a queue elsewhere. quantum: of one class it does not\n"
	       "#   matter, but htb complains of its own.\n"
	       "# abe's rate: with it the green bound is exact from the first packet on.\n",
	       text, 100 * MARGIN, burst);
	if (rate < 1e6)
		printf("# Below 1mbit a full packet takes %.3g ms, which is green's delay; a\n"
		       "#   smaller MTU helps.\n", 8e3 * FULL_PACKET / shaped);
	if (rate >= 1e9)
		printf("# A shaper of this rate needs much of a CPU. Without one:\n"
		       "#   tc qdisc replace dev %s root abe\n", dev);
	make_options(options, rtt);
	put_delays(shaped);
	clear_root(dev);
	printf("tc qdisc add dev %s root handle 1: htb default 1\n"
	       "tc class add dev %s parent 1: classid 1:1 htb ", dev, dev);
	printf("rate %s burst %.0f cburst %.0f quantum %u\n"
	       "tc qdisc add dev %s parent 1:1 handle 10: abe rate %s %s\n",
	       text, burst, burst, FULL_PACKET, dev, text, options);
}

/* A shell is to read it. */
static void check_name(const char *dev)
{
	if (!*dev || strlen(dev) >= IF_NAMESIZE || dev[strspn(dev, LETTERS)])
		usage("DEV %s: want the name of a device, of letters, digits and -_.:@", dev);
}

/**
 * advise - print what to type for a link
 * @rate:	of the link
 * @words:	number of @word
 * @word:	the round-trip time, and the device
 */
void advise(const char *rate, int words, char **word)
{
	double bits = get_rate(rate), rtt = words > 0 ? get_rtt(word[0]) : DEFAULT_RTT;
	const char *dev = words > 1 ? word[1] : "DEV";
	char text[32], name[IF_NAMESIZE];

	if (words > 2)
		usage("%s: more than RATE, RTT and DEV", word[2]);
	check_name(dev);
	/* An alternative name is in no path of /sys. */
	if (words > 1) {
		unsigned int index = if_nametoindex(dev);

		if (!index || !if_indextoname(index, name))
			die("%s: no such device", dev);
		dev = name;
		check_name(dev);
	}
	put_time(text, rtt);
	printf("# abe on a link of %s with round trips of %s%s\n", rate, text,
	       words ? "" : " (not given)");
	if (words > 1 && link_speed(dev) <= 1.01 * bits)
		advise_device(dev, bits, rtt);
	else
		advise_shaper(dev, bits, rtt);
	if (fflush(stdout) || ferror(stdout))
		die_errno("standard output");
}
