#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: 100,000 packets of garbage, and each odd option with each CCID
# vm: --append slub_debug=FZPU,ccid*,DCCP*,dccp*,kmalloc-8,kmalloc-16,kmalloc-32,kmalloc-64,kmalloc-96,kmalloc-128
"""Garbage in live calls: dccpmangle stands between the ends, who must bear it.

For each CCID three things. The sweep: options 192 to 196, 40 and 128 with every length from
0 to 16, filled with zeros, ones and random bytes, on all packets of a call, of
every type. Then garbage that a receiver has to ignore: the calls go on, and get
their rate back. Then garbage that may end calls: a new one works.
"""

import contextlib
import itertools
import json
import os
import random
import select
import socket
import struct
import subprocess
import time

import dccp
from lib import FAULTS, LONG, SEED, Net, Tap, run

# made packets, of each of the two kinds
COUNT = {4: 36000, **dict.fromkeys(range(248, 255), 6000)} if LONG else {4: 3000, 254: 1500}
CALLS = 3
EVERY = 0.04  # s between two packets of a call, each way
SIZE = 160
SWEEP = 20000  # client port of the first call of a sweep
VARIANTS = 7 * 17 * 3
TX_INFO = 96  # size of struct tfrc_tx_info_ext
SERVER_TIMEWAIT = 6  # socket option; if not set, a server closes with CloseReq
RECOVERY = 250  # from a packet in 64 s, which a forged feedback may ask for, the rate doubles with each packet

tap = Tap()


