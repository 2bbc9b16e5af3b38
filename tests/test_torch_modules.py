"""PyTorch modules: read and built, here with a stand-in; with PyTorch itself where it is."""

import sys
from types import ModuleType

import numpy as np
import pytest

import reluflow as rf
from reluflow.errors import InputError, MissingExtraError


class Tensor:
    """As much of a tensor as is needed."""

    def __init__(self, values):
        self.values = np.array(values, dtype=float)
        self.shape = self.values.shape

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values

    def new_tensor(self, values):
        return Tensor(values)

    def copy_(self, other):
        assert self.shape == other.shape
        self.values[...] = other.values


class Module:
    layers = ()

    def children(self):
        return iter(self.layers)


class Linear(Module):
    def __init__(self, d, m, bias=True, dtype=None):
        rng = np.random.default_rng(d + 10 * m)
        self.weight = Tensor(rng.normal(size=(m, d)))
        self.bias = Tensor(rng.normal(size=m)) if bias else None

    def __call__(self, x):
        b = 0.0 if self.bias is None else self.bias.values
        return Tensor(x.values @ self.weight.values.T + b)


class ReLU(Module):
    def __call__(self, x):
        return Tensor(np.maximum(x.values, 0.0))


class LeakyReLU(Module):
    def __init__(self, negative_slope=0.01):
        self.negative_slope = negative_slope

    def __call__(self, x):
        return Tensor(np.where(x.values > 0.0, x.values, self.negative_slope * x.values))


class Tanh(Module):
    pass


class Sequential(Module):
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Hidden(Module):
    """A module whose forward method has the activation."""

    def __init__(self, activation, bias):
        self.activation = activation
        self.layers = (Linear(2, 5, bias=bias), Linear(5, 1, bias=False))

    def __call__(self, x):
        hidden, output = self.layers
        return output(Tensor(self.activation(hidden(x).values)))


@pytest.fixture(params=["stand-in", "torch"])
def nn(request, monkeypatch):
    """The layers, and a way to call a module on points."""
    if request.param == "torch":
        torch = pytest.importorskip("torch")
        return torch.nn, lambda f, X: f(torch.tensor(X, dtype=torch.float64)).detach().numpy()
    torch = ModuleType("torch")
    torch.nn = ModuleType("torch.nn")
    torch.float64, torch.tensor = float, lambda values, dtype: Tensor(values)
    torch.no_grad = lambda: pytest.MonkeyPatch.context()
    for layer in (Linear, LeakyReLU, ReLU, Sequential, Tanh):
        setattr(torch.nn, layer.__name__, layer)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch.nn, lambda f, X: f(Tensor(X)).values


@pytest.mark.parametrize("bias", [False, True])
def test_modules_are_read_and_built(nn, bias):
    _, call = nn
    net = rf.Network([2.0, -3.0], [[0.3, 0.4, 1.0], [0.1, -0.6, -0.2]], np.log(2.0), bias=bias)
    module = net.to_torch()
    X = np.random.default_rng(0).normal(size=(20, 2 if bias else 3))
    np.testing.assert_allclose(call(module, X).ravel(), net.predict(X), atol=1e-13)
    again = rf.Network.from_torch(module)
    assert again.bias is bias
    np.testing.assert_array_equal(again.W, net.W)
    np.testing.assert_array_equal(again.a, net.a)


def test_a_leaky_activation_keeps_its_slope(nn):
    layers, call = nn
    net = rf.Network([2.0, -3.0], [[0.3, 0.4, 1.0], [0.1, -0.6, -0.2]], slope=0.2, bias=True)
    module = net.to_torch()
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(call(module, X).ravel(), net.predict(X), atol=1e-13)
    assert rf.Network.from_torch(module) == net
    default = layers.Sequential(
        layers.Linear(2, 3), layers.LeakyReLU(), layers.Linear(3, 1, bias=False)
    )
    assert rf.Network.from_torch(default).slope == 0.01


def test_default_layers_are_read_with_their_bias(nn):
    layers, _ = nn
    module = layers.Sequential(
        layers.Sequential(layers.Linear(3, 7)), layers.ReLU(), layers.Linear(7, 1, bias=False)
    )
    net = rf.Network.from_torch(module)
    assert (net.width, net.d, net.bias) == (7, 4, True)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: t.Sequential(t.Linear(2, 3), t.Tanh(), t.Linear(3, 1)), "has a layer Tanh"),
        (
            lambda t: t.Sequential(t.Linear(2, 3), t.ReLU(), t.Linear(3, 1)),
            r"output layer of the module has a bias.*bias=False",
        ),
        (
            lambda t: t.Sequential(t.Linear(2, 3), t.ReLU(), t.Linear(3, 2, bias=False)),
            "the module has 2 outputs",
        ),
        (
            lambda t: t.Sequential(
                t.Linear(2, 3), t.ReLU(), t.Linear(3, 3), t.ReLU(), t.Linear(3, 1)
            ),
            "3 Linear and 2 ReLU layers; reluflow has networks with one hidden layer",
        ),
        (lambda t: t.Sequential(t.Linear(2, 1), t.Linear(1, 1), t.ReLU()), "in another order"),
        (lambda t: t.Linear(2, 1), "1 Linear and 0 ReLU"),
        (
            lambda t: t.Sequential(t.Linear(2, 3), t.LeakyReLU(1.5), t.Linear(3, 1, bias=False)),
            r"LeakyReLU\(1\.5\); reluflow has slopes from 0 to below 1",
        ),
        (lambda t: [1, 2], "list is no PyTorch module"),
    ],
)
def test_other_modules_are_refused(nn, build, message):
    with pytest.raises(InputError, match=message):
        rf.Network.from_torch(build(nn[0]))


@pytest.mark.parametrize("bias", [False, True])
def test_an_activation_in_the_forward_method_is_tried(bias):
    module = Hidden(lambda z: np.maximum(z, 0.0), bias)
    assert rf.Network.from_torch(module).bias is bias
    for other in (np.tanh, lambda z: np.maximum(z, 0.01 * z), lambda z: z):
        with pytest.raises(InputError, match="does not compute what two Linear layers"):
            rf.Network.from_torch(Hidden(other, bias))


def test_without_pytorch_nothing_is_built(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="pip install torch"):
        rf.Network([1.0], [[1.0]]).to_torch()
