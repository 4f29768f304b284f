"""Standardisation and targets, on arrays small enough to work out by hand."""

import numpy as np
import pytest

from widebnn.data.dataset import Dataset, classification, regression

PROVENANCE = {"name": "tiny", "source": "made by the test", "records": {"tiny.bin": 3}}


@pytest.fixture
def labelled() -> Dataset:
    images = np.array([[0, 10], [20, 30]], np.uint8), np.array([[15, 255]], np.uint8)
    images = tuple(x.reshape(-1, 1, 2, 1) for x in images)
    labels = np.array([2, 0]), np.array([1])
    return classification(images, labels, flatten=True, classes=["a", "b", "c", "d"], **PROVENANCE)


def test_pixels_share_one_mean_and_deviation_of_the_training_images(labelled: Dataset):
    std = np.sqrt(125)
    np.testing.assert_allclose(labelled.x_train, np.array([[-15, -5], [5, 15]]) / std, rtol=1e-6)
    np.testing.assert_allclose(labelled.x_test, np.array([[0, 240]]) / std, rtol=1e-6)


def test_targets_are_one_hot_less_one_over_the_number_of_classes(labelled: Dataset):
    np.testing.assert_array_equal(
        labelled.y_train, [[-0.25, -0.25, 0.75, -0.25], [0.75, -0.25, -0.25, -0.25]]
    )
    np.testing.assert_array_equal(labelled.y_test, [[-0.25, 0.75, -0.25, -0.25]])
    np.testing.assert_array_equal(labelled.labels_train, [2, 0])
    assert labelled.classes == ("a", "b", "c", "d")


def test_features_and_targets_are_standardised_column_by_column():
    data = regression(
        features=(np.array([[0.0, 10.0], [2.0, 50.0]]), np.array([[1.0, 90.0]])),
        targets=(np.array([[100.0], [300.0]]), np.array([[400.0]])),
        **PROVENANCE,
    )
    np.testing.assert_array_equal(data.x_train, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(data.x_test, [[0, 3]])
    np.testing.assert_array_equal(data.y_test, [[2]])
    assert data.labels_train is None and data.labels_test is None and data.classes == ()


def test_undo_gives_the_raw_values_back(labelled: Dataset):
    np.testing.assert_allclose(labelled.x_scale.undo(labelled.x_test), [[15, 255]], rtol=1e-6)
    np.testing.assert_allclose(labelled.y_scale.undo(labelled.y_test), [[0, 1, 0, 0]], atol=1e-7)


@pytest.mark.parametrize("column", [[1.0, 1.0], [2.0, 3.0]], ids=["constant column", "one constant of two"])
def test_a_constant_column_is_refused(column):
    features = np.stack([[5.0, 5.0], column], axis=1)
    targets = np.array([[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"2 training rows do not vary in every column.*num_train"):
        regression(features=(features, features), targets=(targets, targets), **PROVENANCE)
