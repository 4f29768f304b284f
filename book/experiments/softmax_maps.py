"""Maps of the readout under a softmax likelihood, over width (Hron et al. 2022, Appendix F and Figure 11)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.tree_util import Partial

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import in_span, observed
from book.experiments.tuned_chains import effective_samples, gain
from widebnn import data, targets
from widebnn.diagnostics import random_projections
from widebnn.models import BNN, FCN
from widebnn.tables import Measure, Results, Row

NUM_NEW = 20
"""Images that are predicted."""
NUM_COMPONENTS = 4
"""Of two digits: what the network sees of them."""


QUANTITIES = {"projections": "projections of θ", "predictions": "predictions"}
MAPS = {
    "identity": lambda num_classes: {"map": "identity"},
    "Gaussian, λ = σ²": lambda num_classes: {"map": "gaussian"},
    "Gaussian, λ = k": lambda num_classes: {"map": "gaussian", "reg": float(num_classes)},
    "Laplace": lambda num_classes: {"map": "laplace"},
}
"""Options of `widebnn.targets.categorical` by name, from the number of classes."""


def _two_digits(num_train):
    """Images of 3 and 8 by their leading principal components, in units of one common deviation."""
    dataset = data.digits(num_train=1_000, num_test=200)
    train, test = (y.argmax(axis=1) for y in (dataset.y_train, dataset.y_test))
    x, labels = (a[np.isin(train, (3, 8))][:num_train] for a in (dataset.x_train, train))
    new = dataset.x_test[np.isin(test, (3, 8))][:NUM_NEW]
    mean = x.mean(axis=0)
    components = np.linalg.svd(x - mean, full_matrices=False)[2][:NUM_COMPONENTS]
    scale = ((x - mean) @ components.T).std()
    x, new = (jnp.asarray((a - mean) @ components.T / scale, jnp.float32) for a in (x, new))
    return x, (labels == 8).astype(int), new, 2


def _every_class(dataset, num_train):
    """Images by their coordinates in the span of those that are observed."""
    seen = in_span(observed("dense", dataset, num_train, NUM_NEW))
    labels = seen.y_train.argmax(axis=1)
    return jnp.asarray(seen.x_train), labels, jnp.asarray(seen.x_test), seen.y_train.shape[1]


LABELLED = {
    "two digits": _two_digits,
    "digits": partial(_every_class, "digits"),
    "cifar10": partial(_every_class, "cifar10"),
}
"""By name, from the number of images: what the network sees, labels, new images, the number of classes."""


def over_maps(
    *, dataset, num_train, depth, widths, maps, num_prior, noise_std, seed, num_projections, **chains
) -> Iterator[Row]:
    """Langevin on the posterior of a classifier under each of `MAPS`, over width.

    Yields
    ------
    Rows with width, map; acceptance; step_size as tuned; effective samples per step of projections of θ and
    of class probabilities at 20 new images (means), each with its standard error from the scatter over
    chains, and `rhat_projections` and `rhat_predictions` (means); the standard deviation of U over prior
    draws and its standard error.
    """
    x, labels, x_new, num_classes = LABELLED[dataset](num_train)
    for width in widths:
        bnn = BNN(FCN(x.shape[1], width, depth, rngs=nnx.Rngs(seed)), num_classes, noise_std)
        keys = jax.random.split(jax.random.key(seed), 3)
        project = random_projections(keys[0], bnn.template(x), num=num_projections)
        for name in maps:
            target = targets.categorical(bnn, x, labels, **MAPS[name](num_classes))
            quantities = {"projections": project, "predictions": Partial(_probabilities, bnn, x_new)}
            row = {"width": width, "map": name} | effective_samples(keys[1], target, quantities, **chains)
            potentials = np.asarray(_of_prior(jax.random.split(keys[2], num_prior), target), np.float64)
            yield row | _std(potentials).columns("potential_std")


@experiment(SETTINGS["softmax_gain"], parts=("widths", "maps"))
def softmax_gain(**settings) -> Iterator[Row]:
    """Repriorisation under a softmax likelihood, over width: the Gaussian map against none, all classes."""
    return over_maps(**settings)


@experiment(SETTINGS["laplace_map"], parts=("widths", "maps"))
def laplace_map(**settings) -> Iterator[Row]:
    """The Laplace map under a softmax likelihood, over width: all maps on two classes of the digits."""
    return over_maps(**settings)


@softmax_gain.claim("H-F11a")
def gaussian_map_helps(results: Results) -> Iterator[Finding]:
    for quantity, name in QUANTITIES.items():
        what = f"ESS of {name}, best Gaussian map ÷ identity"
        narrowest, *_, widest = _gains(results, what, quantity, "Gaussian", "identity")
        yield narrowest
        yield replace(widest, decides=quantity == "projections")
        grows = Measure(widest.value, widest.error) - Measure(narrowest.value, narrowest.error)
        known = {"resolved": narrowest.resolved and widest.resolved, "degrees": widest.degrees}
        yield Finding(f"{what}, widest less narrowest", grows, above=0, **known)
        what = f"ESS of {name}, Gaussian map with λ = σ² ÷ identity"
        yield _gains(results, what, quantity, "λ = σ²", "identity")[-1]


@laplace_map.claim("H-F11b")
def laplace_map_is_better(results: Results) -> Iterator[Finding]:
    widest = results.rows.where(width=max(results.rows.values("width")))
    slower = widest.one(map="Laplace")["ms_per_step"] / widest.one(map="identity")["ms_per_step"]
    for quantity, name in QUANTITIES.items():
        of = f"ESS of {name}, Laplace map ÷ "
        yield replace(
            _gains(results, "", quantity, "Laplace", "Gaussian")[-1], what=f"{of}best Gaussian, widest"
        )
        per_step = _gains(results, "", quantity, "Laplace", "identity")[-1]
        yield replace(per_step, what=f"{of}identity, widest")
        per_second = Measure(per_step.value, per_step.error) / slower
        yield replace(per_step, what=f"{of}identity, widest, per second", measure=per_second)


def _gains(results: Results, what: str, quantity: str, over: str, under: str) -> list[Finding]:
    """The best of one kind of map ÷ the best of another, over width."""
    gains = []
    for width, rows in sorted(results.rows.by("width")):
        found = sorted(rows, key=itemgetter(f"ess_{quantity}"), reverse=True)
        more, less = (next(row for row in found if kind in row["map"]) for kind in (over, under))
        gains.append(gain(results, f"{what}, width {width:,}", more, less, quantity, above=1))
    return gains


def _probabilities(bnn, x, target, theta):
    return jax.nn.softmax(bnn(theta, x))


@jax.jit
def _of_prior(keys, target):
    """U at draws from the prior, which are not held at once."""
    return jax.lax.map(lambda key: target.potential(target.draw_prior(key)), keys)


def _std(values) -> Measure:
    """Standard deviation of independent values, and its standard error by the delta method."""
    square = (values - values.mean()) ** 2
    std = np.sqrt(square.mean())
    return Measure(float(std), float(square.std() / (2 * std * np.sqrt(len(values)))))
