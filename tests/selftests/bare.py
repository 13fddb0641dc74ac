# SPDX-License-Identifier: GPL-2.0
"""Bare `abe`, no parameter given, with 8 TCP flows (at 2 Mb/s 5) and a voice flow; for test_bare_*.py.

TCP gets within 3 % of what it gets from fq_codel; 99 % of the voice is under
the larger of 15 ms and three full-size packets at the link's rate, plus
propagation; less than 15 % of it is lost at 1 Mb/s, 3 % at 2 Mb/s and 1 % from 10 Mb/s
on, give or take two standard errors of that many packets;
a step of the rate is followed within 2 s.

The first seconds are left out. In slow start the queue grows far beyond max,
and the average, over a second, still loses packets when the senders have
slowed down already: it takes some seconds more than fq_codel until the link is
full. At 1 Gb/s the machine cannot fill it, with any qdisc: then the queue is
what the machine does not get done, and TCP shows what abe costs, too.
"""

import itertools
import math
import time

from lib import Load, Net, Tap, balance, run

DELAY = 20  # ms each way
FULL = 1514
VOICE = 172  # G.711, 20 ms, with its RTP header


def load_on(seconds, warmup, flows=8, **more):
    load = Load(seconds, warmup=warmup, **more)

    def start():
        load.udp(pps=50, size=VOICE, dscp=46, id=1)
        load.tcp(flows=flows, id=10)

    return load, start


def one(net, spec, seconds, warmup, flows):
    """TCP's goodput, the call, and what the link carried, bit/s."""
    net.fresh(spec)
    seen = []

    def look():
        sent = int(run("cat /sys/class/net/out/statistics/tx_bytes", ns="r").stdout)
        seen.append((time.monotonic(), 8 * sent))

    load, start = load_on(seconds, warmup, flows, poll=look)
    begin = time.monotonic()
    with load:
        start()
    seen = [(at, bits) for at, bits in seen if at - begin > warmup]
    carried = (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])
    # what lost every packet is not in the report
    nothing = {"delay_us": dict.fromkeys(("median", "p99", "max"), math.inf), "loss": 1}
    (voice,) = load.report["udp"] or (nothing,)
    return sum(f["goodput"] for f in load.report["tcp"]), voice, carried


def speed(tap, net, mbit, seconds, warmup, flows=8):
    """One rate."""
    rate = mbit * 1_000_000
    net.set_rate(rate)
    goodput = {}
    for spec in ("fq_codel", "abe"):
        goodput[spec], voice, carried = one(net, spec, seconds, warmup, flows)
        delay = voice["delay_us"]
        tap.note(
            f"{mbit} Mb/s, {spec}: carried {carried / 1e6:.1f}, TCP {goodput[spec] / 1e6:.3f} Mb/s, voice median {delay['median'] / 1e3:.2f} "
            f"99 % {delay['p99'] / 1e3:.2f} max {delay['max'] / 1e3:.2f} ms, loss {100 * voice['loss']:.2f} %"
        )
    q = net.stats()
    tap.note(
        f"{mbit} Mb/s: "
        + ", ".join(
            f"{k} {q[k]}"
            for k in (
                "alpha",
                "offset",
                "drain_rate",
                "limit_bytes",
                "green_limit_bytes",
                "loss_blue",
                "loss_green_early",
            )
        )
    )
    most = max(15, 3 * FULL * 8 / rate * 1e3) + DELAY
    tap.ok(
        goodput["abe"] >= 0.97 * goodput["fq_codel"],
        f"{mbit} Mb/s: TCP within 3 % of what fq_codel gives",
        goodput,
    )
    tap.ok(
        abs(q["drain_rate"] * 8 / min(rate, carried) - 1) < 0.1,
        f"{mbit} Mb/s: drain rate",
        (q["drain_rate"], carried),
    )
    tap.ok(delay["p99"] <= most * 1e3, f"{mbit} Mb/s: 99 % of the voice under {most:.1f} ms", delay)
    sent = 50 * (seconds - warmup)
    most = {1: 0.15, 2: 0.03}.get(mbit, 0.01)
    tap.ok(
        voice["loss"] * sent < most * sent + 2 * math.sqrt(most * sent),
        f"{mbit} Mb/s: less than {most:.0%} of the voice lost, or not for certain more",
        voice,
    )
    tap.ok(not balance(q), f"{mbit} Mb/s: books balance", balance(q))


def step(tap, net):
    """10, 2 and again 10 Mb/s: from 2 s after a step on the estimate is within 10 %."""
    net.set_rate(10_000_000)
    net.fresh("abe")
    load, start = load_on(17, 1, every=0.2)
    steps = [(5, 2), (11, 10)]  # s, Mb/s
    seen = []
    rates = [(0, 10)]
    begin = time.monotonic()

    def look():
        now = time.monotonic() - begin
        if steps and now >= steps[0][0]:
            mbit = steps.pop(0)[1]
            net.set_rate(mbit * 1_000_000)
            rates.append((time.monotonic() - begin, mbit))
        seen.append((time.monotonic() - begin, net.stats()["drain_rate"] * 8e-6))

    load.poll = look
    with load:
        start()
    rates.append((16.5, 0))
    for (at, mbit), (end, _) in itertools.pairwise(rates):
        wrong = [
            (f"{t - at:.2f}", f"{x:.3f}")
            for t, x in seen
            if at < t < end and abs(x / mbit - 1) > 0.1
        ]
        last = wrong[-1][0] if wrong else 0
        tap.note(f"step to {mbit} Mb/s: followed after {last} s")
        tap.ok(
            not [w for w in wrong if float(w[0]) > 2],
            f"step to {mbit} Mb/s followed within 2 s",
            wrong,
        )
    tap.ok(
        len(rates) == 4 and len(seen) > 70,
        "the rate was stepped, and looked at",
        (rates, len(seen)),
    )


def main(runs, steps):
    """Each of the runs: Mb/s, seconds in all, seconds left out, perhaps TCP flows."""
    tap = Tap()
    net = Net(rate=1_000_000, delay=DELAY)
    for run_at in runs:
        speed(tap, net, *run_at)
    if steps:
        step(tap, net)
    tap.done()
