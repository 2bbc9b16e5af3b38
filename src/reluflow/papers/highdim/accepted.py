"""What the high-dimensional checks accept, and why they refuse the rest."""

from __future__ import annotations

import numpy as np

from reluflow.errors import InputError
from reluflow.losses import Square
from reluflow.theory.subject import Subject

HALF = Square("1/2")


def check_subject(subject: Subject) -> None:
    """Refuse what this theory has no word about."""
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
        some = ", ".join(f"{value:.4g}" for value in a[:5])
        raise InputError(
            f"the output weights begin with {some}. This theory fixes them to +1 and -1. Use "
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
