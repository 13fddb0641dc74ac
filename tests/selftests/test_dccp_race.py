#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: only
# vm: --smp 2 --real-time --append slub_debug=FZPU
"""A CCID's module comes and goes while sockets use it; the kernel has to bear it."""

import ctypes
import errno
import os
import struct
import time

import dccp
from lib import Net, Tap, run

DUMMY = 77
SECONDS = 300
FINIT_MODULE, DELETE_MODULE = 313, 176

tap = Tap()
libc = ctypes.CDLL(None, use_errno=True)


def come_and_go(end):
    """How often the module was loaded, and how often in use when it should have gone."""
    path = run("modinfo -n ccid_dummy").stdout.strip()
    loaded = busy = 0
    with open(path, "rb") as f:
        while time.monotonic() < end:
            loaded += libc.syscall(FINIT_MODULE, f.fileno(), b"ids=77,78", 0) == 0
            # from at once to long enough for some connections
            time.sleep(loaded % 8 * 0.05)
            busy += libc.syscall(DELETE_MODULE, b"ccid_dummy", os.O_NONBLOCK) != 0
    return loaded, busy


def connect(end, listener):
    """How many connections had our CCID, had another, or failed."""
    ours = others = failed = 0
    with listener:
        while time.monotonic() < end:
            try:
                c, s = dccp.connect(listener, ccid=[DUMMY, 2], patience=1)
            except OSError as error:
                failed += 1
                if error.errno not in (
                    None,
                    errno.EINVAL,
                    errno.EPROTO,
                    errno.EUSERS,
                    errno.ECOMM,
                    errno.EILSEQ,
                ):
                    tap.note(f"connect: {error}")
                continue
            with c, s:
                if DUMMY in dccp.ccids(c):
                    ours += 1
                    c.setsockopt(dccp.SOL_DCCP, 193, 1)
                    s.getsockopt(dccp.SOL_DCCP, 128, 16)
                else:
                    others += 1
                dccp.exchange(c, s, 3)
    return ours, others, failed


def look(end):
    """inet_diag asks the CCIDs."""
    looked = 0
    while time.monotonic() < end:
        run("ss -dinea", ns="a")
        run("ss -dinea", ns="b")
        looked += 2
    return (looked,)


def main():
    dccp.load()
    Net()
    run("sysctl -qw net.dccp.default.request_retries=1 net.dccp.default.retries2=2")
    before = dccp.allocations()
    # the listeners' preference, whether or not the module is there
    run("modprobe ccid_dummy")
    ipv4, ipv6 = (dccp.listen("b", family, ccid=[DUMMY, 2]) for family in dccp.FAMILIES.values())
    run("rmmod ccid_dummy")
    end = time.monotonic() + SECONDS
    results = []
    for job in ((come_and_go,), (connect, ipv4), (connect, ipv6), (look,)):
        out, into = os.pipe()
        if os.fork() == 0:
            os.write(into, struct.pack("4I", *(*job[0](end, *job[1:]), 0, 0, 0, 0)[:4]))
            os._exit(0)
        os.close(into)
        results.append(out)
    ipv4.close()
    ipv6.close()
    loads, ipv4, ipv6, looks = (struct.unpack("4I", os.read(out, 16)) for out in results)
    tap.note(f"loaded {loads[0]} times, {loads[1]} times in use; looked {looks[0]} times")
    for name, (ours, others, failed, _) in (("IPv4", ipv4), ("IPv6", ipv6)):
        tap.note(
            f"{name}: {ours} connections with the module's CCID, {others} without, {failed} failed"
        )
        tap.ok(ours > 0, f"{name}: some connections met the module")
    tap.ok(loads[0] > 2 and loads[1] > 0, "which came and went, and sometimes had to stay")
    dccp.settle(15)
    run("rmmod ccid_dummy", check=False)
    tap.ok(not os.path.exists("/sys/module/ccid_dummy"), "in the end it can go")
    dccp.nothing_left(tap, before)


if __name__ == "__main__":
    main()
    tap.done()
