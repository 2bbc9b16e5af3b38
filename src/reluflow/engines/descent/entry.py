r"""Exact gradient descent.

.. math:: \theta \leftarrow \theta - \eta \nabla L(\theta), \qquad \mathrm{relu}'(0) = 0,

both layers updated from old values, or one of them alone. With the loss-based step the update is
:math:`\theta + \alpha \sum_i p_i \nabla q_i` (`reluflow.engines.rates.LossBased`).

This file checks the arguments, drives a form (`reluflow.engines.descent.forms`) from record to
record, and says how the run ended. Limits (``steps=inf``) are in `limit.frozen`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.checks import choice, number, whole
from reluflow.dataset import Dataset
from reluflow.engines.descent.forms import Form, Rule, make_form, saved_rule
from reluflow.engines.descent.limit import frozen
from reluflow.engines.descent.record import LARGEST, iteration_of, schedule
from reluflow.engines.descent.run import Run
from reluflow.engines.practice import Batches, practice_of
from reluflow.engines.progress import bar, is_shown
from reluflow.engines.rates import LossBased
from reluflow.errors import InputError
from reluflow.kernels.descent.weights import STOPPED
from reluflow.losses import Loss, Square
from reluflow.network import Network
from reluflow.trajectory import Trajectory


def descend(
    data: Dataset,
    net: Network,
    *,
    lr: float | LossBased,
    steps: float,
    loss: Loss,
    train: str,
    stop_loss: float | None,
    stop_log_loss: float | None,
    record: Any,
    max_seconds: float | None,
    progress: bool | None,
    decay: float = 0.0,
    batch: int | Batches | None = None,
    momentum: float = 0.0,
    label_noise: float = 0.0,
    seed: Any = None,
    earlier: Trajectory | None = None,
) -> Trajectory:
    r"""Train ``net`` on ``data``; arguments and result as in `reluflow.descend`.

    Parameters
    ----------
    data : Dataset
        Points and labels.
    net : Network
        The start.
    lr : float or LossBased
        Step size.
    steps : float
        Number of steps. Infinite: with a stop, or for the hidden layer under the square loss, whose
        limit is certified.
    loss : Loss
        What is minimised.
    train : {"both", "hidden", "output"}
        What is trained; "hidden" keeps output weights, "output" hidden ones.
    stop_loss, stop_log_loss : float, optional
        The run ends at the first iteration whose loss is at most this.
    record : int or array
        How many states to keep, or the iterations of these states.
    max_seconds : float, optional
        Time, without that of compilation, after which the run ends with status ``budget``.
    progress : bool, optional
        Whether to show a bar once two seconds have passed; if not said, on a terminal.
    decay, batch, momentum, label_noise, seed
        Descent as practised (`reluflow.engines.practice`).
    earlier : Trajectory, optional
        The same run, interrupted: it goes on from there and ends in the same bits.

    Examples
    --------
    >>> import reluflow as rf
    >>> data, net = rf.Dataset([[1.0]], [4.0]), rf.Network([0.5], [[0.5]])
    >>> run = rf.descend(data, net, lr=0.1, steps=1000, stop_loss=1e-20)
    >>> str(run.status), run.final.a.round(9).tolist()
    ('stop_loss', [2.0])

    Numerics
    --------
    A step equals the textbook loop to 1e-13 relative; 1e4 steps to 1e-9 where the dynamics do not
    amplify rounding. Neurons carry powers of two, so any scale is trained like an ordinary one.
    ``at`` repeats the run bitwise from the nearest record. Cost a step: O(m d) plus O(n d) for each
    distinct activation pattern; in Gram form (hidden layer, d > n) O(m n) plus O(n^2) each. See
    ``tests/engines/test_descent.py``.
    """
    asked = {
        "decay": decay,
        "batch": batch,
        "momentum": momentum,
        "label_noise": label_noise,
        "seed": seed,
    }
    rule = _rule(data, net, lr, loss, train, asked)
    limit = number(steps, "steps", at_least=0, infinite=True)
    stop = _stop(stop_loss, stop_log_loss)
    seconds = math.inf if max_seconds is None else number(max_seconds, "max_seconds", above=0.0)
    options = {
        "lr": None if rule.shares else rule.lr,
        "alpha": rule.lr if rule.shares else None,
        "steps": limit,
        "train": train,
        "stop_log_loss": None if math.isnan(stop) else stop,
        "max_seconds": max_seconds,
    }
    if rule.practice is not None:
        options |= rule.practice.to_options()
    if math.isinf(limit):
        if rule.hidden and rule.is_plain and isinstance(rule.loss, Square) and not net.slope:
            wishes = frozen.Wishes(stop, record, seconds, is_shown(progress), earlier)
            return frozen.descend(data, net, rule, options, wishes)
        if math.isnan(stop) and max_seconds is None:
            leaky = f" of a leaky network (slope {net.slope:g})" if net.slope else ""
            raise InputError(
                f'`steps` is infinite with train="{train}" and the {loss.name} loss{leaky}: no '
                "limit can be certified there, so the run would not end. Give `steps`, "
                "`stop_loss` or `max_seconds`."
            )
        limit = LARGEST
    form = make_form(data, net, rule)
    plan = schedule(record, whole(limit, "steps", at_least=0), form.state_bytes)
    run = Run(form, data, rule, stop, plan, np.ndim(record) == 0, net, options)
    if earlier is not None:
        run.take_up(earlier)
    total = limit if limit < LARGEST else None
    with bar(is_shown(progress), "gradient descent", total, kernels=()) as update:
        status = run.go(int(limit), seconds, update)
    return run.trajectory(status)


def replay(run: Trajectory, **target: float) -> Network:
    """Recompute the network of a run at ``t``, ``log_t`` (the last iteration not after it) or
    at the first iteration whose log-loss is at most ``log_loss``.

    Numerics
    --------
    Bitwise what the run had at that iteration, on the machine that made it.
    """
    if run.stats["form"] == "frozen":
        return frozen.replay(run, **target)
    end = int(run.stats["iterations"])
    form = make_form(run.data, run.net, saved_rule(run))
    if "log_loss" in target:
        return _first_below(run, form, number(target["log_loss"], "log_loss", infinite=True), end)
    iteration = iteration_of(target, end)
    begin = _restart(run, form, int(np.searchsorted(run.t, iteration, side="right")) - 1)
    form.advance(begin, iteration - begin, math.nan, math.inf)
    return Network.from_arrays(form.record())


def _restart(run: Trajectory, form: Form, k: int) -> int:
    """Put a form to record k of a run (to its start for k = -1); return the iteration."""
    if k < 0:
        return 0
    form.restore({name: array[k] for name, array in run.kept.items()})
    return int(run.t[k])


def _first_below(run: Trajectory, form: Form, log_loss: float, end: int) -> Network:
    # `least` of a record covers the iterations since the one before it; -inf: it is not known
    least = np.append(run.kept["least"], -np.inf)
    for k in np.flatnonzero(least <= log_loss):
        begin = _restart(run, form, int(k) - 1)
        stop_at = int(run.t[k]) if k < len(run.t) else end
        outcome, *_ = form.advance(begin, stop_at - begin, log_loss, math.inf)
        if outcome == STOPPED:
            return Network.from_arrays(form.record())
    lowest = min([run.log_loss.min(), *least[np.isfinite(least)]])
    when = " at the end of an epoch" if run.options.get("batch") else ""
    raise InputError(
        f"the log-loss of the run never falls to {log_loss:g}{when} (least: {lowest:g}). Ask for "
        "more, or train longer."
    )


# -------------------------------------------------------------------------------- arguments


def _rule(data: Any, net: Any, lr: Any, loss: Any, train: Any, asked: dict[str, Any]) -> Rule:
    if not isinstance(data, Dataset) or not isinstance(net, Network):
        raise InputError(
            f"descend got ({type(data).__name__}, {type(net).__name__}). Pass a Dataset first and "
            "a Network second."
        )
    if net.d != data.d:
        raise InputError(
            f"the network takes {net.d} inputs but the points have {data.d}. Make them agree."
        )
    if not isinstance(loss, Loss):
        raise InputError(
            f"`loss` is {loss!r}. Pass losses.Square(), losses.Exponential() or losses.Logistic()."
        )
    loss.check_data(data.X, data.y)
    if train == "linearised":
        raise InputError(
            '`train` is "linearised" with descent. The linearised network is solved without steps: '
            'use rf.flow(data, net, train="linearised").'
        )
    train = choice(train, "train", ("both", "hidden", "output"))
    practice = practice_of(data, loss, lr, asked)
    if not isinstance(lr, LossBased):
        return Rule(loss, number(lr, "lr", above=0.0), False, train, practice)
    if isinstance(loss, Square):
        raise InputError(
            "`lr` is LossBased with the square loss. Its step grows as margins do, which "
            "regression has not. Pass a number, or use the exponential or logistic loss."
        )
    return Rule(loss, lr.alpha, True, train, practice)


def _stop(stop_loss: Any, stop_log_loss: Any) -> float:
    """The log-loss at which to stop; nan, which nothing is below, if none is asked for."""
    if stop_loss is not None and stop_log_loss is not None:
        raise InputError(
            f"`stop_loss` ({stop_loss!r}) and `stop_log_loss` ({stop_log_loss!r}) are both given. "
            "They say the same thing; keep one."
        )
    if stop_log_loss is not None:
        return number(stop_log_loss, "stop_log_loss", infinite=True)
    if stop_loss is None:
        return math.nan
    value = number(stop_loss, "stop_loss", at_least=0.0)
    return math.log(value) if value > 0.0 else -math.inf
