#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: CCIDs 248, 250, 251 and 253 too, and the cost of feedback of 249 at all round trips
"""What DCCP with CCIDs 4 and 248 to 254 puts on the wire, and makes of it.

ECN bits, window counters, the options of feedback, and what they cost; round trips
from acknowledgments; and that nothing counts as lost on a path that loses nothing.
"""

import contextlib
import itertools
import select
import socket
import struct
import sys
import time
from typing import NamedTuple

import dccp
from lib import LONG, Net, Tap, run, tc

CCIDS = (4, *range(248, 255)) if LONG else (4, 249, 252, 254)
DELAY = 50  # ms, one way
RTT = 2 * DELAY / 1000
SIZE = 100
DATA, ACK, DATAACK, SYNC, SYNCACK = 2, 3, 4, 8, 9
LOSS_EVENT_RATE, LOSS_INTERVALS, RECEIVE_RATE, DROPPED_PACKETS, ELAPSED_TIME = (
    192,
    193,
    194,
    195,
    43,
)
SLOW_RECEIVER, RTT_ESTIMATE = 2, 128
MEAN_INTERVAL = 196  # not of CCID 4, which has DROPPED_PACKETS; of 254 the window
RX_SLOW = 133  # a socket option
FEEDBACK = {LOSS_EVENT_RATE, LOSS_INTERVALS, RECEIVE_RATE, ELAPSED_TIME}
NOT_ECT, ECT1, ECT0, CE = range(4)

tap = Tap()


class Packet(NamedTuple):
    time: float
    source: str
    tos: int
    kind: int
    seq: int
    ack: int | None
    ccval: int
    options: tuple  # (number, value) each
    size: int  # of the payload
    ports: tuple
    length: int  # of the IP packet

    @property
    def data(self):
        return self.kind in (DATA, DATAACK)

    @property
    def ecn(self):
        return self.tos & 3


def options_of(data):
    found = []
    while data:
        if data[0] < 32:
            if data[0] == SLOW_RECEIVER:
                found.append((SLOW_RECEIVER, b""))
            data = data[1:]
            continue
        found.append((data[0], data[2 : data[1]]))
        data = data[data[1] :]
    return tuple(found)


def parse(when, ip):
    """A Packet, or None if it is not DCCP."""
    if ip[0] >> 4 == 4:
        tos, protocol, source, at = (
            ip[1],
            ip[9],
            socket.inet_ntop(socket.AF_INET, ip[12:16]),
            (ip[0] & 15) * 4,
        )
    else:
        tos, protocol, source, at = (
            (ip[0] & 15) << 4 | ip[1] >> 4,
            ip[6],
            socket.inet_ntop(socket.AF_INET6, ip[8:24]),
            40,
        )
    if protocol != dccp.IPPROTO_DCCP:
        return None
    d = ip[at:]
    kind, begin = d[8] >> 1 & 15, {0: 20, 1: 28, DATA: 16, 7: 28}.get(d[8] >> 1 & 15, 24)
    ack = None if kind in (0, DATA) else int.from_bytes(d[18:24], "big")
    return Packet(
        when,
        source,
        tos,
        kind,
        int.from_bytes(d[10:16], "big"),
        ack,
        d[5] >> 4,
        options_of(d[begin : d[4] * 4]),
        len(d) - d[4] * 4,
        struct.unpack("!HH", d[:4]),
        len(ip),
    )


class Capture:
    """All DCCP that the router gets: with Capture() as c: ...; c.packets."""

    def __enter__(self):
        with dccp.netns("r"):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.sock.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        self.packets = []
        return self

    def __exit__(self, *_):
        self.read()
        self.sock.close()

    def read(self):
        """What has come so far."""
        while select.select([self.sock], [], [], 0)[0]:
            data, control, _, origin = self.sock.recvmsg(4000, 100)
            seconds, ns = struct.unpack("=qq", control[0][2])
            if origin[2] == socket.PACKET_HOST and (p := parse(seconds + ns / 1e9, data)):
                self.packets.append(p)

    def sent_by(self, ns):
        return [p for p in self.packets if p.source in dccp.ADDRESS[ns].values()]


def tx_info(s):
    """(rtt in s, slow_start, feedback)"""
    info = s.getsockopt(dccp.SOL_DCCP, dccp.CCID_TX_INFO, 200)
    return (
        struct.unpack_from("=I", info, 20)[0] / 1e6,
        info[73],
        struct.unpack_from("=I", info, 84)[0],
    )


