"""A sampler in the coordinates in which a given Gaussian is N(0, I)."""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from widebnn.samplers._base import Density, Sampler, check_sampler
from widebnn.tree import Position


class Gaussian(NamedTuple):
    """$N(m, LLᵀ)$ over positions.

    Attributes
    ----------
    mean
        $m$, a position of $k$ coordinates.
    factor
        $L$, lower triangular, in the order of ``jax.flatten_util.ravel_pytree(mean)``.
    """

    mean: Position
    factor: Float[Array, "k k"]

    def at(self, v: Float[Array, " k"]) -> Position:
        """$u = m + Lv$."""
        mean, unravel = ravel_pytree(self.mean)
        return unravel(mean + self.factor @ v)

    def coordinates(self, position: Position) -> Float[Array, " k"]:
        """$v = L⁻¹(u − m)$."""
        centred = ravel_pytree(position)[0] - ravel_pytree(self.mean)[0]
        return jax.scipy.linalg.solve_triangular(self.factor, centred, lower=True)

    def draw(self, rng_key: Key[Array, ""]) -> Position:
        """A position from $N(m, LLᵀ)$."""
        return self.at(jax.random.normal(rng_key, (len(self.factor),), self.factor.dtype))


class PreconditionedState(NamedTuple):
    position: Position
    inside: Any


class preconditioned(Sampler):
    """A sampler that moves $v$ in place of $u = m + Lv$.

    A density that is nearly $N(m, LLᵀ)$ in $u$ is nearly $N(0, I)$ in $v$, where samplers make long moves:
    its potential is $U(m + Lv) + ½‖m + Lv‖² − ½‖v‖²$. The density that is sampled is the same, whatever the
    Gaussian.

    Parameters
    ----------
    gaussian
        $m$ and $L$.
    sampler
        Sampler of $v$, $(k,)$, by its potential, such as `elliptical_slice`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> factor = jnp.eye(2) / 3**0.5
    >>> limit = wb.samplers.Gaussian(mean=jnp.full(2, 2.0), factor=factor)
    >>> slices = wb.samplers.elliptical_slice()
    >>> sampler = wb.samplers.preconditioned(limit, slices)
    """

    tunes: ClassVar[str] = "sampler"

    gaussian: Gaussian
    sampler: Sampler

    def __post_init__(self):
        check_sampler(sampler=self.sampler)
        k = sum(jnp.size(leaf) for leaf in jax.tree.leaves(self.gaussian.mean))
        if jnp.shape(self.gaussian.factor) != (k, k):
            raise ValueError(
                f"gaussian.factor must have shape {(k, k)}, as the mean has {k} coordinates; "
                f"got {jnp.shape(self.gaussian.factor)}"
            )

    def init(self, target, position, rng_key=None):
        v = self.gaussian.coordinates(position)
        return PreconditionedState(position, self.sampler.init(self._density(target), v, rng_key))

    def step(self, target, rng_key, state):
        inside, info = self.sampler.step(self._density(target), rng_key, state.inside)
        return PreconditionedState(self.gaussian.at(inside.position), inside), info

    def _density(self, target: Any) -> Density:
        def of_coordinates(v):
            position = self.gaussian.at(v)
            u = ravel_pytree(position)[0]
            return target.potential(position) + (u @ u - v @ v) / 2

        return Density(of_coordinates)
