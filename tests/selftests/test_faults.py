#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: --timeout 3000 --append slub_debug=A,ccid*,dccp*,DCCP*,request_sock_DCCP*,tw_sock_DCCP*,skbuff_head_cache,kmalloc-8,kmalloc-16,kmalloc-32,kmalloc-64
# kernels: um-debug
"""Every allocation fails once: of all that netlink asks of abe, and of DCCP calls.

/proc/thread-self/fail-nth lets the n-th allocation of this thread fail. Each
operation is tried with n from 1 on until it has no n-th allocation. What fails
has to leave all as it was, and what succeeds nevertheless has to be whole. What
runs in softirqs (handshakes, feedback) is no thread's: there the caches concerned
fail at random, one call in some. init looks for leaks when this has ended.
"""

import os
import select
import socket
import struct
import time

import dccp
import lib
from lib import Net, run
from test_bad_input import check_ranges
from test_tree import unbalanced
from wire import (
    NLM_F_CREATE,
    NLM_F_DUMP,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    NUMBER,
    RTM_DELQDISC,
    RTM_DELTFILTER,
    RTM_GETQDISC,
    RTM_GETTCLASS,
    RTM_GETTFILTER,
    RTM_NEWTFILTER,
    TC_H_ROOT,
    TCA_KIND,
    TCA_OPTIONS,
    Port,
    Refused,
    Rtnl,
    attr,
    attrs,
    kernel_log,
    u32,
    u64,
    unload,
)

FAILSLAB = "/sys/kernel/debug/failslab"
HANDLE, PARENT = 0x100000, 0x10001
LIMIT = 2000  # allocations in one operation, that it ends
CALLS = 150  # while caches fail


def write(path, value):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(value))


class Nth:
    """with Nth(n) as nth: its n-th allocation fails; then nth.hit, and nth.refused.

    The kernel may have done what it was asked, and have no memory to say so: then
    nth.lost."""

    fd = None

    def __init__(self, n):
        self.n = n
        if Nth.fd is None:
            Nth.fd = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def __enter__(self):
        os.pwrite(self.fd, b"%d" % self.n, 0)
        return self

    def __exit__(self, kind, *rest):
        self.hit = os.pread(self.fd, 20, 0).strip() == b"0"
        os.pwrite(self.fd, b"0", 0)
        self.refused = kind is not None
        self.lost = self.refused and not issubclass(kind, Refused)
        return self.refused and issubclass(kind, (Refused, OSError, RuntimeError))


def sweep(t, text, op, state, undo=None):
    """Try op with each of its allocations failing; state() may change only when op succeeds."""
    wrong, failed, n = [], 0, 0
    for n in range(1, LIMIT):
        before = state()
        with Nth(n) as nth:
            op()
        failed += nth.refused
        if nth.refused and not nth.hit:
            wrong.append(f"allocation {n}: refused though nothing failed")
        if nth.refused and not nth.lost and state() != before:
            wrong.append(f"allocation {n}: refused, but changed: {before} to {state()}")
        if undo and state() != before:
            undo()
            if state() != before:
                wrong.append(f"allocation {n}: not undone: {before} to {state()}")
        if not nth.hit:
            break
    t.ok(
        not wrong and n < LIMIT - 1,
        f"{text}: all is as before when it fails",
        "\n".join(wrong[:10]),
    )
    t.ok(n > 1 and failed, f"{text}: {n - 1} allocations, {failed} of them fatal")


def every_option():
    return (
        u32("unit", 2)
        + u64("rate", 125000)
        + u32("limit", 300)
        + u32("green_limit", 20)
        + u32("min", 30)
        + u32("max", 90)
        + attr(NUMBER["flags"], struct.pack("=II", 8, 8))
        + u32("spacing", 4)
        + u32("loop", 1)
        + u64("green_dscp", 7)
        + u64("seed", 9)
    )


