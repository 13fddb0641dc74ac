# SPDX-License-Identifier: GPL-2.0
"""abe for pyroute2: to add and change it, and to read its options and statistics.

    import sched_abe
    from pyroute2 import IPRoute

    with IPRoute() as ip:
        (dev,) = ip.link_lookup(ifname="eth0")
        ip.tc("add", "abe", dev, 0x10000, rate=2375000, rtt=50000, ecn=True)
        ip.tc("change", "abe", dev, 0x10000, green_limit=5000)
        for message in ip.get_qdiscs(dev):
            print(sched_abe.read(message))

Options are those of tc-abe(8). Numbers are as in what `tc -j` prints: times in microseconds, rates
in bytes/s, ratios as floats; thresholds in microseconds, bytes or packets as `unit` says
("time", "bytes" or "packets"; tc's plugin guesses it, this does not). green_dscp is a list of
numbers, green_mark "VALUE/MASK". weight may be "auto", and protect "off". Flags are
booleans. What is out of range the kernel refuses: NetlinkError, whose code is ERANGE or EINVAL.
"""

import sys

from pyroute2.netlink import NLA_F_NESTED, nla
from pyroute2.netlink.rtnl import TC_H_ROOT, tcmsg
from pyroute2.netlink.rtnl.tcmsg.common import stats2 as common_stats2

parent = TC_H_ROOT

UNITS = ("time", "bytes", "packets")
SPACINGS = (
    "uniform",
    "geometric",
    "delayed_uniform",
    "delayed_geometric",
    "deterministic",
)
LOOPS = ("paper", "load")
FLAGS = ("gentle", "adaptive", "bytemode", "ecn", "harddrop", "flat", "split_gso")
FRACTION, FIXED = 1 << 31, 1 << 16  # Q1.31, Q16.16

# By attribute, in the order of enum TCA_ABE_* of linux/pkt_sch_abe.h: type, and what a number is
# multiplied with, or the words that it counts.
OPTIONS = {
    "unit": ("uint32", UNITS),
    "rate": ("uint64", 1),
    "limit": ("uint32", 1),
    "green_limit": ("uint32", 1),
    "min_th": ("uint32", 1),
    "max_th": ("uint32", 1),
    "probability": ("uint32", FRACTION),
    "weight": ("uint32", FRACTION),
    "avpkt": ("uint32", 1),
    "flags": ("flags", None),
    "spacing": ("uint32", SPACINGS),
    "loop": ("uint32", LOOPS),
    "rtt": ("uint32", 1),
    "interval": ("uint32", 1),
    "k1": ("uint32", FIXED),
    "k2": ("uint32", 1),
    "k3": ("uint32", 1),
    "k4": ("uint32", 1),
    "gamma1": ("uint32", FRACTION),
    "gamma2": ("uint32", FRACTION),
    "gamma3": ("uint32", FRACTION),
    "lambda": ("uint32", FRACTION),
    "offset": ("uint32", 1),
    "offset_max": ("uint32", 1),
    "alpha_max": ("uint32", FIXED),
    "green_dscp": ("uint64", None),
    "green_mark": ("uint32", None),
    "green_mask": ("uint32", None),
    "seed": ("uint64", 1),
    "memory_limit": ("uint32", 1),
    "protect": ("uint32", FRACTION),
}
RENAMED = {"min": "min_th", "max": "max_th"}

# Statistics, in the order of enum TCA_ABE_STATS_* from _ALPHA on, and TCA_ABE_COLOUR_* from _ARRIVED on.
STATISTICS = {
    "alpha": FIXED,
    "alpha_target": FIXED,
    "offset": 1,
    "average": 1 << 32,
    "probability": FRACTION,
    "green_ahead": 1,
    "updates": 1,
    "green_share": FRACTION,
    "drain_rate": 1,
    "limit": 1,
    "green_limit": 1,
    "loss_blue": FRACTION,
    "loss_green_early": FRACTION,
    "loss_green_late": FRACTION,
    "delay_blue": 1,
    "delay_green": 1,
    "memory_used": 1,
    "memory_max": 1,
    "memory_limit": 1,
}
COLOUR = (
    "arrived",
    "sent",
    "bytes",
    "qlen",
    "backlog",
    "early_drops",
    "late_drops",
    "limit_drops",
    "marks",
    "delay_max",
    "delay_sum",
    "sojourn",
    "excused",
)


class options(nla):
    nla_flags = NLA_F_NESTED
    nla_map = (
        ("TCA_ABE_UNSPEC", "none"),
        *((f"TCA_ABE_{name.upper()}", kind) for name, (kind, _) in OPTIONS.items()),
    )

    class flags(nla):  # struct nla_bitfield32
        fields = (("bits", "I"), ("selector", "I"))