def nofeedback(s):
    """How often that timer has expired."""
    return struct.unpack_from("=I", s.getsockopt(dccp.SOL_DCCP, dccp.CCID_TX_INFO, 200), 80)[0]


def rx_info(s):
    """A dictionary of what the receiver counted."""
    values = struct.unpack_from("=IIIIQQQQQQ", s.getsockopt(dccp.SOL_DCCP, dccp.CCID_RX_INFO, 200))
    return dict(
        zip(
            (
                "x_recv",
                "rtt",
                "p",
                "size",
                "packets",
                "lost",
                "marked",
                "late",
                "duplicates",
                "events",
            ),
            values,
        )
    )


def send(s):
    """One packet; False if the queue is full."""
    if s.gettimeout():
        s.settimeout(None)  # else Python would try again and again
    try:
        return s.send(bytes(SIZE), socket.MSG_DONTWAIT) == SIZE
    except BlockingIOError:
        return False


def drain(*sockets):
    """Read all that is there; how many packets."""
    n = 0
    while ready := select.select(sockets, [], [], 0)[0]:
        for s in ready:
            if not s.recv(2000):
                raise ConnectionResetError("the connection has ended")
            n += 1
    return n


def stream(senders, seconds, every=0.02, others=()):
    """Packets of each sender at a fixed rate; how many, each."""
    sent = dict.fromkeys(senders, 0)
    end = time.monotonic() + seconds
    due = time.monotonic()
    while due < end:
        for s in senders:
            sent[s] += send(s)
        due += every
        time.sleep(max(0, due - time.monotonic()))
        drain(*senders, *others)
    return tuple(sent.values())


def ours(ccid, family=socket.AF_INET):
    return dccp.connection(family, {"ccid": [ccid]}, {"ccid": [ccid]})


def near(a, b, share):
    return abs(a - b) <= share * b


# No false loss


def by_turns(c, s):
    """A packet of each, then the other's."""
    for _ in range(10):
        for sender, receiver in ((c, s), (s, c)):
            send(sender)
            select.select([receiver], [], [], 1)
            drain(receiver)


def one_first(first, second):
    stream([first], 0.4, others=[second])
    stream([first, second], 0.4)


BEGINNINGS = {
    "the client sends first": lambda c, s: one_first(c, s),
    "the server sends first": lambda c, s: one_first(s, c),
    "both send at once": lambda c, s: stream([c, s], 0.4),
    "the client sends a single packet": lambda c, s: stream([c], 0.02, others=[s]),
    "the client sends after 3 s": lambda c, s: (time.sleep(3), one_first(c, s)),
    "by turns": by_turns,
}


def early(listener, ccid, count):
    """A client whose first packet completes the handshake, where an Ack would otherwise.

    DCCP leaves the Ack out if somebody waits to send; only to tell him then that
    it cannot be done.
    """
    client = dccp.sock("a", listener.family, ccid=[ccid])
    client.setblocking(False)
    client.connect_ex(listener.getsockname()[:2])
    client.setblocking(True)
    with contextlib.suppress(BrokenPipeError):
        client.send(bytes(SIZE))
    sent = sum(send(client) for _ in range(count))
    server, _ = listener.accept()
    return client, server, sent


def nothing_lost(what, *ends):
    """Neither end has found a loss, and it has seen what was sent."""
    for name, receiver, sender in (("server", ends[1], ends[0]), ("client", ends[0], ends[1])):
        rx = rx_info(receiver)
        good = not (rx["lost"] or rx["events"] or rx["p"] or rx["late"])
        tap.ok(good, f"{what}: the {name} finds nothing lost ({rx['packets']} packets)", rx)
        tap.ok(tx_info(sender)[1], f"{what}: nor is it told so", tx_info(sender))


def test_no_false_loss():
    for (name, family), ccid in itertools.product(dccp.FAMILIES.items(), CCIDS):
        for what, begin in itertools.islice(BEGINNINGS.items(), 2 if name == "IPv6" else None):
            with ours(ccid, family) as (c, s):
                begin(c, s)
                time.sleep(0.5)
                drain(c, s)
                nothing_lost(f"{name}, CCID {ccid}, {what}", c, s)
        for count in (1, 4):
            what = f"{name}, CCID {ccid}, {count} at the end of the handshake"
            with Capture() as capture, dccp.listen("b", family, ccid=[ccid]) as listener:
                *ends, sent = early(listener, ccid, count)
                port = ends[0].getsockname()[1]
                time.sleep(1)
                got = drain(*ends)
                tap.ok(got == sent == count, f"{what}: they arrive", (sent, got))
                stream(ends, 0.4)
                time.sleep(0.5)
                drain(*ends)
                nothing_lost(what, *ends)
                for s in ends:
                    s.close()
            kinds = [p.kind for p in capture.sent_by("a") if p.ports[0] == port]
            tap.ok(kinds[1] == DATAACK, f"{what}: data complete it", kinds[:5])


