#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: the flood below htb too
# vm: --mem 320M
"""The memory of abe's queue has a bound, from the first packet on.

The smallest packets take twenty times the memory of their length, and before the
first packets have left nobody knows how slow the shaper above is. The machine is
small: what has no bound ends it.
"""

import random
import time

import lib
from lib import Load, Net, qdiscs, run
from test_tree import abe_of, left, line, unbalanced
from wire import Port, kernel_log, unload

MB = 1 << 20
DEFAULT = 32 * MB
START = 1000  # packets, while the drain rate is not known
CALM = "min 8s max 9s green_limit 10s"  # no drops but for lack of room


def available():
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(text.split()[1]) for text in f if text.startswith("MemAvailable")) << 10


def forwarded(net, lines, place, kind):
    """Forward small packets, as fast as they come, for a second; the least memory available."""
    run("tc qdisc del dev out root", ns="r", check=False)
    for text in lines:
        run("tc " + line("out", text), ns="r")
    run(f"tc qdisc add dev out {f'parent {place}' if place else 'root'} handle 10: {kind}", ns="r")
    low = available()

    def poll():
        nonlocal low
        low = min(low, available())

    with Load(seconds=0.5, poll=poll, every=0.1) as load:
        load.udp(pps=15000, size=20)
        load.udp(pps=15000, size=20, dscp=46, id=2)
    poll()
    return low


def test_flood(t):
    """Half a second of small packets into shapers of 8 kb/s; pfifo shows what they cost without us."""
    net = Net()
    shapers = {
        "tbf": (("root handle 1: tbf rate 8kbit burst 1600 limit 1000000000",), "1:1"),
        "htb": (
            ("root handle 1: htb default 1", "class 1:1 htb rate 8kbit burst 1600 cburst 1600"),
            "1:1",
        ),
    }
    for name, (lines, place) in list(shapers.items())[: None if lib.LONG else 1]:
        before = forwarded(net, lines, place, "pfifo limit 1000")
        for spec in ("", "rate 1gbit limit 10s memory_limit 4mb"):
            low = forwarded(net, lines, place, f"abe {spec}")
            st = net.stats()
            top = 4 * MB if "memory_limit" in spec else DEFAULT
            t.ok(
                st["memory_max"] <= st["memory_limit"] <= top,
                f"{name}, abe {spec}: within its limit",
                st,
            )
            if "rate" not in spec:
                t.ok(st["qlen"] <= START, f"{name}, abe {spec}: {st['qlen']} packets", st)
            t.ok(
                before - low < 12 * MB,
                f"{name}, abe {spec}: memory is left",
                (before >> 20, low >> 20),
            )
            arrived = st["green"]["arrived"] + st["blue"]["arrived"]
            t.ok(
                arrived > 12500 and not unbalanced("out", "r"),
                f"{name}, abe {spec}: {arrived} packets",
                unbalanced("out", "r"),
            )
    net.close()


def test_start(t, port):
    """While nothing is known of the rate the buffer counts packets, if it is given as a time."""
    for spec, wanted in (
        (f"{CALM} limit 10s", START),
        (f"rate 1gbit {CALM} limit 10s", None),
        ("packets limit 1100 min 900 max 1100", 1100),
        ("bytes limit 66001 min 65k max 66k", 1100),
    ):
        port.fresh(f"abe {spec}")
        port.blue(1201, size=60)
        st = port.stats()
        arrived = 1201 - st["blue"]["sent"]
        wanted = wanted or arrived
        good = (
            st["qlen"] == wanted
            and st["blue"]["limit_drops"] == arrived - wanted
            and not unbalanced(port.name)
        )
        t.ok(
            good,
            f"abe {spec}: {wanted} packets at the start",
            (st["qlen"], st["blue"], unbalanced(port.name)),
        )


def test_unit(t, port):
    """A change to unit time before the rate is known: the packets count at once."""
    port.fresh("abe packets limit 2000 min 1900 max 2000")
    port.blue(1500, size=60)
    port.change(f"time {CALM} limit 10s")
    st = port.stats()
    t.ok(
        st["qlen"] == START and not unbalanced(port.name),
        "change to time: 1000 packets stay",
        (st, unbalanced(port.name)),
    )


def test_rate_withdrawn(t, port):
    """A rate that was given and is not any more: nothing is known until the next estimate."""
    port.fresh(f"abe rate 1gbit {CALM} limit 10s")
    port.blue(1500, size=60)
    port.change("rate 0")
    st = port.stats()
    good = st["qlen"] == START and st["memory_limit"] == DEFAULT and st["drain_rate"] == 125000000
    t.ok(good and not unbalanced(port.name), "rate 0: 1000 packets until there is an estimate", st)


