"""The experiments on other maps: what their rows hold, and that their summaries are right."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import SOFTMAX_MAPS, over_maps, over_reg
from widebnn.experiments.theory.other_maps import _std, _two_digits

from .judging import claim_of, findings

SHORT = {"num_steps": 20, "burn_in": 10, "thin": 2, "num_chains": 2, "num_prior": 10, "num_projections": 3}
REG = dataclasses.replace(over_reg.config("smoke"), regs=(1.0,), width=2, num_train=3, **SHORT)
MAPS = dataclasses.replace(over_maps.config("smoke"), widths=(2,), num_train=6, num_inputs=2, **SHORT)


def assert_rows_are_sane(rows, quantities, num_steps=20, thin=2):
    for row in rows:
        assert 0 <= row["acceptance"] <= 1
        assert row["step_size"] > 0
        for quantity in quantities:
            assert 1 / num_steps <= row[f"ess_{quantity}"] <= 1 / thin
            assert row[f"ess_{quantity}_error"] >= 0
            assert row[f"rhat_{quantity}"] > 0.9


@pytest.mark.slow
def test_rows_over_reg():
    rows = list(over_reg(REG))
    assert [(r["map"], r["reg"]) for r in rows] == [("identity", None), ("T", 1.0), ("R", 1.0)]
    assert_rows_are_sane(rows, ("projections", "norm"))
    assert [0 <= r["folded"] <= 1 for r in rows if r["map"] == "R"] == [True]


def test_a_gain_is_resolved_where_both_maps_have_enough_effective_samples():
    ess = {"identity": 0.0003, "T": 0.003, "R": 0.001}
    rows = [
        {"map": name, "reg": None if name == "identity" else 1.0}
        | {f"ess_{of}": value for of in ("projections", "norm")}
        | {f"ess_{of}_error": 1e-5 for of in ("projections", "norm")}
        for name, value in ess.items()
    ]
    found = findings(claim_of(over_reg, "H-F10"), rows, num_chains=8, num_steps=25_000)
    assert [finding.resolved for finding in found] == [True, False] * 2
    assert [finding.decides for finding in found] == [True, False, False, False]
    assert [round(finding.value) for finding in found] == [3, 10] * 2


@pytest.mark.slow
def test_rows_over_maps():
    rows = list(over_maps(MAPS))
    assert [(r["width"], r["map"]) for r in rows] == [(2, name) for name in SOFTMAX_MAPS]
    assert_rows_are_sane(rows, ("projections", "predictions"))
    assert all(r["potential_std"] > r["potential_std_error"] > 0 for r in rows)


@pytest.mark.parametrize(
    ("config", "change", "words"),
    [
        (MAPS, {"maps": ("identity", "probit")}, "maps must be one of 'Gaussian, .*; got 'probit'"),
        (MAPS, {"num_inputs": 7}, "num_inputs must be 1 to 6, .*; got 7"),
        (REG, {"num_steps": 3}, "num_steps must be at least 2 · thin = 4; got 3"),
        (REG, {"target_acceptance": 1.0}, r"target_acceptance must be a number in \(0, 1\); got 1.0"),
        (REG, {"num_chains": 1}, "num_chains must be at least 2; got 1"),
    ],
)
def test_configurations_that_cannot_run_are_refused(config, change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(config, **change)


def test_standard_error_of_a_standard_deviation():
    draws = np.random.default_rng(0).standard_normal((500, 400))
    found = np.array([_std(row) for row in draws])
    assert abs(found[:, 1].mean() / found[:, 0].std() - 1) < 5 / np.sqrt(2 * 500)


def test_two_digits_are_two_classes_in_common_units():
    x, labels, x_new = _two_digits(64, 4)
    assert x.shape == (64, 4)
    assert x_new.shape == (20, 4)
    assert set(labels) == {0, 1}
    assert abs(float(x.mean())) < 1e-5
    assert abs(float(x.std()) - 1) < 1e-5
    spread = np.asarray(x).std(axis=0)
    assert (np.diff(spread) < 0).all()  # leading components first
