#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Bare `abe` at 100 Mb/s and, as far as the machine carries it, 1 Gb/s; see bare.py."""

import bare

bare.main(((100, 20, 8), (1000, 10, 5)), False)
