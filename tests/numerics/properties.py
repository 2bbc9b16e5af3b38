"""What holds along every flow, measured on random problems without a reference.

Problems are those of ``engines.flow.test_robustness`` (all losses, scales down to exp(-1000)). Each
function takes a seed and returns a number that a test compares with its target, or None where the
property says nothing.
"""

from __future__ import annotations

import numpy as np

import reluflow as rf
from engines.flow.test_robustness import random_problem

RTOL = 1e-8


def run(seed, **options):
    """The flow of the problem of a seed."""
    data, net, loss, given = random_problem(seed)
    given = {"max_seconds": 60.0, **given, **options}
    return rf.flow(data, net, loss=loss, **given)


def balance_drift(seed):
    """Largest change of ``a^2 - |w|^2`` of a neuron, as a share of its largest ``a^2 + |w|^2``."""
    found = run(seed, record=100)
    if found.options["train"] == "hidden":
        return None
    with np.errstate(divide="ignore", under="ignore"):
        log_a = np.log(np.abs(found.kept["a"])) + found.kept["log_scale_out"]
        log_w = np.log(np.linalg.norm(found.kept["W"], axis=2)) + found.kept["log_scale"]
        size = np.maximum(log_a, log_w).max(axis=0)
        size = np.where(np.isfinite(size), size, 0.0)
        balance = np.exp(2.0 * (log_a - size)) - np.exp(2.0 * (log_w - size))
    return float(np.abs(balance - balance[0]).max())


def rise(seed, between=10):
    """Largest rise of the log-loss, at records and between them; rounding of the outputs is off.

    Below a loss of e^-50 residuals are rounding of the outputs.
    """
    found, rng = run(seed, record=60), np.random.default_rng(seed)
    loss, data = found.loss_function, found.data
    k = np.sort(rng.choice(len(found.t) - 1, min(between, len(found.t) - 1), replace=False))
    times, values = [*found.log_t], [*found.log_loss]
    for left, right in zip(found.log_t[k], found.log_t[k + 1], strict=True):
        if np.isfinite(left) and left < 600.0:
            times.append(left + rng.uniform() * (right - left))
            net = found.at(log_t=times[-1])
            values.append(loss.log_value(net.predict(data.X), data.y))
    values = np.array(values)[np.argsort(times, kind="stable")]
    kept = values[values > -50.0] if loss.name == "square" else values
    if len(kept) < 2:
        return None
    return float((np.diff(kept) / np.maximum(1.0, np.abs(kept[:-1]))).max())


def error_ratio(seed):
    """The distance of a limit to that of a run at rtol 1e-12, over what the first run reports."""
    first = run(seed)
    if first.status not in ("converged", "stationary") or not np.isfinite(first.limit_error):
        return None
    exact = run(seed, rtol=1e-12)
    if exact.status != first.status or len(first.branches) or len(exact.branches):
        return None
    gap = np.hypot(
        np.abs(first.final.a - exact.final.a).max(), np.abs(first.final.W - exact.final.W).max()
    )
    size = np.hypot(np.abs(exact.final.a).max(), np.abs(exact.final.W).max())
    # a run is promised to be right to its tolerance; `limit_error` bounds what the end adds
    return float(gap / (first.limit_error + RTOL * size + 1e-300))


def variance(seed):
    """How far a flow of rotated points, reordered neurons and points is from the plain one.

    In units of the tolerance, relative to the weights, at an end time of a few natural units.
    """
    data, net, loss, given = random_problem(seed)
    rng, m = np.random.default_rng([seed, 7]), net.width
    rotation = np.linalg.qr(rng.normal(size=(data.d, data.d)))[0]
    points, neurons = rng.permutation(data.n), rng.permutation(m)
    size = np.linalg.norm(data.X, 2) * max(1.0, np.abs(data.y).max())
    t_end = 20.0 * data.n / size
    options = {"loss": loss, "t_end": t_end, "train": given.get("train", "both"), "rtol": RTOL}
    plain = rf.flow(data, net, max_seconds=60.0, **options)
    turned = rf.flow(
        rf.Dataset(data.X[points] @ rotation, data.y[points]),
        rf.Network(
            net.mantissa.a[neurons], net.mantissa.W[neurons] @ rotation, net.log_scale[neurons]
        ),
        max_seconds=60.0,
        **options,
    )
    if len(plain.branches) or len(turned.branches) or plain.status != turned.status:
        return None if plain.status == turned.status else np.inf
    one, other = plain.final.flat(), turned.final.flat()
    W = one.W[neurons] @ rotation - other.W
    gap = max(np.abs(W).max(), np.abs(one.a[neurons] - other.a).max())
    return float(gap / (RTOL * (np.abs(one.W).max() + np.abs(one.a).max() + 1e-300)))


TARGETS = {  # name -> what is measured, and what it may reach
    "balance": (balance_drift, 1e-12),
    "falls": (rise, 1e-8),
    "limits": (error_ratio, 10.0),
    "turned": (variance, 1.0),
}


def examined(name, seeds):
    """How many problems the property says something about, its worst value, and all beyond it."""
    measure, target = TARGETS[name]
    values = {seed: value for seed in seeds if (value := measure(seed)) is not None}
    beyond = {seed: value for seed, value in values.items() if not value <= target}
    return {"cases": len(values), "worst": max(values.values(), default=0.0), "beyond": beyond}
