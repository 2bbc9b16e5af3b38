"""A figure as a paper writes it, made into a `Recipe`: its sweep as a document or as points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reluflow.errors import InputError
from reluflow.theory.contract import Expectation, Recipe, Reproduction

if TYPE_CHECKING:
    from reluflow.figures import Figure
    from reluflow.sweeps import Point, Result


def recipe(
    id: str,
    title: str,
    draw: Callable[[Sequence[Any]], Any],
    quick: Mapping[str, Any] | None,
    full: Mapping[str, Any] | None,
    points: Callable[..., Iterable[Point]] | None,
    options: tuple[str, ...],
) -> Recipe:
    """The recipe of a figure."""
    if (points is None) == (quick is None):
        raise InputError(
            f"the figure {id} has {'no' if points is None else 'two'} sweeps. Give `quick` (and "
            "`full`), documents with a table `sweep`, or `points`, a function."
        )
    made = points or _of_documents(id, {"quick": quick, "full": full or quick})

    def drawn(results: Sequence[Result]) -> Reproduction:
        return _reproduction(draw(results))

    return Recipe(id, title, made, drawn, options)


def _of_documents(
    id: str, documents: Mapping[str, Mapping[str, Any] | None]
) -> Callable[..., Iterable[Point]]:
    def points(size: str, seed: int) -> Iterable[Point]:
        from reluflow.sweeps import Plan

        plan = Plan.build(documents[size] or {}, name=id.replace("/", "-"), seed=seed)
        return plan.points

    return points


def _reproduction(made: Any) -> Reproduction:
    """A figure, a figure with expectations, or a whole reproduction."""
    if isinstance(made, Reproduction):
        return made
    figure, shape = made if isinstance(made, tuple) else (made, ())
    expectations = (shape,) if isinstance(shape, Expectation) else tuple(shape)
    return Reproduction((figure,), _tables(figure), expectations)


def _tables(figure: Figure) -> dict[str, dict[str, list[Any]]]:
    """The curves and points of a figure as columns."""
    tables = {}
    for p, panel in enumerate(figure.panels):
        for k, layer in enumerate(panel.layers):
            x: Any = getattr(layer, "x", None)
            y: Any = getattr(layer, "y", None)
            if hasattr(x, "__len__") and hasattr(y, "__len__") and len(x) == len(y):
                name = f"{figure.name}-{p}-{k}"
                tables[name] = {panel.x.label: list(x), panel.y.label or "y": list(y)}
    return tables