# ECN

# lists of client and server, and whether the client's data and the server's are ECT
CONNECTIONS = (
    *(({"ccid": [ccid]}, {"ccid": [ccid]}, True, True) for ccid in CCIDS),
    # A client that might have had to use CCID 3 or 2 says that it does not read ECN.
    ({"ccid": [4, 3, 2]}, {"ccid": [4, 3, 2]}, True, False),
    ({"ccid": [249, 2]}, {"ccid": [249]}, True, False),
    ({"tx": [4], "rx": [2]}, {}, True, None),
    ({"tx": [2], "rx": [4]}, {}, None, True),
)
MARKS = (0, ECT1, CE, 46 << 2, 46 << 2 | ECT1, 45 << 2 | CE, 10 << 2 | ECT0)


def set_tos(s, tos):
    if s.family == socket.AF_INET:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    else:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)


def marks(packets):
    """DSCP and ECN of the data packets, as a set."""
    return {(p.tos >> 2, p.ecn) for p in packets if p.data}


def test_ecn():
    for (name, family), (client, server, *ect) in itertools.product(
        dccp.FAMILIES.items(), CONNECTIONS
    ):
        if name == "IPv6" and 4 not in client.get("ccid", ()):
            continue
        with dccp.connection(family, client, server) as ends:
            for tos in MARKS:
                for s in ends:
                    set_tos(s, tos)
                with Capture() as capture:
                    # some wait, some do not
                    stream(ends, 0.1, 0.01)
                    time.sleep(0.5)
                    drain(*ends)
                for ns, expected in zip("ab", ect):
                    if expected is None:
                        continue  # a CCID that is not ours sends here
                    want = {(tos >> 2, ECT0 if expected else NOT_ECT)}
                    got = marks(capture.sent_by(ns))
                    who = f"{name}, {client} to {server or 'default'}, TOS {tos}: the {'client' if ns == 'a' else 'server'}'s data"
                    tap.ok(
                        got == want,
                        f"{who}: DSCP {tos >> 2}, {'ECT(0)' if expected else 'not-ECT'}",
                        got,
                    )


# Round trips


def check_rtt(what, s):
    rtt, _, n = tx_info(s)
    tap.ok(
        near(rtt, RTT, 0.05),
        f"{what}: the round trip is {rtt * 1000:.1f} ms, after {n} feedback packets",
    )


def sync(capture, port):
    """Have the client answer a Sync that the router makes in the server's name."""
    capture.read()
    client, server = (max(p.seq for p in capture.sent_by(ns) if port in p.ports) for ns in "ab")
    # The answer acknowledges the Sync, so its number has to be one that the server has used.
    body = struct.pack(
        "!HHBBHBBHIHHI",
        dccp.PORT,
        port,
        6,
        0,
        0,
        SYNC << 1 | 1,
        0,
        server >> 32,
        server & 0xFFFFFFFF,
        0,
        client >> 32,
        client & 0xFFFFFFFF,
    )
    b, a = (socket.inet_aton(dccp.ADDRESS[ns][socket.AF_INET]) for ns in "ba")
    total = sum(
        struct.unpack("!18H", b + a + struct.pack("!HH", dccp.IPPROTO_DCCP, len(body)) + body)
    )
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    body = body[:6] + struct.pack("!H", ~total & 0xFFFF) + body[8:]
    with dccp.netns("r"), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, dccp.IPPROTO_DCCP, 0, b, a)
        raw.sendto(header + body, (dccp.ADDRESS["a"][socket.AF_INET], 0))


def with_acknowledgments(c, s, _):
    """A packet in half a second of the server, for each of which the client sends feedback."""
    stream([s], 2.5, 0.5, others=[c])


def with_syncs(c, s, capture):
    """The server is silent. The client answers Syncs."""
    for _ in range(4):
        sync(capture, c.getsockname()[1])
        time.sleep(0.5)


