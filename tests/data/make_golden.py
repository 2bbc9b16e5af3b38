"""How the golden files were made: by reluflow 0.1.0, once. They are never written again.

Later releases must load them and answer ``at(t)`` with the numbers of ``expected.json``
(``tests/test_golden.py``). A release that changes the format adds files of its own beside them:
``python tests/data/make_golden.py FOLDER`` writes a set for the release that runs it.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np

import reluflow as rf
from reluflow.sweeps import Point, Store

RECORDS = 7
TIGHT = 1e-10


def runs() -> dict[str, tuple[rf.Trajectory, list[float]]]:
    """Runs of both engines and all losses, and the times at which their networks are kept."""
    plane = rf.Dataset([[1.0, 0.2], [0.3, 1.0], [-0.8, 0.5]], [1.0, 0.7, -0.4], name="plane")
    signs = rf.Dataset([[1.0, 0.2], [0.3, 1.0], [-0.8, 0.5]], [1.0, 1.0, -1.0], name="signs")
    rng = np.random.default_rng(1)
    wide = rf.Dataset(
        rng.normal(size=(3, 5)), [1.0, -0.5, 0.8], teacher=rng.normal(size=5),
        ambient_dim=40, spectrum=[2.0, 1.0, 0.5],
    )  # fmt: skip
    a, W = [0.5, -0.4, 0.3, -0.6], [[0.4, 0.3], [-0.2, 0.5], [0.2, -0.3], [-0.5, -0.1]]
    ordinary = rf.Network(a, W)
    uneven = rf.Network(a, W, [-0.5, 0.2, 0.0, 1.0], log_scale_out=[0.1, -0.3, 0.4, 0.0])
    tiny = rf.networks.balanced(2, 4, log_scale=-60.0, seed=3)
    small = rf.networks.balanced(2, 4, log_scale=-2.0, seed=3)
    five = rf.networks.balanced(5, 3, log_scale=-1.0, seed=4)
    line = rf.datasets.from_points([-1.0, 0.5, 2.0], [0.5, -0.3, 1.0])
    taught = rf.Dataset(line.X, line.y, teacher=ordinary, name="line")
    exponential, logistic = rf.losses.Exponential(), rf.losses.Logistic()
    keep = {"record": RECORDS}
    tight = {"rtol": TIGHT, **keep}
    factor = rf.losses.Square("1/n")
    return {
        "flow-square": (rf.flow(plane, ordinary, t_end=30.0, **tight), [0.0, 0.7, 5.0, 30.0]),
        "flow-limit": (rf.flow(plane, tiny, **tight), [10.0, 120.0, 200.0, math.inf]),
        "flow-hidden": (
            rf.flow(taught, uneven, train="hidden", loss=factor, t_end=8.0, **tight),
            [0.0, 1.0, 6.5],
        ),
        "flow-wide": (rf.flow(wide, five, t_end=9.0, **tight), [0.3, 4.0, 9.0]),
        "flow-logistic": (rf.flow(signs, uneven, loss=logistic, t_end=40.0, **tight), [1.0, 33.0]),
        "flow-exponential": (
            rf.flow(signs, ordinary, loss=exponential, stop_log_loss=-4.0, **tight),
            [0.5, 2.0],
        ),
        "descent-square": (rf.descend(plane, uneven, lr=0.05, steps=300, **keep), [0, 7, 150, 300]),
        "descent-logistic": (
            rf.descend(signs, ordinary, lr=0.1, steps=200, loss=logistic, **keep),
            [1, 77, 200],
        ),
        "descent-loss-based": (
            rf.descend(signs, small, lr=rf.LossBased(0.1), steps=400, loss=exponential, **keep),
            [1, 77, 350],
        ),
        "descent-hidden": (
            rf.descend(wide, five, lr=0.05, steps=100, train="hidden", **keep),
            [0, 42, 100],
        ),
        "descent-limit": (
            rf.descend(plane, ordinary, lr=0.1, steps=math.inf, train="hidden", **keep),
            [0, 30, 500, math.inf],
        ),
    }


def plain(net: rf.Network) -> dict[str, list[object]]:
    """The true weights as logs and signs: any scale is compared to the same number of digits."""
    return {
        "log_norms": net.log_norms.tolist(),
        "log_outputs": net.log_outputs.tolist(),
        "signs": net.signs.tolist(),
        "directions": net.directions.tolist(),
    }


def described(run: rf.Trajectory, times: list[float]) -> dict[str, object]:
    """What a later release must answer."""
    return {
        "status": str(run.status),
        "records": len(run.t),
        "events": len(run.events),
        "log_loss": [float(run.log_loss[0]), float(run.log_loss[-1])],
        "final": plain(run.final),
        "at": [{"t": t, **plain(run.at(t))} for t in times],
    }


def main(folder: Path) -> None:
    """Write the files, a small store and ``expected.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    made = runs()
    for name, (run, times) in made.items():
        run.save(folder / f"{name}.rf")
        expected[name] = described(run, times)
        print(name, run, run.stats)
    net = made["flow-hidden"][0].net
    net.save(folder / "network.rf")
    store = Store(folder / "store")
    store.put(Point("train", {"d": 2}, seed=1), made["descent-square"][0])
    store.put(Point("train", {"d": 3}, seed=2), {"angle": 0.25, "word": "x", "v": np.arange(3.0)})
    store.fail(Point("train", {"d": 4}, seed=3), "InputError: a golden failure")
    expected["network"] = plain(net)
    expected["store"] = store.summary()
    text = json.dumps({"reluflow": rf.__version__, **expected}, indent=1)
    (folder / "expected.json").write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
