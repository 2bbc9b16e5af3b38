"""Workers by Dask: processes of this machine, or any running scheduler.

Workers return bytes and the driver writes them: a worker needs neither the folder nor a disk. Who
may talk to them is the matter of `security`.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import re
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from reluflow import files, interrupts
from reluflow.errors import InputError, MissingExtraError, ReluflowWarning
from reluflow.sweeps import orphans
from reluflow.sweeps import security as security_of
from reluflow.sweeps.compute import ONE_THREAD, Computed
from reluflow.sweeps.dispatch import ATTEMPTS, ClusterError, Dispatcher, NoWorkersError
from reluflow.sweeps.heartbeat import Heart
from reluflow.sweeps.limits import Limits
from reluflow.sweeps.point import Point
from reluflow.sweeps.security import CLOSED, Certificates, of_caller, temporary

CONNECT_S = 30
OWN_S = 600  # to reach the scheduler of this process: it is there, only the machine may be busy
CLOSE_S = 3
LOOK_S = 0.1  # between two looks for a signal
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d+")


@dataclass(frozen=True)
class Place:
    """Where points are computed: as many processes of this machine, or a cluster."""

    workers: int | None = None
    cluster: str | None = None
    certificates: Certificates | None = None


def compute_on(
    points: Iterator[Point], place: Place, limits: Limits | None, heart: Heart
) -> Generator[list[Computed], None, None]:
    """Compute points on local processes, or on a cluster."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "workers need Dask. Install it with: pip install 'reluflow[sweep]', or compute in "
            "this process with workers=0 (--workers 0)."
        ) from None
    dispatcher = Dispatcher(points, heart, limits)
    while True:
        session = (
            _local(place.workers or os.cpu_count() or 1)
            if place.cluster is None
            else _remote(place.cluster, place.certificates)
        )
        try:
            with session as client, closing(dispatcher.outcomes(client)) as batches:
                yield from batches
            return
        except NoWorkersError:
            continue  # new ones here; on a cluster, wait for them and say so if none comes


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """Worker processes with one thread each, ended with the block."""
    import dask
    from distributed import Client

    settings = {
        # before NumPy loads in the worker: its BLAS reads these once
        "distributed.nanny.pre-spawn-environ": ONE_THREAD,
        # each death is reported: the dispatcher counts, and finds the point that caused it
        "distributed.scheduler.allowed-failures": 0,
        **CLOSED,
    }
    with (
        dask.config.set(settings),
        _quiet(),
        tempfile.TemporaryDirectory(prefix="reluflow-", ignore_cleanup_errors=True) as scratch,
        _none_left(),
    ):
        cluster = _started(workers, scratch)
        try:
            with Client(cluster, timeout=OWN_S, set_as_default=False) as client:
                yield client
        finally:
            _end(cluster)


def _started(workers: int, scratch: str) -> Any:
    """A cluster of local processes; more tries if one of them dies while it starts.

    Threads and workers inherit the blocked signal: Ctrl-C reaches every process of a terminal, and
    the driver alone decides what it means. SIGTERM is theirs: Python ends children by it when it
    exits.
    """
    from multiprocessing import resource_tracker

    from distributed import LocalCluster

    resource_tracker.ensure_running()  # it unblocks the signals of the thread that starts it
    security, attempt = temporary(), 1
    while True:
        interrupts.check()
        try:
            return _made(
                lambda: LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    security=security,
                    dashboard_address=None,
                    scheduler_kwargs={
                        "dashboard_address": "127.0.0.1:0",  # Dask insists; closed by the preload
                        "preload": [security_of.PRELOAD],
                    },
                    preload=[security_of.PRELOAD, orphans.PRELOAD],
                    silence_logs=logging.CRITICAL,
                    local_directory=scratch,
                )
            )
        except (OSError, RuntimeError) as error:
            attempt += 1
            if attempt > ATTEMPTS:
                raise ClusterError(
                    f"{workers} worker processes cannot be started ({error}). In a script, call "
                    'this below `if __name__ == "__main__":`, because workers import the script. '
                    "Else use fewer, or compute in this process with workers=0 (--workers 0)."
                ) from error


