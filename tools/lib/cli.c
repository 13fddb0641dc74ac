// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli.h"
#include "clock.h"

/* To be called before a complaint is written, so that it is seen; NULL: nothing. */
void (*before_complaint)(void);

static void say(const char *fmt, va_list ap, const char *tail)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	if (before_complaint)
		before_complaint();
	fprintf(stderr, "%s: %s%s\n", program_invocation_short_name, text, tail);
}

/* Say what is wrong, and go on. */
void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, "");
	va_end(ap);
}

/* Say what is wrong, and exit with 1. */
void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, "");
	va_end(ap);
	exit(1);
}

/* The same with what @err, an errno, means. */
void die_error(int err, const char *fmt, ...)
{
	char tail[128];
	va_list ap;

	snprintf(tail, sizeof(tail), ": %s", strerror(err));
	va_start(ap, fmt);
	say(fmt, ap, tail);
	va_end(ap);
	exit(1);
}

/* Say what is wrong with the command line and where to read on, and exit with 2. */
void usage(const char *fmt, ...)
{
	char tail[128];
	va_list ap;

	snprintf(tail, sizeof(tail), " (see %s --help)", program_invocation_short_name);
	va_start(ap, fmt);
	say(fmt, ap, tail);
	va_end(ap);
	exit(2);
}

/**
 * next_option_among_words - take the next option of a command line
 * @argc:	of main()
 * @argv:	of main()
 * @options:	of getopt_long(), all of them long, ids from 1 on
 * @help:	what --help prints, if there is such an option
 * @name:	set to the option's name, without --
 *
 * Return: the option's id, and 0 at the end, where the other words are those from optind on;
 * --help ends the program, and what is wrong or has no value does so with 2.
 */
int next_option_among_words(int argc, char **argv, const struct option *options,
			    const char *help, const char **name)
{
	int index = -1, id;

	id = getopt_long(argc, argv, ":", options, &index);
	/* Of several short ones in a word, getopt_long() says which. */
	if (id == '?' && optopt > ' ' && optopt < 127)
		usage("-%c: unknown option", optopt);
	if (id == '?')
		usage("%s: unknown option", argv[optind - 1]);
	if (id == ':')
		usage("%s: its value is missing", argv[optind - 1]);
	if (id == -1)
		return 0;
	*name = options[index].name;
	if (!strcmp(*name, "help")) {
		fputs(help, stdout);
		exit(0);
	}
	return id;
}

/* The same where there are no other words. */
int next_option(int argc, char **argv, const struct option *options, const char *help,
		const char **name)
{
	int id = next_option_among_words(argc, argv, options, help, name);

	if (!id && optind < argc)
		usage("%s: not expected", argv[optind]);
	return id;
}

/**
 * get_integer - the value of an option
 * @option:	its name, without --
 * @text:	as typed: decimal, or with 0x or 0 before it
 * @min:	least value
 * @max:	largest value
 *
 * Return: the value; what is none, or out of range, ends the program with 2.
 */
long long get_integer(const char *option, const char *text, long long min, long long max)
{
	long long value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (errno || end == text || *end || value < min || value > max)
		usage("--%s %s: want an integer from %lld to %lld", option, text, min, max);
	return value;
}

/* The same for all of 64 bits, such as a seed. */
__u64 get_u64(const char *option, const char *text)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-'))
		usage("--%s %s: want an integer from 0 to 2^64 - 1", option, text);
	return value;
}

/* The same for a number with a fraction. */
double get_real(const char *option, const char *text, double min, double max)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !(value >= min && value <= max))
		usage("--%s %s: want a number from %g to %g", option, text, min, max);
	return value;
}

/* Seconds, up to 1e6; returns ns. */
__s64 get_seconds(const char *option, const char *text, double min)
{
	return (__s64)(get_real(option, text, min, 1e6) * NSEC_PER_SEC);
}
