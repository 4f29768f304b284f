"""A gradient on whitened layers against one on weights: what several wide layers cost."""

from collections.abc import Iterator

import jax
from flax import nnx

import widebnn as wb
from benchmarks.steps import repeated
from benchmarks.timing import Comparison, compare

__all__ = ["gradients_whitened_vs_weights"]

SIZES = ((1_024, 2), (2_048, 3), (4_096, 2), (4_096, 3))
"""Widths and depths."""


def gradients_whitened_vs_weights(data: wb.data.Dataset) -> Iterator[Comparison]:
    """A row for each size: gradients with their values, the inputs being rotated in both."""
    for width, depth in SIZES:
        features = wb.models.FCN(data.x_train.shape[1], width, depth, rngs=nnx.Rngs(0))
        bnn = wb.BNN(features, data.y_train.shape[1], noise_std=0.1)
        marginal = wb.targets.marginal(bnn, data.x_train, data.y_train, space="data")
        gradients = [
            repeated(
                jax.value_and_grad(target.potential),
                target.draw_prior(jax.random.key(0)),
                max(2, 4_000_000 // (width**2 * depth)),
            )
            for target in (wb.targets.whitened(marginal), wb.targets.rotated(marginal))
        ]
        yield compare(f"gradient_whitened_vs_weights_{width}x{depth}", *gradients, rounds=5)
