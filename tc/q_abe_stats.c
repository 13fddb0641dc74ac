// SPDX-License-Identifier: GPL-2.0
/*
 * Alternative Best-Effort, tc plugin: the statistics of qdisc and classes.
 *
 * JSON has every digit, text what a reader wants. Newer kernels may send more and
 * older ones less: what is not known or not there is not printed.
 */
#include <string.h>

#include "q_abe.h"

#define SOJOURN_US	64	/* the first element is below this, each next one twice */
#define SOJOURNS	32	/* most that are printed; a kernel may have more than today's */

/* A number of the statistics, as JSON and as text. */
struct words {
	char json[ABE_TEXT];
	char text[ABE_TEXT];
};

/* Write a number out; the unit is what the qdisc counts in. */
typedef void write_fn(struct words *w, __u64 value, __u32 unit);

static void write_count(struct words *w, __u64 value, __u32 unit)
{
	(void)unit;
	abe_number_text(w->json, value);
	abe_number_text(w->text, value);
}

static void write_delay(struct words *w, __u64 us, __u32 unit)
{
	(void)unit;
	abe_number_text(w->json, us);
	abe_time_text(w->text, us);
}

static void write_bytes(struct words *w, __u64 bytes, __u32 unit)
{
	(void)unit;
	abe_number_text(w->json, bytes);
	abe_size_text(w->text, bytes);
}

static void write_fixed(struct words *w, __u64 value, unsigned int bits)
{
	abe_fixed_text(w->json, value, bits);
	snprintf(w->text, sizeof(w->text), "%.4g", (double)value / (1ULL << bits));
}

static void write_q16(struct words *w, __u64 value, __u32 unit)
{
	(void)unit;
	write_fixed(w, value, 16);
}

static void write_q31(struct words *w, __u64 value, __u32 unit)
{
	(void)unit;
	write_fixed(w, value, 31);
}

static char unit_letter(__u32 unit)
{
	return unit == TCA_ABE_UNIT_PACKETS ? 'p' : 'b';
}

static void write_amount(struct words *w, __u64 value, __u32 unit)
{
	abe_number_text(w->json, value);
	snprintf(w->text, sizeof(w->text), "%llu%c", (unsigned long long)value,
		 unit_letter(unit));
}

/* An amount with 32 fraction bits. */
static void write_average(struct words *w, __u64 value, __u32 unit)
{
	double real = value / 4294967296.0;

	snprintf(w->json, sizeof(w->json), "%.15g", real);
	snprintf(w->text, sizeof(w->text), "%.1f%c", real, unit_letter(unit));
}

/* JSON has bytes/s, as everywhere in tc; text has bits/s. */
static void write_rate(struct words *w, __u64 rate, __u32 unit)
{
	(void)unit;
	abe_number_text(w->json, rate);
	if (rate < 125000)
		snprintf(w->text, sizeof(w->text), "%.4gKbit", rate / 125.0);
	else if (rate < 125000000)
		snprintf(w->text, sizeof(w->text), "%.4gMbit", rate / 125000.0);
	else
		snprintf(w->text, sizeof(w->text), "%.4gGbit", rate / 125000000.0);
}

/* The numbers of a qdisc, in lines. */
#define STAT(name, number, how) { name, TCA_ABE_STATS_##number, write_##how, 0, 0, 0 }
static const struct stat {
	const char *name;
	unsigned short attr;
	write_fn *write;
	bool begins;	/* a line */
	bool measured;	/* by the loop: before its first update this is where it starts from */
	bool no_packets;	/* with them it is the option's value */
} stats[] = {
	{ "alpha", TCA_ABE_STATS_ALPHA, write_q16, true, false, false },
	STAT("alpha_target", ALPHA_TARGET, q16),
	STAT("offset", OFFSET, delay),
	STAT("average", AVERAGE, average),
	STAT("probability", PROBABILITY, q31),
	STAT("green_ahead", GREEN_AHEAD, amount),
	{ "updates", TCA_ABE_STATS_UPDATES, write_count, true, false, false },
	STAT("green_share", GREEN_SHARE, q31),
	STAT("drain_rate", DRAIN_RATE, rate),
	{ "limit_bytes", TCA_ABE_STATS_LIMIT, write_amount, false, false, true },
	{ "green_limit_bytes", TCA_ABE_STATS_GREEN_LIMIT, write_amount, false, false, true },
	{ "loss_blue", TCA_ABE_STATS_LOSS_BLUE, write_q31, true, true, false },
	{ "loss_green_early", TCA_ABE_STATS_LOSS_GREEN_EARLY, write_q31, false, true, false },
	{ "loss_green_late", TCA_ABE_STATS_LOSS_GREEN_LATE, write_q31, false, true, false },
	{ "delay_blue", TCA_ABE_STATS_DELAY_BLUE, write_delay, false, true, false },
	{ "delay_green", TCA_ABE_STATS_DELAY_GREEN, write_delay, false, true, false },
	{ "memory_used", TCA_ABE_STATS_MEMORY_USED, write_bytes, true, false, false },
	STAT("memory_max", MEMORY_MAX, bytes),
	STAT("memory_limit", MEMORY_LIMIT, bytes),
};

