/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <linux/types.h>

/**
 * struct rate - what the congestion control allows
 * @known:	there is such a figure
 * @allowed:	bytes/s that the application may send, RTP headers included
 * @rtt_ms:	its round-trip time
 * @p:		its loss event rate
 */
struct rate {
	bool	known;
	__u64	allowed;
	double	rtt_ms;
	double	p;
};

bool rate_read(int fd, unsigned int ptime, struct rate *r);
void rate_marks(int fd, __u64 *marked);

#endif /* RATE_H */
