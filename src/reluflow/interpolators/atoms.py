r"""The minimum-norm problem over chosen activation patterns, as one second-order cone program.

.. math:: \min \sum_k |w_k| \quad\text{s.t.}\quad \sum_k s_k D_k U w_k = z,\;
          (2 D_k - I)\, U w_k \ge 0

Column k is a pattern :math:`D_k` with a sign :math:`s_k`. A balanced neuron costs
:math:`a^2 + |w|^2 = 2|a w|`, so the squared norm of the network is twice the objective. The dual
vector of the interpolation constraints satisfies
:math:`s_k \sum_i D_{ki} \lambda_i u_i \cdot w \le |w|` on the cone of each column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.cone_program import Cones, block_diagonal, solve
from reluflow.interpolators.patterns import Patterns


@dataclass(frozen=True)
class AtomicSolution:
    """Solver's answer, unverified: its status, vectors ``W`` (K, r) a column, dual ``lam`` (n,)."""

    status: str
    W: Array
    lam: Array


def solve_columns(
    U: Array, z: Array, patterns: Patterns, signs: Array, size: float = 1.0
) -> AtomicSolution:
    """Solve for the columns ``(patterns[k], signs[k])``; ``size`` is a guess of the optimum.

    Numerics
    --------
    K (n + r + 1) + n rows and K (r + 1) variables, block-sparse; interior point to 1e-9.
    """
    from scipy import sparse

    K, n = patterns.shape
    r = U.shape[1]
    # variables of column k: t_k, then w_k
    fit = (patterns * signs[:, None])[:, :, None] * U  # (K, n, r)
    inside = -np.where(patterns, 1.0, -1.0)[:, :, None] * U
    pad = np.zeros((K, n, 1))
    equal = np.concatenate([pad, fit], axis=2).transpose(1, 0, 2).reshape(n, K * (r + 1))
    below = block_diagonal(np.concatenate([pad, inside], axis=2))
    A = sparse.vstack([sparse.csc_array(equal), below, -sparse.identity(K * (r + 1))])
    b = np.concatenate([z / size, np.zeros(K * (n + r + 1))])
    cost = np.tile(np.eye(1, r + 1)[0], K)
    answer = solve(None, cost, A, b, Cones(n, K * n, (r + 1,) * K))
    return AtomicSolution(answer.status, size * answer.x.reshape(K, r + 1)[:, 1:], -answer.z[:n])
