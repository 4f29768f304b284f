"""One-sample tests of a distribution by the Dvoretzky–Kiefer–Wolfowitz inequality with Massart's constant.

P(sup |F_n − F| > ε) ≤ 2 exp(−2nε²) for every n and every continuous F: the rate of false failures is declared
and holds, no seed is needed. Massart, "The tight constant in the Dvoretzky–Kiefer–Wolfowitz inequality",
Annals of Probability 18 (1990).
"""

import math

import numpy as np

FALSE_FAILURE = 1e-6
"""Declared chance that one call of a check fails on right code."""

MISS = 1e-3
"""Declared chance that a wrong distribution as far away as `detectable` says goes unseen."""


def bound(num_draws, chance):
    """ε with P(sup |F_n − F| > ε) ≤ chance."""
    return math.sqrt(math.log(2 / chance) / (2 * num_draws))


def detectable(num_draws, false_failure=FALSE_FAILURE, miss=MISS):
    """sup |G − F| of a wrong G from which the test fails with probability 1 − miss (triangle inequality)."""
    return bound(num_draws, false_failure) + bound(num_draws, miss)


def distance(values, cdf):
    """sup |F_n − F| for draws `values` and the exact F."""
    exact = np.asarray(cdf(np.sort(np.asarray(values, np.float64))))
    n = len(exact)
    return max((np.arange(1, n + 1) / n - exact).max(), (exact - np.arange(n) / n).max())


def assert_distributed(name, values, cdf, false_failure=FALSE_FAILURE):
    """The values are independent draws from `cdf`, as far as their number can tell."""
    found, allowed = distance(values, cdf), bound(len(values), false_failure)
    assert found <= allowed, f"{name}: CDFs differ by {found:.4f}, more than {allowed:.4f}"
