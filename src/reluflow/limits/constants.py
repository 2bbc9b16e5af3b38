r"""The constants delta and Delta of Assumption 2 for correlated data, term by term.

Notation: :math:`H = X^T X / n` with eigenvalues :math:`\eta_1 > \dots > \eta_d` and unit
eigenvectors :math:`u_k`; :math:`\nu^*_k = |u_k \cdot v^*|`; a bar means normalised;
:math:`\varphi_j` is the angle between :math:`z_j` and its force at time 0.

Reference: Chistikov, Englert, Lazic, NeurIPS 2023 (arXiv 2306.06479).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.limits.hypotheses import teacher_vector
from reluflow.limits.paths import Paths


def constants(
    data: Dataset, paths: Paths, positive: NDArray[np.intp], negative: NDArray[np.intp]
) -> tuple[dict[str, float], float]:
    r"""The eleven terms whose minimum is delta (inf where a term is an empty minimum), and Delta.

    Numerics
    --------
    Term 9 is a minimum over time, attained at stage ends: along a stage the normalised
    pre-activation is a multiple of :math:`(B + \sinh\psi)/\cosh\psi`, whose only critical point is
    an extremum away from zero. Roots of eigenvalues are singular values of ``X / sqrt(n)``.
    """
    norms = np.linalg.norm(data.X, axis=1)
    unit = data.X / norms[:, None]
    with np.errstate(under="ignore"):
        starts = np.exp(paths.start_log_norms)
    terms = {
        "1 point norm": float(norms.min()),
        "2 cosine of points": float(_smallest_product(unit)),
        **_spectral(data),
        "6 neuron norm": float(starts.min()),
        "7 cosine of J+ to force": _least(paths.first_cosine[positive]),
        "8 sine of J- to force": _least(paths.first_sine[negative]),
        "9 distance to other boundaries": _least(paths.closest),
        "10 first boundary of J-": _first_boundary(paths, negative, unit),
        "11 time between crossings": _smallest_wait(paths),
    }
    return terms, float(max(norms.max(), starts.max(), 1.0))


def smallest(terms: dict[str, float]) -> float:
    """Delta from its terms: 0 if one of them is not positive, nan if one is unknown."""
    values = np.array(list(terms.values()))
    return 0.0 if np.any(values <= 0.0) else float(values.min())


def _smallest_product(unit: Array) -> float:
    # row by row in blocks: the normalised Gram matrix need not be kept
    return min(
        float((unit[start : start + 256] @ unit.T).min()) for start in range(0, len(unit), 256)
    )


def _spectral(data: Dataset) -> dict[str, float]:
    roots, vectors = np.linalg.svd(data.X / np.sqrt(data.n), full_matrices=False)[1:]
    padded = np.append(roots, np.zeros(data.d - len(roots)))
    gaps = (data.d - 1) * -np.diff(padded)
    teacher, _ = teacher_vector(data)
    parts = np.array([np.nan]) if teacher is None else np.abs(vectors @ teacher)
    return {
        "3 gap of roots of eigenvalues": _least(gaps),
        "4 root of smallest eigenvalue": float(padded[-1]),
        "5 teacher along eigenvectors": float(np.sqrt(data.d) * parts.min()),
    }


def _first_boundary(paths: Paths, negative: NDArray[np.intp], unit: Array) -> float:
    crossing = negative[paths.ends[negative] > paths.offsets[negative]]
    points = paths.order[paths.offsets[crossing]]
    return _least(np.einsum("ij,ij->i", paths.directions[crossing], unit[points]))


def _smallest_wait(paths: Paths) -> float:
    crossing = np.flatnonzero(paths.ends > paths.offsets[:-1])
    waits = np.diff(paths.times, prepend=0.0)
    # the first wait of a neuron counts from 0, not from the previous neuron's last crossing
    waits[paths.offsets[crossing]] = paths.times[paths.offsets[crossing]]
    return min(
        (float(waits[paths.offsets[j] : paths.ends[j]].min()) for j in crossing), default=np.inf
    )


def _least(values: Array) -> float:
    return float(values.min()) if len(values) else float("inf")
