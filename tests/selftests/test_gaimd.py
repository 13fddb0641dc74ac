#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""TCP congestion control "gaimd": its windows, beside Reno's, and what an administrator sees of it.

One packet of so many is lost, or marked, between hosts with a round trip of 100 ms and no
bottleneck. The windows that the arithmetic alone has are in tests/unit/test_gaimd.c.
"""

import contextlib
import errno
import itertools
import json
import pwd
import socket
import struct
import subprocess
import sys
import time

import lib
from lib import Load, Net, Tap, run
from wire import kernel_log

PARAMETERS = "/sys/module/tcp_gaimd/parameters"
EVERY = 200  # one packet of so many
SECONDS = 40
SAME = 30
WARMUP = 10
STEP = (
    0.05  # between two looks at the window: half a round trip, so that none is just when it grows
)
UNDO = 20  # s
START = 0.04  # s, at random, until a flow starts
NONE, OPEN, RECOVERY, LOSS = -1, 0, 3, 4  # TCP_CA_Open and so on


def parameters(alpha, beta):
    for name, value in (("alpha", alpha), ("beta", beta)):
        with open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as f:
            f.write(str(value))


def lose(model):
    run(f"ablossy add in {model} --proto tcp --min-len 500", ns="r")


def windows(cc, model=f"periodic --every {EVERY}", seconds=SECONDS):
    """A flow's window each STEP seconds, and what its sender counted."""
    lose(model)
    with Load(seconds) as load:
        load.tcp(**{"cc": cc, "cwnd-interval": STEP, "jitter": START, "json": "/tmp/sent.json"})
    with open("/tmp/sent.json", encoding="utf-8") as f:
        sent = json.load(f)
    (flow,) = sent["tcp"]
    (seen,) = sent["cwnd"]["flows"]
    return seen, flow


def settled(seen):
    """Least, mean and greatest window after the warm-up."""
    seen = seen[int(WARMUP / STEP) :]
    return min(seen), sum(seen) / len(seen), max(seen)


def test_module(t):
    """It loads by itself, is there for who may have it, and stays while it is used."""
    run("sysctl -qw net.ipv4.tcp_congestion_control=gaimd")
    available = run("sysctl -n net.ipv4.tcp_available_congestion_control").stdout.split()
    t.ok("gaimd" in available, "asked for by name, it loads", available)
    run(
        "sysctl -qw net.ipv4.tcp_congestion_control=reno net.ipv4.tcp_allowed_congestion_control=reno"
    )
    # another user, who may not have it unless it is allowed
    ask = (
        "import os, socket; os.setuid(65534); s = socket.socket();"
        "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b'gaimd')"
    )
    refused = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=False
    )
    t.ok("PermissionError" in refused.stderr, f"not for {pwd.getpwuid(65534).pw_name}", refused)
    run(["sysctl", "-qw", "net.ipv4.tcp_allowed_congestion_control=reno gaimd"])
    granted = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=False
    )
    t.ok(not granted.returncode, "unless it is allowed", granted)
    run("sysctl -qw net.ipv4.tcp_allowed_congestion_control=reno")
    with socket.socket() as user:
        user.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"gaimd")
        removed = run("rmmod tcp_gaimd", check=False)
        t.ok(removed.returncode, "a socket has it: it cannot be removed", removed)
    removed = run("rmmod tcp_gaimd", check=False)
    t.ok(not removed.returncode, "none has it any more: it is removed", removed)


def test_parameters(t):
    """What is out of range is refused, and the old value stays."""
    run("modprobe tcp_gaimd")
    for name, default, bad in (
        ("alpha", 310, ("-1", "1001", "x", "")),
        ("beta", 875, ("499", "991", "0", "x")),
    ):
        for value in bad:
            refused = None
            try:
                with open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as f:
                    f.write(f"{value}\n")
            except OSError as error:
                refused = error.errno
            with open(f"{PARAMETERS}/{name}", encoding="ascii") as f:
                now = int(f.read())
            t.ok(
                refused == errno.EINVAL and now == default,
                f"{name} {value or 'nothing'}: refused, and stays {default}",
                (refused, now),
            )
    run("rmmod tcp_gaimd")
    for words in ("alpha=1001", "beta=100"):
        t.ok(
            run(f"modprobe tcp_gaimd {words}", check=False).returncode,
            f"modprobe, {words}: refused",
        )
    run("modprobe tcp_gaimd alpha=0 beta=990")


