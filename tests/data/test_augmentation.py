"""Flips and crops, against every place that a piece can come from."""

import jax
import numpy as np

from widebnn.data import flip_and_crop

IMAGE = np.arange(1, 49, dtype=np.float32).reshape(4, 6, 2)
augment = jax.jit(flip_and_crop, static_argnums=(2, 3))


def candidates(padding, fill):
    """All images that may come out."""
    made = {}
    for is_flipped in (False, True):
        image = IMAGE[:, ::-1] if is_flipped else IMAGE
        padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)), constant_values=fill)
        for i in range(2 * padding + 1):
            for j in range(2 * padding + 1):
                made[padded[i : i + 4, j : j + 6].tobytes()] = (is_flipped, i, j)
    return made


def test_every_flip_and_place_is_as_likely_as_any_other():
    images = np.tile(IMAGE[None], (18_000, 1, 1, 1))
    augmented = np.asarray(augment(jax.random.key(0), images, 1, -5.0))
    places = candidates(1, -5.0)
    found = [places[image.tobytes()] for image in augmented]
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert len(counts) == 2 * 9
    assert np.all(np.abs(counts - 1_000) < 5 * 1_000**0.5)
