"""A sweep in a process of its own, to be killed: ``driver.py STORE POINTS WORKERS``."""

import sys

from reluflow.sweeps import execute
from sweeps.helpers import plan

if __name__ == "__main__":
    store, points, workers = sys.argv[1:]
    execute(plan("square", int(points), pause=0.003), store, workers=int(workers))
