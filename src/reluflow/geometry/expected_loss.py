r"""Expected loss of a network of one real input under a density and a teacher's labels.

.. math:: \mathrm{E}_{x \sim \mu} \, \ell(y(x) h(x)), \qquad y(x) = \mathrm{sign}\, h^*(x)
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.geometry.piece_means import log_mean_loss
from reluflow.geometry.pieces import line
from reluflow.geometry.population import Density, labels_of, masses, support_of
from reluflow.geometry.signs import sign_pieces
from reluflow.losses import Exponential, Logistic, logsumexp
from reluflow.network import Network
from reluflow.quadrature import GAUSS_16, GAUSS_16_WEIGHTS

# halvings after which a cell is below the spacing of floats
_DEPTH = 60
# irrational shares, so that regular steps of a density are not missed
_PROBES = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 10))
# after so many cells the distribution function is taken to be linear in what is left
_CELLS = 20_000
# contributions below exp(-37) of the total are rounding
_NEGLIGIBLE = 37.0


@dataclass(frozen=True)
class _Cell:
    """An interval where the margin ``h exp(log_factor)`` is linear, h from first to last."""

    left: float
    right: float
    first: float
    last: float
    depth: int = 0

    def halves(self) -> tuple[_Cell, _Cell]:
        x, h = 0.5 * (self.left + self.right), 0.5 * (self.first + self.last)
        return (
            _Cell(self.left, x, self.first, h, self.depth + 1),
            _Cell(x, self.right, h, self.last, self.depth + 1),
        )

    def at(self, share: Array) -> Array:
        return self.left + (self.right - self.left) * share


def population_loss(
    net: Network, teacher: Network, density: Density, loss: Exponential | Logistic
) -> float:
    """Return the expected loss; 0 below and inf above the range of floats.

    See `log_population_loss`.

    Parameters
    ----------
    net, teacher, density, loss
        As for `log_population_loss`.

    Returns
    -------
    float
        The expected loss.
    """
    with np.errstate(over="ignore", under="ignore"):
        return float(np.exp(log_population_loss(net, teacher, density, loss)))


def log_population_loss(
    net: Network, teacher: Network, density: Density, loss: Exponential | Logistic
) -> float:
    r"""Return the logarithm of the expected loss of a network against a teacher's labels.

    Parameters
    ----------
    net, teacher : Network
        Two inputs ``(x, 1)`` each; the label of x is +1 if the teacher is positive there, else -1.
    density : Density
        An object with ``cdf(x)`` for arrays and a finite ``support``; ``edges``, if it has them,
        are where the density jumps.
    loss : Exponential or Logistic
        The loss of one point.

    Returns
    -------
    float
        Natural logarithm of the expected loss.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> uniform = SimpleNamespace(support=(0.0, 1.0), cdf=lambda x: np.clip(x, 0, 1))
    >>> net = Network([1.0], [[1.0, 0.0]])
    >>> round(population_loss(net, net, uniform, Exponential()), 12)  # 1 - 1/e
    0.632120558829

    Numerics
    --------
    The support is cut at the kinks of the network and the sign changes of both functions. Where
    the distribution function is linear a cell has a closed form (`piece_means`): relative error
    1e-13 for piecewise constant densities, times the margin where the loss is ``exp(|q|)``.
    Elsewhere cells are halved until either that holds or two Gauss-Legendre rules for the
    Stieltjes integral, by parts, agree to 1e-12: relative error 1e-10, or 1e-8 when the loss
    lives in layers thinner than 1e-7. Cells are taken in order of an upper bound until the rest is
    rounding, and at most 20,000 are halved (a distribution function that is nowhere smooth needs
    more; each cell left then keeps its mass, spread evenly).
    """
    if not isinstance(loss, (Exponential, Logistic)):
        raise InputError(
            f"`loss` is {loss!r}, which is no function of a margin. Labels here are -1 and 1. Pass "
            "losses.Exponential() or losses.Logistic()."
        )
    low, high = support_of(density)
    if np.isinf(low) or np.isinf(high):
        raise InputError(
            f"`density.support` is ({low:g}, {high:g}). The expected loss is integrated over a "
            "finite interval. Truncate the density."
        )
    edges = np.asarray(getattr(density, "edges", ()), dtype=np.float64)
    cells, log_factor = _cells(net, teacher, low, high, edges)
    return _integrate(cells, _Integrand(density, loss, log_factor))


def _cells(
    net: Network, teacher: Network, low: float, high: float, edges: Array
) -> tuple[list[_Cell], float]:
    function = line(net)
    cuts, _ = sign_pieces(function, low, high)
    teacher_cuts, labels = sign_pieces(line(teacher, "teacher"), low, high)
    nodes = np.unique(np.concatenate([[low, high], function.kinks, cuts, teacher_cuts, edges]))
    nodes = nodes[(nodes >= low) & (nodes <= high)]
    values, _ = function.evaluate(nodes)
    # a sign change is a zero by construction: rounding there would be multiplied by the scale
    values[np.isin(nodes, cuts)] = 0.0
    y = labels_of(nodes, teacher_cuts, labels)
    cells = [
        _Cell(
            float(nodes[k]),
            float(nodes[k + 1]),
            float(y[k] * values[k]),
            float(y[k] * values[k + 1]),
        )
        for k in range(len(y))
    ]
    return cells, function.log_factor


def _integrate(cells: list[_Cell], integrand: _Integrand) -> float:
    """Sum over cells, largest first, halving where needed, until the rest cannot matter."""
    queue = [(-integrand.log_bound(cell), k, cell) for k, cell in enumerate(cells)]
    heapq.heapify(queue)
    total, count = -np.inf, len(queue)
    while queue and -queue[0][0] + np.log(len(queue)) > total - _NEGLIGIBLE:
        bound, _, cell = heapq.heappop(queue)
        if np.isinf(bound):
            return -bound
        value = integrand.log_integral(cell, final=count > _CELLS)
        if value is not None:
            total = float(np.logaddexp(total, value))
            continue
        for half in cell.halves():
            count += 1
            heapq.heappush(queue, (-integrand.log_bound(half), count, half))
    return total


@dataclass(frozen=True)
class _Integrand:
    """The loss as a function of ``h``, against the distribution function."""

    density: Density
    loss: Exponential | Logistic
    log_factor: float

    def log_loss(self, h: Array) -> Array:
        """Log-losses at margins ``h exp(log_factor)``; the logistic one is -q far on the left."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            q = np.where(h == 0.0, 0.0, h * np.exp(self.log_factor))
            if isinstance(self.loss, Exponential):
                return -q
            near = self.loss.log_pointwise(np.maximum(q, -1e3))
            return np.where(q < -1e3, self.log_factor + np.log(np.maximum(-h, 0.0)), near)

    def log_bound(self, cell: _Cell) -> float:
        """An upper bound on the logarithm of the integral: mass times the larger end value."""
        mass = float(np.diff(masses(self.density, np.array([cell.left, cell.right])))[0])
        if mass <= 0.0:
            return -np.inf
        return float(self.log_loss(np.array([cell.first, cell.last])).max() + np.log(mass))

    def log_integral(self, cell: _Cell, *, final: bool) -> float | None:
        """Logarithm of the integral over a cell, or None if it must be halved."""
        mass = masses(self.density, cell.at(_PROBES))
        total = float(mass[-1] - mass[0])
        deviation = float(np.abs(mass - mass[0] - total * _PROBES).max())
        if deviation <= 1e-12 * total + 1e-15 or final or cell.depth >= _DEPTH:
            mean = log_mean_loss(self.loss, cell.first, cell.last, self.log_factor)
            return mean + float(np.log(total))
        coarse = self._stieltjes(cell)
        left, right = (self._stieltjes(half) for half in cell.halves())
        fine = float(np.logaddexp(left, right))
        return fine if abs(fine - coarse) <= 1e-12 else None

    def _stieltjes(self, cell: _Cell) -> float:
        """Logarithm of the integral by parts, one Gauss-Legendre rule.

        Mass is counted from the end with the larger loss, which leaves positive terms only.
        """
        mass = masses(self.density, cell.at(np.concatenate([[0.0], GAUSS_16, [1.0]])))
        rises = cell.last < cell.first
        beyond = mass[-1] - mass[1:-1] if rises else mass[1:-1] - mass[0]
        h = cell.first + (cell.last - cell.first) * GAUSS_16
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            slopes = self.loss.log_slope(h * np.exp(self.log_factor))
            spread = self.log_factor + np.log(abs(cell.last - cell.first))
            climb = spread + slopes + np.log(GAUSS_16_WEIGHTS) + np.log(beyond)
            least = self.log_loss(np.array([max(cell.first, cell.last)])) + np.log(
                mass[-1] - mass[0]
            )
            return logsumexp(np.concatenate([climb, least]))
