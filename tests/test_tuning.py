"""Tuning by effective samples for a cost: the rule, and that it picks what it says."""

import functools

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import widebnn as wb
from widebnn.samplers import Sampler, hmc, pcn, tuned
from widebnn.tuning import Candidate, tune, tune_block_size

TARGET = wb.targets.from_potential(lambda u: 2 * jnp.sum(u**2), jnp.zeros(5))
COLLECT = {"entries": lambda u: u, "norm": lambda u: jnp.sum(u**2)}


def choose(candidates, budget=2_000, **options):
    return tune(
        jax.random.key(0), candidates, TARGET, budget=budget, num_chains=2, collect=COLLECT, **options
    )


def walk(acceptance, cost=1):
    return Candidate(tuned(functools.partial(pcn, TARGET.potential), acceptance), cost)


@pytest.mark.slow
def test_the_same_sampler_at_ten_times_the_cost_loses():
    choice = choose({"dear": walk(0.4, cost=10), "cheap": walk(0.4, cost=1)}, budget=10_000)
    assert choice.name == "cheap"
    ratio = choice.efficiency["cheap"] / choice.efficiency["dear"]
    assert 5 < ratio < 20  # ten, and the noise of the two effective sample sizes


@pytest.mark.slow
def test_long_trajectories_win_where_scales_differ():
    """Steps as short as the narrowest of two directions, and the other one twenty times as wide."""
    stiff = wb.targets.from_potential(lambda u: 399 * u[0] ** 2 / 2, jnp.zeros(2))

    def trajectory(num_steps):
        make = functools.partial(hmc, stiff.potential, num_steps=num_steps)
        return Candidate(tuned(make, 0.9), cost=num_steps)

    candidates = {str(num_steps): trajectory(num_steps) for num_steps in (1, 4, 16)}
    choice = tune(
        jax.random.key(0), candidates, stiff, budget=16_000, num_chains=2, collect={"entries": lambda u: u}
    )
    assert choice.name != "1"
    assert choice.efficiency[choice.name] > 2 * choice.efficiency["1"] > 0


@pytest.mark.slow
def test_what_is_chosen_can_be_run_on():
    choice = choose({"timid": walk(0.99), "bold": walk(0.4)})
    assert choice.name == "bold"
    assert 0 < choice.step_size <= 1
    draws = wb.sample(
        jax.random.key(1), choice.sampler, TARGET, num_samples=1_000, num_chains=2, initial=choice.position
    )
    assert abs(draws.acceptance_rate - 0.4) < 0.1


@pytest.mark.slow
def test_a_sampler_that_never_moves_has_no_efficiency():
    def stuck(step_size):
        right = pcn(TARGET.potential, step_size)
        return Sampler(right.init, lambda key, state: (state, right.step(key, state)[1]))

    choice = choose({"stuck": Candidate(tuned(stuck, 0.4), 1), "walk": walk(0.4)})
    assert choice.efficiency["stuck"] == 0
    assert choice.name == "walk"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "options", "max_step_size"),
    [
        (wb.samplers.pcnl, {}, 1.0),
        (wb.samplers.langevin, {"damping": 0.1}, 10.0),
        (wb.samplers.function_space_hmc, {"num_steps": 2}, jnp.pi / 2),
    ],
)
def test_samplers_with_a_step_size_are_tuned_up_to_its_bound(make, options, max_step_size):
    make = functools.partial(make, TARGET.potential, **options)
    candidate = Candidate(tuned(make, 0.7, max_step_size=max_step_size), 1)
    choice = choose({"only": candidate}, budget=4_000)
    draws = wb.sample(
        jax.random.key(1), choice.sampler, TARGET, num_samples=1_000, num_chains=2, initial=choice.position
    )
    assert abs(draws.acceptance_rate - 0.7) < 0.1 or choice.step_size == pytest.approx(max_step_size)


def test_budget_must_pay_for_a_few_steps():
    with pytest.raises(ValueError, match="budget must be at least eight times the cost of 'walk'"):
        choose({"walk": walk(0.4)}, budget=7)


@pytest.mark.slow
def test_block_size_is_the_largest_with_the_acceptance_asked_for(float32):
    data = wb.data.digits(num_train=16, num_test=1)
    features = wb.models.FCN(64, 256, rngs=nnx.Rngs(0))
    target = wb.targets.marginal(wb.BNN(features, 10, noise_std=0.3), data.x_train, data.y_train)
    size, position = tune_block_size(jax.random.key(0), target, target_acceptance=0.8, num_chains=2)
    assert 1 < size < 256

    def acceptance(block_size):
        sampler = wb.samplers.unitwise(target, block_size)
        return wb.sample(
            jax.random.key(1), sampler, target, num_samples=40, num_chains=2, initial=position
        ).acceptance_rate

    assert acceptance(size) > 0.75 and acceptance(4 * size) < 0.8  # 0.05 for the noise of forty sweeps