def test_netlink(t, port, nl):
    index = socket.if_nametoindex(port.name)
    head = lambda handle, parent, info=0: struct.pack("=BxxxiIII", 0, index, handle, parent, info)

    def dump(kind, handle=0):
        # by hand: a dump is more than one receive, and what is counted moves
        return len(nl.talk(kind, NLM_F_DUMP, head(handle, handle)))

    def kinds():
        return [(q["kind"], q["handle"]) for q in lib.qdiscs(port.name)]

    def delete(parent, handle):
        nl.talk(RTM_DELQDISC, 0, head(handle, parent))

    def look():
        return (
            kinds(),
            nl.options(port.name, HANDLE),
            dump(RTM_GETTFILTER, HANDLE),
            port.stats()["qlen"],
        )

    fresh = NLM_F_CREATE | NLM_F_EXCL
    run(f"tc qdisc del dev {port.name} root", check=False)
    for text, options in (("defaults", None), ("every option", every_option())):
        sweep(
            t,
            f"add, {text}",
            lambda o=options: nl.qdisc(fresh, port.name, TC_H_ROOT, HANDLE, o),
            kinds,
            lambda: delete(TC_H_ROOT, HANDLE),
        )
    port.fresh("abe packets limit 50 interval 10s")
    port.blue(20)
    port.green(20)
    time.sleep(0.3)
    # without padding, of which there is some where 64 bits have to be aligned
    old = b"".join(
        attr(kind, data)
        for kind, data in attrs(nl.get(port.name, HANDLE)[0])
        if kind in NUMBER.values()
    )
    sweep(
        t,
        "change",
        lambda: nl.qdisc(0, port.name, PARENT, HANDLE, every_option()),
        look,
        lambda: nl.qdisc(0, port.name, PARENT, HANDLE, old),
    )
    sweep(
        t,
        "a change that throws packets out",
        lambda: nl.qdisc(0, port.name, PARENT, HANDLE, u32("limit", 20)),
        look,
        lambda: (
            port.fresh("abe packets limit 50 interval 10s"),
            port.blue(20),
            port.green(20),
            time.sleep(0.3),
        ),
    )
    sweep(t, "get", lambda: nl.get(port.name, HANDLE), look)
    for text, kind, handle in (("qdiscs", RTM_GETQDISC, 0), ("classes", RTM_GETTCLASS, HANDLE)):
        sweep(t, f"dump of {text}", lambda k=kind, h=handle: dump(k, h), look)
    for verdict in ("matchall", "basic"):
        body = attr(TCA_KIND, verdict.encode() + b"\0") + attr(
            TCA_OPTIONS | 0x8000, attr(1, struct.pack("=I", HANDLE | 1))
        )
        info = 1 << 16 | socket.htons(3)
        sweep(
            t,
            f"filter, {verdict}",
            lambda b=body, i=info: nl.talk(RTM_NEWTFILTER, fresh, head(0, HANDLE, i) + b),
            look,
            lambda: nl.talk(RTM_DELTFILTER, 0, head(0, HANDLE)),
        )
    run(f"tc filter add dev {port.name} parent 10: matchall classid 10:1")
    for text, kind, handle in (("filters", RTM_GETTFILTER, HANDLE),):
        sweep(t, f"dump of {text}", lambda k=kind, h=handle: dump(k, h), look)
    run(f"tc filter del dev {port.name} parent 10:")
    sweep(
        t,
        "replaced by pfifo",
        lambda: nl.qdisc(
            NLM_F_CREATE | NLM_F_REPLACE, port.name, PARENT, 0x200000, None, kind="pfifo"
        ),
        kinds,
        lambda: port.fresh("abe packets limit 50 interval 10s"),
    )
    sweep(
        t,
        "replaced by another abe",
        lambda: nl.qdisc(NLM_F_CREATE | NLM_F_REPLACE, port.name, PARENT, 0x200000, every_option()),
        kinds,
        lambda: port.fresh("abe packets limit 50 interval 10s"),
    )
    port.blue(20)
    t.ok(
        not check_ranges(nl.options(port.name, HANDLE)) and not unbalanced(port.name),
        "and the books balance",
        unbalanced(port.name),
    )
    sweep(
        t,
        "delete",
        lambda: delete(PARENT, HANDLE),
        kinds,
        lambda: port.fresh("abe packets limit 50 interval 10s"),
    )


