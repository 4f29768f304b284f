"""What vanishes over width: rows, and claims that follow them."""

import pytest

from book.experiments.theorems import theorems

from .judging import findings, judged


def rows(power: float, relative: float = 0.01):
    """Every quantity with the same law A·dᵖ."""
    names = [
        "KL in φ",
        *(f"gradient, {q}" for q in ("5 %", "median", "95 %")),
        *(f"rejection, {name}" for name in ("pCN", "pCNL", "pCN, inner")),
        "Kolmogorov",
        "Wasserstein",
    ]
    for width in (64, 128, 256, 512, 1_024):
        value = 0.5 * (width / 64) ** power
        for name in names:
            rhat = 1.001 if "rejection" in name else None
            yield {"quantity": name, "width": width, "value": value, "error": relative * value, "rhat": rhat}
        # the gap to the closed form; a constant one does not vanish either
        gap = {"quantity": "KL in θ", "width": width, "value": value, "error": relative * value}
        yield gap | {"limit": 100.0}


@pytest.mark.parametrize("claim", theorems.findings)
def test_claims_hold_for_a_quantity_that_vanishes_and_for_no_other(claim):
    assert len(theorems.findings) == 9
    assert judged(theorems, claim, rows(-0.5)) == judged(theorems, claim, rows(-1.0)) == "reproduced"
    assert judged(theorems, claim, rows(0.0)) != "reproduced"
    assert judged(theorems, claim, rows(0.5)) != "reproduced"
    assert judged(theorems, claim, rows(-0.5, relative=0.5)) != "reproduced"  # too noisy to know


def test_a_distance_that_is_lost_in_noise_is_not_resolved():
    lost = [row | {"value": -0.001} if row["width"] == 1_024 else row for row in rows(-1.0)]
    exponent, fall = findings(theorems, "H-P2.2", lost)
    assert str(exponent) == "not resolved" and not exponent.holds
    assert fall.holds
