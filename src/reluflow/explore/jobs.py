"""What the slow lane works out, part by part, the most wanted first; each part is one frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow import engines, interpolators, limits, theory
from reluflow.dataset import Dataset
from reluflow.errors import ReluflowError
from reluflow.explore import compute, frames
from reluflow.explore.arrays import of_network
from reluflow.explore.compute import FULL_SECONDS, Stop
from reluflow.explore.state import State, from_json, to_json
from reluflow.network import Network
from reluflow.trajectory import Trajectory

STRIP_SCALES = (0.0, -2.0, -5.0, -10.0, -30.0, -100.0, -1000.0, -10000.0)
UNDECIDED = 1e-3  # two tolerances whose functions differ by more, over the largest label
SLOW_SECONDS = 10.0
Part = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def parts(id: int, raw: dict[str, Any], stop: Stop) -> Iterator[bytes]:
    """The frames of a job; one that fails says why and the others go on."""
    state = from_json(raw)
    _warm()
    run = compute.train(state, state.rtol, SLOW_SECONDS, stop)
    work: tuple[tuple[str, Callable[[State, Trajectory, Stop], Part]], ...] = (
        ("second", second_tolerance),
        ("extremal", extremal),
        ("heuristic", heuristic),
        ("strip", strip),
        ("claims", claims),
    )
    for name, part in work:
        if stop():
            return
        try:
            header, arrays = part(state, run, stop)
        except (ReluflowError, FloatingPointError, np.linalg.LinAlgError) as error:
            header, arrays = {"note": str(error)}, {}
        yield frames.encode({"id": id, "kind": "slow", "part": name, **header}, arrays)
    yield frames.encode({"id": id, "kind": "slow", "part": "done"})


@cache
def _warm() -> None:
    """Load the compiled kernels outside the time of any run."""
    engines.flow(Dataset([[1.0, 0.2]], [1.0]), Network([1.0], [[0.5, 0.5]]), t_end=0.1)


def second_tolerance(state: State, run: Trajectory, stop: Stop) -> Part:
    """Whether the run ends alike at a hundredth of its tolerance."""
    finer = max(state.rtol / 100.0, 1e-13)
    other = compute.train(state, finer, SLOW_SECONDS, stop)
    apart = disagreement(run, other)
    told: dict[str, Any] = {"rtol": finer, "apart": apart}
    if not (run.status.is_asked_for and other.status.is_asked_for):
        told["undecided"] = None
        told["note"] = (
            f"Two tolerances cannot be compared: at rtol {state.rtol:g} and {finer:g} the runs end "
            f"as {run.status} and {other.status}."
        )
    elif other.status != run.status:
        told["undecided"] = True
        told["note"] = (
            f"At rtol {state.rtol:g} the run ends as {run.status}, at {finer:g} as {other.status}."
        )
    elif apart > UNDECIDED:
        told["undecided"] = True
        told["note"] = (
            f"At rtol {state.rtol:g} and {finer:g} the functions differ by {apart:.2g} of the "
            "largest label: rounding decides which way the flow goes."
        )
    elif len(run.branches):
        told["undecided"] = True
        told["note"] = (
            "The solution is not unique here, or not decided by the tolerance; the picture follows "
            "one of several."
        )
    else:
        told["undecided"] = False
    return told, {}


def disagreement(one: Trajectory, other: Trajectory) -> float:
    """The largest difference of two final functions at the points, over the largest label.

    Of classifiers the outputs grow without end, so they are compared over their norms.
    """
    first, second = (compute.final_outputs(run) for run in (one, other))
    if one.loss_function.name != "square":
        first, second = first / np.abs(first).max(), second / np.abs(second).max()
    size = max(float(np.abs(one.data.y).max()), 1e-300)
    return float(np.abs(first - second).max() / size)


def extremal(state: State, run: Trajectory, stop: Stop) -> Part:
    """The network of smallest norm that fits, or of largest margin."""
    leaky: dict[str, Any] = {"slope": state.slope} if state.slope else {}
    decay: dict[str, Any] = {}
    if state.is_regression:
        if state.decay:
            decay = {"decay": state.decay, "loss": state.loss_function()}
        best: Any = interpolators.min_norm(run.data, **decay, **leaky)
        title = "least loss and decay" if decay else "smallest norm"
    else:
        best = interpolators.max_margin(run.data, **leaky)
        title = "largest margin"
    told = {
        "title": title,
        "certified": bool(best.certified),
        "numbers": compute.numbers(state, run.data, best.network),
    }
    return told, of_network(best.network, "extremal")


def heuristic(state: State, run: Trajectory, stop: Stop) -> Part:
    """The alternating guess of the staircase where no theorem predicts one."""
    told, _ = compute.prediction(state, run.data, run.net)
    if told.get("has_network") or not (state.is_regression and state.is_plain):
        return {"skipped": True}, {}
    kappa = state.loss_function().kappa(state.n)  # type: ignore[union-attr]
    guess = limits.alternating(run.data, run.net, kappa=kappa)
    arrays = of_network(guess.network, "limit")
    arrays["stair_loss"] = np.asarray(guess.losses, dtype=np.float64)
    arrays["stair_tau"] = np.asarray(guess.times, dtype=np.float64)
    return {
        "method": "alternating",
        "reason": "A guess, not a theorem: " + "; ".join(guess.caveats) + ".",
        "numbers": compute.numbers(state, run.data, guess.network),
    }, arrays


def strip(state: State, run: Trajectory, stop: Stop) -> Part:
    """The same problem at eight scales: final functions on the line, or neurons in the plane."""
    scales: list[float] = []
    endings: list[str] = []
    norms: list[float] = []
    nets: dict[str, list[NDArray[Any]]] = {}
    for scale in STRIP_SCALES:
        if stop():
            break
        if state.train != "both" and scale < -300.0:
            continue  # weights that are not trained cannot be smaller than floats
        other = from_json({**to_json(state), "log_scale": scale})
        there = compute.train(other, max(state.rtol, 1e-7), FULL_SECONDS, stop)
        scales.append(scale)
        endings.append(str(there.status))
        norms.append(there.final.squared_norm)
        start = there.net if state.train == "linearised" else None
        for name, array in of_network(there.final, "strip", start).items():
            nets.setdefault(name, []).append(array)
    stacked = {name: np.stack(rows) for name, rows in nets.items()}
    return {"scales": scales, "endings": endings, "norms": norms}, stacked


def claims(state: State, run: Trajectory, stop: Stop) -> Part:
    """The claims of the paper whose setting this is, without starting more runs."""
    from reluflow.studies.which import fitting_paper

    paper, reason = fitting_paper(run)
    if paper is None:
        return {"note": reason}, {}
    report = theory.check(paper, run, start_runs=False)
    rows = [
        {
            "id": item.id,
            "title": item.title,
            "verdict": str(item.verdict),
            "note": item.note,
            "assumed": k < len(report.assumptions),
        }
        for k, item in enumerate((*report.assumptions, *report.checks))
    ]
    return {"paper": paper, "title": report.title, "reason": reason, "rows": rows}, {}
