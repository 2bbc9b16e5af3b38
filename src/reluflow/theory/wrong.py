"""Wrong runs: good ones that were tampered with, on which a claim must fail.

Every claim of a paper names one (``@claim.fails_on``); the tests apply it to the paper's good
subject and expect FAIL with all hypotheses intact. A subject may be a pair with options of the
check; ``engines`` among them replaces engines by ones that compute wrongly. Identities, true of any
data and network whatever a run does, have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from reluflow.network import Network
from reluflow.trajectory import Status, Trajectory

Change = Callable[[Network, float], Network]


@dataclass(frozen=True, eq=False)
class Forged(Trajectory):
    """A run whose networks are changed: ``forge(net, share)``, share from 0 (start) to 1 (end)."""

    forge: Change = field(default=lambda net, share: net)
    true: Trajectory | None = None  # between records the true run is replayed, never the forged one
    angle: Callable[[float, float], float] | None = None

    def log_max_angle(self, t: float, subset: Any = None) -> float:
        """Log of the largest angle; ``angle(t, true)`` where that is forged."""
        assert self.true is not None
        true = self.true.log_max_angle(t, subset)
        return true if self.angle is None else self.angle(t, true)

    def network(self, k: int) -> Network:
        """The k-th recorded network, changed."""
        last = max(len(self.t) - 1, 1)
        return self.forge(super().network(k), (k % len(self.t)) / last)

    def at(self, t: float | None = None, **asked: Any) -> Network:
        """The network at a time, changed by how late its loss is."""
        assert self.true is not None  # `forged` gives it
        net = self.true.at(t, **asked)
        if asked.get("log_loss") is not None:
            low, high = float(self.log_loss[-1]), float(self.log_loss[0])
            share = (high - float(asked["log_loss"])) / max(high - low, 1e-300)
        else:
            log_t = np.log(t) if t is not None and t > 0 else asked.get("log_t", -np.inf)
            share = float(np.searchsorted(self.log_t, log_t)) / max(len(self.t) - 1, 1)
        return self.forge(net, min(max(share, 0.0), 1.0))


def forged(run: Trajectory, forge: Change, **changes: Any) -> Forged:
    """The run with changed networks at every record, between them and at the end."""
    own = {f.name: getattr(run, f.name) for f in fields(Trajectory)}
    angle = changes.pop("angle", None)
    own |= {"final": forge(run.final, 1.0), **changes}
    return Forged(**own, forge=forge, true=run, angle=angle)


def bent(engine: Callable[..., Trajectory], change: Change) -> Callable[..., Trajectory]:
    """An engine whose runs are forged, for claims that start their own (option ``engines``)."""
    return lambda *problem, **options: forged(engine(*problem, **options), change)


def same(net: Network, share: float) -> Network:
    """No change of the networks: something else of the run is forged."""
    return net


def grown(log_factor: float, sign: float | None = None, *, late: bool = False) -> Change:
    """Hidden and output weights times ``e^log_factor``, of one sign or all, or more and more."""

    def grow(net: Network, share: float) -> Network:
        mine = np.ones(net.width, bool) if sign is None else net.signs == sign
        by = np.where(mine, log_factor * (share if late else 1.0), 0.0)
        return Network(
            net.mantissa.a, net.mantissa.W, net.log_scale + by, log_scale_out=net.log_scale_out + by
        )

    return grow


def ending(run: Trajectory, change: Change) -> Trajectory:
    """The run with another network at its end only."""
    return replace(run, final=change(run.final, 1.0))


def hidden(factor: float) -> Change:
    """Hidden weights times a factor."""
    return lambda net, share: Network(
        net.mantissa.a, net.mantissa.W * factor, net.log_scale, log_scale_out=net.log_scale_out
    )


def recorded(run: Trajectory, **changes: Callable[[Any], Any]) -> Trajectory:
    """The run with recorded arrays changed: states by name, or ``log_loss``, ``t``, ``events``."""
    own = {name: np.array(values) for name, values in run.kept.items()}
    outer = {}
    for name, change in changes.items():
        if name in own:
            own[name] = change(own[name])
        else:
            outer[name] = change(np.array(getattr(run, name)))
    return replace(run, kept=own, **outer)


def stuck(run: Trajectory, log_loss: float = -3.0) -> Trajectory:
    """A run that says it ended for good at a positive loss."""
    losses = np.maximum(np.array(run.log_loss), log_loss)
    return replace(run, log_loss=losses, status=Status.STATIONARY)


def without_events(run: Trajectory) -> Trajectory:
    """A run that saw no event."""
    return replace(run, events=run.events[:0])


def turned(angle: float, sign: float = 1.0) -> Change:
    """Turn the neurons of one output sign in the plane of the first two coordinates."""
    c, s = np.cos(angle), np.sin(angle)

    def turn(net: Network, share: float) -> Network:
        W = net.mantissa.W.copy()
        mine = net.signs == sign
        W[mine, 0], W[mine, 1] = (
            c * net.mantissa.W[mine, 0] - s * net.mantissa.W[mine, 1],
            s * net.mantissa.W[mine, 0] + c * net.mantissa.W[mine, 1],
        )
        return Network(net.mantissa.a, W, net.log_scale, log_scale_out=net.log_scale_out)

    return turn


def scaled(factor: float) -> Change:
    """Output weights times a factor: balance and outputs change."""
    return lambda net, share: Network(
        net.mantissa.a * factor, net.mantissa.W, net.log_scale, log_scale_out=net.log_scale_out
    )