def on_its_way(seen):
    """The samples that lie between a larger window before and a smaller one after."""
    runs = [[n for n, _ in run] for _, run in itertools.groupby(enumerate(seen), lambda s: s[1])]
    return {
        n
        for before, now, after in zip(runs, runs[1:], runs[2:], strict=False)
        for n in now
        if seen[before[0]] > seen[n] > seen[after[0]]
    }


def test_reno(t):
    """
    With alpha 1 and beta 1/2 it is Reno, sample by sample.

    The window grows 0.1 ms later with each round trip. After half a minute it would be at a sample.
    In a recovery TCP brings the window down itself (RFC 6937), by as much as acknowledgments come
    at a time, which is for nanoseconds to decide: what it is on its way does not count.
    """
    reno, counts = windows("reno", seconds=SAME)
    parameters(1000, 500)
    gaimd, others = windows("gaimd", seconds=SAME)
    falling = on_its_way(reno) | on_its_way(gaimd)
    wrong = [
        (n, a, b)
        for n, (a, b) in enumerate(zip(reno, gaimd, strict=False))
        if a != b and n not in falling
    ]
    t.note(f"Reno: {settled(reno)}, {counts}")
    t.ok(
        len(reno) == len(gaimd) > SAME / STEP - 2 and not wrong and 10 * len(falling) < len(reno),
        f"alpha 1, beta 1/2: Reno's window in {len(reno) - len(falling)} of {len(reno)} samples",
        wrong[:9],
    )
    t.ok(
        counts["retransmitted"] == others["retransmitted"] > 10,
        f"and {counts['retransmitted']} retransmissions",
        (counts, others),
    )
    return settled(reno)


def falls(seen):
    """From which window to which, for each reduction after the warm-up."""
    seen = [cwnd for cwnd, _ in itertools.groupby(seen[int(WARMUP / STEP) :])]
    found, top = [], None
    for before, now in itertools.pairwise(seen):
        if now < before:
            top = top or before
        elif top:
            found.append((top, before))
            top = None
    return found


