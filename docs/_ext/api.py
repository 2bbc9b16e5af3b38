"""The reference: a page for each public module, from its ``__all__``, and a check that it is whole.

`pages` is also what the tests look at. A public name is one of ``reluflow.__all__``, or of the
``__all__`` of a public module; it is documented under the name by which it is used.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType

HEADS = {
    "reluflow": "Values, engines and files",
    "reluflow.datasets": "Data sets",
    "reluflow.networks": "Initialisations",
    "reluflow.losses": "Losses",
    "reluflow.densities": "Densities on the line",
    "reluflow.limits": "Limits: where training must end",
    "reluflow.interpolators": "Interpolators with certificates",
    "reluflow.geometry": "Geometry of networks",
    "reluflow.theory": "Theory: claims and verdicts",
    "reluflow.papers": "The register of papers",
    "reluflow.sweeps": "Sweeps",
    "reluflow.figures": "Figures",
    "reluflow.errors": "Errors and warnings",
}


def modules() -> dict[str, ModuleType]:
    """The public modules by name; one that has no head above comes last."""
    root = import_module("reluflow")
    public = {"reluflow": root}
    for name in root.__all__:
        value = getattr(root, name)
        if isinstance(value, ModuleType):
            public[f"reluflow.{name}"] = value
    order = [*HEADS, *sorted(set(public) - set(HEADS))]
    return {name: public[name] for name in order if name in public}


def names(module: ModuleType) -> list[str]:
    """The public names of a module but for modules and the version."""
    listed = [name for name in module.__all__ if not name.startswith("_")]
    return [name for name in listed if not isinstance(getattr(module, name), ModuleType)]


def page(name: str, module: ModuleType) -> str:
    """A page in reStructuredText: a table of the names, then each of them."""
    title = HEADS.get(name, name)
    entries = names(module)
    lines = [title, "=" * len(title), "", f".. py:module:: {name}", "", _words(name, module), ""]
    lines += [f".. currentmodule:: {name}", "", ".. autosummary::", "   :nosignatures:", ""]
    lines += [f"   {entry}" for entry in entries] + [""]
    for entry in entries:
        lines += [entry, "-" * len(entry), "", *_entry(name, entry, getattr(module, entry)), ""]
    return "\n".join(lines)


def index(listed: list[str]) -> str:
    """The first page of the reference."""
    words = (
        "Every public name, from its docstring. Functions that compute state their formula, their "
        "symbols, what their numerics guarantee and the paper they come from; the examples are run "
        "by the tests. ``rf`` is ``reluflow``; data come before networks, keyword arguments after."
    )
    lines = ["API reference", "=============", "", words, "", ".. toctree::", "   :maxdepth: 2", ""]
    return "\n".join([*lines, *(f"   {name}" for name in listed), ""])


def _words(name: str, module: ModuleType) -> str:
    first = (module.__doc__ or "").partition("\n")[0]
    return f"``{name}``: {first.partition(': ')[2] or first}"


def _entry(module: str, name: str, value: object) -> list[str]:
    if module != "reluflow" and getattr(import_module("reluflow"), name, None) is value:
        return [f".. py:data:: {name}", "", f"   The same as `reluflow.{name}`."]
    if isinstance(value, UnionType):
        members = ", ".join(f"`{member.__name__}`" for member in value.__args__)
        return [f".. py:data:: {name}", "", f"   One of {members}."]
    if isinstance(value, type):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    else:
        kind = "autofunction"
    return [f".. {kind}:: {name}"]


def write(app) -> None:
    """Write the pages that changed; Sphinx reads what is new."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    texts = {name.rpartition(".")[2]: page(name, module) for name, module in modules().items()}
    texts["index"] = index(list(texts))
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def check(app, exception) -> None:
    """Every public name has its entry, or the build fails."""
    if exception is not None or app.builder.format != "html":
        return
    found = set(app.env.get_domain("py").objects)
    wanted = [f"{name}.{entry}" for name, module in modules().items() for entry in names(module)]
    missing = sorted(set(wanted) - found)
    if missing:
        raise RuntimeError(f"not in the reference: {', '.join(missing)}")
    print(f"the reference has all {len(wanted)} public names")


def resolve(app, env, node, content):
    """Link a bare name in a docstring, such as the type of a parameter, to its public entry."""
    word = node.get("reftarget", "")
    for name, module in modules().items():
        if node.get("refdomain") == "py" and word in names(module):
            domain, target = env.get_domain("py"), f"{name}.{word}"
            page = node.get("refdoc", "")
            return domain.resolve_xref(env, page, app.builder, "obj", target, node, content)
    return None


def unlink(app, doctree) -> None:
    """A type in plain words, such as "(k,) arrays", is no name: it would find an attribute."""
    from sphinx import addnodes  # not at the top: the tests read this file without Sphinx

    for node in list(doctree.findall(addnodes.pending_xref)):
        word = node.get("reftarget", "")
        if node.get("refdomain") == "py" and node.get("reftype") == "class" and word.islower():
            node.replace_self(node.children)


def setup(app):
    """Write the pages before Sphinx looks for them, and count at the end."""
    app.connect("builder-inited", write)
    app.connect("doctree-read", unlink)
    app.connect("missing-reference", resolve)
    app.connect("build-finished", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
