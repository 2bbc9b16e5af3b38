"""Who may import whom, read from the source: the layers of the house style."""

import ast
from functools import cache
from pathlib import Path

import pytest

import reluflow

ROOT = Path(reluflow.__file__).parent
MODULES = {
    ".".join(("reluflow", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(ROOT.rglob("*.py"))
}
VALUES = (
    *("dataset", "network", "losses", "trajectory", "checks", "errors"),
    *("files", "reading", "writing", "run_file", "run_relations", "wording", "modes", "statuses"),
)
PURE = ("datasets", "networks", "densities", "limits", "interpolators", "geometry")
HEAVY = {
    *("scipy", "matplotlib", "plotly", "clarabel", "cvxpy", "torch", "xarray", "dask"),
    *("distributed", "jinja2", "websockets", "anywidget", "traitlets"),
}
TERMINAL = {"typer", "rich", "click"}
LEAVES = ("cli", "report", "studies")


@cache
def imports(name: str) -> list[tuple[str, bool]]:
    """(imported module, whether at module level) for every import of a module."""
    found = []

    def walk(node: ast.AST, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue  # for the type checker only: never executed
            if isinstance(child, ast.Import):
                found.extend((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
                for _ in range(max(child.level - 1, 0)):
                    package = package.rpartition(".")[0]
                base = (
                    f"{package}.{child.module or ''}".rstrip(".") if child.level else child.module
                )
                # `from reluflow import files` imports the module reluflow.files
                for alias in child.names:
                    full = f"{base}.{alias.name}"
                    found.append((full if full in MODULES else base, top))
            walk(child, top and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    walk(ast.parse(MODULES[name].read_text(encoding="utf-8")), True)
    return found


def inside(module: str, *packages: str) -> bool:
    return any(
        module == f"reluflow.{package}" or module.startswith(f"reluflow.{package}.")
        for package in packages
    )


def root_of(module: str) -> str:
    return module.partition(".")[0]


EVERY = pytest.mark.parametrize("name", MODULES)


def test_the_reader_of_imports_sees_each_kind():
    assert ("numba", True) in imports("reluflow.kernels.kernel")
    assert ("reluflow.files", True) in imports("reluflow.network")
    assert ("xarray", False) in imports("reluflow.trajectory")
    assert ("reluflow.network", True) not in imports("reluflow.dataset")


@pytest.mark.parametrize("name", [f"reluflow.{value}" for value in VALUES])
def test_values_import_numpy_and_values_only(name):
    import sys

    for module, top in imports(name):
        if top and root_of(module) != "numpy":
            own = inside(module, *VALUES) or module == "reluflow._version"
            assert own or root_of(module) in sys.stdlib_module_names, f"{name} imports {module}"


@EVERY
def test_numba_is_imported_by_kernels_only(name):
    if not inside(name, "kernels"):
        assert "numba" not in {root_of(module) for module, _ in imports(name)}


@EVERY
def test_kernels_are_never_loaded_with_the_package(name):
    """Only code that runs an algorithm may load numba: modules of the public face may not."""
    if name in ("reluflow", "reluflow.engines") or inside(name, *VALUES):
        assert not [m for m, top in imports(name) if top and inside(m, "kernels")]


@EVERY
def test_heavy_packages_are_imported_where_they_are_used(name):
    if not inside(name, "kernels"):
        top = {root_of(module) for module, top in imports(name) if top}
        assert not top & HEAVY


@EVERY
def test_the_terminal_belongs_to_the_command_line(name):
    if not inside(name, "cli"):
        assert not {root_of(m) for m, top in imports(name) if top} & TERMINAL


@EVERY
def test_specifications_alone_load_msgspec(name):
    if not inside(name, "cli", "spec", "explore"):
        assert "msgspec" not in {root_of(m) for m, top in imports(name) if top}
    if not inside(name, "cli", "sweeps", "studies", "explore"):
        assert not [m for m, top in imports(name) if top and inside(m, "spec")]


@EVERY
def test_nobody_imports_the_leaves(name):
    for leaf in LEAVES:
        if not inside(name, *LEAVES, "explore", "__main__", "theory.actions"):
            assert not [module for module, _ in imports(name) if inside(module, leaf)]


@EVERY
def test_the_explorer_is_reached_by_its_light_entry_only(name):
    """Its function is public; everything else of it belongs to the command line and to itself."""
    if name == "reluflow":
        found = {module for module, _ in imports(name) if inside(module, "explore")}
        assert found == {"reluflow.explore.entry"}
    elif not inside(name, "cli", "explore"):
        assert not [module for module, _ in imports(name) if inside(module, "explore")]
    if name == "reluflow.explore.entry":
        values = ("dataset", "network", "errors", "trajectory")
        top = [module for module, at_top in imports(name) if at_top]
        assert all(inside(m, *values) or m in ("typing", "__future__") for m in top)


@EVERY
def test_pure_functions_never_start_an_engine(name):
    if inside(name, *PURE, *VALUES) and name not in (
        "reluflow.limits.alternating",  # the one limit that runs the flow
        "reluflow.trajectory",  # asks its engine to recompute a time, when called
    ):
        assert not [module for module, _ in imports(name) if inside(module, "engines")]


def test_a_trajectory_reaches_its_engine_only_when_asked():
    found = [top for module, top in imports("reluflow.trajectory") if inside(module, "engines")]
    assert found
    assert not any(found)


@EVERY
def test_kernels_and_engines_know_nothing_above_them(name):
    above = ("theory", "sweeps", "figures", "limits", "interpolators")
    if inside(name, "kernels", "engines"):
        assert not [module for module, _ in imports(name) if inside(module, *above)]
    if inside(name, "kernels"):
        assert not [module for module, _ in imports(name) if inside(module, "engines")]


@EVERY
def test_only_the_entry_point_of_theory_starts_runs(name):
    if inside(name, "theory") and name != "reluflow.theory":
        assert not [module for module, _ in imports(name) if inside(module, "engines")]


@EVERY
def test_sweeps_know_nothing_of_plots_and_figures_measure_nothing(name):
    if inside(name, "sweeps"):
        assert not [module for module, _ in imports(name) if inside(module, "figures", "theory")]
    if inside(name, "figures"):
        above = ("engines", "limits", "interpolators", "geometry", "theory", "sweeps")
        assert not [module for module, _ in imports(name) if inside(module, *above)]
