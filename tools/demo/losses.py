# SPDX-License-Identifier: GPL-2.0
"""The demo's second part: calls over DCCP and bulk TCP on a lossy path."""

import html
import json
import os

import numpy as np
from common import COLOURS, definitions, folded, html_table, items, new_figure, save, text_table
from matplotlib.patches import Patch

# Label, colour, meaning.
CCIDS = {
    4: (
        "CCID 4",
        COLOURS[1],
        (
            "TFRC for small packets, RFC 5622: the rate of a TCP with large packets, less what "
            "headers take of it."
        ),
    ),
    249: (
        "CCID 249",
        COLOURS[2],
        ("virtual packets in packet mode: losses count once they make up a packet of 1460 bytes."),
    ),
    3: (
        "CCID 3",
        COLOURS[0],
        (
            "TFRC as the kernel has it, unchanged: so many packets as TCP would send, however small "
            "they are."
        ),
    ),
}
TCP = ("TCP", COLOURS[6], "iperf3 with CUBIC and full-size packets.")

COLUMNS = [
    ("loss", 0, "share of the packets that the path loses, each by itself"),
    ("flow", 0, "a call's congestion control, or TCP"),
    (
        "broken",
        0,
        (
            "calls that broke off, or ended without the listener's report: nothing was "
            "heard for 15 s. The other figures are means over the rest"
        ),
    ),
    ("sent kb/s", 1, "RTP packets, with their headers of 12 bytes but no lower ones"),
    ("got kb/s", 1, "the same, received; for TCP, goodput of a flow"),
    ("unsent %", 1, "of the frames of speech: the congestion control had no room for them"),
    ("lost %", 1, "of the frames of speech: lost on the path"),
    ("late %", 1, "of the frames of speech: received too late for the listener's playout buffer"),
    ("median ms", 1, "one-way delay of half of the packets, with 50 ms of propagation"),
    ("99 % ms", 1, "of 99 % of them"),
    ("R", 0, "rating factor of the E-model, 0 to 93: a model, nobody has listened"),
    ("MOS", 2, "mean opinion score by the same model, 1 to 4.5"),
]

# What a phone does not show.
MORE = ("sent kb/s", "unsent %", "lost %", "late %", "R")

# Fate of the frames, from the bottom of the bar.
FATES = (("heard", 1.0), ("late %", 0.55), ("lost %", 0.3), ("unsent %", 0.1))

WIRE_HEADERS = 36  # of IPv4 and DCCP


def mean(values):
    return float(np.mean(values)) if values else None


class Calls:
    """The calls of one run with one CCID."""

    def __init__(self, ccid, reports):
        self.ccid = ccid
        self.label, self.colour, _ = CCIDS[ccid]
        self.number = len(reports)
        self.whole = [r for r in reports if not r["failure"] and r["far_end"]]

    def _mean(self, figure):
        return mean([figure(r) for r in self.whole])

    def row(self):
        def share(r, name):
            frames = r["sent"]["packets"] + r["sent"]["not_sent"]
            return 100 * r["far_end"]["received"][name] / frames

        return {
            "flow": self.label,
            "broken": f"{self.number - len(self.whole)} of {self.number}",
            "sent kb/s": self._mean(lambda r: r["sent"]["bytes"] * 8e-3 / r["duration"]),
            "got kb/s": self._mean(
                lambda r: r["far_end"]["received"]["bytes"] * 8e-3 / r["duration"]
            ),
            "unsent %": self._mean(lambda r: share(r, "not_sent")),
            "lost %": self._mean(lambda r: share(r, "lost")),
            "late %": self._mean(lambda r: share(r, "late")),
            "median ms": self._mean(lambda r: r["far_end"]["delay_ms"]["median"]),
            "99 % ms": self._mean(lambda r: r["far_end"]["delay_ms"]["p99"]),
            "R": self._mean(lambda r: r["far_end"]["r"]),
            "MOS": self._mean(lambda r: r["far_end"]["mos"]),
        }


class Run:
    """One run: all flows at one loss rate."""

    def __init__(self, path):
        with open(path, encoding="ascii") as f:
            data = json.load(f)
        self.spec, self.commands = data["spec"], data["commands"]
        self.loss = f"{100 * self.spec['loss']:g} %"
        self.calls = [
            Calls(n, [r for r in data["calls"] if r["ccid"] == n]) for n in self.spec["ccids"]
        ]
        self.tcp = data["tcp_goodput"] / data["tcp_flows"] / 1e3

    def rows(self):
        empty = dict.fromkeys(name for name, _, _ in COLUMNS)
        rows = [{**empty, **calls.row()} for calls in self.calls]
        rows.append({**empty, "flow": TCP[0], "got kb/s": self.tcp})
        return [{**row, "loss": self.loss} for row in rows]


