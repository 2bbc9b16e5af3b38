"""No process outlives the one that started it, not even one that hangs in compiled code.

A worker notices that its driver is gone when it next listens, which code that never returns does
not do; it would keep a core busy for ever. On Linux the kernel ends it.

The kernel's signal comes when the *thread* that started the process ends. For a worker that is the
thread Dask keeps for it, for a cell the thread whose cell it is: both live as long as the process
is of use. A parent that ended before a process looks at it leaves nobody to send it work.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

LOOK_S = 1.0
PRELOAD = __name__  # Dask imports it and calls `dask_setup`


def die_with_parent() -> None:
    """End this process when its parent ends: by the kernel on Linux, by looking elsewhere."""
    parent = os.getppid()
    if sys.platform == "linux":
        import ctypes

        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def dask_setup(worker: Any) -> None:
    """Let a local worker end with its driver; Dask calls this when it starts."""
    die_with_parent()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os.kill(os.getpid(), signal.SIGKILL)
