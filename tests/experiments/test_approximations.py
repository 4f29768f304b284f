"""Many approximations of one posterior: the common rule is right."""

import numpy as np
from scipy.stats import norm

from book.experiments.approximations import Predictions


def test_probabilities_are_those_of_labels_among_targets():
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(3, 4, 5)), rng.uniform(0.5, 2, size=(3, 4))
    targets = np.eye(5) - 1 / 5
    density = np.empty((4, 5))
    for i in range(4):
        for c in range(5):
            of_draws = norm.pdf(targets[c][None], mean[:, i], np.sqrt(variance[:, i])[:, None]).prod(axis=1)
            density[i, c] = of_draws.mean()
    expected = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Predictions(mean, variance).probabilities(), expected, rtol=1e-10)


def test_moments_are_those_of_the_mixture():
    rng = np.random.default_rng(1)
    mean, variance = rng.normal(size=(4, 2, 3)), rng.uniform(0.5, 2, size=(4, 2))
    num_draws = 400_000
    s = rng.integers(4, size=num_draws)
    y = mean[s] + np.sqrt(variance[s])[:, :, None] * rng.normal(size=(num_draws, 2, 3))
    first, second = Predictions(mean, variance).moments()
    np.testing.assert_allclose(first, y.mean(axis=0), atol=6 * 2 / np.sqrt(num_draws))
    np.testing.assert_allclose(second, y.var(axis=0).mean(axis=1), rtol=6 * np.sqrt(2 / num_draws))
