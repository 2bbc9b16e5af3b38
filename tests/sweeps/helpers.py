"""Tasks and small tools of these tests; workers import this module as ``sweeps.helpers``."""

import hashlib
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

import reluflow as rf
from reluflow.sweeps import Plan, Point, allow, pack, seeded

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


def hangs(parameters, seed):
    """Never return from the point named ``bad``, in C code that lets no other thread run."""
    note(parameters)
    if parameters["x"] == parameters["bad"]:
        re.match(r"(a+)+$", "a" * 60 + "b")
    return {"square": parameters["x"] ** 2}


def grows(parameters, seed):
    """Need more and more memory in the point named ``bad``."""
    kept = []
    while parameters["x"] == parameters["bad"]:
        kept.append(np.ones(2_000_000))
        time.sleep(0.01)
    return {"square": parameters["x"] ** 2}


def compiles(parameters, seed):
    """Compile for longer than the computation takes."""
    import numba

    @numba.njit
    def add(x):
        return x + 1

    began = time.monotonic()
    with numba.core.event.trigger_event("numba:compile"):
        while time.monotonic() - began < parameters["compile_s"]:
            add.recompile() if add.signatures else add(1)
    return {"x": add(parameters["x"])}


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


def paths():
    """The search path of a process that is to find reluflow and these tests."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(Path(__file__).parents[1]), *([inherited] if inherited else [])])


def hear_interrupts():
    """Undo an inherited "ignore" (a background shell gives it), so that Ctrl-C can be tested."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def worker_processes():
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def listening(pid=None):
    """Addresses and ports at which a process and its children can be reached."""
    found = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    sockets = []
    for process in found:
        with suppress(psutil.NoSuchProcess):  # one that has ended since listens no more
            sockets += process.net_connections("tcp")
    return {tuple(socket.laddr) for socket in sockets if socket.status == "LISTEN"}


def plan(task, count, limits=None, **more):
    points = [Point(f"sweeps.helpers:{task}", {"x": x, **more}, seed=x) for x in range(count)]
    return Plan.of(task, points, limits=limits)


def training(count):
    """Points of about 10 ms each, most of it in compiled code."""
    document = {
        "data": {"generator": "centred", "d": 4},
        "network": {"init": "balanced", "width": 8, "log_scale": -3.0},
        "engine": {"name": "descent", "lr": 1e-4, "steps": 10_000, "record": 3},
    }
    return Plan.of("training", (seeded("train", document, 0, k) for k in range(count)))


def contents(store):
    """Ids of the finished points with the digests of the bytes of their run files."""
    root = Path(store)
    found = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((root / "runs").rglob("*.rf"))
        if not path.name.startswith(".")
    }
    for path in sorted((root / "packs").glob("*.pack")):
        for span in pack.scan(path.read_bytes()):
            if span.row is not None and span.row["status"] == pack.WITHDRAWN:
                found.pop(span.row["id"], None)
            elif span.row is not None:
                body = pack.body(path, span.offset, span.length)
                found[span.row["id"]] = hashlib.sha256(body).hexdigest()
    return dict(sorted(found.items()))


def unfinished(store):
    """Files that a killed writer left; the next one removes them."""
    return [path for path in Path(store).rglob(".*") if path.is_file()]


def computed(log):
    """The points that were computed, in order."""
    return [int(line) for line in Path(log).read_text().splitlines()] if Path(log).exists() else []
