"""Options by name: losses, and what other libraries have and reluflow has not."""

import inspect

import numpy as np
import pytest

import reluflow as rf
from reluflow.engines.options import ABSENT

DATA = rf.Dataset([[1.0, 0.2], [-0.3, 1.0]], [1.0, -1.0])
NET = rf.Network([0.5, -0.5], [[0.5, 0.1], [-0.4, 0.2]])


@pytest.mark.parametrize("name", ["square", "exponential", "logistic"])
def test_losses_by_name(name):
    loss = {
        "square": rf.losses.Square(),
        "exponential": rf.losses.Exponential(),
        "logistic": rf.losses.Logistic(),
    }[name]
    for train in (
        lambda loss: rf.descend(DATA, NET, lr=0.1, steps=5, loss=loss),
        lambda loss: rf.flow(DATA, NET, t_end=0.5, loss=loss),
    ):
        one, two = train(name), train(loss)
        assert one.loss_function == loss
        np.testing.assert_array_equal(one.log_loss, two.log_loss)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("optimizer", "no choice of optimiser: `rf.descend` is gradient descent"),
        ("adam", "there is no Adam"),
        ("dropout", "there is no dropout"),
        ("layers", "there are no deeper networks: networks have two layers"),
        ("rtoll", "no option `rtoll`. Did you mean 'rtol'"),
        ("lr", "the flow has no step to choose; `rf.descend` has"),
        ("qqq", "no option `qqq`. Its options are loss, train, "),
    ],
)
def test_unknown_options_get_a_sentence(option, message):
    with pytest.raises(rf.InputError, match=message):
        rf.flow(DATA, NET, **{option: 1})


def test_descent_answers_for_itself():
    with pytest.raises(rf.InputError, match=r"`rf.descend` has no option `rtol`.*rf.flow"):
        rf.descend(DATA, NET, lr=0.1, steps=1, rtol=1e-8)


def test_what_is_called_absent_is_absent_from_one_engine_at_least():
    for name in ABSENT:
        known = [name in inspect.signature(engine).parameters for engine in (rf.flow, rf.descend)]
        assert not all(known), name


def test_signatures_stay_readable():
    assert list(inspect.signature(rf.flow).parameters)[:3] == ["data", "net", "loss"]
    assert inspect.signature(rf.flow).parameters["loss"].default == "square"
