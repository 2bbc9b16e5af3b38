r"""Minimum-norm solution of one positive neuron: problem (7) of the high-dimensional setting.

.. math:: \min |w|^2 \quad\text{s.t.}\quad x_i\cdot w = y_i \;(y_i > 0),\qquad
          x_i\cdot w \le 0 \;(y_i \le 0)

It fits the positive labels and is inactive on the others: for independent points the minimisers
of the square loss over one positive neuron are exactly the feasible points (Lai, Wang, Tao &
Muthukumar, arXiv 2603.04895).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow import interrupts
from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.interpolators.fixed_signs import MinimumWeights, scaled, weights
from reluflow.interpolators.least_norm import Polyhedron, shortest
from reluflow.interpolators.nonnegative import nonnegative_fit


@dataclass(frozen=True)
class OneNeuron:
    """Weights ``w``, multipliers ``b`` with ``w = U^T b``, lower bound, largest violation."""

    w: Array
    b: Array
    lower_bound: float
    violation: float


@interrupts.deferred()
def single_relu(data: Dataset) -> MinimumWeights:
    r"""Shortest weights of one neuron with output weight 1 that fits where labels are positive.

    Examples
    --------
    >>> answer = single_relu(Dataset([[1.0, 0.0], [0.6, 0.8]], [1.0, -1.0]))
    >>> answer.W.round(6), round(answer.value, 6), answer.certified
    (array([[ 1.  , -0.75]]), 1.5625, True)

    Numerics
    --------
    Non-negative least squares on the Schur complement of the Gram matrix, optimality verified;
    a cone solver when points are dependent. The lower bound is the dual value of the multipliers.
    O(n^3) after O(n^2 d) for the reduction.
    """
    problem = scaled(data)
    answer = solve_one(problem.U, problem.z)
    if isinstance(answer, list):
        raise InputError(
            f"no neuron fits the positive labels and is inactive on the others: points {answer} "
            "contradict each other. Drop one of them, or use more neurons (`two_relu`, `min_norm`)."
        )
    W = answer.w[None, :]
    violation = answer.violation / max(float(problem.z.max()), 1e-300)
    return weights(problem, W, np.ones(1), answer.lower_bound, "convex duality", violation)


def solve_one(U: Array, z: Array) -> OneNeuron | list[int]:
    """Solve for unit rows; a list of contradicting points if there is no solution."""
    n, r = U.shape
    size = float(z.max(initial=0.0))  # the size of other labels does not matter
    if size <= 0.0:
        return OneNeuron(np.zeros(r), np.zeros(n), 0.0, 0.0)
    answer = _solve_scaled(U, z / size)
    if isinstance(answer, list):
        return answer
    return OneNeuron(
        size * answer.w, size * answer.b, size**2 * answer.lower_bound, size * answer.violation
    )


def _solve_scaled(U: Array, z: Array) -> OneNeuron | list[int]:
    n, r = U.shape
    if n <= r and np.linalg.cond(U) < 1e6:
        answer = _by_schur_complement(U, z)
        value = float(answer.w @ answer.w)
        if answer.violation <= 1e-10 and value - answer.lower_bound <= 1e-10 * value:
            return answer
    return _by_cone_solver(U, z)


def _by_schur_complement(U: Array, z: Array) -> OneNeuron:
    r"""Eliminate the positives: :math:`\nu = \arg\min_{\nu\ge0} |B\nu - c|` on the others.

    B holds the other points projected off the span of the positives, so that
    :math:`B^T B` is the Schur complement; c satisfies :math:`B^T c = U_- w_0` with
    :math:`w_0` the shortest fit of the positives.
    """
    plus = z > 0
    Q, R = np.linalg.qr(U[plus].T)
    w0 = Q @ np.linalg.solve(R.T, z[plus])
    B = U[~plus].T - Q @ (Q.T @ U[~plus].T)
    c = np.linalg.lstsq(B.T, U[~plus] @ w0, rcond=None)[0]
    nu = nonnegative_fit(B, c).mu
    w = w0 - B @ nu
    b = np.zeros(len(z))
    b[~plus] = -nu
    b[plus] = np.linalg.solve(R, Q.T @ (w + U[~plus].T @ nu))
    return _checked(U, z, w, b)


def _by_cone_solver(U: Array, z: Array) -> OneNeuron | list[int]:
    plus = z > 0
    answer = shortest(Polyhedron(U[plus], z[plus], -U[~plus], np.zeros(int((~plus).sum()))))
    if answer.status == "infeasible":
        weight = np.zeros(len(z))
        weight[plus], weight[~plus] = np.abs(answer.mu), answer.nu
        return [int(i) for i in np.flatnonzero(weight > 1e-6 * weight.max())]
    b = np.zeros(len(z))
    b[plus], b[~plus] = answer.mu, -answer.nu
    return _checked(U, z, answer.w, b)


def _checked(U: Array, z: Array, w: Array, b: Array) -> OneNeuron:
    plus = z > 0
    b = np.where(plus, b, np.minimum(b, 0.0))
    t, g = U @ w, U.T @ b
    violation = max(
        float(np.abs(t - z)[plus].max(initial=0.0)), float(t[~plus].max(initial=0.0)), 0.0
    )
    return OneNeuron(w, b, float(2 * b[plus] @ z[plus] - g @ g), violation)
