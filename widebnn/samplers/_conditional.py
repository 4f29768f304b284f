"""A kernel on some parts of the position, the rest held: Metropolis within Gibbs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from widebnn.samplers._base import AnySampler, Potential, Sampler
from widebnn.tree import Position

__all__ = ["ConditionalState", "conditional"]


class ConditionalState(NamedTuple):
    position: Position


def conditional(
    potential: Potential, part: str | tuple[str, ...], make: Callable[[Potential], AnySampler]
) -> Sampler:
    """A step of a sampler of the conditional density of one part of the position, or of several.

    Parameters
    ----------
    potential
        U of the whole position, a named tuple.
    part
        Field that moves, or a tuple of fields that move together.
    make
        Function from a potential of that field, or of a dict of those fields, to a sampler, such as
        `elliptical_slice`.

    Raises
    ------
    TypeError
        If `potential` or `make` is not callable.
    ValueError
        When a chain starts, if the position has no such field.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import jax
    >>> import widebnn as wb
    >>> class Position(NamedTuple):
    ...     weights: jax.Array
    ...     scale: jax.Array
    >>> def potential(u):
    ...     return (u.weights**2).sum() + u.scale**2
    >>> first = wb.samplers.conditional(potential, "scale", wb.samplers.elliptical_slice)
    >>> second = wb.samplers.conditional(potential, "weights", lambda of: wb.samplers.pcn(of, 0.3))
    >>> sampler = wb.samplers.alternate(first, second)
    """
    for name, function in {"potential": potential, "make": make}.items():
        if not callable(function):
            raise TypeError(f"{name} must be a function; got {function!r}")

    parts = (part,) if isinstance(part, str) else part

    def init(position: Any, rng_key=None):
        fields = getattr(position, "_fields", ())
        for name in parts:
            if name not in fields:
                raise ValueError(f"part must be a field of the position, one of {fields}; got {name!r}")
        return ConditionalState(position)

    def step(rng_key, state):
        def replaced(value):
            return state.position._replace(**({part: value} if isinstance(part, str) else value))

        def of_parts(value):
            return potential(replaced(value))

        init_key, step_key = jax.random.split(rng_key)
        sampler = make(of_parts)
        values = {name: getattr(state.position, name) for name in parts}
        inside = sampler.init(values[part] if isinstance(part, str) else values, rng_key=init_key)
        inside, info = sampler.step(step_key, inside)
        return ConditionalState(replaced(inside.position)), info

    return Sampler(init, step, (potential,))
