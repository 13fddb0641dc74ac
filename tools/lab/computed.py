# SPDX-License-Identifier: GPL-2.0
"""Experiments without a VM: functions from a run's variables to its metrics."""

import functools
import glob
import hashlib
import os
import subprocess
import tempfile

import numpy as np
from engine import OUT
from scipy.optimize import brentq
from verdict import interval

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))

KINDS = ("n_bl", "n_gl", "n_bs", "n_gs")


def rates(n, tau, bias, links, capacity):
    """Rates that maximise [ABE99] Eq. (3) on a parking lot under Eq. (4), for r = 1/tau and eta = 1/2.

    n, tau: of blue long, green long, blue short, green short flows. The
    derivative of a flow's utility, 2 / (tau x (2 + tau x)), is the sum of its
    links' prices (alpha times that for green), so y = tau x (2 + tau x) is
    2 / price, and x follows."""
    share = 1 / (np.array([1, bias, 1, bias]) * np.array([links, links, 1, 1]))

    def x(log_y):
        return (np.sqrt(1 + np.exp(log_y) * share) - 1) / tau

    return x(brentq(lambda log_y: n @ x(log_y) - capacity, -20, 40))


@functools.cache
def biases(n, boost, links, c, tau_l, tau_s):
    """The least bias for long and short blue: not below flat at its best, and not below green."""
    n = np.array(n, float)

    def round_trips(blue, green):
        return np.array([tau_l + links * blue, tau_l + links * green, tau_s + blue, tau_s + green])

    abe = round_trips(boost, 0)
    flat = np.max(
        [rates(n, round_trips(f, f), 1, links, c) for f in np.linspace(0, boost, 9)], axis=0
    )

    def least(surplus):
        return brentq(surplus, 1e-3, 1e3) if surplus(1e-3) < 0 < surplus(1e3) else np.nan

    found = {}
    for name, blue, green in (("long", 0, 1), ("short", 2, 3)):
        found[name + "_flat"] = least(
            lambda a, blue=blue: rates(n, abe, a, links, c)[blue] - flat[blue]
        )
        found[name + "_green"] = least(
            lambda a, blue=blue, green=green: np.subtract(
                *rates(n, abe, a, links, c)[[blue, green]]
            )
        )
        found[name] = max(found[name + "_flat"], found[name + "_green"])
    found["required"] = max(found["long"], found["short"])
    return found


def required_bias(v):
    """Figs. 6 to 8: the biases; what one more flow of the kind `grow` does; how straight log(bias) is over b."""
    n = [int(v[k]) for k in KINDS]
    network = v["links"], v["capacity"], v["tau_l"], v["tau_s"]
    if v["grow"] in KINDS:
        i = KINDS.index(v["grow"])
        n[i] = int(v["n"])
        found = dict(biases(tuple(n), v["b"], *network))
        n[i] += 1
        found["step"] = biases(tuple(n), v["b"], *network)["required"] / found["required"]
    else:
        found = dict(biases(tuple(n), v["b"], *network))
        boosts = np.linspace(0.01, 0.1, 10)
        logs = [np.log(biases(tuple(n), b, *network)["required"]) for b in boosts]
        found["straight"] = np.corrcoef(boosts, logs)[0, 1] ** 2
    return {k: float(x) for k, x in found.items()}


