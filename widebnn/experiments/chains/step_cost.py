"""What a step costs with repriorisation and without, over width (Hron et al. 2022, Figure 6)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from widebnn import data, samplers, targets
from widebnn._check import at_least, one_of, positive
from widebnn.experiments.settings.images import LOADERS
from widebnn.experiments.settings.networks import NETWORKS, Network, network, observed, over_widths
from widebnn.experiments.settings.step_times import step_times
from widebnn.models import BNN

__all__ = ["STEP_COST", "StepCost", "step_cost"]

TARGETS: Mapping[str, Callable[[BNN, Any, Any], targets.Target]] = {
    "θ": targets.standard,
    "φ": targets.repriorised,
    "φ, feature space": lambda bnn, x, y: targets.repriorised(bnn, x, y, space="feature"),
    "φ without the readout": targets.marginal,
}
"""By name; φ factorises the smaller of a matrix of images and one of units, the published code the latter."""


@dataclass(frozen=True)
class StepCost:
    """The configuration of one run of the experiment.

    Attributes
    ----------
    networks
        The networks; those that differ in width alone are compared.
    num_rounds
        Times that each step is timed, all in turn.
    timed_seconds
        Of one of them, about.
    noise_std
        σ.
    seed
        Of everything.
    """

    networks: tuple[Network, ...]
    num_rounds: int = 7
    timed_seconds: float = 0.3
    noise_std: float = 0.1
    seed: int = 0


STEP_COST = {
    "smoke": StepCost(
        networks=over_widths("dense", "digits", 1, 32, (16, 128))
        + over_widths("convolutional", "digits", 1, 8, (16,)),
        num_rounds=5,
        timed_seconds=0.1,
    ),
    "laptop": StepCost(
        networks=over_widths("dense", "cifar10", 3, 256, (64, 256, 1_024, 4_096))
        + over_widths("convolutional", "cifar10", 3, 16, (16, 64, 256))
    ),
    "colab": StepCost(
        networks=over_widths("dense", "cifar10", 3, 256, (64, 256, 1_024, 2_048, 4_096))
        + over_widths("convolutional", "cifar10", 3, 64, (16, 64, 256, 512))
    ),
    "paper": StepCost(
        networks=over_widths("dense", "cifar10", 3, 256, (32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192))
        + over_widths("convolutional", "cifar10", 3, 256, (32, 64, 128, 256, 512, 1_024)),
        num_rounds=25,
    ),
}
"""The configuration at each scale; "paper" has the number of images of Hron et al."""


def step_cost(
    config: StepCost, on_row: Callable[[dict[str, Any]], None] = lambda row: None
) -> list[dict[str, Any]]:
    """Time steps of Langevin, one value and one gradient of the potential each, in θ and in φ.

    One chain starts at a draw from the prior, and its step size is so small that it goes nowhere: what a step
    takes does not depend on where it is.

    Parameters
    ----------
    config
        What to run.
    on_row
        Called with each row as soon as it is there.

    Returns
    -------
    Rows with the network and the target ("θ", "φ" in the smaller space, "φ, feature space", "φ without the
    readout"); dimension of the chain; ms_per_step and ms_least, the median over rounds and the least; ratio,
    the median over rounds of the time relative to that of θ in the same round, and its standard error.

    Raises
    ------
    ValueError
        If a name is unknown or a number out of range, or there are fewer than two rounds.
    """
    at_least(2, num_rounds=config.num_rounds)
    positive(timed_seconds=config.timed_seconds)
    for one in config.networks:
        one_of(NETWORKS, architecture=one.architecture)
        one_of(LOADERS, dataset=one.dataset)
    rows = []
    for one in config.networks:
        dataset = observed(one.architecture, one.dataset, one.num_train, num_test=1)
        for row in _timed(config, one, dataset):
            rows.append(one._asdict() | row)
            on_row(rows[-1])
    return rows


def _timed(config: StepCost, one: Network, dataset: data.Dataset) -> list[dict[str, Any]]:
    bnn = network(one.architecture, dataset, one.width, one.depth, config.noise_std, config.seed)
    made = [make(bnn, dataset.x_train, dataset.y_train) for make in TARGETS.values()]
    cases = [
        (
            samplers.langevin(target.potential, step_size=1e-4, damping=0.1),
            target.draw_prior(jax.random.key(config.seed)),
        )
        for target in made
    ]
    rounds = step_times(cases, config.timed_seconds, config.num_rounds)
    ratios = rounds / rounds[:, :1]
    return [
        {
            "target": name,
            "dimension": sum(leaf.size for leaf in jax.tree.leaves(target.template)),
            "ms_per_step": float(np.median(rounds[:, i])),
            "ms_least": float(rounds[:, i].min()),
            "ratio": float(np.median(ratios[:, i])),
            "ratio_error": median_error(ratios[:, i]),
        }
        for i, (name, target) in enumerate(zip(TARGETS, made, strict=True))
    ]


def median_error(values: np.ndarray) -> float:
    """The standard error of a median, from the median deviation, which a few slow rounds do not move.

    √(π/2) σ/√n for normal values, with σ their median absolute deviation × 1.4826.
    """
    deviation = 1.4826 * np.median(np.abs(values - np.median(values)))
    return float(math.sqrt(math.pi / 2) * deviation / math.sqrt(len(values)))
