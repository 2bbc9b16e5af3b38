"""A campaign: many mutations in a process of their own, watched from outside.

``python tests/fuzz/campaign.py sealed 5000`` prints the counts; what crashed the interpreter, hung
or raised is kept in a folder. A mutation has a number: ``--first`` continues a campaign.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

HERE = Path(__file__).parent
SILENCE_S = 20.0
COMPILATION_S = 600.0


@dataclass
class Outcome:
    """How often each end was met, and the mutations that met a bad one."""

    counts: Counter[str] = field(default_factory=Counter)
    bad: dict[int, str] = field(default_factory=dict)
    peak_bytes: int = 0
    slowest_s: float = 0.0


def campaign(
    kind: str, count: int, *, first: int = 0, seed: int = 0, silence_s: float = SILENCE_S
) -> Outcome:
    """Use the mutations ``first .. first + count``; a worker that dies or hangs is replaced."""
    outcome, number = Outcome(), first
    while number < first + count:
        number = _watch(kind, number, first + count, seed, silence_s, outcome)
    return outcome


def _watch(kind: str, number: int, end: int, seed: int, silence_s: float, outcome: Outcome) -> int:
    """Follow one worker until it ends; the number of the mutation to go on with."""
    command = [sys.executable, str(HERE / "campaign.py"), kind, str(end - number)]
    command += ["--first", str(number), "--seed", str(seed), "--worker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        # the first use compiles, which may take minutes on a fresh machine
        is_ready = _heard(worker, COMPILATION_S) and bool(worker.stdout.readline())
        while is_ready and number < end:
            if not _heard(worker, silence_s):
                worker.kill()
                _count(outcome, number, "hung")
                return number + 1
            line = worker.stdout.readline()
            if not line:
                break
            report = json.loads(line)
            _count(outcome, number, report["end"])
            outcome.peak_bytes = max(outcome.peak_bytes, report["peak_bytes"])
            outcome.slowest_s = max(outcome.slowest_s, report["seconds"])
            number += 1
    if not is_ready:
        raise RuntimeError(f"the worker ended with code {worker.returncode} before it began")
    if number < end:
        _count(outcome, number, f"died with code {worker.returncode}")
        return number + 1
    return number


def _heard(worker: subprocess.Popen[bytes], silence_s: float) -> bool:
    """Whether the worker speaks, or ends, before it has spent so many seconds of its own."""
    process = psutil.Process(worker.pid)
    began = sum(process.cpu_times()[:2])
    while not select.select([worker.stdout], [], [], 1.0)[0]:
        if sum(process.cpu_times()[:2]) - began > silence_s:
            return False
    return True


def _count(outcome: Outcome, number: int, end: str) -> None:
    outcome.counts[end.splitlines()[-1][:60]] += 1
    if end not in ("refused", "used"):
        outcome.bad[number] = end


def work(kind: str, count: int, first: int, seed: int) -> None:
    """Use mutations one after the other, and say after each how it ended."""
    sys.path.insert(0, str(HERE.parent))
    from fuzz.mutations import RUNS, mutation
    from fuzz.uses import use

    with tempfile.TemporaryDirectory() as folder:
        for golden in RUNS if kind in ("sealed", "link") else []:  # compiles
            use("sealed", _copy(golden, Path(folder)))
        print(json.dumps({"end": "ready"}), flush=True)
        path = Path(folder) / "x"
        for number in range(first, first + count):
            path.write_bytes(mutation(kind, number, seed))
            began = time.process_time()
            try:
                end = use(kind, path)
            except Exception:
                end = traceback.format_exc(limit=-3)
            seconds = time.process_time() - began
            report = {"end": end, "peak_bytes": peak_bytes(), "seconds": seconds}
            print(json.dumps(report), flush=True)


def peak_bytes() -> int:
    """Most memory this process had, without what its parent had when it was started."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    return copy


def main() -> None:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-cases"))
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        work(given.kind, given.count, given.first, given.seed)
        return
    outcome = campaign(given.kind, given.count, first=given.first, seed=given.seed)
    for number, end in outcome.bad.items():
        from fuzz.mutations import mutation

        given.keep.mkdir(exist_ok=True)
        name = f"{given.kind}-{given.seed}-{number}"
        (given.keep / name).write_bytes(mutation(given.kind, number, given.seed))
        (given.keep / f"{name}.txt").write_text(end)
    for end, count in outcome.counts.most_common():
        print(f"{count:7d}  {end}")
    print(f"peak memory {outcome.peak_bytes / 2**20:.0f} MB, slowest {outcome.slowest_s:.2f} s")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(HERE.parent))
    main()
