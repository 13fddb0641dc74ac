#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Test abeload against known traffic; TAP. Needs loopback only, no root.

test_abeload.py [PATH_OF_ABELOAD]

A relay between source and sink loses, repeats, delays, reorders and marks
packets as told, so that every figure of the report has a known value.
"""

import heapq
import itertools
import json
import math
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ABELOAD = shutil.which("abeload") or os.path.join(TOP, "build/guest/bin/abeload")
CE = 3


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Relay(threading.Thread):
    """Forwards UDP both ways; fate(n) of forward packet n is a list of (delay, tos)."""

    def __init__(self, port, fate, back_delay=0.0):
        super().__init__(daemon=True)
        self.fate, self.back_delay, self.port = fate, back_delay, port
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.to = f"127.0.0.1:{self.front.getsockname()[1]}"
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back.connect(("127.0.0.1", port))
        self.start()

    def run(self):
        queue, count, client = [], 0, None
        while True:
            wait = max(queue[0][0] - time.monotonic(), 0) if queue else None
            ready, _, _ = select.select([self.front, self.back], [], [], wait)
            if self.front in ready:
                data, client = self.front.recvfrom(65536)
                for i, (delay, tos) in enumerate(self.fate(count)):
                    heapq.heappush(queue, (time.monotonic() + delay, count, i, tos, data))
                count += 1
            if self.back in ready:
                try:
                    data = self.back.recv(65536)
                except ConnectionRefusedError:
                    return
                heapq.heappush(queue, (time.monotonic() + self.back_delay, -count, 0, None, data))
            while queue and queue[0][0] <= time.monotonic():
                _, _, _, tos, data = heapq.heappop(queue)
                if tos is None:
                    self.front.sendto(data, client)
                    continue
                self.back.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
                try:
                    self.back.send(data)
                except ConnectionRefusedError:
                    return


class Sink:
    """abeload recv in the background."""

    def __init__(self, *args):
        handle, self.file = tempfile.mkstemp(suffix=".json")
        os.close(handle)
        self.process = subprocess.Popen(
            [ABELOAD, "recv", "--json", self.file, *args], stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"abeload recv said {line!r}")

    def report(self):
        time.sleep(0.1)
        self.process.terminate()
        if self.process.wait() != 0:
            raise RuntimeError("abeload recv failed")
        with open(self.file, encoding="ascii") as f:
            report = json.load(f)
        os.unlink(self.file)
        return report


def send(*args):
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        subprocess.run([ABELOAD, "send", *args, "--json", f.name], check=True)
        return json.load(f)


def near(value, want, tolerance, what):
    assert abs(value - want) <= tolerance * want, f"{what} {value}, want {want} +- {tolerance:%}"


def equal(value, want, what):
    assert value == want, f"{what} {value}, want {want}"


def test_cbr():
    """udp: rate, count, size, marking, both families"""
    port = str(free_port(socket.SOCK_DGRAM))
    sink = Sink("--port", port, "--duration", "30", "--raw")
    sent = send(
        "udp",
        "--to",
        f"127.0.0.1:{port}",
        "--flows",
        "3",
        "--size",
        "172",
        "--pps",
        "100",
        "--dscp",
        "46",
        "--ecn",
        "2",
        "--duration",
        "1",
    )
    send(
        "udp",
        "--to",
        f"[::1]:{port}",
        "--id",
        "7",
        "--size",
        "20",
        "--pps",
        "50",
        "--dscp",
        "45",
        "--duration",
        "1",
    )
    report = sink.report()
    equal([f["flow"] for f in report["udp"]], [0, 1, 2, 7], "flows")
    equal([f["sent"] for f in sent["udp"]], [100] * 3, "sent")
    for f in report["udp"]:
        v6 = f["flow"] == 7
        equal(f["packets"], 50 if v6 else 100, "packets")
        equal(f["bytes"], f["packets"] * (20 if v6 else 172), "bytes")
        equal(f["tos"], 45 << 2 if v6 else 46 << 2 | 2, "TOS")
        equal((f["lost"], f["reordered"], f["duplicates"], f["ce"]), (0, 0, 0, 0), "faults")
        sent_us = f["raw"]["sent_us"]
        near(sent_us[-1] - sent_us[0], 980e3 if v6 else 990e3, 0.02, "time from first to last, us")


def test_poisson():
    """udp --poisson: mean and variation of the gaps, seeds"""
    port = str(free_port(socket.SOCK_DGRAM))
    sink = Sink("--port", port, "--duration", "30", "--raw")
    args = [
        "udp",
        "--to",
        f"127.0.0.1:{port}",
        "--size",
        "64",
        "--pps",
        "2000",
        "--poisson",
        "--duration",
        "2",
    ]
    counts = [
        send(*args, "--id", str(i), "--seed", seed)["udp"][0]["sent"]
        for i, seed in enumerate(["5", "5", "6"])
    ]
    report = sink.report()
    sent = report["udp"][2]["raw"]["sent_us"]
    gaps = [b - a for a, b in itertools.pairwise(sent)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((g - mean) ** 2 for g in gaps) / len(gaps))
    near(mean, 500, 0.06, "mean gap")
    near(deviation / mean, 1, 0.1, "variation of gaps")
    near(counts[1], 2000 * 2, 0.06, "packets")


def test_faults():
    """udp: lost, duplicates, reordered, CE, delay through a relay that does them"""

    def fate(n):
        if n == 10 or 50 <= n < 60:
            return []
        if n == 20:
            return [(0.01, 0), (0.012, 0)]
        if n == 30:
            return [(0.05, 0)]
        return [(0.01, CE if n % 10 == 5 else 0)]

    port = free_port(socket.SOCK_DGRAM)
    sink = Sink("--port", str(port), "--duration", "30")
    send("udp", "--to", Relay(port, fate).to, "--size", "100", "--pps", "100", "--duration", "1")
    f = sink.report()["udp"][0]
    equal(f["packets"], 89, "packets")
    equal(f["lost"], 11, "lost")
    near(f["loss"], 0.11, 1e-6, "loss")
    equal(f["duplicates"], 1, "duplicates")
    equal(f["reordered"], 1, "reordered")
    equal(f["ce"], 9, "CE marks")
    delay = f["delay_us"]
    near(delay["median"], 10e3, 0.3, "median delay")
    near(delay["max"], 50e3, 0.2, "largest delay")
    assert delay["min"] <= delay["median"] <= delay["mean"] <= delay["p99"] <= delay["p999"]
    assert f["jitter_us"] > 0


def test_warmup():
    """recv --warmup: what was sent before does not count"""
    port = str(free_port(socket.SOCK_DGRAM))
    sink = Sink("--port", port, "--duration", "1.5", "--warmup", "0.5")
    send("udp", "--to", f"127.0.0.1:{port}", "--size", "100", "--pps", "200", "--duration", "1.2")
    sink.process.wait()
    report = sink.report()
    near(report["udp"][0]["packets"], 140, 0.1, "packets")
    equal(report["udp"][0]["lost"], 0, "lost")
    near(report["window"], 1, 0.05, "window")


def test_send_warmup():
    """send --warmup: its packets do not count at either end"""
    port = str(free_port(socket.SOCK_DGRAM))
    sink = Sink("--port", port, "--duration", "30")
    sent = send(
        "udp",
        "--to",
        f"127.0.0.1:{port}",
        "--size",
        "100",
        "--pps",
        "200",
        "--duration",
        "1",
        "--warmup",
        "0.5",
        "--jitter",
        "0",
    )["udp"][0]
    equal((sent["sent"], sent["counted"]), (200, 100), "sent and counted")
    f = sink.report()["udp"][0]
    equal((f["packets"], f["lost"]), (100, 0), "packets and lost")


def test_tcp():
    """tcp: bytes at both ends, flow ids, several flows"""
    port = str(free_port(socket.SOCK_STREAM))
    sink = Sink("--tcp-port", port, "--duration", "30")
    sent = send(
        "tcp",
        "--to",
        f"127.0.0.1:{port}",
        "--flows",
        "4",
        "--id",
        "3",
        "--cc",
        "reno",
        "--duration",
        "1",
    )
    report = sink.report()
    equal(sorted(f["flow"] for f in report["tcp"]), [3, 4, 5, 6], "flows")
    received = {f["flow"]: f["bytes"] for f in report["tcp"]}
    for f in sent["tcp"]:
        assert f["acked"] > 1 << 20, f"flow {f['flow']} got {f['acked']} bytes through"
        # the abort at the end destroys what the sink has not taken out
        near(received[f["flow"]], f["acked"], 0.5, "bytes received against acknowledged")


def test_tcp_sink_ends():
    """tcp: a sink that ends earlier is no failure"""
    port = str(free_port(socket.SOCK_STREAM))
    sink = Sink("--tcp-port", port, "--duration", "0.5")
    sent = send("tcp", "--to", f"127.0.0.1:{port}", "--flows", "2", "--duration", "1.5")
    sink.report()
    for f in sent["tcp"]:
        assert f["acked"] > 1 << 20, f"flow {f['flow']} got {f['acked']} bytes through"


def aimd_rate(every, marks):
    def fate(n):
        hit = n and n % every == 0
        if hit and not marks:
            return []
        return [(0.01, CE if hit else 0)]

    port = free_port(socket.SOCK_DGRAM)
    sink = Sink("--aimd-port", str(port), "--duration", "30", "--warmup", "2")
    relay = Relay(port, fate, back_delay=0.01)
    sent = send("aimd", "--to", relay.to, "--size", "100", "--duration", "6")["aimd"][0]
    f = sink.report()["aimd"][0]
    # a sawtooth between W/2 and W packets a round trip with 3/8 W^2 packets a tooth
    window = math.sqrt(8 * every / 3)
    rate = f["packets"] / 4.0
    near(rate, 0.75 * window / (sent["rtt_us"] / 1e6), 0.15, "packets a second")
    near(sent["halvings"], sent["sent"] / every, 0.2, "halvings")
    lost = 0 if marks else (sent["sent"] - 1) // every
    # the last one may not have been found yet
    assert lost - 1 <= sent["losses"] <= lost, f"{sent['losses']} losses found of {lost}"


def test_aimd_loss():
    """aimd: the AIMD sawtooth under periodic loss"""
    aimd_rate(60, False)


def test_aimd_mark():
    """aimd: a CE mark counts as a loss"""
    aimd_rate(60, True)


def test_aimd_dead():
    """aimd: no receiver, timeouts slow it down"""
    port = free_port(socket.SOCK_DGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
        hole.bind(("127.0.0.1", port))
        sent = send("aimd", "--to", f"127.0.0.1:{port}", "--size", "100", "--duration", "4")[
            "aimd"
        ][0]
    assert 2 <= sent["sent"] <= 4, f"{sent['sent']} packets in 4 s without an answer"
    assert sent["halvings"] >= 1 and sent["acks"] == 0


def test_usage():
    """wrong usage: exit 2 and a message that names the fault"""
    cases = [
        ([], "want recv or send"),
        (["receive"], "receive"),
        (["recv", "--duration", "1", "--json", "-"], "no port"),
        (["recv", "--port", "1", "--json", "-"], "--duration is missing"),
        (["recv", "--port", "1", "--duration", "1"], "--json is missing"),
        (["recv", "--port", "0", "--duration", "1"], "--port 0"),
        (["recv", "--port", "1", "--duration", "1", "--warmup", "1", "--json", "-"], "--warmup"),
        (
            ["recv", "--web-port", "1", "--duration", "1", "--series", "0", "--json", "-"],
            "--series 0",
        ),
        (["recv", "--rtp-window", "x"], "--rtp-window x"),
        (["recv", "--spread-window", "-1"], "--spread-window -1"),
        (["send"], "want udp, pareto, aimd, tcp or web"),
        (["send", "sctp"], "want udp, pareto, aimd, tcp or web"),
        (["send", "udp", "--duration", "1"], "--to is missing"),
        (["send", "udp", "--to", "localhost:1"], "numeric address"),
        (["send", "udp", "--to", "::1:5"], "brackets"),
        (["send", "udp", "--to", "1.2.3.4"], "HOST:PORT"),
        (["send", "udp", "--to", "1.2.3.4:x"], "port"),
        (["send", "udp", "--size", "19"], "--size 19"),
        (["send", "udp", "--dscp", "64"], "--dscp 64"),
        (["send", "udp", "--ecn", "4"], "--ecn 4"),
        (["send", "udp", "--pps", "nan"], "--pps nan"),
        (
            ["send", "udp", "--to", "1.2.3.4:5", "--duration", "1", "--size", "99"],
            "--pps is missing",
        ),
        (["send", "aimd", "--to", "1.2.3.4:5", "--duration", "1"], "--size is missing"),
        (["send", "aimd", "--pps", "5"], "--pps is not for it"),
        (["send", "tcp", "--size", "99"], "--size is not for it"),
        (["send", "tcp", "--on", "1"], "--on is not for it"),
        (["send", "tcp", "--cwnd-interval", "0"], "--cwnd-interval 0"),
        (["send", "udp", "--cwnd-interval", "1"], "--cwnd-interval is not for it"),
        (["send", "udp", "--gap", "1"], "--gap is not for it"),
        (
            ["send", "pareto", "--to", "1.2.3.4:5", "--duration", "1", "--size", "99"],
            "--pps is missing",
        ),
        (["send", "pareto", "--shape", "1"], "--shape 1"),
        (["send", "web", "--size", "99"], "--size is not for it"),
        (["send", "web", "--model", "http2"], "want surge, requests or webtraf"),
        (["send", "web", "--body", "1,2"], "want 3 numbers"),
        (["send", "web", "--body", "1,2,3"], "share is more than 1"),
        (["send", "web", "--tail", "1000"], "want 2 numbers"),
        (["send", "web", "--tail", "1000,1,1"], "want 2 numbers"),
        (["send", "web", "--model", "webtraf", "--tail", "1000,1"], "--tail 1000,1"),
        (["send", "web", "--objects", "0"], "at least one"),
        (["send", "web", "--pause", "x"], "want 1 or more numbers"),
        (
            ["send", "web", "--to", "1.2.3.4:5", "--duration", "1", "--body", "20,1,1"],
            "--body is not below --tail",
        ),
        (["send", "tcp", "--bogus"], "--bogus"),
        (["send", "tcp", "--to"], "--to"),
    ]
    for args, message in cases:
        run = subprocess.run([ABELOAD, *args], check=False, capture_output=True, text=True)
        equal(run.returncode, 2, f"{args}: exit")
        assert message in run.stderr, f"{args}: {run.stderr!r} lacks {message!r}"
        equal(run.stdout, "", f"{args}: output")
    run = subprocess.run([ABELOAD, "--help"], check=False, capture_output=True, text=True)
    equal((run.returncode, run.stderr), (0, ""), "--help")


def test_failure():
    """failures: exit 1 and a message that names the fault"""
    tcp = str(free_port(socket.SOCK_STREAM))
    cases = [
        (["send", "tcp", "--to", f"127.0.0.1:{tcp}", "--duration", "1"], "Connection refused"),
        (["send", "tcp", "--to", "127.0.0.1:9", "--duration", "1", "--cc", "nonesuch"], "nonesuch"),
        (
            ["send", "web", "--to", f"127.0.0.1:{tcp}", "--duration", "2", "--jitter", "0"],
            "Connection refused",
        ),
        (["recv", "--port", "9999", "--duration", "0.01", "--json", "/nonesuch/x"], "/nonesuch/x"),
    ]
    for args, message in cases:
        run = subprocess.run([ABELOAD, *args], check=False, capture_output=True, text=True)
        equal(run.returncode, 1, f"{args}: exit")
        assert message in run.stderr, f"{args}: {run.stderr!r} lacks {message!r}"


def main():
    global ABELOAD
    if len(sys.argv) > 1:
        ABELOAD = sys.argv[1]
    tests = [v for k, v in globals().items() if k.startswith("test_")]
    print(f"1..{len(tests)}")
    failed = 0
    for i, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {i} - abeload {test.__doc__}", flush=True)
        except (AssertionError, RuntimeError, subprocess.CalledProcessError, IndexError) as e:
            failed += 1
            print(f"not ok {i} - abeload {test.__doc__}\n# {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
