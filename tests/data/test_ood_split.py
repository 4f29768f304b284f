"""Images of known and of unknown classes."""

import numpy as np
import pytest

from widebnn.data import ood_split


def test_digits_outside_are_classes_that_were_held_out():
    images = ood_split("digits", "digits", 100, 50)
    assert images.num_classes == 5 == images.labels_train.max() + 1 == images.labels_test.max() + 1
    assert images.x_train.shape == (100, 64) and images.x_test.shape == images.x_outside.shape == (50, 64)
    assert images.black == pytest.approx(images.x_train.min())


def test_grey_images_are_enlarged_to_colour():
    flat, colour = (ood_split("digits", "digits", 10, 10, colour=c) for c in (False, True))
    assert colour.x_outside.shape == (10, 32, 32, 3)
    np.testing.assert_allclose(colour.x_outside[:, 2::4, 1::4, 2].reshape(10, 64), flat.x_outside, atol=1e-5)
