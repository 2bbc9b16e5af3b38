"""Regression in high dimension: the paper, its rows in the order of its table, page and figures."""

# isort: off
from reluflow.papers.highdim.paper import paper
from reluflow.papers.highdim import assumptions as _assumptions  # noqa: F401
from reluflow.papers.highdim.claims import steps as _steps  # noqa: F401
from reluflow.papers.highdim.claims import single as _single  # noqa: F401
from reluflow.papers.highdim.claims import scaling as _scaling  # noqa: F401
from reluflow.papers.highdim.claims import two as _two  # noqa: F401
from reluflow.papers.highdim.claims import many as _many  # noqa: F401
from reluflow.papers.highdim.claims import regimes as _regimes  # noqa: F401
from reluflow.papers.highdim import page as _page  # noqa: F401
from reluflow.papers.highdim import predictions as _predictions  # noqa: F401
from reluflow.papers.highdim import wrong as _wrong  # noqa: F401
from reluflow.papers.highdim.figures import RECIPES as _RECIPES

# isort: on

__all__ = ["paper"]

paper.draw(*_RECIPES)
