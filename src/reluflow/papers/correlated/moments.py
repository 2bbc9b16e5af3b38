r"""Moments of a run: the network at a time and what the second phase says about it.

The bundle vector :math:`v = \sum_{J_+} a_j w_j` starts near :math:`\lambda^2` and ends near the
teacher. It is kept as :math:`e^\ell \hat v` with :math:`|\hat v|` near 1, so that early moments
lose nothing; late ones carry the difference :math:`e = v^* - v` with the accuracy of the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.checks import Array
from reluflow.network import Network
from reluflow.papers.correlated.case import Correlated
from reluflow.theory.verdicts import Unresolved
from reluflow.trajectory import Status, Trajectory

LOSS_FLOOR = float(np.log(1e-20))


@dataclass(frozen=True)
class Moment:
    r"""A network at a time ``t`` of the paper.

    ``ratios``: :math:`\hat X_k` with :math:`\nu_k/\nu^*_k = e^\ell \hat X_k`; ``log_size``:
    :math:`\ell`; ``error``: :math:`v^* - v`; ``log_loss``: of the paper's loss; ``record``: which
    one of the run it is, if it is one.
    """

    t: float
    net: Network
    log_size: float
    vector: Array
    ratios: Array
    error: Array
    residual: Array
    log_loss: float
    record: int | None = None

    @property
    def size(self) -> float:
        """The norm of v; 0 below the range of floats."""
        return float(np.exp(self.log_size) * np.linalg.norm(self.vector))


def moment(case: Correlated, t: float, net: Network, record: int | None = None) -> Moment:
    """Evaluate a network at a time of the paper."""
    chosen = case.positive
    logs = (net.log_scale + net.log_scale_out)[chosen]
    top = float(logs.max())
    vector = (net.mantissa.a[chosen] * np.exp(logs - top)) @ net.mantissa.W[chosen]
    shift = float(np.log(np.linalg.norm(vector))) if vector.any() else 0.0
    vector, top = vector * np.exp(-shift), top + shift
    residual = case.data.y - net.predict(case.data.X)
    with np.errstate(divide="ignore"):
        ratios = (case.spectrum[1] @ vector) / case.target
        log_loss = float(np.log(residual @ residual / (2 * case.data.n)))
    return Moment(
        t=t,
        net=net,
        log_size=top,
        vector=vector,
        ratios=ratios,
        error=case.teacher - np.exp(top) * vector,
        residual=residual,
        log_loss=log_loss,
        record=record,
    )


def network_at(case: Correlated, t: float) -> Network:
    """The network at a time of the paper; undecided beyond the end of a run that was cut short."""
    asked = t / case.rate
    run = case.run
    if asked > run.t[-1] and run.status not in (Status.CONVERGED, Status.STATIONARY):
        raise Unresolved(
            f"the run ends at t = {run.t[-1] * case.rate:.4g}, before {t:.4g}; continue it"
        )
    return run.at(t=asked)


def second_phase(case: Correlated) -> list[Moment]:
    """The start of the second phase and every later record with a loss above 1e-20."""
    if "second" not in case.kept:
        found = [moment(case, case.begin, network_at(case, case.begin))]
        run: Trajectory = case.run
        for k in np.flatnonzero(run.t * case.rate > case.begin).tolist():
            found.append(moment(case, float(run.t[k] * case.rate), run.network(k), k))
        case.kept["second"] = [m for m in found if m.log_loss > LOSS_FLOOR]
    kept: list[Moment] = case.kept["second"]
    return kept


def departure(case: Correlated) -> float:
    r"""T2: when :math:`\nu_1` reaches half of :math:`\nu^*_1`."""
    if "departure" not in case.kept:
        case.kept["departure"] = _departure(case)
    return float(case.kept["departure"])


def after_departure(case: Correlated) -> list[Moment]:
    """The records after T2, by their order: at deep scales times differ by less than their ulp."""
    moments = second_phase(case)
    after = next((k for k, found in enumerate(moments) if _lead(found) >= 0), len(moments))
    return moments[after:]


def _departure(case: Correlated) -> float:
    moments, late = second_phase(case), after_departure(case)
    if not late:
        return np.inf
    after = len(moments) - len(late)
    if after == 0:
        return moments[0].t
    low, high = moments[after - 1].t, moments[after].t
    for _ in range(40):
        middle = 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-9 + 1e-15 * high:
            break
        if _lead(moment(case, middle, network_at(case, middle))) < 0:
            low = middle
        else:
            high = middle
    return high


def _lead(found: Moment) -> float:
    """Log of twice the first ratio: positive once half of the first coordinate is learned."""
    first = float(found.ratios[0])
    return float(np.log(2.0 * first)) + found.log_size if first > 0 else -np.inf


def squared_gradient(case: Correlated, found: Moment) -> float:
    r""":math:`|\nabla L|^2 = \sum_j (w_j \cdot g_j)^2 + a_j^2 |g_j|^2`."""
    net, run = found.net.flat(), case.run
    # by modes: a neuron that has died lies on the plane of its last point up to rounding
    known = found.record is not None
    active = run.active(found.record) if known else run.active(t=found.t / case.rate)
    g = (active * found.residual) @ case.data.X / case.data.n
    along = np.einsum("jd,jd->j", net.W, g)
    return float((along**2).sum() + (net.a**2 * np.einsum("jd,jd->j", g, g)).sum())
