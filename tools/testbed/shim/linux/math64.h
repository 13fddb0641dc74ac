/* SPDX-License-Identifier: GPL-2.0 */
/* What the modules need of <linux/math64.h>, for user space. */
#ifndef _SHIM_LINUX_MATH64_H
#define _SHIM_LINUX_MATH64_H

#include <linux/types.h>

/* As in the kernel: the product is exact, the result is cut to 64 bits. */
static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return ((unsigned __int128)a * b) >> shift;
}

static inline u64 mul_u64_u32_shr(u64 a, u32 b, unsigned int shift)
{
	return ((unsigned __int128)a * b) >> shift;
}

static inline u64 div64_u64_rem(u64 dividend, u64 divisor, u64 *remainder)
{
	*remainder = dividend % divisor;
	return dividend / divisor;
}

static inline u64 div64_u64(u64 a, u64 b)
{
	return a / b;
}

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

/* The product is exact. As on x86, a quotient of more than 64 bits is fatal. */
static inline u64 mul_u64_u32_div(u64 a, u32 mul, u32 div)
{
	unsigned __int128 quotient = (unsigned __int128)a * mul / div;

	if (quotient >> 64)
		__builtin_trap();
	return quotient;
}

#endif
