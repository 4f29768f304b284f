"""Mapping another layer than the readout: what is left of the divergence (Hron et al. 2022, Appendix E.1)."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from widebnn import targets
from widebnn.models import BNN, Embedding
from widebnn.tables import Measure, Row, Rows

BATCH = 500
"""Draws that are made at once."""


@experiment(SETTINGS["counterexample"], parts="widths")
def counterexample(widths, num_train, num_draws, noise_std, seed) -> Iterator[Row]:
    """What another layer than the readout would leave.

    The law of s = Σ_j v_j/√d under the posterior, if v is left as it is and only u is mapped.

    A priori s ~ N(0, 1), at every width. By Pinsker's inequality and E[sign s] = 0 both divergences between
    prior and posterior are at least ½ E[sign s | D]², whatever is done to u.

    Yields
    ------
    Rows with width; mean, E[s | D], and sign, E[sign s | D], each with its standard error; limit, what the
    paper's formula E[ψ(Xε)]ᵀK⁻¹y, K with σ² on the diagonal, gives for the mean (the paper has it for a
    single weight, where 1/√d is missing); effective_draws.
    """
    x = jnp.linspace(-2, 2, num_train)[:, None]
    y = 1 + jnp.sin(x) / 2
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    h = 1 / (1 + np.exp(-np.asarray(x, np.float64) * nodes[None, :]))
    kernel = (h * weights) @ h.T + noise_std**2 * np.eye(len(h))
    limit = float(h @ weights @ np.linalg.solve(kernel, np.asarray(y, np.float64)[:, 0]))
    for width in widths:
        of_u = jax.ShapeDtypeStruct((width,), jnp.float32)
        features = Embedding(lambda u, x: jax.nn.sigmoid(x * u[None, :]), of_u)
        target = targets.marginal(BNN(features, 1, noise_std, bias_std=0.0), x, y)
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), width), num_draws)
        potential, mean, sign = np.asarray(_of_draws(target, width, keys))
        weight = np.exp(potential.min() - potential.astype(np.float64))
        yield (
            {"width": width, "limit": limit}
            | weighted_mean(weight, mean).columns("mean")
            | weighted_mean(weight, sign).columns("sign")
            | {"effective_draws": float(1 / np.sum((weight / weight.sum()) ** 2))}
        )


def _of_draws(target: targets.NetworkTarget, width: int, keys):
    """Of each draw of u from the prior the potential, and of s given u the mean and the mean sign."""

    def one(key):
        u = target.draw_prior(key)
        of_v = target.readout_posterior(u)
        ones = jnp.full((1, of_v.mean().shape[0]), width**-0.5)
        mean, variance = ((ones @ of_v.mean())[0, 0], of_v.covariance(ones)[0, 0])
        return (target.potential(u), mean, jax.lax.erf(mean / jnp.sqrt(2 * variance)))

    return jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=BATCH))(keys)


def weighted_mean(weight: np.ndarray, values: np.ndarray) -> Measure:
    """By draws of these weights, which need not sum to 1."""
    weight = weight / weight.sum()
    mean = float(weight @ values)
    return Measure(mean, float(np.sqrt(weight**2 @ (values - mean) ** 2)))


@counterexample.claim("H-AE1")
def divergence_stays(rows: Rows) -> Iterator[Finding]:
    signs = rows.over("width", "sign", "sign_error")
    narrow, wide = (Measure(s.value**2 / 2, abs(s.value) * (s.error or 0.0)) for s in (signs[0], signs[-1]))
    mean = rows.over("width", "mean", "mean_error")[-1]
    yield Finding("least divergence at the widest, in nats", wide, above=0.1)
    yield Finding("least divergence, widest ÷ narrowest", wide / narrow, above=0.9)
    yield Finding("E[s | D] at the widest ÷ limit", mean / rows[0]["limit"], above=0.9, below=1.1)
