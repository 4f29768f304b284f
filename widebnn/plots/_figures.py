"""One function for each kind of figure. Functions take arrays and return the Axes."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.tri import Triangulation
from numpy.typing import ArrayLike

from widebnn._check import brief
from widebnn.plots._style import LOOKS, style

__all__ = [
    "function_bands",
    "relevances",
    "simplex_map",
    "traces",
    "width_curves",
]


_MARKERS = ["o", "s", "^", "D", "v", "P"]


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
        A dict of (mean, low, high), each (width,): the line and the edges of its band. Names of `LOOKS` are
        drawn in its colours. NaN leaves a gap.
    ylabel
        The quantity, with its unit.
    log_y
        Whether the quantity is drawn on a log axis.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    width, ax = np.asarray(width), _axes(ax)
    order = np.argsort(width)
    for i, (name, curve) in enumerate(curves.items()):
        mean, low, high = (np.asarray(values)[order] for values in curve)
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
    draws = np.asarray(draws)
    if draws.ndim != 2:
        raise ValueError(f"draws must have shape (chain, draw); got {draws.shape}")
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
    ax = _axes(ax)
    order = np.argsort(x)
    x, mean = np.asarray(x)[order], np.asarray(mean)[order]
    (line,) = ax.plot(x, mean, label=label)
    for i, (name, edges) in enumerate(bands.items()):
        low, high = (np.asarray(edge)[order] for edge in edges)
        shade = {"color": line.get_color(), "alpha": 0.18 + 0.14 * i, "linewidth": 0}
        ax.fill_between(x, low, high, label=name, **shade)
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
        Edges of the bands, (level,), increasing; at least two. A bar of their colours beside several panels
        is ``fig.colorbar(ax.collections[0], ax=axes)``.
    corners
        Names of the corners: left, right, top.
    ax
        Axes to draw on; new ones in the package's style if None.
    """
    ax = _axes(ax)
    triangle = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    colours = plt.get_cmap("YlGnBu")
    x, y = (np.asarray(weights) @ triangle).T
    ax.tricontourf(
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
    ax, mean, std = _axes(ax), np.asarray(mean), np.asarray(std)
    names = [f"x{j}" for j in range(len(mean))] if names is None else list(map(str, names))
    order = np.argsort(-mean, kind="stable")[:most][::-1]
    places = np.arange(len(order))
    ax.errorbar(mean[order], places, xerr=std[order], fmt="o")
    ax.axvline(1, color="#444444", linewidth=1, linestyle="--", label="one for all")
    ax.set_yticks(places, [names[j] for j in order])
    ax.set(xlabel="relevance", ylabel="column")
    ax.set_xlim(left=min(0, ax.get_xlim()[0]))
    _legend_above(ax)
    return ax
