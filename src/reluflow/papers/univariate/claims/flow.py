r"""Claims about the flow itself: U1 - U6, U16.

They need no separation: clocks, conserved quantities, monotone quantities, frozen neurons.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.geometry import margin, smoothed_margin
from reluflow.losses import logsumexp
from reluflow.network import Network, row_norms
from reluflow.papers.univariate.case import Univariate
from reluflow.papers.univariate.field import CLOCKS, integrate, unit_vector
from reluflow.papers.univariate.paper import paper
from reluflow.theory.verdicts import Finding, Unresolved, at_least, at_most, holds
from reluflow.trajectory import Mode, Trajectory

# the comparison of clocks stays where a general solver is accurate: F up to here, over this much
_HIGHEST, _STRETCH = 30.0, 1.0


@paper.claim(
    "U1",
    "Clocks t, s and F trace one curve: distance of directions at equal loss",
    needs=["A1", "A7", "A8"],
)
def clocks(case: Univariate) -> Finding:
    """A general solver on three clocks, from one record of the run to another."""
    run = case.run
    begin, end = quiet_stretch(run)
    first, last = run.at(log_t=begin), run.at(log_t=end)
    modes = run.modes(t=float(np.exp(begin)))
    start, goal = (
        case.loss.log_value(net.predict(case.data.X), case.data.y) for net in (first, last)
    )
    longest = 2.0 * float(np.exp(end) - np.exp(begin))
    ends = [integrate(case.data, first, case.loss, clock, goal, modes, longest) for clock in CLOCKS]
    units = [unit_vector(net) for net in (*ends, last)]
    apart = max(float(np.linalg.norm(u - v)) for u in units for v in units)
    note = f"from log-loss {start:.4g} to {goal:.4g}, and the engine's own end"
    return at_most(apart, max(1e-6, 100.0 * case.error), note=note)


def quiet_stretch(run: Trajectory) -> tuple[float, float]:
    """Two log-times without an event from the first to the second, the loss falling most."""
    F = -run.log_loss
    inside = np.flatnonzero(np.isfinite(run.log_t) & (F < _HIGHEST))
    if len(inside) < 2:
        raise Unresolved("the run has no two records early on; record more of them")
    low, high = float(run.log_t[inside[0]]), float(run.log_t[inside[-1]])
    events = np.unique(run.events["log_t"])
    cuts = np.concatenate([[low], events[(events > low) & (events < high)], [high]])
    # an event leaves a kink on a point whose side is not in the weights: stay off both ends
    begins, ends = cuts[:-1] + 0.01 * np.diff(cuts), cuts[1:] - 0.01 * np.diff(cuts)
    before, after = (np.interp(at, run.log_t[inside], F[inside]) for at in (begins, ends))
    best = int(np.argmax(after - before))
    begin, fall = float(begins[best]), float((after - before)[best])
    if fall < 1e-6:
        raise Unresolved("events leave no stretch early on; fewer neurons would")
    # where a loss has all but reached its limit, it does not say how far along the curve one is
    level = float(before[best]) + min(_STRETCH, 0.5 * fall)
    return begin, min(float(ends[best]), float(np.interp(level, F[inside], run.log_t[inside])))


@paper.claim(
    "U2",
    "Balance v^2 - w^2 - b^2 of each neuron is conserved: largest drift over |theta|^2",
    needs=["A8"],
)
def balance(case: Univariate) -> Finding:
    """To the accuracy of the run."""
    before = case.net.balance
    drift = max(float(np.abs(n.balance - before).max()) / n.squared_norm for n in case.records)
    return at_most(drift, case.error)


@paper.claim(
    "U3", "The loss never rises: largest rise of log-loss between records, relative", needs=["A8"]
)
def energy(case: Univariate) -> Finding:
    """Of the flow; descent may rise. At rest the loss errs by the squared error of the weights."""
    log_loss = case.run.log_loss
    size = np.maximum(1.0, np.abs(log_loss[1:]))
    rise = float((np.diff(log_loss) / size).max(initial=0.0))
    return at_most(rise, 1e-12 + case.tolerance**2)


@paper.claim(
    "U4",
    "Identity <theta, grad q_i> = 2 q_i: largest defect over the sizes of the terms",
    needs=["A1"],
)
def homogeneity(case: Univariate) -> Finding:
    """True of every network: it tells whether gradients and margins belong together."""
    nets = [case.subject.net, *(run.final for run in case.subject.runs)]
    return at_most(max(homogeneity_defect(case.data, net) for net in nets), 1e-12)


def homogeneity_defect(data: Dataset, net: Network, degree: float = 2.0) -> float:
    """``max_i |<theta, grad q_i> - degree q_i|`` over the sum of the sizes of its terms.

    A neuron on the plane of a point adds nothing to either side, whatever its gate is.
    """
    flat = net.flat()
    z = data.X @ flat.W.T
    hidden = data.y[:, None] * flat.a * (z > 0)  # d q_i / d w_j = hidden_ij x_i
    along_hidden = np.einsum("ij,id,jd->i", hidden, data.X, flat.W)
    along_output = data.y * (np.maximum(z, 0.0) @ flat.a)
    size = np.maximum(z, 0.0) @ np.abs(flat.a)
    q = data.y * flat.predict(data.X)
    defect = np.abs(along_hidden + along_output - degree * q)
    # a pre-activation near zero is known to the rounding of |w| |x|, not to its own
    size += row_norms(data.X) * float(np.abs(flat.a) @ row_norms(flat.W))
    return float(np.divide(defect, size, out=np.zeros_like(size), where=size > 0).max())


@paper.claim(
    "U5",
    "The smoothed margin never falls once n L < loss(0): smallest increment",
    needs=["A1", "A7", "A8", "records"],
)
def smoothed_margin_rises(case: Univariate) -> Finding:
    """Lyu and Li: monotone once the points are separated."""
    run = case.run
    below = np.flatnonzero(run.log_loss < case.log_threshold)
    nets = [case.records[k] for k in below]
    values = np.array([smoothed_margin(case.data, net, case.loss) for net in nets])
    return at_least(
        float(np.diff(values).min()),
        -case.error * float(values.max()),
        note=f"from {values[0]:.6g} on",
    )


@paper.claim(
    "U6",
    "Identity for the exponential loss: smoothed margin <= margin <= it + log(n)/|theta|^2",
    needs=["A1"],
)
def sandwich(case: Univariate) -> Finding:
    """True of every network."""
    nets = [case.subject.net, *(run.final for run in case.subject.runs)]
    if case.subject.runs:
        nets += case.records
    nets = [net for net in nets if net.squared_norm > 0.0]
    if not nets:
        return holds(True, note="the network is zero")
    worst = max(sandwich_excess(case.data, net) for net in nets)
    return at_most(worst, 1e-12, note="largest violation, relative")


def sandwich_excess(data: Dataset, net: Network, width: float | None = None) -> float:
    """By how much either inequality is violated (negative if not), over the size of margins.

    ``width`` is how far apart the two may be, log(n).
    """
    apart = float(np.log(data.n)) if width is None else width
    flat = net.flat()
    q = data.y * flat.predict(data.X)
    low = -logsumexp(-q)
    size = max(1.0, float(np.abs(q).max()))
    lowest = margin(data, net) * net.squared_norm
    return max(low - lowest, lowest - low - apart) / size


@paper.claim(
    "U16",
    "Neurons inactive on every point at the start never move: largest change",
    needs=["A8", "dead"],
)
def dead_freeze(case: Univariate) -> Finding:
    """Nothing pulls at a neuron that sees no point."""
    run, data = case.run, case.data
    ends = (case.subject.net, run.final)
    dead = (run.modes(t=0.0) == Mode.INACTIVE).all(axis=1)
    moved = max(
        float(np.abs(after - before)[dead].max())
        for before, after in zip(*(_weights(net, case.subject.net) for net in ends), strict=True)
    )
    # the engine carries both layers in one scale and few points in a basis of their span
    exact = data.n >= data.d and np.array_equal(ends[0].log_scale, ends[0].log_scale_out)
    bound = (
        0.0
        if exact
        else 1e-14 * float(np.abs(ends[0].mantissa.W).max() + np.abs(ends[0].mantissa.a).max())
    )
    how = "compared bit for bit" if exact else "compared to rounding"
    return at_most(moved, bound, note=f"{int(dead.sum())} such neurons, {how}")


def _weights(net: Network, like: Network) -> tuple[Array, Array]:
    """Both layers in the scales of another network, exact where scales differ by powers of two."""
    blocks = []
    for values, own, other in (
        (net.mantissa.W, net.log_scale, like.log_scale),
        (net.mantissa.a[:, None], net.log_scale_out, like.log_scale_out),
    ):
        shift = (own - other) / np.log(2.0)
        whole = np.rint(shift)
        rest = np.where(np.abs(shift - whole) < 1e-9, 1.0, np.exp2(shift - whole))
        blocks.append(np.ldexp(values * rest[:, None], whole.astype(int)[:, None]))
    return blocks[0], blocks[1]
