"""Images in and out of distribution."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from widebnn import data
from widebnn._check import at_least, one_of

__all__ = ["InAndOut", "ood_split"]

DIGITS_TEST = 600
SIDE = 32

PAIRS = {
    "digits": ("digits",),
    "mnist": ("fashion_mnist",),
    "cifar10": ("svhn", "fashion_mnist"),
}
"""What may lie outside, by what lies inside."""


class InAndOut(NamedTuple):
    """Images to fit, images to test, and images of no class that was fitted, all in the units of the first.

    Attributes
    ----------
    x_train
        Images to fit.
    labels_train
        Their classes.
    x_test
        Images to test, of the same distribution.
    labels_test
        Their classes.
    x_outside
        Images of another distribution.
    num_classes
        Labels are 0 to `num_classes` − 1.
    black
        The value of a pixel that is 0.
    """

    x_train: Float[np.ndarray, "train *input"]
    labels_train: Int[np.ndarray, " train"]
    x_test: Float[np.ndarray, "test *input"]
    labels_test: Int[np.ndarray, " test"]
    x_outside: Float[np.ndarray, "outside ..."]
    num_classes: int
    black: float


def ood_split(inside: str, outside: str, num_train: int, num_test: int, *, colour: bool = False) -> InAndOut:
    """A data set and another one that a model of the first should find strange.

    "digits" against "digits" are the digits 0 to 4 against 5 to 9: the same pen and the same scanner, so that
    nothing but the shape is new. Noise or shuffled pixels would be told apart by far less than that.

    Parameters
    ----------
    inside
        "mnist", "cifar10" or "digits".
    outside
        "fashion_mnist", "svhn" (for "cifar10") or "digits".
    num_train, num_test
        Images to fit; and images to test, as many outside. Digits may be fewer than asked for to test.
    colour
        False for flat inputs; True for images $(n, 32, 32, 3)$, for which grey ones are enlarged by a whole
        factor, padded with black and given three equal channels.
    """
    one_of(PAIRS, dataset=inside)
    one_of(PAIRS[inside], outside=outside)
    at_least(1, num_train=num_train)
    at_least(1, num_test=num_test)
    if inside == "digits":
        first = data.digits(1_797 - DIGITS_TEST, DIGITS_TEST, flatten=not colour)
        known_train, known_test = (np.asarray(y) < 5 for y in (first.labels_train, first.labels_test))
        if num_train > known_train.sum():
            raise ValueError(
                f"num_train must be at most {known_train.sum()} digits of 0 to 4; got {num_train}"
            )
        labels = np.asarray(first.labels_train)[known_train], np.asarray(first.labels_test)[known_test]
        parts = [first.x_train[known_train], first.x_test[known_test], first.x_test[~known_test]]
    else:
        first = getattr(data, inside)(num_train, num_test, flatten=not colour)
        second = getattr(data, outside)(0, num_test, flatten=not colour)
        labels = np.asarray(first.labels_train), np.asarray(first.labels_test)
        parts = [first.x_train, first.x_test, first.x_scale.apply(second.x_scale.undo(second.x_test))]
    scale = first.x_scale
    x_train, x_test, x_outside = (
        scale.apply(_coloured(scale.undo(x[:count]))) if colour else x[:count]
        for x, count in zip(parts, (num_train, num_test, num_test))
    )
    num_classes = 5 if inside == "digits" else len(first.classes)
    black = float(scale.apply(np.zeros(1))[0])
    return InAndOut(
        x_train, labels[0][:num_train], x_test, labels[1][:num_test], x_outside, num_classes, black
    )


def _coloured(raw: Float[np.ndarray, "n side side channel"]) -> Float[np.ndarray, "n 32 32 3"]:
    """Raw images, of three channels and 32 × 32."""
    factor = SIDE // raw.shape[1]
    large = raw.repeat(factor, axis=1).repeat(factor, axis=2)
    before = (SIDE - large.shape[1]) // 2
    after = SIDE - large.shape[1] - before
    padded = np.pad(large, ((0, 0), (before, after), (before, after), (0, 0)))
    return np.broadcast_to(padded, (*padded.shape[:3], 3)) if padded.shape[3] == 1 else padded
