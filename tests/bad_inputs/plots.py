"""Bad inputs of plots."""

import numpy as np

import widebnn as wb

from .rows import kw, refused


def slider(**options):
    defaults = {"values": [1, 2], "text": "{}", "alt": "A line."}
    return wb.plots.slider(lambda figure, value: figure.subplots(), **(defaults | options))


ROWS = [
    *refused(
        "plots.slider",
        ({"values": [1]}, "values…two…1"),
        ({"start": 2}, "start…0 to 1…2"),
        call=lambda o: slider(**o),
    ),
    *refused(
        "plots.traces",
        (np.zeros(3), kw(ylabel="U"), "draws…(3,)"),
        (
            np.ones((2, 9)),
            kw(ylabel="U", ax=np.array([None])),
            TypeError,
            "ax must be one Axes…axes[0]…object[1]",
        ),
    ),
]
