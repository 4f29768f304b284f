"""The experiments under a softmax likelihood: summaries and images."""

import numpy as np

from book.experiments.softmax_maps import LABELLED, _std


def test_standard_error_of_a_standard_deviation():
    draws = np.random.default_rng(0).standard_normal((500, 400))
    found = np.array([_std(row) for row in draws])
    assert abs(found[:, 1].mean() / found[:, 0].std() - 1) < 5 / np.sqrt(2 * 500)


def test_two_digits_are_two_classes_in_common_units():
    x, labels, x_new, num_classes = LABELLED["two digits"](64)
    assert x.shape == (64, 4)
    assert x_new.shape == (20, 4)
    assert set(labels) == {0, 1} and num_classes == 2
    assert abs(float(x.mean())) < 1e-5
    assert abs(float(x.std()) - 1) < 1e-5
    spread = np.asarray(x).std(axis=0)
    assert (np.diff(spread) < 0).all()  # leading components first
