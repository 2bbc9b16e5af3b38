r"""Classes: neurons with the same activation row move by the same force, computed once.

For a class with active points ``A`` and sliding points ``S`` the force is
:math:`g = \sum_i \rho_i x_i` with :math:`\rho = c` on ``A`` and, on ``S``, the multipliers of the
projection that keeps the neuron on its planes: :math:`G_{SS} \rho_S = -G_{SA} c_A`. A slide goes on
while every :math:`\theta_i = \rho_i / c_i` stays in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.engines.flow.state import Modes


@dataclass(frozen=True)
class Slide:
    """One class that slides: its index, its sliding points, and two maps.

    ``lift`` takes c to rho on the sliding points; ``normal`` is the inverse of their Gram matrix.
    """

    index: int
    points: NDArray[np.int64]
    lift: Array
    normal: Array


@dataclass(frozen=True)
class Classes:
    """Distinct living rows: ``rows`` (C, n), ``cid`` (m,) with -1 for dead neurons."""

    rows: Modes
    cid: NDArray[np.int64]
    active: NDArray[np.bool_]
    slides: tuple[Slide, ...]

    def forces(self, c: Array) -> Array:
        """``rho`` (C, S, n) for forces ``c`` (S, n)."""
        rho = np.where(self.active[:, None, :], c[None, :, :], 0.0)
        for slide in self.slides:
            rho[slide.index][:, slide.points] = rho[slide.index] @ slide.lift
        return rho


def classify(mode: Modes, gram: Array) -> Classes:
    """Group neurons by their rows; where a neuron's slide came from does not split a class."""
    plain = np.where(mode >= 2, np.int8(2), mode)
    living = np.flatnonzero((plain == 1).any(axis=1))
    cid = np.full(len(mode), -1, dtype=np.int64)
    if not len(living):
        none = np.empty((0, mode.shape[1]), np.int8)
        return Classes(none, cid, none.astype(bool), ())
    packed = np.ascontiguousarray(plain[living]).view(np.dtype((np.void, mode.shape[1]))).ravel()
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    cid[living] = inverse.ravel()
    rows = plain[living][first]
    slides = []
    for index in np.flatnonzero((rows == 2).any(axis=1)):
        points = np.flatnonzero(rows[index] == 2)
        own = gram[np.ix_(points, points)]
        cross = np.where(rows[index] == 1, gram[points], 0.0)
        # pseudo-inverse: points that slide together may be linearly dependent
        normal: Array = np.asarray(np.linalg.pinv(own, rcond=1e-12, hermitian=True))
        lift = -(normal @ cross).T
        slides.append(Slide(int(index), points, np.ascontiguousarray(lift), normal))
    return Classes(rows, cid, rows == 1, tuple(slides))


def tangent_kernel(
    a: Array, z: Array, weight: Array, mode: Modes, gram: Array, classes: Classes, hidden: bool
) -> Array:
    r"""The matrix with :math:`\dot h = \hat K c`, positive semidefinite.

    :math:`\hat K_{ik} = \sum_j e_j [z_{ji} z_{jk} + a_j^2 x_i^T P_j x_k]` over neurons active on
    both points, ``P_j`` the projection of a sliding neuron. The first term drops when only the
    hidden layer is trained.
    """
    living = (mode == 1).astype(np.float64)
    mass = weight * a * a
    kernel = gram * (living.T @ (mass[:, None] * living))
    for slide in classes.slides:
        members = classes.cid == slide.index
        cross = gram[slide.points]
        both = classes.active[slide.index]
        kernel += mass[members].sum() * both[:, None] * (cross.T @ slide.lift.T) * both[None, :]
    if not hidden:
        inner = np.sqrt(weight)[:, None] * z * living
        kernel += inner.T @ inner
    return np.asarray(0.5 * (kernel + kernel.T))
