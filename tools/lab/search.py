# SPDX-License-Identifier: GPL-2.0
"""Looks for the points at which a claim fails: random ones, and the worst of them with all seeds.

`search` of an experiment file has variables with values to draw from, and which figure
ranks what was drawn: a check without its limits.
"""

import math
import random

import results
import verdict
from engine import Runner, build
from experiment import Run, show


def check(experiment):
    """What may be wrong in the file's `search`."""
    doc, spec = experiment.doc, experiment.data["search"]
    for name, values in spec["draw"].items():
        if name not in experiment.data.get("vars", {}):
            raise doc.bad(("search", "draw", name), "not among vars")
        if not values:
            raise doc.bad(("search", "draw", name), "want at least one value")
    if len(spec["rank"]) != 2:
        raise doc.bad(("search", "rank"), "want two: m@arm, m@arm")
    for name, arm in operands(experiment):
        if name not in experiment.data["metrics"] or arm not in experiment.arms:
            raise doc.bad(("search", "rank"), f"no metric and arm {name}@{arm}")


def operands(experiment):
    """Metric and arm of both: the figure is what the first has more than the second."""
    return [word.partition("@")[::2] for word in experiment.data["search"]["rank"]]


def drawn(experiment, number, seed):
    """So many different points, fewer if there are no more: the first ones are those of fewer."""
    draw = experiment.data["search"]["draw"]
    dice, found, tried = random.Random(seed), {}, set()
    all_there = math.prod(len(set(map(show, values))) for values in draw.values())
    while len(found) < number and len(tried) < all_there:
        point = {name: dice.choice(values) for name, values in draw.items()}
        name = " ".join(show(value) for value in point.values())
        if name not in tried:
            tried.add(name)
            found.setdefault(script(experiment, point, name), {"name": name, **point})
    return list(found.values())


def script(experiment, point, name):
    """What the guest does at a point: where it is the same, so is the point, whatever was drawn."""
    variables = {**experiment.data.get("vars", {}), **point, "seed": 1}
    run = Run(next(iter(experiment.arms)), (("drawn", name),), 1, tuple(variables.items()))
    return build(experiment, run).script()


def ranked(experiment, points, rows):
    """(figure, point) of those with values, the highest first."""
    values = {}
    for run, metrics in rows:
        values.setdefault(dict(run.point)["drawn"], {}).setdefault(run.arm, metrics or {})
    figures = []
    for point in points:
        got = [
            values.get(point["name"], {}).get(arm, {}).get(name)
            for name, arm in operands(experiment)
        ]
        if None not in got:
            figures.append((got[0] - got[1], point))
    return sorted(figures, key=lambda pair: -pair[0])


def search(experiment, number, seed, best, jobs, command):
    """Makes so many runs with one seed, of the two arms that rank the points, and of the `best`
    points all arms with all seeds; the Result of these, and how many claims differ there."""
    arms = dict.fromkeys(arm for _, arm in operands(experiment))
    points = drawn(experiment, max(number // len(arms), 1), seed)
    experiment.data["sweep"] = {"drawn": points}
    results.check(experiment)
    runs = [run for run in experiment.runs(1) if run.arm in arms]
    Runner(experiment, command).run_all(runs, jobs)
    figures = ranked(experiment, points, results.load(experiment, 1, exact=True).rows)
    first, second = experiment.data["search"]["rank"]
    print(f"\n{first} - {second} of {len(figures)} points, one seed, drawn with {seed}:")
    print("  " + " ".join(experiment.data["search"]["draw"]))
    for value, point in figures:
        print(f"  {value:+.4f}  {point['name']}")
    experiment.data["sweep"] = {"drawn": [point for _, point in figures[:best]]}
    Runner(experiment, command).run_all(list(experiment.runs()), jobs)
    result = results.load(experiment, exact=True)
    failed = sum(claim.verdict == verdict.DIFFERS for claim in result.claims)
    return result, failed
