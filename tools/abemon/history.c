// SPDX-License-Identifier: GPL-2.0
/* abemon: readings of a qdisc put together to rates, and to curves of the last minute. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "history.h"

/**
 * growth - how much a counter of a colour has grown
 * @span:	from when to when
 * @colour:	which one's
 * @attr:	TCA_ABE_COLOUR_*
 *
 * Return: the difference; NAN if either value is unknown.
 */
double growth(const struct span *span, enum colour colour, unsigned int attr)
{
	__u64 from, to;

	if (!get_number(&span->from->colour[colour], attr, &from) ||
	    !get_number(&span->to->colour[colour], attr, &to))
		return NAN;
	return (double)(to - from);
}

/* The losses of a colour, of all kinds; NAN if one is unknown. */
double losses(const struct span *span, enum colour colour)
{
	return growth(span, colour, TCA_ABE_COLOUR_EARLY_DROPS) +
	       growth(span, colour, TCA_ABE_COLOUR_LATE_DROPS) +
	       growth(span, colour, TCA_ABE_COLOUR_LIMIT_DROPS);
}

/* Mean time queued of what has left, us; NAN: nothing has. */
static double mean_delay(const struct span *span, enum colour colour)
{
	double sent = growth(span, colour, TCA_ABE_COLOUR_SENT);

	return sent > 0 ? growth(span, colour, TCA_ABE_COLOUR_DELAY_SUM) / sent : NAN;
}

/* Whether a number that only grows is smaller. */
static bool has_fallen(const struct numbers *before, const struct numbers *now, unsigned int attr)
{
	__u64 from, to;

	return get_number(before, attr, &from) && get_number(now, attr, &to) && to < from;
}

/* A qdisc that took the place of another one begins at zero. */
static bool has_begun_anew(const struct sample *before, const struct sample *s)
{
	for (unsigned int attr = TCA_ABE_COLOUR_ARRIVED; attr <= TCA_ABE_COLOUR_MAX; attr++) {
		if (attr == TCA_ABE_COLOUR_QLEN || attr == TCA_ABE_COLOUR_BACKLOG)
			continue;
		if (has_fallen(&before->colour[GREEN], &s->colour[GREEN], attr) ||
		    has_fallen(&before->colour[BLUE], &s->colour[BLUE], attr))
			return true;
	}
	return has_fallen(&before->stat, &s->stat, TCA_ABE_STATS_UPDATES);
}

/**
 * offset_limit - the largest D that is in force
 * @s:	a qdisc
 *
 * Where the unit is time, 30 full packets at the drain rate are allowed at least. How
 * long these are the kernel does not say: 1514 bytes are taken.
 *
 * Return: us; NAN: unknown.
 */
double offset_limit(const struct sample *s)
{
	__u64 max, unit, rate;
	bool known = get_number(&s->stat, TCA_ABE_STATS_DRAIN_RATE, &rate) && rate;

	if (!get_number(&s->option, TCA_ABE_OFFSET_MAX, &max) ||
	    !get_number(&s->stat, TCA_ABE_STATS_UNIT, &unit))
		return NAN;
	if (unit != TCA_ABE_UNIT_TIME || !known)
		return max;
	return fmax(max, 30 * 1514e6 / rate);
}

static void end_slot(struct history *h)
{
	unsigned int last = (h->bases - 1) % BASES;
	double *point = h->point[h->points++ % SLOTS];
	const struct span span = {
		&h->base[last], h->now, (double)(h->time - h->base_time[last]) / NSEC_PER_SEC
	};
	__u64 alpha;

	point[CURVE_DELAY_GREEN] = mean_delay(&span, GREEN);
	point[CURVE_DELAY_BLUE] = mean_delay(&span, BLUE);
	point[CURVE_QUEUE] = h->readings ? h->queue / h->readings : NAN;
	point[CURVE_DROPS] = (losses(&span, GREEN) + losses(&span, BLUE)) / span.seconds;
	point[CURVE_ALPHA] = get_number(&h->now->stat, TCA_ABE_STATS_ALPHA, &alpha) ?
			     real_of(FORM_Q16, alpha) : NAN;
}

static void begin_slot(struct history *h)
{
	h->base[h->bases % BASES] = *h->now;
	h->base_time[h->bases % BASES] = h->time;
	h->bases++;
	h->queue = 0;
	h->readings = 0;
}

/* The sample that was there last is left in @s. */
static void add_sample(struct history *h, struct sample **s, __s64 time, __s64 slot)
{
	struct sample *before = h->now;
	__s64 begun = h->bases ? h->base_time[(h->bases - 1) % BASES] : 0;
	__u64 backlog;

	if (h->bases && has_begun_anew(before, *s)) {
		h->bases = 0;
		h->points = 0;
	}
	h->now = *s;
	*s = before;
	h->time = time;
	h->missed = 0;
	if (h->bases && get_number(&h->now->basic, BASIC_BACKLOG, &backlog)) {
		h->queue += backlog;
		h->readings++;
	}
	/* Timers are late now and then, and their next beat is not. */
	if (h->bases && time - begun < slot - slot / 20)
		return;
	if (h->bases)
		end_slot(h);
	begin_slot(h);
}

/**
 * history_add - take note of a reading
 * @all:	the qdiscs; one that two readings have not been of is forgotten
 * @reading:	the reading; its samples become the history's
 * @slot:	ns, of the curves
 */
void history_add(struct history **all, struct reading *reading, __s64 slot)
{
	struct history **at = all, *h;

	for (unsigned int i = 0; i < reading->qdiscs; i++) {
		const struct sample *s = reading->qdisc[i];
		struct history **found = at;

		while (*found && ((*found)->now->ifindex != s->ifindex ||
				  (*found)->now->handle != s->handle ||
				  (*found)->now->parent != s->parent))
			found = &(*found)->next;
		h = *found;
		if (h) {
			*found = h->next;
		} else {
			h = calloc(1, sizeof(*h));
			if (h)
				h->now = malloc(sizeof(*h->now));
			if (!h || !h->now)
				die("no memory for another qdisc");
		}
		/* in the order of the reading */
		h->next = *at;
		*at = h;
		at = &h->next;
		h->shown = reading->time;
		add_sample(h, &reading->qdisc[i], reading->clock, slot);
	}
	/* Behind these are those that were not in it: see read_qdiscs(). */
	while (*at) {
		h = *at;
		if (++h->missed == 1) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		free(h->now);
		free(h);
	}
}

void history_free(struct history **all)
{
	while (*all) {
		struct history *h = *all;

		*all = h->next;
		free(h->now);
		free(h);
	}
}

/**
 * get_span - the last stretch of time of a qdisc
 * @h:		the qdisc
 * @age:	ns, its length at least, or as much as is known
 * @span:	set
 *
 * Return: false if it has been read once only.
 */
bool get_span(const struct history *h, __s64 age, struct span *span)
{
	span->seconds = 0;
	for (unsigned int back = 1; back <= BASES && back <= h->bases; back++) {
		unsigned int i = (h->bases - back) % BASES;
		__s64 length = h->time - h->base_time[i];

		if (length <= 0)
			continue;
		*span = (struct span){ &h->base[i], h->now, (double)length / NSEC_PER_SEC };
		if (length >= age - age / 20)
			return true;
	}
	return span->seconds > 0;
}
