#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""When CCIDs 4 and 248 send: pacing, no credit from silence, a loss that counts at once, ECN."""

import contextlib
import errno
import itertools
import json
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
import time

import dccp
from lib import Net, Tap, run

RTT = 0.24
TRACE = "/sys/kernel/tracing"


def load(arguments, at=None, then=None):
    """Run dccpload -a; (report, {flow: [arrival times, s]}). After `at` seconds, call then()."""
    with tempfile.TemporaryFile("w+", encoding="ascii") as out:  # a pipe would fill up meanwhile
        p = subprocess.Popen(["dccpload", "-a", *arguments.split()], stdout=out)
        if then:
            time.sleep(at)
            then()
        if p.wait():
            raise RuntimeError(f"dccpload {arguments}: exit {p.returncode}")
        out.seek(0)
        lines = out.read().splitlines()
    arrivals = {}
    start = next(n for n, line in enumerate(lines) if line.startswith("{"))
    for line in lines[:start]:
        flow, ns, _size = line.split()
        arrivals.setdefault(int(flow), []).append(int(ns) / 1e9)
    return json.loads("\n".join(lines[start:])), arrivals


def gaps(times):
    return [b - a for a, b in itertools.pairwise(times)]


def test_pacing(t):
    """At 10 ms allowed: the application keeps to it, or does not."""
    for rate, text in ((100, "100 packets/s offered"), (130, "130 packets/s offered")):
        _, arrivals = load(f"-s 160 -r {rate} -t 40 4 1")
        times = [x for x in arrivals[0] if x > arrivals[0][0] + 10]
        found = gaps(times)
        off = sum(abs(g - 0.01) > 0.0005 for g in found)
        t.ok(
            len(found) > 2900 and off <= len(found) / 100,
            f"{text}: {off} of {len(found)} gaps are off 10 ms by 0.5 ms",
        )
        spans = [b - a for a, b in zip(arrivals[0], arrivals[0][3:])]
        # When they arrive: a kernel thread may hold one up by 0.05 ms. By when they were sent,
        # tests/unit/test_tfrc_tx.c asks for all of it.
        t.ok(
            min(spans) > 0.0299,
            f"{text}: never more than 3 packets in 30 ms",
            (min(spans), spans.index(min(spans)), gaps(arrivals[0])[:4]),
        )


def test_flight(t):
    """More packets in flight than DCCP's first Sequence Window has room for, 100: no feedback may get lost by that."""
    # CCID 4 has at most 100 packets a second; 40 bytes are over a hundred in the first round trip.
    for ccid, size, rate in ((4, 100, 100), (249, 100, 1500), (249, 40, 2000)):
        report, arrivals = load(f"-s {size} -r {rate} -t 10 -o 195=0 {ccid} 1")
        times = [x for x in arrivals[0] if x > arrivals[0][0] + 3]
        got = (len(times) - 1) / (times[-1] - times[0])
        t.ok(
            abs(got / rate - 1) < 0.02,
            f"CCID {ccid}, {size} bytes: {rate} a second are sent, {rate * RTT:.0f} in flight",
            (got, report),
        )


def test_pause(t):
    """A pause of 30 s without loss: no collapse, and no burst.

    After an idle period a sender has at least the initial rate (RFC 5348, 4.4).
    With segments of 1460 bytes that is all that a call needs; CCID 248 counts
    four of its own small packets a round trip and doubles from there, up to 133
    a second as long as some wait. A burst would be back to back.
    """
    for ccid, least, gap in ((4, 48, 0.0095), (248, 35, 0.005), (249, 48, 0.005), (250, 48, 0.005)):
        report, arrivals = load(f"-s 172 -r 50 -t 65 -p 20,30 {ccid} 1")
        times = arrivals[0]
        n, length = max(enumerate(gaps(times)), key=lambda x: x[1])
        after = [x for x in times[n + 1 :] if x < times[n + 1] + 1]
        t.ok(29 < length < 31, f"CCID {ccid}: there was a pause", length)
        t.ok(
            len(after) >= least,
            f"CCID {ccid}: the first second has {len(after)} of 50 packets",
            report,
        )
        t.ok(min(gaps(after)) > gap, f"CCID {ccid}: no burst after silence", min(gaps(after)))


REPORT = r"tfrc_report: .*src=10\.0\.2\.1:\d+ dst=10\.0\.1\.1:\d+"


