r"""Cone programs: a thin layer over Clarabel that returns a value with an honest status.

.. math:: \min_x \tfrac12 x^T P x + q^T x \quad\text{s.t.}\quad A x + s = b,\; s \in \mathcal K

:math:`\mathcal K` is a product of zero, non-negative and second-order cones, in that order. The
dual variable ``z`` satisfies :math:`P x + q + A^T z = 0`, :math:`z \in \mathcal K^*`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.checks import Array

# Clarabel's names -> ours; every other outcome (iteration limit, numerical error, ...) is "failed"
_STATUS = {
    "Solved": "solved",
    "AlmostSolved": "almost_solved",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "almost_infeasible",
    "DualInfeasible": "unbounded",
}


@dataclass(frozen=True)
class ConeSolution:
    """What the solver says, word for word: nothing here is verified.

    Attributes
    ----------
    status : str
        ``solved``, ``almost_solved``, ``infeasible``, ``almost_infeasible``, ``unbounded`` or
        ``failed``. Only the first claims an optimum; ``almost_solved`` is never renamed.
    x : (k,) array
        Primal variables; meaningless when infeasible.
    z : (r,) array
        Dual variables, a certificate when infeasible.
    """

    status: str
    x: Array
    z: Array


@dataclass(frozen=True)
class Cones:
    """Sizes of the cones, in the order of the rows: zero, non-negative, second order."""

    zero: int = 0
    nonnegative: int = 0
    second_order: tuple[int, ...] = ()


def solve(P: Any, q: Array, A: Any, b: Array, cones: Cones, *, tol: float = 1e-9) -> ConeSolution:
    """Solve a cone program; ``P`` and ``A`` are scipy sparse or dense, ``P`` may be None.

    Numerics
    --------
    Interior point to ``tol`` in gap and feasibility. If that is out of reach of double precision
    the status says so; callers certify what they return by their own arithmetic in all cases.
    """
    import clarabel
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.iterative_refinement_reltol = settings.iterative_refinement_abstol = 1e-15
    settings.iterative_refinement_max_iter = 50
    blocks = [
        *([clarabel.ZeroConeT(cones.zero)] if cones.zero else []),
        *([clarabel.NonnegativeConeT(cones.nonnegative)] if cones.nonnegative else []),
        *(clarabel.SecondOrderConeT(size) for size in cones.second_order),
    ]
    k = len(q)
    quadratic = (
        sparse.csc_array((k, k)) if P is None else sparse.triu(sparse.csc_array(P), format="csc")
    )
    solver = clarabel.DefaultSolver(quadratic, q, sparse.csc_array(A), b, blocks, settings)
    answer = solver.solve()
    status = _STATUS.get(str(answer.status), "failed")
    return ConeSolution(status, np.asarray(answer.x), np.asarray(answer.z))


def block_diagonal(blocks: Iterable[Array]) -> Any:
    """The sparse array with these dense blocks along its diagonal."""
    from scipy import sparse

    return sparse.block_diag([sparse.coo_array(block) for block in blocks], format="csc")
