"""What several wide layers cost: a gradient on whitened layers against one on weights, and over width."""

from collections.abc import Callable, Iterator

import jax
import numpy as np

import widebnn as wb
from benchmarks.steps import posterior, repeated, start
from benchmarks.timing import Comparison, compare
from book.experiments.clock import in_turn
from widebnn.versions import device

SIZES = ((1_024, 2), (2_048, 3), (4_096, 2), (4_096, 3))
"""Widths and depths."""
WIDTHS = (2_048, 4_096, 8_192, 16_384)
"""Over which the exponent is fitted."""


def gradients_whitened_vs_weights(data: wb.data.Dataset) -> Iterator[Comparison]:
    """A row for each size: gradients with their values, the inputs being rotated in both."""
    for width, depth in SIZES:
        marginal = posterior(data, width, depth).marginal
        num_calls = max(2, 4_000_000 // (width**2 * depth))
        gradients = [
            _gradient(target, num_calls)
            for target in (wb.targets.whitened(marginal), wb.targets.rotated(marginal))
        ]
        yield compare(f"gradient_whitened_vs_weights_{width}x{depth}", *gradients, rounds=5)


def gradient_exponent(data: wb.data.Dataset, depth: int = 3) -> Comparison:
    """The power of the width that a gradient on whitened layers costs.

    Returns
    -------
    Comparison
        `ratio` is the slope of log time over log width, fitted to every round, and smaller is better here.
        `ours` is the time at the largest width, `peer` the one at the smallest.
    """
    gradients = {
        width: _gradient(wb.targets.whitened(posterior(data, width, depth).marginal), 20_000 // width)
        for width in WIDTHS
    }
    times = in_turn(gradients, rounds=7)
    slopes = np.polyfit(np.log(WIDTHS), np.log([times[width] for width in WIDTHS]), 1)[0]
    low, middle, high = np.quantile(slopes, [0.25, 0.5, 0.75]).tolist()
    return Comparison(
        id=f"gradient_exponent_whitened_depth{depth}",
        ours=float(np.median(times[WIDTHS[-1]])),
        peer=float(np.median(times[WIDTHS[0]])),
        ratio=middle,
        spread=(low, high),
        unit="power of the width; ms/gradient",
        device=device(),
    )


def _gradient(target: wb.targets.NetworkTarget, num_calls: int) -> Callable[[], float]:
    return repeated(jax.value_and_grad(target.potential), start(target), max(2, num_calls))
