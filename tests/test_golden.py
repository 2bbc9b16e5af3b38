"""Files of past releases load for ever, and answer what they answered when they were written."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf
from reluflow.sweeps import Store

FOLDER = Path(__file__).parent / "data" / "golden"
RELEASES = {
    path.name: json.loads((path / "expected.json").read_text()) for path in FOLDER.iterdir()
}
RUNS = [
    (release, name)
    for release, expected in RELEASES.items()
    for name, stored in expected.items()
    if isinstance(stored, dict) and "at" in stored
]
EVERY_RELEASE = pytest.mark.parametrize("release", RELEASES)
TOL = 1e-6


def assert_same_network(net: rf.Network, stored: dict[str, list]) -> None:
    np.testing.assert_allclose(net.log_norms, stored["log_norms"], rtol=0, atol=TOL)
    np.testing.assert_allclose(net.log_outputs, stored["log_outputs"], rtol=0, atol=TOL)
    np.testing.assert_allclose(net.directions, stored["directions"], rtol=0, atol=TOL)
    assert net.signs.tolist() == stored["signs"]


def test_there_are_golden_files():
    assert "0.1.0" in RELEASES
    assert len(RUNS) >= 11
    assert {name.split("-")[0] for _, name in RUNS} == {"flow", "descent"}


@pytest.mark.parametrize(("release", "name"), RUNS)
def test_a_run_of_a_past_release_answers_as_it_did(release, name):
    stored = RELEASES[release][name]
    run = rf.load(FOLDER / release / f"{name}.rf")
    assert (str(run.status), len(run.t), len(run.events)) == (
        stored["status"], stored["records"], stored["events"],
    )  # fmt: skip
    np.testing.assert_allclose(run.log_loss[[0, -1]], stored["log_loss"], rtol=1e-12)
    assert_same_network(run.final, stored["final"])
    for moment in stored["at"]:
        assert_same_network(run.at(moment["t"]), moment)


@EVERY_RELEASE
def test_a_network_of_a_past_release_loads(release):
    assert_same_network(
        rf.Network.load(FOLDER / release / "network.rf"), RELEASES[release]["network"]
    )


@EVERY_RELEASE
def test_a_store_of_a_past_release_is_read(release, tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(FOLDER / release / "store", folder)
    assert Store(folder).summary() == RELEASES[release]["store"]
    (folder / "index.sqlite").unlink()
    store = Store(folder)
    assert store.summary() == RELEASES[release]["store"]
    assert store.refresh() == []
    loaded = [store.load(row["id"]) for row in store.rows() if not row["error"]]
    assert sorted(result.status for result in loaded) == ["done", "steps"]
