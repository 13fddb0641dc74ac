# SPDX-License-Identifier: GPL-2.0
"""Experiment files: reading with line numbers, checking, expanding to runs.

A file is read twice: as it is, for its structure, and then for each run with
its ${...} replaced, for its values. Every complaint names file, line, key and
what was expected.
"""

import ast
import dataclasses
import itertools
import operator
import os
import re

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
EXPERIMENTS = os.path.join(HERE, "experiments")

UNITS = {
    "rate": {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9},
    "time": {"us": 1e-6, "ms": 1e-3, "s": 1},
}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Bad(Exception):
    """Something wrong in a file; str() has file and line."""

    def __init__(self, where, text):
        super().__init__(f"{where}: {text}")


class Doc:
    """A YAML file as plain data, with the line of each key path."""

    def __init__(self, path):
        self.path = path
        self.lines = {(): 1}
        with open(path, encoding="utf-8") as f:
            text = f.read()
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
        except yaml.YAMLError as e:
            mark = getattr(e, "problem_mark", None)
            raise Bad(
                f"{self.name}:{mark.line + 1 if mark else 1}",
                f"not YAML: {getattr(e, 'problem', e)}",
            ) from None
        if node is None:
            raise Bad(f"{self.name}:1", "empty: want an experiment")
        self.data = self._plain(loader, node, ())

    @property
    def name(self):
        return os.path.relpath(self.path)

    def where(self, path):
        """file:line of a key path, or of the nearest one above it."""
        path = tuple(path)
        while path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines[path]}"

    def bad(self, path, text):
        key = ".".join(str(p) for p in path)
        return Bad(self.where(path), f"{key}: {text}" if key else text)

    def _plain(self, loader, node, path):
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self._plain(loader, n, (*path, i)) for i, n in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return loader.construct_object(node)
        result = {}
        for key_node, value in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise Bad(
                    f"{self.name}:{key_node.start_mark.line + 1}", "want a plain word as a key"
                )
            key = key_node.value  # as written: "on" is no boolean here
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            if key in result:
                raise self.bad((*path, key), "the key is there twice")
            result[key] = self._plain(loader, value, (*path, key))
        return result


# ---- values


