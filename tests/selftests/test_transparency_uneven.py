#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: only
"""Transparency with 1 green and 10 blue flows, 10 green and 1 blue; see transparency.py."""

import transparency

transparency.main((1, 10, 0.05), (10, 1, 0.10))
