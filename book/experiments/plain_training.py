"""Variational fits against plain training, and over the number of observations (Huix et al. 2022)."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.tempered_fits import adam, fit, flat
from book.experiments.trends import degrees_of_freedom
from widebnn import metrics, vi
from widebnn.tables import Results, Row

SCORES = ("accuracy", "nll", "ece")
VARIATIONAL, PLAIN = "variational", "empirical risk"


@experiment(SETTINGS["plain_training"], parts="repeats")
def plain_training(
    dataset, num_train, num_test, width, tau, num_epochs, batch_size, learning_rate, num_draws, repeats, seed
) -> Iterator[Row]:
    """Mean-field VI at a small temperature against the minimum of the cross-entropy, in the same network.

    Both make the same number of steps of Adam on the same minibatches' size; plain training has no penalty.

    Yields
    ------
    Rows with repeat, method, and accuracy, NLL and ECE on test images.
    """
    data = images(dataset, num_train, num_test)
    for repeat in repeats:
        fit_key, predict_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), repeat))
        model = vi.TwoLayer(data.x_train.shape[1], width, 10, rngs=nnx.Rngs(fit_key))
        training = {"num_epochs": num_epochs, "batch_size": batch_size, "learning_rate": learning_rate}
        options = {"temperature": vi.temperature(tau, num_train, width), "initial_std": 0.1}
        fitted = fit(fit_key, model, data.x_train, data.labels_train, **training, **options)
        found = {
            VARIATIONAL: vi.predict(predict_key, fitted, data.x_test, num_samples=num_draws),
            PLAIN: _minimum(fit_key, model, data, **training),
        }
        for method, probabilities in found.items():
            p = np.asarray(probabilities)
            scores = {name: float(getattr(metrics, name)(p, data.labels_test)) for name in SCORES}
            yield {"repeat": repeat, "method": method} | scores


def _minimum(rng_key, model, data, num_epochs, batch_size, learning_rate):
    """Class probabilities at test images after plain training."""
    graph, weights = nnx.split(model)
    x, labels = jnp.asarray(data.x_train), jnp.asarray(data.labels_train)
    optimiser = adam(len(x), num_epochs, batch_size, learning_rate)

    def risk(weights, rows):
        logits = nnx.merge(graph, weights)(x[rows])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels[rows]).mean()

    def step(carry, rows):
        weights, state = carry
        updates, state = optimiser.update(jax.grad(risk)(weights, rows), state, weights)
        return (optax.apply_updates(weights, updates), state), None

    @jax.jit
    def train(weights, keys):
        orders = jax.vmap(lambda key: jax.random.permutation(key, len(x)))(keys)
        batches = orders.reshape(-1, batch_size)
        return jax.lax.scan(step, (weights, optimiser.init(weights)), batches)[0][0]

    trained = train(weights, jax.random.split(rng_key, num_epochs))
    return jax.nn.softmax(nnx.merge(graph, trained)(jnp.asarray(data.x_test)))


@plain_training.claim("V-ERM")
def compares_with_plain_training(results: Results) -> Iterator[Finding]:
    degrees = degrees_of_freedom(results)
    ours, plain = (results.rows.where(method=method) for method in (VARIATIONAL, PLAIN))
    bounds: dict[str, Any] = {"accuracy": {"above": -0.005}, "nll": {"below": 0}, "ece": {"below": 0}}
    for name, bound in bounds.items():
        less = ours.measure(name) - plain.measure(name)
        yield Finding(f"{name}, variational less empirical risk", less, degrees=degrees, **bound)


@experiment(SETTINGS["more_observations"], parts="repeats")
def more_observations(
    dataset, nums_train, width, taus, fixed_etas, num_steps, batch_size, learning_rate, repeats, seed
) -> Iterator[Row]:
    """Mean variational deviation over the number of observations p, at η = τp/N and at a fixed η.

    Yields
    ------
    Rows with repeat, num_train, `grows`, whether η grows with p, eta, and `std`, the mean of σ ÷ the prior's.
    """
    for repeat in repeats:
        for num_train in nums_train:
            data = images(dataset, num_train, 1)
            etas = [(True, float(vi.temperature(tau, num_train, width))) for tau in taus]
            for grows, eta in [*etas, *((False, eta) for eta in fixed_etas)]:
                key = jax.random.fold_in(jax.random.key(seed), repeat)
                model = vi.TwoLayer(data.x_train.shape[1], width, 10, rngs=nnx.Rngs(key))
                size = min(batch_size, num_train)
                epochs = max(1, num_steps // -(-num_train // size))
                training = {"num_epochs": epochs, "batch_size": size, "learning_rate": learning_rate}
                options = {"temperature": eta, "initial_std": 0.1}
                fitted = fit(key, model, data.x_train, data.labels_train, **training, **options)
                row = {"repeat": repeat, "num_train": num_train, "grows": grows, "eta": eta}
                yield row | {"std": float(flat(fitted.posterior.std).mean() / math.sqrt(0.2))}


@more_observations.claim("V-Q")
def does_not_concentrate(results: Results) -> Iterator[Finding]:
    known: dict[str, Any] = {"degrees": degrees_of_freedom(results)}
    least, *_, most = sorted(results.rows.values("num_train"))
    for grows, of in results.rows.by("grows"):
        fall = of.where(num_train=most).measure("std") / of.where(num_train=least).measure("std")
        how = "η = τp/N" if grows else "η fixed"
        what = f"mean σ, {how}, p = {most:,} ÷ {least:,}"
        bounds = {"above": 0.95, "decides": True} if grows else {"below": 0.95}
        yield Finding(what, fall, **bounds, **known)
