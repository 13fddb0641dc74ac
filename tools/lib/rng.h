/* SPDX-License-Identifier: GPL-2.0 */
/* Random numbers that come back with their seed: splitmix64. */
#ifndef RNG_H
#define RNG_H

#include <linux/types.h>

static inline __u64 rng_next(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* A state for stream number @stream of @seed; any two are independent. */
static inline __u64 rng_seed(__u64 seed, __u64 stream)
{
	__u64 state = seed;
	__u64 mixed = rng_next(&state) ^ (stream * 0xd1342543de82ef95ULL);

	return rng_next(&mixed);
}

/* In [0, 1). */
static inline double rng_uniform(__u64 *state)
{
	return (double)(rng_next(state) >> 11) * 0x1p-53;
}

#endif /* RNG_H */
