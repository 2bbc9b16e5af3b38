r"""Claims about the flow itself (sections 1, 4 and 6.1 of the specification): U1 - U6, U16.

They need no separation: clocks, conserved quantities, monotone quantities, frozen neurons.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.geometry import margin, smoothed_margin
from reluflow.losses import logsumexp
from reluflow.network import Network
from reluflow.theory.univariate.case import Case
from reluflow.theory.univariate.field import CLOCKS, integrate
from reluflow.theory.verdicts import Claims, NotApplicable, Outcome, at_least, at_most
from reluflow.trajectory import Mode, Trajectory

claims = Claims()

# the comparison of clocks stays where a general solver is accurate: F up to here, over this much
_HIGHEST, _STRETCH = 30.0, 4.0


@claims("U1", "Clocks t, s and F trace one curve: distance of directions at equal loss")
def _rescaling(case: Case) -> Outcome:
    run = case.flow_run()
    first, last = quiet_stretch(run)
    goal = float(run.log_loss[last])
    ends = [
        integrate(case.data, run.network(first), case.loss, clock, goal) for clock in CLOCKS
    ] + [run.network(last)]
    units = [unit_vector(net) for net in ends]
    apart = max(float(np.linalg.norm(u - v)) for u in units for v in units)
    note = f"from log-loss {run.log_loss[first]:.4g} to {goal:.4g}, and the engine's own end"
    return at_most(apart, 1e-6, note=note)


def quiet_stretch(run: Trajectory) -> tuple[int, int]:
    """Two records without an event from the first to the second, the loss falling most."""
    events, F = np.unique(run.events["log_t"]), -run.log_loss
    best, pair = 0.0, None
    for first in range(len(run.t) - 1):
        # an event exactly at the first record leaves a kink on a point: its side is not in the
        # weights, so a solver that knows only them could not start there
        nearest = np.searchsorted(events, run.log_t[first] - 1e-9 * abs(run.log_t[first]))
        until = events[nearest] if nearest < len(events) else np.inf
        last = int(np.searchsorted(run.log_t, until, side="right")) - 1
        last = min(last, int(np.searchsorted(F, min(_HIGHEST, F[first] + _STRETCH))))
        if first < last < len(F) and F[first] < _HIGHEST and F[last] - F[first] > best:
            best, pair = float(F[last] - F[first]), (first, last)
    if pair is None or best < 1e-6:
        raise NotApplicable("the run has no two records early on without an event between them")
    return pair


def unit_vector(net: Network) -> Array:
    """All weights as one vector of length 1."""
    flat = net.flat()
    theta = np.concatenate([flat.a, flat.W.ravel()])
    return np.asarray(theta / np.linalg.norm(theta))


@claims("U2", "Balance v^2 - w^2 - b^2 of each neuron is conserved: largest drift over |theta|^2")
def _balance(case: Case) -> Outcome:
    case.flow_run()
    before = case.subject.net.balance
    drift = max(float(np.abs(n.balance - before).max()) / n.squared_norm for n in case.records)
    return at_most(drift, 1e-8)


@claims("U3", "The loss never rises: largest rise of log-loss between records, relative")
def _energy(case: Case) -> Outcome:
    log_loss = case.flow_run().log_loss
    if len(log_loss) < 2:
        raise NotApplicable("the run has one record")
    size = np.maximum(1.0, np.abs(log_loss[1:]))
    return at_most(float((np.diff(log_loss) / size).max()), 1e-12)


@claims("U4", "Homogeneity <theta, grad q_i> = 2 q_i: largest relative defect")
def _homogeneity(case: Case) -> Outcome:
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
    return float(np.divide(defect, size, out=np.zeros_like(size), where=size > 0).max())


@claims("U5", "The smoothed margin never falls once n L < loss(0): smallest increment")
def _smoothed_margin_rises(case: Case) -> Outcome:
    run = case.separated_run()
    below = np.flatnonzero(run.log_loss < case.log_threshold)
    nets = [case.records[k] for k in below]
    values = np.array([smoothed_margin(case.data, net, case.loss) for net in nets])
    if len(values) < 2:
        raise NotApplicable("fewer than two records are below loss(0)/n")
    return at_least(float(np.diff(values).min()), -1e-10, note=f"from {values[0]:.6g} on")


@claims(
    "U6", "Sandwich for the exponential loss: smoothed margin <= margin <= it + log(n)/|theta|^2"
)
def _sandwich(case: Case) -> Outcome:
    nets = [case.subject.net, *(run.final for run in case.subject.runs)]
    if case.subject.runs:
        nets += case.records
    nets = [net for net in nets if net.squared_norm > 0.0]
    if not nets:
        raise NotApplicable("the network is zero")
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


@claims("U16", "Neurons inactive on every point at the start never move: largest change")
def _dead_freeze(case: Case) -> Outcome:
    run, data = case.flow_run(), case.data
    ends = (case.subject.net, run.final)
    dead = (run.modes(t=0.0) == Mode.INACTIVE).all(axis=1)
    if not dead.any():
        raise NotApplicable("no neuron is inactive on all points at the start")
    moved = max(
        float(np.abs(after - before)[dead].max())
        for before, after in zip(*(_weights(net, case.subject.net) for net in ends), strict=True)
    )
    # the engine carries both layers in one scale and few points in a basis of their span
    exact = data.n >= data.d and np.array_equal(ends[0].log_scale, ends[0].log_scale_out)
    bound = 0.0 if exact else 1e-14 * float(np.abs(ends[0].W).max() + np.abs(ends[0].a).max())
    how = "compared bit for bit" if exact else "compared to rounding"
    return at_most(moved, bound, note=f"{int(dead.sum())} such neurons, {how}")


def _weights(net: Network, like: Network) -> tuple[Array, Array]:
    """Both layers in the scales of another network, exact where scales differ by powers of two."""
    blocks = []
    for values, own, other in (
        (net.W, net.log_scale, like.log_scale),
        (net.a[:, None], net.log_scale_out, like.log_scale_out),
    ):
        shift = (own - other) / np.log(2.0)
        whole = np.rint(shift)
        rest = np.where(np.abs(shift - whole) < 1e-9, 1.0, np.exp2(shift - whole))
        blocks.append(np.ldexp(values * rest[:, None], whole.astype(int)[:, None]))
    return blocks[0], blocks[1]
