"""Pages of one's own data: the answer follows the numbers, and the page makes itself again."""

import base64
import re
from html import unescape

import numpy as np
import pytest
from typer.testing import CliRunner

import reluflow as rf
from reluflow.cli.app import app
from reluflow.figures import Heat, Line, Points
from reluflow.studies import own
from reluflow.sweeps import measures
from reluflow.theory.contract import LabelledRun

LINE = """
[data]
file = "my data.csv"
label = "response"
bias = true

[network]
{network}

[engine]
name = "flow"
t_end = 20.0
"""
X = [-1.6, -1.1, -0.8, -0.3, 0.1, 0.2, 0.6, 0.9, 1.2, 1.5, 1.8, 2.0]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def fitted():
    data = rf.Dataset([-1.0, 0.0, 1.0], [1.0, -0.5, 0.7], bias=True)
    return rf.flow(data, rf.networks.balanced(2, width=20, log_scale=-1.0, seed=1))


def test_the_answer_of_a_fit_compares_norms(fitted):
    facts = own.facts_of(fitted)
    least = rf.interpolators.min_norm(fitted.data).value
    said = own.answer(facts)
    assert said.startswith("Gradient flow fits all 3 points exactly; its squared norm ")
    assert f"{fitted.final.squared_norm:.4g}" in said
    assert facts.least.squared_norm == pytest.approx(least)
    assert f"{facts.alive} of 20 neurons are active" in said
    assert facts.point.kind == "fit"
    assert "\n" not in said


def test_the_steps_that_could_stay_are_told(fitted):
    found = rf.geometry.hessian_spectrum(fitted.data, fitted.final, active=fitted.active(-1))
    text = own.found(own.facts_of(fitted)).text
    assert f"largest eigenvalue of the Hessian is {found.sharpness:.4g}" in text
    assert f"steps above {2 / found.sharpness:.4g} would not stay here" in text


def test_the_picture_of_one_input_is_a_movie_that_ends_at_the_end(fitted):
    (figure,) = own.lead(own.facts_of(fitted)).figures
    assert figure.frames[0].label == "start"
    assert figure.frames[-1].label == "end"
    assert figure.first_frame == len(figure.frames) - 1
    (curve,) = [x for x in figure.frames[-1].layers if x.label == "the network"]
    np.testing.assert_allclose(curve.y, fitted.final.predict(curve.x), atol=1e-12)
    labels = {layer.label for layer in figure.frames[3].layers}
    assert {"data", "minimum norm"} <= labels
    times = [frame.time for frame in figure.frames[1:]]
    assert times == sorted(times)


def test_a_run_that_was_stopped_or_is_stuck_says_so():
    data = rf.Dataset([-1.0, 0.0, 1.0], [1.0, -0.5, 0.7], bias=True)
    net = rf.networks.balanced(2, width=20, log_scale=-1.0, seed=1)
    stopped = own.facts_of(rf.flow(data, net, t_end=0.5))
    assert "has reached loss" in own.answer(stopped)
    assert "no stationary point" in own.found(stopped).text
    stuck = rf.flow(
        rf.Dataset([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0]), rf.Network([1.0], [[0.5, -1.0]])
    )
    facts = own.facts_of(stuck)
    assert "ends in a local minimum with loss 1" in own.answer(facts)
    dead = rf.flow(rf.Dataset([[1.0, 0.0]], [1.0]), rf.Network([1.0], [[-1.0, 0.0]]))
    assert "ends in a dead network" in own.answer(own.facts_of(dead))


def test_classes_in_the_plane_have_a_boundary_and_a_sentence():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(6, 2)) + 2.0, rng.normal(size=(6, 2)) - 2.0])
    data = rf.Dataset(X, np.repeat([1.0, -1.0], 6), bias=True)
    net = rf.networks.balanced(3, width=12, log_scale=-1.0, seed=1)
    run = rf.flow(data, net, loss="logistic", stop_log_loss=-5.0)
    facts = own.facts_of(run)
    assert own.answer(facts).startswith("Gradient flow separates all 12 points")
    (figure,) = own.lead(facts).figures
    kinds = [type(layer) for layer in figure.panels[0].layers]
    assert kinds.count(Heat) == 1
    assert any(layer.label == "decision boundary" for layer in figure.panels[0].layers)
    assert any(isinstance(layer, Points) for layer in figure.panels[1].layers)
    assert any(isinstance(layer, Line) for layer in figure.panels[1].layers)
    wrong = rf.flow(data, net, loss="logistic", t_end=1e-3)
    assert "on the wrong side" in own.answer(own.facts_of(wrong))


def test_several_scales_are_compared_with_the_prediction():
    data = rf.datasets.orthonormal(3, labels="positive", seed=0)
    net = rf.networks.balanced(3, 8, log_scale=-8.0, directions="sphere", seed=0)
    run = rf.flow(data, net)
    (row,) = own.comparisons([(LabelledRun("one", run), own.facts_of(run))])
    assert row.discrepancy < 1e-2


