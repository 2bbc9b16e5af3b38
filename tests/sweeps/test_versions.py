"""A store never mixes numerics versions silently: older results are computed again, and kept."""

import json

import pytest

from reluflow import files
from reluflow.cli.sweep import words
from reluflow.errors import ReluflowWarning
from reluflow.studies import reproduce as reproducing
from reluflow.sweeps import Plan, Store, execute
from reluflow.theory.contract import Recipe, Reproduction
from sweeps.helpers import LOG, computed, plan


@pytest.fixture
def log(tmp_path, monkeypatch):
    path = tmp_path / "log"
    monkeypatch.setenv(LOG, str(path))
    return path


@pytest.fixture
def raise_version(monkeypatch):
    def raised():
        monkeypatch.setattr(files, "NUMERICS_VERSION", files.NUMERICS_VERSION + 1)

    return raised


@pytest.fixture(params=["packs", "files"])
def store(request, tmp_path):
    return Store(tmp_path / "s", **({"pack_up_to": 0} if request.param == "files" else {}))


def lose_index(store):
    (store.path / "index.sqlite").unlink()


def numerics(store):
    return [files.numerics_of(row["versions"]) for row in store.rows()]


def test_what_is_reused_is_said_with_its_version(tmp_path):
    execute(plan("square", 2), tmp_path / "s", workers=0)
    again = execute(plan("square", 3), tmp_path / "s", workers=0)
    made = files.made_by(files.versions())
    assert again.reused == {made: 2}
    assert f"taken from the store: 2 by {made}" in words(again, Store(tmp_path / "s"))


def test_another_numerics_version_is_computed_again(tmp_path, store, log, raise_version):
    execute(plan("square", 3), store, workers=0)
    before = {f"{point.id}.rf": store.body(point) for point in plan("square", 3).points}
    raise_version()
    again = execute(plan("square", 3), store, workers=0)
    assert (again.computed, again.done_before, again.outdated) == (3, 0, 3)
    assert computed(log) == [0, 1, 2, 0, 1, 2]
    assert numerics(store) == [files.NUMERICS_VERSION] * 3
    kept = {path.name: path.read_bytes() for path in (tmp_path / "s/older").iterdir()}
    assert kept == before
    assert any("3 results of another numerics version" in text for text in words(again, store))
    third = execute(plan("square", 3), store, workers=0)
    assert (third.computed, third.done_before, third.outdated) == (0, 3, 0)


def test_points_of_other_plans_stay_and_are_told_apart(store, raise_version):
    execute(plan("square", 4), store, workers=0)
    old = files.NUMERICS_VERSION
    raise_version()
    execute(plan("square", 2), store, workers=0)
    assert sorted(numerics(store)) == [old, old, old + 1, old + 1]
    with pytest.warns(ReluflowWarning, match=f"numerics versions {old + 1} and {old}"):
        results = list(store.results(plan("square", 4).points))
    assert [files.numerics_of(result.versions) for result in results] == [
        *(old + 1, old + 1),
        *(old, old),
    ]


def test_versions_survive_the_loss_of_the_index(tmp_path, store, raise_version):
    execute(plan("odd_ones_fail", 2), store, workers=0)
    raise_version()
    execute(plan("odd_ones_fail", 1), store, workers=0)
    before = list(store.rows())
    (tmp_path / "s/index.sqlite").unlink()
    assert list(Store(tmp_path / "s").rows()) == before
    assert len(set(numerics(store))) == 2


def test_a_failure_of_another_version_is_tried_again(tmp_path, store, raise_version):
    mended = tmp_path / "mended"
    work = plan("odd_ones_fail", 2, mended=str(mended))
    assert execute(work, store, workers=0).failed == 1
    assert execute(work, store, workers=0).tried == 0
    raise_version()
    mended.touch()
    again = execute(work, store, workers=0)
    assert (again.computed, again.failed, again.outdated) == (2, 0, 1)
    assert not list((tmp_path / "s/failures").iterdir())


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_failure_does_not_bring_an_old_result_back(tmp_path, store, raise_version, is_lost):
    mended = tmp_path / "mended"
    mended.touch()
    work = plan("odd_ones_fail", 2, mended=str(mended))
    execute(work, store, workers=0)
    raise_version()
    mended.unlink()
    assert execute(work, store, workers=0).failed == 1
    if is_lost:
        lose_index(store)
    again = execute(work, store, workers=0)
    assert (again.done_before, again.failed, again.tried) == (1, 1, 0)
    assert len(list(store.results(work.points))) == 1


