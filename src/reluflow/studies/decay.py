r"""Weight decay: fit first, then drift along the networks that fit to one of least norm.

The flow of :math:`L + \frac\mu2 |\theta|^2` with small :math:`\mu` follows the plain flow until the
points are fitted, to a loss of order :math:`\mu^2`. Then it moves among networks that nearly fit,
at a pace of :math:`\mu`: curves of runs with different decay meet if drawn against :math:`\mu t`.
Where it ends is compared with the certified optimum of any width, which over :math:`\mu/2` tends to
the least squared norm of a fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.errors import ReluflowError
from reluflow.figures import Axis, Figure, Layer, Line, Panel, Points, Rule
from reluflow.figures.description import DASHES
from reluflow.interpolators import Excess, MinNorm, excess, min_norm
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.theory.contract import Comparison, LabelledRun, Section
from reluflow.trajectory import Trajectory

MOST_POINTS = 60  # optima are computed up to this size
PARALLEL = 1e-3  # radians: neurons within this count as one direction
SHARE = 1e-3  # of the largest norm: neurons below do not count
DRAWN, SAMPLES = 40.0, 80  # curves end at this time over that of the decay, with so many times more
REACHED = 1e-6  # relative excess up to which a run has found the optimum
LN10 = math.log(10.0)

_FLOW = {"name": "flow"}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "decay": {
        "study": {
            "title": "Weight decay where rank and norm part",
            "decays": [0.0, 1e-2, 1e-3, 1e-4, 1e-5],
        },
        "data": {"generator": "cone", "d": 3, "n": 3, "half_angle": 0.7, "seed": 7},
        "network": {"init": "balanced", "width": 20, "log_scale": -10.0, "seed": 1},
        "engine": _FLOW,
    },
    "decay-orthogonal": {
        "study": {
            "title": "Weight decay on orthogonal points, few neurons",
            "decays": [0.0, 1e-1, 1e-2, 1e-3],
        },
        "data": {"generator": "orthonormal", "n": 4, "seed": 2},
        "network": {"init": "balanced", "width": 8, "log_scale": -10.0, "seed": 12},
        "engine": _FLOW,
    },
}


@dataclass(frozen=True)
class End:
    """A run with the optimum of what it minimises; None where that is not known."""

    label: str
    run: Trajectory
    excess: Excess | None

    @property
    def has_reached(self) -> bool:
        """Whether it ended at the optimum."""
        return self.excess is not None and self.excess.at_most <= REACHED


def ends_of(runs: Sequence[LabelledRun]) -> list[End]:
    """The runs with their optima, the strongest decay first."""
    found = [End(item.label, item.run, optimum_of(item.run)) for item in runs]
    return sorted(found, key=lambda end: -end.run.decay)


def optimum_of(run: Trajectory) -> Excess | None:
    """The certified optimum beside the end of a run, where there is one of moderate cost."""
    if run.data.n > MOST_POINTS:
        return None
    try:
        found = excess(run)
    except ReluflowError:  # no optimum for this loss, no fit, or none computed for these inputs
        return None
    return found if found.optimum.certified else None


def answer(ends: Sequence[End]) -> str:
    """One sentence: does decay find the least norm, and did training without it."""
    decayed = [end for end in ends if end.run.decay]
    weakest = decayed[-1]
    if weakest.excess is None:
        return (
            f"With weight decay {weakest.run.decay:g} the flow ends with the objective "
            f"{weakest.run.objective[-1]:.4g}; the least of any network is not known here."
        )
    reached = [end for end in decayed if end.has_reached]
    if len(reached) == len(decayed):
        said = "With every weight decay tried the flow ends at the certified optimum of any width"
    elif reached:
        listed = ", ".join(f"{end.run.decay:g}" for end in reached)
        said = (
            f"With weight decay {listed} the flow ends at the certified optimum of any width, with "
            f"{weakest.run.decay:g} {_above(weakest.excess)}"
        )
    else:
        said = (
            f"Weight decay does not lead to the optimum: with {weakest.run.decay:g} the flow ends "
            f"{_above(weakest.excess)} of any width"
        )
    plain = [end for end in ends if not end.run.decay and end.excess is not None]
    if not plain or plain[0].excess is None:
        return f"{said}."
    over = plain[0].excess.at_most
    if over <= REACHED:
        return f"{said}; without decay the fit has the least norm already."
    return (
        f"{said}; without decay the squared norm of the fit is {100 * over:.3g} % above the least."
    )


def sections(ends: Sequence[End]) -> tuple[Section, ...]:
    """The way and the ends."""
    return (_way(ends), _ends(ends)) if any(end.excess for end in ends) else (_way(ends),)


def comparisons(ends: Sequence[End]) -> tuple[Comparison, ...]:
    """Where the runs with decay ended beside the optima."""
    return tuple(
        Comparison(
            f"loss + decay/2 |theta|^2, {end.label}",
            end.excess.optimum.objective,
            end.excess.objective,
            "predicted is the least of any width, certified",
        )
        for end in ends
        if end.run.decay and end.excess is not None
    )


def directions(net: Network) -> int:
    """Different directions among the neurons that count, those of one output sign together."""
    logs = net.log_norms
    seen: list[tuple[float, Array]] = []
    for j in np.flatnonzero(logs >= logs.max() + math.log(SHARE)):
        sign, u = float(net.signs[j]), net.directions[j]
        if not any(sign == s and np.linalg.norm(u - v) < PARALLEL for s, v in seen):
            seen.append((sign, u))
    return len(seen)


def _above(found: Excess) -> str:
    share = 100 * found.at_most
    return f"{share:.2g} % above the optimum"


def _way(ends: Sequence[End]) -> Section:
    """Loss, squared norm and directions against ``mu t``."""
    decayed = [end for end in ends if end.run.decay]
    least = _least(ends[0].run)
    curves = [_curves(end) for end in decayed]
    axis = Axis("log10 of decay times t", range=_span(curves))
    panels = [
        Panel("", axis, Axis(name), _layers(curves, k, decayed))
        for k, name in enumerate(("log10 of the loss", "squared norm", "directions"))
    ]
    if least is not None:
        rule = Rule(least.value, "y", "least of a fit")
        panels[1] = replace(panels[1], layers=(*panels[1].layers, rule))
    text = (
        "With weight decay the flow fits first: the loss falls as without, down to a level that "
        "goes with the square of the decay. Then it drifts among networks that nearly fit, at the "
        "pace of the decay, so that times are drawn times the decay: most of the drift is around 0,"
        " and where neurons have yet to merge it goes on long after. Directions are those of "
        "neurons above one thousandth of the largest."
    )
    caption = "States of the runs with decay; the start is to the left of the picture."
    figure = Figure("decay_way", "Fit first, then drift", tuple(panels), 3, caption)
    return Section("Fit first, then drift", text, (figure,))


def _curves(end: End) -> tuple[Array, Array, Array, Array]:
    """``log10`` of mu t and loss, squared norm and number of directions; records and between."""
    run, begin = end.run, float(end.run.log_t[end.run.t > 0.0][0])
    late = min(float(run.log_t[-1]), math.log(DRAWN / run.decay))
    times = np.union1d(run.log_t[run.t > 0.0], np.linspace(begin, max(begin, late), SAMPLES))
    run = run.sample(times[times <= max(begin, late)])
    nets = [run.network(k) for k in range(len(run.t))]
    return (
        (math.log(run.decay) + run.log_t) / LN10,
        run.log_loss / LN10,
        np.array([net.squared_norm for net in nets]),
        np.array([directions(net) for net in nets], dtype=np.float64),
    )


def _span(curves: Sequence[tuple[Array, ...]]) -> tuple[float, float]:
    """From where the first of the runs leaves the start to some units of the decay."""
    first = min(float(x[np.argmax(loss < loss[0] - 0.01)]) for x, loss, *_ in curves)
    return min(first, -0.5) - 0.5, 1.5


def _layers(
    curves: Sequence[tuple[Array, ...]], which: int, ends: Sequence[End]
) -> tuple[Layer, ...]:
    return tuple(
        Line(found[0], found[1 + which], end.label if not which else "", k % 7, DASHES[k % 4])
        for k, (found, end) in enumerate(zip(curves, ends, strict=True))
    )


def _ends(ends: Sequence[End]) -> Section:
    """The objective at the ends beside the certified optimum, over half the decay."""
    known = [(end, end.excess) for end in ends if end.run.decay and end.excess is not None]
    least = _least(ends[0].run)
    mu = np.array([end.run.decay for end, _ in known])
    reached = np.array([found.objective for _, found in known])
    optimum = np.array([found.optimum.objective for _, found in known])
    layers: list[Layer] = [
        Line(np.log10(mu), 2.0 * optimum / mu, "optimum of any width", 1, "dash", "square"),
        Points(np.log10(mu), 2.0 * reached / mu, "end of the flow", 0, "circle", 7.0),
    ]
    if least is not None:
        layers.append(Rule(least.value, "y", "least squared norm of a fit"))
    panel = Panel("", Axis("log10 of the decay"), Axis("2 (objective) / decay"), tuple(layers))
    rows = " ".join(
        f"Decay {end.run.decay:g}: {found.objective:.6g}, optimum {found.optimum.objective:.6g}, "
        f"relative excess {max(found.at_most, 0.0):.2g}, directions {directions(end.run.final)}."
        for end, found in known
    )
    text = (
        "The objective is the loss plus half the decay times the squared norm. Its least value "
        "over networks of any width comes from a convex program with a certificate; divided by "
        f"half the decay it tends to the least squared norm of a fit. {rows}"
    )
    figure = Figure("decay_ends", "Ends beside the optimum", (panel,), wide=False)
    return Section("How far from the optimum", text, (figure,))


def _least(run: Trajectory) -> MinNorm | None:
    """The smallest network that fits, where there is one."""
    if run.data.n > MOST_POINTS or not isinstance(run.loss_function, Square):
        return None
    try:
        found = min_norm(run.data, slope=run.net.slope)
    except ReluflowError:
        return None
    return found if found.certified and found.value > 0.0 else None
