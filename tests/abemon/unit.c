// SPDX-License-Identifier: GPL-2.0
/*
 * abemon without a kernel: messages of older and newer ones, cut off and random; what
 * its rules say; an hour of readings.
 */
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include "../../tools/lib/cli.h"
#include "metrics.h"
#include "netlink.h"
#include "replay.h"
#include "rules.h"
#include "view.h"

typedef __u64 u64;
#include "unit.h"

#define S	1000000000LL

/* What a message says; of a colour by TCA_ABE_COLOUR_*. */
struct said {
	struct numbers	option, stat, colour[COLOURS];
	unsigned int	sojourns;
	bool		newer;
};

static void set(struct numbers *n, unsigned int attr, __u64 value)
{
	n->known |= 1ULL << attr;
	n->value[attr] = value;
}

/* A message of a quiet qdisc of today. */
static struct said today(void)
{
	struct said said = { .sojourns = TCA_ABE_SOJOURNS };

	set(&said.option, TCA_ABE_OFFSET_MAX, 100000);
	set(&said.option, TCA_ABE_ALPHA_MAX, 100 << 16);
	set(&said.stat, TCA_ABE_STATS_OFFSET, 30000);
	set(&said.stat, TCA_ABE_STATS_ALPHA, 3 << 15);
	set(&said.stat, TCA_ABE_STATS_MEMORY_USED, 1000);
	set(&said.stat, TCA_ABE_STATS_MEMORY_LIMIT, 32 << 20);
	for (int colour = 0; colour < COLOURS; colour++)
		for (unsigned int attr = TCA_ABE_COLOUR_ARRIVED; attr <= TCA_ABE_COLOUR_MAX; attr++)
			if (attr != TCA_ABE_COLOUR_SOJOURN)
				set(&said.colour[colour], attr, 0);
	return said;
}

static void put_all(struct nl_msg *msg, const struct numbers *n)
{
	for (unsigned int attr = 1; attr < ATTRS; attr++)
		if (n->known >> attr & 1)
			nla_put_u64(msg, attr, n->value[attr]);
}

static struct nl_msg *message(const struct said *said)
{
	struct tcmsg tcm = { .tcm_ifindex = 1, .tcm_handle = 0x100000, .tcm_parent = TC_H_ROOT };
	struct gnet_stats_basic basic = { .bytes = 1000, .packets = 10 };
	struct gnet_stats_queue queue = { .qlen = 3, .backlog = 3000, .drops = 2 };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWQDISC, 0);
	struct nlattr *stats, *app, *nest;
	__u64 sojourn[40] = { 5, 4, 3 };

	nlmsg_append(msg, &tcm, sizeof(tcm), NLMSG_ALIGNTO);
	nla_put_string(msg, TCA_KIND, "abe");
	nest = nla_nest_start(msg, TCA_OPTIONS);
	for (unsigned int attr = 1; attr < ATTRS; attr++)
		if (said->option.known >> attr & 1)
			nla_put_u32(msg, attr, said->option.value[attr]);
	nla_nest_end(msg, nest);
	stats = nla_nest_start(msg, TCA_STATS2);
	nla_put(msg, TCA_STATS_BASIC, sizeof(basic), &basic);
	nla_put(msg, TCA_STATS_QUEUE, sizeof(queue), &queue);
	app = nla_nest_start(msg, TCA_STATS_APP);
	nla_put_u32(msg, TCA_ABE_STATS_UNIT, TCA_ABE_UNIT_TIME);
	put_all(msg, &said->stat);
	for (int colour = 0; colour < COLOURS; colour++) {
		nest = nla_nest_start(msg, TCA_ABE_STATS_GREEN + colour);
		put_all(msg, &said->colour[colour]);
		if (said->sojourns)
			nla_put(msg, TCA_ABE_COLOUR_SOJOURN,
				said->sojourns * sizeof(*sojourn), sojourn);
		if (said->newer) {
			nla_put_u64(msg, 50, 1);
			nla_put_u64(msg, 5000, 1);
			nla_put_string(msg, 51, "what is it?");
		}
		nla_nest_end(msg, nest);
	}
	nla_nest_end(msg, app);
	nla_nest_end(msg, stats);
	return msg;
}

/* A reading with that message at a time. */
static void get(struct reading *reading, const struct said *said, __s64 time)
{
	struct nl_msg *msg = message(said);

	reading->qdiscs = 0;
	reading->time = time;
	reading->clock = time;
	decode_qdisc(reading, nlmsg_hdr(msg));
	nlmsg_free(msg);
}

