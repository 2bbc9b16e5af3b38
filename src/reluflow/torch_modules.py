"""PyTorch modules of two layers: read and built without reluflow depending on PyTorch.

A module is read by the names of its layers. One whose forward method hides its activation is
accepted if it computes what the ReLU network of its weights does (a leaky one has to show it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.checks import Array
from reluflow.errors import InputError, MissingExtraError
from reluflow.wording import shown

if TYPE_CHECKING:
    from reluflow.network import Network

WANTED = "Sequential(Linear(d, m), ReLU(), Linear(m, 1, bias=False))"
_PASSED = ("Identity", "Flatten")
_ACTIVATIONS = ("ReLU", "LeakyReLU")


def read(module: Any) -> tuple[Array, Array, bool, float]:
    """Output and hidden weights (m,), (m, d), whether the last of these are a bias, the slope."""
    layers = [layer for layer in _leaves(module) if type(layer).__name__ not in _PASSED]
    linear = [layer for layer in layers if type(layer).__name__ == "Linear"]
    others = [layer for layer in layers if type(layer).__name__ != "Linear"]
    foreign = [layer for layer in others if type(layer).__name__ not in _ACTIVATIONS]
    if foreign:
        raise InputError(
            f"the module has a layer {type(foreign[0]).__name__}; reluflow has networks of ReLU "
            f"and LeakyReLU neurons only. Pass {WANTED}."
        )
    if len(linear) != 2 or len(others) > 1:
        raise InputError(
            f"the module has {len(linear)} Linear and {len(others)} ReLU layers; reluflow has "
            f"networks with one hidden layer. Pass {WANTED}."
        )
    if others and layers != [linear[0], others[0], linear[1]]:
        raise InputError(f"the layers of the module are in another order. Pass {WANTED}.")
    hidden, output = (_numbers(layer.weight) for layer in linear)
    if output.shape != (1, hidden.shape[0]):
        raise InputError(
            f"the module has {output.shape[0]} outputs; reluflow has networks with one. "
            "Train a network for each output."
        )
    if linear[1].bias is not None:
        raise InputError(
            "the output layer of the module has a bias, which reluflow does not train. Build it "
            "with Linear(m, 1, bias=False); a constant can be subtracted from the labels instead."
        )
    bias = linear[0].bias is not None
    W = np.column_stack([hidden, _numbers(linear[0].bias)]) if bias else hidden
    if not others:
        _compare(module, linear[0].weight, output[0], W, bias)
    return output[0], W, bias, _slope(others[0]) if others else 0.0


def _slope(layer: Any) -> float:
    if type(layer).__name__ == "ReLU":
        return 0.0
    slope = float(layer.negative_slope)
    if not 0.0 <= slope < 1.0:
        raise InputError(
            f"the module has LeakyReLU({shown(slope)}); reluflow has slopes from 0 to below 1. "
            "Change it."
        )
    return slope


def build(net: Network) -> Any:
    """The module with the weights of a network, in double precision."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError("to_torch needs PyTorch. Install it: pip install torch") from None
    a, W, bias = net.a, net.W, net.bias
    if not (np.isfinite(a).all() and np.isfinite(W).all()):
        raise InputError("weights are above the range of floats. Choose a smaller scale.")
    m, d = W.shape
    inputs = W[:, :-1] if bias else W
    hidden = torch.nn.Linear(d - bias, m, bias=bias, dtype=torch.float64)
    output = torch.nn.Linear(m, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        hidden.weight.copy_(torch.tensor(inputs.tolist(), dtype=torch.float64))
        output.weight.copy_(torch.tensor([a.tolist()], dtype=torch.float64))
        if bias:
            hidden.bias.copy_(torch.tensor(W[:, -1].tolist(), dtype=torch.float64))
    bend = torch.nn.LeakyReLU(net.slope) if net.slope else torch.nn.ReLU()
    return torch.nn.Sequential(hidden, bend, output)


def _leaves(module: Any) -> list[Any]:
    """The layers of a module, those of nested modules in their places."""
    if not hasattr(module, "children"):
        raise InputError(f"{type(module).__name__} is no PyTorch module. Pass {WANTED}.")
    inner = list(module.children())
    return [leaf for child in inner for leaf in _leaves(child)] if inner else [module]


def _numbers(parameter: Any) -> Array:
    return np.asarray(parameter.detach().cpu().numpy(), dtype=np.float64)


def _compare(module: Any, like: Any, a: Array, W: Array, bias: bool) -> None:
    """Refuse a module that does not compute what the ReLU network of its weights does."""
    points = np.random.default_rng(0).normal(size=(32, W.shape[1] - bias))
    full = np.column_stack([points, np.ones(len(points))]) if bias else points
    expected = np.maximum(full @ W.T, 0.0) @ a
    size = np.abs(full) @ np.abs(W).T @ np.abs(a)
    found = _numbers(module(like.detach().new_tensor(points.tolist()))).ravel()
    if found.shape != expected.shape or np.any(np.abs(found - expected) > 1e-4 * size):
        raise InputError(
            "the module does not compute what two Linear layers with a ReLU between them would; "
            f"reluflow has no other networks. Pass {WANTED}."
        )
