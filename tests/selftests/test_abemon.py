#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""abemon: what it shows against what tc says, what comes and goes, its view, its cost.

While a queue stands still, tc and abemon have to say the same of it. The view is read
from a pseudo-terminal by a small model of a screen.
"""

import contextlib
import csv
import fcntl
import itertools
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

import lib
from lib import qdisc, run
from wire import Port, kernel_log, unload

GREEN = 46
# The options that are no figures.
NO_FIGURES = {"green_dscp", "green_mark", "seed"}


def gone(port):
    run(f"ip link del {port.name}")
    for sock in port.sockets.values():
        sock.close()


def abemon(*args):
    return run(["abemon", *map(str, args)], check=False)


def readings(*args):
    return [json.loads(line) for line in abemon("--json", *args).stdout.splitlines()]


def test_usage(t):
    """Each mistake is one line, which names what is wrong."""
    for args, status, words in (
        ((), 1, "no device has the qdisc abe"),
        (("nodev",), 1, "nodev: no such device"),
        (("lo",), 1, "lo: no qdisc there is abe"),
        (("--interval", "9ms"), 2, "--interval 9ms: want a time from 10ms to 10s"),
        (("--interval", "11s"), 2, "--interval 11s: want"),
        (("--interval", "1"), 2, "--interval 1: want"),
        (("--interval", "nans"), 2, "--interval nans: want"),
        (("--interval", ""), 2, "--interval : want"),
        (("--count", "0"), 2, "--count 0: want"),
        (("--count",), 2, "--count: its value is missing"),
        (("lo", "--no"), 2, "--no: unknown option"),
        (("--json", "--csv"), 2, "--json and --csv exclude each other"),
        (("--once", "--count", "2"), 2, "--once and --count"),
        (("lo", "-xy"), 2, "-x: unknown option"),
        (("a-name-that-is-too-long",), 2, "a-name-that-is-too-long: want the name of a device"),
        (("",), 2, "want the name of a device"),
    ):
        p = abemon(*args)
        t.ok(
            p.returncode == status
            and not p.stdout
            and p.stderr.startswith("abemon: ")
            and words in p.stderr
            and p.stderr.count("\n") == 1,
            f"{' '.join(args) or 'no abe'}: {status}, {words}",
            p,
        )
    p = abemon("--help")
    t.ok(p.returncode == 0 and p.stdout.startswith("usage: abemon"), "--help", p)


def figures(said):
    """What tc says of a qdisc as abemon does."""
    said = {k: v for k, v in said.items() if k not in ("root", "refcnt")} | {
        "parent": "root" if said.get("root") else said["parent"],
        "options": {k: v for k, v in said["options"].items() if k not in NO_FIGURES},
    }
    return said


def differ(a, b, path=""):
    """The paths at which two objects are not the same.

    tc's plugin writes the shortest number that is the same in fixed point.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        return [
            x
            for k in sorted(a.keys() | b.keys())
            for x in differ(a.get(k), b.get(k), f"{path}.{k}")
        ]
    if isinstance(a, float) or isinstance(b, float):
        same = None not in (a, b) and abs(a - b) <= 1e-5 * abs(a) + 1e-9
    else:
        same = a == b
    return [] if same else [f"{path}: {a!r} {b!r}"]


def as_tc_says(said):
    """Without what tc does not say."""
    said = {k: v for k, v in said.items() if k != "dev"}
    for colour in ("green", "blue"):
        said[colour] = {k: v for k, v in said[colour].items() if k != "delay_sum"}
    return said


def flat(said):
    """The columns of --csv of what --json says."""
    row = {k: v for k, v in said.items() if not isinstance(v, dict) and k != "kind"}
    for colour in ("green", "blue"):
        for key, value in said[colour].items():
            if key == "sojourn":
                row |= {f"{colour}_{key}_{i}": n for i, n in enumerate(value)}
            else:
                row[f"{colour}_{key}"] = value
    return row


def many(n):
    """So many devices with abe, m0 and so on."""
    lib.ip(*(f"link add m{i} up type dummy" for i in range(n)))
    text = "".join(f"qdisc add dev m{i} root abe\n" for i in range(n))
    run("tc -batch -", input=text)


