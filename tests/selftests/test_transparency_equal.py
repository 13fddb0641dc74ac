#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: two seeds, and the loop of the paper beside ours
"""Transparency with 5 green and 5 blue flows; see transparency.py."""

import transparency

transparency.main((5, 5, 0.05))
