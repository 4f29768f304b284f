"""Each sampler leaves an exact target invariant, at step sizes that reject some moves."""

from dataclasses import dataclass
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from scipy import stats

from widebnn.models import BNN, FCN
from widebnn.samplers import (
    Density,
    Gaussian,
    _function_space_hmc,
    elliptical_slice,
    function_space_hmc,
    hmc,
    langevin,
    mala,
    pcn,
    pcnl,
    preconditioned,
    rescaled,
    rwm,
)
from widebnn.targets import LogNormal, Scaled, from_potential, marginal
from widebnn.tree import normal_like

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
    "langevin": langevin(0.8, 0.3),
    "langevin, little damping": langevin(0.8, 0.02),
    "langevin, all refreshed": langevin(0.8, 1.0),
    "hmc": hmc(0.6, 4),
    "function_space_hmc": function_space_hmc(0.6, 3),
    "function_space_hmc, little damping": function_space_hmc(0.6, 3, 0.02),
    "function_space_hmc, jittered": function_space_hmc(0.5, 3, jitter=0.5),
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


def about_a_gaussian(make=preconditioned, gaussian=Gaussian):
    """An elliptical slice about a Gaussian that is far from the density."""
    one = logistic().draw(np.random.default_rng(0), 1)
    mean = jax.tree.map(lambda leaf: jnp.full_like(leaf[0], 0.4), one)
    size = ravel_pytree(mean)[0].size
    factor = np.linalg.cholesky(0.3 * np.eye(size) + 0.2)
    return make(gaussian(mean, jnp.asarray(factor)), elliptical_slice())


@pytest.mark.slow
def test_slice_about_a_gaussian_conserves_the_target():
    assert_conserved(about_a_gaussian(), logistic, acceptance=ALWAYS)


class PriorLeftAsItIs(preconditioned):
    def _density(self, target):
        return Density(lambda v: target.potential(self.gaussian.at(v)))


class CentreForgotten(Gaussian):
    def coordinates(self, position):
        return jax.scipy.linalg.solve_triangular(self.factor, ravel_pytree(position)[0], lower=True)


class FactorForgotten(Gaussian):
    def at(self, v):
        mean, unravel = ravel_pytree(self.mean)
        return unravel(mean + v)


class WithoutData(Scaled):
    """A scale and weights that the data say nothing of: the prior has to stay."""

    def potential(self, position):
        return jnp.zeros((), float)


def without_data():
    bnn = BNN(FCN(3, 2, rngs=nnx.Rngs(0)), 1, 1.0)
    base = marginal(bnn, jnp.ones((1, 3)), jnp.ones((1, 1)))
    return WithoutData(base, {"weight_std": LogNormal(1.3, 0.6)})


def conserved_by_rescaling(log=jnp.log):
    target = without_data()
    kernel = rescaled(num_updates=3).prepare(target)
    template = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, float), target.template)

    def moved(key):
        draw_key, step_key = jax.random.split(key)
        start = normal_like(draw_key, template)
        with mock.patch.object(jnp, "log", log):
            return start, kernel.step(target, step_key, kernel.init(target, start))[0].position

    start, end = jax.jit(jax.vmap(moved))(jax.random.split(jax.random.key(0), NUM_DRAWS))
    s = jax.vmap(lambda u: target.scales(u)["weight_std"])
    before, after = (p.network["layers"][0] for p in (start, end))
    weights = [s(p)[:, None, None] * p.network["layers"][0]["kernel"] for p in (start, end)]
    np.testing.assert_allclose(*weights, rtol=1e-9)
    np.testing.assert_array_equal(before["bias"], after["bias"])
    assert not np.any(start.scales["weight_std"] == end.scales["weight_std"])
    assert_distributed("scale", end.scales["weight_std"], stats.norm.cdf)
    assert_distributed("norm", np.sum(after["kernel"] ** 2, axis=(1, 2)), stats.chi2(6).cdf)


@pytest.mark.slow
def test_rescaling_conserves_the_prior_and_the_weights():
    conserved_by_rescaling()


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
    "MALA accepted with U alone": lambda: proposing(laws.mala(0.8), prior=0.0),
    "pCN with 1 − β for √(1 − β²)": lambda: proposing(laws.pcn(0.7)._replace(keep=0.3), prior=0.0),
    "pCN with the prior counted twice": lambda: proposing(laws.pcn(0.7), prior=1.0),
    "pCNL accepted with p(v|D)/p(u|D), the published rule": lambda: proposing(laws.pcnl(0.7), prior=1.0),
    "pCNL accepted with U alone": lambda: proposing(laws.pcnl(0.7), prior=0.0),
    "momentum kept on rejection": lambda: conserved("langevin, little damping", turn=-1.0, acceptance=ANY),
    "momentum kept on rejection, function-space HMC": lambda: conserved(
        "function_space_hmc, little damping", turn=-1.0, acceptance=ANY
    ),
    "kicks by the gradient of the prior too": lambda: broken(function_space_hmc(0.6, 3), and_the_prior),
    "kicks whose work is not counted": lambda: broken(WithoutWork(0.6, 3)),
    "slice at the height of the state": lambda: broken(slice_at_level(0.0)),
    "slice at half the depth": lambda: broken(slice_at_level(0.5)),
    "Gaussian whose centre is forgotten on the way in": lambda: broken(
        about_a_gaussian(gaussian=CentreForgotten)
    ),
    "Gaussian whose factor is forgotten on the way out": lambda: broken(
        about_a_gaussian(gaussian=FactorForgotten)
    ),
    "prior left as it is in other coordinates": lambda: broken(about_a_gaussian(PriorLeftAsItIs)),
    "scale that moves without the volume of its weights": lambda: conserved_by_rescaling(jnp.zeros_like),
    "Langevin uncorrected": lambda: broken(langevin(0.8, 0.3, metropolis=False)),
    **{
        f"{name} {bug}": lambda name=name, scale=scale: conserved(name, scale=scale, acceptance=ANY)
        for name in ("rwm", "pcn", "mala", "pcnl", "langevin", "hmc", "function_space_hmc")
        for bug, scale in {"always accepting": 0.0, "half the log ratio": 0.5}.items()
    },
}

test_bug_is_caught = caught(("sampler", "CDFs differ by", BUGS))

test_right_one_of_the_same_make_passes = passed(
    random_walk=lambda: proposing(laws.rwm(0.6), prior=1.0), pcn=lambda: proposing(laws.pcn(0.7), prior=0.0)
)
