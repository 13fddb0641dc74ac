#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: TCP for longer
# vm: --nics
"""abe at the root of a device with byte queue limits (BQL).

Hosts a and b have an e1000e each. QEMU's sends a packet at once, but tells the
driver only with the next interrupt. With interrupts a millisecond apart and a
limit of two full-size packets, the driver's queue is stopped most of the time,
and the card is a slow link without a shaper.
"""

import json
import subprocess
import time

from lib import LONG, Load, Tap, balance, fell, forget_readers, in_ns, qdisc, qdiscs, run
from wire import kernel_log, unload

FULL = 1514
LIMIT = 3000  # the card takes packets until it holds that much
BQL = "/sys/class/net/eth0/queues/tx-0/byte_queue_limits"


def connect():
    run("modprobe e1000e")
    for n, ns in ((1, "a"), (2, "b")):
        run(f"ip netns add {ns}")
        run("ip link set lo up", ns=ns)
        run(f"ip link set eth{n - 1} name eth0 netns {ns}")
        run("ethtool -C eth0 rx-usecs 1000", ns=ns)
        run(["sh", "-c", f"echo {LIMIT} >{BQL}/limit_max"], ns=ns)
        run("sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1", ns=ns)
        run(f"ip addr add 10.0.2.{3 - n}/24 dev eth0", ns=ns)
        run("ip link set eth0 up", ns=ns)
    # these cards take seconds to agree on a speed
    for _ in range(10):
        if run("ping -c 1 -W 1 10.0.2.1", ns="a", check=False).returncode == 0:
            return
    raise RuntimeError("the cards do not hear each other")


def put(spec, handle="10:"):
    """As the root of both cards."""
    for ns in "ab":
        run("tc qdisc del dev eth0 root", ns=ns, check=False)
        run(f"tc qdisc add dev eth0 root handle {handle} {spec}", ns=ns)


def number(path, ns="a"):
    return int(run(f"cat {path}", ns=ns).stdout)


def left(hosts="ab"):
    return [
        (ns, q["kind"], q["qlen"], q["backlog"])
        for ns in hosts
        for q in qdiscs("eth0", ns)
        if q["qlen"] or q["backlog"]
    ]


class Watch:
    """Looks at the books of both ends while traffic runs."""

    def __init__(self, changes=()):
        self.changes = list(changes)
        self.wrong = []
        self.deepest = dict.fromkeys("ab", 0)
        self.inflight = []
        self.old = {}
        self.looks = 0

    def look(self, ns):
        found = [q for q in qdiscs("eth0", ns) if q["kind"] == "abe"]
        if not found:
            return
        q = found[0]
        self.deepest[ns] = max(self.deepest[ns], q["qlen"])
        old = self.old.get(ns)
        if old and old["handle"] == q["handle"]:
            self.wrong += [f"{self.looks}: {ns}: {text} fell" for text in fell(old, q)]
        self.old[ns] = q
        wrong = balance(q, moving=True)
        # core's and own books are not read in one moment: what is wrong stays wrong
        for _ in range(3):
            if not balance(q, whole=True):
                break
            q = qdisc("eth0", ns)
        self.wrong += [f"{self.looks}: {ns}: {text}" for text in wrong + balance(q, whole=True)]

    def __call__(self):
        self.looks += 1
        for ns in "ab":
            self.look(ns)
        self.inflight.append(number(f"{BQL}/inflight"))
        if self.changes and self.looks % 4 == 0:
            run(self.changes.pop(0), ns="a")


