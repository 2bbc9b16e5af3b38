"""Loaded first by every local worker.

Ctrl-C reaches all processes of a terminal; the driver alone decides what it means, and ends the
workers itself.
"""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(worker: Any) -> None:
    """Called by Dask in the new process (the name is Dask's)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
