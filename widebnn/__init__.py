"""Wide Bayesian neural networks: a target is a potential over N(0, I)."""

from importlib.metadata import version

from widebnn import data, diagnostics, landscape, limits, models, nngp, plots, samplers, targets, tuning
from widebnn.diagnostics import effective_sample_size, random_projections, rhat, rhat_squared
from widebnn.models import BNN
from widebnn.sampling import Draws, sample
from widebnn.scale import at_scale, current_scale
from widebnn.versions import print_versions

__version__ = version("widebnn")

__all__ = [
    "BNN",
    "Draws",
    "at_scale",
    "current_scale",
    "data",
    "diagnostics",
    "effective_sample_size",
    "landscape",
    "limits",
    "models",
    "nngp",
    "plots",
    "print_versions",
    "random_projections",
    "rhat",
    "rhat_squared",
    "sample",
    "samplers",
    "targets",
    "tuning",
]
