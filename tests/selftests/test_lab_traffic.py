#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: only
"""The lab's traffic and its instruments against theory, tc and each other.

Bounds on estimates are five standard deviations; time is virtual, so that a
test that passes once passes always.
"""

import itertools
import json
import math
import os
import subprocess
import time

import lib
from lib import finish, in_ns, run, start
from wire import kernel_log

SIGMAS = 5
RATE = 2_000_000  # bit/s of the bottleneck


def report(path):
    with open(path, encoding="ascii") as f:
        return json.load(f)


def table(path):
    """Rows of a file of abesample, as dictionaries of text."""
    with open(path, encoding="ascii") as f:
        head, *rows = (line.rstrip("\n").split(",") for line in f)
    return [dict(zip(head, row, strict=True)) for row in rows]


def share(t, values, above, p, text):
    """The share of values above a quantile of theory."""
    n = len(values)
    got = sum(v > above for v in values) / n
    deviation = math.sqrt(p * (1 - p) / n)
    t.ok(
        abs(got - p) <= SIGMAS * deviation,
        f"{text}: {got:.4f} of {n} above {above:.6g}, in theory {p:.4f} +- {deviation:.4f}",
    )


def fast(seconds, *senders, recv=""):
    """Traffic inside of namespace a, no bottleneck; the sink's report and the sources'."""
    sink = start(
        f"abeload recv --port 5000 --web-port 5003 --duration {seconds + 0.6} --json /tmp/recv {recv}",
        "a",
    )
    sources = [
        subprocess.Popen(in_ns("a", f"abeload send {s} --duration {seconds} --json /tmp/sent{i}"))
        for i, s in enumerate(senders)
    ]
    for p in sources:
        if p.wait():
            raise RuntimeError(p.args)
    finish(sink)
    return report("/tmp/recv"), [report(f"/tmp/sent{i}") for i in range(len(senders))]


def bursts_of(raw, gap):
    """(packets of each burst, silence after each but the last), s."""
    counts, silences, n = [], [], 1
    for a, b in itertools.pairwise(raw["sent_us"]):
        if b - a > 1.5e6 * gap:
            counts.append(n)
            silences.append((b - a) / 1e6 - gap)
            n = 1
        else:
            n += 1
    return counts, silences


def test_pareto(t):
    to, pps = "pareto --to 127.0.0.1:5000 --size 40", 100
    got, _ = fast(20, f"{to} --pps {pps} --flows 20 --on 0.1 --off 0.2", recv="--raw")
    counts, silences = [], []
    for f in got["udp"]:
        c, s = bursts_of(f["raw"], 1 / pps)
        counts += c[1:]
        silences += s
    least = 0.2 / 3  # mean (shape - 1) / shape
    t.ok(min(silences) > least - 1e-3, "pareto: no OFF time below the least", min(silences))
    for p in (0.5, 0.1, 0.02):
        share(t, silences, least * p ** (-1 / 1.5), p, "pareto: OFF times")
    # so many packets more than x / gap: the ON time is that, by half a gap more in the middle
    for x in (0.06, 0.16):
        share(
            t, [n / pps for n in counts], x, (0.1 / 3 / (x + 0.5 / pps)) ** 1.5, "pareto: ON times"
        )
    senders = [
        f"{to} --pps 200 --flows 20 --on 0.05 --off 0.1 --shape 5 --seed {seed}"
        for seed in (1, 1, 2)
    ]
    sent = [[f["sent"] for f in fast(5, s)[1][0]["pareto"]] for s in senders]
    rate = sum(sent[0]) / 20 / 5
    t.ok(
        abs(rate / 200 * 3 - 1) < 0.05,
        f"pareto: mean rate {rate:.1f} packets/s a flow, in theory 66.7",
    )
    t.ok(sent[0] == sent[1] != sent[2], "pareto: the seed decides", sent)


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def by_user(files):
    users = {}
    for flow, *file in files:
        users.setdefault(flow, []).append(file)
    return users