# RFC 4828, 4.1: KB/s for a round trip of 100 ms, by drop rate, with 14, 536 and 1460 bytes and 40 of headers each.
PAYLOADS = (14, 536, 1460)
TABLES = {
    1: [
        (1e-05, (209.25, 2232, 5812.49)),
        (3e-05, (120.79, 1288.41, 3355.24)),
        (0.0001, (66.12, 705.25, 1836.58)),
        (0.0003, (38.1, 406.44, 1058.45)),
        (0.001, (20.74, 221.23, 576.12)),
        (0.003, (11.76, 125.49, 326.79)),
        (0.01, (6.07, 64.75, 168.61)),
        (0.03, (2.99, 31.9, 83.07)),
        (0.1, (0.96, 10.21, 26.58)),
        (0.2, (0.29, 3.09, 8.06)),
        (0.3, (0.11, 1.12, 2.93)),
        (0.4, (0.05, 0.48, 1.26)),
        (0.5, (0.02, 0.24, 0.63)),
    ],
    2: [
        (1e-05, (5.4, 57.6, 150)),
        (3e-05, (5.4, 57.6, 150)),
        (0.0001, (5.4, 57.6, 150)),
        (0.0003, (5.4, 57.6, 150)),
        (0.001, (5.4, 57.6, 150)),
        (0.003, (5.4, 57.6, 150)),
        (0.01, (5.4, 57.6, 150)),
        (0.03, (5.4, 57.6, 83.07)),
        (0.1, (5.4, 26.58, 26.58)),
        (0.2, (5.4, 8.06, 8.06)),
        (0.3, (2.93, 2.93, 2.93)),
        (0.4, (1.26, 1.26, 1.26)),
        (0.5, (0.63, 0.63, 0.63)),
    ],
    3: [
        (1e-07, (284.76, 929.61, 1498.95)),
        (3e-07, (164.39, 536.17, 863.16)),
        (1e-06, (90.01, 292.64, 468.49)),
        (3e-06, (51.92, 167.28, 263.68)),
        (1e-05, (28.34, 88.56, 132.75)),
        (3e-05, (16.21, 46.67, 61.7)),
        (0.0001, (8.6, 19.2, 16.25)),
        (0.0003, (4.56, 4.95, 1.7)),
        (0.001, (1.9, 0.37, 0.15)),
        (0.003, (0.52, 0.05, 0.06)),
        (0.01, (0.04, 0.02, 0.06)),
        (0.03, (0, 0.02, 0.06)),
    ],
    4: [
        (1e-07, (5.4, 57.6, 150)),
        (3e-07, (5.4, 57.6, 150)),
        (1e-06, (5.4, 57.6, 150)),
        (3e-06, (5.4, 57.6, 150)),
        (1e-05, (5.4, 57.6, 132.75)),
        (3e-05, (5.4, 57.6, 61.7)),
        (0.0001, (5.4, 50, 16.25)),
        (0.0003, (5.4, 12.89, 1.7)),
        (0.001, (5.4, 0.95, 0.15)),
        (0.003, (5.4, 0.12, 0.06)),
        (0.01, (1.1, 0.06, 0.06)),
        (0.03, (0.13, 0.06, 0.06)),
    ],
}


def tfrc_divisor(p, rto=4):
    """f(p) of RFC 5348, 3.1, with b = 1 and a retransmission timeout of so many round trips."""
    return np.sqrt(2 * p / 3) + rto * 3 * np.sqrt(3 * p / 8) * p * (1 + 32 * p * p)


def kernel_rates(cases):
    """Bytes a second for (s, us, 256/p) each, from the integers of ccid/tfrc_math.h."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(
            [
                "gcc",
                "-std=gnu11",
                "-O1",
                f"-I{TOP}/tools/testbed/shim",
                f"-I{TOP}/ccid",
                "-o",
                f"{tmp}/tfrc_rate",
                f"{HERE}/tfrc_rate.c",
            ],
            check=True,
        )
        text = "".join(f"{s} {rtt} {pinv}\n" for s, rtt, pinv in cases)
        done = subprocess.run(
            [f"{tmp}/tfrc_rate"], input=text, stdout=subprocess.PIPE, text=True, check=True
        )
    return [float(line) for line in done.stdout.split()]


def rfc4828(v):
    """How far rates are off a table, % beyond its digits: in floating point, and in the kernel's integers.

    Tables 3 and 4 drop bytes; 2 and 4 are TFRC-SP, with 1500 bytes in the equation and 100 packets a second at most.
    The kernel's 1/p has 8 bits after the point; what that makes is not counted."""
    table, cases = int(v["table"]), []
    for drop, row in TABLES[table]:
        for payload, printed in zip(PAYLOADS, row, strict=True):
            size = payload + 40
            p = 1 - (1 - drop) ** size if table > 2 else drop
            cases.append(
                (
                    1500 if table % 2 == 0 else size,
                    p,
                    size / 10 if table % 2 == 0 else np.inf,
                    printed,
                )
            )
    kernel = kernel_rates([(s, 100000, round(256 / p)) for s, p, _, _ in cases])
    worst = {"float": 0.0, "kernel": 0.0}
    for (s, p, most, printed), rate in zip(cases, kernel, strict=True):
        near, far = (
            s / 100 / tfrc_divisor(256 / max(256 / p + d, 256), v["rto"]) for d in (0.5, -0.5)
        )
        for name, got, slack in (
            ("float", s / 100 / tfrc_divisor(p, v["rto"]), 0),
            ("kernel", rate / 1000, abs(near - far)),
        ):
            off = max(abs(min(got, most) - printed) - 0.0051 - slack, 0)
            worst[name] = max(worst[name], 100 * off / max(printed, 0.005))
    return {k: float(x) for k, x in worst.items()}


RECEIVER = [f"{TOP}/ccid/rate_{part}.c" for part in ("rx", "tx")] + [
    f"{TOP}/ccid/tfrc_{part}.c"
    for part in ("loss", "rx", "tx", "standard", "virtual", "sampling", "lip", "unbias")
]


@functools.cache
def program(source):
    """A program of ours with the module's receiver, compiled; goes away with us."""
    tmp = tempfile.TemporaryDirectory()
    subprocess.run(
        [
            "gcc",
            "-std=gnu11",
            "-O2",
            f"-I{TOP}/tools/testbed/shim",
            f"-I{TOP}/ccid",
            "-o",
            f"{tmp.name}/run",
            source,
            *RECEIVER,
        ],
        check=True,
    )
    return tmp


