"""Boston housing, kept for comparison with published results alone.

Harrison & Rubinfeld, "Hedonic prices and the demand for clean air", J. Environ. Economics & Management 5
(1978). scikit-learn withdrew it in version 1.2: its authors made a feature, B = 1000(Bk − 0.63)², of the
share Bk of Black inhabitants, on the assumption that segregation raises house prices, and did not show that
what they assumed is so (Carlisle 2019). Use `widebnn.data.diabetes` for anything new.
"""

import numpy as np

from widebnn.data.bundled import split
from widebnn.data.dataset import Dataset, regression
from widebnn.data.download import cache_folder, download, local_folder

__all__ = ["boston"]

NUM_ROWS = 506
# An open copy that MLDatasets.jl ships, at a fixed commit, by two ways; same rows in the same order as the
# original at lib.stat.cmu.edu/datasets/boston.
PATH = "JuliaML/MLDatasets.jl{}e7f2afa4858ab3ef1a5294872c59aa98cc7b225a/src/BostonHousing/boston_housing.csv"
SOURCES = (
    "https://raw.githubusercontent.com/" + PATH.format("/"),
    "https://cdn.jsdelivr.net/gh/" + PATH.format("@"),
)
SHA256 = "98134236b4a7c71da63ada2de5a11f985afa9f21df6f5a952429ca7f66a0abc7"


def boston(num_train: int = 400, num_test: int = 106) -> Dataset:
    """Median house prices of 506 census tracts of Boston in 1970, in 1,000 dollars, given 13 features.

    It serves for comparison with published results alone: scikit-learn withdrew this data set because one of
    its features, B, encodes the share of Black inhabitants, on the assumption that segregation raises
    prices. The file ``boston.csv`` is looked for in ``$WIDEBNN_DATA/boston``; where there is no such folder a
    copy is downloaded once (35 kB) to ``$WIDEBNN_CACHE``, or the user's cache where that is unset.

    Parameters
    ----------
    num_train, num_test
        Numbers of tracts, at most 506 together; first and last of a fixed random order.

    Returns
    -------
    Dataset
        Inputs $(n, 13)$ and targets $(n, 1)$, each column standardised by its training rows.

    Examples
    --------
    >>> import widebnn as wb
    >>> wb.data.boston(num_train=400, num_test=106).x_train.shape
    (400, 13)
    """
    train, test = split(NUM_ROWS, num_train, num_test)
    folder = local_folder("boston")
    if folder is None:
        path, source = download(SOURCES, SHA256, cache_folder("boston")), f"open copy, sha256 {SHA256}"
    else:
        path, source = folder / "boston.csv", "boston.csv in $WIDEBNN_DATA/boston"
    try:
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
    except ValueError as error:
        raise ValueError(f"{path}: wanted numbers in every row: {error}") from error
    if table.shape != (NUM_ROWS, 14) or not np.isfinite(table).all():
        raise ValueError(f"{path}: wanted {NUM_ROWS} rows of 14 numbers; got {table.shape}")
    features, prices = table[:, :-1], table[:, -1:]
    return regression(
        features=(features[train], features[test]),
        targets=(prices[train], prices[test]),
        name="boston",
        source=source,
        records={path.name: len(table)},
    )
