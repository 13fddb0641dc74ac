# SPDX-License-Identifier: GPL-2.0
"""The control loop settles, for test_loop_paper.py and test_loop_load.py.

Six starting points, or two, the same mix (Poisson, green less than a third of the
load, and TCP): the mean of log(alpha) over the end of the run is within 15 %
of alpha of that of all of them, and that of D within 20 ms, both give or take two
standard errors (of the means of 5 s; the loop is never still).

The law makes the means of two logarithms equal, that of the measured ratio
and that of the required bias. So these are compared where the mix is lively:
within 10 % over the ends of all runs. Under constant rates for 300 s, or 100, the
counters must agree, too: green first-stage losses are within 10 % of those
that the bias in force asked for at each update, sum of q_b * required bias *
green arrivals. With `loop load` less than 0.5 % of green is lost in the second stage,
give or take two standard errors (of 5 s), where green is less than a third.
"""

import math

from lib import LONG, Load, Net, Tap, Trace, balance, delta

SIZE = 972
WIRE = SIZE + 42
GREEN, BLUE = 0.32, 0.53  # of the link
OFFSET_MAX = 200  # ms
ALPHA_MAX = 100
RTT = 180  # ms, the option; main() may set another
STARTS = (
    (0, 1),
    (OFFSET_MAX, ALPHA_MAX),
    *(((0, ALPHA_MAX), (OFFSET_MAX, 1), (100, 10), (50, 3)) if LONG else ()),
)
STEADY = 300 if LONG else 100  # s


def mix(net, load):
    capacity = net.rate / 8 / WIRE  # packets/s
    load.udp(pps=GREEN * capacity, size=SIZE, dscp=46, id=1, poisson=True)
    load.udp(pps=BLUE * capacity, size=SIZE, id=2, poisson=True)
    load.tcp(flows=2, cc="reno", id=10)


def still(net, load):
    """6 % more than the link takes, at constant rates."""
    capacity = net.rate / 8 / WIRE
    load.udp(pps=GREEN * capacity / 10, size=SIZE, dscp=46, id=1, flows=10)
    load.udp(pps=(1.06 - GREEN) * capacity / 10, size=SIZE, id=101, flows=10)


def mean(values):
    """Mean and standard error of two values a second, in batches of 5 s."""
    batches = [sum(values[i : i + 10]) / 10 for i in range(0, len(values) - 9, 10)]
    m = sum(batches) / len(batches)
    return m, math.sqrt(sum((b - m) ** 2 for b in batches) / (len(batches) - 1) / len(batches))


def start(net, loop, offset, alpha):
    """A new qdisc whose D and alpha are what we want; the loop's start is the required bias, so it is led to it."""
    common = f"packets loop {loop} seed 1"
    if alpha == 1:
        net.fresh(f"abe {common} offset_max {OFFSET_MAX}ms offset {offset}ms alpha_max 1")
    else:
        net.fresh(f"abe {common} offset_max 200ms offset 200ms rtt 1ms alpha_max {alpha}")
    net.qdisc(f"abe offset_max {offset}ms", "change")
    net.qdisc(f"abe offset_max {OFFSET_MAX}ms rtt {RTT}ms alpha_max {ALPHA_MAX}", "change")


def required(events):
    """Green first-stage losses, and those required."""
    want = sum(
        e["lost_blue"] / e["exposed_blue"] * e["target"] / 65536 * e["exposed_green"] / 256
        for e in events
        if e["exposed_blue"]
    )
    return sum(e["lost_green"] for e in events) / 256, want


def logs(events):
    """Means of the logarithms of the ratio that the law looks at, and of the required bias."""
    seen = [e for e in events if e["loss_green_early"] and e["loss_blue"]]
    return (
        sum(math.log(e["loss_green_early"] / e["loss_blue"]) for e in seen) / len(seen),
        sum(math.log(e["target"] / 65536) for e in seen) / len(seen),
    )


def watch(net, start_flows, seconds):
    """What abe_control told of each update."""
    with Trace("abe_control") as trace, Load(seconds) as load:
        start_flows(net, load)
    return trace.events


