"""Street View House Numbers, cropped digits, in their official MATLAB format.

Netzer, Wang, Coates, Bissacco, Wu & Ng, "Reading digits in natural images with unsupervised feature
learning", NIPS workshop (2011).
"""

from pathlib import Path

import numpy as np

from widebnn.data.dataset import Dataset, Images, image_files
from widebnn.data.download import cache_folder, download, local_folder

__all__ = ["svhn"]

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

    Parameters and results are those of `widebnn.data.cifar10`. The label is the digit: 0, which the files
    call 10, is 0.

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.data.svhn(num_train=1_000, flatten=False).x_train.shape
    (1000, 32, 32, 3)
    """
    folder = local_folder("svhn")

    def read_part(part: str, _) -> Images:
        name = f"{part}_32x32.mat"
        if folder is None:
            return read(download([SOURCE + name], SHA256[name], cache_folder("svhn")))
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds no file {name}")
        return read(folder / name)

    return image_files(
        read_part,
        num_train,
        num_test,
        folder=str(folder),
        flatten=flatten,
        classes=[str(digit) for digit in range(10)],
        name="svhn",
        source="official MATLAB files"
        + (", each with its sha256" if folder is None else " in $WIDEBNN_DATA/svhn"),
    )


def read(path: Path) -> Images:
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
    labels = y[:, 0].astype(np.int64)
    return Images(x.transpose(3, 0, 1, 2), np.where(labels == 10, 0, labels), {path.name: len(labels)})