/* A colour's, in the order they are printed. */
#define COUNTER(name, number, how) { name, TCA_ABE_COLOUR_##number, write_##how }
static const struct counter {
	const char *name;
	unsigned short attr;
	write_fn *write;	/* NULL: the mean */
} counters[] = {
	COUNTER("arrived", ARRIVED, count),
	COUNTER("sent", SENT, count),
	COUNTER("bytes", BYTES, count),
	COUNTER("qlen", QLEN, count),
	COUNTER("backlog", BACKLOG, count),
	COUNTER("early_drops", EARLY_DROPS, count),
	COUNTER("late_drops", LATE_DROPS, count),
	COUNTER("limit_drops", LIMIT_DROPS, count),
	COUNTER("marks", MARKS, count),
	COUNTER("excused", EXCUSED, count),
	COUNTER("delay_max", DELAY_MAX, delay),
	{ "delay_mean", TCA_ABE_COLOUR_DELAY_SUM, NULL },
};

#define COUNTERS_A_LINE	6

static bool get_u64(struct rtattr *tb[], int attr, __u64 *value)
{
	if (!tb[attr] || RTA_PAYLOAD(tb[attr]) < sizeof(*value))
		return false;
	memcpy(value, RTA_DATA(tb[attr]), sizeof(*value));
	return true;
}

static __u32 get_word(struct rtattr *tb[], int attr)
{
	__u32 value = UINT32_MAX;

	if (tb[attr] && RTA_PAYLOAD(tb[attr]) >= sizeof(value))
		memcpy(&value, RTA_DATA(tb[attr]), sizeof(value));
	return value;
}

static void parse_nest(struct rtattr *tb[], int max, struct rtattr *nest)
{
	memset(tb, 0, sizeof(*tb) * (max + 1));
	if (nest)
		parse_rtattr_flags(tb, max, RTA_DATA(nest), RTA_PAYLOAD(nest),
				   NLA_F_NESTED);
}

static bool write_counter(struct words *w, struct rtattr *tb[], const struct counter *c)
{
	__u64 value, sent;

	if (!get_u64(tb, c->attr, &value))
		return false;
	if (c->write) {
		c->write(w, value, 0);
		return true;
	}
	if (!get_u64(tb, TCA_ABE_COLOUR_SENT, &sent))
		return false;
	snprintf(w->json, sizeof(w->json), "%.3f", sent ? (double)value / sent : 0);
	abe_time_text(w->text, sent ? value / sent : 0);
	return true;
}

/* How many sojourn times the kernel tells apart, and how often they came. */
static unsigned int get_sojourns(struct rtattr *tb[], __u64 counts[SOJOURNS])
{
	const struct rtattr *attr = tb[TCA_ABE_COLOUR_SOJOURN];
	size_t n = attr ? RTA_PAYLOAD(attr) / sizeof(*counts) : 0;

	memset(counts, 0, sizeof(*counts) * SOJOURNS);
	if (n > SOJOURNS)
		n = SOJOURNS;
	if (n)
		memcpy(counts, RTA_DATA(attr), n * sizeof(*counts));
	return n;
}

/* "<64us"; the last one of @n is of all that is longer. */
static const char *sojourn_text(char *buf, unsigned int i, unsigned int n)
{
	char time[ABE_TEXT];
	bool last = i && i == n - 1;

	abe_time_text(time, (__u64)SOJOURN_US << (last ? i - 1 : i));
	snprintf(buf, ABE_TEXT, "%s%.20s", last ? ">=" : "<", time);
	return buf;
}

static void print_sojourns_json(struct rtattr *tb[])
{
	__u64 counts[SOJOURNS];
	unsigned int i, n = get_sojourns(tb, counts);

	if (!n)
		return;
	open_json_array(PRINT_JSON, "sojourn");
	for (i = 0; i < n; i++)
		print_color_u64(PRINT_JSON, COLOR_NONE, NULL, NULL, counts[i]);
	close_json_array(PRINT_JSON, NULL);
}

static void print_sojourns_line(struct rtattr *tb[])
{
	__u64 counts[SOJOURNS];
	unsigned int i, n = get_sojourns(tb, counts);
	char label[ABE_TEXT], buf[ABE_TEXT];

	if (!n)
		return;
	print_nl();
	abe_print_text("  sojourn ");
	for (i = 0; i < n; i++)
		if (counts[i])
			abe_print_number(sojourn_text(label, i, n), "",
					 abe_number_text(buf, counts[i]));
}

