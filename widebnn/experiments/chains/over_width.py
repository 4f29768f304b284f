"""Acceptance and mixing of four samplers over width (Pezzetti et al. 2025, Figures 1 and 2)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widebnn import data, samplers
from widebnn._check import one_of
from widebnn.diagnostics import band, effective_sample_size, random_projections
from widebnn.experiments.chains.convergence import SAMPLERS as FROM_THE_PRIOR
from widebnn.experiments.chains.convergence import bulk_and_tail
from widebnn.experiments.settings.images import images
from widebnn.experiments.settings.one_layer import OneLayer, one_layer
from widebnn.sampling import sample

__all__ = ["OVER_WIDTH", "SAMPLERS", "OverWidth", "over_width", "series"]

SAMPLERS: Mapping[str, Callable[[OneLayer, float], samplers.Sampler]] = {
    **{name: FROM_THE_PRIOR[name] for name in ("pCN", "pCNL", "Langevin")},
    "random walk": lambda network, step_size: samplers.rwm(network.whole.potential, step_size),
}
"""By name; `step_size` is the coefficient of the noise for each."""


@dataclass(frozen=True)
class OverWidth:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    dataset
        "cifar10" or "digits".
    num_train, num_test
        Images that are observed, and images that are predicted, as far as there are so many.
    widths, step_sizes, samplers
        The grid.
    num_steps
        Steps of a chain, one number for each of `samplers`.
    burn_in
        HMC proposals, of ten leapfrog steps tuned to an acceptance of 0.8, that bring a chain from the prior
        to where all samplers start.
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
    num_test: int = 100
    widths: tuple[int, ...] = (128, 512, 1_024, 2_048, 4_096)
    step_sizes: tuple[float, ...] = (0.2, 0.1, 0.01)
    samplers: tuple[str, ...] = tuple(SAMPLERS)
    num_steps: tuple[int, ...] = (1_000_000,) * len(SAMPLERS)
    burn_in: int = 500
    thin: int = 25
    num_projections: int = 100
    noise_std: float = 0.1
    seed: int = 0


OVER_WIDTH = {
    "smoke": OverWidth(
        dataset="digits",
        num_train=32,
        num_test=20,
        widths=(32, 128, 512),
        step_sizes=(0.2,),
        num_steps=(2_000, 1_000, 1_000, 500),
        burn_in=100,
        thin=5,
        num_projections=20,
    ),
    "laptop": OverWidth(num_steps=(3_200, 3_200, 3_200, 80), burn_in=200, thin=10),
    "colab": OverWidth(num_steps=(40_000, 40_000, 20_000, 2_000)),
    "paper": OverWidth(num_test=5_000, widths=(128, 512, 1_024, 2_048, 4_096, 8_192)),
}
"""The configuration at each scale; "paper" has the widths and the number of steps of Pezzetti et al."""


def over_width(config: OverWidth, on_row: Callable[[dict[str, Any]], None] = lambda row: None) -> list[dict]:
    """Run the grid on the posterior of a network with one hidden layer.

    pCN, pCNL and Langevin run on the rotated marginal target, and accept in law as on all of φ: what that
    target leaves out has a constant potential, the first two never see it, and Langevin carries its squared
    norm (`whole_langevin`). Random walk runs on all of φ. Effective sample sizes are of the same functions
    for all, each informed by the data: the potential, projections of the rotated weights, and
    Rao–Blackwellised predictions on the part of test images that lies in the span of the training images.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with width, num_test, sampler, step_size; dimension that the acceptance depends on, of the rotated
    target for pCN and pCNL and of all of φ for the others; acceptance and its standard error; effective
    samples per step of the potential, of the weights and of the predictions, mean over projections and over
    test images × outputs (`ess_`, by the papers' definition, with the least and the largest, `ess_low_` and
    `ess_high_`; but for the predictions rank-normalised, `ess_bulk_` and `ess_tail_`; None for a chain that
    never moved); milliseconds a step.

    Raises
    ------
    ValueError
        If a name is unknown, or `num_steps` and `samplers` differ in length.
    """
    for name in config.samplers:
        one_of(SAMPLERS, sampler=name)
    if len(config.num_steps) != len(config.samplers):
        raise ValueError(
            f"num_steps must have one entry for each of {config.samplers}; got {config.num_steps}"
        )
    dataset = images(config.dataset, config.num_train, config.num_test)
    rows = []
    for width in config.widths:
        posterior = _Posterior(config, dataset, width)
        for name, num_steps in zip(config.samplers, config.num_steps, strict=True):
            for step_size in config.step_sizes:
                row = posterior.run(name, step_size, num_steps)
                rows.append({"width": width, "num_test": len(dataset.x_test)} | row)
                on_row(rows[-1])
    return rows


class _Posterior:
    """One network's posterior, a place in it to start from, and what is collected there."""

    def __init__(self, config: OverWidth, dataset: data.Dataset, width: int):
        self.config = config
        self.network = one_layer(dataset, width, config.noise_std, config.seed)
        self.whole, self.rotated = self.network.whole, self.network.rotated
        keys = jax.random.split(jax.random.key(config.seed), 4)
        self.project = random_projections(keys[0], self.rotated.template, num=config.num_projections)
        equilibrium = sample(
            keys[1],
            samplers.tuned(partial(samplers.hmc, self.rotated.potential, num_steps=10), 0.8),
            self.rotated,
            num_samples=1,
            burn_in=config.burn_in,
        )
        self.position = jax.tree.map(lambda leaf: leaf[0], equilibrium.position)
        self.parameters = self.rotated.to_parameters(self.position, keys[2])
        self.rng_key = keys[3]

    def run(self, name: str, step_size: float, num_steps: int) -> dict[str, Any]:
        config = self.config
        moves_all = name == "random walk"
        target = self.whole if moves_all else self.rotated
        position = self.whole.from_parameters(self.parameters) if moves_all else self.position
        counted = self.whole if name in ("random walk", "Langevin") else self.rotated
        draws = sample(
            self.rng_key,
            SAMPLERS[name](self.network, step_size),
            target,
            num_samples=num_steps // config.thin,
            thin=config.thin,
            initial=jax.tree.map(lambda leaf: leaf[None], position),
            collect=self.network.collect(target, self.project),
        )
        row = {
            "sampler": name,
            "step_size": step_size,
            "dimension": sum(leaf.size for leaf in jax.tree.leaves(counted.template)),
            "acceptance": draws.acceptance_rate,
            "acceptance_error": _standard_error(draws.stats["acceptance_rate"]),
            "ms_per_step": 1e3 * draws.seconds / num_steps,
        }
        for quantity, ess in effective_sample_size(draws).items():
            found = dict(zip(("ess", "ess_low", "ess_high"), band(jnp.ravel(ess)), strict=True))
            if quantity != "predictions":  # ArviZ would take hours for those of 5,000 images
                found |= bulk_and_tail(draws[quantity])
            has_moved = jnp.isfinite(ess).all()
            for kind, value in found.items():
                row[f"{kind}_{quantity}"] = float(value) / num_steps if has_moved else None
        return row


def series(
    rows: list[dict[str, Any]], sampler: str, step_size: float, quantity: str = "acceptance"
) -> Float[np.ndarray, " width"]:
    """One quantity of one sampler at one step size, in the order of width; NaN where it is None.

    Raises
    ------
    ValueError
        If no row has this sampler and this step size, or the rows have no such quantity.
    """
    found = [row for row in rows if row["sampler"] == sampler and row["step_size"] == step_size]
    if not found or quantity not in found[0]:
        raise ValueError(f"rows hold no {quantity!r} of sampler {sampler!r} at step_size {step_size}")
    return np.array([row[quantity] for row in sorted(found, key=lambda row: row["width"])], dtype=float)


def _standard_error(rates: np.ndarray) -> float:
    """Of the mean of an autocorrelated series (chain, draw)."""
    return float(rates.std() / math.sqrt(effective_sample_size(rates))) if rates.std() > 0 else 0.0
