"""Underdamped Langevin Monte Carlo: one leapfrog step at a time, the momentum only partly refreshed.

Horowitz, "A generalized guided Monte Carlo algorithm", Physics Letters B 268 (1991); the sampler of Hron
et al. 2022, §4.2, who switch the correction off and keep the acceptance that it would have above 98 %.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._check import Number, fraction
from widebnn.samplers._base import Info, Potential, Sampler, accept
from widebnn.samplers._hmc import HMCState, leapfrog
from widebnn.tree import Position, normal_like

__all__ = ["langevin"]


class LangevinState(NamedTuple):
    position: Position
    potential: Float[Array, ""]
    gradient: Position
    momentum: Position


def langevin(potential: Potential, step_size: Number, damping: Number, metropolis: bool = True) -> Sampler:
    """Underdamped Langevin dynamics for a density proportional to exp(−½‖u‖² − U(u)).

    m ← √(1 − γ) m + √γ ξ, one leapfrog step, accepted with −ΔH; on rejection the momentum flips, without
    which the target would not be invariant.

    Parameters
    ----------
    potential
        U, minus the log density relative to N(0, I); takes a pytree of arrays, returns a scalar.
    step_size
        ε > 0 of the leapfrog; at U = 0 it is stable below 2.
    damping
        γ in (0, 1], the share of the momentum's variance that is refreshed; 1 gives MALA.
    metropolis
        Whether to correct. Without it every move is made and the chain is biased by O(ε²);
        `acceptance_rate` still reports what the correction would have said.

    Raises
    ------
    ValueError
        If `step_size` is not positive or `damping` lies outside (0, 1].
    """
    integrate = leapfrog(potential, step_size, num_steps=1)
    fraction(damping=damping)
    keep, refresh = jnp.sqrt(1 - damping), jnp.sqrt(damping)

    def init(position, rng_key=None):
        if rng_key is None:
            raise TypeError("rng_key is required: the momentum is part of the state and drawn with it")
        value, gradient = jax.value_and_grad(potential)(position)
        return LangevinState(position, value, gradient, normal_like(rng_key, position))

    def step(rng_key, state):
        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        m = jax.tree.map(lambda m, xi: keep * m + refresh * xi, state.momentum, noise)
        start = HMCState(state.position, state.potential, state.gradient)
        end, end_m, energy_change = integrate(start, m)
        flipped = LangevinState(*start, momentum=jax.tree.map(jnp.negative, m))
        proposal = LangevinState(*end, momentum=end_m)
        kept, info = accept(accept_key, -energy_change, flipped, proposal)
        if metropolis:
            return kept, info
        return proposal, Info(info.acceptance_rate, jnp.ones((), bool))

    return Sampler(init, step, (potential,))
