#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: 10 Mb/s without steps, and each rate for longer
"""Bare `abe` from 1 to 10 Mb/s, and steps of the rate; see bare.py."""

import bare
from lib import LONG

bare.main(
    ((1, 45, 15), (2, 45, 15, 5), (10, 24, 10)) if LONG else ((1, 33, 12), (2, 33, 12, 5)),
    True,
)
