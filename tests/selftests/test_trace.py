#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The three tracepoints, and by them the control loop against floating point.

abe_control has the inputs and outputs of each update. Here [ABE99] 4.3, with
the rules for its silent places, is written down a second time in floating
point and fed with the traced inputs of a long run; alpha, its target and D
have to follow within 0.1 %, without ever being set right.
"""

import math
import os
import time

import lib
from lib import Load, Net, Trace, run
from wire import kernel_log, unload

ROOT = Trace.ROOT
FIELDS = {
    "abe_control": (
        "ifindex handle arrived_blue arrived_green sent_blue sent_green exposed_blue exposed_green lost_blue "
        "lost_green load_blue load_green late_green looks ahead "
        "green_limit delay_sum_blue delay_sum_green loss_blue loss_green_early loss_green_late share delay_blue "
        "delay_green offset average drain_rate alpha target"
    ),
    "abe_drop": "ifindex handle colour stage len",
    "abe_dequeue": "ifindex handle colour len sojourn",
}
Q40, NS = 1 << 40, 1e-9
AVPKT = 800


class Loop:
    """[ABE99] 4.3 in floating point; `options` as tc dumps them, seconds inside."""

    def __init__(self, options):
        self.o = o = dict(options)
        for key in ("rtt", "k2", "k3", "k4", "offset", "offset_max"):
            o[key] = options[key] * 1e-6
        self.offset = min(o["offset"], o["offset_max"])
        self.q_blue, self.q_late, self.share = 0.01, 0.0, 0.0
        self.load = {"blue": 0.0, "green": 0.0}
        self.d_blue, self.d_green = self.offset / 2, 0.0
        self.target = self.alpha = self.bias()
        self.q_early = min(1.0, self.alpha * self.q_blue)

    def bias(self):
        o = self.o
        tau_b, tau_g = o["rtt"] + self.d_blue, o["rtt"] + self.d_green
        if tau_b <= tau_g:
            return 1.0
        if o["loop"] == "paper":
            divisor = tau_g * (2 * tau_g**2 - tau_b**2)  # Eq. (1)
            most = tau_b**3 / divisor if divisor > 0 else math.inf
        else:
            a = min(self.share, 1.0)
            most = tau_b**3 / (tau_g * (tau_b**2 - a * (tau_b**2 - tau_g**2)))
        return min(max(most**2, 1.0), o["alpha_max"])

    def update(self, e):
        """One iteration over the inputs of a traced update."""
        o = self.o
        n_b, n_g = e["exposed_blue"] / 256, e["exposed_green"] / 256

        def smooth(old, new, gamma):
            return gamma * old + (1 - gamma) * new

        if n_b:
            self.q_blue = smooth(self.q_blue, min(1, e["lost_blue"] / 256 / n_b), o["gamma1"])
        if n_g:
            self.q_early = smooth(self.q_early, min(1, e["lost_green"] / 256 / n_g), o["gamma1"])
            # loop load: one of a few packets is no ratio yet
            least = 100 if o["loop"] == "load" else 1
            late = e["late_green"] / max(e["arrived_green"], least)
            self.q_late = smooth(self.q_late, late, o["gamma3"])
        if n_b or n_g:
            for c in self.load:
                self.load[c] = smooth(self.load[c], e[f"load_{c}"], o["gamma1"])
            # more green than four to one blue counts as that
            green, blue = self.load["green"], self.load["blue"]
            self.share = min(4.0, green / blue if blue else 4.0)
        if e["sent_blue"]:
            self.d_blue = smooth(
                self.d_blue, e["delay_sum_blue"] * NS / e["sent_blue"], o["gamma2"]
            )
        if e["sent_green"]:
            self.d_green = smooth(
                self.d_green, e["delay_sum_green"] * NS / e["sent_green"], o["gamma2"]
            )
        self.target = self.bias()

        if n_g and n_b and e["lost_blue"] + e["lost_green"]:
            blue = max(self.q_blue, (1 - o["gamma1"]) / (2 * n_b))
            green = max(self.q_early, (1 - o["gamma1"]) / (2 * n_g))
            wanted = blue * self.target
            if o["loop"] == "load":
                wanted = min(wanted, 0.5)
            step = (wanted / green) ** o["k1"]
            self.alpha *= min(max(step, 0.5), 2.0)
        self.alpha = min(max(self.alpha, 1.0), o["alpha_max"])

        if n_g:
            self.offset += o["k3"] * self.q_late
            if o["loop"] == "load":
                self.offset -= o["k4"]
            elif e["looks"]:
                seen = e["ahead"] / e["looks"]
                self.offset += o["k2"] * (seen / (o["lambda"] * e["green_limit"]) - 1)
        most = o["offset_max"]
        if o["unit"] == "time":
            most = max(most, 30 * 1514 / e["drain_rate"])
        self.offset = min(max(self.offset, 0.0), most)


def test_format(t):
    for name, wanted in FIELDS.items():
        path = f"{ROOT}/events/abe/{name}/format"
        if not t.ok(os.path.exists(path), f"tracepoint abe:{name}"):
            continue
        with open(path, encoding="utf-8") as f:
            fields = [line.split(";")[0].split()[-1] for line in f if line.startswith("\tfield:")]
        own = [f for f in fields if not f.startswith("common_")]
        missing = set(wanted.split()) - set(own)
        t.ok(not missing, f"abe:{name} has its fields", missing)


def of(events, name):
    return [e for e in events if e["event"] == name]


def test_books(t, net):
    """Drops, departures and delays of the trace are those of the statistics."""
    index = int(run("cat /sys/class/net/out/ifindex", ns="r").stdout)
    with Trace("abe_control", "abe_drop", "abe_dequeue") as trace:
        # nothing has passed the qdisc before the trace begins, also nothing of the kernel's own
        net.fresh(
            "abe packets limit 40 green_limit 5 min 10 max 60 weight 0.05 ecn interval 100ms "
            f"bytemode avpkt {AVPKT}"
        )
        with Load(seconds=4) as load:
            load.udp(pps=350, size=958, id=1, poisson=True)
            load.udp(pps=60, size=158, dscp=46, id=2, poisson=True)
            load.udp(pps=40, size=158, dscp=46, id=3, ecn=2, poisson=True)
            load.udp(pps=120, size=458, id=4, ecn=2, poisson=True)
        time.sleep(1)
        st = net.stats()
    events = trace.events
    t.ok(
        events and {e["event"] for e in events} == set(FIELDS),
        "all three fire",
        {e["event"] for e in events},
    )
    stages = {"early": "early_drops", "late": "late_drops", "limit": "limit_drops"}
    for colour in ("green", "blue"):
        c = st[colour]
        for stage, key in stages.items():
            got = sum(e["colour"] == colour and e["stage"] == stage for e in of(events, "abe_drop"))
            t.ok(got == c[key], f"{colour}: {got} {stage} drops are traced", (got, c))
        gone = [e for e in of(events, "abe_dequeue") if e["colour"] == colour]
        got = (len(gone), sum(e["len"] for e in gone))
        t.ok(
            got == (c["sent"], c["bytes"]),
            f"{colour}: each departure is traced",
            (got, c),
        )
        longest = max(e["sojourn"] for e in gone)
        t.ok(
            longest // 1000 == c["delay_max"],
            f"{colour}: delay_max is the longest sojourn",
            (longest, c["delay_max"]),
        )
        # on a link that is this slow each departure reads the clock, once its rate is known
        bins = [0] * 16
        for e in gone:
            # abe_sojourn_bin() multiplies by 67109 / 2^32 for 1 / 64000: 2 ppm more
            bins[min((e["sojourn"] * 67109 >> 32).bit_length(), 15)] += 1
        got = c["sojourn"]
        missing = [n - m for n, m in zip(bins, got)]
        t.ok(
            min(missing) >= 0 and sum(missing) <= 10 and sum(n > 0 for n in got) > 2,
            f"{colour}: sojourn has {sum(got)} of {sum(bins)} packets in their bins",
            (got, bins),
        )
        mean = sum(e["sojourn"] for e in gone) / 1000 / len(gone)
        t.ok(
            abs(mean - c["delay_mean"]) < 1,
            f"{colour}: delay_mean is the mean sojourn",
            (mean, c["delay_mean"]),
        )
    drops = (
        st["green"]["early_drops"],
        st["green"]["late_drops"],
        st["blue"]["early_drops"],
        st["blue"]["limit_drops"],
    )
    t.ok(all(drops), "there was something of each to compare", drops)
    lens = {e["len"] for e in of(events, "abe_drop") + of(events, "abe_dequeue")}
    t.ok(
        lens >= {1000, 200, 500} and max(lens) == 1000, "len is the packet's", lens
    )  # ARP comes, too
    handles = {(e["ifindex"], e["handle"]) for e in events}
    t.ok(handles == {(index, 0x10)}, "ifindex and handle tell the qdisc", handles)
    # what the updates saw, and what they left in the statistics
    control = of(events, "abe_control")
    for colour in ("green", "blue"):
        for key, name in (("arrived", "arrived"), ("sent", "sent"), ("arrived", "load")):
            total = sum(e[f"{name}_{colour}"] for e in control)
            t.ok(
                0.85 * st[colour][key] <= total <= st[colour][key],
                f"abe_control: {name}_{colour}",
                (total, st[colour]),
            )
    t.ok(
        sum(e["late_green"] for e in control) <= st["green"]["late_drops"],
        "abe_control: late_green",
        st["green"],
    )
    # with bytemode: bytes/avpkt of arrivals; early losses whole, those of the limit by size
    for colour in ("green", "blue"):
        gone = [
            e for e in of(events, "abe_drop") + of(events, "abe_dequeue") if e["colour"] == colour
        ]
        full = sum(e["len"] for e in gone if e.get("stage") == "limit")
        lost = st[colour]["early_drops"] + st[colour]["marks"] + full / AVPKT
        came = sum(e["len"] for e in gone) / AVPKT
        for name, wanted in (("exposed", came), ("lost", lost)):
            total = sum(e[f"{name}_{colour}"] for e in control) / 256
            t.ok(
                0.85 * wanted <= total <= wanted + 1,
                f"abe_control: {name}_{colour}, weighed by size",
                (total, wanted),
            )
    compare_xstats(t, "abe_control", control[-1], len(control), st)


def compare_xstats(t, text, last, count, st):
    pairs = {
        "updates": count,
        "alpha": last["alpha"] / 65536,
        "alpha_target": last["target"] / 65536,
        "offset": last["offset"] // 1000,
        "delay_blue": last["delay_blue"] // 1000,
        "delay_green": last["delay_green"] // 1000,
        "loss_blue": last["loss_blue"] / Q40,
        "loss_green_early": last["loss_green_early"] / Q40,
        "loss_green_late": last["loss_green_late"] / Q40,
        "green_share": min(1.0, last["share"] / Q40),
    }
    wrong = {k: (st[k], v) for k, v in pairs.items() if abs(st[k] - v) > max(1e-4 * abs(v), 1e-8)}
    t.ok(not wrong, f"{text}: the last update is what the statistics say", wrong)


def follow(t, text, options, control):
    """Feed the reference with the traced inputs; it has to stay beside the kernel."""
    loop = Loop(options)
    worst = dict.fromkeys(("alpha", "target", "offset", "loss"), (0.0, None))
    moved = {"alpha": set(), "offset": set()}
    for e in control:
        loop.update(e)
        for key, mine, theirs, least in (
            ("alpha", loop.alpha, e["alpha"] / 65536, 1e-3),
            ("target", loop.target, e["target"] / 65536, 1e-3),
            ("offset", loop.offset, e["offset"] * NS, 1e-3),
            ("loss", loop.q_blue, e["loss_blue"] / Q40, 1e-3),
            ("loss", loop.q_early, e["loss_green_early"] / Q40, 1e-3),
            ("loss", loop.q_late, e["loss_green_late"] / Q40, 1e-3),
        ):
            error = abs(theirs - mine) / max(mine, least)
            if error > worst[key][0]:
                worst[key] = (error, f"{theirs:.9g}, reference {mine:.9g}, in {e}")
        moved["alpha"].add(e["alpha"])
        moved["offset"].add(e["offset"])
    for key, (error, where) in worst.items():
        t.ok(error < 1e-3, f"{text}: {key} within 0.1 % of floating point", f"{error:.2e}: {where}")
    errors = ", ".join(f"{key} {error:.1e}" for key, (error, _) in worst.items())
    t.note(f"{text}: {len(control)} updates, largest relative errors: {errors}")
    return moved


def test_loops(t, net):
    for text, spec, green in (
        ("paper", "packets loop paper", 25),
        ("load", "packets loop load", 25),
        ("paper, much green", "packets loop paper offset_max 60ms rtt 400ms", 150),
        ("load, much green", "packets loop load k4 2ms k1 0.5 gamma1 0.9", 150),
        ("time", "time rate 2mbit ecn", 40),
        ("time, little green", "time rate 2mbit nobytemode gamma2 0.4 rtt 180ms", 3),
        ("bytes", "bytes loop paper gamma2 0.1 lambda 0.8", 40),
    ):
        net.fresh(f"abe {spec} interval 50ms")
        options = net.stats()["options"]
        with Trace("abe_control") as trace:
            with Load(seconds=8) as load:
                load.tcp(flows=4)
                load.udp(pps=green, size=158, dscp=46, id=100, poisson=True)
                load.udp(pps=10, size=958, dscp=46, id=101, seconds=4)
                load.udp(pps=150, size=958, id=102, seconds=3)
            time.sleep(1)
            st = net.stats()
        control = of(trace.events, "abe_control")
        t.ok(len(control) > 140, f"{text}: a long run", len(control))
        moved = follow(t, text, options, control)
        t.ok(
            len(moved["alpha"]) > 15 and len(moved["offset"]) > 5,
            f"{text}: alpha and D moved",
            {k: len(v) for k, v in moved.items()},
        )
        compare_xstats(t, text, control[-1], len(control), st)


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    test_format(t)
    net = Net(rate=2000000, delay=10)
    test_books(t, net)
    t.note(f"at {time.monotonic():.1f} s")
    test_loops(t, net)
    net.close()
    unload(t, "the module unloads")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.note(f"at {time.monotonic():.1f} s")
    t.done()


if __name__ == "__main__":
    main()
