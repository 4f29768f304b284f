"""Two algorithms as printed, against what they should sample (Pezzetti et al. 2025, Algorithms 1 and 2)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from widebnn import samplers, targets
from widebnn._check import at_least, one_of
from widebnn.experiments.errata.published_pcnl import published_marginal, published_potential
from widebnn.models import BNN, FCN
from widebnn.samplers import GradientState
from widebnn.samplers._base import Sampler, accept
from widebnn.sampling import Collector, sample
from widebnn.targets._base import Target
from widebnn.tree import half_square_difference, inner_product, normal_like

__all__ = ["ALGORITHMS", "Algorithms", "algorithms"]

Moment = tuple[float, float]


@dataclass(frozen=True)
class Algorithms:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    cases
        "pCN" and "pCNL" on the posterior of a network, and "pCNL, U = 0".
    num_chains, num_samples, thin, burn_in
        Chains of each algorithm from prior draws, draws kept of each, steps from one to the next, and steps
        before the first.
    num_draws
        Prior draws, weighted, that the exact values come from.
    width, noise_std
        Of the network with one hidden layer, which is given six points of a curve, and σ.
    dimension
        Where U = 0, the limit of infinite width.
    step_size
        β.
    seed
        Of everything.
    """

    cases: tuple[str, ...] = ("pCN", "pCNL", "pCNL, U = 0")
    num_chains: int = 64
    num_samples: int = 500
    thin: int = 10
    burn_in: int = 200
    num_draws: int = 300_000
    width: int = 4
    noise_std: float = 0.3
    dimension: int = 20
    step_size: float = 0.5
    seed: int = 0


ALGORITHMS = {
    "smoke": Algorithms(num_chains=8, num_samples=50, thin=2, burn_in=50, num_draws=5_000),
    "laptop": Algorithms(),
    "colab": Algorithms(num_chains=512, num_samples=1_000, num_draws=3_000_000),
    "paper": Algorithms(num_chains=4_096, num_samples=2_000, num_draws=30_000_000),
}
"""The configuration at each scale; the paper has no numbers of so small a network,
and "paper" is what a GPU makes of it."""


