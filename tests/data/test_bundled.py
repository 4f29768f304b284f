"""The two data sets that need no network, against scikit-learn's own tables."""

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

from widebnn.data import diabetes, digits


def row_numbers(rows: np.ndarray, table: np.ndarray) -> list[int]:
    """The place of each row in the table, to the rounding of float32."""
    distances = np.abs(rows[:, None, :] - table[None, :, :]).max(axis=-1)
    assert distances.min(axis=1).max() < 1e-3
    return distances.argmin(axis=1).tolist()


def test_digits_are_scikit_learns_with_their_labels():
    data = digits(num_train=100, num_test=50)
    table, labels = load_digits(return_X_y=True)
    for x, y, found in (
        (data.x_train, data.y_train, data.labels_train),
        (data.x_test, data.y_test, data.labels_test),
    ):
        rows = row_numbers(data.x_scale.undo(x), table)
        np.testing.assert_array_equal(found, labels[rows])
        np.testing.assert_array_equal(y.argmax(axis=1), found)
        np.testing.assert_allclose(y.sum(axis=1), 0, atol=1e-6)
    assert data.records == {"digits.csv.gz": len(table)}


def test_digits_have_one_mean_and_deviation():
    data = digits()
    assert data.x_train.shape == (256, 64) and data.x_test.shape == (1_000, 64)
    assert data.x_train.dtype == data.y_train.dtype == np.float32
    assert abs(data.x_train.mean()) < 1e-5 and abs(data.x_train.std() - 1) < 1e-5
    # A corner pixel is nearly always blank: it keeps its offset, which a mean per pixel would take away.
    assert abs(data.x_train[:, 0].mean()) > 0.5


def test_diabetes_rows_keep_their_targets():
    data = diabetes()
    table, progression = load_diabetes(return_X_y=True, scaled=False)
    rows = row_numbers(data.x_scale.undo(data.x_test), table)
    np.testing.assert_allclose(data.y_scale.undo(data.y_test)[:, 0], progression[rows], rtol=1e-5)
    np.testing.assert_allclose(data.x_train.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(data.x_train.std(axis=0), 1, atol=1e-5)
    assert data.y_train.shape == (256, 1) and data.labels_train is None


def test_parts_are_disjoint_and_neither_depends_on_the_size_of_the_other(load=diabetes):
    data = load(342, 100)
    raw = np.concatenate([data.x_scale.undo(data.x_train), data.x_scale.undo(data.x_test)])
    assert len(np.unique(raw.round(2), axis=0)) == 442
    small, large = load(50, 20), load(200, 40)
    np.testing.assert_allclose(
        small.x_scale.undo(small.x_train), large.x_scale.undo(large.x_train)[:50], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        small.x_scale.undo(small.x_test), large.x_scale.undo(large.x_test)[-20:], rtol=1e-4, atol=1e-4
    )
