# SPDX-License-Identifier: GPL-2.0
"""Figures of one run, from its raw data only.

METRICS has every built-in metric: a function of the run's data and of the
arguments in the file. Its docstring is its documentation. A metric that
cannot be had (no packet came through, say) is None.
"""

import inspect
import itertools
import math

import numpy as np
from common import emodel_mos
from experiment import calculate, seconds

STREAMS = ("tcp", "web")  # kinds without packets of their own


class RunData:
    """Raw data of one run, by what they are."""

    def __init__(self, records):
        (self.run,) = [r for r in records if r["record"] == "run"]
        self.sinks = dict(self._flows(records, "sink"))
        self.window = next(r["window"] for r in records if r["record"] == "sink")
        self.sources = dict(self._flows(records, "source"))
        self.windows = {}  # by flow: when its sampling began, how often it was, windows
        for r in records:
            if "cwnd" in r:
                for flow, values in zip(r["tcp"], r["cwnd"]["flows"], strict=True):
                    self.windows[flow["flow"]] = r["cwnd"]["start"], r["cwnd"]["interval"], values
        self.holes = {r["link"]: r["flows"] for r in records if r["record"] == "holes"}
        self.bins = {r["link"]: r for r in records if r["record"] == "bins"}
        self.samples = {}
        for r in records:
            if r["record"] in ("sample", "final"):
                r.setdefault("time", self.run["duration"])
                self.samples.setdefault(r["link"], []).append(r)
        self.packets = {r["link"]: r for r in records if r["record"] == "packets"}
        self.losses = {(r["link"], r["when"]): r for r in records if r["record"] == "loss"}

    @staticmethod
    def _flows(records, kind):
        """(id, report) of each flow in the reports of sinks or sources."""
        for record in (r for r in records if r["record"] == kind):
            for reports in record.values():
                if isinstance(reports, list):
                    yield from (
                        (f["flow"], f) for f in reports if isinstance(f, dict) and "flow" in f
                    )

    def members(self, names):
        """(kind, id) of each flow under these names of the file."""
        for name in [names] if isinstance(names, str) else names:
            for key, flow in self.run["flows"].items():
                if name in (key, flow.get("of")):
                    yield from ((flow["kind"], flow["id"] + i) for i in range(flow["count"]))

    def link(self, name=None):
        """Samples of that link's queue, or of the only one."""
        return self._only(self.samples, name)

    def recorded(self, colour, name=None):
        """(what became of it, ns in the queue) of each of this colour's packets (None: of both) from the warm-up on."""
        r = self._only(self.packets, name)
        return [
            (what, wait)
            for time, what, c, wait in zip(
                r["time"], r["what"], r["colour"], r["wait_ns"], strict=True
            )
            if time >= self.run["warmup"] and colour in (None, c)
        ]

    def lost(self, name=None):
        """By flow with losses noted at the end of that link, or of the only one: how many packets, runs of losses."""
        return [(f["packets"] + f["missing"], f["holes"]) for f in self._only(self.holes, name)]

    def binned(self, flows, what, start=None, until=None, link=None):
        """Bytes or packets of each of these flows in the `bins` between two times (the warm-up and the end); their length, s."""
        r = self._only(self.bins, link)
        names = [flows] if isinstance(flows, str) else flows
        begin = self.run["warmup"] if start is None else seconds(start)
        end = self.run["duration"] if until is None else seconds(until)
        # by nanoseconds, for 0.3 is not 3 times 0.1
        first = math.ceil(round((begin - r["start"]) / r["bin"], 6))
        last = math.floor(round((end - r["start"]) / r["bin"], 6))
        if first < 0 or last - first < 1:
            raise ValueError(f"no bins between {begin:g} and {end:g} s")
        rows = [
            (list(f[what]) + [0] * last)[first:last]
            for f in r["flows"]
            for flow in [self.run["flows"][f["of"]]]
            if {f["of"], flow.get("of")} & {*names}
        ]
        # who has sent nothing is not in the record
        rows += [[0] * (last - first)] * (len(list(self.members(names))) - len(rows))
        return np.array(rows, float).reshape(-1, last - first), r["bin"]

    @staticmethod
    def _only(links, name):
        if name is None:
            if len(links) != 1:
                raise ValueError(f"which link? There are {', '.join(links) or 'none'}")
            (name,) = links
        return links[name]

    def lossy(self, name=None):
        """What went into a link with losses, and what was lost, from the warm-up to the end; and for how long."""
        if name is None:
            if len(self.losses) != 2:
                raise ValueError(
                    f"which link? There are {', '.join(dict.fromkeys(link for link, _ in self.losses))}"
                )
            ((name, _), _) = self.losses
        warm, end = self.losses[name, "warm"], self.losses[name, "end"]
        counts = {
            k: end["counts"][k] - warm["counts"][k] for k in ("packets", "bytes", "lost", "marked")
        }
        counts["flows"] = len(end["counts"].get("flows", [])) or 1
        return counts, end["time"] - warm["time"]


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
    rates = [
        data.sinks[i]["goodput"] / 1e6 if i in data.sinks else 0.0 for _, i in data.members(flows)
    ]
    return (sum(rates) if total else mean(rates)) if rates else None


