"""Beyond the paper's figures: both rates of convergence; points that are not quite orthogonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.figures import Axis, Figure, Line, Panel, Points
from reluflow.sweeps import Point, Result
from reluflow.theory.contract import Expectation, Recipe, Reproduction, Size
from reluflow.theory.fits import line
from reluflow.theory.results import slope

MEASURES = "reluflow.papers.orthogonal.figures.measures"
STRENGTHS = (0.0, 0.01, 0.05, 0.2, 0.4, 0.8)
NOISE = 1e-9  # parameter errors below this are rounding and tolerance of the run


def points_by_scale(size: Size, seed: int) -> list[Point]:
    """One problem at scales from e^-20 to e^-1300."""
    count = 8 if size == "quick" else 20
    return [
        Point(
            f"{MEASURES}:convergence",
            {"n": 8, "m": 5, "log_inverse_scale": float(L), "compact": 400.0},
            seed=seed + 5,
        )
        for L in np.geomspace(20.0, 1300.0, count).round(3)
    ]


def points_by_strength(size: Size, seed: int) -> list[Point]:
    """Points from orthonormal to strongly correlated, the same noise and labels."""
    L = 80.0 if size == "quick" else 300.0
    return [
        Point(
            f"{MEASURES}:deformed_staircase",
            {"n": 10, "d": 20, "m": 8, "log_inverse_scale": L, "strength": strength},
            seed=seed + 5,
        )
        for strength in STRENGTHS
    ]


def draw_convergence(results: Sequence[Result]) -> Reproduction:
    """Left: 1/log for times and exponents. Right: a power of the scale for parameters."""
    results = sorted(results, key=lambda r: float(r.point.parameters["log_inverse_scale"]))
    L = np.array([float(r.point.parameters["log_inverse_scale"]) for r in results])
    errors = {
        name: np.array([float(r.values[name]) for r in results])
        for name in ("time_error", "exponent_error", "sharp_error", "parameter_error")
    }
    delta = float(results[0].values["delta"])
    figure = Figure(
        "convergence",
        "Two rates: jump times converge slowly, parameters fast",
        (_slow_rate(L, errors), _fast_rate(L, errors, delta)),
        columns=2,
        caption=(
            "One problem of 8 points and 5 neurons at many scales. Left: accelerated jump times "
            "and exponents err by a constant over log(1/scale). Right: away from the jumps the "
            "parameters err by a power of the scale, with the exponent predicted from the race; "
            "so do half times once the first correction is included."
        ),
    )
    table = {"log_inverse_scale": L.tolist(), **{k: v.tolist() for k, v in errors.items()}}
    return Reproduction((figure,), {"errors": table}, _convergence_shape(L, errors, delta))


def _slow_rate(L: Array, errors: dict[str, Array]) -> Panel:
    """Errors of jump times and exponents, beside a line of slope -1."""
    inverse = errors["time_error"][-1] * L[-1] / L
    return Panel(
        "jump times and exponents: 1/log",
        Axis("log(1/scale)", scale="log"),
        Axis("largest error", scale="log"),
        (
            Line(L, errors["time_error"], label="T_k/L - t_k", colour=0, marker="circle"),
            Line(
                L,
                errors["exponent_error"],
                label="exponents",
                colour=1,
                dash="dash",
                marker="square",
            ),
            Line(L, inverse, label="slope -1", colour=7, dash="dot", width=1.0),
        ),
    )


def _fast_rate(L: Array, errors: dict[str, Array], delta: float) -> Panel:
    """Errors of parameters and of sharp times, beside the predicted power of the scale."""
    fit = _is_fitted(L, errors)
    anchor = np.flatnonzero(fit)[0] if fit.any() else 0
    guide = errors["parameter_error"][anchor] * np.exp(-delta * (L - L[anchor]))
    return Panel(
        "parameters and sharp times: a power of the scale",
        Axis("log(1/scale)"),
        Axis("largest error", scale="log", range=(1e-12, 10.0)),
        (
            Line(L, errors["parameter_error"], label="parameters", colour=2, marker="triangle"),
            Line(
                L,
                np.maximum(errors["sharp_error"], 1e-12),
                label="T_k - sharp prediction",
                colour=3,
                dash="dash",
                marker="diamond",
            ),
            Line(L, guide, label=f"predicted: scale^{delta:.3g}", colour=7, dash="dot", width=1.0),
        ),
    )


def _is_fitted(L: Array, errors: dict[str, Array]) -> NDArray[np.bool_]:
    """Which scales show the power: small ones with parameter errors above the noise."""
    return np.asarray((L >= 150.0) & (errors["parameter_error"] > NOISE))


def _convergence_shape(L: Array, errors: dict[str, Array], delta: float) -> tuple[Expectation, ...]:
    """Slopes of the slow errors, exponent of the fast ones, size of the sharp ones."""
    deep, fit = L >= 100.0, _is_fitted(L, errors)
    exponent = line(L[fit], -np.log(errors["parameter_error"][fit])).slope
    return (
        Expectation(
            "log-log slope of the jump time error",
            slope(L[deep], errors["time_error"][deep]),
            -1.05,
            -0.95,
            "theory of the jump process",
        ),
        Expectation(
            "log-log slope of the exponent error",
            slope(L[deep], errors["exponent_error"][deep]),
            -1.05,
            -0.95,
            "claim O10",
        ),
        Expectation(
            "exponent of the parameter error over its prediction",
            exponent / delta,
            0.9,
            1.1,
            "theory of the jump process: 10 %",
        ),
        Expectation(
            "largest error of sharp times below scale 1e-100",
            float(errors["sharp_error"][np.log(10.0) * 100.0 <= L].max()),
            0.0,
            1e-6,
            "theory of the jump process",
        ),
    )


def draw_deformation(results: Sequence[Result]) -> Reproduction:
    """A panel for each strength of the interaction: loss of the flow, predicted staircase."""
    results = sorted(results, key=lambda r: float(r.point.parameters["strength"]))
    panels = tuple(_staircase(result) for result in results)
    L = float(results[0].point.parameters["log_inverse_scale"])
    figure = Figure(
        "near_orthogonal",
        "How the staircase deforms when points interact",
        panels,
        columns=3,
        caption=(
            "The same labels and start; points e_i plus Gaussian noise of growing strength, "
            f"normalised. Loss of the flow (solid) at log(1/scale) = {L:g} and the alternating "
            "prediction (dashed; a heuristic, exact at strength 0). Interaction merges steps: a "
            "neuron turns to points it did not start on."
        ),
    )
    plateau = [_plateau_error(r) for r in results]
    offsets = [
        float(np.nanmax(np.abs(r.arrays["half_times"] - r.arrays["times"]))) for r in results
    ]
    shape = (
        Expectation(
            "strength 0: plateau loss of the flow against the prediction",
            plateau[0],
            0.0,
            0.01,
            "theory of the jump process: 1 %",
        ),
        Expectation(
            "largest half-time offset, times log(1/scale)",
            max(offsets) * L,
            0.0,
            60.0,
            "theory of the jump process: C/L",
        ),
        Expectation(
            "median plateau error over all strengths",
            float(np.median(plateau)),
            0.0,
            0.01,
            "theory of the jump process: 1 % (heuristic)",
        ),
    )
    columns: dict[str, list[float]] = {
        "strength": [float(r.point.parameters["strength"]) for r in results],
        "coherence": [float(r.values["coherence"]) for r in results],
        "jumps": [len(r.arrays["times"]) for r in results],
        "plateau_error": plateau,
        "squared_norm": [float(r.values["squared_norm"]) for r in results],
        "predicted_norm": [float(r.values["predicted_norm"]) for r in results],
    }
    return Reproduction((figure,), {"strengths": columns}, shape)


def _staircase(result: Result) -> Panel:
    arrays = result.arrays
    steps = np.concatenate([[0.0], np.repeat(arrays["times"], 2), [arrays["tau"][-1]]])
    title = (
        f"strength {result.point.parameters['strength']:g} "
        f"(products to {result.values['coherence']:.2f})"
    )
    return Panel(
        title,
        Axis("time / log(1/scale)"),
        Axis("loss"),
        (
            Line(arrays["tau"], arrays["loss"], label="flow", colour=0, width=2.0),
            Line(
                steps,
                np.repeat(arrays["plateaus"], 2),
                label="alternating prediction",
                colour=1,
                dash="dash",
            ),
            Points(
                arrays["times"],
                0.5 * (arrays["plateaus"][:-1] + arrays["plateaus"][1:]),
                colour=1,
                marker="diamond",
                size=4.0,
            ),
        ),
    )


def _plateau_error(result: Result) -> float:
    """Median over plateaus, relative to the loss at 0: short plateaus are not flat."""
    arrays = result.arrays
    gaps = np.abs(arrays["plateaus_of_flow"] - arrays["plateaus"][:-1]) / arrays["plateaus"][0]
    return float(np.median(gaps))


RECIPES = (
    Recipe(
        "orthogonal/convergence",
        "Both rates of convergence to the jump process",
        points_by_scale,
        draw_convergence,
    ),
    Recipe(
        "orthogonal/near_orthogonal",
        "The staircase of nearly orthogonal points, with the alternating prediction",
        points_by_strength,
        draw_deformation,
    ),
)
