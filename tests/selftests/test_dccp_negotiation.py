#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: --append slub_debug=FZPU,ccid*,DCCP*,dccp*,kmalloc-8,kmalloc-16,kmalloc-32,kmalloc-64,kmalloc-96,kmalloc-128
"""CCIDs that a module registers: negotiation, the registry's rules, hostile peers."""

import ctypes
import errno
import os
import socket
import struct
import time

import dccp
from lib import Net, Tap, run

OURS = (4, *range(248, 255))
DUMMY = 77  # unassigned; its module has an alias for it
NOBODY = 65534

tap = Tap()


def error_of(function, *args, **kwargs):
    """The name of the errno that a call ends with, or None."""
    try:
        result = function(*args, **kwargs)
    except OSError as error:
        # a timeout of Python's own has no errno
        return errno.errorcode.get(error.errno, str(error))
    for s in result if isinstance(result, tuple) else (result,):
        if isinstance(s, socket.socket):
            s.close()
    return None


def sysctl(name, value):
    run(f"sysctl -qw net.dccp.default.{name}={value}")


def load_dummy(ids=DUMMY):
    run(f"modprobe ccid_dummy ids={ids}")


def unload_dummy():
    """rmmod's status; sockets just closed get a moment to go."""
    time.sleep(1)
    return run("rmmod ccid_dummy", check=False).returncode


def parameter(name, value):
    with open(f"/sys/module/ccid_dummy/parameters/{name}", "w", encoding="ascii") as f:
        f.write(str(value))


# Lists of the client, lists of the server, and what the client's sender and
# receiver end up with, or the error. {2, 3} is what a kernel without our modules
# has.
STOCK = {"ccid": [2, 3]}
NEGOTIATIONS = (
    ({}, {}, (2, 2)),
    ({"ccid": [3]}, {}, (3, 3)),
    ({"ccid": [4]}, {}, (4, 4)),
    ({}, {"ccid": [4]}, (4, 4)),
    ({"ccid": [4]}, {"ccid": [4]}, (4, 4)),
    ({"ccid": [248]}, {"ccid": [248]}, (248, 248)),
    ({"ccid": [249]}, {"ccid": [249]}, (249, 249)),
    ({"ccid": [250]}, {"ccid": [250]}, (250, 250)),
    # Experimental ones are not offered by default, whoever asks for them.
    ({"ccid": [248]}, {}, "ETIMEDOUT"),
    ({"ccid": [250, 249, 4]}, {}, (4, 4)),
    ({"rx": [249]}, {}, "ETIMEDOUT"),
    ({}, {"ccid": [249]}, "EILSEQ"),
    ({}, {"ccid": [250, 249, 3]}, (3, 3)),
    ({"ccid": [249, 4, 3, 2]}, {"ccid": [249]}, (249, 249)),
    ({"ccid": [249, 4, 3, 2]}, {"ccid": [4, 249]}, (4, 4)),
    ({"ccid": [4, 3]}, STOCK, (3, 3)),
    ({"ccid": [249, 4, 3, 2]}, STOCK, (2, 2)),
    # A peer that has TEAR, one that has CCID 4, and one that has neither.
    ({"ccid": [254, 4, 3]}, {"ccid": [254]}, (254, 254)),
    ({"ccid": [254, 4, 3]}, {"ccid": [4, 3, 2]}, (4, 4)),
    ({"ccid": [254, 4, 3]}, STOCK, (3, 3)),
    (STOCK, {"ccid": [4, 3]}, (3, 3)),
    ({"tx": [4]}, {}, (4, 2)),
    ({"rx": [4]}, {}, (2, 4)),
    ({"tx": [4], "rx": [3]}, {}, (4, 3)),
    ({"tx": [2], "rx": [249]}, {"tx": [249]}, (2, 249)),
    ({"tx": [250], "rx": [248]}, {"tx": [248], "rx": [250]}, (250, 248)),
    ({"ccid": [4] * 32}, {}, (4, 4)),
    ({"ccid": [249, 4, 249, 4]}, {"ccid": [4, 4]}, (4, 4)),
    # The client gives up the handshake and tries again until the time is up.
    ({"ccid": [4]}, STOCK, "ETIMEDOUT"),
    ({"tx": [4]}, STOCK, "ETIMEDOUT"),
    ({"rx": [4]}, STOCK, "ETIMEDOUT"),
    # Here the server resets at once: it cannot take CCID 2 for granted.
    (STOCK, {"ccid": [4]}, "EILSEQ"),
)


def negotiation():
    sysctl("request_retries", 1)
    for name, family in dccp.FAMILIES.items():
        for client, server, expected in NEGOTIATIONS:
            what = f"{name}: {client or 'default'} to {server or 'default'}"
            try:
                with dccp.connection(family, client, server) as (c, s):
                    got = dccp.ccids(c)
                    tap.ok(
                        got == expected and dccp.ccids(s) == got[::-1], f"{what} is {expected}", got
                    )
                    arrived = dccp.exchange(c, s), dccp.exchange(s, c)
                    tap.ok(arrived == (10, 10), f"{what}: data flows both ways", arrived)
            except OSError as error:
                tap.ok(errno.errorcode.get(error.errno) == expected, f"{what} is {expected}", error)
    sysctl("request_retries", 6)


