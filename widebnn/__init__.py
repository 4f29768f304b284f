"""Wide Bayesian neural networks: a target is a potential over the standard normal.

Code on the pages of this reference assumes ``import widebnn as wb``.
"""

import importlib
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from widebnn import (
    collectors,
    diagnostics,
    models,
    nngp,
    samplers,
    targets,
    tree,
)
from widebnn._compile import keep_compiled
from widebnn._failures import ChainWarning
from widebnn.automatic import Auto, auto
from widebnn.collectors import (
    embedding,
    left_out_log_likelihood,
    log_likelihood,
    output,
    potential,
    predictive_covariance,
    predictive_draw,
    predictive_mean,
    predictive_moments,
    predictive_probabilities,
    predictive_variance,
)
from widebnn.diagnostics import effective_sample_size, random_projections, rhat, rhat_squared
from widebnn.driver import Draws, Prediction, checkpoints, run_chains, sample, stopping, streaming
from widebnn.driver._particles import Particles, smc
from widebnn.driver.checkpoints import Checkpoint
from widebnn.driver.stopping import Until
from widebnn.driver.streaming import Streamed
from widebnn.models import BNN
from widebnn.scale import at_scale, current_scale
from widebnn.versions import device, print_versions

if TYPE_CHECKING:
    from widebnn import data, estimates, estimators, landscape, metrics, plots, tables, vi
    from widebnn.estimators import BNNClassifier, BNNRegressor
    from widebnn.tables import results

for _module in (checkpoints, stopping, streaming):  # public ones, which have their names here
    sys.modules[f"widebnn.{_module.__name__.rpartition('.')[2]}"] = _module

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
    "Particles",
    "Prediction",
    "Streamed",
    "Until",
    "at_scale",
    "auto",
    "checkpoints",
    "collectors",
    "current_scale",
    "data",
    "device",
    "diagnostics",
    "effective_sample_size",
    "embedding",
    "estimates",
    "estimators",
    "keep_compiled",
    "landscape",
    "left_out_log_likelihood",
    "log_likelihood",
    "metrics",
    "models",
    "nngp",
    "output",
    "plots",
    "potential",
    "predictive_covariance",
    "predictive_draw",
    "predictive_mean",
    "predictive_moments",
    "predictive_probabilities",
    "predictive_variance",
    "print_versions",
    "random_projections",
    "results",
    "rhat",
    "rhat_squared",
    "run_chains",
    "sample",
    "samplers",
    "smc",
    "stopping",
    "streaming",
    "tables",
    "targets",
    "tree",
    "vi",
]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(f"widebnn.{_FROM[name]}"), name)
    if name in _ON_FIRST_USE:
        return importlib.import_module(f"widebnn.{name}")
    raise AttributeError(f"module 'widebnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
