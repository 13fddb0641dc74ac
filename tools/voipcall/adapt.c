// SPDX-License-Identifier: GPL-2.0
/*
 * The choice of a codec's mode; see adapt.h.
 */
#include "adapt.h"

/* A reading with twice the rate needed counts as so many. */
#define AMPLE_WEIGHT	4

/* Bytes a second that the application sends in @mode. */
static __u64 adapt_need(const struct adapt *a, unsigned int mode)
{
	return (codec_payload(a->codec, mode, a->ptime) + a->overhead) * 1000ULL / a->ptime;
}

void adapt_init(struct adapt *a, const struct codec *c, unsigned int ptime, unsigned int overhead,
		unsigned int mode)
{
	*a = (struct adapt) {
		.codec = c,
		.ptime = ptime,
		.overhead = overhead,
		.mode = mode,
		.patience = ADAPT_PATIENCE_MIN,
	};
}

static void adapt_down(struct adapt *a, unsigned int mode)
{
	/* the last step up was a mistake */
	if (a->climbed && a->started && a->held < 2 * a->patience &&
	    a->patience < ADAPT_PATIENCE_MAX)
		a->patience *= 2;
	a->mode = mode;
	a->climbed = false;
	a->started = true;
	a->roomy = 0;
	a->tight = 0;
	a->switches++;
}

static void adapt_up(struct adapt *a, unsigned int mode)
{
	a->mode = mode;
	a->climbed = true;
	a->roomy = 0;
	a->held = 0;
	a->switches++;
}

/**
 * adapt_reading - take a reading of the allowed rate, every ADAPT_INTERVAL_MS
 * @a:		state
 * @known:	@allowed is known; without, only refusals tell
 * @allowed:	bytes a second
 * @refused:	the socket has refused a packet since the last reading
 */
void adapt_reading(struct adapt *a, bool known, __u64 allowed, bool refused)
{
	unsigned int fits = a->mode;
	bool low = known && allowed < adapt_need(a, a->mode);

	a->held++;
	if (a->climbed && a->held == 4 * a->patience) {
		a->climbed = false;
		if (a->patience > ADAPT_PATIENCE_MIN)
			a->patience /= 2;
	}

	a->tight = low ? a->tight + 1 : 0;
	if (refused || a->tight >= 2) {
		while (low && fits && allowed < adapt_need(a, fits))
			fits--;
		if (refused && fits && fits == a->mode)
			fits--;
		if (fits < a->mode)
			adapt_down(a, fits);
		return;
	}
	if (low || a->mode + 1 == a->codec->modes)
		return;
	if (known && !a->started) {
		/* the first climb: nothing is known to be too much yet */
		while (fits + 1 < a->codec->modes && allowed >= adapt_need(a, fits + 1))
			fits++;
		if (fits > a->mode && ++a->roomy >= 2)
			adapt_up(a, fits);
		return;
	}
	if (known && allowed < adapt_need(a, a->mode + 1)) {
		a->roomy = 0;
		return;
	}
	/* what is far from the edge needs less patience */
	a->roomy += known && allowed >= 2 * adapt_need(a, a->mode + 1) ? AMPLE_WEIGHT : 1;
	if (a->roomy >= a->patience)
		adapt_up(a, a->mode + 1);
}
