"""T and R over the regulariser: what the rows hold, and that their summary is right."""

import pytest

from book.experiments.over_reg import over_reg
from book.experiments.tuned_chains import best_damping

from .judging import findings, judged


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


@pytest.mark.parametrize(
    ("ess", "word"),
    [((3, 2, 1), "reproduced"), ((1, 2, 0.5), "contradicted"), ((2, 1.9, 3), "not testable at this scale")],
)
def test_the_regulariser_nearest_to_the_noise_is_compared_with_every_other(ess, word):
    """Ten effective samples in a thousand steps are one unit; no map has the last."""
    of = zip(("T", "T", "identity"), (0.01, 1.0, None), ess, strict=True)
    rows = [
        {"map": name, "reg": reg, "ess_projections": 0.01 * value}
        | {"ess_projections_error": 0.0003, "rhat_projections": 1.001}
        for name, reg, value in of
    ]
    settings = {"num_chains": 8, "num_steps": 25_000, "noise_std": 0.1}
    assert judged(over_reg, "H-F7e", rows, **settings) == word
    assert [f.value for f in findings(over_reg, "H-F7e", rows, **settings)] == pytest.approx(
        [ess[0] / ess[1], ess[0] / ess[2]]
    )


def test_the_damping_is_twice_the_step_and_at_most_one():
    assert [float(best_damping(step_size)) for step_size in (0.125, 0.5, 3.0)] == [0.25, 1.0, 1.0]
