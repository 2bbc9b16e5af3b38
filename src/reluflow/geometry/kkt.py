r"""How close a network is to a KKT point of the maximum-margin problem.

.. math:: \min \tfrac12 |\theta|^2 \quad \text{s.t.} \quad q_i(\theta) \ge 1

Scaled so that :math:`\min_i q_i = 1`, a network is an (epsilon, delta)-KKT point if some
:math:`\lambda \ge 0` and subgradients :math:`h_i` in Clarke's set of :math:`q_i` satisfy

.. math:: \Big| \theta - \sum_i \lambda_i h_i \Big| \le \epsilon, \qquad
          \lambda_i (q_i - 1) \le \delta \quad \text{for all } i .

Neurons own disjoint variables, so Clarke's set is a product of segments
:math:`h_{ij} = y_i (a_j s_{ij} x_i, \varphi(w_j \cdot x_i))` with :math:`s_{ij}` anywhere in
[0, 1] where :math:`w_j \cdot x_i = 0`; with a leaky activation, from its slope to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, number
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.geometry.margins import margin
from reluflow.geometry.nonnegative import nnls
from reluflow.geometry.normal import normal_form
from reluflow.network import Network, activation, gates, row_norms

_ROUNDS = 500


@dataclass(frozen=True, eq=False)
class KKT:
    """An approximate KKT certificate.

    Attributes
    ----------
    epsilon, delta : float
        The two residuals for these multipliers (neither squared nor summed).
    multipliers : (n,) array
        The numbers ``lambda_i``, for the network scaled to smallest margin 1.
    eps_rel : float
        ``epsilon / |theta|``.
    activations : (n, m) array
        The chosen ``s_ij``.
    margins : (n,) array
        The margins ``q_i`` after scaling; the smallest is 1.
    """

    epsilon: float
    delta: float
    multipliers: Array
    eps_rel: float
    activations: Array
    margins: Array


@dataclass(frozen=True)
class _Problem:
    """The scaled network on its data; residuals are laid out as ``(m, d + 1)``, then slack rows."""

    X: Array
    y: Array
    W: Array
    a: Array
    active: Array
    gates: Array
    ambiguous: NDArray[np.bool_]
    slack: Array
    slope: float

    def column(self, i: int, gates: Array) -> Array:
        """A vertex of Clarke's set of ``q_i``, with the slackness row of point i."""
        hidden = np.outer(self.y[i] * self.a * gates, self.X[i])
        rows = np.zeros(len(self.y))
        rows[i] = self.slack[i]
        block = np.column_stack([hidden, self.y[i] * self.active[i]])
        return np.concatenate([block.ravel(), rows])

    def target(self) -> Array:
        return np.concatenate([np.column_stack([self.W, self.a]).ravel(), np.zeros(len(self.y))])

    def best_gates(self, residual: Array) -> Array:
        """For each point the vertex that lowers the residual most: each gate by its own sign."""
        m, d = self.W.shape
        hidden = residual[: m * (d + 1)].reshape(m, d + 1)[:, :d]
        pull = (self.X @ hidden.T) * np.outer(self.y, self.a)
        return np.where(self.ambiguous, gates(pull > 0, self.slope), self.gates)


def kkt(data: Dataset, net: Network, *, tol: float = 1e-9, slackness_weight: float = 10.0) -> KKT:
    r"""Return multipliers that make a separating network nearly a KKT point, and how nearly.

    They minimise :math:`|\theta - \sum_i \lambda_i h_i|^2 + \sum_i (w \lambda_i (q_i - 1))^2` over
    :math:`\lambda \ge 0` and Clarke's sets; without the second term points far from the margin
    may carry weight.

    Parameters
    ----------
    data : Dataset
        Points of any dimension (a bias is a coordinate equal to 1), labels -1 or 1.
    net : Network
        A network with all points on the right side.
    tol : float
        A pair with ``|w_j . x_i| <= tol |w_j| |x_i|`` is on the boundary. The default is for
        exact gradient flow; after gradient descent, which chatters there, use 1e-3 or so.
    slackness_weight : float
        The number w.

    Returns
    -------
    KKT
        Residuals and the multipliers that attain them.

    Examples
    --------
    >>> data = Dataset([[4.0, 1.0], [-4.0, 1.0]], [1.0, 1.0])
    >>> result = kkt(data, Network([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]]))
    >>> result.multipliers.round(12), result.epsilon < 1e-12
    (array([0.5, 0.5]), True)

    Notes
    -----
    At a KKT point :math:`|\theta|^2 = 2 \sum_i \lambda_i` and every neuron is balanced. See Dutta
    et al. (J. Global Optim. 2013) for approximate KKT points, Lyu and Li (ICLR 2020) for why the
    late phase of training approaches them.

    Numerics
    --------
    Nonnegative least squares over vertices of Clarke's sets, added while one of them lowers the
    residual; each gate is chosen by the sign of its own inner product, so all 2^k vertices are
    searched in O(n m d). ``epsilon`` and ``delta`` are computed from the multipliers returned and
    hold whatever the solver did; at exact KKT points epsilon is below 1e-12 of ``|theta|``.
    O(n m d) memory, O(n^2 m d) time per round.
    """
    number(tol, "tol", at_least=0.0, below=1.0)
    number(slackness_weight, "slackness_weight", at_least=0.0)
    problem, margins = _scaled(data, net, tol, slackness_weight)
    multipliers, activations = _multipliers(problem)
    weights = multipliers * data.y
    hidden = problem.W - problem.a[:, None] * ((activations * weights[:, None]).T @ data.X)
    output = problem.a - problem.active.T @ weights
    size = float(np.hypot(np.linalg.norm(problem.W), np.linalg.norm(problem.a)))
    epsilon = float(np.hypot(np.linalg.norm(hidden), np.linalg.norm(output)))
    return KKT(
        epsilon=epsilon,
        delta=float((multipliers * (margins - 1.0)).max()),
        multipliers=multipliers,
        eps_rel=epsilon / size,
        activations=activations,
        margins=margins,
    )


