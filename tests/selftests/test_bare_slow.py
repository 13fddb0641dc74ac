#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Bare `abe` from 1 to 10 Mb/s, and steps of the rate; see bare.py."""

import bare

bare.main(((1, 60, 15), (2, 60, 15, 5), (10, 40, 10)), True)
