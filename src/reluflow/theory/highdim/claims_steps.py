"""HD-01 to HD-10: gradient, Gram form, one-step lemmas, the final phase and its certificate."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.theory.highdim.case import HALF, Case
from reluflow.theory.highdim.gram import (
    Loop,
    frozen_limit,
    linear_loop,
    residual,
    smoothness,
    weight_loop,
)
from reluflow.theory.highdim.lemmas import lemma5, lemma6
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, Verdict, at_most, holds

CLAIMS = Claims()
LONGEST = 100_000  # iterations of a plain run that a claim may start


def _relative(found: Array, wanted: Array) -> float:
    size = max(float(np.linalg.norm(wanted)), float(np.linalg.norm(found)), 1e-300)
    return float(np.linalg.norm(found - wanted)) / size


@CLAIMS("HD-01", "the first step is the gradient: directional differences of the risk (relative)")
def hd01(case: Case) -> Outcome:
    """Inside one pattern the risk is quadratic, so a central difference is exact to rounding."""
    net = case.limit.at(1).flat()
    gradient = (case.W0 - net.W) / case.eta
    P0, size = case.P0, np.sqrt((case.W0**2).sum(axis=1))[:, None] * np.sqrt(np.diag(case.G))
    if (np.abs(P0) <= 1e-12 * size).any():
        raise NotApplicable("the start lies on a kink: a pre-activation is zero")
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


def _risk(case: Case, P: Array) -> float:
    r = residual(case.s, P, case.y)
    return 0.5 * float(r @ r)


@CLAIMS("HD-02", "iterates of the run are those of the loop in weight space (relative)")
def hd02(case: Case) -> Outcome:
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


@CLAIMS("HD-03", "the part of the weights orthogonal to the points is constant (relative)")
def hd03(case: Case) -> Outcome:
    """Projected off the span of the points by a QR factorisation."""
    if case.data.d <= case.n:
        raise NotApplicable("the points span the space: there is no orthogonal part")
    basis = np.linalg.qr(case.data.X.T)[0]
    moved = case.W_inf - case.W0
    apart = moved - (moved @ basis) @ basis.T
    size = max(float(np.linalg.norm(case.W_inf)), float(np.linalg.norm(case.W0)))
    return at_most(float(np.linalg.norm(apart)) / size, 1e-12)


@CLAIMS("HD-04", "Gram concentration (Corollary 1): |G - l1 I|/l1 over sqrt(n/d_2) + n/d_inf")
def hd04(case: Case) -> Outcome:
    """A statement about random data: 3 covers the laws and spectra that were tried."""
    if case.dimensions is None:
        raise NotApplicable("the covariance of these data is not known")
    scale = np.sqrt(case.n / case.dimensions.d_2) + case.n / case.dimensions.d_inf
    return at_most(case.delta / float(scale), 3.0, note="statistical")


@CLAIMS("HD-05", "|X_+ X_-^T| is at most mu_max/2 (ratio)")
def hd05(case: Case) -> Outcome:
    """A property of any block of a positive semidefinite matrix."""
    up, down = case.y > 0.0, case.y <= 0.0
    if not up.any() or not down.any():
        raise NotApplicable("all labels have the same sign")
    top = float(np.linalg.norm(case.G[np.ix_(up, down)], 2))
    return at_most(2.0 * top / float(case.spectrum[-1]), 1.0 + 1e-12)


@CLAIMS("HD-06", "one-step Lemmas 5 and 6 along the run, without unknown constants (violations)")
def hd06(case: Case) -> Outcome:
    """Counts applications of both lemmas on the plain loop."""
    up = lemma5(case.G, case.y, case.s, case.eta, case.loop)
    down = lemma6(case.G, case.loop)
    if up.applied + down.applied == 0:
        raise NotApplicable("the premises never hold along this run")
    count = up.violated + down.violated
    note = f"applied {up.applied} (Lemma 5) and {down.applied} (Lemma 6) times"
    return holds(count == 0, measured=float(count), note=note)


@CLAIMS("HD-07", "Lemma 1: from the freeze on, descent is linear regression on the active points")
def hd07(case: Case) -> Outcome:
    """200 steps of linear descent from the frozen iterate against the run."""
    T, steps = case.freeze, _affordable(case, 200)
    start = case.limit.at(T).flat().W
    A = case.limit.active(t=T)
    W, _ = linear_loop(case.data.X, case.y, case.s, start, A, case.eta, steps)
    return at_most(
        _relative(case.limit.at(T + steps).flat().W, W), 1e-12, note=f"{steps} steps from {T}"
    )


@CLAIMS("HD-08", "Lemmas 2, 11: the limit is the projection of the frozen iterate (relative)")
def hd08(case: Case) -> Outcome:
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


@CLAIMS("HD-09", "in the final phase the residual on active points never grows (largest growth)")
def hd09(case: Case) -> Outcome:
    """For steps of at most one over the curvature of the final phase."""
    T = case.freeze
    start = case.limit.at(T).flat().W
    A = case.limit.active(t=T)
    top = case.eta * smoothness(case.G, A)
    if top > 1.0 + 1e-9:
        raise NotApplicable(f"eta mu_max(K) is {top:.3g}, above 1")
    if not A.any():
        raise NotApplicable("no point is active any more")
    _, norms = linear_loop(case.data.X, case.y, case.s, start, A, case.eta, _affordable(case, 200))
    recorded = np.sqrt(2.0 * case.limit.loss[case.limit.t >= T])
    growth = max(float(np.diff(list(part)).max(initial=0.0)) for part in (norms, recorded))
    # recorded states are sums of modes from the freeze on, each rounded on its own
    return at_most(growth / float(np.linalg.norm(case.y)), 1e-14)


def _affordable(case: Case, steps: int) -> int:
    return max(1, int(min(steps, 2e9 / (case.n * case.data.d * case.m))))


@CLAIMS("HD-10", "changes of the pattern and the freeze are those of the plain loop (differences)")
def hd10(case: Case) -> Outcome:
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
        return Outcome(Verdict.UNRESOLVED, float(len(missed)), 0.0, f"{note}; ties at rounding")
    return holds(not missed, measured=float(len(missed)), note=note)


def optional_end(until: int | None, steps: int) -> int:
    """The last iteration up to which both lists are complete."""
    return steps if until is None else min(int(until), steps)


def _clear(loop: Loop, change: tuple[int, int, int]) -> bool:
    """Whether the loop's value at a change is far enough from zero to have a sign."""
    t, k, i = change
    return bool(abs(loop.P[t, k, i]) > 1e-11 * np.abs(loop.P[t, k]).max())
