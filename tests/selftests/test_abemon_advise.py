#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: 10 Mb/s, 100 Mb/s, 1 Gb/s and a round trip of 400 ms, and all for longer
"""What `abemon --advise` says is typed, and does what it says.

A call (G.711, green) and TCP, at 1, 10, 100 and 1000 Mb/s: 99 % of the call's packets wait
no longer than the advice says, and the longest one at most a millisecond more; with a
round trip of 40 ms the link carries at least 90 % of RATE, 95 % being what
the shaper lets through, and TCP gets 97 % of what fq_codel gives it below the same shaper.
Of the call 15 % may be lost at 1 Mb/s, of which it is a tenth, and 1 % otherwise; see bare.py.
At 1 Gb/s packets are GSO's, else the VM would be the bottleneck.
"""

import re

import lib
from lib import LONG, Load, Net, Tap, balance, qdisc, run

VOICE = 172
# Mb/s, round trip in ms, seconds in all, seconds left out, TCP flows
SHORT_RUNS = ((1, 40, 40, 15, 4),)
LONG_RUNS = (
    (1, 40, 60, 15, 4),
    (10, 40, 60, 20, 8),
    (10, 400, 100, 40, 8),
    (100, 40, 12, 5, 8),
    (1000, 40, 22, 14, 8),  # until the link is full it takes longer than with fq_codel: bare.py
)


def advice(*words):
    said = run(["abemon", "--advise", *map(str, words)]).stdout
    return said, [line for line in said.splitlines() if not line.startswith("#")]


def traffic(seconds, warmup, flows):
    """What the link carried in a second, what TCP had of it, and the call."""
    with Load(seconds, warmup=warmup) as load:
        load.udp(pps=50, size=VOICE, dscp=46, id=1)
        load.tcp(flows=flows, id=10)
    (voice,) = load.report["udp"]
    # the sink is there for a second more than the sources
    tcp = sum(8 * f["bytes"] for f in load.report["tcp"]) / (seconds - warmup)
    return tcp * 1514 / 1448 + 50 * 8 * (VOICE + 42), tcp, voice


def speed(tap, mbit, rtt, seconds, warmup, flows):
    name = f"{mbit} Mb/s, {rtt} ms"
    net = Net(delay=rtt / 2, offload=mbit >= 1000)
    said, lines = advice(f"{mbit}mbit", f"{rtt}ms")
    # twice, as who takes less does
    run(["sh", "-e"], ns="r", input=advice("2mbit")[0].replace("dev DEV", "dev out"))
    p = run(["sh", "-e"], ns="r", input=said.replace("dev DEV", "dev out"))
    tap.ok(p.returncode == 0 and not p.stderr and len(lines) == 4, f"{name}: a shell takes it", p)
    carried, goodput, voice = traffic(seconds, warmup, flows)
    q = qdisc("out", "r")
    bound = float(re.search(r"Green packets wait ([0-9.]+) ms", said)[1])
    wait = voice["delay_us"]["p99"] / 1e3 - rtt / 2
    run("tc qdisc replace dev out parent 1:1 fq_codel", ns="r")
    _, other, _ = traffic(seconds, warmup, flows)
    tap.note(
        f"{name}: {carried / 1e6:.3f} Mb/s carried, TCP {goodput / 1e6:.3f} (fq_codel {other / 1e6:.3f}); "
        f"call: 99 % wait {wait:.2f} ms ({bound} allowed), the longest {q['green']['delay_max'] / 1e3:.2f}, "
        f"loss {100 * voice['loss']:.2f} %"
    )
    # in 60 s TCP does not fill it at 400 ms, below fq_codel either
    if rtt <= 40:
        tap.ok(carried >= 0.9e6 * mbit, f"{name}: 90 % of the rate are carried", carried)
    tap.ok(goodput >= 0.97 * other, f"{name}: TCP has 97 % of fq_codel's", (goodput, other))
    tap.ok(wait <= bound, f"{name}: the call waits {bound} ms at most", voice)
    tap.ok(
        q["green"]["delay_max"] <= 1e3 * bound + 1000,
        f"{name}: also its longest wait, give or take a millisecond",
        q["green"],
    )
    # two standard errors of a loss of 1 %
    error = 2 * (0.01 * 0.99 / voice["packets"]) ** 0.5
    tap.ok(
        voice["loss"] < (0.15 if mbit == 1 else 0.01) + error,
        f"{name}: the call's loss",
        voice,
    )
    tap.ok(not balance(q), f"{name}: books balance", balance(q))
    net.close()


def device(tap):
    """On a device that is as slow as the link there is no shaper; with several queues mq is above."""
    net = Net()
    run("ip link add slow numtxqueues 3 type veth peer name slow2", ns="r")
    run("ip link set slow up", ns="r")
    run("ip link set slow2 up", ns="r")
    p = run(["abemon", "--advise", "10gbit", "20ms", "slow"], check=False)
    tap.ok(
        p.returncode == 1 and p.stderr == "abemon: slow: no such device\n",
        "not of this namespace",
        p,
    )
    p = run(["ip", "netns", "exec", "r", "abemon", "--advise", "10gbit", "20ms", "slow"])
    lines = [line for line in p.stdout.splitlines() if not line.startswith("#")]
    tap.note(p.stdout)
    tap.ok(len(lines) == 5 and "htb" not in p.stdout, "three queues: mq and three", lines)
    run(["sh", "-e"], ns="r", input=p.stdout)
    p = run(["sh", "-e"], ns="r", input=p.stdout)  # again, in the place of itself
    kinds = [q["kind"] for q in lib.qdiscs("slow", "r")]
    tap.ok(
        not p.stderr and kinds.count("abe") == 3 and "mq" in kinds, "a shell takes it", (p, kinds)
    )
    net.close()


def main():
    tap = Tap()
    run("modprobe sch_abe")
    device(tap)
    for args in LONG_RUNS if LONG else SHORT_RUNS:
        speed(tap, *args)
    tap.done()


if __name__ == "__main__":
    main()
