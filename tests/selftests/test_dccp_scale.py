#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: a thousand calls for a minute, and five hundred for ten, 50 packets/s each
# vm: --mem 2G --append slub_debug=FZ,ccid*,tfrc*,DCCP,kmalloc-cg-96,kmalloc-cg-256
"""A thousand calls at once over CCID 4, and what they cost beside the kernel's own CCID 3.

Here an instruction takes a nanosecond, so the machine does a billion a second,
and fifty thousand packets a second are more than it can do, whatever the CCID.
So a thousand calls send two packets a second for a minute (or 300 for eight seconds), and five hundred
send fifty for ten minutes, which must take no memory in the end that they did not have after two; the cost of a packet
comes from fewer calls that send fifty a second. It is all that the machine
does: both ends, the router between them, feedback, and the program.

The bounds on memory and cost were chosen beforehand.
"""

import json
import re
import subprocess
import time
from glob import glob

import dccp
from lib import LONG, Net, Tap, run

CALLS = 1000 if LONG else 300
FEW = 50
MANY = 500  # that send as calls do
SIZE = 172


def idle():
    """CPU time, s: idle, all. /proc/stat knows no more than hundredths."""
    with open("/proc/timer_list", encoding="ascii") as f:
        times = re.findall(r"\.(?:idle|iowait)_sleeptime *: (\d+) nsecs", f.read())
    return sum(map(int, times)) / 1e9, time.monotonic()


def kernel_memory():
    """Bytes in slabs; those in big pieces come from elsewhere."""
    with open("/proc/meminfo", encoding="ascii") as f:
        info = {line.split(":")[0]: int(line.split()[1]) for line in f}
    return 1024 * (info["Slab"] + info["KernelStack"] + info["PageTables"])


def available():
    with open("/proc/meminfo", encoding="ascii") as f:
        return 1024 * next(int(line.split()[1]) for line in f if line.startswith("MemAvailable"))


def objects(*names):
    """(objects, bytes) in slab caches."""
    count = size = 0
    for path in sorted(path for name in names for path in glob(f"/sys/kernel/slab/{name}")):
        with open(f"{path}/objects", encoding="ascii") as f:
            n = int(f.read().split()[0])
        with open(f"{path}/object_size", encoding="ascii") as f:
            size += n * int(f.read())
        count += n
    return count, size


def ccid_memory():
    """Bytes of the CCIDs' own state: CCID 3 has more caches, 4 has timers, and packets remembered."""
    return objects("*ccid*_hc_*_sock", "tfrc*", "kmalloc-cg-96", "kmalloc-cg-256")[1]


def sockets():
    return objects("DCCP")[0]


