"""Fresh prior draws of single units: how often they are accepted, and what a sweep is worth, over width."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from flax import nnx

from widebnn import data, estimates, samplers, targets
from widebnn._check import at_least
from widebnn.diagnostics import effective_sample_size, random_projections
from widebnn.experiments.settings.images import images
from widebnn.models import BNN, FCN
from widebnn.sampling import sample

__all__ = ["UNITWISE", "Unitwise", "unitwise"]


@dataclass(frozen=True)
class Unitwise:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset, num_train
        "cifar10" or "digits", and how many images are observed.
    widths
        Of the one hidden layer.
    num_chains, num_sweeps, burn_in
        Chains from prior draws, sweeps of each that count, and sweeps before them.
    num_projections
        Random directions in the space of the weights that the data inform.
    noise_std
        σ.
    seed
        Of everything.
    """

    dataset: str = "cifar10"
    num_train: int = 128
    widths: tuple[int, ...] = (256, 512, 1_024, 2_048, 4_096, 8_192)
    num_chains: int = 4
    num_sweeps: int = 300
    burn_in: int = 100
    num_projections: int = 100
    noise_std: float = 0.1
    seed: int = 0


UNITWISE = {
    "smoke": Unitwise(dataset="digits", num_train=8, widths=(16, 64, 128), num_sweeps=60, burn_in=20),
    "laptop": Unitwise(),
    "colab": Unitwise(
        num_train=256,
        widths=(512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768),
        num_chains=8,
        num_sweeps=500,
    ),
    "paper": Unitwise(
        num_train=256,
        widths=(512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536),
        num_chains=16,
        num_sweeps=2_000,
    ),
}
"""The configuration at each scale; no paper has this sampler, and "paper" is what a GPU makes of it."""


def unitwise(config: Unitwise, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Unit-wise chains on the posterior of a network with one hidden layer, over its width.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width; rejection, the mean share of fresh units that are rejected; effective samples per sweep
    of the potential and of the weights (the mean over random projections) as ess_potential and ess_weights,
    and ess_least, the least of all projections; each of the first three with its standard error, that of the
    effective samples from the scatter over chains; ms_per_sweep.

    Raises
    ------
    ValueError
        If the data set is unknown, or there are fewer than two chains.
    """
    at_least(2, num_chains=config.num_chains)
    dataset = images(config.dataset, config.num_train, 1)
    rows = []
    for width in config.widths:
        rows.append({"width": width} | _run(config, dataset, width))
        on_row(rows[-1])
    return rows


def _run(config: Unitwise, dataset: data.Dataset, width: int) -> dict[str, float]:
    x, y = dataset.x_train, dataset.y_train
    bnn = BNN(FCN(x.shape[1], width, rngs=nnx.Rngs(config.seed)), y.shape[1], config.noise_std)
    target = targets.rotated(targets.marginal(bnn, x, y))
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), width))
    draws = sample(
        keys[0],
        samplers.unitwise(target),
        target,
        num_samples=config.num_sweeps,
        burn_in=config.burn_in,
        num_chains=config.num_chains,
        collect={
            "potential": target.potential,
            "weights": random_projections(keys[1], target.template, num=config.num_projections),
        },
    )
    rejection = estimates.mean_and_mcse(1 - draws.stats["acceptance_rate"])
    row = {"rejection": float(rejection.value), "rejection_error": float(rejection.error)}
    for name in ("potential", "weights"):
        each = [effective_sample_size(chain[None]) for chain in draws[name]]
        per_chain = np.array([float(np.mean(ess)) for ess in each]) / config.num_sweeps
        row[f"ess_{name}"] = float(per_chain.mean())
        row[f"ess_{name}_error"] = float(per_chain.std(ddof=1) / np.sqrt(config.num_chains))
    least = np.min(effective_sample_size(draws["weights"]))
    row["ess_least"] = float(least) / (config.num_chains * config.num_sweeps)
    sweeps = config.num_chains * (config.num_sweeps + config.burn_in)
    return row | {"ms_per_sweep": 1e3 * draws.seconds / sweeps}
