"""How far the ELBO is from its mean-field limit, over neurons (Huix et al. 2022, Theorem 1).

F̃ is the ELBO with the prediction averaged inside the loss, a function of the distribution ν of the neurons'
variational parameters alone.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.ascent import random_posterior
from book.experiments.configuration import Configuration, Count, Counts, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Losses, PriorVariance, Scalings, Seed, Widths
from book.experiments.findings import Finding
from book.experiments.trends import exponent
from flax import nnx
from jaxtyping import Array, Float, Key
from widebnn import data, vi
from widebnn.tables import Row, Rows

__all__ = ["MeanFieldGap", "mean_field_gap"]

Gap = Callable[[Key[Array, ""], vi.MeanField], tuple[Float[Array, ""], Float[Array, ""] | float]]


class MeanFieldGap(Configuration):
    """F̃ − ELBO at random q, over width: the square loss on diabetes, the cross-entropy on digits.

    F̃ is the ELBO with the prediction averaged inside the loss.
    """

    losses: Losses = ("square", "cross-entropy")
    scalings: Scalings = ("mean-field", "ntk")
    widths: Widths = (16, 64, 256, 1_024, 4_096)
    num_train: Annotated[Counts, "Observations, p: part of the grid."] = (25, 50, 100)
    num_posteriors: Annotated[Count, "Random q per width: means from N(0, v), all deviations √v."] = 10
    prior_variance: PriorVariance = 1 / 5
    num_samples: Annotated[Several, "Draws of the weights for the cross-entropy."] = 400
    seed: Seed = 0


@experiment(
    "how far the ELBO is from its mean-field limit",
    scales={  # the paper proves and does not measure
        "smoke": MeanFieldGap(widths=(16, 128, 1_024), num_train=(25, 50), num_posteriors=10, num_samples=50),
        "laptop": MeanFieldGap(),
        "colab": MeanFieldGap(
            widths=(16, 64, 256, 1_024, 4_096, 16_384), num_posteriors=20, num_samples=2_000
        ),
        "paper": MeanFieldGap(
            widths=(16, 64, 256, 1_024, 4_096, 16_384, 65_536), num_posteriors=30, num_samples=4_000
        ),
    },
    parts=("losses", "scalings", "widths", "num_train"),
)
def mean_field_gap(config: MeanFieldGap) -> Iterator[Row]:
    """F̃ − ELBO = Σ_i [E ℓ(f_i, y_i) − ℓ(E f_i, y_i)], which η KL(q ‖ P₀) has no part in (Theorem 1).

    Under the square loss it is Σ_i Var f(x_i), exact. Under the cross-entropy it is a mean over draws, less
    ⟨∇ℓ(E f_i), f_i − E f_i⟩, whose mean is zero because E f_i is exact.

    Yields
    ------
    Rows with loss, num_train p, scaling, width, posterior (its number), gap and its standard error gap_error,
    0 where it is exact.
    """
    for loss, p in itertools.product(config.losses, config.num_train):
        dataset = (data.diabetes if loss == "square" else data.digits)(p, 1)
        x, d_out = jnp.asarray(dataset.x_train), 1 if loss == "square" else 10
        for scaling in config.scalings:
            for width in config.widths:
                model = vi.TwoLayer(x.shape[1], width, d_out, scaling=scaling, rngs=nnx.Rngs(0))
                net = vi.network(model, x, jax.random.key(0))
                if loss == "square":
                    gap = _gap_of_square(x, scaling)
                else:
                    gap = _gap_of_classes(config, net, dataset, scaling)
                for number in range(config.num_posteriors):
                    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), width), number)
                    q = random_posterior(key, net, config.prior_variance**0.5, config.prior_variance)
                    value, error = map(float, gap(key, q))
                    row = {"loss": loss, "num_train": p, "scaling": scaling, "width": width}
                    yield row | {"posterior": number, "gap": value, "gap_error": error}


@mean_field_gap.claim(
    "V-T1",
    where="Theorem 1",
    claim="The ELBO and its mean-field limit differ by at most C p/N.",
    paper="as the exponents of N and of p in the bound C p/N",
    number="−1 and 1",
    rule="For both losses the exponent of the gap in N, at the most observations, lies within 0.15 of −1, "
    "and its exponent in p, at the widest network, within 0.15 of 1. Scaling 1/N.",
    page="18-plain-elbo#fig-mean-field-gap",
)
def is_of_order_p_over_n(rows: Rows) -> Iterator[Finding]:
    for loss, gaps in rows.where(scaling="mean-field").by("loss"):
        widths, sizes = (sorted(gaps.values(name)) for name in ("width", "num_train"))
        in_width = exponent(widths, gaps.where(num_train=sizes[-1]).over("width", "gap"))
        in_p = exponent(sizes, gaps.where(width=widths[-1]).over("num_train", "gap"))
        yield Finding(f"{loss}: exponent of F̃ − ELBO in N", in_width, above=-1.15, below=-0.85)
        yield Finding(f"{loss}: exponent of F̃ − ELBO in p", in_p, above=0.85, below=1.15)


def _gap_of_square(x: Float[Array, "n d_in"], scaling: str) -> Gap:
    return lambda rng_key, q: (vi.output_moments(q, x, scaling=scaling).variance.sum(), 0.0)


def _gap_of_classes(config: MeanFieldGap, net: vi.Network, dataset: data.Dataset, scaling: str) -> Gap:
    x, labels = (jnp.asarray(dataset.x_train), jnp.asarray(dataset.labels_train))

    @jax.jit
    def gap(rng_key, q):
        centre = vi.output_moments(q, x, scaling=scaling).mean
        there, slope = jax.value_and_grad(lambda f: vi.cross_entropy(f, labels).sum())(centre)

        def remainder(key):
            f = net(q.draw(key), x)
            return jnp.sum(vi.cross_entropy(f, labels)) - there - jnp.sum(slope * (f - centre))

        values = jax.lax.map(remainder, jax.random.split(rng_key, config.num_samples))
        return values.mean(), values.std(ddof=1) / np.sqrt(config.num_samples)

    return gap
