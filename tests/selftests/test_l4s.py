#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# long: only
"""A sender for L4S (DCTCP, ECT(1)) beside CUBIC at 10 Mb/s: CUBIC keeps a third of its share.

DCTCP takes a mark for a small part of a loss (RFC 9331). An ECT(1) packet is therefore lost
where another one would be marked. With ECT(0), so that DCTCP is marked, CUBIC is not left that
much: the same flows show that the test would notice.
"""

from lib import Load, Net, Tap, run

SECONDS, WARMUP = 40, 10
FLOWS = 2  # of each
MARK = 7  # of DCTCP's packets, for nftables

ECT1 = f"""
table inet l4s {{
	chain out {{
		type filter hook output priority mangle;
		meta mark {MARK} ip ecn ect0 ip ecn set ect1
	}}
}}
"""


def beside(t, net, name):
    """Mb/s of DCTCP and of CUBIC, and what happened to their packets."""
    net.fresh("abe seed 1")
    with Load(SECONDS, warmup=WARMUP) as load:
        load.tcp(flows=FLOWS, mark=MARK, id=1)
        load.tcp(flows=FLOWS, cc="cubic", id=11)
    got = [
        sum(f["goodput"] for f in load.report["tcp"] if first <= f["flow"] < first + 10) / 1e6
        for first in (1, 11)
    ]
    blue = net.stats()["blue"]
    t.note(f"{name}: DCTCP {got[0]:.2f}, CUBIC {got[1]:.2f} Mb/s; {blue}")
    return *got, blue


def main():
    t = Tap()
    run("modprobe -a sch_abe tcp_dctcp tcp_cubic")
    run(["sysctl", "-qw", "net.ipv4.tcp_allowed_congestion_control=reno cubic dctcp"])
    net = Net(rate=10_000_000, delay=20)
    for host in "ab":
        # the receiver has to echo each mark as DCTCP wants it
        run("sysctl -qw net.ipv4.tcp_ecn=1 net.ipv4.tcp_congestion_control=dctcp", ns=host)
    dctcp, cubic, blue = beside(t, net, "ECT(0)")
    share = (dctcp + cubic) / 2
    t.ok(blue["marks"] > 100 > blue["early_drops"], "ECT(0): marked", blue)
    t.ok(cubic < share / 3, "marked, DCTCP leaves CUBIC less than a third of its share", cubic)
    run(["nft", "-f", "-"], ns="a", input=ECT1)
    dctcp, cubic, blue = beside(t, net, "ECT(1)")
    share = (dctcp + cubic) / 2
    t.ok(blue["early_drops"] > 50 < blue["marks"], "ECT(1): lost, ECT(0) is marked", blue)
    t.ok(cubic > share / 3, "CUBIC has more than a third of its share", (dctcp, cubic))
    t.ok(dctcp + cubic > 8.5, "and the link is full", (dctcp, cubic))
    net.close()
    t.done()


if __name__ == "__main__":
    main()
