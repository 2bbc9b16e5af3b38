r"""Losses: square, exponential and logistic; values and derivatives, also in logs.

A loss is a function of outputs ``h`` (n,) and labels ``y`` (n,). Engines need three things of it:
its logarithm, the forces ``c_i = -dL/dh_i`` and, for classification, their logarithms. For labels
:math:`\pm 1` the margins are :math:`q_i = y_i h_i`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.checks import Array, choice, nearest
from reluflow.errors import InputError
from reluflow.wording import shown

__all__ = ["Exponential", "Logistic", "Square", "from_dict"]

FACTORS = ("1/2n", "1/2", "1/n")
NAMES = ("square", "exponential", "logistic")


@dataclass(frozen=True)
class Square:
    r"""``factor`` times :math:`\sum_i (h_i - y_i)^2`; ``factor`` is "1/2n", "1/2" or "1/n".

    In the form :math:`(\kappa/2) \sum_i (h_i - y_i)^2` the factors are kappa = 1/n, 1, 2/n.

    Examples
    --------
    >>> Square("1/n").value(np.array([0.0, 1.0]), np.array([2.0, 1.0]))
    2.0
    """

    factor: str = "1/2n"
    name = "square"

    def __post_init__(self) -> None:
        choice(self.factor, "factor", FACTORS)

    def kappa(self, n: int) -> float:
        """The number kappa for n points."""
        return 1.0 if self.factor == "1/2" else (1.0 if self.factor == "1/2n" else 2.0) / n

    def value(self, h: Array, y: Array) -> float:
        """The loss."""
        with np.errstate(over="ignore"):
            r = y - h
            return float(0.5 * self.kappa(len(y)) * (r @ r))

    def log_value(self, h: Array, y: Array) -> float:
        """Logarithm of the loss, good where the squares underflow; -inf for a perfect fit."""
        return self.log_value_of_residual(y - h)

    def log_value_of_residual(self, r: Array) -> float:
        """The same from the residuals ``r = y - h``."""
        with np.errstate(over="ignore"):
            square = float(r @ r)
        if 1e-280 < square < 1e280:
            return math.log(0.5 * self.kappa(len(r)) * square)
        top = float(np.abs(r).max())
        if top == 0.0 or not np.isfinite(top):
            return float(np.log(top)) if top else -np.inf
        return float(np.log(0.5 * self.kappa(len(r)) * ((r / top) @ (r / top))) + 2 * np.log(top))

    def forces(self, h: Array, y: Array) -> Array:
        """``c_i = -dL/dh_i = kappa (y_i - h_i)``."""
        return self.kappa(len(y)) * (y - h)

    def curvatures(self, h: Array, y: Array) -> Array:
        """``d^2L/dh_i^2 = kappa``."""
        return np.full(len(y), self.kappa(len(y)))

    def check_labels(self, y: Array) -> None:
        """Any real labels will do."""

    def check_data(self, X: Array, y: Array) -> None:
        """Any points and real labels will do."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for files."""
        return {"name": self.name, "factor": self.factor}


