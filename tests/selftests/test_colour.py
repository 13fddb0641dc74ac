#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Which packets are green: DSCP, VLANs, priority, mark, filters, and their precedence.

Then what must hold of the colours in real traffic: no packet is overtaken by
one of its own colour while D moves, and only ECN-capable packets are marked.
"""

import re
import socket
import struct
import time

import lib
from lib import Load, Net, run
from wire import Port, kernel_log, unload

SPEC = "abe packets"
IP4, IP6, ARP, VLAN, QINQ = 0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8


class Counter:
    """Counts what became of packets at a port."""

    def __init__(self, port, spec=SPEC):
        self.port = port
        port.fresh(spec, "open")

    def seen(self, send, *args, **kwargs):
        """(green, blue, dropped) of what `send` sent."""
        old = self.port.stats()
        send(*args, **kwargs)
        new = self.port.stats()
        diff = lib.delta(old, new)
        return diff["green"]["arrived"], diff["blue"]["arrived"], new["drops"] - old["drops"]

    def ok(self, t, text, wanted, send, *args, **kwargs):
        got = self.seen(send, *args, **kwargs)
        t.ok(
            got == {"green": (3, 0, 0), "blue": (0, 3, 0)}.get(wanted, wanted),
            f"{text}: {wanted}",
            got,
        )


def udp6(dscp, dev="d0", count=3, host="fd09::2"):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IPV6, 67, dscp << 2)  # IPV6_TCLASS
        for _ in range(count):
            s.sendto(bytes(100), (host, 9, 0, socket.if_nametoindex(dev)))


def udp4(dscp, host, count=3):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        for _ in range(count):
            s.sendto(bytes(100), (host, 9))


def quiet(dev):
    """Keep the kernel's own packets, which come when they like, from being counted with ours."""
    run(f"tc qdisc add dev {dev} clsact")
    for packets in ("ipv6 flower", "802.1q flower vlan_ethtype ipv6"):
        run(f"tc filter add dev {dev} egress protocol {packets} ip_proto icmpv6 action drop")


def frames(dev, protocols, payload, count=3):
    """Ethernet frames as they are, with these EtherTypes one after the other."""
    head = bytes.fromhex("ffffffffffff 020000000001") + struct.pack("!H", protocols[0])
    for proto in protocols[1:]:
        head += struct.pack("!HH", 5, proto)  # VLAN 5
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocols[0])) as s:
        s.bind((dev, protocols[0]))
        for _ in range(count):
            s.send(head + payload)


def ip4(dscp, size=40):
    return struct.pack(
        "!BBHHHBBH4s4s", 0x45, dscp << 2, size, 0, 0, 64, 59, 0, bytes(4), bytes(4)
    ) + bytes(size - 20)


def ip6(dscp, size=40):
    return struct.pack(
        "!IHBB16s16s", 6 << 28 | dscp << 22, size, 59, 64, bytes(16), bytes(16)
    ) + bytes(size)


def test_dscp(t, port):
    c = Counter(port)
    for dscp in (45, 46):
        c.ok(t, f"IPv4, DSCP {dscp}", "green", port.send, 3, dscp=dscp)
        c.ok(t, f"IPv6, DSCP {dscp}", "green", udp6, dscp)
    for dscp in (0, 1, 44, 47, 63):
        c.ok(t, f"IPv4, DSCP {dscp}", "blue", port.send, 3, dscp=dscp)
        c.ok(t, f"IPv6, DSCP {dscp}", "blue", udp6, dscp)
    c.ok(t, "IPv4, the ECN bits do not matter", "green", port.send, 3, dscp=46, ecn=3)
    c = Counter(port, f"{SPEC} green_dscp 1,63")
    for dscp, colour in ((1, "green"), (63, "green"), (46, "blue"), (0, "blue")):
        c.ok(t, f"green_dscp 1,63: IPv4, {dscp}", colour, port.send, 3, dscp=dscp)
        c.ok(t, f"green_dscp 1,63: IPv6, {dscp}", colour, udp6, dscp)
    c = Counter(port, f"{SPEC} green_dscp none")
    for dscp in (0, 45, 46):
        c.ok(t, f"green_dscp none: {dscp}", "blue", port.send, 3, dscp=dscp)


