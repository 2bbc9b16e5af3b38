"""The page of a univariate run: function, breakpoints, regions, margins, KKT residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reluflow import densities
from reluflow.figures import Axis, Figure, Layer, Line, Panel, Rule
from reluflow.geometry import linear_regions, margin, sign_changes
from reluflow.interpolators import max_margin
from reluflow.interpolators.max_margin import MaxMargin
from reluflow.network import Network
from reluflow.papers.univariate.constants import region_bound
from reluflow.papers.univariate.figures import along
from reluflow.papers.univariate.figures.function import LEVELS, breakpoint_panel, function_panel
from reluflow.papers.univariate.figures.measures import portrait_of
from reluflow.papers.univariate.figures.tools import FALL
from reluflow.papers.univariate.figures.trends import gap_panel, margin_panel, residual_panel
from reluflow.papers.univariate.paper import paper
from reluflow.theory.contract import Comparison, Findings, LabelledRun, Said, Section
from reluflow.trajectory import Trajectory


@paper.page
def findings(runs: Sequence[LabelledRun]) -> Findings:
    """Sections and comparisons of the first run (the paper's question is about one)."""
    item = runs[0]
    run = item.run
    history = along.history(run)
    best = max_margin(run.data)
    portrait = portrait_of(run, LEVELS)
    return Findings(
        (
            _function(run, portrait),
            _regions(run, history),
            _margins(history, best),
            _residuals(history),
        ),
        _comparisons(run, history, best),
    )


def _teacher_cuts(run: Trajectory) -> list[float] | None:
    teacher = run.data.teacher
    if not isinstance(teacher, Network):
        return None
    x = run.data.X[:, 0]
    return [float(z) for z in sign_changes(teacher, (float(x.min()), float(x.max())))]


def _function(run: Trajectory, portrait: Mapping[str, Any]) -> Section:
    figures = (
        Figure(
            "function",
            "The learned function",
            (function_panel(portrait, _teacher_cuts(run)),),
            caption="The function of the normalised weights at several losses; diamonds are its "
            "kinks, as large as their jumps. Shaded: label +1.",
        ),
        Figure(
            "breakpoints",
            "Breakpoints through training",
            (breakpoint_panel(portrait),),
            caption="Where each neuron bends the function, against the loss. A triangle marks the "
            "moment from which a kink is held on a data point.",
        ),
    )
    return Section(
        "The function",
        f"The function of {run.net.width} neurons. {_kinks(run)}",
        figures,
        (
            Said(
                "As the loss falls, weights and field align: neurons with the same activations "
                "turn parallel and their kinks merge.",
                ("U7",),
            ),
        ),
    )


def _kinks(run: Trajectory) -> str:
    held = int((run.modes(-1) == 2).any(axis=1).sum())
    if not held:
        return "At the end no kink is held on a data point."
    words = "neuron has its kink" if held == 1 else "neurons have their kinks"
    return (
        f"At the end {held} {words} held exactly on data points, where moving on would cost margin."
    )


def _regions(run: Trajectory, history: Mapping[str, Any]) -> Section:
    y = run.data.y[np.argsort(run.data.X[:, 0])]
    s = int(np.count_nonzero(y[1:] != y[:-1]))
    layers: list[Layer] = [
        Line(
            history["F"],
            history["regions"].astype(float),
            label="regions (jumps above 0.3 %)",
            low=history["regions_high"].astype(float),
            high=history["regions_low"].astype(float),
        ),
        Rule(s, label=f"label switches s = {s}", dash="dashdot"),
        Rule(region_bound(s), label=f"32 s + 67 = {region_bound(s)}"),
    ]
    if isinstance(run.data.teacher, Network) and run.data.teacher.width != s:
        r = run.data.teacher.width
        layers.append(Rule(region_bound(r), label=f"32 r + 67 = {region_bound(r)}", dash="dot"))
    figure = Figure(
        "regions",
        "Linear regions through training",
        (Panel("", Axis(FALL, "log"), Axis("linear regions", "log"), tuple(layers)),),
        caption="Counts at three tolerances of the jump: 0.1 % (upper edge), 0.3 %, 1 % (lower).",
    )
    return Section(
        "Linear regions",
        "At any finite time every neuron still bends the function a little; a count of the regions "
        "of the limit can be trusted where the band is closed and flat. It ends at "
        f"{history['regions'][-1]:.0f}.",
        (figure,),
        (Said(f"The limit has at most 32 s + 67 = {region_bound(s)} regions.", ("U10",)),),
    )


def _margins(history: Mapping[str, Any], best: MaxMargin) -> Section:
    panels = (margin_panel([history], [best.margin]), gap_panel([history], [best.margin]))
    return Section(
        "Margins",
        "The normalised margin beside the largest that any network of any width can have "
        f"({best.margin:.6g}, {'certified' if best.certified else 'not certified'}).",
        (
            Figure(
                "margins",
                "Margins through training",
                panels,
                columns=2,
                caption="Left: relative to the optimum. Right: distance below it.",
            ),
        ),
        (Said("The smoothed margin never falls once the loss is below loss(0)/n.", ("U5",)),),
    )


def _residuals(history: Mapping[str, Any]) -> Section:
    return Section(
        "KKT residuals",
        "Distance of the direction to a KKT point of the margin problem, and angle between weights "
        "and gradient.",
        (
            Figure(
                "residuals",
                "KKT residuals through training",
                (residual_panel([history]),),
                caption="Stationarity and slackness of the best multipliers, over Clarke's sets.",
            ),
        ),
        (Said("Both tend to zero.", ("U7", "U8")),),
    )


def _comparisons(
    run: Trajectory, history: Mapping[str, Any], best: MaxMargin
) -> tuple[Comparison, ...]:
    gamma = margin(run.data, run.final)
    if gamma <= 0.0:
        return ()
    F = -float(run.log_loss[-1])
    return (
        Comparison(
            "normalised margin",
            best.margin,
            gamma,
            "the optimum over all widths; the flow may stop at another KKT point. The network of "
            f"largest margin has {linear_regions(best.network)} linear regions, the trained one "
            f"{history['regions'][-1]:.0f}",
        ),
        Comparison(
            "log of time",
            F - float(np.log(4.0 * gamma * F)),
            float(run.log_t[-1]),
            "F - log(4 gamma F), for large F",
        ),
    )


@paper.check_options
def claim_options(runs: Sequence[LabelledRun]) -> Mapping[str, Any]:
    """The density and deviations of the document, where it names them."""
    spec = runs[0].run.provenance.get("spec", {})
    options: dict[str, Any] = {}
    density = spec.get("data", {}).get("density")
    if isinstance(density, Mapping):
        arguments = {name: value for name, value in density.items() if name != "name"}
        options["density"] = getattr(densities, density["name"])(**arguments)
    network = spec.get("network", {})
    if network.get("init") == "gaussian":
        options |= {name: network[name] for name in ("sigma_hidden", "sigma_output")}
    return options
