"""Bad inputs of diagnostics, estimates and metrics."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd

import widebnn as wb
from widebnn import estimates

from .rows import KEY, X, alike, kw, refused, target

HALVES = np.full((3, 2), 0.5)
DAYS = np.array(["2026-11-28", "NaT"], "M8[D]")


class Draws(NamedTuple):
    """Enough of a run for the diagnostics."""

    collected: dict


ROWS = [
    *alike(
        "diagnostics",
        ("rhat", "effective_sample_size", "rhat_squared"),
        (np.zeros((2, 1)), "draws…two draws…(2, 1)"),
        (np.zeros(5), "draws…(chain, draw, ...)…(5,)"),
        (Draws({"f": np.zeros((2, 5))}), TypeError, "draws…an array…a whole run"),
        (np.zeros((2, 5), complex), TypeError, "draws…real numbers…complex"),
    ),
    *alike(
        "diagnostics",
        ("convergence",),
        (np.zeros((2, 7)), "draws…eight draws…(2, 7)"),
        (np.zeros(5), "draws…(chain, draw, ...)…(5,)"),
        (Draws({"f": np.zeros((2, 9))}), TypeError, "draws…an array…a whole run"),
    ),
    *alike("diagnostics", ("rhat", "rhat_squared"), (np.ones((1, 5)), "draws…two chains…(1, 5)")),
    *refused(
        "diagnostics.random_projections",
        (KEY, {}, "template…empty"),
        (lambda: wb.random_projections(KEY, [X])(None, (X,)), "position must have"),
        (lambda: wb.random_projections(KEY, X)(None, X[:2]), "position…(4, 3)…(2, 3)"),
    ),
    *refused(
        "estimates.prior_draws",
        (
            lambda: estimates.prior_draws(KEY, target(), {"U": 3}, 10),
            TypeError,
            "collect['U']…a function of (target, position)…3",
        ),
    ),
    *refused(
        "estimates.kl_from_prior",
        (X[:, :1], "potential…(4, 1)"),
        (X, jnp.ones(5)[None, :, None], "conditional…(4, 3)…(1, 5, 1)"),
    ),
    *refused(
        "estimates.kolmogorov_distance",
        (X[:3, 0], X[:3, 0], X[0, 0], X[0, 0], "mean…4 draws…(3,)"),
        (X, X[:, :2], X[0], X[0], "mean…(draw, *batch)…(4, 2)"),
        (X, X, X[0], 0 * X[0], "limit_variance…above 0…0.0"),
    ),
    *refused("estimates.by_groups", (np.mean, X[:, 0], "draws…num_groups=20…[4]")),
    *refused(
        "estimates.power_law",
        (X[:, 0], X[:2, 0], X[:, 0], "value…one entry per width…(2,)"),
        (X[:, 0], X[:, 0], X[:, 0], "width…3 different widths…1."),
        (jnp.arange(1.0, 4), X[0], X[0], True, "width…4 different widths…3."),
    ),
    *alike(
        "metrics",
        ("accuracy", "nll", "reliability", "ece"),
        (HALVES, np.array([0, 1]), "labels…(3,)…(2,)"),
        (HALVES, np.array([0, 1, 2]), "labels…0 to 1…0 to 2"),
        (HALVES, np.array([0.0, 1.0, 0.0]), TypeError, "labels…integers or booleans…0.0 in float64"),
        (HALVES, [0, None, 1], "labels…no missing entries…1 of 3, such as None"),
        *[
            (HALVES, nullable([0, pd.NA, 1], dtype="Int64"), "labels…no missing entries…1 of 3, such as <NA>")
            for nullable in (pd.array, pd.Series)
        ],
        (HALVES, np.ma.masked_equal([0, 1, 1], 0), "labels…no masked entries…1"),
        (HALVES[:0], np.zeros(0, int), "probabilities…n ≥ 1…(0, 2)"),
        (2 * HALVES, np.array([0, 1, 1]), "probabilities…sum to 1"),
    ),
    *refused(
        "metrics.crps",
        (np.ones((1, 3)), np.ones(3), "draws…at least 2; got 1"),
        (np.ones((3, 2)), np.ones(3), "draws…(draw, 3,)…(3, 2)"),
        (np.ones((2, 2)), DAYS, TypeError, "y must hold real numbers…dates"),
        (np.ones((3, 3)), np.ones(3), "axis…draws…as many…(3, 3)"),
        (np.ones((3, 2)), np.ones(3), kw(axis=2), "axis 2…2"),
        (np.ones((3, 2)), np.ones(3), kw(axis=1.0), TypeError, "axis…an integer…1.0"),
    ),
    *refused(
        "metrics.classification_summary",
        (np.full((2, 2), 0.5), np.zeros(2, int), np.full((2, 3), 1 / 3), "outside…2 classes…3"),
        (HALVES, np.zeros(3, int), HALVES[0], "outside…(n, k)…(2,)"),
        (HALVES, np.zeros(3, int), np.array([[1.5, -0.5]]), "outside…0 or above"),
    ),
]
