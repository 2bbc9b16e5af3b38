"""Orthonormal inputs: the setting of incremental, saddle-to-saddle learning.

Town, Boursier, Lewis, Englert and Lazic, "Mildly Overparameterized ReLU Networks on Orthogonal
Data" (arXiv 2605.27097): ``X X^T = I`` and labels that are never zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, choice, generator, real_array, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError


def orthonormal(
    n: int,
    *,
    d: int | None = None,
    labels: str | ArrayLike = "mixed",
    rotate: bool = False,
    seed: int | np.random.Generator,
) -> Dataset:
    """Orthonormal points with nonzero labels.

    Parameters
    ----------
    n : int
        Number of points.
    d : int, optional
        Dimension, at least ``n``; ``n`` by default.
    labels : {"mixed", "positive"} or (n,) array
        "mixed": standard normal; "positive": their absolute values; or the labels themselves.
    rotate : bool
        False: the first ``n`` unit vectors of the axes. True: uniform (Haar) orthonormal rows.
    seed : int or Generator
        Order of draws: the labels (unless given), then the rotation (if asked for); the same seed
        gives the same labels with and without rotation.

    Returns
    -------
    Dataset
        Points of length 1, orthogonal to each other.

    Examples
    --------
    >>> data = orthonormal(2, d=3, labels=[1.0, -2.0], seed=0)
    >>> data.X
    array([[1., 0., 0.],
           [0., 1., 0.]])

    Numerics
    --------
    Without rotation the Gram matrix is exactly the identity; with it, to 1e-14. O(n^2 d) time.
    """
    count = whole(n, "n")
    dim = count if d is None else whole(d, "d")
    if dim < count:
        raise InputError(
            f"`d` is {dim} but `n` is {count}: only {dim} orthonormal points fit. Use d >= n."
        )
    rng = generator(seed)
    y = _labels(labels, count, rng)
    X = _haar_rows(count, dim, rng) if rotate else np.eye(count, dim)
    return Dataset(X, y, name="orthonormal")


def _labels(labels: str | ArrayLike, n: int, rng: np.random.Generator) -> Array:
    if isinstance(labels, str):
        kind = choice(labels, "labels", ("mixed", "positive"))
        y = rng.standard_normal(n)
        while not y.all():  # an exact zero has probability 2^-52 or less, yet is not allowed
            y = rng.standard_normal(n)
        return np.abs(y) if kind == "positive" else y
    given = real_array(labels, "labels", 1)
    if len(given) != n:
        raise InputError(f"`labels` has {len(given)} entries for {n} points. Give one a point.")
    zero = np.flatnonzero(given == 0.0)
    if len(zero):
        raise InputError(
            f"`labels[{zero[0]}]` is 0. A zero label is fitted by silence and has no place in the "
            "saddle-to-saddle process. Drop the point or change the label."
        )
    return given


def _haar_rows(n: int, d: int, rng: np.random.Generator) -> Array:
    q, r = np.linalg.qr(rng.standard_normal((d, n)))
    # without the signs of the diagonal the law would depend on the conventions of LAPACK
    return np.asarray((q * np.where(np.diag(r) < 0.0, -1.0, 1.0)).T)
