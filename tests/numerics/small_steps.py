r"""Gradient descent with small steps, an independent judge of the flow.

The reference is forward Euler on the (sub)gradient with relu'(0) = 0, at steps 1.6e-4, 8e-5 ...
1e-5, and smaller where these do not tell. A flow agrees if it lies within 1e-3 of an end and the
difference halves with the step, twice, as a vector: what is added to a difference that halves does
not halve. Three steps are enough for most problems. Slides zigzag by the step, and their difference
need not halve: there it has to be below 1e-4. Faults of that size are noticed (`faults.py`).

**Starts on planes.** Descent from exactly there sees rounding, so a neuron on planes is moved by
`NUDGE` into a cell on which it is inactive on all of them, if there is one. **Starts at w = 0**
(descent never moves) are moved along sign(a) times the least element of the realisable pulls. Both
begin with steps that are small against the distance already covered.

**Balance.** Steps change ``a^2 - |w|^2``, which the flow keeps, and a neuron that all but dies may
grow again on another side for that. Where plain descent does not agree the same is tried with
descent that restores it after each step: it has the same limit as steps go to zero.

**Branch points.** If the ends do not settle, or starts 1e-9 apart end O(1) apart, the solution is
not unique to the precision of any computation: the flow agrees with one of the ends, or says
`branch`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numba
import numpy as np
from scipy.optimize import linprog

from . import hull

STEPS = tuple(1.6e-4 / 2**k for k in range(5))  # to 1e-5
FINER = tuple(1e-5 / 2**k for k in range(1, 4))
FINEST = tuple(1e-5 / 2**k for k in range(4, 7))  # where a plane is missed by less than a step
NEAR = 1e-3  # of the size of the weights: agreement at the smallest step
NOTICED = 1e-4  # of the same: an error of the flow that is seen
APART = 2e-3  # of the same: ends that differ
NUDGE = 1e-8
PERTURBATION = 1e-9
ON_PLANE = 1e-12
OWN = 1e-7  # of the weights: what the flow itself may miss
LAWS = {"square": 0, "exponential": 1, "logistic": 2}


@numba.njit  # no cache: it would hold the name under which this module was imported
def descend(X, y, a, W, law, kappa, hidden, h, t_end, first, keep):
    """Weights after descent to ``t_end``, least norms on the way, and changes of sign.

    Norms (m, 2) are ``|w_j|`` and ``|(a_j, w_j)|``. Changes of sign are counts (m, n + 1): of the
    pre-activations, and of the output weight.
    ``first > 0``: steps begin at a hundredth of that time and grow with the time covered until
    they are h. ``keep``: the balance of every neuron is restored after each step.
    """
    (n, d), m = X.shape, len(a)
    a, W = a.copy(), W.copy()
    balance = a**2 - (W**2).sum(axis=1)
    balance[np.abs(balance) < 1e-14 * a**2] = 0.0
    c = np.zeros(n)
    z = np.zeros((m, n))
    least = np.full((m, 2), np.inf)
    above = np.zeros((m, n + 1), dtype=np.bool_)
    changes = np.zeros((m, n + 1), dtype=np.int64)
    t = 0.0
    while t < t_end:
        step = h if first == 0.0 else min(h, 0.01 * (t + first))
        step = min(step, t_end - t)
        for i in range(n):
            out = 0.0
            for j in range(m):
                s = 0.0
                for k in range(d):
                    s += W[j, k] * X[i, k]
                z[j, i] = s
                if s > 0.0:
                    out += a[j] * s
            if law == 0:
                c[i] = kappa * (y[i] - out)
            elif law == 1:
                c[i] = y[i] * np.exp(-y[i] * out) / n
            else:
                c[i] = y[i] / (1.0 + np.exp(y[i] * out)) / n
        for j in range(m):
            for i in range(n + 1):
                now = z[j, i] > 0.0 if i < n else a[j] > 0.0
                changes[j, i] += t > 0.0 and now != above[j, i]
                above[j, i] = now
            push = 0.0
            norm = 0.0
            scale = step * a[j]
            for i in range(n):
                if z[j, i] > 0.0:
                    push += c[i] * z[j, i]
                    for k in range(d):
                        W[j, k] += scale * c[i] * X[i, k]
            for k in range(d):
                norm += W[j, k] ** 2
            if not hidden:
                a[j] += step * push
            if keep and balance[j] >= 0.0:
                a[j] = np.copysign(np.sqrt(norm + balance[j]), a[j])
            elif keep and norm > 0.0:
                W[j] *= np.sqrt((a[j] ** 2 - balance[j]) / norm)
            least[j, 0] = min(least[j, 0], np.sqrt(norm))
            least[j, 1] = min(least[j, 1], np.sqrt(norm + a[j] ** 2))
        t += step
    return a, W, least, changes


# ---------------------------------------------------------------- starts


@dataclass(frozen=True)
class Start:
    """Weights to begin with; ``first`` as in `descend`; ``moved``: the neurons that were nudged.

    ``free``: those of them whose direction of departure no rule fixes. ``keep`` as in `descend`.
    """

    a: np.ndarray
    W: np.ndarray
    first: float
    moved: tuple
    free: tuple
    keep: bool = False


def start(problem):
    """The start of descent that has the flow's convention at planes and at w = 0."""
    X, net = problem.data.X, problem.net.flat()
    a, W = net.a.copy(), net.W.copy()
    c = problem.loss.forces(np.maximum(X @ W.T, 0.0) @ a, problem.data.y)
    moved, free = [], []
    rng = np.random.default_rng(1)
    for j in range(len(a)):
        direction, fixed = _departure(X, c, (float(a[j]), W[j]), rng)
        if not fixed:
            free.append(j)
        if direction is not None:
            moved.append(j)
            W[j] += NUDGE * direction
    return Start(a, W, NUDGE if moved or free else 0.0, tuple(moved), tuple(free))