class KernelLog:
    """Lines that tell of a fault, of more than the log holds at a time."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_DATA)  # what init has cleared is not ours
        self.lines = self.missed = 0
        self.faults = []

    def read(self):
        while True:
            try:
                line = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:  # overwritten meanwhile
                self.missed += 1
                continue
            self.lines += 1
            if any(word in line for word in FAULTS):
                self.faults.append(line)


log = KernelLog()


def forwarding(on):
    run(f"sysctl -qw net.ipv4.ip_forward={on}", ns="r")


class Mangle:
    """dccpmangle in place of the router."""

    def __init__(self, options):
        forwarding(0)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", "r", "dccpmangle", *options.split()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("dccpmangle did not start")

    def ended(self):
        return self.process.poll() is not None

    def end(self):
        """What it did."""
        self.process.stdin.close()
        out = self.process.stdout.read()
        if self.process.wait():
            raise RuntimeError("dccpmangle failed")
        forwarding(1)
        return json.loads(out)


class Call:
    """Data both ways, as far as the sockets go."""

    def __init__(self, listener, ccid):
        self.listener, self.ccid = listener, ccid
        self.ends, self.got = (), [0, 0]
        self.opened = 0

    def open(self, patience=300):
        self.close()
        self.ends = dccp.connect(self.listener, ccid=[self.ccid], patience=patience)
        self.got = [0, 0]
        self.opened += 1
        for s in self.ends:
            s.setblocking(False)

    def close(self):
        for s in self.ends:
            s.close()
        self.ends = ()

    def send(self):
        for s in self.ends:
            try:
                s.send(bytes(SIZE))
            except BlockingIOError:
                pass  # its queue is full: the rate is lower than ours

    def receive(self, ready):
        for n, s in enumerate(self.ends):
            while s in ready:
                try:
                    if not s.recv(2000) and self.over(s):
                        raise ConnectionResetError
                    self.got[n] += 1
                except BlockingIOError:
                    break

    @staticmethod
    def over(s):
        """Nothing to read is the end, or an empty packet."""
        poll = select.poll()
        poll.register(s, 0)
        return bool(poll.poll(0))

    def tx_info(self):
        return [
            struct.unpack_from(
                "=QQIIIIIIQIIIIIIBBBBIII", s.getsockopt(dccp.SOL_DCCP, dccp.CCID_TX_INFO, 200)
            )
            for s in self.ends
        ]

    def strange(self):
        """What the sockets say of themselves that cannot be."""
        wrong = []
        for s, tx in zip(self.ends, self.tx_info()):
            x, _, x_calc, rtt, p, rto, _, size, x_inst = tx[:9]
            if not x and not tx[21]:
                continue  # nothing sent yet
            if (
                not x
                or not x_inst
                or size != TX_INFO
                or p > 1000000
                or not rto
                or (p == 0) != (x_calc == 0)
            ):
                wrong.append(("tx", tx))
            if rtt and not 100 <= rtt <= 10_000_000:
                wrong.append(("rtt", tx))
            rx = struct.unpack_from(
                "=IIIIQQQQQQIIIIBBBB", data := s.getsockopt(dccp.SOL_DCCP, dccp.CCID_RX_INFO, 200)
            )
            if (
                rx[2] > 1000000
                or rx[3] != len(data)
                or rx[9] > rx[5] + rx[6]
                or rx[17] > 9
                # a loss before the first packet of data is reported with that
                or rx[4]
                and (rx[2] == 0) != (rx[9] == 0)
            ):
                wrong.append(("rx", rx))
            if tx[15] != self.ccid or rx[14] != self.ccid:
                wrong.append(("ccid", tx[15], rx[14]))
        return wrong


def drive(calls, until, on_end, every=EVERY):
    """Keep the calls going until until() says so; on_end(call) when one has ended. What was strange."""
    strange, look = [], 0
    due = time.monotonic()
    while not until():
        for call in calls:
            try:
                call.send()
                if time.monotonic() > look:
                    strange += call.strange()
            except OSError:
                on_end(call)
        if time.monotonic() > look:
            look = time.monotonic() + 0.5
            log.read()
        due = max(due + every, time.monotonic())
        while (left := due - time.monotonic()) > 0:
            ready = select.select([s for call in calls for s in call.ends], [], [], left)[0]
            for call in calls:
                try:
                    call.receive(ready)
                except OSError:
                    on_end(call)
    return strange


def after(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def rotate(calls, again):
    """For drive(): now and then a new call."""
    turn = itertools.cycle(calls)
    due = time.monotonic()

    def until(mangle):
        nonlocal due
        if time.monotonic() > due:
            due = time.monotonic() + 0.2
            again(next(turn))
        return mangle.ended()

    return until


def rates(calls, seconds):
    """Packets received in this time, by call and end, as shares of those offered."""
    before = [tuple(call.got) for call in calls]
    drive(calls, after(seconds), stop)
    return [
        (a - b) * EVERY / seconds for call, old in zip(calls, before) for a, b in zip(call.got, old)
    ]


class Ended(Exception):
    pass


def stop(call):
    errors = [os.strerror(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) for s in call.ends]
    raise Ended(f"ends of the call: {errors}")


def ask_for_rtt(on):
    with open("/sys/module/dccp_tfrc/parameters/rtt_estimate", "w", encoding="ascii") as f:
        f.write(on)


def attack(ccid, hostile, listener):
    """Calls under fire, and when it is over."""
    calls = [Call(listener, ccid) for _ in range(CALLS)]
    kind = "what may end calls" if hostile else "what is to be ignored"
    forwarding(1)
    for call in calls:
        call.open()
    failed = [0]

    def again(call):
        """Maybe for a while there is no getting through."""
        try:
            call.open(patience=0.5)
        except OSError:
            failed[0] += 1
            call.close()

    if hostile:
        ask_for_rtt("Y")  # what is asked for, and wrong, ends a call
    mangle = Mangle(f"-n {COUNT[ccid]} -s {SEED * 1000 + ccid} {'-x' if hostile else ''}")
    done = None
    try:
        until = rotate(calls, again) if hostile else Mangle.ended
        strange = drive(calls, lambda: until(mangle), again if hostile else stop)
        done = mangle.end()
        report(ccid, kind, done)
        if hostile:
            tap.note(f"{sum(call.opened for call in calls)} calls, {failed[0]} did not connect")
        else:
            tap.ok(True, f"CCID {ccid}, {kind}: all calls live")
            # else the numbers of the packets were wrong
            feedback = sum(tx[21] for call in calls for tx in call.tx_info())
            tap.ok(
                feedback - done["acks"] > done["made"] / 100,
                f"CCID {ccid}, {kind}: {feedback} feedback packets taken, {done['acks']} genuine",
            )
        tap.ok(
            done["made"] + done["changed"] >= COUNT[ccid],
            f"CCID {ccid}, {kind}: {COUNT[ccid]} packets of garbage",
        )
        tap.ok(not strange, f"CCID {ccid}, {kind}: rates stay in range", strange[:5])
        if hostile:
            for call in calls:
                call.open()
        else:
            strange = drive(calls, after(RECOVERY), stop, 5 * EVERY)
            drive(calls, after(10), stop)
            tap.ok(not strange, f"CCID {ccid}, {kind}: and do so afterwards", strange[:5])
        shares = rates(calls, 20)
        tap.ok(
            min(shares) > 0.95,
            f"CCID {ccid}, {kind}: then the rate is {min(shares):.0%} or more of what is offered",
            [shares, *(call.tx_info() for call in calls)],
        )
    except Ended as error:
        tap.ok(False, f"CCID {ccid}, {kind}: all calls live", error)
        if not done:
            mangle.process.kill()
    ask_for_rtt("N")
    forwarding(1)
    for call in calls:
        call.close()
    return done["made"] + done["changed"] if done else 0


def report(ccid, what, done):
    """A line of the counts; of the options only ours."""
    options = done.pop("options")
    ours = {n: options.pop(n, 0) for n in ("192", "193", "194", "195")}
    tap.note(
        f"CCID {ccid}, {what}: {json.dumps(done)}, options {json.dumps(ours)} and {sum(options.values())} others"
    )


def drain(s):
    """Unread data would make a Reset of its close."""
    s.setblocking(False)
    with contextlib.suppress(OSError):
        while True:
            s.recv(2000)


def sweep(ccid, listener):
    """Calls of some packets each, with the same odd option on all of them, and three kinds of end."""
    mangle = Mangle(f"-S {SWEEP} -s {SEED}")
    silent = []
    order = list(range(VARIANTS))
    random.Random(SEED).shuffle(order)
    for number, variant in enumerate(order if ccid == 4 and LONG else order[::6]):
        client = dccp.sock("a", ccid=[ccid])
        client.bind(("", SWEEP + variant))
        server = None
        try:
            client.settimeout(100)
            client.connect(listener.getsockname()[:2])
            listener.settimeout(10)
            server = listener.accept()[0]
            server.setsockopt(dccp.SOL_DCCP, SERVER_TIMEWAIT, number % 2)
            for s, other in ((client, server), (server, client)):
                other.settimeout(100)
                s.send(bytes(SIZE))
                other.recv(2000)
            # Ends: a CloseReq, the server's Close, the client's, a Reset.
            if number % 4 == 3:
                server.send(bytes(SIZE))  # unread
        except OSError as error:
            silent.append((variant, str(error)))
        time.sleep(0.1)
        with contextlib.suppress(AttributeError):
            if number % 4 < 3:
                drain(client)
                drain(server)
            first, second = (client, server) if number % 4 > 1 else (server, client)
            first.close()
            time.sleep(0.2)
            second.close()
    time.sleep(2)
    done = mangle.end()
    report(ccid, "sweep", done)
    tap.ok(not silent, f"CCID {ccid}, sweep: {number + 1} calls carry data", silent[:10])
    tap.ok(
        len(done["types"]) == 16,
        f"CCID {ccid}, sweep: on packets of all types, and of what is no type",
        done["types"],
    )
    return done["made"] + done["changed"]


def without_rate():
    """A peer's CCID 4 need not send its Loss Event Rate: the Loss Intervals have it."""
    with dccp.listen("b", ccid=[4]) as listener:
        mangle = Mangle("-L 25")
        call = Call(listener, 4)
        call.open()
        strange = drive([call], after(20), stop, 0.02)
        done = mangle.end()
        infos = call.tx_info()
        p = [info[4] / 1e6 for info in infos]
        tap.ok(
            done["changed"] > 100 and not strange,
            f"without option 192: {done['changed']} of them taken off",
            (done, strange),
        )
        for end, info in zip(("client", "server"), infos):
            # losses 25 packets apart are events of their own, at two packets a round trip
            tap.ok(
                0.03 < info[4] / 1e6 < 0.055 and info[21] > 100,
                f"without option 192: the {end} has p = {info[4] / 1e6:.4f} after {info[21]} feedback packets",
                (p, info),
            )
        call.close()


