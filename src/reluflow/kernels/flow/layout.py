"""Bundles of arrays that the kernels of the flow take as one argument, and codes of events."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from reluflow.checks import Array

# modes of a pair (neuron, plane): below it, above it, sliding along it
BELOW, ABOVE, SLIDE = 0, 1, 2
# codes in a list of events where no plane changes its mode; a branch comes after GRAZES where the
# error decides: a neuron comes so near to a plane that repels it, or crosses it so slowly, or
# leaves one that has come to repel it at a time so ill known
DIE, FLIP, BRANCH, GRAZES = 5, 6, 7, 8


class Planes(NamedTuple):
    """The planes of the points: point i is ``length[i]`` (either sign) times ``U[owner[i]]``.

    ``U`` (P, d) are unit normals and ``gram`` their products. ``both`` (P,) marks planes that pull
    on either side; the others have points above only, where ``u.w > 0``. Inactive points count
    ``slope`` times (leaky ReLU): then all planes pull on both sides.
    """

    U: Array
    gram: Array
    both: NDArray[Any]
    owner: NDArray[Any]
    length: Array
    y: Array
    slope: float = 0.0


class Law(NamedTuple):
    """The force law and what is trained, in natural units.

    ``kappa`` is the factor of the square loss (0 for the others), ``logistic`` tells these apart;
    ``force_scale`` is the largest force at outputs zero, ``rate`` one over the unit of the clock.
    All weights decay at the rate ``decay``; the clock of every loss is then time.
    """

    hidden: bool
    kappa: float
    logistic: bool
    force_scale: float
    rate: float
    decay: float = 0.0


class Rows(NamedTuple):
    """Classes of neurons that lie alike to all planes.

    ``cid`` (m,) names the class of a neuron, -1 if nothing moves it; ``face`` (C, P) its modes. The
    slides of class c are ``plane[begin[c]:begin[c + 1]]``; ``dual`` (Q, d) is the dual basis of
    their planes and ``lift`` (Q, P) takes the forces of the other planes to their multipliers.
    ``free`` (C,) marks slides on independent planes, whose weights say when they end. Where ``ray``
    (C,) is set, all pulls on the class lie along ``axis`` (C, d).
    """

    cid: NDArray[Any]
    face: NDArray[Any]
    begin: NDArray[Any]
    plane: NDArray[Any]
    dual: Array
    lift: Array
    free: NDArray[Any]
    ray: NDArray[Any]
    axis: Array


class Neurons(NamedTuple):
    """All neurons ``exp(sigma_j) (a_j, w_j)``; ``z = w U^T`` and ``weight = exp(2 sigma)``.

    The balance ``a^2 - |w|^2`` is ``sign exp(log_balance)`` for ever. ``still`` is the part of
    ``w`` across the ray a neuron moves along, at log scale ``still_sigma`` (nan: not known).
    """

    a: Array
    w: Array
    sigma: Array
    mode: NDArray[Any]
    z: Array
    weight: Array
    sign: Array
    log_balance: Array
    still: Array
    still_sigma: Array


class Tables(NamedTuple):
    """Coefficients of a collocation method with S stages; see `reluflow.engines.flow.tableau`.

    Forces have S nodes ``radau`` with the matrix ``radau_a``; ``to_start`` (S,) and ``to_gauss``
    take values there to the start and to the S nodes ``gauss``, of the method that moves neurons,
    with matrix ``gauss_a`` and weights ``gauss_b``. ``nodes`` are the start and the Radau nodes.
    ``path`` (S + 2, S + 1) are the Bernstein coefficients of the integrals of the basis polynomials
    of the start and the Gauss nodes, ``bound`` the largest of each; these polynomials themselves
    stay below ``spread``. ``force`` (S + 1, S + 1) are the Bernstein coefficients of those of
    ``nodes``.
    """

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
    bound: Array
    spread: Array


class Path(NamedTuple):
    """Forces of the planes as polynomials on a step: values at K ``nodes`` of the unit interval.

    ``low`` and ``high`` (K, P) are the pulls of a plane's points below and above it; ``scale`` are
    the denominators of the Lagrange polynomials of the nodes.
    """

    nodes: Array
    scale: Array
    low: Array
    high: Array
    step: float
    hidden: bool


class Limits(NamedTuple):
    """What counts as zero, and which events a step may pass over; see `engines.flow.tolerances`.

    A pre-activation below ``on_plane`` times the size of the neuron is zero, and one below ``tick``
    times its output weight, what a neuron moves while the clock ticks once, if that is not trained:
    then it comes to the origin, where its size is no measure. The weight of a slide
    has left [0, 1] if it comes to be outside by ``far``, and did so when it was outside by ``near``
    (shares of the forces, at least of ``unit``), or by less if the mean of what it is outside by is
    more than ``most``, a force. Neurons whose size times the square of the boost
    is below ``light`` may have events inside a step; the same for the share of the step after their
    first event and ``late``, if that share is at most ``tail``. A neuron walks in parts in which it
    turns by a boost of ``turn`` at most. Its pre-activations are known to ``known`` of its size.
    """

    on_plane: float
    tick: float
    near: float
    far: float
    unit: float
    light: float
    late: float
    tail: float
    most: float
    turn: float
    known: float
