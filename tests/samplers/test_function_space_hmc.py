"""How many kicks there are in a proposal, and by which angles it turns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from widebnn.samplers import _function_space_hmc, function_space_hmc
from widebnn.samplers._base import Density

from ..exact.dkwm import assert_distributed
from ..exact.reversibility import recorded


def steep(u):
    return jnp.sum(jnp.cosh(u))


def proposal(sampler):
    @jax.jit
    def run(u):
        state = sampler.init(u, rng_key=jax.random.key(0))
        return recorded(_function_space_hmc, sampler)(jax.random.key(1), state)[2][2].position

    return run(jnp.ones(3))


@pytest.mark.parametrize(("step_size", "num_steps"), [(1.5, 1), (0.3, 3), (0.24, 4), (0.001, 32)])
def test_a_proposal_turns_by_one_radian(step_size, num_steps):
    ends = [
        proposal(function_space_hmc(step_size, kicks).bind(Density(steep)))
        for kicks in (None, num_steps, num_steps + 1)
    ]
    assert np.allclose(ends[0], ends[1], atol=1e-10) and not np.allclose(ends[0], ends[2], atol=1e-5)


@pytest.mark.parametrize(
    ("step_size", "jitter", "low", "high"), [(1.0, 0.2, 0.8, 1.2), (1.5, 0.5, 0.75, 2.25)]
)
def test_angles_are_drawn_evenly(step_size, jitter, low, high):
    """Where nothing pulls, one kick turns (u, m) by its angle; angles end at π/2."""
    sampler = function_space_hmc(step_size, 1, jitter=jitter).bind(Density(lambda u: jnp.zeros(())))
    far = jnp.full(1, 1e12)  # beside which no momentum counts
    state = sampler.init(far, rng_key=jax.random.key(0))
    step = jax.jit(jax.vmap(lambda key: sampler.step(key, state)))
    moved, info = step(jax.random.split(jax.random.key(1), 20_000))
    angles = np.arccos(np.clip(moved.position[:, 0] / far[0], -1, 1))
    assert info.is_accepted.all()
    within = angles[angles < np.pi / 2 - 1e-9]
    share = (min(high, np.pi / 2) - low) / (high - low)
    assert_distributed("angle", within, stats.uniform(low, min(high, np.pi / 2) - low).cdf)
    assert abs(len(within) / len(angles) - share) < 5 * 0.5 / np.sqrt(len(angles))
