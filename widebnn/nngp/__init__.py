"""The limit of infinite width: kernels of dense networks in closed form, and Gaussian-process regression."""

from widebnn.nngp._neural_tangents import neural_tangents
from widebnn.nngp.activations import EXPECTATIONS
from widebnn.nngp.kernels import Kernel, nngp_kernel, ntk_kernel, stax_kernel
from widebnn.nngp.process import GaussianProcess, gaussian_process

__all__ = [
    "EXPECTATIONS",
    "GaussianProcess",
    "Kernel",
    "gaussian_process",
    "neural_tangents",
    "nngp_kernel",
    "ntk_kernel",
    "stax_kernel",
]
