"""The images of an experiment: as many to predict as were asked for, or all that the files at hand hold."""

from pathlib import Path

import numpy as np
import pytest

from book.experiments.images import images


@pytest.fixture
def five_to_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CIFAR-10 of three training images and five to test."""
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    (tmp_path / "cifar10").mkdir()
    for name, num_records in [("data_batch_1.bin", 3), ("test_batch.bin", 5)]:
        records = np.random.default_rng(num_records).integers(0, 10, (num_records, 3_073), dtype=np.uint8)
        records.tofile(tmp_path / "cifar10" / name)


@pytest.mark.usefixtures("five_to_test")
@pytest.mark.parametrize(("num_test", "found"), [(4, 4), (20_000, 5)])
def test_there_are_as_many_to_predict_as_the_files_hold(num_test, found):
    dataset = images("cifar10", 2, num_test)
    assert (len(dataset.x_train), len(dataset.x_test), len(dataset.y_test)) == (2, found, found)
    np.testing.assert_array_equal(dataset.x_test[:4], images("cifar10", 2, 4).x_test)


@pytest.mark.usefixtures("five_to_test")
def test_small_images_are_means_over_squares_and_standardised_anew():
    full = images("cifar10", 3, 5, flatten=False)
    small = images("cifar10-8x8", 3, 5, flatten=False)
    assert small.x_train.shape == (3, 8, 8, 3) and small.x_test.shape == (5, 8, 8, 3)
    raw = full.x_scale.undo(full.x_test)
    square = raw[4, 8:12, 20:24, 1].mean()
    np.testing.assert_allclose(small.x_scale.undo(small.x_test)[4, 2, 5, 1], square, rtol=1e-5)
    assert abs(small.x_train.mean()) < 1e-6 and small.x_train.std() == pytest.approx(1, abs=1e-5)
    flat = images("cifar10-8x8", 3, 5)
    np.testing.assert_array_equal(flat.x_test.reshape(small.x_test.shape), small.x_test)
    np.testing.assert_array_equal(flat.y_test, full.y_test)
