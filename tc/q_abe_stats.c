// SPDX-License-Identifier: GPL-2.0
/*
 * Alternative Best-Effort, tc plugin: the statistics of qdisc and classes.
 *
 * JSON has every digit, text what a reader wants.
 */
#include <stddef.h>
#include <string.h>

#include "q_abe.h"

/* A colour's counters, in the order they are printed. */
static const struct {
	const char *name;
	size_t offset;
} counters[] = {
#define COUNTER(name) { #name, offsetof(struct tc_abe_colour, name) }
	COUNTER(arrived),
	COUNTER(sent),
	COUNTER(bytes),
	COUNTER(qlen),
	COUNTER(backlog),
	COUNTER(early_drops),
	COUNTER(late_drops),
	COUNTER(limit_drops),
	COUNTER(marks),
	COUNTER(delay_max),
};

static const char *counter_text(char *buf, const struct tc_abe_colour *colour,
				size_t i)
{
	size_t offset = counters[i].offset;
	__u64 value;

	memcpy(&value, (const char *)colour + offset, sizeof(value));
	if (offset == offsetof(struct tc_abe_colour, delay_max) &&
	    !is_json_context())
		return abe_time_text(buf, value);
	return abe_number_text(buf, value);
}

/* In JSON an object; as text two lines. */
static void print_colour(const char *key, const struct tc_abe_colour *colour)
{
	char buf[ABE_TEXT];
	size_t i;

	open_json_object(key);
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		if (i == ARRAY_SIZE(counters) / 2)
			print_nl();
		if (!(i % (ARRAY_SIZE(counters) / 2)))
			abe_print_text("  ");
		counter_text(buf, colour, i);
		abe_print_number(counters[i].name, buf, buf);
	}
	close_json_object();
}

/* The counters of both colours as text, side by side. */
static void print_table(const struct tc_abe_xstats *st)
{
	char green[ABE_TEXT], blue[ABE_TEXT], line[4 * ABE_TEXT];
	size_t i;

	print_nl();
	snprintf(line, sizeof(line), "  %-12s %15s %15s", "", "green", "blue");
	abe_print_text(line);
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		print_nl();
		snprintf(line, sizeof(line), "  %-12s %15s %15s",
			 counters[i].name,
			 counter_text(green, &st->green, i),
			 counter_text(blue, &st->blue, i));
		abe_print_text(line);
	}
}

static void print_ratio(const char *key, __u32 value, unsigned int bits)
{
	char json[ABE_TEXT], text[ABE_TEXT];

	snprintf(text, sizeof(text), "%.4g", (double)value / (1ULL << bits));
	abe_print_number(key, abe_fixed_text(json, value, bits), text);
}

static void print_delay(const char *key, __u32 us)
{
	char json[ABE_TEXT], text[ABE_TEXT];

	abe_print_number(key, abe_number_text(json, us),
			 abe_time_text(text, us));
}

/* Bytes, or packets if that is the unit. */
static void print_amount(const char *key, __u64 value, __u32 unit)
{
	char json[ABE_TEXT], text[ABE_TEXT];

	snprintf(text, sizeof(text), "%llu%c", (unsigned long long)value,
		 unit == TCA_ABE_UNIT_PACKETS ? 'p' : 'b');
	abe_print_number(key, abe_number_text(json, value), text);
}

/* Likewise, with 32 fraction bits. */
static void print_average(__u64 average, __u32 unit)
{
	char json[ABE_TEXT], text[ABE_TEXT];
	double real = average / 4294967296.0;

	snprintf(json, sizeof(json), "%.15g", real);
	snprintf(text, sizeof(text), "%.1f%c", real,
		 unit == TCA_ABE_UNIT_PACKETS ? 'p' : 'b');
	abe_print_number("average", json, text);
}

/* JSON has bytes/s, as everywhere in tc; text has bits/s. */
static void print_drain_rate(__u64 rate)
{
	char json[ABE_TEXT], text[ABE_TEXT];

	if (rate < 125000)
		snprintf(text, sizeof(text), "%.4gKbit", rate / 125.0);
	else if (rate < 125000000)
		snprintf(text, sizeof(text), "%.4gMbit", rate / 125000.0);
	else
		snprintf(text, sizeof(text), "%.4gGbit", rate / 125000000.0);
	abe_print_number("drain_rate", abe_number_text(json, rate), text);
}

static void print_bytes(const char *key, __u64 value)
{
	char json[ABE_TEXT], text[ABE_TEXT];

	abe_print_number(key, abe_number_text(json, value), abe_size_text(text, value));
}

static void print_memory(const struct tc_abe_xstats *st)
{
	print_nl();
	abe_print_text("  ");
	print_bytes("memory_used", st->memory_used);
	print_bytes("memory_max", st->memory_max);
	print_bytes("memory_limit", st->memory_limit);
}

static void print_loop(const struct tc_abe_xstats *st, __u32 unit)
{
	char buf[ABE_TEXT];

	abe_print_text("  ");
	print_ratio("alpha", st->alpha, 16);
	print_ratio("alpha_target", st->alpha_target, 16);
	print_delay("offset", st->offset);
	print_average(st->average, unit);
	print_ratio("probability", st->probability, 31);
	print_amount("green_ahead", st->green_ahead, unit);
	print_nl();
	abe_print_text("  ");
	abe_number_text(buf, st->updates);
	abe_print_number("updates", buf, buf);
	print_ratio("green_share", st->green_share, 31);
	print_drain_rate(st->drain_rate);
	/* with packets the limits are the options' */
	if (unit != TCA_ABE_UNIT_PACKETS) {
		print_amount("limit_bytes", st->limit_in_force, unit);
		print_amount("green_limit_bytes", st->green_limit_in_force,
			     unit);
	}
	/* before the first update these are what the loop starts from: nobody has measured them */
	if (!st->updates && !is_json_context())
		return;
	print_nl();
	abe_print_text("  ");
	print_ratio("loss_blue", st->loss_blue, 31);
	print_ratio("loss_green_early", st->loss_green_early, 31);
	print_ratio("loss_green_late", st->loss_green_late, 31);
	print_delay("delay_blue", st->delay_blue);
	print_delay("delay_green", st->delay_green);
}

/**
 * abe_print_stats() - print TCA_STATS_APP of a qdisc or of a class
 * @data: the attribute
 * @size: its size
 * @unit: what the qdisc counts in
 *
 * Newer kernels may send more, at the end, and older ones less: that is not
 * printed. The first version of the qdisc's statistics, which ended with the
 * colours, is longer than a class's by far, so the size tells them apart.
 * A class's counters stand in an object of their own in JSON, because tc has
 * "bytes", "qlen" and "backlog" already.
 */
void abe_print_stats(const void *data, size_t size, __u32 unit)
{
	struct tc_abe_colour colour;
	struct tc_abe_xstats st = { 0 };

	if (size >= offsetof(struct tc_abe_xstats, memory_used)) {
		memcpy(&st, data, size < sizeof(st) ? size : sizeof(st));
		print_loop(&st, unit);
		if (size >= sizeof(st))
			print_memory(&st);
		if (is_json_context()) {
			print_colour("green", &st.green);
			print_colour("blue", &st.blue);
		} else {
			print_table(&st);
		}
	} else if (size >= sizeof(colour)) {
		memcpy(&colour, data, sizeof(colour));
		print_colour("colour", &colour);
	}
}
