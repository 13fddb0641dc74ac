# SPDX-License-Identifier: GPL-2.0
"""Figures of one run, from its raw data only.

METRICS has every built-in metric: a function of the run's data and of the
arguments in the file. Its docstring is its documentation. A metric that
cannot be had (no packet came through, say) is None.
"""

import inspect
import itertools
import math

from experiment import calculate, seconds

STREAMS = ("tcp", "web")         # kinds without packets of their own


class RunData:
    """Raw data of one run, by what they are."""

    def __init__(self, records):
        (self.run,) = [r for r in records if r["record"] == "run"]
        self.sinks = dict(self._flows(records, "sink"))
        self.window = next(r["window"] for r in records if r["record"] == "sink")
        self.sources = dict(self._flows(records, "source"))
        self.samples = {}
        for r in records:
            if r["record"] in ("sample", "final"):
                r.setdefault("time", self.run["duration"])
                self.samples.setdefault(r["link"], []).append(r)

    @staticmethod
    def _flows(records, kind):
        """(id, report) of each flow in the reports of sinks or sources."""
        for record in (r for r in records if r["record"] == kind):
            for reports in record.values():
                if isinstance(reports, list):
                    yield from ((f["flow"], f) for f in reports if isinstance(f, dict) and "flow" in f)

    def members(self, names):
        """(kind, id) of each flow under these names of the file."""
        for name in [names] if isinstance(names, str) else names:
            flow = self.run["flows"].get(name)
            if flow:
                yield from ((flow["kind"], flow["id"] + i) for i in range(flow["count"]))

    def link(self, name=None):
        """Samples of that link's queue, or of the only one."""
        if name is None:
            if len(self.samples) != 1:
                raise ValueError(f"which link? There are {', '.join(self.samples)}")
            (name,) = self.samples
        return self.samples[name]


def pick(qdisc, path):
    """A value of tc's JSON: green.late_drops."""
    for key in path.split("."):
        qdisc = qdisc.get(key) if isinstance(qdisc, dict) else None
    return qdisc


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def goodput(data, flows, total=False):
    """Mb/s that the sink got after the warm-up: a flow's mean, or of all together."""
    rates = [data.sinks[i]["goodput"] / 1e6 if i in data.sinks else 0.0 for _, i in data.members(flows)]
    return (sum(rates) if total else mean(rates)) if rates else None


def loss(data, flows):
    """Percent of the UDP and AIMD packets that did not arrive, by the sink's gaps in the numbers.

    Of TCP, percent of the segments that were sent again."""
    lost = total = 0
    for kind, i in data.members(flows):
        if kind in STREAMS:
            source = data.sources.get(i, {})        # web's reports do not tell
            lost, total = lost + source.get("retransmitted", 0), total + source.get("segments", 0)
        elif i in data.sinks:
            sink = data.sinks[i]
            lost, total = lost + sink["lost"], total + sink["lost"] + sink["packets"]
        else:
            sent = data.sources[i]["counted"]
            lost, total = lost + sent, total + sent
    return 100 * lost / total if total else None


def marked(data, flows):
    """Percent of the arrived UDP and AIMD packets with Congestion Experienced."""
    sinks = [data.sinks[i] for _, i in data.members(flows) if i in data.sinks]
    packets = sum(s["packets"] for s in sinks)
    return 100 * sum(s["ce"] for s in sinks) / packets if packets else None


def delay(data, flows, stat="median"):
    """ms, one way, of UDP and AIMD packets: min, median, mean, p99, p999 or max; a flow's mean (max: of all)."""
    values = [data.sinks[i]["delay_us"][stat] / 1e3 for kind, i in data.members(flows)
              if kind not in STREAMS and i in data.sinks]
    return (max(values) if stat == "max" else mean(values)) if values else None


def useful(data, flows, within):
    """UDP and AIMD packets a second and flow that arrive within so many seconds of being sent, to 2 % of that."""
    counts = [sum(n for edge, n in data.sinks.get(i, {}).get("delay_histogram", []) if edge <= seconds(within) * 1e6)
              for kind, i in data.members(flows) if kind not in STREAMS]
    return mean([n / data.window for n in counts])


def jitter(data, flows):
    """ms, of RFC 3550, at the end of the run; a flow's mean."""
    return mean([data.sinks[i]["jitter_us"] / 1e3 for kind, i in data.members(flows)
                 if kind not in STREAMS and i in data.sinks])


def mos(data, flows, ie=0, bpl=25.1, packet=20):
    """Quality by the E-model (a model; nobody has listened): playout at the 99 % delay, so that 1 % comes late.

    packet: ms of speech in one; ie, bpl: of the codec (G.711 with concealment)."""
    late, lost = delay(data, flows, "p99"), loss(data, flows)
    if lost is None:
        return None
    if late is None or lost >= 100:
        return 1.0
    d, ppl = late + packet, lost + (100 - lost) / 100
    r = 93.2 - 0.024 * d - (0.11 * (d - 177.3) if d > 177.3 else 0) - (ie + (95 - ie) * ppl / (ppl + bpl))
    r = min(max(r, 0), 100)
    return 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r)


