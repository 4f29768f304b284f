"""What every loader returns, and the two ways to make it: from labelled images, from a regression table."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Num

from widebnn._check import at_least

__all__ = [
    "Dataset",
    "Images",
    "Standardisation",
    "check_count",
    "classification",
    "image_files",
    "regression",
    "standardisation",
]


class Standardisation(NamedTuple):
    """The affine map $(raw − mean)/std$ that was applied.

    `mean` and `std` are in raw units, and 0-d arrays where one pair serves all columns.
    """

    mean: Float32[np.ndarray, "..."]
    std: Float32[np.ndarray, "..."]

    def apply(self, raw: Num[np.ndarray, "*shape"]) -> Float32[np.ndarray, "*shape"]:
        """From raw units to standardised ones."""
        return (raw.astype(np.float32) - self.mean) / self.std

    def undo(self, standardised: Float32[np.ndarray, "*shape"]) -> Float32[np.ndarray, "*shape"]:
        """From standardised units back to raw ones, to draw images or to report errors in raw units."""
        return standardised * self.std + self.mean


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A training and a test set, standardised, with their provenance.

    Attributes
    ----------
    x_train, x_test
        Inputs, standardised by statistics of the training inputs alone; images are rows of pixels, or arrays
        $(n, height, width, channel)$ with ``flatten=False``.
    y_train, y_test
        Targets: one-hot minus 1/(number of classes) for classification, as in Hron et al. (2022);
        standardised for regression.
    labels_train, labels_test
        Class numbers $(n,)$, or None for regression.
    classes
        Class names in the order of their numbers; empty for regression.
    x_scale
        The map from raw inputs to `x_train` and `x_test`.
    y_scale
        The map from raw targets to `y_train` and `y_test`.
    name
        Short name of the data set.
    source
        Where the records came from, in words.
    records
        By the name of a source file, the number of records that it holds, used or not.
    """

    x_train: Float32[np.ndarray, "train *input"]
    y_train: Float32[np.ndarray, "train output"]
    x_test: Float32[np.ndarray, "test *input"]
    y_test: Float32[np.ndarray, "test output"]
    labels_train: Int[np.ndarray, "train"] | None
    labels_test: Int[np.ndarray, "test"] | None
    classes: tuple[str, ...]
    x_scale: Standardisation
    y_scale: Standardisation
    name: str
    source: str
    records: Mapping[str, int]

    def __repr__(self) -> str:
        shapes = f"x_train {self.x_train.shape}, y_train {self.y_train.shape}, x_test {self.x_test.shape}"
        return f"Dataset({self.name!r}: {shapes}; {self.source}; records available: {dict(self.records)})"


def standardisation(raw: Num[np.ndarray, "row *input"], *, per_column: bool) -> Standardisation:
    """Mean and (population) standard deviation of `raw`: one pair in all, or one a column."""
    axis = 0 if per_column else None
    mean, std = (
        np.asarray(moment(raw, axis=axis, dtype=np.float64), np.float32) for moment in (np.mean, np.std)
    )
    if not np.all(std > 0):
        raise ValueError(
            f"the {len(raw)} training rows do not vary in every column: ask for a larger num_train"
        )
    return Standardisation(mean, std)


class Images(NamedTuple):
    """Images (n, height, width, channel), class numbers, and how many each source file holds."""

    images: Num[np.ndarray, "n height width channel"]
    labels: Int[np.ndarray, " n"]
    records: Mapping[str, int]


def image_files(
    read: Callable[[str, int], Images], num_train: int, num_test: int, *, folder: str, **about: Any
) -> Dataset:
    """A `Dataset` of the first images of "train" and of "test", which `read` reads, so many at least.

    Where no training images are asked for, none are read.
    """
    at_least(0, num_train=num_train)
    parts = {}
    for part, count in (("test", at_least(1, num_test=num_test)), ("train", num_train)):
        found = read(part, count) if count else Images(parts["test"].images[:0], parts["test"].labels[:0], {})
        remedy = f"put more of the official files into {folder}, or unset WIDEBNN_DATA to download all"
        check_count(sum(found.records.values()), remedy, 0, **{f"num_{part}": count})
        parts[part] = found._replace(images=found.images[:count], labels=found.labels[:count])
    train, test = parts["train"], parts["test"]
    records = {**train.records, **test.records}
    return classification((train.images, test.images), (train.labels, test.labels), records=records, **about)


def classification(
    images: tuple[Num[np.ndarray, "train ..."], Num[np.ndarray, "test ..."]],
    labels: tuple[Int[np.ndarray, "train"], Int[np.ndarray, "test"]],
    *,
    flatten: bool,
    classes: Sequence[str],
    name: str,
    source: str,
    records: Mapping[str, int],
) -> Dataset:
    """A `Dataset` of (train, test) images and labels: one global mean and deviation, one-hot minus 1/classes.

    Both statistics are those of the training images given, or of the test images where no others are; the
    same two numbers serve all. Flat images are the planes of the channels, one after another.
    """
    for part in labels:
        if len(part) and not 0 <= part.min() <= part.max() < len(classes):
            raise ValueError(
                f"labels of {name} are 0 to {len(classes) - 1}; the files hold {part.min()} to {part.max()}"
            )
    if flatten:
        train, test = (np.moveaxis(x, 3, 1).reshape(len(x), math.prod(x.shape[1:])) for x in images)
        images = train, test
    x_scale = standardisation(images[0] if len(images[0]) else images[1], per_column=False)
    y_scale = Standardisation(np.asarray(1 / len(classes), np.float32), np.asarray(1, np.float32))
    one_hot = np.eye(len(classes), dtype=np.float32)
    return Dataset(
        x_train=x_scale.apply(images[0]),
        y_train=y_scale.apply(one_hot[labels[0]]),
        x_test=x_scale.apply(images[1]),
        y_test=y_scale.apply(one_hot[labels[1]]),
        labels_train=labels[0],
        labels_test=labels[1],
        classes=tuple(classes),
        x_scale=x_scale,
        y_scale=y_scale,
        name=name,
        source=source,
        records=records,
    )


def regression(
    *,
    features: tuple[Num[np.ndarray, "train feature"], Num[np.ndarray, "test feature"]],
    targets: tuple[Num[np.ndarray, "train output"], Num[np.ndarray, "test output"]],
    name: str,
    source: str,
    records: Mapping[str, int],
) -> Dataset:
    """A `Dataset` of (train, test) features and targets, every column standardised by its training rows."""
    x_scale = standardisation(features[0], per_column=True)
    y_scale = standardisation(targets[0], per_column=True)
    return Dataset(
        x_train=x_scale.apply(features[0]),
        y_train=y_scale.apply(targets[0]),
        x_test=x_scale.apply(features[1]),
        y_test=y_scale.apply(targets[1]),
        labels_train=None,
        labels_test=None,
        classes=(),
        x_scale=x_scale,
        y_scale=y_scale,
        name=name,
        source=source,
        records=records,
    )


def check_count(available: int, remedy: str, least: int = 1, **named: int) -> None:
    """Refuse a number of records that is not an integer from `least` on, or more than there are."""
    ((name, count),) = named.items()
    if at_least(least, **named) > available:
        raise ValueError(f"{name} is {count:,} but there are {available:,} records: {remedy}")
