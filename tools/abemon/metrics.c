// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: the numbers by Prometheus' rules: base units, which the name ends with, and
 * counters that end with _total. Written as OpenMetrics 1.0, or as the older text format
 * 0.0.4, in which a counter is declared with its _total and there is no unit and no end.
 */
#include <inttypes.h>
#include <string.h>
#include "metrics.h"

enum nest { BASIC, OPTION, STAT, OF_GREEN, OF_BLUE, OF_BOTH };

/* Amounts are bytes or packets, as the qdisc's unit is. */
enum amount { ANY, IN_BYTES, IN_PACKETS };

/**
 * struct metric - where a sample comes from; those of a family follow each other
 * @name:	of the family, without "_total"
 * @counter:	or a gauge
 * @unit:	which @name ends with; NULL: none
 * @nest:	where it is; of OF_* the colour is a label
 * @attr:	index into struct numbers
 * @form:	its form
 * @amount:	whether the unit matters
 * @labels:	more of them
 * @help:	what it is; in the family's first one
 */
struct metric {
	const char	*name;
	bool		counter;
	const char	*unit;
	enum nest	nest;
	unsigned int	attr;
	enum form	form;
	enum amount	amount;
	const char	*labels;
	const char	*help;
};

#define COUNTER	true
#define GAUGE	false

static const struct metric metrics[] = {
	{ "abe_arrived_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_ARRIVED, FORM_COUNT,
	  ANY, NULL, "Packets that came." },
	{ "abe_sent_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_SENT, FORM_COUNT, ANY,
	  NULL, "Packets that left." },
	{ "abe_sent_bytes", COUNTER, "bytes", OF_BOTH, TCA_ABE_COLOUR_BYTES, FORM_COUNT, ANY,
	  NULL, "Bytes that left." },
	{ "abe_lost_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_EARLY_DROPS,
	  FORM_COUNT, ANY, "stage=\"early\"",
	  "Packets dropped: early, by the green bound (late), or by the full buffer (limit)." },
	{ "abe_lost_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_LATE_DROPS, FORM_COUNT,
	  ANY, "stage=\"late\"", NULL },
	{ "abe_lost_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_LIMIT_DROPS,
	  FORM_COUNT, ANY, "stage=\"limit\"", NULL },
	{ "abe_marked_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_MARKS, FORM_COUNT,
	  ANY, NULL, "Packets marked CE instead of dropped early." },
	{ "abe_excused_packets", COUNTER, "packets", OF_BOTH, TCA_ABE_COLOUR_EXCUSED, FORM_COUNT,
	  ANY, NULL, "Packets that protect let off an early loss or mark." },
	{ "abe_queued_packets", GAUGE, "packets", OF_BOTH, TCA_ABE_COLOUR_QLEN, FORM_COUNT, ANY,
	  NULL, "Packets in the queue." },
	{ "abe_queued_bytes", GAUGE, "bytes", OF_BOTH, TCA_ABE_COLOUR_BACKLOG, FORM_COUNT, ANY,
	  NULL, "Bytes in the queue." },
	{ "abe_delay_seconds", COUNTER, "seconds", OF_BOTH, TCA_ABE_COLOUR_DELAY_SUM, FORM_US,
	  ANY, NULL, "Time that packets which left had been queued, summed up." },
	{ "abe_delay_max_seconds", GAUGE, "seconds", OF_BOTH, TCA_ABE_COLOUR_DELAY_MAX, FORM_US,
	  ANY, NULL, "Longest time that a packet has been queued since the qdisc was added." },
	{ "abe_smoothed_delay_seconds", GAUGE, "seconds", OF_GREEN, TCA_ABE_STATS_DELAY_GREEN,
	  FORM_US, ANY, NULL, "Queueing delay as the control loop smooths it." },
	{ "abe_smoothed_delay_seconds", GAUGE, "seconds", OF_BLUE, TCA_ABE_STATS_DELAY_BLUE,
	  FORM_US, ANY, NULL, NULL },
	{ "abe_smoothed_loss_ratio", GAUGE, "ratio", OF_GREEN, TCA_ABE_STATS_LOSS_GREEN_EARLY,
	  FORM_Q31, ANY, "stage=\"early\"",
	  "Loss ratio as the control loop smooths it; early with full buffers." },
	{ "abe_smoothed_loss_ratio", GAUGE, "ratio", OF_GREEN, TCA_ABE_STATS_LOSS_GREEN_LATE,
	  FORM_Q31, ANY, "stage=\"late\"", NULL },
	{ "abe_smoothed_loss_ratio", GAUGE, "ratio", OF_BLUE, TCA_ABE_STATS_LOSS_BLUE, FORM_Q31,
	  ANY, "stage=\"early\"", NULL },
	{ "abe_alpha", GAUGE, NULL, STAT, TCA_ABE_STATS_ALPHA, FORM_Q16, ANY, NULL,
	  "Drop bias: early losses of green over those of blue." },
	{ "abe_alpha_target", GAUGE, NULL, STAT, TCA_ABE_STATS_ALPHA_TARGET, FORM_Q16, ANY, NULL,
	  "Drop bias that blue is due with the delays measured." },
	{ "abe_alpha_max", GAUGE, NULL, OPTION, TCA_ABE_ALPHA_MAX, FORM_Q16, ANY, NULL,
	  "Option alpha_max." },
	{ "abe_offset_seconds", GAUGE, "seconds", STAT, TCA_ABE_STATS_OFFSET, FORM_US, ANY, NULL,
	  "D: how much later than its arrival a blue packet's deadline is." },
	{ "abe_offset_max_seconds", GAUGE, "seconds", OPTION, TCA_ABE_OFFSET_MAX, FORM_US, ANY,
	  NULL, "Option offset_max." },
	{ "abe_average_queue_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_AVERAGE, FORM_Q32,
	  IN_BYTES, NULL, "Average queue of the first stage." },
	{ "abe_average_queue_packets", GAUGE, "packets", STAT, TCA_ABE_STATS_AVERAGE, FORM_Q32,
	  IN_PACKETS, NULL, "Average queue of the first stage, where the unit is packets." },
	{ "abe_probability_ratio", GAUGE, "ratio", STAT, TCA_ABE_STATS_PROBABILITY, FORM_Q31,
	  ANY, NULL, "Probability of an early loss of a blue packet." },
	{ "abe_green_ahead_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_GREEN_AHEAD, FORM_AMOUNT,
	  IN_BYTES, NULL, "What a green packet would find ahead of it." },
	{ "abe_green_ahead_packets", GAUGE, "packets", STAT, TCA_ABE_STATS_GREEN_AHEAD,
	  FORM_AMOUNT, IN_PACKETS, NULL,
	  "What a green packet would find ahead of it, where the unit is packets." },
	{ "abe_green_share_ratio", GAUGE, "ratio", STAT, TCA_ABE_STATS_GREEN_SHARE, FORM_Q31,
	  ANY, NULL, "Smoothed ratio of green to blue arrivals." },
	{ "abe_drain_rate_bytes_per_second", GAUGE, "bytes_per_second", STAT,
	  TCA_ABE_STATS_DRAIN_RATE, FORM_RATE, ANY, NULL,
	  "Rate at which the queue drains, given or measured." },
	{ "abe_limit_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_LIMIT, FORM_IN_BYTES, IN_BYTES,
	  NULL, "Size of the buffer in force." },
	{ "abe_green_limit_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_GREEN_LIMIT,
	  FORM_IN_BYTES, IN_BYTES, NULL, "Green bound in force." },
	{ "abe_memory_used_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_MEMORY_USED, FORM_BYTES,
	  ANY, NULL, "Memory that the queue takes." },
	{ "abe_memory_max_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_MEMORY_MAX, FORM_BYTES,
	  ANY, NULL, "Most memory that the queue has taken." },
	{ "abe_memory_limit_bytes", GAUGE, "bytes", STAT, TCA_ABE_STATS_MEMORY_LIMIT, FORM_BYTES,
	  ANY, NULL, "Memory that it may take." },
	{ "abe_updates", COUNTER, NULL, STAT, TCA_ABE_STATS_UPDATES, FORM_COUNT, ANY, NULL,
	  "Updates of the control loop." },
	{ "abe_requeues", COUNTER, NULL, BASIC, BASIC_REQUEUES, FORM_COUNT, ANY, NULL,
	  "Packets that the device sent back." },
};

