"""The images that an experiment observes, by the name that its configuration gives them."""

from functools import partial

from widebnn import data
from widebnn._check import at_least, one_of

__all__ = ["INPUTS", "LOADERS", "PIXELS", "images"]

LOADERS = {"cifar10": data.cifar10, "digits": data.digits, "mnist": data.mnist}
INPUTS, PIXELS = 32 * 32 * 3, 28 * 28
"""Numbers that an image of CIFAR-10 or SVHN has, and one of MNIST or Fashion-MNIST."""
TEST_FILES = {"cifar10": "test_batch.bin", "mnist": "t10k-images-idx3-ubyte"}
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
