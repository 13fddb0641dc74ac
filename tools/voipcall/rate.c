// SPDX-License-Identifier: GPL-2.0
/*
 * What a DCCP socket's congestion control allows it to send, and has seen.
 */
#include <stddef.h>
#include <linux/dccp_tfrc.h>
#include "dccp.h"
#include "rate.h"

/**
 * rate_read - ask a connected DCCP socket
 * @fd:		the socket
 * @ptime:	ms between packets
 * @r:		set to the answer
 *
 * The kernel's own CCID-3 fills the first part of the structure, with a rate in
 * bytes of payload. Ours say what a packet may have at the interval asked for,
 * because with CCID-4 headers count, too.
 *
 * Return: false, and r->known is so, if the CCID has no rate (CCID-2), or not
 * yet, because nothing has been sent.
 */
bool rate_read(int fd, unsigned int ptime, struct rate *r)
{
	struct tfrc_tx_info_ext info = { .interval = 1000 * ptime };
	socklen_t len = sizeof(info);

	r->known = !getsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID_TX_INFO, &info, &len) &&
		   len >= offsetof(struct tfrc_tx_info_ext, size) && info.x;
	if (!r->known)
		return false;
	r->allowed = len >= sizeof(info) ? info.packet * 1000ULL / ptime : info.x >> 6;
	r->rtt_ms = info.rtt / 1e3;
	r->p = info.p / 1e6;
	return true;
}

/**
 * rate_marks - ask a connected DCCP socket how many packets came with CE
 * @fd:		the socket
 * @marked:	set to the answer; left alone if the CCID does not tell, as the
 *		kernel's own do not
 */
void rate_marks(int fd, __u64 *marked)
{
	struct tfrc_rx_info_ext info;
	socklen_t len = sizeof(info);

	if (!getsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_CCID_RX_INFO, &info, &len) &&
	    len >= offsetof(struct tfrc_rx_info_ext, marked) + sizeof(info.marked))
		*marked = info.marked;
}
