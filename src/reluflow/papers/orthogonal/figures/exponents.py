"""Figure 3: logarithms of the norms through the training of figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.papers.orthogonal.figures.training import (
    figure_name,
    norm_lines,
    norm_table,
    points,
)
from reluflow.sweeps import Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction
from reluflow.theory.results import by_seed, extreme


def draw_exponents(results: Sequence[Result]) -> Reproduction:
    """Figure 3: logarithms of the norms are concave and piecewise affine; one picture a draw."""
    figures = tuple(_exponents_figure(own[0].arrays, k) for k, own in enumerate(by_seed(results)))
    found = [_slopes(result.arrays) for result in results]
    errors = np.concatenate([one.errors for one in found])
    rises = np.concatenate([one.rises for one in found])
    expectations = (
        Expectation(
            "relative error of slopes on long plateaus",
            extreme(errors, "largest"),
            0.0,
            1e-5,
            "Fig. 3 of the paper (regression on the middle half of a plateau)",
        ),
        Expectation(
            "largest rise of a fitted slope from one long plateau to the next, over the first",
            extreme(rises, "largest"),
            -np.inf,
            1e-5,
            "paper Appendix A.2: decreasing slopes",
        ),
    )
    return Reproduction(figures, norm_table(results[0].arrays), expectations)


def _exponents_figure(first: Any, which: int) -> Figure:
    epochs = first["epochs"] / 1e3
    jumps = tuple(Rule(float(epoch), "x", dash="dot") for epoch in first["predicted"] / 1e3)
    scale = float(first["log_norms"][0].max())
    lines = norm_lines(first, epochs, logs=True)
    theory = _predicted_lines(first, scale)
    return Figure(
        figure_name("fig3", which),
        "Norms grow exponentially, at rates that fall at each jump",
        (Panel("", Axis("epoch (thousands)"), Axis("log10 of |w|"), (*lines, *theory, *jumps)),),
        caption=(
            "Logarithms of the six norms (solid) and the slopes predicted from the labels that "
            "are left in each mask (grey, dashed). A neuron is flat after its own jump; the "
            "others slow down if they share points with it. Dotted: predicted jumps."
        ),
    )


def _predicted_lines(arrays: Any, scale: float) -> tuple[Line, ...]:
    """Piecewise affine predictions, through the measured values at the ends of plateaus."""
    edges = np.append(0.0, arrays["predicted"])
    lines = []
    for j in range(arrays["log_norms"].shape[1]):
        x: list[float] = []
        y: list[float] = []
        for k, (left, right) in enumerate(pairwise(edges)):
            middle = 0.5 * (left + right)
            centre = np.interp(middle, arrays["epochs"], arrays["log_norms"][:, j])
            at = np.array([left + 0.1 * (right - left), right - 0.1 * (right - left)])
            heights = centre + arrays["slopes"][k, j] * (at - middle)
            x += [*(at / 1e3), np.nan]
            y += [*(heights / np.log(10.0)), np.nan]
        label = "predicted slopes" if j == 0 else ""
        lines.append(Line(np.array(x), np.array(y), label=label, colour=7, dash="dash", width=1.0))
    return tuple(lines)


class _Slopes(NamedTuple):
    """Relative errors of slopes on long plateaus, and rises of a neuron's slope between them."""

    errors: Array
    rises: Array


def _slopes(arrays: Any) -> _Slopes:
    """Slopes fitted to the middle half of each plateau, where a neuron has turned before it."""
    edges, predicted = np.append(0.0, arrays["measured"]), arrays["slopes"]
    errors: list[float] = []
    fitted: list[list[float]] = [[] for _ in predicted[0]]
    for k, (left, right) in enumerate(pairwise(edges)):
        wait = 0.25 * (right - left)
        inside = (arrays["epochs"] >= left + wait) & (arrays["epochs"] <= right - wait)
        if inside.sum() < 3:
            continue
        x = arrays["epochs"][inside]
        fit = np.polyfit(x - x.mean(), arrays["log_norms"][inside], 1)[0]
        for j, (slope, found) in enumerate(zip(predicted[k], fit, strict=True)):
            # a neuron that has jumped rests as soon as the others have had time to turn
            if wait * (slope if slope > 0.0 else predicted[k].max()) >= 15.0:
                fitted[j].append(float(found))
                if slope > 0.0:
                    errors.append(abs(float(found) / slope - 1.0))
    rises = [rise for slopes in fitted for rise in np.diff(slopes)]
    return _Slopes(np.array(errors), np.array(rises) / predicted[0].max())


RECIPES = (
    Recipe("orthogonal/fig3", "Log norms: concave, piecewise affine", points, draw_exponents),
)
