r"""Minimum-norm interpolation by several neurons with output weights +-1: problem (45).

.. math:: \min \sum_k |w_k|^2 \quad\text{s.t.}\quad \sum_k s_k\,\mathrm{relu}(Xw_k) = y

For a fixed activation pattern it is a convex problem. With fixed output weights sharing is
cheaper: the solution of one neuron split evenly, :math:`w_k = w_\pm^*/m_\pm`, fits at cost
:math:`|w_+^*|^2/m_+ + |w_-^*|^2/m_-`, and is optimal for orthogonal points and, as a rule, in
high dimension.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from reluflow import interrupts
from reluflow.checks import Array, real_array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.fixed_signs import FITS, GAP, MinimumWeights, Scaled, scaled, weights
from reluflow.interpolators.min_norm import min_norm
from reluflow.interpolators.pattern_search import best_pattern
from reluflow.interpolators.rays import refuse_contradictions
from reluflow.interpolators.single_relu import OneNeuron, solve_one
from reluflow.interpolators.supremum import bracket
from reluflow.interpolators.two_relu import search
from reluflow.network import Network

_ENUMERATED = 12  # points times neurons up to which all patterns are searched
_COMPARED = 40  # points up to which the minimum over all widths is worth its cost


@interrupts.deferred()
def multi_relu(data: Dataset, signs: ArrayLike) -> MinimumWeights:
    r"""Shortest weights of neurons with the given output signs that together fit every label.

    Parameters
    ----------
    data : Dataset
        Points and labels; a label needs at least one neuron of its sign.
    signs : (m,) array of +-1
        Output weights.

    Returns
    -------
    MinimumWeights
        The weights, their squared norm, and the certificate.

    Examples
    --------
    >>> answer = multi_relu(Dataset([[1.0, 0.0], [0.0, 1.0]], [3.0, -4.0]), [1, 1, -1])
    >>> round(answer.value, 9), answer.certified
    (20.5, True)

    Numerics
    --------
    Exact for one neuron, for one of each sign (`two_relu`) and for n m <= 12 (branch and bound
    over all patterns). Otherwise the even split with a dual bound

    .. math:: \Bigl(\sum_i \lambda_i y_i\Bigr)^2 / \bigl(m_+ F(\lambda)^2 + m_- F(-\lambda)^2\bigr),

    F the largest ReLU sum over unit directions; it is tight when the even split is optimal and
    its multipliers are feasible, so the answer is often certified beyond enumeration too. If
    not, the minimum-norm network of any width is compared (n <= 40).
    """
    s = _checked_signs(data, signs)
    problem = scaled(data)
    refuse_contradictions(problem.U @ problem.basis, problem.z)
    if len(s) == 1 or (len(s) == 2 and s.sum() == 0):
        return _one_or_two(data, problem, s)
    start = _even_split(problem, s)
    if data.n * len(s) <= _ENUMERATED:
        return _enumerated(data, problem, s, None if start is None else start[0])
    if start is not None:
        W, plus, minus = start
        bound = _dual_bound(problem, s, plus, minus)
        answer = weights(problem, W, s, bound, "dual of the even split", _error(problem, W, s))
        if answer.certified or data.n > _COMPARED:
            return answer
    return _against_any_width(data, problem, s, None if start is None else answer)


def _enumerated(data: Dataset, problem: Scaled, s: Array, start: Array | None) -> MinimumWeights:
    found = best_pattern(problem.U, problem.z, s, start)
    if found.W is None:
        raise InputError(_refusal(data, s, "all patterns are infeasible"))
    error = _error(problem, found.W, s)
    return weights(problem, found.W, s, found.bound, "all patterns", error, found.nodes)


def _against_any_width(
    data: Dataset, problem: Scaled, s: Array, other: MinimumWeights | None
) -> MinimumWeights:
    r"""Compare with the minimum-norm network: :math:`\sum|w_k|^2 \ge (\sum|w_k|)^2/m`.

    The sum of lengths is at least half the minimum squared norm over all widths; its network,
    when it has few enough neurons, gives weights too.
    """
    widest = min_norm(data)
    bound = (widest.lower_bound / 2 / problem.scale) ** 2 / len(s)
    W = _shared_out(widest.network, problem, s)
    if W is None and other is None:
        raise InputError(_refusal(data, s, f"the fit known has {widest.network.width} neurons"))
    mine = None if W is None else weights(problem, W, s, bound, "any width", _error(problem, W, s))
    if mine is None or (other is not None and other.value <= mine.value):
        assert other is not None
        mine = other
    lower = max(problem.scale**2 * bound, 0.0 if other is None else other.lower_bound)
    lower = min(lower, mine.value)
    certified = mine.violation <= FITS and mine.value - lower <= GAP * mine.value
    method = mine.method if other is None or lower > other.lower_bound else other.method
    return replace(mine, lower_bound=lower, certified=bool(certified), method=method)


def _checked_signs(data: Dataset, signs: ArrayLike) -> Array:
    s = real_array(signs, "signs", 1)
    if not len(s) or not (np.abs(s) == 1.0).all():
        raise InputError(f"`signs` is {s.tolist()}; every entry must be 1 or -1. Change it.")
    for sign, word in ((1.0, "positive"), (-1.0, "negative")):
        missed = np.flatnonzero(sign * data.y > 0)
        if len(missed) and not (s == sign).any():
            raise InputError(
                f"{len(missed)} labels are {word} (first: point {missed[0]}, "
                f"{data.y[missed[0]]:g}) but no output sign is. They cannot be fitted. Add one."
            )
    return s


def _one_or_two(data: Dataset, problem: Scaled, s: Array) -> MinimumWeights:
    """Exact special cases."""
    if len(s) == 1:
        one = solve_one(problem.U, s[0] * problem.z)
        if isinstance(one, list):
            raise InputError(_refusal(data, s, f"points {one} contradict each other"))
        return weights(problem, one.w[None, :], s, one.lower_bound, "convex duality", one.violation)
    tree = search(problem.U, problem.z, 2000)
    if tree.best is None:
        raise InputError(_refusal(data, s, f"none was found in {tree.nodes} nodes"))
    halves = np.split(tree.best, 2)
    W = np.stack([halves[0] if sign > 0 else halves[1] for sign in s])
    error = _error(problem, W, s)
    return weights(problem, W, s, tree.lower_bound, "branch and bound", error, tree.nodes)


def _refusal(data: Dataset, s: Array, why: str) -> str:
    return (
        f"no {len(s)} neurons with output signs {s.astype(int).tolist()} fit the {data.n} points: "
        f"{why}. Add neurons, drop points, or use `min_norm`, which takes any width."
    )


def _error(problem: Scaled, W: Array, s: Array) -> float:
    outputs = np.maximum(problem.U @ W.T, 0.0) @ s
    return float(np.abs(outputs - problem.z).max())


def _even_split(problem: Scaled, s: Array) -> tuple[Array, OneNeuron, OneNeuron] | None:
    """One solution a sign, shared evenly; None if one of them does not exist."""
    plus, minus = solve_one(problem.U, problem.z), solve_one(problem.U, -problem.z)
    if isinstance(plus, list) or isinstance(minus, list):
        return None
    count = {1.0: max(int((s > 0).sum()), 1), -1.0: max(int((s < 0).sum()), 1)}
    rows = [(plus.w if sign > 0 else minus.w) / count[float(sign)] for sign in s]
    return np.stack(rows), plus, minus


def _dual_bound(problem: Scaled, s: Array, plus: OneNeuron, minus: OneNeuron) -> float:
    r"""Bound from the multipliers of the two one-neuron problems.

    For any lambda, :math:`\lambda\cdot z \le S_+ F(\lambda) + S_- F(-\lambda)` with
    :math:`S_\pm = \sum_\pm |w_k|`, and :math:`\sum |w_k|^2 \ge S_+^2/m_+ + S_-^2/m_-`.
    """
    up, down = int((s > 0).sum()), int((s < 0).sum())
    share_up, share_down = plus.b / max(up, 1), minus.b / max(down, 1)
    lam = np.where(problem.z > 0, share_up, np.where(problem.z < 0, -share_down, 0.0))
    lam = np.where(problem.z == 0, share_up - share_down, lam)
    height = up * bracket(problem.U, lam).upper ** 2
    height += down * bracket(problem.U, -lam).upper ** 2
    total = float(lam @ problem.z)
    return total**2 / height if height > 0 else 0.0


def _shared_out(network: Network, problem: Scaled, s: Array) -> Array | None:
    """Neurons of a network given to the signs, the longest split until all signs are used."""
    rows = np.zeros((len(s), problem.U.shape[1]))
    for sign in (1.0, -1.0):
        mine = network.signs == sign
        products = np.abs(network.a[mine])[:, None] * network.W[mine] @ problem.basis.T
        places = np.flatnonzero(s == sign)
        if len(products) > len(places):
            return None
        if len(products):
            lengths = np.sqrt(np.einsum("ij,ij->i", products, products))
            parts = np.ones(len(products), dtype=np.intp)
            for _ in range(len(places) - len(products)):
                parts[int((lengths / parts).argmax())] += 1
            rows[places] = np.repeat(products / parts[:, None], parts, axis=0) / problem.scale
    return rows
