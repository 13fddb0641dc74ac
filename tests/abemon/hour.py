# SPDX-License-Identifier: GPL-2.0
"""In the VM, for tests/host/abemon_hour: an hour of abemon, by the words that start it (TAP).

The view, which also records, and a server run all the time. Each minute something happens to
what they read: another configuration, another kind of qdisc, none, a device that goes and comes
back, a short load. Then the recording is read again.
"""

import argparse
import os
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../selftests"))

from lib import Load, Net, Tap, ip, netns, run, tc
from test_abemon import Screen, Server

HOUR = 3600
RECORD = "/out/record"


def happen(minute, net):
    """What happens in this minute; at most half of one."""
    what = minute % 6
    if what == 0:
        net.fresh("abe seed 1")
    elif what == 1:
        with Load(5) as load:
            load.udp(pps=50, size=172, dscp=46, id=1)
            load.tcp(flows=4, id=10)
    elif what == 2:
        net.fresh("abe packets limit 40 green_limit 5 min 5 max 15 seed 1")
    elif what == 3:
        net.fresh("pfifo")
    elif what == 4:
        ip("link add e0 type ifb", "link set e0 up", ns="r")
        tc("qdisc add dev e0 root abe bytes", ns="r")
    else:
        ip("link del e0", ns="r")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, required=True, help="seconds, of scrapes")
    parser.add_argument("--interval", required=True, help="of the view")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    # busybox's setsid would take its own ip
    inside = [shutil.which("ip"), "netns", "exec", "r", *args.command]
    t = Tap()
    run("modprobe sch_abe")
    net = Net(rate=2_000_000, delay=20)
    net.fresh("abe seed 1")
    ip("link set lo up", ns="r")
    screen = Screen([*inside, "--interval", args.interval, "--record", RECORD], 40, 100)
    with netns("r"):
        server = Server(command=args.command)
    begin, scrapes, drawn = time.monotonic(), 0, 0
    for minute in range(HOUR // 60):
        happen(minute, net)
        while time.monotonic() < begin + 60 * (minute + 1):
            drawn += len(screen.watch(args.every))
            with netns("r"):
                scrapes += server.get()[0] == 200
    t.note(f"{time.monotonic() - begin:.0f} s, {scrapes} scrapes, {drawn} bytes drawn")
    t.ok(scrapes > 0.4 * HOUR / args.every, "the server answers to the end")
    t.ok(drawn > 20 * HOUR / 10, "the view goes on to the end")
    os.write(screen.master, b"q")
    screen.watch(5)
    status = screen.process.wait(timeout=60)
    t.ok(status == 0, "the view ends", (status, screen.text()))
    status = server.end()
    t.ok(status == -signal.SIGTERM, "so does the server", status)
    p = run([*args.command, "--replay", RECORD, "--json"], check=False)
    with open(RECORD, encoding="utf-8") as f:
        lines = sum(1 for _ in f)
    t.ok(
        p.returncode == 0 and p.stdout.count("\n") == lines > HOUR / 20,
        f"it reads its recording again, {lines} readings",
        p.stderr,
    )
    t.done()


main()
