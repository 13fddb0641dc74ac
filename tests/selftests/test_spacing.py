#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: five patterns of colours, and byte mode with two
"""The five drop spacings: with each, and any pattern of colours, green loses
alpha times as often as blue in the first stage; and gaps are what they should be.

alpha stands still at alpha_max: the loop starts at a required bias beyond it,
and k1 is 0. The green bound is out of the way.
"""

import itertools
import math
import statistics
import time

from lib import LONG, Load, Net, Tap, balance, delta

ALPHA = 3
PPS = 1000  # all flows together
LOSS = 0.1  # of blue: the link is slower than the arrivals by that and its share of green
SIZE = 100
WIRE = SIZE + 42

# Squared coefficient of variation of the gap between losses, at small p:
# n losses of a renewal process vary by sqrt(CV2 * n).
CV2 = {
    "uniform": 1 / 3,
    "geometric": 1,
    "delayed_uniform": 1 / 27,
    "delayed_geometric": 1 / 4,
    "deterministic": 0,
}


def cbr(green, blue):
    """Two flows that share PPS as given; both of size SIZE, or of two sizes."""

    def start(load, green_size, blue_size):
        load.udp(pps=PPS * green, size=green_size, dscp=46, id=1)
        load.udp(pps=PPS * blue, size=blue_size, id=2)

    return start


def poisson(load, green_size, blue_size):
    load.udp(pps=PPS / 4, size=green_size, dscp=46, id=1, poisson=True)
    load.udp(pps=PPS * 3 / 4, size=blue_size, id=2, poisson=True)


def bursts(load, green_size, blue_size):
    """Trains of 20 packets of one colour: as many flows in step."""
    load.udp(pps=PPS / 40, size=green_size, dscp=46, id=1, flows=20, jitter=0)
    load.udp(pps=PPS / 40, size=blue_size, id=101, flows=20, jitter=0)


# share of green in the arrivals
GREEN = {
    "alternating": 1 / 2,
    "1 green to 10 blue": 1 / 11,
    "10 green to 1 blue": 10 / 11,
    "Poisson": 1 / 4,
    "bursts": 1 / 2,
}

PATTERNS = {
    "alternating": cbr(1 / 2, 1 / 2),
    "1 green to 10 blue": cbr(1 / 11, 10 / 11),
    "10 green to 1 blue": cbr(10 / 11, 1 / 11),
    "Poisson": poisson,
    "bursts": bursts,
}
SHORT = ("Poisson",)


def ratio(tap, net, spacing, pattern, options="", green_size=SIZE, blue_size=SIZE):
    """One stretch of 5.5 s, of which the first 1.5 are left out. Returns by how much the ratio was off, and the
    standard deviation that it has by chance."""
    net.set_rate(round(PPS * WIRE * 8 * (1 - LOSS * (1 + (ALPHA - 1) * GREEN[pattern]))))
    net.fresh(
        f"abe packets limit 3000 green_limit 3000 min 5 max 405 probability 0.5 weight 0.002 "
        f"loop paper k1 0 k2 0 k3 0 rtt 1ms alpha_max {ALPHA} spacing {spacing} seed 1 {options}"
    )
    looks = []

    with Load(5.5, poll=lambda: looks.append(net.stats()), every=1.5) as load:
        PATTERNS[pattern](load, green_size, blue_size)
    looks.append(net.stats())
    n = delta(looks[1], looks[-1])
    lost = {c: n[c]["early_drops"] for c in n}
    measured = (
        lost["green"] / n["green"]["arrived"] / max(lost["blue"] / n["blue"]["arrived"], 1e-9)
    )
    want = ALPHA
    if options:
        want *= (green_size + 42) / (blue_size + 42)
    # that of the counts, and half a loss that each count can be off at its ends
    spread = math.sqrt(sum((CV2[spacing] + 0.25 / max(k, 1)) / max(k, 1) for k in lost.values()))
    text = f"{spacing}, {pattern}{', ' + options if options else ''}, {green_size + 42} and {blue_size + 42} bytes"
    tap.note(
        f"{text}: {measured:.3f} of {want:.3f} +- {100 * (0.02 + 3 * spread):.1f} %, losses {lost}"
    )
    tap.ok(
        abs(measured / want - 1) < 0.02 + 3 * spread and min(lost.values()) > 20,
        f"{text}: green loses alpha times as often",
        (measured, want, n),
    )
    wrong = [w for q in looks for w in balance(q, moving=True)]
    tap.ok(
        all(abs(q["alpha"] - ALPHA) < 1e-3 for q in looks) and not wrong,
        f"{text}: alpha stood still, books balance",
        wrong,
    )
    return math.log(measured / want), spread


def together(tap, spacing, results):
    """Chance evens out over the patterns, weighed by their variances; a bias does not."""
    weights = [1 / (spread * spread + 1e-6) for _, spread in results]
    mean = sum(w * off for w, (off, _) in zip(weights, results, strict=True)) / sum(weights)
    most = 0.02 + 3 / math.sqrt(sum(weights))
    tap.note(f"{spacing}, all patterns: off by {100 * mean:+.1f} % +- {100 * most:.1f} %")
    tap.ok(abs(mean) < most, f"{spacing}, all patterns: no bias", mean)


