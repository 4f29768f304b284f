"""The two terms of the ELBO before any training, over width (Huix et al. 2022, Figures 3 and 4)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.configuration import Configuration, Counts, Positive, Positives, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Scalings, Seed, Widths
from book.experiments.findings import Finding
from book.experiments.trends import exponent
from flax import nnx
from jaxtyping import Array, Float, Key, Shaped
from widebnn import data, vi
from widebnn._check import one_of
from widebnn.tables import Measure, Results, Row

__all__ = ["ElboRatio", "elbo_ratio"]

DATASETS = {"digits": data.digits, "mnist": data.mnist, "diabetes": data.diabetes, "boston": data.boston}
BLOCK = 2_000
"""Observations whose likelihoods are computed at once."""

_mean_field, _kl_divergence = (jax.jit(vi.mean_field), jax.jit(vi.kl_divergence))


class ElboRatio(Configuration):
    """Where q starts: means of deviation 0.01, all σ = `initial_std`."""

    datasets: Annotated[tuple[str, ...], partial(one_of, DATASETS), "By name."] = ("mnist", "boston")
    num_train: Annotated[Counts, "Observations of each of `datasets`."] = (60_000, 400)
    widths: Widths = (16, 64, 256, 1_024, 4_096)
    prior_variances: Annotated[Positives, "Part of the grid."] = (1 / 5, 1 / 25)
    scalings: Scalings = ("mean-field", "ntk")
    taus: Annotated[Positives, "τ of η = τ p/N, each next to η = 1."] = (1e-6, 1e-4, 1e-2, 1.0)
    initial_std: Annotated[Positive, "σ."] = 1e-3
    num_samples: Annotated[Several, "Draws from q for the expected log likelihood."] = 4
    seed: Seed = 0

    def check(self):
        """`num_train` has an entry for each of `datasets`."""
        self.one_each("datasets", "num_train")


@experiment(
    "the two terms of the ELBO before training",
    scales={  # the paper states data, prior and σ, its other numbers are ours
        "smoke": ElboRatio(datasets=("digits", "diabetes"), num_train=(500, 256), widths=(16, 128, 1_024)),
        "laptop": ElboRatio(num_samples=8, seed=1),
        "colab": ElboRatio(widths=(16, 64, 256, 1_024, 4_096, 16_384), num_samples=256),
        "paper": ElboRatio(widths=tuple(2**k for k in range(4, 15)), num_samples=256),
    },
    parts=(("datasets", "num_train"), "scalings", "widths"),
    observes=lambda c: zip(c.datasets, c.num_train),
)
def elbo_ratio(config: ElboRatio) -> Iterator[Row]:
    """−E_q log L ÷ (η KL(q ‖ P₀)) of a two-layer network at initialisation, for η = 1 and η = τ p/N.

    Classes have the cross-entropy as loss, regressions the square loss.

    Yields
    ------
    Rows with dataset, scaling, width, prior_variance, tau (None for η = 1), temperature η; log_likelihood,
    its standard error over draws log_likelihood_error, kl_divergence (without η), and ratio.
    """
    for name, num_train in zip(config.datasets, config.num_train):
        dataset = DATASETS[name](num_train, 1)
        is_classes = dataset.labels_train is not None
        x, y = (dataset.x_train, dataset.labels_train if is_classes else dataset.y_train)
        loss, d_out = (vi.cross_entropy, 10) if is_classes else (vi.square, y.shape[1])
        for scaling in config.scalings:
            for width in config.widths:
                model = vi.TwoLayer(x.shape[1], width, d_out, scaling=scaling, rngs=nnx.Rngs(config.seed))
                start = vi.network(model, jnp.asarray(x[:1]), jax.random.key(0))
                q = _mean_field(start.weights, config.initial_std)
                draws = _log_likelihoods(
                    jax.random.key(config.seed), start, q, x, y, loss, config.num_samples
                )
                row = {"dataset": name, "scaling": scaling, "width": width}
                row |= Measure.mean(draws).columns("log_likelihood")
                for variance in config.prior_variances:
                    kl = float(_kl_divergence(q, variance))
                    for tau in (None, *config.taus):
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


for _id, _figure, _name in (("V-F3", "Figure 3", "MNIST"), ("V-F4", "Figure 4", "Boston")):
    elbo_ratio.claim(
        _id,
        where=_figure,
        claim="Before training the KL term outweighs the likelihood as N grows, and η = τp/N balances them "
        f"({_name}).",
        paper="the ratio falls with N at η = 1 and is level otherwise",
        rule="At η = 1 the ratio falls as 1/N (exponent within a tenth of −1); with η = τp/N it stays "
        "within a tenth of itself over all N. Scaling 1/N, prior variance 1/5. The exponent's error is that "
        "of the residuals, a ratio's that of draws of the weights; both are judged by Student's t.",
        page="18-plain-elbo#fig-elbo-ratio",
    )(partial(_balance, dataset=_name.lower()))


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
