"""Orthonormal points in any basis: rounding of a grown neuron revives none of its points."""

import numpy as np
import pytest

import reluflow as rf


def problem(seed, n=10, d=11, m=12, log_scale=-300.0):
    data = rf.datasets.orthonormal(n, d=d, rotate=True, seed=seed)
    net = rf.networks.balanced(d, m, log_scale=log_scale, directions="sphere", seed=seed + 100)
    return data, net


def in_axes(data, net):
    """The same problem with the points on the axes."""
    c = net.mantissa.W @ data.X.T
    rest = np.linalg.norm(net.mantissa.W - c @ data.X, axis=1)
    axes = rf.Dataset(np.eye(data.n, data.n + 1), data.y)
    return axes, rf.Network(net.mantissa.a, np.column_stack([c, rest]), net.log_scale)


@pytest.mark.parametrize("seed", [3, 4, 13])
def test_no_point_is_revived_and_the_end_is_that_of_the_axes(seed):
    data, net = problem(seed)
    turned, plain = rf.flow(data, net), rf.flow(*in_axes(data, net))
    # where all forces are rounding a slide may be noted, but no product leaves zero
    assert not (turned.events["kind"] == "activate").any()
    assert turned.status == plain.status
    assert turned.final.squared_norm == pytest.approx(plain.final.squared_norm, rel=1e-7)
    h = turned.final.predict(data.X)
    assert h == pytest.approx(plain.final.predict(plain.data.X), abs=1e-7)
