r"""Explicit Runge-Kutta pairs: a lean one, and one that is stable in longer steps.

A gradient flow relaxes: the eigenvalues of its Jacobian are real, and most are negative. A step H
is stable where the method's polynomial in :math:`z = H \lambda` is below one, and a few more stages
stretch that part of the negative axis far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow.tableau import FOUR


class Pair(NamedTuple):
    """A method, its difference to one of lower order, and its dense output.

    The rows of ``table`` are its stages; the last is the end of the step, and the one before it is
    at the same time. ``inside`` (S - 1, K) are the weights for the Radau nodes but the last,
    of order four. ``order`` is the power of the step in the difference. ``border`` is the step
    times the fastest rate to which it is taken, well inside of what is stable. ``fit`` takes the
    speeds at the four stages ``path`` to the coefficients of the cubic through them; ``rise``
    integrates it, ``rough_rise`` the parabola through three of them.
    """

    nodes: Array
    table: Array
    weights: Array
    gap: Array
    inside: Array
    order: int
    border: float
    path: tuple[int, ...]
    fit: Array
    rise: Array
    rough_rise: Array


def _pair(
    stages: tuple[tuple[float, ...], ...], gap: Array, inside: Array, path: tuple[int, ...],
    order: int, border: float,
) -> Pair:  # fmt: skip
    nodes = np.array([0.0, *(sum(row) for row in stages)])
    fit = np.linalg.inv(np.vander(nodes[list(path)], increasing=True))
    parabola = np.zeros((3, 4))
    few = [0, 2, 3]
    parabola[:, few] = np.linalg.inv(np.vander(nodes[[path[k] for k in few]], increasing=True))
    rise, rough_rise = (rows / np.arange(1, len(rows) + 1)[:, None] for rows in (fit, parabola))
    table = np.zeros((len(stages), len(stages)))
    for k, row in enumerate(stages):
        table[k, : len(row)] = row
    weights = np.array([*stages[-1], 0.0])
    return Pair(nodes, table, weights, gap, inside, order, border, path, fit, rise, rough_rise)


# Dormand and Prince (1980)
_LEAN = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_LEAN_GAP = np.array([*_LEAN[-1], 0.0]) - np.array(
    [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]
)
# dense output of order four (Hairer, Norsett & Wanner, Solving ODEs I, II.6)
_LEAN_DENSE = np.array(
    [-12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
     701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423]
)  # fmt: skip


def _inside(theta: float) -> Array:
    """Weights of the stages of the lean pair for the share ``theta`` of a step."""
    weights = np.array([*_LEAN[-1], 0.0])
    first, last = np.eye(len(weights))[[0, -1]]
    bend = first - weights
    twist = weights - last - bend
    inner = bend + theta * (twist + (1.0 - theta) * _LEAN_DENSE)
    return np.asarray(theta * (weights + (1.0 - theta) * inner))


LEAN = _pair(
    _LEAN,
    _LEAN_GAP,
    np.stack([_inside(theta) for theta in FOUR.tables.radau[:-1]]),
    (0, 2, 3, 6),
    5,
    2.5,
)

# Seven stages, order four, stable to 14.3 (0.9 in the middle): found by least squares from the
# conditions of order, the coefficients of the optimal polynomial and small polynomials of the
# stages. The difference to order three is the one that answers least to fast modes.
_STABLE = (
    (0.08723142610683607,),
    (0.08833227754315272, 0.07374194254969525),
    (0.02543601666300812, 0.07672230353331159, 0.3627172422312199),
    (-0.1801430698120265, 0.3659504910977475, 0.04740175691800717, 0.3762301435034814),
    (-0.07161876536323084, 0.3756349944647535, -0.1631473583918998, 0.2822418302848852,
     0.220352141397316),
    (0.08999127608804112, 0.2361351510011256, -0.06279595984851338, 0.1917979381044967,
     0.1641902946711804, 0.3806812999836695),
    (0.07325990352336643, 0.04551085975583647, 0.143677636702536, 0.2801041022368242,
     0.007140693204369659, 0.3144934310103109, 0.1358133735667564),
)  # fmt: skip
_STABLE_GAP = 2e-3 * np.array(
    [8.275685950897422, -58.51835604759921, 63.39222139761358, -12.27788030222853,
     -0.8839237793724877, -2.985737740208076, 1.834341478964317, 1.163649041932973]
)  # fmt: skip
_STABLE_INSIDE = np.array([
    (0.1474865197278433, -0.2599776368168703, 0.2225560850628268, -0.02015004765977517,
     0.002330633947941243, -0.005990985391950914, 0.0006221056739174815, 0.001711284968771498),
    (0.8178317855143526, -2.324156232154706, 2.02011295562146, -0.1339518293625676,
     0.02209604754272187, -0.00121553077752652, 0.02825950320935199, -0.01950983515235218),
    (0.4104079719602421, -1.079677855905459, 1.068336201398785, 0.1344875975389153,
     0.0156336163449158, 0.2223719758220903, 0.1098021844447109, -0.09370222984335308),
])  # fmt: skip
STABLE = _pair(_STABLE, _STABLE_GAP, _STABLE_INSIDE, (0, 3, 5, 7), 4, 8.0)