def backwards(seconds):
    """Four TCPs from b to a: one alone may leave slow start with hardly a queue."""
    server = subprocess.Popen(
        ["ip", "netns", "exec", "b", "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL
    )
    time.sleep(0.2)
    client = subprocess.Popen(
        in_ns("a", f"iperf3 -c 10.0.2.1 -R -P 4 -J -t {seconds}"),
        stdout=subprocess.PIPE,
        text=True,
    )
    return server, client


def ended(server, client):
    """Its bit/s."""
    out = json.loads(client.communicate()[0])
    server.wait()
    return out["end"]["sum_received"]["bits_per_second"]


def test_flood(t):
    """More UDP than the card takes, and a call."""
    delay = {}
    for spec in ("pfifo limit 40", "abe"):
        put(spec)
        watch = Watch()
        before = number("/sys/class/net/eth0/statistics/tx_bytes")
        begin = time.monotonic()
        with Load(seconds=3, warmup=1, poll=watch if spec == "abe" else None, every=0.05) as load:
            load.udp(pps=2000, size=1400, flows=4, id=1)
            load.udp(pps=100, size=172, dscp=46, id=9)
        rate = (number("/sys/class/net/eth0/statistics/tx_bytes") - before) / (
            time.monotonic() - begin
        )
        delay[spec] = {f["flow"]: f["delay_us"] for f in load.report["udp"]}
        for flow, us in delay[spec].items():
            t.note(
                f"{spec}: flow {flow}: median {us['median'] / 1e3:.2f} 99 % {us['p99'] / 1e3:.2f} ms; {8e-6 * rate:.1f} Mb/s"
            )
    green, blue = delay["abe"][9], delay["abe"][1]
    plain = delay["pfifo limit 40"]
    q = watch.old["a"]
    t.note(
        f"inflight: {sorted(set(watch.inflight))}, limit {number(f'{BQL}/limit')}, drain rate {q['drain_rate']}"
    )
    t.ok(
        number(f"{BQL}/limit") == LIMIT,
        "BQL: the limit in force is the one set",
        number(f"{BQL}/limit"),
    )
    stopped = sum(x >= LIMIT for x in watch.inflight)
    t.ok(
        stopped > len(watch.inflight) / 2 and max(watch.inflight) < LIMIT + FULL,
        f"BQL: the queue was stopped at {stopped} of {len(watch.inflight)} looks",
        watch.inflight,
    )
    t.ok(
        watch.deepest["a"] > 20 and q["drops"] > 100,
        f"the queue is abe's: up to {watch.deepest['a']} packets",
        q,
    )
    t.ok(
        not watch.wrong, f"flood: books balance at {watch.looks} looks", "\n".join(watch.wrong[:9])
    )
    t.ok(
        green["p99"] < 5000 and blue["median"] > 10000,
        "green waits 5 ms at most, blue more than 10",
        delay,
    )
    t.ok(plain[9]["median"] > 0.8 * plain[1]["median"], "which pfifo does not do", delay)
    t.ok(not left(), "flood: then 0b 0p", left())


def test_tcp(t):
    """Both ways at once, each with the other's acknowledgements."""
    put("abe")
    watch = Watch()
    seconds = 5 if LONG else 3
    with Load(seconds=seconds, warmup=1, poll=watch, every=0.05) as load:
        load.tcp(flows=4, id=1)
        load.udp(pps=50, size=172, dscp=46, id=9)
        back = backwards(seconds - 1)
    rates = sum(f["goodput"] for f in load.report["tcp"]), ended(*back)
    (voice,) = load.report["udp"]
    t.ok(
        min(rates) > 2e7,
        f"TCP both ways: {rates[0] / 1e6:.1f} and {rates[1] / 1e6:.1f} Mb/s",
        rates,
    )
    t.ok(min(watch.deepest.values()) > 10, f"and queues at both ends: {watch.deepest}")
    t.ok(voice["delay_us"]["p99"] < 13000, "green waits its 10 ms at most", voice)
    t.ok(not watch.wrong, f"TCP: books balance at {watch.looks} looks", "\n".join(watch.wrong[:9]))
    t.ok(not left(), "TCP: then 0b 0p", left())


def test_changes(t):
    watch = Watch(
        [
            "tc qdisc " + text
            for text in (
                "change dev eth0 root handle 10: abe packets limit 20 min 5 max 15",
                "change dev eth0 root handle 10: abe bytes limit 30000 min 10000 max 20000",
                "change dev eth0 root handle 10: abe packets limit 1",
                "replace dev eth0 root handle 11: abe",
                "change dev eth0 root handle 11: abe limit 100ms flat",
                "change dev eth0 root handle 11: abe limit 50ms noflat nosplit_gso",
                "replace dev eth0 root handle 12: pfifo",
                "replace dev eth0 root handle 10: abe",
            )
        ]
    )
    put("abe")
    with Load(seconds=5 if LONG else 3.5, poll=watch, every=0.05) as load:
        load.udp(pps=8000, size=1400, id=1)
        load.udp(pps=300, size=500, dscp=46, id=2)
        load.tcp(flows=2, id=3)
    q = watch.old["a"]
    t.ok(
        not watch.changes and not watch.wrong,
        f"change and replace in mid-flight: books balance at {watch.looks} looks",
        "\n".join(watch.wrong[:9]),
    )
    t.ok(min(q["green"]["sent"], q["blue"]["sent"]) > 100, "and traffic goes on", q)
    t.ok(not left(), "changes: then 0b 0p", left())


def test_link(t):
    """TCP, which bears that there is no route for a while."""
    put("abe")
    watch = Watch()
    queued = []

    def poll():
        watch()
        if watch.looks == 4:
            queued.append(qdisc("eth0", "a")["qlen"])
            run("ip link set eth0 down", ns="a")
            queued.extend(left("a"))  # b's link is up
        elif watch.looks == 5:
            run("ip link set eth0 up", ns="a")

    seconds = 11 if LONG else 8
    with Load(seconds=seconds, warmup=seconds - 3, poll=poll, every=0.25) as load:
        load.tcp(flows=4, id=1)
        back = backwards(seconds - 2)
    rates = sum(f["goodput"] for f in load.report["tcp"]), ended(*back)
    t.ok(queued[0] > 3 and len(queued) == 1, "link down with packets queued: 0b 0p", queued)
    t.ok(
        not watch.wrong,
        f"link down and up: books balance at {watch.looks} looks",
        "\n".join(watch.wrong[:9]),
    )
    t.ok(min(rates) > 2e6, "and traffic goes on", rates)
    t.ok(not left(), "link up: then 0b 0p", left())


def test_removal(t):
    put("abe")
    with subprocess.Popen(
        in_ns("a", "abeload send udp --to 10.0.2.1:9 --duration 1 --pps 8000 --size 1400"),
        stderr=subprocess.DEVNULL,
    ):
        time.sleep(0.5)
        q = qdisc("eth0", "a")
        run("rmmod e1000e")
    t.ok(q["qlen"] > 10, "the driver goes with packets queued", q)
    forget_readers()
    for ns in "ab":
        run(f"ip netns del {ns}")
    unload(t, "the module unloads")


def main():
    t = Tap()
    run("modprobe sch_abe")
    connect()
    for test in (test_flood, test_tcp, test_changes, test_link, test_removal):
        test(t)
        t.note(f"at {time.monotonic():.1f} s")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
