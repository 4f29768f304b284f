"""MNIST and Fashion-MNIST from small files made here, from a loopback server, and from real files."""

import gzip
import hashlib
import importlib
import os
from pathlib import Path

import numpy as np
import pytest

from widebnn.data import fashion_mnist, mnist

from .loopback import Server, body

NAMES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def pixels(num_images: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num_images, 28, 28), dtype=np.uint8)


def labels(num_images: int) -> np.ndarray:
    return (np.arange(num_images) % 10).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve images to train and five to test, for both data sets."""
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    for name in ("mnist", "fashion_mnist"):
        (tmp_path / name).mkdir()
        for part, count in [("train", 12), ("test", 5)]:
            for file, content in zip(NAMES[part], (idx(pixels(count)), idx(labels(count)))):
                (tmp_path / name / f"{file}.gz").write_bytes(gzip.compress(content))
    return tmp_path


@pytest.mark.parametrize("load", [mnist, fashion_mnist])
def test_first_records_are_read(folder: Path, load):
    data = load(7, 3)
    assert data.x_train.shape == (7, 784) and data.x_test.shape == (3, 784)
    np.testing.assert_allclose(data.x_scale.undo(data.x_train), pixels(12)[:7].reshape(7, 784), atol=1e-3)
    np.testing.assert_array_equal(data.labels_train, np.arange(7))
    np.testing.assert_allclose(data.x_scale.mean, pixels(12)[:7].mean(), rtol=1e-6)
    assert sorted(data.records.values()) == [5, 12] and len(data.classes) == 10
    images = load(7, 3, flatten=False)
    np.testing.assert_array_equal(images.x_train[:, 3, 5, 0], data.x_train[:, 3 * 28 + 5])


def test_files_that_were_unpacked_are_read(folder: Path):
    packed = mnist(7, 3)
    for file in (folder / "mnist").iterdir():
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    np.testing.assert_array_equal(mnist(7, 3).x_train, packed.x_train)


def test_data_set_out_of_distribution_needs_no_training_images(folder: Path):
    for file in (folder / "fashion_mnist").glob("train*"):
        file.unlink()
    data, strange = mnist(7, 3), fashion_mnist(0, 4)
    assert strange.x_train.shape == (0, 784) and strange.x_test.shape == (4, 784)
    np.testing.assert_allclose(strange.x_test.std(), 1, rtol=1e-5)
    moved = data.x_scale.apply(strange.x_scale.undo(strange.x_test))
    np.testing.assert_allclose(data.x_scale.undo(moved), pixels(5)[:4].reshape(4, 784), atol=1e-3)
    with pytest.raises(FileNotFoundError, match="fashion_mnist holds no file train-images-idx3-ubyte.gz"):
        fashion_mnist(1, 4)


def test_more_than_there_are_is_refused(folder: Path):
    with pytest.raises(ValueError, match="num_train is 13 but there are 12 records: put more of the offic"):
        mnist(13, 2)


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b""),
        gzip.compress(idx(pixels(5))[:-1]),
        gzip.compress(idx(np.zeros((5, 14, 14), np.uint8))),
        gzip.compress(idx(pixels(5)))[:-400],
    ],
    ids=["empty", "truncated", "small", "damaged"],
)
def test_malformed_images_are_refused(folder: Path, content):
    (file,) = (folder / "mnist").glob("t10k-images*")
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte.gz is no whole idx file"):
        mnist(2, 5)


def test_labels_beyond_nine_are_refused(folder: Path):
    (of_test,) = (folder / "mnist").glob("t10k-labels*")
    of_test.write_bytes(gzip.compress(idx(np.full(5, 11, np.uint8))))
    with pytest.raises(ValueError, match="labels of mnist are 0 to 9; the files hold 11 to 11"):
        mnist(2, 5)


def test_files_are_downloaded_once_and_training_files_only_where_needed(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("WIDEBNN_DATA", raising=False)
    monkeypatch.setenv("WIDEBNN_CACHE", str(tmp_path))
    module = importlib.import_module("widebnn.data.mnist")
    contents = {
        f"{file}.gz": gzip.compress(content, mtime=0)
        for part, count in [("train", 6), ("test", 4)]
        for file, content in zip(NAMES[part], (idx(pixels(count)), idx(labels(count))))
    }
    for name, content in contents.items():
        address = server.offer(f"/{name}", body(content))
    monkeypatch.setattr(module, "MNIST_MIRRORS", (address.rpartition("/")[0] + "/",))
    monkeypatch.setattr(
        module, "MNIST_SHA256", {n: hashlib.sha256(c).hexdigest() for n, c in contents.items()}
    )
    mnist(0, 4)
    assert set(server.requests) == {"/t10k-images-idx3-ubyte.gz", "/t10k-labels-idx1-ubyte.gz"}
    first, second = mnist(6, 4), mnist(6, 4)
    np.testing.assert_array_equal(first.x_train, second.x_train)
    assert server.requests == {f"/{name}": 1 for name in contents}


@pytest.mark.skipif(not os.environ.get("WIDEBNN_DATA"), reason="WIDEBNN_DATA names no folder of real files")
def test_real_files_begin_as_they_do_everywhere():
    data, fashion = mnist(1_000, 1_000, flatten=False), fashion_mnist(0, 10_000)
    np.testing.assert_array_equal(data.labels_train[:10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4])
    np.testing.assert_array_equal(data.labels_test[:10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9])
    images = data.x_train[..., 0]
    assert np.corrcoef(images[:, 1:].ravel(), images[:, :-1].ravel())[0, 1] > 0.7
    np.testing.assert_array_equal(fashion.labels_test[:10], [9, 2, 1, 1, 6, 1, 4, 6, 5, 7])
    np.testing.assert_array_equal(np.bincount(fashion.labels_test), np.full(10, 1_000))
