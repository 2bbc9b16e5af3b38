r"""Do rank minimisation and norm minimisation agree? Theorem 8 for a single teacher neuron.

d independent points, labels :math:`y_i = v^*\cdot x_i > 0`. The network with all neurons along
:math:`v^*` has squared norm :math:`2|v^*|` and rank 1. With M of `separation`: M < 0 means that
exactly these networks have minimum norm, M > 0 that none of them has (Chistikov, Englert & Lazic,
NeurIPS 2023, Theorem 8). V of `half_network` has V < 1 iff M < 0 and V > 1 iff M > 0, and is what
decides: it is a maximum of convex problems, M is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.half_network import Bend, bend_by_ascent, bend_exactly
from reluflow.interpolators.separation import Pair, best_partner, largest_separation, pair_value
from reluflow.interpolators.supremum import relu_sum
from reluflow.network import Network, row_norms

_EXACT_DIMENSION = 12
_MARGIN = 1e-9


@dataclass(frozen=True)
class RankVersusNorm:
    r"""The verdict and its numbers.

    Attributes
    ----------
    V : float
        Maximum over bending networks, compared with 1; a lower bound if not ``is_exact``.
    M : float
        Best ``cos(p,q) - sin(p,v*)`` found, a lower bound on the M of the theorem, of the sign
        of the verdict.
    min_rank_is_min_norm : bool or None
        True if M < 0, False if M > 0, None if undecided (``|V - 1| <= 1e-9``, or d beyond the
        exact method and no test conclusive).
    counterexample : Network or None
        When M > 0, a balanced network of two neurons and rank 2 that fits with a squared norm
        below :math:`2|v^*|`.
    is_exact : bool
        Whether V is the maximum, every projection verified.
    reason : str
        Which test decided.
    """

    V: float
    M: float
    min_rank_is_min_norm: bool | None
    counterexample: Network | None
    is_exact: bool
    reason: str


@interrupts.deferred()
def rank_versus_norm(data: Dataset) -> RankVersusNorm:
    r"""Whether the rank-1 teacher networks have minimum norm among all that fit (n = d).

    Parameters
    ----------
    data : Dataset
        d independent points in d dimensions, with a teacher vector (or a network of one neuron)
        that gives every label and makes an angle below pi/2 with every point.

    Returns
    -------
    RankVersusNorm
        The answer with the numbers that decide it.

    Examples
    --------
    >>> answer = rank_versus_norm(Dataset([[1.0, 0.2], [0.3, 1.0]], [1.0, 0.3], teacher=[1.0, 0.0]))
    >>> answer.min_rank_is_min_norm
    True

    Numerics
    --------
    Exact to d = 12 (two projections a subset, each with verified optimality). Beyond: if no two
    rows of the inverse have a positive product, M < 0; if an ascent finds a value above 1, M > 0;
    otherwise undecided. Rows are scaled to unit length first, which changes neither V nor M.
    """
    X, v, size = _problem(data)
    chi: Array = np.asarray(np.linalg.inv(X).T, dtype=np.float64)
    zeta = chi @ v
    exact = len(X) <= _EXACT_DIMENSION
    bend = (bend_exactly if exact else bend_by_ascent)(X, zeta)
    attained = float(abs(relu_sum(X, zeta, bend.w[None, :])[0]))
    verdict, reason = _verdict(bend, attained, chi, exact)
    pair = _best_pair(chi, v, X @ bend.w)
    network = _rank_two(chi, v, X @ v, pair, size) if verdict is False else None
    return RankVersusNorm(bend.value, pair.value, verdict, network, bend.is_exact, reason)


def _verdict(bend: Bend, attained: float, chi: Array, exact: bool) -> tuple[bool | None, str]:
    # one direction above 1 proves M > 0, whatever the projections are worth; the full pattern
    # cannot give more than |v*| = 1
    if attained > 1 + _MARGIN:
        return False, f"a direction gives {attained:.9g} > 1"
    if exact and bend.is_exact:
        if bend.value < 1 - _MARGIN:
            return True, f"all patterns give at most {bend.value:.9g} < 1"
        return None, f"V = {bend.value:.12g} is within {_MARGIN:g} of 1"
    products = chi @ chi.T
    if (products - np.diag(np.diag(products))).max() <= 0.0:
        return True, "the inverse of the Gram matrix is a Z-matrix"
    if exact:
        return None, f"a projection could not be verified (violation {bend.kkt:.1e})"
    return None, f"d = {len(chi)} is beyond the exact method and no sufficient test decides"


def _best_pair(chi: Array, v: Array, t: Array) -> Pair:
    """Best pair, with the one read off the maximiser of V (both parts) among the starts."""
    starts = t[None, :] if (t > 0).any() and (t < 0).any() else np.zeros((0, len(t)))
    best = largest_separation(chi, v, starts)
    for u in starts:
        p = np.maximum(u, 0.0)
        q = best_partner(chi, p)
        value = pair_value(chi, v, p, q)
        best = Pair(value, p, q) if value > best.value else best
    return best


def _rank_two(chi: Array, v: Array, y: Array, pair: Pair, size: float) -> Network:
    """The two-neuron network of the theorem's proof, rebalanced and scaled to the teacher."""
    P, Q = pair.p @ chi, pair.q @ chi
    b = pair.p / np.sqrt(P @ P)
    P, Q = P / np.sqrt(P @ P), Q / np.sqrt(Q @ Q)
    across = P - Q * (Q @ P)
    sine = float(np.sqrt(across @ across))
    along = float(P @ v)
    if along >= 0:
        used = b > 0
        amount, sign = min(float((y[used] / b[used]).min()), along - sine), 1.0
    else:
        amount, sign = -along - sine, -1.0
    products = np.array([v - sign * amount * P, amount * across]) * size
    root = np.sqrt(row_norms(products))
    return Network(np.array([1.0, sign]) * root, products / root[:, None])


