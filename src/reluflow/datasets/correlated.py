r"""Correlated inputs: points around a direction, labelled by one or two ReLU neurons.

The settings of Chistikov, Englert and Lazic, "Learning a Neuron by a Shallow ReLU Network"
(NeurIPS 2023, arXiv 2306.06479): labels are :math:`y_i = \mathrm{relu}(v \cdot x_i)` for a unit
teacher ``v``; the theory asks for all angles between ``v`` and the points to be below pi/4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, generator, number, real_array, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network

Seed = int | np.random.Generator

_MAX_REDRAWS = 10_000
_MIN_REDRAWS = 100
_REDRAWN_NUMBERS = 10**8


def centred(d: int, *, n: int | None = None, rho: float = 1.0, seed: Seed) -> Dataset:
    r"""Gaussian points around the teacher itself.

    .. math:: x_i \sim N(\mu, (\rho/d) I), \qquad v = \mu, \quad |\mu| = 1

    Parameters
    ----------
    d : int
        Dimension.
    n : int, optional
        Number of points, ``d`` by default.
    rho : float
        Multiplier of the **variance**; typical angles to the teacher are ``arctan(sqrt(rho))``.
    seed : int or Generator
        Order of draws: ``mu``, then all points, again and again until every label is nonzero
        (``mu`` is kept).

    Returns
    -------
    Dataset
        With its teacher, of norm 1.

    Examples
    --------
    >>> data = centred(8, seed=0)
    >>> data.n, bool((data.y > 0).all()), bool(np.all(data.y == data.X @ data.teacher))
    (8, True, True)
    """
    rng, shape, sd = _settings(d, n, rho, seed)
    mu = _unit(rng.standard_normal(shape[1]))

    def draw() -> tuple[Array, Array]:
        return mu + sd * rng.standard_normal(shape), mu

    return _until_labelled(draw, shape, "centred")


def uncentred(
    d: int, *, n: int | None = None, rho: float = np.sqrt(2.0) - 1.0, seed: Seed
) -> Dataset:
    r"""Gaussian points, and a teacher drawn like one of them.

    .. math:: x_0, x_1, \dots, x_n \sim N(\mu, (\rho/d) I), \qquad v = x_0/|x_0|

    Parameters
    ----------
    d, n, rho, seed
        As for `centred`. Order of draws: ``mu``, then the points and ``x_0``, again and again until
        every label is nonzero (``mu`` is kept). The default ``rho`` puts angles near pi/4.

    Returns
    -------
    Dataset
        With its teacher, of norm 1.

    Examples
    --------
    >>> data = uncentred(8, n=3, seed=0)
    >>> data, round(float(np.linalg.norm(data.teacher)), 12)
    (Dataset('uncentred', n=3, d=8), 1.0)
    """
    rng, shape, sd = _settings(d, n, rho, seed)
    mu = _unit(rng.standard_normal(shape[1]))

    def draw() -> tuple[Array, Array]:
        X = mu + sd * rng.standard_normal(shape)
        return X, _unit(mu + sd * rng.standard_normal(shape[1]))

    return _until_labelled(draw, shape, "uncentred")


def two_teachers(
    d: int,
    *,
    n: int | None = None,
    rho: float = 1.0,
    norms: ArrayLike = (1.0, 3.0),
    uncentred: bool = False,
    seed: Seed,
) -> Dataset:
    r"""Two opposite clusters, each with its own teacher.

    .. math:: y_i = \mathrm{relu}(v_1 \cdot x_i) - \mathrm{relu}(v_2 \cdot x_i)

    Parameters
    ----------
    d : int
        Dimension.
    n : int, optional
        Points in **each** cluster, ``d`` by default: the first ``n`` around ``mu``, as many around
        ``-mu``.
    rho : float
        Multiplier of the variance, as for `centred`.
    norms : (float, float)
        Norms of ``v_1`` and ``v_2``.
    uncentred : bool
        Draw the directions of the teachers around ``mu`` and ``-mu`` like the points, instead of
        taking ``mu`` and ``-mu``.
    seed : int or Generator
        Order of draws: ``mu``; then the first cluster, the second and, if ``uncentred``, the two
        teachers, again and again until every label is nonzero (``mu`` is kept). For large ``rho`` a
        point may fall to the other cluster's teacher; its label then has the other sign.

    Returns
    -------
    Dataset
        Points of both clusters.

    Examples
    --------
    >>> data = two_teachers(4, seed=0)
    >>> data.n, data.teacher.signs
    (8, array([ 1., -1.]))
    """
    rng, shape, sd = _settings(d, n, rho, seed)
    sizes = real_array(norms, "norms", 1)
    if len(sizes) != 2 or not (sizes > 0.0).all():
        raise InputError(f"`norms` is {norms!r}; two teachers need two positive norms. Change it.")
    mu = _unit(rng.standard_normal(shape[1]))
    centres = np.stack([mu, -mu])

    def draw() -> tuple[Array, Network]:
        X = np.concatenate([centre + sd * rng.standard_normal(shape) for centre in centres])
        v = centres
        if uncentred:
            v = np.stack([_unit(centre + sd * rng.standard_normal(len(mu))) for centre in centres])
        return X, Network([1.0, -1.0], sizes[:, None] * v)

    return _until_labelled(draw, (2 * shape[0], shape[1]), "two_teachers")


def cone(d: int, n: int, *, half_angle: float, seed: Seed) -> Dataset:
    r"""Unit points uniform in the cap of angle ``half_angle`` around the teacher.

    The angle to the teacher has density proportional to :math:`\sin^{d-2}\theta` on
    ``[0, half_angle]``, so that in high dimension most points lie near the rim.

    Parameters
    ----------
    d : int
        Dimension, at least 2.
    n : int
        Number of points.
    half_angle : float
        Largest angle to the teacher, in (0, pi/2) radians; below pi/4 the theory applies.
    seed : int or Generator
        Order of draws: the teacher (uniform on the sphere), the angles (rounds of ``n`` proposals
        and ``n`` tests until ``n`` are accepted), the tangential directions.

    Returns
    -------
    Dataset
        With its teacher, of norm 1.

    Examples
    --------
    >>> data = cone(5, 20, half_angle=0.3, seed=0)
    >>> bool(np.arccos(data.X @ data.teacher).max() <= 0.3)
    True

    Numerics
    --------
    Angles are exact draws (rejection below a tangent envelope, no underflow for any d); points have
    unit norm and angles below ``half_angle`` to 1e-15.
    """
    dim, count = whole(d, "d", at_least=2), whole(n, "n")
    widest = number(half_angle, "half_angle", above=0.0, below=np.pi / 2)
    rng = generator(seed)
    v = _unit(rng.standard_normal(dim))
    theta = _cap_angles(dim, count, widest, rng)[:, None]
    tangent = rng.standard_normal((count, dim))
    for _ in range(2):  # once leaves an error of eps/|tangent| along v
        tangent -= (tangent @ v)[:, None] * v
        tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    X = np.cos(theta) * v + np.sin(theta) * tangent
    return Dataset(X, np.maximum(X @ v, 0.0), teacher=v, name="cone")


def negative_family(d: int, t: float) -> Dataset:
    r"""``d`` points for which the least-rank interpolator has least norm (M < 0, Theorem 8).

    .. math:: x_i = t e_i + \frac{1-t}{d} \mathbf 1, \qquad v = \mathbf 1/\sqrt d

    Parameters
    ----------
    d : int
        Dimension and number of points, at least 2.
    t : float
        In ``(0, sqrt(2 (sqrt 2 - 1)/(d - 1))]``; the common angle to the teacher is
        ``arctan(t sqrt(d - 1))``.

    Returns
    -------
    Dataset
        With its teacher.

    Notes
    -----
    By symmetry the covariance has a repeated eigenvalue and ``v`` is orthogonal to its eigenspace,
    so the dynamical theorems say nothing here; the family serves Theorem 8 only.

    Examples
    --------
    >>> negative_family(2, 0.5).X
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    dim = whole(d, "d", at_least=2)
    limit = np.sqrt(2.0 * (np.sqrt(2.0) - 1.0) / (dim - 1))
    # the limit itself belongs to the family, whichever way the caller rounded it
    size = number(t, "t", above=0.0, at_most=float(limit * (1.0 + 1e-12)))
    X = size * np.eye(dim) + (1.0 - size) / dim
    v = np.full(dim, 1.0 / np.sqrt(dim))
    return Dataset(X, X @ v, teacher=v, name="negative_family")


