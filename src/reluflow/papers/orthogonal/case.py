r"""The case of the orthogonal checks: a problem, its jump process, and runs at the scales needed.

Notation: :math:`\lambda` is the largest initial hidden norm, :math:`L = \log(1/\lambda)`,
accelerated time :math:`\tau = t/L`; process = `reluflow.limits.saddle_to_saddle`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array, number, whole
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.limits import SaddleToSaddle, hypotheses, saddle_to_saddle
from reluflow.losses import Square
from reluflow.network import Network
from reluflow.papers.orthogonal.measure import half_times, parameter_error
from reluflow.theory.case import Case
from reluflow.theory.subject import Subject
from reluflow.theory.verdicts import Unresolved
from reluflow.trajectory import Status, Trajectory

RTOL = 1e-9  # of runs that the claims start
SMALL = 100.0 * np.log(10.0)  # log(1/lambda) at scale 1e-100
RESOLVED = 20.0  # nats between a jump and its rival that leave no trace of a tie
LARGEST = 1e8  # log(1/lambda) beyond which claims ask for no run


class Orthogonal(Case):
    """Data and network with everything the claims derive from them, computed once."""

    def prepare(self, *, draws: int = 300, seed: int = 0, max_seconds: float = 60.0) -> None:
        """Check the subject and the options.

        Parameters
        ----------
        draws : int
            How many random starts the probabilistic claims draw.
        seed : int
            Of these draws.
        max_seconds : float
            Longest time (of the processor) of a run that a claim starts; then it is UNRESOLVED.
        """
        _check_runs(self.subject)
        self.draws, self.seed = whole(draws, "draws"), whole(seed, "seed", at_least=0)
        self.max_seconds = number(max_seconds, "max_seconds", above=0.0)
        self.cache: dict[Any, Any] = {}

    def describe(self) -> str:
        """One line on the subject."""
        y = self.data.y
        runs = self.subject.runs
        kinds = ", ".join(f"{run.engine} ({run.status})" for run in runs) or "no run given"
        return (
            f"{self.data.n} points in {self.subject.data.d} dimensions ({int((y > 0).sum())} "
            f"positive, {int((y < 0).sum())} negative labels), {self.unit_start.width} neurons, "
            f"log(1/lambda) = {self.L:.6g}, kappa = {self.kappa:.6g}; {kinds}"
        )

    # ---------------------------------------------------------------- the problem

    @cached_property
    def exact(self) -> bool:
        """Whether the points are orthonormal up to the rounding of their products."""
        gap = float(np.abs(self.subject.data.gram - np.eye(self.subject.data.n)).max())
        return gap <= hypotheses.rounding_of_products(self.subject.data)

    @cached_property
    def data(self) -> Dataset:
        """The points and labels; orthonormal ones in their own basis.

        Everything depends on products ``w_j . x_i`` only. In another basis the rounding of a grown
        neuron would hide its frozen coordinates and could revive them, which Assumption 2 forbids.
        Points that are not orthonormal to rounding are never touched.
        """
        given = self.subject.data
        if not self.exact or np.array_equal(given.X, np.eye(given.n, given.d)):
            return given
        return Dataset(np.eye(given.n, given.n + 1), given.y)

    @property
    def kappa(self) -> float:
        """The loss is ``kappa/2 sum (h - y)^2``."""
        loss = self.loss
        assert isinstance(loss, Square)  # `_check_runs` has seen to it
        return loss.kappa(self.data.n)

    @cached_property
    def unit_start(self) -> Network:
        """The start in the form unit direction times norm, whatever split it was given in."""
        net = self.subject.net
        alive = np.isfinite(net.log_norms)
        # a zero neuron has any scale: one that leaves the common scale to the others
        factors = np.where(alive, net.log_norms, net.log_norms[alive].max(initial=-np.inf))
        factors[np.isneginf(factors)] = 0.0
        with np.errstate(invalid="ignore"):
            outputs = np.where(alive, np.exp(net.log_outputs - net.log_norms), 0.0)
        return Network(net.signs * outputs, self._in_basis(net.directions), factors)

    def _in_basis(self, W: Array) -> Array:
        """Rows in the basis of `data`: products with the points, and the norm of the rest."""
        X = self.subject.data.X
        if self.data is self.subject.data:
            return W
        c = W @ X.T
        return np.column_stack([c, np.linalg.norm(W - c @ X, axis=1)])

    @cached_property
    def L(self) -> float:
        """``log(1/lambda)`` of the subject."""
        return -float(np.max(self.unit_start.log_norms))

    @cached_property
    def start_active(self) -> NDArray[np.bool_]:
        """Which neuron is active on which point at the start, (m, n); not on its plane."""
        return np.asarray(self.unit_start.mantissa.W @ self.data.X.T > 0.0)

    @cached_property
    def masks(self) -> NDArray[np.bool_]:
        """The transpose of the paper's M: active, on a label of the neuron's own sign, (m, n)."""
        return self.start_active & (self.unit_start.signs[:, None] * self.data.y > 0.0)

    @cached_property
    def on_wrong_points(self) -> NDArray[np.bool_]:
        """Pairs active on a label of the other sign, of neurons that have one of their own."""
        has_own = np.asarray(self.masks.any(axis=1))
        return self.start_active & ~self.masks & has_own[:, None]

    @cached_property
    def process(self) -> SaddleToSaddle:
        """The jump process."""
        return saddle_to_saddle(self.data, self.unit_start, kappa=self.kappa)

    @property
    def limit(self) -> SaddleToSaddle:
        """The jump process; "jumps" and "untied" say where it is the limit."""
        return self.process

    # ---------------------------------------------------------------- runs

    @cached_property
    def flows(self) -> tuple[Trajectory, ...]:
        """The runs of the flow given, deepest first; one at the subject's scale if none is."""
        given = [run for run in self.subject.runs if self.is_flow(run)]
        if given:
            return tuple(sorted(given, key=lambda run: float(run.net.log_norms.max())))
        return (self.run_at(self.L),)

    def start_at(self, L: float) -> Network:
        """The start with its largest norm moved to ``exp(-L)``."""
        return Network(
            self.unit_start.mantissa.a,
            self.unit_start.mantissa.W,
            self.unit_start.log_scale + (self.L - L),
        )

    def run_at(self, L: float) -> Trajectory:
        """A run of the flow from scale ``exp(-L)`` to its limit: a given one, or a new one."""
        if L not in self.cache:
            try:
                self.cache[L] = self._given(L) or self.flow(self.data, self.start_at(L), rtol=RTOL)
            except Unresolved as reason:  # the next claim need not wait for it again
                self.cache[L] = reason
        found = self.cache[L]
        if isinstance(found, Unresolved):
            raise found
        assert isinstance(found, Trajectory)
        return found

    def flow(self, data: Dataset, net: Network, **options: Any) -> Trajectory:
        """Start a run of the flow; undecided if it does not end within the time allowed."""
        options = {"loss": self.loss, "max_seconds": self.max_seconds, **options}
        run = self.subject.flow(data, net, **options)
        if run.status == Status.BUDGET:
            raise Unresolved(
                f"a run from log scale {float(net.log_norms.max()):.4g} did not end within "
                f"{self.max_seconds:g} s; allow more with max_seconds"
            )
        return run

    def _given(self, L: float) -> Trajectory | None:
        for run in self.subject.runs if self.data is self.subject.data else ():
            same = self.is_flow(run) and abs(float(run.net.log_norms.max()) + L) <= 1e-9 * abs(L)
            if same and run.status in ("converged", "stationary") and self.accurate(run):
                return run
        return None

    @staticmethod
    def accurate(run: Trajectory) -> bool:
        """Whether a given run is good enough for the claims that compare scales."""
        return float(run.options.get("rtol", 1e-8)) <= RTOL

    @cached_property
    def gaps(self) -> Array:
        """How far the exponent of the closest rival is behind at each jump (inf without one).

        A rival is a dormant group that shares points with the jump: only those bend it.
        """
        race = self.limit.race
        rivals = race.touched.copy()
        for k, g in enumerate(race.jumpers):
            rivals[k:, g] = False
        return np.asarray(np.where(rivals, -race.knots[1:], np.inf).min(axis=1))

    def own_limit_error(self) -> tuple[float, float] | None:
        """Distance of a given limit to that of the process, and what ``lambda^delta`` allows."""
        for run in self.subject.runs if self.data is self.subject.data else ():
            L = -float(run.net.log_norms.max())
            network = self.limit.network
            if run.status is Status.CONVERGED and self.is_flow(run) and network is not None:
                rate = self.limit.rate(2.0 * float(self.limit.times[-1]))
                allowed = 1e-8 + 1e3 * math.exp(-min(L * rate, 700.0))
                return parameter_error(run.final, network), allowed
        return None

    @cached_property
    def deep(self) -> float:
        """A ``log(1/lambda)`` at which no jump feels its closest rival."""
        need = [SMALL, self.L, *(RESOLVED / self.gaps)]
        if max(need) > LARGEST:
            raise Unresolved(
                f"near tie at jump {int(np.argmin(self.gaps))}: its rival is out of the way only "
                f"for log(1/lambda) above {max(need):.3g}, beyond the {LARGEST:.3g} that is tried; "
                "labels or masks further from the tie would decide"
            )
        return float(max(need))

    def depths(self) -> Iterator[float]:
        """`deep` and, for claims that are open there, ten times as deep, and so on."""
        L = self.deep
        yield L
        while (L := 10.0 * L) <= LARGEST and self.subject.engines is not None:
            yield L

    @cached_property
    def deep_run(self) -> Trajectory:
        """The run at `deep`."""
        return self.run_at(self.deep)

    @cached_property
    def deeper_run(self) -> Trajectory:
        """The run at twice `deep`."""
        return self.run_at(2.0 * self.deep)

    @cached_property
    def deep_half_times(self) -> Array:
        """Half times of the jumps at `deep`."""
        return self.measured_half_times(self.deep_run)

    @cached_property
    def deeper_half_times(self) -> Array:
        """Half times of the jumps at twice `deep`."""
        return self.measured_half_times(self.deeper_run)

    def measured_half_times(self, run: Trajectory) -> Array:
        """Half times of a run; undecided if a group never gets there."""
        found = half_times(run, self.limit)
        if np.isnan(found).any():
            k = int(np.flatnonzero(np.isnan(found))[0])
            raise Unresolved(
                f"the run ends before the group of jump {k} reaches half its norm; continue it"
            )
        return found

    def middles(self, times: Array) -> Array:
        """A time in the middle of every plateau, given the half times of the jumps."""
        last = times[-1] + RESOLVED / (self.kappa * float(self.limit.norms.min()))
        return np.append(0.5 * (np.append(0.0, times[:-1]) + times), last)


def _check_runs(subject: Subject) -> None:
    """Refuse another loss, and runs of different problems."""
    loss: Any = subject.runs[0].loss_function if subject.runs else Square()
    for run in subject.runs:
        if not isinstance(run.loss_function, Square) or run.loss_function != loss:
            raise InputError(
                f"a run has the loss {run.loss_function}. The orthogonal theory is about one "
                "square loss. Train with Square() of one factor."
            )
        if not (np.array_equal(run.data.X, subject.data.X) and _same_start(run.net, subject.net)):
            raise InputError(
                "the runs are of different data or start in different directions. Several runs are "
                "the same problem at several scales. Check the others one by one."
            )


def _same_start(net: Network, other: Network) -> bool:
    return net.mantissa.W.shape == other.mantissa.W.shape and bool(
        np.allclose(net.directions, other.directions, rtol=0.0, atol=1e-12)
        and np.array_equal(net.signs, other.signs)
    )
