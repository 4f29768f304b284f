"""Samplers of a density proportional to exp(−½‖u‖² − U(u)), for any potential U and any pytree u."""

from widebnn.samplers.alternate import alternate
from widebnn.samplers.base import Info, Sampler
from widebnn.samplers.elliptical_slice import elliptical_slice
from widebnn.samplers.function_space_hmc import function_space_hmc
from widebnn.samplers.hmc import hmc
from widebnn.samplers.langevin import langevin
from widebnn.samplers.mala import mala
from widebnn.samplers.pcn import pcn
from widebnn.samplers.pcnl import pcnl
from widebnn.samplers.rwm import rwm
from widebnn.samplers.unitwise import Units, unitwise

__all__ = [
    "Info",
    "Sampler",
    "Units",
    "alternate",
    "elliptical_slice",
    "function_space_hmc",
    "hmc",
    "langevin",
    "mala",
    "pcn",
    "pcnl",
    "rwm",
    "unitwise",
]