def lists():
    with dccp.sock("a") as s:
        got = dccp.available(s)
        tap.ok(got == [2, 3, *OURS], "the available CCIDs, in order", got)
        short = list(s.getsockopt(dccp.SOL_DCCP, dccp.AVAILABLE_CCIDS, 4))
        tap.ok(
            short == got[:4], "and the first four of them, where there is room for no more", short
        )
        tap.ok(
            error_of(s.getsockopt, dccp.SOL_DCCP, dccp.TX_CCID, 4) == "ENOPROTOOPT",
            "without a connection there is no CCID to tell",
        )
    for bad in ([5], [4, 5], [0], [1], [255], [], [2] * 252):
        for option in ("ccid", "tx", "rx"):
            tap.ok(
                error_of(dccp.sock, "a", **{option: bad}) == "EINVAL",
                f"{option} {bad[:4]} ({len(bad)}) is EINVAL",
            )
    tap.ok(error_of(dccp.sock, "a", ccid=[4] * 251) is None, "a list of 251 is taken")
    for number, expected in ((4, (4, 4)), (99, (2, 2))):
        sysctl("tx_ccid", number)
        sysctl("rx_ccid", number)
        with dccp.connection(socket.AF_INET, {}, {}) as (c, _):
            got = dccp.ccids(c)
            tap.ok(got == expected, f"net.dccp.default with {number} gives {expected}", got)
    sysctl("tx_ccid", 2)
    sysctl("rx_ccid", 2)


def ask(option, *ccids):
    """What a socket of somebody without privileges is told, in a namespace of root's."""
    with dccp.sock("a") as s:
        os.seteuid(NOBODY)
        try:
            return error_of(s.setsockopt, dccp.SOL_DCCP, option, bytes(ccids))
        finally:
            os.seteuid(0)


def experimental(value):
    with open("/sys/module/dccp_tfrc/parameters/experimental", "w", encoding="ascii") as f:
        f.write(value)


def restricted():
    """CCIDs 248 to 254 are for the privileged, or for all if the administrator says so."""
    for option in (dccp.CCID, dccp.TX_CCID, dccp.RX_CCID):
        for ccids in ((248,), (249,), (4, 3, 250)):
            got = ask(option, *ccids)
            tap.ok(got == "EPERM", f"option {option}: {ccids} takes a privilege", got)
        for ccids, want in (((4, 3, 2), None), ((3,), None), ((5, 249), "EINVAL")):
            got = ask(option, *ccids)
            tap.ok(got == want, f"option {option}: {ccids} does not: {want}", got)
    experimental("Y")
    tap.ok(ask(dccp.CCID, 249, 4) is None, "experimental: everybody may choose them")
    for client, server, want in (
        ({"ccid": [249]}, {}, (249, 249)),
        ({}, {"tx": [248], "rx": [250]}, (250, 248)),
    ):
        with dccp.connection(socket.AF_INET, client, server) as (c, _):
            got = dccp.ccids(c)
            tap.ok(got == want, f"experimental: {client} to {server}: {want}", got)
    experimental("N")
    tap.ok(ask(dccp.CCID, 249, 4) == "EPERM", "and no longer, when it is off again")
    reused()
    # The administrator's default is offered.
    sysctl("tx_ccid", 249)
    sysctl("rx_ccid", 249)
    with dccp.connection(socket.AF_INET, {}, {}) as (c, s):
        got = dccp.ccids(c)
        tap.ok(got == (249, 249), "net.dccp.default with 249 gives it", got)
        tap.ok(dccp.exchange(c, s) == 10, "and data flow")
    for name in ("tx_ccid", "rx_ccid"):
        sysctl(name, 2)


def reused():
    """Sockets whose lists are gone, after a connection or because the sysctl's CCID was not there."""
    with dccp.listen("b") as other:
        c, s = dccp.connect(other, ccid=[4, 2])
        s.close()
        disconnect(c)
        c.listen(4)
        address = dccp.ADDRESS["a"][socket.AF_INET], c.getsockname()[1]
        for ccids in ([2], [249]):
            with dccp.sock("b", ccid=ccids) as caller:
                caller.settimeout(20)
                got = error_of(caller.connect, address)
                tap.ok(
                    (got is None) == (ccids == [2]),
                    f"a former client listens, and is asked for {ccids}: {got or 'taken'}",
                )
        c.close()
    sysctl("tx_ccid", DUMMY)
    sysctl("rx_ccid", DUMMY)
    with dccp.listen("b") as listener, dccp.sock("a", ccid=[249]) as caller:
        caller.settimeout(20)
        got = error_of(caller.connect, listener.getsockname()[:2])
        tap.ok(got, f"a default that is not there yet: 249 is not taken ({got})")
    sysctl("tx_ccid", 2)
    sysctl("rx_ccid", 2)


def registry():
    path = run("modinfo -n ccid_dummy").stdout.strip()
    for bad, message in (
        (0, "Invalid"),
        (1, "Invalid"),
        (255, "Invalid"),
        *((number, "File exists") for number in (2, 3, *OURS)),
    ):
        # modprobe would take EEXIST for success
        said = run(f"insmod {path} ids={bad}", check=False)
        tap.ok(
            said.returncode and message in said.stderr, f"registering {bad}: {message}", said.stderr
        )
    load_dummy(f"{DUMMY},2,{DUMMY}")
    tap.ok(unload_dummy() == 0, "a module with a number that was taken unloads")
    with dccp.connection(socket.AF_INET, {"ccid": [2]}, {}) as (c, s):
        tap.ok(dccp.exchange(c, s) == 10, "CCID 2 is still there")


