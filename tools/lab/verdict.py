# SPDX-License-Identifier: GPL-2.0
"""From the metrics of all runs to a verdict with its interval.

A check compares, at each point of the sweep, a figure with what the claim
wants:

    value: m@arm                the mean over seeds
    each: m@arm                 the seed's value that is the farthest off
    ratio: [m@arm, m@arm]       the geometric mean of the seeds' ratios
    ratio: [a, b, c, d]         the same of a/b over c/d
    difference: [m@arm, m@arm]  the mean of the seeds' differences
    order: [m@arm, ...]         ascending means; those in a list of their own
                                may come in any order

A point holds when the figure is at least `at_least` or at most `at_most`, by
`tolerance` less or more (in the figure's own unit; for `order`: the share of
the larger mean by which a neighbour may be too large). The claim holds when
all points hold, and the row is reproduced when all its claims are, but for
those that are only reported. The interval is Student's, 95 %, over the seeds;
it is shown, it does not decide.
"""

import dataclasses
import itertools
import math

import numpy as np
from experiment import CHECKS
from scipy import stats

LEVEL = 0.95
REPRODUCED, DIFFERS, NOT_RUN = "reproduced", "differs", "not run"


def interval(values):
    """Mean and half the width of its Student interval; nan of one value."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return float(values.mean()), math.nan
    if np.ptp(values) <= 1e-12 * np.abs(values).max():  # equal, but for how they were added up
        return float(values.mean()), 0.0
    error = stats.sem(values)
    return float(values.mean()), float(error * stats.t.ppf((1 + LEVEL) / 2, len(values) - 1))


def ratio_interval(over, under):
    """Geometric mean of paired ratios with the ends of its interval; of the means if a value is not positive."""
    over, under = np.asarray(over, float), np.asarray(under, float)
    if min(over.min(), under.min()) <= 0:
        ratio = (
            float(over.mean() / under.mean())
            if under.mean()
            else math.inf
            if over.mean()
            else math.nan
        )
        return ratio, math.nan, math.nan
    m, half = interval(np.log(over / under))
    return math.exp(m), math.exp(m - half), math.exp(m + half)


@dataclasses.dataclass
class Point:
    """What a check found at one point of the sweep."""

    point: tuple
    figure: float
    low: float
    high: float
    seeds: int
    holds: bool
    text: str


@dataclasses.dataclass
class Claim:
    """A claim with what was found."""

    words: str
    wanted: str
    points: list
    missing: list
    reported: bool = False

    @property
    def verdict(self):
        if self.missing or not self.points:
            return NOT_RUN
        return REPRODUCED if all(p.holds for p in self.points) else DIFFERS

    @property
    def worst(self):
        """A point that does not hold, or else any."""
        return next(
            (p for p in self.points if not p.holds), self.points[0] if self.points else None
        )


class Table:
    """Metrics of runs: by arm, point and metric, a value for each seed."""

    def __init__(self, rows):
        self.cells = {}
        for run, metrics in rows:
            for name, value in metrics.items():
                self.cells.setdefault((run.arm, run.point, name), {})[run.seed] = value

    def paired(self, point, operands, swap):
        """Values of several operands, seed by seed, of seeds that have a value of each, and of how many seeds there are runs."""
        columns = []
        for operand in operands:
            name, _, arm = operand.partition("@")
            columns.append(self.cells.get((swap.get(arm, arm), point, name), {}))
        seeds = sorted(set.intersection(*(set(c) for c in columns)))
        rows = [[c[s] for c in columns] for s in seeds]
        rows = [
            r
            for r in rows
            if None not in r and not any(isinstance(v, float) and math.isnan(v) for v in r)
        ]
        return np.array(rows, float).T, len(seeds)


def flatten(order):
    """Groups of operands, each a list."""
    return [group if isinstance(group, list) else [group] for group in order]


def operands(check):
    """All metric@arm that a check names."""
    (kind,) = [k for k in CHECKS if k in check]
    what = check[kind]
    if kind in ("value", "each"):
        return [what]
    return [o for group in flatten(what) for o in group]


def check_claims(experiment):
    """Complain about claims that cannot be evaluated."""
    doc, arms, metrics = experiment.doc, experiment.arms, experiment.data["metrics"]
    if not experiment.data["claims"]:
        raise doc.bad(("claims",), "want at least one")
    for i, claim in enumerate(experiment.data["claims"]):
        path, check = ("claims", i, "check"), claim["check"]
        if "where" in claim:
            for run in experiment.runs(seeds=1):
                experiment.holds(claim["where"], ("claims", i, "where"), run)
        kinds = [k for k in CHECKS if k in check]
        if len(kinds) != 1:
            raise doc.bad(path, f"want one of {', '.join(CHECKS)}")
        limits = [k for k in ("at_least", "at_most", "between") if k in check]
        if len(limits) != (kinds[0] != "order"):
            raise doc.bad(
                path,
                "order takes no limit"
                if kinds[0] == "order"
                else "want one of at_least, at_most, between",
            )
        if "between" in check and len(check["between"]) != 2:
            raise doc.bad((*path, "between"), "want two numbers")
        if "between" in check and check["between"][0] > check["between"][1]:
            raise doc.bad((*path, "between"), "want the lower number first")
        if kinds[0] not in ("value", "each") and not isinstance(check[kinds[0]], list):
            raise doc.bad((*path, kinds[0]), "want a list of metric@arm")
        if kinds[0] in ("ratio", "difference") and len(check[kinds[0]]) not in (
            2,
            4 if kinds[0] == "ratio" else 2,
        ):
            raise doc.bad(
                (*path, kinds[0]),
                "want two metric@arm" + (", or four" if kinds[0] == "ratio" else ""),
            )
        for operand in operands(check):
            name, at, arm = str(operand).partition("@")
            if not at or arm not in arms:
                raise doc.bad(
                    (*path, kinds[0]),
                    f"{operand!r}: want metric@arm with an arm of {', '.join(arms)}",
                )
            if name not in metrics:
                raise doc.bad(
                    (*path, kinds[0]),
                    f"{operand!r}: no metric {name!r}; there are {', '.join(metrics)}",
                )


def judge(check, tolerance, values):
    """A figure with its interval, whether it holds, and it in words."""
    if "order" in check:
        return judge_order(flatten(check["order"]), tolerance, values)
    least, most = limits(check)
    if "each" in check:
        figure = float(max(values[0], key=lambda v: max(v - most, least - v)))
        low = high = math.nan
    elif "value" in check:
        figure, half = interval(values[0])
        low, high = figure - half, figure + half
    elif "difference" in check:
        figure, half = interval(values[0] - values[1])
        low, high = figure - half, figure + half
    else:
        over, under = (
            values[:2] if len(values) == 2 else (values[0] * values[3], values[1] * values[2])
        )
        figure, low, high = ratio_interval(over, under)
    holds = least - tolerance <= figure <= most + tolerance
    return figure, low, high, holds, words(figure, low, high)


def judge_order(groups, tolerance, values):
    """The figure is the worst step: the largest of a group over the smallest of the next.

    Its interval is that of the ratio of what two neighbours have with the same seed."""
    sizes, worst, at = [len(g) for g in groups], (-math.inf, math.nan, math.nan), 0
    for size, following in itertools.pairwise(sizes):
        here, there = values[at : at + size], values[at + size : at + size + following]
        for low in here:
            for high in there:
                step = float(low.mean() / high.mean()) if high.mean() else math.inf
                worst = max(worst, (step, *ratio_interval(low, high)[1:]))
        at += size
    means = " < ".join(f"{v.mean():.4g}" for v in values)
    return *worst, worst[0] <= 1 + tolerance, f"{means} (worst step {words(*worst)})"


def limits(check):
    if "between" in check:
        return tuple(check["between"])
    return check.get("at_least", -math.inf), check.get("at_most", math.inf)


def words(figure, low, high):
    return f"{figure:.4g}" + ("" if math.isnan(low) else f" [{low:.4g}, {high:.4g}]")


def wanted(check, tolerance):
    """The check in words."""
    if "order" in check:
        groups = [", ".join(g) for g in flatten(check["order"])]
        return f"{' < '.join(groups)} within {tolerance:g}"
    (kind,) = [k for k in CHECKS if k in check]
    what = check[kind]
    if kind in ("ratio", "difference"):
        what = {"ratio": " / ", "difference": " - "}[kind].join(what[:2])
        if len(check[kind]) == 4:
            what = f"({what}) / ({' / '.join(check[kind][2:])})"
    limit = next(
        f"{k.replace('_', ' ')} {check[k]}"
        for k in ("at_least", "at_most", "between")
        if k in check
    )
    return f"{what} {limit}, tolerance {tolerance:g}"


def evaluate(experiment, rows, swap=None, only=None):
    """The experiment's claims judged on (run, metrics) rows.

    swap: arms that stand for others; only: a condition for points."""
    table, swap, claims = Table(rows), swap or {}, []
    points = {run.point: run for run in experiment.runs(seeds=1)}
    for i, claim in enumerate(experiment.data["claims"]):
        check, tolerance = claim["check"], claim["tolerance"]
        found = Claim(
            claim["words"], wanted(check, tolerance), [], [], claim.get("reported", False)
        )
        for point, run in points.items():
            if only is not None and not experiment.holds(only, ("control", "where"), run):
                continue
            if "where" in claim and not experiment.holds(
                claim["where"], ("claims", i, "where"), run
            ):
                continue
            values, seeds = table.paired(point, operands(check), swap)
            if not seeds:
                found.missing.append(point)
            elif not values.size:  # the delay of packets of which none arrives, say
                nan = math.nan
                found.points.append(
                    Point(
                        point,
                        nan,
                        nan,
                        nan,
                        seeds,
                        False,
                        f"without a value of {' or '.join(operands(check))}",
                    )
                )
            else:
                figure, low, high, holds, text = judge(check, tolerance, values)
                if values.shape[1] < seeds:
                    text += f" (of {values.shape[1]} of {seeds} seeds)"
                found.points.append(Point(point, figure, low, high, values.shape[1], holds, text))
        claims.append(found)
    return claims


def overall(claims):
    verdicts = {c.verdict for c in claims if (c.points or c.missing) and not c.reported}
    if DIFFERS in verdicts:
        return DIFFERS
    return NOT_RUN if NOT_RUN in verdicts or not verdicts else REPRODUCED


def control(experiment, rows):
    """The claims with the control's arm in place of the real one, and whether that came out as differing.

    Only what holds of the real one can be broken."""
    if not experiment.control:
        return None
    where, swap = (
        experiment.control.get("where"),
        {experiment.control["instead_of"]: experiment.control["arm"]},
    )
    real, broken = evaluate(experiment, rows, None, where), evaluate(experiment, rows, swap, where)
    for claim, control_claim in zip(real, broken, strict=True):
        held = {p.point for p in claim.points if p.holds}
        control_claim.points = [p for p in control_claim.points if p.point in held]
    if any(c.points for c in real) and not any(c.points or c.missing for c in broken):
        return broken, REPRODUCED
    return broken, overall(broken)
