#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: each spacing in each unit
"""The green bound: no green packet is queued longer than green_limit / c and
two packets' transmission. Not one, whatever the load, the unit and the spacing.

The two packets are the one that the parent has already been shown, and the
packet itself: tbf takes a packet when its last bit's token has come. With unit
packets, green_limit / c means green_limit packets of the largest size.
"""

import re

from lib import LONG, Load, Net, Tap, Trace, balance, fell, qdiscs

RATE = 2_000_000
BYTE = 8 / RATE  # seconds
LARGEST = 1514
SPACINGS = ("uniform", "geometric", "delayed_uniform", "delayed_geometric", "deterministic")

# unit: its options, and green_limit in bytes
UNITS = {
    "packets": ("packets limit 60 green_limit 10 min 10 max 30 weight 0.002", 10 * LARGEST),
    "bytes": ("bytes limit 60000 green_limit 9000 min 10000 max 30000 weight 0.002", 9000),
    "time": ("time rate 2mbit limit 240ms green_limit 40ms min 40ms max 120ms", 40e-3 / BYTE),
}

# D decides how much blue comes due before green, and alpha how much green
# gets as far as the second stage.
STARTS = ("offset 100ms", "offset 0", "offset 20ms alpha_max 2", "offset 5ms alpha_max 1")


def flows(load, pps, dscp, first):
    """pps packets a second, of 142 to 1514 bytes on the wire, 667 on average; at constant rate and not."""
    for n, (size, share, poisson) in enumerate(
        ((100, 0.4, False), (600, 0.2, True), (1000, 0.2, False), (LARGEST - 42, 0.2, True))
    ):
        load.udp(pps=pps * share, size=size, dscp=dscp, id=first + n, poisson=poisson)


def green_overload(load):
    flows(load, 2 / BYTE / 667, 46, 0)


def mixed(load):
    flows(load, 0.8 / BYTE / 667, 46, 0)
    flows(load, 0.8 / BYTE / 667, 0, 10)


def tcp(load):
    # with three green ones it happened that no connection came about in time
    load.tcp(flows=12, dscp=46)
    load.tcp(flows=3, id=12)


# with how long each runs, in seconds
LOADS = {"green overload": (green_overload, 1.5), "mixed overload": (mixed, 1.5), "TCP": (tcp, 2.5)}


class Books:
    """Looks at the qdisc again and again; what was wrong is in `wrong`."""

    def __init__(self, net):
        self.net = net
        self.old = net.stats()
        self.wrong = []
        self.polls = 0

    def look(self):
        new = self.net.stats()
        self.wrong += balance(new, moving=True)
        # a packet may pass between the kernel's two readings, but not each time
        for _ in range(5):
            if not balance(new):
                break
            new = self.net.stats()
        self.wrong += balance(new) + [f"{name} fell" for name in fell(self.old, new)]
        for colour in ("green", "blue"):
            if new[colour]["delay_max"] < self.old[colour]["delay_max"]:
                self.wrong.append(f"{colour}.delay_max fell")
        self.old = new
        self.polls += 1
        return new


def drained(tap, net, text):
    left = {q["kind"]: (q["backlog"], q["qlen"]) for q in qdiscs("out", "r")}
    tap.ok(
        len(left) == 2 and not any(any(v) for v in left.values()), f"{text}: drained to 0b 0p", left
    )


def sojourns(trace):
    return [int(ns) * 1e-9 for ns in re.findall(r"colour=green sojourn=(\d+)", trace.text)]


def bound(tap, net, unit, spacing, start):
    options, limit = UNITS[unit]
    most = (limit + 2 * LARGEST) * BYTE
    net.fresh(f"abe {options} spacing {spacing} {start} seed 1")
    books = Books(net)
    if unit == "time":
        tap.ok(
            abs(books.old["green_limit_bytes"] - limit) <= 1,
            f"{unit}: green_limit in force",
            books.old,
        )
    for name, (start_flows, seconds) in LOADS.items():
        text = f"{unit}, {spacing}, {name}"
        before = books.look()
        with (
            Trace("abe_dequeue", only="colour == 1") as trace,
            Load(seconds, poll=books.look, every=0.3) as load,
        ):
            start_flows(load)
        after = books.look()
        green = sojourns(trace)
        late = after["green"]["late_drops"] - before["green"]["late_drops"]
        tap.note(
            f"{text}: {len(green)} green, longest {max(green, default=0) * 1e3:.2f} of {most * 1e3:.2f} ms, {late} late"
        )
        tap.ok(
            len(green) == after["green"]["sent"] - before["green"]["sent"] and green,
            f"{text}: every green packet was seen",
            len(green),
        )
        over = [f"{s * 1e3:.3f} ms" for s in green if s > most]
        tap.ok(not over, f"{text}: no green packet queued for more than {most * 1e3:.2f} ms", over)
        if name == "green overload":
            tap.ok(late > 50, f"{text}: the bound was at work", late)
            # packets are 667 bytes on average, not LARGEST
            near = 0.7 * limit * BYTE * (0.45 if unit == "packets" else 1)
            tap.ok(
                max(green, default=0) > near,
                f"{text}: the bound was come near",
                max(green, default=0),
            )
        drained(tap, net, text)
    tap.ok(
        after["green"]["delay_max"] <= most * 1e6, f"{unit}, {spacing}: delay_max", after["green"]
    )
    tap.ok(
        not books.wrong and books.polls > 10,
        f"{unit}, {spacing}: {books.polls} balances",
        books.wrong,
    )


def change(tap, net):
    """Books over changes, of the unit too, in the middle of an overload."""
    net.fresh(f"abe {UNITS['packets'][0]} offset 50ms alpha_max 2 seed 1")
    books = Books(net)
    specs = [UNITS[unit][0] for unit in ("bytes", "time", "packets")] + [
        "limit 5p",
        "limit 60p flat",
        "noflat offset_max 0",
        "bytes limit 3000",
        "time limit 1us green_limit 0",
        "limit 200ms ecn",
        "packets green_limit 0",
        "green_limit 10p spacing deterministic",
        "loop load bytemode",
        "gentle adaptive",
        "bytes limit 0",
        "limit 60000b",
    ]
    done = []

    def poke():
        if len(done) < len(specs):
            net.qdisc(f"abe {specs[len(done)]}", "change")
            done.append(True)
        books.look()

    with Load(6, poll=poke, every=0.1) as load:
        mixed(load)
        load.tcp(flows=2, id=20)
    books.look()
    tap.ok(len(done) == len(specs), "change: all made under load", len(done))
    tap.ok(not books.wrong, f"change: {books.polls} balances, nothing fell", books.wrong)
    drained(tap, net, "change")


def main():
    tap = Tap()
    net = Net(rate=RATE, delay=2)
    for u, unit in enumerate(UNITS):
        for s, spacing in enumerate(SPACINGS):
            # five of fifteen: each spacing once, each unit, each start
            if not LONG and s % len(UNITS) != u:
                continue
            bound(tap, net, unit, spacing, STARTS[(u + s) % len(STARTS)])
    change(tap, net)
    tap.done()


main()
