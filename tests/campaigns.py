"""Long campaigns in pieces: each piece is a line of a file, and what the file has is not repeated.

    python tests/campaigns.py --out campaigns.jsonl                   all, to their full numbers
    python tests/campaigns.py --out campaigns.jsonl --only deaths     one of them
    python tests/campaigns.py --out campaigns.jsonl --minutes 30      as much as fits
    python tests/campaigns.py --out campaigns.jsonl --table           what has been done

A piece that goes wrong is kept with its traceback, and the others go on. A piece has a number,
which is also its seed: ``--piece 7`` repeats it. ``--share 0/2`` and ``1/2`` divide the work.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
)
sys.path.insert(0, str(Path(__file__).parent))

Found = dict[str, Any]
NO_COUNTS = ("slowest_s", "slowest_cpu_s", "peak_mb", "worst", "bad")


class Campaign(NamedTuple):
    """How many disturbances are wanted, how many make a piece, and what does one.

    ``run(folder, seed, size)`` returns counts of what it met and the slowest end, if it has one.
    """

    wanted: int
    size: int
    run: Callable[[Path, int, int], Found]


def drivers_inline(folder: Path, seed: int, size: int) -> Found:
    """Kill -9 of a driver that computes itself."""
    from crash.test_killed_driver import survive

    return {"kills": survive(folder, kills=size, points=60 * size, workers=0, seed=seed)}


def drivers_dask(folder: Path, seed: int, size: int) -> Found:
    """Kill -9 of a driver with two workers."""
    from crash.test_killed_driver import survive

    return {"kills": survive(folder, kills=size, points=150 * size, workers=2, seed=seed)}


def deaths(folder: Path, seed: int, size: int) -> Found:
    """Workers that die by three signals."""
    from crash.test_killed_workers import die

    return {"deaths": die(folder, wanted=size, points=400, mean_s=0.7, seed=1000 * seed)}


def stops(folder: Path, seed: int, size: int) -> Found:
    """Workers that are stopped and wake late."""
    from crash.test_killed_workers import stop_and_wake

    return {"stops": stop_and_wake(folder, wanted=size, points=500, seed=1000 * seed)}


def signals_inline(folder: Path, seed: int, size: int) -> Found:
    """Ctrl-C and SIGTERM in turn, in compiled code of a sweep."""
    from crash.test_signals import survive
    from sweeps.helpers import training

    return survive(folder, training(90 * size), signals=size, workers=0, seed=seed)


def signals_run(engine: str, width: int, size: int) -> Callable[[Path, int, int], Found]:
    """Ctrl-C and SIGTERM in turn during ``reluflow run``, in forks that have loaded the kernels."""

    def run(folder: Path, seed: int, signals: int) -> Found:
        from crash import test_stopped_runs as runs

        given = {"engine": engine, "width": width, "size": size, "seed": seed}
        return runs.survive(folder, **given, signals=signals, begin=runs.forked)

    return run


def mutations(kind: str) -> Callable[[Path, int, int], Found]:
    """Mutated files, loaded and used."""

    def run(folder: Path, seed: int, size: int) -> Found:
        from fuzz.campaign import campaign

        outcome = campaign(kind, size, first=seed * size, seed=2)
        assert outcome.bad == {}, outcome.bad
        assert outcome.peak_bytes < 2**30
        peak = round(outcome.peak_bytes / 2**20)
        return {"files": size, **outcome.counts, "peak_mb": peak, "slowest_s": outcome.slowest_s}

    return run


def property_of(name: str) -> Callable[[Path, int, int], Found]:
    """What holds along every flow, on random problems."""

    def run(folder: Path, seed: int, size: int) -> Found:
        from numerics.properties import examined

        found = examined(name, range(seed * size, (seed + 1) * size))
        beyond = found.pop("beyond")
        return {**found, "beyond": len(beyond), "bad": beyond}

    return run


def problems(name: str) -> Callable[[Path, int, int], Found]:
    """Random flow problems of every generator: none hangs or raises, the ends are confirmed."""

    def run(folder: Path, seed: int, size: int) -> Found:
        from numerics import many

        return many.examine_all(getattr(many, name), range(seed * size, (seed + 1) * size))

    return run


CAMPAIGNS = {
    "drivers-inline": Campaign(400, 20, drivers_inline),
    "drivers-dask": Campaign(100, 5, drivers_dask),
    "deaths": Campaign(1000, 20, deaths),
    "stops": Campaign(50, 5, stops),
    "signals-inline": Campaign(400, 20, signals_inline),
    "signals-descent": Campaign(200, 20, signals_run("descent", 40, 1_000_000)),
    "signals-flow": Campaign(200, 20, signals_run("flow", 1000, 0)),
    "files-damaged": Campaign(15_000, 1000, mutations("damaged")),
    "files-sealed": Campaign(5_000, 250, mutations("sealed")),
    "files-toml": Campaign(5_000, 500, mutations("toml")),
    "files-csv": Campaign(5_000, 500, mutations("csv")),
    "links": Campaign(5_000, 500, mutations("link")),
    "flow-balance": Campaign(200, 20, property_of("balance")),
    "flow-falls": Campaign(200, 20, property_of("falls")),
    "flow-limits": Campaign(3_000, 100, property_of("limits")),
    "flow-turned": Campaign(500, 50, property_of("turned")),
    "problems": Campaign(100_000, 1000, problems("quick")),
    "problems-decayed": Campaign(20_000, 1000, problems("decayed")),
    "problems-judged": Campaign(2_000, 50, problems("judged")),
}


def pieces(campaign: Campaign) -> int:
    """How many pieces a campaign has."""
    return -(-campaign.wanted // campaign.size)


def read(out: Path) -> list[Found]:
    """The lines of a file; one that was cut off is left out."""
    found = []
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else []:
        with suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def piece(name: str, number: int) -> Found:
    """Do a piece; what it met, or the traceback of what went wrong."""
    campaign, began = CAMPAIGNS[name], time.monotonic()
    size = min(campaign.size, campaign.wanted - number * campaign.size)
    line: Found = {"campaign": name, "piece": number, "size": size}
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        try:
            line["met"] = campaign.run(Path(folder), number, size)
        except (Exception, AssertionError):
            line["wrong"] = traceback.format_exc(limit=-6)
    return {**line, "seconds": round(time.monotonic() - began, 1)}


def table(lines: list[Found]) -> str:
    """What has been done of each campaign, as Markdown."""
    head = ["campaign", "done", "wanted", "pieces that went wrong", "met"]
    head += ["slowest end, s", "by the CPU, s"]
    rows = [head, ["---"] * len(head)]
    for name, campaign in CAMPAIGNS.items():
        mine = [line for line in lines if line["campaign"] == name]
        good = [line["met"] for line in mine if "met" in line]
        met: Counter[str] = Counter()
        for found in good:
            met.update({k: v for k, v in found.items() if k not in NO_COUNTS})
        wall, cpu = (_largest(good, name) for name in ("slowest_s", "slowest_cpu_s"))
        done = sum(line["size"] for line in mine if "met" in line)
        words = ", ".join(f"{count} {word}" for word, count in met.items())
        worst = max((found["worst"] for found in good if "worst" in found), default=None)
        words += "" if worst is None else f", worst {worst:.3g}"
        wrong = [line["piece"] for line in mine if "wrong" in line]
        rows.append([name, done, campaign.wanted, wrong or "none", words, wall, cpu])
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def _largest(found: list[Found], name: str) -> str:
    """The largest of a figure, if there is one."""
    largest = max((one[name] for one in found if name in one), default=None)
    return "" if largest is None else f"{largest:.2f}"


def main() -> None:
    """Do what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=list(CAMPAIGNS), nargs="*", default=list(CAMPAIGNS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--share", default="0/1", metavar="K/N")
    parser.add_argument("--piece", type=int)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    first, step = (int(part) for part in given.share.split("/"))
    end = time.monotonic() + 60.0 * given.minutes
    done = {(line["campaign"], line["piece"]) for line in read(given.out)}
    wanted = [
        (name, number)
        for name in given.only
        for number in range(pieces(CAMPAIGNS[name]))
        if given.piece in (None, number)
    ]
    for name, number in [] if given.table else wanted:
        skipped = (name, number) in done and given.piece is None
        if skipped or number % step != first or time.monotonic() > end:
            continue
        line = piece(name, number)
        with given.out.open("a", encoding="utf-8") as stream:
            # a line break first: a line that a kill cut off stays alone
            stream.write("\n" + json.dumps(line, default=float) + "\n")
        print(json.dumps(line, default=float)[:2000], flush=True)
    lines = read(given.out)
    print(table(lines))
    sys.exit(any("wrong" in line for line in lines))


if __name__ == "__main__":
    main()
