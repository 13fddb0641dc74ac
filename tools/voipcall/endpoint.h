/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include "options.h"

int endpoint_call(const struct options *o);
int endpoint_listen(const struct options *o);

#endif /* ENDPOINT_H */
