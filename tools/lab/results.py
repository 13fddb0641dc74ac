# SPDX-License-Identifier: GPL-2.0
"""An experiment's runs, metrics and verdicts together, for terminal and page."""

import json
import math
import os

import common
import engine
import metrics
import ns2
import verdict
from verdict import DIFFERS, NOT_RUN, REPRODUCED


def check(experiment):
    """All that can be known to be wrong before a run."""
    metrics.check_metrics(experiment)
    verdict.check_claims(experiment)
    ns2.check(experiment)
    check_plots(experiment)
    for key in ("seeds", "duration", "warmup"):
        if key in experiment.data and experiment.kind == "computed":
            raise experiment.doc.bad((key,), "not for a computed experiment")
    if experiment.kind == "vm":
        for run in experiment.runs(seeds=1):
            engine.build(experiment, run)
            experiment.resolved("metrics", run)


TOO_FEW = "too few runs to judge"
PLOTS = os.path.join(engine.TOP, "Documentation/plots")

# what each kind of panel cannot do without
PANELS = {"line": ("x", "y"), "bar": ("y",), "time": ("path",), "cdf": ("flows",), "gaps": ()}


def listed(value):
    return value if isinstance(value, list) else [value]


def check_plots(experiment):
    doc, known = experiment.doc, experiment.data["metrics"]
    for i, panel in enumerate(experiment.data.get("plot", [])):
        kind = panel.get("kind", "line")
        for key in PANELS[kind]:
            if key not in panel:
                raise doc.bad(("plot", i), f"the key {key} is missing, for a {kind}")
        names = listed(panel.get("y", []))
        for what, key, given, there in (
            ("metric", "y", names, known),
            ("arm", "arms", panel.get("arms", []), experiment.arms),
            ("flows", "flows", listed(panel.get("flows", [])), experiment.data.get("flows", {})),
        ):
            for name in given:
                if name not in there:
                    raise doc.bad(
                        ("plot", i, key), f"no {what} {str(name)!r}; there are {', '.join(there)}"
                    )
        if len(panel.get("labels", names)) != len(names):
            raise doc.bad(("plot", i, "labels"), f"want {len(names)}, as many as y")
        if "paper" in panel and panel["paper"] not in experiment.data.get("vars", {}):
            raise doc.bad(("plot", i, "paper"), f"no variable {panel['paper']!r}")
        for run in experiment.runs(seeds=1):
            if kind == "line" and panel["x"] not in {**experiment.vars(run), **dict(run.point)}:
                raise doc.bad(("plot", i, "x"), f"no variable {panel['x']!r}")
            if "where" in panel:
                experiment.holds(panel["where"], ("plot", i, "where"), run)


def summary_path(experiment):
    return os.path.join(
        engine.OUT, experiment.id, "quick.json" if experiment.quick else "summary.json"
    )


def measured(experiment, seeds, exact):
    """(run, metrics, manifest) of the runs whose raw data are there.

    exact: made with the files of now; else the newest of the same world, flows
    and sampling."""
    store, result = engine.Store(experiment.runs_id), []
    for run in experiment.runs(seeds):
        if run.name not in store.listed():
            continue
        world = engine.build(experiment, run)
        script = world.script()
        same = [
            m
            for m in store.of_script(run, script)
            if store.usable(experiment, run, m)
            and (not exact or m["key"] == engine.key_of(engine.Bench(world.needs()), script, run))
        ]
        if same:
            found = (
                metrics.evaluate(experiment, run, store.read(run, same[0]["key"]))
                if store.has(run, same[0]["key"])
                else engine.kept_metrics(experiment, same[0])
            )
            result.append((run, found, same[0]))
    return result