def algorithms(config: Algorithms, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """pCN and pCNL, as printed and as they should be.

    Algorithm 1 accepts by the log likelihood, which after repriorisation is that of T(φ), in place of −U(φ).
    Algorithm 2 accepts by p(v | D)/p(u | D), which leaves out that its proposal is no symmetric one.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with algorithm ("pCN", "pCNL"), acceptance ("printed", "right"), target ("network", or "U = 0");
    quantity, "misfit" ‖y − f‖²/(2σ²) at the data for pCN, "square" ‖φ‖²/d for pCNL; its mean over the chain,
    under the posterior, and under the law that the printed algorithm has where that is known (None
    elsewhere), as chain, posterior and law, each with its standard error: over chains, or of importance
    sampling.

    Raises
    ------
    ValueError
        If a case is unknown, or there are fewer than two chains or draws.
    """
    for case in config.cases:
        one_of(CASES, cases=case)
    at_least(2, num_chains=config.num_chains)
    at_least(2, num_draws=config.num_draws)
    rows = []
    for case in config.cases:
        for row in CASES[case](config):
            rows.append(row)
            on_row(row)
    return rows


def _network(config: Algorithms, algorithm: str) -> Iterator[dict[str, Any]]:
    x = jnp.array([-1.8, -1.2, -0.3, 0.1, 1.0, 1.7])[:, None]
    y = jnp.sin(2 * x) + 0.3 * x
    bnn = BNN(
        FCN(1, config.width, bias_std=1.0, rngs=nnx.Rngs(config.seed)), 1, config.noise_std, bias_std=1.0
    )
    whole, beta = targets.repriorised(bnn, x, y), config.step_size
    posterior, law = _exact(config, targets.marginal(bnn, x, y))
    if algorithm == "pCN":
        quantity, function = "misfit", published_potential(whole)
        chains = {"printed": samplers.pcn(function, beta), "right": samplers.pcn(whole.potential, beta)}
    else:
        quantity, function = "square", _mean_square(whole)
        chains = {"printed": _printed_pcnl(whole, beta), "right": samplers.pcnl(whole.potential, beta)}
    for acceptance, sampler in chains.items():
        named = {"algorithm": algorithm, "acceptance": acceptance, "target": "network", "quantity": quantity}
        known = law if algorithm == "pCN" and acceptance == "printed" else None
        yield named | _row(_chain(config, sampler, whole, function), posterior[quantity], known)


def _flat(config: Algorithms) -> Iterator[dict[str, Any]]:
    """All of N(0, I): accepted by ½‖u‖² − ½‖v‖², the proposal of pCNL leads to N(0, I/2)."""
    target = targets.from_potential(lambda u: jnp.zeros(()), jnp.zeros(config.dimension))
    chains = {
        "printed": _printed_pcnl(target, config.step_size),
        "right": samplers.pcnl(target.potential, config.step_size),
    }
    for acceptance, sampler in chains.items():
        named = {"algorithm": "pCNL", "acceptance": acceptance, "target": "U = 0", "quantity": "square"}
        law = (0.5, 0.0) if acceptance == "printed" else None
        yield named | _row(_chain(config, sampler, target, _mean_square(target)), (1.0, 0.0), law)


def _row(chain: Moment, posterior: Moment, law: Moment | None) -> dict[str, float | None]:
    found = {"chain": chain, "posterior": posterior, "law": law or (None, None)}
    return {f"{name}{end}": of[i] for name, of in found.items() for i, end in enumerate(("", "_error"))}


def _mean_square(target: Target) -> Collector:
    dimension = sum(leaf.size for leaf in jax.tree.leaves(target.template))
    return lambda position: inner_product(position, position) / dimension


def _printed_pcnl(target: Target, step_size: float) -> Sampler:
    """Algorithm 2: the proposal of pCNL, accepted by the ratio of posterior densities at its two ends."""
    init: Callable[..., Any] = samplers.pcnl(target.potential, step_size).init
    shrink = np.sqrt(1 - step_size**2)

    def propose(u, g, xi):
        return shrink * u - (1 - shrink) * g + step_size * xi

    def step(rng_key, state: GradientState):
        noise_key, accept_key = jax.random.split(rng_key)
        noise = normal_like(noise_key, state.position)
        proposal = init(jax.tree.map(propose, state.position, state.gradient, noise))
        square = half_square_difference(proposal.position, state.position)
        return accept(accept_key, state.potential - proposal.potential - square, state, proposal)

    return Sampler(init, step)


def _chain(config: Algorithms, sampler: Sampler, target: Target, function: Collector) -> Moment:
    draws = sample(
        jax.random.key(config.seed),
        sampler,
        target,
        num_samples=config.num_samples,
        thin=config.thin,
        burn_in=config.burn_in,
        num_chains=config.num_chains,
        collect={"value": function},
    )
    means = draws["value"].astype(np.float64).mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def _exact(config: Algorithms, target: targets.NetworkTarget) -> tuple[dict[str, Moment], Moment]:
    """Means under the posterior, and of the misfit under the law ∝ exp(−½‖φ‖² − Φ(φ)).

    Prior draws of the inner parameters are weighted; the readout has its Gaussian law given them, at noise
    variance σ² and σ²/2 (`published_marginal`).
    """
    variance = config.noise_std**2
    published = published_marginal(target)

    def misfit(u, reg):
        psi, of_readout = target.embedding(u), target.readout_posterior(u, reg)
        residual = jnp.sum((target.y - psi @ of_readout.mean()) ** 2)
        return (residual + target.y.shape[1] * jnp.trace(of_readout.covariance(psi))) / (2 * variance)

    def one(rng_key):
        u = target.draw_prior(rng_key)
        free = target.bnn.template(target.x).readout.size
        size = free + sum(leaf.size for leaf in jax.tree.leaves(u))
        square = (inner_product(u, u) + free) / size  # φ_W ~ N(0, I), whatever u is
        return target.potential(u), published(u), misfit(u, variance), misfit(u, variance / 2), square

    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 1), config.num_draws)
    found = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=1_000))(keys)
    u, u_published, right, wrong, square = (np.asarray(column, np.float64) for column in found)
    posterior = {"misfit": _weighted(u, right), "square": _weighted(u, square)}
    return posterior, _weighted(u_published, wrong)


def _weighted(potential: np.ndarray, values: np.ndarray) -> Moment:
    weight = np.exp(potential.min() - potential)
    weight /= weight.sum()
    mean = weight @ values
    return float(mean), float(np.sqrt(weight**2 @ (values - mean) ** 2))


CASES: Mapping[str, Callable[[Algorithms], Iterator[dict[str, Any]]]] = {
    "pCN": partial(_network, algorithm="pCN"),
    "pCNL": partial(_network, algorithm="pCNL"),
    "pCNL, U = 0": _flat,
}
