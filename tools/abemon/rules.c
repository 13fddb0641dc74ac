// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: what is wrong, in words. Each rule looks at the last ten seconds or so; with
 * fewer packets than FEW it says nothing, and neither where the kernel does not tell.
 */
#include <math.h>
#include <string.h>
#include "rules.h"

#define FEW	50

/* A ratio of second-stage losses that a call hears. */
#define LATE	0.01

/* Packets of both colours that came. */
static double arrivals(const struct span *span)
{
	return growth(span, GREEN, TCA_ABE_COLOUR_ARRIVED) +
	       growth(span, BLUE, TCA_ABE_COLOUR_ARRIVED);
}

static double percent_late(const struct span *span)
{
	double arrived = growth(span, GREEN, TCA_ABE_COLOUR_ARRIVED);

	return arrived >= FEW ? 100 * growth(span, GREEN, TCA_ABE_COLOUR_LATE_DROPS) / arrived : 0;
}

static bool is_at_offset_max(const struct span *span)
{
	__u64 offset;

	return get_number(&span->to->stat, TCA_ABE_STATS_OFFSET, &offset) &&
	       offset >= 0.98 * offset_limit(span->to);
}

static bool say_late_at_offset_max(const struct span *span, char words[WORDS])
{
	double late = percent_late(span);

	if (!(late > 100 * LATE) || !is_at_offset_max(span))
		return false;
	snprintf(words, WORDS,
		 "green loses %.3g %% in the second stage: offset_max (%g ms) is too small", late,
		 offset_limit(span->to) / 1e3);
	return true;
}

static bool say_late(const struct span *span, char words[WORDS])
{
	double late = percent_late(span);

	if (!(late > 100 * LATE) || is_at_offset_max(span))
		return false;
	snprintf(words, WORDS,
		 "green loses %.3g %% in the second stage: green_limit is too small for it",
		 late);
	return true;
}

static bool say_mostly_green(const struct span *span, char words[WORDS])
{
	double green = growth(span, GREEN, TCA_ABE_COLOUR_BYTES);
	double blue = growth(span, BLUE, TCA_ABE_COLOUR_BYTES);

	if (!(growth(span, GREEN, TCA_ABE_COLOUR_SENT) >= FEW && green > blue && blue > 0))
		return false;
	snprintf(words, WORDS,
		 "%.0f %% of the bytes are green: bulk traffic should not be marked so",
		 100 * green / (green + blue));
	return true;
}

static bool say_no_green(const struct span *span, char words[WORDS])
{
	__u64 ever;

	if (!get_number(&span->to->colour[GREEN], TCA_ABE_COLOUR_ARRIVED, &ever) || ever ||
	    !(growth(span, BLUE, TCA_ABE_COLOUR_ARRIVED) >= FEW))
		return false;
	snprintf(words, WORDS,
		 "no packet has been green yet: see green_dscp and green_mark in tc-abe(8)");
	return true;
}

static bool say_full(const struct span *span, char words[WORDS])
{
	double drops = growth(span, GREEN, TCA_ABE_COLOUR_LIMIT_DROPS) +
		       growth(span, BLUE, TCA_ABE_COLOUR_LIMIT_DROPS);

	if (!(drops > 0 && arrivals(span) >= FEW))
		return false;
	snprintf(words, WORDS,
		 "%.0f packets found the buffer full, or lost their place by a change or reset",
		 drops);
	return true;
}

static bool say_alpha_max(const struct span *span, char words[WORDS])
{
	__u64 alpha, max;

	if (!get_number(&span->to->stat, TCA_ABE_STATS_ALPHA, &alpha) ||
	    !get_number(&span->to->option, TCA_ABE_ALPHA_MAX, &max) ||
	    alpha < max - max / 50 || max <= 1 << 16 || !(arrivals(span) >= FEW))
		return false;
	snprintf(words, WORDS, "alpha is at alpha_max (%g): blue may get less than without colours",
		 real_of(FORM_Q16, max));
	return true;
}

static bool say_memory(const struct span *span, char words[WORDS])
{
	__u64 used, limit;

	if (!get_number(&span->to->stat, TCA_ABE_STATS_MEMORY_USED, &used) ||
	    !get_number(&span->to->stat, TCA_ABE_STATS_MEMORY_LIMIT, &limit) ||
	    used < limit - limit / 10)
		return false;
	snprintf(words, WORDS,
		 "the packets take %.0f %% of memory_limit (%.3g MB), which holds before limit",
		 100.0 * used / limit, limit / 1e6);
	return true;
}

/* In the order of what a call hears. */
const struct rule rules[] = {
	{ "late_at_offset_max", say_late_at_offset_max },
	{ "late", say_late },
	{ "mostly_green", say_mostly_green },
	{ "full", say_full },
	{ "memory", say_memory },
	{ "alpha_max", say_alpha_max },
	{ "no_green", say_no_green },
	{ NULL, NULL }
};