def downloads(page):
    """Name and contents of what the page offers, as a reader would save it."""
    found = re.findall(r'<a href="data:[^;]*;base64,([^"]*)" download="([^"]*)"', page)
    return {unescape(name): base64.b64decode(unescape(body)) for body, name in found}


@pytest.mark.parametrize("network", ["init", "file"])
def test_a_page_of_own_data_makes_itself_again(tmp_path, network):
    """Downloads into one folder, then the command as printed: the same weights, bit for bit."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    rows = [f"{float(np.sin(3 * x))!r},{x}" for x in X]
    (here / "my data.csv").write_text("\n".join(["response,temperature", *rows]))
    rf.networks.balanced(2, width=12, log_scale=-1.0, seed=3).save(here / "mine.rf")
    table = {
        "init": 'init = "balanced"\nwidth = 12\nlog_scale = -1.0',
        "file": 'file = "mine.rf"',
    }[network]
    (here / "first.toml").write_text(LINE.format(network=table))
    result = invoke("study", here / "first.toml", "--out", here, "--seed", 5)
    assert result.exit_code == 0, result.output
    page = (here / "first" / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 1_500_000
    for name, body in downloads(page).items():
        (there / name).write_bytes(body)
    reproduce = page.partition('id="reproduce"')[2]
    named = re.findall(r"<code>([\w.]+)</code>", reproduce)
    assert named[:2] == ["study.toml", "points.csv"]
    assert all((there / name).is_file() for name in named)
    command = unescape(re.search(r"<code>reluflow ([^<]*)</code>", reproduce)[1]).split()
    command[1] = str(there / command[1])
    again = invoke(*command, "--out", there)
    assert again.exit_code == 0, again.output
    first, second = (
        rf.load(folder / "runs" / "the_run.rf") for folder in (here / "first", there / "study")
    )
    assert first.final == second.final
    assert first.data == second.data
    assert first.log_loss.tobytes() == second.log_loss.tobytes()


def test_the_answer_stands_before_what_was_run(tmp_path):
    rows = [f"{x},{float(np.sin(3 * x))!r}" for x in X]
    (tmp_path / "my data.csv").write_text("\n".join(["x,response", *rows]))
    text = LINE.format(network='init = "balanced"\nwidth = 12').replace(
        "t_end = 20.0", "t_end = 2.0"
    )
    (tmp_path / "line.toml").write_text(text)
    assert invoke("study", tmp_path / "line.toml", "--out", tmp_path).exit_code == 0
    page = (tmp_path / "line" / "report.html").read_text(encoding="utf-8")
    order = [
        page.index(text)
        for text in (
            '<p class="answer">Gradient flow has reached loss',
            ">The learned function</h2>",
            'id="what-was-run"',
            ">What was found</h2>",
        )
    ]
    assert order == sorted(order)


def test_where_training_ends_sliding_the_answer_is_a_minimum_not_an_open_end():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-2.0, 2.0, 8))
    data = rf.Dataset(x, np.sin(2.0 * x) + 0.3 * rng.normal(size=8), bias=True)
    run = rf.flow(data, rf.networks.balanced(2, width=12, log_scale=-3.0, seed=0))
    assert run.status == "stationary"
    assert (run.modes(-1) == 2).any()
    facts = own.facts_of(run)
    assert "a local minimum with loss" in own.answer(facts)
    assert "has not ended" not in own.found(facts).text


def test_two_classes_in_the_plane_have_their_margin_and_kkt_residuals():
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], 4)
    data = rf.Dataset(rng.normal(size=(8, 2)) * 0.3 + np.outer(y, [1.0, 0.5]), y, bias=True)
    net = rf.networks.balanced(3, width=8, log_scale=-1.0, seed=1)
    facts = own.facts_of(rf.flow(data, net, loss="logistic", stop_log_loss=-8.0))
    found = rf.geometry.margin(data, facts.run.final)
    best = rf.interpolators.max_margin(data)
    assert f"{found:.4g} is {found / best.margin:.0%} of the largest possible" in own.answer(facts)
    text = own.found(facts).text
    assert f"{found:.6g}" in text
    assert f"{rf.geometry.kkt(data, facts.run.final).epsilon:.2g} is missing" in text


def test_a_leaky_network_is_compared_with_leaky_ones():
    data = rf.Dataset([-1.0, 0.0, 1.0], [1.0, -0.5, 0.7], bias=True)
    net = rf.networks.balanced(2, width=8, log_scale=-0.5, slope=0.3, seed=1)
    run = rf.descend(data, net, lr=0.2, steps=3000)
    facts = own.facts_of(run)
    least = rf.interpolators.min_norm(data, slope=0.3)
    assert facts.least.squared_norm == pytest.approx(least.value)
    assert facts.point.kind == "fit"
    assert facts.limit is None
    assert own.answer(facts).startswith("Gradient descent (a leaky activation of slope 0.3) has ")
    assert "Kind of point: a fit of every point" in own.found(facts).text
    assert measures.excess_norm(run) == pytest.approx(run.final.squared_norm / least.value)
