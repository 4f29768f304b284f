"""The two real data sets that scikit-learn carries with it: no download, the default of the smoke scale.

Both are split in the same way: the rows are put in a fixed random order, the training set is its start and
the test set its end, so that neither depends on the size of the other.

scikit-learn is imported by the loaders themselves: it takes longer to import than the rest of the package.
"""

import numpy as np
from jaxtyping import Int

from widebnn.data.dataset import Dataset, check_count, classification, regression

__all__ = ["diabetes", "digits"]

SPLIT_SEED = 0


def split(
    num_rows: int, num_train: int, num_test: int
) -> tuple[Int[np.ndarray, "num_train"], Int[np.ndarray, "num_test"]]:
    """Row numbers of the training set, the start of a fixed random order, and of the test set, its end."""
    check_count(num_rows, "ask for fewer", num_train=num_train)
    left = f"num_train={num_train:,} leaves no more of {num_rows:,}"
    check_count(num_rows - num_train, left, num_test=num_test)
    order = np.random.default_rng(SPLIT_SEED).permutation(num_rows)
    return order[:num_train], order[num_rows - num_test :]


def digits(num_train: int = 256, num_test: int = 1_000, *, flatten: bool = True) -> Dataset:
    """Handwritten digits: 1,797 grey images of $8 × 8$ pixels in ten classes; from scikit-learn.

    Parameters
    ----------
    num_train, num_test
        Numbers of images, at most 1,797 together; first and last of a fixed random order.
    flatten
        Whether inputs are rows of pixels, $(n, 64)$; otherwise they are images $(n, 8, 8, 1)$.

    Returns
    -------
    Dataset
        Pixels minus one global mean, divided by one global standard deviation, both of the training images;
        targets one-hot minus 1/10.

    Notes
    -----
    Alpaydin & Kaynak, "Optical recognition of handwritten digits", UCI repository (1998), test part.
    """
    from sklearn.datasets import load_digits

    pixels, labels = map(np.asarray, load_digits(return_X_y=True))
    train, test = split(len(labels), num_train, num_test)
    images = pixels.reshape(-1, 8, 8, 1)
    return classification(
        (images[train], images[test]),
        (labels[train], labels[test]),
        flatten=flatten,
        classes=[str(digit) for digit in range(10)],
        name="digits",
        source="scikit-learn's bundled copy",
        records={"digits.csv.gz": len(labels)},
    )


def diabetes(num_train: int = 256, num_test: int = 186) -> Dataset:
    """Progression of diabetes in 442 patients after a year, given ten measurements; from scikit-learn.

    Parameters
    ----------
    num_train, num_test
        Numbers of patients, at most 442 together; first and last of a fixed random order.

    Returns
    -------
    Dataset
        Inputs $(n, 10)$ and targets $(n, 1)$, each column standardised by its training rows.

    Notes
    -----
    Efron, Hastie, Johnstone & Tibshirani, "Least angle regression", Annals of Statistics 32 (2004).
    """
    from sklearn.datasets import load_diabetes

    features, progression = map(np.asarray, load_diabetes(return_X_y=True, scaled=False))
    train, test = split(len(progression), num_train, num_test)
    targets = progression[:, np.newaxis]
    return regression(
        features=(features[train], features[test]),
        targets=(targets[train], targets[test]),
        name="diabetes",
        source="scikit-learn's bundled copy",
        records={"diabetes_data_raw.csv.gz": len(progression)},
    )
