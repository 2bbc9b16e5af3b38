"""Bundles of arrays that the kernels of the flow take as one argument."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from reluflow.checks import Array

# codes in a list of crossings, beside the modes
RELEASE, FLIP = 4, 6


class Points(NamedTuple):
    """The data: ``X`` (n, d), its Gram matrix, the lengths of the points, the labels."""

    X: Array
    gram: Array
    lengths: Array
    y: Array


class Law(NamedTuple):
    """The force law and what is trained; ``rate`` is one over the unit of clock time.

    ``kappa`` is the factor of the square loss, ``force_scale`` its largest force at outputs zero
    (1 for the others), ``longest`` the length of the longest point.
    """

    hidden: bool
    kappa: float
    force_scale: float
    longest: float
    rate: float


class Rows(NamedTuple):
    """Classes of neurons with the same activation row.

    ``cid`` (m,) names the class of a neuron, -1 if it is dead; ``active`` (C, n) its active points.
    The sliding points of class c are ``point[begin[c]:begin[c + 1]]``; ``dual`` (P, d) is the dual
    basis of their planes and ``lift`` (P, n) takes forces to the multipliers of the projection.
    """

    cid: NDArray[Any]
    active: NDArray[Any]
    begin: NDArray[Any]
    point: NDArray[Any]
    dual: Array
    lift: Array


class Neurons(NamedTuple):
    """All neurons at the start of a step; ``weight`` is ``exp(2 sigma)``, ``z = w X^T``."""

    a: Array
    w: Array
    z: Array
    weight: Array
    mode: NDArray[Any]


class Tables(NamedTuple):
    """Coefficients of the collocation methods; see `reluflow.engines.flow.tableau`."""

    radau: Array
    radau_a: Array
    to_start: Array
    to_gauss: Array
    nodes: Array
    gauss: Array
    gauss_a: Array
    gauss_b: Array
    path: Array
    force: Array
