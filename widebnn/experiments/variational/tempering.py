"""Accuracy, calibration and weights over the temperature of the ELBO (Huix et al. 2022, Figures 1 and 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import optax
from flax import nnx

from widebnn import vi
from widebnn._check import at_least, non_negative, positive
from widebnn.experiments.settings.ood_split import (
    NUM_BINS,
    InAndOut,
    classification_summary,
    ood_split,
    rounded,
    shares,
)

__all__ = ["TEMPERING", "TemperedFits", "Tempering", "adam", "tempering"]

MEAN_EDGES = np.linspace(-2, 2, 81)
STD_EDGES = np.linspace(0, 0.6, 61)
NUM_UNITS = 60


@dataclass(frozen=True)
class TemperedFits:
    """How q is fitted at each temperature, and looked at.

    Attributes
    ----------
    dataset, outside
        In and out of distribution, as `widebnn.experiments.ood_split` has them.
    num_train, num_test
        p, and images to test on, as many outside.
    taus
        τ; η = τp/N.
    num_repeats
        Fits at each τ, each with an initialisation and a randomness of its own.
    num_epochs, batch_size
        Of each fit.
    learning_rate
        Of Adam at the start; it falls to 0 along a cosine.
    initial_std
        Where every σ starts. The way to the prior's deviation is long in ρ, and a fit at a large τ that stops
        short of it shows the start and not the optimum.
    num_draws
        m, draws of the weights for a prediction.
    seed
        Of everything.
    """

    dataset: str = "mnist"
    outside: str = "fashion_mnist"
    num_train: int = 60_000
    num_test: int = 10_000
    taus: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)
    num_repeats: int = 5
    num_epochs: int = 100
    batch_size: int = 128
    learning_rate: float = 1e-3
    initial_std: float = 1e-3
    num_draws: int = 50
    seed: int = 0


@dataclass(frozen=True)
class Tempering(TemperedFits):
    """The two-layer ReLU network in 1/N scaling, with a prior N(0, `prior_variance`) and cross-entropy.

    Attributes
    ----------
    width
        N.
    prior_variance
        Of a weight; means start at N(0, 0.01²), as in `widebnn.vi.TwoLayer`.
    local
        Whether steps use local reparametrisation.
    """

    width: int = 400
    prior_variance: float = 0.2
    local: bool = True


TEMPERING = {
    "smoke": Tempering(
        dataset="digits",
        outside="digits",
        num_train=500,
        num_test=300,
        taus=(1e-3, 1e-2, 0.1, 1.0),
        num_repeats=2,
        num_epochs=50,
        batch_size=50,
        learning_rate=0.02,
        initial_std=0.1,
        width=256,
    ),
    "laptop": Tempering(
        num_epochs=12,
        batch_size=500,
        learning_rate=0.01,
        initial_std=0.1,
    ),
    "colab": Tempering(
        taus=(1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.3, 1.0),
        batch_size=500,
        learning_rate=0.01,
        initial_std=0.1,
    ),
    "paper": Tempering(taus=(1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 0.03, 0.1, 0.3, 1.0), local=False),
}
"""The configuration at each scale; the paper states data, prior, m and repeats, other numbers are ours."""


def tempering(config: Tempering, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Fit q at each τ and repeat, and look at its predictions and its weights.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with tau, eta and repeat; of the last epoch `log_likelihood`, an observation, and `kl`, a weight;
    what `widebnn.experiments.classification_summary` says; `mean_norm` and `std`, the root mean square of μ
    and the mean of σ; seconds. The first repeat also has `weights`: edges and shares of histograms of μ and
    σ, and ‖μ‖ and the mean of σ of the weights into and out of each of some hidden units.

    Raises
    ------
    ValueError
        If a number is out of range, a name is unknown, or there are not so many images.
    OSError
        If the images have to be downloaded and cannot be.
    """
    at_least(1, width=config.width)
    positive(prior_variance=config.prior_variance)
    images = checked(config)
    rows = []
    for repeat in range(config.num_repeats):
        for tau in config.taus:
            row, posterior = _fitted(config, images, tau, repeat)
            rows.append(row | ({"weights": _weights(posterior)} if repeat == 0 else {}))
            on_row(rows[-1])
    return rows


