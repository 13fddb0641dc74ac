#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: six starting points, and the steady load for three times as long
"""`loop load` settles from wherever it starts; see loop.py."""

import loop

loop.main("load", 2_000_000, 100, 50)
