"""SVHN from small files in MATLAB's format, made here."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from widebnn.data import svhn


def images(num_images: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (32, 32, 3, num_images), dtype=np.uint8)


def write(path: Path, num_images: int, first_label: int = 1) -> None:
    labels = (np.arange(num_images) % 10 + first_label).astype(np.uint8)[:, None]
    savemat(path, {"X": images(num_images), "y": labels})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve images to train, and three to test."""
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    (tmp_path / "svhn").mkdir()
    write(tmp_path / "svhn" / "train_32x32.mat", 12)
    write(tmp_path / "svhn" / "test_32x32.mat", 3)
    return tmp_path / "svhn"


def test_images_and_digits_are_read(folder: Path):
    flat, data = svhn(11, 2), svhn(11, 2, flatten=False)
    np.testing.assert_array_equal(data.labels_train, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1])
    np.testing.assert_allclose(
        data.x_scale.undo(data.x_train), images(12)[..., :11].transpose(3, 0, 1, 2), atol=1e-3
    )
    assert flat.x_train.shape == (11, 3_072)
    np.testing.assert_array_equal(flat.x_train[:, 2 * 1_024 + 7 * 32 + 4], data.x_train[:, 7, 4, 2])
    assert data.records == {"train_32x32.mat": 12, "test_32x32.mat": 3}


def test_test_images_alone_will_do_out_of_distribution(folder: Path):
    (folder / "train_32x32.mat").unlink()
    data = svhn(0, 3)
    assert data.x_train.shape == (0, 3_072) and data.y_train.shape == (0, 10)
    np.testing.assert_allclose(data.x_test.mean(), 0, atol=1e-5)
    with pytest.raises(FileNotFoundError, match="holds no file train_32x32.mat"):
        svhn(1, 3)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(b"x" * 200), "is no SVHN file in MATLAB's format"),
        (lambda path: savemat(path, {"X": images(3), "y": np.ones((2, 1))}), r"wanted X .*\(2, 1\)"),
        (lambda path: write(path, 3, first_label=10), "labels of svhn are 0 to 9; the files hold 0 to 11"),
    ],
    ids=["garbage", "too few labels", "labels"],
)
def test_malformed_files_are_refused(folder: Path, damage, message):
    damage(folder / "test_32x32.mat")
    with pytest.raises(ValueError, match=message):
        svhn(2, 2)
