#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Bare `abe` from 1 to 10 Mb/s, and steps of the rate; see bare.py."""

import bare

bare.main(((1, 45, 15), (2, 45, 15, 5), (10, 24, 10)), True)
