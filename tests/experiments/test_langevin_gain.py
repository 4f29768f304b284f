"""The experiments on what repriorisation gains Langevin: their rows, an exact answer, their claims."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import widebnn as wb
from book.experiments import langevin_gain as module
from book.experiments.findings import verdict
from book.experiments.langevin_gain import (
    MOST_RHAT,
    TENFOLD_RHAT,
    gain_over_width,
    langevin_gain,
    worth_where_flat,
)
from widebnn.tables import Results, Rows

from .judging import said, verdict_on

TINY = gain_over_width.settings(
    "smoke",
    depth=1,
    widths=(2,),
    num_train=(3, 4),
    num_test=2,
    burn_in=1,
    num_steps=96,
    thin=2,
    num_projections=4,
)
EXPERIMENTS = ("gain_over_width", "gain_over_data", "gain_dense", "gain_resnet")


@pytest.fixture
def calls(monkeypatch):
    """Puts independent noise in the place of a run."""
    made = []

    def noise(rng_key, target, sampler, *, collect=None, initial, num_samples, num_chains, **options):
        made.append((target, initial))
        start = jax.tree.map(lambda leaf: leaf[0], initial)
        values = {name: np.asarray(function(target, start)) for name, function in (collect or {}).items()}
        seed = jax.random.bits(rng_key, (2,)).tolist()

        def about(value):
            return value + np.random.default_rng(seed).normal(size=(num_chains, num_samples, *value.shape))

        return wb.Draws(
            collected={name: about(value) for name, value in values.items()},
            stats={"acceptance_rate": np.full((num_chains, num_samples), TINY["target_acceptance"])},
            streamed={},
            position=initial,
            step_size=0.1,
            thin=options["thin"],
            burn_in=options["burn_in"],
            seconds=1.0,
        )

    monkeypatch.setattr(module, "sample", noise)
    return made


@pytest.mark.slow
def test_both_parametrisations_start_at_the_same_parameters(calls):
    list(langevin_gain(**TINY | {"num_train": (4,)}))
    (_, theta), *_, (target, phi) = calls
    assert len({float(chain) for chain in phi.readout[:, 0, 0]}) == TINY["num_chains"]
    mapped = jax.jit(jax.vmap(target.to_parameters))(phi)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), mapped, theta)
    assert not np.allclose(phi.readout, theta.readout)


@pytest.mark.slow
def test_the_regulariser_grows_with_the_images_where_it_should(calls):
    for reg_grows in (False, True):
        one = {"num_train": (3,), "parametrisations": ("φ",), "reg_grows": reg_grows}
        list(langevin_gain(**TINY | one))
    regs = [float(target.reg) for target, _ in calls]
    np.testing.assert_allclose(regs, [0.01] * 2 + [0.03] * 2)


@pytest.mark.parametrize(
    ("rejected", "num_runs"),
    [
        (lambda step_size, num_draws: 15 * step_size**3, (1, 1)),
        (lambda step_size, num_draws: step_size**3, (3, 1)),  # too little: the step could be longer
        # The chain goes on to where U is steeper.
        (lambda step_size, num_draws: (15 if num_draws < 48 else 200) * step_size**3, (1, 3)),
    ],
    ids=["kept by the law", "too little", "too much at the end"],
)
def test_the_step_is_tuned_until_the_whole_run_has_the_acceptance(monkeypatch, calls, rejected, num_runs):
    noise, step_sizes, lengths = module.sample, [], []

    def run(rng_key, target, sampler, **options):
        is_tuned = isinstance(sampler, wb.samplers.tuned)
        step_sizes.append(0.1 if is_tuned else sampler.step_size)  # what `noise` says it was tuned to
        lengths.append(options["num_samples"])
        draws = noise(rng_key, target, sampler, **options)
        rates = np.full_like(draws.stats["acceptance_rate"], 1 - rejected(step_sizes[-1], lengths[-1]))
        return dataclasses.replace(draws, stats={"acceptance_rate": rates})

    monkeypatch.setattr(module, "sample", run)
    *_, row = langevin_gain(**TINY | {"num_train": (3,), "parametrisations": ("θ",)})
    short, long = num_runs
    assert lengths == [5] * short + [48] * long
    assert row["step_size"] == step_sizes[-1]
    assert 0.98 < row["acceptance"] < 0.99


def results(over, gains, rhat=(2.0, 1.1), acceptance=0.99, of="θφ", ess=200.0, error=0.001, worse=1.0):
    """θ has an effective sample in a hundred steps; `gains` are of φ and `rhat` are R̂² of θ and of φ.

    The gain of the worst projection is `worse` times that of the mean.
    """
    rows = []
    for i, gain in enumerate(gains, start=1):
        for name, per_step, squared in zip("θφ", (0.01, 0.01 * gain), rhat, strict=True):
            for step in (50, 1_000):
                row = {"width": 8, "num_train": 8, "parametrisation": name, "step": step} | {over: 8 * i}
                row["acceptance"] = acceptance if name in of else 0.99
                row |= {"step_size": per_step, "damping": 2 * per_step}
                for quantity in ("projections", "predictions"):
                    row |= {f"pooled_{quantity}": per_step, f"pooled_error_{quantity}": error * per_step}
                    row |= {f"ess_bulk_{quantity}": ess, f"ess_tail_{quantity}": ess}
                    row[f"rhat_{quantity}"] = 1.02 if name == "θ" else 1.001
                for quantity in ("projections", "predictions"):
                    row |= {f"ess_{quantity}": per_step, f"ess_error_{quantity}": error * per_step}
                row |= {"ess_low_projections": per_step * ess / 10 * (worse if name == "φ" else 1)}
                row |= {"rhat_squared_projections": squared, "rhat_squared_std_projections": 0.01}
                rows.append(row)
    return Results(Rows(reversed(rows)), {"num_projections": 100, "num_chains": 3, "thin": 1}, {})


OPEN = "open"


@pytest.mark.parametrize(
    ("id", "made", "wanted"),
    [
        ("H-F7a", results("width", (2, 4, 50)), "holds"),
        ("H-F7a", results("width", (2, 4, 9)), "holds in part"),
        ("H-F7a", results("width", (9, 4, 0.5)), "fails"),
        ("H-F7a", results("width", (2, 4, 50), ess=149.0), OPEN),
        ("H-F7a", results("width", (2, 4, 50), error=0.1), OPEN),  # 0.14 of 50, by t with two degrees
        ("H-F7a", results("width", (1, 1.001), error=0.001), "fails"),
        ("H-F7b", results("num_train", (9, 4, 2)), "holds"),
        ("H-F7b", results("num_train", (4, 0.5)), "fails"),
        ("H-F7c", results("width", (2, 4)), "holds"),
        ("H-F7c", results("width", (2, 4), ess=10.0), OPEN),
        ("H-F7d", results("width", (2, 4)), "holds"),
        ("H-F7d", results("width", (0.9, 4)), "fails"),
        ("H-F8a", results("num_train", (10, 10, 10)), "holds"),
        ("H-F8a", results("num_train", (10, 1.1)), "holds in part"),
        ("H-F8a", results("num_train", (10, 10), acceptance=0.979, of="φ"), OPEN),
        ("H-F8a", results("num_train", (10, 10), acceptance=0.979, of="θ"), OPEN),
        ("H-F8b", results("num_train", (11, 1)), "holds"),
        ("H-F8b", results("num_train", (2, 1)), "holds in part"),
        ("H-F8c", results("num_train", (2, 10), worse=20, ess=2e6), "holds"),
        ("H-F8c", results("num_train", (2, 10), worse=5, ess=2e6), "holds in part"),
        ("H-F8c", results("num_train", (2, 10), ess=2e6), "fails"),
        ("H-F8c", results("num_train", (2, 10), worse=0.1, ess=2e6), "fails"),
        ("H-F8c", results("num_train", (2, 10), worse=20, ess=50.0), OPEN),  # five a chain
        ("H-F9", results("num_train", (1, 1), rhat=(90.0, 1.1)), "holds"),
        ("H-F9", results("num_train", (1, 1), rhat=(2.0, 1.1)), "holds in part"),
        ("H-F9", results("num_train", (1, 1), rhat=(90.0, 1.3)), OPEN),
        ("H-F9", results("num_train", (1, 1), rhat=(1.1, 1.15)), "fails"),
    ],
)
def test_verdicts_follow_the_numbers(id, made, wanted):
    assert verdict_on(id, made) == wanted


def test_effective_samples_behind_the_worst_projection_are_of_all_chains():
    found = said("H-F8c", results("num_train", (2, 150)))
    assert [finding.chains for finding in found] == [(pytest.approx(3 * 200), 1.02)] * 4
    assert [finding.decides for finding in found] == [False, False, False, True]
    assert [round(finding.value, 6) for finding in found] == [2, 1, 150, 1]


def test_the_worth_of_two_steps_depends_on_the_damping():
    """With all terms a step is worth what Theorem 14.1 says; where γ > 4ε no term is negative."""
    for damping in (0.3, 1.0):
        kept = np.sqrt(1 - damping)
        worth = 0.05**2 / (4 - 0.05**2) * (1 + kept) / (1 - kept)
        assert worth_where_flat(0.05, damping) == pytest.approx(worth, rel=1e-3)
    tuned, apart, low, middle, high = said("X-9", results("width", (2, 4, 8)))
    assert tuned.value == pytest.approx(8, rel=0.1) and high.value == pytest.approx(64, rel=0.01)
    assert low.value < middle.value < high.value and apart.value < 10


def test_a_tenfold_gain_of_stationary_chains_makes_this_much_of_rhat():
    """1 ÷ (1 − g) with g = 2(s − 1 + e⁻ˢ)/s², the variance of a mean over s autocorrelation times (OU)."""

    def squared(s):
        return 1 / (1 - 2 * (s - 1 + np.exp(-s)) / s**2)

    at_agreement = brentq(lambda s: squared(s) - MOST_RHAT, 1, 100)
    assert squared(at_agreement / 10) == pytest.approx(TENFOLD_RHAT, abs=0.1)
    assert squared(at_agreement / 34) == pytest.approx(10, abs=0.3)


def test_a_fall_over_images_needs_more_images_than_channels():
    made = results("num_train", (11, 1))
    assert said("H-F8b", made)[1].holds
    for row in made.rows:
        row["width"] = 16
    falls = said("H-F8b", made)[1]
    assert falls.value == pytest.approx(1 / 11) and not falls.holds and not falls.resolved


def test_the_gain_that_is_reported_is_that_at_the_last_checkpoint():
    made = results("width", (2, 3), error=0.01)
    for row in made.rows:
        if row["step"] == 50:
            row["pooled_projections"] = 7.0
    gain = said("H-F7a", made)[0]
    assert gain.chains == (200.0, 1.02)
    assert gain.value == pytest.approx(2) and gain.error == pytest.approx(2 * np.hypot(0.01, 0.01))


@pytest.mark.parametrize(("power", "word"), [(0.5, "holds"), (0.0, "fails")])
def test_steps_in_theta_are_compared_over_all_runs(power, word):
    def run(*sizes):
        rows = results("num_train", (2,) * 2).rows
        made = [row | {"num_train": n} for row, n in zip(rows.where(step=1_000), np.repeat(sizes, 2))]
        made = [row | {"step_size": 0.05 * row["num_train"] ** -power} for row in made]
        return Results(Rows(made), {"noise_std": 0.1}, {})

    first, second = run(8, 16), run(64, 1_024)
    found = module.gain_over_data.findings["H-AD2"](first, [second])
    assert verdict(found, is_papers=True) == word
    assert [finding.value for finding in found][1] == pytest.approx(np.sqrt(1_024 / 8))
