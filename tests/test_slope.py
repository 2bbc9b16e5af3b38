"""Leaky networks as values: the slope acts on outputs, and nothing that copies a network loses it.

``tests/engines/test_leaky.py`` trains them.
"""

import inspect
import pickle

import mpmath
import numpy as np
import pytest

import reluflow as rf
from reluflow import builders, files, spec
from reluflow.errors import FileError, InputError
from reluflow.summaries import network as summary
from reluflow.verify import verify

LOG_SCALES = [-1e6, -20.0, 0.0, 200.0]


def sample(seed=0, width=6, d=3, n=5, **options):
    rng = np.random.default_rng(seed)
    net = rf.Network(rng.normal(size=width), rng.normal(size=(width, d)), **options)
    return net, rng.normal(size=(n, d))


@pytest.mark.parametrize("log_scale", LOG_SCALES)
def test_outputs_against_sixty_digits(log_scale):
    net, X = sample(log_scale=log_scale, slope=0.3)
    logs, signs = net.log_predict(X)
    with mpmath.workdps(60):
        for i, x in enumerate(X):
            total = mpmath.mpf(0)
            for a, w in zip(net.mantissa.a, net.mantissa.W, strict=True):
                z = mpmath.fdot(map(mpmath.mpf, w), map(mpmath.mpf, x))
                total += mpmath.mpf(a) * (z if z > 0 else mpmath.mpf(0.3) * z)
            assert signs[i] == mpmath.sign(total)
            exact = mpmath.log(abs(total)) + 2 * mpmath.mpf(log_scale)
            assert abs(logs[i] - exact) < 1e-13 + 1e-15 * abs(log_scale)


def test_plain_outputs_are_those_of_the_logarithms():
    net, X = sample(slope=0.3, log_scale=-2.0)
    logs, signs = net.log_predict(X)
    np.testing.assert_allclose(net.predict(X), signs * np.exp(logs), rtol=1e-13)


def test_a_leaky_network_is_a_relu_network_and_a_linear_map():
    net, X = sample(slope=0.25)
    relu, linear = net.with_slope(0.0).predict(X), X @ (net.a @ net.W)
    np.testing.assert_allclose(net.predict(X), 0.75 * relu + 0.25 * linear, atol=1e-14)


def test_no_slope_is_relu_bit_for_bit():
    net, X = sample(log_scale=-3.0)
    assert net.slope == 0.0
    zero, _ = sample(log_scale=-3.0, slope=-0.0)
    assert zero == net
    assert zero.to_bytes() == net.to_bytes()
    np.testing.assert_array_equal(
        net.predict(X), np.maximum(X @ net.mantissa.W.T, 0.0) @ (net.mantissa.a * np.exp(-6.0))
    )
    assert "slope" not in net.to_arrays()


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.with_scale(-7.0),
        lambda net: net.flat(),
        lambda net: net.with_bias(),
        lambda net: pickle.loads(pickle.dumps(net)),
        lambda net: rf.Network.from_arrays(net.to_arrays()),
        lambda net: net.with_slope(0.5).with_slope(0.3),
    ],
)
def test_copies_keep_the_slope(change):
    net, _ = sample(slope=0.3)
    assert change(net).slope == 0.3


def test_equality_and_texts_know_the_slope():
    net, _ = sample(slope=0.3)
    assert net != net.with_slope(0.0)
    assert net != net.with_slope(0.2)
    assert net.with_slope(0.0) != net
    assert "slope=0.3" in repr(net)
    assert "slope below zero" in summary(net)
    assert "slope" not in repr(net.with_slope(0.0)) + summary(net.with_slope(0.0))


@pytest.mark.parametrize(
    ("slope", "message"),
    [
        (-0.1, "`slope` is -0.1; it must be at least 0"),
        (1.0, "`slope` is 1; it must be below 1"),
        (np.nan, "`slope` is nan"),
        ("steep", "`slope` is 'steep', not a number"),
        (None, "`slope` is None, not a number"),
        (True, "`slope` is True, not a number"),
    ],
)
def test_refusals(slope, message):
    with pytest.raises(InputError, match=message):
        rf.Network([1.0], [[1.0]], slope=slope)


def test_files_keep_the_slope(tmp_path):
    net, _ = sample(slope=0.3)
    net.save(tmp_path / "net.rf")
    assert rf.Network.load(tmp_path / "net.rf") == net
    assert verify(tmp_path / "net.rf").is_sound


@pytest.mark.parametrize("slope", [np.array(1.0), np.array([0.1]), np.array("x"), np.array(np.nan)])
def test_a_file_with_no_slope_there_is_refused(slope, tmp_path):
    files.write(tmp_path / "net.rf", "network", {}, sample()[0].to_arrays() | {"slope": slope})
    with pytest.raises(FileError, match=r"whole but .*`slope`"):
        rf.Network.load(tmp_path / "net.rf")


@pytest.mark.parametrize("name", builders.initialisations())
def test_every_initialisation_takes_a_slope(name):
    function = builders.initialisations()[name]
    given = {"d": 3, "width": 2, "seed": 0, "ratio": 2.0, "sigma_hidden": 1.0, "sigma_output": 1.0}
    given |= {"data": rf.Dataset(np.eye(3), np.ones(3)), "eps": 0.1, "signs": [1, -1]}
    known = {key: given[key] for key in inspect.signature(function).parameters if key in given}
    assert function(**known, slope=0.3) == function(**known).with_slope(0.3)


DOCUMENT = """
[data]
X = [[1.0, 0.0], [0.0, 1.0]]
y = [1.0, -1.0]
[network]
{}
[engine]
name = "descent"
lr = 0.1
steps = 1
"""


def test_documents_have_a_slope(tmp_path):
    drawn = spec.parse(DOCUMENT.format('init = "balanced"\nwidth = 3\nslope = 0.3'))
    given = spec.parse(DOCUMENT.format("a = [1.0]\nW = [[1.0, 2.0]]\nslope = 0.3"))
    given.net.save(tmp_path / "net.rf")
    read = spec.parse(DOCUMENT.format('file = "net.rf"'), folder=tmp_path)
    assert drawn.net.slope == given.net.slope == read.net.slope == 0.3
    plain = spec.parse(DOCUMENT.format("a = [1.0]\nW = [[1.0, 2.0]]"))
    assert plain.inputs()["network"] != given.inputs()["network"]
    with pytest.raises(InputError, match=r"`slope` is 1.5.*at `\$\.network`"):
        spec.parse(DOCUMENT.format("a = [1.0]\nW = [[1.0, 2.0]]\nslope = 1.5"))
