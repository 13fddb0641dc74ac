#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Calls over DCCP through a stateful firewall, and through one that translates addresses.

Linux's connection tracking takes any DCCP packet over IPv4 of more than 255 bytes
for one with a wrong checksum (nf_ip_checksum_partial() swaps two arguments, of
which one has 8 bits). Such packets pass with nf_conntrack_checksum=0; voipcall's own
are small enough for either.
"""

import contextlib

import dccp
import lib
from lib import run, tc
from test_voipcall import B4, B6, Capture, Packet, Result

RULES = """
table inet filter {
	chain forward {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		ct state new meta l4proto { 33, 1, 58 } accept
	}
}
"""
NAT = """
table inet nat {
	chain postrouting {
		type nat hook postrouting priority srcnat;
		oifname "out" masquerade
	}
}
"""


def rules(text):
    run(["nft", "flush", "ruleset"], ns="r")
    run(["nft", "-f", "-"], ns="r", input=text)


def sysctl(value):
    run(f"sysctl -qw net.netfilter.nf_conntrack_checksum={value}", ns="r")


def pass_of_size(size, host, family):
    """How many of ten DCCP packets with so much payload come through, once both ends have been heard."""
    listener = dccp.sock("b", family, ccid=[4])
    listener.bind((host, 5001))
    listener.listen(1)
    caller = dccp.sock("a", family, ccid=[4])
    caller.settimeout(5)
    caller.connect((host, 5001))
    far, _ = listener.accept()
    caller.send(b"a")
    far.send(far.recv(10))
    caller.recv(10)
    far.settimeout(0.3)
    got = 0
    for _ in range(10):
        with contextlib.suppress(OSError):  # time is up
            caller.send(bytes(size))
            got += len(far.recv(2000)) == size
    for s in (caller, far, listener):
        s.close()
    return got


def test_calls(t, nat):
    where = "NAT" if nat else "firewall"
    rules(RULES + (NAT if nat else ""))
    for value in (1, 0):
        sysctl(value)
        for host, name in ((B4, "IPv4"), (B6, "IPv6")):
            for codec, ccid in (("g711", 4), ("opus", 4), ("g711", 2)):
                # the kernel's own CCID 2 can stop sending for good when packets are lost: one call in twenty
                for ns in "ab":
                    tc(
                        f"qdisc change dev eth0 root netem delay 20ms loss {0 if ccid == 2 else 2}%",
                        ns,
                    )
                capture = Capture("in")
                c = Result(
                    "--codec",
                    codec,
                    "--ccid",
                    ccid,
                    "--time",
                    8,
                    udp=False,
                    host=host,
                    listen=("--ccid", ccid),
                )
                sent = [p for p in (Packet(*q) for q in capture.packets()) if p.protocol == 33]
                text = f"{where}, {name}, nf_conntrack_checksum={value}, {codec}, CCID {ccid}"
                got = c.far["received"] if c.far else {}
                t.ok(
                    c.good and got["packets"] > 300 and c.near["far_end"]["received"] == got,
                    f"{text}: a call from end to end",
                    c,
                )
                t.ok(
                    c.good and c.near["ccid"] == ccid and len(sent) > 350,
                    f"{text}: each packet was DCCP's",
                    c,
                )
                t.note(
                    f"{text}: the longest payload has {max((len(p.payload) for p in sent), default=0)} bytes"
                )


def test_sizes(t):
    rules(RULES)
    for name, family in dccp.FAMILIES.items():
        host = dccp.ADDRESS["b"][family]
        sysctl(0)
        for size in (100, 231, 300, 1200):
            got = pass_of_size(size, host, family)
            t.ok(got == 10, f"{name}, nf_conntrack_checksum=0: packets of {size} bytes pass", got)
        sysctl(1)
        for size in (100, 231):
            got = pass_of_size(size, host, family)
            t.ok(got == 10, f"{name}, nf_conntrack_checksum=1: packets of {size} bytes pass", got)
        t.note(
            f"{name}, nf_conntrack_checksum=1: {pass_of_size(300, host, family)} of 10 with 300 bytes pass"
        )


def main():
    t = lib.Tap()
    dccp.load()
    run("modprobe -a dccp_tfrc nf_conntrack")
    lib.Net()
    for ns in "ab":
        tc("qdisc add dev eth0 root netem delay 20ms loss 2%", ns)
    for nat in (False, True):
        test_calls(t, nat)
    for ns in "ab":
        tc("qdisc del dev eth0 root", ns)
    test_sizes(t)
    t.done()


if __name__ == "__main__":
    main()
