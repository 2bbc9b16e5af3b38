"""Preparing a case: what the checks accept, what they refuse, and how they call it."""

from __future__ import annotations

import numpy as np

from reluflow.checks import number
from reluflow.errors import InputError
from reluflow.theory.highdim.case import HALF, Case
from reluflow.theory.highdim.draws import step_size
from reluflow.theory.subject import Subject


def prepare(subject: Subject, *, constant: float = 2.0) -> Case:
    """Prepare a case.

    Parameters
    ----------
    subject : Subject
        Runs of descent or flow on the hidden layer under ``Square("1/2")``, or data and network.
    constant : float
        ``C`` of the step :math:`1/(C l_1)` where no run of descent gives a step.
    """
    C = number(constant, "constant", above=0.0)
    for k, run in enumerate(subject.runs):
        if run.loss_function != HALF:
            raise InputError(
                f"run {k} has the loss {run.loss_function!r}. Steps and limits of this theory "
                'belong to half the sum of squares. Train with loss=losses.Square("1/2").'
            )
        if run.options.get("train") != "hidden":
            raise InputError(
                f"run {k} trains both layers. This theory fixes the output weights. Train with "
                'train="hidden".'
            )
    a = subject.net.flat().a
    if not (np.abs(a) == 1.0).all():
        raise InputError(
            f"the output weights are {a.tolist()[:5]}. This theory fixes them to +1 and -1. Use "
            "networks.by_preactivations, or divide each neuron by |a|."
        )
    data = subject.data
    if not data.y.any():
        raise InputError(
            f"all {data.n} labels are zero. There is nothing to fit. Give at least one label."
        )
    low, high = np.linalg.eigvalsh(data.gram)[[0, -1]]
    if data.d < data.n or low <= 1e-12 * high:
        raise InputError(
            f"the {data.n} points in dimension {data.d} are linearly dependent (eigenvalues of the "
            f"Gram matrix from {low:.3g} to {high:.3g}). This theory needs independent points. "
            "Drop some, or use d >= n."
        )
    given = [run.options["lr"] for run in subject.runs if run.engine == "descent"]
    return Case(subject, float(given[0]) if given else step_size(data, C))


def describe(case: Case) -> str:
    """One line on what is checked."""
    signs = f"{int((case.s > 0).sum())} positive and {int((case.s < 0).sum())} negative neurons"
    return (
        f"n = {case.n}, d = {case.ambient}, {signs}, step 1/({case.C:.4g} l1), l1 = {case.l1:.6g}"
    )
