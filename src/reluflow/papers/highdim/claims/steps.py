"""HD-01 to HD-10: gradient, Gram form, one-step lemmas, the final phase and its certificate."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.papers.highdim.accepted import HALF
from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.gram import (
    Loop,
    frozen_limit,
    linear_loop,
    residual,
    weight_loop,
)
from reluflow.papers.highdim.lemmas import lemma5, lemma6
from reluflow.papers.highdim.paper import paper
from reluflow.theory.fits import CONFIDENCE
from reluflow.theory.verdicts import Finding, at_most, holds, undecided

LONGEST = 100_000  # iterations of a plain run that a claim may start


def _relative(found: Array, wanted: Array) -> float:
    size = max(float(np.linalg.norm(wanted)), float(np.linalg.norm(found)), 1e-300)
    return float(np.linalg.norm(found - wanted)) / size


@paper.claim(
    "HD-01",
    "the first step is the gradient: directional differences of the risk (relative)",
    needs=["certified", "off planes"],
)
def hd01(case: HighDim) -> Finding:
    """Inside one pattern the risk is quadratic, so a central difference is exact to rounding."""
    net = case.limit.at(1).flat()
    gradient = (case.W0 - net.W) / case.eta
    P0 = case.P0
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(4):
        V = rng.normal(size=case.m)[:, None] * (rng.normal(size=(case.m, case.n)) @ case.data.X)
        speed = V @ case.data.X.T
        h = 0.5 * float((np.abs(P0) / np.maximum(np.abs(speed), 1e-300)).min())
        ends = [_risk(case, P0 + sign * h * speed) for sign in (1.0, -1.0)]
        slope = float((gradient * V).sum())
        scale = float(np.linalg.norm(gradient) * np.linalg.norm(V))
        # what rounding of the two risks, and of the step the gradient is read from, may hide
        noise = 1e-14 * ends[0] / h + 1e-15 * float(np.linalg.norm(case.W0)) / case.eta * float(
            np.linalg.norm(V)
        )
        excess = max(abs((ends[0] - ends[1]) / (2 * h) - slope) - noise, 0.0)
        worst = max(worst, excess / scale if scale > 0.0 else excess)
    return at_most(worst, 1e-5)


def _risk(case: HighDim, P: Array) -> float:
    r = residual(case.s, P, case.y)
    return 0.5 * float(r @ r)


@paper.claim(
    "HD-02",
    "iterates of the run are those of the loop in weight space (relative)",
    needs=["certified"],
)
def hd02(case: HighDim) -> Finding:
    """Every record up to 1000 iterations, or as far as the work allows."""
    run = case.subject.runs[0] if case.subject.runs else case.limit
    if run.engine != "descent":
        run = case.limit
    affordable = int(min(1000.0, 2e9 / (case.n * case.data.d * case.m)))
    W, now, worst = case.W0, 0, 0.0
    for k, t in enumerate(run.t.tolist()):
        if t > affordable:
            break
        W = weight_loop(case.data.X, case.y, case.s, W, case.eta, int(t) - now)
        now = int(t)
        worst = max(worst, _relative(run.network(k).flat().W, W))
    return at_most(worst, 1e-10, note=f"up to iteration {now}")


@paper.claim(
    "HD-03",
    "the part of the weights orthogonal to the points is constant (relative)",
    needs=["certified", "span"],
)
def hd03(case: HighDim) -> Finding:
    """Projected off the span of the points by a QR factorisation."""
    basis = np.linalg.qr(case.data.X.T)[0]
    moved = case.W_inf - case.W0
    apart = moved - (moved @ basis) @ basis.T
    size = max(float(np.linalg.norm(case.W_inf)), float(np.linalg.norm(case.W0)))
    return at_most(float(np.linalg.norm(apart)) / size, 1e-12)


@paper.claim(
    "HD-04",
    "Gram concentration (Corollary 1): |G - l1 I|/l1 over sqrt(n/d_2) + n/d_inf",
    needs=["covariance"],
)
def hd04(case: HighDim) -> Finding:
    """A statement about random data: 3 covers most draws of the laws and spectra that were tried.

    Beyond the tail of Lemma 8 (see HD-37) for one draw in ten thousand it fails.
    """
    assert case.dimensions is not None
    d_2, d_inf = case.dimensions.d_2, case.dimensions.d_inf
    scale = float(np.sqrt(case.n / d_2) + case.n / d_inf)
    s = case.n * np.log(9.0) + np.log(2.0 / (1.0 - CONFIDENCE))
    rare = 4.0 * float(np.sqrt(s / d_2) + s / d_inf)
    if 3.0 * scale < case.delta <= rare:
        return undecided(case.delta / scale, 3.0, "an unusual draw; more of them decide (HD-37)")
    return at_most(case.delta / scale, 3.0, note="statistical")


@paper.claim("HD-05", "identity: |X_+ X_-^T| is at most mu_max/2 (ratio)", needs=["both signs"])
def hd05(case: HighDim) -> Finding:
    """A property of any block of a positive semidefinite matrix."""
    up, down = case.y > 0.0, case.y <= 0.0
    top = float(np.linalg.norm(case.G[np.ix_(up, down)], 2))
    return at_most(2.0 * top / float(case.spectrum[-1]), 1.0 + 1e-12)


@paper.claim(
    "HD-06",
    "identity: one-step Lemmas 5 and 6 along the run, without unknown constants (violations)",
    needs=["certified"],
)
def hd06(case: HighDim) -> Finding:
    """Counts applications of both lemmas on the plain loop."""
    up = lemma5(case.G, case.y, case.s, case.eta, case.loop)
    down = lemma6(case.G, case.loop)
    count = up.violated + down.violated
    note = f"applied {up.applied} (Lemma 5) and {down.applied} (Lemma 6) times"
    return holds(count == 0, count, 0.0, note)


@paper.claim(
    "HD-07",
    "Lemma 1: from the freeze on, descent is linear regression on the active points",
    needs=["certified", "settles"],
)
def hd07(case: HighDim) -> Finding:
    """200 steps of linear descent from the frozen iterate against the run."""
    T, steps = case.freeze, _affordable(case, 200)
    start = case.limit.at(T).flat().W
    A = case.limit.active(t=T)
    W, _ = linear_loop(case.data.X, case.y, case.s, start, A, case.eta, steps)
    return at_most(
        _relative(case.limit.at(T + steps).flat().W, W), 1e-12, note=f"{steps} steps from {T}"
    )


@paper.claim(
    "HD-08",
    "Lemmas 2, 11: the limit is the projection of the frozen iterate (relative)",
    needs=["certified", "settles"],
)
def hd08(case: HighDim) -> Finding:
    """The closed form against the run's limit and against a long plain run, where affordable."""
    T = case.freeze
    start = case.limit.at(T).flat().W
    P = start @ case.data.X.T
    closed = start + frozen_limit(case.G, case.y, case.s, P, case.limit.active(t=T)) @ case.data.X
    worst, note = _relative(case.W_inf, closed), "against the run's limit"
    end = int(case.limit.stats["iterations"])
    if end <= LONGEST and end * case.m * case.n**2 <= 5e9 and case.subject.engines is not None:
        long = case.subject.descend(
            case.data,
            case.subject.net,
            lr=case.eta,
            steps=end,
            loss=HALF,
            train="hidden",
            record=2,
        )
        worst = max(worst, _relative(long.final.flat().W, closed))
        note = f"against the run's limit and {end} plain steps"
    return at_most(worst, 1e-8, note=note)