class Server:
    """abemon --prometheus in the background."""

    def __init__(self, *args, port=9187, addr="127.0.0.1", command=("abemon",)):
        self.address = (addr, port)
        where = f"[{addr}]" if ":" in addr else addr
        self.process = subprocess.Popen(
            [*command, "--prometheus", f"{where}:{port}", *args], stderr=subprocess.PIPE, text=True
        )
        for _ in range(600):  # valgrind takes some seconds
            with contextlib.suppress(ConnectionRefusedError):
                self.connect().close()
                return
            time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"nobody listens: {self.process.stderr.read()}")

    def connect(self):
        return socket.create_connection(self.address, timeout=30)

    def ask(self, request):
        """The bytes of an answer to these bytes."""
        with self.connect() as s:
            s.sendall(request)
            return b"".join(iter(lambda: s.recv(65536), b""))

    def get(self, path="/metrics", accept="application/openmetrics-text", method="GET"):
        """Status, headers and text."""
        answer = self.ask(
            f"{method} {path} HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n".encode()
        )
        head, _, text = answer.decode().partition("\r\n\r\n")
        status, *fields = head.split("\r\n")
        headers = {k.lower(): v for k, _, v in (f.partition(": ") for f in fields)}
        return int(status.split()[1]), headers, text

    def scrape(self):
        """Samples by name and labels."""
        _, _, text = self.get()
        samples = {}
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()
            key = name, tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))
            if key in samples:
                raise RuntimeError(f"twice: {line}")
            samples[key] = float(value)
        return samples

    def end(self):
        self.process.terminate()
        self.process.stderr.close()
        return self.process.wait(timeout=10)


# Samples of a qdisc and of a colour, by the keys of --json.
OF_QDISC = {
    "abe_alpha": ("alpha", 1),
    "abe_offset_seconds": ("offset", 1e-6),
    "abe_probability_ratio": ("probability", 1),
    "abe_updates_total": ("updates", 1),
    "abe_drain_rate_bytes_per_second": ("drain_rate", 1),
    "abe_limit_bytes": ("limit_bytes", 1),
    "abe_memory_used_bytes": ("memory_used", 1),
}
OF_COLOUR = {
    "abe_arrived_packets_total": ("arrived", 1),
    "abe_sent_packets_total": ("sent", 1),
    "abe_sent_bytes_total": ("bytes", 1),
    "abe_queued_packets": ("qlen", 1),
    "abe_queued_bytes": ("backlog", 1),
    "abe_marked_packets_total": ("marks", 1),
    "abe_delay_seconds_total": ("delay_sum", 1e-6),
    "abe_delay_max_seconds": ("delay_max", 1e-6),
}


def wrong_samples(samples, said):
    """Those that --json says otherwise."""
    ids = {"device": said["dev"], "handle": said["handle"], "parent": said["parent"]}
    want = {}

    def add(name, value, **labels):
        want[name, tuple(sorted((ids | labels).items()))] = value

    for name, (key, scale) in OF_QDISC.items():
        if key in said:
            add(name, said[key] * scale)
    amount = "packets" if said["options"]["unit"] == "packets" else "bytes"
    add(f"abe_average_queue_{amount}", said["average"])
    for colour in ("green", "blue"):
        c = said[colour]
        for name, (key, scale) in OF_COLOUR.items():
            add(name, c[key] * scale, colour=colour)
        for stage in ("early", "late", "limit"):
            add("abe_lost_packets_total", c[f"{stage}_drops"], colour=colour, stage=stage)
        for i in range(16):
            le = "+Inf" if i == 15 else f"{64e-6 * 2**i:.10g}"
            add("abe_sojourn_seconds_bucket", sum(c["sojourn"][: i + 1]), colour=colour, le=le)
    return [
        (key, value, samples.get(key))
        for key, value in want.items()
        if key not in samples or abs(samples[key] - value) > 1e-6 * value + 1e-9
    ]