def test_vlan(t, _port):
    """A device that can insert tags itself, and the same with that switched off."""
    port = Port("v0", "10.5.0", "veth peer name v1")
    run("ip link set v1 up")
    quiet(port.name)
    # the tag beside the packet
    run(f"ip link add link {port.name} name tag type vlan id 10")
    # within it: the device writes it itself
    run(f"ip link add link {port.name} name band type vlan id 11 reorder_hdr off")
    run(f"ip link add link {port.name} name outer type vlan id 12 proto 802.1ad")
    run("ip link add link outer name inner type vlan id 13")
    for n, dev in enumerate(("tag", "band", "outer", "inner")):
        run(f"sysctl -qw net.ipv6.conf.{dev}.disable_ipv6=0")
        quiet(dev)
        run(f"ip link set {dev} addrgenmode none arp off up")
        run(f"ip addr add 10.6.{n}.1/24 dev {dev}")
        run(f"ip addr add fd06:{n}::1/64 dev {dev} nodad")
    for txvlan in ("on", "off"):
        run(f"ethtool -K {port.name} txvlan {txvlan} tx-vlan-stag-hw-insert {txvlan}")
        for n, (dev, text) in enumerate(
            (
                ("tag", "tag beside"),
                ("band", "tag in band"),
                ("outer", "802.1ad"),
                ("inner", "QinQ"),
            )
        ):
            c = Counter(port)
            for dscp, colour in ((45, "green"), (46, "green"), (0, "blue"), (44, "blue")):
                c.ok(
                    t,
                    f"VLAN, {text}, txvlan {txvlan}: IPv4, DSCP {dscp}",
                    colour,
                    udp4,
                    dscp,
                    f"10.6.{n}.2",
                )
                c.ok(
                    t,
                    f"VLAN, {text}, txvlan {txvlan}: IPv6, DSCP {dscp}",
                    colour,
                    udp6,
                    dscp,
                    dev,
                    3,
                    f"fd06:{n}::2",
                )
    for dev in ("tag", "band", "inner", "outer", port.name):
        run(f"ip link del {dev}")


def test_frames(t, port):
    c = Counter(port)
    for name, make, proto in (("IPv4", ip4, IP4), ("IPv6", ip6, IP6)):
        for dscp, colour in ((46, "green"), (45, "green"), (0, "blue"), (40, "blue")):
            c.ok(t, f"frame: {name}, DSCP {dscp}", colour, frames, port.name, (proto,), make(dscp))
            c.ok(
                t,
                f"frame: VLAN, {name}, DSCP {dscp}",
                colour,
                frames,
                port.name,
                (VLAN, proto),
                make(dscp),
            )
            c.ok(
                t,
                f"frame: QinQ, {name}, DSCP {dscp}",
                colour,
                frames,
                port.name,
                (QINQ, VLAN, proto),
                make(dscp),
            )
    green = ip4(46)
    for text, protocols, payload in (
        ("ARP", (ARP,), green),
        ("VLAN, ARP", (VLAN, ARP), green),
        ("LLDP", (0x88CC,), green),
        ("MPLS", (0x8847,), green),
        ("IPv4 without a byte", (IP4,), b""),
        ("IPv4 of one byte", (IP4,), b"\x45"),
        ("IPv6 of one byte", (IP6,), b"\x6b"),
        ("VLAN without a byte of IPv4", (VLAN, IP4), b""),
        ("VLAN, IPv4 of one byte", (VLAN, IP4), b"\x45"),
        ("VLAN tag cut off", (VLAN,), b"\x00"),
        ("VLAN tag and nothing", (VLAN,), b"\x00\x05"),
        ("sixty-four VLAN tags", (VLAN,) * 64 + (IP4,), green),
    ):
        c.ok(t, f"frame: {text}", "blue", frames, port.name, protocols, payload)


