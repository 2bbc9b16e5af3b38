"""A session: the newest state wins, cancelled work stops, nothing sent can break it."""

import base64
import json
import os
import random
import time

import numpy as np
import pytest

import reluflow as rf
from reluflow.explore import compute, frames, jobs, presets
from reluflow.explore.session import Session
from reluflow.explore.slow import Lane
from reluflow.explore.state import from_json, to_json

from .helpers import PATIENCE_S, state, talk


def test_a_greeting_names_the_presets_and_the_first_state():
    with talk(presets.named("rank")) as page:
        page.send(1, "hello")
        header, _ = page.answer(1)
        assert header["state"] == to_json(presets.named("rank"))
        assert {"line", "correlated", "orthogonal", "sliding"} <= {
            p["id"] for p in header["presets"]
        }
        assert all(len(p["look"].split(". ")) >= 2 for p in header["presets"])


def test_the_final_values_shown_are_those_of_the_flow():
    asked = from_json(state("line"))
    with talk() as page:
        page.send(7, "full", state=to_json(asked))
        header, arrays = page.answer(7)
    run = rf.flow(asked.dataset(), asked.network(), **asked.options())
    assert header["status"] == "exact"
    assert arrays["log_t"][-1] == run.log_t[-1]
    assert arrays["log_loss"][-1] == run.log_loss[-1]
    assert np.allclose(arrays["u"][-1], run.final.directions, atol=1e-7)
    seen = run.final.log_norms > -20
    assert np.allclose(arrays["log_w"][-1][seen], run.final.log_norms[seen], rtol=1e-6, atol=1e-6)
    gaps = np.abs(np.diff(arrays["u"], axis=0)).max()
    records = run.kept["W"] / np.linalg.norm(run.kept["W"], axis=2, keepdims=True)
    assert gaps <= np.abs(np.diff(records, axis=0)).max()


def test_waiting_states_are_replaced_by_newer_ones_and_the_last_is_answered():
    """Sent at once, most states are never computed; ids rise and the last one is the last."""
    with talk() as page:
        page.send(1, "draft", state=state())
        page.answer(1)  # compiled by now
        for id in range(2, 60):
            page.send(id, "draft", state=state(log_scale=-1.0 - 0.05 * id))
        header, _ = page.answer(59)
        assert header["log_scale"] == pytest.approx(-1.0 - 0.05 * 59)
        ids = [h["id"] for h, _ in page.said]
        assert ids == sorted(ids)
        assert len(ids) < 59


def test_a_full_run_gives_way_to_a_draft(monkeypatch):
    """The stop hook is asked while a full run goes on, and answers yes once a newer state waits."""
    with talk() as page:
        original = compute.full

        def full_and_more(asked, stop):
            page.send(3, "draft", state=state())
            assert stop()
            return original(asked, stop)

        monkeypatch.setattr(compute, "full", full_and_more)
        page.send(2, "full", state=state("staircase"))
        assert page.answer(3)[0]["kind"] == "run"
        assert page.answer(2)[0]["kind"] == "cancelled"


def test_the_page_is_told_while_the_engine_is_compiled():
    with talk() as page:
        page.session._note_compiling(True)
        header, _ = page.wait(lambda header: header["kind"] == "compiling")
        assert header["seconds"] == 0
        page.wait(lambda header: header["kind"] == "compiling" and header["seconds"] == 1)
        page.session._note_compiling(False)
        page.session._note_compiling(True)  # the next kernel: the seconds go on
        page.wait(lambda header: header["kind"] == "compiling" and header["seconds"] == 2)
        told = [h["seconds"] for h, _ in page.said if h["kind"] == "compiling"]
        assert told == sorted(told)


def test_wide_networks_wait_for_the_hand_to_rest():
    with talk() as page:
        net = {"kind": "drawn", "width": 101}
        page.send(1, "draft", state=state("line", net=net))
        assert page.answer(1)[0]["kind"] == "skipped"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "different versions"),
        ('{"v": 2}', "different versions"),
        ('{"v": 1}', "no id"),
        ('{"v": 1, "id": -1}', "no id"),
        ('{"v": 1, "id": true}', "no id"),
        ('{"v": 1, "id": 1, "kind": "rm"}', "kind"),
        ("x" * 300_000, "at most 262144"),
        (b"\xff\xfe\xfd", "not JSON"),
    ],
)
def test_messages_that_are_none_get_a_sentence(text, words):
    with talk() as page:
        page.session.receive(text)
        header, _ = page.wait(lambda header: header["kind"] == "error")
        assert words in header["error"]