def autoload():
    child = os.fork()
    if child == 0:
        with dccp.netns("a"):
            s = socket.socket(socket.AF_INET, dccp.SOCK_DCCP, dccp.IPPROTO_DCCP)
        os.setuid(NOBODY)
        os._exit(error_of(s.setsockopt, dccp.SOL_DCCP, dccp.CCID, bytes([DUMMY])) != "EINVAL")
    tap.ok(os.waitpid(child, 0)[1] == 0, "without CAP_NET_ADMIN no module is loaded")
    with dccp.sock("a") as s:
        tap.ok(DUMMY not in dccp.available(s), "and there is none")
    with dccp.sock("a", ccid=[DUMMY, 2]) as s:
        tap.ok(DUMMY in dccp.available(s), "root's setsockopt loads the module")
    tap.ok(unload_dummy() == 0, "which a list does not keep in memory")


def pinning():
    load_dummy()
    for name, family in dccp.FAMILIES.items():
        for what, lists_ in (("a sender", {"tx": [DUMMY]}), ("a receiver", {"rx": [DUMMY]})):
            with dccp.connection(family, lists_, {}) as (c, s):
                tap.ok(unload_dummy(), f"{name}: {what} keeps the module")
                tap.ok(dccp.exchange(c, s) == 10, f"{name}: {what} goes on")
        with dccp.connection(family, {"ccid": [DUMMY]}, {}) as (c, s):
            # Both halves of one end stay, whatever becomes of the other end.
            s.close()
            tap.ok(unload_dummy(), f"{name}: one end keeps the module")
        with dccp.connection(family, {"ccid": [DUMMY]}, {}) as (c, s):
            s.close()
            disconnect(c)
            tap.ok(unload_dummy(), f"{name}: so does a disconnected socket, for its sender")
        tap.ok(unload_dummy() == 0, f"{name}: all closed, it goes")
        load_dummy()
    unload_dummy()


def disconnect(s):
    """connect() with AF_UNSPEC, for which Python has no way."""
    if ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16):
        raise OSError("cannot disconnect")


def departure():
    """The module goes while its number is on somebody's list."""
    for name, family in dccp.FAMILIES.items():
        load_dummy()
        with dccp.listen("b", family, ccid=[DUMMY]) as listener:
            alone = dccp.sock("a", family, ccid=[DUMMY])
            listed = dccp.sock("a", family, ccid=[DUMMY, 2])
            tap.ok(unload_dummy() == 0, f"{name}: lists do not keep the module")
            got = error_of(alone.connect, listener.getsockname()[:2])
            tap.ok(got == "EPROTO", f"{name}: connecting with a number that has gone: EPROTO", got)
            got = error_of(listed.connect, listener.getsockname()[:2])
            tap.ok(got == "EUSERS", f"{name}: a listener whose number has gone: too busy", got)
            load_dummy()
            with dccp.sock("a", family, ccid=[DUMMY]) as again:
                got = error_of(again.connect, listener.getsockname()[:2])
                tap.ok(got is None, f"{name}: it is back, and so is the listener", got)
            alone.close()
            listed.close()
        unload_dummy()


def failing_init():
    load_dummy()
    for name, family in dccp.FAMILIES.items():
        for lists_ in ({"ccid": [DUMMY]}, {"tx": [DUMMY]}, {"rx": [DUMMY]}):
            with dccp.listen("b", family) as listener:
                for role, number in (("client", 2), ("server", 3)):
                    parameter("fail", number)
                    got = error_of(dccp.connect, listener, **lists_)
                    tap.ok(
                        got,
                        f"{name} {lists_}: no connection without a CCID's state at the {role} ({got})",
                    )
                    parameter("fail", 0)
                    got = error_of(dccp.connect, listener, **lists_)
                    tap.ok(got is None, f"{name} {lists_}: the next is fine", got)
    tap.ok(unload_dummy() == 0, "failures keep no reference")


