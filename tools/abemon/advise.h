/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: what to type for a link. */
#ifndef ADVISE_H
#define ADVISE_H

void advise(const char *rate, int words, char **word);

#endif /* ADVISE_H */
