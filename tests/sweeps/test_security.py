"""No stranger in: at the workers of a sweep or figure, a study, a cluster started as documented."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from distributed import LocalCluster
from typer.testing import CliRunner

from reluflow.cli.app import app
from reluflow.errors import InputError
from reluflow.sweeps import Certificates, Interrupted, Plan, execute, security
from sweeps.helpers import LOG, SWEEP, computed, contents, listening, paths, plan

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "sweeps.md"
NOBODY = 65534
STUDY = """
[data]
generator = "centred"
d = 3
[network]
init = "balanced"
width = 6
[engine]
name = "flow"
stop_loss = 1e-3
"""


def stranger(ports):
    """What another user reaches at these ports; without root, this user without the keys."""
    command = [sys.executable, "-W", "ignore", HERE / "stranger.py", *map(str, sorted(ports))]
    environment = {**os.environ, "PYTHONPATH": paths()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
    user = NOBODY if os.getuid() == 0 else os.getuid()
    assert f"user {user} tried {len(ports)}\n" in done.stdout
    return [line for line in done.stdout.splitlines() if line.endswith("IN")]


def test_the_stranger_gets_into_an_open_cluster():
    """Otherwise the tests below would show nothing."""
    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ):
        ways = {line.split()[1] for line in stranger({port for _, port in listening()})}
    assert ways == {"as_peer", "as_reader"}


def test_nobody_else_reaches_the_workers_of_a_sweep(tmp_path, monkeypatch):
    monkeypatch.setenv(LOG, str(tmp_path / "log"))
    points = [*plan("square", 1).points, *plan("square", 4, pause=600.0).points]
    heard, ways, before = [], [], listening()

    def try_it():
        try:
            while len(computed(tmp_path / "log")) < 3:
                time.sleep(0.05)
            heard.extend(listening() - before)
            ways.extend(stranger({port for _, port in heard}))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=try_it)
    thread.start()
    with pytest.raises(Interrupted):
        execute(Plan.of("slow", points), tmp_path / "s", workers=2)
    thread.join()
    assert {address for address, _ in heard} == {"127.0.0.1"}
    assert len(heard) == 5  # the scheduler, two workers and their nannies: no web server
    assert ways == []


OPENING = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system")
LISTENS = "import socket; socket.create_server(('127.0.0.1', 0))"
STUDIES = "from reluflow.cli import main; main()"


def opened(code, *arguments):
    """What a process does with sockets and other processes, as Python's audit tells it."""
    hook = f"""
import sys
told = lambda event, _: print("HEARD", event) if event.startswith({OPENING}) else None
sys.addaudithook(told)
"""
    command = [sys.executable, "-c", hook + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    heard = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("HEARD")]
    return heard, done.stdout


def test_a_study_opens_no_socket_and_starts_no_process(tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY)
    heard, printed = opened(STUDIES, "study", str(tmp_path / "mine.toml"), "--out", str(tmp_path))
    assert "The page is" in printed
    assert heard == []
    assert "socket.bind" in opened(LISTENS)[0]  # otherwise the lines above would show nothing


def test_nobody_else_reaches_the_workers_of_a_figure(tmp_path):
    command = ["reproduce", "correlated/fig1", "--full", "--workers", "2", "--out", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "reluflow", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while len(heard := listening(process.pid)) < 5:
                assert process.poll() is None
                time.sleep(0.05)
            ways = stranger({port for _, port in heard})
            assert process.poll() is None  # it was there to be reached
        finally:
            process.terminate()
    assert {address for address, _ in heard} == {"127.0.0.1"}
    assert ways == []


def recipe():
    """The commands of the page: make a key, start a scheduler, start a worker, sweep."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if "openssl" in block).strip().splitlines()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """The recipe on this machine with two workers; its last line, to be run by the test."""
    port = free_port()
    make_key, *rest = (line.replace("HOST:8786", f"127.0.0.1:{port}") for line in recipe())
    subprocess.run(make_key, shell=True, check=True, cwd=tmp_path, capture_output=True)
    assert os.stat(tmp_path / "sweep.key").st_mode & 0o077 == 0
    environment = {**os.environ, "PYTHONPATH": paths(), "PYTHONWARNINGS": "ignore"}
    started = []
    for line in (rest[0], rest[1], rest[1]):
        program, command, *options = shlex.split(line)
        assert program == "dask"
        words = [sys.executable, "-m", f"distributed.cli.dask_{command}", *options]
        if command == "worker":
            words += ["--local-directory", str(tmp_path / f"scratch{len(started)}")]
        started.append(
            subprocess.Popen(words, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL)
        )
    yield port, rest[2], started
    for process in reversed(started):
        process.terminate()
        process.wait()


def test_the_recipe_of_the_page_works_and_keeps_strangers_out(tmp_path, monkeypatch, cluster):
    port, line, started = cluster
    (tmp_path / "FILE.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(line)
    assert program == "reluflow"
    result = CliRunner().invoke(app, [*arguments, "--out", "s"])
    assert result.exit_code == 0, result.output
    assert "8 of 8 points computed" in result.output
    execute(Plan.parse(SWEEP), tmp_path / "inline", workers=0)
    assert contents(tmp_path / "s") == contents(tmp_path / "inline")
    heard = {pair for process in started for pair in listening(process.pid)}
    assert ("127.0.0.1", port) in heard
    assert stranger({number for _, number in heard}) == []


def test_an_address_with_tls_needs_certificates(tmp_path):
    with pytest.raises(InputError, match=r"needs certificates\. Give them with --tls-ca"):
        execute(plan("square", 1), tmp_path, cluster="tls://127.0.0.1:8786")


def test_certificates_that_do_not_fit_are_refused(tmp_path):
    (tmp_path / "a.pem").write_text("no certificate")
    given = Certificates(*[tmp_path / "a.pem"] * 3)
    with pytest.raises(InputError, match=r"cannot be used .*PEM files that belong together"):
        execute(plan("square", 1), tmp_path / "s", cluster="tls://127.0.0.1:1", certificates=given)
    with pytest.raises(InputError, match=r"where certificates have no effect"):
        execute(plan("square", 1), tmp_path / "s", cluster="tcp://127.0.0.1:1", certificates=given)
    with pytest.raises(InputError, match=r"`key` is .*none\.pem, which does not exist"):
        Certificates(tmp_path / "a.pem", tmp_path / "a.pem", tmp_path / "none.pem")


def test_two_of_three_files_are_refused(tmp_path):
    (tmp_path / "toy.toml").write_text(SWEEP)
    options = ["--cluster", "tls://127.0.0.1:1", "--tls-ca", "a", "--tls-key", "b"]
    result = CliRunner().invoke(app, ["sweep", str(tmp_path / "toy.toml"), *options])
    assert result.exit_code == 2
    assert "--tls-ca, --tls-cert and --tls-key belong together" in result.output


def test_without_cryptography_no_workers_are_started(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ImportError, match="any user of this machine could run code as you"):
        security.temporary()
