/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: what one qdisc says of itself at one instant. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <linux/pkt_sch_abe.h>
#include <linux/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Attributes of a newer kernel that are kept: as many as have a number below this. */
#define ATTRS		64
#define SOJOURNS	32

/**
 * struct numbers - the numbers of a nest of attributes
 * @known:	bit n: the kernel sent attribute n
 * @value:	by attribute, as it was sent
 */
struct numbers {
	__u64	known;
	__u64	value[ATTRS];
};

enum colour { GREEN, BLUE, COLOURS };

/* What every qdisc counts, by the names that tc has for it. */
enum basic {
	BASIC_BYTES, BASIC_PACKETS, BASIC_DROPS, BASIC_OVERLIMITS, BASIC_REQUEUES,
	BASIC_BACKLOG, BASIC_QLEN, BASICS
};

/**
 * struct sample - a qdisc
 * @ifindex:	its device
 * @dev:	and that one's name
 * @handle:	its handle
 * @parent:	where it hangs; TC_H_ROOT
 * @basic:	by enum basic
 * @option:	by TCA_ABE_*
 * @stat:	by TCA_ABE_STATS_*
 * @colour:	by TCA_ABE_COLOUR_*
 * @sojourns:	how many times queued the kernel tells apart; 0: unknown
 * @sojourn:	how often they came
 */
struct sample {
	__u32		ifindex;
	char		dev[IF_NAMESIZE];
	__u32		handle;
	__u32		parent;
	struct numbers	basic;
	struct numbers	option;
	struct numbers	stat;
	struct numbers	colour[COLOURS];
	unsigned int	sojourns[COLOURS];
	__u64		sojourn[COLOURS][SOJOURNS];
};

/**
 * struct reading - all qdiscs at one instant
 * @time:	ns, CLOCK_REALTIME
 * @clock:	ns, CLOCK_BOOTTIME, which nobody sets
 * @qdisc:	in the kernel's order
 * @qdiscs:	their number
 * @room:	there is memory for so many; history_add() takes a sample and leaves another
 * @wanted:	whether to take those of a device; NULL: all
 */
struct reading {
	__s64		time;
	__s64		clock;
	struct sample	**qdisc;
	unsigned int	qdiscs;
	unsigned int	room;
	bool		(*wanted)(const char *dev);
};

/* How a number is written. */
enum form {
	FORM_COUNT,
	FORM_US,	/* a duration in microseconds */
	FORM_BYTES,
	FORM_AMOUNT,	/* bytes or packets, as the unit is */
	FORM_IN_BYTES,	/* bytes; where the unit is packets an option's value, and not written */
	FORM_RATE,	/* bytes/s */
	FORM_Q16,	/* fixed point with 16 bits after the point */
	FORM_Q31,
	FORM_Q32,	/* an amount with 32 of them */
	FORM_LIMIT,	/* an option in the unit: us, bytes or packets */
	FORM_FLAG,
	FORM_NAME,	/* of a value */
};

/**
 * struct field - a number by its name
 * @name:	in JSON, as in ``tc -s -j``; NULL ends a table
 * @attr:	index into struct numbers
 * @form:	how it is written
 * @words:	FORM_NAME: of the values, NULL after the last; others: of zero, if it has one
 * @bit:	FORM_FLAG
 */
struct field {
	const char	*name;
	unsigned int	attr;
	enum form	form;
	const char	*const *words;
	__u32		bit;
};

extern const struct field basic_fields[], option_fields[], stat_fields[], colour_fields[];
extern const char *const colour_names[COLOURS];

struct sample *get_room(struct reading *reading);
void free_reading(struct reading *reading);
void set_number(struct numbers *numbers, unsigned int attr, __u64 value);
bool get_number(const struct numbers *numbers, unsigned int attr, __u64 *value);
bool get_field(const struct numbers *numbers, const struct field *field, __u64 *value);
const char *word_of(const struct field *field, __u64 value);
double real_of(enum form form, __u64 value);
unsigned int utf8_length(const char *text);

void write_value(FILE *f, const struct field *field, __u64 value);
void write_id(FILE *f, __u32 id);
void write_parent(FILE *f, __u32 parent);
void write_json(FILE *f, const struct reading *reading);
void write_csv_head(FILE *f);
void write_csv(FILE *f, const struct reading *reading);

#endif /* SAMPLE_H */