/* What write() makes of a reading; to be freed. */
static char *written(const struct reading *reading, void (*write)(FILE *f, const struct reading *r))
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	write(f, reading);
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static unsigned int count(const char *text, char c)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

static void test_decode(void)
{
	struct reading reading = { 0 };
	struct said said = today();
	char *json, *csv, *head;
	size_t size;
	FILE *f = open_memstream(&head, &size);

	write_csv_head(f);
	fclose(f);
	set(&said.colour[GREEN], TCA_ABE_COLOUR_SENT, 4);
	set(&said.colour[GREEN], TCA_ABE_COLOUR_DELAY_SUM, 5000);
	get(&reading, &said, 1234567890123456789LL);
	json = written(&reading, write_json);
	ok(reading.qdiscs == 1 && strstr(json, "{\"time\":1234567890.123456,") == json &&
	   strstr(json, "\"dev\":\"lo\",\"handle\":\"10:\",\"parent\":\"root\"") &&
	   strstr(json, "\"bytes\":1000,\"packets\":10,\"drops\":2") &&
	   strstr(json, "\"alpha\":1.5,") && strstr(json, "\"offset_max\":100000") &&
	   strstr(json, "\"delay_mean\":1250.000,\"sojourn\":[5,4,3,0,"),
	   "a message of today: %s", json);
	free(json);
	csv = written(&reading, write_csv);
	ok(count(csv, ',') == count(head, ','), "a cell for each column: %u", count(csv, ','));
	free(csv);

	/* A qdisc without what came later, and without a colour's sum. */
	said.colour[GREEN].known &= ~(1ULL << TCA_ABE_COLOUR_EXCUSED);
	said.colour[GREEN].known &= ~(1ULL << TCA_ABE_COLOUR_DELAY_SUM);
	said.stat.known = 1ULL << TCA_ABE_STATS_ALPHA;
	said.sojourns = 0;
	get(&reading, &said, S);
	json = written(&reading, write_json);
	csv = written(&reading, write_csv);
	ok(!strstr(json, "memory") && !strstr(json, "sojourn") && strstr(json, "\"alpha\"") &&
	   count(json, '[') == 1 && strstr(strstr(json, "green"), "excused") > strstr(json, "blue"),
	   "an older one: what it has not is not there: %s", json);
	ok(count(csv, ',') == count(head, ','), "but its cells are: %s", csv);
	free(json);
	free(csv);

	said = today();
	said.sojourns = 40;
	said.newer = true;
	get(&reading, &said, S);
	json = written(&reading, write_json);
	ok(reading.qdisc[0]->sojourns[BLUE] == SOJOURNS && strstr(json, "\"green\":{\"arrived\":0"),
	   "a newer one: what is not known is passed over");
	free(json);
	free(head);
	free_reading(&reading);
}

/* Its memory is as long as it says: the sanitizer sees what goes beyond. */
static void decode_copy(struct reading *reading, const struct nlmsghdr *from, size_t len)
{
	struct nlmsghdr *copy = malloc(len);

	memcpy(copy, from, len);
	copy->nlmsg_len = len;
	decode_qdisc(reading, copy);
	free(copy);
}

/* The last attribute says that it is longer than the message. */
static void test_overlong(void)
{
	struct tcmsg tcm = { .tcm_ifindex = 1 };
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWQDISC, 0);
	struct reading reading = { 0 };
	struct nlattr *nest, *last;

	nlmsg_append(msg, &tcm, sizeof(tcm), NLMSG_ALIGNTO);
	nla_put_string(msg, TCA_KIND, "abe");
	nest = nla_nest_start(msg, TCA_OPTIONS);
	last = nla_reserve(msg, TCA_ABE_RATE, 0);
	last->nla_len += sizeof(__u64);
	nla_nest_end(msg, nest);
	decode_copy(&reading, nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len);
	ok(reading.qdiscs == 1 && !reading.qdisc[0]->option.known, "an attribute beyond the end");
	nlmsg_free(msg);
	free_reading(&reading);
}

static void test_damaged(void)
{
	struct said said = today();
	struct nl_msg *msg = message(&said);
	struct nlmsghdr *whole = nlmsg_hdr(msg);
	struct reading reading = { 0 };
	unsigned char *bytes = (unsigned char *)whole;
	unsigned int len = whole->nlmsg_len, qdiscs = 0;

	for (unsigned int n = sizeof(*whole); n <= len; n++) {
		reading.qdiscs = 0;
		decode_copy(&reading, whole, n);
		qdiscs += reading.qdiscs;
	}
	ok(qdiscs >= 1, "cut off at each of %u lengths: %u of them are a qdisc", len, qdiscs);
	srandom(1);
	for (int i = 0; i < 100000; i++) {
		unsigned int at = sizeof(*whole) + random() % (len - sizeof(*whole));
		unsigned char before = bytes[at];

		bytes[at] = random();
		reading.qdiscs = 0;
		decode_copy(&reading, whole, len);
		if (i % 2)
			bytes[at] = before;
		if (!(i % 100)) {
			struct nl_msg *again = message(&said);

			memcpy(whole, nlmsg_hdr(again), len);
			nlmsg_free(again);
		}
	}
	ok(true, "100000 of them with wrong bytes");
	nlmsg_free(msg);
	free_reading(&reading);
}

