"""The network of an estimator, and the priors of its scales."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flax import nnx

from widebnn.models import BNN, FCN
from widebnn.targets import LogNormal

__all__ = ["LABEL_NOISE", "SCALES", "Architecture"]


SCALES: dict[str, LogNormal] = {
    "noise_std": LogNormal(0.3, 1.0),
    "readout_std": LogNormal(1.0, 0.7),
    "weight_std": LogNormal(math.sqrt(2), 0.7),
    "bias_std": LogNormal(0.5, 0.7),
}
"""Priors of the scales, for inputs and targets of mean 0 and standard deviation 1.

:meta hide-value:
"""
LABEL_NOISE = LogNormal(0.3, 0.3)
"""Prior of σ where targets are labels, which a network can meet exactly: σ² must not go to 0."""
READOUT_BIAS = 0.1
"""σ_b of the readout in units of its σ_W."""


class Architecture(NamedTuple):
    """What the scales are the scales of: the options of an estimator that make its network."""

    features: Any
    width: int | Sequence[int]
    depth: int
    activation: str
    num_outputs: int

    def bnn(self, d_in: int, noise_std: Any = 1.0, readout_std: Any = 1.0, **scales: Any) -> BNN:
        """The network at some scales."""
        readout = {"weight_std": readout_std, "bias_std": READOUT_BIAS * readout_std}
        return BNN(self._below(d_in, scales), self.num_outputs, noise_std, **readout)

    def _below(self, d_in: int, scales: dict[str, Any]) -> Any:
        """The layers below the readout: the user's, or a dense network at these scales."""
        if isinstance(self.features, nnx.Module):
            return self.features
        if callable(self.features):
            return self.features(d_in)
        if self.features is not None:
            raise TypeError(
                f"features must be a flax.nnx.Module or a function from d_in to one; got {self.features!r}"
            )
        depth = self.depth if np.ndim(self.width) == 0 else None
        options = {"activation": self.activation, "rngs": nnx.Rngs(0)} | scales
        return FCN(d_in, self.width, depth, **options)
