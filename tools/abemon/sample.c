// SPDX-License-Identifier: GPL-2.0
/* abemon: the names of the numbers, which are tc's, and how they are written. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/pkt_sched.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "sample.h"

#define END		{ NULL, 0, 0, NULL, 0 }

const struct field basic_fields[] = {
	{ "bytes", BASIC_BYTES, FORM_COUNT, NULL, 0 },
	{ "packets", BASIC_PACKETS, FORM_COUNT, NULL, 0 },
	{ "drops", BASIC_DROPS, FORM_COUNT, NULL, 0 },
	{ "overlimits", BASIC_OVERLIMITS, FORM_COUNT, NULL, 0 },
	{ "requeues", BASIC_REQUEUES, FORM_COUNT, NULL, 0 },
	{ "backlog", BASIC_BACKLOG, FORM_BYTES, NULL, 0 },
	{ "qlen", BASIC_QLEN, FORM_COUNT, NULL, 0 },
	END
};

static const char *const units[] = {
	[TCA_ABE_UNIT_TIME] = "time",
	[TCA_ABE_UNIT_BYTES] = "bytes",
	[TCA_ABE_UNIT_PACKETS] = "packets",
	NULL
};

static const char *const spacings[] = {
	[TCA_ABE_SPACING_UNIFORM] = "uniform",
	[TCA_ABE_SPACING_GEOMETRIC] = "geometric",
	[TCA_ABE_SPACING_DELAYED_UNIFORM] = "delayed_uniform",
	[TCA_ABE_SPACING_DELAYED_GEOMETRIC] = "delayed_geometric",
	[TCA_ABE_SPACING_DETERMINISTIC] = "deterministic",
	NULL
};

static const char *const loops[] = {
	[TCA_ABE_LOOP_PAPER] = "paper",
	[TCA_ABE_LOOP_LOAD] = "load",
	NULL
};

static const char *const zero_auto[] = { "auto", NULL };
static const char *const zero_off[] = { "off", NULL };

/* Without green_dscp, green_mark and seed, which are not to be watched. */
const struct field option_fields[] = {
	{ "unit", TCA_ABE_UNIT, FORM_NAME, units, 0 },
	{ "rate", TCA_ABE_RATE, FORM_RATE, NULL, 0 },
	{ "limit", TCA_ABE_LIMIT, FORM_LIMIT, NULL, 0 },
	{ "green_limit", TCA_ABE_GREEN_LIMIT, FORM_LIMIT, NULL, 0 },
	{ "min", TCA_ABE_MIN_TH, FORM_LIMIT, NULL, 0 },
	{ "max", TCA_ABE_MAX_TH, FORM_LIMIT, NULL, 0 },
	{ "probability", TCA_ABE_PROBABILITY, FORM_Q31, NULL, 0 },
	{ "weight", TCA_ABE_WEIGHT, FORM_Q31, zero_auto, 0 },
	{ "avpkt", TCA_ABE_AVPKT, FORM_BYTES, NULL, 0 },
	{ "gentle", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_GENTLE },
	{ "adaptive", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_ADAPTIVE },
	{ "bytemode", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_BYTEMODE },
	{ "ecn", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_ECN },
	{ "harddrop", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_HARDDROP },
	{ "spacing", TCA_ABE_SPACING, FORM_NAME, spacings, 0 },
	{ "loop", TCA_ABE_LOOP, FORM_NAME, loops, 0 },
	{ "rtt", TCA_ABE_RTT, FORM_US, NULL, 0 },
	{ "interval", TCA_ABE_INTERVAL, FORM_US, NULL, 0 },
	{ "k1", TCA_ABE_K1, FORM_Q16, NULL, 0 },
	{ "k2", TCA_ABE_K2, FORM_US, NULL, 0 },
	{ "k3", TCA_ABE_K3, FORM_US, NULL, 0 },
	{ "k4", TCA_ABE_K4, FORM_US, NULL, 0 },
	{ "gamma1", TCA_ABE_GAMMA1, FORM_Q31, NULL, 0 },
	{ "gamma2", TCA_ABE_GAMMA2, FORM_Q31, NULL, 0 },
	{ "gamma3", TCA_ABE_GAMMA3, FORM_Q31, NULL, 0 },
	{ "lambda", TCA_ABE_LAMBDA, FORM_Q31, NULL, 0 },
	{ "offset", TCA_ABE_OFFSET, FORM_US, NULL, 0 },
	{ "offset_max", TCA_ABE_OFFSET_MAX, FORM_US, NULL, 0 },
	{ "alpha_max", TCA_ABE_ALPHA_MAX, FORM_Q16, NULL, 0 },
	{ "flat", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_FLAT },
	{ "split_gso", TCA_ABE_FLAGS, FORM_FLAG, NULL, TCA_ABE_F_SPLIT_GSO },
	{ "memory_limit", TCA_ABE_MEMORY_LIMIT, FORM_BYTES, NULL, 0 },
	{ "protect", TCA_ABE_PROTECT, FORM_Q31, zero_off, 0 },
	END
};

