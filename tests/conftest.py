"""Settings of all tests: one thread, and the hypothesis profiles ``fast`` and ``nightly``."""

import os
import signal

# a background shell starts programs with Ctrl-C ignored, and they hand that on
signal.signal(signal.SIGINT, signal.default_int_handler)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))  # before NumPy loads: BLAS reads them once

from hypothesis import settings  # noqa: E402

settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True, database=None)
settings.register_profile("nightly", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
