"""What the limit theorems say vanishes, estimated over width (Hron et al. 2022; Pezzetti et al. 2025)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float

from widebnn import estimates, nngp, samplers, targets
from widebnn._check import at_least
from widebnn.diagnostics import rhat
from widebnn.experiments.settings.images import images
from widebnn.models import BNN, FCN
from widebnn.sampling import sample

__all__ = ["THEOREMS", "Theorems", "theorems"]

CHAINS = {
    "pCN": (targets.repriorised, samplers.pcn),
    "pCNL": (targets.repriorised, samplers.pcnl),
    "pCN, inner": (targets.marginal, samplers.pcn),
}
"""The chains of Pezzetti et al., Theorems 2.1, 2.2 and 3.1: what is sampled, and how."""

QUANTILES = {"5 %": 0.05, "median": 0.5, "95 %": 0.95}


@dataclass(frozen=True)
class Theorems:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset, num_train
        "cifar10" or "digits", and how many images; the output says whether the class is even or odd.
    widths
        Of one hidden layer, for divergences, gradients and chains.
    num_draws
        Prior draws at each width.
    function_widths, num_functions
        Of three hidden layers, for the functions of one input given three observations; and draws of them.
    step_size
        β of all chains.
    num_chains, num_steps, burn_in
        Chains from prior draws, steps of each that count, and steps before them.
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    num_train: int = 16
    widths: tuple[int, ...] = (128, 256, 512, 1_024, 2_048)
    num_draws: int = 10_000
    function_widths: tuple[int, ...] = (16, 32, 64, 128, 256)
    num_functions: int = 5_000
    step_size: float = 0.5
    num_chains: int = 4
    num_steps: int = 2_000
    burn_in: int = 300
    noise_std: float = 0.1
    seed: int = 0


THEOREMS = {
    "smoke": Theorems(
        dataset="digits",
        num_train=4,
        widths=(32, 64, 128),
        num_draws=1_000,
        function_widths=(8, 16, 32),
        num_functions=500,
        num_steps=200,
        burn_in=50,
    ),
    "laptop": Theorems(),
    "colab": Theorems(
        num_train=32,
        widths=(256, 512, 1_024, 2_048, 4_096, 8_192),
        num_draws=100_000,
        function_widths=(16, 32, 64, 128, 256, 512, 1_024),
        num_functions=50_000,
        num_chains=16,
        num_steps=10_000,
    ),
    "paper": Theorems(
        num_train=32,
        widths=(256, 512, 1_024, 2_048, 4_096, 8_192, 16_384),
        num_draws=1_000_000,
        function_widths=(16, 32, 64, 128, 256, 512, 1_024),
        num_functions=500_000,
        num_chains=64,
        num_steps=20_000,
    ),
}
"""The configuration at each scale; theorems have no numbers, and "paper" is what a GPU makes of it."""


def theorems(config: Theorems, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Divergences, gradients, distances and rejections over width, as [](07-theorems.ipynb) derives them.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with quantity, width, value and its standard error:

    - "KL in φ", KL(N(0, I) ‖ P(φ | D)); "KL in θ", the same of θ less its limit, which is in the column
      limit (Tr K̂ replaced by its known mean);
    - "gradient, 5 %", "gradient, median", "gradient, 95 %": quantiles of ‖∇U‖ under the posterior;
    - "rejection, pCN", "rejection, pCNL", "rejection, pCN, inner": one less the mean acceptance, with R̂ of U
      in the column rhat;
    - "Kolmogorov": the distance of the law of f_{T(φ)}(x), φ ~ N(0, I), from the NNGP posterior at the worst
      x; "Wasserstein": a bound on that of second order, root mean square over x.

    Raises
    ------
    ValueError
        If the data set is unknown, or there are fewer than two chains.
    """
    at_least(2, num_chains=config.num_chains)
    dataset = images(config.dataset, config.num_train, 1)
    x = dataset.x_train
    y = np.where(dataset.y_train.argmax(axis=1) % 2 == 0, 0.5, -0.5)[:, None].astype(x.dtype)
    rows = []
    for width in config.function_widths:
        for row in _functions(config, width):
            rows.append(row)
            on_row(row)
    for width in config.widths:
        for row in chain(_over_prior(config, x, y, width), _rejections(config, x, y, width)):
            rows.append(row)
            on_row(row)
    return rows


def _network(config: Theorems, in_features: int, width: int, depth: int) -> BNN:
    return BNN(FCN(in_features, width, depth, rngs=nnx.Rngs(config.seed)), 1, config.noise_std)