def test_random_messages_never_end_the_session():
    rng = random.Random(5)
    good = json.dumps({"v": 1, "id": 1, "kind": "full", "state": state()})
    with talk() as page:
        for _ in range(200):
            letters = list(good)
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(letters))
                letters[at] = rng.choice('0123456789-.eE{}[]",:nul \x00é')
            page.session.receive("".join(letters).replace('"full"', '"table"'))
        for id in range(10**6, 10**6 + 1000):
            page.send(id, "hello")
            header, _ = page.answer(id)
            if header["kind"] == "hello":
                return
            assert "Ask again in a moment" in header["error"]  # those before it are still read
            time.sleep(0.1)
        raise AssertionError(header)


def test_degenerate_states_name_their_points():
    with talk() as page:
        page.send(1, "draft", state=state("correlated", X=[[0.0, 0.0], [1.0, 0.5]], y=[1.0, 1.0]))
        header, _ = page.answer(1)
        assert header["kind"] == "error"
        assert header["points"] == [0]
        assert "origin" in header["error"]
        both = [[1.0, 0.5], [1.0, 0.5]]
        page.send(2, "draft", state=state("correlated", X=both, y=[1.0, -1.0]))
        header, _ = page.answer(2)
        assert header["kind"] == "run"
        assert header["warnings"][0]["points"] == [0, 1]


def test_downloads_and_tables_are_answered():
    with talk() as page:
        page.send(1, "download", what="toml", state=state())
        header, _ = page.answer(1)
        assert "[engine]" in base64.b64decode(header["body"]).decode()
        page.send(2, "download", what="../../etc/passwd", state=state())
        assert "one of toml" in page.answer(2)[0]["error"]
        page.send(3, "table", text="1,2\n3,4")
        assert page.answer(3)[0]["y"] == [2.0, 4.0]
        page.send(4, "table", text=None)
        assert "Paste" in page.answer(4)[0]["error"]


def test_the_slow_lane_answers_part_by_part_and_dies_with_the_session():
    with talk() as page:
        page.send(1, "slow", state=state("rank"))
        page.wait(lambda header: header.get("part") == "done")
        parts = [h["part"] for h, _ in page.said]
        assert parts == ["second", "extremal", "heuristic", "strip", "claims", "done"]
        found = {h["part"]: h for h, _ in page.said}
        assert found["second"]["undecided"] is False
        assert found["extremal"]["certified"]
        assert len(found["strip"]["scales"]) == 8
        pid = page.session.lane.pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_slow_lane_works_on_the_newest_job():
    with talk() as page:
        for id in range(1, 6):
            page.send(id, "slow", state=state("line", log_scale=-float(id)))
        page.wait(lambda header: header.get("part") == "done" and header["id"] == 5)
        assert not [h for h, _ in page.said if h.get("part") == "done" and h["id"] < 5]


def test_two_tolerances_that_disagree_are_undecided():
    asked = from_json(state("line", rtol=1e-2, log_scale=-10.0))
    runs = [compute.train(asked, rtol, 20.0, None) for rtol in (1e-2, 1e-4)]
    apart = jobs.disagreement(*runs)
    told, _ = jobs.second_tolerance(asked, runs[0], lambda: False)
    assert told["apart"] == apart
    assert told["undecided"] == (apart > jobs.UNDECIDED or runs[0].status != runs[1].status)
    exact = from_json(state("rank"))
    told, _ = jobs.second_tolerance(exact, compute.train(exact, 1e-8, 20.0, None), lambda: False)
    assert told["undecided"] is False


def test_a_page_opened_again_gets_its_own_answers_from_the_same_process():
    """The lane of a server outlives a page; answers to the page before are not told to the next."""
    lane = Lane(lambda frame: None)
    told = {1: [], 2: []}
    try:
        first = Session(lambda frame: told[1].append(frame), presets.first(), lane)
        first.receive(json.dumps({"v": 1, "id": 9, "kind": "slow", "state": state("line")}))
        while lane.pid is None:
            time.sleep(0.01)
        pid = lane.pid
        second = Session(lambda frame: told[2].append(frame), presets.first(), lane)
        first.close()
        second.receive(json.dumps({"v": 1, "id": 4, "kind": "slow", "state": state()}))
        end = time.monotonic() + PATIENCE_S
        while not told[2] or frames.decode(told[2][-1])[0].get("part") != "done":
            assert time.monotonic() < end
            time.sleep(0.02)
        assert {frames.decode(frame)[0]["id"] for frame in told[2]} == {4}
        second.close()
        assert lane.pid == pid
    finally:
        lane.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
