"""Solvers, checks and limits outside of a sweep end at a signal, as `Interrupted`."""

import random
import signal
import subprocess
import sys
import time

import pytest

BUSY = {  # each for many seconds
    "min_norm": "rf.interpolators.min_norm(rf.Dataset(X, y))",
    "max_margin": "rf.interpolators.max_margin(line)",
    "check": "rf.theory.check('univariate', (line, net))",
}
PROGRAM = """
import faulthandler, signal, sys, threading, time
faulthandler.enable()
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import reluflow as rf
from reluflow import interrupts
from reluflow.interrupts import Interrupted
rng = np.random.default_rng(0)
X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
signs = np.where(np.sin(np.arange(600.0) * 2.1) > 0.0, 1.0, -1.0)
line = rf.datasets.from_points(np.linspace(-2.0, 2.0, 600), signs)
net = rf.networks.gaussian(2, 60, sigma_hidden=0.1, sigma_output=0.1, seed=0)


def tell():  # as soon as signals are noted: before that they end the process, as everywhere
    while not interrupts._graces:
        time.sleep(0.01)
    print("ready", flush=True)


threading.Thread(target=tell, daemon=True).start()
try:
    CALL
except Interrupted as error:
    sys.exit(40 + error.signal)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", BUSY)
def test_solvers_and_checks_end_at_a_signal(name, number):
    """Compiled solvers swallow what a handler raises, or make another error of it."""
    program = PROGRAM.replace("CALL", BUSY[name])
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(random.uniform(0.3, 2.0))
    process.send_signal(number)
    try:
        process.communicate(timeout=120)  # two seconds on an idle machine, once compiled
    finally:
        process.kill()
    assert process.returncode == 40 + number
