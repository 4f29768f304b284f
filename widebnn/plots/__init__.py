"""One style, a look for each method, one function for each kind of figure, and a slider.

Functions of figures take arrays and return the Axes that they have drawn on.
"""

from widebnn.plots._figures import (
    function_bands,
    relevances,
    simplex_map,
    traces,
    width_curves,
)
from widebnn.plots._slider import Slider, slider
from widebnn.plots._style import LOOKS, STYLE, style

__all__ = [
    "LOOKS",
    "STYLE",
    "Slider",
    "function_bands",
    "relevances",
    "simplex_map",
    "slider",
    "style",
    "traces",
    "width_curves",
]
