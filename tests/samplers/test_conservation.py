"""Each sampler leaves an exact target invariant, at step sizes that reject some moves."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

from widebnn.samplers import elliptical_slice, function_space_hmc, hmc, langevin, mala, pcn, pcnl, rwm

from ..exact.conservation import NUM_DRAWS, assert_conserved
from ..exact.densities import logistic, regression
from ..exact.dkwm import FALSE_FAILURE, assert_distributed, detectable

pytestmark = pytest.mark.usefixtures("x64")

SAMPLERS = {
    "rwm": functools.partial(rwm, step_size=0.6),
    "pcn": functools.partial(pcn, step_size=0.7),
    "mala": functools.partial(mala, step_size=0.8),
    "pcnl": functools.partial(pcnl, step_size=0.7),
    "langevin": functools.partial(langevin, step_size=0.8, damping=0.3),
    "langevin, little damping": functools.partial(langevin, step_size=0.8, damping=0.02),
    "langevin, all refreshed": functools.partial(langevin, step_size=0.8, damping=1.0),
    "hmc": functools.partial(hmc, step_size=0.6, num_steps=4),
    "function-space hmc": functools.partial(function_space_hmc, step_size=0.6, num_steps=3),
    "function-space hmc, jittered": functools.partial(
        function_space_hmc, step_size=0.5, num_steps=3, jitter=True
    ),
    "function-space hmc, little damping": functools.partial(
        function_space_hmc, step_size=0.6, num_steps=2, damping=0.02
    ),
}


def test_power():
    """What these tests see: CDFs that differ by 2 %, at one false failure in a million."""
    assert detectable(NUM_DRAWS, FALSE_FAILURE / 7) < 0.02


@pytest.mark.parametrize("density", [regression, logistic])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_target_is_conserved(sampler, density):
    density = density()
    states = assert_conserved(SAMPLERS[sampler](density.target.potential), density)
    if hasattr(states, "momentum"):
        for leaf in jax.tree.leaves(states.momentum):
            assert_distributed("momentum", np.ravel(leaf[:, 0]), stats.norm.cdf)


@pytest.mark.parametrize("density", [regression, logistic])
def test_elliptical_slice_conserves_the_target_and_always_moves(density):
    density = density()
    sampler = elliptical_slice(density.target.potential)
    states = assert_conserved(sampler, density, acceptance=(1 - 1e-9, 1 + 1e-9))
    first = jax.tree.leaves(density.draw(np.random.default_rng(0), NUM_DRAWS))[0]
    assert not np.any(np.asarray(jax.tree.leaves(states.position)[0]) == np.asarray(first))
