"""Tasks and small tools of these tests; workers import this module as ``sweeps.helpers``."""

import hashlib
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import reluflow as rf
from reluflow.sweeps import Plan, Point, allow

allow("sweeps")
LOG = "RELUFLOW_TEST_LOG"

SWEEP = """
name = "toy"
[data]
generator = "centred"
d = 3
[network]
init = "balanced"
width = 5
log_scale = -2
[engine]
name = "descent"
lr = 0.05
steps = 30
[sweep]
seed = 7
repeats = 2
[sweep.grid]
"network.log_scale" = [-1, -3]
"data.d" = [2, 3]
"""


def note(parameters):
    """Leave a line for each computation where the test asked for it."""
    if LOG in os.environ:
        with open(os.environ[LOG], "a", encoding="utf-8") as stream:
            stream.write(f"{parameters['x']}\n")


def square(parameters, seed):
    note(parameters)
    time.sleep(parameters.get("pause", 0.0))
    x = parameters["x"]
    return {"square": x * x, "draws": np.random.default_rng(seed).normal(size=3)}


def odd_ones_fail(parameters, seed):
    if parameters["x"] % 2 and not Path(parameters.get("mended", "")).is_file():
        raise ValueError(f"{parameters['x']} is odd")
    return square(parameters, seed)


def deadly(parameters, seed):
    """Kill the process that computes the point named ``bad``, each time."""
    note(parameters)
    if parameters["x"] == parameters["bad"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": parameters["x"] ** 2}


def leaves(parameters, seed):
    raise SystemExit(3)


def returns_a_list(parameters, seed):
    return [1, 2]


def returns_an_object(parameters, seed):
    return {"x": object()}


def stops(parameters, seed):
    """A run that ended as the parameter ``as`` says, unless it was mended since."""
    note(parameters)
    data, net = rf.Dataset([[1.0]], [1.0]), rf.Network([0.5], [[0.5]])
    run = rf.descend(data, net, lr=0.1, steps=3)
    if Path(parameters.get("mended", "")).is_file():
        return run
    return replace(run, status=rf.Status(parameters["as"]), reason="no step was small enough")


def plan(task, count, **more):
    points = [Point(f"sweeps.helpers:{task}", {"x": x, **more}, seed=x) for x in range(count)]
    return Plan.of(task, points)


def contents(store):
    """Relative names of the run files with the digests of their bytes."""
    root = Path(store) / "runs"
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def search_path(*folders):
    """PYTHONPATH of a process that imports from these folders and where this one does."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, folders), *([inherited] if inherited else [])])


def unfinished(store):
    """Files that a killed writer left; the next one removes them."""
    return [path for path in (Path(store) / "runs").rglob(".*") if path.is_file()]


def computed(log):
    """The points that were computed, in order."""
    return [int(line) for line in Path(log).read_text().splitlines()] if Path(log).exists() else []
