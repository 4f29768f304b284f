"""Networks in NTK parametrisation: every parameter is standard normal a priori."""

from widebnn.models.bnn import BNN, Parameters
from widebnn.models.cnn import CNN
from widebnn.models.conv import Conv
from widebnn.models.dense import Dense
from widebnn.models.embedding import Embedding, from_function, from_linen, from_nnx
from widebnn.models.fcn import ACTIVATIONS, FCN
from widebnn.models.wide_resnet import WideResNet20

__all__ = [
    "ACTIVATIONS",
    "BNN",
    "CNN",
    "FCN",
    "Conv",
    "Dense",
    "Embedding",
    "Parameters",
    "WideResNet20",
    "from_function",
    "from_linen",
    "from_nnx",
]
