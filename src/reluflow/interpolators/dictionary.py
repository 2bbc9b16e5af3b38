r"""The univariate margin problem over a dictionary of directions, grown until nothing is missing.

.. math:: \min \sum_j c_j \quad\text{s.t.}\quad
          y_i \sum_j \sigma_j c_j\,\mathrm{relu}(d_j\cdot p_i) \ge 1/|(x_i, 1)|,\; c \ge 0

A linear program, solved by the simplex method, whose vertices are exact where interior points of
the cone program are not (close points with different labels). Its dual violates the supremum
condition only on arcs of `planar`; the violating directions join the dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reluflow.checks import Array
from reluflow.interpolators.planar import Line, kinks, sum_peaks
from reluflow.interpolators.polish import Atoms

_ROUNDS = 12


def grow_dictionary(data: Line) -> Iterator[tuple[Atoms, Array]]:
    """Networks and multipliers of the successive programs, starting from the kinks.

    Numerics
    --------
    At most 12 programs with n rows and about 5n columns. Every round adds the peaks of the last
    multipliers and drops what was not used; the gap falls about fourfold.
    """
    from scipy.optimize import linprog

    points, y = data.points, data.y
    fixed = np.concatenate([kinks(points), -kinks(points)])
    directions = fixed
    for _ in range(_ROUNDS):
        features = y[:, None] * np.maximum(points @ directions.T, 0.0)
        table = np.concatenate([features, -features], axis=1)
        # tighter tolerances than the default make the simplex method stall on these programs
        answer = linprog(
            np.ones(table.shape[1]),
            A_ub=-table,
            b_ub=-1.0 / data.norms,
            method="highs-ds",
            options={"time_limit": 60.0},
        )
        if answer.status != 0:
            return
        lam = np.maximum(-answer.ineqlin.marginals, 0.0)
        used = np.flatnonzero(answer.x > 0)
        chosen = directions[used % len(directions)]
        signs = np.where(used < len(directions), 1.0, -1.0)
        yield Atoms(answer.x[used, None] * chosen, signs), lam
        peaks = sum_peaks(points, y * lam, 1.0 + 1e-11)
        if not len(peaks):
            return
        directions = np.concatenate([fixed, chosen, peaks])
