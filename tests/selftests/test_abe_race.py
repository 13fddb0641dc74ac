#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: ten minutes
# vm: --smp 2 --real-time --timeout 1500 --append slub_debug=FZPU
"""abe on two CPUs: its configuration against packets that are on their way at the same time.

First one process sends and one shrinks the limit under the full queue, so that each
has a CPU. Then a crowd: two processes a device send, others change options, graft,
delete and add, add filters, dump qdiscs, classes and filters, put the device down and
up, and try to remove the module. In the end the books balance, all
drains and the module goes. RACE_SECONDS in the environment (of the kernel's command
line) is how long both take; 10 without, 600 in the long form.
"""

import ctypes
import errno
import itertools
import json
import os
import random
import socket
import struct
import time
import traceback

import lib
from lib import run
from test_bad_input import random_options
from test_tree import left, unbalanced
from wire import (
    NLM_F_CREATE,
    NLM_F_DUMP,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    RTM_DELQDISC,
    RTM_DELTFILTER,
    RTM_GETQDISC,
    RTM_GETTCLASS,
    RTM_GETTFILTER,
    RTM_NEWTFILTER,
    TC_H_ROOT,
    TCA_KIND,
    TCA_OPTIONS,
    Refused,
    Rtnl,
    attr,
    kernel_log,
    u32,
    unload,
)

SECONDS = float(os.environ.get("RACE_SECONDS", "600" if lib.LONG else "10"))
DEVICES = ("root0", "tbf0")  # abe at the root, and below a tbf
HANDLE, PARENT = 0x100000, 0x10001
DELETE_MODULE = 176


def head(dev, handle, parent, info=0):
    return struct.pack("=BxxxiIII", 0, socket.if_nametoindex(dev), handle, parent, info)


def place(dev):
    return TC_H_ROOT if dev == "root0" else PARENT


def send(dev, seed, end):
    """Packets of both colours and all sizes, as fast as they go."""
    rng, n = random.Random(seed), 0
    socks = []
    for tos in (0, 46 << 2, 46 << 2 | 2, 2):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        s.connect((f"10.9.{DEVICES.index(dev)}.2", 9))
        s.setblocking(False)
        socks.append(s)
    while time.monotonic() < end:
        for _ in range(50):
            try:
                n += rng.choice(socks).send(bytes(rng.choice((18, 500, 1400)))) > 0
            except OSError as e:
                if e.errno not in (errno.ENOBUFS, errno.EAGAIN, errno.ENETUNREACH, errno.ENETDOWN):
                    raise
    return n


def asks(operations, pause=0.0002):
    """A worker that asks rtnetlink for these, a pause after each; how many were granted."""

    def worker(dev, seed, end):
        rng, nl, n = random.Random(seed), Rtnl(), 0
        for operation in itertools.cycle(operations):
            if time.monotonic() > end:
                return n
            try:
                operation(nl, dev, rng)
                n += 1
            except Refused:
                pass
            time.sleep(pause)

    return worker


def change(nl, dev, rng):
    nl.qdisc(0, dev, place(dev), HANDLE, random_options(rng))


def limits(dev, seed, end):
    """Throw out nearly all of a queue, and let it fill again: one dequeues and frees, the other enqueues."""
    rng, nl, n = random.Random(seed), Rtnl(), 0
    roomy = (
        u32("unit", 2)
        + u32("limit", 300)
        + u32("green_limit", 300)
        + u32("min", 500)
        + u32("max", 900)
    )
    while time.monotonic() < end:
        try:
            nl.qdisc(0, dev, place(dev), HANDLE, roomy)
            time.sleep(rng.random() * 0.01)
            for limit in sorted((rng.randrange(200) for _ in range(8)), reverse=True) + [
                rng.choice((0, 1, 2))
            ]:
                nl.qdisc(0, dev, place(dev), HANDLE, u32("limit", limit))
                n += 1
        except Refused:
            time.sleep(0.01)
    return n


def add(nl, dev, _):
    nl.qdisc(NLM_F_CREATE | NLM_F_EXCL, dev, place(dev), HANDLE, None)


def graft(nl, dev, rng):
    kind, handle = rng.choice(
        (("pfifo", 0x200000), ("abe", 0x300000), ("abe", HANDLE), ("fq_codel", 0x200000))
    )
    nl.qdisc(NLM_F_CREATE | NLM_F_REPLACE, dev, place(dev), handle, None, kind=kind)


def restore(nl, dev, _):
    nl.qdisc(NLM_F_CREATE | NLM_F_REPLACE, dev, place(dev), HANDLE, None)


def delete(nl, dev, _):
    nl.talk(RTM_DELQDISC, 0, head(dev, HANDLE, place(dev)))


def dumps(kind):
    return lambda nl, dev, _: nl.talk(
        kind, NLM_F_DUMP, head(dev, HANDLE if kind != RTM_GETQDISC else 0, HANDLE)
    )


