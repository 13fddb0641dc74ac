// SPDX-License-Identifier: GPL-2.0
/*
 * abemon: readings as write_json() wrote them.
 *
 * Keys are looked up by the same tables. What is missing is not known, and what a newer
 * abemon writes more is passed over; what is there has to be of the right type.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <json-c/json.h>
#include <linux/pkt_sched.h>
#include "../lib/cli.h"
#include "../lib/clock.h"
#include "replay.h"

/* Some 30,000 qdiscs; who gives a file of another kind should not run out of memory. */
#define MAX_LINE	(64UL << 20)

static struct {
	FILE		*file;
	const char	*path;
	bool		is_pipe;
	unsigned long	lines;
	char		*line;
	size_t		room;
	char		(*dev)[IF_NAMESIZE];	/* devices so far: by ifindex - 1 */
	unsigned int	devs;
	__s64		last;			/* time of the last reading */
	__s64		clock;			/* and that of a clock that does not go back */
} replay;

static noreturn void refuse(const char *why)
{
	die("%s, line %lu: %s", replay.path, replay.lines, why);
}

static noreturn void refuse_key(const char *key)
{
	die("%s, line %lu: \"%s\" is missing, or not what it should be", replay.path,
	    replay.lines, key);
}

/* A file of abemon's --record or --json; what fails ends the program. */
void open_replay(const char *path)
{
	struct stat st;

	replay.path = path;
	replay.file = fopen(path, "re");
	if (!replay.file || fstat(fileno(replay.file), &st))
		die_errno("%s", path);
	/* Whoever waits for the next line by replay_fd() must not have it here already. */
	replay.is_pipe = !S_ISREG(st.st_mode);
	if (replay.is_pipe)
		setvbuf(replay.file, NULL, _IONBF, 0);
}

/* What poll() has to look at before read_replay(), as that would wait; -1: it would not. */
int replay_fd(void)
{
	return replay.is_pipe ? fileno(replay.file) : -1;
}

/* The next line, without its end; false: there is none. */
static bool read_line(void)
{
	size_t length = 0, more;

	replay.lines++;
	do {
		if (replay.room - length < 2) {
			replay.room = replay.room ? 2 * replay.room : 65536;
			if (replay.room > MAX_LINE)
				refuse("too long for a reading");
			replay.line = realloc(replay.line, replay.room);
			if (!replay.line)
				die("no memory for a line of %zu bytes", replay.room);
		}
		replay.line[length] = '\0';
		errno = 0;
		if (!fgets(replay.line + length, replay.room - length, replay.file)) {
			if (ferror(replay.file))
				die_errno("%s", replay.path);
			if (length)
				refuse("cut off");
			return false;
		}
		more = strlen(replay.line + length);
		/* Binary files: a NUL hides what follows it. */
		if (!more)
			refuse("not of abemon --record or --json");
		length += more;
	} while (replay.line[length - 1] != '\n');
	return true;
}

static struct json_object *get(struct json_object *in, const char *key, enum json_type type)
{
	struct json_object *value;

	if (!json_object_object_get_ex(in, key, &value))
		return NULL;
	if (!json_object_is_type(value, type))
		refuse_key(key);
	return value;
}

static __u64 integer_of(struct json_object *value, const char *key)
{
	if (!json_object_is_type(value, json_type_int) || json_object_get_double(value) < 0)
		refuse_key(key);
	return json_object_get_uint64(value);
}

static double real_number(struct json_object *value, const char *key)
{
	double x = json_object_get_double(value);

	if ((!json_object_is_type(value, json_type_int) &&
	     !json_object_is_type(value, json_type_double)) || !(x >= 0 && x < 1e18))
		refuse_key(key);
	return x;
}

/* The inverse of write_value(), and of word_of(); false: a word that a newer abemon knows. */
static bool parse_value(const struct field *field, struct json_object *json, __u64 *value)
{
	const char *word = json_object_is_type(json, json_type_string) ?
			   json_object_get_string(json) : NULL;
	double scale = 1 / real_of(field->form, 1);

	if (field->form == FORM_FLAG) {
		if (!json_object_is_type(json, json_type_boolean))
			refuse_key(field->name);
		*value = json_object_get_boolean(json) ? field->bit : 0;
		return true;
	}
	if (word && field->words) {
		for (__u64 i = 0; field->words[i]; i++)
			if (!strcmp(word, field->words[i])) {
				*value = i;
				return true;
			}
		return false;
	}
	*value = scale == 1 ? integer_of(json, field->name) :
			      (__u64)fmin(rint(real_number(json, field->name) * scale), 0x1p63);
	return true;
}

static void parse_fields(const struct field *field, struct json_object *json,
			 struct numbers *numbers)
{
	struct json_object *one;
	__u64 value;

	for (; field->name; field++) {
		if (!json_object_object_get_ex(json, field->name, &one) ||
		    !parse_value(field, one, &value))
			continue;
		/* Flags share a number. */
		if (field->form == FORM_FLAG && numbers->known >> field->attr & 1)
			value |= numbers->value[field->attr];
		set_number(numbers, field->attr, value);
	}
}

