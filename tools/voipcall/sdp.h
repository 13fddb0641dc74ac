/* SPDX-License-Identifier: GPL-2.0 */
#ifndef VOIPCALL_SDP_H
#define VOIPCALL_SDP_H

#include "options.h"

void sdp_print(const struct options *o);

#endif /* VOIPCALL_SDP_H */
