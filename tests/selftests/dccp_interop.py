#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Programs that know nothing of CCID 4 carry data over it; tests/host/dccp_interop runs this.

It leaves in /out what was on the wire, and what the kernel says of its reports.
"""

import hashlib
import json
import os
import random
import re
import select
import socket
import struct
import subprocess
import threading
import time

import dccp
from lib import SEED, Net, Tap, run

TRACE = "/sys/kernel/tracing"
DATA = random.Random(SEED).randbytes(64000)
CHUNK = 1000
B = "10.0.2.1"
LISTENER = 5001  # of the transfer that tshark sees

tap = Tap()


class Capture:
    """All DCCP that the router gets, as a pcap file of IP packets."""

    def __init__(self):
        with dccp.netns("r"):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE

    def save(self, path):
        """How many there are."""
        self.sock.setblocking(False)
        n = 0
        with self.sock, open(path, "wb") as f:
            f.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
            while True:
                try:
                    packet, origin = self.sock.recvfrom(4000)
                except BlockingIOError:
                    return n
                if packet[9] == dccp.IPPROTO_DCCP and origin[2] == socket.PACKET_HOST:
                    f.write(struct.pack("=IIII", n, 0, len(packet), len(packet)) + packet)
                    n += 1


def write(path, text):
    with open(f"{TRACE}/{path}", "w", encoding="ascii") as f:
        f.write(text)


def reports():
    """Of the kernel's trace: what receivers reported, oldest first; the trace is empty then."""
    with open(f"{TRACE}/trace", encoding="ascii") as f:
        lines = [line for line in f if " tfrc_report: " in line]
    write("trace", "")
    return [
        {k: int(v) for k, v in re.findall(r"(\w+)=(?:[\d.]+:)?(\d+)\b", line) if k != "sk"}
        for line in lines
    ]


def transfer(name, receiver, sender, port):
    """Run two programs, give the sender the data piece by piece, and look what came."""
    out = f"/tmp/{name}"
    reports()
    with open(out, "wb") as f:
        r = subprocess.Popen(["ip", "netns", "exec", "b", *receiver.split()], stdout=f)
        time.sleep(1)
        s = subprocess.Popen(["ip", "netns", "exec", "a", *sender.split()], stdin=subprocess.PIPE)
        time.sleep(1)  # what it reads at once makes one packet, so it should be connected
        for at in range(0, len(DATA), CHUNK):
            s.stdin.write(DATA[at : at + CHUNK])
            s.stdin.flush()
            time.sleep(0.02)
        time.sleep(1)
        s.stdin.close()
        time.sleep(2)
        status = s.poll(), r.poll()
        for p in (s, r):
            if p.poll() is None:
                p.terminate()
            p.wait()
    with open(out, "rb") as f:
        got = f.read()
    tap.ok(
        hashlib.sha256(got).digest() == hashlib.sha256(DATA).digest(),
        f"{name}: {len(got)} of {len(DATA)} bytes, unchanged",
    )
    tap.ok(set(status) <= {0, None}, f"{name}: exit status", status)
    over_ccid_4(name, port)


def over_ccid_4(name, port):
    seen = {(e["ccid"], e["src"]) for e in reports()}
    tap.ok(
        (4, port) in seen and {c for c, _ in seen} == {4}, f"{name}: CCID 4 received the data", seen
    )


def ditg():
    reports()
    r = subprocess.Popen(
        ["ip", "netns", "exec", "b", "ITGRecv", "-l", "/tmp/recv.log"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(1)
    run(
        f"ITGSend -a {B} -rp 5004 -T DCCP -C 50 -c 172 -z 100 -l /tmp/send.log", ns="a", timeout=200
    )
    time.sleep(2)
    r.terminate()
    r.wait()
    counts = []
    for log in ("send", "recv"):
        text = run(f"ITGDec /tmp/{log}.log").stdout
        counts.append(
            {
                k: int(re.search(rf"{k} += +(\d+)", text)[1])
                for k in ("Total packets", "Bytes received", "Packets dropped")
            }
        )
    expected = {"Total packets": 100, "Bytes received": 100 * 172, "Packets dropped": 0}
    tap.ok(counts == [expected, expected], "d-itg: what was sent arrived", counts)
    over_ccid_4("d-itg", 5004)


def python():
    """Sockets as in the manual: no option of DCCP is set."""

    def receive():
        with server:
            while piece := server.recv(2000):
                got.append(piece)

    reports()
    got = []
    with dccp.netns("b"):
        listener = socket.socket(socket.AF_INET, dccp.SOCK_DCCP, dccp.IPPROTO_DCCP)
    with dccp.netns("a"):
        client = socket.socket(socket.AF_INET, dccp.SOCK_DCCP, dccp.IPPROTO_DCCP)
    listener.bind((B, 5003))
    listener.listen()
    client.connect((B, 5003))
    server, _ = listener.accept()
    out = run("ss -dine", ns="a").stdout
    tap.ok(
        dccp.ccids(client) == dccp.ccids(server) == (4, 4),
        "Python's sockets: CCID 4 both ways",
        out,
    )
    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    for at in range(0, len(DATA), CHUNK):
        client.send(DATA[at : at + CHUNK])
        time.sleep(0.02)  # the kernel queues five packets and no more
    client.close()
    thread.join()
    listener.close()
    tap.ok(
        b"".join(got) == DATA,
        f"Python's sockets: {len(b''.join(got))} of {len(DATA)} bytes, unchanged",
    )
    over_ccid_4("Python's sockets", 5003)


def lossy(net):
    """For tshark: a transfer with losses."""
    net.fresh("netem loss 5% limit 10000")
    reports()
    capture = Capture()
    with dccp.connection(socket.AF_INET, {}, {}) as (client, server):
        for _ in range(600):
            client.send(bytes(160))
            time.sleep(0.02)
            while select.select([server], [], [], 0)[0]:
                server.recv(2000)
        time.sleep(1)
    packets = capture.save("/out/dccp.pcap")
    found = [e for e in reports() if e["src"] == LISTENER and e["ccid"] == 4]
    tap.ok(
        packets > 600 and found[-1]["events"] > 5,
        f"{packets} packets for tshark, {len(found)} reports, {found[-1]['events']} loss events",
    )
    with open("/out/reports.json", "w", encoding="ascii") as f:
        json.dump(found, f)


def main():
    dccp.load()
    run("modprobe dccp_tfrc")
    net = Net(delay=20)
    run("sysctl -qw net.dccp.default.tx_ccid=4 net.dccp.default.rx_ccid=4")
    write("buffer_size_kb", "16384")
    write("events/dccp_tfrc/tfrc_report/enable", "1")
    transfer("netcat", f"nc.openbsd -Z -l {B} 5002", f"nc.openbsd -Z -N {B} 5002", 5002)
    transfer(
        "socat",
        f"socat -u TCP4-LISTEN:5005,bind={B},type=6,prototype=33 STDOUT",
        f"socat -u -b {CHUNK} STDIN TCP4-CONNECT:{B}:5005,type=6,prototype=33",
        5005,
    )
    ditg()
    python()
    lossy(net)
    net.close()
    tap.done()


if __name__ == "__main__":
    os.makedirs("/out", exist_ok=True)
    main()
