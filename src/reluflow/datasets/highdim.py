r"""High-dimensional regression data: independent coordinates with a chosen spectrum.

The model of Lai, Wang, Tao and Muthukumar (arXiv 2603.04895): rows
:math:`x = \lambda^{1/2} \odot z` with independent coordinates ``z`` of mean 0 and variance 1. All
its statements depend on the data through the Gram matrix only, so the rotation of the covariance is
dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, choice, generator, number, real_array, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError

Seed = int | np.random.Generator

_MAX_ENTRIES = 2**30


@dataclass(frozen=True)
class EffectiveDimensions:
    """Trace of the population covariance and the two effective dimensions it defines."""

    trace: float
    d_2: float
    d_inf: float


def gaussian(
    n: int,
    d: int,
    *,
    spectrum: str | tuple[Any, ...] | ArrayLike = "isotropic",
    coordinates: str = "gaussian",
    n_positive: int | None = None,
    y_range: ArrayLike = (0.5, 2.0),
    seed: Seed,
) -> Dataset:
    r"""``n`` independent points with covariance ``diag(spectrum)`` and labels of both signs.

    Parameters
    ----------
    n, d : int
        Number of points and dimension.
    spectrum : "isotropic", ("spiked", r, h), ("power", a) or (d,) array
        Eigenvalues of the covariance: all 1; ``r`` of size ``h`` and the rest 1;
        :math:`j^{-a}` for j = 1..d; or any positive numbers.
    coordinates : {"gaussian", "rademacher", "uniform"}
        Law of each ``z``: normal, fair signs, or uniform on ``[-sqrt 3, sqrt 3]``.
    n_positive : int, optional
        Number of positive labels, half of them (rounded up) by default; their places are random.
    y_range : (float, float)
        Label magnitudes are uniform between these, both positive.
    seed : int or Generator
        Order of draws: magnitudes, places of the positive labels, coordinates row by row.

    Returns
    -------
    Dataset
        With its spectrum and ambient dimension.

    Examples
    --------
    >>> data = gaussian(4, 100, spectrum=("spiked", 2, 9.0), n_positive=1, seed=0)
    >>> data.spectrum[:3], int((data.y > 0).sum()), data.ambient_dim
    (array([9., 9., 1.]), 1, 100)
    """
    count, dim = whole(n, "n"), whole(d, "d")
    if count * dim > _MAX_ENTRIES:
        raise InputError(
            f"{count} points in dimension {dim} are {count * dim} numbers, more than fit in "
            "memory. For isotropic Gaussian data use `bartlett`, which has the same Gram law."
        )
    eigenvalues = _spectrum(spectrum, dim)
    law = choice(coordinates, "coordinates", ("gaussian", "rademacher", "uniform"))
    rng = generator(seed)
    y = _labels(count, n_positive, y_range, rng)
    X = _coordinates(law, (count, dim), rng) * np.sqrt(eigenvalues)
    return Dataset(X, y, name="gaussian", ambient_dim=dim, spectrum=eigenvalues)


def bartlett(
    n: int,
    d: int,
    *,
    n_positive: int | None = None,
    y_range: ArrayLike = (0.5, 2.0),
    seed: Seed,
) -> Dataset:
    r"""Isotropic Gaussian data of any dimension ``d``, stored as an ``n x n`` triangular factor.

    Row ``i`` (from 0) has standard normals before the diagonal, :math:`\sqrt{\chi^2_{d-i}}` on it
    and zeros after: ``X X^T`` has the law it has for ``n`` points of N(0, I_d) (Bartlett 1933).
    Norms, distances and predictions inside the span of the points are those of the full data.

    Parameters
    ----------
    n, d : int
        Number of points and dimension of the space they came from, ``d >= n``; 1e9 is fine.
    n_positive, y_range
        As for `gaussian`; the same seed gives the same labels.
    seed : int or Generator
        Order of draws: magnitudes, places of the positive labels, the diagonal, then the normals
        below it row by row.

    Returns
    -------
    Dataset
        ``X`` is (n, n); ``ambient_dim`` is ``d``. ``spectrum`` is the array ``[1.0]``: a spectrum
        of length one stands for ``ambient_dim`` equal eigenvalues, which are never written out. Use
        `effective_dimensions` rather than summing it.

    Examples
    --------
    >>> data = bartlett(3, 10**9, seed=0)
    >>> data.X.shape, data.ambient_dim, effective_dimensions(data).d_inf
    ((3, 3), 1000000000, 1000000000.0)

    Numerics
    --------
    Exact in law up to the rounding of the draws. O(n^2) time and memory, whatever ``d``.
    """
    count, dim = whole(n, "n"), whole(d, "d")
    if dim < count:
        raise InputError(
            f"`d` is {dim} but `n` is {count}: the triangular factor exists for d >= n only. Use "
            "`gaussian`, or a larger d."
        )
    rng = generator(seed)
    y = _labels(count, n_positive, y_range, rng)
    X = np.diag(np.sqrt(rng.chisquare(dim - np.arange(count, dtype=np.float64))))
    X[np.tril_indices(count, -1)] = rng.standard_normal(count * (count - 1) // 2)
    return Dataset(X, y, name="bartlett", ambient_dim=dim, spectrum=[1.0])


def effective_dimensions(data: Dataset) -> EffectiveDimensions:
    r"""Trace and effective dimensions of the population covariance.

    .. math:: d_2 = |\lambda|_1^2/|\lambda|_2^2, \qquad d_\infty = |\lambda|_1/|\lambda|_\infty

    Parameters
    ----------
    data : Dataset
        With a known ``spectrum``; one of length one is repeated ``ambient_dim`` times.

    Returns
    -------
    EffectiveDimensions
        The dimensions of the spectrum.

    Examples
    --------
    >>> effective_dimensions(gaussian(2, 8, seed=0))
    EffectiveDimensions(trace=8.0, d_2=8.0, d_inf=8.0)
    """
    if data.spectrum is None:
        raise InputError(
            "the data have no known `spectrum`, so their effective dimensions are unknown. Use a "
            "generator of reluflow.datasets, or pass `spectrum` to Dataset."
        )
    repeats = (data.ambient_dim or data.d) if len(data.spectrum) == 1 else 1
    shape = data.spectrum / data.spectrum.max()  # squares of huge eigenvalues could overflow
    total = repeats * float(shape.sum())
    return EffectiveDimensions(
        trace=total * float(data.spectrum.max()),
        d_2=total**2 / (repeats * float(shape @ shape)),
        d_inf=total,
    )


def _spectrum(spectrum: Any, d: int) -> Array:
    if isinstance(spectrum, str):
        choice(spectrum, "spectrum", ("isotropic",))
        return np.ones(d)
    if isinstance(spectrum, tuple) and spectrum and isinstance(spectrum[0], str):
        spectrum = _named_spectrum(spectrum, d)
    eigenvalues = real_array(spectrum, "spectrum", 1)
    if len(eigenvalues) != d:
        raise InputError(
            f"`spectrum` has {len(eigenvalues)} eigenvalues in dimension {d}. Give one a dimension."
        )
    low = np.flatnonzero(eigenvalues <= 0.0)
    if len(low):
        raise InputError(
            f"`spectrum[{low[0]}]` is {eigenvalues[low[0]]:g}; variances must be positive. "
            "Drop that coordinate and lower `d`."
        )
    return eigenvalues


def _named_spectrum(spectrum: tuple[Any, ...], d: int) -> Array:
    kind = choice(spectrum[0], "spectrum[0]", ("spiked", "power"))
    needed = 3 if kind == "spiked" else 2
    if len(spectrum) != needed:
        raise InputError(
            f"`spectrum` is {spectrum!r}; write ('spiked', r, h) or ('power', a), with numbers."
        )
    if kind == "power":
        return np.asarray(np.arange(1, d + 1) ** -number(spectrum[1], "spectrum[1]", at_least=0.0))
    spikes = whole(spectrum[1], "spectrum[1]", at_least=0)
    if spikes > d:
        raise InputError(f"`spectrum` has {spikes} spikes in dimension {d}. Use at most {d}.")
    eigenvalues = np.ones(d)
    eigenvalues[:spikes] = number(spectrum[2], "spectrum[2]", above=0.0)
    return eigenvalues


def _coordinates(law: str, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    if law == "gaussian":
        return rng.standard_normal(shape)
    if law == "rademacher":
        return np.asarray(2.0 * rng.integers(0, 2, shape) - 1.0, dtype=np.float64)
    return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape)


def _labels(n: int, n_positive: int | None, y_range: ArrayLike, rng: np.random.Generator) -> Array:
    positives = (n + 1) // 2 if n_positive is None else whole(n_positive, "n_positive", at_least=0)
    if positives > n:
        raise InputError(f"`n_positive` is {positives} but there are {n} labels. Use at most {n}.")
    ends = real_array(y_range, "y_range", 1)
    if len(ends) != 2 or not 0.0 < ends[0] <= ends[1]:
        raise InputError(
            f"`y_range` is {y_range!r}; label magnitudes lie between two positive numbers, the "
            "smaller first, and are never zero. Change it."
        )
    magnitudes = rng.uniform(ends[0], ends[1], n)
    signs = np.where(np.arange(n) < positives, 1.0, -1.0)
    return np.asarray(magnitudes * rng.permutation(signs))