def test_dccp(t, net):
    listener = dccp.listen("b", ccid=[4])
    none = lambda: None

    def opened(ccid):
        s = dccp.sock("a", ccid=[ccid])
        s.settimeout(100)
        return s

    def op_socket():
        dccp.sock("a", ccid=[4, 248, 2]).close()

    def op_connect():
        with opened(4) as s:
            s.connect(listener.getsockname()[:2])
            listener.settimeout(10)
            listener.accept()[0].close()

    sweep(t, "DCCP: socket and CCIDs", op_socket, none)
    sweep(t, "DCCP: connect and accept", op_connect, none)
    while select.select([listener], [], [], 0.5)[0]:
        listener.accept()[0].close()
    with opened(4) as s:
        s.connect(listener.getsockname()[:2])
        server, _ = listener.accept()
        server.settimeout(10)
        sweep(t, "DCCP: send", lambda: s.send(bytes(100)), none)
        s.settimeout(10)
        t.ok(dccp.exchange(s, server) > 0, "DCCP: and the call goes on")
        server.close()
    listener.close()


def test_close(t, net):
    """A socket that is closed while the path is dead goes, too, whatever fails: rmmod tells."""
    listener = dccp.listen("b", ccid=[4])
    n = 0
    for n in range(1, LIMIT):
        ends = dccp.connect(listener, ccid=[4])
        for host in "ab":
            run("tc qdisc change dev eth0 root netem delay 10ms loss 100% limit 1000", ns=host)
        for s in ends:
            with Nth(n) as nth:
                s.close()
        time.sleep(1)
        for host in "ab":
            run("tc qdisc replace dev eth0 root netem delay 10ms limit 1000", ns=host)
        if not nth.hit:
            break
    t.ok(1 < n < LIMIT - 1, f"DCCP: close: {n - 1} allocations")
    listener.close()


def test_softirqs(t, net):
    """Caches of DCCP, the CCIDs and packets (slub_debug=A) fail now and then while calls come and go."""
    for ccid in (4, *range(248, 255)):
        listener = dccp.listen("b", ccid=[ccid])
        write(f"{FAILSLAB}/cache-filter", "Y")
        write(f"{FAILSLAB}/times", -1)
        write(f"{FAILSLAB}/probability", 1)
        whole = 0
        try:
            for _ in range(CALLS):
                try:
                    client, server = dccp.connect(listener, ccid=[ccid], patience=20)
                except OSError:
                    continue
                with client, server:
                    try:
                        whole += dccp.exchange(client, server, 5) > 0
                    except OSError:
                        pass
        finally:
            write(f"{FAILSLAB}/probability", 0)
        while select.select([listener], [], [], 1)[0]:
            listener.accept()[0].close()
        client, server = dccp.connect(listener, ccid=[ccid])
        with client, server:
            t.ok(
                dccp.exchange(client, server) == 10,
                f"CCID {ccid}: a call works after {CALLS} of which {whole} had failures and went on",
            )
        t.ok(CALLS / 20 < whole < CALLS, f"CCID {ccid}: some calls failed, some did not", whole)
        listener.close()


def main():
    t = lib.Tap()
    run("modprobe -a sch_abe sch_tbf cls_matchall cls_basic dummy")
    for kind in ("failslab", "fail_page_alloc"):
        write(f"/sys/kernel/debug/{kind}/ignore-gfp-wait", "N")
        write(f"/sys/kernel/debug/{kind}/verbose", 0)
    port = Port()
    test_netlink(t, port, Rtnl())
    run(f"ip link del {port.name}")
    unload(t, "the module unloads")
    dccp.load()
    run("modprobe dccp_tfrc")
    net = Net(delay=10)
    test_dccp(t, net)
    test_close(t, net)
    test_softirqs(t, net)
    dccp.settle(1500)  # retransmitting a Close takes up to a quarter of an hour
    net.close()
    # in use as long as there is a half-connection
    res = run("rmmod dccp_tfrc", check=False)
    t.ok(not res.returncode, "dccp_tfrc unloads: no socket is left", res.stderr)
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()[:40]))
    t.done()


if __name__ == "__main__":
    main()
