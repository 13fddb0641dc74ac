# SPDX-License-Identifier: GPL-2.0
"""Tables, plots and page of the demo, from the raw data of its runs."""

import html
import json
import os
import re

import losses
import matplotlib
import numpy as np
from common import (
    COLOURS,
    STYLE,
    definitions,
    emodel_mos,
    folded,
    html_table,
    items,
    legend_above,
    new_figure,
    save,
    text_table,
)

PROPAGATION = 20.0  # ms

# Label, colour, meaning.
SCHEMES = {
    "red": (
        "red (flat)",
        COLOURS[0],
        (
            "One queue for all, in-tree RED: the flat best-effort network that ABE starts from. "
            "The call waits behind the bulk TCP."
        ),
    ),
    "fq_codel": (
        "fq_codel",
        COLOURS[6],
        (
            "Debian's usual choice: a queue for each flow. The call gets its fair share of "
            "the link whatever it is, and more state is kept."
        ),
    ),
    "abe-paper": (
        "abe, paper's loop",
        COLOURS[3],
        (
            "ABE with the parameters of the paper's section 5.1 and its control loop. The "
            "call is green: served before blue, and dropped more often in return. On a link "
            "this slow the bias that the paper's equation asks for is far above one, and "
            "often at its maximum."
        ),
    ),
    "abe": (
        "abe (bare)",
        COLOURS[1],
        (
            "ABE without any option: thresholds are durations, the drain rate is estimated, and "
            "the loop is the one that drops as little green as transparency to blue allows."
        ),
    ),
}

COLUMNS = [
    ("scheme", 0, "the queueing discipline under test"),
    ("voice", 0, "plain UDP, or ECT(0): the call's packets may be marked instead of dropped"),
    ("median ms", 1, "half of the call's packets arrive within this one-way delay"),
    ("99 % ms", 1, "99 % of them"),
    ("max ms", 1, "the slowest"),
    (
        "loss %",
        2,
        (
            "of the call's packets; a G.711 listener begins to notice near 1 %, and hears "
            "gaps above 5 %"
        ),
    ),
    ("MOS", 2, "mean opinion score by the E-model, 1 to 4.5: a model, nobody has listened"),
    ("CE %", 2, "of the call's packets that came with Congestion Experienced"),
    ("TCP Mb/s", 2, "goodput of the bulk TCP flows together"),
    ("alpha", 2, "drop bias: first-stage drops of green against blue (mean)"),
    ("D ms", 1, "offset: how much longer blue may be made to wait (mean)"),
]


class Run:
    """One run: what it was, and the figures of its table row."""

    def __init__(self, path):
        with open(path, encoding="ascii") as f:
            data = json.load(f)
        self.spec, self.commands, self.shown = data["spec"], data["commands"], data["shown"]
        self.versions = [f"Linux {data['kernel']}", data["tc"], data["iperf3"]]
        self.scheme, self.ect = self.spec["scheme"], self.spec["ecn"] != 0
        self.label, self.colour, _ = SCHEMES[self.scheme]
        self.delays = np.array(data["voice"]["raw"]["delay_us"]) / 1000
        self.voice = data["voice"]
        self.goodput = data["tcp_goodput"] / 1e6
        samples = [s for s in data["samples"] if "alpha" in s]
        self.time = np.array([s["time"] for s in samples])
        self.alpha = np.array([s["alpha"] for s in samples])
        self.offset = np.array([s["offset"] for s in samples]) / 1000

    def _mean(self, values):
        counted = values[self.time >= self.spec["warmup"]] if len(values) else values
        return float(np.mean(counted)) if len(counted) else None

    def row(self):
        # with no packet through there is no delay, and no mark
        delay, packets = self.voice["delay_us"], self.voice["packets"]
        ms = {k: delay[k] / 1000 if delay else None for k in ("median", "p99", "max")}
        return {
            "scheme": self.label,
            "voice": "ECT(0)" if self.ect else "plain",
            "median ms": ms["median"],
            "99 % ms": ms["p99"],
            "max ms": ms["max"],
            "loss %": 100 * self.voice["loss"],
            "MOS": self._mos(ms["p99"], 100 * self.voice["loss"]),
            "CE %": 100 * self.voice["ce"] / packets if packets else None,
            "TCP Mb/s": self.goodput,
            "alpha": self._mean(self.alpha),
            "D ms": self._mean(self.offset),
        }

    @staticmethod
    def _mos(p99, lost):
        """Of a playout buffer that waits for 99 % of the packets; a packet has 20 ms of speech."""
        return 1.0 if p99 is None else emodel_mos(p99 + 20, lost + (100 - lost) / 100)


