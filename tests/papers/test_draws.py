"""Subjects that nobody chose: one of each paper here, all of them in `make test-long`."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.papers.highdim.draws import assigned_start, step_size
from reluflow.papers.highdim.law import kick, kick_error
from reluflow.papers.separable import example, hard_margin
from reluflow.theory.subject import subject_of
from reluflow.theory.wrong import ending, recorded

from .draws import COUNT, DRAWS, ENGINES, campaign, judged, lines

FIRST = {"separable": 1, "correlated": 16, "orthogonal": 1, "highdim": 2, "univariate": 1}


def row(name, id, subject, *, engines=ENGINES, generator=None, **options):
    paper = rf.papers.named(name)
    return paper[id].check(paper.prepare(subject_of(subject, engines, generator), **options))


def failed(line):
    return {id: bad for id, bad in line["bad"].items() if bad[0] == "FAIL"}


@pytest.mark.parametrize("name", DRAWS)
def test_a_random_subject_that_satisfies_the_hypotheses_fails_nothing(name):
    line = judged(name, FIRST[name])
    assert not failed(line)
    assert line["counts"]["PASS"] > 5


def test_neurons_that_turn_after_the_fit_do_not_contradict_the_time_of_alignment():
    """At scale e^-8 the points are fitted before neuron 67 has turned (DOP853: at F = 35.59)."""
    line = judged("separable", 78)
    assert not failed(line)
    verdict, measured, bound, note = line["bad"]["S3"]
    assert verdict == "UNRESOLVED"
    assert measured > 1e11 > bound
    assert "outside the regime unmoved" in note


@pytest.mark.parametrize("answer", ["wrong", "raises"])
def test_hard_margin_vectors_do_not_rest_on_the_word_of_a_library(monkeypatch, answer):
    import scipy.optimize

    def broken(A, b):
        if answer == "raises":
            raise RuntimeError("too many iterations")
        return np.ones(A.shape[1]), 0.0

    rng = np.random.default_rng(0)
    draws = [0.05 + np.abs(rng.standard_normal((9, 4))) for _ in range(20)]
    right = [hard_margin(X) for X in draws]
    monkeypatch.setattr(scipy.optimize, "nnls", broken)
    for X, w in zip(draws, right, strict=True):
        assert hard_margin(X) == pytest.approx(w, rel=1e-10)


def test_hard_margin_vectors_of_short_points_are_those_of_long_ones():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = np.abs(rng.standard_normal((30, 3)))
        assert 1e-6 * hard_margin(1e-6 * X) == pytest.approx(hard_margin(X), rel=1e-12, abs=0.0)


def turning(goal=1e4):
    """A small neuron that starts near the direction from which its force drives it both ways."""
    X = [[0.62, 0.44], [0.36, 0.86], [1.49, 0.2], [-1.05, -0.13], [-0.54, -0.16], [-0.05, -0.45]]
    W = np.array([[0.6, 0.8], [-0.8, -0.6], [np.cos(0.6), np.sin(0.6)]])
    net = rf.Network([1.0, -1.0, -1.0] * np.linalg.norm(W, axis=1), W, [-2.0, -2.0, -12.0])
    data = rf.Dataset(X, [1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    return rf.flow(data, net, loss=rf.losses.Exponential(), stop_log_loss=-goal)


def test_neurons_that_turn_to_their_class_late_leave_open_whether_patterns_freeze():
    """The start of seed 137 in small: it grew before it was aligned, and turns with log F."""
    run = turning()
    found = row("separable", "S2", run)
    assert found.verdict == "UNRESOLVED"
    assert found.measured == 1.0
    assert "outside the regime unmoved" in found.note
    assert row("separable", "S4", run).verdict == "UNRESOLVED"  # seeds 271 and 296 in small
    assert row("separable", "S2", rf.flow(run, stop_log_loss=-1e6)).verdict == "PASS"


def test_a_pattern_that_is_wrong_after_alignment_is_no_pattern_that_freezes():
    run = example(-2000.0)
    own = run.net.signs[:, None] * run.data.y > 0.0
    j = int(np.argmax(run.final.log_norms))

    def swapped(modes):
        modes[-1, j] = np.where(own[j], modes[-1, j, ~own[j]].min(), modes[-1, j, own[j]].max())
        return modes

    assert row("separable", "S2", run).verdict == "PASS"
    assert row("separable", "S2", recorded(run, mode=swapped)).verdict == "FAIL"


def test_products_are_compared_where_the_first_pairs_share_all_points():
    """Seed 16: at the last crossing all pairs are parallel to ten digits."""
    name = "correlated"
    run, _ = DRAWS[name](np.random.default_rng([sum(map(ord, name)), 16]))
    assert row(name, "B2", run).verdict == "PASS"
    assert row(name, "B2", rf.papers.named(name)["B2"].wrong(run)).verdict == "FAIL"


def test_jumps_that_follow_closely_are_looked_at_deeper_as_long_as_they_are_open():
    """Seed 68: at log(1/lambda) = 585 the second jump begins before the first has ended."""
    name = "orthogonal"
    run, _ = DRAWS[name](np.random.default_rng([sum(map(ord, name)), 68]))
    for id in ("O18", "O34"):
        found = row(name, id, run)
        assert found.verdict == "PASS"
        assert "= 5855" in found.note
        found = row(name, id, run, engines=None)
        assert found.verdict == "UNRESOLVED"
        assert "a deeper run decides" in found.note


def test_signs_of_neurons_that_agree_with_the_labels_by_chance_are_still_random():
    """Seed 215: one point and one neuron, whose sign is fair: A4(i) has probability 1/4."""

    def drawn(signs):
        def draw(k):
            data = rf.Dataset(np.eye(1), [1.0])
            net = rf.networks.balanced(
                1, 1, log_scale=-100.0, directions="sphere", signs=signs, seed=k
            )
            return data, net

        return draw

    fair, fixed = drawn("random"), drawn(np.ones(1))
    start = next(pair for pair in map(fair, range(50)) if (pair[1].signs > 0.0).all())
    found = row("orthogonal", "O19", start, generator=fair, draws=200)
    assert (found.verdict, found.bound) == ("PASS", 0.25)
    found = row("orthogonal", "O19", start, generator=fixed, draws=200)
    assert (found.verdict, found.bound) == ("PASS", 0.5)
    found = row("orthogonal", "O19", start, generator=fixed, draws=8)
    assert found.verdict == "UNRESOLVED"
    assert "perhaps by chance" in found.note


def test_theorem_6_is_about_starts_that_keep_their_assignment():
    """221 neurons of a sign overshoot together: a plain loop ends there as well."""
    signs = np.where(np.arange(442) % 2, -1.0, 1.0)
    made = assigned_start(5, 85_715, signs, eps=0.5 / 442, constant=2.7275, seed=1777707083)
    run = rf.descend(
        made.data,
        made.net,
        lr=made.lr,
        steps=np.inf,
        loss=rf.losses.Square("1/2"),
        train="hidden",
    )
    found = row("highdim", "HD-27", run)
    assert found.verdict == "NOT_APPLICABLE"
    assert found.observed is False
    assert "too small beside the cross terms" in found.note


def low_dimension():
    """Four points in 300 dimensions and a long start: A2 just holds, products of points count."""
    points = rf.datasets.gaussian(4, 300, seed=3)
    data = rf.Dataset(points.X, np.sign(points.y))
    net = rf.networks.by_preactivations(data, 0.99 * 0.25 / 4.0, [1])
    loss, lr = rf.losses.Square("1/2"), step_size(data, 4.0)
    return rf.descend(data, net, lr=lr, steps=np.inf, loss=loss, train="hidden")


def test_products_of_points_may_hide_the_law_of_the_distance():
    """The distance is 0.47 where the law says 0.7 (0.81 to leading order)."""
    run = low_dimension()
    assert row("highdim", "A2", run).verdict == "PASS"
    found = row("highdim", "HD-16", run)
    assert found.verdict == "UNRESOLVED"
    assert 0.4 < found.measured < 0.5 < found.bound
    assert "a higher dimension would decide" in found.note
    far = ending(run, lambda net, share: net.with_scale(3.0))
    assert row("highdim", "HD-16", far).verdict == "FAIL"


@pytest.mark.parametrize("signs", [[1.0], [1.0, -1.0]])
def test_what_products_of_points_may_add_to_the_distance_is_never_exceeded(signs):
    """Against limits of descent, whose distance to the shortest weights is certified."""
    paper, seen = rf.papers.named("highdim"), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, C = int(rng.integers(2, 9)), rng.uniform(2.0, 4.0)
        data = rf.datasets.bartlett(
            n, int(n * 10 ** rng.uniform(1.5, 4.0)), y_range=(1.0, rng.uniform(1.0, 9.0)), seed=seed
        )
        eps = rng.uniform(0.0, 0.25) / C * np.abs(data.y).min()
        net = rf.networks.by_preactivations(data, eps, signs)
        loss, lr = rf.losses.Square("1/2"), step_size(data, C)
        run = rf.descend(data, net, lr=lr, steps=np.inf, loss=loss, train="hidden")
        case = paper.prepare(subject_of(run, ENGINES))
        one_step = run.stats["last_change"] <= 1 and (case.active_inf == case.own).all()
        for k in range(len(signs) if one_step else 0):
            assert abs(case.distance(k) - kick(case, k)) <= kick_error(case, k)
            seen += 1
    assert seen > 20


def test_where_in_a_step_a_point_dies_says_nothing_about_the_order_of_the_error():
    """Seed 29 in small: one point of the other sign, whose error is a sawtooth of the step."""
    data = rf.Dataset(np.diag([1.0, 1.1, 0.95]), [1.0, 2.0, -1.3])
    wrong = []
    for eps in np.linspace(0.02, 0.06, 9):
        net = rf.networks.by_preactivations(data, eps, [1])
        wrong.append(str(row("highdim", "HD-32", (data, net)).verdict))
    assert set(wrong) == {"PASS"}


def test_a_direction_that_only_leaves_its_start_has_not_been_seen_to_move_for_ever():
    """Seed 114 in small: in the decade before, the start still held the direction."""
    X = np.column_stack([[-0.787, -0.2, 0.364, 0.606], np.ones(4)])
    net = rf.networks.gaussian(2, 60, sigma_hidden=2.0, sigma_output=0.1, seed=3)
    level = 5.1 * net.squared_norm
    run = rf.flow(
        rf.Dataset(X, -np.ones(4)), net, loss=rf.losses.Exponential(), stop_log_loss=-level
    )
    found = row("univariate", "U7", run, engines=None)
    assert found.verdict == "UNRESOLVED"
    assert "as the start fades" in found.note
    assert row("univariate", "U7", run).verdict == "PASS"


def test_a_subject_that_takes_too_long_ends_and_the_others_go_on(tmp_path):
    out = tmp_path / "draws.jsonl"
    campaign(out, ["separable"], range(1), limit_s=0.01)
    assert [line.get("timeout") for line in lines(out)] == [0.01]
    campaign(out, ["separable"], range(1), limit_s=0.01)
    assert len(lines(out)) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWS)
def test_no_random_subject_fails_and_few_rows_stay_open(name, tmp_path):
    out = tmp_path / "draws.jsonl"
    campaign(out, [name], range(COUNT))
    found = [line for line in lines(out) if "counts" in line]
    assert len(found) >= 0.99 * COUNT
    assert not [(line["seed"], failed(line)) for line in found if failed(line)]
    open_ = sum(line["counts"].get("UNRESOLVED", 0) for line in found)
    applicable = open_ + sum(line["counts"].get("PASS", 0) for line in found)
    assert open_ <= 0.05 * applicable


def test_one_unusual_draw_does_not_contradict_the_concentration_of_products():
    """Seed 74: three points in a million dimensions, 3.26 times the usual deviation."""
    verdict, measured, _, note = judged("highdim", 74)["bad"]["HD-04"]
    assert verdict == "UNRESOLVED"
    assert 3.2 < measured < 3.3
    assert "more of them decide" in note
