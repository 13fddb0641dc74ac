#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: three times the crowd
# vm: --smp 2 --real-time --timeout 900 --append slub_debug=FZPU
"""dccp_tfrc on two CPUs: its timers against everything that happens to a socket at the same time.

First with one connection at a time: while a thread owns the socket, the timer
has to leave it alone, and to come back. Then a crowd: processes that open,
use, share, disconnect and close sockets while the network fails, others look,
and somebody tries to remove the module. Once a connection keeps it, and it
must stay; then nothing does, and it comes and goes. In the end nothing is left.
"""

import collections
import contextlib
import ctypes
import errno
import fcntl
import itertools
import json
import mmap
import os
import random
import re
import select
import socket
import struct
import sys
import threading
import time
import traceback

import dccp
from lib import LONG, SEED, Net, Tap, run

CCIDS = (4, 248, 249)
KEPT = 24 if LONG else 8  # seconds of crowd, with a connection that keeps the module
TURNS = 4  # at most, until all has happened that is to happen
ROUNDS, FREE = 3 if LONG else 1, 3  # and without, as often, for so many seconds
PATIENCE = 100  # for the last sockets to go, whose peers may not answer
TRACE = "/sys/kernel/tracing"
DELETE_MODULE, USERFAULTFD = 176, 323
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xC018AA3F, 0xC020AA00, 0xC020AA04
PAGE = 4096
TX_OPTIONS, RX_OPTIONS = (193, 194, 195), (129, 130, 131, 132)

tap = Tap()
libc = ctypes.CDLL(None, use_errno=True)


def refcount():
    """References of the module; None if it is not there."""
    try:
        with open("/sys/module/dccp_tfrc/refcnt", encoding="ascii") as f:
            return int(f.read())
    except FileNotFoundError:
        return None


def remove():
    """The name of delete_module()'s error, or None."""
    if libc.syscall(DELETE_MODULE, b"dccp_tfrc", os.O_NONBLOCK):
        return errno.errorcode[ctypes.get_errno()]
    return None


def disconnect(s):
    """connect() with AF_UNSPEC, for which Python has no way."""
    libc.connect(s.fileno(), bytes(16), 16)


def wait_for(condition, seconds, every=0.1):
    """What the condition says in the end."""
    end = time.monotonic() + seconds
    while not (good := condition()) and time.monotonic() < end:
        time.sleep(every)
    return good


# One at a time


class Absent:
    """A page that is not there: a system call that copies from or to it stops, with its socket locked."""

    def __init__(self):
        self.fd = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
        fcntl.ioctl(self.fd, UFFDIO_API, struct.pack("=QQQ", 0xAA, 0, 0))
        self.page = mmap.mmap(-1, PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.page))
        fcntl.ioctl(self.fd, UFFDIO_REGISTER, struct.pack("=QQQQ", self.address, PAGE, 1, 0))

    def during(self, call, seconds):
        """Hold up a call for so long; (begin, end) of the time that it surely stood."""
        thread = threading.Thread(target=call, args=(self.address,))
        thread.start()
        if not select.select([self.fd], [], [], 10)[0]:
            raise RuntimeError("the call has not come to the page")
        os.read(self.fd, 32)
        begin = time.monotonic()
        time.sleep(seconds)
        end = time.monotonic()
        fcntl.ioctl(self.fd, UFFDIO_ZEROPAGE, struct.pack("=QQQq", self.address, PAGE, 0, 0))
        thread.join()
        back = time.monotonic()
        self.page.madvise(mmap.MADV_DONTNEED)
        return begin, end, back


def owner(s, name):
    """A system call that owns its socket while it copies (setsockopt() has copied before)."""
    if name == "send":
        return lambda at: libc.send(s.fileno(), ctypes.c_void_p(at), 100, 0)
    size = ctypes.byref(ctypes.c_int(88))
    return lambda at: libc.getsockopt(
        s.fileno(), dccp.SOL_DCCP, dccp.CCID_TX_INFO, ctypes.c_void_p(at), size
    )


