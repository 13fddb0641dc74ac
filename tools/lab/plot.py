# SPDX-License-Identifier: GPL-2.0
"""Plots of an experiment, from its raw data only.

Each entry of the file's `plot` is one panel:

    line    a metric against a variable of the sweep, a line an arm
    bar     metrics side by side, an arm a colour, averaged over the sweep
    time    a value of tc's samples over time, seed 1
    cdf     one-way delays of flows, all seeds
    gaps    packets from one loss (`holes`) to the next, all seeds

In the first two ns-2's arms are there too, in grey, whatever the panel's arms.
"""

import numpy as np
from common import new_figure, save
from metrics import RunData, gaps_of, pick
from verdict import interval

COLOURS = [
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#8c564b",
    "#000000",
    "#999933",
    "#882255",
]
GREYS = ["#555555", "#aaaaaa"]  # of ns-2's arms


class Data:
    """What panels are drawn from: metrics of all runs, and raw data when asked for."""

    def __init__(self, experiment, rows, result):
        self.experiment, self.rows, self.result = experiment, rows, result
        self.colours = {arm: COLOURS[i % len(COLOURS)] for i, arm in enumerate(experiment.arms)}
        self.greys = {
            arm: GREYS[i % len(GREYS)]
            for i, arm in enumerate(dict.fromkeys(run.arm for run, _ in result.beside))
        }

    def chosen(self, panel, index, beside=False):
        """(run, metrics) of the panel's arms and points; with ns-2's beside, if wanted."""
        arms = panel.get("arms", self.experiment.arms)
        for run, metrics in [*self.rows, *self.result.beside] if beside else self.rows:
            if run.arm not in arms and run.arm not in self.greys:
                continue
            # the short form may leave out just these points
            if (
                "where" not in panel
                or self.experiment.quick
                or self.experiment.holds(panel["where"], ("plot", index, "where"), run)
            ):
                yield run, metrics

    def arms(self, panel, index, *names):
        """(arm, its colour, its runs' metrics) of those that have any of these metrics."""
        chosen = list(self.chosen(panel, index, beside=True))
        for arm, colour in {**self.colours, **self.greys}.items():
            runs = [
                (run, m)
                for run, m in chosen
                if run.arm == arm and any(m.get(name) is not None for name in names)
            ]
            if runs:
                yield arm, colour, runs

    def raw(self, panel, index):
        """(run, its raw data) of those of them that have any."""
        for run, _ in self.chosen(panel, index):
            if self.result.has(run):
                yield run, RunData(self.result.read(run))


def by(pairs):
    """Values by key, in order of appearance."""
    result = {}
    for key, value in pairs:
        if value is not None:
            result.setdefault(key, []).append(value)
    return result


def line(axis, data, panel, index):
    """x is a variable of the sweep; where it is not a number, its labels."""
    metric, x = panel["y"], panel["x"]

    def label(run):
        return dict(run.point).get(x) or str(data.experiment.vars(run)[x])

    # in the file's order, also where an arm has none of the first
    labels = list(dict.fromkeys(label(run) for run, _ in data.chosen(panel, index)))
    try:
        places = {name: float(name) for name in labels}
    except ValueError:
        places = {name: i for i, name in enumerate(labels)}
        axis.set_xticks(range(len(labels)), labels, rotation=30 if len(labels) > 4 else 0)
    for arm, colour, runs in data.arms(panel, index, metric):
        cells = by((label(run), metrics.get(metric)) for run, metrics in runs)
        # a gap where there is nothing to tell
        means, halves = np.array([interval(cells.get(name, [np.nan])) for name in places]).T
        axis.errorbar(
            list(places.values()),
            means,
            yerr=np.nan_to_num(halves),
            color=colour,
            label=arm,
            marker="o",
            ms=4,
            capsize=3,
            lw=1.5,
            ls="--" if arm in data.greys else "-",
        )
    axis.set_xlabel(panel.get("xlabel", x))