def feedback(line):
    """(time, fields) of a tfrc_feedback event."""
    when = float(re.search(r" (\d+\.\d+): tfrc_feedback", line)[1])
    return when, {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", line) if k != "sk"}


def test_sudden_loss(t, net):
    """50 s at 100/s, then a fifth of the packets is lost: the sender keeps to X within two round trips."""

    def trace(on):
        with open(f"{TRACE}/events/dccp_tfrc/enable", "w", encoding="ascii") as f:
            f.write(str(on))

    with open(f"{TRACE}/trace_clock", "w", encoding="ascii") as f:
        f.write("mono")
    for ccid in (248, 4):
        net.fresh("netem limit 10000")
        trace(1)
        _, arrivals = load(
            f"-s 200 -r 100 -t 70 {ccid} 1",
            50,
            lambda: net.qdisc("netem loss 20% limit 10000", "change"),
        )
        trace(0)
        with open(f"{TRACE}/trace", encoding="ascii") as f:
            lines = f.readlines()
        why = [
            m[1] for line in lines if (m := re.search(rf"{REPORT} ccid={ccid} why=(\w+) ", line))
        ]
        t.ok(
            why[:1] == ["first"] and set(why) == {"first", "loss", "periodic"},
            f"CCID {ccid}: the receiver's trace has addresses, and words for why",
            lines[:3],
        )
        events = [feedback(line) for line in lines if "tfrc_feedback" in line]
        # the flow before, which is closed, may still get feedback on its last packets
        events = [(when, e) for when, e in events if e["ccid"] == ccid]
        with open(f"{TRACE}/trace", "w", encoding="ascii"):
            pass
        loss = next(when for when, e in events if e["pinv"] != 0xFFFFFFFF)
        start = loss + 2 * RTT
        for length in (2, 10):
            end = start + length
            # what X allowed: each rate holds until the next feedback; half a round trip to the receiver
            steps = [(when, e["x_inst"] / 64) for when, e in events]
            allowed = 0
            for (when, x), (until, _) in zip(steps, [*steps[1:], (end, 0)]):
                allowed += x * max(0, min(until, end) - max(when, start))
            sent = sum(start < x - RTT / 2 < end for x in arrivals[0]) * 200 / 0.8
            t.ok(
                sent < 1.15 * allowed + 800,
                f"CCID {ccid}, {length} s from two round trips after the first feedback of a loss: {sent:.0f} bytes sent, {allowed:.0f} allowed",
            )
        before = sum(loss - 2 < x < loss for x in arrivals[0]) / 2
        after = sum(start + 4 < x < start + 10 for x in arrivals[0]) / 6
        t.ok(
            after < (0.4 if ccid == 248 else 0.7) * before,
            f"CCID {ccid}: from {before:.0f} to {after:.1f} packets/s",
            (loss - arrivals[0][0], [e for when, e in events if loss - 3 < when < loss + 1]),
        )


def test_ecn(t, net):
    """A CE mark is a loss, without a packet being lost."""
    net.fresh("netem loss 5% ecn limit 10000")
    for ccid in (4, 248, 249, 250):
        report, _ = load(f"-s 200 -r 100 -t 40 {ccid} 2")
        f = report["flows"][0]
        n, marked = f["rx_packets"], f["rx_marked"]
        off = abs(marked - 0.05 * n) / (0.05 * 0.95 * n) ** 0.5
        t.ok(f["rx_lost"] == 0 and off < 4.5, f"CCID {ccid}: {marked} of {n} marked, none lost", f)
        # CCID 250 takes less than its share where losses do not depend on size
        events = sum(flow["rx_events"] for flow in report["flows"])
        t.ok(events > 5 and f["p"] > 0, f"CCID {ccid}: marks are loss events", report["flows"])
    net.fresh("netem limit 10000")


def number(s, option):
    return struct.unpack("=I", s.getsockopt(dccp.SOL_DCCP, option, 4))[0]


def refused(s, option, data):
    try:
        s.setsockopt(dccp.SOL_DCCP, option, data)
    except OSError:
        return True
    return False


def test_options(t):
    """Socket options: defaults, ranges, and what a wrong one leaves behind."""
    for ccid, segment, header, interval in (
        (4, 1460, 36, 10000),
        (248, 0, 0, 0),
        (249, 1460, 36, 10000),
        (250, 1460, 36, 10000),
        (251, 1460, 36, 10000),
        (252, 1460, 36, 10000),
        (253, 1460, 36, 10000),
        (254, 0, 0, 0),
    ):
        discount = ((0, 1), (2, 0xFFFFFFFF)) if ccid != 252 else ((0,), (1, 2))
        variants = {249: 2, 250: 3, 251: 2, 253: 2}.get(ccid, 1)
        with dccp.connection(socket.AF_INET, {"ccid": [ccid]}, {"ccid": [ccid]}) as (
            client,
            server,
        ):
            client.send(bytes(100))
            server.recv(2000)
            time.sleep(1)  # the client is established with the first feedback
            zero, no_zero = ((), (0,)) if segment else ((0,), ())  # 0 is the packets' mean
            for s, option, default, good, bad in (
                (client, 193, segment, (*zero, 32, 1000, 65535), (*no_zero, 31, 65536, 0xFFFFFFFF)),
                (client, 194, header, (0, 40, 255), (256, 0xFFFFFFFF)),
                (client, 195, interval, (0, 20000, 1000000), (1000001, 0xFFFFFFFF)),
                (server, 129, segment, (*zero, 32, 1000, 65535), (*no_zero, 31, 65536, 0xFFFFFFFF)),
                (server, 130, header, (0, 40, 255), (256, 0xFFFFFFFF)),
                (server, 131, 0 if ccid in (4, 252) else 1, *discount),
                *([(client, 196, 0, (0, 1), (2, 0xFFFFFFFF))] if ccid == 253 else []),
                (
                    server,
                    132,
                    0,
                    range(variants),
                    (variants, 0xFFFFFFFF),
                ),
            ):
                t.ok(
                    number(s, option) == default,
                    f"CCID {ccid}: option {option} is {default}",
                    number(s, option),
                )
                for value in good:
                    s.setsockopt(dccp.SOL_DCCP, option, struct.pack("=I", value))
                    t.ok(
                        number(s, option) == value,
                        f"CCID {ccid}: option {option} takes {value}",
                        number(s, option),
                    )
                for value in bad:
                    t.ok(
                        refused(s, option, struct.pack("=I", value))
                        and number(s, option) == good[-1],
                        f"CCID {ccid}: option {option} refuses {value}",
                    )
                t.ok(
                    refused(s, option, bytes(5)), f"CCID {ccid}: option {option} refuses five bytes"
                )
            tx = client.getsockopt(dccp.SOL_DCCP, 192, 200)
            rx = server.getsockopt(dccp.SOL_DCCP, 128, 200)
            t.ok(
                struct.unpack_from("=I", tx, 36)[0] == len(tx) > 40,
                f"CCID {ccid}: the extended TX_INFO says its size",
                len(tx),
            )
            t.ok(
                struct.unpack_from("=I", rx, 12)[0] == len(rx) > 12,
                f"CCID {ccid}: the extended RX_INFO says its size",
                len(rx),
            )
            t.ok(
                len(client.getsockopt(dccp.SOL_DCCP, 192, 40)) == 40,
                f"CCID {ccid}: TX_INFO of CCID-3's size",
            )
            t.ok(
                len(server.getsockopt(dccp.SOL_DCCP, 128, 12)) == 12,
                f"CCID {ccid}: RX_INFO of CCID-3's size",
            )
            out = run("ss -dine", ns="a").stdout
            t.ok(
                re.search(r"rtt:2[4-9]\d", out) and "rto:" in out,
                f"CCID {ccid}: ss shows RTT and RTO",
                out,
            )


def attempt(s, option, value):
    """Set an option without privileges; the name of the error, or None."""
    os.seteuid(65534)
    try:
        s.setsockopt(dccp.SOL_DCCP, option, struct.pack("=I", value))
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.seteuid(0)
    return None


def test_privilege(t):
    """What would take more from the network than the defaults is not for everybody to set."""
    headers = (
        ((193, 1461), (194, 35), (195, 9999)),
        ((193, 1000), (194, 36), (194, 255), (195, 10000), (195, 1000000)),
    )
    # S at the receiver: with less than the sender's, intervals are more packets than they should be
    receiver = ((129, 1000, "EPERM"), (129, 2000, "EPERM"), (129, 1460, None), (130, 37, "EPERM"))
    mean = ((129, 1000, "EPERM"), (129, 0, None), (130, 1, "EPERM"))
    on, no_more = ((131, 1, None), (131, 0, None)), ((131, 0, None), (131, 1, "EPERM"))
    for ccid, (refused_, allowed), receivers in (
        (4, headers, (*receiver, *no_more)),
        (248, (((193, 1000),), ((193, 0), (194, 40), (195, 20000))), (*mean, *on)),
        (249, headers, (*receiver, *on, (132, 1, "EPERM"), (132, 0, None))),
        (250, headers, (*receiver, *on, (132, 1, None), (132, 2, "EPERM"))),
        (251, headers, (*receiver, *on, (132, 1, None))),
        (252, headers, (*receiver, (131, 0, None), (131, 1, "EINVAL"), (132, 1, "EINVAL"))),
        (253, headers, (*receiver, *on, (132, 1, "EPERM"))),
        (254, (((193, 1000),), ((193, 0), (194, 40), (195, 20000))), (*mean, *on)),
    ):
        with dccp.connection(socket.AF_INET, {"ccid": [ccid]}, {"ccid": [ccid]}) as (
            client,
            server,
        ):
            for option, value in refused_:
                before = number(client, option)
                t.ok(
                    attempt(client, option, value) == "EPERM" and number(client, option) == before,
                    f"CCID {ccid}: option {option} at {value} takes a privilege",
                )
            for option, value in allowed:
                t.ok(
                    attempt(client, option, value) is None and number(client, option) == value,
                    f"CCID {ccid}: option {option} at {value} does not",
                )
            for option, value, error in receivers:
                found = attempt(server, option, value)
                t.ok(
                    found == error,
                    f"CCID {ccid}: the receiver's option {option} at {value}: {error}",
                    found,
                )


def test_early(t):
    """Options set before connect() and listen() are those of the connection, as far as the setter may."""
    for ccid, may, want in ((249, True, (1000, 0, 0)), (249, False, (1000, 36, 10000))):
        with dccp.listen("b", ccid=[ccid]) as listener, dccp.sock("a", ccid=[ccid]) as client:
            os.seteuid(0 if may else 65534)
            try:
                for s in (client, listener):
                    for option, value in ((193, 1000), (194, 0), (195, 0), (130, 0)):
                        s.setsockopt(dccp.SOL_DCCP, option, struct.pack("=I", value))
            finally:
                os.seteuid(0)
            if may:
                # what an administrator has set, somebody else sets again: by his own rights
                os.seteuid(65534)
                client.setsockopt(dccp.SOL_DCCP, 194, struct.pack("=I", 1))
                os.seteuid(0)
                client.setsockopt(dccp.SOL_DCCP, 194, struct.pack("=I", 0))
            client.connect(listener.getsockname()[:2])
            with listener.accept()[0] as server:
                for name, s in (("client", client), ("server", server)):
                    found = tuple(number(s, option) for option in (193, 194, 195))
                    t.ok(
                        found == want and number(s, 130) == 0,
                        f"CCID {ccid}: set {'with' if may else 'without'} a privilege before the {name} was there",
                        found,
                    )


def test_path(t):
    """The segment is not larger than what the path takes (RFC 4828, 3)."""
    run("ip route add 10.0.2.1 via 10.0.1.2 mtu 1000", ns="a")
    with dccp.connection(socket.AF_INET, {"ccid": [4]}, {"ccid": [4]}) as (client, server):
        client.send(bytes(100))
        server.recv(2000)
        time.sleep(0.5)
        info = client.getsockopt(dccp.SOL_DCCP, 192, 200)
        s, option = struct.unpack_from("=I", info, 56)[0], number(client, 193)
        t.ok(
            (s, option) == (960, 1460),
            "a path of 1000 bytes: segments of 960, though more is allowed",
            (s, option),
        )
    run("ip route del 10.0.2.1", ns="a")


def test_duplicates(t):
    """Feedback that the network delivers twice is one."""
    run("tc qdisc change dev eth0 root netem delay 120ms duplicate 100% limit 100000", ns="b")
    with dccp.connection(socket.AF_INET, {"ccid": [4]}, {"ccid": [4]}) as (client, server):
        for _ in range(200):
            client.send(bytes(100))
            time.sleep(0.03)
            while select.select([server], [], [], 0)[0]:
                server.recv(2000)
        feedback = struct.unpack_from("=I", client.getsockopt(dccp.SOL_DCCP, 192, 200), 84)[0]
        t.ok(
            20 < feedback < 32,
            "6 s of feedback, each packet twice: one a round trip counts",
            feedback,
        )
    run("tc qdisc change dev eth0 root netem delay 120ms duplicate 0% limit 100000", ns="b")


def test_late_beginning(t):
    """
    The first packet of data gets lost, and acknowledgments tell so before the next one comes.

    The first interval is that of half a segment a round trip, p = 0.24, where the equation has
    9 packets a second for S = 1460 and 1.3 for 172: half of these in the 2.2 s are asked for. 249 has
    not lost S bytes yet.
    """
    for ccid, least in ((4, 10), (248, 2), (249, 60), (250, 10)):
        ccids = {"ccid": [ccid]}
        with dccp.connection(socket.AF_INET, ccids, ccids) as (client, server):
            server.setblocking(False)
            got = 0
            for n in range(200):
                client.send(bytes(172))
                if n == 20:
                    run("tc qdisc change dev eth0 root netem delay 120ms loss 100%", ns="b")
                    server.send(bytes(172))
                    run("tc qdisc change dev eth0 root netem delay 120ms loss 0%", ns="b")
                if n >= 80:
                    with contextlib.suppress(BlockingIOError):  # the queue is full
                        server.send(bytes(172))
                time.sleep(0.02)
                while select.select([client], [], [], 0)[0]:
                    got += bool(client.recv(2000))
            t.ok(got >= least, f"CCID {ccid}: {got} of 120 packets after a lost one")


def parameter(name, value):
    """Set a module parameter; False if it is refused."""
    try:
        with open(f"/sys/module/dccp_tfrc/parameters/{name}", "w", encoding="ascii") as f:
            f.write(str(value))
    except OSError:
        return False
    return True


def test_parameters(t):
    """Module parameters are the defaults of new connections, and have ranges."""
    new = {"segment": 1000, "header": 40, "min_interval": 20000, "discount": 0}
    old = {"segment": 1460, "header": 36, "min_interval": 10000, "discount": 1}
    for name, bad in (
        ("segment", (0, 31, 65536, -1, "x")),
        ("header", (256, -1)),
        ("min_interval", (1000001, -1)),
        ("discount", (2, -1)),
    ):
        t.ok(not any(parameter(name, value) for value in bad), f"parameter {name} refuses {bad}")
        with open(f"/sys/module/dccp_tfrc/parameters/{name}", encoding="ascii") as f:
            value = f.read().strip()
        t.ok(value == str(old[name]), f"parameter {name} is still {old[name]}", value)
        t.ok(parameter(name, new[name]), f"parameter {name} takes {new[name]}")
    for ccid, wanted in (
        (4, (1000, 40, 20000, 0)),
        (249, (1000, 40, 20000, 0)),
        (248, (0, 0, 0, 0)),
    ):
        with dccp.connection(socket.AF_INET, {"ccid": [ccid]}, {"ccid": [ccid]}) as (
            client,
            server,
        ):
            found = (*(number(client, option) for option in (193, 194, 195)), number(server, 131))
            t.ok(
                found == wanted,
                f"CCID {ccid}: S, H, Min Interval and discounting are the parameters'",
                found,
            )
    for name, value in old.items():
        parameter(name, value)


def test_empty(t):
    """Datagrams without a byte are sent and received (RFC 5762, 4.1), and do not stop a call."""
    for ccid in (4, 248, 249, 250):
        with dccp.connection(socket.AF_INET, {"ccid": [ccid]}, {"ccid": [ccid]}) as (
            client,
            server,
        ):
            got = []
            for n in range(20):
                client.send(bytes(100 * (n % 2)))
                got.append(len(server.recv(2000)))
            t.ok(got == [0, 100] * 10, f"CCID {ccid}: empty datagrams between others", got)


def main():
    t = Tap()
    dccp.load()
    run("modprobe dccp_tfrc")
    net = Net(delay=120)
    net.fresh("netem limit 10000")
    test_pacing(t)
    test_flight(t)
    test_pause(t)
    test_sudden_loss(t, net)
    test_ecn(t, net)
    test_options(t)
    test_privilege(t)
    test_early(t)
    test_path(t)
    test_duplicates(t)
    test_late_beginning(t)
    test_parameters(t)
    test_empty(t)
    net.close()
    t.done()


if __name__ == "__main__":
    main()
