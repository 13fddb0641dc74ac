/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: a reading as Prometheus takes it. */
#ifndef METRICS_H
#define METRICS_H

#include "sample.h"

void write_metrics(FILE *f, const struct reading *reading, bool open);

#endif /* METRICS_H */
