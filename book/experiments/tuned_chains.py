"""Langevin chains of experiments that compare maps: tuned to one acceptance, with the best damping."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from book.experiments.chain_summaries import behind, ess_per_step, finite, is_resolved
from book.experiments.findings import Finding
from book.experiments.posterior import of_parameters
from widebnn._check import Number
from widebnn._pytree import STATIC
from widebnn.collectors import Collector
from widebnn.diagnostics import rhat
from widebnn.driver import sample
from widebnn.samplers import Sampler, langevin, tuned
from widebnn.tables import Measure, Results, Row
from widebnn.targets import Target

__all__ = ["best_damped", "best_damping", "effective_samples", "gain", "share_folded"]


def best_damping(step_size: Number) -> Float[Array, ""]:
    """γ = 2ε, at most 1: the best for squares where U is constant (Theorem 14.1)."""
    return jnp.minimum(1.0, 2 * step_size)


@dataclass(frozen=True, eq=False)
class best_damped(Sampler):
    """Langevin with the best damping at its step size, corrected or not."""

    step_size: Number
    metropolis: bool = field(default=True, metadata=STATIC)

    def init(self, target, position, rng_key=None):
        return self._langevin().init(target, position, rng_key)

    def step(self, target, rng_key, state):
        return self._langevin().step(target, rng_key, state)

    def _langevin(self) -> langevin:
        return langevin(self.step_size, best_damping(self.step_size), self.metropolis)


def share_folded(rng_key: Key[Array, ""], target: Any, num_prior: int) -> float:
    """The share of prior draws at which the determinant of a map's derivative is negative."""
    return float((np.asarray(_signs(jax.random.split(rng_key, num_prior), target)) < 0).mean())


@jax.jit
def _signs(keys, target):
    return jax.lax.map(lambda key: target.orientation(target.draw_prior(key)), keys, batch_size=100)


def effective_samples(
    rng_key: Key[Array, ""],
    target: Target,
    quantities: Mapping[str, Collector],
    *,
    num_chains: int,
    num_steps: int,
    burn_in: int,
    thin: int,
    target_acceptance: float,
) -> Row:
    """Effective samples per step of the tuned sampler on one target, for functions of θ, and R̂.

    Returns
    -------
    The acceptance, `step_size` as tuned, milliseconds per step of one chain, and of each quantity `ess_`, the
    mean over its entries with its standard error from the scatter over chains, and `rhat_`, their mean R̂.
    """
    draws = sample(
        rng_key,
        target,
        tuned(best_damped(0.1), target_acceptance),
        num_samples=num_steps // thin,
        thin=thin,
        burn_in=burn_in,
        num_chains=num_chains,
        collect=of_parameters(quantities),
    )
    row: Row = {
        "acceptance": draws.acceptance_rate,
        "step_size": draws.step_size,
        "ms_per_step": 1e3 * draws.seconds / (num_chains * (num_steps + burn_in)),
    }
    for name in quantities:
        row |= ess_per_step(draws[name], num_steps).columns(f"ess_{name}")
        row[f"rhat_{name}"] = finite(np.mean(rhat(draws[name])))
    return row


def gain(
    results: Results, what: str, row: Row, other: Row, quantity: str = "projections", **judged: Any
) -> Finding:
    """Effective samples per step of one row over those of another, judged as a `Finding` is."""
    pair = row, other
    more, less = (Measure.of(one, f"ess_{quantity}") for one in pair)
    total = results.settings["num_chains"] * results.settings["num_steps"]
    ess = [one[f"ess_{quantity}"] * total for one in pair]
    return Finding(
        what,
        more / less,
        degrees=results.settings["num_chains"] - 1,
        resolved=is_resolved(*ess),
        chains=behind(ess, (one[f"rhat_{quantity}"] for one in pair)),
        **judged,
    )
