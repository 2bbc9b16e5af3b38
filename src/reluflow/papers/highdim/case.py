r"""The case of the high-dimensional checks: one problem, its Gram matrix, its limit.

Letters of the paper: ``G = X X^T`` with extreme eigenvalues ``mu_min, mu_max``; ``l1`` the trace of
the covariance; :math:`\eta` the step and ``C = 1/(eta l1)``; ``s`` the output signs; ``P0, B0`` the
pre-activations at the start and their duals.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from reluflow.checks import Array, number
from reluflow.dataset import Dataset
from reluflow.datasets.highdim import EffectiveDimensions, effective_dimensions
from reluflow.interpolators import single_relu
from reluflow.interpolators.fixed_signs import MinimumWeights
from reluflow.network import Network
from reluflow.papers.highdim.accepted import HALF, check_subject
from reluflow.papers.highdim.draws import Problem, step_size, trace_of
from reluflow.papers.highdim.gram import Loop, Pattern, gram_loop, smoothness
from reluflow.papers.highdim.minimum import distance_to_shortest
from reluflow.theory.case import Case
from reluflow.theory.verdicts import Unresolved, Verdict
from reluflow.trajectory import Status, Trajectory

SURE = 0.25  # the surrogate of A2 below which it holds
HOPELESS = 2.0  # the surrogate above which A2 fails where the covariance is not known
WORK = 2e9  # multiplications a reference loop may take
LIMITS = (Status.CONVERGED, Status.STATIONARY)


class HighDim(Case):
    """One problem with everything the claims read, computed once."""

    def prepare(self, *, constant: float = 2.0) -> None:
        """Check the subject: runs on the hidden layer under ``Square("1/2")``, or a pair.

        Parameters
        ----------
        constant : float
            ``C`` of the step :math:`1/(C l_1)` where no run of descent gives a step.
        """
        C = number(constant, "constant", above=0.0)
        check_subject(self.subject)
        given = [run.options["lr"] for run in self.subject.runs if run.engine == "descent"]
        self.eta = float(given[0]) if given else step_size(self.data, C)

    def describe(self) -> str:
        """One line on what is checked."""
        signs = f"{int((self.s > 0).sum())} positive, {int((self.s < 0).sum())} negative neurons"
        return (
            f"n = {self.n}, d = {self.ambient}, {signs}, step 1/({self.C:.4g} l1), "
            f"l1 = {self.l1:.6g}"
        )

    # ------------------------------------------------------------------ data

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
    def has_owners(self) -> bool:
        """Whether the start has the pattern of section 3.5.

        On for the owner and for all neurons of the other sign, off for the others of the same sign.
        """
        if self.is_one:
            return True
        claimed = self.own & (self.P0 > 0.0)
        owned = bool((claimed.sum(axis=0) == 1).all())
        return owned and bool(((self.P0 > 0.0) == (claimed | ~self.own)).all())

    @cached_property
    def owner(self) -> Pattern:
        """Which neuron is to fit which point: the active one of the label's sign at the start."""
        return self.own if self.is_one else self.own & (self.P0 > 0.0)

    @cached_property
    def largest_cosine(self) -> float:
        """Between two points."""
        norms = np.sqrt(np.diag(self.G))
        return float(np.abs(self.G / np.outer(norms, norms) - np.eye(self.n)).max())

    @cached_property
    def compact(self) -> Dataset:
        """The same problem in the span of the points: n coordinates, the same Gram matrix."""
        if self.data.d <= self.n:
            return self.data
        return Dataset(np.asarray(np.linalg.qr(self.data.X.T)[1]).T, self.y)

    # ------------------------------------------------------------------ runs

    @cached_property
    def limit(self) -> Trajectory:
        """The run to its limit: the one given, or the same problem started again."""
        for run in self.subject.runs[:1]:
            if run.engine == "descent" and run.status in LIMITS and "last_change" in run.stats:
                return run
        return self._to_limit(self.data, self.subject.net, self.eta, max_seconds=120.0)

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
        """The iteration from which the pattern stays, where it settles."""
        return int(self.limit.stats["last_change"])

    @cached_property
    def final_curvature(self) -> float:
        """``eta mu_max(K)`` of the final phase."""
        return self.eta * smoothness(self.G, self.limit.active(t=self.freeze))

    def gaps_by(self, axis: str) -> dict[int, list[float]]:
        """Distances of the runs given, by n or by d, if they differ in that alone."""
        runs = [r for r in self.subject.runs if r.engine == "descent" and r.status in LIMITS]
        sizes = [(run.data.n, run.data.ambient_dim or run.data.d) for run in runs]
        keys = [size[0] if axis == "n" else size[1] for size in sizes]
        if len({size[1] if axis == "n" else size[0] for size in sizes}) != 1:
            return {}
        found: dict[int, list[float]] = {}
        for key, run in zip(keys, runs, strict=True):
            found.setdefault(key, []).append(scaled_gap(run))
        return found

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
        """``|w_k(inf) - w_k*|`` in the span of the points, where w* is the solution of (7).

        A neuron without labels of its sign has w* = 0: the shortest is no neuron at all.
        """
        star = self.stars[k]
        moved = self.W_inf[k] - self.apart[k]
        if star is None:
            return float(np.linalg.norm(moved))
        if not star.certified:
            raise Unresolved(
                "the shortest fit is not certified; points further from dependence help"
            )
        return float(np.linalg.norm(moved - star.W[0]))

    def run_of(self, problem: Problem) -> Trajectory:
        """Another problem, trained to its limit."""
        return self._to_limit(problem.data, problem.net, problem.lr, record=2, max_seconds=60.0)

    def _to_limit(self, data: Dataset, net: Network, lr: float, **options: Any) -> Trajectory:
        how = {"steps": math.inf, "loss": HALF, "train": "hidden", **options}
        run = self.subject.descend(data, net, lr=lr, **how)
        if run.status not in LIMITS:
            raise Unresolved(f"a run ended as `{run.status}`: {run.ending}; its limit would decide")
        return run


def scaled_gap(run: Trajectory) -> float:
    """Distance of a one-neuron limit to (7) over the root mean square of the other labels; nan
    where labels have one sign only.
    """
    W, sign = run.final.flat().W[0], float(run.net.signs[0])
    labels = sign * run.data.y
    if not (labels > 0.0).any() or not (labels < 0.0).any():
        return math.nan
    off = labels[labels < 0.0]
    return distance_to_shortest(run.data, W, sign) / float(np.sqrt((off**2).mean()))