# What a phone does not show.
MORE = ("max ms", "CE %", "alpha", "D ms")

WHEN = [
    (
        "abe, where you cannot or will not tell flows from each other (tunnels, many users behind "
        "one address, a box that keeps no state), and applications can say themselves what they "
        "want: green waits least and pays for it with losses, or with marks if it has ECN, so "
        "nobody gains by marking all of its traffic green. Bare abe spares what has little of "
        "the link, such as this call (protect)."
    ),
    (
        "fq_codel, where flows can be told apart and a call sends less than its share: then it "
        "waits little and loses nothing, without a word in its packets."
    ),
    (
        "Neither mends a link that is too slow for its flows. A plain call that does not adapt "
        "should not be green under `loop paper` on a slow link: look at its row."
    ),
]


def stretch_delay(axis, slowest):
    """Logarithmic in what comes on top of the propagation, labelled with the delay."""
    zero = PROPAGATION - 1
    axis.set_xscale(
        "function",
        functions=(lambda x: np.log(np.maximum(x - zero, 1e-3)), lambda y: np.exp(y) + zero),
    )
    axis.set_xlim(PROPAGATION, slowest * 1.03)
    ticks = [t for t in (20, 22, 25, 30, 40, 60, 100, 200, 400, 1000) if t < slowest * 1.03]
    axis.xaxis.set_major_locator(matplotlib.ticker.FixedLocator(ticks))
    axis.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_xlabel("one-way delay of the call's packets, ms (20 is propagation)")


def plot_delay(runs):
    figure, axes = new_figure(1, 2, 4.4, sharex=True, sharey="row")
    slowest = max(float(np.max(r.delays)) for r in runs if len(r.delays))
    for axis, ect in zip(axes[0], (False, True), strict=True):
        for run in (r for r in runs if r.ect == ect):
            delays = np.sort(run.delays)
            share = np.arange(1, len(delays) + 1) / len(delays)
            axis.step(delays, share, where="post", color=run.colour, label=run.label, lw=2)
        axis.set_title("call marked ECT(0)" if ect else "call as plain UDP")
        stretch_delay(axis, slowest)
        axis.set_ylim(0, 1.01)
        axis.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0))
    axes[0][0].set_ylabel("share of packets within it")
    legend_above(figure, axes[0][0])
    return figure


def plot_loop(runs):
    figure, axes = new_figure(2, 2, 5.6, sharex=True, sharey="row")
    warmup, duration = runs[0].spec["warmup"], runs[0].spec["duration"]
    for column, ect in enumerate((False, True)):
        top, bottom = axes[0][column], axes[1][column]
        for run in (r for r in runs if r.ect == ect and len(r.time)):
            top.plot(run.time, run.alpha, color=run.colour, label=run.label, lw=1.5)
            bottom.plot(run.time, run.offset, color=run.colour, lw=1.5)
        for axis in (top, bottom):
            axis.axvspan(0, warmup, color="#f3f3f3", zorder=0, lw=0)
        top.set_title("call marked ECT(0)" if ect else "call as plain UDP")
        top.set_yscale("log")
        top.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        top.set_ylim(bottom=0.9)
        bottom.set_xlabel(f"time, s (the first {warmup} s are not counted)")
        bottom.set_xlim(0, duration)
        bottom.set_ylim(bottom=0)
    axes[0][0].set_ylabel("drop bias alpha")
    axes[1][0].set_ylabel("offset D, ms")
    legend_above(figure, axes[0][0])
    return figure


