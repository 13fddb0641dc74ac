#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""`loop load` settles from wherever it starts; see loop.py."""

import loop

loop.main("load", 2_000_000, 100, 50)