def loss(data, flows):
    """Percent of the UDP and AIMD packets that did not arrive, by the sink's gaps in the numbers.

    Of TCP, percent of the segments that were sent again."""
    lost = total = 0
    for kind, i in data.members(flows):
        if kind in STREAMS:
            source = data.sources.get(i, {})  # web's reports do not tell
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
    values = [
        data.sinks[i]["delay_us"][stat] / 1e3
        for kind, i in data.members(flows)
        if kind not in STREAMS and i in data.sinks and stat in data.sinks[i]["delay_us"]
    ]
    return (max(values) if stat == "max" else mean(values)) if values else None


def dccp(data, flows):
    """Reports of these DCCP flows."""
    return [data.sinks[i] for kind, i in data.members(flows) if kind == "dccp"]


def rate(data, flows, header=32):
    """kb/s that a DCCP flow sends after the warm-up, with so many bytes of headers a packet."""
    return mean(
        [(f["out_bytes"] + header * f["out"]) * 8 / 1e3 / f["seconds"] for f in dccp(data, flows)]
    )


def event_rate(data, flows):
    """Loss event rate p of DCCP flows, of the loss intervals that the receivers have in the end; a flow's mean."""
    return mean([1 / f["mean_interval"] if f["mean_interval"] else 0.0 for f in dccp(data, flows)])


def rate_cov(data, flows):
    """Standard deviation over mean of what a DCCP flow sends in a second, after the warm-up; a flow's mean."""
    return mean([f["rate_cov"] for f in dccp(data, flows)])


def interval(data, flows, stat="mean"):
    """Mean, or standard deviation over mean, of the loss intervals that a receiver closes after the warm-up, of flows with
    intervals: true; a flow's mean."""
    return mean([f[f"interval_{stat}"] for f in dccp(data, flows)])


def link_rate(data, link=None):
    """kb/s that a flow sends into a link with losses --per-flow after the warm-up, with IP headers."""
    counts, window = data.lossy(link)
    return counts["bytes"] * 8 / 1e3 / window / counts["flows"]


def dropped(data, link=None):
    """Percent of the packets that a link's loss model drops after the warm-up."""
    counts, _ = data.lossy(link)
    return 100 * counts["lost"] / counts["packets"] if counts["packets"] else None


def packet_size(data, link=None):
    """Mean bytes of the packets that come to a link with losses, with IP headers."""
    counts, _ = data.lossy(link)
    return counts["bytes"] / counts["packets"] if counts["packets"] else None


def useful(data, flows, within):
    """UDP and AIMD packets a second and flow that arrive within so many seconds of being sent, to 2 % of that."""
    counts = [
        sum(
            n
            for edge, n in data.sinks.get(i, {}).get("delay_histogram", [])
            if edge <= seconds(within) * 1e6
        )
        for kind, i in data.members(flows)
        if kind not in STREAMS
    ]
    return mean([n / data.window for n in counts])


