"""The state as documents a reader can run: TOML, Python, a run file, a report; and back."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reluflow import spec
from reluflow.dataset import Dataset
from reluflow.errors import InputError
from reluflow.explore.state import DEFAULT_STOP, MAX_POINTS, Drawn, State, mantissas, of_values
from reluflow.losses import Square
from reluflow.trajectory import Trajectory

KINDS = ("toml", "python", "run", "report")


def tables(state: State) -> dict[str, Any]:
    """The tables of the document that `reluflow run` makes the explored run from."""
    net = state.net
    if isinstance(net, Drawn) and not state.moves:
        network: dict[str, Any] = {
            "init": net.init,
            "width": net.width,
            "log_scale": state.log_scale,
            "directions": net.directions,
            "signs": net.signs,
            "seed": net.seed,
        }
    else:
        start = state.network()
        a, W = mantissas(start)
        network = {"a": a.tolist(), "W": W.tolist(), "log_scale": start.log_scale.tolist()}
        if np.any(start.log_scale_out != start.log_scale):
            network["log_scale_out"] = start.log_scale_out.tolist()
    if state.slope:
        network["slope"] = state.slope
    loss = {"name": state.loss, **({"factor": state.factor} if state.is_regression else {})}
    engine: dict[str, Any] = {"name": "flow", "train": state.train, "rtol": state.rtol}
    if state.rates != (1.0, 1.0):
        engine["rates"] = list(state.rates)
    if state.decay:
        engine["decay"] = state.decay
    stop = state.options()["stop_log_loss"]
    if stop is not None:
        engine["stop_log_loss"] = stop
    return {
        "name": "explored",
        "data": {"X": state.X, "y": state.y},
        "network": network,
        "loss": loss,
        "engine": engine,
    }


def to_toml(state: State) -> str:
    """The document as text."""
    from reluflow.report.toml_text import to_toml as write

    return write(tables(state))


def to_python(state: State) -> str:
    """A script that makes the same run."""
    known = tables(state)
    net, engine = known["network"], known["engine"]
    if "init" in net:
        given = {name: value for name, value in net.items() if name not in ("init", "width")}
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        start = f"rf.networks.{net['init']}(data.d, {net['width']}, {arguments})"
    else:
        given = {name: value for name, value in net.items() if name not in ("a", "W")}
        arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
        start = f"rf.Network({net['a']!r}, {net['W']!r}, {arguments})"
    loss = f"Square({state.factor!r})" if state.is_regression else f"{state.loss.capitalize()}()"
    settings = ", ".join(f"{name}={value!r}" for name, value in engine.items() if name != "name")
    return (
        "import reluflow as rf\n\n"
        f"data = rf.Dataset({state.X!r}, {state.y!r})\n"
        f"net = {start}\n"
        f"run = rf.flow(data, net, loss=rf.losses.{loss}, {settings})\n"
        "print(run)\n"
    )


def to_run(state: State) -> Trajectory:
    """The run itself, as `reluflow run` would save it."""
    return spec.parse(to_toml(state), name="explored").start()


def download(state: State, kind: str) -> tuple[str, bytes]:
    """A file name and the contents of one of `KINDS`."""
    if kind == "toml":
        return "explored.toml", to_toml(state).encode()
    if kind == "python":
        return "explored.py", to_python(state).encode()
    if kind == "run":
        return "explored.rf", to_run(state).to_bytes()
    if kind == "report":
        return "report.html", _report(state)
    raise InputError(f"`what` is {kind[:40]!r}; it must be one of {', '.join(KINDS)}.")


def _report(state: State) -> bytes:
    from reluflow import report
    from reluflow.studies import document
    from reluflow.studies.make import make

    plan = document.build(tables(state), name="explored")
    with tempfile.TemporaryDirectory() as folder:
        page = make(plan, Path(folder))
        path = Path(folder) / "report.html"
        report.write(page, path)
        return path.read_bytes()


def from_file(path: Path) -> State:
    """The state of a run described in TOML; what the explorer cannot show is refused."""
    task = spec.load(path)
    return from_task(task, task.provenance["spec"])


def from_task(task: spec.Task, raw: Mapping[str, Any]) -> State:
    """The state of a run that is ready to start."""
    if isinstance(task.engine, spec.DescentTable):
        raise InputError(
            'the file asks for gradient descent; the explorer shows the flow. Set name = "flow" '
            "under [engine], without lr and steps."
        )
    table, engine = raw["network"], task.engine
    stop = engine.stop_log_loss
    if engine.stop_loss is not None:
        stop = float(np.log(engine.stop_loss))
    if stop is None and not isinstance(task.loss, Square):
        stop = DEFAULT_STOP
    settings: dict[str, Any] = {
        "loss": task.loss.name,
        "train": engine.train,
        "rates": engine.rates,
        "decay": engine.decay,
        "rtol": max(engine.rtol, 1e-12),
        "stop_log_loss": stop,
    }
    if isinstance(task.loss, Square):
        settings["factor"] = task.loss.factor
    simple = {"init", "width", "log_scale", "directions", "signs", "seed", "slope"}
    draws = isinstance(table.get("signs", "random"), str) and "seed" in table
    scale = table.get("log_scale", 0.0)
    known = table.get("init") in ("balanced", "dominated") and not isinstance(scale, list)
    if not (draws and known and set(table) <= simple):
        return of_values(task.data, task.net, **settings)
    names = ("init", "width", "directions", "signs", "seed")
    net = Drawn(**{name: table[name] for name in names if name in table})
    settings |= {"log_scale": float(scale), "slope": task.net.slope}
    return of_values(task.data, None, net=net, **settings)


def from_run(run: Trajectory) -> State:
    """The state that a computed run started from."""
    settings: dict[str, Any] = {
        "loss": run.loss_function.name,
        "train": str(run.options["train"]),
        "rates": tuple(run.options.get("rates", (1.0, 1.0))),
        "decay": float(run.options.get("decay", 0.0)),
        "rtol": float(run.options.get("rtol", 1e-8)),
    }
    if isinstance(run.loss_function, Square):
        settings["factor"] = run.loss_function.factor
    else:
        settings["stop_log_loss"] = float(max(run.log_loss[-1], -1e4))
    return of_values(run.data, run.net, **settings)


def from_csv_text(text: str) -> tuple[list[list[float]], list[float], bool]:
    """Points, labels and whether they lie on a line, from a pasted table.

    The last column is the label, as in ``x, y`` or ``x1, x2, y``; one column of inputs gets a bias.
    """
    from reluflow.datasets import from_csv

    if len(text) > 64 * 1024:
        raise InputError("the table is longer than 64 kB. Paste at most 40 points.")
    rows = "\n".join(
        ",".join(line.replace(";", ",").replace("\t", ",").split(","))
        for line in text.strip().splitlines()
    )
    if "," not in rows:
        rows = "\n".join(",".join(line.split()) for line in rows.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pasted.csv"
        path.write_text(rows + "\n", encoding="utf-8")
        try:
            data: Dataset = from_csv(path, label=-1, bias=True)  # on a line, x = 0 is a point
            if data.d > 2:
                data = Dataset(data.X[:, :-1], data.y)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "the table")) from None
    if data.n > MAX_POINTS:
        raise InputError(f"the table has {data.n} points: the explorer takes {MAX_POINTS}.")
    is_line = data.d == 2 and bool(np.all(data.X[:, 1] == 1.0))
    return data.X.tolist(), data.y.tolist(), is_line
