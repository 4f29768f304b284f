"""Preconditioned Crank–Nicolson: a random walk that leaves N(0, I) where it is.

v = √(1 − β²) u + β ξ maps N(0, I) to itself, so that the acceptance ratio holds the potential alone and no
dimension enters it: as U flattens with width, every step is accepted (Pezzetti et al. 2025, Theorem 2.1).

Cotter, Roberts, Stuart & White, "MCMC methods for functions", Statistical Science 28 (2013).
"""

import jax
import jax.numpy as jnp

from widebnn._check import Number, fraction
from widebnn._compile import lifted
from widebnn.samplers._base import Potential, Sampler, accept, check_potential
from widebnn.samplers._states import PotentialState
from widebnn.tree import normal_like

__all__ = ["pcn"]


def pcn(potential: Potential, step_size: Number) -> Sampler:
    """The pCN sampler for a density proportional to exp(−½‖u‖² − U(u)).

    It proposes v = √(1 − β²) u + βξ, accepted with probability min(1, exp(U(u) − U(v))).

    Parameters
    ----------
    potential
        U, minus the log density relative to N(0, I); takes a pytree of arrays, returns a scalar.
    step_size
        β in (0, 1], the coefficient of the noise; 1 proposes independent draws from the prior.

    Raises
    ------
    TypeError
        If `potential` is not callable.
    ValueError
        If `step_size` lies outside (0, 1].
    """
    check_potential(potential)
    fraction(step_size=step_size)
    size = lifted(step_size)

    def init(position, rng_key=None):
        return PotentialState(position, potential(position))

    def step(rng_key, state):
        beta = size()
        shrink = jnp.sqrt(1 - beta**2)
        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        proposal = init(jax.tree.map(lambda u, xi: shrink * u + beta * xi, state.position, noise))
        return accept(accept_key, state.potential - proposal.potential, state, proposal)

    return Sampler(init, step, (potential,))
