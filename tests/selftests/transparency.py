# SPDX-License-Identifier: GPL-2.0
"""Transparency to blue, for test_transparency_*.py: green AIMD flows ([ABE99] App. B) and blue TCP flows (Reno with
SACK) over one bottleneck, the parameters of [ABE99] 5.1.

Blue gets no less than under flat, no less than green gets a flow, under both
loops; green gets more under the load loop than under the paper's. The AIMD
source is not a TCP: without timeouts it gets more under flat, too, and by as
much more it is allowed for when blue is compared with green.

Pairs of runs with the same seed differ in the qdisc only. Chance leaves the
mean of a few runs some way off: 5 % are granted to ten or five flows, 10 % to
one.
"""

from lib import LONG, Load, Net, Tap, balance, run

RATE = 5_000_000
SIZE = 984  # as TCP segments below: 1026 bytes on the wire
SECONDS, WARMUP = 42, 12
SEEDS = (1, 2) if LONG else (1,)

QDISCS = {
    "flat": "abe packets flat",
    "load": "abe packets loop load",
}
if LONG:
    QDISCS["paper"] = "abe packets loop paper"


def goodput(tap, net, spec, green, blue, seed):
    """Mb/s of the average green and blue flow."""
    net.fresh(f"{spec} seed {seed}")
    with Load(SECONDS, warmup=WARMUP) as load:
        load.aimd(flows=green, size=SIZE, dscp=46, id=1, seed=seed)
        load.tcp(flows=blue, cc="reno", id=101, seed=seed)
    q = net.stats()
    wrong = balance(q)
    if wrong:
        tap.ok(False, "books balance", wrong)
    got = {
        name: sum(f["goodput"] for f in load.report[kind]) / n / 1e6
        for name, kind, n in (("green", "aimd", green), ("blue", "tcp", blue))
    }
    delay = [f["delay_us"]["median"] / 1e3 for f in load.report["aimd"]]
    lost = {
        c: 100
        * (q[c]["early_drops"] + q[c]["late_drops"] + q[c]["limit_drops"])
        / max(q[c]["arrived"], 1)
        for c in ("green", "blue")
    }
    tap.note(
        f"{green} green {blue} blue, seed {seed}, {spec}: green {got['green']:.4f}, blue {got['blue']:.4f} Mb/s "
        f"a flow, lost {lost['green']:.1f} and {lost['blue']:.1f} %, green delay {sum(delay) / len(delay):.1f} ms, "
        f"alpha {q['alpha']:.2f} of {q['alpha_target']:.2f}, D {q['offset'] / 1e3:.0f} ms"
    )
    return got


def mix(tap, net, green, blue, margin):
    mean = {}
    for name, spec in QDISCS.items():
        runs = [goodput(tap, net, spec, green, blue, seed) for seed in SEEDS]
        mean[name] = {c: sum(r[c] for r in runs) / len(runs) for c in ("green", "blue")}
    text = f"{green} green {blue} blue"
    aggressive = max(1, mean["flat"]["green"] / mean["flat"]["blue"])
    for name, got in mean.items():
        tap.note(f"{text}, {name}, means: green {got['green']:.4f}, blue {got['blue']:.4f}")
    for loop, got in mean.items():
        if loop == "flat":
            continue
        tap.ok(
            got["blue"] >= (1 - margin) * mean["flat"]["blue"],
            f"{text}, loop {loop}: blue no less than flat",
            mean,
        )
        tap.ok(
            got["blue"] >= (1 - margin) * got["green"] / aggressive,
            f"{text}, loop {loop}: blue no less than green",
            mean,
        )
    if LONG:
        tap.ok(
            mean["load"]["green"] > mean["paper"]["green"],
            f"{text}: green more under load than under paper",
            mean,
        )


def main(*mixes):
    """Each of green flows, blue flows, margin."""
    tap = Tap()
    net = Net(rate=RATE, delay=50)
    for host, n in (("a", 1), ("b", 2)):
        run(f"ip route replace default via 10.0.{n}.2 advmss {SIZE - 12}", ns=host)
    for green, blue, margin in mixes:
        mix(tap, net, green, blue, margin)
    tap.done()
