"""The two terms at initialisation: what rows hold, and the values that need no computer."""

import numpy as np
import pytest

from book.experiments.elbo_ratio import elbo_ratio

from .judging import findings


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
    slope, level = findings(elbo_ratio, "V-F3", rows, **config)
    assert slope.value == pytest.approx(-1, abs=0.01) and slope.error > 0 and slope.degrees == 1
    assert level.value == pytest.approx(1.02) and level.degrees == 3
    assert level.error == pytest.approx(1.02 * np.sqrt(2) / 50)