def said_by(name, text):
    """The numbers that a program says of these lines. It takes seconds, so they are kept, for the same sources."""
    source = f"{HERE}/{name}.c"
    key = hashlib.sha256(text.encode())
    for path in (
        source,
        f"{TOP}/tools/lib/rng.h",
        *RECEIVER,
        *sorted(glob.glob(f"{TOP}/ccid/tfrc_*.h")),
    ):
        with open(path, "rb") as f:
            key.update(f.read())
    path = os.path.join(OUT, ".computed", key.hexdigest())
    if not os.path.exists(path):
        done = subprocess.run(
            [f"{program(source).name}/run"],
            input=text,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False) as f:
            f.write(done.stdout)
        os.replace(f.name, path)
    with open(path, encoding="ascii") as f:
        return np.array([[float(word) for word in line.split()] for line in f])


def small_loss(against, p, eta):
    """Loss rate of packets of S/eta bytes where packets of S bytes have p: [VPS02] (19), 4.2.3, (25)."""
    return {
        "byte": p / eta,
        "sampling_byte": p / eta,
        "drop_tail": p / (2 * eta),
        "byte_error": 1 - (1 - p) ** (1 / eta),
    }.get(against, p)


def interval_variance(against, p, eta, lip):
    """Variance of [VPS02] (4), (9), (12), (13), and (26) with the paper's slip in the exponent mended; that of sampling in
    byte mode is ours. Of `lip` packets of S bytes in the LIP those that are sampled vary."""
    lost = small_loss(against, p, eta)
    small = (1 - lost) / lost**2
    sampled = lip * (1 - 1 / eta)
    q = lost / (lost + (1 - lost) / eta)
    return {
        "sampling": sampled + (1 - p) / p**2,
        "sampling_byte": sampled + (1 - q) / q**2,
        "packet": (1 - p) / p**2 / eta,
        "byte": small / eta**2,
        "drop_tail": small / (2 * eta) ** 2,
    }.get(against, (1 - p) / p**2)


def loss_intervals(v):
    """Mean and variance of the loss intervals that a method measures, by those of the paper's equations for `against`.

    N - 1 is what was sent in the loss insensitive period; the variance is that of what comes after it."""
    p, eta, packets, segment = v["p"], int(v["eta"]), int(v["packets"]), 1000
    rows = said_by(
        "tfrc_intervals",
        "".join(
            f"{v['method']} {segment} {segment // eta} {packets * eta} {small_loss(v['against'], p, eta):.12g} {seed} {int(v['intervals'])}\n"
            for seed in range(1, int(v["seeds"]) + 1)
        ),
    )
    length, lip, _, variance = rows.T
    small = v["method"] in ("standard", "sp")  # whose lengths are in packets of whatever size
    wanted = (lip / eta if small and v["against"] == "packet" else lip) + 1 / p
    found = {
        "mean": np.mean(length),
        "mean_want": np.mean(wanted),
        "var": np.mean(variance),
        "var_want": interval_variance(v["against"], p, eta, np.mean(lip)),
        "round_trips": (np.mean(lip) * (1 if small else eta) + 1) / (packets * eta),
    }
    found["mean_ratio"], found["mean_half"] = interval(length / wanted)
    found["var_ratio"], found["var_half"] = interval(variance / found["var_want"])
    return {k: float(x) for k, x in found.items()}


def gilbert_rates(v):
    """What a sender, the module's receiver and a channel that loses by the time make of 1000 and of 100 bytes, and of 160
    packets a second: rates (kb/s) as geometric means over the seeds, and loss event rates."""
    found, logs = {}, {}
    for name, what in (
        ("large", "standard 0 1000"),
        ("small", "packet 0 100"),
        ("fixed", "packet 160 1400"),
    ):
        rate, events, lost = said_by(
            "tfrc_gilbert",
            "".join(
                f"{what} {v['model']} {v['p']} {v['a']} {seed} {int(v['seconds'])}\n"
                for seed in range(1, int(v["seeds"]) + 1)
            ),
        ).T
        logs[name] = np.log(rate)
        found |= {
            name: 8 * np.exp(np.mean(logs[name])) / 1000,
            f"p_{name}": np.mean(events),
            f"lost_{name}": 100 * np.mean(lost),
        }
    for name in ("small", "fixed"):
        mean, half = interval(logs[name] - logs["large"])
        found |= {f"{name}_of_large": np.exp(mean), f"{name}_half": np.exp(mean) * np.sinh(half)}
    return {k: float(x) for k, x in found.items()}


FUNCTIONS = {
    "required_bias": required_bias,
    "rfc4828": rfc4828,
    "loss_intervals": loss_intervals,
    "gilbert_rates": gilbert_rates,
}
