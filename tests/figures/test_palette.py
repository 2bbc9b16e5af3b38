"""The palette, against an independent model of colour vision."""

import itertools

import numpy as np
import pytest

from reluflow.errors import InputError
from reluflow.figures import Arrows, Line, Points, Raster, Rule, palette

# Machado, Oliveira, Fernandes (2009), severity 1, on linear RGB
VISION = {
    "normal": np.eye(3),
    "protanope": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranope": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanope": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    v = np.array(XYZ) @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(v > (6 / 29) ** 3, np.cbrt(v), v / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    low, high = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] for c in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("vision", VISION)
def test_any_two_colours_can_be_told_apart(theme, vision):
    seen = [lab(np.array(VISION[vision]) @ linear(c)) for c in palette.COLOURS[theme]]
    for k, j in itertools.combinations(range(8), 2):
        assert np.linalg.norm(seen[k] - seen[j]) > 15, (k, j)


def test_a_bad_palette_would_be_noticed():
    red, green = (lab(np.array(VISION["deuteranope"]) @ linear(c)) for c in ("#b07030", "#788a20"))
    assert np.linalg.norm(red - green) < 15


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_are_legible_on_the_background(theme):
    swap = palette.to_dark()
    for index in range(8):
        shade = palette.text_colour(index)
        shade = shade if theme == "light" else swap[shade]
        assert shade == palette.text_colour(index, theme)
        assert contrast(shade, palette.PAPER[theme]) >= 4.5


def test_every_light_colour_has_its_own_dark_one():
    swap = palette.to_dark()
    assert len(set(swap.values())) == len(swap)
    assert swap[palette.colour(3)] == palette.colour(3, "dark")
    band = palette.see_through(palette.colour(1), palette.BAND_OPACITY)
    assert swap[band] == palette.see_through(palette.colour(1, "dark"), palette.BAND_OPACITY)


@pytest.mark.parametrize("index", [-1, 8, 1.5, "blue"])
def test_a_colour_outside_the_palette_is_refused(index):
    with pytest.raises(InputError, match="`colour` is"):
        palette.colour(index)


def test_an_unknown_theme_is_refused():
    with pytest.raises(InputError, match=r"`theme` is 'drak'.*Did you mean 'dark'"):
        palette.colour(0, "drak")


X = np.arange(4.0)


@pytest.mark.parametrize("kind", [Line, Points])
def test_eight_layers_that_differ_in_colour_get_eight_looks(kind):
    cues = palette.cues([kind(X, X, colour=k) for k in range(8)])
    assert len({(cue.marker, cue.hollow) for cue in cues}) == 8


def test_arrows_of_two_colours_get_two_dashes():
    cues = palette.cues([Arrows(X, X, X, X, colour=k) for k in (0, 1)])
    assert [cue.dash for cue in cues] == ["solid", "dash"]


def test_a_second_cue_of_the_description_is_kept():
    given = [Line(X, X), Line(X, X, colour=1, dash="dash"), Points(X, X, colour=2), Rule(1.0)]
    cues = palette.cues(given)
    assert [cue.dash for cue in cues] == ["solid", "dash", "solid", "dash"]
    assert [cue.marker for cue in cues] == ["none", "none", "circle", "none"]
    assert not any(cue.sparse for cue in cues)


def test_lines_of_one_colour_stay_as_described():
    assert {cue.marker for cue in palette.cues([Line(X, X)] * 3)} == {"none"}


def test_only_later_categories_carry_a_cross():
    z = np.array([[0, 1, 1], [1, 0, 0]])
    raster = Raster(X, np.arange(3), z, ("off", "on"), (7, 0))
    assert [len(part) for part in palette.marked_cells(raster)] == [0, 0]
    assert palette.cell_colour(7) == palette.GRID["light"]
    assert palette.cell_colour(0) == palette.colour(0)