def test_window(t, reno):
    """With the defaults it moves between 7/8 of its greatest window and that, by a loss or a mark."""
    parameters(310, 875)
    for name, ecn, model in (
        ("losses", 0, f"periodic --every {EVERY}"),
        ("marks", 1, f"periodic --every {EVERY} --mark"),
    ):
        run(f"sysctl -qw net.ipv4.tcp_ecn={ecn}", ns="a")
        seen, flow = windows("gaimd", model)
        least, mean, most = settled(seen)
        t.note(f"{name}: {least} to {most}, mean {mean:.2f}; {flow}; {falls(seen)}")
        if ecn:
            good = flow["retransmitted"] == 0 and flow["delivered_ce"] > 10
        else:
            good = flow["retransmitted"] > 10 and flow["delivered_ce"] == 0
        t.ok(good, f"{name}: what tells of congestion is what was meant", flow)
        # without a round trip for each recovery 17 to 20, mean 18.1 (unit test); if packets could be
        # divided, sqrt(2 alpha / ((1 - beta^2) p)) = 23.0 at most, mean 21.6. Rounding makes several
        # cycles stable; slow start has left the window above all of them.
        t.ok(
            17 <= least and most <= 23 and 18.1 < mean < 21.6,
            f"{name}: {least} to {most} packets, mean {mean:.1f}",
            seen[-100:],
        )
        drops = falls(seen)
        wrong = [d for d in drops if not d[0] * 7 // 8 <= d[1] <= (d[0] + 1) * 7 // 8]
        t.ok(len(drops) > 10 and not wrong, f"{name}: {len(drops)} times to 7/8", (wrong, drops))
        counted = [d for d in drops if d[1] > d[0] * 7 // 8]
        t.ok(
            2 * len(counted) > len(drops),
            f"{name}: mostly with a fraction of a packet that counts",
            drops,
        )
        t.ok(
            reno[2] - reno[0] > 2 * (most - least),
            f"{name}: half of Reno's ups and downs",
            (reno, least, most),
        )
    run("sysctl -qw net.ipv4.tcp_ecn=0", ns="a")


class Sender:
    """A bulk flow of ours, to look into."""

    def __init__(self):
        with lib.netns("b"):
            listener = socket.create_server(("", 5001))
        with lib.netns("a"):
            self.sock = socket.socket()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"gaimd")
        self.sock.connect(("10.0.2.1", 5001))
        self.sock.setblocking(False)
        self.sink, _ = listener.accept()
        listener.close()
        self.sink.setblocking(False)

    def look(self):
        """Sends and reads what there is; TCP's state, threshold and window."""
        with contextlib.suppress(BlockingIOError):
            self.sock.send(bytes(65536))
        with contextlib.suppress(BlockingIOError):
            self.sink.recv(1 << 20)
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        # tcpi_ca_state is its second byte; tcpi_snd_ssthresh and tcpi_snd_cwnd
        return info[1], *struct.unpack_from("2I", info, 8 + 4 * 17)

    def until(self, wanted, seconds):
        """Goes on for that long, or until it is in that state: the window before, and the threshold; None if it never was."""
        end = time.monotonic() + seconds
        state, ssthresh, cwnd = self.look()
        while state != wanted and time.monotonic() < end:
            before = cwnd
            time.sleep(0.01)
            state, ssthresh, cwnd = self.look()
        return (before, ssthresh) if state == wanted else None

    def close(self):
        self.sock.close()
        self.sink.close()


def test_timeout(t):
    """A time-out halves, whatever beta says; also one in a recovery, which has left beta."""
    parameters(310, 990)
    for name in ("open", "recovery"):
        lose(f"periodic --every {EVERY}")
        flow = Sender()
        flow.until(NONE, 12)
        if name == "open":
            run("ablossy del in", ns="r")
            flow.until(NONE, 1)
        else:
            flow.until(OPEN, 5)
            reduced = flow.until(RECOVERY, 10)
        run("ablossy add in bernoulli --p 1 --proto tcp", ns="r")
        timed_out = flow.until(LOSS, 5)
        flow.close()
        # in the recovery the window is on its way down from what counts
        before, threshold = (timed_out[0], 1 << 30) if name == "open" else reduced
        t.ok(
            before > 10 and timed_out[1] == before // 2 < threshold - 10,
            f"{name}: a time-out at {before} packets, beta 0.99: threshold {timed_out[1]}",
            (reduced if name == "recovery" else None, timed_out),
        )


def counted(name):
    """One of the kernel's counters, of the sender's side."""
    with lib.netns("a"), open("/proc/net/netstat", encoding="ascii") as f:
        names, values = (line.split() for line in f if line.startswith("TcpExt:"))
    return int(values[names.index(name)])


def test_undo(t):
    """
    A loss that was none costs no growth.

    Each one and a half round trips a packet overtakes those sent before it. TCP takes them
    for lost, until the timestamps of the acknowledgments tell that they only came later.
    A packet more takes 3.2 round trips, so hardly any would come if the credit were gone.
    """
    parameters(310, 875)
    lose(f"periodic --every {EVERY}")
    # TCP would learn how late packets come; this is a quarter of a round trip, and stays
    run("sysctl -qw net.ipv4.tcp_recovery=3", ns="a")
    flow = Sender()
    flow.until(NONE, 12)
    run("ablossy del in", ns="r")
    flow.until(NONE, 2)
    undone = counted("TCPPartialUndo") + counted("TCPFullUndo")
    seen = [flow.look()[2]]
    for _ in range(UNDO):
        reorder = f"reorder 100% gap {seen[-1] * 3 // 2}"
        run(f"tc qdisc change dev eth0 root netem delay 50ms {reorder} limit 100000", ns="a")
        flow.until(NONE, 1)
        seen.append(flow.look()[2])
    run("tc qdisc change dev eth0 root netem delay 50ms limit 100000", ns="a")
    run("sysctl -qw net.ipv4.tcp_recovery=1", ns="a")
    flow.close()
    undone = counted("TCPPartialUndo") + counted("TCPFullUndo") - undone
    most = 0.31 * 10 * UNDO
    t.ok(
        undone > 3 * UNDO and 0.75 * most < max(seen[-2:]) - seen[0] < 1.05 * most,
        f"{undone} losses in {UNDO} s that were none: {seen[0]} to {seen[-1]} packets",
        (most, seen),
    )


def main():
    t = Tap()
    test_module(t)
    test_parameters(t)
    net = Net(delay=50)
    # a delayed acknowledgment would wait for a tick of the clock, which has another phase each time
    run("ip route change 10.0.2.0/24 dev eth0 quickack 1", ns="b")
    run("ip route change default via 10.0.2.2 quickack 1", ns="b")
    reno = test_reno(t)
    test_window(t, reno)
    test_timeout(t)
    test_undo(t)
    net.close()
    run("rmmod tcp_gaimd", check=False)
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
