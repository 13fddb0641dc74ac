#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What is wrong is refused, with a message that names the fault, and nothing changes.

First through tc, then with netlink messages that tc would never send: on add,
where no qdisc may appear, and on change, where options, queue and statistics
must stay. Last a few thousand random messages, of which some are accepted:
what they set has to be within the ranges.
"""

import random
import struct
import time

import lib
from lib import run
from wire import (
    NAMES,
    NLM_F_CREATE,
    NLM_F_EXCL,
    NUMBER,
    RTM_NEWQDISC,
    TCA_KIND,
    TCA_OPTIONS,
    WIDE,
    Port,
    Refused,
    Rtnl,
    attr,
    kernel_log,
    u32,
    u64,
    unload,
)

HANDLE, PARENT = 0x100000, 0x10001
ONE = 1 << 31
TIMES = ("limit", "green_limit", "min", "max")

# What tc is given, and what the message has to say: the option, and its range
# if that was the fault.
TC = (
    # arguments missing
    *(
        (name, (name,))
        for name in (*TIMES, "rate", "probability", "weight", "avpkt", "spacing", "loop", "rtt")
    ),
    *(
        (name, (name,))
        for name in ("interval", "k1", "k2", "k3", "k4", "gamma1", "gamma2", "gamma3", "lambda")
    ),
    *(
        (name, (name,))
        for name in ("offset", "offset_max", "alpha_max", "green_dscp", "green_mark", "seed")
    ),
    ("memory_limit", ("memory_limit",)),
    ("protect", ("protect",)),
    # not a number
    *(
        (f"{name} fish", (name, "fish"))
        for name in (*TIMES, "rate", "probability", "weight", "avpkt", "spacing")
    ),
    *(
        (f"{name} fish", (name, "fish"))
        for name in ("loop", "rtt", "interval", "k1", "k2", "k3", "k4", "gamma1")
    ),
    *(
        (f"{name} fish", (name, "fish"))
        for name in ("gamma2", "gamma3", "lambda", "offset", "offset_max")
    ),
    *(
        (f"{name} fish", (name, "fish"))
        for name in ("alpha_max", "green_dscp", "green_mark", "seed")
    ),
    *(
        (f"{name} -1", (name, "-1"))
        for name in ("limit", "rate", "probability", "interval", "seed", "green_mark")
    ),
    *(
        (f"{name} nan", (name, "nan"))
        for name in ("probability", "weight", "k1", "gamma1", "rtt", "rate")
    ),
    ("limit 10x", ("limit", "10x")),
    ("memory_limit fish", ("memory_limit", "fish")),
    ("protect fish", ("protect", "fish")),
    ("protect auto", ("protect", "auto")),
    ("memory_limit 10ms", ("memory_limit", "10ms")),
    ("probability 0x1", ("probability", "0x1")),
    ("limit 1e99", ("limit", "1e99")),
    ("seed 18446744073709551616", ("seed",)),
    ("seed 99999999999999999999999999", ("seed",)),
    ("green_mark 0x100000000", ("green_mark",)),
    ("green_mark 1/0x100000000", ("green_mark",)),
    ("green_mark 1/", ("green_mark",)),
    ("green_dscp 64", ("green_dscp", "64")),
    ("green_dscp 46-45", ("green_dscp", "46-45")),
    ("green_dscp 45,,46", ("green_dscp",)),
    ("green_dscp 45,", ("green_dscp",)),
    ("green_dscp EG", ("green_dscp", "EG")),
    # unknown, given twice, contradictory
    ("fish", ("fish",)),
    ("nolimit", ("nolimit",)),
    ("spacing even", ("spacing", "even")),
    ("loop tight", ("loop", "tight")),
    ("limit 5 limit 6", ("limit", "twice")),
    ("ecn noecn", ("ecn", "twice")),
    ("packets bytes", ("unit", "twice")),
    ("packets limit 10ms", ("limit", "10ms", "packets")),
    ("bytes limit 10p", ("limit", "10p", "bytes")),
    ("limit 10ms max 30p", ("max", "30p")),
    ("rtt 10kb", ("rtt", "10kb")),
    ("avpkt 10ms", ("avpkt", "10ms")),
    # out of range
    ("packets limit 1048577", ("limit", "2^20 packets")),
    ("packets green_limit 1048577", ("green_limit", "2^20 packets")),
    ("packets max 1048577", ("max", "2^20 packets")),
    ("packets min 1048577 max 1048578", ("m", "2^20 packets")),
    ("bytes limit 1073741825", ("limit", "2^30 bytes")),
    ("bytes green_limit 1073741825", ("green_limit", "2^30 bytes")),
    ("limit 10000001us", ("limit", "10 s")),
    ("limit 11s", ("limit", "10 s")),
    ("green_limit 11s", ("green_limit", "10 s")),
    ("max 11s", ("max", "10 s")),
    ("packets max 0", ("max", "1 ")),
    ("packets min 30 max 30", ("min", "max")),
    ("packets min 31 max 30", ("min", "max")),
    ("min 40ms", ("min", "max")),
    ("max 5ms", ("min", "max")),
    ("probability 0", ("probability", "above 0", "1")),
    ("probability 1.01", ("probability", "above 0", "at most 1")),
    ("probability 3", ("probability",)),
    ("weight 0", ("weight",)),
    ("weight 1.01", ("weight", "above 0", "at most 1")),
    ("avpkt 63", ("avpkt", "64 .. 65535")),
    ("avpkt 65536", ("avpkt", "64 .. 65535")),
    ("avpkt 0", ("avpkt", "64 .. 65535")),
    ("memory_limit 0", ("memory_limit", "64 KiB .. 2^32 - 1 bytes")),
    ("memory_limit 65535", ("memory_limit", "64 KiB .. 2^32 - 1 bytes")),
    ("memory_limit 4096mb", ("memory_limit",)),
    ("protect 0.51", ("protect", "0 (off) .. 0.5")),
    ("protect 1", ("protect", "0 (off) .. 0.5")),
    ("rate 100tbit", ("rate", "2^40")),
    ("interval 0", ("interval", "10 ms .. 10 s")),
    ("interval 0s", ("interval", "10 ms .. 10 s")),
    ("interval 9999us", ("interval", "10 ms .. 10 s")),
    ("interval 10000001us", ("interval", "10 ms .. 10 s")),
    ("rtt 0", ("rtt", "1 us .. 10 s")),
    ("rtt 11s", ("rtt", "1 us .. 10 s")),
    ("k1 16.1", ("k1", "0 .. 16")),
    ("k2 11s", ("k2", "0 .. 10 s")),
    ("k3 11s", ("k3", "0 .. 10 s")),
    ("k4 11s", ("k4", "0 .. 10 s")),
    ("k3 5000s", ("k3",)),
    ("gamma1 1", ("gamma1", "below 1")),
    ("gamma2 1", ("gamma2", "below 1")),
    ("gamma3 1", ("gamma3", "below 1")),
    ("gamma1 1.5", ("gamma1", "below 1")),
    ("lambda 0", ("lambda", "0.01 .. 1")),
    ("lambda 0.005", ("lambda", "0.01 .. 1")),
    ("lambda 1.01", ("lambda", "0.01 .. 1")),
    ("offset 11s", ("offset", "10 s")),
    ("offset 9s", ("offset", "offset_max")),
    ("offset 201ms offset_max 200ms", ("offset", "offset_max")),
    ("offset_max 11s", ("offset_max", "10 s")),
    ("alpha_max 0.99", ("alpha_max", "1 .. 10000")),
    ("alpha_max 0", ("alpha_max", "1 .. 10000")),
    ("alpha_max 10001", ("alpha_max", "1 .. 10000")),
    ("alpha_max 1e6", ("alpha_max",)),
    ("green_mark 0x10/0x0f", ("green_mark", "mask")),
)

# Ranges of the attributes, and a piece of the message outside of them.
RANGES = {
    "unit": (0, 2, "time (0), bytes (1) or packets (2)"),
    "rate": (0, 1 << 40, "2^40"),
    "limit": (0, 1 << 20, "2^20 packets"),
    "green_limit": (0, 1 << 20, "2^20 packets"),
    "min": (0, 1 << 20, "2^20 packets"),
    "max": (1, 1 << 20, "2^20 packets"),
    "probability": (1, ONE, "above 0 and at most 1"),
    "weight": (0, ONE, "above 0 and at most 1"),
    "avpkt": (64, 65535, "64 .. 65535"),
    "spacing": (0, 4, "0 .. 4"),
    "loop": (0, 1, "paper (0) or load (1)"),
    "rtt": (1, 10**7, "1 us .. 10 s"),
    "interval": (10**4, 10**7, "10 ms .. 10 s"),
    "k1": (0, 16 << 16, "0 .. 16"),
    "k2": (0, 10**7, "0 .. 10 s"),
    "k3": (0, 10**7, "0 .. 10 s"),
    "k4": (0, 10**7, "0 .. 10 s"),
    "gamma1": (0, ONE - 1, "below 1"),
    "gamma2": (0, ONE - 1, "below 1"),
    "gamma3": (0, ONE - 1, "below 1"),
    "lambda": (ONE // 100, ONE, "0.01 .. 1"),
    "offset": (0, 10**7, "0 .. 10 s"),
    "offset_max": (0, 10**7, "0 .. 10 s"),
    "alpha_max": (1 << 16, 10000 << 16, "1 .. 10000"),
    "memory_limit": (1 << 16, (1 << 32) - 1, "64 KiB .. 2^32 - 1 bytes"),
    "protect": (0, ONE // 2, "0 (off) .. 0.5"),
}
VALUES = (0, 1, 31, 32, 255, 1 << 31, (1 << 32) - 1, (1 << 64) - 1)
UNITS = (10**7, 1 << 30, 1 << 20)  # the highest limit, in each unit


class Witness:
    """A qdisc with a queue, and what it looks like."""

    def __init__(self, t, port, nl):
        self.t, self.port, self.nl = t, port, nl
        port.fresh("abe packets limit 50 interval 10s weight 0.5")
        port.blue(20)
        port.green(20)
        time.sleep(0.3)  # until all blue is due, so that nothing moves by itself
        self.seen = self.look()

    def look(self):
        return self.nl.get(self.port.name, HANDLE)

    def unchanged(self):
        old, self.seen = self.seen, self.look()
        return old == self.seen

    def kernel(self, text, options, *words, flags=0, **kwargs):
        """The kernel has to refuse these options, on change and on add."""
        for verb, dev, parent, handle, more in (
            ("change", self.port.name, PARENT, HANDLE, 0),
            ("add", "bare", 0xFFFFFFFF, 0x200000, NLM_F_CREATE | NLM_F_EXCL),
        ):
            try:
                self.nl.qdisc(flags | more, dev, parent, handle, options, **kwargs)
                said = None
            except Refused as e:
                said = e.text
            same = (
                self.unchanged() if verb == "change" else lib.qdiscs("bare")[0]["kind"] == "noqueue"
            )
            good = (
                said is not None
                and all(word in said for word in words)
                and (said or not words)
                and same
            )
            self.t.ok(
                good, f"netlink {verb}: {text}", f"said {said!r}; {'un' if same else ''}changed"
            )
            if said is None and verb == "add":
                run("tc qdisc del dev bare root", check=False)


def names(word, said):
    """Does the message name the option, as a word of its own?"""
    return any(word == w.strip('":,;') for w in said.split()) or word in said


def test_tc(t, port, nl):
    w = Witness(t, port, nl)
    for spec, words in TC:
        res = port.change(spec, check=False)
        said = res.stdout + res.stderr
        same = w.unchanged()
        good = res.returncode and all(names(word, said) for word in words) and same
        t.ok(
            good,
            f"tc change: {spec}",
            f"exit {res.returncode}, {'un' if same else ''}changed: {said}",
        )
    wrong = []
    for spec, words in TC[::3] + TC[-40::2]:
        res = run(f"tc qdisc add dev bare root abe {spec}", check=False)
        said = res.stdout + res.stderr
        kind = lib.qdiscs("bare")[0]["kind"]
        # what is too much for one unit only is no fault in another
        if kind != "noqueue" or not res.returncode or not all(names(word, said) for word in words):
            wrong.append(f"{spec}: exit {res.returncode}, {kind}: {said}")
            run("tc qdisc del dev bare root", check=False)
    t.ok(not wrong, "tc add: the same, and no qdisc appears", "\n".join(wrong))
    res = port.change("limit 60p interval 0", check=False)
    t.ok(
        res.returncode and w.unchanged(),
        "a good option beside a bad one is not taken either",
        res.stderr,
    )


def test_ranges(t, port, nl):
    w = Witness(t, port, nl)
    for name, (low, high, words) in RANGES.items():
        make = u64 if name in WIDE else u32
        top = (1 << 64) - 1 if name in WIDE else (1 << 32) - 1
        bad = {v for v in (*VALUES, low - 1, high + 1) if 0 <= v <= top and not low <= v <= high}
        for value in sorted(bad):
            unit = u32("unit", 2) if name in TIMES else b""
            w.kernel(f"{name} {value:#x}", unit + make(name, value), f"abe: {name}", words)
    for flags in ((1 << 7, 1 << 7), ((1 << 32) - 1, (1 << 32) - 1), (0, 1 << 31), (1, 0)):
        w.kernel(f"flags {flags}", attr(NUMBER["flags"], struct.pack("=II", *flags)), "flag")
    w.kernel("min above max", u32("unit", 2) + u32("min", 40) + u32("max", 30), "min", "max")
    w.kernel(
        "offset above offset_max",
        u32("offset", 300000) + u32("offset_max", 100000),
        "offset",
        "offset_max",
    )
    w.kernel(
        "mark outside of its mask",
        u32("green_mark", 8) + u32("green_mask", 7),
        "green_mark",
        "mask",
    )
    w.kernel("mark with mask 0", u32("green_mark", 8) + u32("green_mask", 0), "green_mark", "mask")


def test_lengths(t, port, nl):
    w = Witness(t, port, nl)
    for name in NAMES:
        size = 8 if name in (*WIDE, "flags") else 4
        wrong = []
        old = w.look()
        for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 255):
            if n == size:
                continue
            try:
                nl.qdisc(0, port.name, PARENT, HANDLE, attr(NUMBER[name], bytes(n)))
                wrong.append(f"{n} bytes accepted")
            except Refused as e:
                label = {"green_mask": "green_mark", "flags": "flag"}.get(name, name)
                if label not in e.text:
                    wrong.append(f"{n} bytes: {e}")
        if w.look() != old:
            wrong.append("changed")
        t.ok(not wrong, f"{name}: only {size} bytes", "\n".join(wrong))


def test_shapes(t, port, nl):
    w = Witness(t, port, nl)
    good = u32("limit", 55)
    for number in (0, len(NAMES) + 1, len(NAMES) + 2, 100, 0x3FFF):
        w.kernel(f"unknown attribute {number}", good + attr(number, bytes(4)))
    w.kernel("attributes not nested", good, nested=False)
    w.kernel(
        "an option with the flag of a nest", attr(NUMBER["limit"] | 0x8000, struct.pack("=I", 55))
    )
    w.kernel("a nest within", attr(NUMBER["limit"] | 0x8000, good))
    w.kernel("an attribute longer than its nest", struct.pack("=HHI", 200, NUMBER["limit"], 55))
    w.kernel("an attribute shorter than its head", struct.pack("=HHI", 3, NUMBER["limit"], 55))
    w.kernel("a truncated head after a good option", good + b"\x08\0")
    w.kernel("garbage", b"\xff" * 64)
    w.kernel("zeros", bytes(64))
    w.kernel("a kilobyte of text", b"abe " * 256)
    w.kernel("an unknown kind", good, kind="ab")
    for name in ("limit", "seed"):
        try:
            make = u64 if name == "seed" else u32
            nl.qdisc(0, port.name, PARENT, HANDLE, make(name, 40) + make(name, 45))
            got = nl.options(port.name, HANDLE)[name]
            t.ok(got in (40, 45), f"{name} twice: one of them", got)
        except Refused as e:
            t.ok(True, f"{name} twice: refused", e)
    w.unchanged()
    for text, options in (("empty TCA_OPTIONS", b""), ("no TCA_OPTIONS", None)):
        try:
            nl.qdisc(0, port.name, PARENT, HANDLE, options)
            verdict = "accepted"
        except Refused as e:
            verdict = str(e)
        t.ok(w.unchanged(), f"{text}: changes nothing ({verdict})", verdict)
    # the request itself, cut off anywhere
    body = struct.pack("=BxxxiIII", 0, 0, HANDLE, PARENT, 0) + attr(TCA_KIND, b"abe\0")
    body += attr(TCA_OPTIONS | 0x8000, good + u32("interval", 500000))
    for n in range(0, len(body), 3):
        try:
            nl.talk(RTM_NEWQDISC, 0, body[:n])
        except Refused:
            pass
    t.ok(w.unchanged(), "truncated requests change nothing")


def check_ranges(options):
    """What is out of its range in a dump."""
    wrong = []
    unit = options["unit"]
    for name, (low, high, _) in RANGES.items():
        if name in TIMES:
            high = UNITS[unit] if unit < 3 else 0
        if not low <= options[name] <= high:
            wrong.append((name, options[name]))
    if options["min"] >= options["max"]:
        wrong.append(("min, max", options["min"], options["max"]))
    if options["flags"][0] >> 7:
        wrong.append(("flags", options["flags"]))
    return wrong


def random_value(rng, name):
    bits = 64 if name in WIDE else 32
    kind = rng.randrange(4)
    if kind == 0 or name not in RANGES:
        return rng.choice((0, 1, rng.getrandbits(8), rng.getrandbits(bits), (1 << bits) - 1))
    low, high, _ = RANGES[name]
    if kind == 1:
        return min(max(0, rng.choice((low - 1, low, high, high + 1))), (1 << bits) - 1)
    return rng.randint(low, high)


def random_options(rng):
    out = b""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        name = rng.choice(NAMES)
        shape = rng.randrange(20)
        if shape == 0:
            out += attr(rng.randrange(64), rng.randbytes(rng.choice((0, 1, 2, 3, 4, 8, 12))))
        elif shape == 1:
            out += rng.randbytes(rng.randrange(24))
        elif shape == 2:
            out += struct.pack("=HH", rng.randrange(40), NUMBER[name]) + rng.randbytes(8)
        elif name == "flags":
            out += attr(NUMBER[name], struct.pack("=II", rng.randrange(160), rng.randrange(160)))
        else:
            make = u64 if name in WIDE else u32
            out += make(name, random_value(rng, name))
    return out


def test_random(t, port, nl):
    rng = random.Random(lib.SEED)
    port.fresh("abe", "open")
    wrong = []
    taken = 0
    for n in range(2000):
        if n % 100 == 50:  # with a queue, then without
            port.close() if n % 200 == 50 else port.batch(
                f"qdisc change dev {port.name} root handle 1: tbf {port.OPEN}"
            )
        old = nl.get(port.name, HANDLE)
        try:
            nl.qdisc(0, port.name, PARENT, HANDLE, random_options(rng), nested=rng.random() < 0.98)
            taken += 1
            bad = check_ranges(nl.options(port.name, HANDLE))
            if bad:
                wrong.append(f"message {n}: {bad}")
        except Refused as e:
            # statistics may move: packets leave
            if nl.get(port.name, HANDLE)[0] != old[0]:
                wrong.append(f"message {n}: changed though refused: {e}")
        if n % 10 == 0:
            port.send(
                2, dscp=rng.choice((0, 45, 46)), size=rng.choice((60, 1000)), ecn=rng.randrange(4)
            )
        if n % 100 == 0:
            wrong += lib.balance(port.stats())
    t.ok(
        not wrong,
        "random changes: within ranges, or refused and nothing changed",
        "\n".join(map(str, wrong[:20])),
    )
    t.ok(200 < taken < 1900, f"random changes: {taken} of 2000 were accepted")
    taken = 0
    for n in range(400):
        try:
            nl.qdisc(NLM_F_CREATE | NLM_F_EXCL, "bare", 0xFFFFFFFF, 0x200000, random_options(rng))
        except Refused:
            continue
        taken += 1
        bad = check_ranges(nl.options("bare", 0x200000))
        if bad:
            wrong.append(f"message {n}: {bad}")
        run("tc qdisc del dev bare root")
    t.ok(not wrong, "random adds: within ranges, or refused", "\n".join(map(str, wrong[:20])))
    t.ok(taken > 20, f"random adds: {taken} of 400 were accepted")
    port.fresh("abe packets limit 10 min 90 max 100")
    port.blue(20)
    st = port.stats()
    t.ok(st["qlen"] == 10 and not lib.balance(st), "and the qdisc still works", st)


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    port = Port()
    run("ip link add bare type dummy")
    run("ip link set bare up")
    nl = Rtnl()
    for test in (test_tc, test_ranges, test_lengths, test_shapes, test_random):
        test(t, port, nl)
    for dev in (port.name, "bare"):
        run(f"ip link del {dev}")
    unload(t, "the module unloads")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
