#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""In the VM: what each qdisc costs per packet, in instructions; JSON lines.

Each line has the configuration, the median and the largest batch of 64 enqueues and
dequeues, per packet, and how many of all packets were marked. Packets are of 512 bytes
and ECT(0), so that AQMs mark and nothing is lost. "marking": red and abe mark one packet
in 50, whatever the spacing and the colour: alpha is 1, for a bias would only be more marks.
protect is off but for rows of its own, where each green packet that is to be marked costs a
look at its flow; a run takes 5 ms, hardly more than from one sample to the next.
"""

import itertools
import json
import sys
import time

sys.path.insert(0, "/abe/tests/selftests")
from lib import run

SIZE = 512
BATCH = 64
BACKLOGS = (0, 100, 10000, 100000)
# The spacings, and the P in per cent with which each marks one packet in 50 where p is
# P/2: the mean gaps are 1/(2p), 1/p, 3/(2p), 2/p and 1/p.
SPACINGS = {
    "uniform": 2,
    "geometric": 4,
    "delayed_uniform": 6,
    "delayed_geometric": 8,
    "deterministic": 4,
}
COLOURS = {"blue": 0, "green": 64, "mixed": 32}
RATE = 1e9 / 8  # bytes/s, of unit time


def sizes(unit, packets):
    """So many packets' worth of queue, as tc takes it."""
    return {
        "packets": f"{packets}",
        "bytes": f"{packets * SIZE}",
        "time": f"{packets * SIZE / RATE * 1e6:.0f}us",
    }[unit]


def thresholds(backlog, marking):
    """min and max in packets: a batch's mean queue is half way between them, or below min."""
    mean = backlog + BATCH / 2
    width = min(mean * 2 / 3, 8000)  # tc takes no wider ones for red
    low = mean - width / 2 if marking else backlog + 1000
    return round(low), round(low + width)


def red(backlog, marking):
    low, high = thresholds(backlog, marking)
    return (
        f"red limit {10 * high * SIZE} min {low * SIZE} max {high * SIZE} avpkt {SIZE} "
        f"burst {low + 30} probability 0.02 bandwidth 1gbit ecn"
    )


def abe(backlog, marking, unit, weigh="nobytemode", spacing="uniform"):
    low, high = thresholds(backlog, marking)
    most = min(40 * (backlog + 10), 1 << 20)
    t = {
        key: sizes(unit, n)
        for key, n in (("limit", most), ("green_limit", most), ("min", low), ("max", high))
    }
    if unit == "time":  # 10 s are 2.4 million packets
        t["limit"] = t["green_limit"] = "10s"
    return (
        f"abe {unit} limit {t['limit']} green_limit {t['green_limit']} min {t['min']} max {t['max']} "
        f"probability {SPACINGS[spacing] / 100} spacing {spacing} weight 0.002 avpkt {SIZE} {weigh} "
        f"rate 1gbit ecn alpha_max 1 memory_limit 1gb seed 1 protect off"
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
        # Shaped, but never so slow that it has to wait.
        yield "cake, shaped", backlog, 0, "cake memlimit 100mb bandwidth 100gbit diffserv4"
        for colour, green in COLOURS.items():
            yield f"abe, below min, {colour}", backlog, green, abe(backlog, False, "packets")
        for unit, spacing, (colour, green) in itertools.product(
            ("packets", "bytes", "time"), SPACINGS, COLOURS.items()
        ):
            yield (
                f"abe, marking, {unit}, {spacing}, {colour}",
                backlog,
                green,
                abe(backlog, True, unit, spacing=spacing),
            )
        for unit, (colour, green) in itertools.product(("bytes", "time"), COLOURS.items()):
            yield (
                f"abe, marking, {unit}, bytemode, {colour}",
                backlog,
                green,
                abe(backlog, True, unit, "bytemode"),
            )
        yield (
            "abe, marking, defaults of rate, blue",
            backlog,
            0,
            abe(backlog, True, "packets").replace("rate 1gbit", ""),
        )
        for colour, green in (("blue", 0), ("green", 64)):
            slow = abe(backlog, True, "packets").replace("1gbit", "10mbit")
            yield f"abe, marking, 10 Mb/s, {colour}", backlog, green, slow
            slow = slow.replace("protect off", "protect 0.3")
            yield f"abe, protect, 10 Mb/s, {colour}", backlog, green, slow


def measure(backlog, green, words, rounds=500):
    run(f"tc qdisc add dev bench0 root {words}")
    run(f"insmod {MODULE} backlog={backlog} green={green} rounds={rounds}")
    with open("/sys/module/abe_bench/parameters/result", encoding="ascii") as f:
        median, largest, lost, marks = map(int, f.read().split())
    run("rmmod abe_bench")
    run("tc qdisc del dev bench0 root")
    return {
        "median": median,
        "largest": largest,
        "lost": lost,
        "marked": marks / (BATCH * rounds),
    }


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