def _problem(data: Dataset) -> tuple[Array, Array, float]:
    """Unit rows, unit teacher and its norm, after checking every hypothesis."""
    if data.n != data.d:
        raise InputError(
            f"the data has {data.n} points in {data.d} dimensions. Theorem 8 needs as many points "
            "as dimensions. Add or drop points, or use `min_norm`."
        )
    if data.d == 1:
        raise InputError(
            "the data has one dimension. Every fit of one point has rank 1, so there is nothing to "
            "compare. Use data with d > 1."
        )
    v = _teacher_vector(data.teacher)
    norms = row_norms(data.X)
    X = data.X / norms[:, None]
    condition = float(np.linalg.cond(X))
    if not condition < 1e12:
        raise InputError(
            f"the points are linearly dependent (condition number {condition:.3g}). The dual cone "
            "is undefined. Drop or move a point, or use `min_norm`."
        )
    size = float(np.sqrt(v @ v))
    if size == 0.0:
        raise InputError("`teacher` is the zero vector. It has no direction. Give a non-zero one.")
    wanted = data.X @ v
    wrong = np.flatnonzero(wanted <= 0)
    if len(wrong):
        raise InputError(
            f"point {wrong[0]} makes an angle of {np.arccos(X[wrong[0]] @ v / size):.4g} with the "
            "teacher. Theorem 8 needs all angles below pi/2. Drop such points."
        )
    off = np.flatnonzero(np.abs(data.y - wanted) > 1e-9 * norms * size)
    if len(off):
        raise InputError(
            f"label {off[0]} is {data.y[off[0]]:g} but the teacher gives {wanted[off[0]]:g}. "
            "The theorem is about the teacher's labels. Set y = X @ teacher."
        )
    return X, v / size, size


def _teacher_vector(teacher: Any) -> Array:
    if teacher is None:
        raise InputError(
            "the data has no teacher. V and M are about one. Pass `teacher=` to the Dataset."
        )
    if not isinstance(teacher, Network):
        return np.array(teacher)
    flat = teacher.flat()
    if flat.width != 1 or flat.a[0] <= 0:
        raise InputError(
            f"`teacher` has {flat.width} neurons with output weights {flat.a}. The theorem is "
            "about one positive neuron. Pass it as a vector."
        )
    return np.asarray(flat.a[0] * flat.W[0])