@paper.claim(
    "HD-09",
    "in the final phase the residual on active points never grows (largest growth)",
    needs=["certified", "settles", "short step"],
)
def hd09(case: HighDim) -> Finding:
    """For steps of at most one over the curvature of the final phase."""
    T = case.freeze
    start = case.limit.at(T).flat().W
    A = case.limit.active(t=T)
    _, norms = linear_loop(case.data.X, case.y, case.s, start, A, case.eta, _affordable(case, 200))
    recorded = np.sqrt(2.0 * case.limit.loss[case.limit.t >= T])
    growth = max(float(np.diff(list(part)).max(initial=0.0)) for part in (norms, recorded))
    # recorded states are sums of modes from the freeze on, each rounded on its own
    return at_most(growth / float(np.linalg.norm(case.y)), 1e-14)


def _affordable(case: HighDim, steps: int) -> int:
    return max(1, int(min(steps, 2e9 / (case.n * case.data.d * case.m))))


@paper.claim(
    "HD-10",
    "changes of the pattern and the freeze are those of the plain loop (differences)",
    needs=["certified"],
)
def hd10(case: HighDim) -> Finding:
    """Events of the run against the loop's, iteration, neuron and point; nothing after the freeze.

    Changes closer to zero than rounding may fall on either side: then the loop decides nothing.
    """
    loop, events = case.loop, case.limit.events
    known = optional_end(case.limit.stats["events_until"], loop.steps)
    kept = events[(events["point"] >= 0) & (events["t"] <= known)]
    run = set(
        zip(
            kept["t"].astype(int).tolist(),
            *(kept[f].tolist() for f in ("neuron", "point")),
            strict=True,
        )
    )
    plain = {change for change in loop.changes() if change[0] <= known}
    missed = run ^ plain
    clear = [change for change in missed if _clear(loop, change)]
    note = f"{len(plain)} changes up to iteration {known}"
    if missed and not clear:
        return undecided(float(len(missed)), 0.0, f"{note}; ties at rounding; another step decides")
    return holds(not missed, len(missed), 0.0, note)


def optional_end(until: int | None, steps: int) -> int:
    """The last iteration up to which both lists are complete."""
    return steps if until is None else min(int(until), steps)


def _clear(loop: Loop, change: tuple[int, int, int]) -> bool:
    """Whether the loop's value at a change is far enough from zero to have a sign."""
    t, k, i = change
    return bool(abs(loop.P[t, k, i]) > 1e-11 * np.abs(loop.P[t, k]).max())


@paper.claim(
    "HD-34",
    "identity: Lemma 7: Gram eigenvalues are of order l1 (larger of mu_max/l1, l1/mu_min)",
    regime=["A2"],
)
def hd34(case: HighDim) -> Finding:
    """The constant of the lemma is missing in the text at hand; 2 is what A2 gives."""
    low, high = float(case.spectrum[0]), float(case.spectrum[-1])
    return at_most(max(high / case.l1, case.l1 / low), 2.0)
