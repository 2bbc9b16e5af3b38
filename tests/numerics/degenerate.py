"""Random problems on which planes coincide, meet or are started on: where flows go wrong.

`problem(seed)` draws data (copies with other labels, multiples, opposite pairs, lattices, points
around the origin, one dimension) and starts (at w = 0, on planes, where planes meet, a = 0, aimed
at the origin, about to flip) independently of each other; `generic(seed)` draws neither.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import reluflow as rf

from . import hull, small_steps

LOSSES = (
    rf.losses.Square("1/2n"),
    rf.losses.Square("1/2"),
    rf.losses.Square("1/n"),
    rf.losses.Exponential(),
    rf.losses.Logistic(),
)
DATA = ("copies", "multiples", "opposite", "lattice", "around", "line", "mixture")
STARTS = ("origin", "plane", "corner", "silent", "aimed", "flipping", "beside", "plain")
LARGEST_OUTPUT = 1.5  # at the start, of 1 + |y|: the exponential loss punishes e to this power


DRAWS = 5
COARSE = 2e-3


class Problem(NamedTuple):
    """What `rf.flow` is given, the end time, and the names of the draws."""

    data: rf.Dataset
    net: rf.Network
    loss: object
    train: str
    t_end: float
    kind: str

    def flow(self, **options):
        """The engine's run to the end time."""
        given = {"loss": self.loss, "train": self.train, "t_end": self.t_end, **options}
        return rf.flow(self.data, self.net, **given)


def problem(seed, data=None, start=None):
    """The degenerate problem of a seed; ``data`` and ``start`` replace its own kinds.

    Of a few draws it is the one with most meetings of neurons and planes: most draws have none.
    Draws that descent cannot judge are left out.
    """
    rng = np.random.default_rng([seed, 15])
    drawn, begun = str(rng.choice(DATA)), str(rng.choice(STARTS))
    best, most, judged = None, -1, 0
    while judged < DRAWS:
        candidate = draw(rng, data or drawn, start or begun)
        met = liveliness(candidate)
        judged += met >= 0
        if met > most:
            best, most = candidate, met
    return best


def draw(rng, data, start):
    """One problem of the kinds of ``data`` and ``start``."""
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    d = 1 if data == "line" else int(rng.choice([1, 2, 2, 2, 3, 3, 4]))
    loss = LOSSES[rng.choice(5, p=[0.2, 0.2, 0.1, 0.25, 0.25])]
    train = "hidden" if rng.random() < 0.4 else "both"
    X = points(rng, data, n, d)
    y = labels(rng, loss, len(X))
    a, W = neurons(rng, start, X, loss.forces(np.zeros(len(X)), y), m)
    t_end = float(rng.choice([1.0, 2.0, 4.0, 8.0], p=[0.1, 0.2, 0.35, 0.35]))
    kind = f"{data} {start} {loss.name} {train} n={len(X)} d={d} m={m}"
    return assemble(X, y, a, W, (loss, train, t_end, kind))


def liveliness(drawn):
    """A count of meetings in coarse descent: shared planes count most, then flips, then others.

    It is -1 where a neuron shrinks to a tenth. Descent keeps ``a^2 - |w|^2`` to the order of its
    step only, so a balanced neuron that becomes small flips in descent and never in the flow.
    """
    begin = small_steps.start(drawn)
    _, _, least, changes = small_steps.path(drawn, begin, COARSE)
    _, plane, _ = hull.lines(drawn.data.X)
    shared = np.bincount(plane)[plane] > 1
    met = changes[:, :-1] > 0
    net = drawn.net.flat()
    if (least[:, 1] < 0.1 * np.hypot(net.a, np.linalg.norm(net.W, axis=1))).any():
        return -1
    origin = least[:, 0] < 4 * COARSE
    return met[:, shared].sum() * 3 + met.sum() + 3 * changes[:, -1].sum() + 2 * origin.sum()


def generic(seed):
    """A problem of the same sizes without any coincidence."""
    rng = np.random.default_rng([seed, 16])
    n, m, d = int(rng.integers(2, 8)), int(rng.integers(1, 5)), int(rng.integers(2, 5))
    loss = LOSSES[rng.integers(5)]
    X, W = rng.normal(size=(n, d)), 0.7 * rng.normal(size=(m, d))
    y = rng.normal(size=n) if loss.name == "square" else rng.choice([-1.0, 1.0], n)
    a = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1) * rng.choice([0.5, 1.0, 1.5])
    train = "hidden" if rng.random() < 0.4 else "both"
    t_end = float(rng.choice([1.0, 2.0, 4.0]))
    return assemble(X, y, a, W, (loss, train, t_end, f"generic {loss.name} {train} d={d}"))


def assemble(X, y, a, W, rest):
    """The values of a problem; weights halved until no output is large, which keeps all zeros."""
    while np.abs(np.maximum(X @ W.T, 0.0) @ a).max() > LARGEST_OUTPUT * (1.0 + np.abs(y).max()):
        a, W = a / 2, W / 2
    return Problem(rf.Dataset(X, y), rf.Network(a, W), *rest)


# ---------------------------------------------------------------- data


