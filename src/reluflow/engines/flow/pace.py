"""How long the next step is to be, and by which method."""

from __future__ import annotations

import numpy as np

from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.step import Attempt, Stretch
from reluflow.engines.flow.tableau import FOUR, SIX

SAFETY = 0.85
# the first step, and how much longer or shorter the next one may be: a try that fails costs no more
# than a step that is too short
FIRST, GROWTH, SHRINK = 2.0, 12.0, 0.15
# the error of a step whose equations could not be solved, and of what share the next one may be
UNSOLVED, WITHIN = 1e9, 0.5
# the trend of the error from one step to the next goes on, within this factor for the step
TREND = 2.0
# the step by six stages is so many times as long, where accuracy limits it; `State.step` is always
# that by four
GAIN = 2.0
# six stages cost half as much again a step and twice as much an event: worth it up to so many
# events, and one more for so many neurons
FEW, NEURONS_AN_EVENT = 8, 20
# ... and so many points, where the equations are solved for all nodes together
FEW_POINTS = 64


class Pace:
    """The size of steps from the errors of those before, and the ``method`` of the next."""

    def __init__(self, problem: Problem, rtol: float) -> None:
        self.problem, self.rtol = problem, rtol
        self.method = FOUR
        self.before: Stretch | None = None  # the last step, if its own error limited it
        self.beyond = np.inf  # where the equations of the step at hand could not be solved

    def first(self) -> float:
        """The step to try at the start of a run."""
        return float(FIRST * self.rtol ** (1.0 / FOUR.order) / self.problem.rate)

    def wanted(self, at: Start) -> float:
        """The step to try, by the method of the moment."""
        return at.state.step * (GAIN if self.method is SIX else 1.0)

    def after_failure(self, stretch: Stretch | None, step: float) -> float:
        """What to try after a step that was too inaccurate, or not solved."""
        error = UNSOLVED if stretch is None else stretch.error
        if stretch is None:
            self.beyond = step
        return float(step * max(SHRINK, SAFETY * error ** (-1.0 / self.method.order)))

    def forget(self) -> None:
        """The last step tells nothing of the next one's error."""
        self.before = None

    def following(self, tried: Attempt, wanted: float, cut: bool) -> float:
        """The next step to try: by the error of this one, unless something else has ``cut`` it.

        Where the error of steps of one size shrinks or grows from step to step it goes on to do so
        (Gustafsson, ACM Trans. Math. Softw. 20, 1994). And the method for it.
        """
        stretch, before = tried.stretch, self.before
        assert stretch is not None
        root, error = -1.0 / stretch.method.order, max(stretch.error, 1e-12)
        growth = SAFETY * error**root
        if before is not None and before.method is stretch.method and not cut:
            trend = stretch.step / before.step * (error / max(before.error, 1e-12)) ** root
            growth *= float(np.clip(trend, 1.0 / TREND, TREND))
        fitting = min(stretch.step * min(GROWTH, growth), WITHIN * self.beyond)
        self.beyond = np.inf
        self.before = None if cut else stretch
        following = max(wanted, fitting) if cut else fitting
        few = len(tried.events) <= FEW + len(self.problem.sign) // NEURONS_AN_EVENT
        small = self.problem.is_square or self.problem.n <= FEW_POINTS
        self.method = SIX if few and small and not cut else FOUR
        return float(following / (GAIN if stretch.method is SIX else 1.0))
