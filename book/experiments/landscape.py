"""Slices of the posterior before and after repriorisation (Hron et al. 2022, Figure 5)."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import optax
from book.experiments.configuration import Configuration, Count, NonNegative, Positive, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, Seed
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.ood_split import rounded
from book.experiments.repeats import degrees_of_freedom
from flax import nnx
from jaxtyping import Array, Float, Key
from widebnn import targets
from widebnn.landscape import curvature, slice_through, train
from widebnn.models import BNN, FCN
from widebnn.tables import Results, Row

__all__ = ["Landscape", "landscape"]

PARAMETRISATIONS = {"θ": targets.standard, "φ": targets.repriorised}
EDGES = ((0, 1), (0, 2), (1, 2))


class Landscape(Configuration):
    """Networks, their training, and the slice through what it finds.

    Gradient descent starts at three draws of the prior, in steps of 1/Λ; Λ is the largest curvature at any of
    the three. Equal times shrink the prior's part alike in all problems.
    """

    dataset: Images = "cifar10"
    problems: Annotated[
        tuple[tuple[Count, Count], ...],
        "(width, number of training images) of each network with one hidden layer.",
    ] = ((32, 128), (128, 128), (512, 128), (2_048, 128), (128, 32), (128, 512), (128, 1_024))
    training_time: Annotated[Positive, "What the steps of gradient descent sum to."] = 1 / 64
    momentum: Annotated[float, "Of gradient descent, in [0, 1)."] = 0.9
    resolution: Annotated[Several, "Steps along an edge of the slice."] = 20
    num_products: Annotated[Count, "Hessian–vector products per curvature."] = 30
    noise_std: Noise = 0.1
    repeats: Annotated[tuple[NonNegative, ...], "Each has starts of its own."] = (0, 1, 2, 3, 4)
    seed: Seed = 0

    def check(self):
        """`momentum` lies in [0, 1)."""
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1); got {self.momentum}")


@experiment(
    "slices of the posterior before and after repriorisation",
    scales={  # the paper states n = 128 and width 128, its other numbers are ours
        "smoke": Landscape(
            dataset="digits",
            problems=((16, 32), (64, 32), (64, 8)),
            resolution=6,
            num_products=15,
            repeats=(0,),
        ),
        "laptop": Landscape(repeats=tuple(range(10)), seed=2),
        "colab": Landscape(resolution=40),
        "paper": Landscape(
            problems=tuple((2**k, 128) for k in range(5, 14))
            + tuple((128, 2**k) for k in range(5, 12) if k != 7),
            resolution=40,
        ),
    },
    parts="repeats",
)
def landscape(config: Landscape) -> Iterator[Row]:
    """Train three networks from prior draws and look at the spherical triangle between them, in θ and in φ.

    Training descends the energy of the standard parametrisation, and φ = T⁻¹(θ) is read off where it ends:
    the corners of both slices are the same three functions.

    Yields
    ------
    Rows with repeat, width, num_train, parametrisation; steps of training, and of the trained networks the
    mean squared error over σ² and ‖θ‖/√d; in nats and (mean, least, largest) over three edges the barriers of
    U and of the energy; (mean, least, largest) over three corners the curvature, and the largest of its
    residuals; standard deviations of U and of the energy over the slice; and U over the slice less its least
    value, on the points of `widebnn.landscape.simplex_grid`.
    """
    most = max(num_train for _, num_train in config.problems)
    dataset = images(config.dataset, most, num_test=1)  # all problems share its mean and deviation
    for repeat in config.repeats:
        rng_key = jax.random.fold_in(jax.random.key(config.seed), repeat)
        for width, num_train in config.problems:
            observed = (dataset.x_train[:num_train], dataset.y_train[:num_train])
            for row in _slices(rng_key, config, width, *observed):
                yield {"repeat": repeat, "width": width, "num_train": num_train} | row


@landscape.claim(
    "H-F5",
    where="Figure 5",
    claim="The posterior is smoother in φ than in θ, the more so the wider the network and the fewer the "
    "images.",
    paper="pictures of slices: φ flattens over width at n = 128, and roughens over n at width 128",
    rule="In φ the potential's deviation over the slice and its curvature fall from each width to the next; "
    "at the widest they and the barrier are below those in θ; over n the deviation grows faster than n. "
    "Errors are those of triples of networks on the same images, judged by Student's t.",
    page="10-landscape#fig-landscape-numbers",
)
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


def _slices(
    rng_key: Key[Array, ""],
    config: Landscape,
    width: int,
    x: Float[np.ndarray, "n d_in"],
    y: Float[np.ndarray, "n d_out"],
) -> Iterator[Row]:
    features = FCN(x.shape[1], width, depth=1, rngs=nnx.Rngs(config.seed))
    bnn = BNN(features, y.shape[1], config.noise_std)
    standard = targets.standard(bnn, x, y)
    start_key, lanczos_key = jax.random.split(rng_key)

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
        "misfit": rounded(2 * jax.lax.map(standard.potential, thetas).mean() / y.size),
        "norm": rounded(jnp.sqrt(square / sum(leaf.size for leaf in jax.tree.leaves(thetas)))),
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
            "curvature_residual": rounded(bend.residual.max()),
            "spread_potential": rounded(seen.potential.std()),
            "spread_energy": rounded(seen.energy.std()),
            "potential": [round(float(u), 2) for u in seen.potential - seen.potential.min()],
        }


def _summary(name: str, values: Array) -> dict[str, float]:
    return {
        name: rounded(values.mean()),
        f"{name}_low": rounded(values.min()),
        f"{name}_high": rounded(values.max()),
    }
