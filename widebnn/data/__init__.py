"""Real data sets, each a `Dataset`: standardised inputs, centred targets, and where they came from."""

from widebnn.data.augmentation import flip_and_crop
from widebnn.data.boston import boston
from widebnn.data.bundled import diabetes, digits
from widebnn.data.cifar10 import cifar10
from widebnn.data.dataset import Dataset, Standardisation
from widebnn.data.mnist import fashion_mnist, mnist
from widebnn.data.ood_split import InAndOut, ood_split
from widebnn.data.svhn import svhn

__all__ = [
    "Dataset",
    "InAndOut",
    "Standardisation",
    "boston",
    "cifar10",
    "diabetes",
    "digits",
    "fashion_mnist",
    "flip_and_crop",
    "mnist",
    "ood_split",
    "svhn",
]