def findings(runs):
    """The comparison in words, for the plain call."""
    rows = {r.scheme: r.row() for r in runs if not r.ect}
    red, fq, paper, bare = (rows[s] for s in ("red", "fq_codel", "abe-paper", "abe"))
    wait = {
        n: f"{row['99 % ms'] - PROPAGATION:.0f} ms"
        if row["99 % ms"]
        else "no packet arriving at all"
        for n, row in (("red", red), ("fq", fq), ("paper", paper), ("bare", bare))
    }
    ect = next(r.row() for r in runs if r.ect and r.scheme == "abe")
    return [
        (
            f"99 % of the call's packets wait at most {wait['bare']} at the bottleneck under "
            f"bare abe and {wait['paper']} under the paper's settings, against "
            f"{wait['red']} under flat RED and {wait['fq']} under fq_codel."
        ),
        (
            f"The price: as plain UDP the call loses {bare['loss %']:.1f} % (bare) and "
            f"{paper['loss %']:.1f} % (paper's loop), against {red['loss %']:.1f} % under flat RED "
            f"at the same load and {fq['loss %']:.1f} % under fq_codel. Marked ECT(0), it loses "
            f"{ect['loss %']:.1f} % (bare) and gets {ect['CE %']:.1f} % marks to slow down by."
        ),
        (
            f"Bulk TCP gets {bare['TCP Mb/s']:.2f} and {paper['TCP Mb/s']:.2f} Mb/s under the two, "
            f"against {red['TCP Mb/s']:.2f} Mb/s under flat RED: ABE promises that blue never "
            "gets less than flat."
        ),
    ]


