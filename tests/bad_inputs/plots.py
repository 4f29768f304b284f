"""Bad inputs of plots."""

import numpy as np

import widebnn as wb

from .rows import kw, refused


def simplex_map(**options):
    defaults = {"weights": np.eye(3), "values": [0, 1, 2], "levels": [0, 1]}
    return wb.plots.simplex_map(**(defaults | options))


def slider(**options):
    defaults = {"values": [1, 2], "text": "{}", "alt": "A line."}
    return wb.plots.slider(lambda figure, value: figure.subplots(), **(defaults | options))


WIDTHS, CURVE = [8, 16, 32, 64], np.ones((3, 4))
DRAWS = np.arange(18.0).reshape(2, 9)
NAN_DRAWS = np.where(DRAWS > 3, DRAWS, np.nan)

ROWS = [
    *refused(
        "plots.slider",
        ({"values": [1]}, "values…two…1"),
        ({"start": 2}, "start…0 to 1…2"),
        call=lambda o: slider(**o),
    ),
    *refused(
        "plots.width_curves",
        ([0, 1, 2, 3], {"pCN": CURVE}, "width…above 0"),
        ([8], {}, "curves…one"),
        (WIDTHS, {"pCN": ([1.0], *CURVE[1:])}, "curves['pCN'] must have shape (4)…(1,)"),
        call=lambda *of, **o: wb.plots.width_curves(*of, ylabel="a", **o),
    ),
    *refused(
        "plots.traces",
        (np.zeros(3), kw(ylabel="U"), "draws…(3,)"),
        (DRAWS, kw(ylabel="U", ax=np.array([None])), TypeError, "ax must be one Axes…axes[0]…object[1]"),
    ),
    *refused(
        "plots.rank_plot",
        (DRAWS, kw(bins=1), "bins…between 2 and the 9…1"),
        (NAN_DRAWS, "draws must be finite"),
    ),
    *refused(
        "plots.function_bands",
        ([0, 1], [0], {"95 %": ([0, 0], [1, 1])}, "mean must have shape (2)…(1,)"),
        ([0, 1], [0, 0], {}, kw(data=([1.0], [1.0, 2.0])), "data[1] must have"),
    ),
    *refused(
        "plots.simplex_map",
        ({"weights": np.ones((3, 3))}, "weights…sum to 1"),
        call=lambda o: simplex_map(**o),
    ),
    *refused(
        "plots.relevances",
        ([1.0, -2.0], [0.1, 0.1], "mean must be finite and not negative"),
        ([1.0], [0.1], ["a", "b"], "names must have one entry per column, 1; got 2"),
    ),
    *refused(
        "plots.reliability_diagram",
        ({}, "curves…none"),
        ({"a": ([0.5], [0.5, 1.0])}, "accuracy of 'a'…(1)…(2,)"),
    ),
]
