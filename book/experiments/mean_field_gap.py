"""How far the ELBO is from its mean-field limit, over neurons (Huix et al. 2022, Theorem 1).

F̃ is the ELBO with the prediction averaged inside the loss, a function of the distribution ν of the neurons'
variational parameters alone.
"""

import itertools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Key

from book.experiments.ascent import random_posterior
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.trends import exponent
from widebnn import data, vi
from widebnn.tables import Row, Rows

Gap = Callable[[Key[Array, ""], vi.MeanField], tuple[Float[Array, ""], Float[Array, ""] | float]]


@experiment(SETTINGS["mean_field_gap"], parts=("losses", "scalings", "widths", "num_train"))
def mean_field_gap(
    losses, scalings, widths, num_train, num_posteriors, prior_variance, num_samples, seed
) -> Iterator[Row]:
    """How far the ELBO is from its mean-field limit, over neurons.

    F̃ − ELBO = Σ_i [E ℓ(f_i, y_i) − ℓ(E f_i, y_i)], which η KL(q ‖ P₀) has no part in (Theorem 1).

    Under the square loss it is Σ_i Var f(x_i), exact. Under the cross-entropy it is a mean over draws, less
    ⟨∇ℓ(E f_i), f_i − E f_i⟩, whose mean is zero because E f_i is exact.

    Yields
    ------
    Rows with loss, num_train p, scaling, width, posterior (its number), gap and its standard error gap_error,
    0 where it is exact.
    """
    for loss, p in itertools.product(losses, num_train):
        dataset = (data.diabetes if loss == "square" else data.digits)(p, 1)
        x, d_out = jnp.asarray(dataset.x_train), 1 if loss == "square" else 10
        for scaling in scalings:
            for width in widths:
                model = vi.TwoLayer(x.shape[1], width, d_out, scaling=scaling, rngs=nnx.Rngs(0))
                net = vi.network(model, x, jax.random.key(0))
                if loss == "square":
                    gap = _gap_of_square(x, scaling)
                else:
                    gap = _gap_of_classes(net, dataset, scaling, num_samples)
                for number in range(num_posteriors):
                    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), width), number)
                    q = random_posterior(key, net, prior_variance**0.5, prior_variance)
                    value, error = map(float, gap(key, q))
                    row = {"loss": loss, "num_train": p, "scaling": scaling, "width": width}
                    yield row | {"posterior": number, "gap": value, "gap_error": error}


@mean_field_gap.claim("V-T1")
def is_of_order_p_over_n(rows: Rows) -> Iterator[Finding]:
    for loss, gaps in rows.where(scaling="mean-field").by("loss"):
        widths, sizes = (sorted(gaps.values(name)) for name in ("width", "num_train"))
        in_width = exponent(widths, gaps.where(num_train=sizes[-1]).over("width", "gap"))
        in_p = exponent(sizes, gaps.where(width=widths[-1]).over("num_train", "gap"))
        yield Finding(f"{loss}: exponent of F̃ − ELBO in N", in_width, above=-1.15, below=-0.85)
        yield Finding(f"{loss}: exponent of F̃ − ELBO in p", in_p, above=0.85, below=1.15)


def _gap_of_square(x: Float[Array, "n d_in"], scaling: str) -> Gap:
    return lambda rng_key, q: (vi.output_moments(q, x, scaling=scaling).variance.sum(), 0.0)


def _gap_of_classes(net: vi.Network, dataset: data.Dataset, scaling: str, num_samples: int) -> Gap:
    x, labels = (jnp.asarray(dataset.x_train), jnp.asarray(dataset.labels_train))

    @jax.jit
    def gap(rng_key, q):
        centre = vi.output_moments(q, x, scaling=scaling).mean
        there, slope = jax.value_and_grad(lambda f: vi.cross_entropy(f, labels).sum())(centre)

        def remainder(key):
            f = net(q.draw(key), x)
            return jnp.sum(vi.cross_entropy(f, labels)) - there - jnp.sum(slope * (f - centre))

        values = jax.lax.map(remainder, jax.random.split(rng_key, num_samples))
        return values.mean(), values.std(ddof=1) / np.sqrt(num_samples)

    return gap