def test_frozen(t):
    """The same numbers as tc's, in all three units and with all there is to count."""
    port = Port()
    server = Server()
    for spec in (
        "abe time limit 300ms min 1ms max 2ms ecn",
        "abe bytes limit 20kb green_limit 3kb min 2kb max 9kb weight 0.3 protect off gentle",
        "abe packets limit 20 green_limit 3 min 2 max 9 weight 0.5 loop load spacing geometric flat seed 7",
    ):
        port.fresh(spec)
        for _ in range(30):
            port.send(2, 900, ecn=1)
            port.send(1, 200, GREEN, gap=0.02)
        # until nothing moves between two looks of tc's there is nothing to compare
        for _ in range(20):
            before = qdisc("d0")
            (reading,) = readings("--once", "d0")
            rows = list(csv.DictReader(abemon("--csv", "--once").stdout.splitlines()))
            scraped = server.scrape()
            if not differ(before, qdisc("d0")):
                break
        wrong = differ(figures(before), as_tc_says(reading["qdiscs"][0]))
        t.ok(
            before["green"]["arrived"] + before["blue"]["arrived"] == 90
            and 0 < before["qlen"] < 90
            and before["average"] > 0,
            f"{spec}: there is something to compare",
            before,
        )
        t.ok(not wrong and len(reading["qdiscs"]) == 1, f"{spec}: as tc -s -j", wrong)
        t.ok(abs(reading["time"] - time.time()) < 60, "with the time")
        wrong = wrong_samples(scraped, reading["qdiscs"][0])
        t.ok(not wrong, f"{spec}: a scrape says the same", wrong)
        row = flat(reading["qdiscs"][0])
        got = {k: v for k, v in rows[0].items() if k != "time" and v != ""}
        t.ok(
            len(rows) == 1
            and got.keys() == row.keys()
            and all(
                v == row[k] if isinstance(row[k], str) else float(v) == row[k]
                for k, v in got.items()
            ),
            f"{spec}: --csv as --json",
            (got, row),
        )
    server.end()
    text = abemon("--once").stdout
    t.ok(
        re.search(rf"^green +{before['green']['arrived']} ", text, re.MULTILINE)
        and re.search(rf"^blue +{before['blue']['arrived']} ", text, re.MULTILINE)
        and text.startswith("d0 10: at 1:1"),
        "--once as text has the counts",
        text,
    )
    p = run(["sh", "-c", "abemon --once --json >/dev/full"], check=False)
    t.ok(
        p.returncode == 1 and p.stderr == "abemon: standard output: No space left on device\n",
        "what cannot be written is said",
        p,
    )
    gone(port)


def test_beat(t):
    """--interval and --count; several devices, and DEV."""
    ports = [Port(f"d{i}", f"10.9.{i}") for i in range(3)]
    for port in ports[:2]:
        port.fresh("abe")
    ports[2].fresh("pfifo")
    got = readings("--interval", "10ms", "--count", 50)
    gaps = [b["time"] - a["time"] for a, b in itertools.pairwise(got)]
    t.ok(
        len(got) == 50 and max(abs(gap - 0.01) for gap in gaps) < 0.003,
        "50 readings, 10 ms apart",
        gaps,
    )
    t.ok([q["dev"] for q in got[0]["qdiscs"]] == ["d0", "d1"], "all that are abe", got[0])
    (one,) = readings("--once", "d1")
    t.ok([q["dev"] for q in one["qdiscs"]] == ["d1"], "one device", one)
    run("ip link property add dev d1 altname another-name")
    (one,) = readings("--once", "another-name")
    t.ok([q["dev"] for q in one["qdiscs"]] == ["d1"], "by its other name", one)
    (two,) = readings("--once", "d1", "d0")
    t.ok(len(two["qdiscs"]) == 2, "two devices", two)
    p = abemon("--once", "d0", "d2")
    t.ok(p.returncode == 1 and "d2: no qdisc there is abe" in p.stderr, "and one without", p)
    for port in ports:
        gone(port)