def options():
    """setsockopt() reaches the CCID."""

    def value(s, option):
        return struct.unpack("4I", s.getsockopt(dccp.SOL_DCCP, option, 16))[3]

    load_dummy()
    with dccp.sock("a") as s:
        for option in (127, 256):
            tap.ok(
                error_of(s.setsockopt, dccp.SOL_DCCP, option, 1) == "ENOPROTOOPT",
                f"option {option} without a connection is ENOPROTOOPT",
            )
        for option in (128, 192):
            tap.ok(
                error_of(s.setsockopt, dccp.SOL_DCCP, option, 1) == "ENOPROTOOPT",
                f"option {option}, which tells, without a connection is ENOPROTOOPT",
            )
        kept = range(129, 256, 11)
        tap.ok(len(kept) == 12, "there is room for twelve options")
        for option in kept:
            tap.ok(
                error_of(s.getsockopt, dccp.SOL_DCCP, option, 4) == "ENOPROTOOPT",
                f"option {option} that is not set is ENOPROTOOPT",
            )
            for number in (1, option):
                s.setsockopt(dccp.SOL_DCCP, option, number)
        got = [s.getsockopt(dccp.SOL_DCCP, option) for option in kept]
        tap.ok(got == list(kept), "options set without a connection are kept", got)
        tap.ok(
            error_of(s.setsockopt, dccp.SOL_DCCP, 130, 1) == "ENOBUFS", "a thirteenth is ENOBUFS"
        )
        for bad in (b"abc", bytes(5), bytes(8)):
            tap.ok(
                error_of(s.setsockopt, dccp.SOL_DCCP, 129, bad) == "EINVAL",
                f"{len(bad)} bytes are EINVAL",
            )
    # what is set before connect() and listen(), at the client, the server's child, and a client again
    with dccp.listen("b", ccid=[DUMMY]) as listener, dccp.sock("a", ccid=[DUMMY]) as c:
        for s, base in ((c, 1000), (listener, 2000)):
            for option in (191, 255):
                s.setsockopt(dccp.SOL_DCCP, option, base + option)
        c.connect(listener.getsockname()[:2])
        with listener.accept()[0] as s:
            for name, end, base in (("client", c, 1000), ("child", s, 2000)):
                got = value(end, 128), value(end, 192)
                tap.ok(got == (base + 191, base + 255), f"the {name} has what was set before", got)
        got = [listener.getsockopt(dccp.SOL_DCCP, option) for option in (191, 255)]
        tap.ok(got == [2191, 2255], "and the listener still", got)
        # once more: what was set while there was a connection is gone with it
        c.setsockopt(dccp.SOL_DCCP, 191, 7)
        disconnect(c)
        c.setsockopt(dccp.SOL_DCCP, 255, 8)
        got = [c.getsockopt(dccp.SOL_DCCP, option) for option in (191, 255)]
        tap.ok(got == [1191, 8], "a former client has what was set without a connection", got)
        c.setsockopt(dccp.SOL_DCCP, dccp.CCID, bytes([DUMMY]))
        c.connect(listener.getsockname()[:2])
        got = value(c, 128), value(c, 192)
        tap.ok(got == (1191, 8), "and so has its next connection", got)
    with dccp.sock("a", ccid=[2]) as c, dccp.listen("b") as listener:
        c.setsockopt(dccp.SOL_DCCP, 191, 1)
        c.connect(listener.getsockname()[:2])
        tap.ok(dccp.ccids(c) == (2, 2), "a CCID without options connects all the same")
    with dccp.connection(socket.AF_INET, {"ccid": [2]}, {}) as (c, _):
        for option in (128, 192):
            tap.ok(
                error_of(c.setsockopt, dccp.SOL_DCCP, option, 1) == "ENOPROTOOPT",
                f"option {option} with CCID 2 is ENOPROTOOPT",
            )
    with dccp.connection(socket.AF_INET, {"ccid": [DUMMY]}, {}) as (c, _):
        for option in (129, 191):
            c.setsockopt(dccp.SOL_DCCP, option, 1000 + option)
            tap.ok(
                value(c, 128) == 1000 + option and value(c, 192) == 0,
                f"option {option} goes to the receiver",
            )
        for option in (193, 255):
            c.setsockopt(dccp.SOL_DCCP, option, 1000 + option)
            tap.ok(
                value(c, 128) == 1191 and value(c, 192) == 1000 + option,
                f"option {option} goes to the sender",
            )
        for option in (127, 256):
            tap.ok(
                error_of(c.setsockopt, dccp.SOL_DCCP, option, 1) == "ENOPROTOOPT",
                f"option {option} to nobody",
            )
        tap.ok(
            error_of(c.setsockopt, dccp.SOL_DCCP, 129, b"abc") == "EINVAL", "three bytes are EINVAL"
        )
    unload_dummy()


def ecn(net):
    """A CCID sends ECT(0) where the peer says that it reads ECN, and sees CE."""

    def transfer(sender, receiver):
        arrived = dccp.exchange(sender, receiver)
        return arrived, *struct.unpack("4I", receiver.getsockopt(dccp.SOL_DCCP, 128, 16))[:3]

    load_dummy()
    for name, family in dccp.FAMILIES.items():
        with dccp.connection(family, {"ccid": [DUMMY]}, {}) as (c, s):
            counts = []
            for on, bottleneck in ((0, "pfifo"), (1, "pfifo"), (1, "netem loss 100% ecn")):
                parameter("ecn", on)
                net.fresh(bottleneck)
                counts.append(transfer(c, s))
            net.fresh("pfifo")
            expected = [(10, 10, 0, 0), (10, 20, 10, 0), (10, 30, 10, 10)]
            tap.ok(counts == expected, f"{name}: not-ECT, ECT(0), CE", counts)
            got = transfer(s, c)
            tap.ok(got == (10, 10, 10, 0), f"{name}: ECT(0) the other way", got)
        # CCID 2, which might have been chosen, ignores ECN; so the client had to decline.
        with dccp.connection(family, {"ccid": [DUMMY, 2]}, {"ccid": [DUMMY]}) as (c, s):
            got = transfer(c, s), transfer(s, c)
            tap.ok(
                got == ((10, 10, 10, 0), (10, 10, 0, 0)),
                f"{name}: no ECT to a peer that declined it",
                got,
            )
    parameter("ecn", 0)
    unload_dummy()


