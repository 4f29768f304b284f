"""The experiments under a softmax likelihood: summaries."""

import numpy as np

from book.experiments.softmax_maps import _std


def test_standard_error_of_a_standard_deviation():
    draws = np.random.default_rng(0).standard_normal((500, 400))
    found = np.array([_std(row) for row in draws])
    assert abs(found[:, 1].mean() / found[:, 0].std() - 1) < 5 / np.sqrt(2 * 500)
