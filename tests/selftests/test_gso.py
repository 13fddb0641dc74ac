#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: --append slub_debug=FZPU,skbuff*,kmalloc-512,kmalloc-1k,kmalloc-2k
"""abe splits GSO packets of every kind, and drops all, some or none of the segments.

TCP, UDP and fraglist GSO (UDP that a router has gathered with rx-gro-list, where
the packet itself is the first of its segments), under several parents. Every
packet has to be freed once: the slab allocator poisons what was freed, and looks.
Segments are charged the root's size table, as if they had come one by one.
"""

import contextlib
import socket
import struct
import time

import lib
from lib import Net, netns, run
from test_tree import left, line, unbalanced
from wire import Port, kernel_log, unload

SIZE = 1200  # of a UDP payload
BURST = 16  # datagrams that are gathered

HTB = ("root handle 1: htb default 1", "class 1:1 htb rate 4mbit burst 1600 cburst 1600")
TBF = "root handle 1: tbf rate 4mbit burst 70000 limit 10000000"
QFQ = ("parent 1:1 handle 2: qfq", "class 2:1 qfq maxpkt 60000", "filter 2: matchall classid 2:1")
DRR = ("parent 1:1 handle 2: drr", "class 2:1 drr", "filter 2: matchall classid 2:1")
# what stands above abe, and its place
PARENTS = {
    "root": ((), None),
    "htb": (HTB, "1:1"),
    "tbf": ((TBF,), "1:1"),
    "tbf, qfq": ((TBF, *QFQ), "2:1"),
    "tbf, drr": ((TBF, *DRR), "2:1"),
}
# features of the router's device that gather UDP, or leave it alone
GATHER = {
    "tcp": "rx-gro-list off rx-udp-gro-forwarding off",
    "udp": "rx-gro-list off rx-udp-gro-forwarding on",
    "fraglist": "rx-gro-list on rx-udp-gro-forwarding off",
}
# what becomes of the segments
SPECS = {
    "all dropped": "packets limit 0",
    "some dropped": "packets limit 5 green_limit 2",
    "early drops": "packets limit 100 min 1 max 2 probability 1 weight 1",
    "marks": "packets limit 100 min 1 max 99 probability 1 weight 1 ecn",
    "bare": "",
}
DROPS = ("all dropped", "some dropped", "early drops")


class Sender:
    """Sockets of host a, used from outside of it."""

    def __init__(self):
        with netns("a"):
            self.sockets = [
                (self._socket(family, tos), (host, 9)) for family, host, tos in self._kinds()
            ]

    @staticmethod
    def _kinds():
        for family, host in ((socket.AF_INET, "10.0.2.1"), (socket.AF_INET6, "fd02::1")):
            for tos in (0, 2, 46 << 2, 46 << 2 | 2):
                yield family, host, tos

    @staticmethod
    def _socket(family, tos):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        level, name = (
            (socket.IPPROTO_IP, socket.IP_TOS)
            if family == socket.AF_INET
            else (socket.IPPROTO_IPV6, 67)
        )
        sock.setsockopt(level, name, tos)
        sock.setsockopt(socket.IPPROTO_UDP, 103, SIZE)  # UDP_SEGMENT
        return sock

    def burst(self, count=1):
        """Each socket's datagrams reach the router's device in one go; no more at a time than veth's ring takes."""
        for _ in range(count):
            time.sleep(0.01)
            for sock, address in self.sockets:
                sock.sendto(bytes(SIZE * BURST), address)


def plant(lines, place, spec):
    run("tc qdisc del dev out root", ns="r", check=False)
    for text in lines:
        run("tc " + line("out", text), ns="r")
    run(
        f"tc qdisc add dev out {f'parent {place}' if place else 'root'} handle 10: abe {spec}",
        ns="r",
    )


def send(kind, sender):
    """GSO packets of a kind and of both colours; how many packets that must be at least."""
    if kind == "tcp":
        with lib.Load(seconds=0.5) as load:
            load.tcp(flows=2)
            load.tcp(flows=1, dscp=46, id=2)
        return 3
    sender.burst(2)
    return 2 * len(sender.sockets) * BURST