def begin(options):
    """dccpload, whose calls stand, and begin now."""
    p = subprocess.Popen(
        ["dccpload", *options.split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if p.stdout.readline() != "ready\n":
        raise RuntimeError(f"dccpload {options} is not ready")
    p.stdin.write("\n")
    p.stdin.flush()
    return p


def steady(t, ccid):
    """Memory of calls that go on, after each minute."""
    minutes, taken = 10, []
    start = kernel_memory()
    options = f"-g -s {SIZE} -r 50 -t {60 * minutes + 5} {ccid} {MANY}"
    with begin(options) as p:
        for _ in range(minutes):
            time.sleep(60)
            taken.append(((kernel_memory() - start) / MANY, ccid_memory() / MANY))
        report = json.loads(p.communicate()[0])
    sent, got = total(report, "sent"), total(report, "all")
    t.ok(
        got > 0.99 * sent > 0.98 * MANY * 50 * 60 * minutes,
        f"CCID {ccid}: {MANY} calls for {minutes} minutes, {got} of {sent} packets received",
    )
    slabs, own = zip(*taken[1:])
    t.ok(
        max(own) < 1.01 * own[0] and max(slabs) < 1.05 * slabs[0],
        f"CCID {ccid}: then {own[-1]:.0f} bytes of the CCID and {slabs[-1]:.0f} in slabs a call, "
        f"{own[0]:.0f} and {slabs[0]:.0f} after two minutes",
        taken,
    )


class Load:
    """dccpload, and what is to be seen halfway."""

    def __init__(self, ccid, calls, rate, seconds):
        start = available(), kernel_memory(), ccid_memory()
        options = f"-g -s {SIZE} -r {rate} -t {seconds} -W 10 {ccid} {calls}"
        with begin(options) as p:
            time.sleep(seconds / 4)
            before = idle()
            time.sleep(seconds / 2)
            after = idle()
            middle = available(), kernel_memory(), ccid_memory()
            out = p.communicate()[0]
        if p.returncode:
            raise RuntimeError(f"dccpload {options}: exit {p.returncode}")
        self.report = json.loads(out)
        self.busy = after[1] - before[1] - (after[0] - before[0])
        self.instructions = self.busy * 1e9 / (calls * rate * (after[1] - before[1]))
        self.available = (start[0] - middle[0]) / calls
        self.slab = (middle[1] - start[1]) / calls
        self.ccid = (middle[2] - start[2]) / calls


def own_part(ccid):
    """Instructions a packet that the CCID's hooks take, at both ends, by the function graph tracer."""
    tracing = "/sys/kernel/tracing"
    hooks = "ccid3_hc_*" if ccid == 3 else "tfrc_hc_* rate_hc_*"

    def put(name, text):
        with open(f"{tracing}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    put("set_ftrace_filter", hooks)
    put("max_graph_depth", "1")
    put("buffer_size_kb", "16384")
    put("current_tracer", "function_graph")
    load = Load(ccid, 10, 50, 4)
    put("tracing_on", "0")
    with open(f"{tracing}/trace", encoding="ascii") as f:
        spent = re.findall(r"([\d.]+) us +\| +(\w+)", f.read())
    put("current_tracer", "nop")
    put("tracing_on", "1")
    sent = total(load.report, "sent")
    hot = [float(us) for us, name in spent if not name.endswith(("_init", "_exit", "sockopt"))]
    return 1000 * sum(hot) / sent, len(hot) / sent


def total(report, what):
    return sum(f[what] for f in report["flows"])


def many(t, ccid):
    """A thousand calls, or fewer; the load, for comparison."""
    rate, seconds = 2, 60 if LONG else 8
    load = Load(ccid, CALLS, rate, seconds)
    flows = load.report["flows"]
    offered, sent, refused, got = (
        total(load.report, what) for what in ("offered", "sent", "refused", "all")
    )
    t.note(
        f"CCID {ccid}: {CALLS} calls, {seconds} s, {sent} packets sent, {got} received, {refused} refused"
    )
    t.note(
        f"CCID {ccid}: memory of a call: {load.ccid:.0f} bytes of the CCID, {load.slab:.0f} in slabs, "
        f"{load.available:.0f} less available"
    )
    t.note(f"CCID {ccid}: the machine was busy for {load.busy / seconds * 2:.1%} of the time")
    t.ok(offered >= CALLS * rate * seconds * 0.99, f"CCID {ccid}: all of it was offered", offered)
    t.ok(refused < 0.01 * offered, f"CCID {ccid}: refused {refused} of {offered}")
    late = [f for f in flows if f["all"] < f["sent"] - 1]  # one may be under way
    t.ok(not late, f"CCID {ccid}: all calls live, without loss", late[:3])
    if ccid != 3:
        t.ok(
            not total(load.report, "rx_lost") and not total(load.report, "rx_events"),
            f"CCID {ccid}: it knows of no loss either",
        )
    return load


def fast(t, ccid):
    """Instructions per packet at the rate of a call."""
    load = Load(ccid, FEW, 50, 8)
    sent, got = total(load.report, "sent"), total(load.report, "all")
    t.note(
        f"CCID {ccid}: {FEW} calls, 50 packets/s each: {load.instructions:.0f} instructions a packet"
    )
    t.ok(got > 0.98 * sent > 0.97 * FEW * 50 * 8, f"CCID {ccid}: {got} of {sent} packets received")
    return load


def main():
    t = Tap()
    dccp.load()
    run("modprobe dccp_tfrc")
    net = Net(delay=50)
    run("sysctl -qw net.dccp.default.retries2=2")
    fixed = sockets()
    loads, own = {}, {}
    for ccid in (3, 4):
        slow = many(t, ccid)
        dccp.settle()
        loads[ccid] = slow, fast(t, ccid)
        own[ccid], hooks = own_part(ccid)
        t.ok(
            hooks > 3 and own[ccid] > 100,
            f"CCID {ccid}: its own part are {own[ccid]:.0f} instructions a packet, in {hooks:.1f} calls",
        )
        dccp.settle()
        left = [n for n in dccp.slabs().values() if n]
        t.ok(
            sockets() == fixed and not left,
            f"CCID {ccid}: all is freed",
            f"{sockets()} sockets, {dccp.slabs()}",
        )
    if LONG:
        steady(t, 4)
        dccp.settle()
    stock, ours = loads[3][1], loads[4][1]
    t.ok(
        0 < ours.ccid < 2 * 1600,
        f"CCID 4: {ours.ccid / 2:.0f} bytes a socket at 50 packets/s and a round trip of 100 ms, "
        f"CCID 3 {stock.ccid / 2:.0f}",
    )
    stock, ours = loads[3][0], loads[4][0]
    t.ok(
        0 < ours.ccid < 3 * stock.ccid + 16384,
        f"memory of the CCID in a call: {ours.ccid:.0f} bytes, of CCID 3 {stock.ccid:.0f}",
    )
    t.ok(
        ours.slab - stock.slab < 2 * stock.ccid + 16384,
        f"all memory of a call: {ours.slab:.0f} bytes, with CCID 3 {stock.slab:.0f}",
    )
    mine, theirs = (loads[ccid][1].instructions for ccid in (4, 3))
    t.ok(mine < 1.03 * theirs, f"instructions a packet: {mine:.0f}, with CCID 3 {theirs:.0f}")
    res = run("rmmod dccp_tfrc", check=False)
    t.ok(not res.returncode, "the module goes", res.stderr)
    net.close()
    t.done()


if __name__ == "__main__":
    main()