def classify(nl, dev, rng):
    body = attr(TCA_KIND, b"matchall\0") + attr(
        TCA_OPTIONS | 0x8000, attr(1, struct.pack("=I", HANDLE | rng.choice((1, 2))))
    )
    nl.talk(
        RTM_NEWTFILTER,
        NLM_F_CREATE | NLM_F_EXCL,
        head(dev, 0, HANDLE, 1 << 16 | socket.htons(3)) + body,
    )


def declassify(nl, dev, _):
    nl.talk(RTM_DELTFILTER, 0, head(dev, 0, HANDLE))


def link(dev, _, end):
    n = 0
    while time.monotonic() < end:
        for state in ("down", "up"):
            run(f"ip link set {dev} {state}")
            n += 1
        time.sleep(0.3)
    return n


def remove(_dev, _seed, end):
    """How often the module went; it is loaded again when somebody asks for abe."""
    libc, n = ctypes.CDLL(None), 0
    while time.monotonic() < end:
        if libc.syscall(DELETE_MODULE, b"sch_abe", os.O_NONBLOCK) == 0:
            n += 1
            time.sleep(0.5)  # to load it takes as long
        time.sleep(0.001)
    return n


WORKERS = {
    "packets": send,
    "more packets": send,
    "changes": asks((change,), 0.01),
    "limits": limits,
    "grafts": asks((graft, restore, delete, add, restore), 0.1),
    "dumps": asks((dumps(RTM_GETQDISC), dumps(RTM_GETTCLASS), dumps(RTM_GETTFILTER)), 0.003),
    "filters": asks((classify, declassify), 0.002),
    "link": link,
}


def work(name, function, args):
    """Begin this in a process of its own; a file with (name, how often, fault) to be."""
    read, write = os.pipe()
    if not os.fork():
        try:
            said = (name, function(*args), None)
        except Exception:  # noqa: BLE001 -- whatever it is, the parent has to hear of it
            said = (name, 0, traceback.format_exc())
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    return os.fdopen(read)


def together(t, tasks, seconds):
    """Do these (name, function, device) at the same time; how often each was done, by name."""
    end = time.monotonic() + seconds
    results = [
        work(name, function, (dev, seed, end)) for seed, (name, function, dev) in enumerate(tasks)
    ]
    done, faults = {}, []
    for f in results:
        with f:
            name, count, fault = json.loads(f.read() or '["?", 0, "it died"]')
        done[name] = done.get(name, 0) + count
        faults += [f"{name}: {fault}"] if fault else []
    t.ok(not faults, f"{seconds:g} s: nobody met what it does not expect", "\n".join(faults[:3]))
    return done


def main():
    t = lib.Tap()
    run("modprobe -a sch_abe dummy sch_tbf sch_fq_codel cls_matchall")
    for n, dev in enumerate(DEVICES):
        run(f"ip link add {dev} type dummy")
        run(f"sysctl -qw net.ipv6.conf.{dev}.disable_ipv6=1")
        run(f"ip addr add 10.9.{n}.1/24 dev {dev}")
        run(f"ip link set {dev} up")
    run("tc qdisc add dev tbf0 root handle 1: tbf rate 4mbit burst 3000 limit 1000000")
    run("tc qdisc add dev tbf0 parent 1:1 handle 10: abe")
    done = together(t, [("packets", send, "tbf0"), ("limits", limits, "tbf0")], SECONDS / 4)
    t.ok(min(done.values()) > SECONDS, f"one CPU sends, the other throws out: {done}")
    crowd = [(name, function, dev) for dev in DEVICES for name, function in WORKERS.items()]
    done = together(t, [*crowd, ("removed", remove, None)], SECONDS * 3 / 4)
    for name in WORKERS:
        # down and up of a link wait for each other worker's change, and on a slow host long
        least = 1 if name == "link" else SECONDS / 2
        t.ok(done[name] > least, f"{name}: {done[name]}")
    t.ok(done["removed"], f"the module went {done['removed']} times")
    for dev in DEVICES:
        t.ok(not unbalanced(dev), f"{dev}: what is there balances", "\n".join(unbalanced(dev)))
        run(f"ip link set {dev} up")
        run(
            f"tc qdisc replace dev {dev} {'root' if dev == 'root0' else 'parent 1:1'} handle 10: abe packets limit 100"
        )
        send(dev, 1, time.monotonic() + 0.5)
        t.ok(not unbalanced(dev), f"{dev}: the books balance", "\n".join(unbalanced(dev)))
        time.sleep(1)
        t.ok(not left(dev), f"{dev}: all drains", left(dev))
        run(f"ip link del {dev}")
    unload(t, "the module unloads")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()[:40]))
    t.done()


if __name__ == "__main__":
    main()
