"""A command of reluflow in a fork of this process, which has loaded the kernels: no time to start.

For campaigns: a fork of a process with threads, such as that of a test, may hang.
"""

import os
import subprocess
import sys
import time
import traceback
from functools import cache
from pathlib import Path

import reluflow as rf
import reluflow.cli.run
from reluflow.cli import main
from sweeps.helpers import hear_interrupts


@cache
def load():
    """Load the kernels of both engines."""
    data = rf.datasets.centred(16, seed=0)
    net = rf.networks.balanced(16, 800, log_scale=-3.0, seed=0)
    rf.descend(data, net, lr=1e-3, steps=10)
    rf.flow(data, net, t_end=1.0)


class Forked:
    """As much of `subprocess.Popen` as the tests of signals use."""

    def __init__(self, arguments, errors):
        load()
        self.errors, self.returncode = Path(errors), None
        ready, ours = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _become(arguments, errors, ours)
        os.close(ours)
        os.read(ready, 1)
        os.close(ready)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout):
        late = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > late:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.005)
        return "", self.errors.read_text()


def _become(arguments, errors, ready):
    """Be the command, from here to the end."""
    code = 70
    try:
        sys.stdout.flush()
        for number, path in ((1, os.devnull), (2, errors)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.argv = ["reluflow", *map(str, arguments)]
        hear_interrupts()
        os.write(ready, b".")
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
