r"""The cone program of the univariate margin problem, with O(n) non-zero entries.

For each of the 2n - 1 patterns P of `planar` and each sign there is a vector w with a bound t:
minimise the sum of the t under :math:`|w| \le t`, w in the arc of P and
:math:`y_i\,(S_i + T_i)\cdot p_i \ge 1/|x_i, 1|`. The running sums
:math:`S_i = S_{i-1} + a_i` over suffixes starting at or before i and
:math:`T_i = T_{i+1} + c_i` over prefixes ending at or after i (a, c: positive minus negative
vectors) are variables too: written out, the margins would have O(n^2) entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.cone_program import Cones, block_diagonal, solve
from reluflow.interpolators.planar import Line, arcs
from reluflow.interpolators.polish import Atoms


def solve_margin_program(data: Line) -> tuple[str, Atoms, Array]:
    """Solver's status, its vectors and its multipliers (for rows of unit length).

    Vectors and multipliers are finite whatever the status; nothing else is promised.
    """
    n = len(data.x)
    if n == 1:  # one neuron along the point
        return "solved", Atoms(data.points / data.norms[:, None], data.y), np.ones(1)
    K = 2 * n - 1
    # slopes have to turn by about 4 over the gap at a change of label: solve for order one
    gaps = np.diff(data.x) / (data.norms[1:] * data.norms[:-1])
    size = 1.0 + 4.0 * float((1.0 / gaps[data.y[1:] != data.y[:-1]]).sum())
    b = np.concatenate([np.zeros(2 * K), -1.0 / (size * data.norms), np.zeros(10 * K)])
    cost = np.concatenate([np.tile([1.0, 0.0, 0.0], 2 * K), np.zeros(2 * K)])
    cones = Cones(2 * K, n + 4 * K, (3,) * (2 * K))
    answer = solve(None, cost, _matrix(data.points, data.y), b, cones, tol=1e-11)
    W = np.nan_to_num(size * answer.x[: 6 * K].reshape(2 * K, 3)[:, 1:])
    lam = np.maximum(np.nan_to_num(answer.z[2 * K : 2 * K + n]), 0.0)
    return answer.status, Atoms(W, np.repeat([1.0, -1.0], K)), lam


def _matrix(points: Array, y: Array) -> Any:
    """Rows: running sums, margins, arcs, norms. Columns: (t, w) of both signs, S, then T."""
    from scipy import sparse

    n = len(points)
    K = 2 * n - 1
    pick = sparse.kron(sparse.identity(K), np.eye(2, 3, 1))  # (t, w) -> w
    steps = sparse.block_diag(
        [sparse.identity(n) - sparse.eye(n, k=-1), sparse.identity(n - 1) - sparse.eye(n - 1, k=1)]
    )
    chain = sparse.hstack([-pick, pick, sparse.kron(steps, np.eye(2))])
    at = block_diagonal((-y[:, None] * points)[:, None, :])
    margins = sparse.hstack([sparse.csr_array((n, 6 * K)), at, at[:, : 2 * (n - 1)]])
    ends = arcs(points)
    sides = [
        block_diagonal(np.append(0.0, -normal)[None, :] for normal in side)
        for side in (ends.first, ends.second)
    ]
    inside = sparse.vstack([sparse.block_diag([side, side]) for side in sides])
    bounds = sparse.vstack([inside, -sparse.identity(6 * K)])
    rest = sparse.hstack([bounds, sparse.csr_array((10 * K, 2 * K))])
    return sparse.vstack([chain, margins, rest], format="csc")
