r"""From a solver's answer to eight digits to neurons that fit exactly.

At an optimum each neuron direction solves :math:`w_k/|w_k| = s_k \sum_i \theta_{ki} \lambda_i u_i +
\sum_{B_k} \nu_{ki} u_i`, with :math:`\theta_{ki} = 1` on its active points and the slope of the
activation (0 for ReLU) elsewhere, and :math:`B_k` the points on its boundary
(:math:`u_i \cdot w_k = 0`). Given the sets, these and the conditions on the outputs,
:math:`h_i + c_i \lambda_i = z_i` (c = 0: interpolation), are smooth equations, which Newton's
method solves to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.network import activation, gates

_LARGEST = 700


@dataclass(frozen=True)
class Atoms:
    """Vectors ``W`` (k, r), each the product of a neuron's two layers, with output signs.

    ``slope`` is that of the activation below zero.
    """

    W: Array
    signs: Array
    slope: float = 0.0

    def outputs(self, U: Array) -> Array:
        """What the network itself gives at the rows of ``U``."""
        return np.asarray(self.signs @ activation(self.W @ U.T, self.slope))

    def residual(self, U: Array, z: Array) -> float:
        """Largest interpolation error."""
        return float(np.abs(self.outputs(U) - z).max())

    @property
    def cost(self) -> float:
        r""":math:`\sum_k |w_k|`, half the squared norm of the balanced network."""
        return float(np.sqrt(np.einsum("ij,ij->i", self.W, self.W)).sum())


def polish(
    U: Array, z: Array, rough: Atoms, lam: Array, softness: Array | float = 0.0
) -> tuple[list[Atoms], list[Array]]:
    """Exact candidates near ``rough`` and the dual vectors found with them, unsorted.

    Outputs are ``z - softness * dual``: ``z`` itself where nothing is soft.

    Several tolerances are tried for what counts as on a boundary, parallel or absent, because no
    single one suits both a well and a badly conditioned problem.
    """
    if not len(U) or not np.abs(rough.W).max(initial=0.0) > 0:
        return [rough], [lam]
    primal, dual = [fit_exactly(U, z - softness * lam, rough)], [lam]
    for tol in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        merged = merge_parallel(rough, tol)
        # an optimum needs at most n neurons, and Newton's method costs the cube of its size
        if len(merged.W) > 2 * len(U) or merged.W.size + len(U) > _LARGEST:
            break
        exact = _newton(U, z, merged, lam, tol, softness)
        if exact is None:
            primal.append(fit_exactly(U, z - softness * lam, merged))
            continue
        outputs = z - softness * exact[1]
        primal.append(fit_exactly(U, outputs, exact[0]))
        dual.append(exact[1])
        if exact[0].cost - exact[1] @ outputs <= 1e-12 * exact[0].cost:
            break
    return primal, dual


def merge_parallel(atoms: Atoms, tol: float) -> Atoms:
    """Add up vectors of one sign within an angle ``tol``; drop those below ``tol`` of the largest.

    Merging never raises the cost, by the triangle inequality, but moves the fit: repair it after.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", atoms.W, atoms.W))
    order = np.argsort(-norms, kind="stable")[: int((norms > tol * norms.max()).sum())]
    units = atoms.W[order] / norms[order, None]
    signs = atoms.signs[order]
    leaders = np.empty((len(order), units.shape[1]))
    sums, places = np.zeros_like(leaders), np.empty(len(order), dtype=np.intp)
    count = 0
    for k, unit in enumerate(units):
        near = np.abs(leaders[:count] - unit).max(axis=1, initial=0.0) <= tol
        same = np.flatnonzero(near & (signs[places[:count]] == signs[k]))
        place = int(same[0]) if len(same) else count
        if place == count:
            leaders[count], places[count] = unit, k
            count += 1
        sums[place] += atoms.W[order[k]]
    return Atoms(sums[:count], signs[places[:count]], atoms.slope)


def fit_exactly(U: Array, z: Array, atoms: Atoms, rounds: int = 4) -> Atoms:
    """Move the vectors as little as possible so that the network fits to rounding."""
    best, smallest = atoms, atoms.residual(U, z)
    for _ in range(rounds):
        products = best.W @ U.T
        # products at rounding level stay put: moving them would switch points on and off
        on = np.abs(products) <= 1e-6 * np.sqrt(np.einsum("ij,ij->i", best.W, best.W))[:, None]
        faces = _faces(U, on)
        F = _fit_matrix(U, gates(products > 0, atoms.slope), atoms.signs, faces)
        error = z - atoms.signs @ activation(products, atoms.slope)
        step = np.asarray(np.linalg.lstsq(F, error, rcond=1e-12)[0], dtype=np.float64)
        moved = replace(best, W=best.W + _unpack(step, faces))
        if moved.residual(U, z) >= smallest:
            break
        best, smallest = moved, moved.residual(U, z)
    return best


