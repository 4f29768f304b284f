"""Bad inputs of plots."""

import math

import numpy as np

import widebnn as wb

from .rows import kw, refused


def simplex_map(**options):
    defaults = {"weights": np.eye(3), "values": [0, 1, 2], "levels": [0, 1]}
    return wb.plots.simplex_map(**(defaults | options))


def slider(**options):
    defaults = {"values": [1, 2], "text": "{}", "alt": "A line."}
    return wb.plots.slider(lambda figure, value: figure.subplots(), **(defaults | options))


ROWS = [
    *refused(
        "plots.slider",
        ({"values": [1]}, "values…two…1"),
        ({"start": 2}, "start…0 to 1…2"),
        ({"alt": " "}, "alt…empty"),
        call=lambda o: slider(**o),
    ),
    *refused(
        "plots.width_curves",
        ([8, -1], {"pCN": np.ones((3, 2))}, kw(ylabel="a"), "width…above 0…-1"),
        ([8], {}, kw(ylabel="a"), "curves…one"),
    ),
    *refused(
        "plots.traces",
        (np.zeros(3), kw(ylabel="U"), "draws…(3,)"),
        ([["a"]], kw(ylabel="U"), TypeError, "draws…real numbers…'a'"),
        (np.zeros((2, 3)), kw(ylabel="U", thin=0), "thin…1…0"),
    ),
    *refused(
        "plots.rank_plot",
        (np.zeros((1, 9)), "draws…two chains…(1, 9)"),
        (np.zeros((2, 9)), kw(bins=10), "bins…9…10"),
    ),
    *refused(
        "plots.function_bands", ([0, 1], [0, 0], {"95 %": ([1, 1], [0, 2])}, "bands['95 %']…low at most high")
    ),
    *refused(
        "plots.simplex_map",
        ({"weights": np.ones((3, 2)) / 2}, "weights…(any, 3)…(3, 2)"),
        ({"weights": np.ones((3, 3))}, "weights…sum to 1"),
        ({"weights": np.tile([1, 0, 0], (3, 1))}, "weights…one line"),
        ({"values": [0, 1]}, "values…(3)…(2,)"),
        ({"values": [0, 1, math.inf]}, "values…finite"),
        ({"levels": [1.0, 1.0]}, "levels…grow…[1. 1.]"),
        call=lambda o: simplex_map(**o),
    ),
    *refused(
        "plots.reliability_diagram",
        ({}, "curves…none"),
        ({"a": ([0.5], [0.5, 1.0])}, "accuracy of 'a'…(1)…(2,)"),
        ({"a": ([0.5], [1.5])}, "curves['a']…[0, 1]"),
        ({"a": ([0.5], [np.nan])}, "curves['a']…[0, 1]"),
    ),
]
