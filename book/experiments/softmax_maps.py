"""Maps of the readout under a softmax likelihood, over width (Hron et al. 2022, Appendix F and Figure 11)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.chain_summaries import behind, is_resolved
from book.experiments.configuration import Count, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Widths
from book.experiments.findings import Chains, Finding
from book.experiments.networks import in_span, observed
from book.experiments.tuned_chains import TunedChains, effective_samples
from flax import nnx
from jaxtyping import Array, Float, Int, Key
from widebnn import data, targets
from widebnn._check import at_least, one_of
from widebnn.diagnostics import random_projections
from widebnn.models import BNN, FCN
from widebnn.tables import Measure, Results, Row

__all__ = ["SoftmaxMaps", "laplace_map", "softmax_gain", "softmax_maps"]

NUM_NEW = 20
"""Images that are predicted."""
NUM_COMPONENTS = 4
"""Of two digits: what the network sees of them."""


class Labelled(NamedTuple):
    """Images as the network sees them, the numbers of their classes, and new images."""

    x: Float[Array, "n d"]
    labels: Int[np.ndarray, " n"]
    x_new: Float[Array, "m d"]
    num_classes: int


def softmax_maps(num_classes: int) -> Mapping[str, Mapping[str, Any]]:
    """Options of `widebnn.targets.categorical` for so many classes, by name.

    Raises
    ------
    TypeError, ValueError
        If `num_classes` is not an integer of 2 or more.

    Examples
    --------
    >>> from book.experiments import softmax_maps
    >>> softmax_maps(10)["Gaussian, λ = k"]
    {'map': 'gaussian', 'reg': 10.0}
    """
    at_least(2, num_classes=num_classes)
    return {
        "identity": {"map": "identity"},
        "Gaussian, λ = σ²": {"map": "gaussian"},
        "Gaussian, λ = k": {"map": "gaussian", "reg": float(num_classes)},
        "Laplace": {"map": "laplace"},
    }


def _two_digits(num_train: int) -> Labelled:
    """Images of 3 and 8 by their leading principal components, in units of one common deviation."""
    dataset = data.digits(num_train=1_000, num_test=200)
    train, test = (y.argmax(axis=1) for y in (dataset.y_train, dataset.y_test))
    x, labels = (a[np.isin(train, (3, 8))][:num_train] for a in (dataset.x_train, train))
    new = dataset.x_test[np.isin(test, (3, 8))][:NUM_NEW]
    mean = x.mean(axis=0)
    components = np.linalg.svd(x - mean, full_matrices=False)[2][:NUM_COMPONENTS]
    scale = ((x - mean) @ components.T).std()
    x, new = (jnp.asarray((a - mean) @ components.T / scale, jnp.float32) for a in (x, new))
    return Labelled(x, (labels == 8).astype(int), new, 2)


def _every_class(dataset: str, num_train: int) -> Labelled:
    """Images by their coordinates in the span of those that are observed."""
    seen = in_span(observed("dense", dataset, num_train, NUM_NEW))
    labels = seen.y_train.argmax(axis=1)
    return Labelled(jnp.asarray(seen.x_train), labels, jnp.asarray(seen.x_test), seen.y_train.shape[1])


LABELLED: Mapping[str, Callable[[int], Labelled]] = {
    "two digits": _two_digits,
    "digits": partial(_every_class, "digits"),
    "cifar10": partial(_every_class, "cifar10"),
}
"""By name, from the number of images."""


class SoftmaxMaps(TunedChains):
    """The softmax likelihood under several maps over width."""

    thin: int = 2  # effective samples per step cannot exceed 1/thin
    target_acceptance: float = 0.9
    dataset: Annotated[str, partial(one_of, LABELLED), "Images, by name."] = "cifar10"
    num_train: Annotated[Several, "Images."] = 256
    depth: Annotated[Count, "Hidden layers."] = 3
    widths: Widths = (32, 128, 512)
    maps: Annotated[tuple[str, ...], partial(one_of, softmax_maps(2)), "Part of the grid."] = tuple(
        softmax_maps(2)
    )[:3]
    num_prior: Annotated[Several, "Prior draws over which the deviation of U is taken."] = 2_000


def over_maps(config: SoftmaxMaps) -> Iterator[Row]:
    """Langevin on the posterior of a classifier under each map of `softmax_maps`, over width.

    Yields
    ------
    Rows with width, map; acceptance; step_size as tuned; effective samples per step of projections of θ and
    of class probabilities at 20 new images (means), each with its standard error from the scatter over
    chains, and `rhat_projections` and `rhat_predictions` (means); the standard deviation of U over prior
    draws and its standard error.
    """
    x, labels, x_new, num_classes = LABELLED[config.dataset](config.num_train)
    for width in config.widths:
        features = FCN(x.shape[1], width, config.depth, rngs=nnx.Rngs(config.seed))
        bnn = BNN(features, num_classes, config.noise_std)
        keys = jax.random.split(jax.random.key(config.seed), 3)
        project = random_projections(keys[0], bnn.template(x), num=config.num_projections)
        for name in config.maps:
            target = targets.categorical(bnn, x, labels, **softmax_maps(num_classes)[name])
            quantities = {
                "projections": project,
                "predictions": lambda theta, bnn=bnn: jax.nn.softmax(bnn(theta, x_new)),
            }
            row = {"width": width, "map": name} | effective_samples(keys[1], target, config, quantities)
            yield row | _std(_of_prior(keys[2], target, config.num_prior)).columns("potential_std")


def _declared(title: str, **scales: SoftmaxMaps):
    return experiment(title, scales=scales, parts=("widths", "maps"))


@_declared(
    "repriorisation under a softmax likelihood, over width",
    # "paper" has the number of steps of Figure 11
    smoke=SoftmaxMaps(
        dataset="digits",
        num_train=16,
        depth=2,
        widths=(8, 32),
        num_chains=4,
        num_steps=300,
        burn_in=300,
        num_prior=200,
    ),
    laptop=SoftmaxMaps(num_steps=2_500, burn_in=500, num_prior=500, seed=1),
    colab=SoftmaxMaps(num_steps=20_000),
    paper=SoftmaxMaps(num_steps=100_000, widths=(32, 64, 128, 384, 512, 768, 1_024)),
)
def softmax_gain(config: SoftmaxMaps) -> Iterator[Row]:
    """The Gaussian map against none, on all classes of CIFAR-10."""
    return over_maps(config)


TWO_DIGITS = SoftmaxMaps(
    dataset="two digits", num_train=64, depth=1, widths=(8, 32, 128, 512), maps=tuple(softmax_maps(2))
)


@_declared(
    "the Laplace map under a softmax likelihood, over width",
    smoke=replace(
        TWO_DIGITS, num_train=16, widths=(8, 32), num_chains=4, num_steps=300, burn_in=300, num_prior=200
    ),
    laptop=replace(TWO_DIGITS, num_steps=10_000, seed=2),
    colab=replace(TWO_DIGITS, num_steps=100_000),
    paper=replace(TWO_DIGITS, num_steps=100_000, widths=(8, 32, 128, 512, 2_048)),
)
def laplace_map(config: SoftmaxMaps) -> Iterator[Row]:
    """All maps on two classes of the digits, where the Laplace map is cheap."""
    return over_maps(config)


@softmax_gain.claim(
    "H-F11a",
    where="Figure 11",
    claim="Repriorisation by the Gaussian map helps under a softmax likelihood too, more so at larger width.",
    paper="higher effective sample size than without; no numbers",
    rule="The better of two Gaussian maps, λ = σ² and λ = k, has more effective samples per step than the "
    "identity at the widest network, of projections of θ, which decides. Shown are the same of predictions "
    "and at the narrowest, and that the gain grows. Resolved are 150 effective samples of all chains, which "
    "stand for a hundred. Errors are judged by Student's t. On 256 images of CIFAR-10 in ten classes, three "
    "hidden layers, an acceptance of 0.9, γ = 2ε (Theorem 9.1).",
    would_change="Chains long enough to converge, such as the 100,000 steps of the paper; wider networks, on "
    "an accelerator.",
    page="17-other-maps#fig-gain",
)
def gaussian_map_helps(results: Results) -> Iterator[Finding]:
    degrees = results.settings["num_chains"] - 1
    for column, name in QUANTITIES.items():
        what = f"ESS of {name}, best Gaussian map ÷ identity"
        narrowest, *_, widest = _gains(results, column, "Gaussian", "identity")
        for width, gain, chains in (narrowest, widest):
            decides = column == "ess_projections" and width == widest[0]
            where = f"{what}, width {width:,}"
            resolved = is_resolved(chains.ess)
            yield Finding(
                where, gain, above=1, decides=decides, resolved=resolved, degrees=degrees, chains=chains
            )
        resolved = is_resolved(narrowest[2].ess, widest[2].ess)
        grows = widest[1] - narrowest[1]
        yield Finding(f"{what}, widest less narrowest", grows, above=0, resolved=resolved, degrees=degrees)


@laplace_map.claim(
    "H-F11b",
    where="Figure 11",
    claim="A map to the readout's posterior under the softmax likelihood works better still.",
    paper="would likely work even better; not tried",
    rule="The Laplace map has more effective samples per step than the better of two Gaussian maps, λ = σ² "
    "and λ = k, at the widest network, of projections of θ, which decides. Shown is the same of predictions. "
    "Resolved are 150 effective samples of all chains, which stand for a hundred. Errors are judged by "
    "Student's t. On 64 digits of two classes in four principal components, at an acceptance of 0.9, γ = 2ε "
    "(Theorem 9.1).",
    would_change="Ten classes, for which the Laplace map factorises a matrix of ten rows per image.",
    page="17-other-maps#fig-maps",
)
def laplace_map_is_better(results: Results) -> Iterator[Finding]:
    for column, name in QUANTITIES.items():
        *_, (_, gain, chains) = _gains(results, column, "Laplace", "Gaussian")
        yield Finding(
            f"ESS of {name}, Laplace map ÷ best Gaussian, widest",
            gain,
            above=1,
            decides=column == "ess_projections",
            resolved=is_resolved(chains.ess),
            degrees=results.settings["num_chains"] - 1,
            chains=chains,
        )


QUANTITIES = {"ess_projections": "projections of θ", "ess_predictions": "predictions"}


def _gains(results: Results, column: str, over: str, under: str) -> list[tuple[int, Measure, Chains]]:
    """Width, the best of one kind of map ÷ the best of another, and their chains."""
    total = results.settings["num_chains"] * results.settings["num_steps"]
    gains = []
    for width, rows in sorted(results.rows.by("width")):
        best = [
            max((row for row in rows if kind in row["map"]), key=itemgetter(column)) for kind in (over, under)
        ]
        chains = behind(
            (row[column] * total for row in best), (row[column.replace("ess", "rhat")] for row in best)
        )
        gain = Measure.of(best[0], column) / Measure.of(best[1], column)
        gains.append((width, gain, chains))
    return gains


def _of_prior(rng_key: Key[Array, ""], target: targets.Target, num: int) -> Float[np.ndarray, " draw"]:
    """U at so many draws from the prior, which are not held at once."""
    potential = jax.jit(partial(jax.lax.map, lambda key: target.potential(target.draw_prior(key))))
    return np.asarray(potential(jax.random.split(rng_key, num)), np.float64)


def _std(values: Float[np.ndarray, " draw"]) -> Measure:
    """Standard deviation of independent values, and its standard error by the delta method."""
    square = (values - values.mean()) ** 2
    std = np.sqrt(square.mean())
    return Measure(float(std), float(square.std() / (2 * std * np.sqrt(len(values)))))
