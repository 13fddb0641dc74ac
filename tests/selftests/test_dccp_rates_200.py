#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: all loss rates of the table
"""[VOIP05] Table 5: 200 bytes at 100 packets a second."""

from dccp_rates import main

main(
    200,
    100,
    {
        4: (
            183.45,
            185.06,
            185.33,
            185.57,
            185.14,
            180.08,
            168.51,
            127.33,
            54.66,
            24.50,
            13.47,
            10.51,
        ),
        248: (178.35, 138.06, 92.43, 62.18, 45.43, 39.44, 31.16, 21.96, 9.40, 4.73, 3.35, 2.92),
    },
)
