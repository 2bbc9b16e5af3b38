r"""Explicit steps where points are many: crossings by the thousand, each of a small share.

With n points one of them makes about 1/n of a pull, and its crossing bends the outputs that much.
Where the outputs react slowly (step times their fastest rate of order one) an explicit Runge-Kutta
pair takes the step, at the price of seven evaluations ``O(n m d)``, and the kinks are put right
afterwards: that of Dormand and Prince, or a stable one in longer steps (`pairs`). A plane crossed
at the share :math:`\tau` of a step H pulls by a known :math:`q(t) u`, q = a (high - low), while the
neuron is above; the stages s, with weights :math:`b_s`, took :math:`\sum_s b_s q_s [z_s > 0]` for
it. The neuron gets the difference

.. math:: H \Bigl(\int q\,[z > 0]\,dt - \sum_s b_s q_s [z_s > 0]\Bigr) u ,

which leaves an error of the square of the step: what the other neurons miss of the bend.

Neurons that slide are held by their projections while their weights stay inside [0, 1]. Those that
do anything but that and cross (begin or end to slide, die, touch a plane, pass near the origin) go
through the step alone, in the forces of the solved step, by the automaton of `walk`.

Numerics
--------
Order 5 between kinks, 4 in the longer steps; a kink costs ``size x force x (step x rate)`` as a
share of the outputs. The steps are limited by accuracy and by stability (``step x rate < 8``).
Where stability limits them for long, and now and then, `Controller` takes over with its implicit
steps, as long as these are longer by more than they cost (`Crowd.reconsider`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.engines.flow.controller import Controller, Step
from reluflow.engines.flow.crossings import Crossings, Taken
from reluflow.engines.flow.explicit import Field, Indices, Mask, rate
from reluflow.engines.flow.pairs import LEAN, STABLE
from reluflow.engines.flow.start import Start
from reluflow.engines.flow.state import pairs_in
from reluflow.engines.flow.step import Attempt, Stretch, carried_alone, clock_error
from reluflow.engines.flow.tableau import FOUR
from reluflow.kernels.flow.layout import ABOVE, BELOW, FLIP, SLIDE
from reluflow.kernels.flow.stages import Stages
from reluflow.kernels.flow.step import Moved

SAFETY, SHRINK, GROWTH = 0.9, 0.2, 5.0
SLOWLY = 1.5  # ... near the border of stability, where a step damps what would make it too long
TRIES = 50
MANY = 0.1  # a neuron that crosses this share of the planes in one step is near the origin
SLOW = 3.0  # a neuron crosses by itself if its speed is this multiple of what the plane adds
KNOWN = 1.0  # ... and if its moments are known to this share of the tolerance
MISSED = 0.5  # the share of what kinks change in the pulls that the others miss
ROOM = 1e-3  # a slide goes on if its weight stays so far inside [0, 1] at the stages
GOES_ON = 0.5  # ... and this share of its range there
TOO_FAR = 1.5  # of the border of stability: such a step is not looked at further
KEPT = 0.99  # of the fastest rate, from step to step
TYPICAL = 0.15  # of a step function at a random place, by the quadrature of the pair
PATIENCE = 15  # after so many more steps at that border than not implicit ones are tried
LOOK = 30  # ... or after steps that cost as much as so many of these
RARELY = 16  # ... or after so many times as many, where they were of no use again and again


class End(NamedTuple):
    """Weights and sides at the end of a step, and how much too long it is for its kinks."""

    a: Array
    w: Array
    above: Mask
    error: float


class Crowd:
    """Steps the coupled flow explicitly."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.problem = controller, controller.problem
        self.field = Field(self.problem)
        self.pair, self.rate = LEAN, 0.0  # the method, and the fastest rate at the last step
        self.stiff = 0  # steps that stability has limited, less others
        self.taken, self.usual = 0, 0.0  # explicit steps, and how long these are of late
        self.short = 0  # implicit steps in a row that were not worth their price
        self.gain = 0.0  # how much further all of them came than explicit ones of that price
        self.again = 1  # implicit ones are tried after so many times the usual number of steps

    def applies(self, at: Start) -> bool:
        """Whether the next step is taken here."""
        look = LOOK * max(1.0, self.problem.stiff_price)
        ready = self.stiff < self.again * PATIENCE and self.taken < self.again * look
        return ready and len(at.classes.face) > 0 and not at.resting

    def advance(self, at: Start, limit: float) -> Step:
        """Take one step of at most ``limit``."""
        counters = self.controller.counters
        wanted = at.state.step
        step = min(wanted, limit, STABLE.border / max(self.rate, 1e-300))
        self.pair = STABLE if step * self.rate > LEAN.border else LEAN
        growth = GROWTH if self.pair is LEAN else SLOWLY
        for _ in range(TRIES):
            tried, worst = self._try(at, step)
            if tried is None:
                counters.rejected += 1
                growth = 1.0  # kinks come in bursts: the next step would be refused as well
                factor = SAFETY / worst if np.isfinite(worst) else 0.0
                step = wanted = step * max(SHRINK, factor)
                continue
            assert tried.moved is not None
            stopped = float(tried.moved.stopped.min(initial=2.0))
            if stopped < 1e-3:
                break
            if stopped < 1.0 - 1e-12:  # at a crossroads: the step ends there
                step *= stopped
                continue
            fitting = step * min(growth, SAFETY / max(worst, 1e-10))
            following = max(wanted, fitting) if step < wanted else fitting
            self.taken += 1
            self.usual += (step - self.usual) / min(self.taken, LOOK)
            self.controller.pace.forget()
            return self.controller.accept(at, tried, following)
        return self.controller.advance(at.whole, limit)  # a crossroads just ahead

    @np.errstate(over="ignore", invalid="ignore")  # a step that is far too long
    def _try(self, at: Start, step: float) -> tuple[Attempt | None, float]:
        """A step, or None, and how much too long it is: one where it just meets the tolerance."""
        stages = self.field.stages(at, self.pair, step)
        self.controller.counters.evaluations += len(stages.a)
        fastest = rate(stages)
        if not step * fastest <= TOO_FAR * self.pair.border:  # unstable: crossings by the thousand
            return None, step * fastest / self.pair.border
        taken = Taken(self.field, self.pair, stages, step)
        crossings = taken.crossings(at)
        rough = self._rough(at, stages, crossings, step)
        end = self._put_right(at, stages, crossings, step)
        worst = float(np.maximum(self._error(at, stages, crossings, step), end.error))
        if not worst <= 1.0:  # also where it is not a number
            return None, worst
        other = end.above != stages.above[-1]
        if other.any():
            kept = crossings.among(~other[crossings.neuron, crossings.plane])
            crossings = kept.and_also(taken.dated(at, end.above, *pairs_in(other)))
        tried = self._finish(at, stages, end, crossings, rough, step)
        if rough.any():
            assert tried.moved is not None
            above, h = self.field.outputs(at, tried.moved.a, tried.moved.w, tried.moved.mode)
            worst = float(np.maximum(worst, self._kinks(at, stages, above, h, step)))
        if not self.problem.is_square:
            assert tried.stretch is not None
            late = clock_error(at, tried.stretch.h, step, FOUR)
            worst = float(np.maximum(worst, (late / self.controller.rtol) ** (1 / self.pair.order)))
        if not worst <= 1.0:
            return None, worst
        # in a step that damps the fastest modes they are not seen
        self.rate = max(fastest, KEPT * self.rate)
        self.stiff = max(self.stiff + (1 if step * self.rate > 0.8 * STABLE.border else -1), 0)
        return tried, worst

    def reconsider(self, at: Start, taken: Step) -> None:
        """Go back to explicit steps where implicit ones are not worth their price."""
        gain = self.gained(at, taken)
        self.gain += gain
        self.short = self.short + 1 if gain < 0.0 else 0
        if self.short >= PATIENCE // 3:
            self.again = 1 if self.gain > 0.0 else min(4 * self.again, RARELY)
            self.stiff, self.taken, self.short, self.gain = 0, 0, 0, 0.0

    def gained(self, at: Start, taken: Step) -> float:
        """How much further an implicit step comes than explicit ones of the same price."""
        rate = at.eigen[0].max() if self.problem.is_square else at.stiffness
        explicit = min(self.usual, STABLE.border / max(rate, 1e-300))
        return float(taken.stretch.step - self.problem.stiff_price * explicit)

    # ------------------------------------------------------------------ kinks

    def _rough(self, at: Start, stages: Stages, found: Crossings, step: float) -> Mask:
        """Neurons that do anything but cross, or whose crossings are not known well enough."""
        rough = self._unsettled(at, stages)
        rough |= at.classes.ray[at.classes.cid]
        room = KNOWN * self.controller.rtol * at.state.sizes(self.problem.hidden)
        if not self.problem.planes.both.any():
            rough |= ~stages.above[-1].any(axis=1)
        counts = np.bincount(found.neuron, minlength=len(rough))
        rough |= counts > MANY * at.state.mode.shape[1]
        # one that comes to a plane and would be sent back slides; one that comes slowly may
        matters = step * np.abs(found.jump) > room[found.neuron]
        slowly = matters & (found.toward <= SLOW * np.abs(found.jump))
        rough[found.neuron[found.happens & (found.sent_back | slowly)]] = True
        rough |= np.bincount(found.neuron, found.error, len(rough)) > room
        return np.asarray(rough & (at.classes.cid >= 0))

    def _unsettled(self, at: Start, stages: Stages) -> Mask:
        """Neurons whose slides may end in the step: by their weights at the stages.

        Between these the weights may go on a little: most of a range is a plane that the neuron
        crosses, or a trend, and either is seen at the end of the step at the latest.
        """
        neuron = self.field.begin(at)[1].neuron
        low, high = stages.theta.min(axis=0), stages.theta.max(axis=0)
        apart = ROOM + GOES_ON * (high - low)
        holds = (low > apart) & (high < 1.0 - apart)  # not where a plane pulls no more: nan
        signs = np.sign(stages.a[:, neuron])
        holds &= (signs == signs[0]).all(axis=0)
        unsettled = np.zeros(len(at.state.a), np.bool_)
        unsettled[neuron[~holds]] = True
        return unsettled

    def _bends(self, stages: Stages, found: Crossings, weights: Array) -> Array:
        """What the stages took, with given weights, for having changed the side of planes."""
        there = stages.above[:, found.neuron, found.plane] == found.up
        took = there * stages.a[:, found.neuron] * stages.jump[:, found.plane]
        taken: Array = weights @ took
        return np.where(found.once, np.where(found.up, taken, -taken), 0.0)

    def _missing(self, stages: Stages, found: Crossings) -> Array:
        """The pulls of planes over the time on their other side, less what the stages took."""
        tau = found.moment
        q0, q1 = stages.a[[0, -1]][:, found.neuron] * stages.jump[[0, -1]][:, found.plane]
        true: Array = (1.0 - tau) * (0.5 * (q0 + q1) + 0.5 * tau * (q1 - q0))
        return np.where(found.up, true, -true) - self._bends(stages, found, self.pair.weights)

    # ------------------------------------------------------------------ error and end

    def _error(self, at: Start, stages: Stages, found: Crossings, step: float) -> float:
        """How much too long the step is for the method between kinks: one where it just will do."""
        gap_a = self.pair.gap @ stages.da
        gap_w = np.tensordot(self.pair.gap, stages.dw, 1)
        # kinks are put right: they are no error of the method
        spurious = self._bends(stages, found, self.pair.gap)
        gap_w -= _summed(found.neuron, spurious[:, None] * found.normal, len(gap_w))
        sizes = np.maximum(at.state.sizes(self.problem.hidden), 1e-300)
        off = step * np.sqrt(gap_a**2 + np.square(gap_w).sum(axis=1)) / sizes
        # the stages of a neuron that will slide are on both sides of the plane
        back = found.sent_back
        jump = np.abs(stages.a[0, found.neuron] * stages.jump[0, found.plane])
        doubt = np.bincount(found.neuron[back], jump[back], len(off)) * np.abs(self.pair.gap).sum()
        off = np.maximum(off - step * doubt / sizes, 0.0)
        worst = float(off[at.classes.cid >= 0].max(initial=0.0))
        return float((worst / self.controller.rtol) ** (1 / self.pair.order))

    def _put_right(self, at: Start, stages: Stages, found: Crossings, step: float) -> End:
        """The end of the step with the kinks of its crossings."""
        problem = self.problem
        amounts = step * self._missing(stages, found)
        a, w = stages.a[-1].copy(), stages.w[-1].copy()
        w += _summed(found.neuron, amounts[:, None] * found.normal, len(w))
        self.field.land(at, w)
        if not problem.hidden:
            _hold(a, w, problem.sign, problem.log_balance - 2.0 * at.state.sigma)
        above, h = self.field.outputs(at, a, w)
        seen = self._kinks(at, stages, above, h, step)
        missed = np.maximum(seen, self._expected(at, stages, found, step))
        return End(a, w, above, float(missed))

    def _expected(self, at: Start, stages: Stages, found: Crossings, step: float) -> float:
        """The same by what crossings do on average: at its end a step may hide it by chance.

        A crossing at a random moment leaves TYPICAL of its jump for the step to put right; signs
        are random, and what the outputs do to the pulls is at most ``answer``.
        """
        bends = step * np.abs(found.jump) * found.happens
        bends *= (at.neurons.weight * np.abs(stages.a[0]))[found.neuron]
        off = MISSED * TYPICAL * step * float(np.sqrt(np.square(bends).sum())) * self._lever(at)
        return float((off * self.field.answer(at) / self.controller.rtol) ** (2 / 5))

    def _kinks(self, at: Start, stages: Stages, above: Mask, h: Array, step: float) -> float:
        """How much too long the step is for its kinks, which change the outputs to ``h``.

        The stages did not know of them: the pulls were off by what they change, for a part of it.
        """
        pulls = self.field.pulls(at, above, self.problem.forces(h) - stages.c[-1])
        lengths = np.sqrt(np.einsum("jd,jd->j", pulls, pulls))
        off = MISSED * step * float(lengths.max(initial=0.0)) * self._lever(at)
        return float((off / self.controller.rtol) ** (2 / 5))

    def _lever(self, at: Start) -> float:
        """What a pull does to weights as a share of them; large if small ones alone are trained."""
        if not self.problem.hidden:
            return 1.0
        return float(np.abs(at.state.a).max() / max(np.abs(at.state.w).max(), 1e-12))

    def _finish(
        self, at: Start, stages: Stages, end: End, found: Crossings, rough: Mask, step: float
    ) -> Attempt:
        """All neurons at the end of the step, and the events."""
        problem, mode0 = self.problem, at.state.mode
        a, w = end.a, end.w
        kept = (mode0 == SLIDE) | (at.classes.cid < 0)[:, None]
        mode = np.where(kept, mode0, end.above).astype(np.int8)
        smooth = found.happens & ~rough[found.neuron]
        events = np.zeros((int(smooth.sum()), 5))
        events[:, 0], events[:, 1] = found.moment[smooth], found.neuron[smooth]
        events[:, 2], events[:, 3] = found.plane[smooth], np.where(found.up[smooth], BELOW, ABOVE)
        events[:, 4] = np.where(found.up[smooth], ABOVE, BELOW)
        flips = np.zeros((0, 5)) if problem.hidden else self._flips(stages, rough)
        h, c = self.field.nodes(at, self.pair, stages, step)
        stopped = np.full(len(a), 2.0)
        which = np.flatnonzero(rough)
        rows = np.zeros((0, 5))
        if len(which):
            limits = self.controller.limits(at)._replace(light=np.inf, late=np.inf)
            walked, rows = carried_alone(at, which, c, step, limits)
            a[which], w[which], mode[which] = walked.a, walked.w, walked.mode
            stopped[which] = walked.stopped
            rows[:, 1] = which[rows[:, 1].astype(np.int64)]
        boost = step * float(np.abs(c * problem.planes.length).sum(axis=1).max())
        stretch = Stretch(step, h, c, 0.0, boost, len(stages.a), np.zeros_like(h), FOUR)
        nothing = np.full(len(a), 2.0)
        moved = Moved(a, w, mode, nothing, stopped, np.empty(0), np.zeros_like(h), True)
        return Attempt(stretch, moved, np.concatenate([events, flips, rows]))

    def _flips(self, stages: Stages, rough: Mask) -> Array:
        """Changes of sign of output weights, which have no consequence away from slides."""
        first, last = stages.a[0], stages.a[-1]
        which = np.flatnonzero((np.sign(last) != np.sign(first)) & ~rough & (first != 0.0))
        rows = np.full((len(which), 5), -1.0)
        rows[:, 0] = first[which] / (first[which] - last[which])
        rows[:, 1], rows[:, 3], rows[:, 4] = which, 0.0, FLIP
        return rows


def _summed(neuron: Indices, rows: Array, m: int) -> Array:
    """The sums (m, d) of the rows (E, d) of each neuron."""
    d = rows.shape[1]
    places = neuron[:, None] * d + np.arange(d)
    sums = np.bincount(places.ravel(), rows.ravel(), m * d).reshape(m, d)
    return np.asarray(sums, np.float64)


def _hold(a: Array, w: Array, sign: Array, log_balance: Array) -> None:
    """Restore the balance of every neuron, as `kernels.flow.transport.hold`."""
    balance = np.where(sign == 0.0, 0.0, sign * np.exp(np.minimum(log_balance, 700.0)))
    square = np.einsum("jd,jd->j", w, w)
    up = balance >= 0.0
    a[up] = np.copysign(np.sqrt(square[up] + balance[up]), a[up])
    down = ~up & (square > 0.0)
    w[down] *= np.sqrt((a[down] ** 2 - balance[down]) / square[down])[:, None]
