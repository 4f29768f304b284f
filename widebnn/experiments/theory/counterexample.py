"""Mapping another layer than the readout: what is left of the divergence (Hron et al. 2022, Appendix E.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widebnn import targets
from widebnn._check import at_least
from widebnn.models import BNN, Embedding

__all__ = ["COUNTEREXAMPLE", "Counterexample", "counterexample"]


@dataclass(frozen=True)
class Counterexample:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    widths
        Of f(x) = Σ_j v_j sigmoid(x u_j)/√d.
    num_train
        Observations of 1 + sin(x)/2, evenly from −2 to 2.
    num_draws
        Prior draws of u, weighted by their evidence.
    noise_std
        σ.
    seed
        Of everything.
    """

    widths: tuple[int, ...] = (16, 64, 256, 1_024, 4_096)
    num_train: int = 6
    num_draws: int = 40_000
    noise_std: float = 0.5
    seed: int = 0


COUNTEREXAMPLE = {
    "smoke": Counterexample(widths=(16, 64), num_draws=2_000),
    "laptop": Counterexample(),
    "colab": Counterexample(widths=(16, 64, 256, 1_024, 4_096, 16_384), num_draws=1_000_000),
    "paper": Counterexample(widths=(16, 64, 256, 1_024, 4_096, 16_384, 65_536), num_draws=4_000_000),
}
"""The configuration at each scale; the paper proves this and has no numbers,
and "paper" is what a GPU makes of it."""


def counterexample(
    config: Counterexample, on_row: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[dict]:
    """The law of s = Σ_j v_j/√d under the posterior, if v is left as it is and only u is mapped.

    A priori s ~ N(0, 1), at every width. By Pinsker's inequality and E[sign s] = 0 both divergences between
    prior and posterior are at least ½ E[sign s | D]², whatever is done to u.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width; mean, E[s | D], and sign, E[sign s | D], each with its standard error; limit, what the
    paper's formula E[ψ(Xε)]ᵀK⁻¹y, K with σ² on the diagonal, gives for the mean (the paper has it for a
    single weight, where 1/√d is missing); effective_draws.

    Raises
    ------
    ValueError
        If there are fewer than two draws.
    """
    at_least(2, num_draws=config.num_draws)
    x = jnp.linspace(-2, 2, config.num_train)[:, None]
    y = 1 + jnp.sin(x) / 2
    limit = _limit(config, x, y)
    rows = []
    for width in config.widths:
        rows.append({"width": width, "limit": limit} | _posterior(config, x, y, width))
        on_row(rows[-1])
    return rows


def _posterior(
    config: Counterexample, x: Float[Array, "n 1"], y: Float[Array, "n 1"], width: int
) -> dict[str, float]:
    features = Embedding(
        lambda u, x: jax.nn.sigmoid(x * u[None, :]), jax.ShapeDtypeStruct((width,), jnp.float32)
    )
    target = targets.marginal(BNN(features, 1, config.noise_std, bias_std=0.0), x, y)
    rng_key = jax.random.fold_in(jax.random.key(config.seed), width)

    def one(key):
        u = target.draw_prior(key)
        of_v = target.readout_posterior(u)
        ones = jnp.full((1, of_v.mean().shape[0]), width**-0.5)
        mean, variance = (ones @ of_v.mean())[0, 0], of_v.covariance(ones)[0, 0]
        return target.potential(u), mean, jax.lax.erf(mean / jnp.sqrt(2 * variance))

    keys = jax.random.split(rng_key, config.num_draws)
    potential, *found = np.asarray(jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=500))(keys))
    weight = np.exp(potential.min() - potential.astype(np.float64))
    weight /= weight.sum()
    row = {}
    for name, values in zip(("mean", "sign"), found, strict=True):
        row[name] = float(weight @ values)
        row[f"{name}_error"] = float(np.sqrt(weight**2 @ (values - row[name]) ** 2))
    return row | {"effective_draws": float(1 / np.sum(weight**2))}


def _limit(config: Counterexample, x: Float[Array, "n 1"], y: Float[Array, "n 1"]) -> float:
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    h = 1 / (1 + np.exp(-np.asarray(x, np.float64) * nodes[None, :]))
    kernel = (h * weights) @ h.T + config.noise_std**2 * np.eye(len(h))
    return float(h @ weights @ np.linalg.solve(kernel, np.asarray(y, np.float64)[:, 0]))
