"""The two terms at initialisation: what rows hold, and the values that need no computer."""

import dataclasses

import numpy as np
import pytest

from widebnn.experiments import elbo_ratio

from .judging import claim_of, findings

TINY = dataclasses.replace(elbo_ratio.config("smoke"), num_train=(20, 20), widths=(4, 40), num_samples=2)


@pytest.mark.slow
def test_terms_are_what_small_weights_make_them():
    rows = list(elbo_ratio(TINY))
    assert len(rows) == 2 * 2 * 2 * 2 * (1 + len(TINY.taus))
    for row in rows:
        num_weights = row["width"] * {"digits": 64 + 10, "diabetes": 10 + 1}[row["dataset"]]
        v, s2 = row["prior_variance"], TINY.initial_std**2
        each = (s2 / v - 1 - np.log(s2 / v)) / 2
        # means add (0.01)²/(2v) each, known to the scatter of so many squares
        means = 1e-4 / (2 * v) * (1 + 6 * np.sqrt(2 / num_weights))
        assert 0 < row["kl_divergence"] / num_weights - each < means
        if row["dataset"] == "digits":
            np.testing.assert_allclose(row["log_likelihood"], -20 * np.log(10), rtol=1e-2)
        eta = 1 if row["tau"] is None else row["tau"] * 20 / row["width"]
        np.testing.assert_allclose(row["ratio"] * eta * row["kl_divergence"], -row["log_likelihood"])


@pytest.mark.slow
def test_cooling_takes_the_width_out():
    rows = [r for r in elbo_ratio(TINY) if r["prior_variance"] == 0.2 and r["scaling"] == "mean-field"]
    for dataset in TINY.datasets:
        plain, cooled = (
            np.array([r["ratio"] for r in rows if r["dataset"] == dataset and r["tau"] == tau])
            for tau in (None, 1.0)
        )
        np.testing.assert_allclose(plain[0] / plain[1], 10, rtol=0.01)
        np.testing.assert_allclose(cooled[0] / cooled[1], 1, rtol=0.01)


def test_errors_of_ratios_are_those_of_draws():
    row = {"dataset": "mnist", "scaling": "mean-field", "prior_variance": 0.2, "log_likelihood": -50.0}
    rows = [
        row
        | {
            "width": width,
            "tau": tau,
            "ratio": ratio * (1.02 if width == 16 else 1),
            "log_likelihood_error": 1,
        }
        for width in (16, 64, 256)
        for tau, ratio in ((None, 1 / width), (0.1, 3.0))
    ]
    config = {"prior_variances": [0.2], "taus": [0.1], "num_samples": 4}
    slope, level = findings(claim_of(elbo_ratio, "V-F3"), rows, **config)
    assert slope.value == pytest.approx(-1, abs=0.01) and slope.error > 0 and slope.degrees == 1
    assert level.value == pytest.approx(1.02) and level.degrees == 3
    assert level.error == pytest.approx(1.02 * np.sqrt(2) / 50)
