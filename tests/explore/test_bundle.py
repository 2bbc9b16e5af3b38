"""The modules of the page joined into one script: order, names, nothing left over."""

import re
from importlib import resources

import pytest

from reluflow.explore import bundle, export, presets

STATIC = resources.files("reluflow.explore") / "static"
MODULES = sorted(
    [f.name for f in STATIC.iterdir() if f.name.endswith(".js")]
    + [f"scenes/{f.name}" for f in (STATIC / "scenes").iterdir() if f.name.endswith(".js")]
)
TOP = re.compile(
    r"^(?:export )?(?:const|let|class|function|async function) (?:\{([^}]*)\}|(\w+))", re.M
)


def declared(name):
    found = []
    for many, one in TOP.findall(bundle.read(name)):
        found += [part.strip() for part in many.split(",")] if many else [one]
    return found


def test_no_name_is_declared_twice():
    names = [name for module in MODULES for name in declared(module)]
    assert len(names) > 40
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("entry", ["alone.js", "notebook.js", "main.js"])
def test_every_module_comes_once_before_those_that_use_it(entry):
    text = bundle.bundle(entry)
    assert "\nimport " not in text
    assert not re.search(r"^export ", text, re.M)
    assert text.count("// svg.js\n") == 1
    assert text.index("class Card ") < text.index("class LineScene ") < text.index("class App ")


def test_a_stored_page_ends_no_script_early_and_asks_nobody():
    page = export.page(presets.named("sliding"))
    assert page.count("</script>") == 2
    assert not re.search(r"(src|href)=", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_short_and_import_what_is_there(module):
    text = bundle.read(module)
    assert len(text.splitlines()) <= 350
    for target in re.findall(r'from "([^"]+)"', text):
        assert str(bundle._resolved(bundle.PurePosixPath(module).parent, target)) in MODULES


def test_imported_names_are_exported():
    exported = {
        name
        for module in MODULES
        for line in bundle.read(module).splitlines()
        if line.startswith("export ")
        for name in re.findall(r"^export (?:const|class|function) (\w+)", line)
    }
    for module in MODULES:
        for names in re.findall(r"^import \{([^}]*)\}", bundle.read(module), re.M):
            assert {name.strip() for name in names.split(",")} <= exported, module