def test_web(t):
    web = "web --to 127.0.0.1:5003 --size-max 1000000"
    got, (sent,) = fast(
        6, f"{web} --flows 40 --pause 0.05,1.5 --cc reno --seed 3", recv="--series 1"
    )
    files = sent["files"]
    sizes = [f[1] for f in files]
    whole = phi((math.log(133000) - 9.357) / 1.318)
    for z in (-1, 0, 1):
        share(t, sizes, math.exp(9.357 + z * 1.318), 1 - 0.93 * phi(z) / whole, "web: sizes, body")
    for factor in (1, 2, 4):
        share(t, sizes, 133000 * factor - 1, 0.07 * factor**-1.1, "web: sizes, tail")
    t.ok(min(sizes) >= 8 and max(sizes) == 1000000, "web: --size-max", (min(sizes), max(sizes)))
    pages = sum(u["pages"] for u in sent["web"])
    mean = sum(n**-2.43 for n in range(1, 10000))
    deviation = math.sqrt(
        sum((2 * n - 1) * n**-2.43 for n in range(1, 10000)) - mean**2
    ) / math.sqrt(pages)
    t.ok(
        abs(len(files) / pages - mean) < SIGMAS * deviation + 40 / pages,
        f"web: {len(files) / pages:.3f} files a page, in theory {mean:.3f} +- {deviation:.3f}",
    )
    overlap, short = 0, 0
    pauses = []
    for user in by_user(files).values():
        for (_, _, end), (_, begin, _) in itertools.pairwise(user):
            overlap += begin < end
            if begin - end > 0.01:
                pauses.append(begin - end)
                short += begin - end < 0.049
    t.ok(not overlap, "web: one file after the other", overlap)
    t.ok(not short, "web: no pause below the least", short)
    share(t, pauses, 0.05 * 2 ** (1 / 1.5) + 1e-4, 0.5, "web: pauses")
    done = [f for f in files if f[3]]
    t.ok(
        sum(f["files"] for f in got["web"]) == len(done) and len(done) > 1000,
        "web: the sink saw as many files end",
        (len(done), [f["files"] for f in got["web"]]),
    )
    t.ok(sum(f["bytes"] for f in got["web"]) >= sum(f[1] for f in done), "web: and all their bytes")
    t.ok(all(sum(f["series"]) == f["bytes"] for f in got["web"]), "web: series")
    slow = fast(1, f"{web} --flows 40 --pause 0.2,1.5 --seed 3")[1][0]["files"]
    first, second = by_user(files), by_user(slow)
    # whoever has other pauses does the same otherwise
    t.ok(
        all(
            [f[0] for f in user][:3] == [f[0] for f in first[flow]][: len(user[:3])]
            for flow, user in second.items()
        ),
        "web: the seed decides on sizes",
    )
    files = fast(1, "web --to 127.0.0.1:5003 --model requests --flows 40 --pause 0.05,1.5")[1][0][
        "files"
    ]
    share(t, [f[1] for f in files], 2000, 0.5, "web, requests: sizes")
    share(t, [f[1] for f in files], 10000, 0.1, "web, requests: sizes")
    files = fast(
        2, "web --to 127.0.0.1:5003 --model webtraf --flows 20 --size-max 100000 --pause 0.2"
    )[1][0]
    share(t, [f[1] for f in files["files"]], 4380, 2**-1.05, "webtraf: sizes")
    share(t, [f[1] for f in files["files"]], 4380 * 9, 10**-1.05, "webtraf: sizes")
    begun = sum(u["pages"] for u in files["web"])
    t.ok(
        9 * begun < len(files["files"]) <= 10 * begun,
        "webtraf: ten files a page",
        (begun, len(files["files"])),
    )


def test_windows(t):
    """rtp-window and spread-window against what raw data say."""
    got, _ = fast(
        3,
        "udp --to 127.0.0.1:5000 --size 100 --pps 64 --poisson",
        "pareto --to 127.0.0.1:5000 --size 500 --pps 2000 --on 0.05 --off 0.1 --id 5",
        recv="--raw --rtp-window 0.25 --spread-window 1 --series 0.5",
    )
    f = got["udp"][0]
    raw = f["raw"]
    jitter, last, most, spreads = 0.0, None, {}, {}
    for sent, delay in zip(raw["sent_us"], raw["delay_us"], strict=True):
        jitter += (abs(delay - last if last is not None else 0) - jitter) / 16
        last = delay
        most.setdefault(int((sent + delay) / 250e3), []).append(jitter)
        spreads.setdefault(int((sent + delay) / 1e6), []).append(delay)
    wrong = [
        (w, v)
        for w, v in enumerate(f["rtp_jitter_us"])
        if abs((v or 0) - max(most.get(w, [0]))) > 0.2
    ]
    t.ok(
        len(f["rtp_jitter_us"]) == 14 and not wrong, "rtp-window: the largest jitter of each", wrong
    )
    wrong = []
    for w, v in enumerate(f["spread_us"]):
        d = sorted(spreads.get(w, []))
        want = d[math.ceil(0.95 * len(d)) - 1] - d[math.ceil(0.05 * len(d)) - 1]
        if abs(v - want) > 0.3:
            wrong.append((w, v, want))
    t.ok(len(f["spread_us"]) == 3 and not wrong, "spread-window: 95th less 5th percentile", wrong)
    counts = [
        100
        * sum(int((s + d) / 5e5) == w for s, d in zip(raw["sent_us"], raw["delay_us"], strict=True))
        for w in range(8)
    ]
    t.ok(
        f["series"] == counts and sum(counts) == f["bytes"],
        "series: bytes by time of arrival",
        (f["series"], counts),
    )


