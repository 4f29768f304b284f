"""MNIST and Fashion-MNIST in their official idx format: a big-endian header, then bytes.

LeCun, Bottou, Bengio & Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 86
(1998); Xiao, Rasul & Vollgraf, "Fashion-MNIST", arXiv 1708.07747.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from widebnn.data.dataset import Dataset, check_count, classification
from widebnn.data.download import download_file
from widebnn.data.folders import cache_folder, local_folder

__all__ = ["fashion_mnist", "mnist"]

FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}
OFFICIAL_RECORDS = {"train": 60_000, "test": 10_000}
SIZE = 28

# The first two serve MNIST for other projects' loaders; its own page is no longer open to all.
MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
MNIST_SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
FASHION_MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
FASHION_SHA256 = {
    "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
}
GARMENTS = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def mnist(num_train: int = 256, num_test: int = 1_000, *, flatten: bool = True) -> Dataset:
    """MNIST: grey images of handwritten digits, $28 × 28$ pixels, 60,000 to train and 10,000 to test.

    The four files are looked for in `$WIDEBNN_DATA/mnist`, gzipped or not; where there is no such folder they
    are downloaded once (12 MB) to `$WIDEBNN_CACHE`, or the user's cache where that is unset.

    Parameters
    ----------
    num_train, num_test
        Numbers of images, the first of each part. `num_train` may be 0, for a data set that only serves
        out of distribution: then no training file is needed.
    flatten
        Whether inputs are rows of pixels, $(n, 784)$; otherwise they are images $(n, 28, 28, 1)$.

    Returns
    -------
    Dataset
        Pixels minus one global mean, divided by one global standard deviation, both of the training images
        or, where there are none, of the test images; targets one-hot minus 1/10.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If `WIDEBNN_DATA` is not a folder, or its folder of this data set lacks a file that is needed.
    OSError
        If the files cannot be downloaded or written to the cache.

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.data.mnist(num_train=1_000).x_train.shape
    (1000, 784)
    """
    digits = [str(digit) for digit in range(10)]
    return _load("mnist", ("mnist",), MNIST_MIRRORS, MNIST_SHA256, digits, num_train, num_test, flatten)


def fashion_mnist(num_train: int = 256, num_test: int = 1_000, *, flatten: bool = True) -> Dataset:
    """Fashion-MNIST: grey images of garments, in the numbers, sizes and format of `mnist`.

    Its folder is ``$WIDEBNN_DATA/fashion_mnist`` or ``$WIDEBNN_DATA/fashion-mnist``; the download is 31 MB.
    The inputs in the units of another data set, whose model they test out of distribution, are
    ``data.x_scale.apply(fashion.x_scale.undo(fashion.x_test))``.

    Parameters, results and errors are those of `mnist`.

    Examples
    --------
    >>> import widebnn as wb
    >>> outside = wb.data.fashion_mnist(num_train=0, num_test=100)
    >>> outside.x_test.shape
    (100, 784)
    """
    folders = ("fashion_mnist", "fashion-mnist")
    return _load(
        "fashion_mnist", folders, FASHION_MIRRORS, FASHION_SHA256, GARMENTS, num_train, num_test, flatten
    )


def _load(
    name: str,
    folders: Sequence[str],
    mirrors: Sequence[str],
    sha256: dict[str, str],
    classes: Sequence[str],
    num_train: int,
    num_test: int,
    flatten: bool,
) -> Dataset:
    wanted = {"train": num_train, "test": num_test}
    for part, least in [("train", 0), ("test", 1)]:
        available = OFFICIAL_RECORDS[part]
        check_count(available, f"{name} has no more", least, **{f"num_{part}": wanted[part]})
    folder = local_folder(*folders)
    if folder is not None:
        source = f"idx files in $WIDEBNN_DATA/{folder.name}"
    else:
        folder = cache_folder(name)
        source = "official idx files, each with its sha256"
    images, labels, records = [], [], {}
    for part, count in wanted.items():
        if count == 0:
            images.append(np.zeros((0, SIZE, SIZE), np.uint8))
            labels.append(np.zeros(0, np.int64))
            continue
        if local_folder(*folders) is None:
            for file in FILES[part]:
                download_file([mirror + file for mirror in mirrors], sha256[file], folder)
        image_file, label_file = (find(folder, file) for file in FILES[part])
        num_records, *size = read_header(image_file, 3)
        if size != [SIZE, SIZE]:
            raise ValueError(f"{image_file}: wanted images of 28 × 28; got {size[0]} × {size[1]}")
        remedy = f"put the official {image_file.name} into {folder}"
        check_count(num_records, remedy, **{f"num_{part}": count})
        images.append(read_idx(image_file, 3, count))
        labels.append(read_idx(label_file, 1, count).astype(np.int64))
        if labels[-1].max() >= len(classes):
            raise ValueError(f"{label_file}: labels are 0 to 9; got {labels[-1].max()}")
        records[image_file.name] = num_records
    shape = (-1, SIZE * SIZE) if flatten else (-1, SIZE, SIZE, 1)
    x_train, x_test = (part.reshape(len(part), *shape[1:]) for part in images)
    return classification(
        images=(x_train, x_test),
        labels=(labels[0], labels[1]),
        classes=classes,
        name=name,
        source=source,
        records=records,
    )


def find(folder: Path, name: str) -> Path:
    """The file, gzipped or not."""
    for path in (folder / name, folder / name.removesuffix(".gz")):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} holds no file {name}, nor {name.removesuffix('.gz')}")


def _open(path: Path):
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def read_header(path: Path, num_dimensions: int) -> tuple[int, ...]:
    """The lengths that the header of an idx file of bytes states."""
    try:
        with _open(path) as file:
            header = file.read(4 * (1 + num_dimensions))
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if header[:4] != bytes([0, 0, 8, num_dimensions]) or len(header) < 4 * (1 + num_dimensions):
        raise ValueError(f"{path} is no idx file of bytes in {num_dimensions} dimensions")
    return tuple(int(length) for length in np.frombuffer(header[4:], ">u4"))


def read_idx(path: Path, num_dimensions: int, count: int) -> UInt8[np.ndarray, "count ..."]:
    """The first `count` records; no more is read."""
    lengths = read_header(path, num_dimensions)
    shape = (count, *lengths[1:])
    size = int(np.prod(shape))
    try:
        with _open(path) as file:
            file.seek(4 * (1 + num_dimensions))
            content = file.read(size)
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if len(content) < size:
        raise ValueError(f"{path} ends after {len(content):,} bytes of records; wanted {size:,}")
    return np.frombuffer(content, np.uint8).reshape(shape)
