"""Real data sets as one `Dataset` each: standardised inputs, centred targets, and where they came from."""

from widebnn.data.bundled import diabetes, digits
from widebnn.data.cifar10 import cifar10
from widebnn.data.dataset import Dataset, Standardisation

__all__ = ["Dataset", "Standardisation", "cifar10", "diabetes", "digits"]