def trace_file(name, text):
    with open(f"{TRACE}/{name}", "w", encoding="ascii") as f:
        f.write(text)


@contextlib.contextmanager
def expirations():
    """A function for the times at which nofeedback timers have been seen to expire."""

    def times():
        with open(f"{TRACE}/trace", encoding="ascii") as f:
            return [
                float(m[1])
                for m in re.finditer(r" (\d+\.\d+): tfrc_feedback: .*expired=1", f.read())
            ]

    trace_file("trace", "")
    trace_file("events/dccp_tfrc/tfrc_feedback/enable", "1")
    yield times
    trace_file("events/dccp_tfrc/tfrc_feedback/enable", "0")


def talk(sender, receiver, count=20):
    """Until a round-trip time is known; how many of the packets arrived."""
    got = 0
    for _ in range(count):
        got += dccp.exchange(sender, receiver, 1)
        time.sleep(0.005)
    return got


def test_owned(net):
    """What a timer has to do waits for the owner of the socket, and no longer."""
    absent = Absent()
    trace_file("trace_clock", "mono")
    for ccid, name in itertools.product(CCIDS, ("send", "getsockopt")):
        net.fresh("netem limit 10000")
        with dccp.connection(socket.AF_INET, {"ccid": [ccid]}, {"ccid": [ccid]}) as (c, s):
            c.setblocking(True)
            call = owner(c, name)
            talk(c, s)
            # Two of these have to wait; the timer that lets them go finds the socket owned.
            c.setsockopt(dccp.SOL_DCCP, 195, struct.pack("=I", 100000))
            sent = sum(send(c, 100) for _ in range(3))
            absent.during(call, 0.3)
            sent += name == "send"
            got = received(s, sent)
            tap.ok(
                got == sent > 2,
                f"CCID {ccid}: what waited while {name} owned the socket is sent",
                (sent, got),
            )
            c.setsockopt(dccp.SOL_DCCP, 195, bytes(4))
            talk(c, s)
            net.qdisc("netem loss 100%", "change")
            with expirations() as times:
                send(c, 100)
                # The timeout is four round trips, or two packets: 0.4 s, and more on a busy host.
                begin, end, back = absent.during(call, 1.2)
                wait_for(times, 20)
            within = [x for x in times() if begin < x < end]
            tap.ok(
                not within,
                f"CCID {ccid}: no timer expires while {name} owns the socket",
                (begin, end, times()),
            )
            tap.ok(
                any(end < x < back for x in times()),
                f"CCID {ccid}: but when it is let go, before the call is back",
                (end, back, times()),
            )
    os.close(absent.fd)


def send(s, size):
    try:
        return s.send(bytes(size)) == size
    except OSError:
        return False


def received(s, most):
    """How many packets come, the next within some seconds."""
    got = 0
    while got < most and select.select([s], [], [], 5)[0]:
        s.recv(2000)
        got += 1
    return got


# The crowd. Jobs are processes; they count what they did.


class Job:
    def __init__(self, function, *args):
        self.out, into = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.out)
            counts = collections.Counter()
            try:
                function(counts, *args)
            finally:
                if sys.exc_info()[0]:
                    counts["error"] = traceback.format_exc()
                os.write(into, json.dumps(counts).encode())
                os._exit(0)
        os.close(into)

    def result(self):
        with open(self.out, "rb") as f:
            text = f.read()
        os.waitpid(self.pid, 0)
        return json.loads(text or '{"error": "killed"}')


def attempt(counts, what, function, *args):
    """Call, and count how it went; the result, or None."""
    try:
        result = function(*args)
    except OSError as error:
        counts[f"{what}: {errno.errorcode.get(error.errno, error)}"] += 1
        return None
    counts[what] += 1
    return result