def reduce_count(U: Array, atoms: Atoms) -> Atoms:
    r"""Caratheodory: as few neurons as points, same fit, no larger cost.

    Vectors are rescaled along a null vector of their contributions until one vanishes.
    """
    W, signs = atoms.W, atoms.signs
    while len(W) > len(U):
        features = (signs[:, None] * activation(W @ U.T, atoms.slope)).T
        null = np.linalg.svd(features)[2][-1]
        along = null @ np.sqrt(np.einsum("ij,ij->i", W, W))
        if along < 0 or not (null > 1e-12).any():  # the latter: a vector of length zero
            null = -null
        falling = null > 1e-12
        factors = 1.0 - null / null[falling].max()
        keep = factors > 1e-12
        W, signs = (factors[:, None] * W)[keep], signs[keep]
    return Atoms(W, signs, atoms.slope)


def _newton(
    U: Array, z: Array, atoms: Atoms, lam: Array, tol: float, softness: Array | float
) -> tuple[Atoms, Array] | None:
    """Newton on the optimality conditions with the sets read off ``atoms``; None if it fails."""
    norms = np.sqrt(np.einsum("ij,ij->i", atoms.W, atoms.W))
    products = (atoms.W / norms[:, None]) @ U.T
    on = np.abs(products) <= tol
    faces = _faces(U, on)
    if min(face.shape[1] for face in faces) == 0:
        return None
    F = _fit_matrix(U, gates((products > 0) & ~on, atoms.slope), atoms.signs, faces)
    v = [face.T @ w for face, w in zip(faces, atoms.W, strict=True)]
    multipliers, last = np.array(lam), np.inf
    scale = max(float(np.abs(part).max()) for part in v)
    moved = 0.0
    for _ in range(10):
        try:
            step, multipliers = _newton_step(v, F, z, multipliers, softness)
        except np.linalg.LinAlgError:
            return None
        v = [part + change for part, change in zip(v, step, strict=True)]
        size = max(float(np.abs(change).max()) for change in step) / scale
        moved += size
        if not size < max(last, 1e-6) or moved > 0.1:
            return None
        if size <= 1e-14:
            break
        last = size
    return replace(atoms, W=_unpack(np.concatenate(v), faces)), multipliers


def _newton_step(
    v: list[Array], F: Array, z: Array, multipliers: Array, softness: Array | float
) -> tuple[list[Array], Array]:
    """Step in the vectors and new multipliers for ``v_k/|v_k| = (F^T multipliers)_k`` and
    ``F v + softness * multipliers = z``.
    """
    n, size = F.shape
    ends = np.cumsum([len(part) for part in v])
    units = [part / np.sqrt(part @ part) for part in v]
    # The system is singular when solutions are not unique. A shift of 1e-9 picks a short step;
    # the fixed point of the iteration does not depend on it.
    system = 1e-9 * np.eye(size + n)
    for part, unit, end in zip(v, units, ends, strict=True):
        block = slice(end - len(part), end)
        system[block, block] += (np.eye(len(part)) - np.outer(unit, unit)) / np.sqrt(part @ part)
    system[:size, size:] = -F.T
    system[size:, :size] = F
    system[size:, size:] += np.diag(np.broadcast_to(softness, n))
    gradient = np.concatenate(units) - F.T @ multipliers
    error = z - softness * multipliers - F @ np.concatenate(v)
    right = np.concatenate([-gradient, error])
    solution = np.linalg.solve(system, right)
    return np.split(solution[:size], ends[:-1]), multipliers + solution[size:]


def _faces(U: Array, on: NDArray[np.bool_]) -> list[Array]:
    """For each vector an orthonormal basis (r, k) of the directions that keep its boundary."""
    r = U.shape[1]
    faces = []
    for row in on:
        _, sizes, right = np.linalg.svd(U[row].reshape(-1, r), full_matrices=True)
        faces.append(right[int((sizes > 1e-9).sum()) :].T)
    return faces


def _fit_matrix(U: Array, passed: Array, signs: Array, faces: list[Array]) -> Array:
    """Linear map from coordinates on the faces to the outputs at the points."""
    parts = [s * row[:, None] * (U @ Z) for s, row, Z in zip(signs, passed, faces, strict=True)]
    return np.concatenate(parts, axis=1)


def _unpack(coordinates: Array, faces: list[Array]) -> Array:
    ends = np.cumsum([face.shape[1] for face in faces])
    parts = np.split(coordinates, ends[:-1])
    return np.array([face @ part for face, part in zip(faces, parts, strict=True)])
