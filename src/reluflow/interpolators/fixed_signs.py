r"""Shared pieces of the minimum-norm problems whose output weights are fixed to +-1.

The value is :math:`\sum_k |w_k|^2`; output weights are constants and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.interpolators.rays import span_coordinates
from reluflow.network import Network, row_norms

GAP = 1e-8
FITS = 1e-9


@dataclass(frozen=True)
class MinimumWeights:
    r"""Hidden weights that solve the problem, and what is proved about them.

    Attributes
    ----------
    W : (m, d) array
        Hidden weights.
    signs : (m,) array
        Output weights.
    value : float
        :math:`\sum_k |w_k|^2`, an upper bound on the minimum.
    lower_bound : float
        A proved lower bound on the minimum.
    certified : bool
        Whether the two agree to 1e-8 (relative).
    method : str
        Which argument gave the lower bound.
    violation : float
        Largest violation of a constraint, relative to the point's norm and the largest label.
    nodes : int
        Convex problems solved by branching (0 if none was needed).
    """

    W: Array
    signs: Array
    value: float
    lower_bound: float
    certified: bool
    method: str
    violation: float
    nodes: int = 0

    @property
    def network(self) -> Network:
        """The weights as a network."""
        return Network(self.signs, self.W)

    @property
    def gap(self) -> float:
        """``value - lower_bound``."""
        return self.value - self.lower_bound


@dataclass(frozen=True)
class Scaled:
    """Unit points ``U`` in the span of the data, labels ``z`` of size at most 1, the way back."""

    U: Array
    z: Array
    basis: Array
    scale: float


def scaled(data: Dataset) -> Scaled:
    """Scale points and labels and pass to the span; constraints keep their meaning."""
    norms = row_norms(data.X)
    z = data.y / norms
    scale = float(np.abs(z).max()) or 1.0
    U, basis = span_coordinates(data.X / norms[:, None])
    return Scaled(U, z / scale, basis, scale)


def weights(
    problem: Scaled,
    W: Array,
    signs: Array,
    lower: float,
    method: str,
    violation: float,
    nodes: int = 0,
) -> MinimumWeights:
    """Return to the original space and units."""
    value = float(np.einsum("ij,ij->", W, W))
    # a smaller lower bound is a lower bound too: rounding must not put it above the value
    lower = min(max(lower, 0.0), value)
    certified = violation <= FITS and value - lower <= GAP * value
    square = problem.scale**2
    return MinimumWeights(
        problem.scale * W @ problem.basis,
        signs,
        square * value,
        square * lower,
        bool(certified),
        method,
        violation,
        nodes,
    )
