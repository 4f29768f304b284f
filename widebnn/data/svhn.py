"""Street View House Numbers, cropped digits, in their official MATLAB format.

Netzer, Wang, Coates, Bissacco, Wu & Ng, "Reading digits in natural images with unsupervised feature
learning", NIPS workshop (2011).
"""

from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from widebnn.data.dataset import Dataset, check_count, classification
from widebnn.data.download import download_file
from widebnn.data.folders import cache_folder, local_folder

__all__ = ["svhn"]

OFFICIAL_RECORDS = {"train": 73_257, "test": 26_032}
# The data set's own host is the only one known: no other loader names a mirror of these two files.
SOURCE = "http://ufldl.stanford.edu/housenumbers/"
SHA256 = {
    "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
}


def svhn(num_train: int = 256, num_test: int = 1_000, *, flatten: bool = True) -> Dataset:
    """SVHN: colour images of digits of house numbers, $32 × 32$ pixels, 73,257 to train and 26,032 to test.

    The files `train_32x32.mat` and `test_32x32.mat` are looked for in `$WIDEBNN_DATA/svhn`; where there is no
    such folder they are downloaded once (182 MB and 64 MB) to `$WIDEBNN_CACHE`, or the user's cache where
    that is unset.

    Parameters
    ----------
    num_train, num_test
        Numbers of images, the first of each part. `num_train` may be 0, for a data set that only serves out
        of distribution: then no training file is needed.
    flatten
        Whether inputs are rows of pixels, $(n, 3072)$, in the order of CIFAR-10: the red plane, the green,
        the blue, each row by row. Otherwise they are images $(n, 32, 32, 3)$.

    Returns
    -------
    Dataset
        Pixels minus one global mean, divided by one global standard deviation, both of the training images
        or, where there are none, of the test images; targets one-hot minus 1/10. The label is the digit: 0,
        which the files call 10, is 0.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If `WIDEBNN_DATA` is not a folder, or its SVHN folder lacks a file that is needed.
    OSError
        If the files cannot be downloaded or written to the cache.

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.data.svhn(num_train=1_000, flatten=False).x_train.shape
    (1000, 32, 32, 3)
    """
    wanted = {"train": num_train, "test": num_test}
    for part, least in [("train", 0), ("test", 1)]:
        check_count(OFFICIAL_RECORDS[part], "SVHN has no more", least, **{f"num_{part}": wanted[part]})
    folder = local_folder("svhn")
    images, labels, records = [], [], {}
    for part, count in wanted.items():
        name = f"{part}_32x32.mat"
        if count == 0:
            images.append(np.zeros((0, 32, 32, 3), np.uint8))
            labels.append(np.zeros(0, np.int64))
            continue
        if folder is None:
            path = download_file([SOURCE + name], SHA256[name], cache_folder("svhn"))
        elif not (path := folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds no file {name}")
        x, y = read(path)
        check_count(len(x), f"put the official {name} into {path.parent}", **{f"num_{part}": count})
        images.append(x[:count])
        labels.append(y[:count])
        records[name] = len(x)
    if flatten:
        images = [part.transpose(0, 3, 1, 2).reshape(len(part), 3 * 32 * 32) for part in images]
    return classification(
        images=(images[0], images[1]),
        labels=(labels[0], labels[1]),
        classes=[str(digit) for digit in range(10)],
        name="svhn",
        source="official MATLAB files"
        + (", each with its sha256" if folder is None else " in $WIDEBNN_DATA/svhn"),
        records=records,
    )


def read(path: Path) -> tuple[UInt8[np.ndarray, "n 32 32 3"], Int[np.ndarray, " n"]]:
    """Images with the channel last, and digits."""
    from scipy.io import loadmat  # which is slow to import

    try:
        content = loadmat(path, variable_names=["X", "y"])
        x, y = content["X"], content["y"]
    except (ValueError, KeyError, TypeError, OSError, NotImplementedError) as error:
        raise ValueError(f"{path} is no SVHN file in MATLAB's format: {error}") from error
    if x.dtype != np.uint8 or x.shape[:3] != (32, 32, 3) or y.shape != (*x.shape[3:], 1):
        raise ValueError(
            f"{path}: wanted X of (32, 32, 3, n) bytes and y (n, 1); got {x.shape} and {y.shape}"
        )
    if y.min() < 1 or y.max() > 10:
        raise ValueError(f"{path}: labels are 1 to 10; got {y.min()} to {y.max()}")
    return x.transpose(3, 0, 1, 2), y[:, 0].astype(np.int64) % 10