def jitter(data, flows):
    """ms, of RFC 3550, at the end of the run; a flow's mean."""
    return mean(
        [
            data.sinks[i]["jitter_us"] / 1e3
            for kind, i in data.members(flows)
            if kind not in STREAMS and i in data.sinks
        ]
    )


def mos(data, flows, ie=0, bpl=25.1, packet=20):
    """Quality by the E-model (a model; nobody has listened): playout at the 99 % delay, so that 1 % comes late.

    Of calls it is voipcall's own. packet: ms of speech in one; ie, bpl: of the codec (G.711 with concealment)."""
    if all(kind == "call" for kind, _ in data.members(flows)):
        return mean([data.sinks[i].get("mos", 1.0) for _, i in data.members(flows)])
    late, lost = delay(data, flows, "p99"), loss(data, flows)
    if lost is None:
        return None
    if late is None or lost >= 100:
        return 1.0
    return emodel_mos(late + packet, lost + (100 - lost) / 100, ie, bpl)


def timeouts(data, flows):
    """Retransmitted segments a flow."""
    return mean(
        [data.sources[i]["retransmitted"] for kind, i in data.members(flows) if kind in STREAMS]
    )


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


def sampled(data, path, stat="mean", start=None, until=None, link=None):
    """mean, std, var, min, max or logmean (exp of the mean logarithm) of a value of tc's JSON over the samples.

    From `start` (default: the warm-up) until `until` (the end)."""
    start = data.run["warmup"] if start is None else seconds(start)
    until = math.inf if until is None else seconds(until)
    values = [pick(s["qdisc"], path) for s in data.link(link)[:-1] if start <= s["time"] < until]
    values = [v for v in values if v is not None]
    if not values:
        return None
    m = sum(values) / len(values)
    var = sum((v - m) ** 2 for v in values) / max(len(values) - 1, 1)
    if stat == "logmean":
        return math.exp(sum(math.log(v) for v in values) / len(values)) if min(values) > 0 else None
    return {"mean": m, "var": var, "std": math.sqrt(var), "min": min(values), "max": max(values)}[
        stat
    ]


def bias(data, link=None):
    """Green first-stage losses over those that abe's required bias asked for, from sample to sample after the warm-up.

    It asks for the share of blue that is lost times alpha_target, of the green arrivals."""
    samples = [s["qdisc"] for s in data.link(link) if s["time"] >= data.run["warmup"]]
    got = want = 0
    for before, now in itertools.pairwise(samples):
        rise = {
            path: pick(now, path) - pick(before, path)
            for path in (
                "green.arrived",
                "green.early_drops",
                "blue.arrived",
                "blue.early_drops",
                "blue.limit_drops",
            )
        }
        got += rise["green.early_drops"]
        if rise["blue.arrived"]:
            lost = (rise["blue.early_drops"] + rise["blue.limit_drops"]) / rise["blue.arrived"]
            want += lost * pick(now, "alpha_target") * rise["green.arrived"]
    return got / want if want else None


def cwnd(data, flows, stat="sum_var"):
    """Of the sampled congestion windows of TCP flows, in packets, after the warm-up.

    mean: a flow's; sum_var: the flows' variances added up; var_sum: the variance of the sum of the windows."""
    rows = []
    for _, i in data.members(flows):
        start, interval, values = data.windows[i]
        rows.append(values[max(0, math.ceil((data.run["warmup"] - start) / interval)) :])
    if not rows or not all(rows):
        return None
    # their clocks are less than an interval apart
    windows = np.array([row[: min(map(len, rows))] for row in rows], float)
    return float(
        {
            "mean": np.mean,
            "sum_var": lambda w: w.var(axis=1).sum(),
            "var_sum": lambda w: w.sum(axis=0).var(),
        }[stat](windows)
    )


def rtp_jitter(data, flows):
    """ms: the mean over windows (`rtp_window`) of the largest RTP jitter in each, a flow's mean."""
    return windows_mean(data, flows, "rtp_jitter_us")


