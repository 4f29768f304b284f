"""A sampler leaves its target where it is: exact draws, a few steps, the same distribution.

After `tfp.mcmc`'s test of NUTS; the bound and its power are those of `dkwm`. Constants of a sampler are
traced, so that one program serves all of their values, right and wrong.
"""

import functools
from unittest import mock

import jax
import numpy as np

from widebnn.samplers import accept
from widebnn.samplers._base import Kernel

from .dkwm import FALSE_FAILURE, assert_distributed

NUM_DRAWS = 100_000


@functools.cache
def _program(make, num_steps):
    @jax.jit
    def run(rng_key, positions, constants):
        sampler = make(**constants)
        num_draws = len(jax.tree.leaves(positions)[0])
        init_key, step_key = jax.random.split(rng_key)

        def step(states, key):
            states, info = jax.vmap(sampler.step)(jax.random.split(key, num_draws), states)
            return states, info.acceptance_rate.mean()

        init_keys = jax.random.split(init_key, num_draws)
        states = jax.vmap(lambda u, key: sampler.init(u, rng_key=key))(positions, init_keys)
        states, rates = jax.lax.scan(step, states, jax.random.split(step_key, num_steps))
        return states, rates.mean()

    return run


def after_steps(rng_key, make, positions, num_steps, **constants):
    """The states that steps of `make(**constants)` lead to, and the mean acceptance rate."""
    states, rate = _program(make, num_steps)(rng_key, positions, constants)
    return states, float(rate)


@functools.cache
def _draws(density):
    return density().draw(np.random.default_rng(0), NUM_DRAWS)


@functools.cache
def _values(density):
    return jax.jit(lambda u: {name: jax.vmap(f)(u) for name, (f, _) in density().functions.items()})


def assert_conserved(make, density, num_steps=3, acceptance=(0.2, 0.95), **constants):
    """`make(**constants)` leaves `density()` invariant, and rejects enough for both branches to be taken."""
    states, rate = after_steps(jax.random.key(0), make, _draws(density), num_steps, **constants)
    assert acceptance[0] < rate < acceptance[1], f"acceptance {rate:.3f} leaves a branch unexercised"
    functions = density().functions
    for name, values in _values(density)(states.position).items():
        assert_distributed(name, values, functions[name][1], FALSE_FAILURE / len(functions))
    return states


@functools.cache
def with_rule(module, make, density):
    """`make` on the potential of `density()`, and what becomes of its acceptance as two more constants.

    The log ratio is multiplied by `scale`, where 0 accepts always, and the momentum that is kept on rejection
    by `turn`, where −1 takes its flip away. Both are 1 where nothing is wrong.
    """

    def build(scale, turn, **constants):
        sampler = make(**constants).bind(density().target)

        def rule(rng_key, log_ratio, state, proposal):
            if hasattr(state, "momentum"):
                state = state._replace(momentum=jax.tree.map(lambda m: turn * m, state.momentum))
            return accept(rng_key, scale * log_ratio, state, proposal)

        def step(rng_key, state):
            with mock.patch.object(module, "accept", rule):
                return sampler.step(rng_key, state)

        return Kernel(sampler.init, step)

    return build