def blocking(s):
    """Calls wait, but not for long; unlike Python's, this timeout goes with the socket."""
    s.setblocking(True)
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        s.setsockopt(socket.SOL_SOCKET, option, struct.pack("=qq", 0, 100000))


def drain(listener):
    """Close what nobody has accepted: it would be taken for the next, and it keeps the module."""
    listener.setblocking(False)
    while stale := attempt(collections.Counter(), "", listener.accept):
        stale[0].close()


def opened(counts, rng, listener):
    """Both ends of a new connection, or ()."""
    ccid = rng.choice(CCIDS)
    ends = attempt(
        counts, f"connect {ccid}", lambda: dccp.connect(listener, ccid=[ccid], patience=1)
    )
    if not ends:
        drain(listener)
        return ()
    for s in ends:
        blocking(s)
    return ends


def shut(s, how):
    """Ways to leave a socket."""
    if how == "linger":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 1))
    elif how == "abort":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
    elif how == "shutdown":
        s.shutdown(socket.SHUT_WR)
    elif how == "disconnect":
        disconnect(s)
    s.close()


def storm(counts, end, listener, seed):
    """Connections that last as long as it takes to fill their queues."""
    rng = random.Random(seed)
    while time.monotonic() < end:
        ends = opened(counts, rng, listener)
        if not ends:
            continue
        for s in ends:
            for _ in range(rng.choice((1, 8, 30))):
                attempt(
                    counts, "send", s.send, bytes(rng.choice((0, 100, 1300))), socket.MSG_DONTWAIT
                )
        time.sleep(rng.choice((0, 0, 0.01, 0.1)))
        for s in rng.sample(ends, 2):
            attempt(
                counts,
                "leave",
                shut,
                s,
                rng.choice(("close", "linger", "abort", "shutdown", "disconnect")),
            )
            s.close()


def pump(counts, end, ends, _):
    """Data as fast as they go, both ways."""
    while time.monotonic() < end:
        for s in ends:
            attempt(counts, "pump", s.send, bytes(1300))
            attempt(counts, "receive", s.recv, 2000, socket.MSG_DONTWAIT)


def poke(counts, end, ends, seed):
    """All options of the CCIDs."""
    rng = random.Random(seed)
    while time.monotonic() < end:
        s = rng.choice(ends)
        for option in (
            dccp.CCID_RX_INFO,
            dccp.CCID_TX_INFO,
            *RX_OPTIONS,
            *TX_OPTIONS,
            dccp.TX_CCID,
            dccp.RX_CCID,
        ):
            attempt(counts, "get", s.getsockopt, dccp.SOL_DCCP, option, 200)
        for option in (*RX_OPTIONS, *TX_OPTIONS):
            attempt(
                counts,
                "set",
                s.setsockopt,
                dccp.SOL_DCCP,
                option,
                struct.pack("=I", rng.choice((0, 1, 36, 100, 1000, 20000))),
            )


def listen_and_call(counts, rng, s):
    """A socket that had a connection is a listener now."""
    s.listen(4)
    blocking(s)
    with dccp.sock("b", s.family, ccid=[rng.choice(CCIDS)]) as c:
        blocking(c)
        c.connect((dccp.ADDRESS["a"][s.family], s.getsockname()[1]))
        server = s.accept()[0]
        with server:
            counts["call to a former client"] += 1
            c.send(bytes(100))
            server.send(bytes(100))


def upset(counts, end, ends, seed, address):
    """What ends a connection while others use it."""
    rng = random.Random(seed)
    c, s = ends
    while time.monotonic() < end:
        time.sleep(rng.random() * 0.2)
        what = rng.choice(("reconnect", "at once", "listen", "shutdown", "server"))
        if what == "shutdown":
            attempt(
                counts,
                what,
                rng.choice(ends).shutdown,
                rng.choice((socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR)),
            )
        elif what == "server":
            disconnect(s)
        else:
            disconnect(c)
        if what == "reconnect":
            attempt(counts, what, c.connect, address)
        elif what == "at once":
            libc.fcntl(c.fileno(), fcntl.F_SETFL, os.O_NONBLOCK)
            attempt(counts, what, c.connect, address)
            blocking(c)
        elif what == "listen":
            attempt(counts, what, listen_and_call, counts, rng, c)


