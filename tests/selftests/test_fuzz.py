#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: --timeout 3000
# kernels: um-debug kasan
"""100,000 random netlink messages to abe in random trees, half of them from a user namespace.

Options right, wrong, at the edges and broken; qdiscs of other kinds grafted above
and below, replaced, deleted; classes and filters; dumps; any of these with some
bytes changed. Packets flow meanwhile. What is accepted has to be within the
ranges, and the books have to balance at every look; that what is refused changes
nothing is test_bad_input's. FUZZ_SEED and FUZZ_COUNT in the environment are for another replay.
"""

import ctypes
import errno
import json
import os
import random
import socket
import struct
import sys
import traceback

import lib
from lib import qdiscs, run
from test_bad_input import check_ranges, random_options
from test_tree import TREES, line
from wire import (
    NAMES,
    NLM_F_CREATE,
    NLM_F_DUMP,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    RTM_DELQDISC,
    RTM_DELTCLASS,
    RTM_DELTFILTER,
    RTM_GETQDISC,
    RTM_GETTCLASS,
    RTM_GETTFILTER,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
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
    unload,
)

SEED = int(os.environ.get("FUZZ_SEED", str(lib.SEED)))
COUNT = int(os.environ.get("FUZZ_COUNT", "50000"))  # in each of the two namespaces
LOOK = 500  # messages between two looks at the books
REBUILD = 2500  # between two trees
KINDS = ("pfifo", "bfifo", "fq_codel", "fq", "codel", "blackhole")
FILTERS = ("matchall", "basic", "u32", "flow")
PLACES = (
    (TC_H_ROOT, 0x10000),
    (0x10001, 0x100000),
    (0x10001, 0x110000),
    (0x20001, 0x100000),
    (0x10002, 0x120000),
    (0x100001, 0x130000),
    (0x100002, 0x140000),
    (0xFFFFFFF1, 0xFFFF0000),
)
CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000


