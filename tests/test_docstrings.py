"""Docstrings of public names: parameters are those of the signature, names in backticks exist."""

import importlib
import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType, UnionType

import reluflow as rf

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .+)?$")
NAME = re.compile(r"(?<![`\w:])`([A-Za-z_][\w.]*)`(?!`)")


def public_modules() -> dict[str, ModuleType]:
    found = {name: getattr(rf, name) for name in rf.__all__}
    inner = {
        f"reluflow.{name}": value for name, value in found.items() if isinstance(value, ModuleType)
    }
    return {"reluflow": rf, **inner}


def public() -> dict[str, object]:
    """Classes and functions by the name under which they are used."""
    return {
        f"{where}.{name}": getattr(module, name)
        for where, module in public_modules().items()
        for name in module.__all__
        if not name.startswith("_")
        and not isinstance(getattr(module, name), ModuleType | UnionType)
    }


def methods(owner: type) -> dict[str, object]:
    """Public functions that a class defines itself, of any kind."""
    return {
        name: inspect.unwrap(getattr(value, "__func__", value))
        for name, value in vars(owner).items()
        if not name.startswith("_") and inspect.isfunction(getattr(value, "__func__", value))
    }


def functions() -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in public().items():
        found[name] = value
        if isinstance(value, type) and value.__module__.startswith("reluflow"):
            found.update({f"{name}.{each}": method for each, method in methods(value).items()})
    return found


def sections(text: str) -> dict[str, str]:
    """Sections of a docstring by their title."""
    heads = list(SECTION.finditer(text))
    ends = [*(head.start() for head in heads), len(text)][1:]
    return {head[1]: text[head.end() : end] for head, end in zip(heads, ends, strict=True)}


def documented(text: str) -> list[str]:
    """Names of a section of parameters or attributes: what stands at its margin."""
    lines = [line for line in text.splitlines() if line and not line.startswith(" ")]
    names = [match[1] for line in lines if (match := ENTRY.match(line))]
    return [name.lstrip("*") for group in names for name in group.split(", ")]


def parameters(value: object) -> list[str]:
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


PUBLIC, FUNCTIONS = public(), functions()


def test_the_readers_see_what_is_there():
    text = "One.\n\nParameters\n----------\na, b : int\n    Two.\n**rest\n    More.\n"
    assert documented(sections(text)["Parameters"]) == ["a", "b", "rest"]
    assert "reluflow.flow" in PUBLIC
    assert "reluflow.Trajectory.at" in FUNCTIONS
    assert len(PUBLIC) > 120
    assert NAME.findall("`x`, ``y``, :math:`z`, `a.b`") == ["x", "a.b"]


def test_documented_parameters_are_those_of_the_signature():
    wrong = {}
    for name, value in FUNCTIONS.items():
        found = sections(inspect.getdoc(value) or "")
        if "Parameters" in found:
            listed, wanted = documented(found["Parameters"]), parameters(value)
            if sorted(listed) != sorted(wanted):
                wrong[name] = (listed, wanted)
    assert wrong == {}


def test_every_public_name_has_a_docstring():
    assert [name for name, value in FUNCTIONS.items() if not inspect.getdoc(value)] == []


def test_functions_of_several_parameters_document_them():
    """One parameter may be told in the first sentence, two may not."""
    missing = [
        name
        for name, value in PUBLIC.items()
        if inspect.isfunction(value)
        and len(parameters(value)) > 1
        and "Parameters" not in sections(inspect.getdoc(value) or "")
    ]
    assert missing == []


def test_functions_that_document_parameters_document_what_they_return():
    """A single parameter and the value may be told in the first sentence."""
    missing = [
        name
        for name, value in PUBLIC.items()
        if inspect.isfunction(value)
        and inspect.signature(value).return_annotation not in (None, "None")
        and "Parameters" in (found := sections(inspect.getdoc(value) or ""))
        and not {"Returns", "Yields"} & set(found)
    ]
    assert missing == []


def test_documented_attributes_exist():
    wrong = []
    for name, value in PUBLIC.items():
        if not isinstance(value, type) or not value.__module__.startswith("reluflow"):
            continue
        listed = sections(inspect.getdoc(value) or "").get("Attributes", "")
        known, source = (
            {*dir(value), *getattr(value, "__annotations__", {})},
            inspect.getsource(value),
        )
        wrong += [
            f"{name}.{each}"
            for each in documented(listed)
            if each not in known and f"self.{each}" not in source
        ]
    assert wrong == []


@cache
def module_of(value: object) -> ModuleType:
    return importlib.import_module(value.__module__)


def resolves(word: str, owner: str, value: object) -> bool:
    """Whether a name means something where it stands: to its module, its class or the package."""
    own_module = module_of(value if hasattr(value, "__module__") else type(value))
    holder = PUBLIC.get(owner.rpartition(".")[0])
    places = [value, holder, own_module, rf, *public_modules().values()]
    if word.startswith("reluflow."):
        places, word = [rf], word.removeprefix("reluflow.")
    words = word.split(".")
    known_names = set()
    if callable(value) and not isinstance(value, type):
        known_names.update(inspect.signature(value).parameters)
    for place in places:
        found, missing = place, False
        for part in words:
            if hasattr(found, part):
                found = getattr(found, part)
            elif part in getattr(found, "__annotations__", {}):
                found = None
            else:
                missing = True
                break
        if place is not None and not missing:
            return True
    return word in known_names or is_module(f"reluflow.{word}")


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_names_in_backticks_exist():
    unknown = [
        (name, word)
        for name, value in FUNCTIONS.items()
        for word in NAME.findall(value.__doc__ or "")
        if not resolves(word, name, value)
    ]
    assert unknown == []


def test_the_reference_has_every_public_name():
    """The pages of the site are made from the same list; the build counts the entries once more."""
    spec = importlib.util.spec_from_file_location("api", ROOT / "docs" / "_ext" / "api.py")
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    listed = {
        f"{where}.{name}" for where, module in api.modules().items() for name in api.names(module)
    }
    assert set(PUBLIC) <= listed
    for where, module in api.modules().items():
        text = api.page(where, module)
        for name in api.names(module):
            assert f":: {name}\n" in text
