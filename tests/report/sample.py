"""A page from small real runs, and one whose every word is hostile."""

import math
from functools import cache

import numpy as np

import reluflow as rf
from reluflow.figures import Axis, Figure, Heat, Line, Panel, Raster, Rule, Span, Text
from reluflow.studies import common
from reluflow.studies.page import Page
from reluflow.theory import Check, Report, Verdict
from reluflow.theory.contract import Comparison, LabelledRun, Section

EVIL = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\"'&"
DOCUMENT = {
    "seed": 1,
    "name": "sample",
    "study": {"title": "Neurons align, then grow", "log_scales": [-7 * math.log(4), -2.0]},
    "data": {"generator": "centred", "d": 4, "seed": 0},
    "network": {"init": "balanced", "width": 20},
    "engine": {"name": "flow", "stop_loss": 5e-10, "t_end": math.inf},
}


@cache
def runs() -> tuple[LabelledRun, ...]:
    data = rf.datasets.centred(d=4, seed=0)
    net = rf.networks.balanced(4, width=20, log_scale=-7 * math.log(4), seed=1)
    stopped = rf.flow(data, net.with_scale(-2.0), max_events=3)
    assert stopped.status == "budget"
    return (LabelledRun("scale 4^-7", rf.flow(data, net)), LabelledRun("scale e^-2", stopped))


def extra_figure() -> Figure:
    """Two panels with the layers that the common sections lack."""
    t = np.geomspace(1e-2, 1e2, 50)
    curve = Line(t, 1 / (1 + t), label="mean of 5", low=0.8 / (1 + t), high=1.2 / (1 + t))
    bound = Line(t, 1.5 / t, label="bound", colour=1, dash="dash")
    marks = (Rule(0.1, label="floor"), Span(0.02, 0.4, "alignment"), Text(10.0, 0.5, "decay"))
    zero = Line(t, 0 * t, colour=2)
    first = Panel("decay", Axis("time", "log"), Axis("loss", "log"), (curve, bound, *marks, zero))
    grid = np.add.outer(np.arange(6.0), np.arange(8.0))
    heat = Panel("angles", Axis("scale"), Axis("width"), (Heat(np.arange(8), np.arange(6), grid),))
    return Figure(
        "extra", "Decay and angles", (first, heat), columns=2, caption="A made-up picture."
    )


def claims() -> Report:
    rows = [
        Check("A1", "all labels are positive", Verdict.PASS, 0.31, 0.0),
        Check("A2", "the start is balanced", Verdict.FAIL, 1e-3, 0.0, "two neurons are not"),
    ]
    checks = [
        Check("L1", "neurons align before they grow", Verdict.PASS, 0.012, 0.1),
        Check("L5a", "the angle is at most the bound", Verdict.UNRESOLVED, 1e-16, 1e-17),
        Check("T6", "the limit has rank one", Verdict.NOT_APPLICABLE, note="A2 does not hold"),
        Check("T7", "the loss decays as 1/t", Verdict.FAIL, 3.0, 2.0, "slope of the last decade"),
    ]
    warnings = ["run 1 ended as `budget`: a limit set by the caller is reached before the end"]
    return Report(
        "correlated",
        "Learning a Neuron by a Shallow ReLU Network",
        "Chistikov, Englert, Lazic. NeurIPS 2023. arXiv:2306.06479, https://arxiv.org/abs/2306.06479",
        "20 neurons, 4 points in dimension 4",
        rows,
        checks,
        warnings,
    )


def page() -> Page:
    extra = Section("Decay", "First paragraph.\n\nSecond paragraph.", (extra_figure(),))
    comparisons = (
        Comparison("squared norm of the weights", 2.0, 2.0000004, "shrinks with the scale"),
        Comparison("largest angle", 0.0, 3e-9, "zero in the limit"),
        Comparison("time of the jump", 14.2, 14.9),
        Comparison("rank of the limit", math.nan, 1.0, "no prediction"),
    )
    return Page(
        title="Neurons align, then grow",
        question="Where does training end when the start is vanishingly small?",
        document=DOCUMENT,
        seed=1,
        runs=runs(),
        sections=(*common.sections(runs()), extra),
        comparisons=comparisons,
        claims=claims(),
        downloads={"losses.csv": b"t,loss\n0,1\n1,0.5\n", "all.bin": bytes(range(256)) * 40},
    )


def hostile() -> Page:
    """The same shape with markup in every text a user or a file can supply."""
    x = np.arange(1.0, 4.0)
    raster = Raster(x, x, np.array([[0, 1], [1, 0]]), (EVIL, "on" + EVIL), (7, 0))
    layers = (Line(x, x, label=EVIL), Rule(2.0, label=EVIL), Text(2, 2, EVIL), raster)
    panel = Panel(EVIL, Axis(EVIL), Axis(EVIL, ticks=((1.0, EVIL),)), layers)
    figure = Figure("evil", EVIL, (panel,), caption=EVIL)
    check = Check(EVIL, EVIL, Verdict.PASS, 1.0, 2.0, EVIL)
    return Page(
        title=EVIL,
        question=EVIL,
        document={EVIL: {"name": EVIL}},
        seed=0,
        runs=(LabelledRun(EVIL, runs()[1].run),),
        sections=(Section(EVIL, EVIL, (figure,)),),
        comparisons=(Comparison(EVIL, 1.0, 2.0, EVIL),),
        claims=Report(EVIL, EVIL, EVIL, EVIL, [check], [check], [EVIL]),
        downloads={EVIL + ".csv": b"1"},
    )