def pack(found):
    """Keep what these experiments, which have the same runs, got from them; the archive's path, and how many runs."""
    runs = {}
    for e in found:
        for run, values, manifest in measured(e, None, False):
            kept = runs.setdefault(run, {k: v for k, v in manifest.items() if k != "metrics"})
            if kept["key"] == manifest["key"]:
                kept.setdefault("metrics", {})[e.id] = {
                    "of": engine.metrics_hash(e),
                    "values": values,
                }
    beside = dict.fromkeys(path for e in found if "ns2" in e.data for path in ns2.files(e))
    return engine.Store(found[0].runs_id).pack(list(runs.items()), beside), len(runs)


def load(experiment, seeds=None, exact=False):
    """The Result from raw data."""
    if experiment.kind == "computed":
        import computed

        rows = [
            (run, computed.FUNCTIONS[experiment.data["compute"]](experiment.vars(run)))
            for run in experiment.runs(1)
        ]
        return Result(experiment, rows, {})
    found = measured(experiment, seeds, exact)
    if found:
        result = Result(
            experiment,
            [(run, m) for run, m, _ in found],
            {run: manifest for run, _, manifest in found},
            ns2.load(experiment, seeds),
        )
        result.save(summary_path(experiment))
        return result
    return Result(experiment, [], {})


def figure(value):
    return "-" if value is None or math.isnan(value) else f"{value:.4g}"


