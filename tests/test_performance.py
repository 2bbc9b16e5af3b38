"""The map of shapes on the performance page is that of its rows."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tool():
    spec = importlib.util.spec_from_file_location("performance", ROOT / "tools" / "performance.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_and_the_map_of_the_rows():
    made = tool()
    page = made.PAGE.read_text(encoding="utf-8")
    assert made.filled(page, "shapes", made.table(made.cells())) == page
    assert "pictures/shapes.png" in page
    assert made.ROWS.with_name("shapes.png").is_file()


def test_what_stands_outside_the_marks_stays():
    page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
    assert tool().filled(page, "x", "new") == page.replace("old", "new")