/* A label's value: quoted, and valid UTF-8. */
static void write_text(FILE *f, const char *text)
{
	while (*text) {
		unsigned int n = utf8_length(text);

		if (!n)
			fputs("\xef\xbf\xbd", f);
		else if (*text == '\n')
			fputs("\\n", f);
		else
			fprintf(f, "%s%.*s", strchr("\"\\", *text) ? "\\" : "", (int)n, text);
		text += n ? n : 1;
	}
}

static void write_labels(FILE *f, const struct sample *s, const char *colour, const char *more)
{
	fputs("{device=\"", f);
	write_text(f, s->dev);
	fputs("\",handle=\"", f);
	write_id(f, s->handle);
	fputs("\",parent=\"", f);
	write_parent(f, s->parent);
	if (colour)
		fprintf(f, "\",colour=\"%s", colour);
	fprintf(f, "\"%s%s", more ? "," : "", more ? more : "");
}

static void write_head(FILE *f, bool open, const char *name, const char *type, const char *total,
		       const char *unit, const char *help)
{
	if (open)
		total = "";
	fprintf(f, "# TYPE %s%s %s\n", name, total, type);
	if (open && unit)
		fprintf(f, "# UNIT %s %s\n", name, unit);
	fprintf(f, "# HELP %s%s %s\n", name, total, help);
}

