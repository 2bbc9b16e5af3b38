"""Workers die at Poisson times by three signals; every result is right in the end."""

import random
import signal
import threading

import psutil
import pytest

from reluflow.sweeps import Store, execute
from sweeps.helpers import contents, plan

SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)


def kill_at_random(stop, seed, mean_s, deaths):
    generator = random.Random(seed)
    while not stop.wait(generator.expovariate(1 / mean_s)):
        children = psutil.Process().children(recursive=True)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        if workers:
            generator.choice(workers).send_signal(generator.choice(SIGNALS))
            deaths.append(1)


@pytest.mark.long
def test_workers_that_die_all_the_time(tmp_path):
    work, stop, deaths = plan("square", 1500, pause=0.05), threading.Event(), []
    killer = threading.Thread(target=kill_at_random, args=(stop, 0, 8.0, deaths))
    killer.start()
    try:
        first = execute(work, tmp_path / "s", workers=2)
    finally:
        stop.set()
        killer.join()
    assert len(deaths) >= 5
    assert first.failed == 0
    assert first.computed + first.set_aside == 1500
    last = execute(work, tmp_path / "s", workers=2, retry_failed=True)
    assert last.computed == first.set_aside  # three deaths by chance: computed when it is calm
    execute(work, tmp_path / "calm", workers=0)
    assert contents(tmp_path / "s") == contents(tmp_path / "calm")
    assert list(Store(tmp_path / "s").rows()) == list(Store(tmp_path / "calm").rows())
    print(f"{len(deaths)} deaths, {first.set_aside} points set aside by chance")
