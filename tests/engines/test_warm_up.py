"""What is seen of kernels where numba is switched off is what is compiled where it is not."""

import subprocess
import sys

LOOK = """
import pickle, sys
from reluflow.engines import warm_up
warm_up.switch_off()
sys.stdout.buffer.write(pickle.dumps(warm_up.entered()))
"""
RUN = """
import pickle, sys
from numba.core import event
from reluflow.engines import warm_up
found = pickle.load(sys.stdin.buffer)
assert len(found) == len(set(found)) > 10
for one in found:
    one.compile()
with event.install_recorder("numba:compile") as heard:
    for kind in warm_up.KINDS:
        kind()
print(*(one.data["dispatcher"] for _, one in heard.buffer))
"""


def test_a_run_compiles_nothing_that_was_not_seen():
    found = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, check=True).stdout
    late = subprocess.run([sys.executable, "-c", RUN], input=found, capture_output=True, check=True)
    assert late.stdout.split() == []
