"""Path by path, in float64: acceptance ratios against full densities, the leapfrog run backwards."""

import jax
import jax.numpy as jnp
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
from widebnn.samplers._function_space_hmc import rotations
from widebnn.tree import normal_like

from ..exact import laws
from ..exact.planted import caught, passed
from ..exact.reversibility import assert_detailed_balance, recorded


def potential(u):
    """Neither Gaussian nor symmetric, and it couples the leaves."""
    return jnp.sum(jnp.cosh(u["a"])) + jnp.sum(jnp.sin(u["b"]) * u["a"][None, :]) + jnp.sum(u["b"] ** 3) / 10


def positions(num=5):
    template = {"a": jnp.zeros(3), "b": jnp.zeros((2, 3))}
    return [normal_like(jax.random.key(100 + i), template) for i in range(num)]


def close(u, v, tolerance):
    return jnp.allclose(ravel_pytree(u)[0], ravel_pytree(v)[0], rtol=0, atol=tolerance)


SAMPLERS = {"rwm": (_rwm, rwm), "pcn": (_pcn, pcn), "mala": (_mala, mala), "pcnl": (_pcnl, pcnl)}


@pytest.mark.parametrize("step_size", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("name", SAMPLERS)
def test_log_ratio_is_that_of_full_densities(name, step_size):
    law = getattr(laws, name)(step_size)
    assert_detailed_balance(*SAMPLERS[name], potential, positions(), law, step_size=step_size)


@pytest.mark.parametrize("name", SAMPLERS)
def test_proposal_is_mean_plus_noise(name):
    """q(u → ·) of the ratio is the law that proposals are drawn from: the noise left over is N(0, I)."""
    module, make = SAMPLERS[name]
    sampler, law = make(potential, 0.4), getattr(laws, name)(0.4)
    (u,) = positions(1)
    mean, std = law(ravel_pytree(u)[0], ravel_pytree(jax.grad(potential)(u))[0])
    key = jax.random.key(3)
    _, _, (_, _, proposal) = jax.jit(recorded(module, sampler))(key, sampler.init(u))
    noise = (ravel_pytree(proposal.position)[0] - mean) / std
    assert close(noise, normal_like(jax.random.split(key)[0], u), 1e-12)


@pytest.mark.parametrize("name", SAMPLERS)
def test_reported_rate_is_the_ratio_cut_at_one(name):
    module, make = SAMPLERS[name]
    sampler = make(potential, 0.7)
    step = jax.jit(recorded(module, sampler))
    for i, u in enumerate(positions()):
        state, info, (log_ratio, old, new) = step(jax.random.key(i), sampler.init(u))
        assert jnp.allclose(info.acceptance_rate, jnp.minimum(1, jnp.exp(log_ratio)), rtol=1e-14)
        assert close(state, new if info.is_accepted else old, 0.0)


@pytest.mark.parametrize("name", ["pcn", "pcnl"])
def test_moves_of_the_prior_are_always_accepted(name):
    sampler = getattr(samplers, name)(lambda u: jnp.zeros(()), 0.9)
    for u in positions():
        assert sampler.step(jax.random.key(0), sampler.init(u))[1].acceptance_rate == 1


@pytest.mark.parametrize("num_steps", [1, 7])
def test_leapfrog_runs_back(num_steps):
    integrate = leapfrog(potential, 0.3, num_steps)
    for i, u in enumerate(positions()):
        start = GradientState(u, *jax.value_and_grad(potential)(u))
        m = normal_like(jax.random.key(i), u)
        moved, new_m, change = integrate(start, m)
        assert not close(moved.position, u, 0.1)
        returned, back_m, change_back = integrate(moved, jax.tree.map(jnp.negative, new_m))
        assert close(returned, start, 1e-12 * (1 + jnp.abs(ravel_pytree(start)[0]).max()))
        assert close(back_m, jax.tree.map(jnp.negative, m), 1e-12)
        assert jnp.allclose(change, -change_back, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_leapfrog_preserves_volume():
    integrate = leapfrog(potential, 0.3, 3)
    (u,) = positions(1)
    flat_u, unravel = ravel_pytree(u)

    def flow(z):
        u, m = unravel(z[: len(flat_u)]), unravel(z[len(flat_u) :])
        moved, new_m, _ = integrate(GradientState(u, *jax.value_and_grad(potential)(u)), m)
        return jnp.concatenate([ravel_pytree(moved.position)[0], ravel_pytree(new_m)[0]])

    z = jnp.concatenate([flat_u, ravel_pytree(normal_like(jax.random.key(0), u))[0]])
    assert abs(jnp.linalg.det(jax.jacfwd(flow)(z)) - 1) < 1e-12


def test_energy_change_is_that_of_the_hamiltonian():
    (u,) = positions(1)
    m = normal_like(jax.random.key(0), u)

    def energy(u, m):
        return potential(u) + sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves((u, m))) / 2

    moved, new_m, change = leapfrog(potential, 0.2, 4)(GradientState(u, *jax.value_and_grad(potential)(u)), m)
    assert jnp.allclose(change, energy(moved.position, new_m) - energy(u, m), rtol=0, atol=1e-12)


def with_momentum(u, m):
    return MomentumState(u, *jax.value_and_grad(potential)(u), m)


def turned(state):
    return state._replace(momentum=jax.tree.map(jnp.negative, state.momentum))


@pytest.mark.parametrize("num_steps", [1, 7])
def test_rotations_run_back(num_steps):
    integrate = rotations(potential, 0.3)
    for i, u in enumerate(positions()):
        start = with_momentum(u, normal_like(jax.random.key(i), u))
        moved, change = integrate(start, num_steps)
        assert not close(moved.position, u, 0.1)
        returned, change_back = integrate(turned(moved), num_steps)
        assert close(returned, turned(start), 1e-12 * (1 + jnp.abs(ravel_pytree(start)[0]).max()))
        assert jnp.allclose(change, -change_back, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_rotations_preserve_volume_and_report_the_change_of_energy():
    integrate = rotations(potential, 0.3)
    (u,) = positions(1)
    flat_u, unravel = ravel_pytree(u)

    def flow(z):
        moved, change = integrate(with_momentum(*(unravel(half) for half in jnp.split(z, 2))), 3)
        return ravel_pytree((moved.position, moved.momentum))[0], change

    def energy(z):
        return potential(unravel(z[: len(flat_u)])) + jnp.sum(z**2) / 2

    z = jnp.concatenate([flat_u, ravel_pytree(normal_like(jax.random.key(0), u))[0]])
    end, change = flow(z)
    assert abs(jnp.linalg.det(jax.jacfwd(lambda z: flow(z)[0])(z)) - 1) < 1e-12
    assert jnp.allclose(change, energy(end) - energy(z), rtol=0, atol=1e-12)


def test_rotations_are_exact_without_a_potential():
    """A quarter turn exchanges position and momentum, in one step as in ten; the energy stays to the bit."""
    (u,) = positions(1)
    m = normal_like(jax.random.key(0), u)
    start = MomentumState(u, jnp.zeros(()), jax.tree.map(jnp.zeros_like, u), m)
    for num_steps in (1, 10):
        integrate = rotations(lambda u: jnp.zeros(()), jnp.pi / 2 / num_steps)
        end, change = integrate(start, num_steps)
        assert change == 0
        assert close(end.position, m, 1e-14) and close(end.momentum, jax.tree.map(jnp.negative, u), 1e-14)


def path(sampler, num_steps=60):
    """Positions and rates along a chain; the same keys for every sampler."""
    (u,) = positions(1)

    def step(state, key):
        state, info = sampler.step(key, state)
        return state, (ravel_pytree(state.position)[0], info.acceptance_rate)

    keys = jax.random.split(jax.random.key(8), num_steps)
    return jax.lax.scan(step, sampler.init(u, rng_key=jax.random.key(9)), keys)[1]


@pytest.mark.slow
@pytest.mark.parametrize("other", [samplers.hmc, samplers.langevin])
def test_mala_is_one_leapfrog_step(other):
    points, rates = path(samplers.mala(potential, 0.6))
    same_points, same_rates = path(other(potential, 0.6, 1))
    assert 0.2 < rates.mean() < 0.95
    assert jnp.allclose(points, same_points, rtol=0, atol=1e-11)
    assert jnp.allclose(rates, same_rates, rtol=0, atol=1e-11)


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
