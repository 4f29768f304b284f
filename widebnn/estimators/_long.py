"""A guess of the seconds of a fit, before it starts."""

import math
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from widebnn import targets
from widebnn.driver._end import FIRST_LOOK
from widebnn.estimators._process import MAX_LIMIT_ROWS

__all__ = ["warn_if_long"]


KICKS, SLICES = 12, 10
"""Gradients and potentials of a step, as a guess of the seconds of a fit before it starts takes them."""
LONG = 600.0
"""Seconds from which a fit is announced."""


def warn_if_long(estimator: Any, posterior: targets.Scaled) -> None:
    """Warn before a fit that will take long: the operations of its first draws by the speed of a product."""
    template, n = posterior.template, len(estimator._x)
    if jax.default_backend() != "cpu":
        return
    sizes = [leaf.shape for leaf in jax.tree.leaves(template.network) if len(leaf.shape) == 2]
    if estimator.features is not None or not sizes:
        return
    p = sizes[-1][-1] if posterior.has_exact_scales else sizes[-2][-1]  # behind the last layer, the readout
    of_network = sum(math.prod(shape) for shape in sizes)
    of_potential = 2 * n * (of_network + (p * min(n, p) if posterior.has_exact_scales else 0))
    of_eigenvalues = 20 * min(n, p) ** 3 if posterior.has_exact_scales else 0
    num_steps = estimator.burn_in + estimator.thin * min(FIRST_LOOK, estimator.num_samples)
    of_step = (3 * KICKS + SLICES) * of_potential + of_eigenvalues
    operations = num_steps * estimator.num_chains * of_step
    if operations < LONG * 1e9:  # any machine is faster
        return
    one = np.ones((512, 512), np.float32)
    start = time.perf_counter()
    for _ in range(10):
        _ = one @ one
    seconds = operations / (10 * 2 * 512**3) * (time.perf_counter() - start)
    limit = estimator.until.seconds if estimator.until is not None else None
    if seconds > LONG and (limit is None or float(limit) > LONG):
        warnings.warn(
            f"{num_steps:,} steps of {estimator.num_chains} chains, the least that tell of convergence, are "
            f"estimated to take {seconds / 60:,.0f} minutes here, with {n:,} rows at width {p:,}: take a "
            f"smaller width, width=math.inf (up to {MAX_LIMIT_ROWS:,} rows, regression), fewer rows, or "
            "until=widebnn.Until(seconds=...)",
            skip_file_prefixes=(str(Path(__file__).parents[1]),),
        )
