"""Each sampler leaves an exact target invariant, at step sizes that reject some moves."""

from dataclasses import dataclass
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from widebnn.samplers import (
    _function_space_hmc,
    elliptical_slice,
    function_space_hmc,
    hmc,
    langevin,
    mala,
    pcn,
    pcnl,
    rwm,
)
from widebnn.targets import from_potential

from ..exact import laws
from ..exact.conservation import NUM_DRAWS, altered, assert_conserved
from ..exact.densities import logistic
from ..exact.dkwm import FALSE_FAILURE, assert_distributed, detectable
from ..exact.planted import caught, passed

SAMPLERS = {
    "rwm": rwm(0.6),
    "pcn": pcn(0.7),
    "mala": mala(0.8),
    "pcnl": pcnl(0.7),
    "langevin": langevin(0.8, 0.02),
    "hmc": hmc(0.6, 4),
    "function_space_hmc": function_space_hmc(0.5, 3, 0.02, jitter=0.5),
}


def conserved(name, scale=1.0, turn=1.0, acceptance=(0.2, 0.95)):
    return assert_conserved(altered(SAMPLERS[name], scale, turn), logistic, acceptance=acceptance)


def test_power():
    """What these tests see: CDFs that differ by 2 %, at one false failure in a million."""
    assert detectable(NUM_DRAWS, FALSE_FAILURE / 7) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_target_is_conserved(sampler):
    states = conserved(sampler)
    if hasattr(states, "momentum"):
        for leaf in jax.tree.leaves(states.momentum):
            assert_distributed("momentum", np.ravel(leaf[:, 0]), stats.norm.cdf)


ALWAYS = (1 - 1e-9, 1 + 1e-9)


@dataclass(frozen=True, eq=False)
class slice_at_level(elliptical_slice):
    """Elliptical slice sampling with `level` · Exp(1) in place of Exp(1)."""

    level: float

    def step(self, target, rng_key, state):
        exponential = jax.random.exponential
        scaled = lambda *args, **options: self.level * exponential(*args, **options)  # noqa: E731
        with mock.patch.object(jax.random, "exponential", scaled):
            return super().step(target, rng_key, state)


@pytest.mark.slow
def test_elliptical_slice_conserves_the_target_and_always_moves():
    states = assert_conserved(slice_at_level(1.0), logistic, acceptance=ALWAYS)
    first = jax.tree.leaves(logistic().draw(np.random.default_rng(0), NUM_DRAWS))[0]
    assert not np.any(np.asarray(jax.tree.leaves(states.position)[0]) == np.asarray(first))


# Bugs. Whether a branch of the acceptance stays unexercised is no matter where it is wrong.

ANY = (0, 1.1)


def broken(sampler, potential=None):
    """Caught, whatever it accepts; on another potential, where one is given."""
    target = None if potential is None else from_potential(potential, logistic().target.template)
    assert_conserved(sampler, logistic, target, acceptance=ANY)


def proposing(law, prior):
    """A sampler that is made of a law of proposals and an acceptance ratio."""
    broken(laws.metropolis(law, prior))


def and_the_prior(v):
    return logistic().target.potential(v) + jnp.sum(v**2) / 2


class WithoutWork(function_space_hmc):
    def step(self, target, rng_key, state):
        with mock.patch.object(_function_space_hmc, "inner_product", lambda u, v: jnp.zeros(())):
            return super().step(target, rng_key, state)


BUGS = {
    "random walk without the prior term": lambda: proposing(laws.rwm(0.6), prior=0.0),
    "MALA without proposal densities": lambda: proposing(laws.mala(0.8), prior=1.0),
    "pCN with 1 − β for √(1 − β²)": lambda: proposing(laws.pcn(0.7)._replace(keep=0.3), prior=0.0),
    "pCN with the prior counted twice": lambda: proposing(laws.pcn(0.7), prior=1.0),
    "pCNL accepted with p(v|D)/p(u|D), the published rule": lambda: proposing(laws.pcnl(0.7), prior=1.0),
    "momentum kept on rejection": lambda: conserved("langevin", turn=-1.0, acceptance=ANY),
    "kicks by the gradient of the prior too": lambda: broken(function_space_hmc(0.6, 3), and_the_prior),
    "kicks whose work is not counted": lambda: broken(WithoutWork(0.6, 3)),
    "slice at the height of the state": lambda: broken(slice_at_level(0.0)),
    "Langevin uncorrected": lambda: broken(langevin(0.8, 0.3, metropolis=False)),
    "always accepting": lambda: conserved("pcn", scale=0.0, acceptance=ANY),
    "half the log ratio": lambda: conserved("hmc", scale=0.5, acceptance=ANY),
}

test_bug_is_caught = caught(("sampler", "CDFs differ by", BUGS), patched=False)

test_right_one_of_the_same_make_passes = passed(
    random_walk=lambda: proposing(laws.rwm(0.6), prior=1.0), pcn=lambda: proposing(laws.pcn(0.7), prior=0.0)
)
