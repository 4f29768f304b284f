"""Wide Bayesian neural networks: a target is a potential over the standard normal.

Code on the pages of this reference assumes ``import widebnn as wb``.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from widebnn import (
    checkpoints,
    diagnostics,
    models,
    nngp,
    samplers,
    stopping,
    streaming,
    targets,
    tree,
    weight_draws,
)
from widebnn._failures import ChainWarning
from widebnn._kept import keep_compiled
from widebnn.automatic import Auto, auto
from widebnn.checkpoints import Checkpoint
from widebnn.diagnostics import effective_sample_size, random_projections, rhat, rhat_squared
from widebnn.models import BNN
from widebnn.sampling import Draws, sample
from widebnn.scale import at_scale, current_scale
from widebnn.stopping import Until
from widebnn.streaming import Stream, Streamed
from widebnn.versions import device, print_versions
from widebnn.weight_draws import WeightDraws

if TYPE_CHECKING:
    from widebnn import data, estimates, estimators, landscape, metrics, plots, tables, vi
    from widebnn.estimators import BNNClassifier, BNNRegressor
    from widebnn.tables import results

__version__ = version("widebnn")

_ON_FIRST_USE = {
    "data",
    "estimates",
    "estimators",
    "landscape",
    "metrics",
    "plots",
    "tables",
    "vi",
}
"""Modules that bring Matplotlib, Optax, SciPy or Pooch along: a chain needs none of them."""

_FROM = {"BNNClassifier": "estimators", "BNNRegressor": "estimators", "results": "tables"}
"""Where names are that come with such a module."""

__all__ = [
    "BNN",
    "Auto",
    "BNNClassifier",
    "BNNRegressor",
    "ChainWarning",
    "Checkpoint",
    "Draws",
    "Stream",
    "Streamed",
    "Until",
    "WeightDraws",
    "at_scale",
    "auto",
    "checkpoints",
    "current_scale",
    "data",
    "device",
    "diagnostics",
    "effective_sample_size",
    "estimates",
    "estimators",
    "keep_compiled",
    "landscape",
    "metrics",
    "models",
    "nngp",
    "plots",
    "print_versions",
    "random_projections",
    "results",
    "rhat",
    "rhat_squared",
    "sample",
    "samplers",
    "stopping",
    "streaming",
    "tables",
    "targets",
    "tree",
    "vi",
    "weight_draws",
]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(f"widebnn.{_FROM[name]}"), name)
    if name in _ON_FIRST_USE:
        return importlib.import_module(f"widebnn.{name}")
    raise AttributeError(f"module 'widebnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