class _Margin(ABC):
    """What the two classification losses share: means over points of a function of the margin."""

    name: str
    log_at_zero: float

    @abstractmethod
    def log_pointwise(self, q: Array) -> Array:
        """Logarithm of the loss of one point of margin q."""

    @abstractmethod
    def log_slope(self, q: Array) -> Array:
        """Logarithm of minus the derivative at margin q."""

    @abstractmethod
    def log_curvature(self, q: Array) -> Array:
        """Logarithm of the second derivative at margin q."""

    def log_value(self, h: Array, y: Array) -> float:
        """Logarithm of the mean loss, right for margins from -800 to 1e7 and beyond."""
        return logsumexp(self.log_pointwise(y * h)) - float(np.log(len(y)))

    def value(self, h: Array, y: Array) -> float:
        """The mean loss; 0 when it is below the range of floats, inf when above."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_value(h, y)))

    def forces(self, h: Array, y: Array) -> Array:
        """``c_i = -dL/dh_i``."""
        with np.errstate(over="ignore"):
            return y * np.exp(self.log_slope(y * h)) / len(y)

    def curvatures(self, h: Array, y: Array) -> Array:
        """``d^2L/dh_i^2``."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_curvature(y * h)) / len(y))

    def log_total_force(self, q: Array) -> float:
        r"""Logarithm of :math:`G = (1/n) \sum_i -\ell'(q_i)`, the speed of the rescaled clock."""
        return logsumexp(self.log_slope(q)) - float(np.log(len(q)))

    def shares(self, q: Array) -> Array:
        r"""The weights :math:`p_i = -\ell'(q_i) / (nG)`, which sum to one."""
        slopes = self.log_slope(q)
        weights = np.exp(slopes - slopes.max())
        return np.asarray(weights / weights.sum())

    def check_labels(self, y: Array) -> None:
        """Refuse labels other than -1 and 1."""
        bad = np.flatnonzero(np.abs(y) != 1.0)
        if len(bad):
            binary = bool(np.isin(y, (0.0, 1.0)).all())
            remedy = "pass 2 * y - 1" if binary else "map the labels to -1 and 1"
            raise InputError(
                f"the {self.name} loss needs labels -1 or 1; y[{bad[0]}] is {y[bad[0]]:g}. "
                f"Use losses.Square() for regression, or {remedy}."
            )

    def check_data(self, X: Array, y: Array) -> None:
        """Refuse labels other than -1 and 1. Equal points may have opposite ones."""
        self.check_labels(y)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for files."""
        return {"name": self.name}


@dataclass(frozen=True)
class Exponential(_Margin):
    r"""Mean of :math:`e^{-q_i}`, labels +-1.

    Examples
    --------
    >>> Exponential().log_value(np.array([1e7]), np.array([1.0]))
    -10000000.0
    """

    name = "exponential"
    log_at_zero = 0.0

    def log_pointwise(self, q: Array) -> Array:
        """``-q``."""
        return -q

    def log_slope(self, q: Array) -> Array:
        """``-q``: the derivative is minus the loss."""
        return -q

    def log_curvature(self, q: Array) -> Array:
        """``-q``: the second derivative is the loss."""
        return -q

    def inverse(self, log_total: float) -> float:
        """The margin at which one point has the loss ``exp(log_total)``."""
        return -log_total


@dataclass(frozen=True)
class Logistic(_Margin):
    r"""Mean of :math:`\log(1 + e^{-q_i})`, labels +-1.

    Examples
    --------
    >>> round(Logistic().value(np.array([0.0]), np.array([1.0])), 6)
    0.693147
    """

    name = "logistic"
    log_at_zero = float(np.log(np.log(2.0)))

    def log_pointwise(self, q: Array) -> Array:
        """``log log(1 + e^-q)``; for q > 30 the series ``-q - e^-q / 2`` (next term e^-2q 5/24)."""
        q = np.asarray(q, dtype=np.float64)
        small = np.minimum(q, 30.0)
        near = np.log(np.log1p(np.exp(-np.abs(small))) + np.maximum(-small, 0.0))
        return np.where(q > 30.0, -q - 0.5 * np.exp(-np.maximum(q, 30.0)), near)

    def log_slope(self, q: Array) -> Array:
        """``-log(1 + e^q)``."""
        return -np.logaddexp(0.0, q)

    def log_curvature(self, q: Array) -> Array:
        """``-log(1 + e^q) - log(1 + e^-q)``."""
        return -np.logaddexp(0.0, q) - np.logaddexp(0.0, -q)

    def inverse(self, log_total: float) -> float:
        """The margin at which one point has the loss ``S = exp(log_total)``: ``-log(expm1(S))``."""
        if log_total < -30.0:
            return -log_total - 0.5 * float(np.exp(log_total))
        with np.errstate(over="ignore"):
            total = float(np.exp(log_total))
        return -total - float(np.log(-np.expm1(-total)))


Loss = Square | Exponential | Logistic

_NEAREST = {
    "mse": 'Square("1/n")',
    "l2": "Square()",
    "squared": "Square()",
    "bce": "Logistic()",
    "cross_entropy": "Logistic()",
    "log": "Logistic()",
    "exp": "Exponential()",
}


def named(loss: Loss | str) -> Loss:
    """A loss given by its name or as an object.

    Examples
    --------
    >>> named("logistic"), named(Square("1/n"))
    (Logistic(), Square(factor='1/n'))
    """
    if isinstance(loss, (Square, Exponential, Logistic)):
        return loss
    if isinstance(loss, str) and loss in NAMES:
        return from_dict({"name": loss})
    known = _NEAREST.get(loss.lower()) if isinstance(loss, str) else None
    hint = f" The nearest is rf.losses.{known}." if known else nearest(loss, NAMES)
    raise InputError(
        f"`loss` is {shown(loss)}; it must be 'square', 'exponential', 'logistic' or an object of "
        f"rf.losses.{hint}"
    )


def from_dict(spec: dict[str, Any]) -> Loss:
    """Inverse of ``to_dict``."""
    name = choice(spec.get("name"), "loss.name", NAMES)
    if name == "square":
        return Square(spec.get("factor", "1/2n"))
    return Exponential() if name == "exponential" else Logistic()


def logsumexp(logs: Array) -> float:
    """``log(sum(exp(logs)))`` without overflow."""
    top = float(np.max(logs))
    return top if np.isinf(top) else top + float(np.log(np.exp(logs - top).sum()))