class stats2(common_stats2):
    class stats_app(nla):
        nla_map = (
            ("TCA_ABE_STATS_UNSPEC", "none"),
            ("TCA_ABE_STATS_PAD", "none"),
            ("TCA_ABE_STATS_TYPE", "uint32"),
            ("TCA_ABE_STATS_UNIT", "uint32"),
            *((f"TCA_ABE_STATS_{name.upper()}", "uint64") for name in STATISTICS),
            ("TCA_ABE_STATS_GREEN", "colour"),
            ("TCA_ABE_STATS_BLUE", "colour"),
            ("TCA_ABE_STATS_COLOUR", "colour"),
        )

        class colour(nla):
            nla_map = (
                ("TCA_ABE_COLOUR_UNSPEC", "none"),
                ("TCA_ABE_COLOUR_PAD", "none"),
                *(
                    (f"TCA_ABE_COLOUR_{name.upper()}", "bins" if name == "sojourn" else "uint64")
                    for name in COLOUR
                ),
            )

            class bins(nla):
                fields = tuple((f"below_{64 << n}", "Q") for n in range(16))


def get_parameters(given):
    """Attributes of what ip.tc() was given; names that are not abe's are not for us."""
    attributes, bits, selector = {}, 0, 0
    for name, what in given.items():
        key = RENAMED.get(name, name)
        if name in FLAGS:
            bit = 1 << FLAGS.index(name)
            selector |= bit
            bits |= bit if what else 0
        elif name == "green_dscp":
            attributes[key] = sum(1 << dscp for dscp in set(what))
        elif name == "green_mark":
            mark, _, mask = ("0/0" if what == "none" else what).partition("/")
            attributes["green_mark"] = int(mark, 0)
            attributes["green_mask"] = int(mask, 0) if mask else 0xFFFFFFFF
        elif key in OPTIONS:
            scale = OPTIONS[key][1]
            if isinstance(scale, tuple):
                attributes[key] = scale.index(what)
            else:
                attributes[key] = 0 if what in ("auto", "off") else round(what * scale)
    if selector:
        attributes["flags"] = {"bits": bits, "selector": selector}
    return {"attrs": [[f"TCA_ABE_{key.upper()}", what] for key, what in attributes.items()]}


def fix_request(request):
    """The options are in TCA_OPTIONS now; by some of their names there are other attributes, too."""
    for name in (*OPTIONS, *RENAMED, *FLAGS):
        request.pop(name, None)


def _options(found):
    out = {}
    for name, (_, scale) in OPTIONS.items():
        value = found.get_attr(f"TCA_ABE_{name.upper()}")
        name = name.removesuffix("_th")
        if value is None:
            continue
        if name == "flags":
            out |= {flag: bool(value["bits"] >> n & 1) for n, flag in enumerate(FLAGS)}
        elif name == "green_dscp":
            out[name] = [n for n in range(64) if value >> n & 1]
        elif name == "green_mark":
            mask = found.get_attr("TCA_ABE_GREEN_MASK")
            out[name] = f"{value:#x}/{mask:#x}" if mask else "none"
        elif isinstance(scale, tuple):
            out[name] = scale[value]
        elif not value and name in ("weight", "protect"):
            out[name] = "auto" if name == "weight" else "off"
        elif name != "green_mask":
            out[name] = value if scale == 1 else value / scale
    return out


def _colour(found):
    out = {
        name: found.get_attr(f"TCA_ABE_COLOUR_{name.upper()}")
        for name in COLOUR
        if name not in ("sojourn", "delay_sum")
    }
    sent, total = out["sent"], found.get_attr("TCA_ABE_COLOUR_DELAY_SUM")
    out["delay_mean"] = total / sent if sent else 0
    out["sojourn"] = list(found.get_attr("TCA_ABE_COLOUR_SOJOURN").values())
    return out


def read(message):
    """What `tc -s -j qdisc show` has of an abe, of a message of get_qdiscs(); None if it is another qdisc."""
    if message.get_attr("TCA_KIND") != "abe":
        return None
    out = {"options": _options(message.get_attr("TCA_OPTIONS"))}
    found = message.get_attr("TCA_STATS2").get_attr("TCA_STATS_APP")
    for name, scale in STATISTICS.items():
        value = found.get_attr(f"TCA_ABE_STATS_{name.upper()}")
        if name in ("limit", "green_limit"):
            if out["options"]["unit"] == "packets":
                continue
            name += "_bytes"
        if value is not None:
            out[name] = value if scale == 1 else value / scale
    for colour in ("green", "blue"):
        out[colour] = _colour(found.get_attr(f"TCA_ABE_STATS_{colour.upper()}"))
    return out


tcmsg.plugins["abe"] = sys.modules[__name__]