def gaps(load):
    """Packets from one loss to the next, from what the one flow of constant rate lost."""
    (flow,) = [f for f in load.report["udp"] if f["flow"] == 1]
    sent = [t * PPS / 1e6 for t in flow["raw"]["sent_us"]]
    # the schedule is exact, and nearly all packets are sent a little after their time
    phase = statistics.median((t - sent[0] + 0.5) % 1 for t in sent) - 0.5 + sent[0]
    numbers = [round(t - phase) for t in sent]
    lost = sorted(set(range(numbers[-1])) - set(numbers))
    return [b - a for a, b in itertools.pairwise(lost)]


def gap(tap, net, spacing):
    """Blue alone, weight 1, a threshold so far off that p hardly moves, 10 % overload."""
    # mean gap 11 at p: what the spacing does to it, see abe_red.h
    p = {
        "uniform": 1 / 21,
        "geometric": 1 / 11,
        "delayed_uniform": 1.5 / 10.5,
        "delayed_geometric": 2 / 11,
        "deterministic": 1 / 11,
    }[spacing]
    queue = round(20000 * p)
    net.fresh(
        f"abe packets limit 20000 min 1 max 20001 probability 1 weight 1 spacing {spacing} seed 1"
    )
    looks = []

    def look():
        """Once, before the measured time: a process that starts may hold up the sender, and we number packets by
        their times."""
        if not looks:
            time.sleep(3.5)
            looks.append(net.stats())

    with Load(11, warmup=4, raw=True, poll=look, every=1) as load:
        load.udp(
            pps=queue, size=SIZE, id=9, seconds=1
        )  # fills the queue, to where p is about right
        load.udp(pps=PPS, size=SIZE, id=1)
    g = gaps(load)
    looks.append(net.stats())
    inverse = [1 / q["probability"] for q in looks]
    low, high = math.floor(min(inverse)), math.ceil(max(inverse))
    mean = sum(g) / len(g)
    cv = math.sqrt(sum((x - mean) ** 2 for x in g) / len(g)) / mean
    tap.note(
        f"{spacing}: 1/p {', '.join(f'{i:.2f}' for i in inverse)}, {len(g)} gaps of {min(g)} to "
        f"{max(g)}, mean {mean:.2f}, CV {cv:.3f}"
    )
    # The exact laws are the unit tests' matter; here p moves, and is seen twice
    # only, so it may have been a quarter beyond what was seen. The mean is
    # between those of the extremes, within 5 % and three standard errors.
    least, most, at, spread = {
        "uniform": (1, 1.25 * high + 1, lambda i: (1 + i) / 2, math.sqrt(1 / 3)),
        "geometric": (1, math.inf, lambda i: i, math.sqrt(1 - p)),
        "delayed_uniform": (
            0.75 * low - 1,
            2.5 * high + 2,
            lambda i: 1.5 * i + 0.5,
            math.sqrt(1 / 27),
        ),
        "delayed_geometric": (0.75 * low - 1, math.inf, lambda i: 2 * i, math.sqrt(1 - p) / 2),
        "deterministic": (0.75 * low - 1, 1.25 * high + 1, lambda i: i, 0),
    }[spacing]
    tap.ok(len(g) > 300, f"{spacing}: enough gaps", len(g))
    tap.ok(
        min(g) >= least and max(g) <= most,
        f"{spacing}: every gap within {least:.1f} and {most:.1f}",
        (min(g), max(g)),
    )
    tap.ok(
        abs(cv - spread) < 0.2 * spread + 0.5 / mean,
        f"{spacing}: coefficient of variation of the gap near {spread:.3f}",
        cv,
    )
    margin = 0.05 + 3 * spread / math.sqrt(len(g))
    tap.ok(
        at(low) * (1 - margin) < mean < at(high) * (1 + margin),
        f"{spacing}: mean gap between {at(low):.2f} and {at(high):.2f}",
        mean,
    )


def main():
    tap = Tap()
    net = Net(rate=PPS * WIRE * 8)
    for spacing in CV2:
        results = [
            ratio(tap, net, spacing, pattern) for pattern in PATTERNS if LONG or pattern in SHORT
        ]
        # avpkt is the mean size, which stays, and with it the overload
        for pattern, green, blue in (
            ("Poisson", SIZE + 40, SIZE - 13),
            ("alternating", SIZE - 40, SIZE + 40),
        )[: 2 if LONG else 1]:
            results.append(ratio(tap, net, spacing, pattern, f"bytemode avpkt {WIRE}", green, blue))
        together(tap, spacing, results)
    net.set_rate(PPS * WIRE * 8 * 10 // 11)
    for spacing in CV2:
        gap(tap, net, spacing)
    tap.done()


main()
