"""Path by path, in float64: acceptance ratios against full densities, the leapfrog run backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from widebnn import samplers
from widebnn.samplers import (
    GradientState,
    MomentumState,
    _mala,
    _pcn,
    _pcnl,
    _rwm,
    leapfrog,
    mala,
    pcn,
    pcnl,
    rwm,
)
from widebnn.samplers._base import Density
from widebnn.samplers._function_space_hmc import rotations
from widebnn.tree import normal_like

from ..exact import laws
from ..exact.planted import caught, passed
from ..exact.reversibility import assert_detailed_balance, recorded


def potential(u):
    """Neither Gaussian nor symmetric, and it couples the leaves."""
    return jnp.sum(jnp.cosh(u["a"])) + jnp.sum(jnp.sin(u["b"]) * u["a"][None, :]) + jnp.sum(u["b"] ** 3) / 10


DENSITY = Density(potential)


def positions(num=5):
    return [_position(jax.random.key(100 + i)) for i in range(num)]


@jax.jit
def _position(rng_key):
    return normal_like(rng_key, {"a": jnp.zeros(3), "b": jnp.zeros((2, 3))})


@jax.jit
def with_gradient(u):
    return GradientState(u, *jax.value_and_grad(potential)(u))


def moment(i):
    """A momentum."""
    return _position(jax.random.key(i))


def close(u, v, tolerance):
    pairs = zip(jax.tree.leaves(u), jax.tree.leaves(v), strict=True)
    return all(np.allclose(one, other, rtol=0, atol=tolerance) for one, other in pairs)


def turned(m):
    return jax.tree.map(np.negative, m)


def largest(u):
    return max(np.abs(leaf).max() for leaf in jax.tree.leaves(u))


SAMPLERS = {"rwm": (_rwm, rwm), "pcn": (_pcn, pcn), "mala": (_mala, mala), "pcnl": (_pcnl, pcnl)}


BOUND = {
    make: lambda U, step_size, make=make: make(step_size).bind(Density(U)) for _, make in SAMPLERS.values()
}


@pytest.mark.parametrize("step_size", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("name", SAMPLERS)
def test_log_ratio_is_that_of_full_densities(name, step_size):
    law = getattr(laws, name)(step_size)
    module, make = SAMPLERS[name]
    assert_detailed_balance(module, BOUND[make], potential, positions(), law, step_size=step_size)


@pytest.mark.parametrize("name", SAMPLERS)
def test_proposal_is_mean_plus_noise(name):
    """q(u → ·) of the ratio is the law that proposals are drawn from: the noise left over is N(0, I)."""
    module, make = SAMPLERS[name]
    sampler, law = make(0.4).bind(DENSITY), getattr(laws, name)(0.4)
    (u,) = positions(1)

    @jax.jit
    def found_and_wanted(key, u):
        _, _, (_, _, proposal) = recorded(module, sampler)(key, sampler.init(u))
        mean, std = law(ravel_pytree(u)[0], ravel_pytree(jax.grad(potential)(u))[0])
        noise = normal_like(jax.random.split(key)[0], u)
        return (ravel_pytree(proposal.position)[0] - mean) / std, ravel_pytree(noise)[0]

    assert close(*found_and_wanted(jax.random.key(3), u), 1e-12)


@pytest.mark.parametrize("name", SAMPLERS)
def test_reported_rate_is_the_ratio_cut_at_one(name):
    module, make = SAMPLERS[name]
    sampler = make(0.7).bind(DENSITY)
    step = jax.jit(lambda key, u: recorded(module, sampler)(key, sampler.init(u)))
    for i, u in enumerate(positions()):
        state, info, (log_ratio, old, new) = step(jax.random.key(i), u)
        assert np.allclose(info.acceptance_rate, min(1, np.exp(log_ratio)), rtol=1e-14)
        assert close(state, new if info.is_accepted else old, 0.0)


@pytest.mark.parametrize("name", ["pcn", "pcnl"])
def test_moves_of_the_prior_are_always_accepted(name):
    sampler = getattr(samplers, name)(0.9).bind(Density(lambda u: jnp.zeros(())))
    rates = jax.jit(lambda u: sampler.step(jax.random.key(0), sampler.init(u))[1].acceptance_rate)
    assert all(rates(u) == 1 for u in positions())


def leapfrogs(num_steps):
    def flow(u, m):
        return leapfrog(potential, 0.3, num_steps)(with_gradient(u), m)

    return flow


def turns(num_steps):
    def flow(u, m):
        end, change = rotations(potential, 0.3)(MomentumState(*with_gradient(u), m), num_steps)
        return GradientState(*end[:3]), end.momentum, change

    return flow


@jax.jit
def energy(u, m):
    return potential(u) + sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves((u, m))) / 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [leapfrogs, turns])
@pytest.mark.parametrize("num_steps", [1, 7])
def test_integrator_runs_back_keeps_volume_and_reports_the_change_of_energy(make, num_steps):
    flow = jax.jit(make(num_steps))
    for i, u in enumerate(positions()):
        m = moment(i)
        moved, new_m, change = flow(u, m)
        tolerance = 1e-12 * (1 + max(map(largest, (moved, new_m, with_gradient(u)))))
        assert not close(moved.position, u, 0.1)
        assert close(moved, with_gradient(moved.position), tolerance)
        back, back_m, change_back = flow(moved.position, turned(new_m))
        assert close(back.position, u, tolerance) and close(back_m, turned(m), tolerance)
        assert np.allclose(change, -change_back, rtol=0, atol=tolerance)
        assert np.allclose(change, energy(moved.position, new_m) - energy(u, m), rtol=0, atol=tolerance)
    z, unravel = ravel_pytree((u, m))

    def flat_flow(z):
        moved, new_m, _ = flow(*unravel(z))
        return ravel_pytree((moved.position, new_m))[0]

    assert abs(np.linalg.det(jax.jit(jax.jacfwd(flat_flow))(z)) - 1) < 1e-12


def test_rotations_are_exact_without_a_potential():
    """A quarter turn exchanges position and momentum, in one step as in ten; the energy stays to the bit."""
    (u,) = positions(1)
    m = moment(0)
    start = MomentumState(u, jnp.zeros(()), jax.tree.map(jnp.zeros_like, u), m)
    for num_steps in (1, 10):
        integrate = jax.jit(rotations(lambda u: jnp.zeros(()), jnp.pi / 2 / num_steps))
        end, change = integrate(start, num_steps)
        assert change == 0
        assert close(end.position, m, 1e-14) and close(end.momentum, turned(u), 1e-14)


def path(sampler, num_steps=60):
    """Positions and rates along a chain; the same keys for every sampler."""
    (u,) = positions(1)

    def step(state, key):
        state, info = sampler.step(key, state)
        return state, (ravel_pytree(state.position)[0], info.acceptance_rate)

    keys = jax.random.split(jax.random.key(8), num_steps)
    return jax.jit(lambda u: jax.lax.scan(step, sampler.init(u, rng_key=jax.random.key(9)), keys)[1])(u)


@pytest.mark.slow
@pytest.mark.parametrize("other", [samplers.hmc, samplers.langevin])
def test_mala_is_one_leapfrog_step(other):
    points, rates = path(samplers.mala(0.6).bind(DENSITY))
    same_points, same_rates = path(other(0.6, 1).bind(DENSITY))
    assert 0.2 < rates.mean() < 0.95
    assert np.allclose(points, same_points, rtol=0, atol=1e-11)
    assert np.allclose(rates, same_rates, rtol=0, atol=1e-11)


# Bugs: ratios that are wrong, seen on a single path.


def coupled(u):
    return jnp.sum(jnp.cosh(u)) + u[0] * u[1] ** 2


def balanced(law, prior):
    """A sampler that is made of a law of proposals and an acceptance ratio."""
    starts = [normal_like(jax.random.key(i), jnp.zeros(3)) for i in range(3)]
    assert_detailed_balance(laws, laws.metropolis, coupled, starts, law, law=law, prior=prior)


test_bug_is_caught = caught(
    (
        "ratio",
        "log ratio .* is right",
        {
            "random walk without the prior term": lambda: balanced(laws.rwm(0.5), prior=0.0),
            "MALA without proposal densities": lambda: balanced(laws.mala(0.5), prior=1.0),
            "pCN with the prior counted twice": lambda: balanced(laws.pcn(0.5), prior=1.0),
            "pCNL by the published rule": lambda: balanced(laws.pcnl(0.5), prior=1.0),
        },
    )
)

test_right_one_of_the_same_make_passes = passed(
    random_walk=lambda: balanced(laws.rwm(0.5), prior=1.0), pcn=lambda: balanced(laws.pcn(0.5), prior=0.0)
)
