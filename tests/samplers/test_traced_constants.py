"""Step size and damping may be traced, so that one compiled program serves many settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widebnn.samplers import function_space_hmc, hmc, langevin, mala, pcn, pcnl, rwm
from widebnn.samplers._base import Density

MAKE = {
    "rwm": rwm,
    "mala": mala,
    "pcn": pcn,
    "pcnl": pcnl,
    "hmc": lambda step_size: hmc(step_size, num_steps=3),
    "langevin": lambda step_size: langevin(step_size, damping=step_size),
    "function-space HMC": lambda step_size: function_space_hmc(step_size, num_steps=3, damping=step_size),
    "function-space HMC, one radian": lambda step_size: function_space_hmc(step_size, jitter=step_size),
}
STEP_SIZES = np.array([0.1, 0.4])


def potential(u):
    return jnp.sum(jnp.cosh(u["a"])) + jnp.sum(u["b"] ** 2)


def run(make, step_size):
    """Ten steps from one start."""
    sampler = make(step_size).bind(Density(potential))
    start = {"a": jnp.ones(2), "b": jnp.full((1, 3), -0.5)}
    keys = jax.random.split(jax.random.key(1), 10)
    state = sampler.init(start, rng_key=jax.random.key(0))
    return jax.lax.scan(lambda state, key: sampler.step(key, state), state, keys)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
def test_one_program_serves_many_step_sizes(name):
    make, traces = MAKE[name], 0

    @jax.jit
    @jax.vmap
    def program(step_size):
        nonlocal traces
        traces += 1
        return run(make, step_size)

    traced = program(STEP_SIZES)
    program(STEP_SIZES / 2)
    assert traces == 1
    exact = jax.jit(lambda: run(make, float(STEP_SIZES[1])))()
    for found, wanted in zip(jax.tree.leaves(traced), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(found[1], wanted, rtol=1e-10, atol=1e-12)
