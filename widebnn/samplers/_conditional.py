"""A kernel on one part of the position, the rest held: Metropolis within Gibbs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from widebnn.samplers._base import AnySampler, Potential, Sampler
from widebnn.tree import Position

__all__ = ["ConditionalState", "conditional"]


class ConditionalState(NamedTuple):
    position: Position


def conditional(potential: Potential, part: str, make: Callable[[Potential], AnySampler]) -> Sampler:
    """A step of a sampler of the conditional density of one part of the position.

    Parameters
    ----------
    potential
        U of the whole position, a named tuple.
    part
        Field that moves.
    make
        Function from a potential of that field to a sampler, such as `elliptical_slice`.

    Raises
    ------
    TypeError
        If `potential` or `make` is not callable.
    ValueError
        If a position has no such field, when a chain starts.
    """
    for name, function in {"potential": potential, "make": make}.items():
        if not callable(function):
            raise TypeError(f"{name} must be a function; got {function!r}")

    def init(position: Any, rng_key=None):
        fields = getattr(position, "_fields", ())
        if part not in fields:
            raise ValueError(f"part must be a field of the position, one of {fields}; got {part!r}")
        return ConditionalState(position)

    def step(rng_key, state):
        def of_part(value):
            return potential(state.position._replace(**{part: value}))

        init_key, step_key = jax.random.split(rng_key)
        sampler = make(of_part)
        inside = sampler.init(getattr(state.position, part), rng_key=init_key)
        inside, info = sampler.step(step_key, inside)
        return ConditionalState(state.position._replace(**{part: inside.position})), info

    return Sampler(init, step, (potential,))
