"""Random-walk Metropolis: the proposal that forgets the prior, and pays for every dimension.

Roberts, Gelman & Gilks, "Weak convergence and optimal scaling of random walk Metropolis algorithms",
Annals of Applied Probability 7 (1997): at a fixed acceptance the step shrinks as 1/√d.
"""

import jax

from widebnn._check import Number, positive
from widebnn._compile import lifted
from widebnn.samplers._base import Potential, Sampler, accept, check_potential
from widebnn.samplers._states import PotentialState
from widebnn.tree import half_square_difference, normal_like

__all__ = ["rwm"]


def rwm(potential: Potential, step_size: Number) -> Sampler:
    """Random-walk Metropolis for a density proportional to exp(−½‖u‖² − U(u)): it proposes v = u + βξ.

    Parameters
    ----------
    potential
        U, minus the log density relative to N(0, I); takes a pytree of arrays, returns a scalar.
    step_size
        β > 0, the coefficient of the noise.

    Raises
    ------
    TypeError
        If `potential` is not callable.
    ValueError
        If `step_size` is not positive.
    """
    check_potential(potential)
    positive(step_size=step_size)
    size = lifted(step_size)

    def init(position, rng_key=None):
        return PotentialState(position, potential(position))

    def step(rng_key, state):
        noise_key, accept_key = jax.random.split(rng_key)
        beta, noise = size(), normal_like(noise_key, state.position)
        proposal = init(jax.tree.map(lambda u, xi: u + beta * xi, state.position, noise))
        log_ratio = (
            state.potential - proposal.potential - half_square_difference(proposal.position, state.position)
        )
        return accept(accept_key, log_ratio, state, proposal)

    return Sampler(init, step, (potential,))
