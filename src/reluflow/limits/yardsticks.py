r"""Yardsticks: where each neuron of a tiny balanced network goes while the outputs are negligible.

.. math:: \dot\alpha_j = s_j |\alpha_j| \, \gamma_{I_+(\alpha_j)}, \qquad \alpha_j(0) = z_j, \qquad
          \gamma_I = \frac1n \sum_{i \in I} y_i x_i

with :math:`w_j = \lambda z_j`, :math:`a_j = s_j |w_j|`, :math:`I_+(v) = \{i : v \cdot x_i > 0\}`.
Between two boundary crossings :math:`g = \gamma_{I_+}` is constant. With
:math:`c = \cos(\alpha_0, g)`, rapidity :math:`\theta = s |g| (t - t_0)` and unit :math:`\bar g`:

.. math:: \alpha(t) = \alpha_0 + |\alpha_0| D \bar g, \quad D = c (\cosh\theta - 1) + \sinh\theta,
          \quad |\alpha(t)| = |\alpha_0| (\cosh\theta + c \sinh\theta)

If :math:`g \cdot x_i > 0` for all i then :math:`s \, \alpha \cdot x_i` increases, point i is
crossed at :math:`D_i = -(\bar\alpha_0 \cdot x_i)/(\bar g \cdot x_i)`, the next crossing is the
one of smallest :math:`s D_i`, and its rapidity is
:math:`\theta = \log \frac{N + c + D}{1 + c}` with :math:`N = |\alpha|/|\alpha_0|` (the difference
of two asinh, written so that no digits cancel).

Reference: Chistikov, Englert, Lazic, NeurIPS 2023 (arXiv 2306.06479), sections on the first phase.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.checks import Array, number, read_only
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.limits.constants import constants, smallest
from reluflow.limits.hypotheses import check_pair, common_scale, imbalance, refuse
from reluflow.limits.paths import Paths, trace
from reluflow.network import Network

TIE_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Yardsticks:
    r"""Yardsticks of all neurons of a network on a data set.

    Attributes
    ----------
    order, times : tuples of m arrays
        Points crossed by each neuron, first to last, and when. For s = +1 they become active, for
        s = -1 inactive.
    positive, negative : (k,) int arrays
        The neurons of J+ and J-: active on some point, with output sign + or -.
    delta, Delta : float
        The constants of Assumption 2: the smallest of ``terms`` (0 if one is not positive, nan if
        one is unknown) and ``max(max |x_i|, max |z_j|, 1)``.
    terms : dict
        The eleven quantities whose minimum is delta, by name, in the order of the paper.
    ties : tuple of (neuron, point, point)
        Crossings of one neuron closer than 1e-12 of the time scale: their order is undefined.
    valid : bool
        Whether every crossing is monotone, as for data with positive inner products.
    reason : str
        Why not, if not.
    horizon : (m,) array
        Time until which each closed form holds (inf where valid).
    T0 : float
        One time unit after the last crossing of all.
    gamma : (d,) array
        The force :math:`\gamma_{[n]}` once every point is active.
    log_scale : float
        The common log scale: ``w_j`` is near ``exp(log_scale) alpha_j``.
    """

    data: Dataset
    net: Network
    order: tuple[NDArray[np.int32], ...]
    times: tuple[Array, ...]
    positive: NDArray[np.intp]
    negative: NDArray[np.intp]
    delta: float
    Delta: float
    terms: dict[str, float]
    ties: tuple[tuple[int, int, int], ...]
    valid: bool
    reason: str
    horizon: Array
    T0: float
    gamma: Array
    log_scale: float
    paths: Paths = field(repr=False)

    @property
    def smallest_term(self) -> str:
        """Name of the term that decides delta, among those known."""
        known = {name: value for name, value in self.terms.items() if not np.isnan(value)}
        return min(known, key=lambda name: known[name])

    def log_scale_bound(self, eps: float) -> float:
        r"""Largest admissible :math:`\ln\lambda` of Assumption 2, for 0 < eps <= 1/4.

        .. math:: -\frac{3}{\varepsilon} \left( \ln m + 9 n \frac{\Delta^2}{\delta^3} \ln n \right)

        ``-inf`` when delta is 0. The scale itself underflows always; only its log is given.
        """
        eps = number(eps, "eps", above=0.0, at_most=0.25)
        bulk = 0.0
        if self.data.n > 1:
            with np.errstate(divide="ignore", over="ignore"):
                bulk = 9 * self.data.n * np.log(self.data.n) * self.Delta**2
                bulk /= np.float64(self.delta) ** 3
        return float(-(3.0 / eps) * (np.log(self.net.width) + bulk))

    def T1(self, eps: float) -> float:
        r"""End of the first phase, :math:`\varepsilon \ln(1/\lambda) / |\gamma|`."""
        eps = number(eps, "eps", above=0.0, at_most=0.25)
        return float(-eps * self.log_scale / np.linalg.norm(self.gamma))

    def at(self, t: float) -> Network:
        r"""The yardsticks at time t: ``directions`` and ``log_norms`` of the Network returned.

        Its scale is that of :math:`\alpha_j` (:math:`\alpha_j(0) = z_j`): ``exp(self.log_scale)``
        is not included.

        Numerics
        --------
        Closed form from the last crossing before t, right for any t (norms in logs). Directions to
        about 1e-13; near-parallel neurons of J- lose what the smallness of their angle loses.
        O(n d) a neuron.
        """
        t = number(t, "t", at_least=0.0)
        late = np.flatnonzero(self.horizon < t)
        if len(late):
            j = int(late[0])
            raise InputError(
                f"`t` is {t:g} but the closed form of neuron {j} ends at {self.horizon[j]:g}: "
                f"{self.reason}. Ask for an earlier time, or run the flow."
            )
        directions, log_norms = self.paths.state(np.full(self.net.width, t))
        # a zero neuron has a zero direction, whatever finite scale goes with it
        return Network(self.net.signs, directions, np.where(np.isfinite(log_norms), log_norms, 0.0))

    def log_norms(self, t: ArrayLike) -> Array:
        r"""Logarithms of :math:`|\alpha_j(t)|`, (m,) or one row for each entry of ``t``."""
        if np.ndim(t) == 0:
            t = number(np.asarray(t).item(), "t", at_least=0.0)
            return self.at(t).log_norms
        return np.array([self.at(float(each)).log_norms for each in np.asarray(t)])


def yardsticks(data: Dataset, net: Network) -> Yardsticks:
    r"""Closed-form yardsticks of a balanced network: crossing orders, times, delta, Delta.

    Parameters
    ----------
    data : Dataset
        Points; the loss is ``(1/2n) sum (h - y)^2``.
    net : Network
        Balanced network; ``z_j = W_j`` and ``lam = exp(log_scale)`` as given.

    Returns
    -------
    Yardsticks
        If some force is not positive on some point (possible only when inner products or labels
        are not positive), ``valid`` is False, ``reason`` says why, and the neurons concerned carry
        the crossings before that moment only.

    Examples
    --------
    >>> data = Dataset([[1.0, 0.0], [1.0, 1.0]], [1.0, 1.0], teacher=[1.0, 0.0])
    >>> net = Network([1.0], [[0.6, -0.8]], log_scale=-20.0)
    >>> sticks = yardsticks(data, net)
    >>> sticks.order[0], sticks.times[0].round(6)
    (array([1], dtype=int32), array([0.376453]))
    >>> bool(abs(sticks.at(sticks.times[0][0]).directions @ data.X[1]) < 1e-15)
    True

    Numerics
    --------
    No time step and no root finder. Crossing times and states to a relative 1e-13 against 50-digit
    arithmetic (tests/limits/test_yardstick_paths.py); a neuron of J- at a small angle to its force
    loses the digits its angle has lost. One crossing costs O(n) with the Gram matrix, the start
    O(n^2) a neuron as one matrix product. Memory: 28 bytes a crossing, n bytes a neuron, the Gram
    matrix and 50 MB of work space. Measured at m = 10,000, n = 1,000, d = 100: 4.4 million
    crossings, 11 s on one core, 0.45 GB for the whole process.
    """
    check_pair(data, net, "yardsticks")
    refuse("yardsticks", imbalance(net))
    paths = trace(data, net)
    spans = [slice(a, b) for a, b in zip(paths.offsets[:-1], paths.ends, strict=True)]
    order = tuple(paths.order[span] for span in spans)
    times = tuple(paths.times[span] for span in spans)
    moving = paths.active.any(axis=1)
    positive, negative = (np.flatnonzero(moving & (net.signs == s)) for s in (1.0, -1.0))
    terms, largest = constants(data, paths, positive, negative)
    valid = bool(np.isinf(paths.horizon).all())
    gamma = paths.force @ data.X
    return Yardsticks(
        data=data,
        net=net,
        order=order,
        times=times,
        positive=positive,
        negative=negative,
        delta=smallest(terms),
        Delta=largest,
        terms=terms,
        ties=_ties(paths, float(np.linalg.norm(gamma))),
        valid=valid,
        reason="" if valid else _reason(paths, data),
        horizon=read_only(paths.horizon),
        T0=float(paths.last_times().max()) + 1.0,
        gamma=read_only(gamma),
        log_scale=common_scale(net)[0],
        paths=paths,
    )


def _ties(paths: Paths, rate: float) -> tuple[tuple[int, int, int], ...]:
    """Neuron and the two points, for neighbouring crossings closer than the tolerance."""
    close = np.flatnonzero(np.diff(paths.times) * rate <= TIE_TOLERANCE)
    neuron = np.searchsorted(paths.offsets, close, side="right") - 1
    same = close + 1 < paths.ends[neuron]
    return tuple(
        (int(j), int(paths.order[k]), int(paths.order[k + 1]))
        for j, k in zip(neuron[same], close[same], strict=True)
    )


def _reason(paths: Paths, data: Dataset) -> str:
    bad = np.flatnonzero(np.isfinite(paths.horizon))
    first = int(bad[np.argmin(paths.horizon[bad])])
    low = int(np.argmin(data.gram))
    cause = (
        f"points {low // data.n} and {low % data.n} have inner product {data.gram.flat[low]:.3g}"
        if data.gram.flat[low] <= 0
        else f"the smallest label is {data.y.min():.3g}"
    )
    return (
        f"{cause}, and the force on {len(bad)} neurons pushes some boundary the wrong way (first: "
        f"neuron {first} at t = {paths.horizon[first]:.6g}), so crossings are not monotone"
    )
