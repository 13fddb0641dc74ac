# SPDX-License-Identifier: GPL-2.0
"""The page with everything: build/lab/index.html, self-contained."""

import html
import os
from collections import Counter

import results
from common import STYLE
from experiment import rows
from verdict import DIFFERS, NOT_RUN, REPRODUCED

MORE_STYLE = """
.reproduced { color: #007a55 } .differs { color: #b34700 } .not { color: #777 }
.verdict { font-weight: 600 } details { margin: .6rem 0 } td, th { white-space: nowrap }
.wide { overflow-x: auto } section { border-top: 1px solid #ccc; margin-top: 2.4rem }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
"""
e = html.escape


def badge(verdict, text=None):
    return f'<span class="verdict {verdict.split()[0]}">{e(text or verdict)}</span>'


def overview(entries):
    """One line a row, by where its claims come from."""
    out, group = [], None
    for (title, ident, claim), result in entries:
        if title != group:
            out.append(("</table>" if group else "") + f"<h2>{e(title)}</h2><table>")
            group = title
        state = result.summary() if result else "not run: no experiment"
        link = f'<a href="#{ident}">{ident}</a>' if result else ident
        verdict = result.shown if result else NOT_RUN
        out.append(
            f'<tr><td>{link}</td><td style="white-space:normal">{e(claim)}</td><td>{badge(verdict, state)}</td></tr>'
        )
    return "\n".join([*out, "</table>"])


def claim_rows(result, claim):
    """A claim: its words, what was wanted, each point's figure."""
    out = [
        f'<tr><td style="white-space:normal">{e(claim.words)}<br><span class="note">{e(claim.wanted)}</span></td>'
    ]
    lines = [
        f"{badge(REPRODUCED if p.holds else DIFFERS, '✓' if p.holds else '✗')} {e(p.text)} "
        f'<span class="note">{e(" ".join(f"{k} {v}" for k, v in p.point))}{"" if result.experiment.kind == "computed" else f" n={p.seeds}"}</span>'
        for p in claim.points
    ]
    out.append(
        f"<td>{'<br>'.join(lines) or '-'}</td><td>{badge(NOT_RUN if result.few else claim.verdict, result.word(claim))}{'<br>only reported' * claim.reported}</td></tr>"
    )
    return "".join(out)


def metrics_table(result):
    head, body = result.table()
    cells = ["<tr>" + "".join(f"<th>{e(c)}</th>" for c in head) + "</tr>"]
    cells += ["<tr>" + "".join(f"<td>{e(c)}</td>" for c in row) + "</tr>" for row in body]
    return f'<div class="wide"><table>{"".join(cells)}</table></div>'


def section(result):
    """Everything about one experiment."""
    x = result.experiment
    out = [
        f'<section id="{x.id}"><h2>{x.id} {badge(result.shown, result.summary())}</h2>',
        f"<p><b>{e(x.data.get('paper', 'ours'))}:</b> {e(x.data['claim'])}</p>",
    ]
    if "notes" in x.data:
        out.append(f'<p class="note">{e(x.data["notes"])}</p>')
    if result.draw():
        out.append(f'<img alt="{x.id}" src="{result.image}">')
    out.append(
        "<table><tr><th>claim</th><th>found [95 % interval over seeds]</th><th>verdict</th></tr>"
    )
    out += [claim_rows(result, c) for c in result.claims]
    out.append("</table>")
    if "cause" in x.data and result.shown == DIFFERS:
        out.append(f"<p><b>Cause:</b> {e(x.data['cause'])}</p>")
    if result.control:
        out.append(f"<p>{e(result.control_words())}. {e(x.control.get('why', ''))}</p>")
    if result.rows:
        out.append(
            f"<details><summary>all metrics, mean ± half of the interval</summary>{metrics_table(result)}</details>"
        )
    if result.beside:
        out.append(
            '<p class="note">Arms named ns-2 are the same points in that simulator; no verdict depends on them.</p>'
        )
    about = "; ".join(f"{k} {v}" for k, v in (result.about or {}).items())
    out.append(
        f'<p class="note">To run it: <code>make lab EXP={x.id}</code>, or tools/lab/lab run {x.id}. '
        f"{e(about)}</p></section>"
    )
    return "\n".join(out)


def make(experiments, out):
    """Write the page; its path."""
    loaded = [results.load(x) if x else None for x in experiments]
    entries = list(zip(rows(), loaded, strict=True))
    counts = Counter(r.shown if r else NOT_RUN for r in loaded)
    tally = ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items()))
    body = [
        (
            f"<h1>The lab: what the papers claim, and what comes out</h1><p>{tally}. Each row runs the real modules on a "
            "stock Debian kernel in virtual time; the same seed gives the same packets. A point holds (✓) when its "
            "mean over the seeds is within the tolerance that stands in the experiment's file; a claim is "
            "reproduced when all its points hold, a row when all its claims are.</p>"
        ),
        overview(entries),
    ]
    body += [section(r) for r in loaded if r]
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "index.html")
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>The lab</title><style>{STYLE}{MORE_STYLE}'
            f"</style><body>{''.join(body)}</body></html>\n"
        )
    return path
