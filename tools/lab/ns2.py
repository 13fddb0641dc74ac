# SPDX-License-Identifier: GPL-2.0
"""ns-2 beside our own runs: the simulator that the papers used.

An experiment's key `ns2` names a script of tools/lab/ns2 and its arguments.
It runs for each point of the sweep and each seed, on the host; what it prints,
lines of a name and a number, is kept in build/lab/ID/ns2/ with what determines
it, and becomes values of the experiment's metrics, in arms of their own. No
verdict depends on them.
"""

import concurrent.futures
import dataclasses
import functools
import json
import os
import shutil
import subprocess
import sys

import engine
from experiment import Run, Vars, calculate, seconds, show, substitute

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ns2")
COMMON = "common.tcl"


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of ns-2."""

    run: Run
    script: str
    args: tuple
    path: str  # of its file

    def stored(self):
        """What is kept of it, or None."""
        if not os.path.exists(self.path):
            return None
        with open(self.path, encoding="utf-8") as f:
            return json.load(f)

    def make(self, program):
        command = [program, os.path.join(SCRIPTS, self.script), *self.args]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        record = {
            "run": self.run.name,
            "script": self.script,
            "args": self.args,
            "ns": hash_of(program),
            "output": done.stdout,
        }
        try:
            values(record)
        except ValueError:
            done.returncode = done.returncode or 1
        if done.returncode:
            raise engine.Failed(
                f"ns {self.script} {' '.join(self.args)} failed:\n{done.stdout[-2000:].strip()}"
            )
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".tmp", "w", encoding="utf-8") as f:
            json.dump(record, f, indent=1, sort_keys=True)
        os.replace(self.path + ".tmp", self.path)


def values(record):
    """The figures that a script printed, by name."""
    return {
        name: float(value)
        for name, value in (line.split() for line in record["output"].splitlines())
    }


@functools.cache
def hash_of(path):
    with open(path, "rb") as f:
        return engine.sha256(f.read())


def arms(experiment):
    """Name and more arguments of each of ns-2's arms."""
    return experiment.data["ns2"].get("arms", {"ns-2": ""})


def check(experiment):
    """Complain about a wrong key ns2."""
    data, doc = experiment.data.get("ns2"), experiment.doc
    if data is None:
        return
    if experiment.kind != "vm":
        raise doc.bad(("ns2",), "not for a computed experiment")
    known = sorted(n for n in os.listdir(SCRIPTS) if n.endswith(".tcl") and n != COMMON)
    if data["script"] not in known:
        raise doc.bad(
            ("ns2", "script"), f"no script {data['script']!r}; there are {', '.join(known)}"
        )
    metrics = [name for name, spec in experiment.data["metrics"].items() if "expr" not in spec]
    for name in data["metrics"]:
        if name not in metrics:
            raise doc.bad(
                ("ns2", "metrics", name),
                f"no such metric, or an expression; there are {', '.join(metrics)}",
            )
    for arm in arms(experiment):
        if arm in experiment.arms:
            raise doc.bad(("ns2", "arms", arm), "is an arm of the experiment, too")
    jobs(experiment, 1)


def jobs(experiment, seeds=None):
    """All of an experiment."""
    data, result = experiment.data["ns2"], []
    digest = engine.sha256(
        "".join(hash_of(os.path.join(SCRIPTS, n)) for n in (COMMON, data["script"])).encode()
    )
    for seed in range(1, (seeds or experiment.seeds) + 1):
        for point, given in experiment.points():
            for arm, more in arms(experiment).items():
                names = {**experiment.data.get("vars", {}), **given, "seed": seed}
                run = Run(arm, point, seed, tuple(names.items()))
                times = [
                    (key, show(seconds(experiment.resolved(key, run))))
                    for key in ("duration", "warmup")
                    if experiment.get(key) is not None
                ]
                words = [
                    *arguments(experiment, run, ("ns2", "args"), data["args"]),
                    *arguments(experiment, run, ("ns2", "arms", arm), more),
                    *(word for pair in times for word in pair),
                    "seed",
                    str(seed),
                ]
                key = engine.sha256(json.dumps([digest, words]).encode())[:16]
                path = os.path.join(engine.OUT, experiment.runs_id, "ns2", f"{run.name}.{key}.json")
                result.append(Job(run, data["script"], tuple(words), path))
    return result


def arguments(experiment, run, path, text):
    """Words with the run's variables put in; they come in pairs."""
    try:
        words = substitute(text, Vars(run.vars))
    except KeyError as e:
        raise experiment.doc.bad(path, f"no variable {e.args[0]!r}") from None
    except (ValueError, TypeError, ZeroDivisionError) as e:
        raise experiment.doc.bad(path, f"{text!r}: {e}") from None
    words = str(words).split()
    if len(words) % 2:
        raise experiment.doc.bad(path, f"{text!r}: want pairs of a name and a value")
    return words


def run_all(experiment, seeds, at_a_time):
    """What is not there yet; says so where ns-2 is not."""
    program, wanted = shutil.which("ns"), jobs(experiment, seeds)
    todo = [
        job
        for job in wanted
        if not (record := job.stored()) or program and record["ns"] != hash_of(program)
    ]
    said = f"lab: {experiment.id}: {len(wanted)} runs of ns-2, {len(wanted) - len(todo)} of them there already"
    if todo and not program:
        print(f"{said}; the others are left out: no ns (Debian package ns2)", file=sys.stderr)
        return
    print(said, file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        futures = [pool.submit(job.make, program) for job in todo]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def files(experiment):
    """Paths of all that is kept of an experiment now."""
    return [job.path for job in jobs(experiment) if job.stored()]


def load(experiment, seeds=None):
    """(run, metrics) of what there is."""
    if "ns2" not in experiment.data:
        return []
    return [
        (job.run, evaluate(experiment, job.run, values(record)))
        for job in jobs(experiment, seeds)
        if (record := job.stored())
    ]


def evaluate(experiment, run, printed):
    """All metrics by name; None is what ns-2 does not give."""
    names, result, wanted = experiment.vars(run), {}, experiment.data["ns2"]["metrics"]
    for name, spec in experiment.resolved("metrics", run).items():
        result[name] = None
        if name in wanted:
            if wanted[name] not in printed:
                raise experiment.doc.bad(
                    ("ns2", "metrics", name),
                    f"no {wanted[name]!r} from ns-2; there are {', '.join(printed)}",
                )
            result[name] = printed[wanted[name]]
        elif "expr" in spec:
            try:
                result[name] = calculate(
                    str(spec["expr"]), {**{k: names[k] for k in names}, **result}
                )
            except (TypeError, ZeroDivisionError, KeyError):  # of what ns-2 does not give
                result[name] = None
    return result
