# SPDX-License-Identifier: GPL-2.0
"""DCCP sockets in network namespaces, and what DCCP leaves behind in the kernel."""

import contextlib
import os
import re
import select
import socket
import struct
import time
from glob import glob

from lib import netns, run

SOCK_DCCP = 6
IPPROTO_DCCP = 33
SOL_DCCP = 269
SERVICE, AVAILABLE_CCIDS, CCID, TX_CCID, RX_CCID = 2, 12, 13, 14, 15
CCID_RX_INFO, CCID_TX_INFO = 128, 192

PORT = 5001
ADDRESS = {  # of lib.Net's hosts
    "a": {socket.AF_INET: "10.0.1.1", socket.AF_INET6: "fd01::1"},
    "b": {socket.AF_INET: "10.0.2.1", socket.AF_INET6: "fd02::1"},
}
FAMILIES = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}


def load():
    """Debian's modules for DCCP are not loaded on demand."""
    run("modprobe -a dccp_ipv4 dccp_ipv6 dccp_diag")


def sock(ns, family=socket.AF_INET, ccid=None, tx=None, rx=None):
    """A socket that asks for lists of CCIDs: for both directions, or for one."""
    with netns(ns):
        s = socket.socket(family, SOCK_DCCP, IPPROTO_DCCP)
    try:
        s.setsockopt(SOL_DCCP, SERVICE, struct.pack("!I", 42))
        for option, ccids in ((CCID, ccid), (TX_CCID, tx), (RX_CCID, rx)):
            if ccids is not None:
                s.setsockopt(SOL_DCCP, option, bytes(ccids))
    except OSError:
        s.close()
        raise
    return s


def listen(ns, family=socket.AF_INET, port=PORT, **ccids):
    s = sock(ns, family, **ccids)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((ADDRESS[ns][family], port))
    s.listen(8)
    return s


def connect(listener, ns="a", patience=300, **ccids):
    """Both ends of a new connection, client first; OSError if there is none, after patience seconds at most."""
    client = sock(ns, listener.family, **ccids)
    try:
        client.settimeout(patience)
        client.connect(listener.getsockname()[:2])
        listener.settimeout(min(patience, 10))
        server, _ = listener.accept()
    except OSError:
        client.close()
        raise
    for s in (client, server):
        s.settimeout(10)
    return client, server


@contextlib.contextmanager
def connection(family, client, server, to="b", ns="a"):
    """Connect from ns to a listener of its own; client and server are dictionaries of sock()'s lists."""
    listener = listen(to, family, **server)
    ends = ()
    try:
        ends = connect(listener, ns, **client)
        yield ends
    finally:
        for s in (*ends, listener):
            s.close()


def ccids(s):
    """The CCIDs in use: (sender, receiver)."""
    return tuple(s.getsockopt(SOL_DCCP, option) for option in (TX_CCID, RX_CCID))


def available(s):
    return list(s.getsockopt(SOL_DCCP, AVAILABLE_CCIDS, 256))


def exchange(sender, receiver, count=10, size=100):
    """Send count packets; how many of them arrive as sent, the next within a second."""
    good = 0
    for n in range(count):
        data = bytes([n]) * size
        try:
            sender.send(data)
        except BlockingIOError:
            pass
        if select.select([receiver], [], [], 1)[0]:
            good += receiver.recv(2000) == data
    return good


def slabs():
    """The caches of CCIDs that exist, as {name: objects}; exact only with slub_debug."""
    found = {}
    for path in glob("/sys/kernel/slab/*ccid*_hc_*_sock"):
        with open(f"{path}/objects", encoding="ascii") as f:
            found[os.path.basename(path)] = int(f.read().split()[0])
    return found


def allocations():
    """What net/dccp has allocated and not freed, by call site; needs slub_debug=U."""
    found = {}
    for path in glob("/sys/kernel/debug/slab/*/alloc_traces"):
        with open(path, encoding="ascii") as f:
            for line in f:
                match = re.match(r" *(\d+) (\S+) \[dccp\w*\]", line)
                if match:
                    site = f"{path.split('/')[-2]} {match[2]}"
                    found[site] = found.get(site, 0) + int(match[1])
    return found


def settle(seconds=70):
    """Let TIMEWAIT and closed sockets go."""
    time.sleep(seconds)


def nothing_left(tap, before):
    """No memory: before is what allocations() said at the start."""
    after = allocations()
    tap.ok(after == before, "net/dccp has freed what it allocated", f"{before}\n{after}")
    left = {name: n for name, n in slabs().items() if n}
    tap.ok(not left, "no CCID's state is left", left)