def positive_family(d: int, b: float) -> Dataset:
    r"""``d`` points for which no least-rank interpolator has least norm (M > 0, Theorem 8).

    .. math::
        x_1 = b e_1, \quad x_{2,3} = b e_1 \mp \sqrt b\, e_2 + e_3, \quad x_i = b e_1 + e_i
        \ (i \ge 4), \qquad v = 0.8 e_1 + 0.6 e_3

    Parameters
    ----------
    d : int
        Dimension and number of points, at least 3.
    b : float
        At least 11. As in `negative_family`, ``v`` is orthogonal to an eigenvector.

    Returns
    -------
    Dataset
        With its teacher.

    Examples
    --------
    >>> positive_family(4, 16.0).X
    array([[16.,  0.,  0.,  0.],
           [16., -4.,  1.,  0.],
           [16.,  4.,  1.,  0.],
           [16.,  0.,  0.,  1.]])
    """
    dim, size = whole(d, "d", at_least=3), number(b, "b", at_least=11.0)
    X = np.eye(dim)
    X[:3] = 0.0
    X[1:3, 1] = -np.sqrt(size), np.sqrt(size)
    X[1:3, 2] = 1.0
    X[:, 0] = size
    v = np.zeros(dim)
    v[0], v[2] = 0.8, 0.6
    return Dataset(X, X @ v, teacher=v, name="positive_family")


