"""Bad inputs of data, of what reads a run, of the landscape, plots and tables."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import optax

import widebnn as wb
from widebnn import landscape
from widebnn.tables import Rows

from .rows import KEY, X_NAN, X, Y, flat, kw, position, refused, target

HALVES = np.full((3, 2), 0.5)
DRAWS = np.arange(18.0).reshape(2, 9)


class Draws(NamedTuple):
    """Enough of a run for the diagnostics."""

    collected: dict


def slice_through(**options):
    flat_target = wb.targets.from_potential(flat, jnp.zeros(2))
    defaults = {"target": flat_target, "corners": [jnp.ones(2), jnp.array([1.0, 0.0])], "resolution": 2}
    return landscape.slice_through(**(defaults | options))


def slider(**options):
    defaults = {"values": [1, 2], "text": "{}", "alt": "A line."}
    return wb.plots.slider(lambda figure, value: figure.subplots(), **(defaults | options))


ROWS = [
    *refused("data.digits", (kw(num_train=5000), "num_train…5,000 but there are")),
    *refused("data.diabetes", (kw(num_test=1700), "num_test…leaves no more")),
    *refused("data.flip_and_crop", (KEY, X, 1, "images…(n, height, width, channels)…(4, 3)")),
    *refused(
        "data.ood_split",
        ("mnist", "svhn", 10, 10, "outside…'fashion_mnist'…'svhn'"),
        ("digits", "digits", 1_000, 10, "num_train…at most…1000"),
    ),
    *refused(
        "diagnostics.rhat",
        (np.zeros((2, 1)), "draws…two draws…(2, 1)"),
        (np.ones((1, 5)), "draws…two chains…(1, 5)"),
        (Draws({"f": np.zeros((2, 5))}), TypeError, "draws…an array…a whole run"),
        (np.zeros((2, 5), complex), TypeError, "draws…real numbers…complex"),
    ),
    *refused("diagnostics.convergence", (np.zeros((2, 7)), "draws…eight draws…(2, 7)")),
    *refused(
        "diagnostics.random_projections",
        (lambda: wb.random_projections(KEY, X)(None, X[:2]), "position…(4, 3)…(2, 3)"),
    ),
    *refused("estimates.prior_draws", (KEY, target(), {"U": 3}, 10, TypeError, "collect['U']…a function…3")),
    *refused("estimates.kl_from_prior", (X, jnp.ones(5)[None, :, None], "conditional…(4, 3)…(1, 5, 1)")),
    *refused(
        "estimates.kolmogorov_distance",
        (X, X, X[0], 0 * X[0], "limit_variance…above 0"),
    ),
    *refused("estimates.by_groups", (np.mean, X[:, 0], "draws…num_groups=20…[4]")),
    *refused(
        "estimates.power_law",
        (X[:, 0], X[:2, 0], X[:, 0], "value…one entry per width…(2,)"),
        (X[:, 0], X[:, 0], X[:, 0], "width…3 different widths…1."),
    ),
    *refused(
        "metrics.accuracy",
        (HALVES, np.array([0, 1]), "labels…(3,)…(2,)"),
        (HALVES, np.array([0, 1, 2]), "labels…0 to 1…0 to 2"),
        (HALVES, np.array([0.0, 1.0, 0.0]), TypeError, "labels…integers or booleans…0.0 in float64"),
        (HALVES, [0, None, 1], TypeError, "labels…integers or booleans…None in object"),
        (HALVES, np.ma.masked_equal([0, 1, 1], 0), "labels…no masked entries"),
        (HALVES[:0], np.zeros(0, int), "probabilities…n ≥ 1…(0, 2)"),
        (2 * HALVES, np.array([0, 1, 1]), "probabilities…sum to 1"),
    ),
    *refused(
        "metrics.crps",
        (np.ones((1, 3)), np.ones(3), "draws…at least 2; got 1"),
        (np.ones((3, 2)), np.ones(3), "draws…(draw, 3,)…(3, 2)"),
        (np.ones((3, 3)), np.ones(3), "axis…draws…as many…(3, 3)"),
    ),
    *refused(
        "metrics.classification_summary",
        (np.full((2, 2), 0.5), np.zeros(2, int), np.full((2, 3), 1 / 3), "outside…2 classes…3"),
    ),
    *refused("landscape.slerp", (X, Y, 0.5, "b…(4, 3)…(4, 2)"), (X, -2 * X, 0.5, "b…opposite")),
    *refused(
        "landscape.slice_through",
        (kw(corners=[jnp.ones(2)]), "corners…two positions or three…1"),
        (kw(corners=[jnp.ones(2), X_NAN[0, :2]]), "corners…finite"),
        call=slice_through,
    ),
    *refused("landscape.Slice", (lambda: slice_through().barrier(1, 1), "first and second…1, 1")),
    *refused("landscape.curvature", (KEY, target(), position("standard"), "position…the target's shapes")),
    *refused("landscape.train", (target(), X, optax.sgd(0.1), 1, "position…the target's shapes…(4, 3)")),
    *refused("plots.slider", (kw(values=[1]), "values…two…1"), (kw(start=2), "start…0 to 1…2"), call=slider),
    *refused("plots.traces", (DRAWS, kw(ylabel="U", ax=np.array([None])), TypeError, "ax…one Axes…axes[0]")),
    *refused("scale.at_scale", (kw(laptop=1), "choices…'smoke'…['laptop']")),
    *refused("tables.Rows", (lambda: Rows([{"width": 8}]).where(depth=1), "column…'width'…got 'depth'")),
    *refused("tables.results", ("walk", "name…'over_width'…got 'walk'")),
    *refused("tables.read", (__file__, "path studies.py holds no results")),
]
