"""The images that an experiment observes, by the name that its configuration gives them."""

import dataclasses
from functools import partial

import numpy as np
from jaxtyping import Float32

from widebnn import data
from widebnn._check import at_least, one_of

__all__ = ["INPUTS", "LOADERS", "MADE_OF", "PIXELS", "images"]


def _small_cifar10(num_train: int, num_test: int, *, flatten: bool = True) -> data.Dataset:
    """CIFAR-10 at 8 × 8 pixels, each the mean of 4 × 4: of so few inputs many images can be observed."""
    dataset = data.cifar10(num_train, num_test, flatten=False)

    def smaller(x: Float32[np.ndarray, "n 32 32 3"]) -> Float32[np.ndarray, "n ..."]:
        means = x.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4))
        return means.reshape(len(means), -1) if flatten else means

    x_train, x_test = smaller(dataset.x_train), smaller(dataset.x_test)
    return dataclasses.replace(dataset, x_train=x_train, x_test=x_test, name="cifar10_8x8")


LOADERS = {
    "cifar10": data.cifar10,
    "cifar10_8x8": _small_cifar10,
    "digits": data.digits,
    "mnist": data.mnist,
}
INPUTS, PIXELS = 32 * 32 * 3, 28 * 28
"""Numbers that an image of CIFAR-10 or SVHN has, and one of MNIST or Fashion-MNIST."""
MADE_OF = {"cifar10_8x8": "cifar10"}
"""Data sets of `widebnn.data` whose images these are, where the names differ."""
TEST_FILES = {
    "cifar10": "test_batch.bin",
    "cifar10_8x8": "test_batch.bin",
    "mnist": "t10k-images-idx3-ubyte",
}
"""That may hold fewer images than the official ones; digits come in one piece, with the package."""


def images(dataset: str, num_train: int, num_test: int, *, flatten: bool = True) -> data.Dataset:
    """Images of a data set, so many to observe and so many to predict.

    Where the files at hand hold fewer than `num_test`, all are predicted. An image is a vector, as dense
    layers take it, or (height, width, channels).
    """
    load = partial(LOADERS[one_of(LOADERS, dataset=dataset)], num_train, flatten=flatten)
    if dataset in TEST_FILES:
        records = load(num_test=1).records
        (held,) = (count for file, count in records.items() if file.startswith(TEST_FILES[dataset]))
        num_test = min(at_least(1, num_test=num_test), held)
    return load(num_test=num_test)