def test_files_without_a_numerics_version_are_older_than_all(tmp_path, monkeypatch):
    store = Store(tmp_path / "s")
    whole = files.versions

    def before():
        return {name: value for name, value in whole().items() if name != "numerics"}

    monkeypatch.setattr(files, "versions", before)
    execute(plan("square", 1), store, workers=0)
    monkeypatch.setattr(files, "versions", whole)
    assert numerics(store) == [0]
    again = execute(plan("square", 1), store, workers=0)
    assert (again.computed, again.outdated) == (1, 1)


def test_fresh_computes_everything_again_and_keeps_what_was_there(tmp_path, store, log):
    execute(plan("square", 3), store, workers=0)
    again = execute(plan("square", 2), store, workers=0, fresh=True)
    assert (again.computed, again.done_before, again.outdated) == (2, 0, 0)
    assert computed(log) == [0, 1, 2, 0, 1]
    assert len(list((tmp_path / "s/older").iterdir())) == 2
    execute(plan("square", 2), store, workers=0, fresh=True)
    assert len(list((tmp_path / "s/older").iterdir())) == 4


def test_what_was_withdrawn_stays_withdrawn_without_an_index(store, log):
    work = plan("square", 3)
    execute(work, store, workers=0)
    store.withdraw(list(work.points)[:2])
    lose_index(store)
    assert store.summary() == {"done": 1}
    assert [store.has(point) for point in work.points] == [False, False, True]
    execute(work, store, workers=0)
    lose_index(store)
    assert store.summary() == {"done": 3}
    assert computed(log) == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("sizes", [(0, 2**16), (2**16, 0)])
def test_a_result_counts_where_it_was_last_stored(tmp_path, sizes):
    mended = tmp_path / "mended"
    work = plan("stops", 1, **{"as": "failed", "mended": str(mended)})
    before, after = (Store(tmp_path / "s", pack_up_to=size) for size in sizes)
    execute(work, before, workers=0)
    mended.touch()
    execute(work, after, workers=0, retry_failed=True)
    for _ in range(2):
        assert after.summary() == {"steps": 1}
        assert [result.status for result in after.results(work.points)] == ["steps"]
        lose_index(after)
    after.withdraw(work.points)
    lose_index(after)
    assert after.summary() == {}


def test_a_worker_names_its_versions(tmp_path):
    store = Store(tmp_path / "s")
    execute(plan("square", 2), store, workers=1)
    assert [row["versions"] for row in store.rows()] == [files.versions()] * 2


def test_a_figure_is_not_drawn_from_another_version(tmp_path, log, raise_version):
    seen = []

    def draw(results):
        seen.append([files.numerics_of(result.versions) for result in results])
        return Reproduction((), {}, ())

    recipe = Recipe("demo", "A demo", lambda size, seed: plan("square", 2).points, draw)
    reproducing.reproduce(recipe, "quick", tmp_path / "f", workers=0)
    raise_version()
    outcome = reproducing.reproduce(recipe, "quick", tmp_path / "f", workers=0)
    assert outcome.summary.outdated == 2
    assert seen == [[files.NUMERICS_VERSION - 1] * 2, [files.NUMERICS_VERSION] * 2]
    shape = json.loads((tmp_path / "f/shape.json").read_text())
    assert shape["versions"]["numerics"] == files.NUMERICS_VERSION
    reproducing.reproduce(recipe, "quick", tmp_path / "f", workers=0, fresh=True)
    assert computed(log) == [0, 1] * 3


def test_an_empty_plan_reuses_nothing(tmp_path):
    summary = execute(Plan.of("none", []), tmp_path / "s", workers=0)
    assert summary.reuse() == ""
