"""From a plan to its page: train what is missing, predict, check, draw."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reluflow import files, resumable, theory
from reluflow.spec import Task
from reluflow.studies import common, decay, own, prose
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
    claims, findings, facts = None, None, None
    if paper:
        subject, options = [item.run for item in runs], paper.options_for(runs)
        findings = paper.findings(runs, paper.prepare(subject_of(subject, None), **options))
        say("checking the claims")
        claims = theory.check(paper, subject, **options)
        findings = replace(findings, sections=prose.followed(findings.sections, claims))
    answer = _verdicts(claims)
    if findings is None:
        facts = [own.facts_of(item.run) for item in runs]
        findings, answer = _own(runs, facts), own.answer(facts[0])
        if any(item.run.decay for item in runs):
            ends = decay.ends_of(runs)
            findings = Findings(
                (*findings.sections[:1], *decay.sections(ends), *findings.sections[1:]),
                (*decay.comparisons(ends), *findings.comparisons),
            )
            answer = decay.answer(ends) if len(ends) > 1 else answer
    document, files_of = reproducible(plan, runs)
    return Page(
        title=plan.title,
        question=paper.question if paper else GENERIC,
        document=document,
        seed=plan.seed,
        runs=runs,
        sections=(*findings.sections, *common.sections(runs)),
        comparisons=findings.comparisons,
        claims=claims,
        downloads={**files_of, **_downloads(runs, findings.comparisons, claims)},
        answer=answer,
        lead=0 if facts is None else 1,
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


def _own(runs: Sequence[LabelledRun], facts: Sequence[own.Facts]) -> Findings:
    """What is said of data of no particular paper."""
    from reluflow import limits

    first = runs[0].run
    prediction = limits.predict_end(first)
    sections = (
        own.lead(facts[0]),
        own.found(facts[0]),
        Section("Prediction", f"Without training: {prediction.reason}"),
    )
    return Findings(sections, own.comparisons(list(zip(runs, facts, strict=True))))


def _verdicts(claims: theory.Report | None) -> str:
    """The answer of a paper's page: how its claims came out, given its assumptions."""
    if claims is None:
        return ""
    failing = [row.id for row in claims.assumptions if row.verdict is theory.Verdict.FAIL]
    counts = Counter(row.verdict for row in claims.checks)
    kept = counts[theory.Verdict.PASS]
    false = [row.id for row in claims.checks if row.verdict is theory.Verdict.FAIL]
    decided = kept + len(false)
    first = (
        f"Assumptions {', '.join(failing)} of the paper do not hold here"
        if failing
        else "The assumptions of the paper hold here"
    )
    second = (
        f"all {kept} claims that can be decided hold"
        if not false
        else f"{kept} of {decided} claims that can be decided hold, and {', '.join(false)} do not"
    )
    return f"{first}; {second}." if decided else f"{first}; no claim can be decided."


def reproducible(
    plan: Plan, runs: Sequence[LabelledRun]
) -> tuple[Mapping[str, Any], dict[str, bytes]]:
    """The document with its files named as the page offers them, and these files.

    A saved page is all that somebody else has: ``points.csv`` and ``network.rf`` take the places of
    files on the disk of whoever made it.
    """
    document, offered = dict(plan.document), {}
    data = runs[0].run.data
    if "file" in document.get("data", {}):
        document["data"] = {"file": "points.csv", "label": "y"}
        if data.bias:
            document["data"]["bias"] = True
    network = document.get("network", {})
    if "file" in network:
        document["network"] = {**network, "file": "network.rf"}
        offered["network.rf"] = plan.tasks[0][1].net.to_bytes()
    return document, offered


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
    X = data.X[:, :-1] if data.bias else data.X
    points = np.column_stack([X, data.y]).tolist()
    found = {
        "losses.csv": table(["run", "t", "log_t", "log_loss"], losses),
        "events.csv": table(["run", "t", "log_t", "neuron", "point", "kind"], events),
        "points.csv": table([*(f"x{k}" for k in range(X.shape[1])), "y"], points),
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
