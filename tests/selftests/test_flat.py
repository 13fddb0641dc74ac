#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: limits in bytes, constant rates, harddrop, drops of what ECN would mark, TCP without ECN
"""`abe flat` beside in-tree red with the same numbers: losses, marks, delay, goodput.

The arrivals of the open-loop parts are the same packets at the same times for
each qdisc, so that these tolerances are those of the two queues' own dice:
delays 5 %, counts of losses and marks 10 %, or three standard deviations of
uniform spacing where the counts are small. TCP answers each die, so there it
is goodput 3 %, losses and marks 20 %, delay 10 %, without its slow start, when
the average is beyond max for anything from no time to four seconds.
"""

import json
import math
import time

from lib import LONG, Load, Net, Tap, run, tc

RATE = 2_000_000
SIZE = 972
WIRE = SIZE + 42
CAPACITY = RATE / 8 / WIRE  # packets a second


def specs(low, high, burst):
    """Three qdiscs with the same numbers. avpkt is the packets' size, so that all forget alike when idle. red's
    weight is a power of two, which tc finds by burst and min: 2^-9."""
    packets = {"limit": 60, "min": low, "max": high}
    size = " ".join(f"{k} {v * WIRE}" for k, v in packets.items())
    abe = f"abe flat weight 0.001953125 avpkt {WIRE} probability 0.15 rate 2mbit seed 1"
    return {
        "red": f"red avpkt {WIRE} burst {burst} bandwidth 2mbit probability 0.15 {size}",
        "abe packets": f"{abe} packets " + " ".join(f"{k} {v}" for k, v in packets.items()),
        "abe bytes": f"{abe} bytes {size}",
    }


USUAL = specs(10, 30, 90)
LOW = specs(2, 20, 30)


def counts(q):
    """Arrivals, losses of the probability and of a certain loss, of the full buffer, marks."""
    if q["kind"] == "red":
        return {"lost": q["drops"], "limit": q["pdrop"], "marks": q["marked"]}
    (blue, green) = (q["blue"], q["green"])
    assert not green["arrived"]
    return {
        "lost": blue["early_drops"] + blue["limit_drops"],
        "limit": blue["limit_drops"],
        "marks": blue["marks"],
    }


def one(net, spec, seconds, start, settle):
    """What one qdisc does with that traffic, its counts beginning after settle seconds."""
    net.fresh(spec)
    with Load(seconds, warmup=5) as load:
        start(load)
        time.sleep(settle)
        before = counts(net.stats(spec.split()[0]))
    after = counts(net.stats(spec.split()[0]))
    res = {key: after[key] - before[key] for key in after}
    udp = load.report["udp"]
    packets = sum(f["packets"] for f in udp)
    res["delay"] = sum(f["delay_us"]["mean"] * f["packets"] for f in udp) / packets / 1e3
    res["goodput"] = sum(f["goodput"] for f in udp + load.report["tcp"]) / 1e6
    return res


def close(a, b, tolerance):
    """Whether two counts of a regular process are near each other."""
    return abs(a - b) <= max(tolerance * b, 3 * math.sqrt((a + b) / 3) + 2)


def compare(tap, net, name, qdiscs, options, seconds, start, tcp=False):
    loose = 2 if tcp else 1
    base = None
    for kind, spec in qdiscs.items():
        if kind == "abe bytes" and not LONG:
            continue
        got = one(net, f"{spec} {options}", seconds, start, 6 if tcp else 0)
        text = ", ".join(
            f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v}" for k, v in got.items()
        )
        tap.note(f"{name}, {kind}: {text}")
        if base is None:
            base = got
            tap.ok(base["lost"] + base["marks"] > 100, f"{name}: red is at work", base)
            continue
        for key in ("lost", "marks"):
            tap.ok(
                close(got[key], base[key], 0.1 * loose),
                f"{name}, {kind}: {key} as red",
                (got, base),
            )
        tap.ok(
            abs(got["delay"] / base["delay"] - 1) < 0.05 * loose,
            f"{name}, {kind}: delay as red",
            (got, base),
        )
        tap.ok(
            abs(got["goodput"] / base["goodput"] - 1) < 0.03,
            f"{name}, {kind}: goodput as red",
            (got, base),
        )


def udp(load_factor, poisson, ecn=0):
    def start(load):
        load.udp(pps=load_factor * CAPACITY, size=SIZE, id=1, poisson=poisson, ecn=ecn)

    return start


def tcp_flows(load):
    load.tcp(flows=4, id=10)
    load.udp(pps=10, size=SIZE, id=1, ecn=2)


def main():
    tap = Tap()
    net = Net(rate=RATE, delay=20)
    for low, qdiscs in ((10, USUAL), (2, LOW)):
        net.fresh(qdiscs["red"])
        shown = json.loads(tc("-d -j qdisc show dev out", "r").stdout)
        (options,) = [q["options"] for q in shown if q["kind"] == "red"]
        tap.ok(
            options["ewma"] == 9 and options["min"] == low * WIRE,
            f"red with min {low}: its weight is 2^-9",
            options,
        )

    if LONG:
        compare(tap, net, "10 % overload, constant rate", USUAL, "", 30, udp(1.1, False))
    compare(tap, net, "10 % overload, Poisson", USUAL, "", 30, udp(1.1, True))
    compare(tap, net, "2 % below capacity, Poisson, ecn", LOW, "ecn", 50, udp(0.98, True, 2))
    if LONG:
        compare(
            tap,
            net,
            "30 % overload, Poisson, ecn harddrop",
            USUAL,
            "ecn harddrop",
            25,
            udp(1.3, True, 2),
        )
        compare(
            tap, net, "30 % overload, Poisson, not ECN capable", USUAL, "ecn", 15, udp(1.3, True)
        )
    for ns in "ab":
        run(
            "ip route replace default via 10.0.{}.2 advmss {}".format(
                "ab".index(ns) + 1, WIRE - 14 - 40
            ),
            ns=ns,
        )
    if LONG:
        compare(tap, net, "TCP", USUAL, "", 60, tcp_flows, tcp=True)
    for ns in "ab":
        run("sysctl -qw net.ipv4.tcp_ecn=1", ns=ns)
    compare(tap, net, "TCP, ecn", USUAL, "ecn", 60, tcp_flows, tcp=True)
    tap.done()


main()
