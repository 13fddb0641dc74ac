# SPDX-License-Identifier: GPL-2.0
"""What the selftests share: TAP, tc, a bottleneck between two hosts, books.

A selftest is a file test_*.py; tests/check boots a VM for each and runs it
there as root. Time in the VM is virtual, so a test may count on it.
"""

import contextlib
import ctypes
import json
import os
import re
import subprocess
import sys
import time

SEED = 1  # of everything random in a test
LONG = bool(
    os.environ.get("LONG")
)  # the whole of a suite that has a line "# long: ..."; see tests/check
UM = "-um" in os.uname().release  # ARCH=um, where computing takes no time


class Tap:
    """TAP version 13 on stdout; the plan comes last."""

    def __init__(self):
        self.count = 0
        self.failed = 0
        print("TAP version 13", flush=True)

    def ok(self, good, text, diag=None):
        self.count += 1
        if not good:
            self.failed += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}")
        if diag is not None and not good:
            for line in str(diag).splitlines():
                print(f"# {line}")
        sys.stdout.flush()
        return good

    def skip(self, text, why):
        self.count += 1
        print(f"ok {self.count} - {text} # SKIP {why}", flush=True)

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)


_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def netns(name):
    """Be in a network namespace of `ip netns`: this thread, and what it starts."""
    with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{name}", "rb") as there:
        try:
            if _libc.setns(there.fileno(), 0):
                raise OSError(ctypes.get_errno(), f"setns {name}")
            yield
        finally:
            _libc.setns(home.fileno(), 0)


def run(cmd, check=True, ns=None, **kwargs):
    """Run a command (list or string of words); its CompletedProcess."""
    if isinstance(cmd, str):
        cmd = cmd.split()
    # `ip netns exec` takes as long as tc; but only it mounts the namespace's own /sys.
    if ns and any("/sys/" in word for word in cmd):
        cmd, ns = ["ip", "netns", "exec", ns, *cmd], None
    with netns(ns) if ns else contextlib.nullcontext():
        res = subprocess.run(cmd, check=False, text=True, capture_output=True, **kwargs)
    if check and res.returncode:
        raise RuntimeError(f"{' '.join(cmd)}: exit {res.returncode}\n{res.stderr}")
    return res


def in_ns(ns, line):
    """The words of a command in a network namespace; none: here."""
    return [*(["ip", "netns", "exec", ns] if ns else []), *line.split()]


def start(line, ns=None):
    """A program in the background, once it has said "ready"."""
    p = subprocess.Popen(in_ns(ns, line), stdout=subprocess.PIPE, text=True)
    if p.stdout.readline() != "ready\n":
        raise RuntimeError(line)
    return p


def finish(p, check=True):
    """Its exit status, when it has ended."""
    p.stdout.close()
    if p.wait() and check:
        raise RuntimeError(f"{p.args}: exit {p.returncode}")
    return p.returncode


def tc(args, ns=None, check=True):
    return run("tc " + args, check=check, ns=ns)


def ip(*lines, ns=None):
    """Several commands of ip, which one ip runs."""
    return run("ip -batch -", ns=ns, input="\n".join(lines) + "\n")


# Of the kernel's log: a line with one of them tells of a fault.
FAULTS = (
    "BUG",
    "WARNING",
    "Oops",
    "Call Trace",
    "RIP:",
    "refcount",
    "leak",
    "general protection",
    "UBSAN",
)


_readers = {}  # by namespace: a tc that is asked again and again


def forget_readers():
    """End them: they keep their namespaces alive."""
    while _readers:
        _, reader = _readers.popitem()
        with contextlib.suppress(BrokenPipeError):  # it may have ended, with a line unread
            reader.stdin.close()
        reader.stdout.close()
        reader.wait()


def _json(text):
    """tc's hfsc is no JSON: its word is taken out."""
    return json.loads(re.sub(r"(default \w+|bands \d+/\d+) ?", "", text))


