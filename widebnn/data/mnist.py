"""MNIST and Fashion-MNIST in their official idx format: a big-endian header, then bytes.

LeCun, Bottou, Bengio & Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 86
(1998); Xiao, Rasul & Vollgraf, "Fashion-MNIST", arXiv 1708.07747.
"""

import gzip
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from widebnn.data.dataset import Dataset, Images, image_files
from widebnn.data.download import cache_folder, download, local_folder

__all__ = ["fashion_mnist", "mnist"]

FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}
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
GARMENTS = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag")
GARMENTS += ("ankle boot",)


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

    Parameters and results are those of `mnist`.

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
    folder = local_folder(*folders)

    def read(part: str, count: int) -> Images:
        paths = [
            find(folder, file)
            if folder
            else download([mirror + file for mirror in mirrors], sha256[file], cache_folder(name))
            for file in FILES[part]
        ]
        num_records, images = read_idx(paths[0], (SIZE, SIZE), count)
        _, labels = read_idx(paths[1], (), count)
        return Images(images[..., None], labels.astype(np.int64), {paths[0].name: num_records})

    return image_files(
        read,
        num_train,
        num_test,
        folder=str(folder),
        flatten=flatten,
        classes=classes,
        name=name,
        source=f"idx files in $WIDEBNN_DATA/{folder.name}" if folder else "official idx files, by sha256",
    )


def find(folder: Path, name: str) -> Path:
    """The file, gzipped or not."""
    for path in (folder / name, folder / name.removesuffix(".gz")):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{folder} holds no file {name}, nor {name.removesuffix('.gz')}")


def read_idx(path: Path, shape: tuple[int, ...], count: int) -> tuple[int, UInt8[np.ndarray, "count ..."]]:
    """How many records of this shape an idx file of bytes has, and the first `count`; no more is read."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            magic, *lengths = np.frombuffer(file.read(8 + 4 * len(shape)), ">u4").tolist()
            if (magic, *lengths[1:]) != (2049 + len(shape), *shape):
                raise ValueError(f"records must be bytes in shape {shape}")
            size = min(count, lengths[0]) * math.prod(shape)
            content = np.frombuffer(file.read(size), np.uint8)
        return lengths[0], content.reshape(min(count, lengths[0]), *shape)
    except (EOFError, OSError, ValueError) as error:
        raise ValueError(f"{path} is no whole idx file: {error}") from error
