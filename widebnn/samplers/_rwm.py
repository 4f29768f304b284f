"""Random-walk Metropolis: the proposal that forgets the prior, and pays for every dimension.

Roberts, Gelman & Gilks, "Weak convergence and optimal scaling of random walk Metropolis algorithms",
Annals of Applied Probability 7 (1997): at a fixed acceptance the step shrinks as 1/√d.
"""

import jax

from widebnn._check import Number, positive
from widebnn.samplers._base import PotentialState, Sampler, accept
from widebnn.tree import half_square_difference, normal_like


class rwm(Sampler):
    """Random-walk Metropolis for a density proportional to $exp(−½‖u‖² − U(u))$: it proposes $v = u + βξ$.

    Parameters
    ----------
    step_size
        $β > 0$, the coefficient of the noise.
    """

    step_size: Number

    def __post_init__(self):
        positive(step_size=self.step_size)

    def init(self, target, position, rng_key=None):
        return PotentialState(position, target.potential(position))

    def step(self, target, rng_key, state):
        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        moved = jax.tree.map(lambda u, xi: u + self.step_size * xi, state.position, noise)
        proposal = self.init(target, moved)
        log_ratio = (
            state.potential - proposal.potential - half_square_difference(proposal.position, state.position)
        )
        return accept(accept_key, log_ratio, state, proposal)