/* In JSON an object; as text some lines. */
static void print_colour(const char *key, struct rtattr *nest)
{
	struct rtattr *tb[TCA_ABE_COLOUR_MAX + 1];
	struct words w;
	size_t i;

	parse_nest(tb, TCA_ABE_COLOUR_MAX, nest);
	open_json_object(key);
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (i && !(i % COUNTERS_A_LINE))
			print_nl();
		if (!(i % COUNTERS_A_LINE))
			abe_print_text("  ");
		if (write_counter(&w, tb, &counters[i]))
			abe_print_number(counters[i].name, w.json, w.text);
	}
	if (is_json_context())
		print_sojourns_json(tb);
	else
		print_sojourns_line(tb);
	close_json_object();
}

static void print_row(const char *name, const char *green, const char *blue)
{
	char line[4 * ABE_TEXT];

	print_nl();
	snprintf(line, sizeof(line), "  %-12s %15s %15s", name, green, blue);
	abe_print_text(line);
}

/* The numbers of both colours as text, side by side. */
static void print_table(struct rtattr *green_nest, struct rtattr *blue_nest)
{
	struct rtattr *green[TCA_ABE_COLOUR_MAX + 1], *blue[TCA_ABE_COLOUR_MAX + 1];
	__u64 g[SOJOURNS], b[SOJOURNS];
	unsigned int first = 0, n, end;
	struct words gw, bw;
	char label[ABE_TEXT];
	size_t i;

	parse_nest(green, TCA_ABE_COLOUR_MAX, green_nest);
	parse_nest(blue, TCA_ABE_COLOUR_MAX, blue_nest);
	print_row("", "green", "blue");
	for (i = 0; i < ARRAY_SIZE(counters); i++)
		if (write_counter(&gw, green, &counters[i]) &&
		    write_counter(&bw, blue, &counters[i]))
			print_row(counters[i].name, gw.text, bw.text);

	n = get_sojourns(green, g);
	if (get_sojourns(blue, b) != n)
		return;
	for (end = n; end && !g[end - 1] && !b[end - 1]; end--)
		;
	while (first < end && !g[first] && !b[first])
		first++;
	if (first < end) {
		print_nl();
		abe_print_text("  sojourn");
	}
	for (; first < end; first++)
		print_row(sojourn_text(label, first, n), abe_number_text(gw.text, g[first]),
			  abe_number_text(bw.text, b[first]));
}

static void print_qdisc(struct rtattr *tb[])
{
	__u32 unit = get_word(tb, TCA_ABE_STATS_UNIT);
	__u64 value, updates = 0;
	const struct stat *s;
	bool begun = false;
	struct words w;

	get_u64(tb, TCA_ABE_STATS_UPDATES, &updates);
	for (s = stats; s < stats + ARRAY_SIZE(stats); s++) {
		if (!get_u64(tb, s->attr, &value) ||
		    (s->no_packets && unit == TCA_ABE_UNIT_PACKETS) ||
		    (s->measured && !updates && !is_json_context()))
			continue;
		if (s->begins && begun)
			print_nl();
		if (s->begins)
			abe_print_text("  ");
		begun = true;
		s->write(&w, value, unit);
		abe_print_number(s->name, w.json, w.text);
	}
	if (!tb[TCA_ABE_STATS_GREEN] || !tb[TCA_ABE_STATS_BLUE])
		return;
	if (is_json_context()) {
		print_colour("green", tb[TCA_ABE_STATS_GREEN]);
		print_colour("blue", tb[TCA_ABE_STATS_BLUE]);
	} else {
		print_table(tb[TCA_ABE_STATS_GREEN], tb[TCA_ABE_STATS_BLUE]);
	}
}

/**
 * abe_print_stats() - print TCA_STATS_APP of a qdisc or of a class
 * @xstats: the attribute
 *
 * A class's numbers stand in an object of their own in JSON, because tc has
 * "bytes", "qlen" and "backlog" already.
 */
void abe_print_stats(struct rtattr *xstats)
{
	struct rtattr *tb[TCA_ABE_STATS_MAX + 1];

	parse_nest(tb, TCA_ABE_STATS_MAX, xstats);
	switch (get_word(tb, TCA_ABE_STATS_TYPE)) {
	case TCA_ABE_STATS_TYPE_QDISC:
		print_qdisc(tb);
		break;
	case TCA_ABE_STATS_TYPE_CLASS:
		if (tb[TCA_ABE_STATS_COLOUR])
			print_colour("colour", tb[TCA_ABE_STATS_COLOUR]);
		break;
	}
}