const struct field stat_fields[] = {
	{ "alpha", TCA_ABE_STATS_ALPHA, FORM_Q16, NULL, 0 },
	{ "alpha_target", TCA_ABE_STATS_ALPHA_TARGET, FORM_Q16, NULL, 0 },
	{ "offset", TCA_ABE_STATS_OFFSET, FORM_US, NULL, 0 },
	{ "average", TCA_ABE_STATS_AVERAGE, FORM_Q32, NULL, 0 },
	{ "probability", TCA_ABE_STATS_PROBABILITY, FORM_Q31, NULL, 0 },
	{ "green_ahead", TCA_ABE_STATS_GREEN_AHEAD, FORM_AMOUNT, NULL, 0 },
	{ "updates", TCA_ABE_STATS_UPDATES, FORM_COUNT, NULL, 0 },
	{ "green_share", TCA_ABE_STATS_GREEN_SHARE, FORM_Q31, NULL, 0 },
	{ "drain_rate", TCA_ABE_STATS_DRAIN_RATE, FORM_RATE, NULL, 0 },
	{ "limit_bytes", TCA_ABE_STATS_LIMIT, FORM_IN_BYTES, NULL, 0 },
	{ "green_limit_bytes", TCA_ABE_STATS_GREEN_LIMIT, FORM_IN_BYTES, NULL, 0 },
	{ "loss_blue", TCA_ABE_STATS_LOSS_BLUE, FORM_Q31, NULL, 0 },
	{ "loss_green_early", TCA_ABE_STATS_LOSS_GREEN_EARLY, FORM_Q31, NULL, 0 },
	{ "loss_green_late", TCA_ABE_STATS_LOSS_GREEN_LATE, FORM_Q31, NULL, 0 },
	{ "delay_blue", TCA_ABE_STATS_DELAY_BLUE, FORM_US, NULL, 0 },
	{ "delay_green", TCA_ABE_STATS_DELAY_GREEN, FORM_US, NULL, 0 },
	{ "memory_used", TCA_ABE_STATS_MEMORY_USED, FORM_BYTES, NULL, 0 },
	{ "memory_max", TCA_ABE_STATS_MEMORY_MAX, FORM_BYTES, NULL, 0 },
	{ "memory_limit", TCA_ABE_STATS_MEMORY_LIMIT, FORM_BYTES, NULL, 0 },
	END
};

const struct field colour_fields[] = {
	{ "arrived", TCA_ABE_COLOUR_ARRIVED, FORM_COUNT, NULL, 0 },
	{ "sent", TCA_ABE_COLOUR_SENT, FORM_COUNT, NULL, 0 },
	{ "bytes", TCA_ABE_COLOUR_BYTES, FORM_COUNT, NULL, 0 },
	{ "qlen", TCA_ABE_COLOUR_QLEN, FORM_COUNT, NULL, 0 },
	{ "backlog", TCA_ABE_COLOUR_BACKLOG, FORM_BYTES, NULL, 0 },
	{ "early_drops", TCA_ABE_COLOUR_EARLY_DROPS, FORM_COUNT, NULL, 0 },
	{ "late_drops", TCA_ABE_COLOUR_LATE_DROPS, FORM_COUNT, NULL, 0 },
	{ "limit_drops", TCA_ABE_COLOUR_LIMIT_DROPS, FORM_COUNT, NULL, 0 },
	{ "marks", TCA_ABE_COLOUR_MARKS, FORM_COUNT, NULL, 0 },
	{ "excused", TCA_ABE_COLOUR_EXCUSED, FORM_COUNT, NULL, 0 },
	{ "delay_max", TCA_ABE_COLOUR_DELAY_MAX, FORM_US, NULL, 0 },
	{ "delay_sum", TCA_ABE_COLOUR_DELAY_SUM, FORM_US, NULL, 0 },
	END
};

