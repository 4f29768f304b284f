"""Slices of the posterior before and after repriorisation (Hron et al. 2022, Figure 5)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array

from widebnn import targets
from widebnn.experiments.settings.images import images
from widebnn.landscape import curvature, slice_through, train
from widebnn.models import BNN, FCN

__all__ = ["LANDSCAPE", "Landscape", "landscape"]

PARAMETRISATIONS = {"θ": targets.standard, "φ": targets.repriorised}
EDGES = ((0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class Landscape:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset
        "cifar10" or "digits".
    problems
        (width, number of training images) of each network with one hidden layer.
    training_time, momentum
        Of gradient descent from three draws of the prior, in steps of 1/Λ that sum to the time; Λ is the
        largest curvature at any of the three. Equal times shrink the prior's part alike in all problems.
    resolution
        Steps along an edge of the slice.
    num_products
        Hessian–vector products for a curvature.
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    problems: tuple[tuple[int, int], ...] = (
        (32, 128),
        (128, 128),
        (512, 128),
        (2_048, 128),
        (128, 32),
        (128, 512),
        (128, 1_024),
    )
    training_time: float = 1 / 64
    momentum: float = 0.9
    resolution: int = 20
    num_products: int = 30
    noise_std: float = 0.1
    seed: int = 0


LANDSCAPE = {
    "smoke": Landscape(
        dataset="digits",
        problems=((16, 32), (64, 32), (64, 8)),
        resolution=6,
        num_products=15,
    ),
    "laptop": Landscape(),
    "colab": Landscape(resolution=40),
    "paper": Landscape(
        problems=tuple((2**k, 128) for k in range(5, 14))
        + tuple((128, 2**k) for k in range(5, 12) if k != 7),
        resolution=40,
    ),
}
"""The configuration at each scale; the paper states n = 128 and width 128, its other numbers are ours."""


def landscape(config: Landscape, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Train three networks from prior draws and look at the spherical triangle between them, in θ and in φ.

    Training descends the energy of the standard parametrisation, and φ = T⁻¹(θ) is read off where it ends:
    the corners of both slices are the same three functions.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width, num_train, parametrisation; steps of training, and of the trained networks the mean
    squared error over σ² and ‖θ‖/√d; in nats and (mean, least, largest) over three edges the barriers of U
    and of the energy; (mean, least, largest) over three corners the curvature, and the largest of its
    residuals; standard deviations of U and of the energy over the slice; and U over the slice less its least
    value, on the points of `widebnn.landscape.simplex_grid`.

    Raises
    ------
    ValueError
        If the data set is unknown, or there are not so many images.
    """
    dataset = images(config.dataset, max(num_train for _, num_train in config.problems), num_test=1)
    rows = []
    for width, num_train in config.problems:
        for row in _rows(config, width, dataset.x_train[:num_train], dataset.y_train[:num_train]):
            rows.append({"width": width, "num_train": num_train} | row)
            on_row(rows[-1])
    return rows


def _rows(config: Landscape, width: int, x: np.ndarray, y: np.ndarray):
    features = FCN(x.shape[1], width, depth=1, rngs=nnx.Rngs(config.seed))
    bnn = BNN(features, y.shape[1], config.noise_std)
    standard = targets.standard(bnn, x, y)
    start_key, lanczos_key = jax.random.split(jax.random.key(config.seed))

    def curvatures(target, positions):
        return jax.lax.map(lambda u: curvature(lanczos_key, target, u, config.num_products), positions)

    starts = jax.lax.map(standard.draw_prior, jax.random.split(start_key, 3))
    largest = float(curvatures(standard, starts).largest.max())
    optimiser = optax.sgd(1 / largest, config.momentum)
    num_steps = math.ceil(config.training_time * largest)
    thetas = jax.lax.map(lambda u: train(standard, u, optimiser, num_steps).position, starts)
    square = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(thetas))
    trained = {
        "num_steps": num_steps,
        "misfit": _rounded(2 * jax.lax.map(standard.potential, thetas).mean() / y.size),
        "norm": _rounded(jnp.sqrt(square / sum(leaf.size for leaf in jax.tree.leaves(thetas)))),
    }
    for name, make in PARAMETRISATIONS.items():
        target = make(bnn, x, y)
        positions = jax.lax.map(target.from_parameters, thetas)
        corners = [jax.tree.map(lambda leaf, i=i: leaf[i], positions) for i in range(3)]
        seen = slice_through(target, corners, config.resolution)
        barriers = [seen.barrier(*edge) for edge in EDGES]
        bend = curvatures(target, positions)
        yield {
            "parametrisation": name,
            **trained,
            **_summary("barrier_potential", jnp.stack([b.potential for b in barriers])),
            **_summary("barrier_energy", jnp.stack([b.energy for b in barriers])),
            **_summary("curvature", bend.largest),
            "curvature_residual": _rounded(bend.residual.max()),
            "spread_potential": _rounded(seen.potential.std()),
            "spread_energy": _rounded(seen.energy.std()),
            "potential": [round(float(u), 2) for u in seen.potential - seen.potential.min()],
        }


def _summary(name: str, values: Array) -> dict[str, float]:
    return {
        name: _rounded(values.mean()),
        f"{name}_low": _rounded(values.min()),
        f"{name}_high": _rounded(values.max()),
    }


def _rounded(value: Array) -> float:
    """To six digits, about what float32 holds."""
    return float(f"{float(value):.6g}")