def test_priority_mark(t, port):
    c = Counter(port)
    c.ok(t, "priority 10:1", "green", port.send, 3, priority=0x100001)
    c.ok(t, "priority 10:2", "blue", port.send, 3, priority=0x100002)
    c.ok(t, "priority 10:2 goes before the DSCP", "blue", port.send, 3, dscp=46, priority=0x100002)
    c.ok(t, "priority 10:3 says nothing", "green", port.send, 3, dscp=46, priority=0x100003)
    c.ok(
        t,
        "priority of another qdisc says nothing",
        "green",
        port.send,
        3,
        dscp=46,
        priority=0x110002,
    )
    c.ok(t, "a small priority says nothing", "blue", port.send, 3, priority=1)
    c = Counter(port, f"{SPEC} green_mark 5")
    c.ok(t, "the mark", "green", port.send, 3, mark=5)
    c.ok(t, "another mark leaves it to the DSCP", "green", port.send, 3, dscp=46, mark=4)
    c.ok(t, "another mark", "blue", port.send, 3, mark=4)
    c.ok(t, "priority 10:2 goes before the mark", "blue", port.send, 3, mark=5, priority=0x100002)
    c = Counter(port, f"{SPEC} green_mark 0x10/0xf0 green_dscp none")
    for mark, colour in (
        (0x10, "green"),
        (0x1F, "green"),
        (0xF10, "green"),
        (0x20, "blue"),
        (0x30, "blue"),
        (0, "blue"),
    ):
        c.ok(t, f"green_mark 0x10/0xf0, mark {mark:#x}", colour, port.send, 3, mark=mark)
    c = Counter(port, f"{SPEC} green_mark 0/0xf0 green_dscp none")
    c.ok(t, "green_mark 0/0xf0, mark 0", "green", port.send, 3)
    c.ok(t, "green_mark 0/0xf0, mark 0x10", "blue", port.send, 3, mark=0x10)


def filters(port, *texts):
    run(f"tc filter del dev {port.name} parent 10:", check=False)
    for text in texts:
        run(f"tc filter add dev {port.name} parent 10: {text}")


def test_filters(t, port):
    run("modprobe -a cls_u32 cls_matchall cls_fw cls_basic")
    c = Counter(port, f"{SPEC} green_mark 5")
    for text, rule in (
        ("matchall", "matchall classid 10:{}"),
        ("u32", "u32 match ip dst 10.9.0.2/32 classid 10:{}"),
        ("u32 on the DSCP", "protocol ip u32 match ip tos 0x28 0xfc classid 10:{}"),
        ("flower", "protocol ip flower ip_proto udp dst_port 9 classid 10:{}"),
        ("basic", "basic classid 10:{}"),
    ):
        filters(port, rule.format(1))
        c.ok(t, f"filter {text} to 10:1", "green", port.send, 3, dscp=10)
        filters(port, rule.format(2))
        c.ok(t, f"filter {text} to 10:2", "blue", port.send, 3, dscp=10)
    filters(port, "matchall classid 10:2")
    c.ok(
        t,
        "a filter goes before priority, mark and DSCP",
        "blue",
        port.send,
        3,
        dscp=46,
        mark=5,
        priority=0x100001,
    )
    filters(port, "handle 7 fw classid 10:1")
    c.ok(t, "a filter that does not match says nothing", "green", port.send, 3, dscp=46, mark=8)
    c.ok(t, "and nothing", "blue", port.send, 3, mark=8)
    c.ok(t, "one that matches does", "green", port.send, 3, mark=7)
    for classid in ("10:0", "20:1"):
        filters(port, f"matchall classid {classid}")
        c.ok(
            t,
            f"a filter to {classid} does not crash",
            (3, 0, 0) if classid == "20:1" else (0, 3, 0),
            port.send,
            3,
        )
    res = run(f"tc filter add dev {port.name} parent 10: matchall classid 10:7", check=False)
    if not res.returncode:
        c.ok(
            t, "a filter to a class that is not there says nothing", "green", port.send, 3, dscp=46
        )
    filters(port, "matchall action drop")
    c.ok(t, "action drop: dropped, and no arrival", (0, 0, 3), port.send, 3, dscp=46)
    filters(port, "protocol ip flower ip_proto udp dst_port 9 classid 10:1 action pass")
    st = port.stats()
    t.ok(not lib.balance(st), "the books balance after that", lib.balance(st))
    run("ip link add sink type dummy")
    run("ip link set sink up")
    run("modprobe act_mirred")
    filters(port, "matchall action mirred egress redirect dev sink")
    c.ok(t, "action redirect: gone, and no arrival", (0, 0, 0), port.send, 3, dscp=46)
    filters(port, "matchall classid 10:1 action mirred egress mirror dev sink")
    c.ok(t, "action mirror: goes on", "green", port.send, 3)
    filters(port, "matchall classid 10:1 action skbedit mark 5")
    run("ip link del sink")
    st = port.stats()
    whole = lib.qdiscs(port.name)
    t.ok(
        not lib.balance(st) and all(not q["qlen"] and not q["backlog"] for q in whole),
        "verdicts leave parent and child balanced",
        whole,
    )
    filters(port, "matchall classid 10:1")
    port.change("flat")
    c.ok(t, "flat: blue, whatever the filter says", "blue", port.send, 3)
    port.change("noflat")
    res = run(f"tc filter show dev {port.name} parent 10:")
    t.ok("10:1" in res.stdout, "tc filter show", res.stdout)
    filters(port)


