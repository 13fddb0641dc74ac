# SPDX-License-Identifier: GPL-2.0
"""A world (nodes, links, queues) and its flows as lines of shell.

Every node is a network namespace, every link a veth pair whose devices bear
the name of the node at the other end. A direction of a link without a queue
of its own is a netem with its rate and delay. One with a queue is

    netem (delay)  ->  tbf (rate)  ->  the queue under test

on one device. The delay comes first, which spares a hop: that a packet has
passed the link before it is queued, not after, only shifts a router's clock.
Losses are ablossy's, where the packets come in at the other end. A packet leaves the queue
when its transmission ends; with `shaper: htb`, as at a device and in ns-2, when it begins.
"""

import functools
import os
import random
import shlex

import yaml
from experiment import HERE, quantity, seconds, show

DSCP = {"green": 46, "blue": 0}
# Of each kind of flow: the sink's port, and the keys that it takes, which are
# abeload's options.
PORTS = {
    "udp": ("--port", 5000),
    "pareto": ("--port", 5000),
    "tcp": ("--tcp-port", 5001),
    "aimd": ("--aimd-port", 5002),
    "web": ("--web-port", 5003),
}
TAKES = {
    "udp": ("size", "pps", "poisson", "ecn"),
    "pareto": ("size", "pps", "on", "off", "shape", "ecn"),
    "tcp": ("cc", "cwnd_interval"),
    "aimd": ("size", "ecn"),
    "web": ("cc", "model", "body", "tail", "size_max", "objects", "pause", "gap"),
    "dccp": ("ccid", "size", "pps", "vary", "options", "intervals"),
    "call": ("ccid", "codec", "ptime", "playout"),
}
WANTS = {
    "udp": ("size", "pps"),
    "pareto": ("size", "pps"),
    "aimd": ("size",),
    "dccp": ("ccid", "size", "pps"),
}
DCCP_PORT = 6000  # and the flow's id
DCCP_EARLY = (
    0.5  # s that it ends before the sinks of the other kinds, whose sources fail once they are gone
)
MODULES = "build/modules/6.1"
DCCP_NEEDS = tuple(f"{MODULES}/{name}.ko" for name in ("dccp", "dccp_ipv4", "dccp_tfrc"))
CALL_PORT = {"dccp": 5004, "udp": 5006}
CALL_END = 1  # s that a call has to say good-bye
TIMES = ("on", "off", "gap", "cwnd_interval", "jitter")
SINK = ("series", "rtp_window", "spread_window")
FOU_PORT = 5555
# Modules by kind of tunnel: those that each guest has, and those that the engine adds.
TUNNELS = {
    "ipip": (("ipip",), ()),
    "fou": (("ipip", "fou"), ()),
    "esp": (("esp4",), ("xfrm_user", "authenc", "echainiv", "ecb")),
}
BIN = 0.1  # s, of `bins`
TAIL = 2  # s that sources outlast the measurement

# Who has the connection tables of one run must not find those of another,
# nor a memory too small for large buffers.
SYSCTLS = {"net.ipv4.tcp_no_metrics_save": 1, "net.ipv6.conf.all.disable_ipv6": 1}


# What "ip link" takes for a word of its own, also when it is cut short. Only a
# device called like that is announced: else all runs would have other keys.
IP_WORDS = (
    "address",
    "allmulticast",
    "arp",
    "broadcast",
    "carrier",
    "dynamic",
    "group",
    "index",
    "link",
    "mtu",
    "multicast",
    "name",
    "netns",
    "numrxqueues",
    "numtxqueues",
    "promisc",
    "trailers",
    "txqueuelen",
    "type",
    "up",
    "down",
    "dev",
    "vf",
    "xdp",
    "alias",
    "addrgenmode",
    "master",
    "mode",
    "node",
    "operstate",
    "protodown",
)


def device(name, before):
    return f"{before} {name}" if any(word.startswith(name) for word in IP_WORDS) else name


@functools.cache
def profiles():
    """TCPs by name: tcp-profiles.yaml."""
    with open(os.path.join(HERE, "tcp-profiles.yaml"), encoding="utf-8") as f:
        return yaml.safe_load(f)