def cycles(count=1000):
    libc = ctypes.CDLL(None, use_errno=True)
    path = run("modinfo -n ccid_dummy").stdout.strip()
    bad = 0
    with open(path, "rb") as f:
        for _ in range(count):
            bad += libc.syscall(313, f.fileno(), b"ids=77,78", 0) != 0  # finit_module
            bad += libc.syscall(176, b"ccid_dummy", 0) != 0  # delete_module
    tap.ok(bad == 0, f"{count} times loaded and unloaded", f"{bad} calls failed")
    left = [name for name in dccp.slabs() if name.startswith(("ccid77", "ccid78"))]
    tap.ok(not left, "no slab cache is left", left)


# The wire, by hand

REQUEST, RESPONSE, ACK, RESET = 0, 1, 3, 7
CHANGE_L, CONFIRM_L, CHANGE_R, CONFIRM_R, MANDATORY = 32, 33, 34, 35, 1
FEATURE_CCID = 1


def option(kind, value=b"", feature=FEATURE_CCID):
    return bytes([kind, 3 + len(value), feature]) + bytes(value)


def packet(kind, sport, dport, seq, body, options=b""):
    """A DCCP packet with 48-bit sequence numbers, without its checksum; body is what the type adds."""
    options += bytes(-len(options) % 4)
    doff = (16 + len(body) + len(options)) // 4
    return (
        struct.pack(
            "!HHBBHBBHI", sport, dport, doff, 0, 0, kind << 1 | 1, 0, seq >> 32, seq & 0xFFFFFFFF
        )
        + body
        + options
    )


def with_checksum(data, source, destination):
    pseudo = (
        socket.inet_aton(source)
        + socket.inet_aton(destination)
        + struct.pack("!BBH", 0, 33, len(data))
    )
    padded = pseudo + data + bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:6] + struct.pack("!H", ~total & 0xFFFF) + data[8:]


HOSTILE = {
    "an unknown number": option(CHANGE_L, [99]) + option(CHANGE_R, [99]),
    "unknown numbers and 2": option(CHANGE_L, [99, 0, 255, 1, 2]),
    "32 unknown numbers": option(CHANGE_L, range(100, 132)) + option(CHANGE_R, range(100, 132)),
    "32 times 4": option(CHANGE_L, [4] * 32) + option(CHANGE_R, [4] * 32),
    "all numbers": option(CHANGE_L, range(251)) + option(CHANGE_R, range(250, -1, -1)),
    "no number": option(CHANGE_L) + option(CHANGE_R),
    "the same option five times": option(CHANGE_L, [4, 3]) * 5,
    "contradictions": option(CHANGE_L, [4]) + option(CHANGE_L, [3]) + option(CHANGE_L, [249]),
    "confirmations unasked for": option(CONFIRM_L, [4]) + option(CONFIRM_R, [4, 4, 3]),
    "mandatory and unknown": bytes([MANDATORY]) + option(CHANGE_L, [99]),
    "mandatory and known": bytes([MANDATORY]) + option(CHANGE_L, [4]),
    "mandatory at the end": option(CHANGE_L, [4]) + bytes([0, 0, MANDATORY]),
    "a length beyond the options": option(CHANGE_L, [4]) + bytes([CHANGE_R, 200, 1, 4]),
    "a length of one": bytes([CHANGE_L, 1, 1, 4]),
    "no feature": bytes([CHANGE_L, 2]),
    "CCID-specific options": bytes([128, 4, 1, 2, 191, 2, 192, 6, 0, 0, 0, 0, 255, 3, 9]),
    "CCID-specific features": option(CHANGE_R, [1], 192)
    + option(CHANGE_R, [7], 192)
    + option(CHANGE_L, [1], 250),
    "what depends on the CCID, the other way": option(CHANGE_L, [4])
    + option(CHANGE_R, [1], 6)
    + option(CHANGE_L, [0], 7)
    + option(CHANGE_R, [0], 192),
}


def hostile_clients():
    """Requests that no Linux would send, to listeners with various lists."""
    with dccp.netns("a"):
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, dccp.IPPROTO_DCCP)
    raw.settimeout(2)
    source, destination = (dccp.ADDRESS[ns][socket.AF_INET] for ns in "ab")
    port = 2000
    for server in ({}, {"ccid": [4]}, STOCK):
        with dccp.listen("b", **server) as listener:
            for what, options_ in HOSTILE.items():
                port += 1
                request = packet(REQUEST, port, dccp.PORT, 1 << 40, struct.pack("!I", 42), options_)
                raw.sendto(with_checksum(request, source, destination), (destination, 0))
                kinds = set()
                try:
                    while not kinds:
                        answer = raw.recv(4000)[20:]
                        if struct.unpack("!HH", answer[:4]) == (dccp.PORT, port):
                            kinds.add(answer[8] >> 1 & 15)
                except TimeoutError:
                    pass
                tap.ok(
                    kinds in ({RESPONSE}, {RESET}),
                    f"{what}, to {server or 'default'}: an answer",
                    kinds,
                )
            with dccp.connect(listener, ccid=[4, 2])[0] as c:
                tap.ok(dccp.ccids(c)[0] in (4, 2), f"the listener with {server or 'default'} lives")
    raw.close()


