# SPDX-License-Identifier: GPL-2.0
"""Tables, figures and HTML for both parts of the demo's report."""

import base64
import html
import io
import os

# Green packets are drawn green and blue ones blue, and nothing else is. All are told apart
# by the colour-blind, too.
GREEN, BLUE = "#009e73", "#0072b2"
COLOURS = [
    "#d55e00",
    "#000000",
    "#cc79a7",
    "#e69f00",
    "#8c564b",
    "#882255",
    "#777777",
    "#b39b00",
    "#ff6f91",
    "#5e3c99",
]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto;
       padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #e4e4e4 }
th { border-bottom: 2px solid #888; font-weight: 600 }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .5em }
img { width: 100% } pre { background: #f6f6f6; padding: .8rem; overflow-x: auto;
font-size: .85rem } dt { font-weight: 600; margin-top: .6rem } dd { margin-left: 1.2rem }
.note { color: #666; font-size: .9rem } nav a { margin-right: 1.2em }
details { margin: .6rem 0 } summary { cursor: pointer; font-weight: 600 }
@media (max-width: 40rem) {
  th, td { padding: .3rem .25rem; font-size: .85rem } .more { display: none }
}
"""


def emodel_mos(delay, lost, ie=0, bpl=25.1):
    """Mean opinion score by the E-model (ITU-T G.107, as tools/voipcall/emodel.h has it).

    delay: mouth to ear, ms; lost: % of the packets, those too late among them; ie, bpl: of
    the codec, G.711 with concealment unless told otherwise."""
    r = 93.2 - 0.024 * delay - max(0.11 * (delay - 177.3), 0)
    r = min(max(r - ie - (95 - ie) * lost / (lost + bpl), 0), 100)
    return 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r)


def cell(digits, value):
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.{digits}f}"


def cells(columns, row):
    return [cell(digits, row[name]) for name, digits, _ in columns]


def text_table(columns, rows, words=2):
    """The first columns are words."""
    lines = [[name for name, _, _ in columns]] + [cells(columns, row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines = [
        "  ".join(
            c.ljust(w) if i < words else c.rjust(w)
            for i, (c, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def html_table(columns, rows, colours, more=()):
    """With a dot of its colour before each row. A phone does not show the columns `more`."""
    hidden = [' class="more"' if name in more else "" for name, _, _ in columns]
    out = ['<div class="wide"><table><tr>']
    out += [
        f'<th{c} title="{html.escape(what)}">{html.escape(name)}</th>'
        for c, (name, _, what) in zip(hidden, columns, strict=True)
    ]
    out.append("</tr>")
    for row, colour in zip(rows, colours, strict=True):
        line = [html.escape(c) for c in cells(columns, row)]
        line[0] = f'<span class="dot" style="background:{colour}"></span>{line[0]}'
        line = [f"<td{c}>{text}</td>" for c, text in zip(hidden, line, strict=True)]
        out.append("<tr>" + "".join(line) + "</tr>")
    out.append("</table></div>")
    return "\n".join(out)


def definitions(pairs):
    return (
        "<dl>"
        + "".join(f"<dt>{html.escape(n)}</dt><dd>{html.escape(t)}</dd>" for n, t in pairs)
        + "</dl>"
    )


def folded(title, text):
    """What only some want to see."""
    return f"<details><summary>{html.escape(title)}</summary>{text}</details>"


def items(lines):
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def pyplot():
    """matplotlib's, when something is drawn: the lab's list does without the package."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def new_figure(rows, columns, height, **shared):
    plt = pyplot()
    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e4e4e4",
            "axes.axisbelow": True,
            "axes.edgecolor": "#888888",
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.prop_cycle": plt.cycler(color=COLOURS),
            # letters stay letters, and the same data give the same bytes
            "svg.fonttype": "none",
            "svg.hashsalt": "abe",
        }
    )
    return plt.subplots(
        rows, columns, figsize=(10, height), squeeze=False, layout="constrained", **shared
    )


def legend_above(figure, axis):
    figure.suptitle(" ", fontsize=20)  # room for it
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(labels), frameon=False, fontsize=11)


def save(figure, path):
    """As PNG, and as SVG beside it; the first for a page that has all in it."""
    buffer = io.BytesIO()
    figure.savefig(os.path.splitext(path)[0] + ".svg", metadata={"Date": None, "Creator": None})
    # no dates and no versions in it: the same data give the same bytes
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    pyplot().close(figure)
    with open(path, "wb") as f:
        f.write(buffer.getvalue())
    return data_uri("image/png", buffer.getvalue())


def data_uri(kind, data):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
