"""Held-out loss over the temperature of the likelihood, where the posterior is computed exactly (X-13)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float
from scipy.special import logsumexp
from sklearn import datasets as tables

from book.experiments.chain_summaries import behind
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.regression_tables import split
from widebnn import smc, targets
from widebnn.diagnostics import convergence_summary
from widebnn.estimators._network import SCALES
from widebnn.models import BNN, FCN
from widebnn.tables import Measure, Results, Row
from widebnn.targets._scaled import Scaled
from widebnn.targets._tempered import Tempered

CLASSES: dict[str, Callable[..., Any]] = {"digits": tables.load_digits, "growers": tables.load_wine}
"""Tables of classes by name; all others are regressions."""
LARGEST_RHAT = 1.05
"""Of islands that agree on a loss."""


class TemperedNoise(Tempered):
    """A Gaussian likelihood to the power β, with the readout integrated out, and σ among the scales.

    N(y | f, σ²)^β is N(y | f, σ²/β) times (2πσ²)^(n(1 − β)/2), up to a constant in θ and σ.
    """

    inside: Scaled

    def at(self, position) -> tuple[Any, Array]:
        """The target at noise σ²/β, and σ."""
        target, noise_std = self.inside.at(position), self.inside.scales(position)["noise_std"]
        return replace(target, bnn=target.bnn.at_scales(noise_std=noise_std / jnp.sqrt(self.beta))), noise_std

    def potential(self, position) -> Float[Array, ""]:
        target, noise_std = self.at(position)
        left_out = len(target.y) * (1 - self.beta) * jnp.log(noise_std)
        return target.potential(position.network) + target.log_normaliser() - left_out


def _regression(name: str, num_train: int, num_test: int, width: int, seed: int) -> tuple[Any, Any]:
    """From β to a target, and its log densities of new observations."""
    found = split(name, num_train, num_test, seed)
    scaled = targets.scaled(targets.marginal(_network(found.x, width, 1), found.x, found.y), **SCALES)

    def log_prob(target, position):
        at, noise_std = target.at(position)
        mean, variance = at.predictive_moments(position.network, found.x_test)
        variance += noise_std**2 * (1 - 1 / target.beta)  # a new observation is not tempered
        return jax.scipy.stats.norm.logpdf(found.y_test[:, 0], mean[:, 0], jnp.sqrt(variance))

    return lambda beta: TemperedNoise(scaled, beta), log_prob


def _classification(name: str, num_train: int, num_test: int, width: int, seed: int) -> tuple[Any, Any]:
    """The same with a softmax, whose potential is minus the log likelihood."""
    x, labels = CLASSES[name](return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    train, test = order[:num_train], order[num_train : num_train + num_test]
    deviation = x[train].std(axis=0)
    x = ((x - x[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)
    bnn = _network(x, width, labels.max() + 1)
    scales = {scale: prior for scale, prior in SCALES.items() if scale != "noise_std"}
    scaled = targets.scaled(targets.categorical(bnn, x[train], labels[train], map="identity"), **scales)

    def log_prob(target, position):
        at, network = target.inside.given_scales(position)
        of_classes = jax.nn.log_softmax(at.output(network, x[test]))
        return jnp.take_along_axis(of_classes, labels[test][:, None], axis=1)[:, 0]

    return lambda beta: Tempered(scaled, beta), log_prob


def _network(x: Any, width: int, d_out: int) -> BNN:
    return BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(0)), int(d_out), noise_std=1.0)


@experiment(SETTINGS["cold_posteriors"], parts=(("datasets", "betas"), "splits"))
def cold_posteriors(
    *, datasets, betas, num_train, num_test, width, splits, num_particles, num_islands, seed
) -> Iterator[Row]:
    """Held-out NLL where the likelihood, and not the prior, is taken to the power β, by particles.

    All scales are learned. Yields
    ------
    Rows with dataset, split and beta: the `nll` of the mixture over particles of all islands, in units of
    standardised targets where they are numbers; the number of temperatures; R̂ and effective samples of the
    mean log density of new observations.
    """
    for dataset, of_dataset in zip(datasets, betas, strict=True):
        made = _classification if dataset in CLASSES else _regression
        for number in splits:
            posterior, log_prob = made(dataset, num_train, num_test, width, number)
            rng_key = jax.random.fold_in(jax.random.key(seed), number)
            options = {"num_particles": num_particles, "num_islands": num_islands, "progress": False}
            for beta in of_dataset:
                target = posterior(jnp.float32(beta))
                run = smc(rng_key, target, collect={"log_prob": log_prob}, **options)
                found = run["log_prob"].astype(np.float64)  # (island, particle, row)
                mixture = logsumexp(found, axis=(0, 1)) - np.log(found[..., 0].size)
                summary = convergence_summary(found.mean(axis=2, keepdims=True))
                yield {
                    **{"dataset": dataset, "split": number, "beta": beta, "nll": float(-mixture.mean())},
                    "num_temperatures": len(run.temperatures),
                    **{name: summary[key] for name, key in {"rhat": "rhat", "ess": "ess_bulk"}.items()},
                }


@cold_posteriors.claim("X-13")
def bayes_is_best(results: Results) -> Iterator[Finding]:
    rows, settings = results.rows, results.settings
    share = settings["num_test"] / (settings["num_train"] + settings["num_test"])
    degrees = len(settings["splits"]) - 1
    better, telling, found, counted = 0, 0, [], []
    for dataset, of in rows.by("dataset"):
        nll = {beta: np.array(at.column("nll")) for beta, at in of.by("beta")}
        have_agreed = [beta for beta, at in of.by("beta") if max(at.column("rhat")) < LARGEST_RHAT]
        worse = {beta: Measure.over_splits(nll[beta] - nll[1], share) for beta in have_agreed if beta != 1}
        counted += [row for row in of if row["beta"] in (1, *have_agreed)]
        better += any(one.value < -2 * (one.error or 0) for one in worse.values())
        telling += any(abs(one.value) > 2 * (one.error or 0) for one in worse.values())
        found += [(f"{dataset}: NLL at β = {beta:g} less that at 1", one) for beta, one in worse.items()]
    particles = behind((row["ess"] for row in counted), (row["rhat"] for row in counted))
    what = f"tables, of {telling} that tell β apart, on which another β is better by two errors"
    is_told = telling == len(settings["datasets"])
    yield Finding(what, better, below=0.5, decides=True, resolved=is_told, chains=particles)
    for what, one in found:
        yield Finding(what, one, above=0, degrees=degrees, chains=particles)
