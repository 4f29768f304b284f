"""The looks of all figures: Matplotlib's settings, and a colour and a marker of its own for each method."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler

__all__ = ["LOOKS", "STYLE", "style"]

# Okabe & Ito's colours without black and yellow, told apart by colour-blind readers; light ones are darker
# here, so that each line has a contrast of 3:1 or more to the card.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#B5568E", "#A67C00", "#332288"]

STYLE: dict[Any, Any] = {
    # Five inches wide, so that text keeps its size on a phone; an opaque card, legible on any page colour.
    "figure.figsize": (5.0, 3.5),
    "figure.dpi": 144,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "#FCFCFA",
    "axes.facecolor": "#FCFCFA",
    "savefig.facecolor": "#FCFCFA",
    "axes.prop_cycle": cycler(color=_COLOURS),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.labelcolor": "#222222",
    "text.color": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.8,
    "font.size": 11,
    "axes.labelsize": 12,
    "axes.titlesize": 12,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
}
"""Matplotlib settings of every figure of the book, by name."""

LOOKS: Mapping[str, Mapping[str, Any]] = {
    name: {"color": color, "marker": marker}
    for name, color, marker in (
        ("θ", "#D55E00", "o"),
        ("φ", "#0072B2", "s"),
        ("φ, marginal", "#2E8BC0", "^"),
        ("readout integrated out", "#2E8BC0", "^"),
        ("φ, rotated", "#117733", "v"),
        ("φ, whitened", "#882255", "D"),
        ("random walk", "#767676", "v"),
        ("Langevin", "#D55E00", "o"),
        ("Langevin, γ = 0.01", "#8C5A2B", "d"),
        ("LMC", "#D55E00", "o"),
        ("MALA", "#A67C00", "P"),
        ("pCN", "#009E73", "s"),
        ("pCNL", "#B5568E", "D"),
        ("elliptical slice", "#2E8BC0", "X"),
        ("HMC", "#0072B2", "<"),
        ("NUTS", "#661100", ">"),
        ("adjusted MCLMC", "#1F8F80", "*"),
        ("mgrad", "#7F7F2A", "p"),
        ("function-space HMC", "#332288", "P"),
        ("unit-wise", "#882255", "h"),
    )
}
"""Colour and marker of each parametrisation and of each sampler, the same in every figure of the book.

Matplotlib's ``plot`` takes an entry as it is: ``ax.plot(x, y, **wb.plots.LOOKS["pCN"])``.
"""


@contextmanager
def style() -> Iterator[None]:
    """A context in which figures get the settings of `STYLE`: ``with wb.plots.style(): ...``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import widebnn as wb
    >>> with wb.plots.style():
    ...     fig, ax = plt.subplots()
    >>> plt.close(fig)
    """
    # Not plt.rc_context, which would also undo what a notebook's backend sets when it makes its first figure.
    before = {name: plt.rcParams[name] for name in STYLE}
    plt.rcParams.update(STYLE)
    try:
        yield
    finally:
        plt.rcParams.update(before)
