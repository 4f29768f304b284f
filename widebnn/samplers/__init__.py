"""Samplers of targets, most of them for any potential and any pytree.

A sampler is a pytree of its settings and meets the target at the call, ``init(target, position, rng_key)``
and ``step(target, rng_key, state)``. The density is proportional to $exp(−½‖u‖² − U(u))$ at the position $u$;
$ξ ~ N(0, I)$ stands for fresh noise in the shape of $u$, and $m$ for a momentum.
"""

from widebnn.samplers._alternate import alternate
from widebnn.samplers._base import (
    GradientState,
    Info,
    Kernel,
    MomentumState,
    Potential,
    PotentialState,
    Sampler,
    State,
    accept,
)
from widebnn.samplers._elliptical_slice import elliptical_slice
from widebnn.samplers._from_blackjax import from_blackjax
from widebnn.samplers._function_space_hmc import function_space_hmc
from widebnn.samplers._hmc import hmc, leapfrog, mala
from widebnn.samplers._langevin import langevin
from widebnn.samplers._pcn import pcn
from widebnn.samplers._pcnl import pcnl
from widebnn.samplers._rwm import rwm
from widebnn.samplers._tuned import tuned
from widebnn.samplers._unitwise import unitwise

__all__ = [
    "GradientState",
    "Info",
    "Kernel",
    "MomentumState",
    "Potential",
    "PotentialState",
    "Sampler",
    "State",
    "accept",
    "alternate",
    "elliptical_slice",
    "from_blackjax",
    "function_space_hmc",
    "hmc",
    "langevin",
    "leapfrog",
    "mala",
    "pcn",
    "pcnl",
    "rwm",
    "tuned",
    "unitwise",
]
