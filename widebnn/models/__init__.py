"""Networks in NTK parametrisation: every parameter has the prior N(0, 1)."""

from widebnn.models.bnn import BNN, Parameters
from widebnn.models.dense import Dense
from widebnn.models.embedding import Embedding, from_linen, from_nnx
from widebnn.models.fcn import ACTIVATIONS, FCN

__all__ = ["ACTIVATIONS", "BNN", "FCN", "Dense", "Embedding", "Parameters", "from_linen", "from_nnx"]
