"""Theorem 2.1 of Hron et al. (2022) beyond one dense layer: three layers, dense and convolutional."""

from collections.abc import Iterator

import jax
import numpy as np

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import network, observed
from book.experiments.trends import vanishing
from widebnn import collectors, estimates, targets
from widebnn.tables import Measure, Row, Rows


@experiment(SETTINGS["deep_limit"], parts=(("architectures", "widths"),))
def deep_limit(dataset, num_train, architectures, widths, depth, num_draws, noise_std, seed) -> Iterator[Row]:
    """KL(N(0, I) ‖ P(φ | D)) of deep networks over the width, by prior draws.

    Yields
    ------
    Rows with architecture, width and the divergence, `kl`, with its standard error. Observations are ±½, one
    output.
    """
    for architecture, of in zip(architectures, widths, strict=True):
        images = observed(architecture, dataset, num_train, 1)
        is_even = np.asarray(images.labels_train) % 2 == 0
        y = np.where(is_even, 0.5, -0.5)[:, None].astype(images.x_train.dtype)
        for width in of:
            bnn = network(architecture, images, width, depth, noise_std, seed)
            target = targets.marginal(bnn.__class__(bnn.features, 1, noise_std), images.x_train, y)
            key = jax.random.fold_in(jax.random.key(seed), width)
            draws = estimates.prior_draws(key, target, {"potential": collectors.potential}, num_draws)
            kl = estimates.kl_from_prior(draws["potential"].astype(np.float64))
            found = Measure(float(kl.value), float(kl.error))
            yield {"architecture": architecture, "width": width} | found.columns("kl")


@deep_limit.claim("H-T2.1d")
def vanishes(rows: Rows) -> Iterator[Finding]:
    for architecture, of in rows.by("architecture"):
        yield from vanishing(
            f"KL in φ, {architecture}", sorted(of.values("width")), of.over("width", "kl", "kl_error")
        )
