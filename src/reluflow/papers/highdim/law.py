"""Theorem 2: the distance to the shortest weights to leading order, and what that misses."""

from __future__ import annotations

import math

import numpy as np

from reluflow.papers.highdim.case import HighDim
from reluflow.papers.highdim.gram import residual


def kick(case: HighDim, k: int, C: float | None = None) -> float:
    r"""Leading order of the distance: the first kick of points of the other sign.

    :math:`\sqrt{\sum (\eta l_1 |r_i| - \varepsilon_i)^2/l_1}` over them; r, the residual of the
    start, is :math:`|y_i| + \varepsilon_i` for one neuron. ``C`` is that of another step.
    """
    other = ~case.own[k]
    first = case.s[k] * residual(case.s, case.P0, case.y)[other]
    parts = first / (C or case.C) - case.P0[k, other]
    return float(np.sqrt((parts**2).sum() / case.l1))


def kick_error(case: HighDim, k: int, C: float | None = None) -> float:
    r"""How far the distance may be from `kick` where the first step makes the pattern.

    Let S be the Schur complement of the points of the other sign and b their duals. The distance is
    :math:`|b - b^*|_S` with :math:`l_1 b = l_1 (G^{-1} p_0) - \eta l_1 |r|` and, by the conditions
    of (7), :math:`|b^*|_S \le |q|_{S^{-1}}`, where q is what the fit of the own points has on the
    others. With :math:`|G - l_1 I| \le \delta l_1` all follows.
    """
    delta, own = case.delta, case.own[k]
    if delta >= 1.0:
        return math.inf
    start = float(np.linalg.norm(case.P0[k])) * delta / (1.0 - delta)
    shortest = float(np.linalg.norm(case.size[own])) * delta / (1.0 - delta) ** 1.5
    moved = (np.sqrt(1.0 + delta) * start + shortest) / np.sqrt(case.l1)
    return float(delta * kick(case, k, C) + moved)