def spread(data, flows):
    """ms: the mean over windows (`spread_window`) of the 95th less the 5th percentile of delay, a flow's mean."""
    return windows_mean(data, flows, "spread_us")


def windows_mean(data, flows, key):
    values = [
        mean(data.sinks[i][key]) for _, i in data.members(flows) if key in data.sinks.get(i, {})
    ]
    return mean([None if v is None else v / 1e3 for v in values])


def sojourn(data, colour=None, stat="median", link=None):
    """ms in the queue, of the packets sent (`packets`)."""
    waits = [wait / 1e6 for what, wait in data.recorded(colour, link) if what == "sent"]
    if not waits:
        return None
    return float(
        {
            "min": np.min,
            "mean": np.mean,
            "median": np.median,
            "max": np.max,
            "p99": lambda w: np.quantile(w, 0.99),
        }[stat](waits)
    )


def became(data, what, colour=None, link=None):
    """Percent of the packets of which this became (`packets`): sent, early, late, limit."""
    found = [w for w, _ in data.recorded(colour, link)]
    return 100 * found.count(what) / len(found) if found else None


def single(data, link=None):
    """Percent of the losses (`holes`) that stand alone in their flow: of [BIAS00], in runs of one."""
    runs = [n for _, holes in data.lost(link) for _, n in holes]
    return 100 * runs.count(1) / sum(runs) if runs else None


