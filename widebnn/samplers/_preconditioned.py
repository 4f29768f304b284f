"""A sampler in the coordinates in which a given Gaussian is N(0, I)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from widebnn.samplers._base import AnySampler, Potential, Sampler, check_potential
from widebnn.tree import Position

__all__ = ["Gaussian", "preconditioned"]


class Gaussian(NamedTuple):
    """N(m, LLᵀ) over positions.

    Attributes
    ----------
    mean
        m, a position of k coordinates.
    factor
        L, lower triangular, in the order of ``jax.flatten_util.ravel_pytree(mean)``.
    """

    mean: Position
    factor: Float[Array, "k k"]

    def at(self, v: Float[Array, " k"]) -> Position:
        """u = m + Lv."""
        mean, unravel = ravel_pytree(self.mean)
        return unravel(mean + self.factor @ v)

    def coordinates(self, position: Position) -> Float[Array, " k"]:
        """v = L⁻¹(u − m)."""
        centred = ravel_pytree(position)[0] - ravel_pytree(self.mean)[0]
        return jax.scipy.linalg.solve_triangular(self.factor, centred, lower=True)

    def draw(self, rng_key: Key[Array, ""]) -> Position:
        """A position from N(m, LLᵀ)."""
        return self.at(jax.random.normal(rng_key, (len(self.factor),), self.factor.dtype))


class PreconditionedState(NamedTuple):
    position: Position
    inside: Any


def preconditioned(
    potential: Potential, gaussian: Gaussian, make: Callable[[Potential], AnySampler]
) -> Sampler:
    """A sampler that moves v in place of u = m + Lv.

    A density that is nearly N(m, LLᵀ) in u is nearly N(0, I) in v, where samplers make long moves: its
    potential is U(m + Lv) + ½‖m + Lv‖² − ½‖v‖². The density that is sampled is the same, whatever the
    Gaussian.

    Parameters
    ----------
    potential
        U of the position u.
    gaussian
        m and L.
    make
        Function from a potential of v, (k,), to a sampler, such as `elliptical_slice`.

    Raises
    ------
    TypeError
        If `potential` or `make` is not callable.
    ValueError
        If the factor is not a square matrix of the mean's number of coordinates.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> def potential(u):
    ...     return jnp.sum((u - 3) ** 2)
    >>> limit = wb.samplers.Gaussian(mean=jnp.full(2, 2.0), factor=jnp.eye(2) / 3**0.5)
    >>> sampler = wb.samplers.preconditioned(potential, limit, wb.samplers.elliptical_slice)
    """
    check_potential(potential)
    if not callable(make):
        raise TypeError(f"make must be a function; got {make!r}")
    k = ravel_pytree(gaussian.mean)[0].size
    if jnp.shape(gaussian.factor) != (k, k):
        raise ValueError(
            f"gaussian.factor must have shape {(k, k)}, as the mean has {k} coordinates; "
            f"got {jnp.shape(gaussian.factor)}"
        )

    def of_coordinates(v):
        position = gaussian.at(v)
        u = ravel_pytree(position)[0]
        return potential(position) + (u @ u - v @ v) / 2

    sampler = make(of_coordinates)

    def init(position, rng_key=None):
        return PreconditionedState(position, sampler.init(gaussian.coordinates(position), rng_key=rng_key))

    def step(rng_key, state):
        inside, info = sampler.step(rng_key, state.inside)
        return PreconditionedState(gaussian.at(inside.position), inside), info

    return Sampler(init, step, (potential,))