def _row(quantity: str, width: int, estimate: estimates.Estimate, **more: float) -> dict[str, Any]:
    value, error = float(estimate.value), float(estimate.error)
    return {"quantity": quantity, "width": width, "value": value, "error": error} | more


def _key(config: Theorems, width: int, number: int):
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), width), number)


def _over_prior(
    config: Theorems, x: Float[np.ndarray, "n d_in"], y: Float[np.ndarray, "n 1"], width: int
) -> Iterator[dict[str, Any]]:
    """Theorem 2.1 and Propositions 2.3 and 3.1: prior draws, weighted by e^{−U} where it is the posterior."""
    bnn = _network(config, x.shape[1], width, 1)
    target = targets.rotated(targets.marginal(bnn, x, y))
    collect = {
        "potential": target.potential,
        "gradient": lambda u: optax.tree.norm(jax.grad(target.potential)(u)),
    }
    draws = estimates.prior_draws(_key(config, width, 0), target, collect, config.num_draws)
    u = draws["potential"].astype(np.float64)
    yield _row("KL in φ", width, _estimate(estimates.kl_from_prior(u)))

    gp = nngp.gaussian_process(nngp.nngp_kernel(bnn), x, y, config.noise_std)
    limit, trace = float(gp.kl_from_prior()), float(jnp.trace(gp.prior))
    energy = (float(np.sum(y.astype(np.float64) ** 2)) + trace) / (2 * config.noise_std**2)
    of_readout = energy - u + len(x) * np.log(config.noise_std)
    value, error = _estimate(estimates.kl_from_prior(u, of_readout))
    yield _row("KL in θ", width, estimates.Estimate(value - limit, error), limit=limit)

    weights = np.exp(u.min() - u)
    for name, prob in QUANTILES.items():

        def weighted(gradient, weights, prob=prob):
            return np.quantile(gradient, prob, weights=weights, method="inverted_cdf")

        yield _row(f"gradient, {name}", width, estimates.by_groups(weighted, draws["gradient"], weights))


def _estimate(divergence: estimates.Divergence) -> estimates.Estimate:
    return estimates.Estimate(divergence.value, divergence.error)


def _rejections(
    config: Theorems, x: Float[np.ndarray, "n d_in"], y: Float[np.ndarray, "n 1"], width: int
) -> Iterator[dict[str, Any]]:
    for number, (name, (kind, sampler)) in enumerate(CHAINS.items(), start=1):
        target = targets.rotated(kind(_network(config, x.shape[1], width, 1), x, y))
        draws = sample(
            _key(config, width, number),
            sampler(target.potential, config.step_size),
            target,
            num_samples=config.num_steps,
            burn_in=config.burn_in,
            num_chains=config.num_chains,
        )
        missing = estimates.mean_and_mcse(1 - draws.stats["acceptance_rate"])
        yield _row(f"rejection, {name}", width, missing, rhat=float(rhat(draws["potential"])))


def _functions(config: Theorems, width: int) -> Iterator[dict[str, Any]]:
    """Proposition 2.2: given the inner weights f(x) is normal, and over the prior a mixture of normals."""
    x, y = jnp.array([[-1.0], [0.2], [1.0]]), jnp.array([[-0.5], [0.4], [0.2]])
    grid = jnp.linspace(-1.6, 1.6, 33)[:, None]
    bnn = _network(config, 1, width, 3)
    gp = nngp.gaussian_process(nngp.nngp_kernel(bnn), x, y, config.noise_std)
    limit = np.asarray(gp.mean(grid)[:, 0]), np.asarray(jnp.diag(gp.covariance(grid)))

    target = targets.marginal(bnn, x, y)
    mean, covariance = target.predictive_mean(grid), target.predictive_covariance(grid)
    collect: dict[str, Callable[[Any], Array]] = {
        "mean": lambda u: mean(u)[:, 0],
        "variance": lambda u: jnp.diag(covariance(u)),
    }
    found = estimates.prior_draws(_key(config, width, 0), target, collect, config.num_functions)
    m, v = (found[name].astype(np.float64) for name in ("mean", "variance"))
    yield _row("Kolmogorov", width, estimates.kolmogorov_distance(m, v, *limit, num_points=41))
    # W₂² is convex: that of the mixture is at most the mean of those of its parts, each of two normals.
    square = (m - limit[0]) ** 2 + (np.sqrt(v) - np.sqrt(limit[1])) ** 2
    yield _row("Wasserstein", width, estimates.by_groups(lambda square: np.sqrt(square.mean()), square))
