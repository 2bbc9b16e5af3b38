"""Pictures of runs and networks, as Matplotlib figures.

Each function takes a run (`reluflow.Trajectory`) or, where that makes sense, a network, and returns
a Matplotlib figure: a notebook shows it, ``figure.savefig("talk.pdf")`` writes it. ``ax=`` draws on
axes of your own instead. Pages of studies show the same pictures.

====================  ======================================================================
`loss`                the loss through training, beside what was predicted
`norms`               norms of the neurons
`neurons`             directions of the neurons, with the way they came
`function`            one input: the function, kinks, data, predicted and minimum-norm functions
`surface`             two inputs: values or decision boundary, and where neurons switch
`raster`              which neuron is active on which point when
`spectrum`            singular values of the hidden weights
`four`                the four of these that fit a run; ``run.plot()``
====================  ======================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.dataset import Dataset
from reluflow.errors import InputError, ReluflowError
from reluflow.figures import Layer, Line, Panel, Rule
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.plot import of_inputs, of_runs, times
from reluflow.plot.canvas import draw
from reluflow.trajectory import Trajectory
from reluflow.wording import shown

__all__ = ["four", "function", "loss", "neurons", "norms", "raster", "spectrum", "surface"]

MOST_POINTS = 60  # the minimum-norm function is drawn by default up to this size


def loss(run: Trajectory | list[Trajectory], *, predicted: Any = None, ax: Any = None) -> Any:
    """Draw the loss through training, of one run or of several.

    Parameters
    ----------
    run : Trajectory or list of them
        What to draw.
    predicted : Prediction, Network or True, optional
        What theory says, beside it: the staircase of `reluflow.limits.saddle_to_saddle` where that
        is the prediction, otherwise the loss of the limit network. True asks
        `reluflow.limits.predict`.
    ax : matplotlib axes, optional
        Where to draw; a new figure without.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    runs = list(run) if isinstance(run, list | tuple) else [run]
    for item in runs:
        _check_run(item)
    names = [""] if len(runs) == 1 else [f"run {k}" for k in range(len(runs))]
    extra = () if predicted is None else _staircase(runs[0], predicted)
    panel = of_runs.loss(list(zip(names, runs, strict=True)), extra)
    return draw("loss", "Loss through training", [panel], ax)


def norms(run: Trajectory, *, ax: Any = None) -> Any:
    """Draw the norms of the neurons through training, those of the 60 largest at the end.

    Parameters
    ----------
    run : Trajectory
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    return draw("norms", "Norms of the neurons", [of_runs.norms(_check_run(run))], ax)


def neurons(run: Trajectory | Network, *, ax: Any = None) -> Any:
    """Draw the directions of the neurons, with the way they came where a run is given.

    Two inputs are drawn as they are. More are seen along the teacher (or X^T y) and where the end
    spreads most; those of a network along its two main axes. The larger a neuron's share of the
    norm, the larger its dot.

    Parameters
    ----------
    run : Trajectory or Network
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    if isinstance(run, Network):
        panel = of_runs.neurons_of(run)
    else:
        panel = of_runs.neurons(_check_run(run))
    return draw("neurons", "Directions of the neurons", [panel], ax, wide=False)


def raster(run: Trajectory, *, ax: Any = None) -> Any:
    """Draw which neuron is active on which point when; slides are marked.

    Parameters
    ----------
    run : Trajectory
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    return draw("raster", "Activations", [of_runs.raster(_check_run(run))], ax)


def spectrum(run: Trajectory, *, ax: Any = None) -> Any:
    """Draw the singular values of the hidden weights through training: the rank as it grows.

    Parameters
    ----------
    run : Trajectory
        What to draw.
    ax : matplotlib axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    return draw("spectrum", "Singular values", [of_runs.spectrum(_check_run(run))], ax)