def test_server(t):
    """Scrapes, and clients that are broken, slow or many."""
    for args, status, words in (
        (("--prometheus", "0"), 2, "--prometheus 0: want"),
        (("--prometheus", "65536"), 2, "want PORT"),
        (("--prometheus", "a:9187"), 2, "want PORT"),
        (("--prometheus", "::1:9187"), 2, "want PORT"),
        (("--prometheus", "127.0.0.1:"), 2, "want PORT"),
        (("--prometheus", "10.1.2.3:9187"), 1, "10.1.2.3:9187: Cannot assign requested address"),
        (("--prometheus", "9187", "--json"), 2, "--prometheus goes with"),
        (("--prometheus", "9187", "nodev"), 1, "nodev: no such device"),
    ):
        p = abemon(*args)
        t.ok(
            p.returncode == status and words in p.stderr and p.stderr.count("\n") == 1,
            f"{' '.join(args)}: {status}, {words}",
            p,
        )
    server = Server()
    status, headers, text = server.get()
    t.ok(status == 200 and text.endswith("# EOF\n"), "no abe: a scrape without samples", text)
    ports = [Port(f"d{i}", f"10.9.{i}") for i in range(2)]
    for port in ports:
        port.fresh("abe")
    t.ok(
        {dict(labels)["device"] for _, labels in server.scrape()} == {"d0", "d1"},
        "two of them, which came later",
    )
    t.ok(
        headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "OpenMetrics",
        headers,
    )
    status, headers, text = server.get(accept="*/*")
    t.ok(
        status == 200
        and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        and "# TYPE abe_sent_bytes_total counter\n" in text
        and "EOF" not in text,
        "or the older format",
        headers,
    )
    _, headers, _ = server.get(accept="text/plain\r\naccept: application/openmetrics-text;q=0.9")
    t.ok(
        headers["content-type"].startswith("application/openmetrics-text"),
        "OpenMetrics in the second line of Accept",
        headers,
    )
    t.ok(server.get("/")[0] == 200, "/ says where they are")
    t.ok(server.get("/other")[0] == 404, "another path: 404")
    status, headers, _ = server.get(method="PUT")
    t.ok(status == 405 and headers["allow"] == "GET, HEAD", "another method: 405", headers)
    status, headers, text = server.get(method="HEAD")
    t.ok(status == 200 and not text and int(headers["content-length"]) > 1000, "HEAD", headers)
    p = abemon("--prometheus", "9187")
    t.ok(
        p.returncode == 1 and p.stderr == "abemon: --prometheus 9187: Address already in use\n",
        "the port is taken",
        p,
    )
    for request in (
        b"what?\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        os.urandom(5000) + b"\r\n\r\n",
        b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\n\r\n",
        b"\r\n" * 1000,
    ):
        with contextlib.suppress(ConnectionError):
            server.ask(request)
    t.ok(server.get()[0] == 200, "broken requests do no harm")

    def look(text, seconds):
        began = time.monotonic()
        try:
            status = server.get()[0]
        except OSError as e:
            status = e
        took = time.monotonic() - began
        t.ok(status == 200 and took < seconds, f"{text}: answered in {seconds} s", (status, took))

    silent = [server.connect() for _ in range(150)]
    look("150 who say nothing", 0.5)
    for s in silent:
        s.sendall(b"GET /metrics HTT")
    look("and half of a request", 0.5)
    # one who goes on all the time does not stay longer for that
    began, ended = time.monotonic(), None
    for _ in range(30):
        time.sleep(0.5)
        try:
            silent[0].sendall(b"P")
        except OSError:
            ended = time.monotonic() - began
            break
    t.ok(ended and ended < 13, "who trickles is let go", ended)
    for s in silent:
        s.close()
    silent = [server.connect() for _ in range(400)]
    look("400 who say nothing: when those before have had their time", 25)
    for s in silent:
        s.close()
    # who asks and does not read: the answer of two qdiscs fits into buffers, of many it does not
    many(200)
    deaf = []
    for _ in range(20):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(server.address)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        deaf.append(s)
    look("20 who do not read", 5)
    time.sleep(12)
    fds = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    t.ok(fds < 15, "they are let go, too", fds)
    for s in deaf:
        s.close()
    lib.ip(*(f"link del m{i}" for i in range(200)))
    t.ok(server.end() == -signal.SIGTERM, "SIGTERM ends it")
    server = Server("d1", addr="::1")
    t.ok(
        {dict(labels)["device"] for _, labels in server.scrape()} == {"d1"},
        "one device, on an IPv6 address",
    )
    server.end()
    for port in ports:
        gone(port)


