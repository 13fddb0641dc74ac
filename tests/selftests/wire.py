# SPDX-License-Identifier: GPL-2.0
"""Raw rtnetlink, and a device whose queue stands still while a test looks at it.

tc checks what it sends; the kernel has to bear what it would never send. And a
netlink request costs the guest a hundredth of a tc process.
"""

import errno
import fcntl
import os
import socket
import struct
import subprocess
import time

from lib import FAULTS, qdisc, run

NLM_F_REQUEST, NLM_F_ACK, NLM_F_ECHO = 1, 4, 8
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLA_F_NESTED = 0x8000
NLM_F_DUMP = 0x300
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER = 44, 45, 46
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_APP = 1, 3, 4
TC_H_ROOT = 0xFFFFFFFF

# enum of kernel/include/uapi/linux/pkt_sch_abe.h, from 1 on
NAMES = [
    "unit",
    "rate",
    "limit",
    "green_limit",
    "min",
    "max",
    "probability",
    "weight",
    "avpkt",
    "flags",
    "spacing",
    "loop",
    "rtt",
    "interval",
    "k1",
    "k2",
    "k3",
    "k4",
    "gamma1",
    "gamma2",
    "gamma3",
    "lambda",
    "offset",
    "offset_max",
    "alpha_max",
    "green_dscp",
    "green_mark",
    "green_mask",
    "seed",
    "memory_limit",
    "protect",
]
NUMBER = {name: n for n, name in enumerate(NAMES, 1)}
WIDE = ("rate", "green_dscp", "seed")  # u64; flags is a bitfield32, the rest u32


class Refused(Exception):
    """The kernel's answer to a request: errno and the text of its extack."""

    def __init__(self, number, text):
        super().__init__(f"{errno.errorcode.get(number, number)}: {text}")
        self.errno = number
        self.text = text


def attr(kind, data):
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + bytes(-size % 4)


def u32(name, value):
    return attr(NUMBER[name], struct.pack("=I", value))


def u64(name, value):
    return attr(NUMBER[name], struct.pack("=Q", value))


def attrs(data):
    """(type without flags, payload) of each attribute."""
    pos = 0
    while pos + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, pos)
        if size < 4:
            return
        yield kind & 0x3FFF, data[pos + 4 : pos + size]
        pos += (size + 3) & ~3


