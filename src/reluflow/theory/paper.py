"""Paper: the content of a paper as one object, written with decorators.

::

    paper = Paper("separable", title="Orthogonally separable classes", case=Classes)

    @paper.assumption("A1", "products are positive within a class, at most 0 between classes")
    def separable(case): return holds(...)

    @paper.claim("S4", "directions tend to two vectors", needs=["A1"], regime=["late"])
    def directions(case): return falls(case, lambda net: case.angles(net).max())
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

from reluflow.checks import nearest
from reluflow.departures import departure
from reluflow.errors import InputError
from reluflow.theory.case import Case
from reluflow.theory.contract import Comparison, Findings, LabelledRun, Recipe, Section
from reluflow.theory.statement import Measure, Statement
from reluflow.theory.subject import Subject, subject_of
from reluflow.theory.verdicts import Check

if TYPE_CHECKING:
    from reluflow.dataset import Dataset
    from reluflow.trajectory import Trajectory

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Reference:
    """Who wrote it: a citation in one line, and BibTeX where there is one."""

    authors: str
    title: str = ""
    year: int | None = None
    where: str = ""
    bibtex: str = ""

    def __str__(self) -> str:
        year = "" if self.year is None else str(self.year)
        parts = [self.authors, self.title, " ".join(t for t in (self.where, year) if t)]
        return ". ".join(part.rstrip(".") for part in parts if part) + "."

    @property
    def entry(self) -> str:
        """A BibTeX entry: the given one, or one made from the fields."""
        if self.bibtex or not self.title:
            return self.bibtex
        surnames = [name.split()[-1] for name in self.authors.split(", ")]
        word = re.sub(r"[^a-z]", "", self.title.split()[0].lower())
        arxiv = re.search(r"arXiv (\d{4}\.\d{4,5})", self.where)
        year = self.year or (2000 + int(arxiv[1][:2]) if arxiv else None)
        fields = {
            "author": self.authors.replace(", ", " and "),
            "title": f"{{{self.title}}}",
            "year": "" if year is None else str(year),
            "eprint": arxiv[1] if arxiv else "",
            "archiveprefix": "arXiv" if arxiv else "",
            "note": self.where,
        }
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items() if value]
        key = f"{surnames[0].lower()}{year or ''}{word}"
        return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


class Rows(Mapping[str, Statement]):
    """Statements by id, in the order of their definition; iterating gives the statements."""

    def __init__(self) -> None:
        self._rows: dict[str, Statement] = {}

    def add(self, row: Statement) -> None:
        """Append a row; an id is used once."""
        if row.id in self._rows:
            raise ValueError(f"{row.id} is defined twice")
        self._rows[row.id] = row

    def __getitem__(self, id: str) -> Statement:
        return self._rows[id]

    def __iter__(self) -> Iterator[Statement]:  # type: ignore[override]
        return iter(self._rows.values())

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    def __len__(self) -> int:
        return len(self._rows)


class Paper:
    """A paper: hypotheses, claims, page, figures, data, predictions.

    Parameters
    ----------
    name : str
        By which commands and `reluflow.theory.check` know it.
    title : str
        One line.
    case : subclass of Case
        What the paper computes once per subject; its `prepare` names the options of a check.
    reference : Reference or str
        How to cite it.
    question : str
        What its page answers.
    preset : mapping
        The document of ``reluflow study NAME`` (see `reluflow.studies.document`).
    """

    def __init__(
        self,
        name: str,
        *,
        title: str,
        case: type[Case] = Case,
        reference: Reference | str = "",
        question: str = "",
        preset: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"`name` is {name!r}. Commands and folders are called by it. Use letters, digits, "
                "'-' and '_', a letter first."
            )
        if not (isinstance(case, type) and issubclass(case, Case)):
            raise InputError(
                f"`case` is {case!r}. Claims read a case. Derive it from reluflow.theory.Case."
            )
        self.name, self.title, self.case = name, title, case
        self.reference, self.question, self.preset = reference, question or title, preset
        self.assumptions, self.conditions, self.claims = Rows(), Rows(), Rows()
        self.figures: dict[str, Recipe] = {}
        self.generators: dict[str, Callable[..., Dataset]] = {}
        self.predictor: Callable[..., Any] | None = None
        self._sections: list[tuple[str, str, Callable[[Any], Any]]] = []
        self._findings: Callable[[Sequence[LabelledRun]], Findings] | None = None
        self._options: Callable[[Sequence[LabelledRun]], Mapping[str, Any]] = lambda runs: {}
        self._setting: Callable[[Trajectory], str | None] = lambda run: None
        self._example: Callable[[], Any] | None = None

    def __repr__(self) -> str:
        return f"Paper({self.name!r}: {len(self.claims)} claims, {len(self.figures)} figures)"

    @property
    def citation(self) -> str:
        """The reference as one line."""
        return str(self.reference)

    # ------------------------------------------------------------------ statements

    def assumption(
        self,
        id: str,
        title: str,
        *,
        needs: Iterable[str] = (),
        approach: Callable[[Any], Any] | None = None,
    ) -> Callable[[Measure], Statement]:
        """Decorate the function that measures a hypothesis on a case."""
        return self._register(self.assumptions, id, title, needs, (), approach)

    def condition(
        self,
        id: str,
        title: str,
        *,
        needs: Iterable[str] = (),
        approach: Callable[[Any], Any] | None = None,
    ) -> Callable[[Measure], Statement]:
        """Decorate a hypothesis that only some rows have: "labels of both signs", "late enough".

        It is declared and judged like an assumption, and named in the notes of the rows that need
        it; the table of assumptions shows those of the paper only.
        """
        return self._register(self.conditions, id, title, needs, (), approach)

    def claim(
        self, id: str, title: str, *, needs: Iterable[str] = (), regime: Iterable[str] = ()
    ) -> Callable[[Measure], Statement]:
        """Decorate the function that measures a claim on a case.

        ``needs`` are ids of the hypotheses of the statement, ``regime`` those of its "small, late
        or wide enough".
        """
        return self._register(self.claims, id, title, needs, regime, None)

    def _register(
        self,
        rows: Rows,
        id: str,
        title: str,
        needs: Iterable[str],
        regime: Iterable[str],
        approach: Callable[[Any], Any] | None,
    ) -> Callable[[Measure], Statement]:
        needed, wanted = tuple(needs), tuple(regime)
        for other in (*needed, *wanted):
            if other not in self.assumptions and other not in self.conditions:
                known = [row.id for rows in (self.assumptions, self.conditions) for row in rows]
                raise InputError(
                    f"{self.name} {id} needs {other!r}, which is no assumption of the paper. Define"
                    f" it before; there are {', '.join(known) or 'none'}.{nearest(other, known)}"
                )

        if any(id in known for known in (self.assumptions, self.conditions, self.claims)):
            raise ValueError(f"{id} is defined twice")

        def register(measure: Measure) -> Statement:
            row = Statement(id, title, measure, needs=needed, regime=wanted, approach=approach)
            rows.add(row)
            return row

        return register

    def statement(self, id: str) -> Statement:
        """The assumption, condition or claim of this id."""
        for rows in (self.assumptions, self.conditions):
            if id in rows:
                return rows[id]
        return self.claims[id]

    __getitem__ = statement

    def judged(self, case: Case, id: str) -> Check:
        """The verdict of an assumption on a case, computed once."""
        if id not in case.found:
            case.found[id] = self.statement(id).check(case)
        return case.found[id]

    def options(self) -> list[str]:
        """Names of the options of a check."""
        return [name for name in signature(self.case.prepare).parameters if name != "self"]

    def prepare(self, subject: Subject, **options: Any) -> Case:
        """The case of a subject."""
        known = self.options()
        for name in options:
            if name not in known:
                allowed = ["start_runs", "generator", *known]
                raise InputError(
                    f"`{name}` is not an option of the {self.name} checks. The options are "
                    f"{', '.join(allowed)}.{nearest(name, allowed)}"
                )
        return self.case(self, subject, **options)

    # ------------------------------------------------------------------ page and figures

    def section(self, title: str, text: str) -> Callable[[F], F]:
        """Decorate a function from a case to a figure, or several, of the paper's page."""

        def register(draw: F) -> F:
            self._sections.append((title, text, draw))
            return draw

        return register

    def page(self, findings: F) -> F:
        """Decorate a function from labelled runs to `Findings`: sections and comparisons."""
        self._findings = findings
        return findings

    def check_options(self, options: F) -> F:
        """Decorate a function from labelled runs to the options of their check."""
        self._options = options
        return options

    def options_for(self, runs: Sequence[LabelledRun]) -> Mapping[str, Any]:
        """Options of the check of a study's runs."""
        return self._options(runs)

    def findings(self, runs: Sequence[LabelledRun], case: Case | None = None) -> Findings:
        """What the paper's page shows of these runs; no run is started for it."""
        if case is None:
            case = self.prepare(
                subject_of([item.run for item in runs], None), **self._options(runs)
            )
        found = self._findings(runs) if self._findings else Findings()
        own = []
        for title, text, draw in self._sections:
            drawn = draw(case)
            if drawn is not None:
                figures = tuple(drawn) if isinstance(drawn, list | tuple) else (drawn,)
                own.append(Section(title, text, figures))
        return Findings((*own, *found.sections), found.comparisons)

    def figure(
        self,
        id: str,
        title: str = "",
        *,
        quick: Mapping[str, Any] | None = None,
        full: Mapping[str, Any] | None = None,
        points: Callable[..., Any] | None = None,
        options: tuple[str, ...] = (),
    ) -> Callable[[F], F]:
        """Decorate the function that draws a figure from the results of its sweep.

        The sweep is a document with a table ``sweep`` for each size (``quick``, ``full``), or
        ``points(size, seed, **options)``. The function gets the results and returns a
        `Reproduction`, or a figure, or a figure and its expectations.
        """
        from reluflow.theory.recipes import recipe

        def register(draw: F) -> F:
            made = recipe(f"{self.name}/{id}", title or id, draw, quick, full, points, options)
            self.figures[id] = made
            return draw

        return register

    def draw(self, *recipes: Recipe) -> None:
        """Add figures that are recipes already."""
        for made in recipes:
            self.figures[made.id.partition("/")[2]] = made

    # ------------------------------------------------------------------ data, prediction, setting

    def data(self, generator: F) -> F:
        """Decorate a function that draws a Dataset; documents name it ``NAME/function``."""
        self.generators[generator.__name__] = generator
        return generator

    def predicts(self, predictor: F) -> F:
        """Decorate ``(data, net, loss) -> Prediction`` for `reluflow.limits.predict`."""
        self.predictor = predictor
        return predictor

    def setting(self, recognise: F) -> F:
        """Decorate a function that says why a run belongs to the paper, or returns None."""
        self._setting = recognise
        return recognise

    def recognises(self, run: Trajectory) -> str | None:
        """Why a run is in the setting of the paper; None if it is not."""
        return None if departure(run) else self._setting(run)

    def example(self, subject: F) -> F:
        """Decorate a function that makes a good subject: the claims hold on it."""
        self._example = subject
        return subject


__all__ = ["Comparison", "Paper", "Reference", "Rows"]