/* Which rule says something of what came in ten seconds; the first one. */
static const char *said_by(const struct said *from, const struct said *to, char words[WORDS])
{
	struct reading a = { 0 }, b = { 0 };
	const char *name = NULL;
	struct span span;

	get(&a, from, S);
	get(&b, to, 11 * S);
	span = (struct span){ *a.qdisc, *b.qdisc, 10 };
	for (const struct rule *rule = rules; rule->name && !name; rule++)
		if (rule->applies(&span, words))
			name = rule->name;
	free_reading(&a);
	free_reading(&b);
	return name;
}

static bool applied[32];	/* rules, by their number, that a test has seen apply */

/* Green and blue packets that came, of which all but so many green ones left. */
static struct said traffic(unsigned int green, unsigned int blue, unsigned int late)
{
	struct said said = today();

	set(&said.colour[GREEN], TCA_ABE_COLOUR_ARRIVED, green);
	set(&said.colour[GREEN], TCA_ABE_COLOUR_LATE_DROPS, late);
	set(&said.colour[GREEN], TCA_ABE_COLOUR_SENT, green - late);
	set(&said.colour[GREEN], TCA_ABE_COLOUR_BYTES, 200 * (green - late));
	set(&said.colour[BLUE], TCA_ABE_COLOUR_ARRIVED, blue);
	set(&said.colour[BLUE], TCA_ABE_COLOUR_SENT, blue);
	set(&said.colour[BLUE], TCA_ABE_COLOUR_BYTES, 1000 * blue);
	return said;
}

static void expect(const char *what, const struct said *to, const char *name, const char *part)
{
	struct said from = today(), unknown = *to;
	char words[WORDS] = "";
	const char *got = said_by(&from, to, words);

	ok(got ? name && !strcmp(got, name) && strstr(words, part) : !name, "%s: %s", what,
	   got ? words : "nothing");
	for (unsigned int i = 0; rules[i].name; i++)
		applied[i] |= got && !strcmp(got, rules[i].name);
	if (!name)
		return;
	memset(&unknown.option, 0, sizeof(unknown.option));
	memset(&unknown.stat, 0, sizeof(unknown.stat));
	memset(unknown.colour, 0, sizeof(unknown.colour));
	ok(!said_by(&from, &unknown, words), "%s, and the kernel does not tell: nothing", what);
}

static void test_rules(void)
{
	struct said said;
	unsigned int n, seen = 0;

	said = traffic(500, 500, 0);
	expect("calls and bulk", &said, NULL, NULL);
	said = traffic(10, 40, 5);
	expect("too little to judge by", &said, NULL, NULL);
	said = traffic(500, 500, 4);
	expect("a loss of 0.8 %", &said, NULL, NULL);

	said = traffic(500, 500, 60);
	set(&said.stat, TCA_ABE_STATS_OFFSET, 100000);
	expect("losses, D at its end", &said, "late_at_offset_max",
	       "green loses 12 % in the second stage: offset_max (100 ms)");
	said = traffic(500, 500, 60);
	expect("losses, D below it", &said, "late",
	       "green loses 12 % in the second stage: green_limit");
	said = traffic(500, 50, 0);
	expect("two thirds are green", &said, "mostly_green", "67 % of the bytes");
	said = traffic(500, 500, 0);
	set(&said.colour[BLUE], TCA_ABE_COLOUR_LIMIT_DROPS, 7);
	expect("a full buffer", &said, "full", "7 packets found");
	said = traffic(500, 500, 0);
	set(&said.stat, TCA_ABE_STATS_MEMORY_USED, 31 << 20);
	expect("little memory left", &said, "memory", "97 % of memory_limit (33.6 MB)");
	said = traffic(500, 500, 0);
	set(&said.stat, TCA_ABE_STATS_ALPHA, 100 << 16);
	expect("alpha at its end", &said, "alpha_max", "alpha_max (100)");
	said = traffic(0, 500, 0);
	expect("only blue", &said, "no_green", "no packet has been green");

	said = traffic(500, 500, 60);
	set(&said.stat, TCA_ABE_STATS_OFFSET, 100000);
	set(&said.stat, TCA_ABE_STATS_DRAIN_RATE, 125000);
	expect("losses, D at offset_max, but 30 packets are longer", &said, "late",
	       "green_limit");
	set(&said.stat, TCA_ABE_STATS_OFFSET, 363000);
	expect("losses, D as long as these", &said, "late_at_offset_max", "(363.36 ms)");
	said = traffic(20, 20, 0);
	set(&said.stat, TCA_ABE_STATS_ALPHA, 100 << 16);
	expect("alpha at its end, and next to no packets", &said, NULL, NULL);

	for (n = 0; rules[n].name; n++)
		seen += applied[n];
	ok(n && seen == n, "each of %u rules has applied", n);
}

