#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Every option of tc-abe does what it says: each has a test of its effect.

Most tests flood a queue that stands still (wire.Port). With weight 1 the
average is the queue, so at the limit the first stage sees a constant queue of
`limit`, hence a constant probability, and with deterministic spacing the
number of losses is known beforehand.
"""

import itertools
import json
import math
import os
import subprocess
import sys
import time

import lib
from lib import Trace, run
from wire import Port, tun

# 50 queued of 0 .. 100: half of the probability
STEADY = "abe packets limit 50 green_limit 1000 min 0 max 100 weight 1 interval 10s spacing deterministic"
# no first stage
CALM = "min 900000 max 1000000"


def near(value, wanted, relative=0.001, absolute=0.0):
    return abs(value - wanted) <= max(abs(wanted) * relative, absolute)


def early(port, spec, count=1000, **packets):
    """First-stage losses of `count` packets that meet a full queue."""
    port.fresh(spec)
    port.blue(51)
    before = port.stats()
    port.send(count, **packets)
    return {
        key: sum(lib.delta(before, port.stats())[c][key] for c in ("green", "blue"))
        for key in ("early_drops", "marks")
    }


def flood(port, spec, count=100, **packets):
    """(packets queued, statistics) after a flood of one colour."""
    port.fresh(spec)
    port.send(count, **packets)
    st = port.stats()
    return st["qlen"], st


def losses(port, spec, count, packet, **config):
    """Which of `count` packets that meet a full queue are lost early."""
    port.fresh(spec, **config)
    port.blue(51)
    with Trace("abe_drop") as trace:
        packet(count)
    return [n for n, e in enumerate(trace.events) if e["stage"] == "early"]


def gaps(lost):
    return [b - a for a, b in itertools.pairwise(lost)]


# --- units, sizes ---


def test_units(t, port):
    n, _ = flood(port, f"abe packets limit 20 {CALM}")
    t.ok(n == 20, "packets: limit counts packets", n)
    n, _ = flood(port, f"abe packets limit 20 {CALM}", size=500)
    t.ok(n == 20, "packets: whatever their size", n)
    n, _ = flood(port, f"abe bytes limit 20000 {CALM}")
    t.ok(n == 20, "bytes: limit counts bytes", n)
    n, _ = flood(port, f"abe bytes limit 20000 {CALM}", size=500)
    t.ok(n == 40, "bytes: twice as many of half the size", n)
    n, _ = flood(port, "abe time rate 800kbit limit 600ms min 9s max 10s")
    t.ok(n == 60, "time: limit is a duration at the rate", n)
    n, _ = flood(port, "abe rate 800kbit limit 600ms min 9s max 10s", count=150, size=500)
    t.ok(n == 120, "time is the default unit", n)
    n, st = flood(port, "abe time rate 8kbit weight 0.000001", count=60, size=1514)
    t.ok(
        n == 30 and st["limit_bytes"] == 30 * 1514 and st["green_limit_bytes"] == 2 * 1514,
        "time: floors of 30 and 2 full-size packets",
        (n, st["limit_bytes"], st["green_limit_bytes"]),
    )


def test_floor_of_thresholds(t, port):
    # floor of min 5, max 15 full-size packets: with weight 1 no loss up to 5, all from 15 on
    n, _ = flood(port, "abe time rate 8kbit weight 1 noecn probability 0.0001", count=60, size=1514)
    t.ok(n == 15, "time: floor of max is 15 full-size packets", n)
    st = flood(
        port, "abe time rate 8kbit weight 1 noecn probability 1 limit 10s", count=6, size=1514
    )[1]
    t.ok(st["blue"]["early_drops"] == 0, "time: floor of min is 5 full-size packets", st["blue"])


def test_first_look(t, port):
    """Behind a token bucket the drain rate is known, and right, within a few packets."""
    for kbit, burst in (
        (64, 1600),
        (64, 6000),
        (256, 1600),
        (1000, 1600),
        (1000, 15000),
        (5000, 1600),
        (20000, 20000),
    ):
        port.fresh("abe")
        port.batch(
            f"qdisc change dev {port.name} root handle 1: tbf rate {kbit}kbit burst {burst} limit 1000000"
        )
        port.send(300)
        # a packet that is waited for, one to begin with, two full-size ones, and some more
        time.sleep(0.02 + 6 * 1514 * 8 / kbit / 1000)
        st = port.stats()
        t.ok(
            near(st["drain_rate"], kbit * 125, 0.1),
            f"{kbit} kb/s, burst {burst}: the drain rate within six packets",
            st["drain_rate"] / 125,
        )
        t.ok(
            st["backlog"] <= st["limit_bytes"] and not lib.balance(st),
            f"{kbit} kb/s, burst {burst}: no more is queued than the limit",
            (st["backlog"], st["limit_bytes"], lib.balance(st)),
        )


def test_rate(t, port):
    for kbit, wanted in ((800, 60), (1600, 120)):
        n, st = flood(port, f"abe rate {kbit}kbit limit 600ms min 9s max 10s", count=150)
        t.ok(
            n == wanted and st["drain_rate"] == kbit * 125 and st["limit_bytes"] == wanted * 1000,
            f"rate {kbit}kbit: {wanted} packets in 600 ms",
            (n, st["drain_rate"], st["limit_bytes"]),
        )
    # not given: measured from departures
    port.fresh("abe limit 10s min 9s max 10s")
    port.batch(
        f"qdisc change dev {port.name} root handle 1: tbf rate 4mbit burst 1600 limit 1000000"
    )
    t.ok(
        port.stats()["drain_rate"] == 125000000,
        "rate not given: the link's speed at first",
        port.stats(),
    )
    port.send(400)
    time.sleep(0.6)
    st = port.stats()
    t.ok(
        near(st["drain_rate"], 500000, 0.02),
        "then departures while the queue is busy",
        st["drain_rate"],
    )
    port.open()
    # an idle link must not count
    port.batch(
        f"qdisc change dev {port.name} root handle 1: tbf rate 4mbit burst 1600 limit 1000000"
    )
    port.send(200, gap=0.01)
    st2 = port.stats()
    t.ok(
        near(st2["drain_rate"], st["drain_rate"], 0.1) or st2["drain_rate"] > 1e6,
        "an idle link does not lower it",
        st2,
    )


def test_limit(t, port):
    for limit in (1, 7, 33):
        n, st = flood(port, f"abe packets limit {limit} {CALM}")
        wanted = 100 - 1 - limit
        t.ok(
            n == limit and st["blue"]["limit_drops"] == wanted,
            f"limit {limit} holds {limit} packets",
            (n, st["blue"]),
        )


def test_green_limit(t, port):
    for limit in (0, 5, 20):
        n, st = flood(port, f"abe packets limit 90 green_limit {limit} {CALM}", dscp=46)
        t.ok(
            n == limit + 1 and st["green"]["late_drops"] == 100 - 2 - limit,
            f"green_limit {limit}: green is lost with more than that ahead",
            (n, st["green"]),
        )
    n, st = flood(port, "abe bytes green_limit 5000 limit 1000000 min 1000000 max 2000000", dscp=46)
    t.ok(n == 6, "green_limit in bytes", n)
    n, st = flood(port, "abe rate 80mbit green_limit 5ms min 9s max 10s", dscp=46)
    t.ok(
        n == 51 and st["green_limit_bytes"] == 50000,
        "green_limit as a duration",
        (n, st["green_limit_bytes"]),
    )


def test_min(t, port):
    base = "abe packets limit 90 weight 1 probability 1 spacing deterministic interval 10s"
    for low in (10, 40):
        # certain from low + 1 on
        n, st = flood(port, f"{base} min {low} max {low + 1}")
        t.ok(n == low + 1, f"min {low}: the first stage begins there", (n, st["blue"]))
    st = flood(port, f"{base} min 60 max 80", count=60)[1]
    t.ok(
        st["blue"]["early_drops"] == 0 and st["probability"] == 0,
        "below min nothing is lost",
        st["blue"],
    )


def test_max(t, port):
    base = "abe packets limit 90 weight 1 probability 0.0001 spacing deterministic interval 10s"
    for high in (20, 40):
        n, st = flood(port, f"{base} min 10 max {high}")
        t.ok(n == high, f"max {high}: all is lost from there on", (n, st["blue"]))


def test_probability(t, port):
    for p in (0.05, 0.2, 1):
        lost = early(port, f"{STEADY} probability {p}")["early_drops"]
        st = port.stats()
        t.ok(
            near(lost, 1000 * p / 2, 0, 2),
            f"probability {p}: {500 * p:.0f} of 1000 lost halfway",
            lost,
        )
        t.ok(
            near(st["probability"], p / 2, 1e-6),
            "and shown as the probability in force",
            st["probability"],
        )


# --- the average ---


def average(weight, arrivals, limit):
    """RED's average queue after that many arrivals on a queue at rest."""
    avg, queue = 0.0, 0
    for n in range(arrivals):
        avg += weight * (queue - avg)
        if n and queue < limit:
            queue += 1
    return avg