def test_tcp(t, net):
    """Congestion windows and series of two flows through a bottleneck."""
    net.fresh("bfifo limit 30000")
    sink = start(
        "abeload recv --tcp-port 5001 --duration 12 --warmup 2 --series 1 --json /tmp/recv", "b"
    )
    run(
        "abeload send tcp --to 10.0.2.1:5001 --flows 2 --cc reno --duration 11 --cwnd-interval 0.05 --json /tmp/sent",
        ns="a",
    )
    finish(sink)
    sent, got = report("/tmp/sent"), report("/tmp/recv")
    cwnd = sent["cwnd"]
    rows = cwnd["flows"]
    t.ok(
        cwnd["interval"] == 0.05 and [len(r) for r in rows] == [220, 220],
        "cwnd: a sample each 50 ms",
        [len(r) for r in rows],
    )
    t.ok(
        all(r[0] == 0 and min(r[10:]) >= 1 for r in rows),
        "cwnd: 0 until connected",
        [r[:12] for r in rows],
    )
    settled = [r[60:] for r in rows]
    # bottleneck: 2 x 20 ms, and 15 to 30 kB of queue; reno halves and adds one
    window = sum(sum(r) for r in settled) / len(settled[0])
    low, high = (RATE / 8 * 0.04 + 10000) / 1500, (RATE / 8 * 0.04 + 32000) / 1500
    t.ok(
        low < window < high,
        f"cwnd: together {window:.1f} packets, a full pipe and half a queue are {low:.1f} to {high:.1f}",
    )
    drops = sum(b < 0.8 * a for r in settled for a, b in itertools.pairwise(r))
    steps = sum(0 <= b - a <= 1 for r in settled for a, b in itertools.pairwise(r)) / (
        2 * len(settled[0])
    )
    t.ok(drops >= 4 and steps > 0.75, f"cwnd: saws, {drops} times down", (drops, steps))
    t.ok(
        abs(rows[0][-1] - sent["tcp"][0]["cwnd"]) < 10,
        "cwnd: the last is about TCP_INFO's at the end",
        (rows[0][-1], sent["tcp"][0]),
    )
    series = [f["series"] for f in got["tcp"]]
    t.ok(
        all(sum(s) == f["bytes"] and len(s) == 10 for s, f in zip(series, got["tcp"], strict=True)),
        "series: adds up",
        series,
    )
    total = [8 * sum(s[i] for s in series) / RATE for i in range(8)]
    # what comes after a hole waits for what fills it
    t.ok(
        all(0.8 < x < 1.1 for x in total) and 0.94 < sum(total) / 8 < 0.97,
        "series: each second the bottleneck's goodput",
        total,
    )


