"""Commands as a user runs them: output, exit codes, files."""

import json
import re
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import reluflow as rf
from reluflow.cli import bench as bench_module
from reluflow.cli.app import app
from reluflow.cli.guard import Debug, guarded
from reluflow.cli.listing import sections
from reluflow.errors import InputError, ReluflowWarning

SPEC = """
name = "toy"
[data]
generator = "centred"
d = 4
[network]
init = "balanced"
width = 8
[engine]
name = "descent"
lr = 0.05
steps = 200
"""


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.toml"
    path.write_text(SPEC)
    return path


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output == f"reluflow {rf.__version__}\n"


def test_help_names_every_command():
    result = invoke("--help")
    assert result.exit_code == 0
    for command in (
        *("study", "reproduce", "sweep", "run", "show", "check", "verify", "list", "bench", "cite"),
    ):
        assert command in result.output


def test_list_names_everything_with_a_line():
    result = invoke("list")
    assert result.exit_code == 0
    assert [title.split(":")[0] for title, _ in sections()] == [
        *("Papers", "Figures", "Claims", "Studies"),
        *("Generators", "Initialisations", "Losses", "Engines"),
    ]
    for _, entries in sections():
        for name, line in entries:
            assert name in result.output
            assert len(line) > 10
            assert not re.search(r"[`\\]|:math:", line)


def test_run_saves_and_prints_what_happened(toy, tmp_path):
    result = invoke("run", toy, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    run = rf.load(tmp_path / "out" / "toy.rf")
    assert run.status == "steps"
    assert run.t[-1] == 200
    for word in ("steps: all steps are done", "200", "loss", "squared norm", "angle", "seconds"):
        assert word in result.output
    assert f"{run.loss[-1]:.6g}" in result.output
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["toy.rf"]


def test_run_again_gives_equal_weights_and_another_seed_others(toy, tmp_path):
    finals = []
    for folder, extra in (("a", ()), ("b", ()), ("c", ("--seed", 1))):
        assert invoke("run", toy, "--out", tmp_path / folder, *extra).exit_code == 0
        finals.append(rf.load(tmp_path / folder / "toy.rf").final)
    assert finals[0] == finals[1]
    assert finals[0] != finals[2]


def test_show_prints_the_same_table(toy, tmp_path):
    printed = invoke("run", toy, "--out", tmp_path).output
    shown = invoke("show", tmp_path / "toy.rf")
    assert shown.exit_code == 0
    for word in ("status", "loss", "squared norm"):
        line = next(line for line in printed.splitlines() if word in line)
        assert line in shown.output


def test_the_table_tells_the_end_even_where_it_is_not_recorded(toy, tmp_path):
    toy.write_text(SPEC.replace("steps = 200", "steps = 200\nrecord = [0, 10]"))
    result = invoke("run", toy, "--out", tmp_path)
    run = rf.load(tmp_path / "toy.rf")
    assert run.t.tolist() == [0.0, 10.0]
    assert re.search(r"steps +\S 200 ", result.output)
    final = run.loss_function.value(run.final.predict(run.data.X), run.data.y)
    assert f"-> {final:.6g}" in result.output


def test_a_blown_up_run_is_reported_and_saved(toy, tmp_path):
    toy.write_text(
        'name = "toy"\n[data]\nX = [[1.0], [-1.0]]\ny = [1.0, 1.0]\n'
        "[network]\na = [1, 1, -1, -1]\nW = [[1], [-1], [0.5], [-0.5]]\n"
        '[engine]\nname = "descent"\nlr = 100.0\nsteps = 50\n'
    )
    result = invoke("run", toy, "--out", tmp_path)
    assert result.exit_code == 0
    assert "diverged: the loss blew up; use a smaller step" in result.output
    assert rf.load(tmp_path / "toy.rf").status == "diverged"


def test_tiny_scales_are_printed_as_powers_of_e(toy, tmp_path):
    toy.write_text(SPEC.replace("width = 8", "width = 8\nlog_scale = -1e6"))
    result = invoke("run", toy, "--out", tmp_path)
    assert result.exit_code == 0
    assert re.search(r"squared norm .*exp\(-2e\+06\) -> exp\(-1\.9999\de\+06\)", result.output)


def test_the_folder_is_checked_before_training(toy, tmp_path):
    (tmp_path / "file").write_text("x")
    toy.write_text(SPEC.replace("steps = 200", "steps = 1_000_000_000"))
    result = invoke("run", toy, "--out", tmp_path / "file" / "below")
    assert result.exit_code == 2
    assert "Choose another with --out" in result.output


@pytest.mark.parametrize(
    "arguments",
    [["fly"], ["run"], ["run", "a.toml", "--sead", "3"], ["run", "a.toml", "--seed", "-1"]],
)
def test_bad_arguments_end_with_code_2(arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_missing_file_ends_with_code_2(tmp_path):
    for command in ("run", "show"):
        result = invoke(command, tmp_path / "none")
        assert result.exit_code == 2
        assert result.output.startswith("error: cannot read")


def test_debug_shows_the_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "reluflow.cli", "show", str(tmp_path / "none"), "--debug"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "FileError: cannot read" in done.stderr


# ------------------------------------------------------------------------------ endings


def ended(error, *arguments):
    """What a command that raises ``error`` prints, and its code."""
    small = typer.Typer(pretty_exceptions_enable=False)

    def command(debug: Debug = False) -> None:
        raise error

    small.command()(guarded(command))
    return CliRunner().invoke(small, list(arguments))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("`x` is 3. Change it."), 2, "error: `x` is 3. Change it.\n"),
        (KeyboardInterrupt(), 130, "interrupted; no half-written file is left behind\n"),
        (MemoryError("8 TiB"), 2, "error: out of memory (8 TiB). Reduce the sizes.\n"),
        (
            OSError(28, "No space left on device"),
            2,
            "error: cannot write (No space left on device). ",
        ),
        (
            OSError(27, "File too large", "a/b"),
            2,
            "error: cannot write to a/b (File too large). Free",
        ),
        (ZeroDivisionError("oops"), 1, "error: unexpected ZeroDivisionError: oops. This is a"),
        (typer.Exit(7), 7, ""),
    ],
)
def test_exceptions_become_messages_and_codes(error, code, message):
    result = ended(error)
    assert result.exit_code == code
    assert result.output.startswith(message)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"], ["list"]])
