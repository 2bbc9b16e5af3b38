"""From a state to what the page draws: a run, sampled finely enough that nothing jumps.

A *draft* (rtol 1e-6, at most half a second) follows the hand and shows the records of the run. A
*full* run is at the tolerance of the state and is sampled where directions turn fast, because a
plateau crossed in one closed form may turn a neuron by a quarter of a circle between two records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow import engines, geometry, limits
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.explore import arrays
from reluflow.explore.state import State, contradictions
from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

DRAFT_RTOL, DRAFT_SECONDS, DRAFT_WIDTH = 1e-6, 0.5, 100
FULL_SECONDS = 2.0
MAX_SAMPLES, MAX_EVENTS = 200, 5000
TURN = np.radians(6.0)  # between two samples, where more of them are worth it
ROUNDS, REFINE_SECONDS = 6, 0.4
Stop = Callable[[], bool]
ENDINGS = {
    Status.CONVERGED: "it tends to a limit that fits every point",
    Status.STATIONARY: "it tends to a limit of non-zero loss: a minimum, a saddle, a dead network",
    Status.STOP_LOSS: "it reached the loss at which it was asked to stop",
}


@dataclass(frozen=True)
class Result:
    """What the page is told: plain fields and arrays, and the run they come from."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    run: Trajectory


def draft(state: State, stop: Stop) -> Result:
    """The run at a coarse tolerance, within half a second."""
    return _result(state, stop, max(state.rtol, DRAFT_RTOL), DRAFT_SECONDS, "draft")


def full(state: State, stop: Stop) -> Result:
    """The run at the tolerance of the state, sampled finely.

    One that takes too long is replaced by a draft that ends, and the page says so.
    """
    found = _result(state, stop, state.rtol, FULL_SECONDS, "exact")
    if found.run.status != Status.BUDGET or state.rtol >= DRAFT_RTOL or stop():
        return found
    coarse = _result(state, stop, DRAFT_RTOL, FULL_SECONDS, "draft")
    if not coarse.run.status.is_asked_for:
        return found
    text = (
        f"At rtol {state.rtol:g} the run did not end within {FULL_SECONDS:g} s. The picture is a "
        f"draft at rtol {DRAFT_RTOL:g}."
    )
    coarse.header["warnings"].append({"text": text, "points": []})
    return coarse


def train(state: State, rtol: float, seconds: float, stop: Stop | None) -> Trajectory:
    """The run of a state."""
    options = state.options() | {"rtol": rtol}
    return engines.flow(
        state.dataset(),
        state.network(),
        record=MAX_SAMPLES,
        max_seconds=seconds,
        stop=stop,
        **options,
    )


def _result(state: State, stop: Stop, rtol: float, seconds: float, kind: str) -> Result:
    began = time.perf_counter()
    run = train(state, rtol, seconds, stop)
    trained = time.perf_counter()
    shown = run if kind == "draft" or stop() else refined(run, stop)
    sampled = time.perf_counter()
    header: dict[str, Any] = {
        "status": kind,
        "ending": str(run.status),
        "text": _ending(run, seconds),
        "steps": int(run.stats["steps"]),
        "log_scale": state.log_scale,
        "branches": len(run.branches),
        "numbers": {"trained": trained_numbers(state, run)},
        "warnings": _warnings(run, is_draft=kind == "draft"),
    }
    sent = {**arrays.of_records(shown), **arrays.of_events(run, MAX_EVENTS)}
    if state.train == "linearised":
        sent["tangent"] = arrays.tangent(run.net, shown.kept["a"], shown.kept["W"])
    predicted, more = prediction(state, run.data, run.net)
    header["predicted"] = predicted
    if predicted.get("has_network"):
        header["numbers"]["predicted"] = predicted.pop("numbers")
    header["ms"] = {
        "engine": 1e3 * (trained - began),
        "sample": 1e3 * (sampled - trained),
        "rest": 1e3 * (time.perf_counter() - sampled),
    }
    return Result(header, {**sent, **more}, run)