def page(runs, calls, images):
    spec = runs[0].spec
    counted = spec["duration"] - spec["warmup"]
    shared = [c for c in runs[0].commands if all(c in r.commands for r in runs)]
    own = [
        (
            f"{r.label}, call {'ECT(0)' if r.ect else 'plain'}",
            [c for c in r.commands if c not in shared],
            r.shown,
        )
        for r in runs
    ]
    blocks = "".join(
        folded(
            title,
            f"<pre>{html.escape(chr(10).join(lines))}\n\n"
            f"{html.escape('# tc -s -d qdisc show dev r1, at the end')}\n"
            f"{html.escape(shown.rstrip())}</pre>",
        )
        for title, lines, shown in own
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>ABE and DCCP: what a call gets</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>
<nav><a href="#queues">A call and bulk TCP</a> <a href="#when">When to take what</a>
<a href="#dccp">Calls over DCCP</a> <a href="#how">How it was measured</a></nav>
<h1 id="queues">A VoIP call and bulk TCP through one 2 Mb/s bottleneck</h1>
<p>A call (G.711: 50 packets a second of 172 bytes, DSCP EF, green under ABE) and four CUBIC
flows of iperf3 (blue) share a 2 Mb/s link with 20 ms propagation each way. The link's queueing
discipline is all that differs. What came out, in this run:</p>
{items(findings(runs))}
{html_table(COLUMNS, [r.row() for r in runs], [r.colour for r in runs], MORE)}
<p class="note">One-way delays are measured from the packets and include the 20 ms of propagation.
One run a line, {counted} s counted, seed {spec["seed"]}: an example, too few runs to judge. Other
seeds differ by some per cent; the lab has ten of each.</p>
<img alt="Distribution of the one-way delay of the call's packets under each scheme"
 src="{images["delay"]}">
<p class="note">Each line is one scheme: the share of the call's packets that arrived within the
delay below (the axis is logarithmic beyond the propagation). The further left and the steeper,
the better; where a line ends is the slowest packet. Lost packets are not in it: see the table.</p>
<h2 id="when">When to take what</h2>
{items(WHEN)}
{calls.html()}<h1 id="how">How it was measured</h1>
<h2>What each line of the first table means</h2>
{definitions((label, text) for label, _, text in SCHEMES.values())}
<h2>What its columns mean</h2>
{definitions((name, text) for name, _, text in COLUMNS)}
<h2>What the lines of the second are, and its columns</h2>
{calls.meanings()}
<h2>ABE's control loop</h2>
<img alt="Drop bias and offset over time under both control loops"
 src="{images["loop"]}">
<p class="note">alpha (log scale) says how many times likelier green is dropped than blue in the
first stage; D says how long blue may be held back for green. Sampled each half second; the first
{spec["warmup"]} of {spec["duration"]} s are not counted.</p>
<h2>The networks</h2>
<p>Three network namespaces in one machine. In the first part tbf is the link, and the scheme its
queue; delay is added on the other links, so that the bottleneck's queue is the only one that fills.
Segmentation offloads are off, for equal terms.</p>
{folded("The first network's commands", f"<pre>{html.escape(chr(10).join(shared))}</pre>")}
{calls.commands()}
<h2>The schemes: commands and what tc shows at the end</h2>{blocks}
<h2>Reproduce</h2>
<pre>make demo
tools/demo/run --seed {spec["seed"]} --duration {spec["duration"]} --warmup {spec["warmup"]}</pre>
<p>Each run is a VM that lives in virtual time, where an instruction takes a nanosecond: the same
seed gives the same packets at the same times. {html.escape("; ".join(runs[0].versions))}. Raw data:
<code>raw/*/result.json</code> beside this page.</p>
</body></html>
"""


SHORT = [c for c in COLUMNS if c[0] in ("scheme", "99 % ms", "loss %", "TCP Mb/s")]


def shown(out):
    """The tables that pages have: (page, name, columns, rows, columns of words).

    Without the paper's loop: what that does here is in Documentation/sch_abe.rst.
    """

    def rows_of(name):
        with open(os.path.join(out, f"{name}.json"), encoding="ascii") as f:
            return [row for row in json.load(f) if row.get("scheme") != SCHEMES["abe-paper"][0]]

    table = rows_of("table")
    plain = [row for row in table if row["voice"] == "plain"]
    return (
        ("README.md", "short", SHORT, plain, 1),
        ("Documentation/figures.rst", "table", COLUMNS, table, 2),
        ("Documentation/figures.rst", "calls", losses.COLUMNS, rows_of("calls"), 2),
    )


def table_in(text, name):
    """The lines of a page's table, which follows a comment with its name, as a match."""
    found = re.search(rf"make demo: {name}\b.*\n(?:(?:::)?\n)+((?:    .*\n)+)", text)
    if not found:
        raise RuntimeError(f"no table after a comment: make demo: {name}")
    return found


def into_pages(top, out):
    for page, name, columns, rows, words in shown(out):
        path = os.path.join(top, page)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        table = text_table(columns, rows, words)
        found = table_in(text, name)
        text = (
            text[: found.start(1)]
            + "".join(f"    {line}\n" for line in table.splitlines())
            + text[found.end(1) :]
        )
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def make(queues, paths, out):
    """Reads OUT/raw, writes the rest of OUT, prints the tables; returns the exit status."""
    runs = [Run(os.path.join(out, "raw", name, "result.json")) for name in queues]
    rows = [r.row() for r in runs]
    calls = losses.Losses(out, paths)
    images = {
        "delay": save(plot_delay(runs), os.path.join(out, "delay.png")),
        "loop": save(plot_loop(runs), os.path.join(out, "loop.png")),
    }
    with open(os.path.join(out, "index.html"), "w", encoding="utf-8") as f:
        f.write(page(runs, calls, images))
    with open(os.path.join(out, "table.json"), "w", encoding="ascii") as f:
        json.dump(
            [{**row, "tc": run.spec["qdisc"]} for row, run in zip(rows, runs, strict=True)],
            f,
            indent=1,
        )
        f.write("\n")
    spec = runs[0].spec
    print(
        "\nA VoIP call (green) and 4 bulk TCP flows (blue) through 2 Mb/s, "
        f"{spec['duration'] - spec['warmup']} s; delays are one-way,\n"
        "from the packets, and include 20 ms of propagation.\n"
    )
    print(text_table(COLUMNS, rows))
    print()
    for line in findings(runs):
        print(f"* {line}")
    print(f"\n{calls.text()}")
    print(f"\nPlots and explanation: {os.path.relpath(os.path.join(out, 'index.html'))}")
    return 0
