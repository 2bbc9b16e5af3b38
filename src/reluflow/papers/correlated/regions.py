r"""The set S through which the bundle vector travels, and where a moment stands in it.

With :math:`X_k = \nu_k / \nu^*_k` a vector lies in :math:`S_l` iff

* :math:`X_k > 1` for k < l;
* :math:`\eta_l / (2 \eta_{l-1}) < X_l \le 1` (0 on the left for l = 1);
* for :math:`l \le k < k'`: :math:`\frac{\eta_{k'}}{2\eta_k} X_k < X_{k'}` and
  :math:`X_{k'} < 1 - (1 - X_k)^{1/2 + \eta_{k'}/(2\eta_k)}`;
* the cosine between v and :math:`H (v^* - v)` exceeds the padding :math:`\lambda^{\varepsilon/3}`.

So l is the first index with :math:`X_l \le 1`, and S is left or entered only through the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.papers.correlated.case import Correlated
from reluflow.papers.correlated.moments import Moment


@dataclass(frozen=True)
class Place:
    """Where a moment stands: index of its part of S (from 1; d + 1 beyond the last), slack, cosine.

    ``slack`` is the smallest margin of all constraints but the cosine: positive inside. ``error``
    is the numerical error of that margin; ``name`` the constraint that decides.
    """

    t: float
    index: int
    slack: float
    error: float
    name: str
    cosine: float


def place(case: Correlated, found: Moment) -> Place:
    """Find the part of S and the smallest margin.

    Numerics
    --------
    Early moments have ratios far below the float range: all constraints but Phi are homogeneous to
    first order, so they are compared as ratios of ``-log1p(-X)`` divided by the common size. Late
    ones take ``1 - X_k`` from ``v* - v``. The error is that of the run, magnified where ``1 - X``
    is small.
    """
    left = (case.spectrum[1] @ found.error) / case.target  # 1 - X_k
    above = np.flatnonzero(left >= 0)
    index = int(above[0]) if len(above) else case.data.d
    margins = _margins(case, found, left, index)
    name = min(margins, key=lambda key: margins[key][0] - margins[key][1])
    slack, error = margins[name]
    force = case.H @ found.error
    size = float(np.linalg.norm(force) * np.linalg.norm(found.vector))
    cosine = float(found.vector @ force) / size if size else 1.0
    return Place(found.t, index + 1, slack, error, name, cosine)


def _margins(
    case: Correlated, found: Moment, left: Array, index: int
) -> dict[str, tuple[float, float]]:
    d, eta = case.data.d, case.eta
    noise = 100.0 * case.rtol
    if index == d:
        return {"no coordinate is left to grow": (-float(np.abs(left).min()), noise)}
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(found.ratios)  # nan where a coordinate is negative
        bend, magnified = _bends(found, left)
    margins: dict[str, tuple[float, float]] = {"": (np.inf, 0.0)}
    if index:
        floor = np.log(eta[index] / (2 * eta[index - 1]))
        margins[f"Phi_{index + 1}"] = (_or_fail(logs[index] + found.log_size - floor), noise)
    for k in range(index, d):
        for other in range(k + 1, d):
            share = eta[other] / (2 * eta[k])
            down = logs[other] - logs[k] - np.log(share)
            up = np.log(0.5 + share) + bend[k] - bend[other]
            margins[f"Psi-down_{k + 1},{other + 1}"] = (_or_fail(down), noise)
            margins[f"Psi-up_{k + 1},{other + 1}"] = (
                _or_fail(up),
                noise * float(1.0 + magnified[k] + magnified[other]),
            )
    return margins


def _bends(found: Moment, left: Array) -> tuple[Array, Array]:
    r"""``log(-log(1 - X_k))``, the common size taken out, and how much it magnifies errors of X."""
    if found.log_size < -30.0:
        small = found.ratios * (1.0 + 0.5 * found.ratios * np.exp(found.log_size))
        return np.log(small), np.ones(len(left))
    depth = np.where(left > 0.5, -np.log1p(-(1.0 - left)), -np.log(left))
    early = found.ratios * np.exp(found.log_size)
    depth = np.where(early < 0.5, -np.log1p(-early), depth)
    # early ratios are known to a relative error, so that of the logarithm is not magnified
    magnified = np.where(early < 0.5, 1.0, 1.0 / (np.abs(left) * depth))
    return np.log(depth) - found.log_size, magnified


def _or_fail(margin: float) -> float:
    """A margin that is not a number belongs to a coordinate of the wrong sign: outside."""
    return -np.inf if np.isnan(margin) else float(margin)


def face_rates(case: Correlated, found: Moment) -> list[float]:
    r"""How fast constraints that a moved moment makes tight are left, over :math:`\eta_d |v|`.

    In the coordinates :math:`X_k` the leading field is
    :math:`\dot X_k = |v| (\eta_k (1 - X_k) + c X_k)`, :math:`c = v \cdot H (v^* - v) / |v|^2`. The
    later of two coordinates is moved so that Psi-down or Psi-up is an equality; where Xi then fails
    (:math:`c \le 0`) nothing is said.
    """
    eta, rates = case.eta, []
    X = np.exp(found.log_size) * found.ratios
    for k in range(case.data.d):
        for other in range(k + 1, case.data.d):
            if not 1e-8 < X[k] < 1.0 - 1e-8:  # below, the two faces differ by rounding only
                continue
            share = eta[other] / (2 * eta[k])
            power = 0.5 + share
            for is_up, moved in ((False, share * X[k]), (True, 1.0 - (1.0 - X[k]) ** power)):
                Y = X.copy()
                Y[other] = moved
                c = float((Y * case.target**2) @ (eta * (1.0 - Y)))
                c /= float((Y * case.target) @ (Y * case.target))
                if c <= 0.0:
                    continue
                speed = eta * (1.0 - Y) + c * Y
                lead = power * (1.0 - X[k]) ** (power - 1.0) if is_up else -share
                rate = lead * speed[k] + (-speed[other] if is_up else speed[other])
                rates.append(float(rate / eta[-1]))
    return rates
