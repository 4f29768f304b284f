"""T and R over the regulariser: what the rows hold, and that their summary is right."""

import dataclasses

import jax
import pytest

from widebnn.experiments import over_reg
from widebnn.experiments.settings.networks import in_span, network, observed
from widebnn.experiments.settings.tuned_chains import best_damping
from widebnn.experiments.theory.over_reg import _dimension

from .judging import claim_of, findings

SHORT = {"num_steps": 20, "burn_in": 10, "thin": 2, "num_chains": 2, "num_prior": 10, "num_projections": 3}
REG = dataclasses.replace(over_reg.config("smoke"), regs=(1.0,), width=2, num_train=3, **SHORT)


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
        | {f"rhat_{of}": 1 + value for of in ("projections", "norm")}
        for name, value in ess.items()
    ]
    found = findings(claim_of(over_reg, "H-F10"), rows, num_chains=8, num_steps=25_000)
    assert [finding.resolved for finding in found] == [True, False] * 2
    assert [finding.decides for finding in found] == [True, False, False, False]
    assert found[0].chains == pytest.approx((200.0, 1.003))
    assert found[1].chains == pytest.approx((60.0, 1.003))
    assert [round(finding.value) for finding in found] == [3, 10] * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_steps": 3}, "num_steps must be at least 2 · thin = 4; got 3"),
        ({"target_acceptance": 1.0}, r"target_acceptance must be a number in \(0, 1\); got 1.0"),
        ({"num_chains": 1}, "num_chains must be at least 2; got 1"),
        ({"dataset": "diabetes"}, "dataset must be one of 'cifar10', .*; got 'diabetes'"),
    ],
)
def test_configurations_that_cannot_run_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(REG, **change)


def test_the_cost_knows_how_many_parameters_there_are():
    dataset = in_span(observed("dense", "digits", 6, 1))
    template = network("dense", dataset, 3, 1, 0.1, 0).template(dataset.x_train)
    config = dataclasses.replace(REG, dataset="digits", num_train=6, width=3)
    assert _dimension(config) == sum(leaf.size for leaf in jax.tree.leaves(template))


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]