class Losses:
    """The second part of the report."""

    def __init__(self, out, names):
        self.runs = [Run(os.path.join(out, "raw", name, "result.json")) for name in names]
        self.rows = [row for run in self.runs for row in run.rows()]
        self.spec = self.runs[0].spec
        self.image = save(self.plot(), os.path.join(out, "calls.png"))
        with open(os.path.join(out, "calls.json"), "w", encoding="ascii") as f:
            json.dump(self.rows, f, indent=1)
            f.write("\n")

    def plot(self):
        figure, axes = new_figure(1, 2, 4.6)
        for i, run in enumerate(self.runs):
            for j, calls in enumerate(run.calls):
                if calls.whole:
                    self._bar(axes[0], i * (len(run.calls) + 1) + j, calls)
        middle = [
            i * (len(run.calls) + 1) + (len(run.calls) - 1) / 2 for i, run in enumerate(self.runs)
        ]
        for axis in axes[0]:
            axis.set_xticks(middle, [run.loss for run in self.runs])
            axis.set_xlabel("lost on the path")
            axis.grid(visible=False, axis="x")
        fates, delay = axes[0]
        fates.set_title("frames: heard, late, lost, not sent (from dark to light)")
        fates.set_ylim(0, 100)
        fates.set_ylabel("share of the speech, %")
        delay.set_title("one-way delay: median, and up to 99 %")
        delay.set_ylim(bottom=0)
        delay.set_ylabel("ms (50 is propagation)")
        figure.suptitle(" ", fontsize=20)  # room for the legend
        handles = [Patch(color=c.colour, label=c.label) for c in self.runs[0].calls]
        figure.legend(
            handles=handles, loc="upper center", ncol=len(handles), frameon=False, fontsize=11
        )
        return figure

    @staticmethod
    def _bar(axes, at, calls):
        row, bottom = calls.row(), 0
        row["heard"] = 100 - row["late %"] - row["lost %"] - row["unsent %"]
        for name, strength in FATES:
            axes[0].bar(at, row[name], 0.85, bottom, color=calls.colour, alpha=strength, lw=0)
            bottom += row[name]
        axes[1].bar(at, row["median ms"], 0.85, color=calls.colour, lw=0)
        axes[1].vlines(at, row["median ms"], row["99 % ms"], color=calls.colour, lw=2)

    def findings(self):
        def per_cent(value):
            return "-" if value is None else f"{value:.1f} %"

        run = self.runs[-1]
        rows = {c.ccid: c.row() for c in run.calls}
        first = {c.ccid: c.row() for c in self.runs[0].calls}
        unsent = {n: per_cent(r["unsent %"]) for n, r in rows.items()}
        late = {n: per_cent(r["late %"]) for n, r in first.items()}
        wire = max(r["sent kb/s"] or 0 for r in self.rows) * (172 + WIRE_HEADERS) / 172
        tcp = ", ".join(f"{r.tcp:.0f}" for r in self.runs)
        return [
            (
                f"At {run.loss} loss, CCID 4 leaves {unsent[4]} of the speech unsent and CCID 249 "
                f"{unsent[249]}; stock CCID 3 {unsent[3]}, and {rows[3]['broken']} of its calls broke "
                "off."
            ),
            (
                f"That is no more than TCP takes: a flow of it gets {tcp} kb/s at the loss rates "
                f"above, and a call is at most {wire:.0f} kb/s with its headers."
            ),
            (
                "After a loss event a sender that sends all it has must slow down for a round trip "
                "(RFC 5348, 4.3). So some packets come a packet time later than the others, and the "
                f"adaptive playout buffer plays on without some of them: at {self.runs[0].loss} loss "
                f"{late[4]} with CCID 4, and {late[249]} with CCID 249, which sees fewer loss events."
            ),
        ]

    def text(self):
        call = self.runs[0].calls[0]
        return "\n".join(
            [
                (
                    f"{call.number} calls (G.711, {self.spec['duration']} s) with each congestion control "
                    "and 4 TCP flows, over a path"
                ),
                "that loses packets at random; round trip 100 ms; kb/s are of one call or flow.\n",
                text_table(COLUMNS, self.rows),
                "",
                *(f"* {line}" for line in self.findings()),
            ]
        )

    def html(self):
        colours = [c for run in self.runs for c in (*(x.colour for x in run.calls), TCP[1])]
        call = self.runs[0].calls[0]
        return f"""<h1 id="dccp">Calls over DCCP, and TCP, on a path that loses packets</h1>
<p>{call.number} calls with each of three congestion controls (G.711: 50 packets a second of 172
bytes, voipcall, one way) and 4 CUBIC flows of iperf3. Each packet towards the listener is lost
with the same probability; nothing is lost on the way back, and nothing queues. So the flows do not
feel each other, and TCP tells what a fair rate is. The round trip is 100 ms.</p>
{items(self.findings())}
{html_table(COLUMNS, self.rows, colours, MORE)}
<p class="note">{self.spec["duration"]} s, all of it counted for the calls, and without the first
{self.spec["warmup"]} s for TCP. Figures are means over the calls or flows. The playout buffer is
adaptive: with a fixed one of 60 ms (voipcall --playout 60) hardly a packet of CCIDs 4 and 249 is
late, and at 5 % many of CCID 3's are.</p>
<img alt="What became of the frames, and their delay, for each loss rate and congestion control"
 src="{self.image}">
"""

    @staticmethod
    def meanings():
        meanings = [(label, text) for label, _, text in (*CCIDS.values(), TCP)]
        return definitions(meanings) + definitions((name, text) for name, _, text in COLUMNS)

    def commands(self):
        lines = [*self.runs[0].commands[:-1], *(run.commands[-1] for run in self.runs)]
        return folded("The lossy path's commands", f"<pre>{html.escape(chr(10).join(lines))}</pre>")