def _departure(X, c, neuron, rng):
    """The unit vector along which to move a start, or None; whether a rule fixes it.

    At w = 0 with 0 among the mixtures of pulls a neuron may rest. If some direction has no active
    point it rests for ever; if not, where it goes from a start beside 0 shows whether the rest
    lasts, and when it ends.
    """
    a, w = neuron
    anywhere = rng.normal(size=len(w))
    anywhere /= np.linalg.norm(anywhere)
    if not w.any():
        cells = hull.cells(X)
        pulls = hull.pulls(cells, c, X)
        if a == 0.0 or not cells.any(axis=1).all():
            return None, a == 0.0
        if not hull.zero_is_outside(pulls):
            return anywhere, False
        least = hull.least_element(pulls)
        return np.sign(a) * least / np.linalg.norm(least), True
    sizes = np.linalg.norm(X, axis=1) * np.linalg.norm(w)
    on = X[np.abs(X @ w) <= ON_PLANE * sizes]
    if not len(on):
        return None, True
    active = X @ w > ON_PLANE * sizes
    if a == 0.0 and abs(w @ (c[active] @ X[active])) <= ON_PLANE:
        return None, True  # nothing moves it, whatever its pattern
    units, _, _ = hull.lines(on)
    down = _inactive_direction(on)
    return (anywhere, False) if down is None else (down, len(units) == 1)


def _inactive_direction(on):
    """A unit direction that leaves all these points inactive, or None."""
    d = on.shape[1]
    rows = on / np.linalg.norm(on, axis=1)[:, None]
    ones = np.ones((len(rows), 1))
    answer = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([rows, ones]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1, 1)] * d + [(0, 1)],
    )
    if -answer.fun < 1e-6:
        return None
    return answer.x[:d] / np.linalg.norm(answer.x[:d])


def perturbed(begin, rng):
    """Another start, 1e-9 away; a nudged neuron by less than its nudge, a free one anywhere."""
    a, W = begin.a.copy(), begin.W.copy()
    for j in range(len(a)):
        direction = rng.normal(size=W.shape[1])
        direction /= np.linalg.norm(direction)
        size = PERTURBATION if j not in begin.moved else 0.01 * NUDGE
        W[j] += direction * (2 * NUDGE if j in begin.free else size)
    return Start(a, W, begin.first, begin.moved, begin.free)


# ---------------------------------------------------------------- ends


def end(problem, begin, h):
    """Weights (m, 1 + d) where descent with step h ends, output weights first."""
    a, W, *_ = path(problem, begin, h)
    return np.column_stack([a, W])


def path(problem, begin, h):
    """Descent with step h, as `descend` returns it."""
    data, loss = problem.data, problem.loss
    kappa = loss.kappa(data.n) if loss.name == "square" else 0.0
    return descend(
        data.X, data.y, begin.a, begin.W, LAWS[loss.name], kappa, problem.train == "hidden",
        h, problem.t_end, begin.first, begin.keep,
    )  # fmt: skip


def weights(net):
    """Weights of a network as one array (m, 1 + d), output weight first."""
    flat = net.flat()
    return np.column_stack([flat.a, flat.W])


def distance(one, other):
    """Largest difference of two ends, relative to the size of the weights or 1."""
    if not np.isfinite(one).all() or not np.isfinite(other).all():
        return np.inf
    return float(np.abs(one - other).max() / max(1.0, np.abs(one).max(), np.abs(other).max()))


# ---------------------------------------------------------------- judgement


@dataclass(frozen=True)
class Verdict:
    """The outcome, the differences by step size, and whether that is good enough.

    ``agrees``: with descent, in proportion to the step. ``one of``: descent has several ends, the
    flow has one of them. ``branch``: descent has several ends; the flow has none of those tried
    but says `branch`. ``excused``: it says so where descent settles elsewhere. ``wrong``: descent
    settles elsewhere. ``unsettled``: descent has several ends, the flow none, silently.
    """

    outcome: str
    differences: tuple
    spread: float = 0.0

    @property
    def good(self):
        """Whether the flow is right."""
        return self.outcome in ("agrees", "one of", "branch", "excused")


