"""Each sampler leaves an exact target invariant, at step sizes that reject some moves."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

from widebnn.samplers import hmc, langevin, mala, pcn, pcnl, rwm

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
