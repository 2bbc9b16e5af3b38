"""Pictures of runs: their descriptions say what the numbers say, and all of them can be drawn."""

import io

import numpy as np
import pytest

import reluflow as rf
from reluflow.figures import Heat, Line, Points, Rule
from reluflow.plot import of_inputs, of_runs


@pytest.fixture(scope="module")
def line():
    """Points on a line, trained by the flow."""
    data = rf.Dataset([-1.0, 0.0, 1.0, 2.0], [1.0, -0.5, 0.7, 0.2], bias=True)
    net = rf.networks.balanced(data.d, width=12, log_scale=-2.0, seed=1)
    return rf.flow(data, net, t_end=100.0)


@pytest.fixture(scope="module")
def blobs():
    """Two classes in the plane, trained by descent."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(6, 2)) + 2.0, rng.normal(size=(6, 2)) - 2.0])
    data = rf.Dataset(X, np.repeat([1.0, -1.0], 6), bias=True)
    net = rf.networks.balanced(data.d, width=12, log_scale=-1.0, seed=1)
    return rf.descend(data, net, lr=0.1, steps=300, loss="logistic")


@pytest.fixture(scope="module")
def stairs():
    """Orthonormal points from a tiny start: a staircase."""
    data = rf.datasets.orthonormal(4, seed=1)
    net = rf.networks.balanced(data.d, 30, log_scale=-40.0, directions="sphere", seed=1)
    return rf.flow(data, net)


def layers(panel, kind, label=None):
    return [x for x in panel.layers if isinstance(x, kind) and label in (None, x.label)]


PICTURES = ["loss", "norms", "neurons", "raster", "spectrum"]


@pytest.mark.parametrize("name", [*PICTURES, "function", "four"])
def test_every_picture_of_a_line_is_drawn(line, name):
    figure = getattr(rf.plot, name)(line)
    assert figure._repr_png_().startswith(b"\x89PNG")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    assert b"<svg" in buffer.getvalue()


@pytest.mark.parametrize("name", [*PICTURES, "surface", "four"])
def test_every_picture_of_a_plane_is_drawn(blobs, name):
    assert getattr(rf.plot, name)(blobs)._repr_png_().startswith(b"\x89PNG")


def test_a_run_draws_itself_with_what_fits(line, blobs, stairs):
    for run, last in (
        (line, "h(x)"),
        (blobs, "$x_{2}$"),
        (stairs, "log$_{10}$ of the singular values"),
    ):
        axes = [ax for ax in run.plot().axes if ax.get_label() != "<colorbar>"]
        assert len(axes) == 4
        assert axes[3].get_ylabel() == last


def test_pictures_go_on_axes_of_the_caller(line):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert rf.plot.loss(line, ax=left) is figure
    assert rf.plot.neurons(line.final, ax=right) is figure
    assert left.get_xlabel() == "log$_{10}$ of time"
    assert len(left.lines) == 1


def test_the_function_goes_through_its_kinks_and_the_data_are_beside_it(line):
    panel = rf.plot.function_panel(line)
    (end,) = layers(panel, Line, "end of training")
    np.testing.assert_allclose(end.y, line.final.predict(end.x), atol=1e-12)
    (kinks,) = layers(panel, Points, "kinks")
    exact = rf.geometry.kinks(line.final, tol_jump=1e-6).positions
    inside = exact[(exact > panel.x.range[0]) & (exact < panel.x.range[1])]
    np.testing.assert_allclose(kinks.x, inside)
    assert set(inside) <= set(end.x)
    (data,) = layers(panel, Points, "data")
    np.testing.assert_array_equal(data.y, line.data.y)
    (least,) = layers(panel, Line, "minimum norm")
    expected = rf.interpolators.min_norm(line.data).network.predict(least.x)
    np.testing.assert_allclose(least.y, expected, atol=1e-12)


def test_ghosts_can_be_given_or_left_out(line):
    plain = rf.plot.function_panel(line, predicted=False, least=False)
    assert not layers(plain, Line, "minimum norm")
    limit = rf.Network([1.0], [[1.0, 0.0]], bias=True)
    panel = rf.plot.function_panel(line, predicted=limit, least=limit)
    for name in ("predicted limit", "minimum norm"):
        (ghost,) = layers(panel, Line, name)
        np.testing.assert_allclose(ghost.y, np.maximum(ghost.x, 0.0), atol=1e-15)


def test_moments_are_where_the_outputs_change(line):
    chosen = of_inputs.moments(line, 5)
    assert chosen[0] == 0
    assert chosen[-1] == len(line.t) - 1
    assert len(chosen) >= 4


def test_the_boundary_of_a_classifier_is_where_its_output_is_zero(blobs):
    panel = rf.plot.surface_panel(blobs)
    (boundary,) = layers(panel, Line, "decision boundary")
    on = np.column_stack([boundary.x, boundary.y])[np.isfinite(boundary.x)]
    size = np.abs(blobs.final.predict(blobs.data.X)).min()
    assert np.abs(blobs.final.predict(on)).max() < 0.05 * size
    (heat,) = layers(panel, Heat)
    assert np.abs(heat.z).max() <= of_inputs.BEYOND
    ones, others = (len(layers(panel, Points, name)[0].x) for name in ("label 1", "label -1"))
    assert (ones, others) == (6, 6)


def test_lines_of_neurons_are_where_they_switch():
    net = rf.Network([1.0, 1.0, 1e-9], [[1.0, 1.0, -1.0], [0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    panel = of_inputs.surface(net.with_bias(), None)
    (switch,) = layers(panel, Line)
    ends = np.column_stack([switch.x, switch.y, np.ones(len(switch.x))])
    ends = ends[np.isfinite(switch.x)].reshape(-1, 2, 3)
    assert len(ends) == 2  # the third is too small to be drawn
    for j, pair in zip((1, 0), ends, strict=True):  # the strongest first
        np.testing.assert_allclose(pair @ net.W[j], 0.0, atol=1e-12)


def test_the_predicted_staircase_has_the_plateaus_of_theory(stairs):
    limit = rf.limits.predict(stairs.data, stairs.net)
    (steps,) = rf.plot._staircase(stairs, limit)
    levels = np.log10(limit.detail.losses[: len(limit.detail.times)])
    np.testing.assert_allclose(np.unique(steps.y[np.isfinite(steps.y)])[::-1], levels)
    # between two jumps the run is on the plateau
    times = 10**steps.x
    middle = float(np.sqrt(times[1] * times[3])) if len(times) > 3 else times[1] / 2
    log_loss = np.interp(middle, stairs.t, stairs.log_loss)
    assert log_loss / np.log(10) == pytest.approx(levels[1], abs=0.01)


def test_the_loss_of_a_predicted_limit_is_a_line(line):
    dead = rf.Network([1.0], [[0.0, 0.0]], bias=True)
    (rule,) = rf.plot._staircase(line, dead)
    assert isinstance(rule, Rule)
    zero = rf.losses.Square().value(np.zeros(4), line.data.y)
    assert 10**rule.value == pytest.approx(zero)


def test_several_losses_and_singular_values(line, blobs, stairs):
    panel = of_runs.loss([("one", line), ("two", stairs)])
    assert [layer.label for layer in panel.layers] == ["one", "two"]
    assert rf.plot.loss([line, stairs]).axes
    first = of_runs.spectrum(stairs).layers[0]
    assert 10 ** first.y[-1] == pytest.approx(np.linalg.svd(stairs.final.W)[1][0], rel=1e-6)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda run, net: rf.plot.loss(net), "this picture is of a run, not of Network"),
        (lambda run, net: rf.plot.function(net), "takes 3 inputs; a function .* Use rf.plot.surf"),
        (lambda run, net: rf.plot.surface(net), "takes 3 inputs; a surface needs two"),
        (lambda run, net: rf.plot.surface(run), "takes 1 inputs; a surface needs two"),
    ],
)
def test_what_cannot_be_drawn_is_refused(line, draw, message):
    with pytest.raises(rf.InputError, match=message):
        draw(line, rf.Network([1.0], [[1.0, 2.0, 3.0]]))
