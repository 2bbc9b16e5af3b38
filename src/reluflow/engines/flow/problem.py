r"""What stays fixed during a flow: planes of the points and the force law, in natural units.

Forces are :math:`c_i = -dL/dh_i` in the clock of the loss. For the square loss the clock is time.
For the exponential and logistic losses it is ``s`` with ``ds = G dt``,
:math:`G = (1/n) \sum_i -\ell'(q_i)`: the forces are then ``y_i p_i`` with shares ``p`` that sum to
one, and nothing underflows (see `clock`). With weight decay the loss stays away from zero and time
is the clock of all losses.

Weight decay :math:`\mu` makes all weights fade by :math:`e^{-\mu t}` on top of the plain flow,
whose equations the weights without that factor obey: a step moves these, and `State.fade` then
takes the factor into the log scales. The balance of a neuron fades like :math:`e^{-2 \mu t}`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.engines.flow.units import Units, natural_units
from reluflow.engines.request import explicit_seconds, implicit_seconds, stiff_seconds
from reluflow.kernels.flow.layout import Law, Planes
from reluflow.losses import Loss, Square
from reluflow.network import Network

# normals that differ by less than this are one: rounding of a point divided by its length
SAME_PLANE = 1e-15
# so many points make a crowd (see `crowd`): below, exact landings at every crossing are cheaper
CROWD = 100
# ... where an implicit step costs as much as so many explicit ones: fewer if neurons and inputs are
# many. From a small start crossings are few for long, and implicit steps are longer
CHEAP, CHEAP_IF_SMALL = 1.0, 2.0
# outputs below this share of the labels are those of a small start (measured)
SMALL = 1e-3
# layers of a neuron whose sizes agree to this are equal: rounding of a norm
BALANCED = 4e-15
# matrices with more rows and columns are large
LARGE = 500
# coordinates below this share of the terms they are sums of are rounding
ROUNDED = 2e-15


class Problem:
    """Data, loss and trained layers, in the units and coordinates the solver uses.

    When ``d > n`` the points are written in an orthonormal basis ``Q`` (d, n) of their span: the
    part of a neuron orthogonal to it never moves and is kept aside.
    """

    def __init__(
        self, data: Dataset, net: Network, loss: Loss, train: str, decay: float = 0.0
    ) -> None:
        self.data, self.net, self.loss, self.hidden = data, net, loss, train == "hidden"
        self.units: Units = natural_units(data, net, loss, self.hidden)
        self.n = data.n
        self.basis: Array | None = None
        X = np.ldexp(data.X, -self.units.length)
        normals, owner, length = planes_of(X)
        if data.d > data.n:
            self.basis, r = np.linalg.qr(normals.T)
            normals = np.ascontiguousarray(r.T)
        self.d = normals.shape[1]
        self.y: Array = np.ldexp(np.array(data.y), -self.units.label)
        both = np.full(len(normals), net.slope > 0.0)
        both[owner[length < 0.0]] = True
        gram = np.ascontiguousarray(normals @ normals.T)
        np.fill_diagonal(gram, 1.0)
        self.side = (length > 0.0).astype(np.int8)  # the mode of a neuron that a point pulls
        self.planes = Planes(normals, gram, both, owner, length, self.y, net.slope)
        self.longest = float(np.abs(length).max())
        self.spectral_norm = spectral_norm(length[:, None] * normals[owner])
        self.is_square = isinstance(loss, Square)
        # whether a plane may come to repel what it attracts: shares of one label have one sign
        positive, count = np.bincount(owner, self.y > 0.0), np.bincount(owner)
        self.jumps_turn = self.is_square or bool(((positive > 0) & (positive < count)).any())
        self.log_unit = 2.0 * self.units.label * float(np.log(2.0)) if self.is_square else 0.0
        self.decay = float(np.ldexp(decay, self.units.time))
        self.is_timed = self.is_square or decay > 0.0
        self.kappa = loss.kappa(self.n) if isinstance(loss, Square) else 0.0
        self.output_scale = float(np.abs(self.y).max()) or 1.0
        self.sign, self.log_balance = _balances(self)
        force_scale = self.kappa * self.output_scale if self.is_square else 1.0
        if self.is_timed and not self.is_square:
            force_scale = 1.0 / self.n
        # a bound on the speed |g| at a small start: one over the unit of clock time
        self.rate = self.longest
        if self.is_square:
            self.rate = self.kappa * self.spectral_norm * float(np.linalg.norm(self.y)) or 1.0
        logistic = loss.name == "logistic"
        self.cells: dict[bytes, tuple[Array, NDArray[np.bool_]]] = {}  # see `crossroads`
        self.price, self.stiff_price = _prices(self)
        self.is_crowd = _is_crowd(self)
        self.law = Law(self.hidden, self.kappa, logistic, force_scale, self.rate, self.decay)

    def forces(self, h: Array) -> Array:
        """Forces for outputs ``h`` (..., n)."""
        if isinstance(self.loss, Square):
            return self.kappa * (self.y - h)
        slopes = self.loss.log_slope(self.y * h)
        if self.is_timed:
            return np.asarray(self.y * np.exp(slopes) / self.n)
        weights = np.exp(slopes - slopes.max(axis=-1, keepdims=True))
        return np.asarray(self.y * weights / weights.sum(axis=-1, keepdims=True))

    def force_jacobian(self, h: Array) -> Array:
        r"""The matrix ``-dc/dh`` (n, n) of a classification loss."""
        q = self.y * h
        p = np.abs(self.forces(h))
        # d log(-l')/dq is -1 for the exponential and -sigmoid(q) for the logistic loss
        bend = np.exp(-np.logaddexp(0.0, -q)) if self.law.logistic else np.ones(self.n)
        jacobian = np.diag(p * bend)
        if not self.is_timed:
            jacobian -= np.outer(p, p * bend)
        return np.asarray(self.y[:, None] * jacobian * self.y[None, :])

    def log_balance_at(self, t: float) -> Array:
        """Log-sizes of ``a^2 - |w|^2`` at time t."""
        return self.log_balance - 2.0 * self.decay * t if self.decay else self.log_balance

    def log_loss(self, h: Array) -> float:
        """Logarithm of the loss at outputs ``h``, in the units of the data."""
        return float(self.loss.log_value(h, self.y) + self.log_unit)


def spectral_norm(X: Array) -> float:
    """The largest singular value, of a large matrix by Lanczos' method: all of them take n^3."""
    if min(X.shape) <= LARGE:
        return float(np.linalg.norm(X, 2))
    from scipy.sparse.linalg import svds

    return float(svds(X, k=1, v0=np.ones(min(X.shape)), return_singular_vectors=False)[0])


