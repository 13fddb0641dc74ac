/* SPDX-License-Identifier: GPL-2.0 */
/* What the modules need of <linux/kernel.h>, for user space. */
#ifndef _SHIM_LINUX_KERNEL_H
#define _SHIM_LINUX_KERNEL_H

#include <stddef.h>
#include <linux/types.h>

#define U16_MAX		((u16)~0U)
#define U32_MAX		((u32)~0U)
#define U64_MAX		((u64)~0ULL)
#define S64_MAX		((s64)(U64_MAX >> 1))

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#define noinline	__attribute__((__noinline__))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
#define lower_32_bits(n) ((u32)(n))

/* Types have to agree, as in the kernel; min_t() and max_t() make them. */
#define shim_pick(x, y, op)						\
	__extension__ ({						\
		__typeof__(x) shim_x = (x);				\
		__typeof__(y) shim_y = (y);				\
		(void)(&shim_x == &shim_y);				\
		shim_x op shim_y ? shim_x : shim_y;			\
	})

#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

#define min(x, y)	shim_pick(x, y, <)
#define max(x, y)	shim_pick(x, y, >)
#define clamp(v, lo, hi)						\
	__extension__ ({						\
		__typeof__(v) shim_v = max(v, lo);			\
		min(shim_v, hi);					\
	})

#define min_t(type, x, y)						\
	__extension__ ({						\
		type shim_a = (x), shim_b = (y);			\
		shim_a < shim_b ? shim_a : shim_b;			\
	})
#define max_t(type, x, y)						\
	__extension__ ({						\
		type shim_a = (x), shim_b = (y);			\
		shim_a > shim_b ? shim_a : shim_b;			\
	})

#define clamp_t(type, v, lo, hi) min_t(type, max_t(type, v, lo), hi)

#endif