def _settings(
    d: int, n: int | None, rho: float, seed: Seed
) -> tuple[np.random.Generator, tuple[int, int], float]:
    """Check the arguments the Gaussian clusters share; returns (rng, (n, d), sd)."""
    dim = whole(d, "d")
    count = dim if n is None else whole(n, "n")
    sd = float(np.sqrt(number(rho, "rho", above=0.0) / dim))
    return generator(seed), (count, dim), sd


def _until_labelled(
    draw: Callable[[], tuple[Array, Array | Network]], shape: tuple[int, int], name: str
) -> Dataset:
    """Draw points and teacher until every label is nonzero."""
    tries = min(_MAX_REDRAWS, max(_MIN_REDRAWS, _REDRAWN_NUMBERS // (shape[0] * shape[1])))
    for _ in range(tries):
        X, teacher = draw()
        y = teacher.predict(X) if isinstance(teacher, Network) else np.maximum(X @ teacher, 0.0)
        if y.all():
            return Dataset(X, y, teacher=teacher, name=name)
    raise InputError(
        f"{tries} draws of {shape[0]} points in dimension {shape[1]} all had a zero label: some "
        "point lies 90 degrees or more from the teacher. Such points teach nothing. Use a smaller "
        "`rho`, fewer points or a larger `d`."
    )


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))


def _cap_angles(d: int, n: int, widest: float, rng: np.random.Generator) -> Array:
    r"""Draw angles with density :math:`\propto \sin^{d-2}\theta` on ``[0, widest]``.

    The logarithm of the density is concave, so its tangent at ``widest`` lies above it: proposals
    come from that truncated exponential and are accepted with the ratio of the two.
    """
    power, slope = d - 2, 1.0 / np.tan(widest)
    rate = power * slope
    accepted = np.empty(0)
    while len(accepted) < n:
        u, test = rng.random(n), rng.random(n)
        # log1p and expm1 keep the uniform limit rate -> 0 exact
        drop = np.log1p(u * np.expm1(-rate * widest)) / rate if rate > 0.0 else -u * widest
        theta = np.maximum(widest + drop, np.finfo(float).tiny)
        gap = power * (np.log(np.sin(theta) / np.sin(widest)) - slope * drop)
        accepted = np.concatenate([accepted, theta[test < np.exp(np.minimum(gap, 0.0))]])
    return accepted[:n]
