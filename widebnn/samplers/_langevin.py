"""Underdamped Langevin Monte Carlo: one leapfrog step at a time, the momentum only partly refreshed.

Horowitz, "A generalized guided Monte Carlo algorithm", Physics Letters B 268 (1991); the sampler of Hron
et al. 2022, §4.2, who switch the correction off and keep the acceptance that it would have above 98 %.
"""

from dataclasses import field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widebnn._check import Number, at_least, fraction, positive
from widebnn._pytree import STATIC
from widebnn.samplers._base import GradientState, Info, Sampler, accept, required_key
from widebnn.samplers._hmc import leapfrog
from widebnn.tree import Position, normal_like


class Flat(NamedTuple):
    """D coordinates x along which U is constant, and their momenta along · x/‖x‖ + across · e, e ⊥ x.

    The law of the three numbers does not depend on the directions of x and e: they are a Markov chain.
    """

    norm: Float[Array, ""]
    along: Float[Array, ""]
    across: Float[Array, ""]


class LangevinState(NamedTuple):
    """A `MomentumState`, and what is carried of the flat directions where there are any."""

    position: Position
    potential: Float[Array, ""]
    gradient: Position
    momentum: Position
    flat: Flat | None = None


class langevin(Sampler):
    """Underdamped Langevin dynamics for a density proportional to $exp(−½‖u‖² − U(u))$.

    $m ← √(1 − γ) m + √γ ξ$, then one leapfrog step, accepted with probability $min(1, exp(−ΔH))$,
    $H = U + ½‖u‖² + ½‖m‖²$. On rejection the momentum changes sign, without which the target would not be
    invariant.

    Parameters
    ----------
    step_size
        $ε > 0$ of the leapfrog; at $U = 0$ it is stable below 2.
    damping
        $γ$ in (0, 1], the share of the momentum's variance that is refreshed; 1 gives MALA.
    metropolis
        Whether to accept or reject. Without it every move is made and the chain is biased by $O(ε²)$;
        "acceptance_rate" still reports what the acceptance probability would have been.
    num_flat
        $D$, the number of further coordinates $x ~ N(0, I)$ on which $U$ does not depend, 0 or at least 2.
        They enter the acceptance through their part $(ε²/8)(‖x′‖² − ‖x‖²)$ of $ΔH$ alone, so that $‖x‖$ and
        two numbers of their momentum are carried in their place: the coordinates that $U$ depends on have
        exactly the law that they have when the sampler runs on all coordinates, at the cost of those alone.
    """

    step_size: Number
    damping: Number
    metropolis: bool = field(default=True, metadata=STATIC)
    num_flat: int = field(default=0, metadata=STATIC)

    def __post_init__(self):
        positive(step_size=self.step_size)
        fraction(damping=self.damping)
        if at_least(0, num_flat=self.num_flat) == 1:
            raise ValueError("num_flat must be 0 or at least 2; got 1")

    def init(self, target, position, rng_key=None):
        rng_key = required_key(rng_key)
        value, gradient = jax.value_and_grad(target.potential)(position)
        state = LangevinState(position, value, gradient, normal_like(rng_key, position))
        if self.num_flat == 0:
            return state
        keys = jax.random.split(jax.random.fold_in(rng_key, 1), 3)
        norm, across = (_chi(key, self.num_flat - i, value.dtype) for i, key in enumerate(keys[:2]))
        return state._replace(flat=Flat(norm, jax.random.normal(keys[2], dtype=value.dtype), across))

    def step(self, target, rng_key, state):
        keep, refresh = jnp.sqrt(1 - self.damping), jnp.sqrt(self.damping)
        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        m = jax.tree.map(lambda m, xi: keep * m + refresh * xi, state.momentum, noise)
        start = GradientState(state.position, state.potential, state.gradient)
        end, end_m, energy_change = leapfrog(target.potential, self.step_size, num_steps=1)(start, m)
        flipped = state._replace(momentum=jax.tree.map(jnp.negative, m))
        proposal = state._replace(**end._asdict(), momentum=end_m)
        if self.num_flat > 0:
            flat = self._refreshed(jax.random.fold_in(noise_key, 1), state.flat, keep, refresh)
            end_flat, change = flat_leapfrog(flat, self.step_size)
            energy_change += change
            flipped = flipped._replace(flat=flat._replace(along=-flat.along))
            proposal = proposal._replace(flat=end_flat)
        kept, info = accept(accept_key, -energy_change, flipped, proposal)
        if self.metropolis:
            return kept, info
        return proposal, Info(info.acceptance_rate, jnp.ones((), bool))

    def _refreshed(self, rng_key, flat, keep, refresh):
        keys = jax.random.split(rng_key, 2)
        along, across = jax.random.normal(keys[0], (2,), flat.norm.dtype)
        others = _chi(keys[1], self.num_flat - 2, flat.norm.dtype)
        return Flat(
            flat.norm,
            keep * flat.along + refresh * along,
            jnp.hypot(keep * flat.across + refresh * across, refresh * others),
        )


def flat_leapfrog(flat: Flat, step_size: Number) -> tuple[Flat, Float[Array, ""]]:
    """A leapfrog step of the flat directions, in the plane of x and e, and what it adds to the energy.

    It conserves ½‖m‖² + ½(1 − ε²/4)‖x‖².
    """
    r, along, across = flat
    moved = jnp.stack([step_size * along - step_size**2 / 2 * r, step_size * across])
    x = jnp.stack([r, jnp.zeros_like(r)])
    end = x + moved
    m = jnp.stack([along, across]) - step_size / 2 * (x + end)
    norm = jnp.hypot(end[0], end[1])
    new = Flat(norm, jnp.sum(m * end) / norm, jnp.abs(m[0] * end[1] - m[1] * end[0]) / norm)
    return new, step_size**2 / 8 * jnp.sum(moved * (2 * x + moved))


def _chi(rng_key, degrees, dtype):
    """The norm of so many standard normal numbers."""
    if degrees == 0:
        return jnp.zeros((), dtype)
    return jnp.sqrt(jax.random.chisquare(rng_key, degrees, dtype=dtype))