def test_record(t):
    """What is recorded is what was seen, and the same when it is replayed."""
    port = Port()
    port.fresh("abe packets limit 40 green_limit 5 min 5 max 15", "open")
    port.batch("qdisc change dev d0 root handle 1: tbf rate 400kbit burst 1514 limit 1000000")
    screen = Screen(["abemon", "--record", "/tmp/record", "--interval", "250ms"], 26, 90)
    for _ in range(60):
        port.send(2, 1000)
        port.send(1, 200, GREEN, gap=0.05)
    screen.watch(0.6)
    shown = screen.text()
    os.write(screen.master, b"q")
    screen.process.wait(timeout=10)
    screen.close()
    with open("/tmp/record", encoding="utf-8") as f:
        lines = f.readlines()
    t.ok(
        len(lines) > 10 and json.loads(lines[-1])["qdiscs"][0]["blue"]["sent"] == 120,
        "a recording beside the view",
        len(lines),
    )
    blue = json.loads(lines[-1])["qdiscs"][0]["blue"]
    t.ok(
        abs(blue["delay_sum"] - blue["delay_mean"] * 120) < 1 and blue["delay_max"] > 0,
        "delays are summed up",
        blue,
    )
    again = abemon("--replay", "/tmp/record", "--json").stdout.splitlines(keepends=True)
    t.ok(again == lines, "as JSON it is the same again")
    rows = list(csv.DictReader(abemon("--csv", "--replay", "/tmp/record").stdout.splitlines()))
    t.ok(
        len(rows) == len(lines) and rows[-1]["blue_sent"] == "120", "as a table it has a line each"
    )
    t.ok(
        not abemon("--replay", "/tmp/record", "--json", "d1").stdout.count('"dev"'),
        "of another device nothing",
    )
    t.ok("\ngreen" in abemon("--replay", "/tmp/record").stdout, "as text")
    screen = Screen(["abemon", "--replay", "/tmp/record", "--speed", "10"], 26, 90)
    began = time.monotonic()
    while "the end" not in screen.text() and time.monotonic() - began < 10:
        screen.watch(0.05)
    took = time.monotonic() - began
    screen.watch(0.3)
    # the notice takes a line; curves begin with whole slots
    lines = screen.lines()[1:]
    t.ok(0.2 < took < 1, f"on a terminal, ten times as fast: {took:.2f} s for 3.6")
    t.ok(
        [x for x in lines if x.startswith(("green", "blue"))]
        == [x for x in shown.splitlines() if x.startswith(("green", "blue"))],
        "the view is the same",
        "\n".join([*lines, shown]),
    )
    os.write(screen.master, b"q")
    t.ok(screen.process.wait(timeout=10) == 0, "q ends it")
    screen.close()
    for args, status, words in (
        (("--replay", "/tmp/none"), 1, "/tmp/none: No such file"),
        (("--replay", "/tmp/record", "--json", "d1"), 1, "no qdisc abe on such a device"),
        (("--replay", "/dev/null"), 1, "/dev/null: nothing is in it"),
        (("--replay", sys.executable), 1, f"{sys.executable}, line 1: not of abemon"),
        (("--replay", "/tmp/record", "--interval", "1s"), 2, "--replay does not go with"),
        (("--speed", "2"), 2, "--speed is for --replay"),
        (("--replay", "/tmp/record", "--speed", "0"), 2, "--speed 0: want"),
        (("--record", "/none/file"), 1, "/none/file: No such file"),
        (("--record", "/dev/full"), 1, "/dev/full: No space left on device"),
        (("--advise", "10mbit", "--once"), 2, "--advise stands alone"),
        (("--advise", "10"), 2, "want a rate from 64kbit to 400gbit"),
        (("--advise", "10mbit", "11s"), 2, "want a time from 1us to 10s"),
        (("--advise", "10mbit", "1s", "a;b"), 2, "want the name of a device"),
    ):
        p = abemon(*args)
        t.ok(
            p.returncode == status and words in p.stderr and p.stderr.count("\n") == 1,
            f"{' '.join(args)}: {status}, {words}",
            p,
        )
    os.mkfifo("/tmp/pipe")
    screen = Screen(["abemon", "--replay", "/tmp/pipe"], 26, 90)
    with open("/tmp/pipe", "w", encoding="utf-8") as f:
        f.write("".join(again[:2]))
        f.flush()
        screen.watch(1)
        t.ok(screen.text().startswith("d0 10:"), "a pipe", screen.text())
        os.write(screen.master, b"q")
        screen.watch(1)
        t.ok(screen.process.poll() == 0, "which has nothing more to say: q ends it")
    screen.close()
    server = Server("--replay", "/tmp/record")
    got = [server.get() for _ in range(len(again) + 1)]
    sent = [
        re.search(r'abe_sent_packets_total\{.*colour="blue"\} (\d+)', text)[1]
        for _, _, text in got[:-1]
    ]
    t.ok(
        sent == [str(json.loads(x)["qdiscs"][0]["blue"]["sent"]) for x in again],
        "served, each scrape is the next reading",
        sent,
    )
    t.ok(got[-1][0] == 503 and "come to its end" in got[-1][2], "and then there is none", got[-1])
    server.end()
    gone(port)


