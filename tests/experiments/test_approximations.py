"""Many approximations of one posterior: the common rule is right, and so are the distances between them."""

import jax
import numpy as np
import pytest
from scipy.stats import norm

from book.experiments.approximations import Predictions, _nngp, _problem, _reparametrised_prior, _row
from book.experiments.images import images


def tiny(width=16):
    """A network of this width that observes seven classes of a few digits."""
    digits = images("digits", 25, 60)
    return _problem(digits, slice(25), 7, width, 1, 0.1, 0)


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


def test_unseen_classes_are_unseen():
    problem = tiny()
    assert problem.y.shape[1] == 7 == len(np.unique(problem.labels_test))
    assert len(problem.labels_test) < len(problem.x_test) == 60
    np.testing.assert_allclose(problem.y.sum(axis=1), 0, atol=1e-6)


@pytest.mark.slow
def test_a_wide_network_is_near_its_limit():
    near = []
    for problem in (tiny(16), tiny(4_096)):
        limit = _nngp(jax.random.key(0), problem)
        found = _reparametrised_prior(jax.random.key(1), problem, num_draws=30)
        near.append(_row(problem, found, limit)["distance"])
    assert near[1] < near[0] / 3
