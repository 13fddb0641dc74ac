# SPDX-License-Identifier: GPL-2.0
"""Plots of an experiment, from its raw data only.

Each entry of the file's `plot` is one panel:

    line    a metric against a variable of the sweep: a line an arm, or dots where the
            variable has names, not numbers
    bar     metrics side by side, an arm a colour, averaged over the sweep
    time    a value of tc's samples over time, seed 1
    cdf     one-way delays of flows, all seeds
    gaps    packets from one loss (`holes`) to the next, all seeds

In the first two ns-2's arms are there too, in grey, whatever the panel's arms, and the
error bars are 95 % intervals over the seeds. Where a claim is about what a panel shows, a
band is what it allows, or a dashed line its limit; a ratio has a line at 1. `paper` names
a variable that has the paper's value at each point: crosses.

What is green is drawn green and what is blue blue, and nothing else is.
"""

import re

import numpy as np
from common import BLUE, COLOURS, GREEN, new_figure, save
from metrics import RunData, gaps_of, pick
from verdict import interval

MARKERS = "osD^vP*Xph"
ALLOWED, LIMIT = "what the claim allows", "limit of the claim"
GREYS = ["#555555", "#aaaaaa"]  # of ns-2's arms
HATCHES = ["", "//", "\\\\", "xx", "--", "||", "++"]


def colour_of(words):
    """Green of green things, blue of blue ones, None of others."""
    found = set(re.findall(r"(?<![A-Za-z])(green|blue)(?![A-Za-z])", words))
    return {"green": GREEN, "blue": BLUE}[found.pop()] if len(found) == 1 else None


def colour_of_arm(arm, words):
    """The same for an arm: its code name has the colour, or its name in words begins with it."""
    return colour_of(arm) or colour_of(words.split()[0])


class Data:
    """What panels are drawn from: metrics of all runs, and raw data when asked for."""

    def __init__(self, experiment, rows, result):
        self.experiment, self.rows, self.result = experiment, rows, result
        arms = list(experiment.arms)
        named = {arm: colour_of_arm(arm, experiment.words(arm)) for arm in arms}
        others = [arm for arm in arms if not named[arm]]
        self.colours = {
            arm: named[arm] or COLOURS[others.index(arm) % len(COLOURS)] for arm in arms
        }
        self.markers = {arm: MARKERS[i % len(MARKERS)] for i, arm in enumerate(arms)}
        self.greys = {
            arm: GREYS[i % len(GREYS)]
            for i, arm in enumerate(dict.fromkeys(run.arm for run, _ in result.beside))
        }

    def style(self, arm):
        """Marker and dashes: of two arms of one colour the second's line is broken."""
        if arm in self.greys:
            return "D", ":"
        return self.markers[arm], ("-", "--", "-.", ":")[self.among_like(arm) % 4]

    def among_like(self, arm):
        """How many of the arms before it have its colour."""
        same = [a for a, colour in self.colours.items() if colour == self.colours.get(arm)]
        return same.index(arm) if arm in same else 0

    def words(self, arm):
        return self.experiment.words(arm)

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


def figures(metric, data):
    """What a claim may call a metric: its name, and if it is the quotient of two, these."""
    spec = data.experiment.data["metrics"].get(metric, {})
    return {metric, spec.get("expr", metric).replace(" ", "")}


def limits(metric, arms, data):
    """What claims allow of it, tolerance and all: (least, most), either may be None."""
    found = []
    for claim in data.experiment.data["claims"]:
        check = claim["check"]
        what = [check[k] for k in ("value", "each") if k in check] or check.get("ratio", [])
        names, owners = zip(*(o.split("@") for o in what), strict=True) if what else ((), ())
        if "/".join(names) not in figures(metric, data) or len(set(owners)) != 1:
            continue
        if owners[0] not in arms:
            continue
        least, most = check.get("between", (check.get("at_least"), check.get("at_most")))
        slack = claim["tolerance"]
        pair = (None if least is None else least - slack, None if most is None else most + slack)
        if pair not in found:
            found.append(pair)
    return found


def judge(axis, panel, names, data, scale):
    """The line at 1 of a ratio, and what the claims allow."""
    arms = panel.get("arms", data.experiment.arms)
    for name in names:
        expr = data.experiment.data["metrics"].get(name, {}).get("expr", "")
        if re.fullmatch(r"\w+ */ *\w+", expr):
            axis.axhline(scale, color="#888888", lw=1, zorder=0)
        for least, most in limits(name, arms, data):
            if least is not None and most is not None:
                axis.axhspan(
                    least * scale, most * scale, color="#000000", alpha=0.08, lw=0, zorder=0
                )
                axis.plot([], [], color="#000000", alpha=0.15, lw=8, label=ALLOWED)
            else:
                limit = (most if least is None else least) * scale
                axis.axhline(limit, color="#888888", lw=1, ls="--", zorder=0)
                axis.plot([], [], color="#888888", lw=1, ls="--", label=LIMIT)


