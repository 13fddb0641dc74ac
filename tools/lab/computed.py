# SPDX-License-Identifier: GPL-2.0
"""Experiments without a VM: functions from a run's variables to its metrics."""

import functools

import numpy as np
from scipy.optimize import brentq

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
    flat = np.max([rates(n, round_trips(f, f), 1, links, c) for f in np.linspace(0, boost, 9)], axis=0)

    def least(surplus):
        return brentq(surplus, 1e-3, 1e3) if surplus(1e-3) < 0 < surplus(1e3) else np.nan

    found = {}
    for name, blue, green in (("long", 0, 1), ("short", 2, 3)):
        found[name + "_flat"] = least(lambda a, blue=blue: rates(n, abe, a, links, c)[blue] - flat[blue])
        found[name + "_green"] = least(
            lambda a, blue=blue, green=green: np.subtract(*rates(n, abe, a, links, c)[[blue, green]]))
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


FUNCTIONS = {"required_bias": required_bias}
