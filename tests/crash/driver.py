"""A sweep in a process of its own, to be stopped: ``driver.py TASK STORE POINTS WORKERS``."""

import sys

from reluflow.sweeps import Interrupted, execute
from sweeps.helpers import hear_interrupts, plan, training

if __name__ == "__main__":
    hear_interrupts()
    task, store, points, workers = sys.argv[1:]
    count = int(points)
    work = training(count) if task == "train" else plan("square", count, pause=0.003)
    print("ready", flush=True)
    try:
        execute(work, store, workers=int(workers))
    except Interrupted as error:
        sys.exit(str(error))