def share(counts, end, listener, seed):
    """Several processes on the same sockets."""
    rng = random.Random(seed)
    while time.monotonic() < end:
        ends = opened(counts, rng, listener)
        if not ends:
            continue
        until = time.monotonic() + rng.choice((0.1, 0.5, 1, 2))
        address = listener.getsockname()[:2]
        jobs = [
            Job(pump, until, ends, 0),
            Job(poke, until, ends, rng.random()),
            Job(upset, until, ends, rng.random(), address),
        ]
        while time.monotonic() < until:
            # upset's connections
            listener.settimeout(0.1)
            if late := attempt(counts, "accept", listener.accept):
                attempt(counts, "send", late[0].send, bytes(100))
                late[0].close()
        for s in ends:
            s.close()
        add(counts, [job.result() for job in jobs])


def add(counts, results):
    """Sum up; errors are kept as they are."""
    for result in results:
        if text := result.pop("error", None):
            counts["error"] = text
        for name, n in result.items():
            counts[name] += n


def look(counts, end):
    """inet_diag asks the CCIDs."""
    while time.monotonic() < end:
        counts["look: an RTT"] += run("ss -dine", ns="a").stdout.count("rtt:")
        run("ss -dinea", ns="b")
        counts["look"] += 1


def flap(ns, dev, n):
    """A device goes down and up; of a host, the routes go with it."""
    run("ip -batch -", ns=ns, input=f"link set {dev} down\nlink set {dev} up\n")
    if n:
        run(f"ip route replace default via 10.0.{n}.2", ns=ns)
        run(f"ip -6 route replace default via fd0{n}::2", ns=ns)


def fail(counts, end, seed):
    """Loss, delay, links that go down."""
    rng = random.Random(seed)
    while time.monotonic() < end:
        spec = rng.choice(
            ("", "delay 1ms", "delay 20ms 5ms", "loss 10%", "loss 60% delay 5ms", "duplicate 20%")
        )
        run(
            f"tc qdisc replace dev {rng.choice(('in', 'out'))} root netem {spec} limit 1000", ns="r"
        )
        time.sleep(rng.random())
        if not rng.randrange(3):
            flap(*rng.choice((("r", "out", None), ("a", "eth0", 1), ("b", "eth0", 2))))
            counts["down and up"] += 1


def unload(counts, end):
    """Sockets have the module loaded again when they ask for it, and now and then it stays long enough to be used."""
    rng = random.Random(SEED)
    while time.monotonic() < end:
        counts[f"rmmod: {remove()}"] += 1
        time.sleep(rng.choice((0.005, 0.005, 0.005, 0.5)))


def crowd(jobs):
    """What jobs counted together."""
    counts = collections.Counter()
    add(counts, [job.result() for job in jobs])
    tap.ok("error" not in counts, "all jobs come to their end", counts.pop("error", None))
    tap.note(", ".join(f"{name} {n}" for name, n in sorted(counts.items())))
    return counts


def happened(counts):
    """What is to happen in the crowd, and how often it did."""
    return {
        what: counts[what]
        for what in (
            *(f"connect {ccid}" for ccid in CCIDS),
            "send",
            "pump",
            "receive",
            "get",
            "set",
            "reconnect",
            "listen",
            "shutdown",
            "leave",
            "look",
            "down and up",
        )
    }


