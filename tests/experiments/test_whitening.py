"""Whitened layers over depth and width: rows, and a claim that follows them."""

import dataclasses

import pytest

from widebnn.experiments import CLAIMS, whitening
from widebnn.study import Results, Rows, verdict

TINY = dataclasses.replace(whitening.scales["smoke"], widths=(12,), num_samples=30, burn_in=20)
(CLAIM,) = (claim for claim in CLAIMS if claim.experiment == "whitening")


@pytest.mark.slow
def test_rows_cover_the_grid():
    rows = list(whitening(TINY))
    cases = [(row["depth"], row["target"], row["repeat"]) for row in rows]
    assert cases == [(1, "whitened", 0), (1, "whitened", 1)] + [
        (2, name, repeat) for name in ("weights", "whitened") for repeat in (0, 1)
    ]
    for row in rows:
        assert 0 < row["step_size"] < 1.6 and 0 < row["acceptance"] <= 1
        assert row["kicks"] == min(32, max(1, round(1 / row["step_size"])))
        assert row["ess_per_gradient"] == pytest.approx(row["ess"] / (row["kicks"] * 2 * 30))


@pytest.mark.parametrize(
    ("deep", "angle", "shift", "said"),
    [
        (0.9, 1.5, 0.0, "reproduced"),
        (0.3, 1.5, 0.0, "reproduced in part"),
        (0.9, 1.0, 0.0, "reproduced in part"),
        (0.9, 1.5, 1.0, "reproduced in part"),
        (0.3, 1.0, 1.0, "not reproduced"),
    ],
)
def test_claim_wants_longer_steps_on_one_posterior_and_gradients_of_equal_worth(deep, angle, shift, said):
    rows = Rows(
        {
            "depth": depth,
            "width": width,
            "target": name,
            "repeat": repeat,
            "step_size": 0.2 * (angle if name == "whitened" else 1) + 1e-3 * repeat,
            "ess_per_gradient": 0.08 * (deep if depth == 3 else 1) + 1e-4 * repeat,
            "potential": 7 + (5 * shift if name == "whitened" else 0) + 0.01 * repeat,
            "potential_std": 5.0,
            "ess": 300.0 + repeat,
            "rhat": 1.01 + 0.001 * repeat,
        }
        for depth in (3, 1)
        for width in (256, 128)
        for name in (("weights", "whitened") if depth > 1 else ("whitened",))
        for repeat in range(5)
    )
    assert verdict(CLAIM, CLAIM.summarise(Results(rows, {}, {}))) == said