def test_flat(t, port):
    c = Counter(port, f"{SPEC} green_mark 5 flat")
    for text, kwargs in (
        ("DSCP", {"dscp": 46}),
        ("mark", {"mark": 5}),
        ("priority", {"priority": 0x100001}),
    ):
        c.ok(t, f"flat: blue, whatever the {text} says", "blue", port.send, 3, **kwargs)


def classes(dev):
    """What tc class show says of 10:1 and 10:2; tc 6.1 has no JSON for it."""
    out = run(f"tc -s class show dev {dev}").stdout
    found = {}
    for part in out.split("class ")[1:]:
        match = re.match(r"abe 10:(\d)", part)
        if match:
            sent = re.search(r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+), overlimits (\d+)", part)
            left = re.search(r"backlog (\d+)b (\d+)p", part)
            own = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)\b", part[left.end() :])}
            found[match[1]] = [int(x) for x in (*sent.groups(), *left.groups())], own
    return found


def test_classes(t, port):
    port.fresh("abe packets limit 100 min 5 max 50 weight 1 probability 0.3 ecn green_limit 8")
    for n in range(60):
        port.send(dscp=46 if n % 3 == 0 else 0, ecn=2 if n % 2 else 0, size=500 + n)
    port.open()
    port.close()
    for n in range(30):
        port.send(dscp=46 if n % 3 == 0 else 0, size=400 + n)
    st = port.stats()
    found = classes(port.name)
    t.ok(sorted(found) == ["1", "2"], "the classes are 10:1 and 10:2", found)
    for minor, name in (("1", "green"), ("2", "blue")):
        c = st[name]
        drops = c["early_drops"] + c["late_drops"] + c["limit_drops"]
        wanted = [
            c["bytes"],
            c["sent"],
            drops,
            c["early_drops"] + c["marks"],
            c["backlog"],
            c["qlen"],
        ]
        # tc rounds what it prints of the backlog from 1 KiB on
        got, own = found.get(minor, ([], {}))
        t.ok(
            got[:4] == wanted[:4] and got[5:] == wanted[5:],
            f"10:{minor} agrees with {name}",
            (got, wanted),
        )
        t.ok(
            all(own.get(k) == c[k] for k in ("arrived", "sent", "early_drops", "late_drops")),
            f"10:{minor}: own counters",
            own,
        )
        t.ok(c["qlen"] and c["sent"] and drops, f"10:{minor}: there was something to compare", c)
    for cmd in ("class add dev {} parent 10: classid 10:3 abe", "class del dev {} classid 10:1"):
        res = run("tc " + cmd.format(port.name), check=False)
        t.ok(res.returncode, f"refused: tc {cmd.split(' dev')[0]}", res.stdout)
    port.open()


