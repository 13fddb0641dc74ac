/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: the view on a terminal. Without view_start() these do nothing. */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>
#include "sample.h"

void view_start(bool live, __s64 interval);
int view_input(void);
int view_signals(void);
void view_add(struct reading *reading);
bool view_ended(short events);
void view_notice(const char *words);
void view_end(void);

#endif /* VIEW_H */
