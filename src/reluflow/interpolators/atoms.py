r"""The problems of `target` over chosen activation patterns, as one second-order cone program.

.. math:: \min \sum_k |w_k| \quad\text{s.t.}\quad \sum_k s_k \Theta_k U w_k = z,\;
          (2 D_k - I)\, U w_k \ge 0

with :math:`\Theta_k = D_k` for ReLU, and :math:`D_k + \alpha (I - D_k)` for slope :math:`\alpha`
(and likewise for outputs at least z; for outputs near z with
:math:`\sum_k s_k \Theta_k U w_k + \sqrt{c} \circ e = z` and :math:`\frac12 |e|^2` added).
Column k is a pattern :math:`D_k` with a sign :math:`s_k`. A balanced neuron costs
:math:`a^2 + |w|^2 = 2|a w|`, so the squared norm of the network is twice the objective. The dual
vector of the interpolation constraints satisfies
:math:`s_k \sum_i \Theta_{ki} \lambda_i u_i \cdot w \le |w|` on the cone of each column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.cone_program import Cones, block_diagonal, solve
from reluflow.interpolators.patterns import Patterns
from reluflow.interpolators.target import AtLeast, Near, Target
from reluflow.network import gates


@dataclass(frozen=True)
class AtomicSolution:
    """Solver's answer, unverified: its status, vectors ``W`` (K, r) a column, dual ``lam`` (n,)."""

    status: str
    W: Array
    lam: Array


def solve_columns(
    U: Array, target: Target, patterns: Patterns, signs: Array, size: float = 1.0
) -> AtomicSolution:
    """Solve for the columns ``(patterns[k], signs[k])``; ``size`` is a guess of the optimum.

    Numerics
    --------
    K (n + r + 1) + n rows and K (r + 1) variables, block-sparse, n more for outputs near z;
    interior point to 1e-9.
    """
    from scipy import sparse

    K, n = patterns.shape
    r = U.shape[1]
    # variables of column k: t_k, then w_k
    fit = (gates(patterns, target.slope) * signs[:, None])[:, :, None] * U  # (K, n, r)
    inside = -np.where(patterns, 1.0, -1.0)[:, :, None] * U
    pad = np.zeros((K, n, 1))
    outputs = np.concatenate([pad, fit], axis=2).transpose(1, 0, 2).reshape(n, K * (r + 1))
    below = block_diagonal(np.concatenate([pad, inside], axis=2))
    # at least z: the rows change sign with z and belong to the next cone
    flip = -np.sign(target.z) if isinstance(target, AtLeast) else np.ones(n)
    cones = Cones(n, K * n, (r + 1,) * K)
    if isinstance(target, AtLeast):
        cones = Cones(0, n + K * n, (r + 1,) * K)
    A = sparse.vstack(
        [sparse.csc_array(flip[:, None] * outputs), below, -sparse.identity(K * (r + 1))]
    )
    b = np.concatenate([flip * target.z / size, np.zeros(K * (n + r + 1))])
    cost, P = np.tile(np.eye(1, r + 1)[0], K), None
    if isinstance(target, Near):
        none = sparse.csc_array((A.shape[0] - n, n))
        A = sparse.hstack([A, sparse.vstack([sparse.diags(np.sqrt(target.softness)), none])])
        P = sparse.diags(np.append(np.zeros(len(cost)), np.full(n, size)))
        cost = np.append(cost, np.zeros(n))
    answer = solve(P, cost, A, b, cones)
    W = size * answer.x[: K * (r + 1)].reshape(K, r + 1)[:, 1:]
    return AtomicSolution(answer.status, W, -flip * answer.z[:n])
