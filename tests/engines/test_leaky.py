"""Leaky networks in training: descent beside a plain loop, fixed features, and files of runs."""

import numpy as np
import pytest

import reluflow as rf
from reluflow import files
from reluflow.departures import departure
from reluflow.errors import FileError, InputError
from reluflow.trajectory import from_parts
from reluflow.verify import verify

LOSSES = {name: rf.losses.named(name) for name in ("square", "logistic", "exponential")}
LR = 0.01


def problem(seed, loss="square", slope=None):
    rng = np.random.default_rng(seed)
    n, d, m = (int(rng.integers(1, high)) for high in (10, 8, 20))
    X = rng.normal(size=(n, d))
    y = rng.normal(size=n) if loss == "square" else rng.choice([-1.0, 1.0], n)
    slope = float(rng.uniform(0.01, 0.99)) if slope is None else slope
    net = rf.Network(0.5 * rng.normal(size=m), 0.5 * rng.normal(size=(m, d)), slope=slope)
    return rf.Dataset(X, y), net


def step(X, y, a, W, loss, slope):
    """Minus the gradients of both layers."""
    z = X @ W.T
    theta = np.where(z > 0.0, 1.0, slope)
    c = loss.forces((theta * z) @ a, y)
    return (theta * z).T @ c, a[:, None] * ((theta * c[:, None]).T @ X)


def is_close(net, a, W):
    """Whether the weights of a network are these, to 1e-12 of the largest."""
    size = max(np.abs(a).max(), np.abs(W).max())
    return max(np.abs(net.a - a).max(), np.abs(net.W - W).max()) <= 1e-12 * size


