"""Monte Carlo estimates and their errors, held against closed forms over repetitions.

A check fails on right code with the declared chance `FALSE_FAILURE`: a mean of independent z-scores is held
to its normal quantile, a coverage to its binomial one.
"""

import math

import numpy as np
from scipy import stats

from .dkwm import FALSE_FAILURE

LIMIT = stats.norm.isf(FALSE_FAILURE / 2)
REPETITIONS = 2_000
NUM_DRAWS = 1_000


def assert_covers(estimate, truth):
    """Centred at the truth, and within one error of it as often as a normal variate is."""
    z = (estimate.value - truth) / estimate.error
    # Beside chance: what the skewness of one estimate, of order 1/√draws, may do.
    allowed = LIMIT / math.sqrt(len(z)) + 0.1
    assert abs(z.mean()) < allowed, f"mean z-score {z.mean():.2f}, allowed {allowed:.2f}"
    inside, expected = np.mean(np.abs(z) < 1), stats.norm.cdf(1) - stats.norm.cdf(-1)
    allowed = LIMIT * math.sqrt(expected * (1 - expected) / len(z)) + 0.03
    assert abs(inside - expected) < allowed, f"coverage {inside:.3f}, expected {expected:.3f}"


def assert_kl_of_linear_potential(kl_from_prior, a):
    """U(u) = a u tilts N(0, 1) to N(−a, 1): KL = a²/2."""
    u = a * np.random.default_rng(0).normal(size=(REPETITIONS, NUM_DRAWS))
    assert_covers(kl_from_prior(u), a**2 / 2)


def assert_kl_of_quadratic_potential(kl_from_prior, c=0.5):
    """U(u) = c u²/2 gives N(0, 1/(1 + c)): KL = ½[c − log(1 + c)]."""
    u = c * np.random.default_rng(0).normal(size=(REPETITIONS, NUM_DRAWS)) ** 2 / 2
    assert_covers(kl_from_prior(u), (c - math.log1p(c)) / 2)


def assert_distance_of_mixture(kolmogorov_distance, s=0.5):
    """m ~ N(0, s²) with variance 1 − s² is N(0, 1): the distance is 0, over repetitions and points."""
    rng, shape = np.random.default_rng(0), (500, 3)
    found = [
        kolmogorov_distance(
            s * rng.normal(size=shape), np.full(shape, 1 - s**2), np.zeros(3), np.ones(3), num_points=41
        )
        for _ in range(300)
    ]
    z = np.array([f.value / f.error for f in found])
    allowed = LIMIT * z.std() / math.sqrt(len(z))
    assert abs(z.mean()) < allowed, f"mean z-score {z.mean():.2f}, allowed {allowed:.2f}"
