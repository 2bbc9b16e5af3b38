"""Figure 3: logarithms of the norms through the training of figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Rule
from reluflow.papers.orthogonal.figures.training import norm_lines, norm_table, points
from reluflow.sweeps import Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction


def draw_exponents(results: Sequence[Result]) -> Reproduction:
    """Figure 3: logarithms of the norms are concave and piecewise affine."""
    first = results[0].arrays
    epochs = first["epochs"] / 1e3
    jumps = tuple(Rule(float(epoch), "x", dash="dot") for epoch in first["predicted"] / 1e3)
    scale = float(first["log_norms"][0].max())
    lines = norm_lines(first, epochs, logs=True)
    theory = _predicted_lines(first, scale)
    figure = Figure(
        "fig3",
        "Norms grow exponentially, at rates that fall at each jump",
        (Panel("", Axis("epoch (thousands)"), Axis("log10 of |w|"), (*lines, *theory, *jumps)),),
        caption=(
            "Logarithms of the six norms (solid) and the slopes predicted from the labels that "
            "are left in each mask (grey, dashed). A neuron is flat after its own jump; the "
            "others slow down if they share points with it. Dotted: predicted jumps."
        ),
    )
    slopes = [_slope_errors(result.arrays) for result in results]
    worst = max((float(error[0].max(initial=0.0)) for error in slopes), default=float("nan"))
    bend = max(_convexity(result.arrays) for result in results)
    expectations = (
        Expectation(
            "relative error of slopes on long plateaus",
            worst,
            0.0,
            1e-5,
            "Fig. 3 of the paper (regression on the middle half of a plateau)",
        ),
        Expectation(
            "largest rise of a slope from one plateau to the next, over the first slope",
            bend,
            -np.inf,
            1e-5,
            "paper Appendix A.2: decreasing slopes",
        ),
    )
    return Reproduction((figure,), norm_table(first), expectations)


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


def _slope_errors(arrays: Any) -> tuple[Array, Array]:
    """Relative errors of regression slopes on long plateaus, and on the short ones."""
    edges = np.append(0.0, arrays["measured"])
    long: list[float] = []
    short: list[float] = []
    for k, (left, right) in enumerate(pairwise(edges)):
        inside = (arrays["epochs"] >= left + 0.25 * (right - left)) & (
            arrays["epochs"] <= left + 0.75 * (right - left)
        )
        if inside.sum() < 3:
            continue
        x = arrays["epochs"][inside]
        fit = np.polyfit(x - x.mean(), arrays["log_norms"][inside], 1)[0]
        for slope, found in zip(arrays["slopes"][k], fit, strict=True):
            if slope > 0.0:
                settled = 0.25 * (right - left) * slope >= 15.0
                (long if settled else short).append(abs(found / slope - 1.0))
    return np.array(long), np.array(short)


def _convexity(arrays: Any) -> float:
    return float(np.diff(arrays["slopes"], axis=0).max(initial=-np.inf) / arrays["slopes"][0].max())


RECIPES = (
    Recipe("orthogonal/fig3", "Log norms: concave, piecewise affine", points, draw_exponents),
)