def confirmations(request):
    """What a well-behaved server says to a Request: each Change confirmed, as {(kind, feature): option}."""
    found = {}
    rest = request[20 : request[4] * 4]
    while rest:
        if rest[0] < 32:
            rest = rest[1:]
            continue
        kind, feature, value = rest[0], rest[2], rest[3 : rest[1]]
        if kind in (CHANGE_L, CHANGE_R):
            kind = CONFIRM_R if kind == CHANGE_L else CONFIRM_L
            # Sequence Window and Ack Ratio are numbers, all others lists of preference.
            found[kind, feature] = option(
                kind, value if feature in (3, 5) else value[:1] + value, feature
            )
        rest = rest[rest[1] :]
    return found


def confirm_ccid(*value):
    return {(kind, FEATURE_CCID): option(kind, value) for kind in (CONFIRM_L, CONFIRM_R)}


class FakeServer:
    """Answers for an address that nobody has; b gets the packets for it, and we read its mail."""

    def __init__(self, address="10.9.9.9"):
        self.address = address
        run(f"ip route add {address} via 10.0.2.1", ns="r")
        with dccp.netns("b"):
            self.ears = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
            self.mouth = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.ears.settimeout(5)

    def request(self, port):
        """The Request that came from that port."""
        while True:
            got = self.ears.recv(4000)
            if got[9] == dccp.IPPROTO_DCCP and got[20:22] == struct.pack("!H", port):
                return got[20:]

    def respond(self, request, options_):
        client = dccp.ADDRESS["a"][socket.AF_INET]
        body = struct.pack("!HHI", 0, *struct.unpack("!HI", request[10:16])) + request[16:20]
        (port,) = struct.unpack("!H", request[:2])
        response = with_checksum(
            packet(RESPONSE, dccp.PORT, port, 1 << 40, body, options_), self.address, client
        )
        header = struct.pack(
            "!BBHHHBBH4s4s",
            0x45,
            0,
            0,
            0,
            0,
            64,
            dccp.IPPROTO_DCCP,
            0,
            socket.inet_aton(self.address),
            socket.inet_aton(client),
        )
        self.mouth.sendto(header + response, (client, 0))

    def close(self):
        self.ears.close()
        self.mouth.close()
        run(f"ip route del {self.address} via 10.0.2.1", ns="r")


# What is said of the CCIDs, what comes after it, and the client's possible errors
# (None: whatever a client may do).
NOT_CONFIRMED = {(CONFIRM_L, FEATURE_CCID): b"", (CONFIRM_R, FEATURE_CCID): b""}
RESPONSES = {
    "all well": ({}, b"", {0}),
    "all well for the CCID, and garbage": (
        {},
        bytes([128, 3, 0, 192, 6, 255, 255, 255, 255, 77, 2]),
        {0},
    ),
    "confirmed twice, the second another": (
        {},
        option(CONFIRM_R, [3]) + option(CONFIRM_L, [249, 249]),
        {0},
    ),
    # A peer that does without Send Loss Event Rate: CCID 4's sender goes by the intervals.
    "all well, but nothing known of feature 192": (
        {(kind, 192): option(kind, b"", 192) for kind in (CONFIRM_L, CONFIRM_R)},
        b"",
        {0},
    ),
    "no confirmation": (NOT_CONFIRMED, b"", {"ECOMM"}),
    "a number not offered": (confirm_ccid(3, 3), b"", {"ETIMEDOUT"}),
    "an unknown number": (confirm_ccid(99, 99), b"", {"ETIMEDOUT"}),
    "empty confirmations": (confirm_ccid(), b"", {"ETIMEDOUT"}),
    "right, with a list of 250": (confirm_ccid(4, 4, *range(250)), b"", {0}),
    "right, but not on its own list": (confirm_ccid(4, 3, 2), b"", {"ETIMEDOUT"}),
} | {f"all well, and {what}": ({}, options_, None) for what, options_ in HOSTILE.items()}


def hostile_servers():
    """Responses that no Linux would send."""
    sysctl("request_retries", 1)
    server = FakeServer()
    for what, (ccids, more, expected) in RESPONSES.items():
        with dccp.sock("a", ccid=[4]) as c:
            c.setblocking(False)
            c.connect_ex((server.address, dccp.PORT))
            request = server.request(c.getsockname()[1])
            server.respond(request, b"".join((confirmations(request) | ccids).values()) + more)
            time.sleep(0.5)
            if got := c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                got = errno.errorcode[got]
            elif error_of(c.getpeername):
                time.sleep(60)  # until it gives up
                got = c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                got = errno.errorcode.get(got, got)
            else:
                got = {(4, 4): 0, (2, 2): "CCID 2"}.get(dccp.ccids(c))
        # An empty Change takes our preference back: that is net/dccp's way.
        allowed = expected or {0, "CCID 2", "ECOMM", "ETIMEDOUT"}
        tap.ok(got in allowed, f"a Response with {what}: {got or 'connected'}", allowed)
    server.close()
    sysctl("request_retries", 6)


