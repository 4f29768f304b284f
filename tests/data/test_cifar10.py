"""CIFAR-10 from small files made here, from a loopback server, and from real files where there are some."""

import hashlib
import importlib
import os
from pathlib import Path

import numpy as np
import pytest

from widebnn.data import cifar10

from .loopback import Server, archive, body

RECORD_BYTES = 3_073
TRAIN, TEST = "data_batch_{}.bin", "test_batch.bin"
OFFICIAL = [TRAIN.format(i) for i in range(1, 6)] + [TEST]


def records(num_records: int, seed: int) -> np.ndarray:
    """Records of random pixels and labels."""
    made = np.random.default_rng(seed).integers(0, 256, (num_records, RECORD_BYTES), dtype=np.uint8)
    made[:, 0] %= 10
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty local CIFAR-10 folder."""
    monkeypatch.setenv("WIDEBNN_DATA", str(tmp_path))
    (tmp_path / "cifar10").mkdir()
    return tmp_path / "cifar10"


@pytest.fixture
def two_files(folder: Path) -> Path:
    """Three and four training records in the first and the third file, five to test."""
    records(3, seed=1).tofile(folder / TRAIN.format(1))
    records(4, seed=3).tofile(folder / TRAIN.format(3))
    records(5, seed=9).tofile(folder / TEST)
    return folder


def test_partial_files_are_read_in_order_as_what_they_are(two_files: Path):
    data = cifar10(num_train=5, num_test=2)
    wanted = np.concatenate([records(3, seed=1), records(4, seed=3)[:2]])
    np.testing.assert_array_equal(data.labels_train, wanted[:, 0])
    np.testing.assert_allclose(data.x_scale.undo(data.x_train), wanted[:, 1:], atol=1e-3)
    np.testing.assert_allclose(data.x_scale.undo(data.x_test), records(5, seed=9)[:2, 1:], atol=1e-3)
    np.testing.assert_allclose(data.x_scale.mean, wanted[:, 1:].mean(), rtol=1e-6)
    np.testing.assert_allclose(data.x_scale.std, wanted[:, 1:].std(), rtol=1e-6)
    assert data.records == {"data_batch_1.bin": 3, "data_batch_3.bin": 4, "test_batch.bin": 5}
    assert data.source == "binary files in $WIDEBNN_DATA/cifar10"


def test_images_have_the_channel_last_and_flat_inputs_the_planes_of_the_file(folder: Path):
    record = np.zeros((1, RECORD_BYTES), np.uint8)
    record[0, 1 + 2 * 1_024 + 7 * 32 + 4] = 200  # blue plane, row 7, column 4
    for name in (TRAIN.format(1), TEST):
        record.tofile(folder / name)
    flat, image = cifar10(1, 1), cifar10(1, 1, flatten=False)
    assert image.x_train.shape == (1, 32, 32, 3)
    assert np.unravel_index(image.x_train.argmax(), image.x_train.shape) == (0, 7, 4, 2)
    assert flat.x_train.argmax() == 2 * 1_024 + 7 * 32 + 4
    assert flat.x_train.max() == image.x_train.max()


def test_more_than_there_are_is_refused(two_files: Path):
    with pytest.raises(ValueError, match="num_train is 8 but there are 7 records: .* unset WIDEBNN_DATA"):
        cifar10(8, 2)


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("data_batch_1.bin", b"", ValueError, "data_batch_1.bin has 0 bytes; wanted a positive multiple"),
        ("test_batch.bin", b"x" * 3_074, ValueError, "test_batch.bin has 3,074 bytes"),
        ("test_batch.bin", bytes(3_073) + b"\x0a" + bytes(3_072), ValueError, "the files hold 0 to 10"),
        ("test_batch.bin", None, FileNotFoundError, "no CIFAR-10 binary file test_batch.bin"),
    ],
    ids=["empty", "too long", "label above 9", "missing"],
)
def test_malformed_files_are_refused(two_files: Path, name, content, error, message):
    (two_files / name).unlink(missing_ok=True)
    if content is not None:
        (two_files / name).write_bytes(content)
    with pytest.raises(error, match=message):
        cifar10(num_train=5, num_test=2)


@pytest.fixture
def cache(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a server with an archive of six files of four records each."""
    monkeypatch.delenv("WIDEBNN_DATA", raising=False)
    monkeypatch.setenv("WIDEBNN_CACHE", str(tmp_path))
    content = archive(
        {f"cifar-10-batches-bin/{name}": records(4, seed).tobytes() for seed, name in enumerate(OFFICIAL)}
    )
    # The function `cifar10` hides its module of the same name from attribute access.
    module = importlib.import_module("widebnn.data.cifar10")
    monkeypatch.setattr(module, "SOURCES", (server.offer("/cifar-10-binary.tar.gz", body(content)),))
    monkeypatch.setattr(module, "ARCHIVE_SHA256", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(module, "OFFICIAL_RECORDS", 4)
    return tmp_path / "cifar10"


def test_it_is_downloaded_once_where_there_is_no_local_folder(cache: Path, server: Server):
    first, second = cifar10(num_train=20, num_test=4), cifar10(num_train=20, num_test=4)
    np.testing.assert_array_equal(
        first.labels_train, np.concatenate([records(4, seed)[:, 0] for seed in range(5)])
    )
    np.testing.assert_array_equal(first.labels_test, records(4, seed=5)[:, 0])
    np.testing.assert_array_equal(second.x_train, first.x_train)
    assert server.requests == {"/cifar-10-binary.tar.gz": 1}
    assert sorted(path.name for path in cache.iterdir()) == sorted(OFFICIAL)
    assert "sha256" in first.source and first.records == dict.fromkeys(OFFICIAL, 4)


def test_a_truncated_file_of_the_cache_is_replaced(cache: Path, server: Server):
    cifar10(num_train=20, num_test=4)
    (cache / TEST).write_bytes(records(3, seed=0).tobytes())
    np.testing.assert_array_equal(cifar10(20, 4).labels_test, records(4, seed=5)[:, 0])
    assert server.requests == {"/cifar-10-binary.tar.gz": 2}


@pytest.mark.skipif(not os.environ.get("WIDEBNN_DATA"), reason="WIDEBNN_DATA names no folder of real files")
def test_the_first_images_are_those_of_the_official_order():
    """A wrong order of planes, rows or records would take the correlation of neighbouring pixels away."""
    data = cifar10(flatten=False)
    np.testing.assert_array_equal(data.labels_train[:10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3])
    assert [data.classes[label] for label in data.labels_train[:3]] == ["frog", "truck", "truck"]
    images = data.x_train
    across = np.corrcoef(images[:, :, 1:].ravel(), images[:, :, :-1].ravel())[0, 1]
    down = np.corrcoef(images[:, 1:].ravel(), images[:, :-1].ravel())[0, 1]
    assert across > 0.9 and down > 0.9