def numbers(labels):
    """Their values, or None if one is no number."""
    try:
        return {name: float(name) for name in labels}
    except ValueError:
        return None


def wrap(label, width):
    """In lines of about so many characters."""
    lines = [""]
    for word in label.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def name_places(axis, labels):
    """Names below their places; those of colours are in them."""
    wide = 2 if axis.get_gridspec().ncols == 1 else 1
    width = max(6, 48 * wide // len(labels))
    axis.set_xticks(range(len(labels)), [wrap(label, width) for label in labels])
    axis.tick_params(axis="x", length=0)
    for tick, label in zip(axis.get_xticklabels(), labels, strict=True):
        tick.set_color("#000000" if ":" in label else colour_of(label) or "#000000")
        if len(labels) > 5 * wide:
            tick.set_fontsize("x-small" if len(labels) > 6 * wide else "small")
    axis.grid(visible=False, axis="x")
    axis.set_xlim(-0.6, len(labels) - 0.4)


def line(axis, data, panel, index):
    """x is a variable of the sweep; where it is not a number, its labels."""
    metric, x, scale = panel["y"], panel["x"], panel.get("scale", 1)

    def label(run):
        return dict(run.point).get(x) or str(data.experiment.vars(run)[x])

    # in the file's order, also where an arm has none of the first
    runs = [run for run, _ in data.chosen(panel, index)]
    labels = list(dict.fromkeys(map(label, runs)))
    places = numbers(labels)
    if named := places is None:
        places = {name: i for i, name in enumerate(labels)}
        name_places(axis, labels)
    judge(axis, panel, [metric], data, scale)
    shown = list(data.arms(panel, index, metric))
    for i, (arm, colour, runs_of) in enumerate(shown):
        cells = by((label(run), metrics.get(metric)) for run, metrics in runs_of)
        # a gap where there is nothing to tell
        means, halves = scale * np.array([interval(cells.get(n, [np.nan])) for n in places]).T
        marker, dashes = data.style(arm)
        aside = (i - (len(shown) - 1) / 2) * 0.7 / max(len(shown), 2) if named else 0
        axis.errorbar(
            np.array(list(places.values())) + aside,
            means,
            yerr=np.nan_to_num(halves),
            color=colour,
            label=data.words(arm),
            marker=marker,
            ms=5,
            capsize=3,
            lw=1.5,
            ls="none" if named else dashes,
        )
    if "paper" in panel:
        values = {label(run): data.experiment.vars(run)[panel["paper"]] for run in runs}
        axis.plot(
            [places[name] for name in values],
            [float(v) * scale for v in values.values()],
            ls="none",
            marker="x",
            ms=8,
            mew=2,
            color="#000000",
            label="the paper",
        )
    axis.set_xlabel(panel.get("xlabel", "" if named else x))


def bar(axis, data, panel, index):
    names = panel["y"] if isinstance(panel["y"], list) else [panel["y"]]
    labels, scale = panel.get("labels", names), panel.get("scale", 1)
    arms = list(data.arms(panel, index, *names))
    places = range(len(names))
    # Bars that are for colours have these, and the arms patterns.
    faces = [colour_of(label) for label in labels]
    if not all(faces):
        faces = [None] * len(names)
    single = len(names) == 1 and "labels" not in panel
    if single:
        name_places(axis, [data.words(arm) for arm, _, _ in arms])
    else:
        name_places(axis, labels)
    if len(names) == 1:
        judge(axis, panel, names, data, scale)
    for i, (arm, colour, runs) in enumerate(arms):
        heights, halves = [], []
        for name in names:
            values = [m[name] for _, m in runs if m.get(name) is not None]
            mean, half = interval(values) if values else (0, 0)
            heights.append(mean * scale)
            halves.append(np.nan_to_num(half) * scale)
        width = 0.7 if single else 0.8 / len(arms)
        middle = [i] if single else np.arange(len(names)) + (i - (len(arms) - 1) / 2) * width
        hatch = HATCHES[(i if all(faces) else data.among_like(arm)) % len(HATCHES)]
        axis.bar(
            middle,
            heights,
            width,
            yerr=halves,
            capsize=3,
            color=[face or colour for face in faces],
            edgecolor="#ffffff",
            hatch=hatch,
            alpha=0.55 if hatch == "" and all(faces) and len(arms) > 1 else 1,
        )
        if all(faces):
            colour = "#999999"
        if not single:  # for the legend, in which the same arm may have a line of its colour
            words = data.words(arm)
            axis.bar(
                [np.nan],
                [0],
                color=colour,
                edgecolor="#ffffff",
                hatch=hatch,
                label=f"bars: {words}" if all(faces) else words,
            )
    if not single:
        axis.set_xlim(-0.6, max(places) + 0.6)
    axis.set_xlabel(panel.get("xlabel", ""))


def over_time(axis, data, panel, index):
    first = [(run, raw) for run, raw in data.raw(panel, index) if run.seed == 1]
    arms = len({run.arm for run, _ in first})
    several = len(first) > arms
    for i, (run, raw) in enumerate(first):
        samples = raw.link(panel.get("link"))[:-1]
        points = [(s["time"], pick(s["qdisc"], panel["path"])) for s in samples]
        times, values = zip(*(p for p in points if p[1] is not None), strict=True)
        words = data.words(run.arm)
        axis.plot(
            times,
            np.array(values) * panel.get("scale", 1),
            color=COLOURS[i % len(COLOURS)] if several else data.colours[run.arm],
            lw=1,
            label=" ".join([*[words] * (arms > 1), *(v for _, v in run.point)])
            if several
            else words,
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
            steps(axis, np.array(edges) / 1e3, share, data.words(arm), colour)
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
            values, counts = np.unique(found, return_counts=True)
            steps(axis, values, np.cumsum(counts) / len(found), data.words(arm), colour)
    axis.set_xlabel("packets from one loss to the next")
    axis.set_ylabel("share of the gaps")


def steps(axis, values, share, label, colour):
    axis.step(values, share, where="post", color=colour, label=label, lw=1.5)


def needs_raw(experiment):
    """Metrics alone do not do for a panel of it."""
    return any(
        panel.get("kind") in ("time", "cdf", "gaps") for panel in experiment.data.get("plot", [])
    )


PANELS = {"line": line, "bar": bar, "time": over_time, "cdf": cdf, "gaps": gaps}


def draw(experiment, rows, result, path):
    """Draw all panels into a PNG and an SVG; the first for a page, None if the file asks for none."""
    panels = experiment.data.get("plot", [])
    if not panels or not rows:
        return None
    data = Data(experiment, rows, result)
    width = 2 if len(panels) > 1 else 1
    figure, axes = new_figure(-(-len(panels) // width), width, 4.2 * -(-len(panels) // width) + 0.2)
    for i, (axis, panel) in enumerate(zip(axes.flat, panels, strict=False)):
        PANELS[panel.get("kind", "line")](axis, data, panel, i)
        title = panel.get("title", "")
        if panel.get("kind") in ("cdf", "gaps"):
            seeds = len({run.seed for run, _ in data.chosen(panel, i) if result.has(run)})
            if seeds < result.seeds:
                title += f", {seeds} of {result.seeds} seeds"
        axis.set_title(title, color=colour_of(title) or "#000000")
        if "ylabel" in panel:
            axis.set_ylabel(panel["ylabel"])
        for word, set_scale, which in (
            ("logx", axis.set_xscale, axis.xaxis),
            ("logy", axis.set_yscale, axis.yaxis),
        ):
            if panel.get(word):
                set_scale("log")
                which.set_major_formatter("{x:g}")
                low, high = which.get_view_interval()
                which.set_minor_formatter(minor if high < 1500 * low else "")
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    legend(figure, axes)
    figure.supxlabel(footer(result), fontsize=8, color="#666666", x=0.995, ha="right")
    return save(figure, path)


def footer(result):
    """What was run: row, replicates, kernel, commit."""
    x = result.experiment
    words = [x.id + (" (quick)" if x.quick else "")]
    if result.about:
        commit = re.sub(r"[0-9a-f]{40}", lambda m: m[0][:12], result.about["commit"])
        words += [
            f"n = {result.seeds} seed{'s' * (result.seeds > 1)}",
            f"Linux {result.about['kernel']}",
            commit if commit.count(" and ") < 2 else f"{commit.count(' and ') + 1} commits",
        ]
    else:
        words.append("computed")
    return "  ·  ".join(words)


def minor(value, _):
    """Between powers of ten, 2 and 5 of them get a label."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""


def legend(figure, axes):
    """One for all panels, above them."""
    entries = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries = dict(sorted(entries.items(), key=lambda entry: entry[0] in (ALLOWED, LIMIT)))
    if entries:
        longest = max(map(len, entries))
        columns = max(1, min(len(entries), int(figure.get_figwidth() / (0.1 * longest + 0.7))))
        lines = -(-len(entries) // columns)
        figure.suptitle("\n".join([" "] * lines), fontsize=18)  # room for it
        figure.legend(
            entries.values(), entries.keys(), loc="upper center", frameon=False, ncol=columns
        )