def test_estimate(t, port):
    """The first estimate: what is too long for the new limit goes, blue before green, and the books balance."""
    shapers = {
        "tbf": ("qdisc add dev {} root handle 1: tbf rate {}kbit burst 1600 limit 10000000",),
        "htb": (
            "qdisc add dev {} root handle 1: htb default 1",
            "class add dev {} parent 1: classid 1:1 htb rate {}kbit burst 1600 cburst 1600",
        ),
        "hfsc": (
            "qdisc add dev {} root handle 1: hfsc default 1",
            "class add dev {} parent 1: classid 1:1 hfsc sc rate {}kbit ul rate {}kbit",
        ),
    }
    for name, lines in shapers.items():
        for rate in (64, 1000):
            run(f"tc qdisc del dev {port.name} root", check=False)
            port.batch(
                *(text.format(port.name, rate, rate) for text in lines),
                f"qdisc add dev {port.name} parent 1:1 handle 10: abe",
            )
            port.blue(700, size=1514)
            port.green(10, size=200)
            full = abe_of(qdiscs(port.name))
            t.ok(
                full["qlen"] > 600,
                f"{name}, {rate} kb/s: the queue is long before the rate is known",
                full,
            )
            wrong, longest = [], 0
            for _ in range(16):
                time.sleep(0.25)
                wrong += unbalanced(port.name)
                st = abe_of(qdiscs(port.name))
                if st["drain_rate"] != full["drain_rate"]:
                    longest = max(
                        longest, st["blue"]["backlog"] + st["green"]["backlog"] - st["limit_bytes"]
                    )
            t.ok(not wrong, f"{name}, {rate} kb/s: balance", "\n".join(wrong[:9]))
            good = longest <= 0 and st["limit_bytes"] < 50000 and st["blue"]["limit_drops"] > 500
            t.ok(
                good, f"{name}, {rate} kb/s: the rate is known and the queue fits it", (longest, st)
            )
            t.ok(
                not st["green"]["limit_drops"],
                f"{name}, {rate} kb/s: green was spared",
                st["green"],
            )
            time.sleep(45000 / rate * 8 / 1000 + 1)
            t.ok(
                not left(port.name) and not unbalanced(port.name),
                f"{name}, {rate} kb/s: all drains",
                left(port.name),
            )
            st = abe_of(qdiscs(port.name))
            t.ok(
                st["memory_used"] == 0 and st["green"]["sent"] == 10,
                f"{name}, {rate} kb/s: no memory is left over",
                st,
            )


def test_limit(t, port):
    """memory_limit holds at any moment, and what `change` has no room for goes."""
    rng = random.Random(lib.SEED)
    port.fresh(
        "abe packets limit 100000 min 90000 max 100000 green_limit 100000 memory_limit 256kb"
    )
    wrong = []
    for _ in range(60):
        port.send(rng.randrange(1, 20), size=rng.choice((60, 600, 1514)), dscp=rng.choice((0, 46)))
        st = port.stats()
        if not st["memory_used"] <= st["memory_max"] <= st[
            "memory_limit"
        ] == 256 << 10 or unbalanced(port.name):
            wrong.append(st)
    t.ok(not wrong and st["memory_max"] > 240 << 10, "memory_limit holds", wrong[:1] or st)
    t.ok(st["blue"]["limit_drops"] and st["green"]["limit_drops"], "and takes both colours", st)
    green = st["green"]["qlen"]
    port.change("memory_limit 128kb")
    st = port.stats()
    good = 120 << 10 < st["memory_used"] <= 128 << 10 and not unbalanced(port.name)
    t.ok(good, "change: what is too much is dropped", (st["memory_used"], unbalanced(port.name)))
    t.ok(
        st["green"]["qlen"] == green or not st["blue"]["qlen"],
        "blue before green",
        (green, st["green"], st["blue"]),
    )
    port.open()
    st = port.stats()
    t.ok(st["memory_used"] == 0 and not left(port.name), "it drains to 0", st["memory_used"])
    port.blue(50)
    run(f"ip link set {port.name} down")
    run(f"ip link set {port.name} up")
    t.ok(port.stats()["memory_used"] == 0, "a reset leaves none", port.stats())


def test_default(t, port):
    """The default grows with the buffer, another value does not."""
    for spec, wanted in (
        ("", DEFAULT),
        ("rate 10mbit", DEFAULT),
        ("rate 10gbit", 500_000_000),
        ("rate 10gbit memory_limit 33mb", 33 * MB),
        ("rate 1gbit limit 10s", 2 << 30),
        ("packets limit 100000", 2 * 100000 * 1514),
        ("bytes limit 1gb", 2 << 30),
        ("memory_limit 64kb", 1 << 16),
        ("memory_limit 4294967295", (1 << 32) - 1),
    ):
        port.fresh(f"abe {spec}")
        t.ok(
            port.stats()["memory_limit"] == wanted,
            f"abe {spec}: {wanted} bytes",
            port.stats()["memory_limit"],
        )


def test_queues(t):
    """mq: a queue begins with its share, of the link, the packets and the memory."""
    run("ip netns add far")
    run(
        "ip link add v0 numtxqueues 4 numrxqueues 4 type veth peer name v1 netns far numtxqueues 4 numrxqueues 4"
    )
    run("ip link set v0 up")
    run("tc qdisc replace dev v0 root abe")
    (link,) = qdiscs("v0")
    run("sysctl -qw net.core.default_qdisc=abe")
    for text in ("the default", "by hand"):
        run("tc qdisc del dev v0 root", check=False)
        run("tc qdisc replace dev v0 root handle 1: mq")
        if text == "by hand":
            for n in range(1, 5):
                run(f"tc qdisc add dev v0 parent 1:{n} handle {10 * n}: abe")
        for n, q in enumerate(q for q in qdiscs("v0") if q["kind"] == "abe"):
            good = q["drain_rate"] == link["drain_rate"] // 4 and q["memory_limit"] == DEFAULT // 4
            t.ok(good, f"mq, {text}, queue {n + 1}: its share", (link["drain_rate"], q))
        t.ok(n == 3, f"mq, {text}: four queues", n)
    run("sysctl -qw net.core.default_qdisc=pfifo_fast")
    run("tc qdisc del dev v0 root")
    run("ip netns del far")


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    port = Port()
    test_start(t, port)
    test_unit(t, port)
    test_rate_withdrawn(t, port)
    test_estimate(t, port)
    test_limit(t, port)
    test_default(t, port)
    run(f"ip link del {port.name}")
    test_queues(t)
    test_flood(t)
    unload(t, "the module unloads")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
