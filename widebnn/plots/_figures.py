"""One function for each kind of figure. Functions take arrays and return the Axes."""

import itertools
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.tri import Triangulation
from numpy.typing import ArrayLike

from widebnn._arrays import real
from widebnn._check import at_least, brief, finite
from widebnn.plots._style import LOOKS, style

__all__ = [
    "function_bands",
    "rank_plot",
    "relevances",
    "reliability_diagram",
    "simplex_map",
    "traces",
    "width_curves",
]


_MARKERS = ["o", "s", "^", "D", "v", "P"]


def _array(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> np.ndarray:
    """`values` as an array of numbers of the wanted shape; None leaves a length open."""
    values = np.asarray(real(**{name: values}), dtype=float)
    fits = values.ndim == len(shape) and all(want in (None, n) for n, want in zip(values.shape, shape))
    if not fits or values.size == 0:
        wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
        raise ValueError(f"{name} must have shape {wanted} and at least one entry; got {values.shape}")
    return values


def _chains(draws: ArrayLike) -> np.ndarray:
    return finite(draws=_array("draws", draws, (None, None)))


def _axes(ax: Axes | None) -> Axes:
    """The given axes, or new ones."""
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be one Axes of Matplotlib, such as axes[0]; got {brief(ax)}")
    return plt.subplots()[1] if ax is None else ax


def _count_axis(ax: Axes) -> None:
    """An x axis of whole numbers, few enough for their labels to stay apart."""
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))


