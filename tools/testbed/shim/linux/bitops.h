/* SPDX-License-Identifier: GPL-2.0 */
/* What kernel/abe_*.h need of <linux/bitops.h>, for user space. */
#ifndef _SHIM_LINUX_BITOPS_H
#define _SHIM_LINUX_BITOPS_H

#include <linux/types.h>

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

#endif
