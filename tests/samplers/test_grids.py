"""Settings, scales, seeds and data are leaves: a grid of them is one program with the draws of each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from widebnn.samplers import function_space_hmc, langevin

from ..exact.networks import problem

MAKE = {
    "langevin": lambda step_size: langevin(step_size, damping=step_size),
    "function-space HMC": lambda step_size: function_space_hmc(step_size, jitter=step_size),
}
TINY = problem()


def posterior(noise_std=0.4, seed=0):
    bnn = wb.BNN(TINY.bnn.features, 1, noise_std)
    return wb.targets.marginal(bnn, TINY.x, np.random.default_rng(seed).normal(size=TINY.y.shape))


def chain(rng_key, target, sampler):
    """Ten steps of a chain: outputs at new inputs, and acceptance rates."""
    init, step = sampler.bind(target)
    start_key, init_key, *keys = jax.random.split(rng_key, 12)
    mean = wb.predictive_mean(TINY.x_new)

    def draw(state, key):
        state, info = step(key, state)
        return state, (mean(target, state.position), info.acceptance_rate)

    start = init(target.draw_prior(start_key), rng_key=init_key)
    return jax.lax.scan(draw, start, jnp.stack(keys))[1]


def stacked(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


KEY = jax.random.key(0)
TARGETS = posterior(0.2, seed=0), posterior(0.4, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKE)
def test_a_grid_is_one_program_with_the_draws_of_each_alone(name):
    """Whose keys, noise, data and settings differ, all at once."""
    traces = 0

    @jax.jit
    def program(grid):
        nonlocal traces
        traces += 1
        return jax.vmap(chain)(*grid)

    grid = [
        (jax.random.key(i), target, MAKE[name](step))
        for i, (target, step) in enumerate(zip(TARGETS, (0.1, 0.4)))
    ]
    together = program(stacked(grid))
    program(stacked(grid[::-1]))
    assert traces == 1
    assert not np.allclose(*together[0])
    alone = stacked([jax.jit(chain)(*one) for one in grid])
    for found, wanted in zip(together, alone, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_the_pure_run_has_the_draws_of_sample_over_a_grid_of_targets():
    options = {"num_samples": 7, "thin": 2, "burn_in": 5, "num_chains": 3}
    options["collect"] = {"potential": wb.potential, "f": wb.output(TINY.x_new)}
    run = jax.jit(jax.vmap(lambda target: wb.run_chains(KEY, target, wb.samplers.unitwise(), **options)))
    values, stats = run(stacked(TARGETS))
    for i, target in enumerate(TARGETS):
        draws = wb.sample(KEY, target, wb.samplers.unitwise(), progress=False, **options)
        for name, found in (values | stats).items():
            wanted = (draws.collected | draws.stats)[name]
            np.testing.assert_allclose(found[i], wanted, rtol=1e-6, atol=1e-9)
