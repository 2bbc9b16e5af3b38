"""In what a run departs from plain training: gradient flow or descent of a ReLU network.

Theorems, limits and pages of papers are about plain training, of both layers or of the hidden one,
on all points. They ask here, and say the sentence instead of an answer about another kind of run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reluflow.trajectory import Trajectory


def departure(run: Trajectory) -> str:
    """What a run does that plain training does not, in words; empty if nothing.

    Examples
    --------
    >>> import reluflow as rf
    >>> data, net = rf.Dataset([[1.0]], [4.0]), rf.Network([0.5], [[0.5]])
    >>> departure(rf.descend(data, net, lr=0.1, steps=3, momentum=0.9, decay=0.01))
    'momentum 0.9, weight decay 0.01'
    """
    leaky = f"a leaky activation of slope {run.net.slope:g}" if run.net.slope else ""
    return ", ".join(filter(None, [leaky, of_steps(run)]))


def of_steps(run: Trajectory) -> str:
    """`departure` in what moves the weights, whatever the activation of the network."""
    options = run.options
    found = []
    if options.get("train") in ("output", "linearised"):
        is_output = options["train"] == "output"
        found.append("output weights alone" if is_output else "the network linearised")
    if options.get("rates"):
        hidden, output = options["rates"]
        found.append(f"rates {hidden:g} and {output:g} of the layers")
    if options.get("batch"):
        how = " drawn with replacement" if options.get("replacement") else ""
        found.append(f"batches of {options['batch']}{how}")
    for name, words in (
        ("momentum", "momentum"),
        ("label_noise", "noise on labels"),
        ("decay", "weight decay"),
    ):
        if options.get(name):
            found.append(f"{words} {options[name]:g}")
    return ", ".join(found)
