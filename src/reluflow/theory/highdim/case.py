r"""The case of the high-dimensional checks: one problem, its Gram matrix, its limit.

Letters of the paper: ``G = X X^T`` with extreme eigenvalues ``mu_min, mu_max``; ``l1`` the trace of
the covariance; :math:`\eta` the step and ``C = 1/(eta l1)``; ``s`` the output signs; ``P0, B0`` the
pre-activations at the start and their duals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.datasets.highdim import EffectiveDimensions, effective_dimensions
from reluflow.interpolators import single_relu
from reluflow.interpolators.fixed_signs import MinimumWeights
from reluflow.losses import Square
from reluflow.theory.highdim.draws import Problem, trace_of
from reluflow.theory.highdim.gram import Loop, Pattern, gram_loop
from reluflow.theory.subject import Subject
from reluflow.theory.verdicts import NotApplicable, Verdict
from reluflow.trajectory import Status, Trajectory

HALF = Square("1/2")
SURE = 0.25  # the surrogate of A2 below which it holds
HOPELESS = 2.0  # the surrogate above which A2 fails where the covariance is not known
WORK = 2e9  # multiplications a reference loop may take
LIMITS = (Status.CONVERGED, Status.STATIONARY)


@dataclass(frozen=True, eq=False)
class Case:
    """One problem with everything the claims read, computed once."""

    subject: Subject
    eta: float

    # ------------------------------------------------------------------ data

    @property
    def data(self) -> Dataset:
        """Points and labels."""
        return self.subject.data

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.data.n)

    @property
    def G(self) -> Array:
        """The Gram matrix."""
        return self.data.gram

    @property
    def y(self) -> Array:
        """The labels."""
        return self.data.y

    @cached_property
    def size(self) -> Array:
        """``|y_i|``."""
        return np.abs(self.y)

    @property
    def ambient(self) -> int:
        """Dimension of the space the points came from."""
        return self.data.ambient_dim or self.data.d

    @cached_property
    def dimensions(self) -> EffectiveDimensions | None:
        """Trace and effective dimensions of the covariance, where it is known."""
        return None if self.data.spectrum is None else effective_dimensions(self.data)

    @cached_property
    def l1(self) -> float:
        """The trace of the covariance, or the mean squared norm of the points."""
        return trace_of(self.data)

    @property
    def C(self) -> float:
        """The constant of the step, ``1/(eta l1)``."""
        return 1.0 / (self.eta * self.l1)

    @cached_property
    def spectrum(self) -> Array:
        """Eigenvalues of the Gram matrix, rising."""
        return np.asarray(np.linalg.eigvalsh(self.G))

    @cached_property
    def delta(self) -> float:
        """``|G - l1 I|/l1`` in operator norm."""
        return float(np.abs(self.spectrum / self.l1 - 1.0).max())

    @cached_property
    def surrogate(self) -> float:
        """What the proofs need of A2: ``delta sqrt(n) y_max/y_min``, to be small."""
        least = float(self.size.min())
        ratio = float(self.size.max()) / least if least > 0.0 else math.inf
        return self.delta * math.sqrt(self.n) * ratio

    @cached_property
    def ratios(self) -> tuple[float, float] | None:
        """The two ratios of A2, which must exceed an unknown constant; None without covariance."""
        if self.dimensions is None or not self.size.all():
            return None
        spread = float(self.size.max() / self.size.min())
        return (
            self.dimensions.d_2 / (self.n * spread) ** 2,
            self.dimensions.d_inf / (self.n**1.5 * spread),
        )

    @cached_property
    def dimension(self) -> Verdict:
        """Whether A2 holds: by the surrogate for sure, by a ratio below 1 surely not."""
        if self.surrogate <= SURE:
            return Verdict.PASS
        fails = self.surrogate > HOPELESS if self.ratios is None else min(self.ratios) < 1.0
        return Verdict.FAIL if fails else Verdict.UNRESOLVED

    # ----------------------------------------------------------------- start

    @cached_property
    def s(self) -> Array:
        """Output signs."""
        return self.subject.net.flat().a

    @property
    def m(self) -> int:
        """Number of neurons."""
        return len(self.s)

    @cached_property
    def W0(self) -> Array:
        """Hidden weights at the start."""
        return self.subject.net.flat().W

    @cached_property
    def P0(self) -> Array:
        """Pre-activations at the start (m, n)."""
        return np.asarray(self.W0 @ self.data.X.T)

    @cached_property
    def B0(self) -> Array:
        """Their duals: the part of ``W0`` in the span of the points is ``B0 X``."""
        return np.asarray(np.linalg.solve(self.G, self.P0.T).T)

    @cached_property
    def apart(self) -> Array:
        """The part of ``W0`` orthogonal to the points, which never moves."""
        return np.asarray(self.W0 - self.B0 @ self.data.X)

    @property
    def is_one(self) -> bool:
        """One neuron."""
        return self.m == 1

    @property
    def is_two(self) -> bool:
        """One neuron of each sign."""
        return self.m == 2 and bool(self.s.sum() == 0.0)

    @cached_property
    def own(self) -> Pattern:
        """Points whose label has the neuron's sign (m, n)."""
        return np.asarray(self.s[:, None] * self.y > 0.0)

    @cached_property
    def owner(self) -> Pattern:
        """Which neuron is to fit which point: the active one of the label's sign at the start.

        Not applicable where a point has none or several, or where the pattern at the start is not
        that of section 3.5: on for the owner and for all neurons of the other sign, off for the
        others of the same sign.
        """
        if self.is_one:
            return self.own
        claimed = self.own & (self.P0 > 0.0)
        if not (claimed.sum(axis=0) == 1).all():
            raise NotApplicable("the start does not give every point one active neuron of its sign")
        if not ((self.P0 > 0.0) == (claimed | ~self.own)).all():
            raise NotApplicable("the start is not active on all points of the other sign")
        return claimed

    # ------------------------------------------------------------------ runs

    @cached_property
    def limit(self) -> Trajectory:
        """The run to its limit: the one given, or the same problem started again."""
        for run in self.subject.runs[:1]:
            if run.engine == "descent" and run.status in LIMITS and "last_change" in run.stats:
                return run
        run = self.subject.descend(
            self.data,
            self.subject.net,
            lr=self.eta,
            steps=math.inf,
            loss=HALF,
            train="hidden",
            max_seconds=120.0,
        )
        if run.status not in LIMITS:
            raise NotApplicable(f"the run to the limit ended as `{run.status}`: {run.ending}")
        return run

    @cached_property
    def W_inf(self) -> Array:
        """Hidden weights in the limit."""
        return self.limit.final.flat().W

    @cached_property
    def P_inf(self) -> Array:
        """Pre-activations in the limit (m, n)."""
        return np.asarray(self.W_inf @ self.data.X.T)

    @cached_property
    def active_inf(self) -> Pattern:
        """The pattern in the limit (m, n); a neuron on the plane of a point is off."""
        return self.limit.active(-1)

    @property
    def freeze(self) -> int:
        """The iteration from which the pattern stays; not applicable where it never settles."""
        if self.limit.stats["frozen_from"] is None:
            raise NotApplicable("the limit lies on a boundary, so the pattern never settles")
        return int(self.limit.stats["last_change"])

    @cached_property
    def loop(self) -> Loop:
        """The plain loop in Gram form to 300 steps past the freeze, or as far as is affordable."""
        affordable = WORK / (2 * self.m * self.n**2), 1e7 / (self.m * self.n), 20_000
        last = self.limit.stats["last_change"]
        steps = int(min(*affordable, last + 300))
        return gram_loop(self.G, self.y, self.s, self.P0, self.B0, self.eta, max(steps, 1))

    # ----------------------------------------------------------- comparisons

    @cached_property
    def stars(self) -> list[MinimumWeights | None]:
        """The solution of (7) for each neuron's sign; None where its sign has no label."""
        known: dict[float, MinimumWeights | None] = {}
        for sign in self.s.tolist():
            if sign not in known:
                labels = sign * self.y
                known[sign] = (
                    single_relu(Dataset(self.data.X, labels)) if (labels > 0.0).any() else None
                )
        return [known[sign] for sign in self.s.tolist()]

    def distance(self, k: int) -> float:
        """``|w_k(inf) - w_k*|`` in the span of the points, where w* is the solution of (7)."""
        star = self.stars[k]
        if star is None:
            raise NotApplicable("no label has the neuron's sign, so there is nothing to fit")
        if not star.certified:
            raise NotApplicable("the minimum-norm solution is not certified")
        return float(np.linalg.norm(self.W_inf[k] - self.apart[k] - star.W[0]))

    def kick(self, k: int) -> float:
        r"""Leading order of the distance: the first kick of points of the other sign.

        :math:`\sqrt{\sum (\eta l_1(|y_i| + \varepsilon_i) - \varepsilon_i)^2/l_1}` over them.
        """
        other = ~self.own[k]
        eps, size = self.P0[k, other], self.size[other]
        parts = self.eta * self.l1 * (size + eps) - eps
        return float(np.sqrt((parts**2).sum() / self.l1))

    def run_of(self, problem: Problem) -> Trajectory:
        """Another problem, trained to its limit."""
        run = self.subject.descend(
            problem.data,
            problem.net,
            lr=problem.lr,
            steps=math.inf,
            loss=HALF,
            train="hidden",
            record=2,
            max_seconds=60.0,
        )
        if run.status not in LIMITS:
            raise NotApplicable(f"a run to the limit ended as `{run.status}`: {run.ending}")
        return run