def test_a_full_disk_behind_the_output_gets_a_sentence(arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "reluflow", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    said = "error: cannot write (No space left on device). Free space and run again.\n"
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr


def test_messages_may_go_nowhere(toy, tmp_path):
    command = '"$0" -m reluflow run "$1" --out "$2" 2>&-'
    words = ["sh", "-c", command, sys.executable, str(toy), str(tmp_path / "out")]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    assert len(list((tmp_path / "out").glob("*.rf"))) == 1


def test_debug_lets_exceptions_through():
    assert isinstance(ended(InputError("x"), "--debug").exception, InputError)
    assert ended(KeyboardInterrupt(), "--debug").exit_code == 130


def test_warnings_of_the_library_are_one_line_each():
    small = typer.Typer()

    def command() -> None:
        warnings.warn("the rank is uncertain", ReluflowWarning, stacklevel=1)

    small.command()(guarded(command))
    assert CliRunner().invoke(small, []).output == "warning: the rank is uncertain\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_130_and_it_is_saved(toy, tmp_path, number):
    endless = SPEC.replace("steps = 200", "steps = 1_000_000_000_000\nrecord = 3")
    toy.write_text(endless.replace("lr = 0.05", "lr = 1e-12"))
    saved = tmp_path / "out" / "toy.rf"
    process = subprocess.Popen(
        [sys.executable, "-m", "reluflow.cli", "run", toy, "--checkpoint=1", "--out", saved.parent],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    limit = time.monotonic() + 120
    while not saved.exists() and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()  # where SIGINT is ignored nothing else would end it
    run = rf.load(saved)
    assert process.returncode == 130
    assert (run.status, run.reason) == ("interrupted", "a signal stopped it")
    # before that, on a machine that is fast enough to know, how long it would have taken
    assert errors.endswith(
        f"interrupted at iteration {run.t[-1]:.0f}; the run up to there is saved in {saved}. "
        "Run the same again to continue.\n"
    )


def test_a_run_of_other_settings_is_replaced_with_a_word(toy, tmp_path):
    assert invoke("run", toy, "--out", tmp_path).exit_code == 0
    toy.write_text(SPEC.replace("steps = 200", "steps = 100"))
    result = invoke("run", toy, "--out", tmp_path)
    assert "toy.rf is replaced, because it was computed with other settings" in result.output
    assert rf.load(tmp_path / "toy.rf").t[-1] == 100


@pytest.mark.parametrize("fresh", [False, True])
def test_an_interrupted_run_goes_on_unless_it_is_to_be_fresh(toy, tmp_path, fresh):
    assert invoke("run", toy, "--out", tmp_path).exit_code == 0
    path = tmp_path / "toy.rf"
    body, whole = path.read_bytes(), rf.load(path)
    k = int(np.searchsorted(whole.t, 100))
    cut = {name: array[:k] for name, array in whole.kept.items()}
    stats = {**whole.stats, "iterations": int(whole.t[k - 1])}
    half = replace(whole, t=whole.t[:k], log_t=whole.log_t[:k], log_loss=whole.log_loss[:k])
    replace(half, kept=cut, stats=stats, status=rf.Status.INTERRUPTED).save(path)
    result = invoke("run", toy, "--out", tmp_path, *(["--fresh"] if fresh else []))
    assert result.exit_code == 0
    assert ("it goes on from there" in result.output) is not fresh
    assert path.read_bytes() == body


# ------------------------------------------------------------------------------ benchmarks

TOY_BENCHMARK = '''"""A toy: twice as fast."""


def rows():
    return [
        {"case": "n = 3", "against": "NumPy", "ratio": 2.0, "target": 5.0},
        {"case": "n = 9", "against": "torch", "note": "[not] installed"},
    ]
'''


@pytest.fixture
def bench_folder(tmp_path, monkeypatch):
    """A tree of its own with one benchmark, and nothing left in the import system."""
    source = Path(__file__).parents[2] / "benchmarks"
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    for name in ("__init__.py", "run.py"):
        (folder / name).write_text((source / name).read_text())
    (folder / "toy.py").write_text(TOY_BENCHMARK)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(bench_module, "find_folder", lambda: folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_bench_prints_ratios_beside_targets(bench_folder):
    result = invoke("bench")
    assert result.exit_code == 0, result.output
    for word in ("A toy: twice as fast.", "ratio", "target", "n = 9", "[not] installed"):
        assert word in result.output


def test_bench_only_suggests_the_nearest_name(bench_folder):
    assert invoke("bench", "--only", "toy").exit_code == 0
    result = invoke("bench", "--only", "tyo")
    assert result.exit_code == 2
    assert "`--only` is 'tyo'; the benchmarks are toy. Did you mean 'toy'?" in result.output


TOY_PARTS = '''"""A toy of parts."""

measured = []


def parts(limit_s=9.0):
    def row(name):
        measured.append(name)
        return [{"case": name, "limit": limit_s, "ratio": 2.0}]

    return {name: lambda name=name: row(name) for name in ("small-cell", "large-cell")}


def warm_up():
    measured.append("warm")


def summary(rows):
    yield {"case": f"median of {len(rows)}", "ratio": sum(row["ratio"] for row in rows)}


def figure(rows):
    import numpy as np

    from reluflow.figures import Axis, Figure, Panel, Points

    y = np.array([row["ratio"] for row in rows])
    return Figure("toy", "toy", (Panel("", Axis("x"), Axis("y"), (Points(y, y),)),))
'''


def test_parts_of_a_benchmark_run_alone_and_are_not_measured_twice(bench_folder, tmp_path):
    (bench_folder / "toy_map.py").write_text(TOY_PARTS)
    kept = str(tmp_path / "rows.json")
    options = ["bench", "--only", "toy-map", "--keep", kept, "--limit", "3"]
    first = invoke(*options, "--part", "small-cell")
    assert first.exit_code == 0, first.output
    assert "small-cell" in first.output
    assert "large-cell" not in first.output
    module = sys.modules["benchmarks.toy_map"]
    assert module.measured == ["warm", "small-cell"]
    second = invoke(*options, "--figures", str(tmp_path / "drawn"))
    assert second.exit_code == 0, second.output
    assert module.measured == ["warm", "small-cell", "warm", "large-cell"]
    assert "median of 2" in second.output
    assert sorted(path.suffix for path in (tmp_path / "drawn").iterdir()) == [".pdf", ".png"]


def test_rows_of_benchmarks_as_plain_data(bench_folder):
    (bench_folder / "toy_map.py").write_text(TOY_PARTS)
    result = invoke("bench", "--only", "toy-map", "--part", "small-cell", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["toy-map"]
    assert found["rows"][0]["ratio"] > 0
    assert "median of 1" in found["rows"][1]["case"]
    assert found["title"]


def test_an_unknown_part_is_refused_with_the_nearest(bench_folder):
    (bench_folder / "toy_map.py").write_text(TOY_PARTS)
    result = invoke("bench", "--only", "toy-map", "--part", "smallcell")
    assert result.exit_code == 2
    words = " ".join(result.output.split())
    assert "the parts of toy-map are small-cell, large-cell" in words
    assert "Did you mean 'small-cell'?" in words
    assert "without `--only`" in " ".join(invoke("bench", "--part", "x").output.split())


def test_bench_says_when_there_are_no_benchmarks(tmp_path, monkeypatch):
    installed = tmp_path / "site" / "lib" / "reluflow" / "cli" / "bench.py"
    monkeypatch.setattr(bench_module, "__file__", str(installed))
    monkeypatch.chdir(tmp_path)
    result = invoke("bench")
    assert result.exit_code == 2
    assert "there is no folder benchmarks in" in result.output
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "run.py").write_text("")
    assert bench_module.find_folder() == tmp_path / "benchmarks"


def test_bench_finds_the_source_tree():
    assert (bench_module.find_folder() / "run.py").is_file()


def test_cells_of_benchmark_tables():
    assert bench_module.cell(None) == ""
    assert bench_module.cell(0.123456) == "0.123"
    assert bench_module.cell((10, 2.0)) == "10\n2"
    assert bench_module.cell("text") == "text"


def test_costs_grow_with_the_exponent_that_is_reported(bench_folder, monkeypatch):
    invoke("bench")
    sizes = [10.0, 20.0, 40.0]
    growth = sys.modules["benchmarks"].growth_exponent
    assert growth(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)


def test_a_missed_target_is_marked():
    assert bench_module.misses({"ratio": 2.0, "target": 5.0})
    assert not bench_module.misses({"ratio": 6.0, "target": 5.0})
    assert not bench_module.misses({"ratio": 6.0})
    assert not bench_module.misses({"note": "no torch"})