def test_order(t):
    """D and the unit change every 50 ms; flows of either colour, IPv4 and IPv6."""
    net = Net(rate=4000000)
    net.fresh("abe packets limit 300 min 200 max 290 green_limit 20 interval 20ms loop load k4 5ms")
    specs = [
        "offset_max 2ms",
        "offset_max 200ms",
        "offset_max 30ms",
        "offset_max 0us",
        "offset_max 10s",
    ]
    specs += [
        "bytes limit 300000 min 250000 max 290000 offset_max 100ms",
        "time limit 1s min 800ms max 900ms",
    ]
    specs += ["packets limit 300 min 200 max 290"]
    n = 0
    wrong = []

    def poll():
        nonlocal n
        net.qdisc(f"abe {specs[n % len(specs)]}", "change")
        n += 1
        wrong.extend(lib.balance(net.stats()))

    with Load(seconds=4, poll=poll, every=0.03) as load:
        load.udp(pps=250, size=800, id=1, poisson=True)
        load.udp(pps=150, size=600, dscp=46, id=2, poisson=True)
        load.udp(pps=250, size=800, id=3, host="[fd02::1]", poisson=True)
        load.udp(pps=50, size=100, dscp=45, id=4, host="[fd02::1]", poisson=True)
    flows = load.report["udp"]
    t.ok(len(flows) == 4 and all(f["packets"] > 50 for f in flows), "all four flows arrive", flows)
    t.ok(
        all(not f["reordered"] and not f["duplicates"] for f in flows),
        f"{n} changes: no packet reordered",
        flows,
    )
    t.ok(n >= 30, "enough changes", n)
    t.note(f"{n} changes, delays {[f['delay_us'] for f in flows]}")
    t.ok(not [w for w in wrong if "arrived" in w], "the books balance all the time", wrong[:9])
    net.close()


def test_ecn(t):
    net = Net(rate=2000000)
    flows = {}
    net.fresh(
        "abe packets limit 60 min 5 max 60 weight 0.02 probability 0.3 green_limit 30 ecn interval 200ms"
    )
    with Load(seconds=4) as load:
        for n, (dscp, ecn, host) in enumerate(
            (d, e, h) for d in (0, 46) for e in (0, 1, 2) for h in (4, 6)
        ):
            flows[n] = (dscp, ecn, host)
            load.udp(
                pps=45,
                size=500,
                dscp=dscp,
                ecn=ecn,
                id=n,
                host="10.0.2.1" if host == 4 else "[fd02::1]",
            )
    report = {f["flow"]: f for f in load.report["udp"]}
    st = net.stats()
    for n, (dscp, ecn, host) in flows.items():
        ce = report[n]["ce"]
        name = f"IPv{host}, {'green' if dscp else 'blue'}, {('not-ECT', 'ECT(1)', 'ECT(0)')[ecn]}"
        # a mark means less to the sender of ECT(1), so it gets none
        marked = ecn == 2
        t.ok((ce > 0) == marked, f"ecn: {name}: {'' if marked else 'not '}marked", report[n])
        t.ok(report[n]["tos"] >> 2 == dscp, f"ecn: {name}: the DSCP stays", report[n])
    ce = sum(f["ce"] for f in report.values())
    marks = st["green"]["marks"] + st["blue"]["marks"]
    lost = sum(st[c][k] for c in ("green", "blue") for k in ("late_drops", "limit_drops"))
    t.ok(
        marks - lost <= ce <= marks and ce > 50,
        f"ecn: {ce} packets came marked, {marks} were",
        (lost, st),
    )
    net.fresh("abe packets limit 60 min 5 max 60 weight 0.02 probability 0.3 green_limit 30 noecn")
    with Load(seconds=1) as load:
        load.udp(pps=500, size=600, ecn=2, id=1)
        load.udp(pps=200, size=600, ecn=2, dscp=46, id=2)
    t.ok(
        all(f["ce"] == 0 for f in load.report["udp"]),
        "noecn: nothing is marked",
        load.report["udp"],
    )
    net.close()