def main():
    dccp.load()
    run("modprobe dccp_tfrc")
    with open("/proc/sys/kernel/printk", "w", encoding="ascii") as f:
        f.write("1")  # of invalid packets there is much to tell, and the console is slow
    Net(delay=20)
    run("sysctl -qw net.dccp.default.retries2=2 net.dccp.default.request_retries=1")
    before = dccp.allocations()
    total = 0
    without_rate()
    for ccid in COUNT:
        with dccp.listen("b", ccid=[ccid]) as listener:
            total += sweep(ccid, listener)
            total += attack(ccid, False, listener)
            total += attack(ccid, True, listener)
    tap.ok(total >= 2 * sum(COUNT.values()), f"{total} packets of garbage in all")
    forwarding(1)
    dccp.settle()
    after_ = dccp.allocations()
    tap.ok(after_ == before, "net/dccp has freed what it allocated", f"{before}\n{after_}")
    left = {name: n for name, n in dccp.slabs().items() if n}
    tap.ok(not left, "no CCID's state is left", left)
    res = run("rmmod dccp_tfrc", check=False)
    tap.ok(not res.returncode, "the module goes", res.stderr)
    log.read()
    tap.note(f"{log.lines} lines of the kernel's log, {log.missed} gaps")
    tap.ok(not log.faults, "the kernel did not complain", "\n".join(log.faults[:20]))
    tap.done()


if __name__ == "__main__":
    main()