def option(key, value, is_time):
    """A key of the file as an option of abeload."""
    word = "--" + key.replace("_", "-")
    return word if value is True else f"{word} {show(seconds(value) if is_time else value)}"


# Interface indices of links whose packets are recorded begin here.
FIRST_INDEX = 1000


class Direction:
    """One direction of a link: the device of node `at` towards node `to`."""

    def __init__(self, at, to, spec, address, peer_address, mac):
        self.at, self.to, self.spec = at, to, spec
        self.address, self.peer_address, self.mac = address, peer_address, mac

    @property
    def name(self):
        return f"{self.at}>{self.to}"

    def qdiscs(self, mtu):
        """Lines that make the device behave as the link."""
        spec, add = self.spec, f"tc -n {self.at} qdisc add dev {self.to}"
        delay = show(seconds(spec.get("delay", 0)) * 1e3)
        rate = spec.get("rate")
        rate = show(quantity("rate", rate)) if rate is not None else None
        if not (seconds(spec.get("delay", 0)) or rate or "queue" in spec):
            return []
        if "queue" not in spec:
            words = f" delay {delay}ms" + (f" rate {rate}bit" if rate else "")
            return [f"{add} root handle 1: netem{words} limit {spec.get('limit', 100000)}"]
        lines, parent = [], "root"
        if seconds(spec.get("delay", 0)):
            lines.append(f"{add} {parent} handle 1: netem delay {delay}ms limit 100000")
            parent = "parent 1:1"
        if rate and spec.get("shaper") == "htb":
            lines += [
                f"{add} {parent} handle 2: htb default 1",
                f"tc -n {self.at} class add dev {self.to} parent 2: classid 2:1 htb rate {rate}bit burst 1 cburst 1",
            ]
            parent = "parent 2:1"
        elif rate:
            lines.append(
                f"{add} {parent} handle 2: tbf rate {rate}bit burst {mtu + 100} limit 100000000"
            )
            parent = "parent 2:1"
        lines.append(f"{add} {parent} handle 10: {spec['queue']}")
        if spec.get("filter"):
            lines.append(
                f"tc -n {self.at} filter add dev {self.to} parent 10: protocol ip {spec['filter']}"
            )
        change = f"tc -n {self.at} qdisc change dev {self.to} {parent} handle 10:"
        return lines + [f"{change} {spec}" for spec in self.spec.get("changes", [])]

    def ablossy(self, command):
        """ablossy on the device at the other end, which bears this one's node's name."""
        return f"ip netns exec {self.to} ablossy {command} {self.at}"


