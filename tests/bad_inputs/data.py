"""Bad inputs of data."""

import jax.numpy as jnp

import widebnn as wb

from .rows import KEY, X, kw, refused

ROWS = [
    *[
        row
        for name in ("digits", "diabetes")
        for row in refused(
            f"data.{name}",
            *[
                (lambda name=name, k=k, v=v: getattr(wb.data, name)(**{k: v}), f"{k}…{wanted}")
                for k, v, wanted in [
                    ("num_train", 0, "at least 1; got 0"),
                    ("num_train", 5000, "5,000 but there are"),
                    ("num_test", -1, "at least 1; got -1"),
                    ("num_test", 1700, "leaves no more"),
                ]
            ],
        )
    ],
    *refused(
        "data.cifar10",
        (0, "num_train…at least 1…0"),
        (kw(num_test=-5), "num_test…at least 1…-5"),
    ),
    *refused(
        "data.flip_and_crop",
        ((X,), "images…(n, height, width, channels)…(4, 3)"),
        ((jnp.ones((1, 2, 2, 1)), -1), "padding…at least 0…-1"),
        call=lambda args: wb.data.flip_and_crop(KEY, *args),
    ),
    *[
        row
        for name, f in [
            ("mnist", wb.data.mnist),
            ("fashion_mnist", wb.data.fashion_mnist),
            ("svhn", wb.data.svhn),
        ]
        for row in refused(
            f"data.{name}",
            ((-1, 10), "num_train…at least 0…-1"),
            ((1, 0), "num_test…at least 1…0"),
            call=lambda args, f=f: f(*args),
        )
    ],
    *refused("data.boston", (0, 10, "num_train…at least 1…0")),
]
