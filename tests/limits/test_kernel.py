"""The limit of the linearised network beside least squares and an independent solver."""

import numpy as np
import pytest

import reluflow as rf


def drawn(n, d, m, seed, classes=False):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n) if classes else rng.normal(size=n)
    data = rf.Dataset(rng.normal(size=(n, d)), y)
    return data, rf.Network(rng.normal(size=m), rng.normal(size=(m, d)))


def features(data, net, kind):
    z = data.X @ net.W.T
    gates = (z > 0.0) * net.a
    inner = (gates[:, :, None] * data.X[:, None, :]).reshape(data.n, -1)
    outer = np.maximum(z, 0.0)
    return outer if kind == "output" else np.hstack([outer, inner])


@pytest.mark.parametrize("kind", ["output", "linearised"])
def test_it_is_the_end_of_the_flow_and_the_nearest_fit(kind):
    data, net = drawn(5, 3, 20, seed=0)
    found = rf.limits.kernel(data, net, train=kind)
    assert found.certified
    assert found.interpolates
    run = rf.flow(data, net, train=kind)
    np.testing.assert_allclose(found.network.W, run.final.W, atol=1e-12)
    J = features(data, net, kind)
    z = np.linalg.pinv(J) @ (data.y - net.predict(data.X))
    np.testing.assert_allclose(found.network.a, net.a + z[:20], atol=1e-11)
    np.testing.assert_allclose(found.predict(data.X), data.y, atol=1e-11)
    np.testing.assert_allclose(found.outputs, data.y, atol=1e-11)


def test_labels_that_cannot_be_fitted_leave_a_loss():
    data, net = drawn(12, 2, 2, seed=1)
    found = rf.limits.kernel(data, net)
    assert not found.interpolates
    run = rf.flow(data, net, train="linearised")
    assert found.log_loss == pytest.approx(run.log_loss[-1], abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["output", "linearised"])
def test_the_direction_is_the_largest_margin(seed, kind):
    from scipy.optimize import minimize

    data, net = drawn(5, 3, 20, seed=seed, classes=True)
    found = rf.limits.kernel(data, net, loss="logistic", train=kind)
    assert found.certified
    J = data.y[:, None] * features(data, net, kind)
    K = J @ J.T

    def dual(alpha):
        return 0.5 * alpha @ K @ alpha - alpha.sum(), K @ alpha - 1.0

    best = minimize(
        dual,
        np.ones(5) / np.trace(K),
        jac=True,
        bounds=[(0.0, None)] * 5,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10_000},
    )
    z = J.T @ best.x
    size = found.direction.squared_norm if kind == "linearised" else (found.direction.a**2).sum()
    assert size == pytest.approx(z @ z, rel=1e-6)
    np.testing.assert_allclose(found.direction.a, z[:20], atol=1e-4 * np.abs(z).max())
    margins = data.y * found.predict(data.X)
    assert margins.min() == pytest.approx(1.0, abs=1e-9)


def test_points_that_no_weights_classify_have_no_direction():
    data = rf.Dataset([[1.0], [1.0]], [1.0, -1.0])
    with pytest.raises(rf.InputError, match="no weights classify all points"):
        rf.limits.kernel(data, rf.Network([1.0], [[1.0]]), loss="exponential")


def test_rates_weigh_the_layers():
    data, net = drawn(5, 3, 20, seed=0)
    found = rf.limits.kernel(data, net, rates=(1e-12, 1.0))
    alone = rf.limits.kernel(data, net, train="output")
    np.testing.assert_allclose(found.network.a, alone.network.a, atol=1e-8)