class Watch:
    """abemon --json in the background."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            ["abemon", "--json", "--interval", "100ms", *args], stdout=subprocess.PIPE, text=True
        )

    def next(self):
        """A reading of what is there now."""
        now = time.time()
        for line in self.process.stdout:
            reading = json.loads(line)
            if reading["time"] > now:
                return reading["qdiscs"]
        return None

    def end(self):
        self.process.terminate()
        self.process.stdout.close()
        return self.process.wait()


def test_changes(t):
    """It goes on while the qdisc goes, changes its kind, or its device or module does."""
    port = Port()
    port.fresh("abe")
    watch = Watch("d0")
    t.ok(len(watch.next()) == 1, "there")
    port.batch("qdisc del dev d0 root")
    t.ok(watch.next() == [], "the qdisc is deleted")
    port.fresh("pfifo")
    t.ok(watch.next() == [], "another one takes its place")
    port.fresh("abe packets")
    t.ok([q["options"]["unit"] for q in watch.next()] == ["packets"], "and abe that one's")
    gone(port)
    t.ok(watch.next() == [], "the device goes")
    unload(t, "the module goes")
    run("modprobe sch_abe")
    port = Port()
    port.fresh("abe")
    t.ok(len(watch.next()) == 1, "the module is another one, and so is the device")
    run("ip link set d0 down")
    run("ip link set d0 name d9")
    t.ok(watch.next() == [], "it is renamed")
    run("ip link set d9 name d0")
    t.ok(len(watch.next()) == 1, "and again")
    t.ok(watch.end() == -signal.SIGTERM, "SIGTERM ends it")
    gone(port)

    run("ip netns add gone")
    run("ip link add d0 type dummy", ns="gone")
    run("tc qdisc add dev d0 root abe", ns="gone")
    p = subprocess.Popen(
        lib.in_ns("gone", "abemon --json --interval 100ms --count 20"),
        stdout=subprocess.PIPE,
        text=True,
    )
    first = json.loads(p.stdout.readline())
    run("ip netns del gone")
    out, _ = p.communicate(timeout=60)
    t.ok(
        len(first["qdiscs"]) == 1 and p.returncode == 0 and len(out.splitlines()) == 19,
        "the namespace is deleted: its last reader comes to its end",
        (first, p.returncode),
    )


class Screen:
    """A program on a pseudo-terminal, and what it has drawn there."""

    def __init__(self, command, rows, columns, owned=True):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.seen = 0
        self.master, terminal = pty.openpty()
        self.resize(rows, columns)
        self.terminal = os.ttyname(terminal)
        self.before = termios.tcgetattr(terminal)
        self.process = subprocess.Popen(
            ["setsid", *["-c"] * owned, *command],  # owned: its controlling terminal
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
        self.kept = terminal  # so that its settings can be read

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def watch(self, seconds):
        """Draw what comes in that time; returns the bytes."""
        end, data = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    data += os.read(self.master, 65536)
                except OSError:  # the other side is closed
                    break
        self.draw(data.decode())
        return data

    def draw(self, text):
        for code, args, final, char in re.findall(r"(\033\[([?0-9;]*)([A-Za-z]))|(.|\n)", text):
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self.row = min(self.row + 1, self.rows - 1)
            elif char:
                if self.column >= self.columns:
                    raise RuntimeError(f"beyond the last column: {char!r}")
                self.cells[self.row][self.column] = char
                self.column += 1
            elif final == "H":
                self.row, self.column = (int(x) - 1 for x in args.split(";"))
            elif final == "K":
                # behind the last column a terminal is still in it
                column = min(self.column, self.columns - 1)
                self.cells[self.row][column:] = [" "] * (self.columns - column)
            elif final == "J":
                self.cells = [[" "] * self.columns for _ in range(self.rows)]
            elif final not in "hl":
                raise RuntimeError(f"what is {code!r}?")

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())

    def close(self):
        os.close(self.kept)
        with contextlib.suppress(OSError):
            os.close(self.master)


def test_view(t):
    """The view: its figures, its size, what it sends, its end."""
    port = Port()
    port.fresh("abe packets limit 40 green_limit 5 min 5 max 15", "open")
    screen = Screen(["abemon", "d0"], 24, 90)
    screen.watch(1.5)
    for _ in range(120):  # for 6 s: 20 green and 40 blue packets a second
        port.send(2, 1000)
        port.send(1, 200, GREEN, gap=0.05)
    screen.watch(0.2)
    lines = screen.lines()
    t.note(screen.text())
    t.ok(lines[0].startswith("d0 10: at 1:1"), "its head", lines[0])
    rates = {}
    for line in lines:
        words = line.split()
        if words[:1] in (["green"], ["blue"]) and len(words) > 9:
            rates[words[0]] = (float(words[1]), float(words[2]) * (1000 if words[3] == "k" else 1))
    for colour, packets, size in (("green", 20, 200), ("blue", 40, 1000)):
        got = rates.get(colour, (0, 0))
        t.ok(
            abs(got[0] / packets - 1) < 0.15 and abs(got[1] / (packets * size * 8) - 1) < 0.15,
            f"{colour}: {packets} packets/s, {packets * size * 8} bit/s",
            got,
        )
    t.ok(re.search(r"^alpha  #+", screen.text(), re.MULTILINE), "curves", screen.text())
    screen.watch(3)
    data = screen.watch(4)
    t.ok(len(data) < 4 * 400, f"idle, it sends less than 400 bytes a second: {len(data) / 4:.0f}")
    screen.resize(12, 50)
    screen.rows, screen.columns = 12, 50
    screen.watch(2)
    t.ok(
        screen.lines()[0].startswith("d0 10: at 1:1") and any("alpha" in x for x in screen.lines()),
        "a smaller window",
        screen.text(),
    )
    raw = termios.tcgetattr(screen.kept)
    os.write(screen.master, b"q")
    data = screen.watch(1)
    status = screen.process.wait(timeout=10)
    t.ok(
        status == 0
        and raw[3] & termios.ECHO == 0
        and termios.tcgetattr(screen.kept) == screen.before,
        "q ends it, and the terminal is as it was",
        status,
    )
    t.ok(data.endswith(b"\033[?25h\033[?1049l"), "its cursor and its text, too", data)
    screen.close()

    for sig in (signal.SIGTERM, signal.SIGINT):
        screen = Screen(["abemon"], 24, 80)
        screen.watch(0.5)
        screen.process.send_signal(sig)
        data = screen.watch(0.5)
        t.ok(
            screen.process.wait(timeout=10) == -sig
            and data.endswith(b"\033[?1049l")
            and termios.tcgetattr(screen.kept) == screen.before,
            f"so does {sig.name}, and says so",
            screen.process.returncode,
        )
        screen.close()
    for owned in (True, False):
        screen = Screen(["abemon"], 24, 80, owned)
        screen.watch(0.5)
        os.close(screen.kept)
        os.close(screen.master)
        status = screen.process.wait(timeout=15)
        t.ok(
            status == -signal.SIGHUP if owned else status in (0, 1),
            f"the terminal is closed, {'with SIGHUP' if owned else 'and nobody says so'}: it ends",
            status,
        )

    screen = Screen(["abemon"], 24, 80)
    screen.watch(1.5)
    os.write(screen.master, b"\x1a")
    t.ok(screen.watch(2), "Ctrl-Z does not stop it")
    screen.process.send_signal(signal.SIGSTOP)
    screen.watch(0.5)
    termios.tcsetattr(screen.kept, termios.TCSANOW, screen.before)
    screen.process.send_signal(signal.SIGCONT)
    t.ok(b"d0 10:" in screen.watch(1.5), "SIGSTOP does, and SIGCONT draws it anew")
    os.write(screen.master, b"\x13")
    t.ok(screen.watch(2), "Ctrl-S does not stop it either")
    for _ in range(100):
        screen.process.send_signal(signal.SIGWINCH)
        time.sleep(0.01)
    screen.process.terminate()
    t.ok(
        screen.process.wait(timeout=10) == -signal.SIGTERM
        and termios.tcgetattr(screen.kept) == screen.before,
        "while nobody reads what it writes it ends, too",
        screen.process.returncode,
    )
    screen.close()

    screen = Screen(["abemon"], 24, 80)
    screen.watch(0.5)
    port.batch("qdisc del dev d0 root")
    screen.watch(2.5)
    t.ok("waiting" in screen.lines()[0], "the qdisc goes: it waits", screen.text())
    port.fresh("abe", "open")
    screen.watch(1.5)
    t.ok(screen.lines()[0].startswith("d0 10:"), "and sees it again", screen.text())
    screen.process.kill()
    screen.process.wait()
    screen.close()
    gone(port)


def test_warnings(t):
    """What is wrong is said: some rules with traffic, all of them in tests/abemon/unit.c."""
    port = Port()
    for spec, send, words in (
        (
            "abe packets limit 12 green_limit 5 min 8 max 11",
            lambda: port.send(60, 1000),
            "! 47 packets found the buffer full",
        ),
        (
            "abe packets limit 200 min 100 max 150",
            lambda: port.send(60, 1000),
            "! no packet has been green",
        ),
        (
            "abe packets limit 200 green_limit 5 min 100 max 150",
            lambda: port.send(60, 1000, GREEN),
            "in the second stage",
        ),
    ):
        port.fresh(spec)
        screen = Screen(["abemon", "d0"], 24, 110)
        screen.watch(1.2)
        send()
        screen.watch(2.2)
        t.ok(words in screen.text(), words, screen.text())
        screen.process.kill()
        screen.process.wait()
        screen.close()
    gone(port)


def seconds_of_dumps(n):
    """What that many dumps of all qdiscs take when nobody looks at them."""
    request = struct.pack("=IHHIIBxxxiIII", 36, 38, 0x301, 1, 0, 0, 0, 0, 0, 0)  # RTM_GETQDISC
    buffer = bytearray(65536)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        start = time.monotonic()
        for _ in range(n):
            s.send(request)
            s.recv_into(buffer)
            while struct.unpack_from("=IH", buffer)[1] != 3:  # NLMSG_DONE
                s.recv_into(buffer)
        return time.monotonic() - start


def test_cost(t):
    """64 qdiscs each 10 ms: most of the time is the kernel's, for writing its numbers out."""
    many(64)
    screen = Screen(["abemon", "--interval", "10ms"], 50, 100)
    screen.watch(2)

    def used():
        with open(f"/proc/{screen.process.pid}/schedstat", encoding="ascii") as f:
            return int(f.read().split()[0]) / 1e9

    before, start = used(), time.monotonic()
    screen.watch(10)
    share = (used() - before) / (time.monotonic() - start)
    (one,) = readings("--once")
    t.ok(len({q["dev"] for q in one["qdiscs"]}) == 64, "all 64 are in a reading", one)
    bare = seconds_of_dumps(100)
    t.ok(
        share < 2 * bare,
        f"64 qdiscs each 10 ms take {100 * share:.1f} % of the CPU's time, and dumps alone {100 * bare:.1f}",
    )
    os.write(screen.master, b"q")
    screen.process.wait(timeout=10)
    screen.close()
    lib.ip(*(f"link del m{i}" for i in range(64)))


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    for test in tests:
        if not sys.argv[1:] or test.__name__ in sys.argv:
            began = time.monotonic()
            test(t)
            t.note(f"{test.__name__}: {time.monotonic() - began:.1f} s")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
