#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: six starting points, and the steady load for three times as long, all for longer
"""`loop load` settles from wherever it starts; see loop.py."""

import loop
from lib import LONG

loop.main("load", 2_000_000, *((100, 50) if LONG else (70, 40)))
