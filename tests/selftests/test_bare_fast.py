#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: 300 Mb/s and 1 Gb/s, and for longer
"""Bare `abe` at 100 Mb/s, at 300, which is half of what the machine can do, and at 1 Gb/s; see bare.py."""

import bare
from lib import LONG

bare.main(((100, 12, 5), (300, 9, 4), (1000, 16, 10)) if LONG else ((100, 8, 4),), False)