static void test_history(void)
{
	struct reading reading = { 0 };
	struct history *all = NULL;
	struct said said = today();
	struct span span;

	for (int i = 0; i <= 300; i++) {
		said = traffic(5 * i, 10 * i, 0);
		set(&said.colour[GREEN], TCA_ABE_COLOUR_DELAY_SUM, 5 * i * 1500);
		get(&reading, &said, 100 * S + i * S / 10);
		history_add(&all, &reading, S);
		if (!i)
			ok(!get_span(all, S, &span), "one reading is no span");
	}
	ok(all && !all->next && all->points == 30, "30 s in slots of a second: %u", all->points);
	ok(get_span(all, S, &span) && fabs(span.seconds - 1) < 0.01 &&
	   fabs(growth(&span, GREEN, TCA_ABE_COLOUR_ARRIVED) - 50) < 1e-9, "the last second");
	ok(get_span(all, 10 * S, &span) && fabs(span.seconds - 10) < 0.01, "the last ten");
	ok(get_span(all, 100 * S, &span) && span.seconds > 10.5 && span.seconds < 12.5,
	   "no more than is kept: %g s", span.seconds);
	ok(all->point[29][CURVE_DELAY_GREEN] == 1500 && all->point[29][CURVE_DELAY_BLUE] == 0 &&
	   all->point[29][CURVE_QUEUE] == 3000 && all->point[29][CURVE_DROPS] == 0 &&
	   all->point[29][CURVE_ALPHA] == 1.5, "a point of the curves");

	said = traffic(1, 2, 0);
	get(&reading, &said, 131 * S);
	history_add(&all, &reading, S);
	ok(all->points == 0 && !get_span(all, S, &span), "counters that fell: another qdisc");
	said = traffic(60, 60, 30);
	get(&reading, &said, 132 * S);
	history_add(&all, &reading, S);
	said = traffic(1000, 1000, 10);
	get(&reading, &said, 133 * S);
	history_add(&all, &reading, S);
	ok(!get_span(all, S, &span), "one of them fell: another one, too");
	said = traffic(1100, 1000, 10);
	get(&reading, &said, 134 * S);
	reading.time = 5 * S;
	history_add(&all, &reading, S);
	ok(all->points == 1 && get_span(all, S, &span) && span.seconds == 1,
	   "a clock that is set back changes nothing");
	reading.qdiscs = 0;
	history_add(&all, &reading, S);
	ok(all && all->missed == 1, "a reading without it");
	history_add(&all, &reading, S);
	ok(!all, "and another one: it has gone");
	free_reading(&reading);
}

static void test_names(void)
{
	static const struct {
		const char *name, *json;
	} names[] = {
		{ "e\033[2J\001", "\"dev\":\"e\\u001b[2J\\u0001\"" },
		{ "a\"b\\c", "\"dev\":\"a\\\"b\\\\c\"" },
		{ "\xff\xc3", "\"dev\":\"\\ufffd\\ufffd\"" },
		{ "\xc3\xa4\xe2\x82\xac", "\"dev\":\"\xc3\xa4\xe2\x82\xac\"" },
	};
	struct reading reading = { 0 };
	struct said said = today();

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		char *json, parent[32];

		get(&reading, &said, S);
		strcpy(reading.qdisc[0]->dev, names[i].name);
		reading.qdisc[0]->parent = i + 1;
		json = written(&reading, write_json);
		ok(strstr(json, names[i].json), "%s", names[i].json);
		snprintf(parent, sizeof(parent), "\"parent\":\":%x\"", i + 1);
		ok(strstr(json, parent), "%s, as tc has it", parent);
		free(json);
	}
	free_reading(&reading);
}

