// SPDX-License-Identifier: GPL-2.0
/*
 * The throughput equation in dccp_tfrc's integers: reads lines of segment size,
 * round-trip time in us and 256/p, writes bytes per second for each.
 * tools/lab/computed.py compiles and runs it.
 */
#include <stdio.h>
#include "tfrc_math.h"

int main(void)
{
	unsigned int s, rtt, pinv;

	while (scanf("%u %u %u", &s, &rtt, &pinv) == 3)
		printf("%.6f\n", tfrc_rate(s, rtt, pinv) / (double)(1 << TFRC_RATE_SHIFT));
	return 0;
}