static void parse_colour(struct json_object *qdisc, struct sample *s, enum colour colour)
{
	struct json_object *json = get(qdisc, colour_names[colour], json_type_object), *times;
	size_t n;

	if (!json)
		return;
	parse_fields(colour_fields, json, &s->colour[colour]);
	times = get(json, "sojourn", json_type_array);
	n = times ? json_object_array_length(times) : 0;
	s->sojourns[colour] = n < SOJOURNS ? n : SOJOURNS;
	for (unsigned int i = 0; i < s->sojourns[colour]; i++)
		s->sojourn[colour][i] = integer_of(json_object_array_get_idx(times, i), "sojourn");
}

/* "10:", "1:2", ":2" and "root". */
static __u32 parse_id(struct json_object *qdisc, const char *key)
{
	struct json_object *json = get(qdisc, key, json_type_string);
	const char *text = json ? json_object_get_string(json) : "";
	unsigned long major, minor = 0;
	char *end;

	if (!strcmp(text, "root"))
		return TC_H_ROOT;
	major = strtoul(text, &end, 16);
	if (*end != ':')
		refuse_key(key);
	if (end[1])
		minor = strtoul(end + 1, &end, 16);
	return TC_H_MAKE(major << 16, minor);
}

/* A number for a device, which is the same each time. */
static __u32 index_of(const char *dev)
{
	for (unsigned int i = 0; i < replay.devs; i++)
		if (!strcmp(replay.dev[i], dev))
			return i + 1;
	replay.dev = reallocarray(replay.dev, replay.devs + 1, sizeof(*replay.dev));
	if (!replay.dev)
		die("no memory for %u names", replay.devs + 1);
	strcpy(replay.dev[replay.devs], dev);
	return ++replay.devs;
}

static void parse_qdisc(struct reading *reading, struct json_object *json)
{
	struct json_object *name, *options;
	struct sample *s;
	__u64 unit;

	if (!json_object_is_type(json, json_type_object))
		refuse_key("qdiscs");
	name = get(json, "dev", json_type_string);
	if (!name)
		refuse_key("dev");
	s = get_room(reading);
	snprintf(s->dev, sizeof(s->dev), "%s", json_object_get_string(name));
	if (reading->wanted && !reading->wanted(s->dev))
		return;
	s->ifindex = index_of(s->dev);
	s->handle = parse_id(json, "handle");
	s->parent = parse_id(json, "parent");
	options = get(json, "options", json_type_object);
	if (options)
		parse_fields(option_fields, options, &s->option);
	parse_fields(basic_fields, json, &s->basic);
	parse_fields(stat_fields, json, &s->stat);
	if (get_number(&s->option, TCA_ABE_UNIT, &unit))
		set_number(&s->stat, TCA_ABE_STATS_UNIT, unit);
	for (unsigned int colour = 0; colour < COLOURS; colour++)
		parse_colour(json, s, colour);
	reading->qdiscs++;
}

/**
 * read_replay - take the next reading of the file
 * @reading:	set; its memory is used again
 *
 * A file that is not of this kind ends the program.
 *
 * Return: false at the end of the file.
 */
bool read_replay(struct reading *reading)
{
	struct json_object *json, *qdiscs, *time;
	enum json_tokener_error error;
	struct json_tokener *tokener;
	const char *rest;
	size_t length;
	__s64 gain;

	if (!read_line())
		return false;
	tokener = json_tokener_new();
	if (!tokener)
		die("no memory for a reading");
	length = strlen(replay.line);
	json = json_tokener_parse_ex(tokener, replay.line, length);
	error = json_tokener_get_error(tokener);
	if (error != json_tokener_success)
		refuse(error == json_tokener_continue ? "cut off" : json_tokener_error_desc(error));
	rest = replay.line + json_tokener_get_parse_end(tokener);
	if (rest[strspn(rest, " \t\r\n")])
		refuse("something is behind its end");
	json_tokener_free(tokener);
	qdiscs = json_object_is_type(json, json_type_object) ?
		 get(json, "qdiscs", json_type_array) : NULL;
	if (!qdiscs || !json_object_object_get_ex(json, "time", &time))
		refuse("not of abemon --record or --json");
	/* Microseconds are what there is, and a double has some more. */
	reading->time = llround(fmin(real_number(time, "time"), 4e9) * 1e6) * NSEC_PER_USEC;
	gain = reading->time > replay.last ? reading->time - replay.last : 0;
	/* Only a file that goes to and fro gets there. */
	if (gain > 2 * 4000000000 * NSEC_PER_SEC - replay.clock)
		refuse_key("time");
	replay.clock += gain;
	replay.last = reading->time;
	reading->clock = replay.clock;
	reading->qdiscs = 0;
	for (size_t i = 0; i < json_object_array_length(qdiscs); i++)
		parse_qdisc(reading, json_object_array_get_idx(qdiscs, i));
	json_object_put(json);
	return true;
}

void close_replay(void)
{
	if (replay.file)
		fclose(replay.file);
	free(replay.line);
	free(replay.dev);
	memset(&replay, 0, sizeof(replay));
}
