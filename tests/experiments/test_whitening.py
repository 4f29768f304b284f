"""Whitened layers over depth and width: rows, and a claim that follows them."""

import pytest

from widebnn.tables import Results, Rows

from .judging import verdict_on


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
    assert verdict_on("X-6", Results(rows, {}, {})) == said