def planes_of(X: Array) -> tuple[Array, NDArray[np.int64], Array]:
    """Group points on one line through the origin: ``(normals, owner, signed lengths)``.

    A normal points along the first of its points. Points are on one line if their directions agree
    to rounding. They are sorted by their products with a fixed direction of no meaning, so only
    neighbours are compared: O(n (log n + d)).
    """
    length = np.linalg.norm(X, axis=1)
    units = X / length[:, None]
    probe = np.random.default_rng(0).normal(size=X.shape[1])
    product = units @ probe
    side = np.where(product < 0.0, -1.0, 1.0)
    turned, product = units * side[:, None], np.abs(product)
    order = np.argsort(product, kind="stable")
    same = np.arange(len(X))  # the first point found on the line of each
    for k, i in enumerate(order):
        for other in order[:k][::-1]:
            if product[i] - product[other] > SAME_PLANE * np.abs(probe).sum():
                break
            if np.abs(turned[i] - turned[other]).max() <= SAME_PLANE:
                same[i] = same[other]
                break
    for root in np.unique(same):  # named by the first of them in the order of the data
        same[same == root] = np.flatnonzero(same == root)[0]
    firsts, owner = np.unique(same, return_inverse=True)
    length = length * side * side[firsts][owner]
    return np.ascontiguousarray(units[firsts]), owner.astype(np.int64), length


def _balances(problem: Problem) -> tuple[Array, Array]:
    """Sign and log-size of ``a^2 - |w|^2`` of each neuron, in the coordinates of the solver.

    It never changes. A neuron whose two layers agree to rounding is balanced. The part of a neuron
    outside the span of the points never moves: it is left out, and is all that is left of the
    balance of a balanced neuron.
    """
    net, units = problem.net, problem.units
    W = np.ldexp(net.mantissa.W, -units.hidden)
    norms = np.linalg.norm(W, axis=1)
    shift = np.exp(np.clip(net.log_scale_out - net.log_scale, -700.0, 700.0))
    a = np.ldexp(np.abs(net.mantissa.a) * shift, -units.output)
    gap = _gap(a, norms)
    if problem.basis is not None:
        w, outside = split(W, problem.basis)
        whole = np.einsum("jd,jd->j", outside, outside)
        gap = np.where(gap == 0.0, whole, _gap(a, np.linalg.norm(w, axis=1)))
    with np.errstate(divide="ignore"):
        size = np.log(np.abs(gap)) + 2.0 * net.log_scale
    return np.sign(gap), size


def _gap(a: Array, norms: Array) -> Array:
    """``a^2 - |w|^2``, zero where the two agree to rounding."""
    return np.where(np.abs(a - norms) <= BALANCED * norms, 0.0, (a - norms) * (a + norms))


def _prices(problem: Problem) -> tuple[float, float]:
    """What an implicit step costs, in explicit ones; and where outputs react fast."""
    shape = problem.n, problem.d, problem.net.width
    explicit, is_square = explicit_seconds(*shape), problem.is_square
    return (
        implicit_seconds(*shape, is_square) / explicit,
        stiff_seconds(*shape, is_square) / explicit,
    )


def _is_crowd(problem: Problem) -> bool:
    """Whether steps are explicit."""
    if problem.n < CROWD or problem.decay > 0.0 or problem.price < CHEAP:
        return False
    return problem.price >= CHEAP_IF_SMALL or not _starts_small(problem.data, problem.net)


def _starts_small(data: Dataset, net: Network) -> bool:
    """Whether all outputs at the start are far below the labels."""
    size = np.log(SMALL * (np.abs(data.y).max() or 1.0))
    return bool(net.log_predict(data.X)[0].max() < size)


def split(W: Array, basis: Array) -> tuple[Array, Array]:
    """Coordinates (m, r) of weights in the span of the points, and what is outside of it (m, d).

    What is at the rounding of the products is zero: a neuron would grow out of such a coordinate,
    and such a part outside would be the balance of a neuron that has none.
    """
    w = W @ basis
    w[np.abs(w) <= ROUNDED * (np.abs(W) @ np.abs(basis))] = 0.0
    outside = W - w @ basis.T
    outside[np.abs(outside) <= ROUNDED * (np.abs(W) + np.abs(w) @ np.abs(basis.T))] = 0.0
    return np.ascontiguousarray(w), outside