def test_kinds(t, net, sender):
    """The kinds are there: whole packets count as one each, and as their segments in the core."""
    run("ethtool -K eth0 tx-udp-segmentation off", ns="a")
    run(f"ethtool -K in gro on {GATHER['tcp']}", ns="r")
    plant(HTB, "1:1", "nosplit_gso rate 1gbit limit 10s min 5s max 9s green_limit 10s")
    send("udp", sender)
    st = net.stats()
    arrived = st["green"]["arrived"] + st["blue"]["arrived"]
    sent = 2 * len(sender.sockets) * BURST
    # the kernel's own packets (neighbour discovery) pass here as well, a few of them
    t.ok(sent <= arrived < sent + BURST, "UDP comes to the router one by one", st)
    for kind, features in GATHER.items():
        run(f"ethtool -K in {features}", ns="r")
        plant(HTB, "1:1", "nosplit_gso limit 10s min 5s max 9s green_limit 10s rate 1gbit")
        send(kind, sender)
        time.sleep(3)
        st = net.stats()
        whole = st["green"]["sent"] + st["blue"]["sent"]
        t.ok(st["packets"] > 1.5 * whole > 0, f"{kind}: GSO packets reach the queue", st)
        t.ok(
            not left("out", "r") and not unbalanced("out", "r"),
            f"{kind}: they pass as they are",
            left("out", "r"),
        )


def test_split(t, net, sender, kind):
    run(f"ethtool -K in {GATHER[kind]}", ns="r")
    for parent, (lines, place) in PARENTS.items():
        if kind == "tcp" and parent not in ("htb", "tbf, qfq"):
            continue  # see test_tree
        wrong = []
        drops = {}
        for name in SPECS if parent == "htb" else DROPS:
            plant(lines, place, SPECS[name])
            least = send(kind, sender)
            wrong += [f"{name}: {text}" for text in unbalanced("out", "r")]
            time.sleep(3)
            wrong += [f"{name}: left: {text}" for text in left("out", "r")]
            wrong += [f"{name}: {text}" for text in unbalanced("out", "r")]
            st = net.stats()
            arrived = st["green"]["arrived"] + st["blue"]["arrived"]
            if arrived < least:
                wrong.append(f"{name}: {arrived} of {least} packets arrived")
            drops[name] = sum(
                st[c][key]
                for c in ("green", "blue")
                for key in ("early_drops", "late_drops", "limit_drops")
            )
            if name == "all dropped" and drops[name] != arrived:
                wrong.append(f"{name}: {drops[name]} of {arrived}")
        t.ok(not wrong, f"{kind}, {parent}: balance, then 0b 0p", "\n".join(wrong[:20]))
        if parent != "root":
            t.ok(
                drops["some dropped"] and drops["early drops"],
                f"{kind}, {parent}: there were drops",
                drops,
            )


def parameter(name, value=None):
    """A parameter of tests/fail_split."""
    with open(
        f"/sys/module/fail_split/parameters/{name}",
        "r+" if value is not None else "r",
        encoding="ascii",
    ) as f:
        return int(f.read()) if value is None else f.write(str(value))


def test_memory(t, net, sender):
    """Each allocation of a split fails once, also where the segments have to be copied."""
    with open("/proc/kallsyms", encoding="ascii") as f:
        if lib.UM or " should_failslab\n" not in f.read():
            t.skip("allocations that fail", "this kernel has no kprobes or no should_failslab()")
            return
    run("modprobe fail_split")
    for kind, sg in (("udp", "on"), ("fraglist", "on"), ("fraglist", "off")):
        run(f"ethtool -K out sg {sg}", ns="r")
        run(f"ethtool -K in {GATHER[kind]}", ns="r")
        plant(HTB, "1:1", "packets limit 1000 min 900 max 1000")
        wrong, total, n = [], 0, 0
        for n in range(1, 200):
            parameter("failed", 0)
            parameter("nth", n)
            before = net.stats()
            sender.burst()
            parameter("nth", 0)
            st = net.stats()
            failed = parameter("failed")
            total += failed
            drops = sum(st[c]["limit_drops"] - before[c]["limit_drops"] for c in ("green", "blue"))
            wrong += [f"allocation {n}: {text}" for text in unbalanced("out", "r")]
            if drops != failed:
                wrong.append(
                    f"allocation {n}: {failed} packets could not be split, {drops} were dropped"
                )
            time.sleep(0.5)
            if not failed:
                break
        time.sleep(2)
        wrong += left("out", "r")
        t.ok(not wrong, f"{kind}, sg {sg}: balance when memory is short", "\n".join(wrong[:20]))
        # a fraglist that is passed on as it is needs no memory
        good = n < 199 and (total > 20 if kind == "udp" or sg == "off" else not total)
        t.ok(good, f"{kind}, sg {sg}: {n - 1} allocations failed, {total} times")
    run("ethtool -K out sg on", ns="r")
    run("rmmod fail_split")


