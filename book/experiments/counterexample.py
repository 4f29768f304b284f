"""Mapping another layer than the readout: what is left of the divergence (Hron et al. 2022, Appendix E.1)."""

from collections.abc import Iterator
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.configuration import Configuration, Count, Counts, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Noise, Seed
from book.experiments.findings import Finding
from jaxtyping import Array, Float
from widebnn import targets
from widebnn.models import BNN, Embedding
from widebnn.tables import Measure, Row, Rows

__all__ = ["Counterexample", "counterexample"]

BATCH = 500
"""Draws that are made at once."""


class Counterexample(Configuration):
    """A regression on one input."""

    widths: Annotated[Counts, "d of f(x) = Σ_j v_j sigmoid(x u_j)/√d."] = (16, 64, 256, 1_024, 4_096)
    num_train: Annotated[Count, "Observations of 1 + sin(x)/2, evenly spaced from −2 to 2."] = 6
    num_draws: Annotated[Several, "Prior draws of u, weighted by their evidence."] = 40_000
    noise_std: Noise = 0.5
    seed: Seed = 0


@experiment(
    "what another layer than the readout would leave",
    scales={  # the paper proves this and has no numbers, and "paper" is what a GPU makes of it
        "smoke": Counterexample(widths=(16, 64), num_draws=2_000),
        "laptop": Counterexample(),
        "colab": Counterexample(widths=(16, 64, 256, 1_024, 4_096, 16_384), num_draws=1_000_000),
        "paper": Counterexample(widths=(16, 64, 256, 1_024, 4_096, 16_384, 65_536), num_draws=4_000_000),
    },
    parts="widths",
)
def counterexample(config: Counterexample) -> Iterator[Row]:
    """The law of s = Σ_j v_j/√d under the posterior, if v is left as it is and only u is mapped.

    A priori s ~ N(0, 1), at every width. By Pinsker's inequality and E[sign s] = 0 both divergences between
    prior and posterior are at least ½ E[sign s | D]², whatever is done to u.

    Yields
    ------
    Rows with width; mean, E[s | D], and sign, E[sign s | D], each with its standard error; limit, what the
    paper's formula E[ψ(Xε)]ᵀK⁻¹y, K with σ² on the diagonal, gives for the mean (the paper has it for a
    single weight, where 1/√d is missing); effective_draws.
    """
    x = jnp.linspace(-2, 2, config.num_train)[:, None]
    y = 1 + jnp.sin(x) / 2
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    h = 1 / (1 + np.exp(-np.asarray(x, np.float64) * nodes[None, :]))
    kernel = (h * weights) @ h.T + config.noise_std**2 * np.eye(len(h))
    limit = float(h @ weights @ np.linalg.solve(kernel, np.asarray(y, np.float64)[:, 0]))
    for width in config.widths:
        yield {"width": width, "limit": limit} | _posterior(config, x, y, width)


@counterexample.claim(
    "H-AE1",
    where="Appendix E.1",
    claim="The readout is the only layer that may be mapped in every network.",
    paper="a counterexample with a bounded nonlinearity",
    rule="With a sigmoid and the first layer mapped, whatever the map, the divergence between prior and "
    "posterior stays above ½ E[sign Σv/√d | D]² (Pinsker): above 0.1 nats at the widest network and no less "
    "than nine tenths of that at the narrowest; the mean of Σv/√d has the limit that the paper's formula "
    "gives.",
    page="17-other-maps#fig-counter",
)
def divergence_stays(rows: Rows) -> Iterator[Finding]:
    signs = rows.over("width", "sign", "sign_error")
    narrow, wide = (Measure(s.value**2 / 2, abs(s.value) * (s.error or 0.0)) for s in (signs[0], signs[-1]))
    mean = rows.over("width", "mean", "mean_error")[-1]
    yield Finding("least divergence at the widest, in nats", wide, above=0.1)
    yield Finding("least divergence, widest ÷ narrowest", wide / narrow, above=0.9)
    yield Finding("E[s | D] at the widest ÷ limit", mean / rows[0]["limit"], above=0.9, below=1.1)


def _posterior(config: Counterexample, x: Float[Array, "n 1"], y: Float[Array, "n 1"], width: int) -> Row:
    features = Embedding(
        lambda u, x: jax.nn.sigmoid(x * u[None, :]), jax.ShapeDtypeStruct((width,), jnp.float32)
    )
    target = targets.marginal(BNN(features, 1, config.noise_std, bias_std=0.0), x, y)
    rng_key = jax.random.fold_in(jax.random.key(config.seed), width)

    def one(key):
        u = target.draw_prior(key)
        of_v = target.readout_posterior(u)
        ones = jnp.full((1, of_v.mean().shape[0]), width**-0.5)
        mean, variance = ((ones @ of_v.mean())[0, 0], of_v.covariance(ones)[0, 0])
        return (target.potential(u), mean, jax.lax.erf(mean / jnp.sqrt(2 * variance)))

    keys = jax.random.split(rng_key, config.num_draws)
    potential, *found = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=BATCH))(keys))
    weight = np.exp(potential.min() - potential.astype(np.float64))
    weight /= weight.sum()
    row: Row = {}
    for name, values in zip(("mean", "sign"), found, strict=True):
        mean = float(weight @ values)
        row |= Measure(mean, float(np.sqrt(weight**2 @ (values - mean) ** 2))).columns(name)
    return row | {"effective_draws": float(1 / np.sum(weight**2))}