/* A qdisc of which everything is known; amounts have a fraction that JSON can tell. */
static void get_all(struct reading *reading, unsigned int unit)
{
	static const struct field *const tables[] = {
		basic_fields, option_fields, stat_fields, colour_fields, colour_fields
	};
	struct said said = today();
	struct sample *s;

	get(reading, &said, 1234567890123456000LL);
	s = reading->qdisc[0];
	for (unsigned int i = 0; i < ARRAY_SIZE(tables); i++) {
		struct numbers *const nests[] = {
			&s->basic, &s->option, &s->stat, &s->colour[GREEN], &s->colour[BLUE]
		}, *numbers = nests[i];

		for (const struct field *field = tables[i]; field->name; field++) {
			__u64 value = random();

			if (field->form == FORM_NAME)
				value %= 2;
			else if (field->form == FORM_Q32)
				value = value << 24 & ~0ULL << 16;
			else if (field->form == FORM_COUNT)
				value *= value;
			set(numbers, field->attr, value);
		}
	}
	set(&s->option, TCA_ABE_UNIT, unit);
	set(&s->stat, TCA_ABE_STATS_UNIT, unit);
	/* Bits that no name stands for are not written. */
	set(&s->option, TCA_ABE_FLAGS, TCA_ABE_F_GENTLE | TCA_ABE_F_ECN | TCA_ABE_F_SPLIT_GSO);
	for (unsigned int i = 0; i < TCA_ABE_SOJOURNS; i++)
		s->sojourn[BLUE][i] = random();
}

/* A file with that text; its name is the same each time. */
static const char *file_with(const char *text, size_t size)
{
	static char name[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("file", 0);
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, text, size, 0) != (ssize_t)size)
		die_errno("%s", name);
	return name;
}

static bool are_equal(const struct numbers *a, const struct numbers *b)
{
	for (unsigned int attr = 0; attr < ATTRS; attr++)
		if ((a->known ^ b->known) >> attr & 1 ||
		    (a->known >> attr & 1 && a->value[attr] != b->value[attr]))
			return false;
	return true;
}

static bool is_wanted(const char *dev)
{
	return !strcmp(dev, "lo");
}

static void test_replay(void)
{
	struct reading reading = { 0 }, again = { .wanted = is_wanted };
	const struct sample *s, *t;
	char *text, *second;
	FILE *f;
	size_t size;

	for (unsigned int unit = 0; unit <= TCA_ABE_UNIT_PACKETS; unit++) {
		f = open_memstream(&text, &size);
		get_all(&reading, unit);
		write_json(f, &reading);
		strcpy(reading.qdisc[0]->dev, "other");
		write_json(f, &reading);
		reading.time -= 3600 * S;
		strcpy(reading.qdisc[0]->dev, "lo");
		write_json(f, &reading);
		fclose(f);
		open_replay(file_with(text, size));
		ok(read_replay(&again) && again.qdiscs == 1 && again.time == 1234567890123456000LL,
		   "unit %u: a recording is read", unit);
		s = reading.qdisc[0];
		t = again.qdisc[0];
		second = written(&again, write_json);
		ok(!strncmp(second, text, strlen(second)) && text[strlen(second)] == '\n',
		   "and written as it was: %s", second);
		free(second);
		/* What has no key where the unit is packets. */
		if (unit != TCA_ABE_UNIT_PACKETS)
			ok(are_equal(&s->stat, &t->stat), "the same statistics");
		ok(are_equal(&s->basic, &t->basic) && are_equal(&s->option, &t->option) &&
		   are_equal(&s->colour[GREEN], &t->colour[GREEN]) &&
		   are_equal(&s->colour[BLUE], &t->colour[BLUE]) &&
		   !memcmp(s->sojourn[BLUE], t->sojourn[BLUE], sizeof(*s->sojourn)),
		   "the same numbers");
		ok(s->handle == t->handle && s->parent == t->parent && t->ifindex == 1,
		   "the same qdisc");
		ok(read_replay(&again) && !again.qdiscs, "another device's is not wanted");
		ok(read_replay(&again) && again.qdiscs == 1 && again.qdisc[0]->ifindex == 1 &&
		   again.time == reading.time && again.clock == 1234567890123456000LL,
		   "the clock was set back: time does not go back");
		ok(!read_replay(&again), "its end");
		close_replay();
		free(text);
	}
	free_reading(&reading);
	free_reading(&again);
}

