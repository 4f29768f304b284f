"""The networks that experiments compare, by name."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from flax import nnx

from book.experiments.images import images
from widebnn import data
from widebnn._check import one_of
from widebnn.models import BNN, CNN, FCN, WideResNet20

NETWORKS: Mapping[str, Callable[[tuple[int, ...], int, int, nnx.Rngs], nnx.Module]] = {
    "dense": lambda shape, width, depth, rngs: FCN(shape[-1], width, depth, rngs=rngs),
    "convolutional": lambda shape, width, depth, rngs: CNN(shape[-1], width, depth, rngs=rngs),
    "residual": lambda shape, width, depth, rngs: WideResNet20(
        shape[-1], (width // 4, width // 2, width), rngs=rngs
    ),
}
"""Features from the shape of an input, d_L, L and random numbers."""


class Network(NamedTuple):
    """One network and what it observes; `width` is in units or channels, as `network` says."""

    architecture: str
    dataset: str
    depth: int
    num_train: int
    width: int


def observed(architecture: str, dataset: str, num_train: int, num_test: int) -> data.Dataset:
    """The images as this architecture takes them: vectors for dense layers, pixels × channels for others."""
    flatten = one_of(NETWORKS, architecture=architecture) == "dense"
    return images(dataset, num_train, num_test, flatten=flatten)


def in_span(dataset: data.Dataset) -> data.Dataset:
    """Flat images by their coordinates in the span of the training images, of which there are r ≤ n.

    With X = RQᵀ a dense network sees W¹ through QᵀW¹ ~ N(0, I) alone. Its first layer divides by the square
    root of the number of inputs, so that the coordinates XQ come multiplied by √(r/d_in): then the network on
    r inputs has the law of that on d_in. Of test images that is the part in the span; `x_scale` stays that of
    the pixels.
    """
    _, singular, basis = np.linalg.svd(dataset.x_train.astype(float), full_matrices=False)
    basis = basis[singular > singular[0] * max(dataset.x_train.shape) * np.finfo(np.float32).eps]
    scale = math.sqrt(len(basis) / basis.shape[1])
    x_train, x_test = ((scale * (x @ basis.T)).astype(x.dtype) for x in (dataset.x_train, dataset.x_test))
    return dataclasses.replace(dataset, x_train=x_train, x_test=x_test)


def network(
    architecture: str, dataset: data.Dataset, width: int, depth: int, noise_std: float, seed: int
) -> BNN:
    """A network for the images of `observed`, in the papers' setting (theory in `widebnn.models`).

    All its hidden layers are as wide as `width` says, but that the three groups of a residual network have a
    quarter, a half and all of it; that has 20 layers at any `depth`.
    """
    features = NETWORKS[architecture](dataset.x_train.shape[1:], width, depth, nnx.Rngs(seed))
    return BNN(features, dataset.y_train.shape[1], noise_std)
