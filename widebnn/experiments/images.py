"""The images that an experiment observes, by the name that its configuration gives them."""

from widebnn import data
from widebnn._check import one_of

__all__ = ["images"]

LOADERS = {"cifar10": data.cifar10, "digits": data.digits, "mnist": data.mnist}


def images(dataset: str, num_train: int, num_test: int, *, flatten: bool = True) -> data.Dataset:
    """The data set "cifar10", "digits" or "mnist", so many images to observe and so many to predict.

    Parameters
    ----------
    dataset
        Its name.
    num_train, num_test
        Numbers of images.
    flatten
        Whether an image is a vector, as dense layers take it, or (height, width, channels).

    Raises
    ------
    ValueError
        If the name is unknown, or there are not so many images.
    OSError
        If the images have to be downloaded and cannot be.
    """
    return LOADERS[one_of(LOADERS, dataset=dataset)](num_train, num_test, flatten=flatten)
