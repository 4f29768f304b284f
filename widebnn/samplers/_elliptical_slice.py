"""Elliptical slice sampling: the whole ellipse through the state and a prior draw; nothing to tune.

Murray, Adams & MacKay, "Elliptical slice sampling", AISTATS 2010.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from widebnn.samplers._base import PotentialState, Sampler
from widebnn.tree import normal_like

MAX_EVALUATIONS = 100
"""The bracket then is narrower than rounding; the chain stays where it is, which leaves the target alone."""


class EllipticalSliceInfo(NamedTuple):
    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    num_integration_steps: Int[Array, ""]
    """Potentials evaluated."""


class _Search(NamedTuple):
    proposal: PotentialState
    angle: Float[Array, ""]
    low: Float[Array, ""]
    high: Float[Array, ""]
    num_evaluations: Int[Array, ""]


class elliptical_slice(Sampler):
    """The slice sampler on $v(α) = u cos α + ξ sin α$ for a density proportional to $exp(−½‖u‖² − U(u))$.

    A level $U(u) + Exp(1)$ is drawn, then angles from a bracket that shrinks towards the state until
    $U(v(α))$ is below the level: every step moves. There is nothing to tune.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> template = jax.ShapeDtypeStruct((2,), jnp.float32)
    >>> potential = lambda u: jnp.sum((u - 1) ** 2)
    >>> target = wb.targets.from_potential(potential, template)
    >>> sampler = wb.samplers.elliptical_slice()
    >>> draws = wb.sample(
    ...     jax.random.key(0), target, sampler, num_samples=100, progress=False
    ... )
    >>> draws.stats["is_accepted"].all().item()
    True
    """

    def init(self, target, position, rng_key=None):
        return PotentialState(position, target.potential(position))

    def step(self, target, rng_key, state):
        noise_key, level_key, angle_key, search_key = jax.random.split(rng_key, 4)
        xi = normal_like(noise_key, state.position)
        dtype = state.potential.dtype
        level = state.potential + jax.random.exponential(level_key, dtype=dtype)
        angle = jax.random.uniform(angle_key, dtype=dtype, maxval=2 * jnp.pi)

        def at(angle):
            cos, sin = jnp.cos(angle), jnp.sin(angle)
            return self.init(target, jax.tree.map(lambda u, xi: cos * u + sin * xi, state.position, xi))

        def is_above(search):
            below = search.proposal.potential < level  # a potential that is not a number is not below
            return ~below & (search.num_evaluations < MAX_EVALUATIONS)

        def shrink(search):
            low = jnp.where(search.angle < 0, search.angle, search.low)
            high = jnp.where(search.angle < 0, search.high, search.angle)
            key = jax.random.fold_in(search_key, search.num_evaluations)
            angle = jax.random.uniform(key, dtype=dtype, minval=low, maxval=high)
            return _Search(at(angle), angle, low, high, search.num_evaluations + 1)

        first = _Search(at(angle), angle, angle - 2 * jnp.pi, angle, jnp.asarray(1))
        search = jax.lax.while_loop(is_above, shrink, first)
        moved = search.proposal.potential < level
        kept = jax.tree.map(lambda new, old: jnp.where(moved, new, old), search.proposal, state)
        return kept, EllipticalSliceInfo(moved.astype(dtype), moved, search.num_evaluations)
