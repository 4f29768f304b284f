"""A sampler leaves its target where it is: exact draws, a few steps, the same distribution.

After `tfp.mcmc`'s test of NUTS; the bound and its power are those of `dkwm`. Target and sampler are
arguments, so that one program serves all settings of a sampler, right and wrong.
"""

import functools
import inspect
from dataclasses import dataclass
from unittest import mock

import jax
import numpy as np

from widebnn.samplers import Sampler, accept

from .dkwm import FALSE_FAILURE, assert_distributed

NUM_DRAWS = 60_000


@functools.partial(jax.jit, static_argnums=4)
def after_steps(rng_key, target, sampler, positions, num_steps):
    """The states that steps lead to, and the mean acceptance rate."""
    num_draws = len(jax.tree.leaves(positions)[0])
    init_key, step_key = jax.random.split(rng_key)
    init, advance = (functools.partial(method, target) for method in (sampler.init, sampler.step))

    def step(states, key):
        states, info = jax.vmap(advance)(jax.random.split(key, num_draws), states)
        return states, info.acceptance_rate.mean()

    states = jax.vmap(init)(positions, jax.random.split(init_key, num_draws))
    states, rates = jax.lax.scan(step, states, jax.random.split(step_key, num_steps))
    return states, rates.mean()


@functools.cache
def _draws(density):
    return density().draw(np.random.default_rng(0), NUM_DRAWS)


@functools.cache
def _values(density):
    return jax.jit(lambda u: {name: jax.vmap(f)(u) for name, (f, _) in density().functions.items()})


def assert_conserved(sampler, density, target=None, acceptance=(0.2, 0.95)):
    """Three steps leave `density()` invariant, and reject enough for both branches to be taken.

    They are steps on its target, unless another is given.
    """
    target = density().target if target is None else target
    states, rate = after_steps(jax.random.key(0), target, sampler, _draws(density), 3)
    assert acceptance[0] < rate < acceptance[1], f"acceptance {rate:.3f} leaves a branch unexercised"
    functions = density().functions
    for name, values in _values(density)(states.position).items():
        assert_distributed(name, values, functions[name][1], FALSE_FAILURE / len(functions))
    return states


@dataclass(frozen=True, eq=False)
class altered(Sampler):
    """A sampler of which the acceptance is another; where both numbers are 1 nothing is wrong.

    The log ratio is multiplied by `scale`, where 0 accepts always, and the momentum that is kept on rejection
    by `turn`, where −1 takes its flip away.
    """

    sampler: Sampler
    scale: float = 1.0
    turn: float = 1.0

    def init(self, target, position, rng_key=None):
        return self.sampler.init(target, position, rng_key)

    def step(self, target, rng_key, state):
        def rule(rng_key, log_ratio, state, proposal):
            if hasattr(state, "momentum"):
                state = state._replace(momentum=jax.tree.map(lambda m: self.turn * m, state.momentum))
            return accept(rng_key, self.scale * log_ratio, state, proposal)

        with mock.patch.object(inspect.getmodule(type(self.sampler)), "accept", rule):
            return self.sampler.step(target, rng_key, state)
