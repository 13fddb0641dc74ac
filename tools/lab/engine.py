# SPDX-License-Identifier: GPL-2.0
"""Runs in VMs, and the raw data that they leave.

What determines a run is its script, its seed, and the bytes of the kernel,
modules, plugin, programs and VM scripts, and of the packages in build/userland,
which has QEMU and the rest of the guest. These are copied to a bench, so that
nobody changes them under a running lab, and their hash is the run's key. A
run whose raw data are there under the same key is not repeated.

Raw data are JSON lines, xz-compressed; nothing of the host is in them, so the
same key gives the same bytes. What the host had to do with it is in the
manifest beside.
"""

import concurrent.futures
import csv
import functools
import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from experiment import seconds
from world import FIRST_INDEX, World

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.environ.get("LAB_OUT", os.path.join(TOP, "build/lab"))
KERNEL = "6.1"
PINNED = os.path.join(TOP, "build/userland/bin")
PACKED = os.path.join(TOP, "tools/lab/results")

# What every guest needs of ours; programs and modules lose their debugging information,
# which changes with every comment and with the folder, as tools/testbed/vm/mkinitramfs has it.
BENCH = [
    "tools/testbed/vm/run",
    "tools/testbed/vm/mkinitramfs",
    "tools/testbed/vm/init",
    "build/guest/tc/q_abe.so",
    "build/guest/bin/abeload",
    f"build/modules/{KERNEL}/sch_abe.ko",
]


# Modules that only those guests have which need them, and where they are.
ADDED = {
    f"build/modules/{KERNEL}/{os.path.basename(path)}": path
    for path in (
        f"build/modules/dualpi2-{KERNEL}/sch_dualpi2.ko",
        *(
            f"build/kernels/{KERNEL}/modules/kernel/{name}.ko"
            for name in ("net/xfrm/xfrm_user", "crypto/authenc", "crypto/echainiv", "crypto/ecb")
        ),
    )
}


# From which these and what flows need are made.
SOURCES = (
    "kernel",
    "ccid",
    "tc",
    "tools/testbed/traffic",
    "tools/testbed/vm",
    "tools/lab/bpf",
    "tools/voipcall",
)


# Of a manifest, what runs have in common.
BUILD = ("command", "commit", "compiler", "files", "kernel", "qemu", "tc")


