"""The limit of infinite width: kernels of networks, and Gaussian-process regression with them.

Kernels of dense networks are in closed form; neural-tangents computes those of convolutional ones.
"""

from widebnn.nngp._neural_tangents import neural_tangents
from widebnn.nngp.activations import EXPECTATIONS
from widebnn.nngp.evidence import EvidenceSlope, evidence_slope
from widebnn.nngp.kernels import Kernel, nngp_kernel, ntk_kernel, stax_kernel
from widebnn.nngp.process import GaussianProcess, gaussian_process

__all__ = [
    "EXPECTATIONS",
    "EvidenceSlope",
    "GaussianProcess",
    "Kernel",
    "evidence_slope",
    "gaussian_process",
    "neural_tangents",
    "nngp_kernel",
    "ntk_kernel",
    "stax_kernel",
]
