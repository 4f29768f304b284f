"""Two kernels in turn: what one of them does not move, the other does."""

from typing import NamedTuple

import jax

from widebnn.samplers._base import Sampler, is_sampler
from widebnn.tree import Position

__all__ = ["alternate"]


class AlternateState(NamedTuple):
    position: Position


def alternate(first: Sampler, second: Sampler) -> Sampler:
    """A step of `first`, then a step of `second`, on the same target: invariant if both are.

    Each starts from the position alone, at the cost of one evaluation, and with a fresh momentum where it has
    one. The report is that of `first`, which can therefore be tuned as if it ran alone.

    Parameters
    ----------
    first, second
        Samplers of the same density, such as `function_space_hmc` for all layers and `unitwise` for the top
        one.

    Raises
    ------
    TypeError
        If one of them is not a sampler.
    """
    for name, sampler in {"first": first, "second": second}.items():
        if not is_sampler(sampler):
            raise TypeError(f"{name} must be a sampler (init, step); got {sampler!r}")

    def init(position, rng_key=None):
        return AlternateState(position)

    def step(rng_key, state):
        reports = []
        for sampler, key in zip((first, second), jax.random.split(rng_key)):
            init_key, step_key = jax.random.split(key)
            state, info = sampler.step(step_key, sampler.init(state.position, rng_key=init_key))
            reports.append(info)
        return AlternateState(state.position), reports[0]

    return Sampler(init, step, tuple(U for part in (first, second) for U in getattr(part, "potentials", ())))
