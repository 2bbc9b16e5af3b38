r"""Network: a two-layer ReLU network whose neurons carry a log scale.

.. math:: h(x) = \sum_j e^{s_j + p_j} a_j \, \mathrm{relu}(W_j \cdot x)

``s_j = log_scale[j]`` scales the hidden weights, ``p_j = log_scale_out[j]`` the output weight.
The split between scale and direction is kept exactly as given: theory speaks of
``lam = exp(log_scale)`` and ``z_j = W_j`` separately.
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow import files
from reluflow.checks import Array, Frozen, read_only, real_array
from reluflow.errors import InputError


class Network(Frozen):
    r"""Neurons ``(a_j, W_j)`` with per-neuron log scales of any size (-1e6 is ordinary).

    Parameters
    ----------
    a : (m,) array
        Output weights before scaling.
    W : (m, d) array
        Hidden weights before scaling, one neuron a row.
    log_scale : float or (m,) array
        Hidden weights are ``exp(log_scale_j) W_j``.
    log_scale_out : float or (m,) array, optional
        Output weights are ``exp(log_scale_out_j) a_j``; the same as ``log_scale`` if not given.

    Examples
    --------
    >>> net = Network([1.0], [[0.6, 0.8]], log_scale=-1e6)
    >>> net.log_norms
    array([-1000000.])
    >>> net.predict([[1.0, 0.0]])
    array([0.])
    >>> net.log_predict([[1.0, 0.0]])[0]
    array([-2000000.51082562])

    Numerics
    --------
    Norms, products and predictions are formed in logs wherever a plain product could leave the
    range of floats. Logs of the scales are compared before they are added to logs of weights, so a
    common scale of exp(-1e6) costs no digits: sums over neurons lose nothing but ordinary
    rounding. Terms below the smallest float are zero in ``predict`` and right in ``log_predict``.
    """

    def __init__(
        self,
        a: ArrayLike,
        W: ArrayLike,
        log_scale: ArrayLike = 0.0,
        *,
        log_scale_out: ArrayLike | None = None,
    ) -> None:
        self.a: Array = real_array(a, "a", 1)
        self.W: Array = real_array(W, "W", 2)
        self.width, self.d = self.W.shape
        if len(self.a) != self.width:
            raise InputError(
                f"`W` has {self.width} rows but `a` has {len(self.a)} entries. Give one output "
                "weight a neuron."
            )
        if self.width == 0 or self.d == 0:
            raise InputError(
                f"`W` has shape {self.W.shape}: it is empty. Give at least one neuron."
            )
        self.log_scale: Array = _per_neuron(log_scale, "log_scale", self.width)
        self.log_scale_out: Array = (
            self.log_scale
            if log_scale_out is None
            else _per_neuron(log_scale_out, "log_scale_out", self.width)
        )

    # ---------------------------------------------------------------- norms and directions

    @cached_property
    def log_norms(self) -> Array:
        """Logarithms of the hidden norms ``|w_j|`` (-inf for a zero neuron)."""
        return read_only(_log(row_norms(self.W)) + self.log_scale)

    @cached_property
    def log_outputs(self) -> Array:
        """Logarithms of ``|a_j|``, scale included (-inf where the weight is zero)."""
        return read_only(_log(np.abs(self.a)) + self.log_scale_out)

    @cached_property
    def directions(self) -> Array:
        """Unit hidden weights (m, d); zero rows for zero neurons."""
        norms = row_norms(self.W)
        return read_only(self.W / np.where(norms > 0, norms, 1.0)[:, None])

    @property
    def signs(self) -> Array:
        """Signs of the output weights: -1, 0 or 1."""
        return np.sign(self.a)

    @cached_property
    def balance(self) -> Array:
        r"""The invariants :math:`a_j^2 - |w_j|^2` of gradient flow (zero when balanced).

        Formed as ``(|a| - |w|)(|a| + |w|)`` at the larger of the two scales, so that nearly
        balanced neurons keep their digits.
        """
        top = np.maximum(self.log_scale, self.log_scale_out)
        outputs = _scaled(np.abs(self.a), self.log_scale_out - top)
        norms = _scaled(row_norms(self.W), self.log_scale - top)
        with np.errstate(over="ignore"):
            return read_only(_scaled((outputs - norms) * (outputs + norms), 2 * top))

    @cached_property
    def log_squared_norm(self) -> float:
        r"""Logarithm of :math:`|\theta|^2 = \sum_j a_j^2 + |w_j|^2`."""
        return float(_logsumexp(np.concatenate([2 * self.log_norms, 2 * self.log_outputs])))

    @property
    def squared_norm(self) -> float:
        r""":math:`|\theta|^2`; zero when it is below the range of floats, inf when above."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_squared_norm))

    # ---------------------------------------------------------------- the function

    def preactivations(self, X: ArrayLike) -> Array:
        """Unscaled pre-activations ``W_j . x_i`` (n, m).

        Their signs are the pattern, except where a neuron rests on the plane of a point: there they
        are rounding, and `Trajectory.active` knows better.
        """
        return self._points(X) @ self.W.T

    def predict(self, X: ArrayLike) -> Array:
        """Outputs ``h(x_i)`` (n,); 0 where they are below the range of floats, inf where above."""
        scale = self.log_scale + self.log_scale_out
        if np.all(np.abs(scale) < 600.0):
            with np.errstate(over="ignore", invalid="ignore"):
                active = np.maximum(self.preactivations(X), 0.0)
                outputs: Array = active @ (self.a * np.exp(scale))
            if np.isfinite(outputs).all():
                return outputs
        logs, signs = self.log_predict(X)
        with np.errstate(over="ignore"):
            return np.asarray(signs * np.exp(logs))

    def log_predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Logarithm of ``|h(x_i)|`` and its sign, right at any scale."""
        points, point_logs = _unit_rows(self._points(X))
        rows, row_logs = _unit_rows(self.W)
        hidden, out = self.log_scale.max(), self.log_scale_out.max()
        relative = (self.log_scale - hidden) + (self.log_scale_out - out)
        logs = _log(np.maximum(points @ rows.T, 0.0)) + (_log(np.abs(self.a)) + row_logs + relative)
        top = logs.max(axis=1)
        top[np.isneginf(top)] = 0.0  # no active neuron: the sum is zero whatever the scale
        total = (np.exp(logs - top[:, None]) * self.signs).sum(axis=1)
        return (_log(np.abs(total)) + top + point_logs) + (hidden + out), np.sign(total)

    def with_scale(self, log_scale: ArrayLike) -> Network:
        """Return the same ``(a, W)`` at another scale, for both layers."""
        return Network(self.a, self.W, log_scale)

    def flat(self) -> Network:
        """Return the network with its scales multiplied into the weights (log scale 0)."""
        return Network(
            _scaled(self.a, self.log_scale_out), _scaled(self.W, self.log_scale[:, None])
        )

    def _points(self, X: ArrayLike) -> Array:
        points = real_array(X, "X", 2)
        if points.shape[1] != self.d:
            raise InputError(
                f"`X` has {points.shape[1]} columns but the network takes {self.d} inputs. "
                "Make them agree."
            )
        return points

    # ---------------------------------------------------------------- exchange

    def save(self, path: str | PathLike[str]) -> None:
        """Write the network to one checked file; the old file stays intact if writing fails."""
        files.write(path, "network", {}, self.to_arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Network:
        """Read a network written by `save`; a damaged or foreign file is refused."""
        _, arrays = files.read(path, "network")
        with files.contents(path):
            return cls.from_arrays(arrays)

    def to_arrays(self) -> dict[str, Array]:
        """The four arrays that define the network."""
        return {
            "a": self.a,
            "W": self.W,
            "log_scale": self.log_scale,
            "log_scale_out": self.log_scale_out,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Network:
        """Inverse of `to_arrays`."""
        hidden, out = arrays["log_scale"], arrays["log_scale_out"]
        same = np.array_equal(hidden, out)
        return cls(arrays["a"], arrays["W"], hidden, log_scale_out=None if same else out)

    @classmethod
    def from_torch(cls, module: Any) -> Network:
        """Read a bias-free ``Linear, ReLU, Linear`` PyTorch module with one output."""
        hidden, output = _layers(module)
        return cls(output.detach().cpu().numpy()[0], hidden.detach().cpu().numpy())

    def to_torch(self, module: Any) -> Any:
        """Copy the weights into such a module (of the same shape) and return it."""
        hidden, output = _layers(module)
        if tuple(hidden.shape) != self.W.shape:
            raise InputError(
                f"the module has a hidden layer of shape {tuple(hidden.shape)}; this network has "
                f"{self.W.shape}. Build the module with the same width and inputs."
            )
        flat = self.flat()
        hidden.data.copy_(hidden.data.new_tensor(flat.W))
        output.data.copy_(output.data.new_tensor(flat.a[None, :]))
        return module

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        theirs = other.to_arrays()
        return all(np.array_equal(mine, theirs[key]) for key, mine in self.to_arrays().items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"Network(width={self.width}, d={self.d}, log_squared_norm={self.log_squared_norm:.6g})"
        )


def row_norms(W: Array) -> Array:
    """Euclidean norms of the rows, without overflow or underflow of the squares."""
    top = np.abs(W).max(axis=1)
    safe = np.where(top > 0, top, 1.0)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", W / safe[:, None], W / safe[:, None])) * top)


def _unit_rows(rows: Array) -> tuple[Array, Array]:
    """Rows divided by a power of two near their largest entry, and the logs of those powers."""
    _, exponents = np.frexp(np.abs(rows).max(axis=1))
    return np.ldexp(rows, -exponents[:, None]), exponents * np.log(2.0)


def _scaled(values: Array, log_factor: Array) -> Array:
    """``values * exp(log_factor)``, through logs where the factor alone would leave the range."""
    with np.errstate(over="ignore"):
        if np.all(np.abs(log_factor) < 600.0):
            return np.asarray(values * np.exp(log_factor))
        return np.asarray(np.sign(values) * np.exp(_log(np.abs(values)) + log_factor))


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def _logsumexp(logs: Array) -> float:
    top = float(logs.max())
    return top if np.isinf(top) else top + float(np.log(np.exp(logs - top).sum()))


def _layers(module: Any) -> list[Any]:
    """The hidden (m, d) and output (1, m) parameters of a PyTorch-like module."""
    if not hasattr(module, "named_parameters"):
        raise InputError(
            f"{type(module).__name__} has no named_parameters(). Pass a PyTorch module "
            "`Linear(d, m, bias=False), ReLU(), Linear(m, 1, bias=False)`."
        )
    layers = [parameter for _, parameter in module.named_parameters()]
    shapes = [tuple(layer.shape) for layer in layers]
    if [len(shape) for shape in shapes] != [2, 2] or shapes[1] != (1, shapes[0][0]):
        raise InputError(
            f"the module has parameters of shapes {shapes}; one hidden (m, d) and one output "
            "(1, m) are needed. Write a bias as an input equal to 1."
        )
    return layers


def _per_neuron(values: ArrayLike, name: str, width: int) -> Array:
    scalar = not isinstance(values, (list, tuple)) and np.ndim(values) == 0
    vector: Any = [values] * width if scalar else values
    checked = real_array(vector, name, 1)
    if len(checked) != width:
        raise InputError(
            f"`{name}` has {len(checked)} entries for {width} neurons. "
            "Give one number, or one a neuron."
        )
    return checked
