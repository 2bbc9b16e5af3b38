"""Stages of explicit steps against the same in NumPy, and pairs that leave their sides."""

import numpy as np
import pytest

import reluflow as rf
from numerics.problems import LOSSES
from reluflow.engines.flow.explicit import Field
from reluflow.engines.flow.pairs import LEAN, STABLE
from reluflow.engines.flow.problem import Problem
from reluflow.engines.flow.start import begin_at
from reluflow.engines.flow.state import start
from reluflow.kernels.flow.layout import ABOVE, BELOW, SLIDE
from reluflow.kernels.flow.stages import left


def begun(seed, loss="square", slope=0.0, train="both", slides=0.15):
    """A problem with points in pairs on one line, neurons that slide and some that are dead."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 4))
    X[1], X[3] = 2.0 * X[0], -0.5 * X[2]
    y = rng.normal(size=9) if loss == "square" else np.where(X[:, 0] > 0.0, 1.0, -1.0)
    net = rf.Network(rng.normal(size=20), rng.normal(size=(20, 4)), slope=slope)
    problem = Problem(rf.Dataset(X, y), net, LOSSES[loss], train)
    state = start(problem)
    held = rng.random(state.mode.shape) < slides
    held[:, np.cumsum(held, axis=1)[0] > 2] = False
    state.mode[held] = SLIDE
    for j in range(len(state.mode)):  # on the planes it slides on, and on its sides of the others
        own = problem.planes.U[state.mode[j] == SLIDE]
        if 0 < len(own) < 3:
            state.w[j] -= np.linalg.pinv(own) @ (own @ state.w[j])
        else:
            state.mode[j][state.mode[j] == SLIDE] = BELOW
        free = state.mode[j] != SLIDE
        state.mode[j, free] = (problem.planes.U @ state.w[j] > 0.0)[free]
    return problem, begin_at(problem, state)


def slopes(problem, at, a, w):
    """Outputs, forces and slopes by points, one neuron at a time."""
    planes, net = problem.planes, problem.net
    X = planes.length[:, None] * planes.U[planes.owner]
    z = w @ X.T
    z[at.state.mode[:, planes.owner] == SLIDE] = 0.0
    z[at.classes.cid < 0] = 0.0
    gain = np.where(z > 0.0, 1.0, net.slope)
    h = (at.neurons.weight * a) @ (gain * z)
    c = problem.forces(h)
    da, dw = np.zeros_like(a), np.zeros_like(w)
    theta = {}
    for j in range(len(a)):
        if at.classes.cid[j] < 0:
            continue
        on = at.state.mode[j, planes.owner] == SLIDE
        g = (gain[j] * c)[~on] @ X[~on]
        held = np.flatnonzero(at.state.mode[j] == SLIDE)
        if len(held):
            own = planes.U[held]
            f = -np.linalg.lstsq(own.T, g, rcond=None)[0]
            g = g + f @ own
            for p, force in zip(held, f, strict=True):
                up = planes.length * (planes.owner == p)
                high = c @ np.where(up > 0.0, up, net.slope * up)
                low = c @ np.where(up < 0.0, up, net.slope * up)
                theta[j, p] = (force - low) / (high - low)
        da[j] = 0.0 if problem.hidden else w[j] @ g
        dw[j] = a[j] * g
    return h, c, da, dw, theta


CASES = [
    ("square", 0.0, "both"), ("square", 0.3, "both"), ("square", 0.0, "hidden"),
    ("exponential", 0.0, "both"), ("logistic", 0.1, "both"),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("loss", "slope", "train"), CASES)
def test_a_stage_is_that_of_points_one_by_one(loss, slope, train, seed):
    problem, at = begun(seed, loss, slope, train)
    field = Field(problem)
    first, held = field.begin(at)
    h, c, da, dw, theta = slopes(problem, at, at.state.a, at.state.w)
    assert len(held.neuron) > 0
    np.testing.assert_allclose(first.h[0], h, atol=1e-12)
    np.testing.assert_allclose(first.c[0], c, atol=1e-12)
    np.testing.assert_allclose(first.da[0], da, atol=1e-12)
    np.testing.assert_allclose(first.dw[0], dw, atol=1e-12)
    found = dict(
        zip(
            zip(held.neuron.tolist(), held.plane.tolist(), strict=True), first.theta[0], strict=True
        )
    )
    assert found.keys() == theta.keys()
    for pair, value in theta.items():
        assert found[pair] == pytest.approx(value, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("pair", [LEAN, STABLE], ids=["lean", "stable"])
def test_the_stages_of_a_step_are_those_of_its_table(pair):
    problem, at = begun(1)
    stages, step = Field(problem).stages(at, pair, 0.03), 0.03
    a, w = at.state.a, at.state.w
    known = [slopes(problem, at, a, w)]
    for row in pair.table:
        now = [(weight, one) for weight, one in zip(row, known, strict=False) if weight]
        later = a + step * sum(weight * one[2] for weight, one in now)
        known.append(
            slopes(problem, at, later, w + step * sum(weight * one[3] for weight, one in now))
        )
    np.testing.assert_allclose(stages.h, [one[0] for one in known], atol=1e-12)
    np.testing.assert_allclose(stages.dw, [one[3] for one in known], atol=1e-12)


def test_what_left_its_side_is_found():
    rng = np.random.default_rng(0)
    mode = rng.choice([BELOW, ABOVE, SLIDE], size=(6, 7)).astype(np.int8)
    above = (mode == ABOVE) ^ (rng.random((3, 6, 7)) < 0.1)
    dead = np.arange(6) == 2
    found = set(zip(*map(np.ndarray.tolist, left(above, mode, dead)), strict=True))
    other = (above != (mode == ABOVE)).any(axis=0) & (mode != SLIDE) & ~dead[:, None]
    assert found == set(zip(*map(np.ndarray.tolist, np.nonzero(other)), strict=True))
    assert len(found) > 3
