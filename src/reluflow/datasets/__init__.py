"""Data generators, one module a setting; `own` reads the user's points.

Every draw is repeated by its ``seed`` (an int or a ``numpy.random.Generator``), and each docstring
states the order of the draws.
"""

from reluflow.datasets.correlated import (
    centred,
    cone,
    negative_family,
    positive_family,
    two_teachers,
    uncentred,
)
from reluflow.datasets.highdim import bartlett, effective_dimensions, gaussian
from reluflow.datasets.orthogonal import orthonormal
from reluflow.datasets.own import from_csv, from_points
from reluflow.datasets.univariate import sample_1d, teacher_1d

__all__ = [
    "bartlett",
    "centred",
    "cone",
    "effective_dimensions",
    "from_csv",
    "from_points",
    "gaussian",
    "negative_family",
    "orthonormal",
    "positive_family",
    "sample_1d",
    "teacher_1d",
    "two_teachers",
    "uncentred",
]
