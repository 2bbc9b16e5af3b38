"""Forces of points, of planes and on classes, against the losses and plain sums."""

import numpy as np
import pytest

import reluflow as rf
from kernels.flow.scene import planes_with, points_of, pulls_on
from reluflow.engines.flow.problem import Problem
from reluflow.kernels.flow.classes import rows_of
from reluflow.kernels.flow.forces import (
    forces,
    on_planes,
    pulls,
    share_jacobian,
    shares,
    speeds,
    spread,
)

LOSSES = [rf.losses.Exponential(), rf.losses.Logistic()]


def problem_with(loss, seed=0, decay=0.0):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], 5)
    net = rf.Network(np.ones(2), np.ones((2, 2)))
    return Problem(rf.Dataset(rng.normal(size=(5, 2)), y), net, loss, "both", decay), rng


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_shares_and_their_jacobian_are_those_of_the_loss(loss, decay):
    problem, rng = problem_with(loss, decay=decay)
    y, law = problem.y, problem.law
    for size in (1.0, 30.0) if decay else (1.0, 30.0, 2000.0):
        h = size * rng.normal(size=(3, 5))
        c = shares(h, y, law)
        np.testing.assert_allclose(c, problem.forces(h), rtol=1e-12, atol=1e-300)
        np.testing.assert_array_equal(c, forces(h, problem.planes, problem.law))
        if decay:  # forces in time
            np.testing.assert_allclose(c, loss.forces(h, y), rtol=1e-12, atol=1e-300)
        else:
            np.testing.assert_allclose(np.abs(c).sum(axis=1), 1.0)
        for row, force in zip(h, c, strict=True):
            expected = problem.force_jacobian(row)
            bound = 1e-14 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(share_jacobian(row, force, y, law), expected, atol=bound)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_the_jacobian_of_shares_is_their_derivative(loss, decay):
    problem, rng = problem_with(loss, decay=decay)
    h, eps = rng.normal(size=5), 1e-6
    c = shares(h[None], problem.y, problem.law)[0]
    jacobian = share_jacobian(h, c, problem.y, problem.law)
    for k in range(5):
        ends = [h + s * eps * np.eye(5)[k] for s in (1, -1)]
        up, down = shares(np.array(ends), problem.y, problem.law)
        np.testing.assert_allclose(-(up - down) / (2 * eps), jacobian[:, k], atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_shares_are_the_slopes_of_the_loss_divided_by_their_sum(loss):
    problem, rng = problem_with(loss)
    h = 0.3 * rng.normal(size=5)
    slope = loss.forces(h, problem.y)
    np.testing.assert_allclose(
        forces(h[None], problem.planes, problem.law)[0], slope / np.abs(slope).sum(), rtol=1e-12
    )


def test_forces_of_the_square_loss_are_residuals():
    data = rf.Dataset(np.eye(3), np.array([1.0, -2.0, 0.5]))
    net = rf.Network(np.ones(2), np.ones((2, 3)))
    problem = Problem(data, net, rf.losses.Square(), "both")
    h = np.random.default_rng(0).normal(size=(2, 3))
    expected = rf.losses.Square().forces(h[0], problem.y)
    c = forces(h, problem.planes, problem.law)
    np.testing.assert_allclose(c[0], expected, rtol=1e-14)
    np.testing.assert_allclose(c, problem.forces(h), rtol=1e-14)


# ---------------------------------------------------------------------- planes and classes


def shared_planes(seed=1, d=3):
    """Five planes; x, 2x, a copy and -x on the first, an opposite pair on the second."""
    rng = np.random.default_rng(seed)
    owner = [0, 0, 1, 2, 0, 3, 1, 4, 0]
    length = [1.0, 2.0, 0.7, 1.3, -1.0, 0.4, -1.5, 2.0, 1.0]
    return planes_with(rng.normal(size=(5, d)), owner=owner, length=length), rng


def test_pulls_of_two_sided_planes_are_sums_over_the_points_of_each_side():
    planes, rng = shared_planes()
    c = rng.normal(size=(3, 9))
    low, high = on_planes(c, planes)
    np.testing.assert_allclose((low, high), pulls_on(c, planes), rtol=1e-14)
    assert (low[:, ~planes.both] == 0.0).all()
    np.testing.assert_allclose(high[:, 0], c[:, 0] + 2 * c[:, 1] + c[:, 8], rtol=1e-13)
    np.testing.assert_allclose(low[:, 0], -c[:, 4], rtol=1e-14)
    # the pull on a neuron off all planes is the sum of c x over its active points
    w = rng.normal(size=3)
    X = points_of(planes)
    above = planes.U @ w > 0
    g = np.where(above, high, low) @ planes.U
    np.testing.assert_allclose(g, c @ (X * (X @ w > 0)[:, None]), atol=1e-13)


def test_classes_feel_the_pulls_of_their_side_projected_where_they_slide():
    planes, rng = shared_planes()
    mode = rng.choice([0, 1, 2], size=(20, 5), p=[0.4, 0.4, 0.2]).astype(np.int8)
    rows = rows_of(mode, planes, np.zeros(20, dtype=bool))
    c = rng.normal(size=(2, 9))
    low, high = on_planes(c, planes)
    f = spread(low, high, rows)
    g, push = pulls(f, rows, planes.U)
    for k in range(len(rows.face)):
        face = rows.face[k]
        free = np.where(face == 1, high, np.where(face == 0, low, 0.0)) @ planes.U
        held = planes.U[face == 2]
        free = free - free @ np.linalg.pinv(held) @ held
        np.testing.assert_allclose(g[k], free, atol=1e-12)
        np.testing.assert_allclose(push[k], free @ planes.U.T, atol=1e-12)
        assert (push[k][:, face == 2] == 0.0).all()
    np.testing.assert_allclose(
        speeds(c[0], rows, planes), np.linalg.norm(g[:, 0], axis=1), rtol=1e-13
    )
