# SPDX-License-Identifier: GPL-2.0
"""Rates of CCIDs 4 and 248 at configured drop rates, beside the tables of [VOIP05] 7.1 and 7.2.

Round-trip time 240 ms, eight flows or more at once, each with losses of its own: a
Bernoulli channel in the data's direction, no queue. A rate counts what is sent,
with 32 bytes of headers a packet, as the tables do; here it is what arrives,
divided by 1 - p.

The gates were chosen beforehand: 20 % up to p = 0.2 for CCID 4 and to p = 0.1
for 248. The tables come from ns-2, whose TCP had a coarse retransmission timer
in the equation, so above that they are no yardstick and are only reported.

The short form has a point where CCID 4 does not notice the loss rate (14 bytes), one where it
does, and one on the slope of CCID 248 (200 bytes).
"""

import json
import subprocess

import dccp
from lib import LONG, Net, Tap, run

DROP_RATES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.05, 0.066, 0.1, 0.2, 0.3, 0.4, 0.5)
SHORT = {14: {4: (0.1,), 248: ()}, 200: {4: (0.1,), 248: (0.02,)}}
HIGHEST = {4: 0.2, 248: 0.1}
WARM = 10


def flows(net, spec, ccid, size, rate, seconds, warm=0, count=8, options=""):
    """Run dccpload; its report, which has one entry a flow. The losses begin when all are connected."""
    net.fresh("netem limit 100000")
    cmd = f"dccpload -g -s {size} -r {rate} -t {seconds} -w {warm} {options} {ccid} {count}".split()
    with subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        if p.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(cmd)}: no connections")
        net.fresh(spec)
        out, _ = p.communicate("\n")
    return json.loads(out)


def sending_rate(report, p, size):
    """Mean over the flows, kb/s."""
    packets = sum(f["packets"] for f in report["flows"]) / len(report["flows"]) / report["seconds"]
    return packets / (1 - p) * (size + 32) * 8 / 1000


def seconds(ccid, p):
    """Longer where there are fewer packets: the sample should be large enough, but not the work."""
    if p > HIGHEST[ccid]:
        return 40
    if ccid == 4:
        return 30 if p < 0.06 else 60 if p <= 0.1 else 160
    return 60 if p < 0.01 or not LONG else 120 if p < 0.03 else 400


def count(ccid, p):
    """Where RFC 5348 itself is near a gate (the tables' t_RTO is another), eight are too few: one in thirty fails."""
    return 24 if ccid == 248 and 0.05 < p <= HIGHEST[ccid] else 8


def offered(paper, size, rate):
    """What the application offers, packets/s: as in the paper, or else twice what the socket should take."""
    return min(rate, round(2 * paper * 1000 / 8 / (size + 32)) + 5)


def main(size, rate, table):
    """table: the paper's rates by CCID, in the order of DROP_RATES."""
    t = Tap()
    dccp.load()
    run("modprobe dccp_tfrc")
    net = Net(delay=120)
    for ccid, column in table.items():
        for p, paper in zip(DROP_RATES, column, strict=True):
            if not LONG and p not in SHORT[size][ccid]:
                continue
            report = flows(
                net,
                f"netem loss {100 * p}% limit 100000",
                ccid,
                size,
                offered(paper, size, rate),
                seconds(ccid, p),
                WARM,
                count(ccid, p),
            )
            ours = sending_rate(report, p, size)
            text = f"CCID {ccid}, {size} bytes, p = {p}: {ours:.2f} kb/s, paper {paper}, ratio {ours / paper:.2f}"
            if p <= HIGHEST[ccid]:
                t.ok(0.8 <= ours / paper <= 1.2, text)
            else:
                t.note(text)
    net.close()
    t.done()
