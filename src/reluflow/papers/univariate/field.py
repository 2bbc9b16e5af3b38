r"""The rescaled gradient field of a univariate classifier, and its three clocks.

Along gradient flow :math:`\dot\theta = (1/n)\sum_i (-\ell'(q_i)) \nabla q_i`. With
:math:`G = (1/n)\sum_i -\ell'(q_i)`, shares :math:`p_i = -\ell'(q_i)/(nG)` and :math:`ds = G\,dt`

.. math:: \frac{d\theta}{ds} = g(\theta) = \sum_i p_i \nabla q_i, \qquad
          \frac{dF}{ds} = \frac{G}{L} |g|^2, \quad F = -\log L .

At a kink on a data point (:math:`z_{ij} = 0`) the gate :math:`s_{ij}` is the number in [0, 1] that
keeps it there, if :math:`y_i v_j < 0`. Which kinks are on points, the modes of a run say; without
them, products below 1e-9 of the norms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.losses import Exponential, Logistic
from reluflow.network import Network, row_norms
from reluflow.theory.verdicts import Unresolved
from reluflow.trajectory import Mode

Modes = NDArray[np.int8]
ON_PLANE = 1e-9
CLOCKS = ("t", "s", "F")
MOST = 50_000  # evaluations of the field on one clock: some seconds


@dataclass(frozen=True)
class Field:
    """The field at one state: margins, shares, gates and both blocks of g.

    Attributes
    ----------
    q, p : (n,) arrays
        Margins and shares.
    gates : (n, m) array
        The numbers ``s_ij``; strictly between 0 and 1 only where a kink slides on a point.
    outputs, hidden : (m,), (m, d) arrays
        The two blocks of g.
    """

    q: Array
    p: Array
    gates: Array
    outputs: Array
    hidden: Array

    @property
    def squared_norm(self) -> float:
        """``|g|^2``."""
        return float(self.outputs @ self.outputs + (self.hidden * self.hidden).sum())


def field(
    data: Dataset, a: Array, W: Array, loss: Exponential | Logistic, modes: Modes | None = None
) -> Field:
    """Return the field at output weights ``a`` (m,) and hidden weights ``W`` (m, d).

    ``modes`` are those of the run (m, n) at this state, where there is one.
    """
    z = data.X @ W.T
    active = np.maximum(z, 0.0)
    q = data.y * (active @ a)
    p = loss.shares(q)
    force = p * data.y
    if modes is None:
        on = np.abs(z) <= ON_PLANE * np.outer(row_norms(data.X), row_norms(W))
        gates = np.where(on, 0.0, 1.0 * (z > 0))
    else:
        on, gates = (modes == Mode.SLIDING).T, 1.0 * (modes == Mode.ACTIVE).T
    _hold(data, a, on, gates, force)
    return Field(
        q=q,
        p=p,
        gates=gates,
        outputs=active.T @ force,
        hidden=a[:, None] * ((gates * force[:, None]).T @ data.X),
    )


def _hold(data: Dataset, a: Array, on: NDArray[np.bool_], gates: Array, force: Array) -> None:
    """Set the gates of kinks on points to what keeps them there."""
    for i, j in zip(*np.nonzero(on & (np.outer(data.y, a) < 0.0)), strict=True):
        # the other points push the kink with `pull`; the point itself holds it with weight s_ij
        pull = float((force * gates[:, j]) @ (data.X @ data.X[i]))
        own = float(force[i] * (data.X[i] @ data.X[i]))
        gates[i, j] = np.clip(-pull / own, 0.0, 1.0) if own else 0.0


def unit_vector(net: Network) -> Array:
    """All weights as one vector of length 1."""
    flat = net.flat()
    theta = np.concatenate([flat.a, flat.W.ravel()])
    return np.asarray(theta / np.linalg.norm(theta))


def misalignment(
    data: Dataset, net: Network, loss: Exponential | Logistic, modes: Modes | None = None
) -> float:
    r""":math:`1 - \cos(\theta, g)`, formed as half a squared distance of unit vectors."""
    flat = net.flat()
    at = field(data, flat.a, flat.W, loss, modes)
    theta = np.concatenate([flat.a, flat.W.ravel()])
    g = np.concatenate([at.outputs, at.hidden.ravel()])
    apart = theta / np.linalg.norm(theta) - g / np.linalg.norm(g)
    return 0.5 * float(apart @ apart)


def integrate(
    data: Dataset,
    net: Network,
    loss: Exponential | Logistic,
    clock: str,
    log_loss: float,
    modes: Modes | None = None,
    longest: float = np.inf,
) -> Network:
    r"""Carry a network to a log-loss with a general solver, on one of the three clocks.

    ``modes`` are those of the run at the start; they stay, since no kink crosses a point here.
    ``longest`` ends it at a time t where the log-loss is not reached; :math:`G \le L` and L falls,
    so that ds is at most dt times the loss at the start.

    Numerics
    --------
    LSODA at relative accuracy 1e-10, which turns implicit where the softmax of the margins is
    stiff. On the clock t steps shrink like the loss: the log-loss may fall by 20 or so.
    """
    from scipy.integrate import solve_ivp

    flat = net.flat()
    m = flat.width
    start = -loss.log_value(flat.predict(data.X), data.y)
    with np.errstate(divide="ignore"):
        longest_s = float(np.exp(np.log(longest) - start))
    begin, end = {"t": (0.0, longest), "s": (0.0, longest_s), "F": (start, -log_loss)}[clock]
    # a span of order 1: roots are found to an absolute 1e-15, and times may be 1e-80
    unit = end - begin if np.isfinite(end) and end > begin else 1.0
    left = MOST

    def slope(_: float, theta: Array) -> Array:
        nonlocal left
        left -= 1
        if left < 0:
            raise Unresolved(
                f"a general solver needs more than {MOST} evaluations on the clock {clock}; "
                "fewer neurons would decide"
            )
        at = field(data, theta[:m], theta[m:].reshape(m, -1), loss, modes)
        g = np.concatenate([at.outputs, at.hidden.ravel()])
        log_force = loss.log_total_force(at.q)
        if clock == "t":
            return np.asarray(unit * np.exp(log_force) * g)
        if clock == "s":
            return np.asarray(unit * g)
        log_value = loss.log_value(data.y * at.q, data.y)
        return np.asarray(unit * np.exp(log_value - log_force) * g / at.squared_norm)

    def reached(_: float, theta: Array) -> float:
        outputs = np.maximum(data.X @ theta[m:].reshape(m, -1).T, 0.0) @ theta[:m]
        return loss.log_value(outputs, data.y) - log_loss

    reached.terminal = True  # type: ignore[attr-defined]
    theta = np.concatenate([flat.a, flat.W.ravel()])
    found = solve_ivp(
        slope,
        (0.0, (end - begin) / unit),
        theta,
        method="LSODA",
        rtol=1e-10,
        atol=1e-13 * float(np.abs(theta).max()),
        events=None if clock == "F" else reached,
    )
    end = found.y[:, -1]
    return Network(end[:m], end[m:].reshape(m, -1))