def test_weight(t, port):
    for w in (0.002, 0.05, 1):
        st = flood(port, f"abe packets limit 50 {CALM} weight {w}", count=100)[1]
        wanted = average(w, 100, 50)
        t.ok(
            near(st["average"], wanted, 0.0005), f"weight {w}: average {wanted:.4f}", st["average"]
        )
    for rate, avpkt in ((80, 1000), (80, 2000), (800, 1000)):
        st = flood(
            port, f"abe rate {rate}kbit weight auto avpkt {avpkt} limit 5s min 9s max 10s", count=60
        )[1]
        w = 1 - math.exp(-avpkt / (rate * 125))
        wanted = average(w, 60, rate * 5 // 8) * 1000
        t.ok(
            near(st["average"], wanted, 0.003),
            f"weight auto, {rate} kbit/s, avpkt {avpkt}: time constant of a second",
            (st["average"], wanted),
        )


def test_avpkt(t, port):
    # an idle queue ages by what a link of 1 MB/s would have sent
    if lib.UM:
        t.skip("an idle queue ages", "the trace's clock ticks 100 times a second on ARCH=um")
        return
    for avpkt in (500, 1000, 2000):
        port.fresh(f"abe packets rate 8mbit limit 100 {CALM} weight 0.01 avpkt {avpkt}")
        port.batch(
            f"qdisc change dev {port.name} root handle 1: tbf rate 8mbit burst 1514 limit 1000000"
        )
        with Trace("abe_dequeue") as trace:
            port.send(100)
            time.sleep(0.3)
            before = port.stats()
            port.send(1)
        after = port.stats()
        idle = trace.events[-1]["time"] - trace.events[-2]["time"]
        packets = idle * 1e6 / avpkt
        wanted = before["average"] * 0.99 ** (packets + 1)
        t.ok(
            before["average"] > 5 and near(after["average"], wanted, 0.005),
            f"avpkt {avpkt}: {1000 * idle:.0f} ms of idle time are {packets:.0f} packets",
            (before["average"], after["average"], wanted),
        )
    st = flood(port, "abe bytes avpkt 500", count=0)[1]
    o = st["options"]
    t.ok(
        (o["limit"], o["green_limit"], o["min"], o["max"]) == (30000, 5000, 5000, 15000),
        "bytes: the default sizes are multiples of avpkt",
        o,
    )


def test_adaptive(t, port):
    base = "packets limit 50 green_limit 1000 min 0 weight 1 probability 0.1 interval 100ms spacing deterministic"
    # above the middle fifth (45 .. 50 of 75 .. 83), below it, without
    for spec, word in (
        ("max 75 adaptive", "rises"),
        ("max 200 adaptive", "falls"),
        ("max 75", "stays"),
    ):
        port.fresh(f"abe {base} {spec}")
        port.blue(51)
        port.blue(1000)
        first = port.stats()
        for _ in range(10):
            time.sleep(0.11)
            port.blue(2)
        middle = port.stats()
        port.blue(1000)
        last = port.stats()
        ratio = (last["blue"]["early_drops"] - middle["blue"]["early_drops"]) / first["blue"][
            "early_drops"
        ]
        good = {"rises": ratio > 1.5, "falls": ratio < 0.6, "stays": near(ratio, 1, 0.06)}[word]
        t.ok(
            good,
            f"{spec}: the probability {word}",
            (ratio, first["probability"], last["probability"]),
        )


def test_gentle(t, port):
    base = "abe packets limit 60 weight 1 min 10 max 20 probability 0.1 spacing deterministic interval 10s"
    n, _ = flood(port, f"{base} nogentle")
    t.ok(n == 20, "nogentle: all is lost above max", n)
    n, st = flood(port, f"{base} gentle")
    t.ok(n > 25, "gentle: the probability climbs on to 1 at twice max", n)
    n, st = flood(port, f"{base} gentle", count=400)
    t.ok(n <= 40 and st["green"]["limit_drops"] == 0, "and all is lost from there on", n)
    port.fresh("abe packets limit 30 weight 1 min 10 max 20 probability 0.1 interval 10s gentle")
    port.blue(200)
    port.blue(1)
    st = port.stats()
    q = st["average"]
    wanted = 0.1 + 0.9 * (q - 20) / 20
    t.ok(
        q > 20 and near(st["probability"], wanted, 1e-4),
        "in proportion in between",
        (q, st["probability"], wanted),
    )


def test_bytemode(t, port):
    for spec, size, wanted in (
        ("bytemode avpkt 1000", 1000, 100),
        ("bytemode avpkt 1000", 250, 25),
        ("bytemode avpkt 2000", 1000, 50),
        ("nobytemode avpkt 2000", 250, 100),
    ):
        lost = early(port, f"{STEADY} probability 0.2 {spec}", size=size)["early_drops"]
        t.ok(near(lost, wanted, 0, 2), f"{spec}: {wanted} of 1000 lost of {size} bytes", lost)


def test_ecn(t, port):
    spec = f"{STEADY} probability 0.2"
    for ecn, codepoint, marks in (("ecn", 2, 100), ("ecn", 1, 0), ("ecn", 0, 0), ("noecn", 2, 0)):
        n = early(port, f"{spec} {ecn}", ecn=codepoint)
        t.ok(
            near(n["marks"], marks, 0, 2) and near(n["early_drops"], 100 - marks, 0, 2),
            f"{ecn}, codepoint {codepoint}: {'marked' if marks else 'dropped'}",
            n,
        )


def test_harddrop(t, port):
    # above max
    spec = "abe packets limit 60 weight 1 min 10 max 20 probability 0.0001 interval 10s ecn"
    port.fresh(f"{spec} noharddrop")
    port.blue(100, ecn=2)
    soft = port.stats()
    port.fresh(f"{spec} harddrop")
    port.blue(100, ecn=2)
    hard = port.stats()
    t.ok(
        soft["qlen"] == 60 and soft["blue"]["marks"] == 79 and soft["blue"]["early_drops"] == 0,
        "noharddrop: marked even above max",
        soft["blue"],
    )
    t.ok(
        hard["qlen"] == 20 and hard["blue"]["marks"] == 0,
        "harddrop: dropped above max",
        hard["blue"],
    )
    n = early(port, f"{STEADY} probability 0.2 ecn harddrop", ecn=2)
    t.ok(near(n["marks"], 100, 0, 2) and n["early_drops"] == 0, "harddrop: marked below max", n)


def test_spacing(t, port):
    # p = 0.05: 1/p is 20 packets
    for spacing, good in (
        ("uniform", lambda g, m: min(g) < 5 and max(g) <= 20 and near(m, 10.5, 0.2)),
        ("geometric", lambda g, m: min(g) < 5 and max(g) > 45 and near(m, 20, 0.25)),
        ("delayed_uniform", lambda g, m: min(g) >= 20 and 35 < max(g) <= 41 and near(m, 30.5, 0.2)),
        ("delayed_geometric", lambda g, m: min(g) >= 19 and max(g) > 45 and near(m, 40, 0.25)),
        ("deterministic", lambda g, m: min(g) >= 19 and max(g) <= 21 and near(m, 20, 0.01)),
    ):
        spec = f"abe packets limit 50 min 0 max 100 weight 1 interval 10s probability 0.1 seed 1 spacing {spacing}"
        g = gaps(losses(port, spec, 2500, port.blue))
        mean = sum(g) / len(g)
        t.ok(
            good(g, mean),
            f"spacing {spacing}: gaps {min(g)} .. {max(g)}, mean {mean:.1f}",
            sorted(g),
        )


def test_seed(t, port):
    base = "abe packets limit 50 min 0 max 100 weight 1 interval 10s probability 0.2"
    for spacing in ("uniform", "geometric"):
        a, b, c, d, e = (
            losses(port, f"{base} spacing {spacing} {seed}", 300, port.blue)
            for seed in ("seed 7", "seed 7", "seed 8", "seed 0", "")
        )
        t.ok(a == b and len(a) > 10, f"{spacing}: the same seed, the same losses", (a, b))
        t.ok(a != c, "another seed, others", a)
        t.ok(d not in (a, c, e), "no seed: random", d)


# --- the loop ---


def bias(kind, x, share=0.0, most=100.0):
    """The required bias at the ratio x of round trips."""
    if x <= 1:
        return 1.0
    if kind == "paper":
        return most if x * x >= 2 else min(most, (x**3 / (2 - x * x)) ** 2)
    return min(most, (x**3 / (x * x - share * (x * x - 1))) ** 2)


def test_loop(t, port):
    for kind in ("paper", "load"):
        st = flood(port, f"abe packets loop {kind}", count=0)[1]
        wanted = bias(kind, (0.18 + 0.05) / 0.18)
        t.ok(
            near(st["alpha"], wanted, 0.001),
            f"loop {kind}: alpha starts at {wanted:.3f}",
            st["alpha"],
        )
    # a quarter of a second without green ahead: the paper takes k2 each, load k4
    for kind, step in (("paper", 20000), ("load", 500)):
        port.fresh(f"abe packets loop {kind} offset 100ms interval 50ms", "open")
        for _ in range(4):
            port.green()
            port.blue()
            time.sleep(0.06)
        st = port.stats()
        wanted = 100000 - step * st["updates"]
        t.ok(
            st["updates"] == 3 and st["offset"] == wanted,
            f"loop {kind}: D falls by {step} us",
            (st["offset"], wanted),
        )
    # the load loop's target knows the share of green: half here
    port.fresh("abe packets loop load offset 100ms interval 50ms gamma1 0 gamma2 0.9", "open")
    port.blue(20)
    port.green(10)
    time.sleep(0.06)
    port.blue()
    st = port.stats()
    x = (180000 + st["delay_blue"]) / (180000 + st["delay_green"])
    t.ok(
        near(st["green_share"], 0.5, 0.001),
        "loop load: the share of green is measured",
        st["green_share"],
    )
    wanted = bias("load", x, 0.5)
    t.ok(
        near(st["alpha_target"], wanted, 0.001),
        f"loop load: required bias {wanted:.3f}",
        st["alpha_target"],
    )


def test_rtt(t, port):
    for rtt in (50, 180, 400):
        for kind in ("paper", "load"):
            st = flood(port, f"abe packets loop {kind} rtt {rtt}ms offset 40ms", count=0)[1]
            wanted = bias(kind, (rtt + 20) / rtt)
            t.ok(
                near(st["alpha"], wanted, 0.001),
                f"rtt {rtt}ms, {kind}: alpha {wanted:.3f}",
                st["alpha"],
            )


def test_interval(t, port):
    for ms, wanted in ((50, 40), (500, 4)):
        port.fresh(f"abe packets interval {ms}ms", "open")
        port.blue(402, gap=0.005)
        n = port.stats()["updates"]
        t.ok(near(n, wanted, 0.15), f"interval {ms}ms: {wanted} updates in 2 s", n)
    n = port.stats()["updates"]
    time.sleep(5)
    t.ok(port.stats()["updates"] == n, "and none while idle")


def one_update(port, spec, blue=0, green=0, state="closed"):
    """Statistics before and after one update over those arrivals."""
    port.fresh(f"abe {spec} interval 100ms", state)
    before = port.stats()
    port.blue(blue)
    port.green(green)
    time.sleep(0.11)
    port.blue()
    after = port.stats()
    assert after["updates"] == 1, after["updates"]
    return before, after


LOSSY = "packets limit 50 green_limit 1000 min 0 max 100 weight 1 spacing deterministic probability 0.05"


def test_k1(t, port):
    steps = []
    for k1 in (0, 0.25, 0.5, 1):
        before, after = one_update(port, f"{LOSSY} k1 {k1} gamma1 0.9", blue=400, green=400)
        wanted = k1 * math.log(
            after["loss_blue"] * after["alpha_target"] / after["loss_green_early"]
        )
        step = math.log(after["alpha"] / before["alpha"])
        steps.append(step)
        t.ok(near(step, wanted, 0.001, 1e-4), f"k1 {k1}: log(alpha) moves by {wanted:.4f}", step)
    t.ok(abs(steps[-1]) > 0.05, "and that is something", steps)


def test_gains_of_offset(t, port):
    # green alone, no late loss: what green finds ahead grows 0, 0, 1, 2, ...
    seen = sum(range(20)) / 21
    for k2 in (20, 80):
        for lam in (0.4, 0.8):
            spec = f"packets loop paper offset 100ms offset_max 1s green_limit 40 limit 1000 {CALM} k2 {k2}ms lambda {lam}"
            after = one_update(port, spec, green=21)[1]
            wanted = 100000 + k2 * 1000 * (seen / (lam * 40) - 1)
            t.ok(
                near(after["offset"], wanted, 0, 30),
                f"k2 {k2}ms, lambda {lam}: D {wanted:.0f} us",
                after["offset"],
            )
    for kind, k4 in (("paper", 0), ("load", 500), ("load", 5000)):
        for k3 in (0.2, 2):
            spec = f"packets loop {kind} offset 100ms offset_max 10s green_limit 10 {CALM} k2 0us k3 {k3}s k4 {k4}us"
            after = one_update(port, spec, green=100)[1]
            late = after["loss_green_late"]
            wanted = 100000 + k3 * 1e6 * late - k4
            t.ok(
                late > 0.3 and near(after["offset"], wanted, 0, 20),
                f"loop {kind}, k3 {k3}s, k4 {k4}us: D {wanted:.0f} us",
                (after["offset"], late),
            )


def test_gammas(t, port):
    for g in (0, 0.3, 0.8):
        before, after = one_update(port, f"{LOSSY} gamma1 {g}", blue=400, green=400)
        for c, key in (("blue", "loss_blue"), ("green", "loss_green_early")):
            n = after[c]
            # the arrival that triggered the update comes after it
            came = n["arrived"] - (c == "blue")
            ratio = (n["early_drops"] + n["limit_drops"]) / came
            wanted = g * before[key] + (1 - g) * ratio
            t.ok(
                near(after[key], wanted, 0.02, 0.003),
                f"gamma1 {g}: {key} {wanted:.4f}",
                (after[key], ratio),
            )
        # smoothed are the loads and not their ratio: the first interval's counts whole
        t.ok(
            near(after["green_share"], 1, 0.001),
            f"gamma1 {g}: green_share 1",
            after["green_share"],
        )
    for g in (0, 0.4, 0.9):
        # all pass at once: measured delays are a few microseconds
        before, after = one_update(
            port, f"packets gamma2 {g} offset 100ms", blue=10, green=10, state="open"
        )
        wanted = g * 50000
        t.ok(
            near(after["delay_blue"], wanted, 0.001, 200),
            f"gamma2 {g}: delay_blue {wanted:.0f} us",
            after["delay_blue"],
        )
    for g in (0, 0.4, 0.9):
        before, after = one_update(port, f"packets gamma3 {g} green_limit 10 {CALM}", green=100)
        wanted = (1 - g) * after["green"]["late_drops"] / 100
        t.ok(
            near(after["loss_green_late"], wanted, 0.001),
            f"gamma3 {g}: loss_green_late {wanted:.3f}",
            after,
        )


def test_loop_bytemode(t, port):
    # what the loop counts as lost, and of what: by size with bytemode, else by number
    base = "bytes min 0 max 400000 weight 1 probability 0.5 green_limit 10000000 spacing deterministic gamma1 0"
    for limit, mode, avpkt in itertools.product(
        (1000000, 150000), ("bytemode", "nobytemode"), (500, 2000)
    ):
        port.fresh(f"abe {base} limit {limit} {mode} avpkt {avpkt} interval 100ms loop load")
        port.blue(100)
        port.green(400, size=250)
        port.blue(50)
        time.sleep(0.11)
        port.blue()
        st = port.stats()
        text = f"{mode}, avpkt {avpkt}, limit {limit}"
        for c, key, size in (("blue", "loss_blue", 1000), ("green", "loss_green_early", 250)):
            n = st[c]
            # the arrival that triggered the update comes after it
            came = n["arrived"] - (c == "blue")
            lost = n["early_drops"] + n["limit_drops"]
            wanted = lost / came
            if mode == "bytemode":
                wanted = (n["early_drops"] * avpkt + n["limit_drops"] * size) / (came * size)
            t.ok(
                lost > 5 and near(st[key], min(wanted, 1), 0.001, 3 / came),
                f"{text}: {key} {wanted:.4f}",
                (st[key], n),
            )
        t.ok(
            near(st["green_share"], 400 * 250 / 150000, 0.001),
            f"{text}: the share of green is in bytes",
            st["green_share"],
        )


def order(port, spec):
    port.fresh(spec)
    port.blue()  # takes the bucket
    port.blue()  # peeked
    with Trace("abe_dequeue") as trace:
        port.blue(3)
        time.sleep(1e-6)  # of equal deadlines green is first
        port.green(3)
        port.open()
    return "".join(e["colour"][0] for e in trace.events)


def test_offset(t, port):
    # at a rate at which the clock is read for each packet
    base = f"abe packets rate 8mbit {CALM} interval 10s"
    got = order(port, f"{base} offset 100ms")
    t.ok(got == "bgggbbb", "offset 100ms: green overtakes blue (not the one peeked)", got)
    got = order(port, f"{base} offset 0us")
    t.ok(got == "bbbbggg", "offset 0: first in, first out", got)
    st = flood(port, f"{base} offset 30ms", count=0)[1]
    t.ok(
        st["offset"] == 30000 and st["delay_blue"] == 15000,
        "offset is D at the start",
        st["offset"],
    )


def test_offset_change(t, port):
    port.fresh("abe packets offset 30ms interval 10s")
    port.change("k4 1ms")
    t.ok(port.stats()["offset"] == 30000, "another change leaves D", port.stats()["offset"])
    port.change("offset 70ms")
    t.ok(port.stats()["offset"] == 70000, "change offset 70ms moves it", port.stats()["offset"])
    port.change("offset_max 50ms")
    st = port.stats()
    t.ok(
        st["offset"] == 50000 and st["options"]["offset"] == 50000,
        "a lower offset_max takes both along",
        (st["offset"], st["options"]),
    )
    before = st["options"]
    text = run(f"tc qdisc show dev {port.name}").stdout
    words = next(x for x in text.splitlines() if " abe " in x).split("parent 1:1 ")[1]
    port.change(words)
    t.ok(port.stats()["options"] == before, "what tc prints can be given again", words)


def test_offset_max(t, port):
    st = flood(port, "abe packets offset_max 50ms", count=0)[1]
    t.ok(st["offset"] == 50000, "offset_max 50ms holds D", st["offset"])
    after = one_update(
        port, f"packets offset 100ms offset_max 150ms green_limit 5 {CALM}", green=100
    )[1]
    t.ok(after["offset"] == 150000, "D rises to offset_max and no further", after["offset"])
    port.change("offset_max 20ms")
    t.ok(
        port.stats()["offset"] == 20000, "a lower offset_max takes D along", port.stats()["offset"]
    )
    # unit time: 30 full-size packets at least, 10 s at most
    for rate, given, wanted in (
        ("1mbit", "100ms", 30 * 1514 * 8),
        ("8kbit", "9s", 10_000_000),
        ("100mbit", "100ms", 100_000),
    ):
        spec = f"time rate {rate} green_limit 1us k3 10s min 9s max 10s limit 10s offset {given} offset_max {given}"
        after = one_update(port, spec, green=100)[1]
        t.ok(after["offset"] == wanted, f"{rate}: D rises to {wanted} us", after["offset"])
        port.change("k4 1ms")
        t.ok(port.stats()["offset"] == wanted, f"{rate}: a change leaves it there", port.stats())
    got = order(port, f"abe packets rate 8mbit {CALM} interval 10s offset_max 0us")
    t.ok(got == "bbbbggg", "offset_max 0: first in, first out", got)


def test_alpha_max(t, port):
    for kind in ("paper", "load"):
        # rtt 1 ms, D 100 ms: more bias than anybody allows
        for most in (1, 5):
            spec = f"{STEADY} loop {kind} rtt 1ms offset 100ms probability 0.02 alpha_max {most}"
            lost = early(port, spec, count=1000, dscp=46)["early_drops"]
            st = port.stats()
            t.ok(near(st["alpha"], most, 1e-5), f"loop {kind}: alpha {most} at most", st["alpha"])
            t.ok(
                near(lost, 10 * most, 0, 1), f"loop {kind}: green loses {most} times as much", lost
            )
    port.change("alpha_max 2.5")
    t.ok(
        near(port.stats()["alpha"], 2.5, 1e-5),
        "a lower alpha_max takes alpha along",
        port.stats()["alpha"],
    )


# --- colours, GSO ---


def colours(port, spec, **packets):
    """ "green" or "blue": what such packets are."""
    port.fresh(f"abe packets {spec}", "open")
    port.send(3, **packets)
    st = port.stats()
    return next(c for c in ("green", "blue") if st[c]["arrived"] == 3)


def test_colours(t, port):
    for spec, dscp, colour in (
        ("", 45, "green"),
        ("", 46, "green"),
        ("", 44, "blue"),
        ("", 0, "blue"),
        ("green_dscp 10,20-22", 10, "green"),
        ("green_dscp 10,20-22", 21, "green"),
        ("green_dscp 10,20-22", 46, "blue"),
        ("green_dscp 0", 0, "green"),
        ("green_dscp 63", 63, "green"),
        ("green_dscp none", 46, "blue"),
        ("flat", 46, "blue"),
        ("noflat", 46, "green"),
    ):
        got = colours(port, spec, dscp=dscp)
        t.ok(got == colour, f"{spec or 'default'}: DSCP {dscp} is {colour}", got)
    for spec, mark, colour in (
        ("green_mark 7", 7, "green"),
        ("green_mark 7", 6, "blue"),
        ("green_mark 7", 0x17, "blue"),
        ("green_mark 0x10/0xf0", 0x1F, "green"),
        ("green_mark 0x10/0xf0", 0x2F, "blue"),
        ("green_mark 0x10/0xf0 flat", 0x1F, "blue"),
        ("green_mark none", 0, "blue"),
        ("", 7, "blue"),
    ):
        got = colours(port, spec, mark=mark)
        t.ok(got == colour, f"{spec or 'default'}: mark {mark:#x} is {colour}", got)


def test_split_gso(t, port):
    for spec, arrived in (("split_gso", 10), ("nosplit_gso", 1), ("", 10)):
        # a closed tbf would split them itself
        port.fresh(f"abe packets limit 1000 {CALM} {spec}", "open")
        port.send(4, segments=10)
        st = port.stats()
        t.ok(
            st["blue"]["arrived"] == 4 * arrived and not lib.balance(st),
            f"{spec or 'default'}: a packet of 10 segments counts as {arrived}",
            (st["blue"], lib.balance(st)),
        )
    # 9.6 kB: split where they take more than a sixteenth of green_limit
    for spec, arrived in (
        ("time rate 10gbit", 1),
        ("time rate 1gbit", 1),
        ("time rate 100mbit", 10),
        ("time rate 100mbit green_limit 100ms", 1),
        ("time rate 10gbit green_limit 100us", 10),
        ("time", 10),  # below a shaper, before the first estimate
        ("bytes limit 1mb green_limit 1mb", 1),
        ("bytes limit 1mb", 10),
        ("packets limit 1000 green_limit 1000", 10),
        ("time rate 100mbit nosplit_gso", 1),
    ):
        port.fresh(f"abe {spec} {CALM}", "open")
        port.send(4, segments=10)
        st = port.stats()
        t.ok(
            st["blue"]["arrived"] == 4 * arrived
            and st["blue"]["sent"] == 4 * arrived
            and st["packets"] == 40,
            f"{spec}: 10 segments count as {arrived}, and 10 are sent",
            (st["packets"], st["blue"]),
        )
    run(f"tc qdisc del dev {port.name} root")
    run(f"tc qdisc add dev {port.name} root handle 10: abe")
    port.send(4, segments=10)
    st = port.stats()
    t.ok(
        st["blue"]["arrived"] == 4 and st["packets"] == 40,
        "the device's own: its speed counts from the start",
        (st["packets"], st["blue"]),
    )


# --- dump, defaults, change ---

COMMON = {
    "rate": 0, "probability": 0.15, "avpkt": 1000, "gentle": False, "adaptive": False, "bytemode": False,
    "harddrop": False, "spacing": "uniform", "rtt": 180000, "interval": 500000, "k1": 1.1, "k2": 20000,
    "k3": 2000000, "k4": 500, "gamma1": 0.8, "gamma2": 0.4, "gamma3": 0.4, "lambda": 0.4, "offset": 100000,
    "alpha_max": 100, "green_dscp": [45, 46], "green_mark": "none", "flat": False, "split_gso": True, "seed": 0,
    "memory_limit": 32 << 20, "protect": "off",
}  # fmt: skip
PAPER = {"loop": "paper", "offset_max": 200000, "ecn": False, "weight": 0.002}
DEFAULTS = {
    "time": COMMON | {
        "unit": "time", "limit": 200000, "green_limit": 10000, "min": 10000, "max": 30000, "weight": "auto",
        "loop": "load", "offset_max": 100000, "ecn": True, "bytemode": True, "rtt": 100000, "gamma2": 0.95,
        "protect": 0.3,
    },
    "bytes": COMMON | PAPER | {"unit": "bytes", "limit": 60000, "green_limit": 10000, "min": 10000, "max": 30000},
    "packets": COMMON | PAPER | {"unit": "packets", "limit": 60, "green_limit": 10, "min": 10, "max": 30},
}  # fmt: skip
# another value of each, as typed and as dumped
OTHERS = {
    "rate": ("8mbit", 1000000), "probability": ("0.5", 0.5), "avpkt": ("500", 500), "gentle": ("", True),
    "adaptive": ("", True), "bytemode": ("", True), "harddrop": ("", True), "spacing": ("geometric", "geometric"),
    "rtt": ("20ms", 20000), "interval": ("1s", 1000000), "k1": ("0.5", 0.5), "k2": ("5ms", 5000), "k3": ("1s", 1000000),
    "k4": ("2ms", 2000), "gamma1": ("0.5", 0.5), "gamma2": ("0.25", 0.25), "gamma3": ("0.75", 0.75),
    "lambda": ("1", 1), "offset": ("7ms", 7000), "alpha_max": ("12.5", 12.5), "green_dscp": ("1,2,3", [1, 2, 3]),
    "green_mark": ("0x10/0xff", "0x10/0xff"), "flat": ("", True), "split_gso": (None, False), "seed": ("99", 99),
    "loop": ("load", "load"), "offset_max": ("50ms", 50000), "ecn": ("", True), "weight": ("0.125", 0.125),
    "limit": ("70p", 70), "green_limit": ("7p", 7), "min": ("5p", 5), "max": ("35p", 35),
    "memory_limit": ("1mb", 1 << 20), "protect": ("0.25", 0.25),
}  # fmt: skip
XSTATS = [
    "alpha",
    "alpha_target",
    "offset",
    "average",
    "probability",
    "green_ahead",
    "updates",
    "green_share",
    "drain_rate",
    "limit_bytes",
    "green_limit_bytes",
    "loss_blue",
    "loss_green_early",
    "loss_green_late",
    "delay_blue",
    "delay_green",
    "memory_used",
    "memory_max",
    "memory_limit",
]
COLOUR = [
    "arrived",
    "sent",
    "bytes",
    "qlen",
    "backlog",
    "early_drops",
    "late_drops",
    "limit_drops",
    "marks",
    "excused",
    "delay_max",
    "delay_mean",
    "sojourn",
]


def test_dump(t, port):
    for unit, wanted in DEFAULTS.items():
        port.fresh(f"abe {unit}")
        st = port.stats()
        wrong = {
            k: (st["options"].get(k), v) for k, v in wanted.items() if st["options"].get(k) != v
        }
        t.ok(not wrong, f"{unit}: defaults", f"found, wanted: {wrong}")
        t.ok(
            set(st["options"]) == set(wanted),
            f"{unit}: all options and no more",
            set(st["options"]) ^ set(wanted),
        )
        keys = [
            k
            for k in XSTATS
            if k not in st and not (unit == "packets" and k.endswith("limit_bytes"))
        ]
        t.ok(not keys, f"{unit}: statistics are complete", keys)
        t.ok(
            all(set(st[c]) == set(COLOUR) for c in ("green", "blue")),
            f"{unit}: counters are complete",
            st["green"],
        )
    for spec, wanted in (
        ("time loop paper", 0.4),
        ("packets loop load", 0.4),
        ("loop load", 0.95),
        ("loop paper gamma2 0.5", 0.5),
    ):
        port.fresh(f"abe {spec}")
        got = port.stats()["options"]["gamma2"]
        t.ok(near(got, wanted, 1e-8), f"{spec}: gamma2 {wanted}", got)
    port.fresh("abe packets")
    text = run(f"tc -s qdisc show dev {port.name}").stdout
    t.ok(
        all(word in text for word in ("abe 10:", "packets", "green_limit 10p", "alpha")),
        "text output",
        text,
    )


def test_due(t, port):
    """What comes due while the device stalls: all of it counts, but no arrival counts it all."""
    spec = f"abe packets limit 20000 green_limit {{}} {CALM} interval 10s offset 200ms"
    # where it is close, a few are lost while the rest is counted, 64 at each arrival
    for limit, least, most in ((5000, 0, 0), (4030, 0, 12), (3900, 20, 20), (1000, 20, 20)):
        port.fresh(spec.format(limit))
        port.blue(4000, size=100)
        time.sleep(0.18)
        port.blue(4000, size=100)  # not due yet when the others are
        port.green(20, size=100)
        st = port.stats()
        took = 4000 - st["blue"]["sent"]
        late = st["green"]["late_drops"]
        t.ok(
            least <= late <= most,
            f"{took} blue packets due of {st['blue']['qlen']}, green_limit {limit}: {late} of 20 green late",
            st,
        )
        if not least:
            t.ok(
                st["green_ahead"] == took + st["green"]["qlen"],
                f"green_limit {limit}: green_ahead counts those that are due",
                st,
            )
    port.fresh(spec.format(20000))
    port.green(size=100)  # opens the socket
    port.blue(15000, size=100)
    time.sleep(0.25)
    costs = []
    for _ in range(50):
        start = time.perf_counter_ns()
        port.green(size=100)
        costs.append(time.perf_counter_ns() - start)
    st = port.stats()
    t.ok(
        st["green"]["late_drops"] == 0 and st["green_ahead"] > 14900,
        "15000 packets have come due at once",
        st,
    )
    # in virtual time a nanosecond is an instruction, and to count a packet takes five
    more = costs[0] - sorted(costs)[len(costs) // 2]
    t.ok(more < 40000, f"the first green packet after that costs {more} ns more than others", costs)


def test_sparse_green(t, port):
    """Green that is rare finds as much ahead as is due, however much blue has passed meanwhile."""
    # 25,000 packets a second, 2500 of them queued: 100 ms, of which 16 are due
    port.CLOSED, closed = "rate 20mbit burst 1514 limit 1000000", port.CLOSED
    try:
        port.fresh(
            f"abe packets limit 2500 green_limit 833 {CALM} interval 10s offset 84ms memory_limit 100mb"
        )
    finally:
        port.CLOSED = closed
    port.blue(2500, size=100)
    ahead = []
    for n in range(300):
        port.blue(260, size=100)  # 4 % more than can leave: the buffer stays full
        time.sleep(max(0, 0.0074 - 0.00001 * (n % 7)))
        if n % 60 == 59:
            port.green(3, size=100)
            ahead.append(port.stats()["green_ahead"])
    st = port.stats()
    t.ok(
        st["blue"]["sent"] > 60000 and st["blue"]["qlen"] > 2000,
        f"{st['blue']['sent']} blue packets have passed, {st['blue']['qlen']} are queued",
        st,
    )
    green = st["green"]
    t.ok(
        green["late_drops"] == 0 and green["sent"] + green["qlen"] + green["limit_drops"] == 15,
        "none of the rare green packets between them is late",
        (st, ahead),
    )
    t.note(f"green_ahead: {ahead}")


STATE = [
    "qlen",
    "backlog",
    "updates",
    "alpha",
    "offset",
    "delay_blue",
    "delay_green",
    "loss_blue",
    "loss_green_late",
    "green",
    "blue",
]


def word(name, typed):
    """The option as it is typed."""
    return f"no{name}" if typed is None else f"{name} {typed}"


def test_change_keeps(t, port):
    port.fresh(f"abe packets limit 60 {CALM} interval 100ms offset_max 1s")
    port.blue(20)
    port.green(8)
    time.sleep(0.12)
    port.blue(2)
    first = port.stats()
    config = first["options"]
    for name, (typed, value) in OTHERS.items():
        if name in ("min", "max"):
            continue
        old = port.stats()
        port.change(word(name, typed))
        st = port.stats()
        config = config | {name: value}
        wrong = {k: v for k, v in st["options"].items() if v != config[k]}
        t.ok(not wrong, f"change of {name} keeps the other options", wrong)
        moved = {"alpha_max": ("alpha",)}.get(name, ("offset",) if "offset" in name else ())
        wrong = {k: (old[k], st[k]) for k in STATE if k not in moved and st[k] != old[k]}
        t.ok(
            not wrong and not lib.balance(st),
            f"change of {name} keeps the queue and the loop",
            wrong,
        )
    for spec, low, high in (("min 5p max 35p", 5, 35), ("min 6p", 6, 35), ("max 36p", 6, 36)):
        port.change(spec)
        got = port.stats()["options"]
        config = config | {"min": low, "max": high}
        t.ok(got == config, f"change to {spec}", got)
    t.ok(not lib.fell(first, port.stats()), "no counter went down", lib.fell(first, port.stats()))


def test_every_option_given(t, port):
    spec = " ".join(word(k, v[0]) for k, v in OTHERS.items())
    port.fresh(f"abe packets {spec}")
    wanted = {"unit": "packets"} | {k: v[1] for k, v in OTHERS.items()}
    got = port.stats()["options"]
    t.ok(
        got == wanted,
        "all options at once",
        {k: (v, wanted[k]) for k, v in got.items() if v != wanted[k]},
    )
    port.change("time")
    got = port.stats()["options"]
    sizes = {
        k: DEFAULTS["time"][k] for k in ("unit", "limit", "green_limit", "min", "max", "weight")
    }
    t.ok(got == wanted | sizes, "another unit brings its sizes and weight, nothing else", got)
    port.change("packets limit 9 weight 0.5")
    got = port.stats()["options"]
    sizes = {k: DEFAULTS["packets"][k] for k in ("unit", "green_limit", "min", "max")} | {
        "limit": 9,
        "weight": 0.5,
    }
    t.ok(got == wanted | sizes, "but for those that are named with it", got)


def test_unit_change_keeps_queue(t, port):
    port.fresh(f"abe packets limit 100 green_limit 100 {CALM} interval 100ms")
    port.blue(20)
    port.green(10)
    time.sleep(0.12)
    port.blue()
    old = port.stats()
    for spec in (
        "bytes limit 1000000 min 900000 max 1000000 green_limit 100000",
        "time rate 8mbit limit 10s green_limit 1s min 9s max 10s",
        "packets limit 100 green_limit 100 min 9000 max 10000",
        "time rate 8mbit limit 10s green_limit 1s min 9s max 10s",
        "bytes limit 1000000 min 900000 max 1000000 green_limit 100000",
        "packets limit 100 green_limit 100 min 9000 max 10000",
    ):
        port.change(spec)
        st = port.stats()
        keys = ("qlen", "backlog", "alpha", "offset", "updates", "green", "blue")
        t.ok(
            all(st[k] == old[k] for k in keys) and not lib.balance(st),
            f"to {spec.split()[0]}: the queue and the loop stay",
            {k: (old[k], st[k]) for k in keys},
        )
        time.sleep(0.2)  # the offset passes
        ahead = port.stats()["green_ahead"]
        wanted = st["qlen"] if spec.startswith("packets") else st["backlog"]
        t.ok(
            ahead == wanted,
            f"to {spec.split()[0]}: what is ahead of green is counted anew",
            (ahead, wanted),
        )
    port.change("limit 5p")
    st = port.stats()
    lost = lib.delta(old, st)
    t.ok(
        st["qlen"] == 5
        and lost["green"]["limit_drops"] + lost["blue"]["limit_drops"] == old["qlen"] - 5,
        "a smaller limit drops what it has no room for",
        st,
    )
    t.ok(not lib.balance(st), "and the books balance", lib.balance(st))
    port.open()
    whole = lib.qdiscs(port.name)
    t.ok(all(q["qlen"] == 0 and q["backlog"] == 0 for q in whole), "all drains", whole)


def test_replace(t, port):
    port.fresh("abe packets limit 44 seed 5")
    port.blue(10)
    port.change("limit 45p", verb="replace")
    st = port.stats()
    t.ok(
        st["options"]["limit"] == 45 and st["options"]["seed"] == 5 and st["qlen"] == 9,
        "replace of the same kind and handle is a change",
        st["options"],
    )
    run(f"tc qdisc replace dev {port.name} parent 1:1 handle 20: abe packets limit 46")
    st = port.stats()
    t.ok(
        st["handle"] == "20:"
        and st["options"]["limit"] == 46
        and st["options"]["seed"] == 0
        and not st["qlen"],
        "replace with another handle is a new qdisc",
        st,
    )
    whole = lib.qdiscs(port.name)
    t.ok(
        all(q["qlen"] == 0 and q["backlog"] == 0 for q in whole),
        "of which the parent's books know",
        whole,
    )


def test_default_qdisc(t, _port):
    old = run("sysctl -n net.core.default_qdisc").stdout.strip()
    run("sysctl -qw net.core.default_qdisc=abe")
    try:
        single, several = tun("one"), tun("four", 4)
        for dev in ("one", "four"):
            run(f"ip link set {dev} up")
        got = lib.qdiscs("one")
        t.ok([q["kind"] for q in got] == ["abe"], "default_qdisc: a device's root", got)
        t.ok(got[0]["options"] == DEFAULTS["time"], "as bare abe", got[0]["options"])
        got = lib.qdiscs("four")
        t.ok(
            [q["kind"] for q in got] == ["mq"] + ["abe"] * 4,
            "default_qdisc: children of mq",
            [q["kind"] for q in got],
        )
        run("ip addr add 10.8.0.1/24 dev one")
        run("ping -c 3 -i 0.2 -W 1 10.8.0.2", check=False)
        got = lib.qdisc("one")
        t.ok(got["packets"] >= 3 and not lib.balance(got), "and works", got)
        for f in single + several:
            os.close(f)
    finally:
        run(f"sysctl -qw net.core.default_qdisc={old}")


def test_json(t, port):
    port.fresh("abe")
    # tc 6.1 has no JSON for classes
    for args in ("qdisc show", "-s qdisc show", "-d qdisc show", "-p -s qdisc show"):
        out = run(f"tc -j {args} dev {port.name}").stdout
        try:
            json.loads(out)
            good = True
        except ValueError:
            good = False
        t.ok(good, f"tc -j {args}: valid JSON", out)


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    port = Port()
    chosen = sys.argv[1:]
    for name, test in list(globals().items()):
        if name.startswith("test_") and (not chosen or name in chosen):
            start = time.monotonic()
            try:
                test(t, port)
            except (
                RuntimeError,
                OSError,
                ValueError,
                LookupError,
                AssertionError,
                subprocess.SubprocessError,
            ) as e:
                t.ok(
                    False,
                    f"{name} ran to its end",
                    f"{type(e).__name__} {e} {getattr(e, 'stderr', '')}",
                )
            t.note(f"{name}: {time.monotonic() - start:.1f} s of the guest's time")
    t.done()


if __name__ == "__main__":
    main()