def bar(axis, data, panel, index):
    names = panel["y"] if isinstance(panel["y"], list) else [panel["y"]]
    arms = list(data.arms(panel, index, *names))
    for i, (arm, colour, runs) in enumerate(arms):
        heights, halves = [], []
        for name in names:
            values = [m[name] for _, m in runs if m.get(name) is not None]
            mean, half = interval(values) if values else (0, 0)
            heights.append(mean)
            halves.append(np.nan_to_num(half))
        places = np.arange(len(names)) + (i - (len(arms) - 1) / 2) * 0.8 / len(arms)
        axis.bar(places, heights, 0.8 / len(arms), yerr=halves, color=colour, label=arm, capsize=3)
    axis.set_xticks(
        range(len(names)), panel.get("labels", names), fontsize="small" if len(names) > 5 else None
    )


def over_time(axis, data, panel, index):
    first = [(run, raw) for run, raw in data.raw(panel, index) if run.seed == 1]
    several = len({run.point for run, _ in first}) > 1
    for run, raw in first:
        samples = raw.link(panel.get("link"))[:-1]
        points = [(s["time"], pick(s["qdisc"], panel["path"])) for s in samples]
        points = [p for p in points if p[1] is not None]
        label = " ".join([run.arm, *(v for _, v in run.point)]) if several else run.arm
        axis.plot(
            *zip(*points, strict=True),
            color=None if several else data.colours[run.arm],
            lw=1,
            label=label,
        )
    axis.set_xlabel("time, s")


def cdf(axis, data, panel, index):
    for arm, colour in data.colours.items():
        counts = {}
        for run, raw in data.raw(panel, index):
            if run.arm != arm:
                continue
            for _, i in raw.members(panel["flows"]):
                for edge, n in raw.sinks.get(i, {}).get("delay_histogram", []):
                    counts[edge] = counts.get(edge, 0) + n
        if counts:
            edges = sorted(counts)
            share = np.cumsum([counts[e] for e in edges]) / sum(counts.values())
            axis.step(np.array(edges) / 1e3, share, where="post", color=colour, label=arm, lw=1.5)
    axis.set_xlabel("one-way delay, ms")
    axis.set_ylabel("share of the packets")


def gaps(axis, data, panel, index):
    for arm, colour in data.colours.items():
        found = sorted(
            gap
            for run, raw in data.raw(panel, index)
            if run.arm == arm
            for gap in gaps_of(raw, panel.get("link"))
        )
        if found:
            axis.step(
                found,
                np.arange(1, len(found) + 1) / len(found),
                where="post",
                color=colour,
                label=arm,
                lw=1.5,
            )
    axis.set_xlabel("packets from one loss to the next")
    axis.set_ylabel("share of the gaps")


PANELS = {"line": line, "bar": bar, "time": over_time, "cdf": cdf, "gaps": gaps}


def draw(experiment, rows, result, path):
    """Draw all panels into one PNG; its base64, None if the file asks for none."""
    panels = experiment.data.get("plot", [])
    if not panels or not rows:
        return None
    data = Data(experiment, rows, result)
    width = 2 if len(panels) > 1 else 1
    figure, axes = new_figure(-(-len(panels) // width), width, 4.2 * -(-len(panels) // width))
    for i, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
        PANELS[panel.get("kind", "line")](axis, data, panel, i)
        axis.set_title(panel.get("title", ""))
        if "ylabel" in panel:
            axis.set_ylabel(panel["ylabel"])
        for word, set_scale, which in (
            ("logx", axis.set_xscale, axis.xaxis),
            ("logy", axis.set_yscale, axis.yaxis),
        ):
            if panel.get(word):
                set_scale("log")
                which.set_major_formatter("{x:g}")
                which.set_minor_formatter(minor)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    legend(figure, axes)
    return save(figure, path)


def minor(value, _):
    """Between powers of ten, 2 and 5 of them get a label."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""


def legend(figure, axes):
    """One for all panels, above them."""
    entries = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        longest = max(map(len, entries))
        columns = max(1, min(len(entries), int(figure.get_figwidth() / (0.1 * longest + 0.7))))
        lines = -(-len(entries) // columns)
        figure.suptitle("\n".join([" "] * lines), fontsize=18)  # room for it
        figure.legend(
            entries.values(), entries.keys(), loc="upper center", frameon=False, ncol=columns
        )
