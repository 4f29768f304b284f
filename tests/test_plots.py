"""Figures show what they were given: labels, lines, bands and ranks are read back from the Axes."""

import json
import re
from html import unescape

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from widebnn import plots

WIDTH = [128, 512, 1_024, 4_096]
CURVE = ([0.1, 0.3, 0.5, 0.9], [0.0, 0.2, 0.4, 0.8], [0.2, 0.4, 0.6, 1.0])
X = np.linspace(-1, 1, 20)
BANDS = {"95 %": (X - 2, X + 2), "50 %": (X - 0.7, X + 0.7)}
DRAWS = np.random.default_rng(0).normal(size=(4, 400))

FIGURES = {
    "width curves": lambda **kw: plots.width_curves(
        WIDTH, {"pCN": CURVE, "function-space HMC": CURVE}, ylabel="acceptance rate", **kw
    ),
    "crowded widths": lambda **kw: plots.width_curves(
        [32, 64, 128, 384, 512, 768, 1_024],
        {"LMC": [np.arange(1.0, 8)] * 3},
        ylabel="ESS per step",
        log_y=True,
        **kw,
    ),
    "relevances": lambda **kw: plots.relevances([0.2, 1.7], [0.1, 0.2], ["age", "a name of a column"], **kw),
    "traces": lambda **kw: plots.traces(DRAWS, ylabel="potential U", thin=25, **kw),
    "function bands": lambda **kw: plots.function_bands(X, X, BANDS, data=([0.0], [0.1]), **kw),
}
figures = pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES.keys())


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@figures
def test_a_figure_has_the_style_alone_and_hides_nothing(draw):
    before = dict(mpl.rcParams)
    ax = draw()
    assert dict(mpl.rcParams) == before
    assert (
        ax.get_facecolor()[:3] == to_rgb(plots.STYLE["axes.facecolor"]) and ax.figure.get_facecolor()[3] == 1
    )
    ax.figure.canvas.draw()
    assert ax.get_xlabel() and ax.get_ylabel()
    drawn, figure = ax.get_tightbbox(), ax.figure.bbox  # of everything visible: labels, ticks, legend
    assert figure.x0 <= drawn.x0 and drawn.x1 <= figure.x1 and figure.y0 <= drawn.y0 and drawn.y1 <= figure.y1
    assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1


@figures
def test_draws_on_the_given_axes(draw):
    with plots.style():
        _, axes = plt.subplots(1, 2, figsize=(10, 3.5))
    assert draw(ax=axes[1]) is axes[1]
    assert not axes[0].has_data() and len(plt.get_fignums()) == 1


def test_width_curves_show_their_numbers():
    shuffled = [2, 0, 3, 1]
    ax = plots.width_curves(np.take(WIDTH, shuffled), {"pCN": np.take(CURVE, shuffled, axis=1)}, ylabel="a")
    (line,), (band,) = ax.get_lines(), ax.collections
    np.testing.assert_array_equal(line.get_xydata(), np.transpose([WIDTH, CURVE[0]]))
    assert band.get_datalim(ax.transData).extents.tolist() == [128, 0.0, 4_096, 1.0]
    assert ax.get_xaxis().get_transform().base == 2
    assert [t.get_text() for t in ax.get_xticklabels()] == ["128", "512", "1,024", "4,096"]
    assert (
        line.get_color() == plots.LOOKS["pCN"]["color"] and line.get_marker() == plots.LOOKS["pCN"]["marker"]
    )


def luminance(color: str) -> float:
    """Relative, as WCAG has it."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def test_lines_have_contrast_to_the_card():
    lines = {looks["color"] for looks in plots.LOOKS.values()}
    lines |= set(plots.STYLE["axes.prop_cycle"].by_key()["color"])
    card = luminance(plots.STYLE["axes.facecolor"])
    assert {c: r for c in lines if (r := (card + 0.05) / (luminance(c) + 0.05)) < 3} == {}


def test_traces_count_steps():
    ax = plots.traces(DRAWS, ylabel="U", thin=25)
    assert len(ax.get_lines()) == 4
    for line, chain in zip(ax.get_lines(), DRAWS):
        np.testing.assert_array_equal(line.get_ydata(), chain)
        assert line.get_xdata()[[0, -1]].tolist() == [25, 10_000]


def test_function_bands_nest_and_overlay():
    ax = plots.function_bands(X[::-1], X[::-1], BANDS, data=([0.0, 0.5], [0.1, 0.4]), label="posterior mean")
    line, points = ax.get_lines()
    np.testing.assert_array_equal(line.get_xydata(), np.transpose([X, X]))
    np.testing.assert_array_equal(points.get_xydata(), [[0.0, 0.1], [0.5, 0.4]])
    wide, narrow = ax.collections
    assert wide.get_alpha() < narrow.get_alpha()
    plots.function_bands(X, 0 * X, {"prior 95 %": (X - 3, X + 3)}, label="prior mean", ax=ax)
    legend = [t.get_text() for t in ax.get_legend().get_texts()]
    assert legend == ["posterior mean", "95 %", "50 %", "data", "prior mean", "prior 95 %"]
    assert ax.get_lines()[2].get_color() != line.get_color()


def test_simplex_map_shows_its_values_where_they_are():
    """The value is the weight of the first corner: the upper band lies about that corner alone."""
    weights = np.array([(4 - j - k, j, k) for j in range(5) for k in range(5 - j)]) / 4
    ax = plots.simplex_map(weights, weights[:, 0], levels=[-1, 0.5, 2], corners=("a", "b", "c"))
    (bands,) = ax.collections
    low, upper = [path.vertices for path in bands.get_paths() if len(path.vertices)]
    assert upper[:, 0].max() <= 0.5 + 1e-9 and low[:, 0].max() == 1
    left, right, top = (text.xy for text in ax.texts)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    assert left[0] < top[0] < right[0] and top[1] > left[1] == right[1]


def lines(figure, power):
    figure.subplots().plot([1, 2, 4], np.array([1, 2, 4]) ** power)


SLIDES = {"values": [1, 2, 3], "text": 'power {} of "x"', "alt": "A power of x.", "start": 1}


def test_slider_shows_one_picture_and_says_its_value():
    html = plots.slider(lines, **SLIDES)._repr_html_()
    pictures = re.findall(r"<img [^>]*>", html)
    assert [" hidden " in picture for picture in pictures] == [True, False, True]
    assert len(set(pictures)) == 3
    assert "http" not in html
    assert html.count("power 2 of &quot;x&quot;</output>") == 1
    assert 'max="2" value="1"' in html
    assert json.loads(unescape(re.findall(r'data-texts="([^"]*)"', html)[0])) == [
        f'power {i} of "x"' for i in (1, 2, 3)
    ]


ALIASES = ("θ", "LMC", "readout integrated out")


def test_each_method_has_looks_of_its_own():
    samplers = [looks for name, looks in plots.LOOKS.items() if "φ" not in name and name not in ALIASES]
    maps = [looks for name, looks in plots.LOOKS.items() if name.startswith(("θ", "φ"))]
    for family in (samplers, maps):
        assert len({looks["color"] for looks in family}) == len(family)
        assert len({looks["marker"] for looks in family}) >= len(family) - 1