def judge(problem, flow_end, branches=False):
    """Compare the end of a flow with descent; ``branches``: the flow has recorded `branch`."""
    begin = start(problem)
    ends, gaps, agrees = nearing(problem, begin, flow_end)
    if agrees:
        return Verdict("agrees", tuple(gaps))
    verdict = _judge_branches(problem, begin, ends, gaps, (flow_end, branches))
    if verdict.good:
        return verdict
    _, more, agrees = nearing(problem, begin, flow_end, FINEST)
    if not agrees and problem.train != "hidden":
        _, more, agrees = nearing(problem, replace(begin, keep=True), flow_end)
    return Verdict("agrees", (*gaps, *more)) if agrees else verdict


def nearing(problem, begin, flow_end, steps=STEPS + FINER):
    """Ends of descent, their distances from the flow's, and whether they near it as they should.

    Steps become smaller until that is seen, beyond `STEPS` only if it may be.
    """
    ends, gaps = [], []
    for k, h in enumerate(steps):
        if k == len(STEPS) and gaps[-1] > NEAR and not _still_falling(ends, gaps):
            break
        ends.append(end(problem, begin, h))
        gaps.append(distance(ends[-1], flow_end))
        near = h <= STEPS[-1] and gaps[-1] <= NOTICED
        if _halves(ends[-3:], flow_end) or (near and gaps[-1] <= max(10 * h, 0.4 * max(gaps))):
            return ends, gaps, True
    return ends, gaps, False


def _judge_branches(problem, begin, ends, gaps, claimed):
    flow_end, branches = claimed
    rng = np.random.default_rng(0)
    others = [end(problem, perturbed(begin, rng), h) for h in (2e-5, 1e-5) for _ in range(6)]
    if begin.free:
        others.append(held_end(problem))
    tail = ends[-3:]
    reference = ends[-1]
    spread = max(distance(reference, e) for e in [*tail, *others])
    nearest = min(distance(e, flow_end) for e in [*tail, *others])
    error = min(NEAR, max(20 * STEPS[-1], 3 * distance(ends[-2], reference)))
    if spread > APART and nearest < error:
        return Verdict("one of", tuple(gaps), spread)
    outcomes = ("branch", "excused") if branches else ("unsettled", "wrong")
    return Verdict(outcomes[spread <= APART], tuple(gaps), spread)


def _halves(ends, flow_end):
    """Whether three ends, each with half the step of the one before, near the flow's in proportion.

    A flow that is off by e leaves e / 2 of every difference, in whatever weight it is.
    """
    if len(ends) < 3 or distance(ends[-1], flow_end) > NEAR or not np.isfinite(ends).all():
        return False
    off = (np.asarray(ends) - flow_end) / max(1.0, np.abs(flow_end).max())
    left = np.abs(off[1:] - off[:-1] / 2).max(axis=(1, 2))
    return bool((left <= np.clip(0.1 * np.abs(off[:-1]).max(axis=(1, 2)), OWN, NOTICED / 2)).all())


def _still_falling(ends, gaps):
    """Whether descent itself is still on its way to the flow's end: smaller steps will tell."""
    moves = [distance(e, f) for e, f in itertools.pairwise(ends)]
    return gaps[-1] < 0.8 * gaps[-2] < 0.8 * gaps[-3] and moves[-1] < 0.8 * moves[-2]


def held_end(problem):
    """The end of descent whose resting neurons stay at w = 0 until 0 leaves the hull of pulls.

    Descent with relu'(0) = 0 holds them by itself; the moment is found by bisection on the time,
    to 1e-5, one neuron after the other.
    """
    X = problem.data.X
    cells = hull.cells(X)
    begin = start(problem)
    a, W = begin.a, np.where(problem.net.flat().W.any(axis=1)[:, None], begin.W, 0.0)
    t, chunk = 0.0, problem.t_end / 64
    while t < problem.t_end:
        part = problem._replace(t_end=min(chunk, problem.t_end - t))
        after = end(part, Start(a, W, 0.0, (), ()), 1e-5)
        c = problem.loss.forces(np.maximum(X @ after[:, 1:].T, 0.0) @ after[:, 0], problem.data.y)
        out = hull.pulls(cells, c, X)
        waiting = [j for j in range(len(a)) if not after[j, 1:].any() and after[j, 0] != 0.0]
        leaves = bool(waiting) and hull.zero_is_outside(out)
        if leaves and chunk > 1e-5:
            chunk /= 2
            continue
        chunk = min(2 * chunk, problem.t_end / 64)
        t, a, W = t + part.t_end, after[:, 0].copy(), after[:, 1:].copy()
        if leaves:
            least = hull.least_element(out)
            for j in waiting:
                W[j] = NUDGE * np.sign(a[j]) * least / np.linalg.norm(least)
            rest = problem._replace(t_end=problem.t_end - t)
            return end(rest, Start(a, W, NUDGE, (), ()), 1e-5) if rest.t_end > 0 else after
    return np.column_stack([a, W])