class Rtnl:
    """A netlink socket, for qdisc requests."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.sock.bind((0, 0))
        self.sock.setsockopt(270, 10, 1)  # SOL_NETLINK, NETLINK_CAP_ACK
        self.sock.setsockopt(270, 11, 1)  # NETLINK_EXT_ACK
        self.seq = 0

    def raw(self, message):
        """Send a message with an ACK requested; the replies before the ACK."""
        self.sock.send(message)
        replies = []
        while True:
            data = self.sock.recv(65536)
            while len(data) >= 16:
                size, kind, flags, seq = struct.unpack_from("=IHHI", data)
                body, data = data[16:size], data[(size + 3) & ~3 :]
                if seq != self.seq:
                    continue
                if kind == 2:  # NLMSG_ERROR: the ACK, or not
                    code = -struct.unpack_from("=i", body)[0]
                    if code:
                        raise Refused(code, self._text(body, flags))
                    return replies
                if kind == 3:  # NLMSG_DONE: a dump's end
                    return replies
                replies.append((kind, body))

    @staticmethod
    def _text(body, flags):
        if not flags & 0x200:  # NLM_F_ACK_TLVS
            return ""
        # with CAP_ACK only the header of the request is quoted
        for kind, data in attrs(body[20:]):
            if kind == 1:  # NLMSGERR_ATTR_MSG
                return data.rstrip(b"\0").decode()
        return ""

    def talk(self, kind, flags, body):
        self.seq += 1
        return self.raw(
            struct.pack(
                "=IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_ACK | flags, self.seq, 0
            )
            + body
        )

    def qdisc(self, flags, dev, parent, handle, options, kind="abe", nested=True):
        """RTM_NEWQDISC with these bytes as TCA_OPTIONS (None: without it)."""
        body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(dev), handle, parent, 0)
        body += attr(TCA_KIND, kind.encode() + b"\0")
        if options is not None:
            body += attr(TCA_OPTIONS | (NLA_F_NESTED if nested else 0), options)
        return self.talk(RTM_NEWQDISC, flags, body)

    def get(self, dev, handle):
        """(options, xstats) of a qdisc, as bytes."""
        body = struct.pack("=BxxxiIII", 0, socket.if_nametoindex(dev), handle, 0, 0)
        for kind, reply in self.talk(RTM_GETQDISC, NLM_F_ECHO, body):
            if kind == RTM_NEWQDISC:
                found = dict(attrs(reply[20:]))
                return found[TCA_OPTIONS], dict(attrs(found[TCA_STATS2])).get(TCA_STATS_APP, b"")
        raise RuntimeError("no such qdisc")

    def options(self, dev, handle):
        """The options of an abe qdisc by name, as the attributes have them."""
        out = {}
        for kind, data in attrs(self.get(dev, handle)[0]):
            if 1 <= kind <= len(NAMES):
                name = NAMES[kind - 1]
                out[name] = (
                    struct.unpack("=II", data)
                    if name == "flags"
                    else int.from_bytes(data, "little")
                )
        return out


class Port:
    """A dummy device with a slow tbf (1:) and the qdisc under test below (10:).

    Closed, it passes one packet of full size, and then one in some seconds; open,
    all at once.
    Nobody talks on it but the test, so each packet counts.
    """

    CLOSED = "rate 800bit burst 1514 limit 1000000"
    OPEN = "rate 10gbit burst 1000000 limit 1000000"

    def __init__(self, name="d0", net="10.9.0", kind="dummy", queues=1):
        self.name = name
        self.net = net
        self.sockets = {}
        with open("/proc/self/uid_map", encoding="ascii") as f:
            self.root = f.read().split()[1] == "0"
        run(f"ip link add {name} numtxqueues {queues} type {kind}")
        run(f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")
        run(f"ip addr add {net}.1/24 dev {name}")
        run(f"ip link set {name} up")

    def batch(self, *lines, check=True):
        """Lines of tc in one process."""
        return subprocess.run(
            ["tc", "-batch", "-"],
            input="\n".join(lines) + "\n",
            text=True,
            capture_output=True,
            check=check,
        )

    def fresh(self, spec, state="closed"):
        """A new qdisc under a new tbf with a full bucket."""
        run(f"tc qdisc del dev {self.name} root", check=False)
        shaper = self.CLOSED if state == "closed" else self.OPEN
        self.batch(
            f"qdisc add dev {self.name} root handle 1: tbf {shaper}",
            f"qdisc add dev {self.name} parent 1:1 handle 10: {spec}",
        )

    def change(self, spec, verb="change", check=True):
        cmd = f"tc qdisc {verb} dev {self.name} parent 1:1 handle 10: abe {spec}"
        return run(cmd, check=check)

    def open(self):
        """Let everything go, and wait until it has."""
        self.batch(f"qdisc change dev {self.name} root handle 1: tbf {self.OPEN}")
        time.sleep(15.5)  # a packet that was peeked waits as long as the old rate says

    def close(self):
        """Slow again; a packet may still pass."""
        self.batch(f"qdisc change dev {self.name} root handle 1: tbf {self.CLOSED}")

    def stats(self):
        return qdisc(self.name)

    def send(self, count=1, size=1000, dscp=0, ecn=0, mark=0, priority=0, gap=0, segments=0):
        """UDP packets of `size` bytes with their Ethernet header."""
        key = (dscp, ecn, mark, priority, segments)
        sock = self.sockets.get(key)
        if not sock:
            sock = self.sockets[key] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            # SO_SNDBUFFORCE is not for users
            sock.setsockopt(socket.SOL_SOCKET, 32 if self.root else socket.SO_SNDBUF, 1 << 28)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2 | ecn)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
            sock.connect((f"{self.net}.2", 9))
        if segments:
            sock.setsockopt(socket.IPPROTO_UDP, 103, size - 42)  # UDP_SEGMENT
        payload = bytes((size - 42) * max(segments, 1))
        for _ in range(count):
            sock.send(payload)
            if gap:
                time.sleep(gap)

    def green(self, count=1, **kwargs):
        self.send(count, dscp=46, **kwargs)

    def blue(self, count=1, **kwargs):
        self.send(count, **kwargs)


def tun(name, queues=1):
    """A TUN device with that many queues; the open files are its far end."""
    run("modprobe tun")
    files = []
    for _ in range(queues):
        f = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        flags = 0x1 | 0x1000 | (0x100 if queues > 1 else 0)  # IFF_TUN, NO_PI, MULTI_QUEUE
        fcntl.ioctl(f, 0x400454CA, struct.pack("16sH22x", name.encode(), flags))
        files.append(f)
    return files


def unload(t, text):
    """The module must go, as soon as the last network namespace is cleaned up."""
    for _ in range(50):
        res = run("rmmod sch_abe", check=False)
        if not res.returncode:
            break
        time.sleep(0.1)
    t.ok(res.returncode == 0, text, res.stderr)


def kernel_log():
    """Lines of the kernel's log that tell of a fault."""
    log = run("dmesg").stdout.splitlines()
    return [line for line in log if any(word in line for word in FAULTS)]
