#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: more codecs and CCIDs that adapt
"""voipcall over UDP and over DCCP with the kernel's own CCIDs, against netem.

Every figure of its report is compared with what the network was told to do, or
with what was seen on the wire, or computed anew from others.

The kernel's own CCID 3 complains to its log where both sides send, "in
principle not possible", says its source. So kernel_log() looks for splats
here, and lets that one pass.
"""
# vm: --allow-splat --append log_buf_len=16M

import ctypes
import errno
import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import lib
from lib import run, tc

B4, B6 = "10.0.2.1", "fd02::1"
CODECS = {
    "g711": 160,
    "g722": 160,
    "g729": 20,
    "amr-nb": 32,
    "amr-wb": 61,
    "evs": 160,
    "opus": 100,
}
SOL_DCCP, SOCK_DCCP, IPPROTO_DCCP = 269, 6, 33
RTPA = 0x52545041


def in_ns(ns, function):
    """function() in a network namespace: what it opens stays there."""
    libc = ctypes.CDLL(None, use_errno=True)
    old = os.open("/proc/self/ns/net", os.O_RDONLY)
    new = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    try:
        if libc.setns(new, 0):
            raise OSError(ctypes.get_errno(), "setns")
        return function()
    finally:
        libc.setns(old, 0)
        os.close(old)
        os.close(new)


