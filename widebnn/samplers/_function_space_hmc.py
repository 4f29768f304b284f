"""Function-space HMC: the Gaussian part of the dynamics solved exactly, so that only ∇U limits the step.

Beskos, Pinski, Sanz-Serna & Stuart, "Hybrid Monte Carlo on Hilbert spaces", Stochastic Processes and their
Applications 121 (2011). At U = 0 every proposal is accepted at any step, in any dimension.
"""

import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Int

from widebnn._check import Number, at_least, fraction, quarter_turn, share
from widebnn.samplers._base import MomentumState, Potential, Sampler, accept, required_key
from widebnn.tree import inner_product, normal_like

MAX_STEPS = 32
"""Kicks of a proposal, unless more are asked for: where steps must be shorter still, a walk it is."""


def rotations(potential: Potential, step_size: Number):
    """Half a kick −(h/2)∇U, the exact rotation of (u, m) by the angle h, half a kick; `num_steps` times.

    Returns
    -------
    A function (state, num_steps) ↦ (state', ΔH) with H = U + ½‖u‖² + ½‖m‖². Reversible: from state' with its
    momentum turned round it leads back. A rotation conserves ½‖u‖² + ½‖m‖², so that ΔH is the change of U
    and the work of the kicks, none of which is large.
    """

    def kick(m, g):
        return jax.tree.map(lambda m, g: m - step_size / 2 * g, m, g)

    def work(m, g):
        """½‖m − (h/2)g‖² − ½‖m‖²."""
        return step_size**2 / 8 * inner_product(g, g) - step_size / 2 * inner_product(m, g)

    def one_step(_, carry):
        state, energy = carry
        cos, sin = jnp.cos(step_size), jnp.sin(step_size)
        m = kick(state.momentum, state.gradient)
        u = jax.tree.map(lambda u, m: cos * u + sin * m, state.position, m)
        m = jax.tree.map(lambda u, m: cos * m - sin * u, state.position, m)
        value, gradient = jax.value_and_grad(potential)(u)
        energy += work(state.momentum, state.gradient) + work(m, gradient)
        return MomentumState(u, value, gradient, kick(m, gradient)), energy

    def integrate(state: MomentumState, num_steps: int | Int[Array, ""]):
        end, kinetic = jax.lax.fori_loop(0, num_steps, one_step, (state, jnp.zeros_like(state.potential)))
        return end, end.potential - state.potential + kinetic

    return integrate


class function_space_hmc(Sampler):
    """HMC for a density proportional to $exp(−½‖u‖² − U(u))$ whose moves are exact at $U = 0$.

    $m ← √(1 − γ) m + √γ ξ$, then `num_steps` times half a kick $−(h/2)∇U$, a rotation of $(u, m)$ by the
    angle $h$ and half a kick. The proposal is accepted with probability $min(1, exp(−ΔH))$,
    $H = U + ½‖u‖² + ½‖m‖²$; on rejection the momentum changes sign.

    Parameters
    ----------
    step_size
        $h$ in $(0, π/2]$, the angle of a rotation, in radians: $π/2$ in all exchanges position and momentum.
    num_steps
        Kicks of a proposal, one gradient each; by default $round(1/h)$, but at least 1 and at most 32: one
        radian in all.
    damping
        $γ$ in (0, 1], the share of the momentum's variance that is refreshed; all of it by default.
    jitter
        In [0, 1]: the angle of each proposal is uniform on $(1 ± jitter) h$, at most $π/2$, so that no
        trajectory resonates with a period of the target. All chains make the same number of kicks, since
        chains that run side by side wait for one another.
    """

    step_size: Number
    num_steps: int | Int[Array, ""] | None = None
    damping: Number = 1.0
    jitter: Number = 0.0

    def __post_init__(self):
        quarter_turn(step_size=self.step_size)
        if self.num_steps is not None and not isinstance(self.num_steps, jax.core.Tracer):
            at_least(1, num_steps=self.num_steps)
        fraction(damping=self.damping)
        share(jitter=self.jitter)

    def init(self, target, position, rng_key=None):
        momentum = normal_like(required_key(rng_key), position)
        return MomentumState(position, *jax.value_and_grad(target.potential)(position), momentum)

    def step(self, target, rng_key, state):
        noise_key, angle_key, accept_key = jax.random.split(rng_key, 3)
        keep, refresh = jnp.sqrt(1 - self.damping), jnp.sqrt(self.damping)
        noise = normal_like(noise_key, state.position)
        m = jax.tree.map(lambda m, xi: keep * m + refresh * xi, state.momentum, noise)
        h = jnp.asarray(self.step_size, jnp.result_type(*jax.tree.leaves(state.position)))
        num_steps = self.num_steps
        if num_steps is None:
            num_steps = jnp.clip(jnp.round(1 / h), 1, MAX_STEPS).astype(int)
        angle = (1 + self.jitter * jax.random.uniform(angle_key, dtype=h.dtype, minval=-1, maxval=1)) * h
        angle = jnp.minimum(angle, jnp.pi / 2)
        proposal, energy_change = rotations(target.potential, angle)(state._replace(momentum=m), num_steps)
        flipped = state._replace(momentum=jax.tree.map(jnp.negative, m))
        return accept(accept_key, -energy_change, flipped, proposal)
