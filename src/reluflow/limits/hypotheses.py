"""Hypotheses of the limit theorems, tested on the data: each failure is one clause of text.

A function here returns the reasons why a theorem does not apply (an empty list if it does), so that
a limit can refuse with them and `predict` can list them.
"""

from __future__ import annotations

import numpy as np

from reluflow.checks import Array
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.network import Network, no_slope

BALANCE_TOLERANCE = 1e-9
LABEL_TOLERANCE = 1e-9


def check_pair(data: Dataset, net: Network, what: str | None = None) -> None:
    """Refuse what is not a Dataset and a Network of the same input dimension.

    ``what`` names a limit that is known for ReLU networks only.
    """
    if not isinstance(data, Dataset):
        raise InputError(f"`data` is a {type(data).__name__}, not a Dataset. Build one from X, y.")
    if not isinstance(net, Network):
        raise InputError(f"`net` is a {type(net).__name__}, not a Network. Build one from a, W.")
    if data.d != net.d:
        raise InputError(
            f"the points have {data.d} coordinates but the network takes {net.d} inputs. "
            "No pre-activation is defined. Make them agree."
        )
    if what is not None:
        no_slope(net, f"`{what}`")


def imbalance(net: Network) -> list[str]:
    """Neurons with ``|a_j| != |w_j|`` (relative difference above 1e-9)."""
    # only the difference of the two logs matters, and it must not be rounded at log scale -1e6
    norms = net.with_scale(0.0)
    split = net.log_scale_out - net.log_scale
    outputs, hidden = norms.log_outputs, norms.log_norms
    zero = np.isneginf(outputs) & np.isneginf(hidden)
    with np.errstate(invalid="ignore"):
        gap = np.where(zero, 0.0, np.abs(outputs - hidden + split))
    bad = np.flatnonzero(gap > BALANCE_TOLERANCE)
    if not len(bad):
        return []
    return [f"the network is not balanced: log|a| - log|w| is {gap[bad[0]]:.3g} at neuron {bad[0]}"]


def common_scale(net: Network) -> tuple[float, Array]:
    """Split the log scales into a common part and log factors ``log_scale_j - common <= 0``."""
    common = float(net.log_scale.max())
    return common, net.log_scale - common


def teacher_vector(data: Dataset) -> tuple[Array | None, list[str]]:
    r"""The vector v in the span of the points with :math:`y_i = v \cdot x_i > 0`.

    It is the teacher itself when the points span the space, otherwise the teacher's projection on
    their span: the part outside is invisible in the data and is never learned.
    """
    low = int(np.argmin(data.y))
    if data.y[low] <= 0:
        return None, [f"label y[{low}] is {data.y[low]:g}, not positive"]
    solution, _, rank, _ = np.linalg.lstsq(data.X, data.y, rcond=None)
    given = _given_teacher(data)
    vector = given if given is not None and rank == data.d else np.asarray(solution)
    tolerance = LABEL_TOLERANCE * float(data.y.max())
    for candidate in [vector] if given is None else [given, vector]:
        gap = np.abs(data.X @ candidate - data.y)
        worst = int(np.argmax(gap))
        if gap[worst] > tolerance:
            return None, [
                f"the labels are not relu(v.x) of one vector v (y[{worst}] is off by "
                f"{gap[worst]:.3g})"
            ]
    return vector, []


def _given_teacher(data: Dataset) -> Array | None:
    teacher = data.teacher
    if isinstance(teacher, Network):
        if teacher.width != 1 or teacher.signs[0] <= 0:
            return None
        flat = teacher.flat()
        return np.asarray(flat.a[0] * flat.W[0])
    return teacher


def largest_angle(vector: Array, X: Array) -> float:
    """The largest angle between a vector and the rows of X, without ``acos``."""
    unit = vector / np.linalg.norm(vector)
    rows = X / np.linalg.norm(X, axis=1)[:, None]
    chord, sum_ = np.linalg.norm(rows - unit, axis=1), np.linalg.norm(rows + unit, axis=1)
    return float(2.0 * np.arctan2(chord, sum_).max())


def negative_products(data: Dataset) -> list[str]:
    """Pairs of points whose inner product is not positive."""
    low = int(np.argmin(data.gram))
    i, k = divmod(low, data.n)
    if data.gram[i, k] > 0:
        return []
    return [f"points {i} and {k} have inner product {data.gram[i, k]:.3g}, not positive"]


def rounding_of_products(data: Dataset) -> float:
    """How far products of orthonormal points may be from 0 and 1 by rounding alone."""
    return float(4.0 * np.finfo(float).eps * (data.d + 2))


def orthonormal_tolerance(data: Dataset, net: Network) -> float:
    r"""How far from orthonormal the points may be at the scale of this start.

    A neuron that has grown to size 1 meets a point it is inactive on with
    :math:`w \cdot x_i = c_i(0) + O(\delta)`, where :math:`c_i(0)` is of the size of the start and
    :math:`\delta` the deviation: orthogonality counts only if :math:`\delta` is far below the
    scale. Points orthonormal up to the rounding of their own products count as orthonormal.
    """
    rounding = rounding_of_products(data)
    log_scale = float(net.log_norms.max(initial=-np.inf))
    scale = np.exp(min(log_scale, 0.0)) if np.isfinite(log_scale) else 0.0
    return float(max(rounding, 1e-3 * scale))


def not_orthonormal(data: Dataset, net: Network) -> list[str]:
    """The largest deviation of ``X X^T`` from the identity, if it matters at this scale."""
    gap = np.abs(data.gram - np.eye(data.n))
    i, k = divmod(int(np.argmax(gap)), data.n)
    tolerance = orthonormal_tolerance(data, net)
    if gap[i, k] <= tolerance:
        return []
    return [
        f"the points are not orthonormal: x_{i}.x_{k} is {data.gram[i, k]:.12g} (off by "
        f"{gap[i, k]:.3g}, {tolerance:.3g} allowed at this scale)"
    ]


def refuse(name: str, failures: list[str]) -> None:
    """Raise InputError with the failed hypotheses, if any."""
    if failures:
        raise InputError(
            f"`{name}` does not apply: {'; '.join(failures)}. Its limit is unknown there. "
            "Change the data or the network, or ask `limits.predict` which limit applies."
        )
