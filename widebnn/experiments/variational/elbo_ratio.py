"""The two terms of the ELBO before any training, over width (Huix et al. 2022, Figures 3 and 4)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from widebnn import data, vi
from widebnn._check import at_least, one_of, positive

__all__ = ["ELBO_RATIO", "ElboRatio", "elbo_ratio"]

DATASETS = {"digits": data.digits, "mnist": data.mnist, "diabetes": data.diabetes, "boston": data.boston}
BLOCK = 2_000


@dataclass(frozen=True)
class ElboRatio:
    """Where q starts: means of deviation 0.01, all σ = `initial_std`.

    Attributes
    ----------
    datasets, num_train
        Names, and for each how many observations.
    widths, prior_variances, scalings
        The grid.
    taus
        τ of η = τ p/N, each next to η = 1.
    initial_std
        σ.
    num_samples
        Draws from q for the expected log likelihood.
    seed
        Of everything.
    """

    datasets: tuple[str, ...] = ("mnist", "boston")
    num_train: tuple[int, ...] = (60_000, 400)
    widths: tuple[int, ...] = (16, 64, 256, 1_024, 4_096)
    prior_variances: tuple[float, ...] = (1 / 5, 1 / 25)
    scalings: tuple[str, ...] = ("mean-field", "ntk")
    taus: tuple[float, ...] = (1e-6, 1e-4, 1e-2, 1.0)
    initial_std: float = 1e-3
    num_samples: int = 4
    seed: int = 0


ELBO_RATIO = {
    "smoke": ElboRatio(datasets=("digits", "diabetes"), num_train=(500, 256), widths=(16, 128, 1_024)),
    "laptop": ElboRatio(),
    "colab": ElboRatio(widths=(16, 64, 256, 1_024, 4_096, 16_384), num_samples=256),
    "paper": ElboRatio(widths=tuple(2**k for k in range(4, 15)), num_samples=256),
}
"""The configuration at each scale; the paper states data, prior and σ, its other numbers are ours."""


def elbo_ratio(config: ElboRatio, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """−E_q log L ÷ (η KL(q ‖ P₀)) of a two-layer network at initialisation, for η = 1 and η = τ p/N.

    Classes have the cross-entropy as loss, regressions the square loss.

    Parameters
    ----------
    config
        What to compute.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with dataset, scaling, width, prior_variance, tau (None for η = 1), temperature η; log_likelihood,
    its standard error over draws log_likelihood_error, kl_divergence (without η), and ratio.

    Raises
    ------
    ValueError
        If a data set is unknown, `num_train` has not one entry for each, or a number is out of range.
    """
    for name in config.datasets:
        one_of(DATASETS, dataset=name)
    if len(config.num_train) != len(config.datasets):
        raise ValueError(
            f"num_train must have one entry for each of {config.datasets}; got {config.num_train}"
        )
    at_least(2, num_samples=config.num_samples)
    for tau in config.taus:
        positive(taus=tau)
    for variance in config.prior_variances:
        positive(prior_variances=variance)
    rows = []
    for name, num_train in zip(config.datasets, config.num_train):
        dataset = DATASETS[name](num_train, 1)
        is_classes = dataset.labels_train is not None
        x, y = dataset.x_train, dataset.labels_train if is_classes else dataset.y_train
        loss, d_out = (vi.cross_entropy, 10) if is_classes else (vi.square, y.shape[1])
        for scaling in config.scalings:
            for width in config.widths:
                model = vi.TwoLayer(x.shape[1], width, d_out, scaling=scaling, rngs=nnx.Rngs(config.seed))
                start = vi.network(model, jnp.asarray(x[:1]), jax.random.key(0))
                q = vi.mean_field(start.weights, config.initial_std)
                draws = _log_likelihoods(
                    jax.random.key(config.seed), start, q, x, y, loss, config.num_samples
                )
                error = draws.std(ddof=1) / np.sqrt(len(draws))
                for variance in config.prior_variances:
                    kl = float(vi.kl_divergence(q, variance))
                    for tau in (None, *config.taus):
                        eta = 1.0 if tau is None else float(vi.temperature(tau, len(x), width))
                        row = {
                            "dataset": name,
                            "scaling": scaling,
                            "width": width,
                            "prior_variance": variance,
                            "tau": tau,
                            "temperature": eta,
                            "log_likelihood": float(draws.mean()),
                            "log_likelihood_error": float(error),
                            "kl_divergence": kl,
                            "ratio": float(-draws.mean() / (eta * kl)),
                        }
                        rows.append(row)
                        on_row(row)
    return rows


def _log_likelihoods(rng_key, start: vi.Network, q: vi.MeanField, x, y, loss, num_samples: int) -> np.ndarray:
    """log L(w) of each draw w from q, a block of observations at a time."""

    @partial(jax.jit, static_argnames="num_samples")
    def of_block(x, y, num_samples):
        log_likelihood = start.log_likelihood(x, y, loss)
        keys = jax.random.split(rng_key, num_samples)
        return jax.lax.map(lambda key: log_likelihood(q.draw(key)), keys)

    blocks = [slice(i, i + BLOCK) for i in range(0, len(x), BLOCK)]
    parts = [of_block(jnp.asarray(x[b]), jnp.asarray(y[b]), num_samples) for b in blocks]
    return np.sum([np.asarray(part, np.float64) for part in parts], axis=0)