def start(ns, *args):
    return subprocess.Popen(
        ["ip", "netns", "exec", ns, "voipcall", *map(str, args)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Listener:
    """voipcall listen in namespace b; once it is ready."""

    def __init__(self, *args):
        self.process = start("b", "listen", "--json", *args)
        self.said = self.process.stderr.readline()

    def end(self, sig=None):
        """(exit status, reports, what it said)"""
        if sig:
            self.process.send_signal(sig)
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


class Result:
    """A call and what both sides say of it."""

    def __init__(self, *args, host=B4, udp=True, listen=(), during=None):
        mode = ["--udp"] if udp else []
        listener = Listener("--once", *mode, *listen)
        caller = start("a", "call", host, "--json", *mode, *args)
        if during:
            during()
        out, self.said = caller.communicate(timeout=300)
        self.status = caller.returncode
        self.near = json.loads(out) if out else None
        self.listener_status, reports, self.listener_said = listener.end()
        self.far = reports[0] if reports else None

    def __str__(self):
        return f"exit {self.status}, {self.listener_status}\n{self.said}{self.near}\n{self.far}\n{self.listener_said}"

    @property
    def good(self):
        return (
            self.status == 0
            and self.listener_status == 0
            and self.near
            and self.far
            and self.near["far_end"]
        )


class Capture:
    """IP packets that the router sees from one side, as (time, bytes from the IP header on)."""

    def __init__(self, dev="in"):
        def open_it():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
            s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
            s.bind((dev, 0))
            return s

        self.socket = in_ns("r", open_it)

    def packets(self):
        got = []
        self.socket.setblocking(False)
        while True:
            try:
                data, control, _, address = self.socket.recvmsg(2000, 64)
            except BlockingIOError:
                self.socket.close()
                return got
            if address[2] != 4:  # PACKET_OUTGOING
                sec, nsec = struct.unpack("=qq", control[0][2])
                got.append((sec + nsec / 1e9, data[14:]))


class Packet:
    """The layers of one packet."""

    def __init__(self, when, data):
        self.time = when
        if data[0] >> 4 == 4:
            self.tos, self.protocol = data[1], data[9]
            data = data[(data[0] & 15) * 4 : struct.unpack_from("!H", data, 2)[0]]
        else:
            self.tos, self.protocol = struct.unpack_from("!H", data)[0] >> 4 & 255, data[6]
            data = data[40 : 40 + struct.unpack_from("!H", data, 4)[0]]
        self.kind, self.service, self.payload = None, None, b""
        if self.protocol == 17:
            self.payload = data[8:]
        elif self.protocol == IPPROTO_DCCP:
            self.kind = data[8] >> 1 & 15
            if self.kind == 0:
                (self.service,) = struct.unpack_from("!I", data, 16)
            if self.kind in (2, 4):  # Data, DataAck
                self.payload = data[data[4] * 4 :]

    @property
    def rtcp(self):
        return len(self.payload) >= 8 and 192 <= self.payload[1] <= 223

    @property
    def rtp(self):
        return len(self.payload) > 12 and self.payload[0] == 0x80 and not self.rtcp


def rtcp_types(compound):
    """Packet types of an RTCP compound; None unless its lengths add up."""
    types = []
    while compound:
        if len(compound) < 4 or compound[0] >> 6 != 2:
            return None
        types.append(compound[1])
        size = 4 * (struct.unpack_from("!H", compound, 2)[0] + 1)
        if size > len(compound):
            return None
        compound = compound[size:]
    return types


def netem(spec=None, ns="a"):
    """What the packets of a host are to suffer."""
    run("tc qdisc del dev eth0 root", ns=ns, check=False)
    if spec:
        tc(f"qdisc add dev eth0 root netem limit 10000 {spec}", ns)


def near(value, want, tolerance):
    return value is not None and abs(value - want) <= tolerance


def rating(m):
    """R and MOS from the other figures of a report."""
    d, ppl = m["mouth_to_ear_ms"], 100 * m["effective_loss"]
    i_d = 0.024 * d + (0.11 * (d - 177.3) if d > 177.3 else 0)
    ie_eff = m["ie"] + (95 - m["ie"]) * ppl / (ppl / m["burst_ratio"] + m["bpl"])
    r = max(93.2 - i_d - ie_eff, 0)
    mos = 1 if r <= 0 else 4.5 if r >= 100 else 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r)
    return r, min(max(mos, 1), 4.5)


def check_rating(t, m, text):
    r, mos = rating(m)
    t.ok(
        near(m["r"], r, 1e-4) and near(m["mos"], mos, 1e-5),
        f"{text}: R {r:.2f} and MOS {mos:.2f} follow from the rest",
        m,
    )


def directions(c):
    """(what was sent, what was received) of both directions."""
    return ((c.near["sent"], c.far), (c.far["sent"], c.near))


def check_clean(t, c, frames, text):
    """Nothing lost: the counts of both ends are equal, and those of the clock.

    The listener talks until it hears the goodbye, so it may have a frame more or less.
    """
    wrong = []
    if c.good and (
        c.near["sent"]["packets"] != frames or not near(c.far["sent"]["packets"], frames, 1)
    ):
        wrong.append(f"not {frames} frames")
    for sent, received in directions(c) if c.good else ():
        got = received["received"]
        if (
            got["packets"] != sent["packets"]
            or got["bytes"] != sent["bytes"]
            or sent["not_sent"]
            or any(got[k] for k in ("lost", "duplicates", "reordered", "not_sent", "ce"))
        ):
            wrong.append(f"sent {sent}, received {got}")
        if received["loss"] != 0:
            wrong.append(f"loss {received['loss']}")
    if c.good and c.near["far_end"]["received"] != c.far["received"]:
        wrong.append("the caller reports other figures than the listener")
    t.ok(
        c.good and not wrong,
        f"{text}: both ends count {frames} frames each way",
        "\n".join([*wrong, str(c)]),
    )


# Usage and errors


def test_usage(t):
    cases = [
        ([], "want listen or call"),
        (["dial"], "want listen or call"),
        (["call"], "HOST is missing"),
        (["call", "--udp"], "HOST is missing"),
        (["call", "a", "b"], "b: not expected"),
        (["listen", "a"], "a: not expected"),
        (["listen", "--codec", "g711"], "listen: --codec is not for it"),
        (["listen", "--time", "5"], "listen: --time is not for it"),
        (["listen", "--ecn"], "listen: --ecn is not for it"),
        (["call", "a", "--once"], "call: --once is not for it"),
        (["call", "a", "--bogus"], "--bogus: unknown option"),
        (["call", "a", "-x"], "-x: unknown option"),
        (["call", "a", "--port"], "--port: its value is missing"),
        (["call", "a", "--port", "0"], "--port 0"),
        (["call", "a", "--port", "65536"], "--port 65536"),
        (["call", "a", "--codec", "mp3"], "--codec mp3"),
        (["call", "a", "--ptime", "70"], "--ptime 70"),
        (["call", "a", "--codec", "evs", "--ptime", "30"], "evs has frames of 20 ms"),
        (["call", "a", "--ptime", "15"], "g711 has frames of 10 ms"),
        (["call", "a", "--sdp", "10.0.2.1"], "call: --sdp is not for it"),
        (["listen", "--sdp", "here"], "--sdp here: want an IP address"),
        (["call", "a", "--time", "0"], "--time 0"),
        (["call", "a", "--time", "nan"], "--time nan"),
        (["call", "a", "--dscp", "64"], "--dscp 64"),
        (["call", "a", "--green", "--blue"], "exclude each other"),
        (["call", "a", "-4", "-6"], "exclude each other"),
        (["call", "a", "--ccid", "3,"], "a number is missing"),
        (["call", "a", "--ccid", "256"], "--ccid 256"),
        (["call", "a", "--ccid", "3;4"], "--ccid 3;4"),
        (["call", "a", "--ccid", "3,3"], "3 is there twice"),
        (["call", "a", "--ccid", "-1"], "--ccid -1"),
        (["call", "a", "--udp", "--ccid", "3"], "--ccid is for DCCP"),
        (["call", "a", "--udp", "--tx-queue", "3"], "--tx-queue is for DCCP"),
        (["call", "a", "--ecn"], "--ecn is for UDP"),
        (["call", "a", "--silence", "yes"], "want on or off"),
        (["call", "a", "--playout", "-1"], "--playout -1"),
        (["call", "a", "--seed", "x"], "--seed x"),
        (["listen", "--timeout", "0"], "--timeout 0"),
        (["listen", "--interval", "0"], "--interval 0"),
    ]
    wrong = []
    for args, message in cases:
        res = run(["voipcall", *args], check=False, timeout=30)
        if res.returncode != 2 or message not in res.stderr or res.stdout:
            wrong.append(f"{args}: exit {res.returncode}, {res.stderr!r} lacks {message!r}")
    t.ok(not wrong, f"{len(cases)} ways of wrong usage: exit 2 and the reason", "\n".join(wrong))
    for args in (["--help"], ["-h"], ["call", "--help"], ["listen", "-h"]):
        res = run(["voipcall", *args], check=False, timeout=30)
        t.ok(
            res.returncode == 0 and res.stdout.startswith("usage: voipcall") and not res.stderr,
            f"{' '.join(args)}: help, exit 0",
            res,
        )


def check_error(t, res, message, text):
    t.ok(
        res.returncode == 1 and message in res.stderr and not res.stdout,
        f"{text}: exit 1 and the reason",
        f"exit {res.returncode}, {res.stderr!r} lacks {message!r}, {res.stdout!r}",
    )


def test_no_dccp(t):
    """Before the modules are loaded."""
    for command in (["call", B4], ["call", "::1"], ["listen"], ["listen", "-4"], ["listen", "-6"]):
        check_error(
            t,
            run(["voipcall", *command], check=False, timeout=30),
            "modprobe -a dccp_ipv4 dccp_ipv6",
            f"{' '.join(command)} without DCCP",
        )


def test_errors(t):
    def call(*args, ns="a"):
        return run(["voipcall", "call", *args], ns=ns, check=False, timeout=60)

    check_error(t, call("nosuch.invalid", "--udp"), "nosuch.invalid:", "a name that is none")
    check_error(t, call(B4), "Connection refused", "DCCP, nobody listens")
    check_error(t, call(B4, "--udp"), "Connection refused", "UDP, nobody listens")
    check_error(t, call(B6), "Connection refused", "DCCPv6, nobody listens")
    check_error(t, call("192.0.2.1", "--udp"), "", "UDP, no such host")
    check_error(t, call(B4, "-6"), f"{B4}:", "an IPv4 address with -6")
    check_error(
        t,
        call(B4, "--ccid", "99"),
        "CCID 99 is not in this kernel",
        "a CCID that the kernel has not",
    )
    check_error(
        t, call(B4, "--ccid", "99,3"), "CCID 99 is not in this kernel", "the same, first of two"
    )
    check_error(
        t,
        run(["voipcall", "listen", "--ccid", "98"], check=False, timeout=30),
        "CCID 98 is not",
        "the same, listening",
    )
    for mode in ("--udp", "--blue"):  # the latter stands for DCCP
        one = Listener(mode)
        check_error(
            t,
            run(["voipcall", "listen", mode], ns="b", check=False, timeout=30),
            "Address already in use",
            f"{mode}: a port in use",
        )
        status, reports, _ = one.end(signal.SIGTERM)
        t.ok(
            status == 0 and not reports,
            f"{mode}: a listener without calls ends well on SIGTERM",
            (status, reports),
        )
    # drops all
    tc("qdisc add dev eth0 root netem loss 100%", "a")
    before = time.monotonic()
    for mode, reason in (("--udp", "no answer within 1.5 s"), ("--blue", "Connection timed out")):
        check_error(t, call(B4, mode, "--timeout", "1.5"), reason, f"{mode}: no answer")
    t.ok(3 <= time.monotonic() - before < 4, "--timeout is kept", time.monotonic() - before)
    netem()
    one = Listener("--ccid", "2")
    res = call(B4, "--ccid", "3", "--timeout", "3")
    check_error(t, res, "no CCID in common", "no CCID in common")
    one.end(signal.SIGTERM)


def peer_gone(t, udp):
    name = "UDP" if udp else "DCCP"
    mode = ["--udp"] if udp else []

    def calling(*args):
        return start("a", "call", B4, "--json", *mode, *args)

    # killed: the kernel says so
    one = Listener(*mode)
    caller = calling("--time", 20)
    time.sleep(3)
    one.process.kill()
    out, err = caller.communicate(timeout=120)
    report = json.loads(out)
    t.ok(
        caller.returncode == 1
        and report["failure"]
        and 2.5 < report["duration"] < 4
        and report["received"]["packets"] > 100
        and report["far_end"] is None,
        f"{name}: a peer that is killed: report and exit 1",
        (caller.returncode, err, out),
    )
    t.note(err)
    one.end()
    # unreachable: nobody says anything, on either side
    one = Listener("--once", *mode)
    caller = calling("--time", 60)
    time.sleep(3)
    for dev in ("in", "out"):
        tc(f"qdisc add dev {dev} root netem loss 100%", "r")
    out, err = caller.communicate(timeout=120)
    report = json.loads(out)
    status, reports, said = one.end()
    for dev in ("in", "out"):
        run(f"tc qdisc del dev {dev} root", ns="r")
    good = [
        r["duration"] < 20 and r["failure"] and r["received"]["packets"] > 100
        for r in (report, *reports)
    ]
    t.ok(
        caller.returncode == 1 and status == 1 and good == [True, True],
        f"{name}: a dead path: both sides report and exit 1",
        (caller.returncode, err, out, status, said, reports),
    )
    t.note(err + said)
    # unreachable for a while: frames are not sent
    one = Listener("--once", *mode)
    caller = calling("--time", 10, "--one-way")
    time.sleep(3)
    run("ip route del default", ns="a")
    time.sleep(2)
    run("ip route add default via 10.0.1.2", ns="a")
    out, err = caller.communicate(timeout=120)
    report = json.loads(out)
    status, reports, said = one.end()
    if udp:
        t.ok(
            caller.returncode == 0
            and near(report["sent"]["not_sent"], 100, 5)
            and reports[0]["received"]["not_sent"] == report["sent"]["not_sent"],
            f"{name}: no route for two seconds",
            (out, err, said),
        )
    # the listener is told to end
    one = Listener(*mode)
    caller = calling("--time", 20)
    time.sleep(2)
    status, reports, said = one.end(signal.SIGTERM)
    out, err = caller.communicate(timeout=120)
    report = json.loads(out)
    t.ok(
        status == 0
        and len(reports) == 1
        and caller.returncode == 1
        and report["failure"] == "the other side hung up"
        and report["far_end"],
        f"{name}: a listener that hangs up: both report",
        (status, reports, said, out, err),
    )
    # the caller is
    one = Listener("--once", *mode)
    caller = calling("--time", 20)
    time.sleep(2)
    run(["kill", "-INT", str(caller.pid)])
    out, err = caller.communicate(timeout=120)
    status, reports, said = one.end()
    report = json.loads(out)
    t.ok(
        status == 0
        and caller.returncode == 0
        and report["far_end"]
        and near(report["duration"], 2, 0.2)
        and report["failure"] is None,
        f"{name}: a caller that is interrupted says goodbye, and both report",
        (caller.returncode, out, err, status, said),
    )


def test_gone_udp(t):
    peer_gone(t, True)


def test_gone_dccp(t):
    peer_gone(t, False)


# Clean calls


def test_clean(t):
    for codec, payload in CODECS.items():
        c = Result("--codec", codec, "--time", 2)
        check_clean(t, c, 100, f"UDP, {codec}")
        t.ok(
            c.good and c.near["sent"]["bytes"] == 100 * (payload + 12),
            f"UDP, {codec}: {payload} bytes and RTP's 12",
            c,
        )
    for ns in "ab":  # the kernel's CCID 3 complains about round trips of 0
        netem("delay 2ms", ns)
    ours = () if run("modprobe dccp_tfrc", check=False).returncode else (4, 248)
    for ccid in (2, 3, *ours):
        for host in (B4, B6):
            c = Result(
                "--ccid",
                "2,3" if ccid == 2 else f"{ccid},2",
                "--time",
                4,
                "--codec",
                "g729",
                host=host,
                udp=False,
                listen=("--ccid", f"{ccid},2" if ccid == 3 else ccid),
            )
            check_clean(t, c, 200, f"DCCP, CCID {ccid}, {host}")
            if c.good:
                t.ok(
                    [c.near["ccid"], c.near["ccid_rx"], c.far["ccid"], c.far["ccid_rx"]]
                    == [ccid] * 4,
                    f"CCID {ccid} is in use and reported",
                    c,
                )
    for ccid in ours:
        both = Capture("in"), Capture("out")
        c = Result("--ccid", ccid, "--green", "--time", 2, udp=False, listen=("--ccid", ccid))
        tos = {p.tos for x in both for p in (Packet(*q) for q in x.packets()) if p.rtp}
        t.ok(
            c.good and {x >> 2 for x in tos} == {46},
            f"CCID {ccid}: --green, whatever it does about ECN: {tos}",
            c,
        )
    for ns in "ab":
        netem(None, ns)
    c = Result("--time", 2, host=B6)
    check_clean(t, c, 100, "UDP, IPv6")
    t.ok(
        c.good and c.near["remote"] == f"[{B6}]:5004" and c.far["local"] == f"[{B6}]:5004",
        "IPv6 addresses in the report",
        c,
    )
    c = Result("--time", 2, "--ptime", 10, "--port", 7000, "-4", listen=("--port", 7000, "-4"))
    check_clean(t, c, 200, "UDP, 10 ms, another port, IPv4 only")
    for codec, ptime, payload in (("g729", 10, 10), ("amr-wb", 60, 182), ("g711", 60, 480)):
        for udp in (True, False):
            c = Result("--time", 3, "--ptime", ptime, "--codec", codec, udp=udp)
            text = f"{'UDP' if udp else 'DCCP'}, {codec}, {ptime} ms"
            check_clean(t, c, 3000 // ptime, text)
            t.ok(
                c.good
                and c.near["ptime_ms"] == c.far["ptime_ms"] == ptime
                and c.near["sent"]["bytes"] == 3000 // ptime * (payload + 12)
                and c.far["delay_ms"]["max"] is not None,
                f"{text}: {payload} bytes and RTP's 12, with the sender's time",
                c,
            )
    c = Result("--time", 2, "-6", host=B6, udp=False, listen=("-6",))
    check_clean(t, c, 100, "DCCP, IPv6 only")
    c = Result("--time", 2, "--one-way", udp=False)
    t.ok(
        c.good
        and c.far["received"]["packets"] == 100
        and c.far["sent"]["packets"] == 0
        and c.near["received"]["packets"] == 0
        and c.near["r"] is None,
        "--one-way: the listener does not talk",
        c,
    )


def test_many(t):
    """A listener has several calls at once."""
    for mode in (["--udp"], []):
        one = Listener(*mode)
        callers = [start("a", "call", B4, "--json", "--time", 3, *mode) for _ in range(5)]
        out = [json.loads(c.communicate(timeout=120)[0]) for c in callers]
        time.sleep(1)
        status, reports, said = one.end(signal.SIGTERM)
        # the listener talks until the caller says that the call is over
        good = [
            near(r["received"]["packets"], 150, r["role"] == "call")
            and not r["received"]["lost"]
            and not r["failure"]
            for r in (*out, *reports)
        ]
        t.ok(
            status == 0
            and good == [True] * 10
            and {r["local"] for r in out} == {r["remote"] for r in reports},
            f"{mode}: five calls at once, each with its report",
            (status, said, out, reports),
        )


def cpu(pid):
    """Seconds that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / 100


def test_load(t):
    """What a packet costs the listener does not grow with the number of calls."""
    if not lib.LONG:
        return
    cost = {}
    for n in (10, 100):
        one = Listener("--udp")
        # a hundred reports are more than a pipe holds
        reader = threading.Thread(target=one.process.stdout.read)
        reader.start()
        callers = [
            start("a", "call", B4, "--json", "--time", 10, "--one-way", "--udp") for _ in range(n)
        ]
        out = [json.loads(c.communicate(timeout=600)[0]) for c in callers]
        time.sleep(1)
        got = sum(r["far_end"]["received"]["packets"] for r in out if r["far_end"])
        cost[n] = cpu(one.process.pid) / got * 1e6
        one.process.send_signal(signal.SIGTERM)
        reader.join()
        one.process.wait()
        t.ok(
            got > 0.99 * n * 500,
            f"{n} calls at once: {got} of {500 * n} packets arrive",
            {r["failure"] for r in out},
        )
    t.ok(
        cost[100] < 1.3 * cost[10],
        f"a packet costs the listener {cost[10]:.0f} us of 10 calls, {cost[100]:.0f} of 100",
    )


def foreign(size, ptime, clock, payload_type, *listen):
    """What a listener says of a second of RTP from another program."""
    one = Listener("--once", "--udp", *listen)
    s = in_ns("a", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    for n in range(1000 // ptime):
        s.sendto(rtp_packet(n, n * ptime * clock // 1000, payload_type, size, not n), (B4, 5004))
        time.sleep(ptime / 1000)
    s.sendto(
        struct.pack("!BBHI", 0x80, 201, 1, 0x12345678)
        + struct.pack("!BBHI", 0x81, 203, 1, 0x12345678),
        (B4, 5004),
    )
    s.close()
    _, reports, _ = one.end()
    return reports[-1]["codec"], reports[-1]["ptime_ms"], reports[-1]["received"]["packets"]


def test_sdp(t):
    """The session description; and a program that goes by it, with a dynamic payload type."""
    found = foreign(240, 30, 8000, 0)
    t.ok(found == ("g711", 30, 33), f"RTP of 240 bytes, type 0: {found}")
    found = foreign(122, 40, 16000, 97)
    t.ok(found == (None, 20, 25), f"RTP of type 97, by no agreement: {found}")
    found = foreign(122, 40, 16000, 97, "--sdp", B4)
    t.ok(found == ("amr-wb", 40, 25), f"RTP of type 97, by the session description: {found}")
    for ip, address, udp in (("IP4", B4, True), ("IP6", B6, False)):
        one = Listener("--sdp", address, *(["--udp"] if udp else []))
        time.sleep(1)
        _, reports, said = one.end(signal.SIGTERM)
        text = reports[0]["sdp"]
        lines = text.split("\r\n")
        t.ok(
            lines[0] == "v=0"
            and f"c=IN {ip} {address}" in lines
            and f"m=audio 5004 {'' if udp else 'DCCP/'}RTP/AVP 0 9 18 96 97 98 99" in lines
            and "a=rtcp-mux" in lines
            and ("a=dccp-service-code:SC=x52545041" in lines) != udp
            and ("a=setup:passive" in lines) != udp
            and all(f"a=rtpmap:{n} " in text for n in (0, 9, 18, 96, 97, 98, 99)),
            f"--sdp {address}: RFC 4566, RFC 5762",
            (text, said),
        )


def test_text(t):
    one = Listener("--udp")
    res = run(
        "voipcall call 10.0.2.1 --udp --time 3 --interval 1 --codec opus", ns="a", check=False
    )
    lines = res.stdout.splitlines()
    t.ok(
        res.returncode == 0 and len([x for x in lines if " s  sent " in x]) == 2,
        "--interval: lines of progress",
        res.stdout,
    )
    t.ok(
        "150 received, 0 lost (0.00 %)" in res.stdout
        and "150 at 40" in res.stdout
        and "no published Ie and Bpl" in res.stdout,
        "the report as text",
        res.stdout,
    )
    res = run("voipcall call 10.0.2.1 --udp --time 3 --interval 1 --json", ns="a", check=False)
    t.ok(
        json.loads(res.stdout)["sent"]["packets"] == 150 and len(res.stderr.splitlines()) == 2,
        "--json: progress goes elsewhere",
        res,
    )
    t.ok(
        "not by ear" in run("voipcall call 10.0.2.1 --udp --time 1", ns="a").stdout,
        "R and MOS are said to be an estimate",
    )
    one.end(signal.SIGTERM)


# On the wire


def test_wire(t):
    for udp in (True, False):
        name = "UDP" if udp else "DCCP"
        both = Capture("in"), Capture("out")
        c = Result("--green", "--time", 12, "--codec", "g729", udp=udp)
        there, back = ([Packet(*p) for p in x.packets()] for x in both)
        proto = 17 if udp else IPPROTO_DCCP
        there, back = ([p for p in x if p.protocol == proto] for x in (there, back))
        rtp = [p for p in there if p.rtp]
        t.ok(c.good and len(rtp) == 600, f"{name}: 600 RTP packets on the wire", (len(rtp), str(c)))
        data = [p for p in there + back if p.payload]
        t.ok(
            {p.tos >> 2 for p in data} == {46},
            f"{name}: --green is DSCP 46, back, too",
            {p.tos for p in data},
        )
        t.ok(
            {p.tos & 3 for p in data} == {0} or not udp,
            f"{name}: not ECN-capable unless asked",
            {p.tos for p in data},
        )
        t.ok(
            {(p.payload[1] & 127, len(p.payload)) for p in rtp} == {(18, 32)},
            f"{name}: payload type 18, 20 bytes",
            {p.payload[:2] for p in rtp},
        )
        t.ok(
            [p.payload[1] >> 7 for p in rtp] == [1] + [0] * 599,
            f"{name}: the marker is on the first packet",
        )
        seq = [struct.unpack_from("!H", p.payload, 2)[0] for p in rtp]
        ts = [struct.unpack_from("!I", p.payload, 4)[0] for p in rtp]
        t.ok(
            all((b - a) % 65536 == 1 for a, b in itertools.pairwise(seq))
            and all((b - a) % 2**32 == 160 for a, b in itertools.pairwise(ts)),
            f"{name}: sequence numbers by 1, time stamps by 160",
        )
        drift = [p.time - rtp[0].time - 0.02 * n for n, p in enumerate(rtp)]
        limit = 0.0005 if udp else 0.012
        t.ok(
            -limit < min(drift) and max(drift) < limit,
            f"{name}: frames leave by the clock, without drift",
            (min(drift), max(drift)),
        )
        rtcp = [p.payload for p in there + back if p.rtcp]
        types = [rtcp_types(p) for p in rtcp]
        t.ok(
            None not in types and all(x[:2] in ([200, 202], [201, 202]) for x in types),
            f"{name}: RTCP: SR or RR, then SDES",
            types,
        )
        t.ok(
            [200, 202] in types and all(x[2:] in ([], [204], [203], [204, 203]) for x in types),
            f"{name}: RTCP: APP, BYE",
            types,
        )
        times = [p.time for p in there if p.rtcp][2:-2]
        gaps = [b - a for a, b in itertools.pairwise(times)]
        t.ok(all(2 < g < 6.3 for g in gaps), f"{name}: RTCP every 5 s at random", gaps)
        if not udp:
            t.ok(
                [p.service for p in there if p.kind == 0] == [RTPA],
                "DCCP: service code RTPA",
                [p.service for p in there if p.kind == 0],
            )
            rtt = c.near["round_trip_ms"]
            t.ok(rtt is not None and 0 <= rtt < 5, "DCCP: RTCP tells the round trip", rtt)
    for args, listen, want in (
        ((), (), (0, 0)),
        (("--dscp", 45), (), (45, 45)),
        (("--blue",), ("--green",), (0, 46)),
        (("--ecn", "--green"), (), (46, 46)),
    ):
        both = Capture("in"), Capture("out")
        c = Result("--time", 0.5, *args, host=B6, listen=listen)
        tos = [{p.tos for p in (Packet(*q) for q in x.packets()) if p.rtp} for x in both]
        ecn = 2 if "--ecn" in args else 0
        t.ok(
            c.good
            and tos == [{w << 2 | ecn} for w in want]
            and (c.near["dscp"], c.far["dscp"]) == want,
            f"UDPv6, call {args} listen {listen}: marks {want}",
            (tos, c),
        )


# Against netem


def test_delay(t):
    netem("delay 30ms", "a")
    netem("delay 50ms", "b")
    for udp in (True, False):
        name = "UDP" if udp else "DCCP"
        c = Result("--time", 10, udp=udp)
        check_clean(t, c, 500, f"{name}, 30 and 50 ms")
        if not c.good:
            continue
        for m, want in ((c.far, 30), (c.near, 50)):
            d = m["delay_ms"]
            # stock CCIDs send with the jiffies; the first packets wait for the first feedback
            late = 0.5 if udp else 8
            t.ok(
                near(d["min"], want, 0.5)
                and near(d["median"], want, late)
                and d["min"] <= d["median"] <= d["p99"] <= d["max"],
                f"{name}: delay {want} ms",
                d,
            )
            t.ok(
                near(m["variation_ms"]["median"], d["median"] - d["min"], 1e-6),
                f"{name}: variation is delay above the smallest",
                m,
            )
            t.ok(
                near(m["mouth_to_ear_ms"], d["min"] + m["buffer_ms"] + 20, 1e-3),
                f"{name}: mouth to ear",
                m,
            )
            check_rating(t, m, name)
            if udp:
                t.ok(m["jitter_ms"] < 0.1 and near(d["p99"], want, 0.5), f"{name}: no jitter", m)
        t.ok(
            near(c.near["round_trip_ms"], 80, 1) and near(c.far["round_trip_ms"], 80, 1),
            f"{name}: round trip 80 ms",
            (c.near["round_trip_ms"], c.far["round_trip_ms"]),
        )
        check_rating(t, c.near["far_end"], f"{name}, far end")
    netem("delay 300ms", "a")
    netem(None, "b")
    c = Result("--time", 4, listen=("--playout", 50))
    t.ok(
        c.good and near(c.far["mouth_to_ear_ms"], 370, 1),
        "--playout 50: 300 + 50 + 20 ms from mouth to ear",
        c,
    )
    check_rating(t, c.far, "long delay")
    netem()


def test_jitter(t):
    netem("delay 30ms 9ms")
    c = Result("--time", 30, "--codec", "g729", listen=("--playout", 100))
    d = c.far["delay_ms"]
    t.ok(
        c.good and c.far["received"]["packets"] == 1500 and c.far["received"]["late"] == 0,
        "jitter: all packets come in time",
        c,
    )
    t.ok(
        near(d["mean"], 30, 0.5)
        and near(d["median"], 30, 0.7)
        and near(d["min"], 21, 0.3)
        and near(d["max"], 39, 0.3),
        "jitter: uniform delay of 21 to 39 ms",
        d,
    )
    # the mean distance of two uniform numbers is a third of the range; the estimate is over 16 packets or so
    t.ok(
        near(c.far["jitter_ms"], 6, 2.5) and c.far["jitter_max_ms"] < 11,
        "jitter: about 6 ms",
        c.far["jitter_ms"],
    )
    check_rating(t, c.far, "jitter")
    c = Result("--time", 30, "--codec", "g729", listen=("--playout", 0))
    late = c.far["received"]["late"] / 1500
    t.ok(
        c.good and 0 < late < 1 and near(c.far["effective_loss"], late, 1e-9),
        "playout 0: who is slower than the first packet is late",
        c,
    )
    check_rating(t, c.far, "late packets")
    c = Result("--time", 30, "--codec", "g729")
    late = c.far["received"]["late"] / 1500
    t.ok(
        c.good and late < 0.02 and 15 < c.far["buffer_ms"] < 60,
        f"adaptive playout: {late:.2%} late, buffer {c.far['buffer_ms']:.1f} ms",
        c,
    )
    netem()


def drops(ns="a"):
    return sum(q["drops"] for q in lib.qdiscs("eth0", ns))


def test_loss(t):
    for spec, codec in (("loss 5%", "g711"), ("loss 20%", "g729"), ("four in a row", "g711")):
        bursts = not spec.startswith("loss")
        netem("delay 5ms" if bursts else f"delay 5ms {spec}")
        if bursts:
            # four of 128 sequence numbers of RTP, which follow the headers of IP and UDP
            tc("qdisc add dev eth0 clsact", "a")
            tc(
                "filter add dev eth0 egress protocol ip u32 match ip dport 5004 0xffff"
                " match u16 0x0040 0x007c at 30 action drop",
                "a",
            )
        c = Result("--codec", codec, "--time", 40)
        m = c.far
        # the drops of the device are packets of RTCP, too
        lost, dropped = m["received"]["lost"], drops()
        t.ok(
            c.good and lost + m["received"]["packets"] == 2000 and 0 <= dropped - lost <= 30,
            f"{spec}: {lost} lost, as the device says",
            (dropped, str(c)),
        )
        t.ok(
            near(m["loss"], lost / 2000, 1e-9) and c.near["received"]["lost"] == 0,
            f"{spec}: loss {m['loss']:.3f}, none back",
            m,
        )
        burst = m["burst_ratio"]
        t.ok(
            # a row may be cut off where the call begins and where it ends
            near(burst, 4 * (1 - m["loss"]), 0.4) if bursts else near(burst, 1, 0.15),
            f"{spec}: burst ratio {burst:.2f}",
            m,
        )
        check_rating(t, m, spec)
    tc("qdisc del dev eth0 clsact", "a")
    netem("duplicate 10%")
    c = Result("--time", 20)
    got = c.far["received"]
    t.ok(
        c.good and got["packets"] == 1000 and got["lost"] == 0 and near(got["duplicates"], 100, 40),
        "duplicates are counted and nothing else",
        c,
    )
    netem("delay 30ms reorder 10%")
    c = Result("--time", 20)
    got = c.far["received"]
    t.ok(
        c.good
        and got["packets"] == 1000
        and got["lost"] == 0
        and got["duplicates"] == 0
        and near(got["reordered"], 90, 40),
        "reordered packets are no loss",
        c,
    )
    netem("loss 10% ecn")
    c = Result("--time", 20, "--ecn")
    got = c.far["received"]
    t.ok(
        c.good and got["lost"] == 0 and near(got["ce"], 100, 40) and c.far["ecn"],
        "--ecn: marks instead of losses",
        c,
    )
    c = Result("--time", 20, "--ecn", host=B6)
    t.ok(
        c.good and c.far["received"]["lost"] == 0 and near(c.far["received"]["ce"], 100, 40),
        "--ecn: IPv6, too",
        c,
    )
    if run("modprobe dccp_tfrc", check=False).returncode:
        t.skip("CCID 4: marks", "its module is not there")
    else:
        netem("delay 20ms loss 5% ecn")
        c = Result("--ccid", 4, "--time", 20, "--one-way", udp=False, listen=("--ccid", 4))
        got = c.far["received"]
        t.ok(
            c.good and got["lost"] == 0 and near(got["ce"], 50, 25),
            "CCID 4: marks instead of losses",
            c,
        )
    netem("delay 20ms loss 1%")
    netem("delay 20ms", "b")
    for ccid in (2, 3):
        # After losses the kernel's own CCIDs stop for good in about one of twenty calls.
        for _ in range(5):
            c = Result(
                "--ccid",
                ccid,
                "--codec",
                "g729",
                "--time",
                20,
                "--one-way",
                "--timeout",
                30,
                udp=False,
            )
            if c.good:
                break
            t.ok(
                c.near["failure"] and c.near["sent"]["not_sent"] > 100,
                f"CCID {ccid}: it stopped, and the caller says so",
                c,
            )
        t.ok(c.good, f"CCID {ccid}: a call with losses comes to its end", c)
        if c.good:
            sent, got = c.near["sent"], c.far["received"]
            t.ok(
                sent["packets"] + sent["not_sent"] == 1000
                and got["packets"] + got["lost"] == sent["packets"]
                and got["not_sent"] == sent["not_sent"],
                f"CCID {ccid}: each frame is received, lost or not sent",
                (sent, got),
            )
            check_rating(t, c.far, f"CCID {ccid}, loss")
    netem()
    netem(None, "b")


def test_not_sent(t):
    """A codec that cannot adapt on a link that is too slow for it."""
    tc("qdisc add dev out root tbf rate 50kbit burst 1600 limit 4000", "r")
    netem("delay 20ms")
    c = Result("--ccid", 3, "--time", 30, "--one-way", udp=False)
    sent, m = c.near["sent"], c.far
    t.ok(
        c.good and sent["not_sent"] > 300 and sent["packets"] + sent["not_sent"] == 1500,
        "what DCCP refuses is counted, and the clock goes on",
        c,
    )
    t.ok(m["received"]["not_sent"] == sent["not_sent"], "the receiver knows", m["received"])
    missing = m["received"]["lost"] + m["received"]["late"] + sent["not_sent"]
    t.ok(
        near(m["effective_loss"], missing / 1500, 1e-6),
        "and holds it for loss",
        (m["effective_loss"], missing / 1500),
    )
    check_rating(t, m, "not sent")
    rate = c.near["rate"]
    t.ok(
        rate and 0 < rate["allowed"] < 12000 and rate["p"] > 0 and rate["rtt_ms"] > 20,
        "the rate that CCID 3 allows is reported",
        rate,
    )
    again = Result("--ccid", 3, "--time", 10, "--one-way", "--tx-queue", 50, udp=False)
    t.ok(
        again.good and again.far["delay_ms"]["max"] > 1.5 * m["delay_ms"]["max"],
        "--tx-queue: a longer queue makes for more delay",
        (again.far["delay_ms"], m["delay_ms"]),
    )
    run("tc qdisc del dev out root", ns="r")
    netem()


def test_adaptive(t):
    """A path that becomes slow, and fast again."""

    def set_rate(rate, verb="change"):
        tc(f"qdisc {verb} dev out root tbf rate {rate}kbit burst 1600 limit 3000", "r")

    def during():
        time.sleep(10)
        set_rate(36)
        time.sleep(25)
        set_rate(1000)

    seconds = 120 if lib.LONG else 80
    for ns in "ab":
        netem("delay 20ms", ns)
    for ccid, codec, top in (
        (3, "opus", "40"),
        (4, "opus", "40"),
        (3, "amr-wb", "23.85"),
        (248, "opus", "40"),
    )[: None if lib.LONG else 2]:
        if ccid != 3 and run("modprobe dccp_tfrc", check=False).returncode:
            t.skip(f"CCID {ccid}", "its module is not there")
            continue
        set_rate(1000, "add")
        two_way = ccid != 3
        c = Result(
            "--ccid",
            ccid,
            "--codec",
            codec,
            "--duplex" if two_way else "--one-way",
            "--time",
            seconds,
            "--interval",
            1,
            "--green",
            udp=False,
            listen=("--ccid", ccid),
            during=during,
        )
        codec = f"CCID {ccid}, {codec}"
        t.ok(
            c.good and c.near["ccid"] == ccid and c.near["rate"] and c.near["rate"]["rtt_ms"] > 39,
            f"{codec}: in use, with a rate",
            c,
        )
        modes = [
            line.partition(" kbit/s")[0].rpartition(", ")[2]
            for line in c.said.splitlines()
            if "kbit/s" in line
        ]
        t.ok(c.good and len(modes) >= seconds - 5, f"{codec}: a call of {seconds} s", c)
        t.note(f"{codec}: {' '.join(modes)}; {c.near['sent']}; {c.far['received']}")
        rates = [float(m) for m in modes]
        t.ok(modes[4:9] == [top] * 5, f"{codec}: first the best mode", modes[:10])
        slow = sum(rates[14:34]) / 20
        t.ok(
            slow < 0.6 * float(top),
            f"{codec}: on the slow path {slow:.1f} kbit/s on average",
            modes[10:35],
        )
        # the losses of the slow path weigh until newer loss intervals replace them
        end = sum(rates[-5:]) / 5
        t.ok(end > 1.5 * slow, f"{codec}: and up again, {end:.1f} kbit/s at the end", modes[35:])
        if lib.LONG:
            t.ok(modes[-5:] == [top] * 5, f"{codec}: to the best mode", modes[35:])
        t.ok(
            c.near["sent"]["switches"] < 60,
            f"{codec}: without swinging: {c.near['sent']['switches']} changes",
            modes,
        )
        total = sum(c.near["sent"]["modes"].values())
        t.ok(
            total == c.near["sent"]["packets"] and c.near["sent"]["not_sent"] < 0.1 * 4000,
            f"{codec}: nearly all frames are sent",
            c.near["sent"],
        )
        run("tc qdisc del dev out root", ns="r")
    c = Result("--codec", "amr-nb", "--time", 20, "--ccid", 3, "--one-way", udp=False)
    t.ok(
        c.good and c.near["sent"]["modes"].get("12.2", 0) > 900 and c.far["rated"] > 0.9,
        "amr-nb on a fast path: 12.2 kbit/s after the start",
        c,
    )
    check_rating(t, c.far, "amr-nb")
    netem()
    netem(None, "b")


def test_silence(t):
    counts = []
    for seed in (5, 5, 6):
        capture = Capture("in")
        c = Result("--silence", "on", "--seed", seed, "--time", 60, "--codec", "g729")
        rtp = [p for p in (Packet(*q) for q in capture.packets()) if p.rtp]
        spurts = sum(p.payload[1] >> 7 for p in rtp)
        counts.append((len(rtp), spurts))
        ts = [struct.unpack_from("!I", p.payload, 4)[0] for p in rtp]
        gaps = sum((b - a) % 2**32 != 160 for a, b in itertools.pairwise(ts))
        t.ok(
            c.good
            and c.far["received"]["packets"] == len(rtp)
            and c.far["effective_loss"] == c.far["received"]["late"] / len(rtp)
            and c.far["received"]["not_sent"] == 0,
            f"seed {seed}: silence is no loss",
            c,
        )
        t.ok(
            gaps <= spurts - 1 <= gaps + 3 and 12 <= spurts <= 45 and 900 < len(rtp) < 1900,
            f"seed {seed}: {len(rtp)} packets in {spurts} spurts, each with a marker",
            gaps,
        )
        t.ok(
            c.near["received"]["packets"] != c.far["received"]["packets"],
            "the two sides do not talk in step",
            c,
        )
    t.ok(counts[0] == counts[1] != counts[2], "the seed decides", counts)


def test_clock_set(t):
    """Somebody sets the clock in the middle of a call, forth and back, and forth."""
    netem("delay 30ms 2ms")

    def during():
        for step in (5, -5, 3600):
            time.sleep(3)
            time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + step)

    for name, udp in (("UDP", True), ("DCCP", False)):
        c = Result("--time", 12, *([] if udp else ["--ccid", "2"]), udp=udp, during=during)
        # CCID 2 may hold a packet back in its slow start
        delays = [c.far["delay_ms"][key] for key in ("min", "p99", "max")] if c.far else []
        t.ok(
            c.good and delays[0] and 27 < delays[0] <= delays[1] < 36 and delays[2] < 100,
            f"{name}: the delays are those of the path",
            c,
        )
        t.ok(
            c.good and 20 < c.far["duration"] * 2 < 30 and c.far["jitter_max_ms"] < 4,
            f"{name}: nor does anything else show it",
            c,
        )
        t.ok(
            c.good
            and near(c.far["clock_step_ms"], 3.6e6, 1)
            and near(c.near["clock_step_ms"], 3.6e6, 1),
            f"{name}: both sides say so",
            c,
        )
    c = Result("--time", 1)
    t.ok(
        c.good and c.near["clock_step_ms"] == 0 == c.far["clock_step_ms"],
        "a clock that is left alone",
        c,
    )
    res = run("voipcall call 10.0.2.1 --udp --time 1 --timeout 1", ns="a", check=False)
    t.ok(res.returncode and "clock" not in res.stdout, "and no word of it", res)
    netem()


def test_closed_output(t):
    """Where standard output is closed its number must not become the socket's, or the peer gets the report."""
    for closed, status in ((">&-", 1), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 1)):
        for mode in ("--udp", "--ccid 2"):
            capture = Capture("in")
            one = Listener("--once", *mode.split())
            res = run(
                ["sh", "-c", f"exec voipcall call {B4} {mode} --time 1 {closed}"],
                ns="a",
                check=False,
            )
            far_status, reports, _ = one.end()
            sent = [Packet(*q).payload for q in capture.packets()]
            text = [data for data in sent if b"packets" in data or b"voipcall" in data]
            good = (
                res.returncode == status
                and not far_status
                and reports
                and reports[0]["received"]["packets"] == 50
            )
            t.ok(
                good and not text and len(sent) > 50,
                f"{mode} {closed}: the call goes well, and the peer gets no text",
                (res, reports, text[:1]),
            )


# Others


def rtp_packet(seq, ts, payload_type=0, size=160, marker=False):
    return struct.pack(
        "!BBHII", 0x80, payload_type | marker << 7, seq & 65535, ts & 0xFFFFFFFF, 0x12345678
    ) + bytes(size)


def test_foreign(t):
    """Callers that are not voipcall, and what is no call."""
    for udp in (True, False):
        name = "UDP" if udp else "DCCP"
        one = Listener("--once", "--timeout", 3, *(["--udp"] if udp else []))

        def connect(udp=udp):
            if udp:
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            else:
                s = socket.socket(socket.AF_INET, SOCK_DCCP, IPPROTO_DCCP)
                s.setsockopt(SOL_DCCP, 2, struct.pack("!I", RTPA))
                s.setsockopt(SOL_DCCP, 13, bytes([2]))
            s.connect((B4, 5004))
            return s

        s = in_ns("a", connect)
        if udp:
            for noise in (
                b"",
                b"x",
                b"\x80",
                b"hello, is there anybody?",
                b"\x80\xc9\x00\xff12345678",
                b"\xbf\x00" + b"\xff" * 40,
            ):
                s.send(noise)
        for n in range(200):
            if n == 60:
                continue
            s.send(rtp_packet(65500 + n, n * 160, marker=not n))
            if n == 100 and not udp:
                s.send(b"")  # RFC 5762's keepalive
            time.sleep(0.02)
        bye = struct.pack("!BBHI", 0x80, 201, 1, 0x12345678) + struct.pack(
            "!BBHI", 0x81, 203, 1, 0x12345678
        )
        s.send(bye)
        if not udp:
            time.sleep(1)
            s.close()
        status, reports, said = one.end()
        r = reports[0] if reports else {}
        t.ok(
            status == 0
            and r
            and r["codec"] == "g711"
            and r["received"]["packets"] == 199
            and r["received"]["lost"] == 1
            and r["delay_ms"] == dict.fromkeys(("min", "median", "p99", "max", "mean")),
            f"{name}: plain RTP is counted; its delay is not known",
            (status, said, reports),
        )
        t.ok(
            r
            and r["jitter_ms"] < 3
            and r["variation_ms"]["max"] < 20
            and r["r"] is None
            and r["unrated"] == "the delay is not known",
            f"{name}: jitter is, quality not",
            r,
        )
    one = Listener("--once", "--timeout", 1)
    s = in_ns("a", connect)
    status, reports, said = one.end()
    t.ok(
        status == 1 and not reports and "the caller said nothing" in said,
        "DCCP: a connection without a word",
        (status, reports, said),
    )
    s.close()
    # unread by voipcall: the wrong service code
    one = Listener()

    def other_service():
        s = socket.socket(socket.AF_INET, SOCK_DCCP, IPPROTO_DCCP)
        s.setsockopt(SOL_DCCP, 2, struct.pack("!I", 42))
        try:
            s.connect((B4, 5004))
        except OSError as e:
            return e.errno
        return 0

    got = in_ns("a", other_service)
    t.ok(
        got in (errno.ECONNREFUSED, errno.EBADRQC, errno.ECONNRESET),
        "DCCP: another service code is refused",
        got,
    )
    one.end(signal.SIGTERM)


def test_strangers(t):
    """Over UDP a listener answers a stranger, but talks only to who has the answer: sources can be forged."""

    def udp():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(1)
        return s

    # what a caller says first, without a listener
    ear = in_ns("b", udp)
    ear.bind((B4, 5010))
    caller = start("a", "call", B4, "--port", 5010, "--udp", "--timeout", 2)
    offer = ear.recv(2000)
    caller.communicate(timeout=60)
    ear.close()

    report = offer[:8]  # an RR without blocks, which is whole
    bye = report + struct.pack("!BBH", 0x81, 203, 1) + offer[4:8]
    wrong = report + struct.pack("!BBH", 0x85, 204, 4) + offer[4:8] + b"VoIP" + bytes(8)
    for what, then in (
        ("nothing", []),
        ("a report", [report]),
        ("speech", [rtp_packet(n, 160 * n) for n in range(10)]),
        ("a wrong cookie", [wrong]),
        ("a goodbye", [bye]),
    ):
        listener = Listener("--udp", "--timeout", 2)
        s = in_ns("a", udp)
        s.connect((B4, 5004))
        s.send(offer)
        answer = s.recv(2000)
        sent, got = len(offer), len(answer)
        for data in then:
            s.send(data)
            sent += len(data)
        began = time.monotonic()
        while time.monotonic() < began + 4:
            try:
                got += len(s.recv(2000))
            except TimeoutError:
                pass
        s.close()
        listener.end(signal.SIGTERM)
        t.ok(
            got < 1.5 * sent,
            f"a stranger's offer and {what}: {got} bytes for {sent}",
            answer,
        )


def kernel_log():
    """Complaints other than CCID 3's."""
    found = re.compile("BUG:|WARNING:|Oops|general protection|Kernel panic|soft lockup|KASAN|UBSAN")
    return [
        line
        for line in run("dmesg").stdout.splitlines()
        if found.search(line) and "report to dccp@vger" not in line
    ]


def main():
    t = lib.Tap()
    chosen = sys.argv[1:]
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    lib.Net()
    for test in tests:
        if chosen and test.__name__ not in chosen and test is not test_no_dccp:
            continue
        if test is test_errors or (chosen and test is test_no_dccp):
            run("modprobe -a dccp_ipv4 dccp_ipv6")
            if test is test_no_dccp:
                continue
        began = time.monotonic()
        test(t)
        t.note(f"{test.__name__}: {time.monotonic() - began:.1f} s")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
