"""Path by path, in float64: acceptance ratios against full densities, the leapfrog run backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from widebnn import samplers
from widebnn.samplers import GradientState, MomentumState, leapfrog
from widebnn.samplers._function_space_hmc import rotations
from widebnn.targets import from_potential
from widebnn.tree import normal_like

from ..exact import laws
from ..exact.planted import caught, passed
from ..exact.reversibility import assert_detailed_balance, examined


def potential(u):
    """Neither Gaussian nor symmetric, and it couples the leaves."""
    return jnp.sum(jnp.cosh(u["a"])) + jnp.sum(jnp.sin(u["b"]) * u["a"][None, :]) + jnp.sum(u["b"] ** 3) / 10


TARGET = from_potential(potential, {"a": np.zeros(3), "b": np.zeros((2, 3))})
FLAT = from_potential(lambda u: jnp.zeros(()), TARGET.template)


def positions(num=5):
    return [TARGET.draw_prior(jax.random.key(100 + i)) for i in range(num)]


@jax.jit
def with_gradient(u):
    return GradientState(u, *jax.value_and_grad(potential)(u))


def moment(i):
    """A momentum."""
    return TARGET.draw_prior(jax.random.key(i))


def close(u, v, tolerance):
    pairs = zip(jax.tree.leaves(u), jax.tree.leaves(v), strict=True)
    return all(np.allclose(one, other, rtol=0, atol=tolerance) for one, other in pairs)


def turned(m):
    return jax.tree.map(np.negative, m)


def largest(u):
    return max(np.abs(leaf).max() for leaf in jax.tree.leaves(u))


@pytest.fixture(params=["rwm", "pcn", "mala", "pcnl"])
def at(request):
    """A function from a step size to a sampler and the law of its proposals."""
    return lambda step_size: [getattr(module, request.param)(step_size) for module in (samplers, laws)]


def test_a_step_has_the_law_and_the_ratio_of_full_densities(at):
    """The noise left over of a proposal is N(0, I), and the rate that is reported the ratio cut at 1."""
    assert_detailed_balance(TARGET, *at(0.4), positions())
    for i, u in enumerate(positions()):
        key = jax.random.key(i)
        (state, info, (log_ratio, old, new)), _, noise = examined(TARGET, *at(0.7), key, u)
        assert close(noise, ravel_pytree(normal_like(jax.random.split(key)[0], u))[0], 1e-12)
        assert np.allclose(info.acceptance_rate, min(1, np.exp(log_ratio)), rtol=1e-14)
        assert close(state, new if info.is_accepted else old, 0.0)


@pytest.mark.parametrize("name", ["pcn", "pcnl"])
def test_moves_of_the_prior_are_always_accepted(name):
    sampler, law = (getattr(module, name)(0.9) for module in (samplers, laws))
    for u in positions():
        assert examined(FLAT, sampler, law, jax.random.key(0), u)[0][1].acceptance_rate == 1


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
def test_integrator_runs_back_keeps_volume_and_reports_the_change_of_energy(make):
    flow = jax.jit(make(7))
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


# Bugs: ratios that are wrong, seen on a single path.


COUPLED = from_potential(lambda u: jnp.sum(jnp.cosh(u)) + u[0] * u[1] ** 2, np.zeros(3))


def balanced(law, prior):
    """A sampler that is made of a law of proposals and an acceptance ratio."""
    starts = [COUPLED.draw_prior(jax.random.key(i)) for i in range(3)]
    assert_detailed_balance(COUPLED, laws.metropolis(law, prior), law, starts)


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