class FakeClient(FakeServer):
    """A client at an address that nobody has, of a listener in a."""

    port = 3000

    def __init__(self, listener, ccid, more=b"", rtt=None):
        super().__init__()
        self.to = dccp.ADDRESS["a"][socket.AF_INET]
        FakeClient.port += 1
        self.seq = 1 << 40
        offer = option(CHANGE_L, [ccid]) + option(CHANGE_R, [ccid])
        self.send(REQUEST, struct.pack("!I", 42), offer + more)
        response = self.receive(RESPONSE)
        self.said = response[28 : response[4] * 4]
        self.acked = int.from_bytes(response[10:16], "big")
        # As of a Request, whose options begin where its service code ends.
        changes = response[:4] + bytes([response[4] - 2]) + response[5:20] + response[28:]
        confirmed = confirmations(changes)
        if rtt is not None:
            confirmed[CONFIRM_L, SEND_RTT] = option(CONFIRM_L, rtt, SEND_RTT)
        self.ack(b"".join(confirmed.values()))
        listener.settimeout(10)
        self.server = listener.accept()[0]

    def send(self, kind, body=b"", options_=b"", data=b""):
        self.seq += 1
        dccp_packet = packet(kind, self.port, dccp.PORT, self.seq, body, options_) + data
        dccp_packet = with_checksum(dccp_packet, self.address, self.to)
        addresses = socket.inet_aton(self.address) + socket.inet_aton(self.to)
        header = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, dccp.IPPROTO_DCCP, 0)
        self.mouth.sendto(header + addresses + dccp_packet, (self.to, 0))

    def ack(self, options_=b""):
        number = struct.pack("!HHI", 0, self.acked >> 32, self.acked & 0xFFFFFFFF)
        self.send(ACK, number, options_)

    def receive(self, *kinds):
        """The next packet of these kinds, which will be acknowledged."""
        while True:
            got = self.ears.recv(4000)
            if got[9] == dccp.IPPROTO_DCCP and got[22:24] == struct.pack("!H", self.port):
                got = got[20:]
                self.acked = int.from_bytes(got[10:16], "big")
                if got[8] >> 1 & 15 in kinds:
                    return got

    def close(self):
        self.server.close()
        super().close()


DATA, DATAACK = 2, 4
SEND_RTT = 128


def data_options(data):
    """{number: value} of the options of a Data or DataAck."""
    rest, found = data[{DATA: 16, DATAACK: 24}[data[8] >> 1 & 15] : data[4] * 4], {}
    while rest:
        if rest[0] < 32:
            rest = rest[1:]
            continue
        found[rest[0]] = rest[2 : rest[1]]
        rest = rest[rest[1] :]
    return found


def feedback(client, x_recv, more=b""):
    """As from a receiver that has found no loss."""
    options_ = bytes([192, 6, 255, 255, 255, 255, 43, 4, 0, 0])
    options_ += bytes([193, 12, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 194, 6]) + struct.pack("!I", x_recv)
    client.ack(more + options_)


def tx_info(s):
    """(allowed rate in bytes/s, the receiver is slow, 1/p in packets, feedback, dropped)"""
    info = s.getsockopt(dccp.SOL_DCCP, dccp.CCID_TX_INFO, 200)
    return (struct.unpack_from("=Q", info)[0] / 64, *struct.unpack_from("=BIxxxxII", info, 75))


def told_by_hand():
    """RTT Estimate, Data Dropped and Slow Receiver as no Linux sends them."""
    parameter = "/sys/module/dccp_tfrc/parameters/rtt_estimate"
    for ccid in (3, 4, 249):
        with dccp.listen("a", ccid=[ccid]) as listener:
            client = FakeClient(listener, ccid, option(CHANGE_R, [1], SEND_RTT))
            what = f"CCID {ccid}"
            tap.ok(
                option(CONFIRM_L, [1, 1], SEND_RTT) in client.said,
                f"{what}: a sender that is asked will tell its round trip",
            )
            tap.ok(
                option(CHANGE_R, [1], SEND_RTT) not in client.said,
                f"{what}: its receiver does not ask for one",
            )
            client.server.send(bytes(100))
            told = data_options(client.receive(DATA, DATAACK)).get(SEND_RTT, b"")
            tap.ok(1 <= len(told) <= 3, f"{what}: and does", told)
            # What was not asked for is ignored, whatever it looks like.
            client.send(DATA, options_=bytes([SEND_RTT, 7, 1, 2, 3, 4, 5]), data=b"well")
            client.server.settimeout(5)
            tap.ok(client.server.recv(100) == b"well", f"{what}: an option not asked for")
            if ccid != 3:
                slow_and_dropped(what, client)
            client.close()

    with open(parameter, "w", encoding="ascii") as f:
        f.write("Y")
    for ccid in (4, 249):
        for value, good in ((b"", False), (bytes(4), False), (bytes([1, 1]), True)):
            with dccp.listen("a", ccid=[ccid]) as listener:
                client = FakeClient(listener, ccid)
                what = f"CCID {ccid}, RTT Estimate of {len(value)} bytes"
                tap.ok(
                    option(CHANGE_R, [1], SEND_RTT) in client.said,
                    f"{what}: the receiver asks for it",
                )
                client.send(DATA, options_=bytes([SEND_RTT, 2 + len(value)]) + value, data=b"1")
                kind = client.receive(ACK, DATAACK, RESET)
                reset = kind[8] >> 1 & 15 == RESET and kind[24] == 5 and kind[25] == SEND_RTT
                tap.ok(reset != good, f"{what}: {'Option Error' if reset else 'taken'}", kind)
                client.close()
        # A sender that does not know the feature, or does not want it, is as good.
        for how, rtt, more in (
            ("does not know what it is asked for", b"", b""),
            ("declines", [0, 0], b""),
            ("declines before it is asked", None, option(CHANGE_L, [0], SEND_RTT)),
        ):
            with dccp.listen("a", ccid=[ccid]) as listener:
                client = FakeClient(listener, ccid, more, rtt)
                client.send(DATA, data=b"1")
                kind = client.receive(ACK, DATAACK, RESET)[8] >> 1 & 15
                tap.ok(kind == ACK, f"CCID {ccid}: a sender {how}", kind)
                client.close()
    with open(parameter, "w", encoding="ascii") as f:
        f.write("N")
    for ccid in (2, 3, 4):
        with dccp.listen("a", ccid=[ccid]) as listener:
            client = FakeClient(listener, ccid, option(CHANGE_L, [1], SEND_RTT))
            tap.ok(
                option(CONFIRM_R, b"", SEND_RTT) in client.said,
                f"CCID {ccid}: a receiver that did not ask is not told",
            )
            client.close()