/* What it says of a file; "": it is one that can be read. NULL: it crashed. */
static const char *read_all(const char *path)
{
	static char said[1000];
	struct reading reading = { 0 };
	int pipes[2], status;
	ssize_t n = 0;
	size_t size;
	pid_t child;

	fflush(stdout);
	if (pipe(pipes))
		return NULL;
	child = fork();
	if (!child) {
		dup2(pipes[1], STDERR_FILENO);
		open_replay(path);
		while (read_replay(&reading))
			;
		_exit(0);
	}
	close(pipes[1]);
	for (size = 0; size < sizeof(said) - 1; size += n) {
		n = read(pipes[0], said + size, sizeof(said) - 1 - size);
		if (n <= 0)
			break;
	}
	close(pipes[0]);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 1 ||
	    n < 0 || (size && strncmp(said, "test_abemon: /", 14)))
		return NULL;
	said[size] = '\0';
	return said;
}

#define READING(time)	"{\"time\":" time ",\"qdiscs\":[]}\n"
#define A_LONG		"{\"time\":1,\"qdiscs\":[{\"dev\":\"a much longer name than there is\","
#define NEWER		"\"options\":{\"unit\":\"furlongs\",\"weight\":\"auto\",\"new\":[1]},"
#define IDS		"\"handle\":\"1:\",\"parent\":\":2\","
#define A_QDISC		"{\"time\":1,\"qdiscs\":[{\"dev\":\"a\",\"handle\":\"1:\",\"parent\":\"root\","

static void test_replay_damaged(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "what is it?\n", "line 1: unexpected character" },
		{ "{}\n", "line 1: not of abemon" },
		{ "[1]\n", "line 1: not of abemon" },
		{ "{\"qdiscs\":[]}\n", "line 1: not of abemon" },
		{ READING("1") READING("\"1\""), "line 2: \"time\" is" },
		{ "{\"time\":1,\"qdiscs\":[7]}\n", "\"qdiscs\" is" },
		{ "{\"time\":1,\"qdiscs\":[{}]}\n", "\"dev\" is" },
		{ "{\"time\":1,\"qdiscs\":[{\"dev\":\"a\"}]}\n", "\"handle\" is" },
		{ A_QDISC "\"qlen\":-1}]}\n",
		  "\"qlen\" is" },
		{ A_QDISC "\"alpha\":\"x\"}]}\n",
		  "\"alpha\" is" },
		{ A_QDISC "\"green\":{\"sojourn\":[1,-2]}}]}\n",
		  "\"sojourn\" is" },
		{ "{\"time\":1,\"qdiscs\":[]}\n{\"time\":2,\"qdi", "line 2: cut off" },
		{ "", "" },
		{ "null\n", "line 1: not of abemon" },
		{ "{\"time\":1,\"qdiscs\":[]} more\n", "line 1: something is behind" },
		{ "{\"time\":1,\"qdiscs\":[]}\n\n", "line 2: cut off" },
		{ READING("4e9") READING("0") READING("9e9") READING("0") READING("9e9"),
		  "line 5: \"time\" is" },
		{ A_LONG IDS NEWER "\"blue\":{\"sojourn\":[1]}}]}\n", "" },
	};
	struct reading reading = { 0 };
	unsigned int crashes = 0, lines = 0;
	const char *said;
	char *text;
	size_t size;
	FILE *f;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		said = read_all(file_with(bad[i].text, strlen(bad[i].text)));
		ok(said && (*bad[i].says ? !!strstr(said, bad[i].says) : !*said) &&
		   count(said, '\n') <= 1, "damage %u: \"%s\", %.*s", i, bad[i].says,
		   said ? (int)strcspn(said, "\n") : 0, said);
	}
	said = read_all("/dev/zero");
	ok(said && strstr(said, "/dev/zero, line 1: not of abemon"), "/dev/zero");
	said = read_all("/");
	ok(said && strstr(said, "/: Is a directory"), "a directory");
	said = read_all("/nonexistent");
	ok(said && strstr(said, "/nonexistent: No such file"), "no file");

	f = open_memstream(&text, &size);
	get_all(&reading, TCA_ABE_UNIT_TIME);
	write_json(f, &reading);
	fclose(f);
	for (unsigned int i = 0; i < 300; i++) {
		char *copy = memcpy(malloc(size), text, size);

		if (i < 100)
			copy[size * i / 100] = '\n';
		else
			for (unsigned int j = 0; j < 1 + i % 3; j++)
				copy[random() % size] =
					i % 2 ? random() : "0{}[]\",:-9e"[random() % 11];
		said = read_all(file_with(copy, size));
		crashes += !said;
		lines += said && count(said, '\n') > 1;
		free(copy);
	}
	ok(!crashes && !lines, "300 damaged files: %u crashes, %u said more than a line", crashes,
	   lines);
	free(text);
	free_reading(&reading);
}

static char *metrics_of(const struct reading *reading, bool open)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	write_metrics(f, reading, open);
	fclose(f);
	return text;
}