def _scaled(data: Dataset, net: Network, tol: float, weight: float) -> tuple[_Problem, Array]:
    gamma = margin(data, net)
    form = normal_form(net)
    W, a = net.directions * form.hidden[:, None], form.outputs
    norms = row_norms(net.mantissa.W)
    z = net.preactivations(data.X)
    # pre-activations of the unit network, with the signs the network itself gives
    unit = z * np.divide(form.hidden, norms, out=np.zeros_like(norms), where=norms > 0)
    passed = activation(unit, net.slope)
    q = data.y * (passed @ a)
    lowest = int(np.argmin(q))
    if gamma <= 0.0 or q[lowest] <= 0.0:
        raise InputError(
            f"point {lowest} has the normalised margin {q[lowest]:.3g}, which is not positive. KKT "
            "points of the margin problem classify every point correctly. Train until the loss is "
            "below loss(0)/n."
        )
    root = float(np.sqrt(q[lowest]))
    ambiguous = np.abs(z) <= tol * np.outer(row_norms(data.X), norms)
    margins = np.maximum(q / q[lowest], 1.0)
    problem = _Problem(
        X=data.X,
        y=data.y,
        W=W / root,
        a=a / root,
        active=passed / root,
        gates=gates(z > 0, net.slope),
        ambiguous=ambiguous & (a != 0.0),
        slack=weight * (margins - 1.0),
        slope=net.slope,
    )
    return problem, margins


def _multipliers(problem: _Problem) -> tuple[Array, Array]:
    """Solve by adding vertices: the master problem is nonnegative least squares."""
    n = len(problem.y)
    owners, gates = list(range(n)), list(problem.gates)
    columns = [problem.column(i, problem.gates[i]) for i in range(n)]
    target = problem.target()
    open_points = np.flatnonzero(problem.ambiguous.any(axis=1))
    for last in [False] * _ROUNDS + [True]:
        A = np.column_stack(columns)
        x = nnls(A, target).x
        residual = target - A @ x
        better = problem.best_gates(residual)
        fresh = []
        for i in map(int, open_points):
            column = problem.column(i, better[i])
            noise = 1e-13 * float(np.linalg.norm(column) * np.linalg.norm(target))
            known = any(
                o == i and np.array_equal(g, better[i]) for o, g in zip(owners, gates, strict=True)
            )
            if not known and float(column @ residual) > noise:
                fresh.append((i, better[i], column))
        if last or not fresh:
            break
        # vertices without weight may go (they come back if needed); the first n stay
        keep = [k for k in range(len(owners)) if k < n or x[k] > 0.0]
        owners = [owners[k] for k in keep] + [i for i, _, _ in fresh]
        gates = [gates[k] for k in keep] + [gate for _, gate, _ in fresh]
        columns = [columns[k] for k in keep] + [column for _, _, column in fresh]
    multipliers = np.asarray(np.bincount(owners, weights=x, minlength=n), dtype=np.float64)
    mixed = np.zeros(problem.gates.shape)
    for owner, gate, share in zip(owners, gates, x, strict=True):
        mixed[owner] += share * gate
    positive = multipliers[:, None] > 0
    activations = np.divide(mixed, multipliers[:, None], out=problem.gates.copy(), where=positive)
    return multipliers, activations
