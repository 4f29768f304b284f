"""A sampler leaves its target where it is: exact draws, a few steps, the same distribution.

After `tfp.mcmc`'s test of NUTS; the bound and its power are those of `dkwm`.
"""

import jax
import numpy as np

from .dkwm import FALSE_FAILURE, assert_distributed

NUM_DRAWS = 100_000


def after_steps(rng_key, sampler, positions, num_steps):
    """The states that `num_steps` steps lead to, and the mean acceptance rate."""
    num_draws = len(jax.tree.leaves(positions)[0])
    init_key, step_key = jax.random.split(rng_key)
    init_keys = jax.random.split(init_key, num_draws)

    def step(states, key):
        states, info = jax.vmap(sampler.step)(jax.random.split(key, num_draws), states)
        return states, info.acceptance_rate.mean()

    @jax.jit
    def run(positions):
        states = jax.vmap(lambda u, key: sampler.init(u, rng_key=key))(positions, init_keys)
        return jax.lax.scan(step, states, jax.random.split(step_key, num_steps))

    states, rates = run(positions)
    return states, float(rates.mean())


def assert_conserved(sampler, density, num_steps=3, acceptance=(0.2, 0.95)):
    """The sampler leaves `density` invariant, and its acceptance is such that both branches were taken."""
    positions = density.draw(np.random.default_rng(0), NUM_DRAWS)
    states, rate = after_steps(jax.random.key(0), sampler, positions, num_steps)
    assert acceptance[0] < rate < acceptance[1], f"acceptance {rate:.3f} leaves a branch unexercised"
    for name, (function, cdf) in density.functions.items():
        values = jax.vmap(function)(states.position)
        assert_distributed(name, values, cdf, FALSE_FAILURE / len(density.functions))
    return states
