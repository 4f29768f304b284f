"""Langevin chains of experiments that compare maps: tuned to one acceptance, with the best damping."""

from collections.abc import Mapping
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from widebnn import samplers
from widebnn._check import Number, proper_fraction
from widebnn.diagnostics import rhat
from widebnn.experiments.settings.chain_summaries import ess_per_step, finite
from widebnn.experiments.settings.fields import Noise, NumChains, Seed, Thin
from widebnn.experiments.settings.posterior import of_parameters
from widebnn.sampling import Collector, sample
from widebnn.study import Row
from widebnn.study.configuration import Configuration, Count
from widebnn.targets import Target

__all__ = ["TunedChains", "best_damping", "effective_samples", "share_folded"]


class TunedChains(Configuration):
    """How chains are run: all by Langevin, its step size tuned to one mean acceptance rate, γ = 2ε."""

    num_chains: NumChains = 8
    num_steps: Annotated[Count, "Steps of each chain that count."] = 20_000
    burn_in: Annotated[Count, "Steps before those, during which the step size is tuned."] = 5_000
    thin: Thin = 10
    target_acceptance: Annotated[float, proper_fraction, "What the step size is tuned to."] = 0.98
    num_projections: Annotated[Count, "Random directions in the space of θ."] = 100
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """`num_steps` is 2 · `thin` or more."""
        if self.num_steps < 2 * self.thin:
            raise ValueError(f"num_steps must be at least 2 · thin = {2 * self.thin}; got {self.num_steps}")


def best_damping(step_size: Number) -> Float[Array, ""]:
    """γ = 2ε, at most 1: where U is constant, squares have the most effective samples by it (Theorem 9.1)."""
    return jnp.minimum(1.0, 2 * step_size)


def share_folded(rng_key: Key[Array, ""], target: Any, num_prior: int) -> float:
    """The share of prior draws at which the determinant of a map's derivative is negative."""

    @jax.jit
    def signs(rng_key):
        keys = jax.random.split(rng_key, num_prior)
        return jax.lax.map(lambda key: target.orientation(target.draw_prior(key)), keys, batch_size=100)

    return float((np.asarray(signs(rng_key)) < 0).mean())


def effective_samples(
    rng_key: Key[Array, ""], target: Target, config: TunedChains, quantities: Mapping[str, Collector]
) -> Row:
    """Effective samples per step of the tuned sampler on one target, for functions of θ, and R̂.

    Returns
    -------
    The acceptance, `step_size` as tuned, milliseconds per step of one chain, and of each quantity `ess_`, the
    mean over its entries with its standard error from the scatter over chains, and `rhat_`, their mean R̂.
    """
    draws = sample(
        rng_key,
        samplers.tuned(
            lambda step_size: samplers.langevin(target.potential, step_size, best_damping(step_size)),
            config.target_acceptance,
        ),
        target,
        num_samples=config.num_steps // config.thin,
        thin=config.thin,
        burn_in=config.burn_in,
        num_chains=config.num_chains,
        collect=of_parameters(target, quantities),
    )
    row: Row = {
        "acceptance": draws.acceptance_rate,
        "step_size": draws.step_size,
        "ms_per_step": 1e3 * draws.seconds / (config.num_chains * (config.num_steps + config.burn_in)),
    }
    for name in quantities:
        row |= ess_per_step(draws[name], config.num_steps).columns(f"ess_{name}")
        row[f"rhat_{name}"] = finite(np.mean(rhat(draws[name])))
    return row
