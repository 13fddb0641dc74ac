/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: what a qdisc has done lately. */
#ifndef HISTORY_H
#define HISTORY_H

#include "sample.h"

#define SLOTS	60
#define BASES	12

/* What is drawn as a curve. */
enum curve { CURVE_DELAY_GREEN, CURVE_DELAY_BLUE, CURVE_QUEUE, CURVE_DROPS, CURVE_ALPHA, CURVES };

/**
 * struct history - a qdisc over time, in slots of a second or of a longer interval
 * @next:	another one, in the kernel's order
 * @now:	as it was read last; allocated
 * @time:	when, ns, of struct reading's clock
 * @shown:	and its time, for people
 * @base:	as it was at the beginning of each of the last slots
 * @base_time:	when
 * @bases:	slots that have begun; the last one is bases - 1, modulo BASES
 * @queue:	sum of its bytes at the readings of this slot
 * @readings:	their number
 * @point:	of slots that have ended, by their number modulo SLOTS; NAN: unknown; losses
 *		a second
 * @points:	slots that have ended
 * @missed:	readings that it has not been in since
 */
struct history {
	struct history	*next;
	struct sample	*now;
	__s64		time;
	__s64		shown;
	struct sample	base[BASES];
	__s64		base_time[BASES];
	unsigned int	bases;
	double		queue;
	unsigned int	readings;
	double		point[SLOTS][CURVES];
	unsigned int	points;
	unsigned int	missed;
};

/**
 * struct span - a qdisc at two instants
 * @from:	the earlier one
 * @to:		the later one
 * @seconds:	between them
 */
struct span {
	const struct sample	*from;
	const struct sample	*to;
	double			seconds;
};

void history_add(struct history **all, struct reading *reading, __s64 slot);
void history_free(struct history **all);
bool get_span(const struct history *h, __s64 age, struct span *span);

double growth(const struct span *span, enum colour colour, unsigned int attr);
double losses(const struct span *span, enum colour colour);
double offset_limit(const struct sample *s);

#endif /* HISTORY_H */
