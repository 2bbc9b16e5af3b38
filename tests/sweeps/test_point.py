"""Points: one id for one computation, whatever its origin."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow.errors import InputError
from reluflow.sweeps import Point, derived_seed, seeded
from reluflow.sweeps.tasks import allowed, echo, resolve, train

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def test_the_id_is_the_digest_of_the_canonical_text():
    import hashlib

    text = '{"parameters":{"a":[1,2.5],"b":"x"},"seed":3,"task":"train"}'
    point = Point("train", {"b": "x", "a": [1, 2.5]}, 3)
    assert point.id == hashlib.sha256(text.encode()).hexdigest()[:32]


@given(st.dictionaries(st.text(max_size=4), PLAIN, max_size=4), st.integers(0, 2**63 - 1))
def test_a_point_survives_json_and_any_order_of_names(parameters, seed):
    point = Point("train", parameters, seed)
    turned = dict(reversed(list(parameters.items())))
    stored = json.loads(json.dumps(point.to_dict()))
    assert point == Point("train", turned, seed) == Point.from_dict(stored)
    assert hash(point) == hash(Point("train", turned, seed))


def test_each_part_counts():
    points = {
        Point("train", {"d": 1}, 0),
        Point("train", {"d": 1.0}, 0),
        Point("train", {"d": 2}, 0),
        Point("train", {"d": 1}, 1),
        Point("reluflow.sweeps.tasks:echo", {"d": 1}, 0),
    }
    assert len({point.id for point in points}) == 5


def test_numpy_numbers_and_arrays_are_plain_afterwards():
    point = Point("train", {"n": np.int64(3), "x": np.float64(0.5), "W": np.eye(2)}, np.int64(1))
    assert point == Point("train", {"n": 3, "x": 0.5, "W": [[1.0, 0.0], [0.0, 1.0]]}, 1)
    assert type(point.seed) is int


def test_parameters_are_a_copy():
    given_list = [1, 2]
    point = Point("train", {"a": given_list}, 0)
    before = point.id
    given_list.append(3)
    assert point.parameters["a"] == [1, 2]
    assert Point.from_dict(point.to_dict()).id == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"a": [1.0, float("nan")]}, r"`parameters.a\[1\]` is nan"),
        ({"a": {"b": object}}, r"`parameters.a.b` is <class 'object'>, which no file can hold"),
        ({1: 2}, "has the name 1. Names are text"),
        ([1], r"`parameters` is \[1\], not a mapping"),
    ],
)
def test_parameters_that_are_no_plain_data_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        Point("train", parameters, 0)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, None])
def test_seeds_outside_63_bits_are_refused(seed):
    with pytest.raises(InputError, match="`seed` is"):
        Point("train", {}, seed)


@pytest.mark.parametrize("task", ["os:system", "reluflows.x:y", "subprocess.x:run"])
def test_tasks_outside_the_package_are_refused(task):
    with pytest.raises(InputError, match="outside the package reluflow"):
        Point(task, {}, 0)


@pytest.mark.parametrize("task", ["", "trian", "reluflow.sweeps", "reluflow:a.b", "x y:z", 3])
def test_names_that_are_no_task_are_refused(task):
    with pytest.raises(InputError, match="A task is 'train' or 'module:function'"):
        Point(task, {}, 0)


def test_a_typo_of_train_is_recognised():
    with pytest.raises(InputError, match="Did you mean 'train'"):
        Point("trian", {}, 0)


def test_tasks_are_found_by_name():
    assert resolve("train") is train
    assert resolve("reluflow.sweeps.tasks:echo") is echo
    assert "reluflow" in allowed()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("reluflow.sweeps.task:echo", "reluflow.sweeps.task cannot be imported"),
        ("reluflow.sweeps.tasks:ecko", "no function 'ecko'. Correct the name. Did you mean 'echo'"),
        ("reluflow.sweeps.compute:ONE_THREAD", "no function 'ONE_THREAD'"),
    ],
)
def test_tasks_that_do_not_exist_are_refused(task, message):
    with pytest.raises(InputError, match=message):
        resolve(task)


def test_a_stored_point_of_another_package_can_be_read_but_not_started():
    point = Point.from_dict({"task": "elsewhere.x:y", "parameters": {}, "seed": 0})
    assert len(point.id) == 32
    with pytest.raises(InputError, match="outside the package"):
        resolve(point.task)
    with pytest.raises(InputError, match="`seed` of a stored point is 'x'"):
        Point.from_dict({"task": "train", "parameters": {}, "seed": "x"})


@given(st.integers(0, 2**63 - 1), st.text(max_size=8), st.text(max_size=8))
def test_derived_seeds_depend_on_seed_and_key(seed, one, other):
    assert 0 <= derived_seed(seed, one) < 2**63
    assert (derived_seed(seed, one) == derived_seed(seed, other)) == (one == other)
    assert derived_seed(seed, one) != derived_seed((seed + 1) % 2**63, one)


def test_derived_seeds_are_spread_evenly():
    """1,000 seeds in 10 boxes: chi-squared with 9 degrees of freedom stays below its 99.9 %."""
    boxes = np.bincount([derived_seed(0, str(k)) * 10 >> 63 for k in range(1000)], minlength=10)
    assert ((boxes - 100) ** 2 / 100).sum() < 27.9


def test_seeds_of_points_depend_on_parameters_and_trial_alone():
    one, two = seeded("train", {"d": 4}, 7), seeded("train", {"d": 5}, 7)
    assert one.seed == seeded("train", {"d": 4}, 7).seed
    assert len({one.seed, two.seed, seeded("train", {"d": 4}, 7, 1).seed}) == 3


def test_ids_are_the_same_in_another_process():
    program = (
        "from reluflow.sweeps import seeded; print(seeded('train', {'b': 1, 'a': [2.5]}, 9).id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == seeded("train", {"a": [2.5], "b": 1}, 9).id


def test_importing_sweeps_loads_neither_dask_nor_msgspec():
    program = (
        "import sys, reluflow.sweeps; print({'dask', 'distributed', 'msgspec'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