def _ending(run: Trajectory, seconds: float) -> str:
    if run.status == Status.BUDGET:
        return f"it needs more than {seconds:g} s and is shown as far as it came"
    return ENDINGS.get(run.status, run.ending)


def _warnings(run: Trajectory, *, is_draft: bool) -> list[dict[str, Any]]:
    """What the page says beside the picture; that a draft was cut short is no news."""
    found: list[dict[str, Any]] = []
    clash = contradictions(run.data.X, run.data.y)
    if clash:
        text = (
            f"points {clash[0]} and {clash[1]} coincide and have different labels. No network fits "
            "both, so the loss stays above 0."
        )
        found.append({"text": text, "points": list(clash)})
    if run.status in (Status.BUDGET, Status.FAILED) and not is_draft:
        text = f"The picture ends early: {_ending(run, FULL_SECONDS)}."
        found.append({"text": text, "points": []})
    if len(run.events) > MAX_EVENTS:
        text = f"Only the first {MAX_EVENTS} of {len(run.events)} events are shown."
        found.append({"text": text, "points": []})
    return found


# -------------------------------------------------------------------- samples


def refined(run: Trajectory, stop: Stop) -> Trajectory:
    """The run with more records where directions turn and at events, as far as time allows."""
    if len(run.t) < 2:
        return run
    end = time.perf_counter() + REFINE_SECONDS

    def late() -> bool:
        return stop() or time.perf_counter() > end

    keep = np.unique(np.linspace(0, len(run.t) - 1, MAX_SAMPLES // 2).round().astype(int))
    shown = run if len(run.t) <= len(keep) else _records(run, keep)
    for _ in range(ROUNDS):
        room = MAX_SAMPLES - len(shown.t)
        turns = _turns(shown)
        gaps = np.flatnonzero(turns > TURN)
        if late() or room <= 0 or not len(gaps):
            break
        widest = np.sort(gaps[np.argsort(turns[gaps])[::-1][:room]])
        shown = _with_more(run, shown, _middles(shown.log_t[widest], shown.log_t[widest + 1]), late)
    happened = np.unique(run.events["log_t"])
    inside = happened[(happened <= run.log_t[-1]) & np.isfinite(happened)]
    room = MAX_SAMPLES - len(shown.t)
    return shown if late() or room <= 0 else _with_more(run, shown, _thinned(inside, room), late)


def _records(run: Trajectory, keep: NDArray[np.intp]) -> Trajectory:
    """The run with some of its records."""
    states = {name: rows[keep] for name, rows in run.kept.items()}
    return replace(
        run, t=run.t[keep], log_t=run.log_t[keep], log_loss=run.log_loss[keep], kept=states
    )


def _with_more(run: Trajectory, shown: Trajectory, log_times: Array, stop: Stop) -> Trajectory:
    """The records of ``shown`` and those of ``run`` at more times, in order."""
    new = np.setdiff1d(log_times, shown.log_t)
    if not len(new):
        return shown
    more = run.sample(new, stop=stop)
    log_t = np.concatenate([shown.log_t, more.log_t])
    order = np.argsort(log_t, kind="stable")
    joined = {
        name: np.concatenate([rows, more.kept[name]])[order] for name, rows in shown.kept.items()
    }
    return replace(
        shown,
        t=np.concatenate([shown.t, more.t])[order],
        log_t=log_t[order],
        log_loss=np.concatenate([shown.log_loss, more.log_loss])[order],
        kept=joined,
    )


def _thinned(values: Array, count: int) -> Array:
    if len(values) <= count:
        return values
    return np.asarray(values[np.unique(np.linspace(0, len(values) - 1, count).round().astype(int))])


def _turns(run: Trajectory) -> Array:
    """The largest angle by which a neuron turns from each record to the next."""
    W = np.asarray(run.kept["W"])
    size = np.linalg.norm(W, axis=2, keepdims=True)
    u = W / np.where(size > 0, size, 1.0)
    chords = np.linalg.norm(np.diff(u, axis=0), axis=2)
    return np.asarray(2.0 * np.arcsin(np.minimum(chords / 2.0, 1.0)).max(axis=1))


def _middles(low: Array, high: Array) -> Array:
    """Times between two log-times: geometric where they are far apart, from t = 0 a hundredth."""
    with np.errstate(invalid="ignore"):
        near = high + np.log((1.0 + np.exp(low - high)) / 2.0)
        inside = np.where(high - low > 1.5, (low + high) / 2.0, near)
    return np.asarray(np.where(np.isneginf(low), high - np.log(100.0), inside))


# -------------------------------------------------------------------- numbers


def final_outputs(run: Trajectory) -> Array:
    """What is learned, at the points: of the linearised network its own outputs."""
    linearised = run.options.get("train") == "linearised"
    return np.asarray(run.kept["outputs"][-1]) if linearised else run.final.predict(run.data.X)


def trained_numbers(state: State, run: Trajectory) -> dict[str, float | None]:
    """Those of the end of a run; loss and margin of the network linearised are its own."""
    found = numbers(state, run.data, run.final)
    if state.train == "linearised":
        found["margin"] = None
        if state.is_regression:
            found["loss"] = float(np.exp(run.log_loss[-1]))
    return found


def numbers(state: State, data: Dataset, net: Network) -> dict[str, float | None]:
    """Norm, rank, margin and largest angle of a network; None where one has no meaning."""
    found: dict[str, float | None] = {"norm": net.squared_norm}
    big = _counting(net)
    found["rank"] = geometry.effective_rank(net, "numerical", tol=1e-3) if len(big) else 0.0
    found["angle"] = geometry.max_angle(net, big) if len(big) > 1 else 0.0
    found["neurons"] = float(len(big))
    found["margin"] = None if state.is_regression else geometry.margin(data, net)
    if state.is_regression:
        with np.errstate(over="ignore"):
            found["loss"] = float(
                np.exp(state.loss_function().log_value(net.predict(data.X), data.y))
            )
    return found


def _counting(net: Network) -> NDArray[np.intp]:
    """Neurons that count: their share of the function is above a thousandth of the largest."""
    logs = net.log_norms + net.log_outputs
    top = float(logs.max())
    return np.flatnonzero((logs > top - np.log(1e3)) & np.isfinite(logs) & (top > -30.0))


def prediction(
    state: State, data: Dataset, net: Network
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What theory says of the limit of small scales, and its network where there is one."""
    if not state.is_regression:
        return {"reason": "The limit theorems here are about the square loss."}, {}
    if state.train in ("output", "linearised"):
        return _kernel_limit(state, data, net)
    if not state.is_plain:
        reason = "The limit theorems here train both layers of a ReLU network, at one rate."
        return {"reason": reason + (" Without decay." if state.decay else "")}, {}
    try:
        answer = limits.predict(data, net)
    except InputError as error:
        return {"reason": str(error)}, {}
    told: dict[str, Any] = {"method": answer.method, "reason": answer.reason}
    if answer.network is None:
        return told, {}
    told |= {"has_network": True, "numbers": numbers(state, data, answer.network)}
    sent = arrays.of_network(answer.network, "limit")
    detail: Any = answer.detail
    if answer.method == "saddle_to_saddle":
        # the papers' loss is 1/2n; the stairs of another factor are those times its ratio
        factor = state.loss_function().kappa(data.n) * data.n  # type: ignore[union-attr]
        sent["stair_loss"] = np.asarray(detail.losses, dtype=np.float64) * factor
        sent["stair_tau"] = np.asarray(detail.times, dtype=np.float64) / factor
    return told, sent


def _kernel_limit(
    state: State, data: Dataset, net: Network
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The limit of fixed features, which is known at every scale."""
    loss = state.loss_function()
    found: Any = limits.kernel(data, net, loss=loss, train=state.train, rates=state.rates)
    start = net if state.train == "linearised" else None
    figures = numbers(state, data, found.network)
    if start is not None:
        figures["loss"] = float(np.exp(found.log_loss))
    told = {
        "method": "kernel",
        "reason": "Features are fixed, so training is linear and its limit a closed form.",
        "has_network": True,
        "numbers": figures,
    }
    return told, arrays.of_network(found.network, "limit", start)
