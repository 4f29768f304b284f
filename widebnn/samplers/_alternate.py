"""Two kernels in turn: what one of them does not move, the other does."""

from dataclasses import replace
from typing import ClassVar

import jax

from widebnn.samplers._base import PositionState, Sampler, check_sampler


class alternate(Sampler):
    """A step of `first`, then a step of `second`, on the same target: invariant if both are.

    Each starts from the position alone, at the cost of one evaluation, and with a fresh momentum where it has
    one. The report is that of `first`, which can therefore be tuned as if it ran alone.

    Parameters
    ----------
    first, second
        Samplers, such as `function_space_hmc` for all layers and `unitwise` for the top one.
    """

    tunes: ClassVar[str] = "first"

    first: Sampler
    second: Sampler

    def __post_init__(self):
        check_sampler(first=self.first, second=self.second)

    def prepare(self, target):
        return replace(self, first=self.first.prepare(target), second=self.second.prepare(target))

    def init(self, target, position, rng_key=None):
        return PositionState(position)

    def step(self, target, rng_key, state):
        reports = []
        for sampler, key in zip((self.first, self.second), jax.random.split(rng_key)):
            init_key, step_key = jax.random.split(key)
            state, info = sampler.step(target, step_key, sampler.init(target, state.position, init_key))
            reports.append(info)
        return PositionState(state.position), reports[0]
