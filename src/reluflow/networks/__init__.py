"""Initialisations: networks before training.

Every draw is repeated by its ``seed`` (an int or a ``numpy.random.Generator``), and each docstring
states the order of the draws.
"""

from reluflow.networks.chosen import by_preactivations
from reluflow.networks.independent import fan_in_uniform, gaussian
from reluflow.networks.scaled import balanced, dominated, unbalanced

__all__ = [
    "balanced",
    "by_preactivations",
    "dominated",
    "fan_in_uniform",
    "gaussian",
    "unbalanced",
]
