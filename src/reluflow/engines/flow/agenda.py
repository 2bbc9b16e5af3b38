r"""Crossings to come, and how long a step may be before one of them matters.

A crossing bends the outputs by a slope of the neuron's size times the force. In a step that passes
over it the quadrature misses about a twentieth of the bend times the step, and the force it misses
acts for the step: ``size boost^2 / 20``. If the crossing comes in the last share q of the step, the
bend is missed there only: ``size (q boost)^2 / 2``. Either is harmless below the tolerance. So a
step may reach to ``max(r, t + r sqrt(1/10))`` for a crossing at time t ahead, with
``r = sqrt(20 tolerance / size) / rate``: it is short enough for all crossings, or ends just after
the next one. (Of N crossings in a step the mean effect is smooth; what is missed grows like the
square root of N.)

The times ahead are known from steps that were tried and cut.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow.tolerances import LATE

# a step keeps this far from what is allowed: the speeds in it are known in hindsight only
CAUTION = 0.9


class Agenda:
    """Expected crossings: their moments on the clock and the sizes of their neurons."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Expect nothing: the clock starts again."""
        self.moments: Array = np.empty(0)
        self.sizes: Array = np.empty(0)

    def expect(self, clock: float, step: float, tau: Array, sizes: Array) -> None:
        """Note the crossings of a tried step; what was expected after it is kept."""
        later = self.moments > clock + step
        self.moments = np.concatenate([clock + step * tau, self.moments[later]])
        self.sizes = np.concatenate([sizes, self.sizes[later]])

    def reach(self, clock: float, bound: float, rate: float, stiffness: float) -> float:
        """The longest step from ``clock``: crossings up to ``size boost^2 = bound`` are harmless.

        ``rate`` is the boost in a unit of clock, ``stiffness`` the fastest rate of the outputs: a
        step may not go on so long after a crossing that they would react.
        """
        if not len(self.moments):
            return np.inf
        coming = self.moments > clock * (1.0 + 1e-12)
        if not coming.all():
            self.moments, self.sizes = self.moments[coming], self.sizes[coming]
            if not coming.any():
                return np.inf
        room = CAUTION * np.sqrt(bound / np.maximum(self.sizes, 1e-300)) / max(rate, 1e-300)
        ahead = self.moments - clock
        after = np.minimum(np.sqrt(LATE) * room, CAUTION / max(stiffness, 1e-300))
        return float(np.maximum(room, ahead + after).min())
