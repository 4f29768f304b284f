"""Preconditioned Crank–Nicolson Langevin: pCN with a drift along −∇U, exact for U = 0 at any step.

Cotter, Roberts, Stuart & White, "MCMC methods for functions", Statistical Science 28 (2013), eqs. 4.5–4.10;
Pezzetti et al. 2025, eqs. 8–9. Here ∇U is the gradient of the potential relative to N(0, I), prior and
Jacobian terms of φ included; with −log p(y | T(φ)) in its place the chain samples another distribution.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._check import Number, fraction
from widebnn.samplers._base import GradientState, Sampler, accept
from widebnn.tree import inner_product, normal_like


class pcnl(Sampler):
    """The pCNL sampler for a density proportional to $exp(−½‖u‖² − U(u))$.

    It proposes $v = [(2 − δ)u − 2δ∇U(u) + √(8δ) ξ]/(2 + δ)$, accepted with probability
    $min(1, exp(ρ(u, v) − ρ(v, u)))$ where
    $ρ(u, v) = U(u) + ½⟨v − u, ∇U(u)⟩ + (δ/4)⟨u + v, ∇U(u)⟩ + (δ/4)‖∇U(u)‖²$.

    Parameters
    ----------
    step_size
        $β$ in (0, 1], the coefficient $√(8δ)/(2 + δ)$ of the noise, as for pCN:
        $δ = 2(1 − √(1 − β²))/(1 + √(1 − β²))$.
    """

    step_size: Number

    def __post_init__(self):
        fraction(step_size=self.step_size)

    def init(self, target, position, rng_key=None):
        return GradientState(position, *jax.value_and_grad(target.potential)(position))

    def step(self, target, rng_key, state):
        beta, shrink = self.step_size, jnp.sqrt(1 - self.step_size**2)  # (2 − δ)/(2 + δ)
        delta = 2 * (1 - shrink) / (1 + shrink)

        def propose(u, g, xi):
            return shrink * u - (1 - shrink) * g + beta * xi

        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        proposal = self.init(target, jax.tree.map(propose, state.position, state.gradient, noise))
        return accept(accept_key, _log_ratio(state, proposal, delta), state, proposal)


def _log_ratio(old: GradientState, new: GradientState, delta: Number) -> Float[Array, ""]:
    # ρ(u, v) − ρ(v, u) with its terms paired: small differences are never formed from large numbers.
    u, v, gu, gv = old.position, new.position, old.gradient, new.gradient
    drift = inner_product(jax.tree.map(jnp.subtract, v, u), jax.tree.map(jnp.add, gu, gv)) / 2
    middle = jax.tree.map(lambda a, b, c, d: a + b + c + d, u, v, gu, gv)
    curvature = delta / 4 * inner_product(middle, jax.tree.map(jnp.subtract, gu, gv))
    return old.potential - new.potential + drift + curvature
