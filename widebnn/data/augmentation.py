"""New images from old ones, in the compiled step that uses them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from widebnn._check import Number, at_least

__all__ = ["flip_and_crop"]

Images = Float[Array, "n height width channel"]


def flip_and_crop(rng_key: Key[Array, ""], images: Images, padding: int = 4, fill: Number = 0.0) -> Images:
    """Mirror each image left to right with probability $½$, then pad it and crop it at random to its size.

    Parameters
    ----------
    rng_key
        Key of both steps; each image is mirrored and cropped independently.
    images
        Images $(n, height, width, channel)$.
    padding
        Pixels added on each of the four sides; 4 for CIFAR-10 (He et al. 2016, §4.2).
    fill
        Value of the added pixels, in the units of `images`: for black after standardisation, what
        `Standardisation.apply` of ``data.x_scale`` makes of 0.
    """
    at_least(0, padding=padding)
    if images.ndim != 4:
        raise ValueError(f"images must have shape (n, height, width, channels); got {images.shape}")
    flip_key, crop_key = jax.random.split(rng_key)
    n, *size = images.shape
    is_flipped = jax.random.bernoulli(flip_key, shape=(n, 1, 1, 1))
    images = jnp.where(is_flipped, images[:, :, ::-1], images)
    sides = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    padded = jnp.pad(images, sides, constant_values=fill)
    corners = jax.random.randint(crop_key, (n, 2), 0, 2 * padding + 1)
    return jax.vmap(lambda image, corner: jax.lax.dynamic_slice(image, (*corner, 0), size))(padded, corners)