def test_late_losses(net):
    """The client's last packets are lost, which shows only by packets without data.

    The feedback acknowledges one of these. When it was sent the sender does not
    know: the last data packet was sent long before.
    """
    for ccid, provoke in itertools.product((4, 248), (with_acknowledgments, with_syncs)):
        what = f"CCID {ccid}, {provoke.__name__.replace('_', ' ')}"
        with ours(ccid) as (c, s), Capture() as capture:
            senders = [c, s] if provoke is with_acknowledgments else [c]
            stream(senders, 2, others=[s])
            check_rtt(f"{what}: first", c)
            for _ in range(4):
                # a packet that arrives, so that more than the loss of one round trip is seen
                stream([c], 0.5, others=[s])
                net.qdisc("netem loss 100%", "change")
                stream([c], 0.1, others=[s])
                net.qdisc("netem loss 0% limit 10000", "change")
                time.sleep(0.3)
                provoke(c, s, capture)
                drain(c, s)
            capture.read()
            no_data = {p.seq for p in capture.sent_by("a") if not p.data}
            found = sum(p.ack in no_data for p in feedback(capture.sent_by("b")))
            tap.ok(found >= 1, f"{what}: {found} feedback packets acknowledge what was no data")
            tap.ok(rx_info(s)["events"] >= 3, f"{what}: for there were losses", rx_info(s))
            check_rtt(f"{what}: then", c)
            if s in senders:
                check_rtt(f"{what}: the server", s)
    net.fresh("netem limit 10000")


def test_rare():
    """Both sides send, one of them a packet in two seconds."""
    for name, ccid in (*itertools.product(("IPv4",), CCIDS), ("IPv6", 4)):
        family = dccp.FAMILIES[name]
        for rare in ("server", "client"):
            with ours(ccid, family) as (c, s):
                often, seldom = (c, s) if rare == "server" else (s, c)
                sent = 0
                for _ in range(5):
                    sent += send(seldom)
                    stream([often], 2, 0.04, others=[seldom])
                time.sleep(0.5)
                what = f"{name}, CCID {ccid}, the {rare} sends rarely"
                # the packet that completes the handshake is not the CCID's
                rx = rx_info(often)
                tap.ok(
                    sent == 5 and rx["packets"] >= 4,
                    f"{what}: {rx['packets']} of its {sent} packets",
                )
                nothing_lost(what, c, s)
                check_rtt(f"{what}: who sends often", often)
                check_rtt(f"{what}: who sends rarely", seldom)
                for who, s_ in (("often", often), ("rarely", seldom)):
                    rtt = rx_info(s_)["rtt"] / 1e6
                    # A server's handshake has none, and counters have none over two seconds.
                    unknown = not rtt and (rare, who) == ("client", "often")
                    tap.ok(
                        unknown or near(rtt, RTT, 0.3),
                        f"{what}: {rtt * 1000:.1f} ms by what who sends {who} receives",
                    )


# What the sender tells, and what the receiver asks for


def values(packets, number):
    """Of all options with that number."""
    return [value for p in packets for kind, value in p.options if kind == number]


def test_rtt_estimate():
    """RFC 6323: who is asked to, tells its round trip with each packet of data."""
    for name, ccid, on in (*itertools.product(("IPv4",), CCIDS, "YN"), ("IPv6", 4, "Y")):
        with open("/sys/module/dccp_tfrc/parameters/rtt_estimate", "w", encoding="ascii") as f:
            f.write(on)
        with ours(ccid, dccp.FAMILIES[name]) as (c, s), Capture() as capture:
            stream([c, s], 3)
            time.sleep(RTT)
            drain(c, s)
            rtt = [rx_info(end)["rtt"] / 1e6 for end in (c, s)]
            nothing_lost(f"{name}, CCID {ccid}, RTT Estimate {on}", c, s)
        for ns in "ab":
            what = f"{name}, CCID {ccid}, RTT Estimate {on}, {ns}"
            packets = [p for p in capture.sent_by(ns) if p.kind in (DATA, DATAACK)]
            told = values(packets, RTT_ESTIMATE)
            tap.ok(
                len(packets) > 100 and len(told) == (len(packets) if on == "Y" else 0),
                f"{what}: {len(told)} options on {len(packets)} packets of data",
            )
            acks = [p for p in capture.sent_by(ns) if p.kind == ACK]
            tap.ok(not values(acks, RTT_ESTIMATE), f"{what}: none on {len(acks)} acknowledgments")
            if on == "N":
                continue
            # 100 ms are three bytes, of which the first is 1.
            tap.ok(all(len(v) == 3 and v[0] for v in told), f"{what}: as short as it can be", told)
            off = [v for v in told[50:] if not near(int.from_bytes(v, "big") / 1e6, RTT, 0.05)]
            tap.ok(not off, f"{what}: the round trip of the path", off)
        tap.ok(
            all(near(r, RTT, 0.05 if on == "Y" else 0.3) for r in rtt),
            f"{name}, CCID {ccid}, RTT Estimate {on}: {rtt} s is what the receivers have",
        )
    with open("/sys/module/dccp_tfrc/parameters/rtt_estimate", "w", encoding="ascii") as f:
        f.write("N")


