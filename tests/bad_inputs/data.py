"""Bad inputs of data."""

import jax.numpy as jnp

import widebnn as wb

from .rows import KEY, X, alike, kw, refused

ROWS = [
    *alike(
        "data",
        ("digits", "diabetes"),
        (kw(num_train=5000), "num_train…5,000 but there are"),
        (kw(num_test=1700), "num_test…leaves no more"),
    ),
    *refused("data.boston", (0, 10, "num_train…at least 1…0")),
    *refused(
        "data.flip_and_crop",
        ((X,), "images…(n, height, width, channels)…(4, 3)"),
        ((jnp.ones((1, 2, 2, 1)), -1), "padding…at least 0…-1"),
        call=lambda args: wb.data.flip_and_crop(KEY, *args),
    ),
    *alike(
        "data",
        ("cifar10", "mnist", "fashion_mnist", "svhn"),
        (-1, 10, "num_train…at least 0…-1"),
        (1, 0, "num_test…at least 1…0"),
    ),
    *refused(
        "data.ood_split",
        ("imagenet", "svhn", 10, 10, "dataset…'mnist'…'imagenet'"),
        ("mnist", "svhn", 10, 10, "outside…'fashion_mnist'…'svhn'"),
        ("digits", "digits", 10, 0, "num_test…at least 1…0"),
        ("digits", "digits", 1_000, 10, "num_train…at most…1000"),
    ),
]
