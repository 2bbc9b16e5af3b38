"""Signs of output weights, checked or drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reluflow.checks import Array, choice, real_array
from reluflow.errors import InputError


def given_signs(signs: ArrayLike) -> Array:
    """Return ``signs`` as a vector if every entry is -1 or 1.

    Examples
    --------
    >>> given_signs([1, -1])
    array([ 1., -1.])
    """
    vector = real_array(signs, "signs", 1)
    bad = np.flatnonzero(np.abs(vector) != 1.0)
    if len(bad) or len(vector) == 0:
        got = f"`signs[{bad[0]}]` is {vector[bad[0]]:g}" if len(bad) else "`signs` is empty"
        raise InputError(f"{got}; each neuron needs a sign -1 or 1. Change it.")
    return vector


def draw_signs(signs: str | ArrayLike, width: int, rng: np.random.Generator) -> Array:
    """Fair signs for "random", ones for "positive", or the (width,) array given."""
    if isinstance(signs, str):
        kind = choice(signs, "signs", ("random", "positive"))
        return np.ones(width) if kind == "positive" else rng.choice([-1.0, 1.0], width)
    vector = given_signs(signs)
    if len(vector) != width:
        raise InputError(f"`signs` has {len(vector)} entries for {width} neurons. Give one each.")
    return vector
