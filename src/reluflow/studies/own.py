"""What a page of one's own data says first: the answer in a sentence, and the picture of it.

Everything is said from numbers: how training ended and in which kind of point, how much larger the
network is than the least that would do, how many neurons are left, what moved last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluflow.departures import departure, of_steps
from reluflow.errors import ReluflowError
from reluflow.figures import Axis, Figure, Frame, Layer, Panel
from reluflow.geometry import (
    StationaryPoint,
    effective_rank,
    hessian_spectrum,
    kkt,
    margin,
    stationary_point,
)
from reluflow.interpolators import Excess
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.plot import of_inputs, of_runs, surface_panel
from reluflow.statuses import Status
from reluflow.studies.decay import REACHED, optimum_of
from reluflow.theory.contract import Comparison, LabelledRun, Section
from reluflow.trajectory import Trajectory

MOST_POINTS = 60  # the least norm is computed up to this size
FRAMES = 24
PARALLEL = 1e-3  # radians: neurons within this count as one direction
KINDS = {
    "fit": "a fit of every point",
    "minimum": "a local minimum",
    "saddle": "a saddle",
    "dead": "a dead network",
    "moving": "no stationary point",
}


@dataclass(frozen=True)
class Facts:
    """The numbers behind the answer, of one run."""

    run: Trajectory
    point: StationaryPoint
    least: Network | None  # of smallest norm that fits; of largest margin
    limit: Network | None  # what theory predicts
    alive: int
    directions: int
    excess: Excess | None = None  # over the optimum with weight decay

    @property
    def is_square(self) -> bool:
        """Regression; otherwise classification."""
        return isinstance(self.run.loss_function, Square)


def facts_of(run: Trajectory) -> Facts:
    """Measure a run."""
    from reluflow.limits import predict_end

    active = run.active(-1)
    prediction = predict_end(run)
    return Facts(
        run=run,
        point=stationary_point(run.data, run.final, loss=run.loss_function, active=active),
        least=_least(run),
        limit=prediction.network,
        alive=int(active.any(axis=1).sum()),
        directions=_directions(run.final, np.flatnonzero(active.any(axis=1))),
        excess=optimum_of(run) if run.decay else None,
    )


def answer(facts: Facts) -> str:
    """One sentence: how it ended, how large it is, what is left of the network."""
    run = facts.run
    who = "Gradient flow" if run.engine == "flow" else "Gradient descent"
    words = departure(run)
    who += f" ({words})" if words else ""
    left = (
        f"{facts.alive} of {run.net.width} neurons are active at the end, along "
        f"{facts.directions} direction{'s' if facts.directions != 1 else ''}"
    )
    return f"{who} {_ending(facts)}{_size(facts)}; {left}."


def lead(facts: Facts) -> Section:
    """The picture that goes with the answer."""
    run = facts.run
    inputs = of_inputs.inputs_of(run.data, run.final)
    if inputs == 1:
        return Section("The learned function", _function_text(facts), (_movie(facts),))
    if inputs == 2:
        return Section("The learned function", _surface_text(facts), (_surface(facts),))
    panel = of_runs.spectrum(run)
    text = (
        f"The {run.data.d} inputs cannot be drawn. What can is the rank as it grows: singular "
        "values of the hidden weights through training."
    )
    figure = Figure(
        "singular_values", "Singular values of the hidden weights", (panel,), cursor=True
    )
    return Section("The rank", text, (figure,))


def found(facts: Facts) -> Section:
    """The numbers, each with what it means."""
    run = facts.run
    parts = [
        _point_text(facts),
        _norm_text(facts),
        f"Rank: the effective rank of the hidden weights is {effective_rank(run.final):.3g} at the "
        f"end, {effective_rank(run.net):.3g} at the start. {facts.alive} of {run.net.width} "
        f"neurons are active on some point, along {facts.directions} directions.",
        _sharpness_text(facts),
        _last_text(run),
    ]
    return Section("What was found", "\n\n".join(part for part in parts if part))


def _point_text(facts: Facts) -> str:
    """In which kind of point training ended; the test is one of plain training."""
    words = of_steps(facts.run)
    if not words:
        sure = "" if facts.point.sure else "what looks like "
        kind = f"Kind of point: {sure}{KINDS[facts.point.kind]}."
        return f"{kind} By a second-order test, {facts.point.text}."
    text = f"Kind of point: not tested, because the run is trained with {words}."
    if facts.run.options.get("train") == "linearised":
        text += (
            " Pictures and numbers show the network with the weights of the run; what was trained "
            "is its tangent at the start, and the losses are those of the tangent."
        )
    return text


def comparisons(items: Sequence[tuple[LabelledRun, Facts]]) -> tuple[Comparison, ...]:
    """The trained networks beside the predicted limit and the least norm."""
    rows = []
    for item, facts in items:
        size = item.run.final.squared_norm
        if facts.limit is not None and facts.is_square:
            rows.append(
                Comparison(
                    f"squared norm of the weights, {item.label}",
                    facts.limit.squared_norm,
                    size,
                    "the prediction is the limit of a vanishing scale and infinite time",
                )
            )
    return tuple(rows)


def _least(run: Trajectory) -> Network | None:
    from reluflow.interpolators import max_margin, min_norm

    if run.data.n > MOST_POINTS:
        return None
    try:
        square = isinstance(run.loss_function, Square)
        solve = min_norm if square else max_margin
        best = solve(run.data, slope=run.net.slope)
    except ReluflowError:  # no network fits or separates these points
        return None
    return best.network if best.certified else None


def _directions(
    net: Network, alive: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.intp]]
) -> int:
    """Different directions among neurons, those of one output sign together."""
    seen: list[tuple[float, np.ndarray[tuple[int], np.dtype[np.float64]]]] = []
    for j in alive:
        sign, u = float(net.signs[j]), net.directions[j]
        if not any(sign == s and np.linalg.norm(u - v) < PARALLEL for s, v in seen):
            seen.append((sign, u))
    return len(seen)


def _ending(facts: Facts) -> str:
    run, n = facts.run, facts.run.data.n
    loss = _from_log(float(run.log_loss[-1]))
    if not facts.is_square:
        wrong = int((run.data.y * run.final.predict(run.data.X) <= 0.0).sum())
        if wrong:
            return f"has {wrong} of {n} points on the wrong side when it stops, at loss {loss}"
        return f"separates all {n} points and has reached loss {loss}"
    if run.status is Status.CONVERGED:
        return f"fits all {n} points exactly"
    if run.status is Status.STATIONARY and of_steps(run):
        return f"ends with loss {loss}"
    if run.status is Status.STATIONARY:
        seems = "" if facts.point.sure else "what looks like "
        return f"ends in {seems}{KINDS[facts.point.kind]} with loss {loss}"
    return f"has reached loss {loss} where it was stopped ({run.status.text})"


def _size(facts: Facts) -> str:
    run = facts.run
    if not facts.is_square:
        found = margin(run.data, run.final)
        if not found > 0.0:
            return ""
        if facts.least is None:
            return f"; its normalised margin is {found:.4g}"
        best = margin(run.data, facts.least)
        return f"; its normalised margin {found:.4g} is {found / best:.0%} of the largest possible"
    if facts.excess is not None:
        above = facts.excess.at_most
        where = f"{100 * above:.2g} % above" if above > REACHED else "at"
        return f"; loss and decay together are {where} the least of any network"
    if facts.least is None:
        return f"; its squared norm is {run.final.squared_norm:.4g}"
    least, size = facts.least.squared_norm, run.final.squared_norm
    if not least > 0.0:
        return ""
    if run.status is Status.CONVERGED:
        ratio = size / least
        if ratio < 1.0 + 1e-6:
            return f"; its squared norm {size:.4g} is the least of any network that fits"
        more = f"{ratio:.3g} times" if ratio >= 1.1 else f"{100 * (ratio - 1):.2g} % above"
        return f"; its squared norm {size:.4g} is {more} the least of any network that fits"
    return f"; its squared norm is {size:.4g}, and the least that fits every point is {least:.4g}"


def _norm_text(facts: Facts) -> str:
    if not facts.is_square:
        return _margin_text(facts)
    if facts.least is None:
        why = (
            f"there are more than {MOST_POINTS} points"
            if facts.run.data.n > MOST_POINTS
            else ("no network fits these labels, or none can be computed for these inputs")
        )
        return f"Smallest network: not compared, since {why}."
    return (
        f"Smallest network: of any width, the least squared norm that fits every point is "
        f"{facts.least.squared_norm:.6g}, with {facts.least.width} neurons; training has "
        f"{facts.run.final.squared_norm:.6g}."
    )


def _margin_text(facts: Facts) -> str:
    """The margin beside the largest one, and how far the network is from a KKT point."""
    data, net = facts.run.data, facts.run.final
    found = margin(data, net)
    if not found > 0.0:
        return "Margin: not all points are on their side, so there is none to compare."
    parts = [f"Margin: the smallest one over the squared norm is {found:.6g}"]
    if facts.least is None:
        why = f"more than {MOST_POINTS} points" if data.n > MOST_POINTS else "these inputs"
        parts.append(f"the largest of any network is not computed for {why}")
    else:
        best = margin(data, facts.least)
        parts.append(f"the largest of any network is {best:.6g}, with {facts.least.width} neurons")
    try:
        residual = kkt(data, net)
    except ReluflowError:
        return "; ".join(parts) + "."
    parts.append(
        f"of the conditions for a largest margin nearby (KKT) {residual.epsilon:.2g} is missing in "
        f"stationarity and {residual.delta:.2g} in slackness, 0 being a KKT point"
    )
    return "; ".join(parts) + "."


def _sharpness_text(facts: Facts) -> str:
    """Which steps of gradient descent could stay where training ended."""
    run = facts.run
    if not facts.is_square or facts.point.kind not in ("fit", "minimum"):
        return ""
    found = hessian_spectrum(run.data, run.final, loss=run.loss_function, active=run.active(-1))
    if not found.sharpness > 0.0:
        return ""
    where = (
        f", on one side of a kink: neuron {found.kink[0]} is on the plane of point {found.kink[1]}"
        if found.is_near_kink
        else ""
    )
    return (
        f"Sharpness: the largest eigenvalue of the Hessian is {found.sharpness:.4g}{where}. "
        f"Gradient descent with steps above {found.largest_stable_step:.4g} would not stay here."
    )


def _last_text(run: Trajectory) -> str:
    words = {
        "activate": "became active on",
        "deactivate": "became inactive on",
        "slide": "came to rest on the plane of",
        "release": "left the plane of",
    }
    told = [event for event in run.events if event["kind"] in words]
    if not told:
        return "What moved last: no neuron changed its pattern between the records."
    last = told[-1]
    return (
        f"What moved last: neuron {int(last['neuron'])} {words[str(last['kind'])]} point "
        f"{int(last['point'])} at t = {float(last['t']):.4g}; no pattern changed after that."
    )


def _function_text(facts: Facts) -> str:
    ghosts = []
    if facts.limit is not None and facts.is_square:
        ghosts.append("the predicted limit (dashed)")
    if facts.least is not None and facts.is_square:
        ghosts.append("the function of smallest norm (dotted)")
    beside = f", beside {' and '.join(ghosts)}" if ghosts else ""
    return (
        "The function of the network through training, with its kinks (triangles) and the data"
        f"{beside}. Frames are placed where the outputs change by equal amounts."
    )


def _surface_text(facts: Facts) -> str:
    what = "Values of the network" if facts.is_square else "The decision boundary of the network"
    return f"{what} at the end of training, the data, and the lines where its neurons switch."


def _movie(facts: Facts) -> Figure:
    run, data = facts.run, facts.run.data
    bias, span = of_inputs.has_bias(data, run.final), of_inputs.span_of(data.X[:, 0])
    ghosts: list[Layer] = []
    if facts.is_square and facts.limit is not None:
        ghosts.append(of_inputs.ghost(facts.limit, bias, span, "predicted limit", 1, "dash"))
    if facts.is_square and facts.least is not None:
        ghosts.append(of_inputs.ghost(facts.least, bias, span, "minimum norm", 2, "dot"))
    frames = []
    for k in of_inputs.moments(run, FRAMES):
        panel = of_inputs.function([("the network", run.network(k))], data, ghosts)
        label = f"t = {run.t[k]:.4g}" if k else "start"
        frames.append(Frame(label, panel.layers, _log10(run, k)))
    low, high = of_inputs.span_of(np.concatenate([data.y, _curve(run.final, bias, span)]))
    axes = panel.x, Axis("h(x)", range=(low, high))
    end = of_inputs.function([("the network", run.final)], data, ghosts)
    frames.append(Frame("end", end.layers, _log10(run, len(run.t) - 1)))
    return Figure(
        "learned_function",
        "The learned function through training",
        (Panel("", *axes, end.layers),),
        frames=tuple(frames),
        first_frame=len(frames) - 1,
    )


def _surface(facts: Facts) -> Figure:
    panels = (surface_panel(facts.run), of_runs.neurons(facts.run))
    return Figure("learned_function", "The learned function and its neurons", panels, columns=2)


def _curve(
    net: Network, bias: bool, span: tuple[float, float]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray(of_inputs.curve(net, bias, span)[1])


def _log10(run: Trajectory, k: int) -> float | None:
    return float(run.log_t[k]) / of_runs.LN10 if run.t[k] > 0 else None


def _from_log(log_value: float) -> str:
    if abs(log_value) < 600 or log_value == -math.inf:
        return f"{math.exp(log_value):.3g}"
    return f"exp({log_value:.4g})"
