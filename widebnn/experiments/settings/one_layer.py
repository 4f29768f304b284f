"""The posterior that Pezzetti et al. sample, one hidden layer on images, and what the data inform of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from widebnn import data, targets
from widebnn.models import BNN, FCN
from widebnn.sampling import Collector

__all__ = ["OneLayer", "one_layer"]


class OneLayer(NamedTuple):
    """A network's posterior, as a whole and as far as the data inform it.

    Attributes
    ----------
    whole
        The target on all of φ.
    rotated
        The target on QᵀW¹ and b¹, which are all that its potential sees.
    seen
        The part of the test images that lies in the span of the training images.
    """

    whole: targets.NetworkTarget
    rotated: Any
    seen: Float[np.ndarray, "test d_in"]

    def collect(
        self, target: targets.NetworkTarget, project: Callable[..., Float[Array, " num"]]
    ) -> dict[str, Collector]:
        """The potential, projections of the rotated weights and Rao–Blackwellised predictions at `seen`.

        Parameters
        ----------
        target
            `whole` or `rotated`, whichever is sampled: the functions are the same ones.
        project
            Of positions of `rotated`.
        """
        informed = self.rotated.from_parameters if target is self.whole else lambda position: position
        return {
            "potential": target.potential,
            "weights": lambda position: project(informed(position)),
            "predictions": target.predictive_mean(self.seen),
        }


def one_layer(dataset: data.Dataset, width: int, noise_std: float, seed: int) -> OneLayer:
    """The posterior of a network with one hidden layer of `width` units, given all training images."""
    x, y = dataset.x_train, dataset.y_train
    bnn = BNN(FCN(x.shape[1], width, depth=1, rngs=nnx.Rngs(seed)), y.shape[1], noise_std)
    rotated = targets.rotated(targets.marginal(bnn, x, y))
    seen = (dataset.x_test @ rotated.basis @ rotated.basis.T).astype(x.dtype)
    return OneLayer(targets.repriorised(bnn, x, y), rotated, seen)
