r"""Network: a two-layer (leaky) ReLU network whose neurons carry a log scale.

.. math:: h(x) = \sum_j e^{s_j + p_j} a_j \, \varphi(W_j \cdot x), \qquad
    \varphi(z) = \max(z, 0) + \alpha \min(z, 0)

``s_j = log_scale[j]`` scales the hidden weights, ``p_j = log_scale_out[j]`` the output weight. The
slope :math:`\alpha` is 0 for ReLU.
The split between scale and mantissa is kept exactly as given: theory speaks of
``lam = exp(log_scale)`` and ``z_j = W_j`` separately. What a reader of weights wants are the
products, `Network.a` and `Network.W`; what computes at any scale reads `Network.mantissa`.
"""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reluflow import files
from reluflow.checks import Array, Frozen, number, read_only, real_array, real_points, with_ones
from reluflow.errors import InputError


class Mantissa(NamedTuple):
    """The weights before scaling, as they were given."""

    a: Array
    W: Array


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
    bias : bool
        Whether the last input is the constant 1. Points may then be given without it.
    slope : float
        Slope of the activation below zero, from 0 (ReLU) to below 1 (leaky ReLU).

    Attributes
    ----------
    a, W : (m,), (m, d) arrays
        The weights of the network, scales included; 0 where they are below the range of floats.
    mantissa : named pair (a, W)
        The weights before scaling, as given.
    log_scale, log_scale_out : (m,) arrays
        The scales, as given.
    width, d : int
        Numbers of neurons and of inputs.

    Examples
    --------
    >>> net = Network([2.0], [[0.6, 0.8]], log_scale=-1.0)
    >>> net.a, net.mantissa.a
    (array([0.73575888]), array([2.]))
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

    mantissa: Mantissa

    def __init__(
        self,
        a: ArrayLike,
        W: ArrayLike,
        log_scale: ArrayLike = 0.0,
        *,
        log_scale_out: ArrayLike | None = None,
        bias: bool = False,
        slope: float = 0.0,
    ) -> None:
        self.mantissa = Mantissa(real_array(a, "a", 1), real_array(W, "W", 2))
        shape: tuple[int, ...] = self.mantissa.W.shape
        self.width, self.d = shape
        if len(self.mantissa.a) != self.width:
            raise InputError(
                f"`W` has {self.width} rows but `a` has {len(self.mantissa.a)} entries. Give one "
                "output weight a neuron."
            )
        if self.width == 0 or self.d == 0:
            raise InputError(f"`W` has shape {shape}: it is empty. Give at least one neuron.")
        self.log_scale: Array = _per_neuron(log_scale, "log_scale", self.width)
        self.log_scale_out: Array = (
            self.log_scale
            if log_scale_out is None
            else _per_neuron(log_scale_out, "log_scale_out", self.width)
        )
        self.bias = bias
        self.slope = activation_slope(slope)

    @cached_property
    def a(self) -> Array:
        """Output weights (m,); 0 where they are below the range of floats, inf where above."""
        return read_only(scaled(self.mantissa.a, self.log_scale_out))

    @cached_property
    def W(self) -> Array:
        """Hidden weights (m, d); 0 where they are below the range of floats, inf where above."""
        return read_only(scaled(self.mantissa.W, self.log_scale[:, None]))

    # ---------------------------------------------------------------- norms and directions

    @cached_property
    def log_norms(self) -> Array:
        """Logarithms of the hidden norms ``|w_j|`` (-inf for a zero neuron)."""
        return read_only(_log(row_norms(self.mantissa.W)) + self.log_scale)

    @cached_property
    def log_outputs(self) -> Array:
        """Logarithms of ``|a_j|``, scale included (-inf where the weight is zero)."""
        return read_only(_log(np.abs(self.mantissa.a)) + self.log_scale_out)

    @cached_property
    def directions(self) -> Array:
        """Unit hidden weights (m, d); zero rows for zero neurons."""
        norms = row_norms(self.mantissa.W)
        return read_only(self.mantissa.W / np.where(norms > 0, norms, 1.0)[:, None])

    @property
    def signs(self) -> Array:
        """Signs of the output weights: -1, 0 or 1."""
        return np.sign(self.mantissa.a)

    @cached_property
    def balance(self) -> Array:
        r"""The invariants :math:`a_j^2 - |w_j|^2` of gradient flow (zero when balanced).

        Formed as ``(|a| - |w|)(|a| + |w|)`` at the larger of the two scales, so that nearly
        balanced neurons keep their digits.
        """
        top = np.maximum(self.log_scale, self.log_scale_out)
        outputs = scaled(np.abs(self.mantissa.a), self.log_scale_out - top)
        norms = scaled(row_norms(self.mantissa.W), self.log_scale - top)
        with np.errstate(over="ignore"):
            return read_only(scaled((outputs - norms) * (outputs + norms), 2 * top))

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
        return self._points(X) @ self.mantissa.W.T

    def predict(self, X: ArrayLike) -> Array:
        """Outputs ``h(x_i)`` (n,); 0 where they are below the range of floats, inf where above."""
        scale = self.log_scale + self.log_scale_out
        if np.all(np.abs(scale) < 600.0):
            with np.errstate(over="ignore", invalid="ignore"):
                hidden = activation(self.preactivations(X), self.slope)
                outputs: Array = hidden @ (self.mantissa.a * np.exp(scale))
            if np.isfinite(outputs).all():
                return outputs
        logs, signs = self.log_predict(X)
        with np.errstate(over="ignore"):
            return np.asarray(signs * np.exp(logs))

    def log_predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Logarithm of ``|h(x_i)|`` and its sign, right at any scale."""
        points, point_logs = _unit_rows(self._points(X))
        rows, row_logs = _unit_rows(self.mantissa.W)
        hidden, out = self.log_scale.max(), self.log_scale_out.max()
        relative = (self.log_scale - hidden) + (self.log_scale_out - out)
        terms = activation(points @ rows.T, self.slope)
        logs = _log(np.abs(terms)) + (_log(np.abs(self.mantissa.a)) + row_logs + relative)
        top = logs.max(axis=1)
        top[np.isneginf(top)] = 0.0  # no active neuron: the sum is zero whatever the scale
        total = (np.exp(logs - top[:, None]) * np.sign(terms) * self.signs).sum(axis=1)
        return (_log(np.abs(total)) + top + point_logs) + (hidden + out), np.sign(total)

    def with_scale(self, log_scale: ArrayLike) -> Network:
        """Return the same ``(a, W)`` at another scale, for both layers."""
        return Network(*self.mantissa, log_scale, bias=self.bias, slope=self.slope)

    def flat(self) -> Network:
        """Return the network with its scales multiplied into the weights (log scale 0)."""
        return Network(self.a, self.W, bias=self.bias, slope=self.slope)

    def with_bias(self, bias: bool = True) -> Network:
        """Return the same network, taking points without the last coordinate, which is 1."""
        if bias == self.bias:
            return self
        return self._changed(bias=bias)

    def with_slope(self, slope: float) -> Network:
        """Return the network with the same weights and another slope of the activation."""
        return self if slope == self.slope else self._changed(slope=slope)

    def _changed(self, **changes: Any) -> Network:
        kept: dict[str, Any] = {
            "log_scale": self.log_scale,
            "log_scale_out": self.log_scale_out,
            "bias": self.bias,
            "slope": self.slope,
        }
        return Network(*self.mantissa, **kept | changes)

    def _points(self, X: ArrayLike) -> Array:
        points = real_points(X, "X") if self.bias else real_array(X, "X", 2)
        if self.bias and points.shape[1] == self.d - 1:
            return with_ones(points)
        if points.shape[1] != self.d:
            missing = points.shape[1] == self.d - 1
            hint = " If the last one is a bias, use `net.with_bias()`." if missing else ""
            raise InputError(
                f"`X` has {points.shape[1]} columns but the network takes {self.d} inputs. "
                f"Make them agree.{hint}"
            )
        return points

    # ---------------------------------------------------------------- exchange

    def save(self, path: str | PathLike[str]) -> None:
        """Write the network to one checked file; the old file stays intact if writing fails."""
        files.write_bytes(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The contents of the file that `save` writes; equal networks give equal bytes."""
        return files.encode("network", {"bias": True} if self.bias else {}, self.to_arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Network:
        """Read a network written by `save`; a damaged or foreign file is refused."""
        manifest, arrays = files.read(path, "network")
        with files.contents(path):
            return cls.from_arrays(arrays).with_bias(manifest["fields"].get("bias") is True)

    def to_arrays(self) -> dict[str, Array]:
        """The arrays that define the network: four, and the slope where it is not 0."""
        arrays = {
            "a": self.mantissa.a,
            "W": self.mantissa.W,
            "log_scale": self.log_scale,
            "log_scale_out": self.log_scale_out,
        }
        return arrays | {"slope": np.array(self.slope)} if self.slope else arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Network:
        """Inverse of `to_arrays`."""
        hidden, out = arrays["log_scale"], arrays["log_scale_out"]
        same = np.array_equal(hidden, out)
        slope = real_array(arrays.get("slope", 0.0), "slope", 0)
        return cls(
            arrays["a"],
            arrays["W"],
            hidden,
            log_scale_out=None if same else out,
            slope=float(slope),
        )

    @classmethod
    def from_torch(cls, module: Any) -> Network:
        """Read a PyTorch module ``Sequential(Linear, ReLU, Linear)`` with one output.

        A ``LeakyReLU`` gives its ``negative_slope``, if that is from 0 to below 1. The hidden layer
        may have a bias: it becomes the last coordinate, and the network takes points without it
        (``bias=True``). A bias of the output, another activation and more layers are refused.
        """
        from reluflow import torch_modules

        a, W, bias, slope = torch_modules.read(module)
        return cls(a, W, bias=bias, slope=slope)

    def to_torch(self) -> Any:
        """Build the PyTorch module ``Sequential(Linear, ReLU, Linear)`` with these weights.

        It is in double precision; ``.float()`` makes it single. With ``bias=True`` the last weights
        of the neurons are the bias of the hidden layer; with a slope the activation is
        ``LeakyReLU(slope)``.
        """
        from reluflow import torch_modules

        return torch_modules.build(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        mine, theirs = self.to_arrays(), other.to_arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(array, theirs[name]) for name, array in mine.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        from reluflow import summaries

        return summaries.network(self)

    def __repr__(self) -> str:
        slope = f", slope={self.slope:g}" if self.slope else ""
        norm = f"log_squared_norm={self.log_squared_norm:.6g}"
        return f"Network(width={self.width}, d={self.d}{slope}, {norm})"


def activation_slope(slope: Any) -> float:
    """The slope of an activation, checked: from 0 (ReLU) to below 1; at 1 nothing would bend."""
    return abs(number(slope, "slope", at_least=0.0, below=1.0))  # -0.0 is 0


def no_slope(net: Any, what: str, hint: str = "Use net.with_slope(0).") -> None:
    """Refuse a leaky network where only ReLU has a meaning; ``what`` begins the sentence."""
    if isinstance(net, Network) and net.slope:
        raise InputError(
            f"{what} is for ReLU networks; this one is leaky, with slope {net.slope:g}. {hint}"
        )


def activation(z: Array, slope: float) -> Array:
    """``max(z, 0) + slope min(z, 0)``, entry by entry.

    Examples
    --------
    >>> activation(np.array([-2.0, 3.0]), 0.25)
    array([-0.5,  3. ])
    """
    return np.asarray(np.maximum(z, slope * z) if slope else np.maximum(z, 0.0))


def gates(active: Any, slope: float) -> Array:
    """What a neuron passes on: 1 on the points it is active on, the slope elsewhere."""
    return np.where(active, 1.0, slope)


def row_norms(W: Array) -> Array:
    """Euclidean norms of the rows, without overflow or underflow of the squares."""
    top = np.abs(W).max(axis=1)
    safe = np.where(top > 0, top, 1.0)
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", W / safe[:, None], W / safe[:, None])) * top)


def _unit_rows(rows: Array) -> tuple[Array, Array]:
    """Rows divided by a power of two near their largest entry, and the logs of those powers."""
    _, exponents = np.frexp(np.abs(rows).max(axis=1))
    return np.ldexp(rows, -exponents[:, None]), exponents * np.log(2.0)


def scaled(values: Array, log_factor: Array) -> Array:
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
