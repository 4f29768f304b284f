"""R̂ and traces of three chains from the prior, over width (Pezzetti et al. 2025, Figures 3 to 6)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from widebnn import samplers
from widebnn._check import at_least, one_of
from widebnn.diagnostics import (
    effective_sample_size,
    principal_components,
    random_projections,
    rhat_squared,
)
from widebnn.experiments.settings.images import images
from widebnn.experiments.settings.one_layer import OneLayer, one_layer
from widebnn.samplers import Sampler
from widebnn.sampling import Draws, sample

__all__ = [
    "CONVERGENCE",
    "Convergence",
    "convergence",
    "convergence_summary",
    "trace_summary",
]


def _langevin(network: OneLayer, step_size: float) -> Sampler:
    whole, rotated = (
        sum(leaf.size for leaf in jax.tree.leaves(target.template))
        for target in (network.whole, network.rotated)
    )
    return samplers.langevin(network.rotated.potential, step_size, damping=1.0, num_flat=whole - rotated)


SAMPLERS: Mapping[str, Callable[[OneLayer, float], Sampler]] = {
    "Langevin": _langevin,
    "pCN": lambda network, step_size: samplers.pcn(network.rotated.potential, step_size),
    "pCNL": lambda network, step_size: samplers.pcnl(network.rotated.potential, step_size),
}
"""By name; `step_size` is the coefficient of the noise for each."""

THRESHOLD = 1.2
"""Of the paper, and on R̂²: its R̂ is a ratio of variances."""
MAX_TRACE = 200
LEAST_DRAWS = 8  # a chain is split in two, and half of it in two again


@dataclass(frozen=True)
class Convergence:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset
        "cifar10" or "digits".
    num_train, num_test
        Images that are observed, and images that are predicted, as far as there are so many.
    widths, samplers
        The grid.
    num_steps
        Steps of a chain, one number for each of `samplers`.
    num_checkpoints
        Times, evenly spaced over the steps, at which the chains are compared.
    step_size
        The coefficient of the noise, of all samplers.
    num_chains
        Chains, each of which starts at a draw of its own from the prior; the same for all samplers.
    thin
        Steps from one draw to the next.
    num_projections
        Random directions in the space of the weights that the data inform.
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    num_train: int = 256
    num_test: int = 10
    widths: tuple[int, ...] = (512, 1_024, 2_048, 4_096)
    samplers: tuple[str, ...] = tuple(SAMPLERS)
    num_steps: tuple[int, ...] = (20_000,) * len(SAMPLERS)
    num_checkpoints: int = 4
    step_size: float = 0.1
    num_chains: int = 3
    thin: int = 25
    num_projections: int = 100
    noise_std: float = 0.1
    seed: int = 0


CONVERGENCE = {
    "smoke": Convergence(
        dataset="digits",
        num_train=32,
        num_test=4,
        widths=(32, 128),
        num_steps=(1_500,) * 3,
        step_size=0.2,
        thin=5,
        num_projections=20,
    ),
    "laptop": Convergence(widths=(512, 1_024, 2_048), num_steps=(5_000,) * 3, thin=10),
    "colab": Convergence(num_steps=(40_000,) * 3),
    "paper": Convergence(num_test=5_000),
}
"""The configuration at each scale; "paper" has the widths and the number of steps of Pezzetti et al."""


def convergence(
    config: Convergence, on_row: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[dict[str, Any]]:
    """Compare chains that start at the prior, while they run, on the posterior of one hidden layer.

    All samplers run on the rotated marginal target from the same starting points. For pCN and pCNL that is
    all of φ in law, since neither sees the dimension; Langevin carries the norm of the rest (`num_flat` of
    `langevin`). Every comparison is of all draws since the start, without burn-in, and once more of the later
    half of them.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    A row for each width, sampler and checkpoint: num_test; `step`, the number of steps until then, the
    acceptance so far, milliseconds a step of one chain, and `convergence_summary` of the potential, of
    projections of the weights and of predictions. The last row of a chain has `trace_summary` of the
    projections too.

    Raises
    ------
    ValueError
        If a name is unknown, `num_steps` and `samplers` differ in length, there are fewer than two chains,
        two projections or one checkpoint, or fewer than eight draws before the first of them.
    """
    for name in config.samplers:
        one_of(SAMPLERS, sampler=name)
    if len(config.num_steps) != len(config.samplers):
        raise ValueError(
            f"num_steps must have one entry for each of {config.samplers}; got {config.num_steps}"
        )
    at_least(2, num_chains=config.num_chains)
    at_least(2, num_projections=config.num_projections)
    between = (
        LEAST_DRAWS * at_least(1, num_checkpoints=config.num_checkpoints) * at_least(1, thin=config.thin)
    )
    if min(config.num_steps) < between:
        raise ValueError(
            f"num_steps must be at least {between}, {LEAST_DRAWS} draws a checkpoint; got {config.num_steps}"
        )
    dataset = images(config.dataset, config.num_train, config.num_test)
    rows = []
    for width in config.widths:
        network = one_layer(dataset, width, config.noise_std, config.seed)
        for name, num_steps in zip(config.samplers, config.num_steps, strict=True):
            draws = _run(config, network, name, num_steps)
            for row in _compared(config, draws):
                rows.append({"width": width, "num_test": len(dataset.x_test), "sampler": name} | row)
                on_row(rows[-1])
    return rows


def _run(config: Convergence, network: OneLayer, name: str, num_steps: int) -> Draws:
    projection_key, rng_key = jax.random.split(jax.random.key(config.seed))
    project = random_projections(projection_key, network.rotated.template, num=config.num_projections)
    return sample(
        rng_key,
        SAMPLERS[name](network, config.step_size),
        network.rotated,
        num_samples=num_steps // config.thin,
        thin=config.thin,
        num_chains=config.num_chains,
        collect=network.collect(network.rotated, project),
    )


def _compared(config: Convergence, draws: Draws) -> list[dict[str, Any]]:
    rates = draws.stats["acceptance_rate"]
    num_chains, num_draws = rates.shape
    rows = []
    for checkpoint in range(1, config.num_checkpoints + 1):
        until = num_draws * checkpoint // config.num_checkpoints
        row = {
            "step": until * config.thin,
            "acceptance": float(rates[:, :until].mean()),
            "ms_per_step": 1e3 * draws.seconds / (num_chains * num_draws * config.thin),
        }
        for quantity, values in draws.collected.items():
            found = convergence_summary(values[:, :until])
            row |= {f"{name}_{quantity}": number for name, number in found.items()}
        rows.append(row)
    rows[-1] |= trace_summary(draws["weights"], thin=config.thin)
    return rows


def convergence_summary(draws: Float[np.ndarray, "chain draw *event"]) -> dict[str, float | None]:
    """How far chains agree, over all entries of what was collected.

    Parameters
    ----------
    draws
        Kept draws, two chains or more of eight draws or more.

    Returns
    -------
    - `rhat_squared`, what Pezzetti et al. call R̂ (`widebnn.rhat_squared`): mean over the entries, and
      `_std`, `_median` and `_high` for deviation, median and largest; `share_below`, the share of entries
      below 1.2;
    - `rhat`, rank-normalised, of split chains and the larger of bulk and folded draws (Vehtari et al. 2021),
      mean and `_high`; `rhat_late`, the same of the later half of the draws alone;
    - `ess_bulk` and `ess_tail`, of all chains together, mean over the entries.

    None where a number is not finite, as where no chain moves.

    Raises
    ------
    ValueError
        If there are too few chains or draws, or entries that are not finite.
    """
    import arviz

    if draws.ndim < 2 or draws.shape[1] < LEAST_DRAWS:
        raise ValueError(
            f"draws must have shape (chain, draw, ...) and {LEAST_DRAWS} draws or more; got {draws.shape}"
        )
    flat = draws.reshape(*draws.shape[:2], -1)
    squared = np.asarray(rhat_squared(flat), float)
    exact = flat.astype(float)
    late = exact[:, -(draws.shape[1] // 2) :]
    with np.errstate(invalid="ignore", divide="ignore"):  # where no chain moves
        ranked = {"rhat": arviz.rhat(exact), "rhat_late": arviz.rhat(late)}
        deviation = squared.std(ddof=min(1, len(squared) - 1))
    found = {
        "rhat_squared": squared.mean(),
        "rhat_squared_std": deviation,
        "rhat_squared_median": np.median(squared),
        "rhat_squared_high": squared.max(),
        "share_below": np.mean(squared < THRESHOLD),
    }
    for name, values in ranked.items():
        found |= {name: np.mean(values), f"{name}_high": np.max(values)}
    found |= bulk_and_tail(flat)
    return {name: _number(value) for name, value in found.items()}


def bulk_and_tail(draws: Float[np.ndarray, "chain draw *event"]) -> dict[str, float]:
    """`ess_bulk` and `ess_tail` of all chains together (Vehtari et al. 2021), mean over the entries.

    NaN where there is an entry that no chain moves, of which ArviZ reports a perfect ESS.
    """
    import arviz

    exact = draws.astype(float)
    if not np.ptp(exact, axis=1).any(axis=0).all():
        return {"ess_bulk": np.nan, "ess_tail": np.nan}
    return {
        "ess_bulk": float(np.mean(arviz.ess(exact, method="bulk"))),
        "ess_tail": float(np.mean(arviz.ess(exact, method="tail", prob=(0.05, 0.95)))),
    }


def trace_summary(draws: Float[np.ndarray, "chain draw feature"], *, thin: int = 1) -> dict[str, Any]:
    """How steady the traces of the first two principal components are.

    Of random projections these are a sketch of the components of all weights: with directions uniform on the
    sphere, inner products of the projected draws are those of the draws up to a factor and an error of order
    1/√(number of directions), and the scores of a component depend on these inner products alone. Components
    whose variances lie closer together than that come out mixed.

    Parameters
    ----------
    draws
        Kept draws of a vector.
    thin
        Steps from one draw to the next.

    Returns
    -------
    - `pc_explained`, the share of the variance of each component;
    - `pc_drift`, how far the second half of a chain is from the first, in standard deviations of the chain,
      mean over chains and components, and `pc_drift_error`, its standard error;
    - `pc_between`, the variance of the chains' means over that of all draws, mean over the components;
    - `pc_time`, steps for an effective sample, total over all chains, mean over the components;
    - `pc_traces`, at most 200 points of each chain, by component, chain and draw, and `pc_thin`, steps from
      one to the next.

    Raises
    ------
    TypeError, ValueError
        If `thin` is no integer or below 1, or `draws` has another number of axes, fewer than two features or
        entries that are not finite.
    """
    at_least(1, thin=thin)
    scores, explained = (np.asarray(part, float) for part in principal_components(draws, num=2))
    num_chains, num_draws = scores.shape[:2]
    half = num_draws // 2
    ess = np.asarray(effective_sample_size(scores), float)
    with np.errstate(invalid="ignore", divide="ignore"):  # where a chain never moves
        drift = np.abs(scores[:, -half:].mean(axis=1) - scores[:, :half].mean(axis=1)) / scores.std(axis=1)
        between = scores.mean(axis=1).var(axis=0) / scores.var(axis=(0, 1))
    found: dict[str, Any] = {
        "pc_drift": drift.mean(),
        "pc_drift_error": drift.std(ddof=1) / np.sqrt(drift.size),
        "pc_between": between.mean(),
        "pc_time": np.mean(thin * num_chains * num_draws / ess),
    }
    stride = -(-num_draws // MAX_TRACE)
    points = np.moveaxis(scores[:, ::stride], 2, 0)
    shown = [[[float(f"{point:.4g}") for point in chain] for chain in component] for component in points]
    found = {name: _number(value) for name, value in found.items()}
    found["pc_explained"] = [_number(share) for share in explained]
    return found | {"pc_traces": shown, "pc_thin": thin * stride}


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