def function(
    run: Trajectory | Network,
    data: Dataset | None = None,
    *,
    predicted: Any = True,
    least: Any = True,
    ax: Any = None,
) -> Any:
    """Draw the function of one input that was learned, at several times.

    Parameters
    ----------
    run : Trajectory or Network
        What to draw; of a run, the records between which the outputs change by equal amounts.
    data : Dataset, optional
        The data beside a network; a run has its own.
    predicted : bool, Prediction or Network
        The predicted limit, as a ghost: True asks `reluflow.limits.predict` (of a run).
    least : bool or Network
        The function of smallest norm (of largest margin for classification): True computes it, for
        at most 60 points.
    ax : matplotlib axes, optional
        Where to draw; a new figure without.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    panel = function_panel(run, data, predicted=predicted, least=least)
    return draw("function", "The learned function", [panel], ax)


def surface(run: Trajectory | Network, data: Dataset | None = None, *, ax: Any = None) -> Any:
    """Draw the function of two inputs: its values, or the decision boundary of a classifier.

    Dotted lines are where neurons switch, those with at least a thousandth of the largest share.

    Parameters
    ----------
    run : Trajectory or Network
        What to draw.
    data : Dataset, optional
        The data beside a network; a run has its own.
    ax : matplotlib axes, optional
        Where to draw; a new figure without it.

    Returns
    -------
    matplotlib.figure.Figure
        That of ``ax`` where one is given.
    """
    return draw("surface", "The learned function", [surface_panel(run, data)], ax)


def four(run: Trajectory) -> Any:
    """Draw the four pictures that fit a run best: what ``run.plot()`` shows."""
    _check_run(run)
    panels = [
        replace(of_runs.loss([("", run)]), title="Loss"),
        replace(of_runs.norms(run), title="Norms of the neurons"),
        replace(of_runs.neurons(run), title="Directions of the neurons"),
    ]
    inputs = of_inputs.inputs_of(run.data, run.final)
    if inputs == 1:
        panels.append(replace(function_panel(run), title="The learned function"))
    elif inputs == 2:
        panels.append(replace(surface_panel(run), title="The learned function"))
    else:
        panels.append(replace(of_runs.spectrum(run), title="Singular values"))
    return draw("run", "The run", panels, None, columns=2)


def function_panel(
    run: Trajectory | Network,
    data: Dataset | None = None,
    *,
    predicted: Any = True,
    least: Any = True,
) -> Panel:
    """The description that `function` draws."""
    if isinstance(run, Network):
        return of_inputs.function([("the network", run)], data)
    _check_run(run)
    data, final = run.data, run.final
    chosen = of_inputs.moments(run, 5)[:-1]
    earlier = [(f"t = {run.t[k]:.3g}" if k else "start", run.network(k)) for k in chosen]
    bias, span = of_inputs.has_bias(data, final), of_inputs.span_of(data.X[:, 0])
    ghosts: list[Layer] = []
    if of_inputs.inputs_of(data, final) == 1:
        limit = _limit(run, predicted)
        if limit is not None and isinstance(run.loss_function, Square):
            ghosts.append(of_inputs.ghost(limit, bias, span, "predicted limit", 1, "dash"))
        shortest, name = _least(run, least)
        if shortest is not None:
            ghosts.append(of_inputs.ghost(shortest, bias, span, name, 2, "dot"))
    return of_inputs.function([*earlier, ("end of training", final)], data, ghosts)


def surface_panel(run: Trajectory | Network, data: Dataset | None = None) -> Panel:
    """The description that `surface` draws."""
    if isinstance(run, Network):
        return of_inputs.surface(run, data)
    _check_run(run)
    classes = not isinstance(run.loss_function, Square)
    return of_inputs.surface(run.final, run.data, classes=classes)


def _check_run(run: Any) -> Trajectory:
    if not isinstance(run, Trajectory):
        raise InputError(
            f"this picture is of a run, not of {shown(run, 60)}. Pass what rf.flow or rf.descend "
            "returned."
        )
    return run


def _limit(run: Trajectory, predicted: Any) -> Network | None:
    """The network of a prediction, given in any of the ways a caller may have it."""
    if predicted is True:
        from reluflow.limits import predict_end

        predicted = predict_end(run)
    if predicted is None or predicted is False or isinstance(predicted, Network):
        return predicted or None
    found: Network | None = predicted.network
    return found


def _least(run: Trajectory, least: Any) -> tuple[Network | None, str]:
    """The network of smallest norm that fits, or of largest margin, where one can be had."""
    square = isinstance(run.loss_function, Square)
    name = "minimum norm" if square else "largest margin"
    if isinstance(least, Network):
        return least, name
    if not least or run.data.n > MOST_POINTS:
        return None, name
    from reluflow.interpolators import max_margin, min_norm

    try:
        if square:
            return min_norm(run.data, slope=run.net.slope).network, name
        best = max_margin(run.data, slope=run.net.slope).network
    except ReluflowError:  # nothing fits: there is no such network to draw
        return None, name
    margins = run.data.y * run.final.predict(run.data.X)
    size = float(np.sqrt(max(margins.min(), 0.0)))  # margin 1 scaled to that of the run
    if not size > 0.0:
        return None, name
    return Network(size * best.a, size * best.W, bias=best.bias, slope=best.slope), name


def _staircase(run: Trajectory, predicted: Any) -> tuple[Layer, ...]:
    """Plateaus at the jump times of theory; otherwise the loss of the limit, if it has one."""
    from reluflow.limits import predict_end

    if predicted is True:
        predicted = predict_end(run)
    detail: Any = getattr(predicted, "detail", None)
    if hasattr(detail, "sharp_times") and hasattr(detail, "losses"):
        jumps = np.array(detail.sharp_times(float(run.net.log_norms.max())))
        with np.errstate(divide="ignore"):
            levels = np.log10(np.array(detail.losses))
        first, _ = times.span([run])
        x = np.concatenate([[first], np.repeat(np.log10(jumps), 2)])
        y = np.concatenate([np.repeat(levels[: len(jumps)], 2), [levels[len(jumps)]]])
        y = np.where(np.isfinite(y), y, np.nan)
        return (Line(x, y, "predicted", colour=1, dash="dash", width=2.0),)
    network = _limit(run, predicted)
    if network is None:
        return ()
    value = run.loss_function.log_value(network.predict(run.data.X), run.data.y) / of_runs.LN10
    lowest = float(np.min(run.log_loss[np.isfinite(run.log_loss)], initial=0.0)) / of_runs.LN10
    return (Rule(value, label="predicted limit", colour=1),) if value > lowest - 1.0 else ()
