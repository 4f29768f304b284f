"""Each sampler leaves an exact target invariant, at step sizes that reject some moves."""

import functools
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from widebnn.samplers import (
    Gaussian,
    _function_space_hmc,
    _hmc,
    _langevin,
    _mala,
    _pcn,
    _pcnl,
    _rwm,
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
from widebnn.samplers._base import Density, Kernel
from widebnn.targets import LogNormal, Target
from widebnn.tree import normal_like

from ..exact import laws
from ..exact.conservation import NUM_DRAWS, assert_conserved, with_rule
from ..exact.densities import logistic, regression
from ..exact.dkwm import FALSE_FAILURE, assert_distributed, detectable
from ..exact.planted import caught, passed

hmc_of_4 = functools.partial(hmc, num_steps=4)
function_space_hmc_of_3 = functools.partial(function_space_hmc, num_steps=3)
jittered = functools.partial(function_space_hmc_of_3, jitter=0.5)

SAMPLERS = {
    "rwm": (_rwm, rwm, {"step_size": 0.6}),
    "pcn": (_pcn, pcn, {"step_size": 0.7}),
    "mala": (_mala, mala, {"step_size": 0.8}),
    "pcnl": (_pcnl, pcnl, {"step_size": 0.7}),
    "langevin": (_langevin, langevin, {"step_size": 0.8, "damping": 0.3}),
    "langevin, little damping": (_langevin, langevin, {"step_size": 0.8, "damping": 0.02}),
    "langevin, all refreshed": (_langevin, langevin, {"step_size": 0.8, "damping": 1.0}),
    "hmc": (_hmc, hmc_of_4, {"step_size": 0.6}),
    "function_space_hmc": (_function_space_hmc, function_space_hmc_of_3, {"step_size": 0.6, "damping": 1.0}),
    "function_space_hmc, little damping": (
        _function_space_hmc,
        function_space_hmc_of_3,
        {"step_size": 0.6, "damping": 0.02},
    ),
    "function_space_hmc, jittered": (_function_space_hmc, jittered, {"step_size": 0.5, "damping": 1.0}),
}


def conserved(name, density=logistic, scale=1.0, turn=1.0, acceptance=(0.2, 0.95)):
    module, make, constants = SAMPLERS[name]
    return assert_conserved(
        with_rule(module, make, density),
        density,
        acceptance=acceptance,
        scale=scale,
        turn=turn,
        **constants,
    )


def test_power():
    """What these tests see: CDFs that differ by 2 %, at one false failure in a million."""
    assert detectable(NUM_DRAWS, FALSE_FAILURE / 7) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("density", [regression, logistic])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_target_is_conserved(sampler, density):
    states = conserved(sampler, density)
    if hasattr(states, "momentum"):
        for leaf in jax.tree.leaves(states.momentum):
            assert_distributed("momentum", np.ravel(leaf[:, 0]), stats.norm.cdf)


@functools.cache
def slice_at_level(density):
    """Elliptical slice sampling with `level` · Exp(1) in place of Exp(1)."""
    exponential = jax.random.exponential

    def build(level):
        sampler = elliptical_slice().bind(density().target)

        def step(rng_key, state):
            scaled = lambda *args, **options: level * exponential(*args, **options)  # noqa: E731
            with mock.patch.object(jax.random, "exponential", scaled):
                return sampler.step(rng_key, state)

        return Kernel(sampler.init, step)

    return build


@pytest.mark.slow
@pytest.mark.parametrize("density", [regression, logistic])
def test_elliptical_slice_conserves_the_target_and_always_moves(density):
    always = (1 - 1e-9, 1 + 1e-9)
    states = assert_conserved(slice_at_level(density), density, acceptance=always, level=1.0)
    first = jax.tree.leaves(density().draw(np.random.default_rng(0), NUM_DRAWS))[0]
    assert not np.any(np.asarray(jax.tree.leaves(states.position)[0]) == np.asarray(first))


def off_centre(density):
    """A Gaussian that is far from the density."""
    mean = jax.tree.map(lambda leaf: jnp.full_like(leaf[0], 0.4), density().draw(np.random.default_rng(0), 1))
    size = ravel_pytree(mean)[0].size
    return Gaussian(mean, jnp.asarray(np.linalg.cholesky(0.3 * np.eye(size) + 0.2)))


@functools.cache
def preconditioned_by(density, gaussian=Gaussian, prior=1.0):
    """An elliptical slice about a Gaussian; `prior` times the term of the prior."""
    centred = gaussian(*off_centre(density))

    def build(level):
        potential = density().target.potential

        def wrong_by(position):
            u, v = ravel_pytree(position)[0], centred.coordinates(position)
            return potential(position) + (prior - 1) * (u @ u - v @ v) / 2

        sampler = preconditioned(centred, elliptical_slice())
        return sampler.bind(Density(potential if prior == 1.0 else wrong_by))

    return build


@pytest.mark.slow
@pytest.mark.parametrize("density", [regression, logistic])
def test_slice_about_a_gaussian_conserves_the_target(density):
    always = (1 - 1e-9, 1 + 1e-9)
    assert_conserved(preconditioned_by(density), density, acceptance=always, level=1.0)


class CentreForgotten(Gaussian):
    def coordinates(self, position):
        return jax.scipy.linalg.solve_triangular(self.factor, ravel_pytree(position)[0], lower=True)


class FactorForgotten(Gaussian):
    def at(self, v):
        mean, unravel = ravel_pytree(self.mean)
        return unravel(mean + v)


class Layered(NamedTuple):
    """A scale s and weights that the data say nothing of: the prior has to stay."""

    network: dict
    scales: dict


class WithoutData(Target):
    has_exact_scales = False
    template = Layered(
        {"kernel": jax.ShapeDtypeStruct((3, 2), float), "bias": jax.ShapeDtypeStruct((2,), float)},
        {"s": jax.ShapeDtypeStruct((), float)},
    )

    def scale(self, name):
        return lambda position: LogNormal(1.3, 0.6).at(position.scales[name])

    def readout_conditional(self, position):
        raise NotImplementedError

    def potential(self, position):
        return jnp.zeros((), float)


def conserved_by_rescaling(log=jnp.log):
    kernel, target = rescaled({"s": "kernel"}, num_updates=3), WithoutData()

    def moved(key):
        draw_key, step_key = jax.random.split(key)
        start = normal_like(draw_key, WithoutData.template)
        with mock.patch.object(jnp, "log", log):
            return start, kernel.step(target, step_key, kernel.init(target, start))[0].position

    start, end = jax.jit(jax.vmap(moved))(jax.random.split(jax.random.key(0), NUM_DRAWS))
    s = jax.vmap(WithoutData().scale("s"))
    weights = [s(p)[:, None, None] * p.network["kernel"] for p in (start, end)]
    np.testing.assert_allclose(*weights, rtol=1e-9)
    np.testing.assert_array_equal(start.network["bias"], end.network["bias"])
    assert not np.any(start.scales["s"] == end.scales["s"])
    assert_distributed("scale", end.scales["s"], stats.norm.cdf)
    assert_distributed("norm", np.sum(end.network["kernel"] ** 2, axis=(1, 2)), stats.chi2(6).cdf)


@pytest.mark.slow
def test_rescaling_conserves_the_prior_and_the_weights():
    conserved_by_rescaling()


# Bugs. Whether a branch of the acceptance stays unexercised is no matter where it is wrong.

ANY = (0, 1.1)


def broken(make, **constants):
    assert_conserved(make, logistic, acceptance=ANY, **constants)


def proposing(law, prior):
    """A sampler that is made of a law of proposals and an acceptance ratio."""
    broken(of_law, law=law, prior=prior)


def of_law(law, prior):
    return laws.metropolis(logistic().target.potential, law, prior)


def kicked_by_the_prior_too(**constants):
    potential = logistic().target.potential
    return function_space_hmc_of_3(**constants).bind(Density(lambda v: potential(v) + jnp.sum(v**2) / 2))


def without_work(**constants):
    sampler = function_space_hmc_of_3(**constants).bind(logistic().target)

    def step(rng_key, state):
        with mock.patch.object(_function_space_hmc, "inner_product", lambda u, v: jnp.zeros(())):
            return sampler.step(rng_key, state)

    return Kernel(sampler.init, step)


def uncorrected(**constants):
    return langevin(**constants, metropolis=False).bind(logistic().target)


BUGS = {
    "random walk without the prior term": lambda: proposing(laws.rwm(0.6), prior=0.0),
    "MALA without proposal densities": lambda: proposing(laws.mala(0.8), prior=1.0),
    "MALA accepted with U alone": lambda: proposing(laws.mala(0.8), prior=0.0),
    "pCN with 1 − β for √(1 − β²)": lambda: proposing(laws.pcn(0.7)._replace(keep=0.3), prior=0.0),
    "pCN with the prior counted twice": lambda: proposing(laws.pcn(0.7), prior=1.0),
    "pCNL accepted with p(v|D)/p(u|D), the published rule": lambda: proposing(laws.pcnl(0.7), prior=1.0),
    "pCNL accepted with U alone": lambda: proposing(laws.pcnl(0.7), prior=0.0),
    "momentum kept on rejection": lambda: conserved("langevin, little damping", turn=-1.0, acceptance=ANY),
    "momentum kept on rejection, linear regression": lambda: conserved(
        "langevin, little damping", regression, turn=-1.0, acceptance=ANY
    ),
    "momentum kept on rejection, function-space HMC": lambda: conserved(
        "function_space_hmc, little damping", turn=-1.0, acceptance=ANY
    ),
    "kicks by the gradient of the prior too": lambda: broken(
        kicked_by_the_prior_too, step_size=0.6, damping=1.0
    ),
    "kicks whose work is not counted": lambda: broken(without_work, step_size=0.6, damping=1.0),
    "slice at the height of the state": lambda: broken(slice_at_level(logistic), level=0.0),
    "slice at half the depth": lambda: broken(slice_at_level(logistic), level=0.5),
    "Gaussian whose centre is forgotten on the way in": lambda: broken(
        preconditioned_by(logistic, CentreForgotten), level=1.0
    ),
    "Gaussian whose factor is forgotten on the way out": lambda: broken(
        preconditioned_by(logistic, FactorForgotten), level=1.0
    ),
    "prior left as it is in other coordinates": lambda: broken(
        preconditioned_by(logistic, prior=0.0), level=1.0
    ),
    "scale that moves without the volume of its weights": lambda: conserved_by_rescaling(jnp.zeros_like),
    "Langevin uncorrected": lambda: broken(uncorrected, step_size=0.8, damping=0.3),
    **{
        f"{name} {bug}": lambda name=name, scale=scale: conserved(name, scale=scale, acceptance=ANY)
        for name in ("rwm", "pcn", "mala", "pcnl", "langevin", "hmc", "function_space_hmc")
        for bug, scale in {"always accepting": 0.0, "half the log ratio": 0.5}.items()
    },
}

test_bug_is_caught = caught(("sampler", "CDFs differ by", BUGS))

test_right_one_of_the_same_make_passes = passed(
    random_walk=lambda: proposing(laws.rwm(0.6), prior=1.0),
    pcn=lambda: proposing(laws.pcn(0.7), prior=0.0),
)