const char *const colour_names[COLOURS] = { [GREEN] = "green", [BLUE] = "blue" };

/* A sample of which nothing is known yet; the numbers themselves are not cleared. */
struct sample *get_room(struct reading *reading)
{
	struct sample *s;

	if (reading->qdiscs == reading->room) {
		reading->qdisc = reallocarray(reading->qdisc, reading->room + 1, sizeof(s));
		s = malloc(sizeof(*s));
		if (!reading->qdisc || !s)
			die("no memory for %u qdiscs", reading->room + 1);
		reading->qdisc[reading->room++] = s;
	}
	s = reading->qdisc[reading->qdiscs];
	s->basic.known = 0;
	s->option.known = 0;
	s->stat.known = 0;
	for (unsigned int colour = 0; colour < COLOURS; colour++) {
		s->colour[colour].known = 0;
		s->sojourns[colour] = 0;
	}
	return s;
}

void free_reading(struct reading *reading)
{
	while (reading->room)
		free(reading->qdisc[--reading->room]);
	free(reading->qdisc);
	reading->qdisc = NULL;
}

void set_number(struct numbers *numbers, unsigned int attr, __u64 value)
{
	numbers->known |= 1ULL << attr;
	numbers->value[attr] = value;
}

/* A number that the kernel sent; false: it did not. */
bool get_number(const struct numbers *numbers, unsigned int attr, __u64 *value)
{
	*value = numbers->value[attr];
	return numbers->known >> attr & 1;
}

/* The word for a value; NULL for a number, and for what a newer kernel has more. */
const char *word_of(const struct field *field, __u64 value)
{
	if (!field->words || (field->form != FORM_NAME && value))
		return NULL;
	for (__u64 i = 0; field->words[i]; i++)
		if (i == value)
			return field->words[i];
	return NULL;
}

/* A number of any form, as it is meant: ratios as such, amounts with a fraction. */
double real_of(enum form form, __u64 value)
{
	switch (form) {
	case FORM_Q16:
		return value / 65536.0;
	case FORM_Q31:
		return value / 2147483648.0;
	case FORM_Q32:
		return value / 4294967296.0;
	default:
		return value;
	}
}

/* Not by printf(), which takes ten times as long, and there are a hundred numbers. */
static void write_integer(FILE *f, __u64 value)
{
	char buf[20], *at = buf + sizeof(buf);

	do
		*--at = '0' + value % 10;
	while (value /= 10);
	fwrite_unlocked(at, 1, buf + sizeof(buf) - at, f);
}

/* A number with fraction bits, to ten digits, which tell all of a Q1.31 apart. */
static void write_fixed(FILE *f, __u64 value, unsigned int bits)
{
	__u64 mask = (1ULL << bits) - 1, rest = value & mask;
	char buf[11] = ".", *end = buf;

	for (unsigned int i = 1; i < sizeof(buf) && rest; i++) {
		rest *= 10;
		buf[i] = '0' + (rest >> bits);
		rest &= mask;
		end = buf + i + 1;
	}
	while (end > buf && end[-1] == '0')
		end--;
	write_integer(f, value >> bits);
	if (end > buf + 1)
		fwrite_unlocked(buf, 1, end - buf, f);
}

/* A number as it is meant, with all digits. */
void write_value(FILE *f, const struct field *field, __u64 value)
{
	switch (field->form) {
	case FORM_Q16:
		write_fixed(f, value, 16);
		break;
	case FORM_Q31:
		write_fixed(f, value, 31);
		break;
	case FORM_Q32:
		write_fixed(f, value, 32);
		break;
	case FORM_FLAG:
		fputs_unlocked(value & field->bit ? "true" : "false", f);
		break;
	default:
		write_integer(f, value);
	}
}