def checksum(header):
    """Of an IPv4 header; 0 if it is right."""
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def test_tagged_marks(t, _port):
    """A mark goes into the IP header, never into a tag, and the checksum stays right.

    Of a bridged frame with two tags the network header is the inner tag.
    """
    port = Port("w0", "10.7.0", "veth peer name w1")
    run("ip link add x0 type veth peer name x1")
    run("ip link add b0 type bridge mcast_snooping 0")
    for dev in ("w0", "w1", "x0", "x1", "b0"):
        run(f"sysctl -qw net.ipv6.conf.{dev}.disable_ipv6=1")
        run(f"ip link set {dev} arp off up")
    run("ip link add link w0 name wband type vlan id 11 reorder_hdr off")
    run("sysctl -qw net.ipv6.conf.wband.disable_ipv6=1")
    run("ip link set wband arp off up")
    run("ip addr add 10.7.1.1/24 dev wband")
    kinds = {
        "untagged": (0x0800,),
        "VLAN": (0x8100, 0x0800),
        "802.1ad": (0x88A8, 0x0800),
        "QinQ": (0x88A8, 0x8100, 0x0800),
    }

    def send(dev):
        for protocols in kinds.values():
            for ecn in range(3):
                header = bytearray(ip4(0, 100))
                header[1] = ecn
                header[10:12] = struct.pack("!H", checksum(header[:20]))
                frames(dev, protocols, bytes(header))

    for how, dev, marked in (("sent", "w0", 15), ("bridged", "x0", 9)):
        port.fresh("abe packets limit 1000 min 0 max 1 weight 1 probability 1 ecn")
        frames("w0", (0x0800,), ip4(0, 1400), count=2)
        if how == "bridged":
            for slave in ("w0", "x1"):
                run(f"ip link set {slave} master b0")
            time.sleep(1)
        old = port.stats()
        send(dev)
        if how == "sent":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
                for _ in range(3):
                    s.sendto(bytes(100), ("10.7.1.2", 9))
        time.sleep(0.1)
        done = lib.delta(old, port.stats())["blue"]
        wanted = (marked, done["arrived"] - marked)
        t.ok(
            (done["marks"], done["early_drops"]) == wanted and done["arrived"] >= 36,
            f"{how}: marked is what can be, else dropped",
            done,
        )
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as s:
            s.bind(("w1", 0))
            s.settimeout(1)
            port.open()
            seen = []
            while True:
                try:
                    seen.append(s.recv(2000))
                except TimeoutError:
                    break
        # not the two that were in the way; w1 takes an outer tag off
        seen = [f for f in seen if len(f) < 500]
        wrong = []
        for f in seen:
            at = 18 if f[12:14] == b"\x81\x00" else 14
            header = f[at : at + 20]
            if header[0] != 0x45 or header[1] != 3 or checksum(header):
                wrong.append(f.hex())
        t.ok(
            len(seen) == marked and not wrong,
            f"{how}: the marked ones come whole",
            (len(seen), wrong),
        )
    for dev in ("b0", "x0", "w0"):
        run(f"ip link del {dev}")


def main():
    t = lib.Tap()
    run("modprobe -a sch_abe sch_ingress cls_flower act_gact bridge")
    port = Port()
    quiet(port.name)
    run(f"ip link set {port.name} addrgenmode none")
    run(f"sysctl -qw net.ipv6.conf.{port.name}.disable_ipv6=0")
    run(f"ip addr add fd09::1/64 dev {port.name} nodad")
    for test in (
        test_dscp,
        test_vlan,
        test_tagged_marks,
        test_frames,
        test_priority_mark,
        test_filters,
        test_flat,
        test_classes,
    ):
        test(t, port)
        t.note(f"at {time.monotonic():.1f} s")
    run(f"ip link del {port.name}")
    for test in (test_order, test_ecn):
        test(t)
        t.note(f"at {time.monotonic():.1f} s")
    unload(t, "the module unloads: no filter holds it")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
