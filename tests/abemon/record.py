# SPDX-License-Identifier: GPL-2.0
"""In the VM, for tests/host/prometheus: two minutes of a link of 2 Mb/s, recorded.

A call (green) is there all the time, four TCP flows from the 20th second to the 100th. /out
has the recording, and what a terminal of 80 columns shows at its best.
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../selftests"))

from lib import Load, Net, run
from test_abemon import Screen


def main():
    run("modprobe sch_abe")
    net = Net(rate=2_000_000, delay=20)
    net.fresh("abe seed 1")
    screen = Screen(
        [shutil.which("ip"), "netns", "exec", "r", "abemon", "--record", "/out/record"],
        16,
        80,
    )
    screen.watch(2)
    with Load(120) as load:
        load.udp(pps=50, size=172, dscp=46, id=1)
        screen.watch(20)
        load.tcp(flows=4, id=10, seconds=80)
        screen.watch(75)
        shown = screen.text()
        screen.watch(20)
    with open("/out/screen", "w", encoding="utf-8") as f:
        f.write(shown + "\n")
    os.write(screen.master, b"q")
    if screen.process.wait(timeout=10):
        raise RuntimeError("abemon failed")


main()
