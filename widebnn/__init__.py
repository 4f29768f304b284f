"""Wide Bayesian neural networks: a target is a potential over N(0, I)."""

from importlib.metadata import version

from widebnn import (
    checkpoint,
    data,
    diagnostics,
    estimates,
    landscape,
    metrics,
    models,
    nngp,
    plots,
    samplers,
    streaming,
    targets,
    tree,
    tuning,
    vi,
)
from widebnn._failures import ChainWarning
from widebnn.checkpoint import Checkpoint
from widebnn.diagnostics import effective_sample_size, random_projections, rhat, rhat_squared
from widebnn.models import BNN
from widebnn.sampling import Draws, sample
from widebnn.scale import at_scale, current_scale
from widebnn.streaming import Stream, Streamed
from widebnn.versions import print_versions

__version__ = version("widebnn")

__all__ = [
    "BNN",
    "ChainWarning",
    "Checkpoint",
    "Draws",
    "Stream",
    "Streamed",
    "at_scale",
    "checkpoint",
    "current_scale",
    "data",
    "diagnostics",
    "effective_sample_size",
    "estimates",
    "landscape",
    "metrics",
    "models",
    "nngp",
    "plots",
    "print_versions",
    "random_projections",
    "rhat",
    "rhat_squared",
    "sample",
    "samplers",
    "streaming",
    "targets",
    "tree",
    "tuning",
    "vi",
]
