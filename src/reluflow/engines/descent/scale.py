r"""Neurons as mantissas and powers of two: ``(a_j, w_j) = 2^e_j (alpha_j, omega_j)``.

A step of gradient descent is linear in a neuron's own weights, given the forces, so multiplying
them by a power of two commutes with it bitwise. One integer exponent a neuron makes any scale an
ordinary one.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import Array
from reluflow.errors import InputError
from reluflow.network import Network

Indices = NDArray[np.int64]

LN2 = Decimal("0.693147180559945309417232121458176568075500134360255254120680009493393621969694716")
# Two layers further apart than this (in powers of two) are brought to this distance: the smaller
# one is forgotten in the first step that touches it either way, all but its signs.
GAP = 400
# Exponents are 64-bit integers.
DEEPEST = 1e18
# Networks are handed out with plain weights, log scale 0, while exponents are this small.
PLAIN = 500


def binary_scale(log_scale: Array) -> tuple[Indices, Array]:
    r"""Integers e and numbers c in (0.7, 1.42) with :math:`2^e c = e^{s}`.

    Numerics
    --------
    The remainder :math:`s - e \log 2` is formed with 80 digits, so c is right to an ulp or two;
    ``tests/engines/descent/test_scale.py`` compares with mpmath up to s = 1e12.
    """
    values, back = np.unique(log_scale, return_inverse=True)
    largest = float(values[np.abs(values).argmax()])
    if abs(largest) > DEEPEST:
        raise InputError(
            f"log_scale reaches {largest:g}. Descent counts powers of two, up to log scales of "
            f"{DEEPEST:g}: keep it within that, or use rf.flow, which takes any."
        )
    exponents = np.rint(values / float(LN2)).astype(np.int64)
    with localcontext() as context:
        context.prec = 80
        remainders = [
            float(Decimal(float(s)) - int(e) * LN2) for s, e in zip(values, exponents, strict=True)
        ]
    return exponents[back], np.exp(np.array(remainders))[back]


def split(net: Network) -> tuple[Array, Array, Indices]:
    """Mantissas ``a`` (m,), ``W`` (m, d) and exponents ``e`` (m,) of a network."""
    e, c = binary_scale(net.log_scale)
    W, shift = _normal(net.mantissa.W)
    W, e = W * c[:, None], e + shift
    e_out, c_out = binary_scale(net.log_scale_out)
    column, shift = _normal(net.mantissa.a[:, None])
    a, e_out = column[:, 0] * c_out, e_out + shift
    live, live_out = W.any(axis=1), a != 0.0
    e, e_out = np.where(live, e, e_out), np.where(live_out, e_out, e)
    e, e_out = np.maximum(e, e_out - GAP), np.maximum(e_out, e - GAP)
    common = np.maximum(e, e_out)
    return np.ldexp(a, e_out - common), np.ldexp(W, (e - common)[:, None]), common


def join(a: Array, W: Array, e: Indices) -> tuple[Array, Array, Array, Indices]:
    """Weights, log scales and the exponents left: zero wherever plain floats hold the neuron.

    Mantissas of the others have their largest entry in [1/2, 1): equal neurons look equal.
    """
    factor = power_of_two(e)
    plain_a, plain_W = a * factor, W * factor[:, None]
    plain = (np.abs(e) <= PLAIN) & ~(_tiny(plain_a, a) | _tiny(plain_W, W))
    left = np.where(plain, 0, e)
    if not plain.all():
        far = np.flatnonzero(~plain)
        shift = np.frexp(np.maximum(np.abs(W[far]).max(axis=1), np.abs(a[far])))[1]
        plain_a[far], plain_W[far] = np.ldexp(a[far], -shift), np.ldexp(W[far], -shift[:, None])
        left[far] += shift
    return plain_a, plain_W, left * float(LN2), left


def plain_weights(net: Network) -> tuple[Array, Array]:
    """``(a, W)`` with scales multiplied in; refused where they leave the range of floats."""
    with np.errstate(over="ignore", under="ignore"):
        sizes = {"a": np.exp(net.log_outputs), "W": np.exp(net.log_norms)}
    for name, size in sizes.items():
        logs = net.log_outputs if name == "a" else net.log_norms
        bad = np.flatnonzero(np.isfinite(logs) & ~((size > 1e-250) & (size < 1e250)))
        if len(bad):
            raise InputError(
                f"`{name}` of neuron {bad[0]} has size {size[bad[0]]:g} with its scale. Training "
                "the hidden layer alone does not commute with scale, so it works on plain numbers "
                'from 1e-250 to 1e250. Use train="both" or an ordinary scale.'
            )
    flat = net.flat()
    return flat.a, flat.W


def as_given(record: dict[str, NDArray[Any]], net: Network, moved: NDArray[np.bool_]) -> None:
    """Put the neurons that have not moved back to the split they came with."""
    still = np.flatnonzero(~moved)
    for name, given in net.to_arrays().items():
        if len(still) and name in record:  # all but the slope of the activation
            record[name] = record[name].copy()
            record[name][still] = given[still]
    record["moved"] = moved


def power_of_two(e: Indices) -> Array:
    """``2^e``, for exponents within +-1000 (others are cut to that)."""
    return np.ldexp(1.0, np.clip(e, -1000, 1000))


def _tiny(values: Array, mantissas: Array) -> NDArray[np.bool_]:
    """Rows in which a value other than zero came close to the end of the range, or beyond."""
    sizes = np.abs(values).reshape(len(values), -1)
    tiny: NDArray[np.bool_] = sizes.min(axis=1) < 2.0**-1000
    if tiny.any():
        tiny = ((sizes < 2.0**-1000) & (mantissas.reshape(sizes.shape) != 0.0)).any(axis=1)
    return tiny


def _normal(rows: Array) -> tuple[Array, Indices]:
    """Rows brought to size one by powers of two if they are far from it, and the exponents."""
    top = np.abs(rows).max(axis=1)
    shift = np.frexp(top)[1].astype(np.int64)
    shift[(top == 0.0) | (np.abs(shift) <= 32)] = 0
    return np.ldexp(rows, -shift[:, None]), shift
