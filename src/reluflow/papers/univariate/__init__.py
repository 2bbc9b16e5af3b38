"""Univariate classifiers: the paper, its rows in the order of its table, page and figures."""

# isort: off
from reluflow.papers.univariate.paper import paper
from reluflow.papers.univariate import assumptions as _assumptions  # noqa: F401
from reluflow.papers.univariate.claims import flow as _flow  # noqa: F401
from reluflow.papers.univariate.claims import limit as _limit  # noqa: F401
from reluflow.papers.univariate.claims import examples as _examples  # noqa: F401
from reluflow.papers.univariate.claims import population as _population  # noqa: F401
from reluflow.papers.univariate import page as _page  # noqa: F401
from reluflow.papers.univariate import predictions as _predictions  # noqa: F401
from reluflow.papers.univariate import wrong as _wrong  # noqa: F401
from reluflow.papers.univariate.figures import RECIPES as _RECIPES

# isort: on

__all__ = ["paper"]

paper.draw(*_RECIPES)
