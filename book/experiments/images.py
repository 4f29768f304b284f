"""The images that an experiment observes, by name."""

import dataclasses
from functools import partial

from widebnn import data
from widebnn._check import at_least, one_of
from widebnn.data.dataset import standardisation


def _small_cifar10(num_train: int = 256, num_test: int = 1_000, *, flatten: bool = True) -> data.Dataset:
    """CIFAR-10 in shape (8, 8, 3), pixels the means over squares of 4 × 4, or flat in that order."""
    full = data.cifar10(num_train, num_test, flatten=False)
    small = [x.reshape(-1, 8, 4, 8, 4, 3).mean((2, 4)) for x in (full.x_train, full.x_test)]
    again = standardisation(small[0], per_column=False)
    x_train, x_test = (again.apply(x).reshape((len(x), -1) if flatten else x.shape) for x in small)
    mean = full.x_scale.mean + full.x_scale.std * again.mean
    x_scale = data.Standardisation(mean, full.x_scale.std * again.std)
    return dataclasses.replace(full, x_train=x_train, x_test=x_test, x_scale=x_scale)


LOADERS = {"cifar10": data.cifar10, "cifar10-8x8": _small_cifar10, "digits": data.digits, "mnist": data.mnist}
PIXELS = 28 * 28
"""Numbers that an image of MNIST or Fashion-MNIST has."""
TEST_FILES = {"cifar10": "test_batch.bin", "cifar10-8x8": "test_batch.bin", "mnist": "t10k-images-idx3-ubyte"}
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
