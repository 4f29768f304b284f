"""Samplers of a density proportional to exp(−½‖u‖² − U(u)), most of them for any U and any pytree u.

ξ ~ N(0, I) stands for fresh noise in the shape of u, and m for a momentum.
"""

from widebnn.samplers._alternate import alternate
from widebnn.samplers._base import Info, Potential, Sampler, State, accept
from widebnn.samplers._conditional import conditional
from widebnn.samplers._elliptical_slice import elliptical_slice
from widebnn.samplers._function_space_hmc import function_space_hmc
from widebnn.samplers._hmc import hmc, leapfrog
from widebnn.samplers._langevin import langevin
from widebnn.samplers._mala import mala
from widebnn.samplers._pcn import pcn
from widebnn.samplers._pcnl import pcnl
from widebnn.samplers._preconditioned import Gaussian, preconditioned
from widebnn.samplers._readout_scales import readout_scales
from widebnn.samplers._rescaled import rescaled
from widebnn.samplers._rwm import rwm
from widebnn.samplers._states import GradientState, MomentumState, PotentialState
from widebnn.samplers._tuned import Tuned, tuned
from widebnn.samplers._unitwise import Units, unitwise
from widebnn.samplers._with_scales import with_scales

__all__ = [
    "Gaussian",
    "GradientState",
    "Info",
    "MomentumState",
    "Potential",
    "PotentialState",
    "Sampler",
    "State",
    "Tuned",
    "Units",
    "accept",
    "alternate",
    "conditional",
    "elliptical_slice",
    "function_space_hmc",
    "hmc",
    "langevin",
    "leapfrog",
    "mala",
    "pcn",
    "pcnl",
    "preconditioned",
    "readout_scales",
    "rescaled",
    "rwm",
    "tuned",
    "unitwise",
    "with_scales",
]
