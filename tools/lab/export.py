# SPDX-License-Identifier: GPL-2.0
"""Metrics, ns-2's too, and samples as CSV, and time series of each run in Flent's format."""

import csv
import datetime
import gzip
import itertools
import json
import os

import engine
from metrics import RunData


def export(result):
    """Write all files; their paths."""
    out = os.path.join(engine.OUT, result.experiment.id, "export")
    os.makedirs(out, exist_ok=True)
    yield metrics_csv(result, os.path.join(out, "metrics.csv"))
    for run in filter(result.has, result.manifests):
        series = time_series(RunData(result.read(run)))
        if series:
            yield samples_csv(series, os.path.join(out, f"{run.name}.csv"))
            yield flent(result, run, series, os.path.join(out, f"{run.name}.flent.gz"))


def metrics_csv(result, path):
    names = list(dict.fromkeys(name for _, metrics in result.rows for name in metrics))
    labels = [key for key, _ in result.rows[0][0].point]
    with open(path, "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f)
        writer.writerow([*labels, "arm", "seed", *names])
        for run, metrics in [*result.rows, *result.beside]:
            writer.writerow(
                [*(v for _, v in run.point), run.arm, run.seed, *(metrics.get(n) for n in names)]
            )
    return path


def numbers(qdisc, prefix=""):
    """All numbers of tc's JSON by their paths."""
    for key, value in qdisc.items():
        if isinstance(value, dict):
            yield from numbers(value, f"{prefix}{key}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield prefix + key, value


def time_series(data):
    """Time, and by "link path" a value for each sample. Links are sampled one after the other: to the first's times."""
    columns, times = {}, []
    for link, samples in data.samples.items():
        samples = samples[:-1]
        times = times or [s["time"] for s in samples]
        for i, s in enumerate(samples[: len(times)]):
            for path, value in numbers(s["qdisc"]):
                columns.setdefault(f"{link} {path}", [None] * len(times))[i] = value
    return (times, columns) if times else None


def samples_csv(series, path):
    times, columns = series
    with open(path, "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["time", *columns])
        writer.writerows(zip(times, *columns.values(), strict=True))
    return path


# Flent's names for what its test qdisc-stats shows, units, and paths here whose values are
# added; counters are told by sample.
QDISC_STATS = {
    "backlog_pkts": ("packets", False, ("qlen",)),
    "backlog_bytes": ("bytes", False, ("backlog",)),
    "dropped": ("packets", True, ("drops",)),
    "ecn_mark": ("packets", True, ("marked", "ecn_mark", "green.marks", "blue.marks")),
}


def qdisc_stats(columns):
    """Of the first link the series that Flent has plots for, by their names, with units."""
    link = next(iter(columns)).rpartition(" ")[0]
    for name, (units, counter, paths) in QDISC_STATS.items():
        found = [columns[f"{link} {path}"] for path in paths if f"{link} {path}" in columns]
        values = [None if None in parts else sum(parts) for parts in zip(*found, strict=True)]
        if counter:
            values = [
                None if None in pair else pair[1] - pair[0]
                for pair in itertools.pairwise([*values[:1], *values])
            ]
        if values:
            yield f"qdisc-stats::{name}", units, values


def flent(result, run, series, path):
    """Flent's data file, version 4: x values, results by name, metadata.

    For Flent it is of its test qdisc-stats: it opens no file of a test that it does not have."""
    times, columns = series
    units = dict.fromkeys(columns, "")
    columns, raw = dict(columns), {}
    start = datetime.datetime.fromisoformat(result.manifests[run]["date"]).timestamp()
    for name, unit, values in list(qdisc_stats(columns)):
        columns[name], units[name] = values, unit
        # without any Flent takes the file for empty
        raw[name] = [
            {"t": start + t, "val": v} for t, v in zip(times, values, strict=True) if v is not None
        ]
    manifest = result.manifests[run]
    date = manifest["date"].replace("Z", ".000000Z")
    metadata = {
        "NAME": "qdisc-stats",
        "TITLE": f"{result.experiment.id} {run.name}",
        "DATA_FILENAME": os.path.basename(path),
        "TIME": date,
        "T0": date,
        "LENGTH": times[-1],
        "STEP_SIZE": times[-1] / max(len(times) - 1, 1),
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": manifest["kernel"],
        "NOTE": manifest["command"],
        "SERIES_META": {name: {"UNITS": unit, "MEAN_VALUE": None} for name, unit in units.items()},
        "HOST": "vm",
        "LOCAL_HOST": "vm",
        "HOSTS": ["vm"],
        "TEST_PARAMETERS": dict(run.vars),
        "BATCH_NAME": result.experiment.id,
    }
    data = {
        "version": 4,
        "metadata": metadata,
        "x_values": times,
        "results": columns,
        "raw_values": raw,
    }
    with open(path, "wb") as f, gzip.GzipFile("", "wb", fileobj=f, mtime=0) as z:
        z.write(json.dumps(data, sort_keys=True).encode())
    return path