/* Lines that are not comments. */
static unsigned int samples(const char *text)
{
	unsigned int n = 0;

	for (; *text; text = strchr(text, '\n') + 1)
		n += *text != '#';
	return n;
}

/* A number that --json has is among the metrics, too, unless it is a sum of such. */
static void test_metrics_complete(void)
{
	static const char *const sums[] = {
		"bytes", "packets", "drops", "overlimits", "backlog", "qlen"
	};
	const struct field *const tables[] = { basic_fields, stat_fields, colour_fields };
	struct reading reading = { 0 };
	struct said said = today();

	get(&reading, &said, S);
	for (unsigned int i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct field *field = tables[i]; field->name; field++) {
			struct sample *s = reading.qdisc[0];
			unsigned int n, is_sum = 0;
			char *text;

			for (unsigned int j = 0; i == 0 && j < ARRAY_SIZE(sums); j++)
				is_sum |= !strcmp(field->name, sums[j]);
			memset(&s->basic, 0, sizeof(*s) - offsetof(struct sample, basic));
			set(i == 0 ? &s->basic : i == 1 ? &s->stat : &s->colour[BLUE],
			    field->attr, 7);
			text = metrics_of(&reading, true);
			n = samples(text);
			ok(n == 2 - is_sum, "%s: %u sample besides the words", field->name, n - 1);
			free(text);
		}
	free_reading(&reading);
}

static void test_metrics(void)
{
	struct reading reading = { 0 };
	char *text;

	get_all(&reading, TCA_ABE_UNIT_TIME);
	strcpy(reading.qdisc[0]->dev, "a\"\\\n\xff");
	set(&reading.qdisc[0]->colour[BLUE], TCA_ABE_COLOUR_DELAY_SUM, 12003456);
	set(&reading.qdisc[0]->stat, TCA_ABE_STATS_ALPHA, 3 << 15);
	text = metrics_of(&reading, true);
#define LABELS	"device=\"a\\\"\\\\\\n\xef\xbf\xbd\",handle=\"10:\",parent=\"root\""
	ok(strstr(text, "\nabe_delay_seconds_total{" LABELS ",colour=\"blue\"} 12.003456\n"),
	   "seconds, labels");
	ok(strstr(text, "# TYPE abe_alpha gauge\n# HELP abe_alpha ") &&
	   strstr(text, "\nabe_alpha{" LABELS "} 1.5\n"),
	   "a ratio");
	ok(strstr(text, "# TYPE abe_sent_bytes counter\n# UNIT abe_sent_bytes bytes\n"
			"# HELP abe_sent_bytes Bytes") &&
	   strstr(text, "\nabe_sent_bytes_total{"), "a counter, in OpenMetrics");
	ok(strstr(text, "\nabe_sojourn_seconds_bucket{" LABELS
			",colour=\"green\",le=\"6.4e-05\"} 5\n") &&
	   strstr(text, "le=\"0.000128\"} 9\n") && strstr(text, "le=\"1.048576\"} 12\n") &&
	   strstr(text, "le=\"+Inf\"} 12\n"), "a histogram adds up");
	ok(strstr(text, "\nabe_info{" LABELS ",unit=\"time\",") && strstr(text, "gentle=\"on\"") &&
	   strstr(text, "flat=\"off\""), "words");
	ok(strlen(text) > 6 && !strcmp(text + strlen(text) - 6, "# EOF\n"), "it has an end");
	ok(strstr(text, "\nabe_average_queue_bytes{") &&
	   !strstr(text, "\nabe_average_queue_packets{"),
	   "amounts are bytes");
	free(text);
	text = metrics_of(&reading, false);
	ok(strstr(text, "# TYPE abe_sent_bytes_total counter\n# HELP abe_sent_bytes_total Bytes") &&
	   strstr(text, "# TYPE abe_info gauge\n") && !strstr(text, "# UNIT") &&
	   !strstr(text, "# EOF"),
	   "the older format");
	free(text);
	get_all(&reading, TCA_ABE_UNIT_PACKETS);
	text = metrics_of(&reading, true);
	ok(!strstr(text, "\nabe_average_queue_bytes{") &&
	   strstr(text, "\nabe_average_queue_packets{") &&
	   !strstr(text, "\nabe_limit_bytes{"), "amounts are packets");
	free(text);
	reading.qdiscs = 0;
	text = metrics_of(&reading, true);
	ok(!samples(text), "no qdisc: no sample");
	free(text);
	free_reading(&reading);
}

