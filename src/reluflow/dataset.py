"""Dataset: labelled points, validated once and frozen."""

from __future__ import annotations

import hashlib
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, Frozen, read_only, real_array, real_points, whole, with_ones
from reluflow.errors import InputError, ReluflowWarning
from reluflow.wording import shown

if TYPE_CHECKING:
    from reluflow.network import Network

LARGEST = 1e150


class Dataset(Frozen):
    """Points ``X`` (n, d), one a row, with labels ``y`` (n,) and what is known about them.

    Parameters
    ----------
    X : (n, d) array
        Points; no row may be zero (a zero point never activates a neuron).
    y : (n,) array
        Labels; a column (n, 1) is flattened, with a warning.
    teacher : (d,) array or Network, optional
        What generated the labels.
    name : str, optional
        A name for tables and figures.
    bias : bool
        Append the coordinate 1 to every point, so that neurons have a bias: their last weight.
        Networks of runs on such data then take points without it. One-dimensional points may be
        given as an array (n,).
    ambient_dim : int, optional
        Dimension of the space the points came from, if ``X`` is a reduced factor of them.
    spectrum : (k,) array, optional
        Eigenvalues of the population covariance, where a generator knows them.

    Examples
    --------
    >>> Dataset([[1.0, 0.0], [0.0, 2.0]], [1.0, -1.0]).gram
    array([[1., 0.],
           [0., 4.]])
    >>> Dataset([3.0, -1.0], [1.0, -1.0], bias=True).X
    array([[ 3.,  1.],
           [-1.,  1.]])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        teacher: ArrayLike | Network | None = None,
        name: str | None = None,
        bias: bool = False,
        ambient_dim: int | None = None,
        spectrum: ArrayLike | None = None,
    ) -> None:
        if not isinstance(bias, bool):
            raise InputError(f"`bias` is {shown(bias)}. Pass True or False.")
        self.X: Array = with_ones(real_points(X, "X")) if bias else real_array(X, "X", 2)
        self.y: Array = real_array(_flattened(y), "y", 1)
        self.n, self.d = self.X.shape
        if self.n == 0 or self.d == 0:
            raise InputError(f"`X` has shape {self.X.shape}: it is empty. Give at least one point.")
        if len(self.y) != self.n:
            raise InputError(
                f"`X` has {self.n} rows but `y` has {len(self.y)} labels. Give one label a row."
            )
        zero = np.flatnonzero(~self.X.any(axis=1))
        if len(zero):
            raise InputError(
                f"`X` has {len(zero)} zero rows (first: {zero[0]}). A zero point never activates a "
                "neuron, so its label cannot be learned. Drop it, or pass `bias=True`."
            )
        self._check_magnitudes()
        if name is not None and not isinstance(name, str):
            raise InputError(f"`name` is {shown(name)}, not text. Pass a string or None.")
        self.teacher = _teacher(teacher, self.d)
        self.name, self.bias = name, bias
        self.ambient_dim = None if ambient_dim is None else whole(ambient_dim, "ambient_dim")
        self.spectrum = None if spectrum is None else real_array(spectrum, "spectrum", 1)

    def _check_magnitudes(self) -> None:
        """Refuse values whose squares leave the range of floats: every Gram entry needs them."""
        sizes = np.abs(self.X).max(axis=1)
        for name, values, bad in (
            ("X", sizes, (sizes > LARGEST) | (sizes < 1 / LARGEST)),
            ("y", self.y, np.abs(self.y) > LARGEST),
        ):
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                raise InputError(
                    f"`{name}` has entries of size {abs(values[row]):.3g} (first: row {row}). "
                    "Their squares leave the range of floats. "
                    f"Rescale them to between {1 / LARGEST:g} and {LARGEST:g}."
                )

    @cached_property
    def gram(self) -> Array:
        """The matrix ``X X^T`` (n, n), computed on first use."""
        return read_only(self.X @ self.X.T)

    @cached_property
    def id(self) -> str:
        """A hash of the points and labels, equal for equal data."""
        digest = hashlib.sha256(f"{self.n},{self.d};".encode())
        digest.update(self.X.tobytes())
        digest.update(self.y.tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Dataset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def _repr_html_(self) -> str:
        from reluflow import summaries

        return summaries.dataset(self)

    def __repr__(self) -> str:
        label = f"{self.name!r}, " if self.name else ""
        return f"Dataset({label}n={self.n}, d={self.d})"


def _flattened(y: Any) -> Any:
    """Labels given as a column, as PyTorch has them, in one row."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) != 2 or shape[1] != 1:
        return y
    warnings.warn(
        f"`y` has shape {tuple(shape)}; it is read as {shape[0]} labels. Pass y.ravel() to say so.",
        ReluflowWarning,
        stacklevel=3,
    )
    return np.asarray(y)[:, 0]


def _teacher(teacher: Any, d: int) -> Array | Network | None:
    if teacher is None or hasattr(teacher, "predict"):
        if teacher is not None and teacher.d != d:
            raise InputError(
                f"`teacher` takes {teacher.d} inputs but the points have {d}. Make them agree."
            )
        return teacher  # type: ignore[no-any-return]
    vector = real_array(teacher, "teacher", 1)
    if len(vector) != d:
        raise InputError(
            f"`teacher` has {len(vector)} entries but the points have {d}. Make them agree."
        )
    return vector
