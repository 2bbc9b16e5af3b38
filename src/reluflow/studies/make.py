"""From a plan to its page: train what is missing, predict, check, draw."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reluflow import files, resumable, theory
from reluflow.spec import Task
from reluflow.studies import common
from reluflow.studies.document import Plan
from reluflow.studies.page import Page
from reluflow.theory.contract import Comparison, Findings, LabelledRun, Section
from reluflow.theory.subject import subject_of
from reluflow.trajectory import Trajectory

GENERIC = "What does training do on this problem, and where does it end?"


def make(
    plan: Plan,
    folder: Path,
    *,
    fresh: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Page:
    """Train the runs of a plan (those already in ``folder`` are taken from there) and find out.

    Runs are saved one by one as they finish, so an interrupted study continues where it stopped.
    A run is taken from the folder if its document, seed, the contents of its data and network,
    the versions of the software and the thread settings are the same; ``fresh`` takes none.
    """
    runs = tuple(
        LabelledRun(label, _run(plan, label, task, folder, fresh, progress, say))
        for label, task in plan.tasks
    )
    paper = theory.paper_named(plan.paper) if plan.paper else None
    say("comparing with theory")
    claims, findings = None, None
    if paper:
        subject, options = [item.run for item in runs], paper.options_for(runs)
        findings = paper.findings(runs, paper.prepare(subject_of(subject, None), **options))
        say("checking the claims")
        claims = theory.check(paper, subject, **options)
    findings = findings or _predicted(runs)
    return Page(
        title=plan.title,
        question=paper.question if paper else GENERIC,
        document=plan.document,
        seed=plan.seed,
        runs=runs,
        sections=(*findings.sections, *common.sections(runs)),
        comparisons=findings.comparisons,
        claims=claims,
        downloads=_downloads(runs, findings.comparisons, claims),
    )


def run_path(folder: Path, label: str) -> Path:
    """Where the run of a label is kept."""
    return folder / "runs" / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', label).strip('_')}.rf"


def _run(
    plan: Plan,
    label: str,
    task: Task,
    folder: Path,
    fresh: bool,
    progress: bool,
    say: Callable[[str], None],
) -> Trajectory:
    path = run_path(folder, label)
    wanted = resumable.provenance(task, label=label, paper=plan.paper, spec=plan.document)
    found = None if fresh else resumable.found(path, wanted, lambda text: say(f"{label}: {text}"))
    earlier = resumable.interrupted(found)
    if found is not None and earlier is None:
        say(f"{label}: taken from {path} ({files.made_by(found.provenance['versions'])})")
        return found
    if earlier is not None:
        say(f"{label}: {path} was interrupted at {earlier.t[-1]:g} and is gone on with")
    else:
        say(f"{label}: training")
    return resumable.train(task, path, wanted, earlier=earlier, progress=progress)


def _predicted(runs: Sequence[LabelledRun]) -> Findings:
    """The limit of theory beside the last network, for data of no particular paper."""
    from reluflow import limits

    comparisons = []
    first = runs[0].run
    prediction = limits.predict(first.data, first.net, loss=first.loss_function)
    section = Section("Prediction", f"Without training: {prediction.reason}")
    for item in runs:
        prediction = limits.predict(item.run.data, item.run.net, loss=item.run.loss_function)
        if prediction.network is not None:
            comparisons.append(
                Comparison(
                    f"squared norm of the weights, {item.label}",
                    prediction.network.squared_norm,
                    item.run.final.squared_norm,
                    "the prediction is the limit of a vanishing scale and infinite time",
                )
            )
    return Findings((section,), tuple(comparisons))


def _downloads(
    runs: Sequence[LabelledRun],
    comparisons: Sequence[Comparison],
    claims: theory.Report | None,
) -> dict[str, bytes]:
    losses = [
        [item.label, repr(float(t)), repr(float(log_t)), repr(float(log_loss))]
        for item in runs
        for t, log_t, log_loss in zip(item.run.t, item.run.log_t, item.run.log_loss, strict=True)
    ]
    events = [[item.label, *event.tolist()] for item in runs for event in item.run.events]
    data = runs[0].run.data
    points = np.column_stack([data.X, data.y]).tolist()
    found = {
        "losses.csv": table(["run", "t", "log_t", "log_loss"], losses),
        "events.csv": table(["run", "t", "log_t", "neuron", "point", "kind"], events),
        "points.csv": table([*(f"x{k}" for k in range(data.d)), "y"], points),
    }
    if comparisons:
        rows = [[c.name, c.predicted, c.simulated, c.discrepancy] for c in comparisons]
        found["predictions.csv"] = table(["name", "predicted", "simulated", "discrepancy"], rows)
    if claims is not None:
        found["claims.json"] = json.dumps(claims.to_dict(), indent=1).encode()
    return found


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A CSV file."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return stream.getvalue().encode()