def sampled(t, net, spec, marks=None):
    """A qdisc's last sample against tc, and the samples before."""
    kind = spec.split()[0]
    net.fresh(spec)

    def send(seed):
        with lib.Load(seconds=2) as load:
            load.udp(pps=300, size=958, id=1, poisson=True, ecn=2, seed=seed)
            load.udp(pps=60, size=158, dscp=46, id=2, poisson=True, ecn=2, seed=seed)

    sampler = start("abesample --dev out --handle 10: --duration 2.5 --out /tmp/samples", "r")
    send(1)
    finish(sampler)
    # pie marks for a moment only, before it drops: four or none, by the kernel's dice. A pie that
    # has been loaded drops at once, so each try has a new one.
    for seed in range(2, 20):
        if not marks or marks(net.stats(kind)):
            break
        net.fresh(spec)
        send(seed)
    rows = table("/tmp/samples")
    run("abesample --dev out --parent 1:1 --duration 0.01 --out /tmp/last", ns="r")
    st = net.stats(kind)
    last = table("/tmp/last")[-1]
    keys = ("qlen", "backlog", "packets", "bytes", "drops", "overlimits")
    t.ok(
        all(int(last[k]) == st[k] for k in keys),
        f"{kind}: the last sample is what tc says",
        (last, st),
    )
    if marks:
        want = marks(st)
        t.ok(int(last["marks"]) == want > 0, f"{kind}: marks", (last["marks"], want))
    times = [float(r["time"]) for r in rows]
    t.ok(
        len(rows) == 51 and all(abs(b - a - 0.05) < 2e-3 for a, b in itertools.pairwise(times)),
        f"{kind}: a sample each 50 ms",
        (len(rows), times[:5]),
    )
    # the kernel reads the two one after the other, without a lock: a packet may come between
    queue = [(int(r["qlen"]), int(r["backlog"])) for r in rows]
    t.ok(
        max(queue)[0] > 3 and all(200 * (q - 1) <= b <= 1014 * (q + 1) for q, b in queue),
        f"{kind}: queues of packets and bytes",
        queue,
    )
    falls = [
        k
        for k in ("packets", "bytes", "drops", "marks")
        for a, b in itertools.pairwise(rows)
        if int(b[k]) < int(a[k])
    ]
    t.ok(not falls, f"{kind}: counters do not fall", falls)
    return last, st


def test_samples(t, net):
    red = (
        "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1 bandwidth 2mbit ecn"
    )
    sampled(t, net, red, lambda st: st["marked"])
    sampled(t, net, "pie limit 100 target 5ms ecn", lambda st: st["ecn_mark"])
    sampled(t, net, "fq_codel limit 100 target 5ms interval 30ms ecn", lambda st: st["ecn_mark"])
    sampled(t, net, "cake rtt 5ms", lambda st: sum(tin["ecn_mark"] for tin in st["tins"]))
    sampled(t, net, "pfifo limit 20")
    last, st = sampled(
        t,
        net,
        "abe packets limit 60 green_limit 5 min 5 max 30 weight 0.05 ecn rtt 100ms",
        lambda st: st["green"]["marks"] + st["blue"]["marks"],
    )
    names = {"early": "early_drops", "late": "late_drops", "limit": "limit_drops"}
    for colour in ("green", "blue"):
        wrong = {
            k
            for k in ("arrived", "sent", "qlen", "backlog", "early", "late", "limit", "marks")
            if int(last[f"{colour}_{k}"]) != st[colour][names.get(k, k)]
        }
        t.ok(not wrong, f"abe: {colour}'s counters", wrong)
    pairs = {
        "alpha": "alpha",
        "target": "alpha_target",
        "offset_us": "offset",
        "average": "average",
        "probability": "probability",
        "share": "green_share",
        "delay_blue_us": "delay_blue",
        "delay_green_us": "delay_green",
        "loss_blue": "loss_blue",
        "loss_green_early": "loss_green_early",
        "loss_green_late": "loss_green_late",
        "ahead": "green_ahead",
    }
    wrong = {
        a: (last[a], st[b])
        for a, b in pairs.items()
        if abs(float(last[a]) - st[b]) > 1e-3 * max(1e-3, abs(st[b]))
    }
    t.ok(not wrong, "abe: the loop's variables", wrong)