def _ask(dev, ns):
    """What a tc that runs says of a device; None if it can say nothing.

    It knows devices by the number they had when it began, and has nothing to say of one
    that was made anew.
    """
    if ns not in _readers:
        with netns(ns) if ns else contextlib.nullcontext():
            _readers[ns] = subprocess.Popen(
                ["tc", "-s", "-j", "-batch", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
    reader = _readers[ns]
    with contextlib.suppress(BrokenPipeError):
        reader.stdin.write(f"qdisc show dev {dev}\n")
        reader.stdin.flush()
    return _json(reader.stdout.readline() or "[]") or None


def qdiscs(dev, ns=None):
    """All qdiscs of a device with statistics, as tc's JSON gives them.

    To start a tc takes ten times as long as to ask one.
    """
    found = _ask(dev, ns)
    if found is None:
        forget_readers()
        found = _json(tc(f"-s -j qdisc show dev {dev}", ns).stdout)
    return found


def qdisc(dev, ns=None, kind="abe"):
    """The one qdisc of that kind."""
    (found,) = [q for q in qdiscs(dev, ns) if q["kind"] == kind]
    return found


def balance(q, moving=False, whole=False):
    """What is wrong with the books of an abe qdisc: a list, empty if nothing.

    `backlog` and `qlen` are the core's, the rest abe's own. The kernel reads
    the two one after the other: where packets are moving, compare own books
    only. whole: GSO packets may have been sent, of which the core counts the segments.
    """
    wrong = []
    for name in ("green", "blue"):
        c = q[name]
        drops = c["early_drops"] + c["late_drops"] + c["limit_drops"]
        if c["arrived"] != c["sent"] + drops + c["qlen"]:
            wrong.append(
                f"{name}: arrived {c['arrived']} != sent {c['sent']} + drops {drops} + qlen {c['qlen']}"
            )
        if (c["qlen"] == 0) != (c["backlog"] == 0):
            wrong.append(f"{name}: qlen {c['qlen']} but backlog {c['backlog']}")
    if moving:
        return wrong
    for key in ("qlen", "backlog"):
        if q[key] != q["green"][key] + q["blue"][key]:
            wrong.append(f"{key} {q[key]} != green {q['green'][key]} + blue {q['blue'][key]}")
    if q["bytes"] != q["green"]["bytes"] + q["blue"]["bytes"]:
        wrong.append("bytes do not add up")
    # in packets all are split
    sent, o = q["green"]["sent"] + q["blue"]["sent"], q["options"]
    whole = whole or not o["split_gso"] or o["unit"] != "packets"
    if q["packets"] < sent or (not whole and q["packets"] != sent):
        wrong.append("packets do not add up")
    return wrong


COUNTERS = (
    *("arrived", "sent", "bytes", "early_drops", "late_drops", "limit_drops"),
    *("marks", "excused"),
)


def fell(old, new):
    """Counters that went down between two readings."""
    return [
        f"{name}.{key}"
        for name in ("green", "blue")
        for key in COUNTERS
        if new[name][key] < old[name][key]
    ]


def delta(old, new):
    """Counters of both colours between two readings."""
    return {
        name: {key: new[name][key] - old[name][key] for key in COUNTERS}
        for name in ("green", "blue")
    }


class Net:
    """Hosts a and b with a router r between them, each a network namespace.

        a 10.0.1.1 --- 10.0.1.2 r 10.0.2.2 --- 10.0.2.1 b
          fd01::1        fd01::2  fd02::2        fd02::1

    The bottleneck is r's device "out", towards b. With `rate` (bit/s) it is a
    tbf with a bucket of one packet and the qdisc under test as its child;
    without, the qdisc is the root. delay (ms) is added each way by netem at
    the hosts' devices. Neighbours are permanent: their requests would pass the
    qdisc under test, be lost there, and take all traffic with them.
    """

    def __init__(self, rate=None, delay=0, offload=False, mtu=1500):
        forget_readers()
        # abeload's buffers are large; short of memory, the kernel would close the windows of all connections
        with open("/proc/sys/net/ipv4/tcp_mem", "w", encoding="ascii") as f:
            f.write("1000000 1000000 1000000")
        ends = [  # of the two links: host, router's device, number, MAC address but for its end
            (host, inner, n, f"02:00:00:00:0{n}")
            for host, inner, n in (("a", "in", 1), ("b", "out", 2))
        ]
        ip(
            *(f"netns add {ns}" for ns in "abr"),
            *(
                f"link add {inner} netns r mtu {mtu} address {mac}:02 "
                f"type veth peer name eth0 netns {host} mtu {mtu} address {mac}:01"
                for host, inner, _, mac in ends
            ),
        )
        for ns, there in (("r", ends), ("a", ends[:1]), ("b", ends[1:])):
            lines = ["link set lo up"]
            for _, inner, n, mac in there:
                dev, last, peer = (inner, 2, 1) if ns == "r" else ("eth0", 1, 2)
                lines += [
                    f"link set {dev} up",
                    f"addr add 10.0.{n}.{last}/24 dev {dev}",
                    f"addr add fd0{n}::{last}/64 dev {dev} nodad",
                ]
                for address in (f"10.0.{n}.{peer}", f"fd0{n}::{peer}"):
                    lines.append(
                        f"neigh replace {address} lladdr {mac}:0{peer} dev {dev} nud permanent"
                    )
                if ns != "r":
                    lines += [f"route add default via {x}" for x in (f"10.0.{n}.2", f"fd0{n}::2")]
                if not offload:
                    run(f"ethtool -K {dev} tso off gso off gro off", ns=ns)
            ip(*lines, ns=ns)
        for ns in "ab":
            # one test's round trips and thresholds are not the next one's
            run("sysctl -qw net.ipv4.tcp_no_metrics_save=1", ns=ns)
            if delay:
                tc(f"qdisc add dev eth0 root netem delay {delay}ms limit 100000", ns)
        run("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1", ns="r")
        self.rate = rate
        self.mtu = mtu
        if rate:
            self.set_rate(rate, "add")
        self._reach("10.0.2.1")
        self._reach("fd02::1")

    def _reach(self, address):
        """New links take a second to notice that they are up."""
        for _ in range(10):
            if run(f"ping -c 1 -W 1 {address}", ns="a", check=False).returncode == 0:
                return
        raise RuntimeError(f"{address} does not answer")

    def set_rate(self, rate, verb="change"):
        self.rate = rate
        tc(
            f"qdisc {verb} dev out root handle 1: tbf rate {rate}bit burst {self.mtu + 100} limit 100000000",
            "r",
        )

    @property
    def parent(self):
        return "parent 1:1" if self.rate else "root"

    def qdisc(self, spec, verb="replace", check=True):
        """Put the qdisc at the bottleneck: net.qdisc("abe packets limit 9")."""
        return tc(f"qdisc {verb} dev out {self.parent} handle 10: {spec}", "r", check)

    def fresh(self, spec):
        """A new qdisc, without the state of one that was there."""
        tc(f"qdisc del dev out {self.parent}", "r", check=False)
        return self.qdisc(spec, "add")

    def stats(self, kind="abe"):
        return qdisc("out", "r", kind)

    def close(self):
        forget_readers()
        for ns in "abr":
            run(f"ip netns del {ns}", check=False)


class Load:
    """Traffic from a to b with abeload; use as

    with Load(seconds=10, warmup=2) as load:
        load.udp(pps=100, size=972, dscp=46, id=1)
        load.tcp(flows=4)
    report = load.report      # what the receiver counted
    """

    def __init__(self, seconds, warmup=0, raw=False, poll=None, every=0.5):
        self.seconds = seconds
        self.warmup = warmup
        self.raw = raw
        self.poll = poll
        self.every = every
        self.senders = []

    def __enter__(self):
        self.receiver = start(
            "abeload recv --port 5000 --tcp-port 5001 --aimd-port 5002 --json /tmp/recv.json "
            f"--duration {self.seconds + 1} --warmup {self.warmup}{' --raw' * self.raw}",
            "b",
        )
        return self

    def _send(self, kind, port, host="10.0.2.1", **options):
        seconds = options.pop("seconds", self.seconds)
        cmd = in_ns("a", f"abeload send {kind} --to {host}:{port} --duration {seconds}")
        for key, value in options.items():
            if value is True:
                cmd.append(f"--{key}")
            elif value is not False:
                cmd += [f"--{key}", str(value)]
        self.senders.append(subprocess.Popen(cmd))

    def udp(self, **options):
        self._send("udp", 5000, **options)

    def tcp(self, **options):
        self._send("tcp", 5001, **options)

    def pareto(self, **options):
        self._send("pareto", 5000, **options)

    def aimd(self, **options):
        self._send("aimd", 5002, **options)

    def __exit__(self, kind, *rest):
        if kind:
            for p in (*self.senders, self.receiver):
                p.kill()
            return
        end = time.monotonic() + self.seconds
        while self.poll and time.monotonic() < end:
            self.poll()
            time.sleep(self.every)
        for p in self.senders:
            if p.wait():
                raise RuntimeError(f"{' '.join(p.args)}: exit {p.returncode}")
        if self.receiver.wait():
            raise RuntimeError("abeload recv failed")
        with open("/tmp/recv.json", encoding="utf-8") as f:
            self.report = json.load(f)


class Trace:
    """Records of the abe tracepoints, as dictionaries: with Trace("abe_dequeue") as t: ...; t.events."""

    ROOT = "/sys/kernel/tracing"

    def __init__(self, *events, size_kb=65536, only="0"):
        self.names = events
        self.size_kb = size_kb
        self.only = only  # a filter in the tracer's own language, "0" for none
        self._events = None

    def _write(self, path, text):
        with open(os.path.join(self.ROOT, path), "w", encoding="utf-8") as f:
            f.write(text)

    def __enter__(self):
        self._write("trace", "")
        self._write("buffer_size_kb", str(self.size_kb))
        for name in self.names:
            self._write(f"events/abe/{name}/filter", self.only)
            self._write(f"events/abe/{name}/enable", "1")
        self._write("tracing_on", "1")
        return self

    def __exit__(self, *exc):
        self._write("tracing_on", "0")
        for name in self.names:
            self._write(f"events/abe/{name}/enable", "0")
        with open(os.path.join(self.ROOT, "trace"), encoding="utf-8") as f:
            self.text = f.read()

    @property
    def events(self):
        """Parsed when first asked for: in the VM that costs more than the traffic did."""
        if self._events is None:
            self._events = [
                self._event(line) for line in self.text.splitlines() if not line.startswith("#")
            ]
        return self._events

    @staticmethod
    def _event(line):
        head, _, fields = line.partition(" handle=")
        event = {
            "event": head.split(": ")[-2].split()[-1],
            "time": float(head.split(": ")[0].split()[-1]),
        }
        event["ifindex"] = int(head.rpartition("ifindex=")[2])
        event["handle"] = int(fields.partition(":")[0], 16)
        for word in fields.partition(": ")[2].split():
            key, _, value = word.partition("=")
            event[key] = int(value) if value.isdigit() else value
        return event
