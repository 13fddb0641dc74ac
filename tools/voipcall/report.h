/* SPDX-License-Identifier: GPL-2.0 */
#ifndef REPORT_H
#define REPORT_H

#include "call.h"

void report(const struct call *c);
void report_progress(struct call *c, __s64 now);

#endif /* REPORT_H */
