// SPDX-License-Identifier: GPL-2.0
/*
 * voipcall: messages, clocks, random numbers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "voipcall.h"

static void say(const char *fmt, va_list ap, int err)
{
	/* one call, so that lines of several processes do not mix */
	char text[512];
	int len = vsnprintf(text, sizeof(text), fmt, ap);

	if (err && len >= 0 && (size_t)len < sizeof(text))
		snprintf(text + len, sizeof(text) - len, ": %s", strerror(err));
	fprintf(stderr, "voipcall: %s\n", text);
}

void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, 0);
	va_end(ap);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, 0);
	va_end(ap);
	exit(1);
}

void die_errno(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap, err);
	va_end(ap);
	exit(1);
}

__s64 now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* CLOCK_REALTIME less CLOCK_MONOTONIC: it changes when the clock is set, not while it is slewed. */
__s64 clock_offset(void)
{
	__s64 offset, before, took, least = INT64_MAX, best = 0;

	/* the reading that was interrupted least */
	for (int i = 0; i < 3; i++) {
		before = now(CLOCK_MONOTONIC);
		offset = now(CLOCK_REALTIME) - before;
		took = now(CLOCK_MONOTONIC) - before;
		if (took < least) {
			least = took;
			best = offset;
		}
	}
	return best;
}

/* splitmix64: any seed and stream number give an independent start. */
static __u64 rng_next(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

__u64 rng_seed(__u64 seed, __u64 stream)
{
	__u64 state = seed;
	__u64 mixed = rng_next(&state) ^ (stream * 0xd1342543de82ef95ULL);

	return rng_next(&mixed);
}

/* In [0, 1). */
double rng_uniform(__u64 *state)
{
	return (double)(rng_next(state) >> 11) / (double)(1LL << 53);
}

/* Not to be guessed, for RTP's identifiers and first numbers. */
__u64 random_number(void)
{
	__u64 n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		die_errno("no random numbers");
	return n;
}