def quantity(kind, value):
    """A number of bit/s or seconds, from 5mbit, 20ms or a plain number; None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return float(value)
    match = re.fullmatch(r"([0-9.]+(?:e-?[0-9]+)?)\s*([a-z]+)", str(value))
    if not match or match[2] not in UNITS[kind]:
        return None
    try:
        return float(match[1]) * UNITS[kind][match[2]]
    except ValueError:
        return None


def seconds(value):
    return quantity("time", value)


def calculate(text, names):
    """The value of an arithmetic expression with names; KeyError, ValueError."""

    def value(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return node.value
        if isinstance(node, ast.Name):
            return names[node.id]
        if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.IfExp):
            return value(node.body) if value(node.test) else value(node.orelse)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
            return OPERATORS[type(node.ops[0])](value(node.left), value(node.comparators[0]))
        raise ValueError(f"not arithmetic: {ast.unparse(node)}")

    try:
        result = value(ast.parse(text.strip(), mode="eval").body)
        return int(result) if isinstance(result, bool) else result
    except SyntaxError:
        raise ValueError(f"not arithmetic: {text.strip()}") from None


class Vars(dict):
    """Variables whose values may name others."""

    def __init__(self, given):
        super().__init__(given)
        self.busy = set()

    def __getitem__(self, name):
        if name in self.busy:
            raise ValueError(f"{name} depends on itself")
        self.busy.add(name)
        try:
            return substitute(super().__getitem__(name), self)
        finally:
            self.busy.discard(name)


def show(value):
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def substitute(value, names):
    """Value with ${...} replaced; a string that is one ${...} becomes what that is."""
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\$\{([^}]*)\}", value)
    if whole:
        return calculate(whole[1], names)
    return re.sub(r"\$\{([^}]*)\}", lambda m: show(calculate(m[1], names)), value)


# ---- what a file may say; "!" marks what must be there, ANY any key


def text(value):
    return None if isinstance(value, str) and value.strip() else "want text"


def name(value):
    return (
        None
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", str(value))
        else "want a name: letters, digits, _"
    )


def node(value):
    good = isinstance(value, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,12}", value)
    return None if good else "want a node's name: a letter, then up to 12 letters, digits, _"


def integer(value):
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    # arithmetic gives 6.0 where 6 is meant
    good = good or isinstance(value, float) and value >= 0 and value == int(value)
    return None if good else "want an integer, 0 or more"


def positive(value):
    return None if not integer(value) and value >= 1 else "want an integer, 1 or more"


def no_less(value):
    return number(value) or (None if value >= 0 else "want a number, 0 or more")


def number(value):
    return (
        None if isinstance(value, (int, float)) and not isinstance(value, bool) else "want a number"
    )


def scalar(value):
    return None if isinstance(value, (str, int, float)) else "want a number or text"


def flag(value):
    return None if isinstance(value, bool) else "want true or false"


def words(value):
    return None if isinstance(value, str) else "want words"


def time(value):
    return None if seconds(value) is not None else "want a time: 20ms, 0.5s, or a number of seconds"


def interval(value):
    return time(value) or (None if seconds(value) > 0 else "want a time above 0")


def rate(value):
    return None if quantity("rate", value) is not None else "want a rate: 5mbit, 64kbit"


def one_of(*words):
    return lambda value: None if value in words else f"want one of {', '.join(map(str, words))}"


def anything(value):
    return None


def expression(value):
    """Checked where it is evaluated, with its names."""
    return None if isinstance(value, (str, int, float)) else "want an expression"


ANY = "*"
KINDS = ("udp", "pareto", "tcp", "aimd", "web", "dccp", "call")
DIRECTION = {
    "rate": rate,
    "delay": time,
    "queue": text,
    "limit": integer,
    "changes": [text],
    "filter": words,
    "loss": text,
    "shaper": one_of("tbf", "htb"),
}
CHECKS = ("value", "each", "ratio", "difference", "order")
SCHEMA = {
    "id!": text,
    "runs_of": text,
    "paper": text,
    "claim!": text,
    "kind": one_of("vm", "computed"),
    "hidden": flag,
    "notes": text,
    "cause": text,
    "world": {
        "mtu": integer,
        "sysctl": {ANY: scalar},
        "route": text,
        "profile": text,
        "profiles": {ANY: text},
        "links!": [
            {"repeat": integer, "between!": [node], "mtu": integer, "back": DIRECTION, **DIRECTION}
        ],
        "tunnels": [{"between!": [node], "kind!": one_of("none", "ipip", "fou", "esp")}],
    },
    "flows": {
        ANY: {
            "repeat": integer,
            "of": text,  # of: set by repeat
            "kind!": one_of(*KINDS),
            "from!": node,
            "to!": node,
            "count": integer,
            "colour": one_of("green", "blue"),
            "dscp": integer,
            "ecn": integer,
            "cc": text,
            "size": integer,
            "pps": number,
            "poisson": flag,
            "jitter": time,
            "start": time,
            "stop": time,
            "cwnd_interval": time,
            "on": time,
            "off": time,
            "shape": number,
            "model": one_of("surge", "requests", "webtraf"),
            "body": text,
            "tail": text,
            "size_max": number,
            "objects": scalar,
            "pause": scalar,
            "gap": time,
            "ccid": integer,
            "vary": flag,
            "intervals": flag,
            "options": text,
            "codec": text,
            "ptime": integer,
            "playout": integer,
        }
    },
    "vars": {ANY: scalar},
    "arms": {ANY: {ANY: scalar}},
    "sweep": {ANY: [anything]},
    "seeds": positive,
    "duration": time,
    "warmup": time,
    "quick": {"duration": time, "warmup": time, "seeds": positive, "sweep": {ANY: [anything]}},
    "sample": {
        "every": interval,
        "links": [text],
        "holes": [text],
        "bins": [text],
        "every_bin": interval,
        "packets": [text],
        "with": one_of("tc", "abesample"),
        "series": time,
        "rtp_window": time,
        "spread_window": time,
    },
    "search": {"draw!": {ANY: [anything]}, "rank!": [text]},
    "compute": text,
    "ns2": {"script!": text, "args!": words, "arms": {ANY: words}, "metrics!": {ANY: text}},
    "metrics!": {ANY: {ANY: anything}},
    "claims!": [
        {
            "words!": text,
            "check!": {
                **{c: anything for c in CHECKS},
                "at_least": number,
                "at_most": number,
                "between": [number],
            },
            "tolerance!": no_less,
            "where": expression,
            "reported": flag,
        }
    ],
    "control": {"arm!": text, "instead_of!": text, "why": text, "where": expression},
    "names": {ANY: text},
    "plot": [
        {
            "kind": one_of("line", "bar", "time", "cdf", "gaps"),
            "title": text,
            "x": text,
            "y": anything,
            "labels": [text],
            "xlabel": text,
            "ylabel": text,
            "logx": flag,
            "logy": flag,
            "scale": number,
            "paper": text,
            "flows": anything,
            "link": text,
            "path": text,
            "where": expression,
            "arms": [text],
        }
    ],
}


RUNS = (
    "kind",
    "world",
    "flows",
    "vars",
    "arms",
    "sweep",
    "seeds",
    "duration",
    "warmup",
    "sample",
    "quick",
    "control",
)


def check(doc, data, schema, path=(), raw=True):
    """Raise Bad if data is not as the schema wants. raw: ${...} may stand for anything."""
    if isinstance(schema, dict):
        check_mapping(doc, data, schema, path, raw)
    elif isinstance(schema, list):
        if not isinstance(data, list):
            raise doc.bad(path, "want a list")
        for i, item in enumerate(data):
            check(doc, item, schema[0], (*path, i), raw)
    elif not (raw and isinstance(data, str) and "${" in data):
        complaint = schema(data)
        if complaint:
            raise doc.bad(path, f"{data!r}: {complaint}")


def check_mapping(doc, data, schema, path, raw):
    known = {k.rstrip("!"): s for k, s in schema.items()}
    if not isinstance(data, dict):
        raise doc.bad(
            path, f"want a mapping with {', '.join(k for k in known if k != ANY) or 'names'}"
        )
    for key, value in data.items():
        if key not in known and ANY not in known:
            raise doc.bad((*path, key), f"unknown key; known are {', '.join(known)}")
        check(doc, value, known.get(key, known.get(ANY)), (*path, key), raw)
    for key in schema:
        if key.endswith("!") and key[:-1] not in data:
            raise doc.bad(path, f"the key {key[:-1]} is missing")


# ---- runs


@dataclasses.dataclass(frozen=True)
class Run:
    """One run: an arm at a point of the sweep with a seed."""

    arm: str
    point: tuple  # pairs of name and label, in the file's order
    seed: int
    vars: tuple  # all variables, as pairs

    @property
    def name(self):
        words = [self.arm, *(f"{k}-{v}" for k, v in self.point), f"s{self.seed}"]
        return re.sub(r"[^A-Za-z0-9_.+=-]", "_", "_".join(words))


class Experiment:
    """A checked experiment file."""

    def __init__(self, path, quick=False):
        self.doc = Doc(path)
        self.data = self.doc.data
        self.quick = quick
        check(self.doc, self.data, SCHEMA)
        self._borrow(path)
        self.id = self.data["id"]
        if self.id != os.path.basename(path).removesuffix(".yaml"):
            raise self.doc.bad(("id",), f"{self.id!r}: want the file's name without .yaml")
        self.kind = self.data.get("kind", "vm")
        for key in ("world", "flows", "arms") if self.kind == "vm" else ("compute",):
            if key not in self.data:
                raise self.doc.bad((), f"the key {key} is missing")
        self.arms = self.data.get("arms", {"computed": {}})
        self.control = self.data.get("control")
        self._check_names()

    def _borrow(self, path):
        """runs_of: everything about runs is another file's."""
        self.runs_id = self.data.get("runs_of", self.data["id"])
        self.runs_control = self.data.get("control")
        if self.runs_id == self.data["id"]:
            return
        path = os.path.join(os.path.dirname(path), self.runs_id + ".yaml")
        if not os.path.exists(path):
            raise self.doc.bad(("runs_of",), f"no file {self.runs_id}.yaml")
        base = Doc(path)
        check(base, base.data, SCHEMA)
        self.runs_control = base.data.get("control")
        for key in RUNS:
            if key == "control" and key in self.data:
                continue
            if key in self.data:
                raise self.doc.bad((key,), f"is that of {self.runs_id}, whose runs these are")
            if key in base.data:
                self.data[key] = base.data[key]
        self.data["names"] = {**base.data.get("names", {}), **self.data.get("names", {})}

    def words(self, arm):
        """What an arm is called where people read."""
        named = self.data.get("names", {}).get(arm, arm.replace("_", " "))
        broken = self.control and arm == self.control["arm"]
        # some controls are what other claims are about
        judged = re.findall(r"@(\w+)", str([claim["check"] for claim in self.data["claims"]]))
        return f"control: {named}" if broken and arm not in judged else named

    def get(self, key, default=None):
        """A key, or what `quick` says instead."""
        if self.quick and key in self.data.get("quick", {}):
            return self.data["quick"][key]
        return self.data.get(key, default)

    @property
    def seeds(self):
        if self.kind == "computed":
            return 1
        return (
            self.data.get("quick", {}).get("seeds", 2) if self.quick else self.data.get("seeds", 10)
        )

    def _check_names(self):
        """Arms, variables and sweeps that other parts name."""
        known = set(self.data.get("vars", {})) | {"seed"}
        for arm, given in self.arms.items():
            for key in given:
                if key not in known:
                    raise self.doc.bad(("arms", arm, key), "not among vars")
        for where in (("sweep",), ("quick", "sweep")):
            sweep = self.data
            for key in where:
                sweep = sweep.get(key, {})
            for key, values in sweep.items():
                self._check_sweep((*where, key), key, values, known)
        for arm in self.data.get("names", {}):
            if arm not in self.arms and arm not in self.data.get("ns2", {}).get("arms", {}):
                raise self.doc.bad(("names", arm), f"no such arm; there are {', '.join(self.arms)}")
        if self.control:
            for key in ("arm", "instead_of"):
                if self.control[key] not in self.arms:
                    raise self.doc.bad(
                        ("control", key),
                        f"no arm {self.control[key]!r}; there are {', '.join(self.arms)}",
                    )

    def _check_sweep(self, path, key, values, known):
        if not values:
            raise self.doc.bad(path, "want at least one value")
        for i, value in enumerate(values):
            if not isinstance(value, dict):
                if key not in known:
                    raise self.doc.bad(path, "not among vars")
                continue
            if "name" not in value:
                raise self.doc.bad((*path, i), "the key name is missing")
            for name in value:
                if name != "name" and name not in known:
                    raise self.doc.bad((*path, i, name), "not among vars")

    def points(self):
        """Points of the sweep: pairs of (labels, variables)."""
        axes = []
        for key, values in (self.get("sweep") or {}).items():
            axes.append(
                [
                    ((key, str(v["name"])), {k: x for k, x in v.items() if k != "name"})
                    if isinstance(v, dict)
                    else ((key, show(v)), {key: v})
                    for v in values
                ]
            )
        for combination in itertools.product(*axes):
            variables = {}
            for _, given in combination:
                variables.update(given)
            yield tuple(label for label, _ in combination), variables

    def runs(self, seeds=None, arm=None):
        """All runs, seed by seed, so that early ones already compare the arms."""
        for seed in range(1, (seeds or self.seeds) + 1):
            for point, given in self.points():
                for name, changes in self.arms.items():
                    variables = {**self.data.get("vars", {}), **given, **changes, "seed": seed}
                    run = Run(name, point, seed, tuple(variables.items()))
                    if arm in (None, name) and self._wanted(run):
                        yield run

    def _wanted(self, run):
        """The control may be for some points only."""
        control = self.runs_control or {}
        return (
            control.get("arm") != run.arm
            or "where" not in control
            or self.holds(control["where"], ("control", "where"), run)
        )

    def vars(self, run):
        return Vars(run.vars)

    def resolved(self, key, run, extra=None):
        """A part of the file with the run's variables put in, checked."""
        names = self.vars(run)
        names.update(extra or {})
        data = self._resolve(self.get(key), names, (key,))
        schema = {k.rstrip("!"): s for k, s in SCHEMA.items()}[key]
        check(self.doc, data, schema, (key,), raw=False)
        return data

    def _resolve(self, data, names, path):
        if isinstance(data, dict):
            result = {}
            for key, value in data.items():
                if isinstance(value, dict) and "repeat" in value:
                    result.update(
                        {
                            f"{key}{i}": {**copy, "of": key}
                            for i, copy in enumerate(self._repeated(value, names, (*path, key)), 1)
                        }
                    )
                else:
                    result[key] = self._resolve(value, names, (*path, key))
            return result
        if isinstance(data, list):
            return [
                one
                for i, value in enumerate(data)
                for one in (
                    self._repeated(value, names, (*path, i))
                    if isinstance(value, dict) and "repeat" in value
                    else [self._resolve(value, names, (*path, i))]
                )
            ]
        try:
            return substitute(data, names)
        except KeyError as e:
            raise self.doc.bad(
                path, f"no variable {e.args[0]!r}; there are {', '.join(sorted(names))}"
            ) from None
        except (ValueError, TypeError, ZeroDivisionError) as e:
            raise self.doc.bad(path, f"{data!r}: {e}") from None

    def _repeated(self, data, names, path):
        """As many copies as the key repeat says, with i from 1 on."""
        count = self._resolve(data["repeat"], names, (*path, "repeat"))
        complaint = integer(count)
        if complaint:
            raise self.doc.bad((*path, "repeat"), f"{count!r}: {complaint}")
        rest = {k: v for k, v in data.items() if k != "repeat"}
        return [
            self._resolve(rest, Vars({**names, "i": i}), path) for i in range(1, int(count) + 1)
        ]

    def holds(self, expr, path, run):
        """The value of a condition on the run's variables and labels."""
        names = self.vars(run)
        names.update({k: v for k, v in run.point if k not in names})
        try:
            return bool(calculate(str(expr), names))
        except KeyError as e:
            raise self.doc.bad(path, f"no variable {e.args[0]!r}") from None
        except (ValueError, TypeError) as e:
            raise self.doc.bad(path, str(e)) from None


def find(ident, quick=False):
    """The experiment of that ID; KeyError if there is none."""
    path = os.path.join(EXPERIMENTS, f"{ident}.yaml")
    if not re.fullmatch(r"[a-z0-9-]+", ident) or not os.path.exists(path):
        raise KeyError(ident)
    return Experiment(path, quick)


def rows():
    """All rows, run or not: a list of (group, id, claim)."""
    with open(os.path.join(HERE, "rows.yaml"), encoding="utf-8") as f:
        data = yaml.safe_load(f)
    return [
        (group, ident, claim) for group, entries in data.items() for ident, claim in entries.items()
    ]
