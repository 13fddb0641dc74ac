/* SPDX-License-Identifier: GPL-2.0 */
/* Times are nanoseconds. */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>
#include <linux/types.h>

#define NSEC_PER_SEC	1000000000LL
#define NSEC_PER_MSEC	1000000LL
#define NSEC_PER_USEC	1000LL

static inline __s64 now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

#endif /* CLOCK_H */
