"""Workers: the same bytes as inline, and no point lost when they die."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from distributed import LocalCluster

from reluflow.errors import InputError, ReluflowWarning
from reluflow.sweeps import Interrupted, Plan, Store, cluster, dispatch, execute
from reluflow.sweeps.compute import Computed
from reluflow.sweeps.heartbeat import Heart
from reluflow.sweeps.outcome import Encoded
from sweeps.helpers import (
    LOG,
    SWEEP,
    computed,
    contents,
    listening,
    paths,
    plan,
    worker_processes,
)


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    monkeypatch.setenv(LOG, str(path))
    return path


def mixed():
    """Runs, results and failures in one plan."""
    points = [*Plan.parse(SWEEP).points, *plan("square", 12).points, *plan("leaves", 1).points]
    return Plan.of("mixed", points)


@pytest.fixture(scope="module")
def inline(tmp_path_factory):
    path = tmp_path_factory.mktemp("inline")
    execute(mixed(), path, workers=0)
    return path


@pytest.mark.parametrize("workers", [1, 2])
def test_local_workers_give_the_bytes_of_an_inline_run(tmp_path, inline, workers):
    summary = execute(mixed(), tmp_path, workers=workers)
    assert (summary.computed, summary.failed, summary.set_aside) == (20, 1, 0)
    assert contents(tmp_path) == contents(inline)
    assert [row["scalars"] for row in Store(tmp_path).rows()] == [
        row["scalars"] for row in Store(inline).rows()
    ]
    assert execute(mixed(), tmp_path, workers=workers).tried == 0
    assert worker_processes() == []


@pytest.fixture
def scheduler(tmp_path):
    """An open scheduler and a worker as a user starts them, without any setting of ours."""
    environment = {**os.environ, "PYTHONPATH": paths(), "OMP_NUM_THREADS": "2"}
    place = tmp_path / "scheduler.json"
    options = ["--scheduler-file", place, "--dashboard-address", "127.0.0.1:0"]
    command = [sys.executable, "-W", "ignore", "-m", "distributed.cli.dask_scheduler"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    started = [subprocess.Popen([*command, "--port", "0", *options], **quiet)]
    command[-1] = "distributed.cli.dask_worker"
    scratch = ["--local-directory", tmp_path / "scratch"]
    started.append(subprocess.Popen([*command, *options, *scratch, "--nthreads", "2"], **quiet))
    text = ""
    while not text.rstrip().endswith("}"):
        assert started[0].poll() is None
        time.sleep(0.05)
        text = place.read_text() if place.exists() else ""
    yield json.loads(text)["address"]
    for process in reversed(started):
        process.terminate()
        process.wait()


def test_an_open_scheduler_gives_the_same_bytes_with_a_warning(tmp_path, inline, scheduler):
    with pytest.warns(ReluflowWarning, match="takes work from anybody who can reach it"):
        summary = execute(mixed(), tmp_path / "s", cluster=scheduler)
    assert (summary.computed, summary.failed) == (20, 1)
    assert contents(tmp_path / "s") == contents(inline)


def test_no_scheduler_at_the_address(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.2)
    with (
        pytest.warns(ReluflowWarning, match="anybody"),
        pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"),
    ):
        execute(plan("square", 1), tmp_path, cluster="tcp://127.0.0.1:9")


def test_a_scheduler_without_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 1.0)
    with (
        LocalCluster(n_workers=0, protocol="tcp", dashboard_address="127.0.0.1:0") as empty,
        pytest.warns(ReluflowWarning, match="anybody"),
        pytest.raises(InputError, match=r"has no workers\. Start some with `dask worker tcp"),
    ):
        execute(plan("square", 1), tmp_path, cluster=empty.scheduler_address)


def test_workers_that_cannot_be_started_are_said(tmp_path, monkeypatch):
    tries = []

    def broken(**options):
        tries.append(options["n_workers"])
        raise RuntimeError("Worker failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", broken)
    with pytest.raises(
        dispatch.ClusterError, match=r"2 worker processes cannot be started .*__main__"
    ):
        execute(plan("square", 1), tmp_path, workers=2)
    assert tries == [2, 2, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_wait_for_workers_that_do_not_start(tmp_path, monkeypatch, number):
    started, ended = threading.Event(), []
    timer = threading.Timer(0.2, os.kill, (os.getpid(), number))

    def late(**_):
        timer.start()
        assert started.wait(600.0)
        return "late"

    monkeypatch.setattr("distributed.LocalCluster", late)
    monkeypatch.setattr(cluster, "_end", ended.append)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        began = time.monotonic()
        with pytest.raises(Interrupted):
            execute(plan("square", 1), tmp_path, workers=2)
        assert time.monotonic() - began < 300.0  # two seconds on an idle machine
        assert ended == []
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
        started.set()
        for thread in threading.enumerate():
            if thread.name == "reluflow-cluster":
                thread.join(60.0)
    assert ended == ["late"]  # nobody waits for it any more


class Answers:
    """A client whose workers report given versions."""

    def __init__(self, **changes):
        from reluflow import files

        self.found = {**files.versions(), **changes}

    def run(self, function):
        return {"tcp://w": self.found}


def test_a_busy_machine_has_time_to_reach_its_own_scheduler(monkeypatch):
    """Thirty seconds, as for a cluster, were too few where others had the processor."""
    given = {}

    def client(cluster, **options):
        given.update(options)
        return contextlib.nullcontext()

    monkeypatch.setattr("distributed.Client", client)
    monkeypatch.setattr(cluster, "_started", lambda *_: None)
    monkeypatch.setattr(cluster, "_end", lambda _: None)
    with cluster._local(1):
        assert given["timeout"] >= 600


def test_workers_with_another_version():
    cluster._check_versions(Answers())
    with pytest.raises(InputError, match=r"worker tcp://w has reluflow 0\.0\.1"):
        cluster._check_versions(Answers(reluflow="0.0.1"))
    with pytest.warns(UserWarning, match=r"has numpy 1\.0.*last bits"):
        cluster._check_versions(Answers(numpy="1.0"))


def test_a_point_that_kills_its_worker_is_set_aside_after_three(tmp_path, log):
    work, store = plan("deadly", 12, bad=5), Store(tmp_path / "s")
    summary = execute(work, store, workers=2)
    assert (summary.computed, summary.set_aside, summary.failed) == (11, 1, 0)
    assert computed(log).count(5) == 3
    row = next(row for row in store.rows() if row["status"] == "set_aside")
    assert row["parameters"]["x"] == 5
    assert "died 3 times: out of memory, killed" in row["error"]
    assert execute(work, store, workers=2).tried == 0


@pytest.mark.parametrize("error", [AssertionError("only a started process"), TimeoutError()])
def test_a_cluster_that_cannot_be_closed_loses_nothing(tmp_path, monkeypatch, error):
    """Dask asserts so if a worker is just being started again when the sweep ends."""
    from distributed import Nanny

    close, before = Nanny.close, listening()

    async def fails(self, *args, **more):
        await close(self, *args, **more)
        raise error

    monkeypatch.setattr(Nanny, "close", fails)
    assert execute(plan("square", 4), tmp_path / "s", workers=2).computed == 4
    assert listening() <= before
    assert worker_processes() == []


def test_workers_killed_from_outside_lose_nothing(tmp_path, log):
    work, stop = plan("square", 40, pause=0.05), threading.Event()

    def kill():
        """Two kills in the first seconds, of whoever is working."""
        for _ in range(2):
            while not stop.wait(0.05) and len(computed(log)) < 3:
                pass
            victims = worker_processes()
            if victims:
                victims[0].kill()
                killed.append(victims[0].pid)
            stop.wait(1.0)

    killed = []
    killer = threading.Thread(target=kill)
    killer.start()
    summary = execute(work, tmp_path / "s", workers=2)
    stop.set()
    killer.join()
    assert killed
    assert (summary.computed, summary.failed, summary.set_aside) == (40, 0, 0)
    execute(work, tmp_path / "inline", workers=0)
    assert contents(tmp_path / "s") == contents(tmp_path / "inline")


def test_a_signal_ends_busy_workers(tmp_path, log):
    """Points of ten minutes each: the sweep does not wait for them."""
    points = [*plan("square", 2).points, *plan("square", 4, pause=600.0).points]
    stopped, heard = [], set()

    def stop():
        while len(computed(log)) < 3:
            time.sleep(0.05)
        heard.update(listening())
        stopped.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Interrupted, match="Run the same again to continue"):
        execute(Plan.of("slow", points), tmp_path / "s", workers=1)
    took = time.monotonic() - stopped[0]
    thread.join()
    print(f"stopped after {took:.2f} s (aim: below 5)")
    assert worker_processes() == []
    assert {address for address, _ in heard} == {"127.0.0.1"}
    assert took < 60  # ten minutes if it had waited


class Future:
    """A finished future of the fake client below."""

    status = "error"

    def __init__(self, outcome):
        self._outcome = outcome

    def add_done_callback(self, function):
        function(self)

    def result(self, timeout):
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def release(self): ...


class Client:
    """Answers at once; counts what was asked together and how much is under way."""

    def __init__(self, threads=2, seconds=0.01, size=10, deadly=None, allowed=0):
        self.threads, self.seconds, self.size = threads, seconds, size
        self.deadly, self.allowed, self.groups = deadly, allowed, []

    def nthreads(self):
        return {"w": self.threads}

    def submit(self, function, payload, packages, limits, pure):
        from distributed import KilledWorker

        self.groups.append([point["parameters"]["x"] for point in payload])
        if self.deadly in self.groups[-1]:
            return Future(KilledWorker("t", None, self.allowed))
        answer = (b"x" * self.size, "done", {}, {}, "", False, self.seconds)
        return Future([answer for _ in payload])


def heart():
    return Heart(lambda pulse: None)


def outcomes(client, count):
    dispatcher = dispatch.Dispatcher(plan("square", count).points, heart())
    return [item for batch in dispatcher.outcomes(client) for item in batch]


def test_short_points_travel_together_and_long_ones_alone():
    client = Client(seconds=0.01)
    assert len(outcomes(client, 2000)) == 2000
    assert max(map(len, client.groups)) == 50  # half a second
    assert client.groups[0] == [0]
    client = Client(seconds=2.0)
    outcomes(client, 50)
    assert {len(group) for group in client.groups} == {1}
    client = Client(seconds=1e-4, size=2**20)
    outcomes(client, 300)
    assert max(map(len, client.groups)) == 16  # 16 MB


def test_points_under_way_are_bounded():
    read = []

    def points():
        for point in plan("square", 500).points:
            read.append(point)
            yield point

    client = Client(threads=3, seconds=5.0)
    stream = dispatch.Dispatcher(points(), heart()).outcomes(client)
    for k in range(1, 20):
        next(stream)
        assert len(read) <= k + 2 * 3


@pytest.mark.parametrize(("allowed", "deaths"), [(0, 3), (1, 3), (3, 5)])
def test_the_guilty_point_is_found_in_its_group(allowed, deaths):
    """Another scheduler may try several times before it reports a death."""
    client = Client(deadly=70, allowed=allowed)
    found = outcomes(client, 200)
    lost = [item for item in found if item.result is None]
    assert [(item.point.parameters["x"], item.is_set_aside) for item in lost] == [(70, True)]
    assert len(found) == len({item.point.id for item in found}) == 200
    tried = [group for group in client.groups if 70 in group]
    assert len(tried[0]) > 1
    assert all(group == [70] for group in tried[1:])
    assert f"died {deaths} times" in lost[0].error
    assert isinstance(found[0], Computed)
    assert isinstance(found[0].result, Encoded)


def test_points_of_workers_that_never_came_back_are_handed_out_again(monkeypatch):
    monkeypatch.setattr(dispatch, "LOOK_S", 0.01)
    monkeypatch.setattr(dispatch, "ABSENT_S", 0.03)
    dispatcher, found = dispatch.Dispatcher(plan("square", 30).points, heart()), []
    gone = Client(seconds=0.1)
    stream = dispatcher.outcomes(gone)
    found += next(stream)
    answer = Future.add_done_callback
    monkeypatch.setattr(Future, "add_done_callback", lambda self, function: None)
    gone.threads = 0
    with pytest.raises(dispatch.NoWorkersError):
        found.extend(itertools.chain.from_iterable(stream))
    monkeypatch.setattr(Future, "add_done_callback", answer)
    for batch in dispatcher.outcomes(Client(seconds=0.1)):
        found += batch
    assert sorted(item.point.parameters["x"] for item in found) == list(range(30))


def test_an_answer_that_never_comes_is_asked_for_again():
    client, real = Client(), Client.submit
    lost = [TimeoutError(), TimeoutError()]

    def submit(*args, **more):
        future = real(client, *args, **more)
        return Future(lost.pop()) if lost else future

    client.submit = submit
    assert len(outcomes(client, 9)) == 9


def test_a_scheduler_that_goes_away_is_said():
    client = Client()
    future = Future(RuntimeError("closed"))
    future.status = "cancelled"
    client.submit = lambda *args, **more: future
    with pytest.raises(dispatch.ClusterError, match=r"scheduler is gone.*run the same again"):
        outcomes(client, 1)


def test_workers_that_cannot_compute_at_all_are_said():
    client = Client()
    client.submit = lambda *args, **more: Future(ModuleNotFoundError("No module named 'sweeps'"))
    with pytest.raises(InputError, match=r"the workers cannot compute.*No module named 'sweeps'"):
        outcomes(client, 1)
