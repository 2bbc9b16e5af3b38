"""What a check is about: data, a network, the runs there are, and the right to start more."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reluflow.dataset import Dataset
from reluflow.departures import departure
from reluflow.errors import InputError
from reluflow.network import Network, no_slope
from reluflow.theory.verdicts import NotApplicable, Unresolved
from reluflow.trajectory import Status, Trajectory

Engines = Mapping[str, Callable[..., Trajectory]]
Pair = tuple[Dataset, Network]
Drawer = Callable[[int], Pair]
LONGEST = 30.0  # seconds of a run that a claim starts without a word on them


@dataclass(frozen=True)
class Subject:
    """Data and start network, the runs given (several scales or sizes), and the engines to start.

    ``data`` and ``net`` are those of the first run where runs are given. ``engines`` is None where
    starting runs is forbidden. ``drawer`` makes the k-th further problem of the generator that the
    subject came from; None where that is not known.
    """

    data: Dataset
    net: Network
    runs: tuple[Trajectory, ...]
    engines: Engines | None
    drawer: Drawer | None = None

    @property
    def run(self) -> Trajectory:
        """The first run given; without one the claim is not applicable."""
        if not self.runs:
            raise NotApplicable("needs a run; pass a Trajectory")
        return self.runs[0]

    def flow(self, data: Dataset, net: Network, **options: Any) -> Trajectory:
        """Start a run of the flow, if that is allowed."""
        return self._start("flow", data, net, **options)

    def descend(self, data: Dataset, net: Network, **options: Any) -> Trajectory:
        """Start a run of descent, if that is allowed."""
        return self._start("descent", data, net, **options)

    def proceed(self, run: Trajectory, **options: Any) -> Trajectory:
        """Continue a run of the flow, if that is allowed."""
        return self._start("flow", run, **options)

    def draw(self, count: int) -> list[Pair]:
        """So many further problems from the subject's generator."""
        if self.drawer is None:
            raise NotApplicable(
                "speaks about random draws, and the generator of the subject is not known; pass "
                "`generator=`, a function from a seed to (data, net), or a run made from a document"
            )
        return [self.drawer(k) for k in range(count)]

    def may_start(self) -> Engines:
        """The engines; not applicable where starting runs is forbidden."""
        if self.engines is None:
            raise NotApplicable("needs another run, and start_runs=False forbids it")
        return self.engines

    def _start(self, engine: str, *what: Any, **options: Any) -> Trajectory:
        """Start a run; ``max_seconds`` counts the processor, so that no load decides a claim.

        The training of a subject that has no run takes what it takes: its ``max_seconds`` is None.
        """
        start, own = self.may_start()[engine], "max_seconds" not in options
        allowed = options.setdefault("max_seconds", LONGEST) or 0.0
        while True:
            clock, processor = time.monotonic(), time.process_time()
            run = start(*what, **options)
            waited, worked = time.monotonic() - clock, time.process_time() - processor
            if run.status is not Status.BUDGET or not worked < 0.9 * allowed <= waited:
                break
            options["max_seconds"] *= 4.0  # the seconds of the clock went to other work
        if run.status in (Status.FAILED, Status.INTERRUPTED):
            raise Unresolved(
                f"a run of the {engine} ended as `{run.status}`: {run.ending}; "
                "one that goes on, by another rtol, would decide"
            )
        if own and run.status is Status.BUDGET:
            raise Unresolved(
                f"a run of the {engine} did not end within {LONGEST:g} s; "
                "fewer neurons would decide"
            )
        return run


def subject_of(given: object, engines: Engines | None, drawer: Drawer | None = None) -> Subject:
    """Accept a trajectory, a list of them, or a pair (data, net).

    Parameters
    ----------
    given : Trajectory, list of Trajectory, or pair (Dataset, Network)
        What is checked.
    engines : Engines or None
        By which claims may start runs; None forbids it.
    drawer : callable, optional
        From a seed to a pair (data, net), for claims about probabilities.

    Returns
    -------
    Subject
        The runs, and the data and networks they share.
    """
    for k, run in enumerate([given] if isinstance(given, Trajectory) else _sequence(given)):
        no_slope(run.net if isinstance(run, Trajectory) else run, "every claim")
        words = departure(run) if isinstance(run, Trajectory) else ""
        if words:
            raise InputError(
                f"run {k} is trained with {words}. The claims are about plain gradient flow and "
                "descent on all points. Train without, or check the pair (data, net)."
            )
    if isinstance(given, Trajectory):
        return Subject(given.data, given.net, (given,), engines, drawer)
    if isinstance(given, Sequence) and len(given) > 0:
        if all(isinstance(item, Trajectory) for item in given):
            return Subject(given[0].data, given[0].net, tuple(given), engines, drawer)
        if len(given) == 2 and isinstance(given[0], Dataset) and isinstance(given[1], Network):
            data, net = given
            if data.d != net.d:
                raise InputError(
                    f"the network takes {net.d} inputs but the points have {data.d} coordinates. "
                    "Make them agree."
                )
            return Subject(data, net, (), engines, drawer)
    raise InputError(
        f"the subject is a {type(given).__name__}. There is nothing to check in it. Pass a "
        "Trajectory, a list of them, or a pair (data, net)."
    )


def _sequence(given: object) -> Sequence[object]:
    return given if isinstance(given, Sequence) else ()


def untrusted(runs: Sequence[Trajectory]) -> list[str]:
    """Sentences on runs that did not end as was asked, or that are one of several solutions."""
    found = []
    for k, run in enumerate(runs):
        if not run.status.is_asked_for:
            found.append(f"run {k} ended as `{run.status}`: {run.ending}")
        if len(run.branches):
            found.append(f"run {k} is one of several solutions: {branch_text(run)}")
    return found


def branch_text(run: Trajectory) -> str:
    """Where the solution was not unique, or the tolerance did not decide."""
    first, count = run.branches[0], len(run.branches)
    times = "once" if count == 1 else f"{count} times"
    return (
        f"it branches {times}, first at t = {first['t']:.6g} (neuron {first['neuron']}), and "
        "another solution may end elsewhere"
    )
