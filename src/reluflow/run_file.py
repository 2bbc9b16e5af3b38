"""What a run file must hold before an engine may use it: tables of arrays, options and counts.

Compiled code reads arrays without looking at their bounds, so a file whose checksums are right but
whose parts do not fit each other could end the interpreter. Loading therefore compares every part
with its row here. A new array of the records is one row in `ARRAYS`; ``required=False`` for one
that older files lack. Arrays without a row are kept if they have one entry a record.

The letters of a shape: ``k`` records, ``m`` neurons, ``n`` points, ``d`` coordinates, ``e`` any
number up to that of coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.checks import choice, number, whole
from reluflow.errors import InputError
from reluflow.wording import shown

Arrays = Mapping[str, NDArray[Any]]
Fields = Mapping[str, Any]

EVENT_DTYPE = np.dtype(
    [("t", "f8"), ("log_t", "f8"), ("neuron", "i8"), ("point", "i8"), ("kind", "U10")]
)
EVENT_KINDS = ("activate", "deactivate", "slide", "release", "die", "flip", "branch")
LAST_ITERATION = 2**53
LARGEST_LOG_SCALE = 1e300
LETTERS = {
    "k": "records",
    "m": "neurons",
    "n": "points",
    "d": "coordinates",
    "e": "at most as many as coordinates",
}


@dataclass(frozen=True)
class Rule:
    """What one array must be: its shape in letters, its type, its range."""

    shape: str
    dtype: str = "f8"
    low: float = -math.inf
    high: float = math.inf
    finite: bool = True
    nan: bool = False
    required: bool = True


_SCALE = Rule("km", low=-LARGEST_LOG_SCALE, high=LARGEST_LOG_SCALE)
_RECORDS = {
    "t": Rule("k", low=0.0, finite=False),
    "log_t": Rule("k", finite=False),
    "log_loss": Rule("k", finite=False, nan=True),
    "states.a": Rule("km"),
    "states.W": Rule("kmd"),
    "states.log_scale": _SCALE,
    "states.log_scale_out": _SCALE,
}
_MOVED = {"states.moved": Rule("km", "b1")}
_LEAST = {"states.least": Rule("k", finite=False, nan=True)}
_DUAL = {"states.dual": Rule("kmn")}
_EXPONENT = {"states.exponent": Rule("km", "i8", low=-(2**61), high=2**61)}

ARRAYS: Mapping[str, Mapping[str, Rule]] = {
    "flow": _RECORDS
    | {
        "states.mode": Rule("kmn", "i1", low=0, high=3),
        "states.clock": Rule("k"),
        "states.step": Rule("k", low=5e-324),
        "states.still": Rule("kme", required=False),
        "states.still_sigma": Rule("km", nan=True, required=False),
    },
    "weights": _RECORDS | _MOVED | _LEAST | _EXPONENT,
    "linear": _RECORDS
    | {"states.mode": Rule("kmn", "i1", low=0, high=1), "states.outputs": Rule("kn")},
    "batches": _RECORDS
    | _MOVED
    | _LEAST
    | _EXPONENT
    | {
        "states.velocity_a": Rule("km", required=False),
        "states.velocity_W": Rule("kmd", required=False),
    },
    "gram": _RECORDS
    | _MOVED
    | _LEAST
    | _DUAL
    | {"states.preactivation": Rule("kmn"), "states.preactivation_rest": Rule("kmn")},
    "frozen": _RECORDS
    | _MOVED
    | _DUAL
    | {
        "states.restart_t": Rule("k", "i8", low=0, high=LAST_ITERATION),
        "states.restart_dual": Rule("kmn"),
        "states.restart_burst": Rule("k", "i8", low=1, high=2**31),
    },
}


Check = Callable[[Any], Any]


def _real(name: str, **bounds: Any) -> Check:
    return lambda value: number(value, name, **bounds)


def _any_real(name: str) -> Check:
    """Any float, nan and the infinities among them, or an integer that one can hold."""

    def check(value: Any) -> Any:
        if isinstance(value, float):
            return value
        if type(value) is not int or abs(value) > LAST_ITERATION:
            raise InputError(f"`{name}` is {shown(value)}, not a number")
        return value

    return check


def _count(name: str) -> Check:
    """An integer; the JSON values true and 3.0 are none."""

    def check(value: Any) -> int:
        if type(value) is not int:
            raise InputError(f"`{name}` is {shown(value)}, not an integer")
        return whole(value, name, at_least=0, at_most=LAST_ITERATION)

    return check


def _truth(name: str) -> Check:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise InputError(f"`{name}` is {shown(value)}, neither true nor false")
        return value

    return check


def _or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


_LAYERS = ("both", "hidden", "output", "linearised")
_TRAIN: Mapping[str, Check] = {"train": lambda value: choice(value, "train", _LAYERS)}

OPTIONS: Mapping[str, Mapping[str, Check]] = {
    "flow": {**_TRAIN, "rtol": _real("rtol", at_least=1e-13, at_most=0.1)},
    "descent": {
        **_TRAIN,
        "lr": _or_none(_real("lr", above=0.0)),
        "alpha": _or_none(_real("alpha", above=0.0)),
        "steps": _real("steps", at_least=0, infinite=True),
    },
}

# of descent as practised (`reluflow.engines.practice`); plain runs have none of them
_PRACTICE: Mapping[str, Check] = {
    "batch": _or_none(lambda value: whole(value, "batch", at_least=1)),
    "replacement": _truth("replacement"),
    "momentum": _real("momentum", at_least=0.0, below=1.0),
    "label_noise": _real("label_noise", at_least=0.0),
    "decay": _real("decay", at_least=0.0),
    "seed": lambda value: whole(value, "seed", at_least=0, at_most=2**63 - 1),
}

_ENDS: Mapping[str, Check] = {
    "iterations": _count("iterations"),
    "final_log_loss": _any_real("final_log_loss"),
}
# checked where they are: a flow that is continued adds to them
_COUNTED = ("steps", "rejected", "evaluations", "plateaus", "grazes", "stretches")
_COUNTS = {name: _count(name) for name in _COUNTED}

# what other modules read without asking; the flow has none of the ends
STATS: Mapping[str, Mapping[str, Check]] = {
    "flow": {},
    "linear": {},
    "weights": _ENDS,
    "gram": _ENDS,
    "batches": _ENDS,
    "frozen": {
        **_ENDS,
        "frozen_from": _or_none(_count("frozen_from")),
        "changes": _count("changes"),
        "last_change": _count("last_change"),
        "events_until": _or_none(_count("events_until")),
    },
}


def check(fields: Fields, arrays: Arrays) -> None:
    """Raise `InputError` if a part of a run does not fit the others, or the engine it names."""
    engine = choice(fields["engine"], "engine", ("descent", "flow"))
    for name in ("stats", "options", "provenance", "loss"):
        if not isinstance(fields[name], dict):
            raise InputError(f"`{name}` is {shown(fields[name])}, not a mapping")
    versions(fields["provenance"])
    if not isinstance(fields.get("reason", ""), str):  # files of 0.1.0 have none
        raise InputError(f"`reason` is {shown(fields['reason'])}, not a text")
    _any_real("limit_error")(fields["limit_error"])
    _check_table(fields["options"], OPTIONS[engine], "options")
    layout = _layout(engine, fields["stats"])
    given = {**_ENDS, **_COUNTS}
    given = {name: check for name, check in given.items() if name in fields["stats"]}
    _check_table(fields["stats"], {**given, **STATS[layout]}, "stats")
    sizes = _sizes(arrays)
    for name, rule in ARRAYS[layout].items():
        if name in arrays or rule.required:
            _check_array(name, arrays[name], rule, sizes)
    for name, array in arrays.items():
        if name.startswith("states.") and array.shape[:1] != (sizes["k"],):
            raise InputError(f"`{name}` has shape {array.shape} for {sizes['k']} records")
    _check_networks(arrays, sizes)
    _check_rising(arrays)
    _check_logs(arrays["t"], arrays["log_t"])
    _check_events(arrays["events"], sizes)
    if engine == "descent":
        _check_descent(layout, fields, arrays, sizes)
    else:
        _check_layers(layout, fields["options"])


def versions(provenance: Any) -> dict[str, Any]:
    """The versions of software in a provenance: texts, and the number of the numerics version.

    Examples
    --------
    >>> versions({"versions": {"reluflow": "0.1.0"}}), versions({})
    ({'reluflow': '0.1.0'}, {})
    """
    if not isinstance(provenance, dict):
        raise InputError(f"`provenance` is {shown(provenance)}, not a mapping")
    found = provenance.get("versions", {})
    if not isinstance(found, dict):
        raise InputError(f"`provenance.versions` is {shown(found)}, not a mapping")
    for name, value in found.items():
        if name == "numerics":  # files of 0.1.0 have none
            _count("provenance.versions.numerics")(value)
        elif not isinstance(value, str):
            raise InputError(f"`provenance.versions.{name}` is {shown(value)}, not a text")
    return found


def _layout(engine: str, stats: Mapping[str, Any]) -> str:
    """Which arrays the engine restarts from."""
    if engine == "flow":
        return "linear" if stats.get("form") == "linear" else "flow"
    if "form" not in stats:
        raise InputError("`stats.form` is missing")
    return choice(stats["form"], "stats.form", ("weights", "gram", "frozen", "batches"))


def _check_table(table: Mapping[str, Any], rules: Mapping[str, Check], name: str) -> None:
    for key, rule in rules.items():
        if key not in table:
            raise InputError(f"`{name}.{key}` is missing")
        rule(table[key])


def _sizes(arrays: Arrays) -> dict[str, int]:
    for name, axes in (("data.X", 2), ("net.W", 2), ("t", 1)):
        if arrays[name].ndim != axes or 0 in arrays[name].shape:
            raise InputError(f"`{name}` has shape {arrays[name].shape}; it needs {axes} axes")
    (n, d), (m, _), (k,) = arrays["data.X"].shape, arrays["net.W"].shape, arrays["t"].shape
    return {"k": k, "m": m, "n": n, "d": d}


def _check_array(name: str, array: NDArray[Any], rule: Rule, sizes: Mapping[str, int]) -> None:
    expected = tuple(sizes["d" if letter == "e" else letter] for letter in rule.shape)
    fits = len(array.shape) == len(expected) and all(
        found <= wanted if letter == "e" else found == wanted
        for letter, found, wanted in zip(rule.shape, array.shape, expected, strict=True)
    )
    if not fits:
        axes = ", ".join(LETTERS[letter] for letter in rule.shape)
        raise InputError(f"`{name}` has shape {array.shape}, not {expected} ({axes})")
    if array.dtype != np.dtype(rule.dtype) or not array.dtype.isnative:
        raise InputError(f"`{name}` has dtype {array.dtype}, not {np.dtype(rule.dtype)}")
    if rule.dtype == "b1":
        if array.view(np.uint8).max(initial=0) > 1:
            raise InputError(f"`{name}` has entries that are neither true nor false")
        return
    bad = (array < rule.low) | (array > rule.high)
    if rule.dtype == "f8":
        bad |= (np.isnan(array) & (not rule.nan)) | (np.isinf(array) & rule.finite)
    if bad.any():
        where = np.unravel_index(int(bad.argmax()), bad.shape)
        place = [int(i) for i in where]
        raise InputError(f"`{name}` is {array[where]} at {place}, outside its range")


def _check_networks(arrays: Arrays, sizes: Mapping[str, int]) -> None:
    for net in ("net", "final"):
        scale = Rule("m", low=-LARGEST_LOG_SCALE, high=LARGEST_LOG_SCALE)
        rules = {"a": Rule("m"), "W": Rule("md"), "log_scale": scale, "log_scale_out": scale}
        if f"{net}.slope" in arrays:  # that of a leaky ReLU
            rules["slope"] = Rule("", low=0.0, high=1.0)
        for name, rule in rules.items():
            _check_array(f"{net}.{name}", arrays[f"{net}.{name}"], rule, sizes)
    if not np.array_equal(arrays.get("net.slope", 0.0), arrays.get("final.slope", 0.0)):
        raise InputError("`net.slope` and `final.slope` differ")


def _check_rising(arrays: Arrays) -> None:
    for name in ("t", "log_t"):
        values = arrays.get(name, np.empty(0))
        falls = np.flatnonzero(values[1:] < values[:-1])
        if len(falls):
            raise InputError(f"`{name}` falls from record {falls[0]} to the next")


def _check_logs(t: NDArray[Any], log_t: NDArray[Any]) -> None:
    """The logarithms are those of the times where these are ordinary floats."""
    ordinary = (t > 1e-300) & (t < 1e300)
    fits = np.where(t >= 1e300, log_t >= 690.0, log_t <= -690.0)
    logs = np.log(t[ordinary])
    with np.errstate(invalid="ignore"):
        fits[ordinary] = np.abs(log_t[ordinary] - logs) <= 1e-9 * (1.0 + np.abs(logs))
    wrong = np.flatnonzero(~fits)
    if len(wrong):
        k = wrong[0]
        raise InputError(f"`log_t` is {log_t[k]} at record {k}, where `t` is {t[k]}")


def _check_events(events: NDArray[Any], sizes: Mapping[str, int]) -> None:
    if events.dtype != EVENT_DTYPE or events.ndim != 1:
        raise InputError("its events have another layout")
    bad = ~np.isin(events["kind"], EVENT_KINDS)
    bad |= (events["neuron"] < 0) | (events["neuron"] >= sizes["m"])
    bad |= (events["point"] < -1) | (events["point"] >= sizes["n"])
    bad |= ~(events["t"] >= 0.0) | np.isnan(events["log_t"])
    if bad.any():
        raise InputError(f"event {int(bad.argmax())} names no neuron, point, kind or time of it")


def _check_layers(layout: str, options: Fields) -> None:
    """What `reluflow.engines.layers` relies on."""
    if (options["train"] in ("output", "linearised")) != (layout == "linear"):
        raise InputError(f"`options.train` is {options['train']!r}, which no run of its form has")
    rates = options.get("rates", [1.0, 1.0])
    if not isinstance(rates, list) or len(rates) != 2:
        raise InputError(f"`options.rates` is {shown(rates)}, not a pair")
    for rate in rates:
        number(rate, "rates", above=0.0)
    if number(options.get("decay", 0.0), "decay", at_least=0.0) > 0.0 and (
        options["train"] != "both" or rates != [1.0, 1.0]
    ):
        raise InputError(
            f"`options.decay` is {options['decay']}, which only both layers at rates (1, 1) have"
        )


def _check_descent(layout: str, fields: Fields, arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """What `reluflow.engines.descent` relies on beside the single arrays."""
    options, t = fields["options"], arrays["t"]
    square = fields["loss"].get("name") == "square"
    hidden = options["train"] == "hidden"
    if (options["lr"] is None) == (options["alpha"] is None) or (options["alpha"] and square):
        raise InputError("its step is neither a number nor based on a classification loss")
    if layout == "batches" and "momentum" in options:
        _check_practice(options, arrays, sizes)
    dual = hidden and sizes["d"] > sizes["n"]
    if options["train"] == "linearised":
        raise InputError("`options.train` is 'linearised', which descent does not have")
    plain = options["train"] != "output" and "momentum" not in options
    fits = {"gram": dual, "weights": not dual, "frozen": hidden and square, "batches": True}
    if not fits[layout] or plain == (layout == "batches"):
        raise InputError(f"`stats.form` is {layout!r}, which its options never lead to")
    if np.any(t != np.floor(t)) or t[-1] > LAST_ITERATION:
        raise InputError("`t` holds what is no iteration")
    if t[-1] > fields["stats"]["iterations"] and fields["stats"].get("frozen_from") is None:
        raise InputError(f"`t` ends at {t[-1]:g}, after the last iteration")
    if layout == "frozen" and np.any(arrays["states.restart_t"] > t):
        raise InputError("`states.restart_t` lies after its record")


def _check_practice(options: Fields, arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """What `reluflow.engines.descent.batches` relies on."""
    _check_table(options, _PRACTICE, "options")
    if (options["batch"] or 1) > sizes["n"] and not options["replacement"]:
        raise InputError(f"`options.batch` is {options['batch']}, more than there are points")
    for name in ("states.velocity_a", "states.velocity_W"):
        if (name in arrays) != (options["momentum"] > 0.0):
            raise InputError(f"`{name}` does not fit the momentum {options['momentum']}")
