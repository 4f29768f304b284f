"""How many kicks there are in a proposal, and by which angles it turns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from widebnn.samplers import function_space_hmc
from widebnn.targets import from_potential

from ..exact.dkwm import assert_distributed
from ..exact.reversibility import recorded

STEEP = from_potential(lambda u: jnp.sum(jnp.cosh(u)), jnp.ones(3))
FLAT = from_potential(lambda u: jnp.zeros(()), jnp.ones(1))


@jax.jit
def proposal(sampler):
    state = sampler.init(STEEP, jnp.ones(3), jax.random.key(0))
    return recorded(STEEP, sampler)(jax.random.key(1), state)[2][2].position


@pytest.mark.parametrize(("step_size", "num_steps"), [(1.5, 1), (0.3, 3), (0.24, 4), (0.001, 32)])
def test_a_proposal_turns_by_one_radian(step_size, num_steps):
    ends = [proposal(function_space_hmc(step_size, kicks)) for kicks in (None, num_steps, num_steps + 1)]
    assert np.allclose(ends[0], ends[1], atol=1e-10) and not np.allclose(ends[0], ends[2], atol=1e-5)


FAR = np.full(1, 1e12)
"""Beside which no momentum counts."""


@jax.jit
def moves(sampler):
    """From there, with 20,000 keys."""
    state = sampler.init(FLAT, jnp.asarray(FAR), jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 20_000)
    return jax.vmap(lambda key: sampler.step(FLAT, key, state))(keys)


@pytest.mark.parametrize(
    ("step_size", "jitter", "low", "high"), [(1.0, 0.2, 0.8, 1.2), (1.5, 0.5, 0.75, 2.25)]
)
def test_angles_are_drawn_evenly(step_size, jitter, low, high):
    """Where nothing pulls, one kick turns (u, m) by its angle; angles end at π/2."""
    moved, info = moves(function_space_hmc(step_size, 1, jitter=jitter))
    angles = np.arccos(np.clip(moved.position[:, 0] / FAR[0], -1, 1))
    assert info.is_accepted.all()
    within = angles[angles < np.pi / 2 - 1e-9]
    share = (min(high, np.pi / 2) - low) / (high - low)
    assert_distributed("angle", within, stats.uniform(low, min(high, np.pi / 2) - low).cdf)
    assert abs(len(within) / len(angles) - share) < 5 * 0.5 / np.sqrt(len(angles))