def test_kept(listeners):
    """All at once, while a connection that has no part in it keeps the module.

    On a slow machine some of it may not come about in the first turn."""
    counts = collections.Counter()
    with dccp.connection(socket.AF_INET, {"ccid": [4]}, {"ccid": [4]}, to="a") as (c, _):
        for turn in range(TURNS):
            end = time.monotonic() + KEPT
            seed = SEED + 1000 * turn
            jobs = [Job(look, end), Job(fail, end, seed), Job(unload, end)]
            for n, listener in enumerate(listeners):
                jobs.append(Job((storm, share)[n % 2], end, listener, seed + n))
            add(counts, [crowd(jobs)])
            if all(happened(counts).values()):
                break
        tap.ok(dccp.ccids(c) == (4, 4), "the keeper lives")
    for what, n in happened(counts).items():
        tap.ok(n > 0, f"{what}: {n} times", counts)
    tries = {name: n for name, n in counts.items() if name.startswith("rmmod")}
    tap.ok(
        list(tries) == ["rmmod: EAGAIN"], "as long as a connection is open, the module stays", tries
    )


def gone(listeners):
    """The module, or it goes now."""
    for listener in listeners:
        drain(listener)
    return refcount() is None or remove() is None


def test_free(listeners):
    """A storm, and while its last sockets go somebody tries to remove the module."""
    for number in range(ROUNDS):
        end = time.monotonic() + FREE
        jobs = [
            Job(storm, end, listener, SEED + 100 + n) for n, listener in enumerate(listeners[::2])
        ]
        counts = crowd([Job(unload, end), *jobs])
        tap.ok(
            sum(counts[f"connect {ccid}"] for ccid in CCIDS) > 0, "there were connections", counts
        )
        begin = time.monotonic()
        tap.ok(
            wait_for(lambda: gone(listeners), PATIENCE, 0.001),
            "the module can be removed after the last one",
        )
        tap.note(f"round {number + 1}: after {time.monotonic() - begin:.1f} s")


def mend(net):
    """A network without faults."""
    for ns, dev in (("r", "in"), ("r", "out")):
        run(f"tc qdisc del dev {dev} root", ns=ns, check=False)
    net.fresh("netem limit 10000")


def go():
    """The module must be without users, and be removed."""
    start = time.monotonic()
    tap.ok(
        wait_for(lambda: not refcount(), PATIENCE),
        "all closed: in a while nobody uses the module",
        refcount(),
    )
    tap.note(f"after {time.monotonic() - start:.1f} s")
    error = None if refcount() is None else remove()
    tap.ok(error is None and refcount() is None, "and it can go", error)


def main():
    dccp.load()
    net = Net()
    before = dccp.allocations()
    # without a list any more, a former client still is to get all of them
    run("modprobe dccp_tfrc experimental=Y")
    for ns in "abr":
        run("sysctl -qw net.ipv6.conf.all.keep_addr_on_down=1", ns=ns)
    run("sysctl -qw net.dccp.default.request_retries=1 net.dccp.default.retries2=2")
    with open("/proc/sys/kernel/printk", "w", encoding="ascii") as f:
        f.write("1")  # of packets out of place there is much to tell
    test_owned(net)

    families = [family for family in dccp.FAMILIES.values() for _ in range(2)]
    listeners = [
        dccp.listen("b", family, 5001 + n, ccid=CCIDS) for n, family in enumerate(families)
    ]
    test_kept(listeners)
    mend(net)
    test_free(listeners)
    for s in listeners:
        s.close()
    for round_ in range(2):
        run("modprobe dccp_tfrc experimental=Y")
        for n, (name, family) in enumerate(dccp.FAMILIES.items()):
            for ccid in CCIDS:
                # ports that the crowd had no part in
                with dccp.connection(
                    family, {"ccid": [ccid]}, {"ccid": [ccid], "port": 5101 + n}
                ) as (c, s):
                    got = talk(c, s, 5), talk(s, c, 5)
                    tap.ok(got == (5, 5), f"{name}, CCID {ccid}: all is well, {round_ + 1}", got)
                    error = remove()
                    tap.ok(error == "EAGAIN", f"{name}, CCID {ccid}: the module is in use", error)
        go()

    dccp.nothing_left(tap, before)


if __name__ == "__main__":
    main()
    tap.done()