static void write_sample(FILE *f, const struct metric *m, const struct sample *s,
			 const struct numbers *numbers, const char *colour)
{
	const struct field field = { m->name, m->attr, m->form, NULL, 0 };
	__u64 value, unit = TCA_ABE_UNIT_TIME;

	get_number(&s->stat, TCA_ABE_STATS_UNIT, &unit);
	if ((m->amount == IN_BYTES && unit == TCA_ABE_UNIT_PACKETS) ||
	    (m->amount == IN_PACKETS && unit != TCA_ABE_UNIT_PACKETS) ||
	    !get_number(numbers, m->attr, &value))
		return;
	fprintf(f, "%s%s", m->name, m->counter ? "_total" : "");
	write_labels(f, s, colour, m->labels);
	fputs("} ", f);
	if (m->form == FORM_US)
		fprintf(f, "%" PRIu64 ".%06" PRIu64, (uint64_t)value / 1000000,
			(uint64_t)value % 1000000);
	else
		write_value(f, &field, value);
	fputc('\n', f);
}

static void write_metric(FILE *f, const struct metric *m, const struct sample *s)
{
	switch (m->nest) {
	case BASIC:
		write_sample(f, m, s, &s->basic, NULL);
		break;
	case OPTION:
		write_sample(f, m, s, &s->option, NULL);
		break;
	case STAT:
		write_sample(f, m, s, &s->stat, NULL);
		break;
	case OF_GREEN:
	case OF_BLUE:
		write_sample(f, m, s, &s->stat, colour_names[m->nest == OF_GREEN ? GREEN : BLUE]);
		break;
	case OF_BOTH:
		for (unsigned int colour = 0; colour < COLOURS; colour++)
			write_sample(f, m, s, &s->colour[colour], colour_names[colour]);
		break;
	}
}

/*
 * Above some rate the kernel counts the times of some packets only, and the sum is of all:
 * so there is neither _sum nor _count, and abe_delay_seconds_total stands by itself.
 */
static void write_sojourns(FILE *f, const struct sample *s, enum colour colour)
{
	__u64 below = 0;
	char le[32];

	for (unsigned int i = 0; i < s->sojourns[colour]; i++) {
		below += s->sojourn[colour][i];
		if (i + 1 < s->sojourns[colour])
			snprintf(le, sizeof(le), "le=\"%.10g\"", 64e-6 * (1U << i));
		else
			strcpy(le, "le=\"+Inf\"");
		fputs("abe_sojourn_seconds_bucket", f);
		write_labels(f, s, colour_names[colour], le);
		fprintf(f, "} %" PRIu64 "\n", (uint64_t)below);
	}
}

/* What it is set to, as labels of a sample that is always 1. */
static void write_info(FILE *f, const struct sample *s)
{
	__u64 value;

	fputs("abe_info", f);
	write_labels(f, s, NULL, NULL);
	for (const struct field *field = option_fields; field->name; field++) {
		const char *word = NULL;

		if (!get_number(&s->option, field->attr, &value))
			continue;
		if (field->form == FORM_NAME)
			word = word_of(field, value);
		else if (field->form == FORM_FLAG)
			word = value & field->bit ? "on" : "off";
		if (word)
			fprintf(f, ",%s=\"%s\"", field->name, word);
	}
	fputs("} 1\n", f);
}

/**
 * write_metrics - a reading for Prometheus
 * @f:		where to
 * @reading:	the qdiscs
 * @open:	as OpenMetrics 1.0, else in the text format 0.0.4
 *
 * What is not known has no sample.
 */
void write_metrics(FILE *f, const struct reading *reading, bool open)
{
	write_head(f, open, "abe", open ? "info" : "gauge", "_info", NULL,
		   "Words among the options.");
	for (unsigned int j = 0; j < reading->qdiscs; j++)
		write_info(f, reading->qdisc[j]);
	for (unsigned int i = 0, next; i < ARRAY_SIZE(metrics); i = next) {
		const struct metric *m = &metrics[i];

		write_head(f, open, m->name, m->counter ? "counter" : "gauge",
			   m->counter ? "_total" : "", m->unit, m->help);
		for (next = i + 1; next < ARRAY_SIZE(metrics) && !metrics[next].help; next++)
			;
		for (unsigned int j = 0; j < reading->qdiscs; j++)
			for (unsigned int k = i; k < next; k++)
				write_metric(f, &metrics[k], reading->qdisc[j]);
	}
	write_head(f, open, "abe_sojourn_seconds", "histogram", "", "seconds",
		   "Times queued of packets that left: of a part of them above some 190 Mb/s, or before the drain rate is known.");
	for (unsigned int j = 0; j < reading->qdiscs; j++)
		for (unsigned int colour = 0; colour < COLOURS; colour++)
			write_sojourns(f, reading->qdisc[j], colour);
	if (open)
		fputs("# EOF\n", f);
}