/* The number of a field, if it is known and there is such a thing. */
bool get_field(const struct numbers *numbers, const struct field *field, __u64 *value)
{
	__u64 unit;

	if (field->form == FORM_IN_BYTES && get_number(numbers, TCA_ABE_STATS_UNIT, &unit) &&
	    unit == TCA_ABE_UNIT_PACKETS)
		return false;
	return get_number(numbers, field->attr, value);
}

static void write_fields(FILE *f, const struct field *field, const struct numbers *numbers,
			 const char *sep)
{
	__u64 value;

	for (; field->name; field++) {
		const char *word;

		if (!get_field(numbers, field, &value))
			continue;
		fputs_unlocked(sep, f);
		fputc_unlocked('"', f);
		fputs_unlocked(field->name, f);
		fputs_unlocked("\":", f);
		word = word_of(field, value);
		if (word)
			fprintf(f, "\"%s\"", word);
		else
			write_value(f, field, value);
		sep = ",";
	}
}

/* The mean in us with three digits behind the point; false: not known. */
static bool get_delay_mean(const struct numbers *numbers, __u64 *thousandths)
{
	__u64 sum, sent;

	if (!get_number(numbers, TCA_ABE_COLOUR_DELAY_SUM, &sum) ||
	    !get_number(numbers, TCA_ABE_COLOUR_SENT, &sent))
		return false;
	*thousandths = sent ? llround(1000.0 * sum / sent) : 0;
	return true;
}

static void write_thousandths(FILE *f, __u64 value)
{
	write_integer(f, value / 1000);
	fputc_unlocked('.', f);
	for (unsigned int unit = 100; unit; unit /= 10)
		fputc_unlocked('0' + value / unit % 10, f);
}

static void write_time(FILE *f, __s64 time)
{
	fprintf(f, "%" PRId64 ".%06" PRId64, (int64_t)(time / NSEC_PER_SEC),
		(int64_t)(time % NSEC_PER_SEC / NSEC_PER_USEC));
}

static void write_colour(FILE *f, const struct sample *s, enum colour colour)
{
	const struct numbers *numbers = &s->colour[colour];
	__u64 mean;

	fprintf(f, ",\"%s\":{", colour_names[colour]);
	write_fields(f, colour_fields, numbers, "");
	if (get_delay_mean(numbers, &mean)) {
		fputs(",\"delay_mean\":", f);
		write_thousandths(f, mean);
	}
	for (unsigned int i = 0; i < s->sojourns[colour]; i++) {
		fputs_unlocked(i ? "," : ",\"sojourn\":[", f);
		write_integer(f, s->sojourn[colour][i]);
	}
	fputs(s->sojourns[colour] ? "]}" : "}", f);
}

/* "1:", "1:2" and ":2", as tc writes them. */
void write_id(FILE *f, __u32 id)
{
	if (TC_H_MAJ(id) || !TC_H_MIN(id))
		fprintf(f, "%x", TC_H_MAJ(id) >> 16);
	fputc(':', f);
	if (TC_H_MIN(id))
		fprintf(f, "%x", TC_H_MIN(id));
}

/* Bytes of the character that a text begins with, in UTF-8; 0: it is none. */
unsigned int utf8_length(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	unsigned int n = *c < 0x80 ? 1 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : 4;

	if ((*c >= 0x80 && *c < 0xc2) || *c >= 0xf5)
		return 0;
	for (unsigned int i = 1; i < n; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	/* Not the shortest form, half of a pair of UTF-16, and beyond the last one. */
	if (n >= 3 && ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] >= 0xa0) ||
		       (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] >= 0x90)))
		return 0;
	return n;
}

/* A device's name may be any bytes but blanks and slashes; this one is for JSON. */
static void write_string(FILE *f, const char *text)
{
	while (*text) {
		unsigned int n = utf8_length(text);

		if (!n)
			fputs("\\ufffd", f);
		else if ((unsigned char)*text < ' ')
			fprintf(f, "\\u%04x", *text);
		else
			fprintf(f, "%s%.*s", strchr("\"\\", *text) ? "\\" : "", (int)n, text);
		text += n ? n : 1;
	}
}