def test_slow_receiver():
    """A receiver that cannot keep up gets no more than it got, as long as it says so (RFC 4342, 5.2)."""
    for ccid in CCIDS:
        with ours(ccid) as (c, s), Capture() as capture:

            def rate(seconds, end=c, to=s):
                stream([end], seconds, 0.005, others=[to])
                info = end.getsockopt(dccp.SOL_DCCP, dccp.CCID_TX_INFO, 200)
                return struct.unpack_from("=Q", info)[0] / 64, info[75]

            # Min Interval, 10 ms, but with CCIDs 249 to 253 less for larger packets; or none
            least = {4: 0.01, 248: 0, 254: 0}.get(ccid, 0.01 * (1 - SIZE / 1460))
            actual = SIZE / max(least, 0.005)
            before, no = rate(2)
            s.setsockopt(dccp.SOL_DCCP, RX_SLOW, struct.pack("=I", 1))
            slow, yes = rate(2)
            s.setsockopt(dccp.SOL_DCCP, RX_SLOW, struct.pack("=I", 0))
            after, again = rate(2)
        sent = [p for p in capture.sent_by("b") if p.kind == ACK]
        what = f"CCID {ccid}, Slow Receiver"
        tap.ok(
            before > 1.7 * actual and after > 1.7 * actual,
            f"{what}: {before:.0f} bytes/s are allowed before, {after:.0f} after",
        )
        tap.ok(near(slow, actual, 0.1), f"{what}: {slow:.0f} bytes/s for {actual:.0f} meanwhile")
        said = len(values(sent, SLOW_RECEIVER))
        tap.ok(said > 10, f"{what}: said {said} times")
        tap.ok((no, yes, again) == (0, 1, 0), f"{what}: the sender knows", (no, yes, again))


# From the first packet on


def test_first_losses(net):
    """The first data packets to a server are lost: it sees how many, by sequence numbers and NDP Counts."""
    for name, ccid in (*itertools.product(("IPv4",), CCIDS), ("IPv6", 4)):
        for n in (1, 3):
            with ours(ccid, dccp.FAMILIES[name]) as (c, s):
                net.qdisc("netem loss 100%", "change")
                sent = stream([c], 0.02 * n)[0]
                time.sleep(DELAY / 1000)  # the router comes after the delay
                net.qdisc("netem loss 0% limit 10000", "change")
                stream([c], 1, others=[s])
                rx = rx_info(s)
                # with virtual packets it takes more of them to make an event, with sampling luck
                tap.ok(
                    sent == n == rx["lost"]
                    and (ccid == 251 or (rx["events"] > 0) == (ccid != 249)),
                    f"{name}, CCID {ccid}: the first {n} of a client's packets, {rx['lost']} found lost",
                    (sent, rx),
                )
    net.fresh("netem limit 10000")


def test_short_path():
    """Speech over a path whose round trip is shorter than the time between packets: the handshake's is the only one."""
    net = Net(delay=5)
    net.fresh("netem limit 10000")
    for ccid, quiet in itertools.product(CCIDS, ("server", "client")):
        with ours(ccid) as (c, s):
            sender, receiver = (c, s) if quiet == "server" else (s, c)
            stream([sender], 2, others=[receiver])
            rtt = rx_info(receiver)["rtt"]
            tap.ok(
                near(rtt, 10000, 0.3),
                f"CCID {ccid}: the {quiet} receives with a round trip of {rtt / 1000:.1f} ms",
            )
    net.close()


# Format


def feedback(packets):
    return [p for p in packets if LOSS_EVENT_RATE in dict(p.options)]


