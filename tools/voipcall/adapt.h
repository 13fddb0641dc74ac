/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which mode of a rate-adaptive codec to use. Pure: no sockets, no clocks.
 *
 * Down at once, to what fits, when the allowed rate has been too low for the
 * mode in two readings in a row, or one step when the socket refused a packet.
 * Up, until there has been a step down, to what fits in two readings; later one
 * step, when each of the last `patience` readings would have had room for it,
 * and in a quarter of that where there is room for twice as much. A step up that
 * has to be taken back soon doubles the patience, and one that holds halves it
 * again, so that a rate between two modes does not make the codec swing.
 */
#ifndef VOIPCALL_ADAPT_H
#define VOIPCALL_ADAPT_H

#include <linux/types.h>
#include <stdbool.h>
#include "codec.h"

#define ADAPT_INTERVAL_MS	100
#define ADAPT_PATIENCE_MIN	10
#define ADAPT_PATIENCE_MAX	320

/**
 * struct adapt - the state of the choice
 * @codec:	the codec
 * @ptime:	ms a packet
 * @overhead:	bytes of each packet beside the codec's
 * @mode:	chosen now
 * @patience:	readings with room that a step up takes
 * @roomy:	readings with room so far
 * @tight:	readings in a row that were too low
 * @held:	readings since the last step up
 * @climbed:	the last step was up
 * @started:	there has been a step down: the first climb is over
 * @switches:	changes of mode
 */
struct adapt {
	const struct codec	*codec;
	unsigned int		ptime;
	unsigned int		overhead;
	unsigned int		mode;
	unsigned int		patience;
	unsigned int		roomy;
	unsigned int		tight;
	unsigned int		held;
	bool			climbed;
	bool			started;
	unsigned int		switches;
};

void adapt_init(struct adapt *a, const struct codec *c, unsigned int ptime, unsigned int overhead,
		unsigned int mode);
void adapt_reading(struct adapt *a, bool known, __u64 allowed, bool refused);

#endif /* VOIPCALL_ADAPT_H */
