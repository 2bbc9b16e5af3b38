"""Options of the engines: one that does not exist is answered with what is nearest to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from reluflow.checks import nearest
from reluflow.errors import InputError
from reluflow.wording import cut

P = ParamSpec("P")
R = TypeVar("R")

_PLAIN = "`rf.descend` is gradient descent, `rf.flow` its limit of small steps"
_STEPS = "the flow is the limit of small steps on all points"
_TWO_LAYERS = "networks have two layers: `rf.Network(a, W)`"
# what users of other libraries ask for: why it is not here, and what is
ABSENT = {
    "optimizer": f"there is no choice of optimiser: {_PLAIN}",
    "optim": f"there is no choice of optimiser: {_PLAIN}",
    "method": f"there is no choice of method: {_PLAIN}",
    "adam": f"there is no Adam: {_PLAIN}",
    "betas": f"there is no Adam: {_PLAIN}",
    "momentum": f"{_STEPS}; momentum is for `rf.descend`",
    "batch": f"{_STEPS}; batches are for `rf.descend`",
    "batch_size": f"{_STEPS}; `batch` of `rf.descend` is the number of points of a step",
    "label_noise": f"{_STEPS}; noise on labels is for `rf.descend`",
    "dropout": "there is no dropout: every neuron is trained at every step",
    "weight_decay": "weight decay is `decay`; the network it cannot beat is "
    "`rf.interpolators.min_norm(data, decay=mu)`",
    "depth": f"there are no deeper networks: {_TWO_LAYERS}",
    "layers": f"there are no deeper networks: {_TWO_LAYERS}",
    "activation": "neurons are ReLU, or leaky ReLU: `rf.Network(a, W, slope=0.1)`",
    "slope": "the slope is that of the network: `rf.Network(a, W, slope=0.1)`",
    "width": f"the width is that of the network; {_TWO_LAYERS}",
    "seed": "the flow draws nothing; the seed belongs to the data or the network",
    "epochs": "an epoch is n / `batch` steps; use `steps` of `rf.descend` or `t_end` of `rf.flow`",
    "max_iter": "use `steps` of `rf.descend` or `t_end` of `rf.flow`",
    "iterations": "use `steps` of `rf.descend` or `t_end` of `rf.flow`",
    "learning_rate": "the step is `lr` of `rf.descend`; the flow has none",
    "lr": "the flow has no step to choose; `rf.descend` has",
    "steps": "the flow runs in time: use `t_end`, or `rf.descend`",
    "t_end": "descent runs in steps: use `steps`, or `rf.flow`",
    "rtol": "descent is computed exactly, step by step; `rf.flow` has a tolerance",
    "tol": "use `stop_loss` for the loss to reach, `rtol` of `rf.flow` for the accuracy",
}


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function answer unknown options with a sentence instead of a TypeError."""
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def answered(*given: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                raise InputError(_answer(function.__name__, name, known))
        return function(*given, **options)

    return answered


def _answer(function: str, name: str, known: list[str]) -> str:
    why = ABSENT.get(name.lower())
    listed = ", ".join(known[2:])
    end = f" Here {why}." if why else nearest(name, known)
    return f"`rf.{function}` has no option `{cut(name, 40)}`.{end} Its options are {listed}."
