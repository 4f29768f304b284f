"""The experiments on what repriorisation gains Langevin: their rows and an exact answer."""

import numpy as np
import pytest
from scipy.optimize import brentq

from book.experiments.langevin_gain import MOST_RHAT, TENFOLD_RHAT, worth_where_flat


def test_the_worth_of_two_steps_depends_on_the_damping():
    """With all terms a step is worth what Theorem 14.1 says; where γ > 4ε no term is negative."""
    for damping in (0.3, 1.0):
        kept = np.sqrt(1 - damping)
        worth = 0.05**2 / (4 - 0.05**2) * (1 + kept) / (1 - kept)
        assert worth_where_flat(0.05, damping) == pytest.approx(worth, rel=1e-3)


def test_a_tenfold_gain_of_stationary_chains_makes_this_much_of_rhat():
    """1 ÷ (1 − g) with g = 2(s − 1 + e⁻ˢ)/s², the variance of a mean over s autocorrelation times (OU)."""

    def squared(s):
        return 1 / (1 - 2 * (s - 1 + np.exp(-s)) / s**2)

    at_agreement = brentq(lambda s: squared(s) - MOST_RHAT, 1, 100)
    assert squared(at_agreement / 10) == pytest.approx(TENFOLD_RHAT, abs=0.1)
    assert squared(at_agreement / 34) == pytest.approx(10, abs=0.3)
