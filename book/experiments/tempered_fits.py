"""What the experiments on temperatures of the ELBO share: fits, their rows, and trends over τ."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import optax
from flax import nnx
from jaxtyping import Float

from book.experiments.chain_summaries import rounded
from book.experiments.findings import Finding
from book.experiments.trends import degrees_of_freedom
from widebnn import vi
from widebnn.data import InAndOut
from widebnn.metrics import classification_summary
from widebnn.tables import Results, Row


def adam(num_train: int, num_epochs: int, batch_size: int, learning_rate: float):
    """Adam, whose steps fall to 0 as a cosine."""
    steps = num_epochs * -(-num_train // batch_size)
    return optax.adam(optax.cosine_decay_schedule(learning_rate, steps))


def fit(rng_key, model, x, labels, *, num_epochs, batch_size, learning_rate, **options: Any) -> vi.Fit:
    """A fit of classes; `options` go to `widebnn.vi.fit`."""
    options |= {"num_epochs": num_epochs, "batch_size": batch_size, "progress": False}
    optimiser = adam(len(x), num_epochs, batch_size, learning_rate)
    return vi.fit(rng_key, model, x, labels, vi.cross_entropy, optimiser, **options)


def fits(
    images: InAndOut,
    model: Callable[[nnx.Rngs], Any],
    width: int,
    options: dict[str, Any],
    *,
    taus,
    num_repeats,
    initial_std,
    num_draws,
    seed,
    **training,
) -> Iterator[tuple[Row, vi.Fit]]:
    """A row and the fit that it is of, for each τ and repeat, whose randomness is the same at every τ.

    `model` makes a network of N = `width`, and `options` go to `widebnn.vi.fit`; η = τp/N. σ has a long way
    to go, in ρ, to the prior's deviation: a fit at a large τ that stops short shows where it started.
    """
    num_train = len(images.x_train)
    for tau in taus:
        for repeat in range(num_repeats):
            fit_key, predict_key = jax.random.split(jax.random.fold_in(jax.random.key(seed), repeat))
            fitted = fit(
                fit_key,
                model(nnx.Rngs(jax.random.fold_in(fit_key, 0))),
                images.x_train,
                images.labels_train,
                temperature=vi.temperature(tau, num_train, width),
                initial_std=initial_std,
                **training,
                **options,
            )
            x = np.concatenate([images.x_test, images.x_outside])
            probabilities = vi.predict(predict_key, fitted, x, num_samples=num_draws)
            yield {"tau": tau, "repeat": repeat} | rounded(_row(fitted, images, probabilities)), fitted


def _row(fitted: vi.Fit, images: InAndOut, probabilities: np.ndarray) -> Row:
    """What a fit predicts, and where its weights are."""
    inside, outside = np.split(probabilities, [len(images.x_test)])
    means, stds = flat(fitted.posterior.mean), flat(fitted.posterior.std)
    return {
        "eta": fitted.elbo.temperature,
        "log_likelihood": fitted.elbo.log_likelihood[-1] / len(images.x_train),
        "kl": fitted.elbo.kl_divergence[-1] / means.size,
        **classification_summary(inside, images.labels_test, outside),
        "mean_norm": np.sqrt(np.mean(means**2)),
        "std": stds.mean(),
        "seconds": fitted.seconds,
    }


def flat(tree: Any) -> Float[np.ndarray, " weight"]:
    """All entries of a pytree, side by side."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def curves(results: Results) -> Iterator[Finding]:
    """Accuracy, NLL and calibration over τ."""
    rows, degrees = results.rows, degrees_of_freedom(results)
    accuracy, nll, ece, confidence = (
        rows.over("tau", column) for column in ("accuracy", "nll", "ece", "confidence")
    )
    peak = max(range(len(ece)), key=lambda i: ece[i].value)
    under = accuracy[peak] - confidence[peak]
    falls = accuracy[-1] - accuracy[0]
    yield Finding("accuracy, largest τ less smallest", falls, below=0, degrees=degrees)
    for what, number in {
        "NLL, largest τ less smallest": nll[-1] - nll[0],
        "ECE, greatest less that at the smallest τ": ece[peak] - ece[0],
        "ECE, greatest less that at the largest τ": ece[peak] - ece[-1],
        "accuracy less confidence where ECE is greatest": under,
    }.items():
        yield Finding(what, number, above=0, degrees=degrees)


def entropies(results: Results) -> Iterator[Finding]:
    """Predictive entropies over τ, inside and outside."""
    rows, degrees = results.rows, degrees_of_freedom(results)
    inside, outside = (rows.over("tau", "entropy"), rows.over("tau", "entropy_outside"))
    most = rows[0]["entropy_histogram"]["edges"][-1]  # log of the number of classes
    lead, share = outside[0] - inside[0], inside[0] / most
    yield Finding("entropy, outside less inside, smallest τ", lead, above=0, degrees=degrees)
    yield Finding("entropy inside ÷ its largest value, smallest τ", share, below=0.25, degrees=degrees)
    for name, curve in (("inside", inside), ("outside", outside)):
        least = min((b - a for a, b in pairwise(curve)), key=lambda rise: rise.value)
        what = f"entropy {name}, from one τ to the next, at least"
        yield Finding(what, least, above=0, degrees=degrees)
        what = f"entropy {name} ÷ its largest value, largest τ"
        yield Finding(what, curve[-1] / most, above=0.9, degrees=degrees)