def intervals(p):
    """(Skip Length, Lossless, Loss and Data Length of each interval, Drop Counts)"""
    o = dict(p.options)
    li, drops = o[LOSS_INTERVALS], o.get(DROPPED_PACKETS, b"")
    three = [int.from_bytes(li[n : n + 3], "big") for n in range(1, len(li), 3)]
    return (
        li[0],
        list(zip(three[::3], three[1::3], three[2::3])),
        [int.from_bytes(drops[n : n + 3], "big") for n in range(0, len(drops), 3)],
    )


def wrong_form(p, ccid):
    """What is not as RFC 4342, 8 and RFC 5622, 8 have it in a feedback packet."""
    numbers = [n for n, _ in p.options]
    o = dict(p.options)
    wrong = []
    if (p.kind, bool(p.size)) not in ((ACK, False), (DATAACK, True)):
        wrong.append("no Ack, nor a DataAck")
    if (DROPPED_PACKETS in o) != (ccid in (4, 254)) or (MEAN_INTERVAL in o) != (ccid != 4):
        wrong.append("not the options of this CCID")
    elif any(numbers.count(n) != 1 for n in FEEDBACK):
        wrong.append("not each option once")
    elif (
        len(o[LOSS_EVENT_RATE]) != 4
        or len(o[RECEIVE_RATE]) != 4
        or len(o[ELAPSED_TIME]) != 2  # its short form, up to 655 ms
    ):
        wrong.append("length of 192, 194 or 43")
    elif (
        len(o[LOSS_INTERVALS]) % 9 != 1
        or ccid in (4, 254)
        and len(o[DROPPED_PACKETS]) * 3 != len(o[LOSS_INTERVALS]) - 1
    ):
        wrong.append("length of 193 or 195")
    else:
        skip, li, drops = intervals(p)
        if skip > 3 or len(li) > 9:
            wrong.append("Skip Length or number of intervals")
        if p.data and len(li) > 2:
            wrong.append("more than two intervals with data")
        # no interval but the connection's first begins without loss
        if any(not loss for _, loss, _ in li[:-1]) or any(
            d > loss for d, (_, loss, _) in zip(drops, li)
        ):
            wrong.append("Loss Length")
        if any(length > lossless + loss for lossless, loss, length in li[:-1]):
            wrong.append("Data Length")
        # two times between packets, if it has waited for data to ride on
        if int.from_bytes(o[ELAPSED_TIME], "big") > 4100:
            wrong.append("Elapsed Time of more than 41 ms")
        none = int.from_bytes(o[LOSS_EVENT_RATE], "big") == 0xFFFFFFFF
        if none != (len(li) == 1):
            wrong.append("Loss Event Rate")
        # the window of 254; of the others option 192 is the same, rounded up to whole packets
        if ccid == 254:
            if len(o[MEAN_INTERVAL]) != 4 or (int.from_bytes(o[MEAN_INTERVAL], "big") == 0) != none:
                wrong.append("Window")
        elif ccid != 4:
            mean, pinv = (int.from_bytes(o[n], "big") for n in (MEAN_INTERVAL, LOSS_EVENT_RATE))
            if (mean != pinv) if none else -(-mean // 256) != pinv:
                wrong.append("Mean Interval")
    return wrong


def wrong_ndp(packets):
    """NDP Count (RFC 4340, 7.7) on an end's data packets: as many as came without data since the last one."""
    count, wrong = None, []
    for p in packets:
        said = int.from_bytes(dict(p.options).get(37, b""), "big")
        # Before the feature is agreed on there is none.
        if count is not None and p.data and said != count:
            wrong.append((p, count))
        if p.data:
            count = 0
        elif count is not None:
            count += 1
    return wrong


def test_format(net):
    for ccid in CCIDS:
        what = f"CCID {ccid}"
        with Capture() as capture, ours(ccid) as (c, s):
            stream([c], 2, others=[s])
            quiet = rx_info(s)["events"]
            stream([c, s], 2)
            net.qdisc("netem loss 10% limit 10000", "change")
            stream([c, s], 6)
            net.qdisc("netem loss 0% limit 10000", "change")
            stream([c], 1, others=[s])
            events = rx_info(s)["events"]
        reports = feedback(capture.sent_by("b"))
        tap.ok(
            not quiet and events > 0 and len(reports) > 50,
            f"{what}: {len(reports)} feedback packets, {events} loss events",
        )
        found = [(wrong_form(p, ccid), p) for p in reports + feedback(capture.sent_by("a"))]
        bad = [(wrong, p) for wrong, p in found if wrong]
        tap.ok(
            not bad,
            f"{what}: options 192 to 196 and 43 on each, as they have to be",
            bad[:3],
        )
        # one way an Ack of its own, both ways with data but for loss events
        for few, packets in (("no", reports[:15]), ("most", reports[-50:])):
            n = sum(p.data for p in packets)
            tap.ok(
                n == 0 if few == "no" else n > len(packets) / 4,
                f"{what}: {few} feedback with data ({n} of {len(packets)})",
            )
        rates = [int.from_bytes(dict(p.options)[RECEIVE_RATE], "big") for p in reports]
        tap.ok(
            not rates[0] and all(rates[1:]),
            f"{what}: the first Receive Rate is 0, and no other",
            rates,
        )
        # all intervals together reach from the connection's first packet to the one acknowledged
        begin = set()
        for p in reports:
            skip, li, _ = intervals(p)
            if not li[-1][1]:
                begin.add(p.ack - skip - sum(lossless + loss for lossless, loss, _ in li))
        tap.ok(len(begin) == 1, f"{what}: the Loss Intervals have no gap", begin)
        for ns in "ab":
            bad = wrong_ndp(capture.sent_by(ns))
            tap.ok(not bad, f"{what}: NDP Counts of {ns}", bad[:3])


def test_window(net):
    """CCID 254: the sender takes the window that is reported, and sends that in a round trip."""
    net.qdisc("netem loss 3% limit 10000", "change")
    with Capture() as capture, ours(254) as (c, s):
        stream([c], 8, 0.004, others=[s])
        time.sleep(0.5)  # for the sender's queue, and the last report
        tx = c.getsockopt(dccp.SOL_DCCP, dccp.CCID_TX_INFO, 200)
        rx = s.getsockopt(dccp.SOL_DCCP, dccp.CCID_RX_INFO, 200)
    net.qdisc("netem loss 0% limit 10000", "change")
    reports = feedback(capture.sent_by("b"))
    said = [int.from_bytes(dict(p.options)[MEAN_INTERVAL], "big") for p in reports]
    x, x_calc, rtt, x_inst, s_mean = (
        struct.unpack_from(f"={form}", tx, at)[0]
        for form, at in (("Q", 0), ("I", 16), ("I", 20), ("Q", 40), ("I", 60))
    )
    window, last = (struct.unpack_from("=I", *where)[0] for where in ((tx, 92), (rx, 120)))
    tap.ok(
        window == last == said[-1] > 256,
        f"CCID 254: both ends know the window, {window / 256:.1f} packets",
        (window, last, said[-9:]),
    )
    want = window / 256 * s_mean / (rtt / 1e6)
    tap.ok(
        s_mean == SIZE and near(x_calc, want, 0.001) and x_inst == x // 64 <= x_calc,
        f"CCID 254: {x_calc} bytes/s, the window in a round trip of {rtt / 1000:.0f} ms",
        (want, x / 64, x_inst),
    )
    tap.ok(
        not said[0]
        and len(set(said)) > 10
        and all(a == 0 or b > 0 for a, b in itertools.pairwise(said)),
        f"CCID 254: {len(set(said))} windows in {len(said)} reports, none before the first loss",
        said,
    )


def cost(packets):
    """What feedback adds, as a share of all bytes with Ethernet headers: all but the same data in Data packets."""
    total = sum(p.length + 14 for p in packets)
    return 1 - sum(p.size + 16 + 20 + 14 for p in packets if p.data) / total


def test_two_way():
    """A call of 50 packets a second each way: feedback takes less than a tenth, whatever the round trip.

    One packet of 100 is lost, by count: with losses by chance a call of a few seconds
    has three times as many as another, and each costs an acknowledgment.
    """
    global SIZE
    size = SIZE
    for ccid, rtt in itertools.product((4, 249), (10, 30, 100, 300)):
        if ccid == 249 and rtt > 10 and not LONG:
            continue
        net = Net(delay=rtt / 2)
        for dev in ("in", "out"):
            tc(f"qdisc add dev {dev} clsact", "r")
            tc(
                f"filter add dev {dev} egress matchall action gact pass random determ drop 100",
                "r",
            )
        found = []
        for SIZE in (32, 172):
            with ours(ccid) as (c, s):
                stream([c, s], 1)
                expired = [nofeedback(x) for x in (c, s)]
                with Capture() as capture:
                    stream([c, s], 5)
                expired = [nofeedback(x) - n for x, n in zip((c, s), expired)]
                events = [rx_info(x)["events"] for x in (c, s)]
            found += [cost(capture.sent_by(ns)) for ns in "ab"]
            tap.ok(
                # to CCID 249 a few lost packets of such a size are no loss yet
                not any(expired) and min(events) >= (2 if ccid == 4 else 0),
                f"CCID {ccid}, {rtt} ms, {SIZE} bytes: no nofeedback timer expires",
                (expired, events),
            )
        tap.ok(
            max(found) < 0.1,
            f"CCID {ccid}, {rtt} ms: of packets of 32 and 172 bytes feedback has "
            + ", ".join(f"{100 * f:.1f}" for f in found)
            + " %",
        )
        net.close()
    SIZE = size


def test_uneven():
    """Large packets one way, speech back on a short path: feedback on the first does not wait for the second."""
    net = Net(delay=2)
    net.fresh("netem limit 10000")
    for ccid in (248, 249):
        with ours(ccid) as (c, s):
            stream([c, s], 1)
            before = nofeedback(c), tx_info(c)[2]
            for n in range(1000):
                with contextlib.suppress(BlockingIOError):  # slow start
                    c.send(bytes(1300), socket.MSG_DONTWAIT)
                if n % 20 == 0:
                    send(s)
                time.sleep(0.002)
                drain(c, s)
            after = nofeedback(c), tx_info(c)[2]
        tap.ok(
            after[0] == before[0] and after[1] - before[1] > 200,
            f"CCID {ccid}: {after[1] - before[1]} feedback packets in 2 s, and no nofeedback timer expires",
            (before, after),
        )
    net.close()


def steps(packets):
    """By how much the window counter went up between data packets."""
    return [(q.ccval - p.ccval) % 16 for p, q in itertools.pairwise(p for p in packets if p.data)]


def test_counters():
    """The window counter goes up by 4 in a round trip, and by a few over a pause (RFC 4342, 8.1)."""
    for ccid, every in ((4, 0.02), (4, 0.037), (248, 0.02), (249, 0.01)):
        what = f"CCID {ccid}, a packet in {every * 1000:.0f} ms"
        with ours(ccid) as (c, s):
            stream([c], 2, every, others=[s])
            with Capture() as capture:
                stream([c], 5, every, others=[s])
                time.sleep(2)
            sent = [p for p in capture.sent_by("a") if p.data]
            trips = (sent[-1].time - sent[0].time) / RTT
            found = steps(sent)
            rate = sum(found) / trips
            # An acknowledgment may have the counter lag by a part of a quarter, if packets are rarer than these.
            share = 0.03 if every < RTT / 4 else 0.15
            tap.ok(
                len(sent) > 0.9 * 5 / every and near(rate, 4, share),
                f"{what}: {rate:.2f} steps in a round trip",
                len(sent),
            )
            tap.ok(
                max(found) <= max(1, round(every / RTT * 4 + 0.5)),
                f"{what}: none is left out",
                found,
            )
            with Capture() as pause:
                stream([c], 0.1, others=[s])
                time.sleep(0.2)
            sent = [sent[-1], *(p for p in pause.sent_by("a") if p.data)]
            # 5 when it is sent, and before up to 4 for the acknowledgment of the last one
            tap.ok(5 <= steps(sent)[0] <= 9, f"{what}: {steps(sent)[0]} over a pause", steps(sent))


def main(chosen):
    dccp.load()
    run("modprobe dccp_tfrc")
    net = Net(delay=DELAY)
    net.fresh("netem limit 10000")
    for test, arguments in (
        (test_no_false_loss, ()),
        (test_ecn, ()),
        (test_late_losses, (net,)),
        (test_rare, ()),
        (test_format, (net,)),
        (test_window, (net,)),
        (test_counters, ()),
        (test_rtt_estimate, ()),
        (test_slow_receiver, ()),
        (test_first_losses, (net,)),
    ):
        if chosen and test.__name__ not in chosen:
            continue
        begin = time.monotonic()
        test(*arguments)
        tap.note(f"{test.__name__}: {time.monotonic() - begin:.0f} s")
    net.close()
    for test in (test_short_path, test_two_way, test_uneven):
        if not chosen or test.__name__ in chosen:
            test()


if __name__ == "__main__":
    main(sys.argv[1:])
    tap.done()