class Result:
    """Rows of (run, metrics), and what the claims make of them; those of ns-2 are only shown beside."""

    def __init__(self, experiment, rows, manifests, beside=()):
        self.experiment, self.rows, self.manifests, self.beside = (
            experiment,
            rows,
            manifests,
            beside,
        )
        self.claims = verdict.evaluate(experiment, rows)
        self.verdict = verdict.overall(self.claims)
        self.control = verdict.control(experiment, rows)
        self.seeds = len({run.seed for run, _ in rows})
        newest = max(manifests.values(), key=lambda m: m["date"], default=None)
        self.about = newest and {
            k: newest[k] for k in ("kernel", "commit", "compiler", "tc", "qemu", "date")
        }
        commits = sorted({m["commit"] for m in manifests.values()})
        if len(commits) > 1:
            self.about["commit"] = " and ".join(commits)

    @property
    def blind(self):
        """The control was run and came out as if nothing were broken."""
        return bool(self.control) and self.control[1] == REPRODUCED

    def control_words(self):
        if not self.control:
            return None
        state = {
            DIFFERS: "differs, as it must",
            NOT_RUN: "not run",
            REPRODUCED: "reproduced: the claims do not notice what is broken",
        }[self.control[1]]
        broken = [c.words for c in self.control[0] if c.verdict == DIFFERS]
        return f"control {self.experiment.control['arm']}: {state}" + (
            f" ({broken[0]})" if broken else ""
        )

    @property
    def few(self):
        """One seed: it is told what came out, and no verdict."""
        return self.experiment.kind == "vm" and self.seeds == 1

    @property
    def shown(self):
        """The verdict, as far as there is one."""
        return NOT_RUN if self.few else self.verdict

    def word(self, claim):
        """Of one claim."""
        if self.few and claim.verdict != NOT_RUN:
            return "holds" if claim.verdict == REPRODUCED else "does not hold"
        return claim.verdict

    def summary(self):
        if not self.rows:
            return NOT_RUN
        if self.few and self.verdict != NOT_RUN:
            return TOO_FEW
        text = self.verdict
        wanted = self.experiment.seeds
        if self.seeds < wanted and self.verdict != NOT_RUN:
            text += f", {self.seeds} of {wanted} seeds"
        return text

    def has(self, run):
        """Its raw data are there, not just its metrics."""
        return engine.Store(self.experiment.runs_id).has(run, self.manifests[run]["key"])

    def read(self, run):
        return engine.Store(self.experiment.runs_id).read(run, self.manifests[run]["key"])

    def save(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = {
            "id": self.experiment.id,
            "seeds": self.seeds,
            "about": self.about,
            "verdict": self.verdict,
            "runs": [[run.arm, run.point, run.seed, m] for run, m in self.rows],
        }
        with open(path, "w", encoding="utf-8") as f:
            head, runs = {k: v for k, v in data.items() if k != "runs"}, data["runs"]
            f.write(json.dumps(head, indent=1, sort_keys=True)[:-2] + ',\n "runs": [\n')
            f.write(",\n".join(json.dumps(r, sort_keys=True) for r in runs) + "\n]}\n")

    # ---- the table: a line an arm and point, a column a metric

    def table(self):
        names = (
            list(self.experiment.data["metrics"])
            if self.experiment.kind == "vm"
            else list(dict.fromkeys(name for _, m in self.rows for name in m))
        )
        lines = {}
        for run, values in [*self.rows, *self.beside]:
            lines.setdefault((run.point, run.arm), []).append(values)
        head = [*(key for key, _ in next(iter(lines))[0]), "arm", *names]
        body, points = [], list(dict.fromkeys(point for point, _ in lines))
        for (point, arm), runs in sorted(lines.items(), key=lambda line: points.index(line[0][0])):
            row = [label for _, label in point] + [arm]
            for name in names:
                values = [r[name] for r in runs if r.get(name) is not None]
                mean, half = verdict.interval(values) if values else (None, math.nan)
                row.append(figure(mean) + ("" if math.isnan(half) else f" ±{half:.2g}"))
            body.append(row)
        return head, body

    def text(self):
        e = self.experiment
        lines = [
            f"\n{e.id}: {e.data['claim']}"
            + (f"  ({e.data['paper']})" if "paper" in e.data else ""),
            "",
        ]
        if not self.rows:
            return "\n".join([*lines, "not run"])
        head, body = self.table()
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines += [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
            for row in (head, *body)
        ]
        lines.append(
            f"\nmeans ± half of the 95 % interval over {self.seeds} seed{'s' if self.seeds > 1 else ''}\n"
        )
        for claim in self.claims:
            if (
                claim.points or claim.missing
            ):  # else it is for points that the short form leaves out
                lines += self.claim_lines(claim, self.word(claim))
        lines.append(f"\n{e.id}: {self.summary()}" + (" (quick)" if e.quick else ""))
        if self.verdict == DIFFERS and "cause" in e.data and not self.few:
            lines.append(f"  cause: {e.data['cause']}")
        if self.control:
            lines.append(self.control_words())
        return "\n".join(lines)

    @staticmethod
    def claim_lines(claim, word):
        lines = [
            f"  {word}{', only reported' * claim.reported}: {claim.words}",
            f"      wanted {claim.wanted}",
        ]
        if len(claim.points) > 1:
            lines[-1] += (
                f"; holds at {sum(p.holds for p in claim.points)} of {len(claim.points)} points"
            )
        shown = [p for p in claim.points if not p.holds] or claim.points[:1]
        for p in shown:
            where = " ".join(f"{k} {v}" for k, v in p.point)
            lines.append(
                f"      {'found' if p.holds else 'NOT'} {p.text}"
                + (f" at {where}" if where else "")
            )
        return lines

    def draw(self):
        """The plot's path; None without raw data, or if the file asks for none.

        Where a panel needs raw data and there are none, it is the picture that git keeps."""
        if not self.rows or self.experiment.kind == "vm" and not self.manifests:
            return None
        import plot

        kept = os.path.join(PLOTS, f"{self.experiment.id}.svg")
        if plot.needs_raw(self.experiment) and not any(self.has(run) for run, _ in self.rows):
            if not os.path.exists(kept):
                return None
            with open(kept, "rb") as f:
                self.image = common.data_uri("image/svg+xml", f.read())
            return kept

        path = os.path.join(
            engine.OUT, self.experiment.id, "quick.png" if self.experiment.quick else "plot.png"
        )
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.image = plot.draw(self.experiment, self.rows, self, path)
        return path if self.image else None
