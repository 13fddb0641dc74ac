/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: scrapes by Prometheus. */
#ifndef SERVER_H
#define SERVER_H

#include <stdnoreturn.h>
#include "sample.h"


int open_server(const char *where);
noreturn void serve(int listening, const char *(*take)(struct reading *reading),
		    struct reading *reading);

#endif /* SERVER_H */
