"""Orthogonal data: the paper, its rows in the order of its table, page and figures."""

# isort: off
from reluflow.papers.orthogonal.paper import paper
from reluflow.papers.orthogonal import assumptions as _assumptions  # noqa: F401
from reluflow.papers.orthogonal.claims import flow as _flow  # noqa: F401
from reluflow.papers.orthogonal.claims import staircase as _staircase  # noqa: F401
from reluflow.papers.orthogonal.claims import convergence as _convergence  # noqa: F401
from reluflow.papers.orthogonal.claims import interpolator as _interpolator  # noqa: F401
from reluflow.papers.orthogonal.claims import random as _random  # noqa: F401
from reluflow.papers.orthogonal.claims import exact as _exact  # noqa: F401
from reluflow.papers.orthogonal.claims import symmetry as _symmetry  # noqa: F401
from reluflow.papers.orthogonal.page import findings as _page  # noqa: F401
from reluflow.papers.orthogonal import predictions as _predictions  # noqa: F401
from reluflow.papers.orthogonal import wrong as _wrong  # noqa: F401
from reluflow.papers.orthogonal.figures import RECIPES as _RECIPES

# isort: on

__all__ = ["paper"]

paper.draw(*_RECIPES)