class Fuzzer:
    """One namespace's device, and the messages to it."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.port = Port("f0")
        self.index = socket.if_nametoindex("f0")
        self.nl = Rtnl()
        self.taken = self.refused = 0
        self.kinds = {}
        self.wrong = []
        self.tree = ""

    def rebuild(self):
        """Another tree, with abe in it."""
        run(f"tc qdisc del dev {self.port.name} root", check=False)
        self.tree = self.rng.choice(("none", *TREES))
        lines, place = TREES.get(self.tree, ((), None))
        parent = f"parent {place}" if place else "root"
        abe = self.rng.choice(
            (
                "",
                "packets limit 50",
                "bytes ecn limit 50000",
                "flat",
                "loop load",
                "packets limit 2",
            )
        )
        self.port.batch(
            *(line(self.port.name, text) for text in lines),
            f"qdisc add dev {self.port.name} {parent} handle 10: abe {abe} seed 1",
        )

    def look(self, n):
        """The books of all that there is; a new tree if there is no abe any more."""
        found = qdiscs(self.port.name)
        ours = [q for q in found if q["kind"] == "abe"]
        if not ours:
            self.rebuild()
        for q in ours:
            bad = lib.balance(q, moving=True)
            for kind, reply in self.nl.talk(
                RTM_GETQDISC, NLM_F_DUMP, struct.pack("=BxxxiIII", 0, self.index, 0, 0, 0)
            ):
                options = self.abe_options(kind, reply)
                bad += check_ranges(options) if options else []
            if bad:
                self.wrong.append(f"message {n}, {self.tree}: {bad}")

    def abe_options(self, kind, reply):
        """By name, of a qdisc that is one of ours."""
        if kind != RTM_NEWQDISC or struct.unpack_from("=i", reply, 4)[0] != self.index:
            return None
        found = dict(attrs(reply[20:]))
        if found.get(TCA_KIND) != b"abe\0":
            return None
        return {
            NAMES[k - 2]: struct.unpack("=II", v)
            if NAMES[k - 2] == "flags"
            else int.from_bytes(v, "little")
            for k, v in attrs(found[TCA_OPTIONS])
            if k >= 2
        }

    def head(self, handle, parent, info=0):
        return struct.pack("=BxxxiIII", 0, self.index, handle, parent, info)

    def place(self):
        parent, handle = self.rng.choice(PLACES)
        if self.rng.random() < 0.1:
            parent ^= 1 << self.rng.randrange(32)
        if self.rng.random() < 0.1:
            handle ^= 1 << self.rng.randrange(32)
        return parent, handle

    def message(self):
        """(type, flags, body) of the next one."""
        rng = self.rng
        parent, handle = self.place()
        what = rng.choices(
            ("options", "graft", "delete", "get", "class", "filter", "dump"), (65, 6, 1, 6, 8, 7, 7)
        )[0]
        flags = rng.choice(
            (
                0,
                0,
                0,
                NLM_F_REPLACE,
                NLM_F_CREATE,
                NLM_F_CREATE | NLM_F_EXCL,
                NLM_F_CREATE | NLM_F_REPLACE,
            )
        )
        if what == "options":
            if rng.random() < 0.7:  # that which is there
                parent, handle = (TC_H_ROOT if self.tree == "none" else self.abe_parent()), 0x100000
            body = self.head(handle, parent) + attr(TCA_KIND, b"abe\0")
            if rng.random() < 0.98:
                body += attr(
                    TCA_OPTIONS | (0x8000 if rng.random() < 0.98 else 0), random_options(rng)
                )
            return RTM_NEWQDISC, flags, body
        if what == "graft":
            kind = rng.choice((*KINDS, "abe", "abe"))
            return (
                RTM_NEWQDISC,
                flags | NLM_F_CREATE,
                self.head(handle, parent) + attr(TCA_KIND, kind.encode() + b"\0"),
            )
        if what == "delete":
            return RTM_DELQDISC, 0, self.head(handle, parent)
        if what == "get":
            return (
                rng.choice((RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER)),
                0,
                self.head(handle, parent, rng.getrandbits(32)),
            )
        if what == "class":
            classid = handle & 0xFFFF0000 | rng.choice((0, 1, 2, 3, 0xFFFF))
            body = self.head(classid, rng.choice((0, handle, parent))) + attr(TCA_KIND, b"abe\0")
            if rng.random() < 0.5:
                body += attr(TCA_OPTIONS | 0x8000, random_options(rng))
            return rng.choice((RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS)), flags, body
        if what == "filter":
            body = self.head(
                rng.choice((0, 1, 2, 0x80000800)),
                rng.choice((handle, 0x100000, 0x100001)),
                rng.choice((0, 1, 2, 7)) << 16 | socket.htons(rng.choice((3, 0x800))),
            )
            body += attr(TCA_KIND, rng.choice(FILTERS).encode() + b"\0")
            if rng.random() < 0.8:  # TCA_MATCHALL_CLASSID, TCA_BASIC_CLASSID, TCA_U32_CLASSID are 1
                body += attr(
                    TCA_OPTIONS | 0x8000,
                    attr(1, struct.pack("=I", 0x100000 | rng.choice((0, 1, 2, 3)))),
                )
            return (
                rng.choice((RTM_NEWTFILTER, RTM_NEWTFILTER, RTM_DELTFILTER)),
                flags | NLM_F_CREATE,
                body,
            )
        return (
            rng.choice((RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER)),
            NLM_F_DUMP,
            self.head(0, rng.choice((0, handle))),
        )

    def abe_parent(self):
        major, _, minor = TREES[self.tree][1].partition(":")
        return int(major, 16) << 16 | int(minor, 16)

    def mutate(self, body):
        rng, body = self.rng, bytearray(body)
        for _ in range(rng.choice((1, 1, 2, 4))):
            # not the interface: another one's qdiscs are no business of ours
            at = rng.choice((0, *range(8, len(body))))
            body[at] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256), body[at] ^ 1 << rng.randrange(8))
            )
        return bytes(body[: rng.randrange(len(body))] if rng.random() < 0.1 else body)

    def one(self, n):
        rng = self.rng
        kind, flags, body = self.message()
        if rng.random() < 0.15:
            body = self.mutate(body)
        try:
            self.nl.talk(kind, flags, body)
            self.taken += 1
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        except Refused:
            self.refused += 1
        if n % 4 == 0:
            try:
                self.port.send(
                    rng.choice((1, 3, 12)),
                    dscp=rng.choice((0, 45, 46)),
                    size=rng.choice((60, 1000)),
                    ecn=rng.randrange(4),
                )
            except OSError as e:
                if e.errno not in (
                    errno.ENOBUFS,
                    errno.EAGAIN,
                ):  # a queue that loses, or a full socket
                    raise

    def run(self, count):
        for n in range(count):
            if n % REBUILD == 0:
                self.rebuild()
            self.one(n)
            if n % LOOK == LOOK - 1:
                self.look(n)
        run(f"ip link del {self.port.name}")


def unprivileged(seed, count):
    """The same as nobody in a user namespace of its own; what the fuzzer found."""
    read, write = os.pipe()
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            os.setgid(65534)
            os.setuid(65534)
            libc.prctl(4, 1)  # PR_SET_DUMPABLE, or /proc/self is root's
            if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS):
                raise OSError(ctypes.get_errno(), "unshare")
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            libc.mount(b"none", b"/sys", b"sysfs", 0, None)
            run("ip link set lo up")
            f = Fuzzer(seed)
            f.run(count)
            os.write(write, json.dumps([f.taken, f.refused, f.wrong[:20]]).encode())
        except Exception:  # noqa: BLE001 -- whatever it is, the parent has to hear of it
            os.write(write, json.dumps([0, 0, [traceback.format_exc()]]).encode())
        os._exit(0)
    os.close(write)
    os.read(ready[0], 1)
    for name, text in (("setgroups", "deny"), ("uid_map", "0 65534 1"), ("gid_map", "0 65534 1")):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as f:
            f.write(text)
    os.write(go[1], b"x")
    with os.fdopen(read) as f:
        said = f.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else [0, 0, ["the fuzzer died"]]


def main():
    t = lib.Tap()
    run(
        "modprobe -a sch_abe dummy sch_tbf sch_htb sch_hfsc sch_prio sch_drr sch_qfq sch_ets sch_netem sch_codel sch_fq_codel "
        "sch_fq cls_matchall cls_basic cls_u32 cls_flow"
    )
    f = Fuzzer(SEED)
    f.run(COUNT)
    for who, (taken, refused, wrong) in (
        ("root", (f.taken, f.refused, f.wrong)),
        ("a user", unprivileged(SEED + 1, COUNT)),
    ):
        t.ok(
            not wrong,
            f"{who}: what is accepted is in range, and the books balance at {COUNT // LOOK} looks",
            "\n".join(map(str, wrong[:20])),
        )
        t.ok(
            taken + refused == COUNT and min(taken, refused) > COUNT / 20,
            f"{who}: {taken} messages accepted, {refused} refused",
        )
        t.ok(not kernel_log(), f"{who}: the kernel's log is clean", "\n".join(kernel_log()[:40]))
    unload(t, "the module unloads")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
