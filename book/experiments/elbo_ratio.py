"""The two terms of the ELBO before any training, over width (Huix et al. 2022, Figures 3 and 4)."""

from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key, Shaped

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.trends import exponent
from widebnn import data, vi
from widebnn.tables import Measure, Results, Row

DATASETS = {"digits": data.digits, "mnist": data.mnist, "diabetes": data.diabetes, "boston": data.boston}
BLOCK = 2_000
"""Observations whose likelihoods are computed at once."""

_mean_field, _kl_divergence = (jax.jit(vi.mean_field), jax.jit(vi.kl_divergence))


@experiment(SETTINGS["elbo_ratio"], parts=(("datasets", "num_train"), "scalings", "widths"))
def elbo_ratio(
    datasets, num_train, widths, prior_variances, scalings, taus, initial_std, num_samples, seed
) -> Iterator[Row]:
    """The two terms of the ELBO before training: −E_q log L ÷ (η KL(q ‖ P₀)), for η = 1 and η = τ p/N.

    Classes have the cross-entropy as loss, regressions the square loss.

    Yields
    ------
    Rows with dataset, scaling, width, prior_variance, tau (None for η = 1), temperature η; log_likelihood,
    its standard error over draws log_likelihood_error, kl_divergence (without η), and ratio.
    """
    for name, num in zip(datasets, num_train, strict=True):
        dataset = DATASETS[name](num, 1)
        is_classes = dataset.labels_train is not None
        x, y = (dataset.x_train, dataset.labels_train if is_classes else dataset.y_train)
        loss, d_out = (vi.cross_entropy, 10) if is_classes else (vi.square, y.shape[1])
        for scaling in scalings:
            for width in widths:
                model = vi.TwoLayer(x.shape[1], width, d_out, scaling=scaling, rngs=nnx.Rngs(seed))
                start = vi.network(model, jnp.asarray(x[:1]), jax.random.key(0))
                q = _mean_field(start.weights, initial_std)
                draws = _log_likelihoods(jax.random.key(seed), start, q, x, y, loss, num_samples)
                row = {"dataset": name, "scaling": scaling, "width": width}
                row |= Measure.mean(draws).columns("log_likelihood")
                for variance in prior_variances:
                    kl = float(_kl_divergence(q, variance))
                    for tau in (None, *taus):
                        eta = 1.0 if tau is None else float(vi.temperature(tau, len(x), width))
                        yield row | {
                            "prior_variance": variance,
                            "tau": tau,
                            "temperature": eta,
                            "kl_divergence": kl,
                            "ratio": float(-draws.mean() / (eta * kl)),
                        }


def _balance(results: Results, dataset: str) -> Iterator[Finding]:
    variance = results.settings["prior_variances"][0]
    rows = results.rows.where(dataset=dataset, scaling="mean-field", prior_variance=variance)
    if not rows:  # a scale without this data set
        return
    plain = rows.where(tau=None)
    slope = exponent(sorted(plain.values("width")), plain.over("width", "ratio"))
    degrees = max(len(plain) - 2, 1)  # of a line; through two points it has no error
    yield Finding("η = 1: exponent of the ratio in N", slope, above=-1.1, below=-0.9, degrees=degrees)
    for tau in results.settings["taus"]:
        least, *_, greatest = sorted(_ratio(row) for row in rows.where(tau=tau))
        what = f"η = τp/N, τ = {tau:g}: greatest ratio ÷ least, over N"
        degrees = results.settings["num_samples"] - 1
        yield Finding(what, greatest / least, below=1.1, degrees=degrees)


def _ratio(row: Row) -> Measure:
    """With the error of the expected log likelihood; the divergence has none."""
    return Measure(row["ratio"], row["ratio"] * row["log_likelihood_error"] / -row["log_likelihood"])


elbo_ratio.claim("V-F3")(partial(_balance, dataset="mnist"))
elbo_ratio.claim("V-F4")(partial(_balance, dataset="boston"))


def _log_likelihoods(
    rng_key: Key[Array, ""],
    start: vi.Network,
    q: vi.MeanField,
    x: Shaped[np.ndarray, "n d_in"],
    y: Shaped[np.ndarray, "n ..."],
    loss: Callable[..., Array],
    num_samples: int,
) -> Float[np.ndarray, " draw"]:
    """log L(w) of each draw w from q, a block of observations at a time."""

    @partial(jax.jit, static_argnames="num_samples")
    def of_block(x, y, num_samples):
        log_likelihood = start.log_likelihood(x, y, loss)
        keys = jax.random.split(rng_key, num_samples)
        return jax.lax.map(lambda key: log_likelihood(q.draw(key)), keys)

    blocks = [slice(i, i + BLOCK) for i in range(0, len(x), BLOCK)]
    parts = [of_block(jnp.asarray(x[b]), jnp.asarray(y[b]), num_samples) for b in blocks]
    return np.sum([np.asarray(part, np.float64) for part in parts], axis=0)
