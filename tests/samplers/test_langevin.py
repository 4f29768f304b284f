"""What only the Langevin sampler has: a momentum that flips, and a correction that can be switched off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from widebnn.samplers import GradientState, langevin, leapfrog
from widebnn.samplers._langevin import Flat, flat_leapfrog
from widebnn.targets import from_potential
from widebnn.tree import normal_like

from ..exact.conservation import after_steps
from ..exact.dkwm import FALSE_FAILURE, assert_distributed
from ..exact.reversibility import recorded

NUM_DRAWS = 100_000
PRECISION = np.array([1.0, 4.0, 9.0])
"""Of independent coordinates: U(u) = ½ Σ (ω² − 1) u²."""


def potential(u):
    return jnp.sum((PRECISION - 1) * u**2) / 2


TARGET = from_potential(potential, np.zeros(3))


@jax.jit
def started(sampler):
    """The state at (1, 1, 1)."""
    return sampler.init(TARGET, jnp.ones(3), jax.random.key(0))


def test_rejected_moves_reverse_the_momentum():
    """The state kept on rejection is the one from which the proposal, reversed, would be reached back."""
    sampler = langevin(0.5, damping=0.3)
    state, rejections = started(sampler), 0
    step, back_again = jax.jit(recorded(TARGET, sampler)), jax.jit(leapfrog(potential, 0.5, 1))
    for i in range(30):
        kept, info, (_, flipped, proposal) = step(jax.random.key(100 + i), state)
        back, back_m, _ = back_again(GradientState(*proposal[:3]), -proposal.momentum)
        assert np.allclose(back.position, state.position, rtol=0, atol=1e-12)
        assert np.allclose(back_m, flipped.momentum, rtol=0, atol=1e-12)
        expected = proposal if info.is_accepted else flipped
        assert np.array_equal(kept.position, expected.position)
        assert np.array_equal(kept.momentum, expected.momentum)
        rejections += not info.is_accepted
        state = kept
    assert 0 < rejections < 30


def test_momentum_keeps_its_law_and_its_memory():
    """m ← √(1 − γ) m + √γ ξ, with ξ the noise of the step's first key."""
    sampler, key = langevin(step_size=1e-6, damping=0.36), jax.random.key(1)
    state = started(sampler)
    noise = normal_like(jax.random.split(key)[0], jnp.ones(3))
    moved, _ = jax.jit(sampler.step)(TARGET, key, state)
    wanted = 0.8 * np.asarray(state.momentum) + 0.6 * np.asarray(noise)
    assert np.allclose(moved.momentum, wanted, rtol=0, atol=1e-4)


def uncorrected(step_size, damping):
    return langevin(step_size, damping, metropolis=False)


def stationary_std(step_size):
    """Of the uncorrected chain: leapfrog conserves m² + ω²(1 − ε²ω²/4)u² exactly, refreshment m ~ N(0, 1)."""
    return 1 / np.sqrt(PRECISION * (1 - step_size**2 * PRECISION / 4))


@pytest.mark.slow
@pytest.mark.parametrize("step_size", [0.2, 0.4])
@pytest.mark.parametrize("damping", [0.1, 1.0])
def test_uncorrected_chain_has_the_known_bias(step_size, damping):
    """It conserves the distribution that is too wide by O(ε²), and so tells that it is not the target."""
    std = stationary_std(step_size)
    start = jnp.asarray(np.random.default_rng(0).normal(size=(NUM_DRAWS, 3)) * std[None, :])
    states, _ = after_steps(jax.random.key(0), TARGET, uncorrected(step_size, damping), start, 20)
    for i in range(3):
        assert_distributed(f"u_{i}", states.position[:, i], stats.norm(0, std[i]).cdf, FALSE_FAILURE / 3)


def test_reported_rate_does_not_depend_on_the_correction():
    def steps(metropolis):
        sampler = langevin(0.6, 0.5, metropolis)
        state = started(sampler)
        keys = jax.random.split(jax.random.key(1), 100)
        return jax.jit(jax.vmap(lambda key: sampler.step(TARGET, key, state)))(keys)

    (_, corrected), (moved, free) = steps(True), steps(False)
    np.testing.assert_array_equal(corrected.acceptance_rate, free.acceptance_rate)
    assert free.is_accepted.all() and not corrected.is_accepted.all()
    assert (moved.position != 1).any(axis=1).all()


def test_flat_directions_make_the_leapfrog_step_of_all_their_coordinates():
    """ΔH is also an eighth of ε² times the growth of ‖x‖²."""
    x, m = np.random.default_rng(0).normal(size=(2, 50))

    def of(x, m):
        norm = np.linalg.norm(x)
        along = m @ x / norm
        return Flat(norm, along, np.sqrt(m @ m - along**2))

    start, move = of(x, m), jax.jit(lambda start: flat_leapfrog(start, 0.3))
    new, energy_change = move(start)
    state = GradientState(jnp.asarray(x), jnp.zeros(()), jnp.zeros(50))
    end, end_m, wanted = jax.jit(leapfrog(lambda u: jnp.zeros(()), 0.3, 1))(state, jnp.asarray(m))
    exact = of(np.asarray(end.position), np.asarray(end_m))
    np.testing.assert_allclose(new, exact, rtol=1e-10)
    np.testing.assert_allclose(energy_change, wanted, rtol=1e-10)
    np.testing.assert_allclose(energy_change, 0.3**2 / 8 * (exact.norm**2 - start.norm**2), rtol=1e-10)
    back, change_back = move(new._replace(along=-new.along))
    np.testing.assert_allclose(back, start._replace(along=-start.along), rtol=1e-10)
    np.testing.assert_allclose(change_back, -energy_change, rtol=1e-10)


NUM_FLAT = 300


@pytest.mark.slow
def test_carrying_the_norm_is_langevin_on_all_coordinates():
    """From equilibrium the same acceptance, and ‖x‖² stays χ²."""
    num_chains, step_size = 5_000, 0.6
    rng = np.random.default_rng(0)
    seen = jnp.asarray(rng.normal(size=(num_chains, 3)) / np.sqrt(PRECISION)[None, :])
    everything = jnp.concatenate([seen, jnp.asarray(rng.normal(size=(num_chains, NUM_FLAT)))], axis=1)

    def after(start, u, **options):
        sampler = langevin(step_size, 0.3, **options)
        return after_steps(jax.random.key(1), from_potential(u, start[0]), sampler, start, 3)

    states, mine = after(seen, potential, num_flat=NUM_FLAT)
    _, right = after(everything, lambda u: potential(u[:3]))
    _, wrong = after(seen, potential)
    error = 0.5 * np.sqrt(2 / num_chains)  # no rate between 0 and 1 has a larger standard deviation
    assert abs(mine - right) < 5 * error
    assert wrong - mine > 10 * error, "the flat directions count"
    assert_distributed("‖x‖²", states.flat.norm**2, stats.chi2(NUM_FLAT).cdf)
    assert_distributed("along", states.flat.along, stats.norm.cdf)
    assert_distributed("across", states.flat.across**2, stats.chi2(NUM_FLAT - 1).cdf)
    assert_distributed("u", states.position[:, 2], stats.norm(0, 1 / 3).cdf)