def test_trace(t, net):
    net.fresh("abe packets limit 40 green_limit 5 min 10 max 60 weight 0.05 ecn interval 100ms")
    run("tc qdisc add dev in root handle 77: abe", ns="r")
    trace = start("abesample --trace --handle 10: --out /tmp/packets", "r")
    other = start("abesample --trace --handle 99: --duration 1 --out /tmp/none")
    before = net.stats()
    began = time.time()
    with lib.Load(seconds=3) as load:
        load.udp(pps=350, size=958, id=1, poisson=True)
        load.udp(pps=60, size=158, dscp=46, id=2, poisson=True)
        load.udp(pps=40, size=158, dscp=46, id=3, ecn=2, poisson=True)
        load.udp(pps=120, size=458, id=4, ecn=2, poisson=True)
    time.sleep(0.5)
    st = net.stats()
    trace.terminate()
    finish(trace)
    finish(other)
    rows = table("/tmp/packets")
    for colour in ("green", "blue"):
        mine = [r for r in rows if r["colour"] == colour]
        for what, key in (
            ("sent", "sent"),
            ("early", "early_drops"),
            ("late", "late_drops"),
            ("limit", "limit_drops"),
        ):
            n = sum(r["what"] == what for r in mine)
            t.ok(
                n == st[colour][key] - before[colour][key],
                f"trace: {n} {colour} packets {what}",
                st[colour],
            )
        t.ok(
            sum(int(r["len"]) for r in mine if r["what"] == "sent")
            == st[colour]["bytes"] - before[colour]["bytes"],
            f"trace: {colour} bytes",
            st,
        )
        longest = max(int(r["sojourn_ns"]) for r in mine)
        t.ok(
            longest // 1000 == st[colour]["delay_max"],
            f"trace: {colour}'s longest sojourn",
            (longest, st),
        )
    drops = [r for r in rows if r["what"] != "sent"]
    t.ok(drops and all(r["sojourn_ns"] == "0" for r in drops), "trace: drops have no sojourn")
    index = run("cat /sys/class/net/out/ifindex", ns="r").stdout.strip()
    t.ok(
        {(r["ifindex"], r["handle"]) for r in rows} == {(index, "10:")},
        "trace: only the handle asked for",
    )
    times = [float(r["time"]) for r in rows]
    t.ok(
        times == sorted(times) and began < times[0] < times[-1] < time.time(),
        "trace: the clock",
        (began, times[0], times[-1]),
    )
    # of two packets sent one after the other, the second left when the first had been on the link
    sent = [
        r
        for r in rows
        if r["what"] == "sent" and r["colour"] == "blue" and float(r["sojourn_ns"]) > 5e7
    ]
    t.ok(len(sent) > 100, "trace: a queue stood", len(sent))
    t.ok(table("/tmp/none") == [], "trace: nothing of another handle")
    left = [d for d in os.listdir("/sys/kernel/tracing/instances") if d.startswith("abesample")]
    t.ok(not left, "trace: leaves no instance behind", left)
    run("tc qdisc del dev in root", ns="r")


def test_usage(t):
    cases = [
        ("", "--out is missing"),
        ("--out /tmp/x", "either --dev or --trace"),
        ("--dev lo --trace --out /tmp/x", "either --dev or --trace"),
        ("--dev lo --handle 10", "--handle 10"),
        ("--dev lo --handle 0:", "--handle 0:"),
        ("--dev lo --parent 1:x", "--parent 1:x"),
        ("--dev lo --handle 1: --parent 1:1 --out /tmp/x", "--handle or --parent"),
        ("--trace --parent 1:1 --out /tmp/x", "--parent is not for --trace"),
        ("--dev lo --interval 0", "--interval 0"),
        ("--duration x", "--duration x"),
        ("--trace --buffer 0", "--buffer 0"),
        ("--bogus", "--bogus"),
        ("--out", "value is missing"),
        ("more", "more: not expected"),
    ]
    wrong = []
    for args, message in cases:
        res = run(["abesample", *args.split()], check=False)
        if (res.returncode, res.stdout) != (2, "") or message not in res.stderr:
            wrong.append((args, res))
    t.ok(not wrong, f"abesample: {len(cases)} wrong usages, exit 2 and a message", wrong)
    for args, message in (
        ("--dev nonesuch --out /tmp/x", "nonesuch"),
        ("--dev lo --handle 5: --out /tmp/x", "no such qdisc"),
        ("--dev lo --duration 0.01 --out /nonesuch/x", "/nonesuch/x"),
    ):
        res = run(["abesample", *args.split()], check=False)
        t.ok(res.returncode == 1 and message in res.stderr, f"abesample {args}: fails", res)
    res = run("abesample --help", check=False)
    t.ok(res.returncode == 0 and "--interval" in res.stdout and not res.stderr, "abesample --help")


def timed(t, test, *args):
    begin = time.monotonic(), time.process_time()
    test(t, *args)
    t.note(
        f"{test.__name__}: {time.monotonic() - begin[0]:.1f} s, {time.process_time() - begin[1]:.1f} s of them here"
    )


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    net = lib.Net(rate=RATE, delay=10)
    for test in (test_pareto, test_web, test_windows, test_usage):
        timed(t, test)
    for test in (test_tcp, test_samples, test_trace):
        timed(t, test, net)
    net.close()
    log = kernel_log()
    t.ok(not log, "nothing in the kernel's log", "\n".join(log))
    t.done()


if __name__ == "__main__":
    main()
