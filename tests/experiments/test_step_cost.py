"""The experiment on what a step costs: the clock and its errors."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from book.experiments.clock import median_error, step_times, steps
from widebnn.samplers import pcn


def test_the_clock_counts_the_time_of_a_step_alone(monkeypatch):
    """A step moves a clock of its own by what it is said to take."""
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def wait(position, seconds):
        nonlocal now
        now += float(seconds)
        return position

    class waiting(pcn):
        def step(self, target, rng_key, state):
            shape = jax.ShapeDtypeStruct((), state.position.dtype)
            moved = jax.pure_callback(wait, shape, state.position, self.step_size)
            return state._replace(position=moved), None

    target = wb.targets.from_potential(lambda u: u, jnp.zeros(()))
    clocks = [steps(target, waiting(seconds), jnp.zeros(())) for seconds in (0.004, 0.012)]
    times = step_times(clocks, timed_seconds=0.02, num_rounds=3)
    assert times == pytest.approx(np.array([[4.0, 12.0]] * 3))


def test_the_error_of_a_median_is_that_of_repeated_medians():
    values = np.random.default_rng(0).normal(size=(2_000, 101))
    wanted = np.median(values, axis=1).std()
    assert abs(np.mean([median_error(one) for one in values]) / wanted - 1) < 0.05
    assert median_error(np.array([1.0, 1.1, 0.9, 1.0, 50.0])) < 0.1  # one slow round
