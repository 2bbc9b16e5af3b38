"""The explorer in a cell of JupyterLab: the real front end, a real kernel, messages between them.

Skipped where JupyterLab is not installed (``pip install jupyterlab anywidget``).
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
pytestmark = pytest.mark.browser

CELL = """
import reluflow as rf
data = rf.datasets.from_points([-1.0, 0.0, 1.0], [1.0, -0.5, 0.7])
net = rf.networks.balanced(2, 7, log_scale=-3.0, seed=1)
explorer = rf.explore(data, net)
explorer
"""
TOKEN = "only-for-this-test"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def notebook():
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "source": CELL}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": [cell | {"execution_count": None}],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab in a folder of its own with one notebook."""
    (tmp_path / "one.ipynb").write_text(json.dumps(notebook()))
    port = free_port()
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    private = {name: str(tmp_path / name.lower()) for name in folders}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={tmp_path}"]
    log = (tmp_path / "lab.log").open("w")
    server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **private})
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{address}/api?token={TOKEN}", timeout=5).close()
            break
        except OSError:
            assert server.poll() is None, (tmp_path / "lab.log").read_text()
            time.sleep(0.2)
    yield f"{address}/lab/tree/one.ipynb?token={TOKEN}"
    server.terminate()
    server.wait(60)
    log.close()


def test_the_explorer_runs_in_a_cell_of_jupyterlab(chromium, lab):
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(180_000)
    page = context.new_page()
    page.goto(lab)
    cell = page.locator(".jp-CodeCell").first
    cell.wait_for()
    page.get_by_text("| Idle").wait_for()  # a cell that runs before its kernel is there is lost
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".jp-OutputArea .rfx [data-ready=run], .jp-OutputArea [data-ready=run]")
    page.wait_for_selector(".jp-OutputArea [data-status=exact]")
    points = page.locator(".jp-OutputArea .card-line .handle:not(.neuron)")
    assert points.count() == 3
    before = page.locator(".jp-OutputArea .card-line svg").first.inner_html()
    box = points.nth(1).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 30, steps=5)
    page.mouse.up()
    page.wait_for_timeout(500)
    page.wait_for_selector(".jp-OutputArea [data-status=exact]")
    assert page.locator(".jp-OutputArea .card-line svg").first.inner_html() != before
    context.close()
