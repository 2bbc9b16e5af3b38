"""`reluflow warm-up`: in which order, that a failure is not called success, and its end."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest
from typer.testing import CliRunner

from reluflow.cli import warm_up as command
from reluflow.cli.app import app
from reluflow.engines import progress, warm_up

NAMES = ["longest", "long", "short"]


@pytest.fixture
def kernels(monkeypatch):
    """Stand-ins for kernels, compiled in threads, and what was compiled, in order."""
    ran = []
    found = [
        SimpleNamespace(
            module="kernels",
            name=name,
            parts=frozenset({(name, size)}),
            compile=lambda name=name: ran.append(name),
        )
        for size, name in enumerate(reversed(NAMES))
    ]
    monkeypatch.setattr(warm_up, "entered", lambda: found)
    monkeypatch.setattr(warm_up, "get_ready", Mock())
    monkeypatch.setattr(command, "processes", lambda count, prepare=None: ThreadPoolExecutor(count))
    monkeypatch.setattr(progress, "_draw", Mock())
    return found, ran


def test_the_longest_comes_first(kernels):
    result = CliRunner().invoke(app, ["warm-up", "--workers", "1"])
    assert result.exit_code == 0, result.output
    assert "kernels are compiled" in result.output
    assert kernels[1] == NAMES


def test_a_kernel_that_cannot_be_compiled_is_an_error(kernels):
    kernels[0][1].compile = Mock(side_effect=RuntimeError("no compiler"))
    result = CliRunner().invoke(app, ["warm-up", "--workers", "2"])
    assert result.exit_code != 0
    assert "kernels are compiled" not in result.output


ENDLESS = """
import signal, sys, time
from functools import partial
from types import SimpleNamespace
signal.signal(signal.SIGINT, signal.default_int_handler)
from reluflow.cli import main
from reluflow.engines import warm_up
endless = SimpleNamespace(
    module="kernels", name="endless", parts=frozenset(), compile=partial(time.sleep, 600.0)
)
warm_up.entered, warm_up.get_ready = partial(list, [endless] * 2), partial(time.sleep, 0.0)
sys.argv = ["reluflow", "warm-up", "--workers", "2"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_workers(number):
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stderr=subprocess.PIPE, text=True)
    try:
        # one looks, two compile, one is Python's own
        while len(workers := psutil.Process(process.pid).children()) < 4:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)  # two seconds on an idle machine
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in errors
    assert psutil.wait_procs(workers, timeout=20)[1] == []


def test_it_answers_with_plain_data(kernels):
    result = CliRunner().invoke(app, ["warm-up", "--workers", "2", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert sorted(found["compiled"]) == sorted(f"kernels.{name}" for name in NAMES)
    assert found["workers"] == 2
    assert found["seconds"] >= 0.0


ENTERED = """
import warnings
import numpy as np
from reluflow.engines import warm_up
warm_up.switch_off()
import reluflow as rf
from reluflow.kernels.entered import entered
names = lambda: {(one.module, one.name) for one in entered()}
warm_up.entered()
ready = names()
warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
for loss in (rf.losses.Square(), rf.losses.Logistic()):
    for n, d in ((120, 2), (30, 12)):
        for train in ("both", "hidden"):
            y = rng.normal(size=n) if loss.name == "square" else rng.choice([-1.0, 1.0], size=n)
            data, net = rf.Dataset(rng.normal(size=(n, d)), y), rf.networks.balanced(
                d, 8, log_scale=-2.0, seed=1
            )
            rf.flow(data, net, loss=loss, train=train, t_end=1.0, rtol=1e-3, progress=False)
print(sorted(names() - ready))
"""


def test_flows_of_few_and_of_many_points_enter_no_other_kernels():
    done = subprocess.run(
        [sys.executable, "-c", ENTERED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]"], done.stdout