def _legend_above(ax: Axes) -> None:
    """A legend over the axes, where it covers no data; as many columns as fit the width."""
    labels = ax.get_legend_handles_labels()[1]
    characters = 12.5 * ax.bbox.width / ax.figure.dpi
    entry = max(len(label) for label in labels) + 5
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        ncols=max(1, int(characters // entry)),
        columnspacing=1.2,
        handlelength=1.5,
    )


@style()
def width_curves(
    width: ArrayLike,
    curves: Mapping[str, Sequence[ArrayLike] | np.ndarray],
    *,
    ylabel: str,
    log_y: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """A quantity over network width, a line with a band for each method; the width is on a log₂ axis.

    Parameters
    ----------
    width
        Widths, (width,), above 0.
    curves
        A dict of (mean, low, high), each (width,): the line and the edges of its band, as
        `widebnn.diagnostics.band` returns them. Names of `LOOKS` are drawn in its colours. NaN leaves a gap.
    ylabel
        The quantity, with its unit.
    log_y
        Whether the quantity is drawn on a log axis.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    width = _array("width", width, (None,))
    if not (np.isfinite(width) & (width > 0)).all():
        raise ValueError(f"width must be finite and above 0; got {width}")
    if not curves:
        raise ValueError("curves must name at least one curve; got none")
    lines = {}
    for name, curve in curves.items():
        if len(curve) != 3:
            raise ValueError(f"curves[{name!r}] must be (mean, low, high); got {len(curve)} entries")
        lines[name] = [_array(f"curves[{name!r}]", values, width.shape) for values in curve]

    ax = _axes(ax)
    order = np.argsort(width)
    for i, (name, curve) in enumerate(lines.items()):
        mean, low, high = (values[order] for values in curve)
        look = LOOKS.get(name, {"marker": _MARKERS[i % len(_MARKERS)]})
        (line,) = ax.plot(width[order], mean, label=name, **look)
        ax.fill_between(width[order], low, high, color=line.get_color(), alpha=0.18, linewidth=0)
    ax.set_xscale("log", base=2)
    ax.set_xticks(np.unique(width))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda w, _: f"{w:,.0f}"))
    ax.minorticks_off()
    octaves = np.log2(np.unique(width))
    if 8 * np.diff(octaves).min(initial=np.inf) < np.ptp(octaves):  # labels side by side would touch
        ax.tick_params(axis="x", rotation=45)
    if log_y:
        ax.set_yscale("log")
    ax.set_xlabel("width (hidden units)")
    ax.set_ylabel(ylabel)
    _legend_above(ax)
    return ax


@style()
def traces(draws: ArrayLike, *, ylabel: str, thin: int = 1, ax: Axes | None = None) -> Axes:
    """The path of one quantity in each chain.

    Parameters
    ----------
    draws
        Kept draws, (chain, draw).
    ylabel
        The quantity, with its unit.
    thin
        Steps of the sampler between kept draws: the axis then counts steps.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    draws = _chains(draws)
    at_least(1, thin=thin)
    ax = _axes(ax)
    step = thin * np.arange(1, draws.shape[1] + 1)
    for i, chain in enumerate(draws):
        ax.plot(step, chain, linewidth=0.8, alpha=0.8, label=f"chain {i + 1}")
    _count_axis(ax)
    ax.margins(x=0.02)
    ax.set_xlabel("step after burn-in")
    ax.set_ylabel(ylabel)
    _legend_above(ax)
    return ax


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 over all entries; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse].reshape(values.shape)


@style()
def rank_plot(draws: ArrayLike, *, bins: int = 20, ax: Axes | None = None) -> Axes:
    """Histograms of each chain's ranks among all draws: flat where every chain visits the same values.

    There is one row of bars per chain. The dashed line is the mean count, and the grey band is two standard
    deviations of the count of independent draws to either side; correlated draws scatter more widely.

    Parameters
    ----------
    draws
        Kept draws of one quantity, (chain, draw), two chains or more.
    bins
        Number of bars for each chain, from 2 to the number of draws per chain.
    ax
        Axes to draw on; new ones in the package's style if None.

    References
    ----------
    Vehtari et al. 2021, §4.
    """
    draws = _chains(draws)
    num_chains, num_draws = draws.shape
    if num_chains < 2:
        raise ValueError(f"draws must hold two chains or more to compare; got shape {draws.shape}")
    if not 2 <= bins <= num_draws:
        raise ValueError(f"bins must lie between 2 and the {num_draws} draws of a chain; got {bins}")
    edges = np.linspace(0.5, draws.size + 0.5, bins + 1)
    counts = np.stack([np.histogram(ranks, edges)[0] for ranks in _mean_ranks(draws)])
    expected = num_draws / bins
    deviation = np.sqrt(expected * (1 - 1 / bins) * (1 - 1 / num_chains))  # hypergeometric, up to 1/size

    ax = _axes(ax)
    height = 1.15 * max(counts.max(), expected + 2 * deviation)
    for i, count in enumerate(counts):
        ground = (num_chains - 1 - i) * height
        ax.bar(edges[:-1], count, np.diff(edges), ground, align="edge", edgecolor="white", linewidth=0.5)
        ax.axhspan(
            ground + expected - 2 * deviation, ground + expected + 2 * deviation, color="#8A8A8A", alpha=0.3
        )
        ax.axhline(ground + expected, color="#222222", linestyle="--", linewidth=1)
    names = [f"chain {i + 1}" for i in reversed(range(num_chains))]
    ax.set_yticks(height * np.arange(num_chains) + expected, names)
    ax.grid(False)
    _count_axis(ax)
    ax.set_ylim(0, height * num_chains)
    ax.margins(x=0.01)
    ax.set_xlabel("rank among all draws")
    ax.set_ylabel(f"draws in each of {bins} bins")
    return ax


@style()
def function_bands(
    x: ArrayLike,
    mean: ArrayLike,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    label: str = "mean",
    data: tuple[ArrayLike, ArrayLike] | None = None,
    xlabel: str = "x",
    ylabel: str = "f(x)",
    ax: Axes | None = None,
) -> Axes:
    """A function of one input with credible bands and the observations.

    Called again with the same `ax`, it adds a second function in the next colour.

    Parameters
    ----------
    x
        Inputs, (point,), in any order.
    mean
        Mean of the function there, (point,).
    bands
        A dict of (low, high), each (point,), the widest band first: for a Gaussian
        ``{"95 %": (mean - 1.96 * std, mean + 1.96 * std)}``, or quantiles of draws.
    label
        Name of the line in the legend.
    data
        Observations (inputs, values), each (observation,).
    xlabel, ylabel
        Names of the axes.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    x = _array("x", x, (None,))
    mean = _array("mean", mean, x.shape)
    edges = {}
    for name, (low, high) in bands.items():
        edges[name] = [_array(f"bands[{name!r}]", edge, x.shape) for edge in (low, high)]
    if data is not None:
        inputs = _array("data[0]", data[0], (None,))
        data = inputs, _array("data[1]", data[1], inputs.shape)

    ax = _axes(ax)
    order = np.argsort(x)
    (line,) = ax.plot(x[order], mean[order], label=label)
    for i, (name, (low, high)) in enumerate(edges.items()):
        shade = {"color": line.get_color(), "alpha": 0.18 + 0.14 * i, "linewidth": 0}
        ax.fill_between(x[order], low[order], high[order], label=name, **shade)
    if data is not None:
        ax.plot(*data, "o", color="#222222", markersize=4.5, label="data", zorder=3)
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    _legend_above(ax)
    return ax


@style()
def simplex_map(
    weights: ArrayLike,
    values: ArrayLike,
    *,
    levels: ArrayLike,
    label: str | None = None,
    corners: tuple[str, str, str] = ("1", "2", "3"),
    ax: Axes | None = None,
) -> Axes:
    """A quantity over a triangle, in filled contours: light is low, dark is high.

    Every band between two levels has one colour, whatever its height, so that panels with the same levels
    compare, and levels may grow geometrically. Values beyond the outer levels share the end colours.

    Parameters
    ----------
    weights
        Barycentric weights, (point, 3), such as those of a `widebnn.landscape.Slice`.
    values
        The quantity there, (point,).
    levels
        Edges of the bands, (level,), increasing; at least two.
    label
        Name of the quantity, with its unit, beside a colour bar; without it there is no bar. For one bar
        beside several panels: ``fig.colorbar(ax.collections[0], ax=axes)``.
    corners
        Names of the corners: left, right, top.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    weights = _array("weights", weights, (None, 3))
    values = _array("values", values, weights.shape[:1])
    levels = _array("levels", levels, (None,))
    if (weights < 0).any() or not np.allclose(weights.sum(axis=1), 1, atol=1e-5):
        raise ValueError("weights must be 0 or above and sum to 1 at each point")

    ax = _axes(ax)
    triangle = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    colours = plt.get_cmap("YlGnBu")
    x, y = (weights @ triangle).T
    bands = ax.tricontourf(
        Triangulation(x, y),
        values,
        levels=levels,
        cmap=colours,
        norm=BoundaryNorm(levels, colours.N, extend="both"),
        extend="both",
    )
    ax.fill(*triangle.T, fill=False, edgecolor="#444444", linewidth=1)
    sides = [("right", "top"), ("left", "top"), ("center", "bottom")]
    for name, corner, (side, rise) in zip(corners, triangle, sides, strict=True):
        ax.annotate(
            name, corner, (0, 3 if rise == "bottom" else -3), textcoords="offset points", ha=side, va=rise
        )
    ax.set_aspect("equal")
    ax.axis("off")
    if label is not None:
        ax.figure.colorbar(
            bands,
            ax=ax,
            label=label,
            format=FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 100 else f"{v:.3g}"),
        )
    return ax


