"""Declared experiments: a frozen configuration at each scale, a function that runs it, results on disk."""

from widebnn.experiments.landscape import LANDSCAPE, Landscape, landscape
from widebnn.experiments.published_pcnl import (
    PUBLISHED_PCNL,
    PublishedPCNL,
    published_marginal,
    published_pcnl,
    published_potential,
)
from widebnn.experiments.results import Results, config_hash, device, load, load_or_run, save
from widebnn.experiments.width import OVER_WIDTH, OverWidth, over_width, series

EXPERIMENTS = {"landscape": LANDSCAPE, "over_width": OVER_WIDTH, "published_pcnl": PUBLISHED_PCNL}
"""Configurations by experiment and scale; results ship as `book/results/<experiment>_<scale>.json`."""

__all__ = [
    "EXPERIMENTS",
    "LANDSCAPE",
    "OVER_WIDTH",
    "PUBLISHED_PCNL",
    "Landscape",
    "OverWidth",
    "PublishedPCNL",
    "Results",
    "config_hash",
    "device",
    "landscape",
    "load",
    "load_or_run",
    "over_width",
    "published_marginal",
    "published_pcnl",
    "published_potential",
    "save",
    "series",
]
