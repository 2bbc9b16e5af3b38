"""What a neuron does on a point: known to the flow, read from signs where a run has no modes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from reluflow.dataset import Dataset
from reluflow.network import Network, row_norms


class Mode(IntEnum):
    """What a neuron does on a point."""

    INACTIVE = 0
    ACTIVE = 1
    SLIDING = 2  # held on the plane of the point, which attracts it from both sides


# files of 0.1.0 have a slide with the side it came from: 2 from inactive, 3 from active
STORED = np.array([Mode.INACTIVE, Mode.ACTIVE, Mode.SLIDING, Mode.SLIDING], dtype=np.int8)
AFTER = {"activate": Mode.ACTIVE, "deactivate": Mode.INACTIVE, "slide": Mode.SLIDING}


def modes_of_signs(net: Network, data: Dataset, error: float = 0.0) -> NDArray[np.int8]:
    """Modes by the signs of inner products; one within its own error counts as inactive.

    ``error`` bounds that of the weights; where it is not finite, rounding alone counts.
    """
    exponents = np.frexp(np.abs(net.mantissa.W).max(axis=1))[1]
    W = np.ldexp(net.mantissa.W, -exponents[:, None])  # by powers of two: no digit is lost
    unsure = (data.d + 2) * np.finfo(float).eps * (np.abs(W) @ np.abs(data.X).T)
    if np.isfinite(error) and error > 0.0:
        with np.errstate(over="ignore"):
            shift = np.exp(np.log(error) - net.log_scale - exponents * np.log(2.0))
        unsure += np.outer(shift, row_norms(data.X))
    inner = W @ data.X.T
    return np.asarray(inner > unsure).astype(np.int8)
