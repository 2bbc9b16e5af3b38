"""Campaigns: pieces are done once, go on after an end, and keep what goes wrong."""

import json
import sys

import pytest

import campaigns
from campaigns import CAMPAIGNS, Campaign


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run the command with a toy campaign of five pieces, the third of which goes wrong."""
    done = []

    def toy(folder, seed, size):
        assert folder.is_dir()
        done.append(seed)
        if seed == 2:
            raise ValueError("the third")
        return {"kills": size, "slowest_s": 0.5 * seed, "slowest_cpu_s": 0.25 * seed}

    monkeypatch.setattr(campaigns, "CAMPAIGNS", {"toy": Campaign(90, 20, toy)})

    def call(*arguments):
        done.clear()
        command = ["campaigns.py", "--out", str(tmp_path / "c.jsonl"), "--only", "toy", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            campaigns.main()
        return list(done), ended.value.code

    call.file = tmp_path / "c.jsonl"
    return call


def test_pieces_are_done_once_and_what_goes_wrong_is_kept(call, capsys):
    assert call() == ([0, 1, 2, 3, 4], 1)
    assert "| toy | 70 | 90 | [2] | 70 kills | 2.00 | 1.00 |" in capsys.readouterr().out
    assert call() == ([], 1)
    assert call("--piece", "2") == ([2], 1)
    wrong = [line for line in campaigns.read(call.file) if "wrong" in line]
    assert [line["piece"] for line in wrong] == [2, 2]
    assert "ValueError: the third" in wrong[0]["wrong"]


def test_an_interrupted_campaign_goes_on_and_shares_divide_it(call):
    assert call("--share", "1/2") == ([1, 3], 0)
    assert call("--minutes", "0") == ([], 0)
    with call.file.open("a") as stream:
        stream.write('{"campaign": "toy", "pie')  # cut off by a kill
    assert call("--share", "0/2") == ([0, 2, 4], 1)
    assert call() == ([], 1)


def test_the_campaigns_come_to_their_figures():
    wanted = {name: campaign.wanted for name, campaign in CAMPAIGNS.items()}
    assert wanted["drivers-inline"] + wanted["drivers-dask"] == 500
    assert (wanted["deaths"], wanted["stops"], wanted["signals-inline"]) == (1000, 50, 400)
    assert (wanted["files-damaged"] + wanted["files-sealed"], wanted["files-sealed"]) == (
        20_000,
        5_000,
    )
    assert wanted["problems"] == 100_000
    assert all(campaign.wanted % campaign.size == 0 for campaign in CAMPAIGNS.values())


def test_a_line_that_cannot_be_read_is_no_piece(tmp_path):
    file = tmp_path / "c.jsonl"
    file.write_text(json.dumps({"campaign": "toy", "piece": 0}) + '\n{"campaign": ')
    assert campaigns.read(file) == [{"campaign": "toy", "piece": 0}]
