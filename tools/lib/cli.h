/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs with a command line: complaints, long options, and such as are numbers.
 *
 * A complaint begins with the program's name and is written at once, so that lines of
 * several processes do not mix.
 */
#ifndef CLI_H
#define CLI_H

#include <errno.h>
#include <stdnoreturn.h>
#include <linux/types.h>

#define __printf(a, b)	__attribute__((	\
				__format__(__printf__, a, b)))

/* Of struct option. */
#define ARG(name, id)	{ name, required_argument, NULL, id }
#define FLAG(name, id)	{ name, no_argument, NULL, id }

void complain(const char *fmt, ...) __printf(1, 2);
noreturn void die(const char *fmt, ...) __printf(1, 2);
noreturn void die_error(int err, const char *fmt, ...) __printf(2, 3);
noreturn void usage(const char *fmt, ...) __printf(1, 2);

extern void (*before_complaint)(void);

/* die_error() with errno. */
#define die_errno(...)	die_error(errno, __VA_ARGS__)

struct option;

int next_option_among_words(int argc, char **argv, const struct option *options,
			    const char *help, const char **name);
int next_option(int argc, char **argv, const struct option *options, const char *help,
		const char **name);

long long get_integer(const char *option, const char *text, long long min, long long max);
__u64 get_u64(const char *option, const char *text);
double get_real(const char *option, const char *text, double min, double max);
__s64 get_seconds(const char *option, const char *text, double min);

#endif /* CLI_H */