def blocks(data, size=30, stat="mean", lag=1, link=None):
    """Losses (`holes`) of a flow in blocks of so many of its packets.

    mean, var; several: percent of the blocks with two or more; autocovariance at `lag` blocks, a flow's mean;
    autocorrelation: that over the flows' mean variance."""
    series = []
    for packets, holes in data.lost(link):
        counts = np.zeros(packets // size)
        for first, n in holes:
            for at in range(first, first + n):
                if at // size < len(counts):
                    counts[at // size] += 1
        if len(counts):
            series.append(counts)
    if not series:
        return None
    every = np.concatenate(series)
    if stat == "several":
        return 100 * float(np.mean(every >= 2))
    if stat in ("mean", "var"):
        return float(getattr(every, stat)())
    centred = [s - s.mean() for s in series if len(s) > lag]
    if not centred:
        return None
    covariance = float(np.mean([np.mean(s[lag:] * s[:-lag]) for s in centred]))
    variance = float(np.mean([np.mean(s * s) for s in centred]))
    return {
        "autocovariance": covariance,
        "autocorrelation": covariance / variance if variance else None,
    }[stat]


def gap_cdf(law, p, k):
    """P(gap <= k) of [BIAS00] II.A.1, gaps rounded up to whole packets; p and k are arrays."""
    p, k = np.asarray(p, float)[:, None], np.asarray(k, float)
    if law == "geometric":
        return 1 - (1 - p) ** k
    if law == "delayed_geometric":
        first = np.ceil(1 / p)  # the first exposure is what exceeds the delay
        return np.where(k < first, 0, 1 - (2 - first * p) * (1 - p) ** (k - first))
    # what a gap exceeds 1/p by counts for the next one when the spacing is deterministic
    at = {"uniform": k * p, "delayed_uniform": k * p - 1, "deterministic": k + 1 - 1 / p}[law]
    return np.clip(at, 0, 1)


def gaps_of(data, link=None):
    """Packets of a flow from one loss (`holes`) to the next, of all flows."""
    return [
        b - a
        for _, holes in data.lost(link)
        for a, b in itertools.pairwise(at for first, n in holes for at in range(first, first + n))
    ]


def ks(data, law, stat="distance", path="probability", link=None):
    """Kolmogorov and Smirnov's distance of the gaps between losses (`holes`) from a spacing's closed form.

    p may move: the form is the mean of those for the sampled values of `path`, weighed by the losses that they bring.
    scaled: by the root of the number of gaps, as its limits are; gaps: that number."""
    gaps = gaps_of(data, link)
    p = [pick(s["qdisc"], path) for s in data.link(link)[:-1] if s["time"] >= data.run["warmup"]]
    p = np.array([v for v in p if v])
    if len(gaps) < 2 or not len(p):
        return None
    k = np.arange(1, max(gaps) + 1)
    found = np.searchsorted(np.sort(gaps), k, side="right") / len(gaps)
    distance = float(np.max(np.abs(found - np.average(gap_cdf(law, p, k), axis=0, weights=p))))
    return {"distance": distance, "scaled": distance * math.sqrt(len(gaps)), "gaps": len(gaps)}[
        stat
    ]


def binned_rate(data, flows, start=None, until=None, link=None):
    """kb/s that a flow sends between two times, of `bins`, with IP headers; a flow's mean."""
    rows, width = data.binned(flows, "bytes", start, until, link)
    return float(rows.mean()) * 8 / 1e3 / width


def cov_time(data, flows, start=None, until=None, link=None, without=0):
    """CoV_time of [TRANS00] 3.1.1: standard deviation over mean of what a flow sends in a bin (`bins`), from the warm-up on;
    a flow's mean. `without`: and but for so long after each bin in which it sends nothing, as after time-outs."""
    rows, width = data.binned(flows, "bytes", start, until, link)
    n = round(seconds(without) / width)
    found = []
    for row in rows:
        stalled = np.convolve(row == 0, np.ones(n + 1))[: len(row)] if n else np.zeros(len(row))
        left = row[stalled == 0]
        found.append(float(left.std() / left.mean()) if left.any() else None)
    return mean(found)


def cov_lf(data, flows, window, start=None, until=None, link=None):
    """CoV_lf of [TRANS00] 3.1.1: standard deviation over mean of what flows send in so many seconds (`bins`), all flows and times."""
    rows, width = data.binned(flows, "bytes", start, until, link)
    n = round(seconds(window) / width)
    if n < 1 or rows.shape[1] < n:
        return None
    sums = rows[:, : rows.shape[1] // n * n].reshape(len(rows), -1, n).sum(axis=2)
    return float(sums.std() / sums.mean()) if sums.any() else None


def fairness(data, flows, start=None, until=None, link=None, window=None):
    """Fairness index of [TRANS00] 3.1.1, (sum x)^2 / (K sum x^2) over K flows in a bin (`bins`), or in a `window` of several;
    the mean over those in which something was sent."""
    rows, width = data.binned(flows, "bytes", start, until, link)
    n = round(seconds(window) / width) if window else 1
    rows = rows[:, : rows.shape[1] // n * n].reshape(len(rows), -1, n).sum(axis=2)
    rows = rows[:, rows.any(axis=0)]
    if not rows.size:
        return None
    return float(np.mean(rows.sum(axis=0) ** 2 / (len(rows) * (rows**2).sum(axis=0))))


def halving(data, flows, at, tick=None, link=None):
    """D of [TRANS00] 4: how many ticks (bins) after `at` a flow begins a bin with at most half of what it had, on average, in
    the 50 before; a flow's mean."""
    before, width = data.binned(flows, "packets", None, at, link)
    rows, _ = data.binned(flows, "packets", at, None, link)
    found = []
    for old, row in zip(before[:, -50:].mean(axis=1), rows, strict=True):
        below = np.flatnonzero(row <= old / 2)
        found.append(
            int(below[0]) * width / (seconds(tick) if tick else width) if len(below) else None
        )
    return None if None in found else mean(found)


def slope(data, flows, start, until, link=None):
    """I of [TRANS00] 5: packets a bin (`bins`) that a flow sends more from bin to bin between two times, by least squares; a
    flow's mean."""
    rows, _ = data.binned(flows, "packets", start, until, link)
    if rows.shape[1] < 2:
        return None
    return float(np.polyfit(np.arange(rows.shape[1]), rows.T, 1)[0].mean())


def settle(data, flows, at, until=None, alpha=0.05, link=None):
    """Bins after `at` from which on a rate stays within alpha of the step from the old one to the new, [TRANS00] Eq. (10).

    The rate is that of all the flows together, a mean of five bins; the old one of the 50 bins before, the new one of the
    last quarter."""
    old, _ = data.binned(flows, "bytes", None, at, link)
    rows, _ = data.binned(flows, "bytes", at, until, link)
    if rows.shape[1] < 20:
        return None
    rate = np.convolve(rows.sum(axis=0), np.ones(5) / 5, "valid")
    new, old = rate[-(len(rate) // 4) :].mean(), old[:, -50:].sum(axis=0).mean()
    if new == old:
        return None
    far = np.flatnonzero(np.abs((rate - new) / (old - new)) > alpha)
    return int(far[-1]) + 1 if len(far) else 0


def refill(data, path, at, link=None, share=0.5):
    """Seconds after `at` until a value of tc's JSON, a queue's length say, which has fallen, is at half its mean of before
    again, or at another `share` of it."""
    at = seconds(at)
    values = [(s["time"], pick(s["qdisc"], path)) for s in data.link(link)[:-1]]
    level = share * mean([v for t, v in values if data.run["warmup"] <= t < at])
    if not level:
        return None
    after = itertools.dropwhile(lambda s: s[1] >= level, [v for v in values if v[0] >= at])
    return next((t - at for t, v in after if v >= level), None)


METRICS = {
    f.__name__: f
    for f in (
        goodput,
        loss,
        marked,
        delay,
        useful,
        jitter,
        mos,
        timeouts,
        counter,
        last,
        sampled,
        bias,
        cwnd,
        rtp_jitter,
        spread,
        sojourn,
        became,
        single,
        blocks,
        ks,
        rate,
        event_rate,
        rate_cov,
        interval,
        link_rate,
        dropped,
        packet_size,
        binned_rate,
        cov_time,
        cov_lf,
        fairness,
        halving,
        slope,
        settle,
        refill,
    )
}


STATS = {
    "interval": ("mean", "cov"),
    "delay": ("min", "mean", "median", "p99", "p999", "max"),
    "sampled": ("mean", "std", "var", "min", "max", "logmean"),
    "sojourn": ("min", "mean", "median", "p99", "max"),
    "cwnd": ("mean", "sum_var", "var_sum"),
    "blocks": ("mean", "var", "several", "autocovariance", "autocorrelation"),
    "ks": ("distance", "scaled", "gaps"),
}


def check_spec(doc, path, spec, flows):
    """Complain about a metric that the file asks for wrongly; returns name and arguments."""
    if len(spec) != 1:
        raise doc.bad(path, f"want one of {', '.join(METRICS)}, expr")
    ((kind, args),) = spec.items()
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
    if args.get("stat", STATS.get(kind, [None])[0]) not in STATS.get(kind, [None]):
        raise doc.bad(
            (*path, kind, "stat"), f"{args['stat']!r}: want one of {', '.join(STATS[kind])}"
        )
    names = args.get("flows", [])
    for name in [names] if isinstance(names, str) else names:
        if name not in flows:
            raise doc.bad((*path, kind), f"no flows {name!r}; there are {', '.join(flows)}")
    return kind, args


def check_metrics(experiment):
    names = experiment.vars(next(experiment.runs(seeds=1)))
    for name, spec in experiment.data["metrics"].items():
        kind, args = check_spec(
            experiment.doc, ("metrics", name), spec, experiment.data.get("flows", {})
        )
        if kind == "expr" and experiment.kind == "vm":
            try:
                calculate(str(args), names)
            except KeyError as e:
                raise experiment.doc.bad(
                    ("metrics", name, kind), f"no {e.args[0]!r} in variables or metrics before it"
                ) from None
            except (ValueError, TypeError, ZeroDivisionError):
                pass  # of values that are not known yet
        names = {**names, name: 1.0}


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
                except (TypeError, ZeroDivisionError):  # of what cannot be had
                    result[name] = None
            else:
                result[name] = METRICS[kind](data, **args)
        except KeyError as e:
            raise experiment.doc.bad(
                path, f"no {e.args[0]!r} in variables, metrics before it, or raw data"
            ) from None
        except ValueError as e:
            raise experiment.doc.bad(path, str(e)) from None
    return result