def late(tap, loop, events, text):
    """Second-stage losses, where green is less than a third."""
    green, blue = (sum(e[f"arrived_{c}"] for e in events) for c in ("green", "blue"))
    lost, error = (len(events) * x / green for x in mean([e["late_green"] for e in events]))
    tap.note(
        f"{text}: green {100 * green / (green + blue):.1f} % of the load, {100 * lost:.2f} +- {100 * error:.2f} % "
        f"of it lost in the second stage"
    )
    if loop == "load":
        tap.ok(
            green / (green + blue) < 1 / 3 and lost < 0.005 + 2 * error,
            f"{text}: less than 0.5 % of green is lost in the second stage",
            (lost, error),
        )


def settle(tap, net, loop, seconds, end):
    found, ends = {}, []
    for offset, alpha in STARTS:
        start(net, loop, offset, alpha)
        q = net.stats()
        text = f"from D {offset} ms, alpha {alpha}"
        tap.ok(
            q["offset"] == offset * 1000 and abs(q["alpha"] - alpha) < 0.01,
            f"{text}: there it starts",
            (q["offset"], q["alpha"]),
        )
        last = watch(net, mix, seconds)[-2 * end :]
        ends += last
        found[text] = (
            mean([math.log(e["alpha"] / 65536) for e in last]),
            mean([e["offset"] / 1e6 for e in last]),
        )
        (alpha, alpha_error), (offset, offset_error) = found[text]
        tap.note(
            f"{text}: alpha {math.exp(alpha):.3f} +- {100 * alpha_error:.0f} %, D {offset:.1f} +- "
            f"{offset_error:.1f} ms in the last {end} of {seconds} s"
        )
    alpha, offset = (sum(f[i][0] for f in found.values()) / len(found) for i in (0, 1))
    for text, ((a, a_error), (d, d_error)) in found.items():
        tap.ok(
            abs(a - alpha) < math.log(1.15) + 2 * a_error,
            f"{text}: alpha settles at {math.exp(alpha):.3f}",
            math.exp(a),
        )
        tap.ok(abs(d - offset) < 20 + 2 * d_error, f"{text}: D settles at {offset:.1f} ms", d)
    got, want = (math.exp(x) for x in logs(ends))
    tap.note(f"ends of all runs: means of logarithms, ratio {got:.3f}, required bias {want:.3f}")
    tap.ok(
        abs(got / want - 1) < 0.1,
        "ends of all runs: the first-stage ratio is within 10 % of the required bias",
        (got, want),
    )
    late(tap, loop, ends, "ends of all runs")


def steady(tap, net, loop):
    # Sources that do not react and an average over 500 packets swing against
    # each other, faster than alpha follows; a quicker average stands still.
    net.fresh(f"abe packets loop {loop} rtt {RTT}ms weight 0.02 seed 1")
    watch(net, still, 30)
    before = net.stats()
    events = watch(net, still, STEADY)
    q = net.stats()
    n = delta(before, q)
    q_b = (n["blue"]["early_drops"] + n["blue"]["limit_drops"]) / n["blue"]["arrived"]
    q_g = n["green"]["early_drops"] / n["green"]["arrived"]
    got, want = required(events)
    tap.note(
        f"{STEADY} s, {len(events)} updates: losses blue {100 * q_b:.2f} %, green first stage {100 * q_g:.2f} %, ratio "
        f"{q_g / q_b:.3f}, required {want / q_b / n['green']['arrived']:.3f}"
    )
    tap.ok(
        abs(got / want - 1) < 0.1,
        f"{STEADY} s: the first-stage ratio is within 10 % of the required bias",
        (got, want),
    )
    tap.ok(not balance(q), f"{STEADY} s: books balance", balance(q))
    late(tap, loop, events, f"{STEADY} s")


def main(loop, rate, seconds, end, rtt=180):
    global RTT
    RTT = rtt
    tap = Tap()
    net = Net(rate=rate, delay=50)
    settle(tap, net, loop, seconds, end)
    steady(tap, net, loop)
    tap.done()
