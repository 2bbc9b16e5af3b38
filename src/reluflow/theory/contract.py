"""What a paper shows: sections and comparisons of its page, figures with their expected shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from reluflow.theory.verdicts import Verdict
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.figures import Figure
    from reluflow.sweeps import Point, Result

Size = Literal["quick", "full"]


@dataclass(frozen=True)
class Expectation:
    """One number of a figure's shape, the interval it should lie in, and where that is from."""

    text: str
    measured: float
    low: float
    high: float
    source: str

    @property
    def verdict(self) -> Verdict:
        """PASS inside the interval, FAIL outside, UNRESOLVED if there is no number."""
        if math.isnan(self.measured):
            return Verdict.UNRESOLVED
        return Verdict.PASS if self.low <= self.measured <= self.high else Verdict.FAIL


@dataclass(frozen=True)
class Reproduction:
    """What a recipe draws: figures, their numbers as named columns, the shape against theory.

    ``tables`` maps a table name to its columns (equal lengths); each is written as CSV.
    """

    figures: tuple[Figure, ...]
    tables: Mapping[str, Mapping[str, Sequence[Any]]]
    expectations: tuple[Expectation, ...]
    note: str = ""


@dataclass(frozen=True)
class Recipe:
    """A figure: the computations it needs at a size, and how to draw it from their results.

    1. ``points(size, seed, **options)`` lists the computations (`reluflow.sweeps.Point`; tasks are
       functions of a package); they run on all workers, are stored, and never run twice.
    2. ``draw(results)`` gets the results in the same order (failed ones are left out) and
       describes the figure. It computes no training.
    """

    id: str
    title: str
    points: Callable[..., Iterable[Point]]
    draw: Callable[[Sequence[Result]], Reproduction]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """A predicted number beside the simulated one; ``note`` says what the difference means."""

    name: str
    predicted: float
    simulated: float
    note: str = ""

    @property
    def discrepancy(self) -> float:
        """Relative difference; absolute where the prediction is zero."""
        gap = abs(self.simulated - self.predicted)
        return gap / abs(self.predicted) if self.predicted else gap


@dataclass(frozen=True)
class Said:
    """A sentence of the paper about runs, and the claims that must hold for it to be a fact.

    The page says it as it stands where they do, and says what fails where they do not.
    """

    text: str
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A titled part of the page: a paragraph (plain text) and figures.

    ``text`` is true whatever the verdicts are: what is drawn, definitions, numbers. ``said``
    goes on with what the paper says, as far as it holds.
    """

    title: str
    text: str
    figures: tuple[Figure, ...] = ()
    said: tuple[Said, ...] = ()


@dataclass(frozen=True)
class LabelledRun:
    """A run and how the page calls it, such as "scale 4^-7"."""

    label: str
    run: Trajectory


@dataclass(frozen=True)
class Findings:
    """What a paper adds to the page of its runs."""

    sections: tuple[Section, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
