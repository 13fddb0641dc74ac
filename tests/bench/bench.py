#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""In the VM: what each qdisc costs per packet, in instructions; JSON lines.

Each line has the configuration, and the median and the largest batch of 64
enqueues and dequeues, per packet. Packets are of 512 bytes and ECT(0), so that AQMs
mark and nothing is lost.
"""

import itertools
import json
import sys
import time

sys.path.insert(0, "/abe/tests/selftests")
from lib import run

SIZE = 512
BACKLOGS = (0, 100, 10000)
SPACINGS = ("uniform", "geometric", "delayed_uniform", "delayed_geometric", "deterministic")
COLOURS = {"blue": 0, "green": 64, "mixed": 32}
RATE = 1e9 / 8  # bytes/s, of unit time


def sizes(unit, packets):
    """So many packets' worth of queue, as tc takes it."""
    return {
        "packets": f"{packets}",
        "bytes": f"{packets * SIZE}",
        "time": f"{packets * SIZE / RATE * 1e6:.0f}us",
    }[unit]


def red(backlog, marking):
    low = (backlog + 10 if marking else backlog + 1000) * SIZE
    high = 4 * low
    return (
        f"red limit {10 * high} min {low} max {high} avpkt {SIZE} burst {low // SIZE + 50} probability 0.02 "
        "bandwidth 1gbit ecn"
    )


def abe(backlog, marking, unit, more=""):
    low = backlog + 10 if marking else backlog + 1000
    most = min(40 * low, 1 << 20)
    t = {
        key: sizes(unit, n)
        for key, n in (("limit", most), ("green_limit", most), ("min", low), ("max", 4 * low))
    }
    if unit == "time":  # 10 s are 2.4 million packets
        t["limit"] = t["green_limit"] = "10s"
    return (
        f"abe {unit} limit {t['limit']} green_limit {t['green_limit']} min {t['min']} max {t['max']} probability 0.02 "
        f"weight 0.002 avpkt {SIZE} rate 1gbit ecn seed 1 {more}"
    )


def configurations():
    """(name, backlog, green packets of 64, tc's words)."""
    for backlog in BACKLOGS:
        big = 4 * backlog + 10000
        yield "pfifo", backlog, 0, f"pfifo limit {big}"
        yield "red, below min", backlog, 0, red(backlog, False)
        yield "red, marking", backlog, 0, red(backlog, True)
        yield "codel", backlog, 0, f"codel limit {big} ecn"
        yield "pie", backlog, 0, f"pie limit {big} ecn"
        yield "fq_codel", backlog, 0, f"fq_codel limit {big} ecn memory_limit 100mb"
        yield "fq", backlog, 0, f"fq limit {big} flow_limit {big}"
        yield "cake", backlog, 0, "cake memlimit 100mb"
        for colour, green in COLOURS.items():
            yield f"abe, below min, {colour}", backlog, green, abe(backlog, False, "packets")
        for unit, spacing, (colour, green) in itertools.product(
            ("packets", "bytes", "time"), SPACINGS, COLOURS.items()
        ):
            yield (
                f"abe, marking, {unit}, {spacing}, {colour}",
                backlog,
                green,
                abe(backlog, True, unit, f"spacing {spacing}"),
            )
        yield "abe, marking, bytemode, blue", backlog, 0, abe(backlog, True, "bytes", "bytemode")
        yield "abe, marking, bytemode, green", backlog, 64, abe(backlog, True, "bytes", "bytemode")
        yield (
            "abe, marking, defaults of rate, blue",
            backlog,
            0,
            abe(backlog, True, "packets").replace("rate 1gbit", ""),
        )
        yield (
            "abe, marking, 10 Mb/s, blue",
            backlog,
            0,
            abe(backlog, True, "packets").replace("1gbit", "10mbit"),
        )


def measure(backlog, green, words, rounds=500):
    run(f"tc qdisc add dev bench0 root {words}")
    run(f"insmod {MODULE} backlog={backlog} green={green} rounds={rounds}")
    with open("/sys/module/abe_bench/parameters/result", encoding="ascii") as f:
        median, largest, lost = map(int, f.read().split())
    run("rmmod abe_bench")
    run("tc qdisc del dev bench0 root")
    return {"median": median, "largest": largest, "lost": lost}


run("modprobe -a dummy sch_abe sch_red sch_codel sch_pie sch_fq_codel sch_fq sch_cake")
MODULE = run("modinfo -n abe_bench").stdout.strip()
run("ip link del bench0", check=False)
run("ip link add bench0 type dummy")
run("sysctl -qw net.ipv6.conf.bench0.disable_ipv6=1")
run("ip link set bench0 up")
only = sys.argv[1] if len(sys.argv) > 1 else ""
for name, backlog, green, words in configurations():
    if only in name:
        print(
            json.dumps({"name": name, "backlog": backlog, **measure(backlog, green, words)}),
            flush=True,
        )
if not only:
    print(
        json.dumps(
            {
                "name": "abe, marking, packets, uniform, blue",
                "backlog": 100000,
                **measure(100000, 0, abe(100000, True, "packets")),
            }
        ),
        flush=True,
    )
    for verb in ("change", "dump"):
        run("tc qdisc add dev bench0 root handle 1: abe")
        command = (
            "tc qdisc change dev bench0 root handle 1: abe limit 100ms"
            if verb == "change"
            else "tc -s qdisc show dev bench0"
        )
        start = time.monotonic()
        for _ in range(20):
            run(command)
        print(json.dumps({"name": f"tc, {verb}", "ms": (time.monotonic() - start) / 20 * 1e3}))
        run("tc qdisc del dev bench0 root")
