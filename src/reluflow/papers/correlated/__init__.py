"""Correlated inputs: the paper, its rows in the order of its table, page and figures."""

# isort: off
from reluflow.papers.correlated.paper import paper
from reluflow.papers.correlated import assumptions as _assumptions  # noqa: F401
from reluflow.papers.correlated.claims import first_phase as _first_phase  # noqa: F401
from reluflow.papers.correlated.claims import bundle as _bundle  # noqa: F401
from reluflow.papers.correlated.claims import second_phase as _second_phase  # noqa: F401
from reluflow.papers.correlated.claims import limits as _limits  # noqa: F401
from reluflow.papers.correlated.claims import experiments as _experiments  # noqa: F401
from reluflow.papers.correlated.page import findings as _page  # noqa: F401
from reluflow.papers.correlated import predictions as _predictions  # noqa: F401
from reluflow.papers.correlated import wrong as _wrong  # noqa: F401
from reluflow.papers.correlated.figures import RECIPES as _RECIPES

# isort: on

__all__ = ["paper"]

paper.draw(*_RECIPES)