static void test_hour(void)
{
	struct reading reading = { 0 };
	int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);

	fflush(stdout);
	dup2(null, STDOUT_FILENO);
	view_start(false, S);
	for (int i = 0; i < 3600; i++) {
		struct said said = traffic(50 * (i % 1000), 100 * (i % 1000), i % 100);

		get(&reading, &said, (1000 + i) * S);
		/* a name may be anything but a slash */
		if (i % 50 == 7)
			strcpy(reading.qdisc[0]->dev, "\033[2J\"\\,\xff\xff");
		if (i % 100 == 8)
			reading.qdiscs = 0;
		view_add(&reading);
	}
	view_end();
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(null);
	ok(true, "an hour of readings");
	free_reading(&reading);
}

/* What a view that is no terminal prints of one reading. */
static char *printed(struct said *said)
{
	struct reading reading = { 0 };
	int out = dup(STDOUT_FILENO), file = memfd_create("printed", 0);
	char *text = calloc(1, 10000);

	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	view_start(false, S);
	get(&reading, said, 1000 * S);
	view_add(&reading);
	view_end();
	dup2(out, STDOUT_FILENO);
	if (pread(file, text, 9999, 0) < 0)
		*text = '\0';
	close(out);
	close(file);
	free_reading(&reading);
	return text;
}

/* Of 12 packets 5 were queued for less than 64 us, 4 for less than 128, 3 for less than 256. */
static void test_times(void)
{
	struct said said = today();
	char *text = printed(&said);

	ok(strstr(text, "\ngreen  █▇▅              half below 0.128 ms, 99 % below 0.256\n"),
	   "times queued");
	free(text);
	said.sojourns = 2;
	text = printed(&said);
	ok(strstr(text, "half below 0.064 ms, 99 % below -\n"),
	   "the last step has no end");
	free(text);
	said.sojourns = 0;
	text = printed(&said);
	ok(strstr(text, "\nblue   this module does not count times queued"),
	   "an older module says so");
	free(text);
}

static char screen[1 << 20];

/* All that has been written to a terminal. */
static void read_screen(int master)
{
	ssize_t n, sum = 0;

	fcntl(master, F_SETFL, O_NONBLOCK);
	while ((n = read(master, screen + sum, sizeof(screen) - 1 - sum)) > 0)
		sum += n;
	screen[sum] = '\0';
}

/* On a pseudo-terminal, in a locale with blocks to draw curves with; @die: then it fails. */
static bool run_live(int columns, bool fail)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	struct reading reading = { 0 };
	bool ended = false;
	int master, status;
	pid_t child;

	fflush(stdout);
	child = forkpty(&master, NULL, NULL, &size);
	if (child < 0)
		return false;
	if (!child) {
		view_start(true, S);
		for (int i = 0; i < 6; i++) {
			struct said said = traffic(50000 * i, 100 * i * i, 0);

			get(&reading, &said, (1000 + i) * S);
			strcpy(reading.qdisc[0]->dev, "l\xc2\x9b\033\xff");
			view_add(&reading);
			usleep(300000);
		}
		if (fail)
			die("that was it");
		ended = view_ended(POLLIN);
		free_reading(&reading);
		exit(ended ? 0 : 3);
	}
	if (write(master, "xq", 2) != 2)
		return false;
	waitpid(child, &status, 0);
	read_screen(master);
	close(master);
	return WIFEXITED(status) && WEXITSTATUS(status) == fail;
}

static void test_live(void)
{
	static const char end[] = "\033[?25h\033[?1049l";
	const char *last;

	ok(run_live(90, false), "q ends it");
	ok(strstr(screen, "l??? 10: root") && strstr(screen, "\033[?25l"),
	   "a view, of a device with an odd name");
	ok(strstr(screen, "\033[Kalpha  █████ ") && strstr(screen, " max 1.5"),
	   "with curves of blocks");
	last = strstr(screen, end);
	ok(last && !last[strlen(end)], "its end is that of the terminal's text");
	ok(run_live(80, false), "of 80 columns");
	ok(strstr(screen, " marks excused") && strstr(screen, "green       50 k      80 M       0"),
	   "no figure is cut");
	ok(run_live(90, true), "an error ends it");
	last = strstr(screen, end);
	ok(last && strstr(last, "that was it"), "and is written where it can be seen");
}

int main(void)
{
	ok(setlocale(LC_CTYPE, "C.UTF-8"), "a locale");
	test_decode();
	test_overlong();
	test_damaged();
	test_rules();
	test_history();
	test_names();
	test_replay();
	test_replay_damaged();
	test_metrics_complete();
	test_metrics();
	test_hour();
	test_times();
	test_live();
	return unit_end();
}