@style()
def relevances(
    mean: ArrayLike,
    std: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    most: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Scales of the columns' weights with one deviation to either side, the largest on top.

    Parameters
    ----------
    mean, std
        Posterior mean and deviation of each column's relevance, (column,), as of
        ``BNNRegressor.relevances_``.
    names
        Of the columns; "x0", "x1", … unless given.
    most
        Columns that are shown, at most: those of the largest mean.
    ax
        Axes to draw on; new ones in the package's style if None.

    Examples
    --------
    >>> import widebnn as wb
    >>> ax = wb.plots.relevances([2.0, 0.3], [0.4, 0.2], ["size", "age"])
    """
    mean = _array("mean", mean, (None,))
    std = _array("std", std, mean.shape)
    for name, values in (("mean", mean), ("std", std)):
        if not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(f"{name} must be finite and not negative; got {values}")
    names = [f"x{j}" for j in range(len(mean))] if names is None else [str(name) for name in names]
    if len(names) != len(mean):
        raise ValueError(f"names must have one entry per column, {len(mean)}; got {len(names)}")
    order = np.argsort(-mean, kind="stable")[: at_least(1, most=most)][::-1]
    ax = _axes(ax)
    places = np.arange(len(order))
    ax.errorbar(mean[order], places, xerr=std[order], fmt="o")
    ax.axvline(1, color="#444444", linewidth=1, linestyle="--", label="one for all")
    ax.set_yticks(places, [names[j] for j in order])
    ax.set(xlabel="relevance", ylabel="column")
    ax.set_xlim(left=min(0, ax.get_xlim()[0]))
    _legend_above(ax)
    return ax


@style()
def reliability_diagram(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ax: Axes | None = None) -> Axes:
    """Share of right answers over confidence, a line for each method; calibrated ones lie on the diagonal.

    Parameters
    ----------
    curves
        A dict of (confidence, accuracy), each (bin,) in [0, 1], as of `widebnn.metrics.reliability`;
        empty bins, NaN in both, are left out.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    if not curves:
        raise ValueError("curves must have at least one entry; got none")
    drawn = {}
    for name, (confidence, accuracy) in curves.items():
        confidence = _array(f"confidence of {name!r}", confidence, (None,))
        accuracy = _array(f"accuracy of {name!r}", accuracy, confidence.shape)
        points = np.array([confidence, accuracy])
        drawn[name] = points[:, ~np.isnan(points).all(axis=0)]

    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="#444444", linewidth=1, linestyle="--", label="calibrated")
    for (name, points), marker in zip(drawn.items(), itertools.cycle(_MARKERS)):
        ax.plot(*points, marker=marker, label=name)
    ax.set(xlabel="confidence", ylabel="accuracy", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    _legend_above(ax)
    return ax
