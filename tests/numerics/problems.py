"""Small random problems for comparisons with the 40-digit reference, and the comparison itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import reluflow as rf
from numerics.reference import Reference

LOSSES = {
    "square": rf.losses.Square(),
    "exponential": rf.losses.Exponential(),
    "logistic": rf.losses.Logistic(),
}


@dataclass(frozen=True)
class Small:
    """Data, start, loss and end time of a small problem."""

    X: np.ndarray
    y: np.ndarray
    a: np.ndarray
    W: np.ndarray
    loss: str
    t_end: float
    hidden: bool = False
    decay: float = 0.0
    slope: float = 0.0

    def reference(self):
        """The 40-digit solution at the end time."""
        start = Reference(
            self.X,
            self.y,
            self.a,
            self.W,
            loss=self.loss,
            hidden=self.hidden,
            decay=self.decay,
            slope=self.slope,
        )
        return start.run(self.t_end)

    def flow(self, **options):
        """The engine's run to the end time."""
        return rf.flow(
            rf.Dataset(self.X, self.y),
            rf.Network(self.a, self.W, slope=self.slope),
            loss=LOSSES[self.loss],
            train="hidden" if self.hidden else "both",
            decay=self.decay,
            **{"t_end": self.t_end, **options},
        )


def draw(seed):
    """A problem with n 2..4, m 1..3, d 2..3: all losses, balanced or not, scales 1 to exp(-3)."""
    rng = np.random.default_rng(seed)
    n, m, d = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(2, 4))
    X = rng.normal(size=(n, d))
    loss = ("square", "square", "exponential", "logistic")[seed % 4]
    y = rng.normal(size=n) if loss == "square" else rng.choice([-1.0, 1.0], n)
    W = rng.normal(size=(m, d))
    a = rng.choice([-1, 1], m) * np.linalg.norm(W, axis=1) * rng.choice([1.0, 0.7, 1.5])
    lam = np.exp(rng.choice([0.0, -1.0, -3.0]))
    return Small(X, y, a * lam, W * lam, loss, float(rng.choice([4.0, 10.0, 20.0])))


def weights(net):
    """Weights of a network as one array (m, 1 + d), output weight first."""
    flat = net.flat()
    return np.column_stack([flat.a, flat.W])


def distance(net, reference):
    """Relative distance of all weights to the reference."""
    exact = reference.state
    return float(np.linalg.norm(weights(net) - exact) / np.linalg.norm(exact))


def kinds(events):
    """Events without their times: (neuron, point, kind), in order.

    A reference knows nothing of other solutions, so branches are left out.
    """
    told = events[events["kind"] != "branch"]
    return [(int(e["neuron"]), int(e["point"]), str(e["kind"])) for e in told]
