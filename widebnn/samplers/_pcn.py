"""Preconditioned Crank–Nicolson: a random walk that leaves N(0, I) where it is.

v = √(1 − β²) u + β ξ maps N(0, I) to itself, so that the acceptance ratio holds the potential alone and no
dimension enters it: as U flattens with width, every step is accepted (Pezzetti et al. 2025, Theorem 2.1).

Cotter, Roberts, Stuart & White, "MCMC methods for functions", Statistical Science 28 (2013).
"""

import jax
import jax.numpy as jnp

from widebnn._check import Number, fraction
from widebnn.samplers._base import PotentialState, Sampler, accept
from widebnn.tree import normal_like


class pcn(Sampler):
    """The pCN sampler for a density proportional to $exp(−½‖u‖² − U(u))$.

    It proposes $v = √(1 − β²) u + βξ$, accepted with probability $min(1, exp(U(u) − U(v)))$.

    Parameters
    ----------
    step_size
        $β$ in (0, 1], the coefficient of the noise; 1 proposes independent draws from the prior.
    """

    step_size: Number

    def __post_init__(self):
        fraction(step_size=self.step_size)

    def init(self, target, position, rng_key=None):
        return PotentialState(position, target.potential(position))

    def step(self, target, rng_key, state):
        beta, shrink = self.step_size, jnp.sqrt(1 - self.step_size**2)
        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        moved = jax.tree.map(lambda u, xi: shrink * u + beta * xi, state.position, noise)
        proposal = self.init(target, moved)
        return accept(accept_key, state.potential - proposal.potential, state, proposal)
