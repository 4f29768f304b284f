"""The experiment on what a step costs: rows, the clock, and claims on made-up rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widebnn as wb
from book.experiments.clock import median_error, step_times, steps
from book.experiments.findings import verdict
from book.experiments.step_cost import step_cost
from widebnn.samplers import pcn
from widebnn.tables import Results, Rows

from .judging import said


def test_the_clock_counts_the_time_of_a_step_alone(monkeypatch):
    """A step moves a clock of its own by what it is said to take."""
    now = 0.0
    monkeypatch.setattr("book.experiments.clock.time.perf_counter", lambda: now)

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


def rows(dense, feature, convolutional, images=16):
    made = []
    for architecture, target, ratios in (
        ("dense", "φ", dense),
        ("dense", "φ, feature space", feature),
        ("convolutional", "φ, feature space", convolutional),
    ):
        for width, ratio in ratios.items():
            row = {"architecture": architecture, "target": target, "width": width}
            row["num_train"] = 16 if architecture == "dense" else images
            made.append(row | {"ratio": ratio, "ratio_error": 0.02})
    return made


@pytest.mark.parametrize(
    ("made", "device", "wanted", "held"),
    [
        (rows({64: 1.2, 4_096: 3.0}, {64: 1.2, 4_096: 1.4}, {64: 1.0}), "H100", "holds", 4),
        (rows({64: 2.2, 1_024: 2.5}, {64: 1.2, 1_024: 1.1}, {64: 1.8}), "H100", "fails", 0),
        (rows({64: 1.2}, {64: 1.2, 4_096: 1.4}, {64: 1.0}), "cpu, 1 core", "open", 3),
        (rows({64: 1.2}, {64: 1.2, 4_096: 1.4}, {64: 1.0}, images=8), "H100", "holds", 3),
    ],
)
def test_verdicts_follow_the_numbers(made, device, wanted, held):
    findings = said("H-F6", Results(Rows(reversed(made)), {}, {"device": device}))
    assert verdict(findings) == wanted and sum(f.holds for f in findings) == held


def test_every_scale_has_both_architectures():
    for settings in step_cost.scales.values():
        assert {one[0] for one in settings["networks"]} == {"dense", "convolutional"}
