/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DCCP for user space: what <linux/dccp.h> and the C library do not have.
 */
#ifndef VOIPCALL_DCCP_H
#define VOIPCALL_DCCP_H

#include <linux/dccp.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef SOL_DCCP
#define SOL_DCCP	269
#endif

/* RFC 5762 5.2: RTP session conveying audio data */
#define SERVICE_RTPA	0x52545041

#endif /* VOIPCALL_DCCP_H */
