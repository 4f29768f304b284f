"""T and R over the regulariser: what the rows hold, and that their summary is right."""

import pytest

from book.experiments.over_reg import over_reg
from book.experiments.tuned_chains import best_damping

from .judging import findings


def test_a_gain_is_resolved_where_both_maps_have_enough_effective_samples():
    ess = {"identity": 0.0003, "T": 0.003, "R": 0.001}
    rows = [
        {"map": name, "reg": None if name == "identity" else 1.0}
        | {f"ess_{of}": value for of in ("projections", "norm")}
        | {f"ess_{of}_error": 1e-5 for of in ("projections", "norm")}
        | {f"rhat_{of}": 1 + value for of in ("projections", "norm")}
        for name, value in ess.items()
    ]
    found = findings(over_reg, "H-F10", rows, num_chains=8, num_steps=25_000)
    assert [finding.resolved for finding in found] == [True, False] * 2
    assert [finding.decides for finding in found] == [True, False, False, False]
    assert found[0].chains == pytest.approx((200.0, 1.003))
    assert found[1].chains == pytest.approx((60.0, 1.003))
    assert [round(finding.value) for finding in found] == [3, 10] * 2


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]