def broken_gso(port):
    """TCP over IPv4 that claims to be a GSO packet of IPv6: it cannot be split."""
    payload = bytes(3000)
    tcp = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 5 << 4, 0x10, 1000, 0, 0)
    # with twelve bytes of options, for the headers have to be as long as IPv6's
    ip = struct.pack(
        "!BBHHHBBH4s4s12x", 0x48, 0, 52 + len(payload), 0, 0, 64, 6, 0, bytes(4), bytes(4)
    )
    vnet = struct.pack("=BBHHHH", 1, 4, 66, 1000, 46, 16)  # NEEDS_CSUM, TCPV6
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((port.name, 0))
    sock.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
    with contextlib.suppress(OSError):  # ENOBUFS: it was dropped
        sock.send(vnet + bytes(12) + b"\x08\x00" + ip + tcp + payload)


def test_broken(t, port):
    run(f"tc qdisc add dev {port.name} root handle 10: abe packets")
    port.blue(3)
    for _ in range(5):
        broken_gso(port)
    st = port.stats()
    good = (
        st["blue"]["limit_drops"] == 5 == st["drops"]
        and st["blue"]["sent"] == 3
        and not lib.balance(st)
    )
    t.ok(good, "what cannot be split is dropped", st)


def charged(port, stab, place, **kwargs):
    """Mean charge of a packet, in abe and in the core."""
    run(f"tc qdisc del dev {port.name} root", check=False)
    if place == "root":
        run(
            f"tc qdisc add dev {port.name} root handle 10: stab {stab} abe packets limit 1000 min 900 max 1000"
        )
    else:
        port.batch(
            f"qdisc add dev {port.name} root handle 1: stab {stab} htb default 1",
            f"class add dev {port.name} parent 1: classid 1:1 htb rate 1gbit",
            f"qdisc add dev {port.name} parent 1:1 handle 10: abe packets limit 1000 min 900 max 1000",
        )
    port.send(10, **kwargs)
    time.sleep(0.1)
    st = port.stats()
    return (
        st["blue"]["bytes"] / st["blue"]["sent"],
        st["bytes"] / st["packets"],
        unbalanced(port.name),
    )


def test_stab(t, port):
    """Segments are charged as packets of their size are that come alone."""
    for stab in (
        "linklayer atm overhead 40",
        "linklayer ethernet overhead 22 mpu 2000",
        "overhead -14",
        "linklayer atm overhead 8 mtu 1024 tsize 64",
    ):
        for place in ("root", "htb") if "overhead 40" in stab else ("root",):
            for size in (100, 1514):
                alone = charged(port, stab, place, size=size)
                split = charged(port, stab, place, size=size, segments=8)
                good = alone == split and alone[0] == alone[1] != size and not alone[2]
                t.ok(
                    good,
                    f"stab {stab}, {place}: {size} bytes are {alone[0]:g}, also as segments",
                    (alone, split),
                )


def main():
    t = lib.Tap()
    run("modprobe sch_abe")
    port = Port()
    test_broken(t, port)
    test_stab(t, port)
    net = Net(offload=True)
    sender = Sender()
    test_kinds(t, net, sender)
    for kind in GATHER:
        test_split(t, net, sender, kind)
        t.note(f"at {time.monotonic():.1f} s")
    test_memory(t, net, sender)
    net.close()
    run(f"ip link del {port.name}")
    unload(t, "the module unloads")
    t.ok(not kernel_log(), "the kernel's log is clean", "\n".join(kernel_log()))
    t.done()


if __name__ == "__main__":
    main()
