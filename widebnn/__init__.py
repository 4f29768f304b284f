"""Wide Bayesian neural networks: a target is a potential over N(0, I)."""

from importlib.metadata import version

from widebnn.scale import at_scale, current_scale

__version__ = version("widebnn")

__all__ = ["at_scale", "current_scale"]