void write_parent(FILE *f, __u32 parent)
{
	if (parent == TC_H_ROOT)
		fputs("root", f);
	else
		write_id(f, parent);
}

/**
 * write_json - one object in a line
 * @f:		where to
 * @reading:	the time in s, and the qdiscs with the keys of ``tc -s -j qdisc show``
 */
void write_json(FILE *f, const struct reading *reading)
{
	fputs("{\"time\":", f);
	write_time(f, reading->time);
	fputs(",\"qdiscs\":[", f);
	for (unsigned int i = 0; i < reading->qdiscs; i++) {
		const struct sample *s = reading->qdisc[i];

		fprintf(f, "%s{\"kind\":\"abe\",\"dev\":\"", i ? "," : "");
		write_string(f, s->dev);
		fputs("\",\"handle\":\"", f);
		write_id(f, s->handle);
		fputs("\",\"parent\":\"", f);
		write_parent(f, s->parent);
		fputs("\",\"options\":{", f);
		write_fields(f, option_fields, &s->option, "");
		fputs("}", f);
		write_fields(f, basic_fields, &s->basic, ",");
		write_fields(f, stat_fields, &s->stat, ",");
		for (unsigned int colour = 0; colour < COLOURS; colour++)
			write_colour(f, s, colour);
		fputs("}", f);
	}
	fputs("]}\n", f);
}

/* Write the line of names that a table of comma-separated values begins with. */
void write_csv_head(FILE *f)
{
	const struct field *field;

	fputs("time,dev,handle,parent", f);
	for (field = basic_fields; field->name; field++)
		fprintf(f, ",%s", field->name);
	for (field = stat_fields; field->name; field++)
		fprintf(f, ",%s", field->name);
	for (unsigned int colour = 0; colour < COLOURS; colour++) {
		for (field = colour_fields; field->name; field++)
			fprintf(f, ",%s_%s", colour_names[colour], field->name);
		fprintf(f, ",%s_delay_mean", colour_names[colour]);
		for (unsigned int i = 0; i < TCA_ABE_SOJOURNS; i++)
			fprintf(f, ",%s_sojourn_%u", colour_names[colour], i);
	}
	fputc('\n', f);
}

static void write_cells(FILE *f, const struct field *field, const struct numbers *numbers)
{
	__u64 value;

	for (; field->name; field++) {
		fputc(',', f);
		if (get_field(numbers, field, &value))
			write_value(f, field, value);
	}
}

/**
 * write_csv - a line for each qdisc
 * @f:		where to
 * @reading:	the qdiscs; what is not known is an empty cell
 */
void write_csv(FILE *f, const struct reading *reading)
{
	for (unsigned int i = 0; i < reading->qdiscs; i++) {
		const struct sample *s = reading->qdisc[i];

		write_time(f, reading->time);
		fputc(',', f);
		/* As RFC 4180 has it. */
		if (strpbrk(s->dev, ",\"")) {
			fputc('"', f);
			for (const char *c = s->dev; *c; c++)
				fprintf(f, *c == '"' ? "\"\"" : "%c", *c);
			fputs("\",", f);
		} else {
			fprintf(f, "%s,", s->dev);
		}
		write_id(f, s->handle);
		fputc(',', f);
		write_parent(f, s->parent);
		write_cells(f, basic_fields, &s->basic);
		write_cells(f, stat_fields, &s->stat);
		for (unsigned int colour = 0; colour < COLOURS; colour++) {
			__u64 mean;

			write_cells(f, colour_fields, &s->colour[colour]);
			fputc(',', f);
			if (get_delay_mean(&s->colour[colour], &mean))
				write_thousandths(f, mean);
			for (unsigned int j = 0; j < TCA_ABE_SOJOURNS; j++) {
				fputc(',', f);
				if (j < s->sojourns[colour])
					write_integer(f, s->sojourn[colour][j]);
			}
		}
		fputc('\n', f);
	}
}