def points(rng, kind, n, d):
    """Points (n, d) of a kind, none of them zero."""
    if kind == "mixture":
        kind = str(rng.choice(DATA[:5]))
        X = points(rng, kind, n, d)
        X[-1] = X[0] * rng.choice([1.0, -1.0, 2.0, -2.0, 0.5])
        return X
    if kind == "lattice":
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    else:
        X = 2.0 * rng.normal(size=(n, d))
        if rng.random() < 0.7:  # eighths: products with whole numbers are exact
            X = np.round(8 * X) / 8
    X[~X.any(axis=1), 0] = 1.0
    if kind in ("copies", "multiples", "opposite"):
        factors = {
            "copies": [1.0],
            "multiples": [1.0, 2.0, -1.0, 0.5, -0.5, 3.0],
            "opposite": [-1.0],
        }[kind]
        first = int(rng.integers(1, max(2, n // 2 + 1)))  # the lines; the others lie on them
        for i in range(first, n):
            if i == first or rng.random() < 0.7:
                X[i] = X[rng.integers(first)] * rng.choice(factors)
    if kind == "around" and n > d:  # zero inside the hull: the last point balances d others
        X[-1] = -X[:d].sum(axis=0) if X[:d].sum(axis=0).any() else X[-1]
    return X


def labels(rng, loss, n):
    """Labels for a loss: whole or real for regression, +-1 otherwise."""
    if loss.name != "square":
        return rng.choice([-1.0, 1.0], n)
    y = rng.integers(-5, 6, n).astype(float) if rng.random() < 0.5 else 3.0 * rng.normal(size=n)
    return y if y.any() else y + 1.0


# ---------------------------------------------------------------- starts


def neurons(rng, kind, X, c, m):
    """Output weights (m,) and hidden weights (m, d); at least the first neuron is of the kind."""
    d = X.shape[1]
    W = rng.normal(size=(m, d)) * rng.choice([0.1, 0.4, 0.8])
    if rng.random() < 0.3:
        W = np.where(W.round().any(axis=1)[:, None], W.round(), 1.0)
    a = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1) * rng.choice([0.5, 1.0, 2.0, 4.0])
    for j in range(m):
        if j == 0 or rng.random() < 0.4:
            a[j], W[j] = neuron(rng, kind, X, c, (a[j], W[j]))
    return a, W


def neuron(rng, kind, X, c, plain):
    """One neuron of a kind, from a plain one ``(a, w)``."""
    a, w = plain
    d = X.shape[1]
    if kind == "origin":
        return a if rng.random() < 0.9 else 0.0, 0 * w
    if kind in ("plane", "corner") and d > 1:
        count = 1 if kind == "plane" else int(rng.integers(1, d)) if d > 2 else 1
        w = on_planes(rng, X, count)
        return np.sign(a) * np.linalg.norm(w) * rng.choice([0.5, 1.0, 2.0]), w
    if kind == "beside" and d > 1:  # a plane that it soon reaches, or has just left
        w = on_planes(rng, X, 1)
        w = w + rng.normal(size=d) * rng.choice([1e-3, 0.1])
        return np.sign(a) * np.linalg.norm(w) * rng.choice([0.3, 1.0, 2.0]), w
    if kind == "silent":
        if rng.random() < 0.4 and d > 1:
            w = on_planes(rng, X, 1)
        return 0.0, w
    if kind == "aimed":
        w = aimed(rng, X, c, np.sign(a))
        return np.sign(a) * np.linalg.norm(w) * rng.uniform(1.2, 3.0), w
    if kind == "flipping":
        w = turning(rng, X, c) if d > 1 and rng.random() < 0.6 else w
        pull = c[X @ w > 0] @ X[X @ w > 0]
        return -np.sign(w @ pull) * np.linalg.norm(w) * rng.uniform(0.02, 0.7), w
    return a, w


def on_planes(rng, X, count):
    """A vector orthogonal to ``count`` of the points, exactly if they are eighths.

    It is the generalised cross product of these points and random whole vectors: cofactors of
    small whole numbers are exact in floats.
    """
    d = X.shape[1]
    while True:
        chosen = X[rng.choice(len(X), count, replace=False)] if count <= len(X) else X
        rows = np.vstack([chosen, rng.integers(-2, 3, size=(d - 1 - len(chosen), d))])
        minors = [cofactor(np.delete(rows, k, axis=1)) for k in range(d)]
        w = np.array([(-1.0) ** k * minor for k, minor in enumerate(minors)])
        if np.abs(w).max() > 1e-6:
            w *= rng.choice([-1.0, 1.0])
            return w * 2.0 ** -np.round(np.log2(np.linalg.norm(w)))
        count = max(1, count - 1)


def cofactor(square):
    """A determinant by expansion: no divisions, so exact for small whole numbers."""
    if len(square) == 0:
        return 1.0
    rest = [np.delete(square[1:], k, axis=1) for k in range(len(square))]
    return sum((-1) ** k * square[0, k] * cofactor(minor) for k, minor in enumerate(rest))


def turning(rng, X, c):
    """Weights on or beside a plane on which a neuron slides while its output weight vanishes."""
    for _ in range(30):
        w = on_planes(rng, X, 1)
        on = np.abs(X @ w) <= 1e-12 * np.linalg.norm(w)
        base = c[X @ w > 0] @ X[X @ w > 0] if (X @ w > 0).any() else np.zeros(len(w))
        u = X[on][0] if on.any() else w
        above = base + c[on & (X @ u > 0)] @ X[on & (X @ u > 0)]
        below = base + c[on & (X @ u < 0)] @ X[on & (X @ u < 0)]
        sign = -np.sign(w @ base)
        if sign * (above @ u) < 0 < sign * (below @ u):
            return w + 0.02 * u * rng.choice([-1.0, 0.0, 1.0])
    return w


def aimed(rng, X, c, sign):
    """Weights that the present pull drives straight to w = 0, if twenty tries find such."""
    for _ in range(20):
        u = rng.normal(size=X.shape[1])
        pull = -sign * (c[X @ u > 0] @ X[X @ u > 0])
        if pull.any() and np.array_equal(X @ pull > 0, X @ u > 0):
            return pull / np.linalg.norm(pull) * rng.uniform(0.05, 0.6)
    x = X[rng.integers(len(X))]
    return x / np.linalg.norm(x) * rng.uniform(0.05, 0.6)
