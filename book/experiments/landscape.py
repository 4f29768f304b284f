"""Slices of the posterior before and after repriorisation (Hron et al. 2022, Figure 5)."""

import math
from collections.abc import Iterator
from itertools import pairwise

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from book.experiments.chain_summaries import rounded
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.trends import degrees_of_freedom
from widebnn import targets
from widebnn.landscape import curvature, slice_through, train
from widebnn.models import BNN, FCN
from widebnn.tables import Results, Row

PARAMETRISATIONS = {"θ": targets.standard, "φ": targets.repriorised}
EDGES = ((0, 1), (0, 2), (1, 2))


@experiment(SETTINGS["landscape"], parts="repeats")
def landscape(
    dataset, problems, training_time, momentum, resolution, num_products, noise_std, repeats, seed
) -> Iterator[Row]:
    """Slices of the posterior before and after repriorisation, between three networks trained from the prior.

    Training descends the energy of the standard parametrisation, and φ = T⁻¹(θ) is read off where it ends:
    the corners of both slices are the same three functions.

    Yields
    ------
    Rows with repeat, width, num_train, parametrisation; steps of training, and of the trained networks the
    mean squared error over σ² and ‖θ‖/√d; in nats and (mean, least, largest) over three edges the barriers of
    U; (mean, least, largest) over three corners the curvature, and the largest of its
    residuals; the standard deviation of U over the slice; and U over the slice less its least
    value, on the points of `widebnn.landscape.simplex_grid`.
    """
    most = max(num_train for _, num_train in problems)
    dataset = images(dataset, most, num_test=1)  # all problems share its mean and deviation
    for repeat in repeats:
        rng_key = jax.random.fold_in(jax.random.key(seed), repeat)
        for width, num_train in problems:
            observed = (dataset.x_train[:num_train], dataset.y_train[:num_train])
            features = FCN(dataset.x_train.shape[1], width, rngs=nnx.Rngs(seed))
            bnn = BNN(features, dataset.y_train.shape[1], noise_std)
            for row in _slices(rng_key, bnn, *observed, training_time, momentum, resolution, num_products):
                yield {"repeat": repeat, "width": width, "num_train": num_train} | row


@landscape.claim("H-F5")
def smoother_in_phi(results: Results) -> Iterator[Finding]:
    """Over width at the number of images with the most widths, and over images at the width with the most."""
    rows, degrees = results.rows, degrees_of_freedom(results)
    (_, of_n), (_, of_width) = (
        max(rows.by(column), key=lambda group: len(group[1])) for column in ("num_train", "width")
    )
    for column, name in (("spread_potential", "deviation of U over the slice"), ("curvature", "curvature")):
        theta, phi = (of_n.where(parametrisation=p).over("width", column) for p in PARAMETRISATIONS)
        step = max((b / a for a, b in pairwise(phi)), key=lambda step: step.value)
        yield Finding(f"{name} in φ, from one width to the next, at most", step, below=1, degrees=degrees)
        yield Finding(f"{name}, φ ÷ θ, at the widest", phi[-1] / theta[-1], below=1, degrees=degrees)
    theta, phi = (of_n.where(parametrisation=p).over("width", "barrier_potential") for p in PARAMETRISATIONS)
    yield Finding("barrier of U, φ ÷ θ, at the widest", phi[-1] / theta[-1], below=1, degrees=degrees)
    phi = of_width.where(parametrisation="φ")
    sizes, spread = (sorted(phi.values("num_train")), phi.over("num_train", "spread_potential"))
    growth = (spread[-1] / sizes[-1]) / (spread[0] / sizes[0])
    what = "deviation of U per image in φ, most images ÷ fewest"
    yield Finding(what, growth, above=1, degrees=degrees)


def _slices(rng_key, bnn, x, y, training_time, momentum, resolution, num_products) -> Iterator[Row]:
    standard = targets.standard(bnn, x, y)
    start_key, lanczos_key = jax.random.split(rng_key)

    def curvatures(target, positions):
        return jax.lax.map(lambda u: curvature(lanczos_key, target, u, num_products), positions)

    starts = jax.lax.map(standard.draw_prior, jax.random.split(start_key, 3))
    largest = float(curvatures(standard, starts).largest.max())
    optimiser = optax.sgd(1 / largest, momentum)
    num_steps = math.ceil(training_time * largest)
    thetas = jax.lax.map(lambda u: train(standard, u, optimiser, num_steps).position, starts)
    square = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(thetas))
    trained = {
        "num_steps": num_steps,
        "misfit": rounded(2 * jax.lax.map(standard.potential, thetas).mean() / y.size),
        "norm": rounded(jnp.sqrt(square / sum(leaf.size for leaf in jax.tree.leaves(thetas)))),
    }
    for name, make in PARAMETRISATIONS.items():
        target = make(bnn, x, y)
        positions = jax.lax.map(target.from_parameters, thetas)
        corners = [jax.tree.map(lambda leaf, i=i: leaf[i], positions) for i in range(3)]
        seen = slice_through(target, corners, resolution)
        barriers = jnp.stack([seen.barrier(*edge).potential for edge in EDGES])
        bend = curvatures(target, positions)
        yield {
            "parametrisation": name,
            **trained,
            **_summary("barrier_potential", barriers),
            **_summary("curvature", bend.largest),
            "curvature_residual": rounded(bend.residual.max()),
            "spread_potential": rounded(seen.potential.std()),
            "potential": [round(float(u), 2) for u in seen.potential - seen.potential.min()],
        }


def _summary(name, values) -> dict[str, float]:
    found = {"": values.mean(), "_low": values.min(), "_high": values.max()}
    return {f"{name}{end}": rounded(value) for end, value in found.items()}
