"""What pages say follows verdicts: every sentence names claims that exist, and bends to them."""

from itertools import pairwise

import numpy as np
import pytest

import reluflow as rf
from reluflow.studies import prose
from reluflow.theory import Said, Section, Verdict, paper_named
from reluflow.theory.contract import LabelledRun

PAPERS = ("correlated", "orthogonal", "highdim", "univariate")


def runs_of(name):
    """A quick run of each paper's kind."""
    if name == "correlated":
        data = rf.datasets.cone(3, 3, half_angle=0.75, seed=57)
        net = rf.networks.balanced(3, 24, log_scale=-7.0, directions="sphere", seed=57)
        return rf.flow(data, net, rtol=1e-10)
    if name == "orthogonal":
        data = rf.datasets.orthonormal(4, seed=0)
        return rf.flow(data, rf.networks.balanced(4, width=10, log_scale=-30.0, seed=1))
    if name == "highdim":
        data = rf.datasets.bartlett(6, 10_000, seed=0)
        net = rf.networks.by_preactivations(data, 0.005, [1, -1])
        lr = 0.5 / np.linalg.eigvalsh(data.gram)[-1]
        loss = rf.losses.Square("1/2")
        return rf.descend(data, net, lr=lr, steps=np.inf, loss=loss, train="hidden")
    x = np.linspace(-1.0, 1.0, 8)
    data = rf.datasets.from_points(x, np.sign(x))
    net = rf.networks.gaussian(2, 8, sigma_hidden=0.3, sigma_output=0.03, seed=1)
    return rf.flow(data, net, loss="exponential", stop_log_loss=-20.0)


@pytest.fixture(scope="module", params=PAPERS)
def told(request):
    paper = paper_named(request.param)
    found = paper.findings([LabelledRun("the run", runs_of(request.param))])
    return paper, [section for section in found.sections if section.said]


def test_sentences_name_claims_of_their_paper(told):
    paper, sections = told
    known = {claim.id for claim in paper.claims}
    assert len(sections) >= 2
    for section in sections:
        for said in section.said:
            assert said.claims
            assert set(said.claims) <= known
            assert said.text.endswith(".")


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_sentence_follows_the_verdicts_of_its_claims(told, verdict):
    _, sections = told
    for section in sections:
        for said in section.said:
            put = prose.put(said, dict.fromkeys(said.claims, verdict))
            if verdict is Verdict.PASS:
                assert put == said.text
            else:
                assert put != said.text
                assert all(id in put for id in said.claims)
                assert ("Not on these runs" in put) == (verdict is Verdict.FAIL)


def test_a_failing_claim_outweighs_an_undecided_one_and_order_is_kept():
    said = (Said("One.", ("A", "B", "C")), Said("Two.", ("A",)))
    report = type("Report", (), {"checks": ()})()
    rows = {"A": Verdict.PASS, "B": Verdict.UNRESOLVED, "C": Verdict.FAIL}
    report.checks = [type("Row", (), {"id": id, "verdict": v})() for id, v in rows.items()]
    (section,) = prose.followed([Section("title", "Drawn.", (), said)], report)
    assert section.text == "Drawn. Not on these runs, where C fails: “One.” Two."
    assert section.said == ()
    starts = [section.text.index(word) for word in ("Drawn", "One", "Two")]
    assert all(a < b for a, b in pairwise(starts))


def test_where_the_ending_fails_the_page_does_not_say_that_it_holds():
    paper = paper_named("correlated")
    run = runs_of("correlated")
    report = rf.theory.check(paper, run, start_runs=False)
    rows = [
        type("Row", (), {"id": row.id, "verdict": Verdict.FAIL if row.id == "T7" else row.verdict})
        for row in report.checks
    ]
    wrong = type("Report", (), {"checks": rows})
    sections = prose.followed(paper.findings([LabelledRun("the run", run)]).sections, wrong)
    ending = next(section.text for section in sections if section.title == "The ending")
    assert "Not on these runs, where T7 fails: “All neurons" in ending
