/* SPDX-License-Identifier: GPL-2.0 */
/* abemon: what is wrong, in words. */
#ifndef RULES_H
#define RULES_H

#include "history.h"

#define WORDS	160

/**
 * struct rule - something that an operator should know of
 * @name:	for tests and manuals
 * @applies:	is it so, and in words if it is
 */
struct rule {
	const char	*name;
	bool		(*applies)(const struct span *span, char words[WORDS]);
};

extern const struct rule rules[];

#endif /* RULES_H */