def _made(make: Callable[[], Any]) -> Any:
    """The cluster that ``make`` makes, in a thread of its own: a signal does not wait for it.

    On a busy machine workers start for minutes. One that is done after an interrupt is closed.
    """
    answer: Future[Any] = Future()
    left = threading.Event()

    def work() -> None:
        try:
            answer.set_result(make())
        except BaseException as error:
            answer.set_exception(error)
        else:
            if left.is_set():
                _end(answer.result())

    with _deaf():
        threading.Thread(target=work, name="reluflow-cluster", daemon=True).start()
    try:
        while not wait([answer], LOOK_S).done:
            interrupts.check()
    except KeyboardInterrupt:
        left.set()
        if answer.done() and answer.exception() is None:  # before it could see that nobody waits
            _end(answer.result())
        raise
    return answer.result()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes and threads that are started inside never hear Ctrl-C."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(cluster: Any) -> None:
    """End workers at once: they hold nothing, and a run in progress would not let them go."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)
    try:
        cluster.close(timeout=CLOSE_S)
    except Exception:
        # Too slow, or Dask stumbled over a worker that was just being started again. All outcomes
        # are in, so it is no failure of the sweep; but the scheduler still listens.
        with contextlib.suppress(Exception):
            cluster.sync(cluster.scheduler.close, callback_timeout=CLOSE_S)
        cluster.status = type(cluster.status).closed  # else Dask waits for it when Python exits


@contextmanager
def _none_left() -> Iterator[None]:
    """End workers that were starting when their cluster was closed, or could not be made."""
    before = set(multiprocessing.active_children())  # of a cluster of the caller's own
    try:
        yield
    finally:
        for child in multiprocessing.active_children():
            if child not in before and child.name.startswith("Dask Worker process"):
                child.kill()


@contextmanager
def _remote(address: str, certificates: Certificates | None) -> Iterator[Any]:
    """A client of a running scheduler, which stays as it is."""
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise InputError(
            f"`cluster` is {address!r}, not the address of a Dask scheduler. "
            "Write it like tls://10.0.0.1:8786."
        )
    security = of_caller(address, certificates)
    with _quiet(), _connected(address, security) as client:
        with interrupts.deferred():
            _wait_for_workers(client, address)
            _check_versions(client)
        yield client


def _connected(address: str, security: Any) -> Any:
    from distributed import Client

    try:
        with interrupts.deferred():
            return Client(address, timeout=CONNECT_S, security=security, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no scheduler answers at {address} ({error}). Start one with `dask scheduler`, "
            "correct the address, or give the certificates that it knows."
        ) from None


def _wait_for_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_S)
    except TimeoutError:
        raise InputError(
            f"the scheduler at {address} has no workers. Start some with `dask worker "
            f"{address} --nthreads 1`."
        ) from None


def _check_versions(client: Any) -> None:
    """Other versions give other bits; another reluflow may not know the tasks at all."""
    try:
        answers = client.run(files.versions)
    except Exception as error:  # whatever the worker raised: most often it lacks reluflow
        raise InputError(
            f"the workers cannot run reluflow ({error}). Install version "
            f"{files.versions()['reluflow']} for them."
        ) from None
    for worker, found in answers.items():
        for name, version in files.versions().items():
            if found.get(name) == version:
                continue
            text = f"the worker {worker} has {name} {found.get(name)}, and {version} is here. "
            if name in ("reluflow", "numerics"):
                raise InputError(f"{text}Their tasks may differ. Install the same version.")
            warnings.warn(
                f"{text}The last bits of results may differ. Install the same version.",
                ReluflowWarning,
                stacklevel=2,
            )


@contextmanager
def _quiet() -> Iterator[None]:
    """No log lines of Dask on the terminal: what matters is reported as an outcome."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
