"""Descent with small steps about a crossroads: where it goes if the rule of planes is silent."""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.kernels.kernel import kernel

# steps between the places of descent that are looked at, and how many; odd: it may have cycles
HOVER, LOOKS = 307, 5


@kernel
def hover(start: Array, base: Array, low: Array, high: Array, U: Array) -> Array:
    """Places (LOOKS, d) that descent with steps of one visits, from ``start``.

    It moves by ``base`` and by ``high`` of the planes ``U`` it is above, ``low`` of the others.
    """
    w, step = start.copy(), np.empty(len(start))
    places = np.empty((LOOKS, len(start)))
    for k in range(LOOKS):
        for _ in range(HOVER):
            for q in range(len(w)):
                step[q] = base[q]
            for p in range(len(U)):
                z = 0.0
                for q in range(len(w)):
                    z += U[p, q] * w[q]
                f = high[p] if z > 0.0 else low[p]
                for q in range(len(w)):
                    step[q] += f * U[p, q]
            w += step
        for q in range(len(w)):
            places[k, q] = w[q]
    return places
