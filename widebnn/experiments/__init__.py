"""Declared experiments: a frozen configuration at each scale, a function that runs it, results on disk."""

from widebnn.experiments.results import Results, config_hash, device, load, load_or_run, save
from widebnn.experiments.width import OVER_WIDTH, OverWidth, over_width, series

__all__ = [
    "OVER_WIDTH",
    "OverWidth",
    "Results",
    "config_hash",
    "device",
    "load",
    "load_or_run",
    "over_width",
    "save",
    "series",
]