@pytest.mark.parametrize("train", ["both", "hidden", "output"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_equals_a_plain_loop(loss, train):
    for seed in range(6):
        data, net = problem(seed, loss)
        options = {"lr": LR, "steps": 40, "loss": loss, "train": train}
        run = rf.descend(data, net, record=np.arange(41), **options)
        a, W = net.a, net.W
        for k in range(len(run.t)):
            assert is_close(run.network(k), a, W)
            da, dW = step(data.X, data.y, a, W, LOSSES[loss], net.slope)
            a, W = a + LR * da * (train != "hidden"), W + LR * dW * (train != "output")


@pytest.mark.parametrize("options", [{"batch": 3, "seed": 1}, {"momentum": 0.9}, {"decay": 0.2}])
def test_descent_as_practised_equals_a_plain_loop(options):
    for seed in range(6):
        data, net = problem(seed)
        known = {**options, "batch": min(3, data.n)} if "batch" in options else options
        run = rf.descend(data, net, lr=LR, steps=30, **known)
        a, W, va, vW = net.a, net.W, 0.0, 0.0
        for k in range(30):
            points, y = rf.batch_of(run, k)
            da, dW = step(data.X[points], y, a, W, LOSSES["square"], net.slope)
            mu, beta = options.get("decay", 0.0), options.get("momentum", 0.0)
            va, vW = beta * va + LR * (da - mu * a), beta * vW + LR * (dW - mu * W)
            a, W = a + va, W + vW
        assert is_close(run.final, a, W)


def test_tiny_scales_are_trained_like_ordinary_ones():
    data, net = problem(3)
    near, deep = net.with_scale(-40.0), net.with_scale(-4000.0)
    one, two = (rf.descend(data, start, lr=LR, steps=50).final for start in (near, deep))
    np.testing.assert_allclose(two.directions, one.directions, rtol=1e-12)
    np.testing.assert_allclose(two.log_norms + 3960.0, one.log_norms, rtol=1e-12)


def test_no_neuron_is_dead():
    data = rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
    net = rf.Network([1.0], [[-1.0, -1.0]], slope=0.3)
    assert rf.descend(data, net, lr=LR, steps=5).final != net
    assert rf.descend(data, net.with_slope(0.0), lr=LR, steps=5).final == net.with_slope(0.0)


@pytest.mark.parametrize("options", [{}, {"train": "hidden"}, {"momentum": 0.5}])
def test_a_run_is_repeated_and_saved_bit_for_bit(options, tmp_path):
    data, net = problem(2)
    given = {"lr": LR, "steps": 40, "record": 5, **options}
    run = rf.descend(data, net, **given)
    run.save(tmp_path / "run.rf")
    again = rf.load(tmp_path / "run.rf")
    assert verify(tmp_path / "run.rf").is_sound
    assert again.net == net
    assert again.final == run.final
    assert again.final.slope == again.network(2).slope == again.at(t=17).slope == net.slope
    exact = rf.descend(data, net, **{**given, "record": [17]})
    assert again.at(t=17) == exact.network(0)


def test_a_run_file_whose_slopes_differ_is_refused(tmp_path):
    data, net = problem(2)
    run = rf.descend(data, net, lr=LR, steps=3)
    manifest, arrays = files.decode(run.to_bytes(), None, "run")
    for name in ("net.slope", "final.slope"):
        with pytest.raises(InputError, match="slope` differ"):
            from_parts(manifest["fields"], {**arrays, name: np.array(0.5)})
    with pytest.raises(InputError, match=r"`net\.slope` is .*outside its range"):
        from_parts(manifest["fields"], {**arrays, "net.slope": np.array(-0.5)})
    # another slope has other outputs, so the losses of the records do not fit
    both = {"net.slope": np.array(0.01), "final.slope": np.array(0.01)}
    files.write(tmp_path / "run.rf", "trajectory", manifest["fields"], {**arrays, **both})
    with pytest.raises(FileError, match="has the log-loss"):
        rf.load(tmp_path / "run.rf")


def test_a_leaky_run_departs_from_plain_training():
    data, net = problem(2, slope=0.25)
    run = rf.descend(data, net, lr=LR, steps=3, momentum=0.5)
    assert departure(run) == "a leaky activation of slope 0.25, momentum 0.5"


def test_a_limit_of_descent_is_certified_for_relu_only():
    data, net = problem(2, slope=0.25)
    options = {"lr": LR, "steps": np.inf, "train": "hidden"}
    with pytest.raises(InputError, match=r"of a leaky network \(slope 0.25\): no limit"):
        rf.descend(data, net, **options)
    run = rf.descend(data, net, **options, max_seconds=0.01)
    assert run.status == "budget"


# ------------------------------------------------------------------------------ fixed features


def features(net, X):
    z = X @ net.W.T
    return np.where(z > 0.0, z, net.slope * z)


@pytest.mark.parametrize("seed", range(5))
def test_the_output_layer_alone_ends_in_the_nearest_fit(seed):
    data, net = problem(seed)
    Phi = features(net, data.X)
    a = net.a + np.linalg.pinv(Phi) @ (data.y - Phi @ net.a)
    run = rf.flow(data, net, train="output")
    np.testing.assert_allclose(run.final.a, a, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(rf.limits.kernel(data, net, train="output").network.a, run.final.a)
    assert run.final.slope == net.slope


@pytest.mark.parametrize("loss", LOSSES)
def test_the_tangent_is_that_of_the_network(loss):
    data, net = problem(4, loss, slope=0.3)
    run = rf.flow(data, net, train="linearised", loss=loss, t_end=1.0, record=[0.0, 1.0])
    a, W = run.states["a"][-1] - net.a, run.states["W"][-1] - net.W
    z = data.X @ net.W.T
    inner = (np.where(z > 0.0, 1.0, 0.3) * net.a * (data.X @ W.T)).sum(axis=1)
    tangent = net.predict(data.X) + features(net, data.X) @ a + inner
    np.testing.assert_allclose(run.states["outputs"][-1], tangent, atol=1e-12)
    eps = 1e-6  # and it is the derivative of the outputs
    moved = rf.Network(net.a + eps * a, net.W + eps * W, slope=0.3).predict(data.X)
    np.testing.assert_allclose(
        (moved - net.predict(data.X)) / eps, tangent - net.predict(data.X), atol=1e-4
    )
    limit = rf.limits.kernel(data, net, loss=loss) if loss == "square" else None
    if limit is not None:
        np.testing.assert_allclose(limit.predict(data.X), limit.outputs, atol=1e-10)