class World:
    """The world of one run. Complaints are raised with doc's file and line."""

    def __init__(self, doc, spec, flows, sample, duration, warmup, seed):
        self.doc, self.spec, self.sample = doc, spec, sample or {}
        self.mtu = int(spec.get("mtu", 1500))
        self.duration, self.warmup, self.seed = duration, warmup, seed
        self.nodes = []
        self.directions = []
        for n, link in enumerate(spec["links"], 1):
            self._link(n, link)
        self.routes = {node: self._routes(node) for node in self.nodes}
        self.tunnels = self._tunnels()
        self.profiles = {node: self._profile(node) for node in self.nodes}
        for node in spec.get("profiles", {}):
            if node not in self.nodes:
                raise doc.bad(
                    ("world", "profiles", node), f"no such node; there are {', '.join(self.nodes)}"
                )
        self.flows = self._flows(flows)
        self.sampled(), self.holed(), self.traced(), self.binned()  # complain of what they name

    def _link(self, n, link):
        if len(link["between"]) != 2 or link["between"][0] == link["between"][1]:
            raise self.doc.bad(("world", "links", n - 1, "between"), "want two nodes")
        a, b = link["between"]
        if any((d.at, d.to) == (a, b) for d in self.directions):
            raise self.doc.bad(
                ("world", "links", n - 1, "between"), f"{a} and {b} have a link already"
            )
        for node in (a, b):
            if node not in self.nodes:
                self.nodes.append(node)
        forth = {k: v for k, v in link.items() if k not in ("between", "back")}
        back = link.get("back", {k: v for k, v in forth.items() if k in ("rate", "delay")})
        here, there = f"10.0.{n}.1", f"10.0.{n}.2"
        self.directions += [
            Direction(a, b, forth, here, there, f"02:00:00:00:{n:02x}:01"),
            Direction(b, a, back, there, here, f"02:00:00:00:{n:02x}:02"),
        ]

    def path(self, start, end):
        """Nodes of the shortest way."""
        nodes = [start]
        while nodes[-1] != end:
            nodes.append(self.routes[nodes[-1]][end].to)
        return nodes

    def _tunnels(self):
        """Those that there are: kind and both ends."""
        result = []
        for i, tunnel in enumerate(self.spec.get("tunnels", [])):
            ends = tunnel["between"]
            if len(ends) != 2 or len({*ends} & {*self.nodes}) != 2:
                raise self.doc.bad(
                    ("world", "tunnels", i, "between"),
                    f"want two nodes of {', '.join(self.nodes)}",
                )
            if ends[1] not in self.routes[ends[0]]:
                raise self.doc.bad(
                    ("world", "tunnels", i, "between"), f"no way from {ends[0]} to {ends[1]}"
                )
            if tunnel["kind"] == "fou" and {e for kind, *both in result for e in both} & {*ends}:
                raise self.doc.bad(
                    ("world", "tunnels", i), "a gateway's tunnels in UDP would have the same port"
                )
            if tunnel["kind"] != "none":
                result.append((tunnel["kind"], *ends))
        return result

    def _profile(self, node):
        """What the node's TCP is, of tcp-profiles.yaml."""
        own = node in self.spec.get("profiles", {})
        name = self.spec["profiles"][node] if own else self.spec.get("profile")
        if name is not None and name not in profiles():
            path = ("world", "profiles", node) if own else ("world", "profile")
            raise self.doc.bad(path, f"no profile {name!r}; there are {', '.join(profiles())}")
        return profiles()[name] if name else {}

    def neighbours(self, node):
        return [d for d in self.directions if d.at == node]

    def _routes(self, start):
        """The first hop of the shortest way from start to each other node."""
        first, queue = {start: None}, [start]
        for node in queue:
            for d in self.neighbours(node):
                if d.to not in first:
                    first[d.to] = d if node == start else first[node]
                    queue.append(d.to)
        return first

    def address(self, node):
        """Of the node's first device: what flows to it are sent to."""
        return self.neighbours(node)[0].address

    def _flows(self, flows):
        """Those that there are, with ids in the file's order."""
        result, next_id = {}, 1
        for name, flow in (flows or {}).items():
            for end in ("from", "to"):
                if flow[end] not in self.nodes:
                    raise self.doc.bad(
                        ("flows", name, end),
                        f"no node {flow[end]!r}; there are {', '.join(self.nodes)}",
                    )
            if flow["to"] not in self.routes[flow["from"]] or flow["to"] == flow["from"]:
                raise self.doc.bad(("flows", name), f"no way from {flow['from']} to {flow['to']}")
            self._check_flow(name, flow)
            count = int(flow.get("count", 1))
            cc = self.profiles[flow["from"]].get("cc")
            if cc and "cc" in TAKES[flow["kind"]]:
                flow = {"cc": cc, **flow}
            if count:
                result[name] = {**flow, "count": count, "id": next_id}
            next_id += count
        return result

    def _check_flow(self, name, flow):
        own = set().union(*TAKES.values())
        for key in flow:
            if key in own and key not in TAKES[flow["kind"]]:
                raise self.doc.bad(("flows", name, key), f"not for kind {flow['kind']}")
        start, stop = (seconds(flow[key]) if key in flow else None for key in ("start", "stop"))
        if flow["kind"] in ("web", "call") and (start, stop) != (None, None):
            raise self.doc.bad(("flows", name), f"no start or stop for kind {flow['kind']}")
        if flow["kind"] == "dccp" and None not in (start, stop):
            raise self.doc.bad(("flows", name), "either start or stop, for kind dccp")
        if stop is not None and (start or 0) >= stop:
            raise self.doc.bad(("flows", name, "stop"), "not after its start")
        for key, at in (("start", start), ("stop", stop)):
            if at is not None and at > self.duration - DCCP_EARLY:
                raise self.doc.bad(("flows", name, key), f"less than {DCCP_EARLY} s before the end")
        for key in WANTS.get(flow["kind"], ()):
            if key not in flow:
                raise self.doc.bad(("flows", name), f"the key {key} is missing")

    # ---- lines

    def network(self):
        """Namespaces, links, addresses and routes."""
        lines = [f"ip netns add {node}" for node in self.nodes]
        for d, e in zip(self.directions[::2], self.directions[1::2], strict=True):
            mtu = int(d.spec.get("mtu", self.mtu))
            here, there = self.index(d), self.index(e)
            lines.append(
                f"ip -n {d.at} link add{here} {device(d.to, 'name')} address {d.mac} mtu {mtu} type veth "
                f"peer{there} name {e.to} address {e.mac} mtu {mtu} netns {e.at}"
            )
        for node in self.nodes:
            values = SYSCTLS | self.profiles[node].get("sysctl", {}) | self.spec.get("sysctl", {})
            sysctl = " ".join(f"{k}={shlex.quote(str(v))}" for k, v in values.items())
            forward = " net.ipv4.ip_forward=1" if len(self.neighbours(node)) > 1 else ""
            lines.append(f"ip netns exec {node} sysctl -qw {sysctl}{forward}")
        macs = {d.address: d.mac for d in self.directions}
        for d in self.directions:
            lines += [
                f"ip -n {d.at} addr add {d.address}/24 dev {d.to}",
                f"ip -n {d.at} link set {device(d.to, 'dev')} up",
                f"ip netns exec {d.at} ethtool -K {d.to} tso off gso off gro off",
                f"ip -n {d.at} neigh replace {d.peer_address} lladdr {macs[d.peer_address]} dev {d.to} nud permanent",
            ]
        for node in self.nodes:
            lines += self._route_lines(node)
        for n, (kind, a, b) in enumerate(self.tunnels, 1):
            lines += self._tunnel_lines(n, kind, a, b) + self._tunnel_lines(n, kind, b, a)
        return lines

    def _tunnel_lines(self, n, kind, a, b):
        """At a, for all that goes to nodes behind b. DSCP and ECN are copied out, ECN in again."""
        here, there = self.routes[a][b].address, self.routes[b][a].address
        nets = dict.fromkeys(
            self.address(node).rpartition(".")[0] + ".0/24"
            for node in self.routes[a]
            if node not in (a, b) and b in self.path(a, node)
        )
        lines = [
            f"ip -n {node} route replace {there}/32 via {self.routes[node][b].peer_address}"
            for node in self.path(a, b)[:-2]
        ]
        if kind == "esp":
            templ = f"tmpl src {here} dst {there} proto esp reqid {n} mode tunnel"
            for node, ways in ((a, ("out",)), (b, ("in", "fwd"))):
                lines.append(
                    f"ip -n {node} xfrm state add src {here} dst {there} proto esp spi {n} reqid {n} "
                    "mode tunnel enc 'ecb(cipher_null)' '' auth digest_null ''"
                )
                lines += [
                    f"ip -n {node} xfrm policy add dst {net} dir {way} {templ}"
                    for net in nets
                    for way in ways
                ]
            return lines
        words = (
            "" if kind == "ipip" else f" encap fou encap-sport {FOU_PORT} encap-dport {FOU_PORT}"
        )
        if kind == "fou":
            lines.append(f"ip -n {a} fou add port {FOU_PORT} ipproto 4")
        lines += [
            f"ip -n {a} link add tunnel{n} type ipip local {here} remote {there} ttl 64 tos inherit{words}",
            f"ip -n {a} link set tunnel{n} up",
        ]
        return lines + [f"ip -n {a} route replace {net} dev tunnel{n}" for net in nets]

    def index(self, d):
        """Words for an interface index that is nobody else's, also in another namespace: where packets are recorded."""
        traced = self.traced()
        return f" index {FIRST_INDEX + traced.index(d)}" if d in traced else ""

    def _route_lines(self, node):
        own = self.neighbours(node)
        words = "".join(
            f" {given['route']}" for given in (self.profiles[node], self.spec) if "route" in given
        )
        if len(own) == 1:
            return [f"ip -n {node} route add default via {own[0].peer_address}{words}"]
        lines = []
        for other, hop in self.routes[node].items():
            subnet = self.address(other).rpartition(".")[0] if hop else ""
            if hop and not any(d.address.startswith(subnet + ".") for d in own):
                lines.append(f"ip -n {node} route add {subnet}.0/24 via {hop.peer_address}{words}")
        return list(dict.fromkeys(lines))

    def queues(self):
        """What makes the links slow, late and lossy."""
        return [
            line for d in self.directions for line in d.qdiscs(int(d.spec.get("mtu", self.mtu)))
        ]

    def modules(self):
        """To load beforehand: what tc and sockets would load, at no defined time."""
        names = {"sch_netem", "sch_tbf"}
        names.update(
            "sch_" + d.spec["queue"].split()[0] for d in self.directions if "queue" in d.spec
        )
        if any(d.spec.get("shaper") == "htb" for d in self.directions):
            names.add("sch_htb")
        names.update("tcp_" + f["cc"] for f in self.flows.values() if f.get("cc", "reno") != "reno")
        names.update(
            "cls_" + d.spec["filter"].split()[0] for d in self.directions if d.spec.get("filter")
        )
        for kind, *_ in self.tunnels:
            names.update(*TUNNELS[kind])
        if self.speaks_dccp():
            names.update(("dccp_ipv4", "dccp_tfrc"))
        if self.lossy() or self.holed() or self.binned():
            names.update(("sch_ingress", "cls_bpf"))
        # bfifo and pfifo are built in, cubic too
        return "modprobe -a " + " ".join(sorted(names - {"sch_pfifo", "sch_bfifo", "tcp_cubic"}))

    def dccp(self):
        """By flow: dccpload's words for both ends of its connections."""
        result = {}
        for name, f in self.flows.items():
            if f["kind"] != "dccp":
                continue
            words = [
                f"-n {f['from']},{f['to']},{self.address(f['to'])} -P {DCCP_PORT + f['id']}",
                f"-s {show(f['size'])} -r {show(f['pps'])}",
                f"-d {int(f.get('dscp', DSCP[f.get('colour', 'blue')]))}",
                f"-t {show(self.duration - DCCP_EARLY)} -w {show(self.warmup)} -j /out/dccp.{name}",
            ]
            words += ["-V"] if f.get("vary") else []
            words += ["-i"] if f.get("intervals") else []
            words += [f"-o {word}" for word in f.get("options", "").split()]
            if "start" in f:
                words.append(f"-p 0,{show(seconds(f['start']))}")
            if "stop" in f:
                words.append(
                    f"-p {show(seconds(f['stop']))},{show(self.duration - seconds(f['stop']))}"
                )
            result[name] = " ".join([*words, show(f["ccid"]), str(f["count"])])
        return result

    def calls(self):
        """By flow: the commands of its calls, which begin after the warm-up."""
        result = {}
        for name, f in self.flows.items():
            if f["kind"] != "call":
                continue
            transport = "dccp" if "ccid" in f else "udp"
            words = [
                f"ip netns exec {f['from']} voipcall call {self.address(f['to'])} --port {CALL_PORT[transport]}",
                f"--ccid {show(f['ccid'])}" if "ccid" in f else "--udp",
                *(option(k, f[k], False) for k in ("codec", "ptime", "playout") if k in f),
                f"--dscp {int(f.get('dscp', DSCP[f.get('colour', 'blue')]))} --one-way --timeout 60 --json",
            ]
            spread = random.Random(f"{self.seed} {name}")
            result[name] = []
            for i in range(f["count"]):
                start = round(self.warmup + spread.uniform(0, seconds(f.get("jitter", 0.02))), 6)
                result[name].append(
                    f"(sleep {show(start)}; {' '.join(words)} --time {show(round(self.duration - CALL_END - start, 3))} "
                    f">/out/call.{name}.{i} || :)"
                )
        return result

    def _transports(self):
        """Where calls end, and over what."""
        return dict.fromkeys(
            (f["to"], "dccp" if "ccid" in f else "udp")
            for f in self.flows.values()
            if f["kind"] == "call"
        )

    def speaks_dccp(self):
        return self.dccp() or any(transport == "dccp" for _, transport in self._transports())

    def listeners(self):
        """Commands of those who take the calls, by a name."""
        calls = [f for f in self.flows.values() if f["kind"] == "call" and "ccid" in f]
        lists = {}
        for node, transport in self._transports():
            ccids = sorted({f["ccid"] for f in calls if f["to"] == node}, reverse=True)
            # experimental ones have to be asked for
            asked = transport == "dccp" and max(ccids) >= 248
            lists[node, transport] = f" --ccid {','.join(map(show, ccids))}" if asked else ""
        return {
            f"{node}.{transport}": f"ip netns exec {node} voipcall listen --port {CALL_PORT[transport]} --json"
            + " --udp" * (transport == "udp")
            + ccids
            for (node, transport), ccids in lists.items()
        }

    def lossy(self):
        """Directions of links that lose packets."""
        return [d for d in self.directions if "loss" in d.spec]

    def losses(self):
        """What makes the links lose packets, and counts what comes to them."""
        bins = f" --bins {show(seconds(self.sample.get('every_bin', BIN)))}"
        return [
            f"{d.ablossy('add')} {d.spec.get('loss', 'none')}{bins * (d in self.binned())}"
            for d in self.directions
            if d in self.lossy() or d in self.binned()
        ]

    def sinks(self):
        """By node: the command of its sink."""
        result = {}
        extra = "".join(f" {option(k, self.sample[k], True)}" for k in SINK if k in self.sample)
        for node in self.nodes:
            ports = sorted(
                {
                    "{} {}".format(*PORTS[f["kind"]])
                    for f in self.flows.values()
                    if f["to"] == node and f["kind"] in PORTS
                }
            )
            if ports:
                result[node] = (
                    f"ip netns exec {node} abeload recv {' '.join(ports)} --raw{extra} "
                    f"--duration {show(self.duration)} --warmup {show(self.warmup)} --json /out/recv.{node}"
                )
        return result

    def sources(self):
        """By flow: the command of its source."""
        result = {}
        for name, f in self.flows.items():
            if f["kind"] not in PORTS:
                continue
            words = [
                "ip netns exec",
                f["from"],
                "abeload send",
                f["kind"],
                f"--to {self.address(f['to'])}:{PORTS[f['kind']][1]}",
                f"--flows {f['count']} --id {f['id']}",
            ]
            words += [
                option(k, f[k], k in TIMES)
                for k in (*TAKES[f["kind"]], "jitter")
                if k in f and f[k] is not False
            ]
            words.append(f"--dscp {int(f.get('dscp', DSCP[f.get('colour', 'blue')]))}")
            start = seconds(f.get("start", 0))
            last = seconds(f["stop"]) if "stop" in f else self.duration + TAIL
            words.append(
                f"--duration {show(last - start)} --seed {self.seed} --json /out/sent.{name}"
            )
            result[name] = " ".join(words)
            if start:
                result[name] = f"(sleep {show(start)}; exec {result[name]})"
        return result

    def sampled(self):
        """Directions whose queues are sampled: those named, else all with a queue."""
        named = self._named("links")
        return named or [d for d in self.directions if "queue" in d.spec]

    def _named(self, key):
        """The directions that a list of `sample` names."""
        known = {d.name: d for d in self.directions}
        for i, name in enumerate(self.sample.get(key, [])):
            if name not in known:
                raise self.doc.bad(
                    ("sample", key, i), f"no link {name!r}; there are {', '.join(known)}"
                )
        return [known[name] for name in self.sample.get(key, [])]

    def holed(self):
        """Directions at whose end the losses of each flow are noted."""
        return self._named("holes")

    def binned(self):
        """Directions at whose end all that comes is counted by flow and time, before losses."""
        found = self._named("bins")
        sides = [
            (PORTS[f["kind"]][1], f["from"], f["to"])
            for f in self.flows.values()
            if f["kind"] in PORTS
        ]
        if found and len({*sides}) < len(sides):
            raise self.doc.bad(
                ("sample", "bins"),
                "flows to one port from one node to another cannot be told apart",
            )
        return found

    def flow_of(self, proto, source, target):
        """The name of the flow that has such ends, of those that bins tell apart; None if it has none."""
        (address, port), kinds = target.rsplit(":", 1), {"tcp": ("tcp", "web"), "dccp": ("dccp",)}
        for name, f in self.flows.items():
            own = DCCP_PORT + f["id"] if f["kind"] == "dccp" else PORTS.get(f["kind"], (0, 0))[1]
            if (
                f["kind"] in kinds.get(proto, ("udp", "pareto", "aimd"))
                and int(port) == own
                and address in [d.address for d in self.neighbours(f["to"])]
                and source.rsplit(":", 1)[0] in [d.address for d in self.neighbours(f["from"])]
            ):
                return name
        return None

    def traced(self):
        """Directions of whose queues, sch_abe's, each packet is recorded."""
        found = self._named("packets")
        for i, d in enumerate(found):
            if not str(d.spec.get("queue", "")).startswith("abe"):
                raise self.doc.bad(
                    ("sample", "packets", i), f"{d.name!r}: want a link with a queue of abe"
                )
        return found

    def needs(self):
        """Files of ours beyond what each guest has."""
        return (
            (("build/guest/bin/abesample",) if self.abesample or self.traced() else ())
            + (("build/guest/bin/dccpload",) if self.dccp() else ())
            + (("build/guest/bin/voipcall",) if self.calls() else ())
            + (DCCP_NEEDS if self.speaks_dccp() else ())
            + (
                ("build/guest/bin/ablossy",)
                if self.lossy() or self.holed() or self.binned()
                else ()
            )
            + ((f"{MODULES}/tcp_gaimd.ko",) if self._ccs() & {"gaimd"} else ())
            + tuple(f"{MODULES}/{name}.ko" for name in sorted(self._modules_added()))
        )

    def _ccs(self):
        return {f["cc"] for f in self.flows.values() if "cc" in f}

    def _modules_added(self):
        """Modules that no guest has but those that ask for them."""
        names = {name for kind, *_ in self.tunnels for name in TUNNELS[kind][1]}
        if any(d.spec.get("queue", "").split()[:1] == ["dualpi2"] for d in self.directions):
            names.add("sch_dualpi2")
        return names

    @property
    def abesample(self):
        return self.sample.get("with") == "abesample"

    def sampler(self, d):
        """What samples the queue of a direction, in the background."""
        name, every = f"{d.at}.{d.to}", show(seconds(self.sample.get("every", 1)))
        if self.abesample:
            return (
                f"ip netns exec {d.at} abesample --dev {d.to} --handle 10: --interval {every} "
                f"--duration {show(self.duration)} --out /out/series.{name} >/dev/null &"
            )
        return SAMPLER.format(at=d.at, to=d.to, name=name, every=every)

    @staticmethod
    def loss_counts(d, when):
        """What ablossy has counted by now."""
        return f"(echo $EPOCHREALTIME; {d.ablossy('show')}) >/out/loss.{d.at}.{d.to}.{when}"

    @staticmethod
    def started(commands):
        """Lines that start sinks in the background and wait until they are ready."""
        return [
            *(
                f'{command} >/run/ready.{name} & sinks="$sinks $!"'
                for name, command in commands.items()
            ),
            *(f"until [ -s /run/ready.{name} ]; do sleep 0.02; done" for name in commands),
        ]

    def script(self):
        """All that the guest does, for bash."""
        lines = [
            "set -e",
            "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR",
            self.modules(),
            "sysctl -qw net.ipv4.tcp_mem='1000000 1000000 1000000'",
            "",
            "# the network",
            *self.network(),
            "",
            "# a new link is not up at once",
            "sleep 2",
        ]
        for pair in dict.fromkeys((f["from"], self.address(f["to"])) for f in self.flows.values()):
            lines.append(f"ip netns exec {pair[0]} ping -q -c 1 -W 5 {pair[1]} >/dev/null")
        lines += ["", "# rates, delays and queues", *self.queues(), "", "# sinks, sources, samples"]
        sinks, sources, dccp = self.sinks(), self.sources(), self.dccp()
        # connections take their time, and the sinks' runs once they are ready
        if dccp:
            lines.append("mkfifo /run/go; exec 7<>/run/go")
            lines += self.started({"dccp": f"dccpload -g {' + '.join(dccp.values())} <&7"})
        lines += self.losses() + self.started(sinks)
        for name, command in self.listeners().items():
            lines += [
                f'{command} >/dev/null 2>/run/ready.call.{name} & listeners="$listeners $!"',
                f"until [ -s /run/ready.call.{name} ]; do sleep 0.02; done",
            ]
        if self.traced():
            lines += [
                f"abesample --trace --handle 10: --duration {show(self.duration)} --out /out/packets >/run/ready.packets &",
                "until [ -s /run/ready.packets ]; do sleep 0.02; done",
            ]
        lines.append("echo $EPOCHREALTIME >/out/start; cat /proc/uptime >/out/uptime")
        lines += [self.sampler(d) for d in self.sampled()]
        lines += [
            f"(sleep {show(self.warmup)}; {self.loss_counts(d, 'warm')}) &" for d in self.lossy()
        ]
        # counting from the warm-up on
        lines += [
            f"(sleep {show(self.warmup)}; {d.ablossy('add')} none --holes) &" for d in self.holed()
        ]
        if dccp:
            lines.append("echo >&7")
        for name, command in sources.items():
            # who ends by itself cannot be killed
            ended = "stopped" if "stop" in self.flows[name] else "sources"
            lines.append(f'{command} & {ended}="${ended} $!"')
        lines += [
            f'{call} & calls="$calls $!"' for calls in self.calls().values() for call in calls
        ]
        lines.append(
            "for p in $sinks; do wait $p; done" if sinks or dccp else f"sleep {show(self.duration)}"
        )
        for d in self.sampled():
            lines.append(f"tc -n {d.at} -s -j qdisc show dev {d.to} >/out/final.{d.at}.{d.to}")
        lines += ["cat /proc/uptime >>/out/uptime", "rm -f /run/sampling"]
        if any("stop" not in self.flows[name] for name in sources):
            lines += ["kill $sources", "for p in $sources; do wait $p; done"]
        if any("stop" in self.flows[name] for name in sources):
            lines += ["for p in $stopped; do wait $p; done"]
        if self.listeners():  # a good-bye may take its time
            lines += ["for p in $calls; do wait $p; done", "kill $listeners"]
        lines += [self.loss_counts(d, "end") for d in self.lossy()]
        lines += ["wait", *(f"{d.ablossy('show')} >/out/holes.{d.at}.{d.to}" for d in self.holed())]
        lines += [f"{d.ablossy('show')} >/out/bins.{d.at}.{d.to}" for d in self.binned()]
        return "\n".join(lines) + "\n"


# One tc process all along, fed by a shell that sleeps on a FIFO of its own:
# no process is started while the traffic runs.
SAMPLER = """\
touch /run/sampling; mkfifo /run/never.{name}
(exec 9<>/run/never.{name}
while [ -e /run/sampling ]; do
	echo $EPOCHREALTIME >&8; echo "qdisc show dev {to}"
	read -r -t {every} -u 9 || :
done) 8>/out/when.{name} | tc -n {at} -s -j -batch - >/out/samples.{name} &"""
