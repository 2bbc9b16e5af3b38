"""The example of the study: three correlated points whose rank-1 fit has not the least norm."""

from __future__ import annotations

import math
from typing import Any

# Seed 57 has V > 1 (a rank-2 network fits with a smaller norm), an Assumption 2 that is among the
# mildest of such data, and time scales within three decades.
DEEP = -4e7

DOCUMENT: dict[str, Any] = {
    "name": "correlated",
    "seed": 57,
    "study": {
        "paper": "correlated",
        "title": "Learning one neuron from correlated inputs",
        "log_scales": [*(-power * math.log(4.0) for power in (7, 3, 5, 9)), DEEP],
    },
    "data": {"generator": "cone", "d": 3, "n": 3, "half_angle": 0.75},
    "network": {"init": "balanced", "width": 24, "directions": "sphere"},
    "engine": {"name": "flow", "rtol": 1e-11, "record": 400},
}
