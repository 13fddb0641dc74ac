/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: scrapes by Prometheus. */
#ifndef SERVER_H
#define SERVER_H

#include <stdnoreturn.h>
#include "sample.h"


/* A reading for a scrape; NULL, or why there is none. */
typedef const char *take_reading(struct reading *reading);

int open_server(const char *where);
noreturn void serve(int listening, take_reading *take, struct reading *reading);

#endif /* SERVER_H */
