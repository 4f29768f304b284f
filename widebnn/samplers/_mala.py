"""MALA: one Euler step of Langevin diffusion towards the target, corrected by Metropolis–Hastings.

Roberts & Tweedie, "Exponential convergence of Langevin distributions and their discrete approximations",
Bernoulli 2 (1996).
"""

import jax

from widebnn._check import Number, positive
from widebnn.samplers._base import GradientState, Sampler, accept
from widebnn.tree import half_square_difference, normal_like


class mala(Sampler):
    """MALA for a density proportional to $exp(−½‖u‖² − U(u))$: it proposes $v = u − (ε²/2)(u + ∇U(u)) + εξ$.

    Parameters
    ----------
    step_size
        $ε > 0$, the coefficient of the noise.

    Raises
    ------
    ValueError
        If `step_size` is not positive.
    """

    step_size: Number

    def __post_init__(self):
        positive(step_size=self.step_size)

    def init(self, target, position, rng_key=None):
        return GradientState(position, *jax.value_and_grad(target.potential)(position))

    def step(self, target, rng_key, state):
        epsilon = self.step_size

        def propose(u, g, xi):
            return u - epsilon**2 / 2 * (u + g) + epsilon * xi

        def noise_back(xi, u, gu, v, gv):
            # the ξ′ that proposes u from v, with v put in: two proposal densities differ by ½‖ξ′‖² − ½‖ξ‖²
            return epsilon / 2 * (u + gu + v + gv) - xi

        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        proposal = self.init(target, jax.tree.map(propose, state.position, state.gradient, noise))
        back = jax.tree.map(
            noise_back, noise, state.position, state.gradient, proposal.position, proposal.gradient
        )
        log_ratio = (
            state.potential
            - proposal.potential
            - half_square_difference(proposal.position, state.position)
            - half_square_difference(back, noise)
        )
        return accept(accept_key, log_ratio, state, proposal)
