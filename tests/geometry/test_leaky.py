r"""Measurements of leaky networks, beside ReLU networks and beside differences.

A leaky neuron is two ReLU neurons, :math:`\varphi(z) = relu(z) - \alpha\, relu(-z)`: as functions a
leaky network and its double are the same.
"""

import numpy as np
import pytest

import reluflow as rf
from geometry.helpers import Uniform
from reluflow import geometry
from reluflow.errors import InputError


def double(net):
    a = np.concatenate([net.a, -net.slope * net.a])
    return rf.Network(a, np.concatenate([net.W, -net.W]))


def on_a_line(seed, width=7, slope=0.3):
    rng = np.random.default_rng(seed)
    return rf.Network(rng.normal(size=width), rng.normal(size=(width, 2)), slope=slope)


def in_space(seed, n=6, m=4, d=3, labels="real", slope=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = rng.normal(size=n) if labels == "real" else rng.choice([-1.0, 1.0], n)
    net = rf.Network(rng.normal(size=m), rng.normal(size=(m, d)), slope=slope)
    return rf.Dataset(X, y), net


@pytest.mark.parametrize("seed", range(8))
def test_functions_on_a_line_are_those_of_the_double(seed):
    net, teacher = on_a_line(seed), on_a_line(seed + 100, 3, 0.6)
    found, same = geometry.kinks(net), geometry.kinks(double(net))
    np.testing.assert_allclose(found.positions, same.positions, rtol=1e-12)
    np.testing.assert_allclose(found.jumps, same.jumps, rtol=1e-12)
    assert [neurons.tolist() for neurons in found.neurons] == [
        np.unique(neurons % net.width).tolist() for neurons in same.neurons
    ]
    assert geometry.linear_regions(net) == geometry.linear_regions(double(net)) == 8
    assert geometry.convexity_changes(net) == geometry.convexity_changes(double(net))
    for interval in ((-np.inf, np.inf), (-2.0, 3.0)):
        cuts = geometry.sign_changes(net, interval)
        np.testing.assert_allclose(cuts, geometry.sign_changes(double(net), interval), rtol=1e-9)
        np.testing.assert_allclose(net.predict(np.c_[cuts, np.ones(len(cuts))]), 0.0, atol=1e-9)
    density, loss = Uniform(-2.0, 3.0), rf.losses.Logistic()
    error = geometry.population_error(net, teacher, density)
    assert error == pytest.approx(
        geometry.population_error(double(net), double(teacher), density), abs=1e-12
    )
    value = geometry.population_loss(net, teacher, density, loss)
    assert value == pytest.approx(
        geometry.population_loss(double(net), double(teacher), density, loss), rel=1e-10
    )


def test_relative_jumps_are_shares_of_all_jumps():
    net = on_a_line(0)
    shares = geometry.kinks(net).relative_jumps
    assert np.abs(shares).sum() == pytest.approx(1.0)
    relu = geometry.kinks(net.with_slope(0.0))
    np.testing.assert_allclose(shares, relu.relative_jumps, rtol=1e-12)
    np.testing.assert_allclose(geometry.kinks(net).jumps, 0.7 * relu.jumps, rtol=1e-12)


def test_constant_neurons_leak_too():
    net = rf.Network([2.0, 1.0], [[0.0, -1.0], [1.0, 0.0]], slope=0.25)  # -1/2 + phi(x)
    np.testing.assert_allclose(geometry.sign_changes(net), [0.5])


def outputs(net, X):
    """The outputs as a function of all weights, neuron by neuron."""
    m, d = net.W.shape

    def h(theta):
        a, W = theta[:m], theta[m:].reshape(m, d)
        return rf.Network(a, W, slope=net.slope).predict(X)

    return h, np.concatenate([net.a, net.W.ravel()])


def jacobian(net, X, eps=1e-6):
    h, at = outputs(net, X)
    return np.array([(h(at + e) - h(at - e)) / (2 * eps) for e in eps * np.eye(len(at))]).T


@pytest.mark.parametrize("seed", range(5))
def test_the_tangent_kernel_is_made_of_gradients(seed):
    data, net = in_space(seed)
    J = jacobian(net, data.X)
    kernel = geometry.tangent_kernel(data, net)
    np.testing.assert_allclose(kernel.matrix, J @ J.T / data.n, rtol=1e-6, atol=1e-8)
    hidden = J[:, net.width :]
    np.testing.assert_allclose(
        geometry.tangent_kernel(data, net, train="hidden").matrix,
        hidden @ hidden.T / data.n, rtol=1e-6, atol=1e-8,
    )  # fmt: skip
    given = geometry.tangent_kernel(data, net, active=(data.X @ net.W.T > 0).T)
    np.testing.assert_array_equal(given.matrix, kernel.matrix)


@pytest.mark.parametrize("loss", ["square", "logistic"])
def test_the_hessian_is_that_of_the_loss(loss):
    data, net = in_space(1, labels="real" if loss == "square" else "signs")
    h, at = outputs(net, data.X)
    value = rf.losses.named(loss).value
    eps, unit = 1e-4, np.eye(len(at))

    def second(p, q):
        f = [value(h(at + eps * (s * unit[p] + t * unit[q])), data.y) for s, t in SIGNS]
        return (f[0] - f[1] - f[2] + f[3]) / (4 * eps**2)

    SIGNS = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    H = np.array([[second(p, q) for q in range(len(at))] for p in range(len(at))])
    found = geometry.hessian_spectrum(data, net, len(at), loss=loss)
    np.testing.assert_allclose(found.smallest, np.linalg.eigvalsh(H), atol=1e-5)


def test_margins_and_kkt_points():
    data, net = in_space(2, labels="signs")
    size = net.a @ net.a + (net.W**2).sum()
    q = data.y * net.predict(data.X)
    assert geometry.margin(data, net) == pytest.approx(q.min() / size)
    smooth = geometry.smoothed_margin(data, net, rf.losses.Exponential())
    assert smooth == pytest.approx(-np.log(np.exp(-q).sum()) / size)
    # one point, one neuron on its inactive side: |w| = |a| along -x is a KKT point
    single = rf.Dataset([[2.0, 0.0]], [-1.0])
    there = rf.Network([1.0], [[-1.0, 0.0]], slope=0.3)
    found = geometry.kkt(single, there)
    assert found.eps_rel < 1e-12
    np.testing.assert_allclose(found.activations, [[0.3]])
    # |theta|^2 = 2 lambda at margin 1: 2 a^2 with 0.3 * 2 a^2 = 1
    np.testing.assert_allclose(found.multipliers, [1.0 / 0.6])


def test_a_kink_of_a_leaky_network_has_subgradients_from_its_slope_to_one():
    # two points on either side of the neuron's plane hold it; a third lies on the plane
    data = rf.Dataset([[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]], [1.0, 1.0, 1.0])
    net = rf.Network([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], slope=0.1)
    found = geometry.kkt(data, net)
    assert found.activations.min() >= 0.1
    assert found.activations.max() <= 1.0


def test_kinds_of_points():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    off = rf.Network([1.0], [[-1.0, -1.0]], slope=0.2)
    assert geometry.stationary_point(data, off.with_slope(0.0)).kind == "dead"
    assert geometry.stationary_point(data, off).kind == "moving"
    zero = rf.Network([0.0], [[0.0, 0.0]], slope=0.2)
    assert geometry.stationary_point(data, zero).kind == "saddle"
    fits = rf.Network([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], slope=0.2)
    assert geometry.stationary_point(data, fits).kind == "fit"
    # one neuron, labels it cannot fit: the best it can do is a minimum
    crossed = rf.Dataset([[1.0, 0.0], [-1.0, 0.5], [0.3, -1.0]], [1.0, 1.0, -1.0])
    run = rf.descend(crossed, rf.Network([1.0], [[0.5, 0.1]], slope=0.2), lr=0.2, steps=4000)
    found = geometry.stationary_point(crossed, run.final)
    assert found.kind == "minimum"
    assert geometry.hessian_spectrum(crossed, run.final).smallest[0] > -1e-8


def test_a_neuron_held_on_a_plane_is_held_by_a_share_above_the_slope():
    # the output weight is fixed by balance: on the plane of point 0 the push of that point ends
    data = rf.Dataset([[0.0, 1.0], [1.0, 0.0]], [-1.0, 1.0])
    net = rf.Network([1.0], [[1.0, 0.0]], slope=0.2)  # h = (0, 1): point 0 is not fitted
    found = geometry.stationary_point(data, net)
    # its push (0, -1/2) acts with a share of at least 0.2: nothing can hold that
    assert found.kind == "moving"
    assert geometry.stationary_point(data, net.with_slope(0.0)).kind == "minimum"


@pytest.mark.parametrize("name", ["yardsticks", "bundle", "saddle_to_saddle", "alternating"])
def test_limits_are_for_relu(name):
    data = rf.datasets.orthonormal(3, labels="positive", seed=0)
    net = rf.networks.balanced(3, 5, log_scale=-9.0, slope=0.3, seed=1)
    with pytest.raises(InputError, match=f"`{name}` is for ReLU networks; .* slope 0.3"):
        getattr(rf.limits, name)(data, net)


def test_predictions_and_claims_say_so():
    data = rf.datasets.orthonormal(3, labels="positive", seed=0)
    net = rf.networks.balanced(3, 5, log_scale=-9.0, slope=0.3, seed=1)
    found = rf.limits.predict(data, net)
    assert found.network is None
    assert "the network is leaky (slope 0.3)" in found.reason
    run = rf.descend(data, net, lr=0.1, steps=3)
    for subject in ((data, net), run, [run, run]):
        with pytest.raises(InputError, match="every claim is for ReLU networks"):
            rf.theory.check("orthogonal", subject)