class Failed(Exception):
    """A run, or what it needs, is not there or went wrong."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def output(*command):
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=TOP)
    return done.stdout.strip()


@functools.cache
class Bench:
    """A copy of all files that a run depends on, and their hashes. needs: files beyond those of BENCH."""

    def __init__(self, needs=()):
        names = [*BENCH, *needs]
        if any("dualpi2" in ADDED.get(name, "") for name in names):
            # Linux has it since 6.17; what is there and new enough stays
            command = [os.path.join(TOP, "tools/testbed/dualpi2/build"), KERNEL]
            if subprocess.run(command, check=False).returncode:
                raise Failed("sch_dualpi2 could not be built")
        for name in [*names, f"build/kernels/{KERNEL}/vmlinux", "build/userland/packages"]:
            if not os.path.exists(os.path.join(TOP, ADDED.get(name, name))):
                raise Failed(f'{name} is missing: run "make vm-files"')
        os.makedirs(OUT, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OUT) as tmp:
            self.files = {name: self._copy(name, tmp) for name in names}
            for name, path in (
                ("vmlinux", f"build/kernels/{KERNEL}/vmlinux"),
                ("userland", "build/userland/packages"),
            ):
                with open(os.path.join(TOP, path), "rb") as f:
                    self.files[name] = hashlib.file_digest(f, "sha256").hexdigest()
            for name in ("build/kernels", "build/userland"):
                os.symlink(os.path.join(TOP, name), os.path.join(tmp, name))
            self.hash = sha256(json.dumps(self.files, sort_keys=True).encode())[:16]
            self.path = os.path.join(OUT, ".bench", self.hash)
            if not os.path.exists(self.path):
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                shutil.copytree(tmp, self.path, symlinks=True)

    @staticmethod
    def _copy(name, tmp):
        source, target = os.path.join(TOP, ADDED.get(name, name)), os.path.join(tmp, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if name.startswith("build/"):
            subprocess.run(
                [
                    os.path.join(PINNED, "strip"),
                    "--strip-debug",
                    "--remove-section=.note.gnu.build-id",
                    "-o",
                    target,
                    source,
                ],
                check=True,
            )
        else:
            shutil.copy(source, target)
        with open(target, "rb") as f:
            return sha256(f.read())

    @functools.cache  # noqa: B019 one for each set of files
    def manifest(self):
        """What made the files: for readers, not for the key."""
        with open(os.path.join(TOP, f"build/kernels/{KERNEL}/release"), encoding="ascii") as f:
            release = f.read().strip()
        dirty = output("git", "status", "--porcelain", *SOURCES)
        return {
            "kernel": release,
            "commit": output("git", "rev-parse", "HEAD") + ("+" if dirty else ""),
            "compiler": output(f"{PINNED}/gcc-12", "--version").splitlines()[0],
            "tc": output(f"{PINNED}/tc", "-V"),
            "qemu": output(f"{PINNED}/qemu-system-x86_64", "--version").splitlines()[0],
            "files": self.files,
        }


def metrics_hash(experiment):
    return sha256(json.dumps(experiment.data["metrics"], sort_keys=True).encode())[:16]


def kept_metrics(experiment, manifest):
    """Metrics that came with the manifest, if they are those of the file now."""
    kept = manifest.get("metrics", {}).get(experiment.id, {})
    return kept["values"] if kept.get("of") == metrics_hash(experiment) else None


class Store:
    """Raw data of one experiment."""

    def __init__(self, ident):
        self.path = os.path.join(OUT, ident)
        self._listed = None
        self.packed = os.path.join(PACKED, f"{ident}.jsonl")
        if os.path.exists(self.packed):
            self._unpack()

    def file(self, run, key, suffix):
        return os.path.join(self.path, f"{run.name}.{key}{suffix}")

    def stored(self, run):
        """Manifests of all raw data under the run's name, newest first."""
        found = []
        for path in self.listed().get(run.name, []):
            with open(path, encoding="utf-8") as f:
                manifest = json.load(f)
            found.append((manifest["date"], os.stat(path).st_mtime_ns, manifest))
        return [manifest for *_, manifest in sorted(found, key=lambda x: x[:2], reverse=True)]

    def listed(self):
        """Paths of the manifests of each run that has any."""
        if self._listed is None:
            self._listed = {}
            for name in os.listdir(self.path) if os.path.isdir(self.path) else []:
                if name.endswith(".json"):
                    path = os.path.join(self.path, name)
                    self._listed.setdefault(name.rsplit(".", 2)[0], []).append(path)
        return self._listed

    def of_script(self, run, script):
        """Manifests of the run as it is now, by whatever files, newest first."""
        return [m for m in self.stored(run) if m["script"] == sha256(script.encode())]

    def has(self, run, key):
        """The run's raw data are there."""
        return os.path.exists(self.file(run, key, ".json")) and os.path.exists(
            self.file(run, key, ".jsonl.xz")
        )

    def usable(self, experiment, run, manifest):
        """There are raw data, or metrics as the file now has them."""
        return self.has(run, manifest["key"]) or kept_metrics(experiment, manifest) is not None

    def read(self, run, key):
        with lzma.open(self.file(run, key, ".jsonl.xz"), "rt", encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def write(self, run, key, records, manifest):
        """The manifest comes last: without it the raw data do not count."""
        text = "".join(json.dumps(r, sort_keys=True, separators=(",", ":")) + "\n" for r in records)
        self._put(
            os.path.basename(self.file(run, key, ".jsonl.xz")),
            lzma.compress(text.encode(), preset=6),
        )
        self._put(
            os.path.basename(self.file(run, key, ".json")),
            json.dumps(manifest, indent=1, sort_keys=True).encode(),
        )

    def _put(self, name, data):
        """All of a file or nothing."""
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".tmp", "wb") as f:
            f.write(data)
        os.replace(path + ".tmp", path)
        self._listed = None

    def pack(self, kept, beside=()):
        """Keep (run, manifest) as text, which git keeps: a line a run, its metrics in it, not its raw data.

        What many runs have in common, such as the files that they were made with, is a line
        of its own, before the first that names it. beside: paths of ns-2's runs. Returns the
        path."""
        os.makedirs(PACKED, exist_ok=True)
        lines, builds = [], {}
        for run, manifest in sorted(kept, key=lambda pair: pair[0].name):
            build = {key: manifest[key] for key in BUILD if key in manifest}
            name = sha256(json.dumps(build, sort_keys=True).encode())[:12]
            if name not in builds:
                builds[name] = build
                lines.append({"build": name, **build})
            rest = {key: value for key, value in manifest.items() if key not in BUILD}
            lines.append({"run": run.name, "by": name, **rest})
        for path in sorted(beside):
            with open(path, encoding="utf-8") as f:
                lines.append({"ns2": os.path.basename(path), **json.load(f)})
        with open(self.packed + ".tmp", "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line, sort_keys=True) + "\n" for line in lines)
        os.replace(self.packed + ".tmp", self.packed)
        return self.packed

    def _unpack(self):
        """What git has and we have not; once for each state of the file."""
        with open(self.packed, "rb") as f:
            text = f.read()
        state, stamp = sha256(text).encode(), os.path.join(self.path, ".unpacked")
        if os.path.exists(stamp):
            with open(stamp, "rb") as f:
                if f.read() == state:
                    return
        builds = {}
        for line in map(json.loads, text.splitlines()):
            if "build" in line:
                builds[line.pop("build")] = line
                continue
            if "ns2" in line:
                name = os.path.join("ns2", line.pop("ns2"))
            else:
                name = f"{line.pop('run')}.{line['key']}.json"
                line.update(builds[line.pop("by")])
            if not os.path.exists(os.path.join(self.path, name)):
                self._put(name, json.dumps(line, indent=1, sort_keys=True).encode())
        self._put(".unpacked", state)


# ---- from the guest's files to records


def histogram(values):
    """[upper edge in us, packets] of bins 2 % wide."""
    edges = np.ceil(1.02 ** np.ceil(np.log(np.maximum(values, 1)) / np.log(1.02)))
    return [
        [int(edge), int(n)] for edge, n in zip(*np.unique(edges, return_counts=True), strict=True)
    ]


def flow_record(report):
    """A sink's report of a UDP flow, its packets turned into a histogram."""
    raw = report.pop("raw", None)
    if raw:
        report["delay_histogram"] = histogram(raw["delay_us"])
    return report


def series(path, start):
    """The samples of abesample: as tc's, but each value by its column's name."""
    with open(path, encoding="ascii", newline="") as f:
        rows = csv.DictReader(f)
        return [
            {
                "time": round(float(row.pop("time")) - start, 6),
                "qdisc": {k: float(v) for k, v in row.items() if v},
            }
            for row in rows
        ]


def tc_text(path):
    """What tc -j has written; of a qdisc newer than itself it says so where its options would be."""
    with open(path, encoding="ascii") as f:
        return re.sub(r"\[Unknown qdisc, optlen=\d+\] ?", "", f.read())


def qdisc_samples(out, name, start):
    """The samples of a queue: time since the start, and tc's own words."""
    if os.path.exists(f"{out}/series.{name}"):
        return series(f"{out}/series.{name}", start)
    with open(f"{out}/when.{name}", encoding="ascii") as f:
        when = [float(line) for line in f]
    text = tc_text(f"{out}/samples.{name}")
    decoder, at, result = json.JSONDecoder(), 0, []
    for moment in when:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            break
        qdiscs, at = decoder.raw_decode(text, at)
        result.append({"time": round(moment - start, 6), "qdisc": tested(qdiscs)})
    return result


def dccp_record(report, flow):
    """dccpload's report of a flow's connections as a sink's; packets and lost are of the whole run."""
    flows = [
        {
            **f,
            "flow": flow["id"] + i,
            "goodput": 8 * f["bytes"] / report["seconds"],
            "seconds": report["seconds"],
            "arrived": f["packets"],
            "packets": f["rx_packets"],
            "lost": f["rx_lost"],
        }
        for i, f in enumerate(report["flows"])
    ]
    return {"window": report["seconds"], "ccid": report["ccid"], "dccp": flows}


def call_record(reports, flow):
    """The callers' reports of calls as a sink's: what the listener got; null delays are not there."""
    calls = []
    for i, report in enumerate(reports):
        far = report["far_end"] or {
            "received": {"packets": 0, "bytes": 0, "lost": 0, "late": 0, "ce": 0},
            "delay_ms": {},
        }
        got = far["received"]
        calls.append(
            {
                "flow": flow["id"] + i,
                "failure": report["failure"],
                "sent": report["sent"]["packets"],
                "not_sent": report["sent"]["not_sent"],
                **{k: got[k] for k in ("packets", "bytes", "lost", "late", "ce")},
                "goodput": 8 * got["bytes"] / report["duration"] if report["duration"] else 0.0,
                "delay_us": {k: 1e3 * v for k, v in far["delay_ms"].items() if v is not None},
                "jitter_us": 1e3 * (far.get("jitter_ms") or 0),
                **{k: far[k] for k in ("effective_loss", "r", "mos") if far.get(k) is not None},
            }
        )
    return {"call": calls}


def loss_record(out, name, when, start):
    """ablossy's counts of a link, and when that was."""
    with open(f"{out}/loss.{name}.{when}", encoding="ascii") as f:
        time, counts = round(float(f.readline()) - start, 6), json.load(f)
    for flow in counts.get("flows", []):
        flow.pop("bins", None)
    return {"when": when, "time": time, "counts": counts}


def bins_record(world, out, d, up):
    """What came to a link's end in each bin, by flow; up: seconds of the guest's clock when the run began."""
    with open(f"{out}/bins.{d.at}.{d.to}", encoding="ascii") as f:
        counts = json.load(f)
    if counts["unbinned"]:
        raise Failed(f"{d.name}: {counts['unbinned']} packets had no bin: too many flows or bins")
    flows = []
    for flow in counts["flows"]:
        # what answers another way, and pings, is nobody's
        name = "from" in flow and world.flow_of(flow["proto"], flow["from"], flow["to"])
        if name:
            packets, size = zip(*flow["bins"], strict=True)
            flows.append({"of": name, "packets": packets, "bytes": size})
    return {
        "record": "bins",
        "link": d.name,
        "start": round(counts["origin"] - up, 6),
        "bin": counts["bin"],
        "flows": flows,
    }


def packet_records(path, links, start):
    """By link what became of each packet of its queue: columns, of which wait_ns is 0 of those dropped."""
    records = {
        index: {
            "record": "packets",
            "link": name,
            "time": [],
            "what": [],
            "colour": [],
            "len": [],
            "wait_ns": [],
        }
        for index, name in links.items()
    }
    with open(path, encoding="ascii", newline="") as f:
        for row in csv.DictReader(f):
            if record := records.get(int(row["ifindex"])):
                record["time"].append(round(float(row["time"]) - start, 6))
                record["what"].append(row["what"])
                record["colour"].append(row["colour"])
                record["len"].append(int(row["len"]))
                record["wait_ns"].append(int(row["sojourn_ns"]))
    return list(records.values())


def tested(qdiscs):
    """The queue under test among a device's qdiscs, without its options."""
    found = next((q for q in qdiscs if q.get("handle") == "10:"), {})
    return {
        k: v for k, v in found.items() if k not in ("options", "handle", "parent", "root", "refcnt")
    }


def instructions(out):
    """Of the guest while the traffic ran, to 10 million: in its time one takes 1 ns, and it knows when it is idle."""
    with open(f"{out}/uptime", encoding="ascii") as f:
        (up, idle), (up_end, idle_end) = [map(float, line.split()) for line in f]
    return round((up_end - up - (idle_end - idle)) * 1e9)


def collect(world, run, out):
    """All records of a run from the guest's /out."""
    records = [
        {
            "record": "run",
            "instructions": instructions(out),
            "arm": run.arm,
            "point": dict(run.point),
            "seed": run.seed,
            "vars": dict(run.vars),
            "duration": world.duration,
            "warmup": world.warmup,
            "flows": world.flows,
        }
    ]
    with open(f"{out}/start", encoding="ascii") as f:
        start = float(f.read())
    for node in world.sinks():
        with open(f"{out}/recv.{node}", encoding="ascii") as f:
            report = json.load(f)
        for kind in ("udp", "aimd"):
            report[kind] = [flow_record(r) for r in report[kind]]
        records.append({"record": "sink", "node": node, **report})
    for name in world.dccp():
        with open(f"{out}/dccp.{name}", encoding="ascii") as f:
            records.append(
                {
                    "record": "sink",
                    "node": world.flows[name]["to"],
                    **dccp_record(json.load(f), world.flows[name]),
                }
            )
    for name, calls in world.calls().items():
        reports = []
        for i in range(len(calls)):
            with open(f"{out}/call.{name}.{i}", encoding="utf-8") as f:
                reports.append(json.loads(f.read().splitlines()[-1]))
        records.append(
            {
                "record": "sink",
                "node": world.flows[name]["to"],
                "window": world.duration - world.warmup,
                **call_record(reports, world.flows[name]),
            }
        )
    for name in world.sources():
        with open(f"{out}/sent.{name}", encoding="ascii") as f:
            report = json.load(f)
        if "cwnd" in report:
            report["cwnd"]["start"] = round(report["cwnd"]["start"] - start, 6)
        records.append({"record": "source", "flow": name, **report})
    for d in world.holed():
        with open(f"{out}/holes.{d.at}.{d.to}", encoding="ascii") as f:
            records.append({"record": "holes", "link": d.name, **json.load(f)})
    if world.binned():
        with open(f"{out}/uptime", encoding="ascii") as f:
            up = float(f.readline().split()[0])
        records += [bins_record(world, out, d, up) for d in world.binned()]
    if world.traced():
        records += packet_records(
            f"{out}/packets", {FIRST_INDEX + i: d.name for i, d in enumerate(world.traced())}, start
        )
    for d in world.lossy():
        records += [
            {"record": "loss", "link": d.name, **loss_record(out, f"{d.at}.{d.to}", when, start)}
            for when in ("warm", "end")
        ]
    for d in world.sampled():
        name = f"{d.at}.{d.to}"
        for s in qdisc_samples(out, name, start):
            records.append({"record": "sample", "link": d.name, **s})
        qdiscs = json.loads(tc_text(f"{out}/final.{name}"))
        records.append(
            {
                "record": "final",
                "link": d.name,
                "qdisc": tested(qdiscs),
                "all": [{k: q[k] for k in ("kind", "handle", "options") if k in q} for q in qdiscs],
            }
        )
    return records


# ---- running


def build(experiment, run):
    """The world of a run."""
    sample = experiment.resolved("sample", run) if "sample" in experiment.data else None
    world = World(
        experiment.doc,
        experiment.resolved("world", run),
        experiment.resolved("flows", run),
        sample,
        seconds(experiment.resolved("duration", run)) if experiment.get("duration") else 60.0,
        seconds(experiment.resolved("warmup", run))
        if experiment.get("warmup") is not None
        else 0.0,
        run.seed,
    )
    if world.warmup >= world.duration:
        raise experiment.doc.bad(
            ("warmup",), f"{world.warmup:g} s leave nothing of {world.duration:g} s"
        )
    return world


def key_of(bench, script, run):
    return sha256(f"{bench.hash}\n{run.seed}\n{script}".encode())[:16]


def why_again(manifests, bench, script):
    """What is new since raw data of the same name were stored, in words."""
    if not manifests:
        return "not yet run"
    old = manifests[0]
    changed = [name for name, h in bench.files.items() if old["files"].get(name) != h]
    if old["script"] != sha256(script.encode()):
        changed.append("the experiment's world, flows or sampling")
    return "changed since: " + ", ".join(
        changed or ["the metrics, of which git keeps those of before"]
    )


class Progress:
    """A line about how far all runs are, on a terminal over and over."""

    def __init__(self, ident, total, jobs):
        self.ident, self.total, self.jobs = ident, total, jobs
        self.done, self.spent, self.start = 0, 0.0, time.monotonic()
        self.tty, self.lock = sys.stderr.isatty(), threading.Lock()

    def finished(self, run, took):
        with self.lock:
            self.done += 1
            self.spent += took
            left = self.spent / self.done * (self.total - self.done) / min(self.jobs, self.total)
            begin = "\r\033[K" if self.tty else ""
            end = "" if self.tty and self.done < self.total else "\n"
            print(
                f"{begin}lab: {self.ident}: {self.done} of {self.total} runs, {run.name} took {took:.0f} s, "
                f"{left / 60:.1f} min left",
                end=end,
                file=sys.stderr,
                flush=True,
            )


class Runner:
    """Boots the VMs of one experiment; ends them when one fails or we are interrupted."""

    def __init__(self, experiment, command):
        self.experiment, self.command = experiment, command
        self.store = Store(experiment.runs_id)
        self.vms, self.stopped = set(), False

    def stop(self):
        self.stopped = True
        for vm in list(self.vms):
            vm.terminate()

    def run(self, run, world, script, bench, key):
        if self.stopped:
            return
        began = time.monotonic()
        with tempfile.TemporaryDirectory(dir=OUT) as out:
            command = [
                f"{bench.path}/tools/testbed/vm/run",
                "--exact",
                "--bare",
                f"--saved={OUT}/.saved",
                "--kernel",
                KERNEL,
                "--seed",
                str(run.seed),
                "--timeout",
                str(600 + 20 * world.duration),
                "--out",
                out,
                "--",
                "bash",
                "-c",
                script,
            ]
            with subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as vm:
                self.vms.add(vm)
                if self.stopped:  # since the question above
                    vm.terminate()
                said = vm.stdout.read()
            self.vms.discard(vm)
            if self.stopped:
                return
            if vm.returncode:
                raise Failed(
                    f"{self.experiment.id}: run {run.name} failed (exit {vm.returncode}):\n"
                    f"{said[-2000:].strip()}"
                )
            records = collect(world, run, out)
        took = time.monotonic() - began
        self.store.write(
            run,
            key,
            records,
            {
                **bench.manifest(),
                "run": run.name,
                "key": key,
                "seed": run.seed,
                "script": sha256(script.encode()),
                "command": self.command,
                "took": round(took, 1),
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "options": [r["all"] for r in records if r["record"] == "final"],
            },
        )
        self.progress.finished(run, took)

    def run_all(self, runs, jobs, any_build=False):
        """Those of the runs that are not there yet; returns how many were. any_build: whatever modules made them."""
        todo, reasons = [], {}
        for run in runs:
            world = build(self.experiment, run)
            script = world.script()
            bench = Bench(world.needs())
            key = key_of(bench, script, run)
            if not any(
                any_build or m["key"] == key
                for m in self.store.of_script(run, script)
                if self.store.usable(self.experiment, run, m)
            ):
                todo.append((run, world, script, bench, key))
                reason = why_again(self.store.stored(run), bench, script)
                reasons[reason] = reasons.get(reason, 0) + 1
        print(
            f"lab: {self.experiment.id}: {len(runs)} runs, {len(runs) - len(todo)} of them there already"
            + "".join(f"; {n} {why}" for why, n in reasons.items()),
            file=sys.stderr,
        )
        self.progress = Progress(self.experiment.id, len(todo), jobs)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self.run, *job) for job in todo]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:
                self.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return len(runs) - len(todo)
