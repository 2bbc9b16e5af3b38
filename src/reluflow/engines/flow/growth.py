r"""What a step misses of the growth of neurons, per unit of progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.engines.flow.tableau import FOUR, Tableau
from reluflow.kernels.flow.ending import LONG
from reluflow.kernels.flow.forces import on_planes, spread

if TYPE_CHECKING:
    from reluflow.engines.flow.start import Start


def turn(rtol: float, method: Tableau = FOUR) -> float:
    """The boost in one part of a walk: what is missed of a neuron, however small, is below rtol."""
    return float((rtol / method.gauss_error) ** (0.5 / method.stages))


def missed(at: Start, step: float, boost: float, method: Tableau) -> float:
    """The error of the size of neurons that turn by at most ``boost``."""
    if at.problem.decay:
        return _with_decay(at, step, boost, method)
    return float(method.gauss_error * boost ** (2 * method.stages))


def _with_decay(at: Start, step: float, boost: float, method: Tableau) -> float:
    r"""Along its pull a neuron grows at :math:`|g| - \mu`.

    What is not along it fades at up to :math:`|g| + \mu`, and a long step misses at most all of it.
    """
    state, decay, rows = at.state, at.problem.decay, at.classes
    fast = boost + step * decay
    constant = method.radau_error if step * decay > LONG else method.gauss_error
    error = constant * fast ** (2 * method.stages)
    living = rows.cid >= 0
    if error <= 1e-14 or not living.any():
        return error
    low, high = on_planes(at.c[None], at.problem.planes)
    g = (spread(low, high, rows)[:, 0] @ at.problem.planes.U)[rows.cid[living]]
    top = np.maximum(np.abs(g).max(axis=1), 1e-300)  # the squares of small pulls are below floats
    speed = top * np.linalg.norm(g / top[:, None], axis=1)
    heading = g / np.maximum(speed, 1e-300)[:, None]
    a, w = state.a[living], state.w[living]
    along = np.einsum("jd,jd->j", w, heading)
    aside = np.square(w - along[:, None] * heading).sum(axis=1) + 0.5 * (a - along) ** 2
    share = np.sqrt(aside / np.maximum(a**2 + np.square(w).sum(axis=1), 1e-300))
    net = step * float(np.abs(speed - decay).max())
    return float(min(error, 1.0) * share.max() + constant * net**method.order)