def timeouts(data, flows):
    """Retransmitted segments a flow."""
    return mean([data.sources[i]["retransmitted"] for kind, i in data.members(flows) if kind in STREAMS])


def counter(data, path, over=None, link=None):
    """How far a counter of tc's JSON rose from the warm-up to the end; percent of that of `over`."""
    samples = data.link(link)

    def rise(name):
        # the last one is always tc's, with other names than abesample's
        values = [(s["time"], pick(s["qdisc"], name)) for s in samples]
        values = [v for v in values if v[1] is not None]
        first = next((v for t, v in values if t >= data.run["warmup"]), None)
        return None if first is None else values[-1][1] - first

    value = sum_paths(rise, path)
    if over is None or value is None:
        return value
    base = sum_paths(rise, over)
    return 100 * value / base if base else None


def sum_paths(function, paths):
    """Of one path, or of several added up."""
    values = [function(p) for p in ([paths] if isinstance(paths, str) else paths)]
    return None if None in values else sum(values)


def last(data, path, link=None):
    """A value of tc's JSON at the end of the run."""
    return pick(data.link(link)[-1]["qdisc"], path)


def sampled(data, path, stat="mean", start=None, link=None):
    """mean, std, var, min, max or logmean (exp of the mean logarithm) of a value of tc's JSON over the samples.

    From `start` (default: the warm-up) on."""
    start = data.run["warmup"] if start is None else seconds(start)
    values = [pick(s["qdisc"], path) for s in data.link(link)[:-1] if s["time"] >= start]
    values = [v for v in values if v is not None]
    if not values:
        return None
    m = sum(values) / len(values)
    var = sum((v - m) ** 2 for v in values) / max(len(values) - 1, 1)
    if stat == "logmean":
        return math.exp(sum(math.log(v) for v in values) / len(values)) if min(values) > 0 else None
    return {"mean": m, "var": var, "std": math.sqrt(var), "min": min(values), "max": max(values)}[stat]


def bias(data, link=None):
    """Green first-stage losses over those that abe's required bias asked for, from sample to sample after the warm-up.

    It asks for the share of blue that is lost times alpha_target, of the green arrivals."""
    samples = [s["qdisc"] for s in data.link(link) if s["time"] >= data.run["warmup"]]
    got = want = 0
    for before, now in itertools.pairwise(samples):
        rise = {path: pick(now, path) - pick(before, path) for path in (
            "green.arrived", "green.early_drops", "blue.arrived", "blue.early_drops", "blue.limit_drops")}
        got += rise["green.early_drops"]
        if rise["blue.arrived"]:
            lost = (rise["blue.early_drops"] + rise["blue.limit_drops"]) / rise["blue.arrived"]
            want += lost * pick(now, "alpha_target") * rise["green.arrived"]
    return got / want if want else None


METRICS = {f.__name__: f for f in (goodput, loss, marked, delay, useful, jitter, mos, timeouts, counter, last, sampled, bias)}


def check_spec(doc, path, spec, flows):
    """Complain about a metric that the file asks for wrongly; returns name and arguments."""
    if len(spec) != 1:
        raise doc.bad(path, f"want one of {', '.join(METRICS)}, expr")
    (kind, args), = spec.items()
    if kind == "expr":
        if not isinstance(args, (str, int, float)):
            raise doc.bad((*path, kind), "want an expression of other metrics and variables")
        return kind, args
    if kind not in METRICS:
        raise doc.bad((*path, kind), f"no such metric; there are {', '.join(METRICS)}, expr")
    known = inspect.signature(METRICS[kind]).parameters
    args = args if isinstance(args, dict) else {list(known)[1]: args}
    for key in args:
        if key not in known or key == "data":
            raise doc.bad((*path, kind, key), f"unknown; {kind} takes {', '.join(list(known)[1:])}")
    for key, p in list(known.items())[1:]:
        if p.default is p.empty and key not in args:
            raise doc.bad((*path, kind), f"{key} is missing")
    names = args.get("flows", [])
    for name in [names] if isinstance(names, str) else names:
        if name not in flows:
            raise doc.bad((*path, kind), f"no flows {name!r}; there are {', '.join(flows)}")
    return kind, args


def check_metrics(experiment):
    for name, spec in experiment.data["metrics"].items():
        check_spec(experiment.doc, ("metrics", name), spec, experiment.data.get("flows", {}))


def evaluate(experiment, run, records):
    """All metrics of a run by name."""
    data, result = RunData(records), {}
    names = experiment.vars(run)
    for name, spec in experiment.resolved("metrics", run).items():
        path = ("metrics", name)
        kind, args = check_spec(experiment.doc, path, spec, experiment.data["flows"])
        try:
            if kind == "expr":
                try:
                    result[name] = calculate(str(args), {**{k: names[k] for k in names}, **result})
                except (TypeError, ZeroDivisionError):      # of what cannot be had
                    result[name] = None
            else:
                result[name] = METRICS[kind](data, **args)
        except KeyError as e:
            raise experiment.doc.bad(path, f"no {e.args[0]!r} in variables, metrics before it, or raw data") from None
        except ValueError as e:
            raise experiment.doc.bad(path, str(e)) from None
    return result
