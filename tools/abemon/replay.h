/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: readings out of a file. */
#ifndef REPLAY_H
#define REPLAY_H

#include "sample.h"

void open_replay(const char *path);
int replay_fd(void);
bool read_replay(struct reading *reading);
void close_replay(void);

#endif /* REPLAY_H */
