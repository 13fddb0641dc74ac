#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: only
"""Bare `abe` at 100 Mb/s, at 300, which is half of what the machine can do, and at 1 Gb/s; see bare.py."""

import bare

bare.main(((100, 12, 5), (300, 9, 4), (1000, 16, 10)), False)