def checked(config: TemperedFits) -> InAndOut:
    """The images of a configuration whose numbers are in range."""
    at_least(1, num_repeats=config.num_repeats)
    at_least(1, num_epochs=config.num_epochs)
    at_least(1, num_draws=config.num_draws)
    positive(learning_rate=config.learning_rate)
    positive(initial_std=config.initial_std)
    for tau in config.taus:
        non_negative(tau=tau)
    if not 1 <= config.batch_size <= config.num_train:
        raise ValueError(f"batch_size must be 1 to {config.num_train}; got {config.batch_size}")
    images = ood_split(
        config.dataset,
        config.outside,
        config.num_train,
        config.num_test,
        colour=not isinstance(config, Tempering),
    )
    if len(images.x_test) < NUM_BINS:
        raise ValueError(
            f"num_test must be at least {NUM_BINS}, one image for each bin of the calibration error; "
            f"got {len(images.x_test)}"
        )
    return images


def adam(config: TemperedFits) -> optax.GradientTransformation:
    """Adam, with steps that fall to 0 along a cosine by the end of the fit."""
    steps = config.num_epochs * -(-config.num_train // config.batch_size)
    return optax.adam(optax.cosine_decay_schedule(config.learning_rate, steps))


def row_of(
    config: TemperedFits, images: InAndOut, tau: float, repeat: int, fitted: vi.Fit, predict_key: jax.Array
) -> dict[str, Any]:
    """What every tempered fit has in its row."""
    x = np.concatenate([images.x_test, images.x_outside])
    probabilities = vi.predict(predict_key, fitted, x, num_samples=config.num_draws)
    inside, outside = np.split(probabilities, [len(images.x_test)])
    means, stds = (_flat(part) for part in (fitted.posterior.mean, fitted.posterior.std))
    return {
        "tau": tau,
        "eta": rounded(float(fitted.elbo.temperature)),
        "repeat": repeat,
        "log_likelihood": rounded(fitted.elbo.log_likelihood[-1] / len(images.x_train)),
        "kl": rounded(fitted.elbo.kl_divergence[-1] / means.size),
        **classification_summary(inside, images.labels_test, outside),
        "mean_norm": rounded(np.sqrt(np.mean(means**2))),
        "std": rounded(stds.mean()),
        "seconds": rounded(fitted.seconds),
    }


def _fitted(
    config: Tempering, images: InAndOut, tau: float, repeat: int
) -> tuple[dict[str, Any], vi.MeanField]:
    fit_key, predict_key = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), repeat))
    rngs = nnx.Rngs(jax.random.fold_in(fit_key, 0))
    model = vi.TwoLayer(images.x_train.shape[1], config.width, images.num_classes, rngs=rngs)
    fitted = vi.fit(
        fit_key,
        model,
        images.x_train,
        images.labels_train,
        vi.cross_entropy,
        adam(config),
        num_epochs=config.num_epochs,
        batch_size=config.batch_size,
        temperature=vi.temperature(tau, len(images.x_train), config.width),
        prior_variance=config.prior_variance,
        initial_std=config.initial_std,
        local=config.local,
        progress=False,
    )
    return row_of(config, images, tau, repeat, fitted, predict_key), fitted.posterior


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _weights(posterior: vi.MeanField) -> dict[str, Any]:
    """Histograms of μ and σ, and some hidden units, each with the weights into it and out of it."""
    means, stds = (
        np.concatenate([part["hidden"]["kernel"], np.transpose(part["readout"]["kernel"])])[:, :NUM_UNITS]
        for part in (posterior.mean, posterior.std)
    )
    return {
        "mean_edges": [rounded(edge) for edge in MEAN_EDGES],
        "mean": shares(_flat(posterior.mean), MEAN_EDGES),
        "std_edges": [rounded(edge) for edge in STD_EDGES],
        "std": shares(_flat(posterior.std), STD_EDGES),
        "unit_norm": [rounded(norm) for norm in np.linalg.norm(means, axis=0)],
        "unit_std": [rounded(std) for std in stds.mean(axis=0)],
    }
