"""A real Chromium without a network, and the pages it opens."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Opened:
    """A tab with everything it said and asked for."""

    page: object
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # a new profile in a temporary folder for each launch
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, Path]:
    from reluflow import report
    from report import sample

    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in ("sample", "hostile")}
    report.write(sample.page(), paths["sample"])
    report.write(sample.hostile(), paths["hostile"])
    return paths


@pytest.fixture
def visit(chromium, files):
    """Open a page in a fresh, offline context; options are those of a Playwright context."""
    contexts = []

    def go(name="sample", width=1000, clock=False, **options) -> Opened:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, offline=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        opened = Opened(page)
        page.on("console", lambda message: opened.messages.append(message.text))
        page.on("pageerror", lambda error: opened.messages.append(str(error)))
        page.on("dialog", lambda dialog: opened.messages.append(dialog.message))
        page.on("request", lambda request: opened.requests.append(request.url))
        if clock:
            page.clock.install()
        page.goto(files[name].as_uri())
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready]")
        return opened

    yield go
    for context in contexts:
        context.close()