def packet_at(s, us, size):
    """Payload that packets may have at an interval, by a buffer of so many bytes."""
    buffer = bytearray(size)
    struct.pack_into("=I", buffer, 52, us)
    buffer = (ctypes.c_char * size).from_buffer(buffer)
    length = ctypes.c_int(size)
    ctypes.CDLL(None).getsockopt(
        s.fileno(), dccp.SOL_DCCP, dccp.CCID_TX_INFO, buffer, ctypes.byref(length)
    )
    return struct.unpack_from("=I", buffer, 48)[0]


def slow_and_dropped(what, client):
    """RFC 4342, 5.2 and RFC 4340, 11.7: what has been acknowledged before is no news."""
    feedback(client, 0)  # on the first packet
    for _ in range(12):
        client.server.send(bytes(100))
        client.receive(DATA, DATAACK)
    feedback(client, 50000)
    time.sleep(0.1)
    x, slow, mean, n, dropped = tx_info(client.server)
    tap.ok(n >= 1 and not slow and not dropped, f"{what}: feedback by hand", tx_info(client.server))
    for _ in range(10):
        client.server.send(bytes(100))
        client.receive(DATA, DATAACK)
    # The newest was delivered, three were dropped in a buffer; then 20, of which six are news;
    # and then such that count as received.
    feedback(client, 5000, bytes([40, 6, 0, 0xA2, 0xAF, 0xA3]))
    time.sleep(0.1)
    x, slow, mean, n, dropped = tx_info(client.server)
    tap.ok(
        dropped == 9 and not slow and x <= 5000 and not mean,
        f"{what}: of ten packets nine dropped in a buffer; {x:.0f} bytes/s",
        tx_info(client.server),
    )
    feedback(client, 5000, bytes([40, 3, 0xA9]))
    client.server.send(bytes(100))
    client.receive(DATA, DATAACK)
    feedback(client, 4000, bytes([40, 4, 0, 0xAF, 2]))
    time.sleep(0.1)
    x, slow, mean, n, dropped = tx_info(client.server)
    tap.ok(
        dropped == 9 and slow and x <= 5000,
        f"{what}: told again, that is no news, but Slow Receiver is; {x:.0f} bytes/s",
        tx_info(client.server),
    )
    for code in (0, 1, 3, 7):
        client.server.send(bytes(100))
        client.receive(DATA, DATAACK)
        feedback(client, 5000, bytes([40, 3, 0x80 | code << 4]))
        time.sleep(0.2)
        _, _, mean, _, dropped = tx_info(client.server)
        tap.ok(
            bool(mean) == (code > 2) and dropped == 9 + min(code + 1, 3),
            f"{what}: Drop Code {code} is {'a loss event' if mean else 'none'}",
            tx_info(client.server),
        )
    means = [mean]
    for _ in range(20):
        client.server.send(bytes(100))
        client.receive(DATA, DATAACK)
        feedback(client, 5000)
        time.sleep(0.05)
        means.append(tx_info(client.server)[2])
    tap.ok(means == sorted(means), f"{what}: without more of them p does not rise", means)
    for size in (88, 96):
        small, large = (packet_at(client.server, us, size) for us in (100000, 400000))
        tap.ok(
            0 < small < large, f"{what}: an interval in a buffer of {size} bytes", (small, large)
        )


def main():
    dccp.load()
    run("modprobe dccp_tfrc")
    tap.ok("/updates/" in run("modinfo -n dccp").stdout, "modprobe prefers our dccp.ko")
    net = Net()
    sysctl("retries2", 2)  # for the ends of connections that never hear of the other's
    before = dccp.allocations()
    negotiation()
    lists()
    restricted()
    hostile_clients()
    hostile_servers()
    told_by_hand()
    registry()
    autoload()
    pinning()
    departure()
    failing_init()
    options()
    ecn(net)
    cycles()
    dccp.settle()
    dccp.nothing_left(tap, before)


if __name__ == "__main__":
    main()
    tap.done()
