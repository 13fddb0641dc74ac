#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: only
"""[VOIP05] Table 2: 14 bytes at 50 packets a second."""

from dccp_rates import main

main(
    14,
    50,
    {
        4: (17.71, 18.11, 17.69, 17.69, 17.69, 17.69, 17.69, 17.69, 17.80, 10.26, 4.78, 2.41),
        248: (17.69, 17.69, 17.80, 13.41, 8.84, 7.63, 6.46, 4.29, 1.94, 1.00, 0.77, 0.56),
    },
)
