"""The drawings of the site, light and dark: the head of the landing page and the four modes.

python tools/pictures.py        writes docs/_static/*.svg
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "_static"
INK = {"light": "#24292f", "dark": "#d0d6dc"}
FAINT = {"light": "#8a939c", "dark": "#7d8790"}
BLUE = {"light": "#0b5c8c", "dark": "#6cb8e6"}
ORANGE = {"light": "#b8500b", "dark": "#f0a35e"}


def main() -> None:
    """Draw everything."""
    line, stairs = _line_run(), _staircase()
    for theme in INK:
        settings = {
            "svg.fonttype": "none",
            "svg.hashsalt": "reluflow",
            "font.family": "sans-serif",
            "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
            "font.size": 9,
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK[theme]),
            **dict.fromkeys(("xtick.color", "ytick.color"), FAINT[theme]),
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
        with mpl.rc_context(settings):
            _keep(_hero(theme, line, stairs), f"hero-{theme}.svg")
            _keep(_modes(theme), f"modes-{theme}.svg")


def _keep(figure: Any, name: str) -> None:
    figure.savefig(FOLDER / name, transparent=True, metadata={"Date": None})
    plt.close(figure)


def _line_run() -> tuple[rf.Dataset, list[np.ndarray], np.ndarray]:
    """Six points on a line, and the function at eight levels of the loss."""
    x = [-1.8, -1.1, -0.4, 0.3, 1.0, 1.7]
    data = rf.datasets.from_points(x, [0.9, 0.3, 0.1, 0.8, 0.7, -0.2])
    run = rf.flow(data, rf.networks.balanced(2, 50, log_scale=-5.0, seed=0), t_end=2000.0)
    grid = np.linspace(-2.1, 2.1, 300)
    inputs = np.column_stack([grid, np.ones_like(grid)])
    levels = run.log_loss[0] + np.array([-0.5, -1.0, -1.3, -1.6, -2.0, -2.6, -3.6, -8.0])
    return data, [run.at(log_loss=level).predict(inputs) for level in levels], grid


def _staircase() -> tuple[Any, Any]:
    """The run of the first tutorial, and its predicted jumps."""
    data = rf.datasets.orthonormal(8, seed=44)
    net = rf.networks.balanced(8, width=10, log_scale=-1000.0, seed=45)
    path = rf.flow(data, net).sample(np.log(1000.0 * np.linspace(0.01, 10.0, 800)))
    return path, rf.limits.saddle_to_saddle(data, net)


def _hero(theme: str, line: Any, stairs: Any) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.9), layout="constrained")
    data, curves, grid = line
    for k, curve in enumerate(curves):
        last = k == len(curves) - 1
        left.plot(grid, curve, color=BLUE[theme], alpha=1 if last else 0.15 + 0.08 * k, lw=1 + last)
    left.plot(data.X[:, 0], data.y, "o", color=ORANGE[theme], ms=5)
    left.set(xlabel="input", ylabel="network", title="the network through training")
    path, limit = stairs
    right.vlines(limit.times, 0, 0.38, FAINT[theme], ":", lw=1)
    right.hlines(limit.losses, 0, 10, ORANGE[theme], "--", lw=0.9)
    right.plot(path.t / 1000.0, path.loss, color=BLUE[theme], lw=1.8)
    right.set(xlim=(0, 10), ylim=(0, 0.38), xlabel="time / |log scale|, from exp(-1000)")
    right.set(ylabel="loss", title="solid: computed; dashed, dotted: predicted")
    for axes in (left, right):
        axes.title.set_fontsize(9.5)
    return figure


def _modes(theme: str) -> Any:
    """Four things that happen at the plane of a point; arrows are the velocity of a neuron."""
    figure, every = plt.subplots(1, 4, figsize=(8.4, 2.45), layout="constrained")
    above, below = np.array([0.55, -0.35]), np.array([0.55, 0.35])
    cases = [
        ("crosses", above, np.array([0.55, -0.5]), [(-1.2, 0.9), (0.15, 0.0), (1.15, -0.9)]),
        ("slides", above, below, [(-1.2, 0.85), (0.1, 0.0), (1.25, 0.0)]),
        ("branches", -above * [-1, 1], -below * [-1, 1], None),
        ("dies", above, np.zeros(2), [(-1.2, 0.85), (0.1, 0.0), (0.3, -0.13)]),
    ]
    for axes, (title, up, down, way) in zip(every, cases, strict=True):
        axes.axhline(0, color=INK[theme], lw=1.2)
        from_left = (-1.2, -0.7, -0.2)
        for y, v, places in (
            (0.55, up, from_left if way is None else (-0.1, 0.4, 0.9)),
            (-0.55, down, from_left),
        ):
            for x in places if v.any() else ():
                arrow = {"arrowstyle": "->", "color": FAINT[theme], "lw": 0.9}
                tip, tail = (x + v[0] * 0.6, y + v[1] * 0.6), (x, y)
                axes.annotate("", tip, tail, arrowprops=arrow)
        if way is None:
            axes.plot([-1.0, 0.1], [0, 0], color=BLUE[theme], lw=2.4)
            for sign in (1, -1):
                axes.plot([0.1, 1.15], [0, sign * 0.75], color=BLUE[theme], lw=2, ls=(0, (4, 2)))
        else:
            axes.plot(*np.array(way).T, color=BLUE[theme], lw=2.4)
        if title == "dies":
            axes.plot(0.3, -0.13, "x", color=ORANGE[theme], ms=7, mew=2)
        else:
            axes.plot(0.1 + 0.05 * (title == "crosses"), 0, "o", color=ORANGE[theme], ms=5)
        axes.set(xlim=(-1.4, 1.4), ylim=(-1.1, 1.1), xticks=[], yticks=[], title=title)
        axes.spines[:].set_visible(False)
        axes.text(1.38, 0.98, "active", fontsize=7.5, color=FAINT[theme], va="top", ha="right")
        axes.text(-1.38, -1.05, "inactive", fontsize=7.5, color=FAINT[theme])
    return figure


if __name__ == "__main__":
    main()
