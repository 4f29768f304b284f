"""What a step costs with repriorisation and without, over width (Hron et al. 2022, Figure 6)."""

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np

from book.experiments.clock import median_error, step_times, steps
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.networks import Network, network, observed
from book.experiments.posterior import size
from widebnn import samplers, targets
from widebnn.tables import Measure, Results, Row, Rows

TARGETS = {
    "θ": targets.standard,
    "φ": targets.repriorised,
    "φ, feature space": partial(targets.repriorised, space="feature"),
    "φ without the readout": targets.marginal,
}
"""By name; φ factorises the smaller of a matrix of images and one of units, the published code the latter."""


@experiment(SETTINGS["step_cost"], parts="networks")
def step_cost(networks, num_rounds, timed_seconds, noise_std, seed) -> Iterator[Row]:
    """Milliseconds of a step of Langevin in θ and in φ, one gradient of the potential each, over width.

    One chain starts at a draw from the prior, and its step size is so small that it goes nowhere: what a step
    takes does not depend on where it is.

    The paper states no sizes; "paper" has the 256 images of its experiments over width.

    Yields
    ------
    Rows with the network and the target ("θ", "φ" in the smaller space, "φ, feature space", "φ without the
    readout"); dimension of the chain; ms_per_step and ms_least, the median over rounds and the least; ratio,
    the median over rounds of the time relative to that of θ in the same round, and its standard error.
    """
    for one in (Network(*entry) for entry in networks):
        dataset = observed(one.architecture, one.dataset, one.num_train, num_test=1)
        bnn = network(one.architecture, dataset, one.width, one.depth, noise_std, seed)
        made = [make(bnn, dataset.x_train, dataset.y_train) for make in TARGETS.values()]
        clocks = [
            steps(target, samplers.langevin(1e-4, damping=0.1), target.draw_prior(jax.random.key(seed)))
            for target in made
        ]
        rounds = step_times(clocks, timed_seconds, num_rounds)
        for name, target, ms, ratio in zip(TARGETS, made, rounds.T, (rounds / rounds[:, :1]).T, strict=True):
            yield one._asdict() | {
                "target": name,
                "dimension": size(target),
                "ms_per_step": float(np.median(ms)),
                "ms_least": float(ms.min()),
                "ratio": float(np.median(ratio)),
                "ratio_error": median_error(ratio),
            }


FEATURE = "φ, feature space"
MODERATE = 1_024  # a width at which the papers still see next to no cost


@step_cost.claim("H-F6")
def step_takes(results: Results) -> Iterator[Finding]:
    rows, device = results.rows, results.provenance.get("device", "cpu")
    every = [of for name in ("dense", "convolutional") for of in _ratios(rows, name, FEATURE).values()]
    greatest = max(every, key=lambda ratio: ratio.value)
    on_gpu = not device.startswith("cpu")
    yield Finding("feature space ÷ θ, greatest", greatest, below=1.5, decides=True, resolved=on_gpu)
    for width, found in _ratios(rows, "dense", "φ").items():
        if width <= MODERATE:
            yield Finding(f"φ ÷ θ, dense, width {width:,}", found, below=2)
    dense, convolutional = (_ratios(rows, name, FEATURE) for name in ("dense", "convolutional"))
    grows = dense[max(dense)] - dense[min(dense)]
    yield Finding("feature space ÷ θ, dense: widest less narrowest", grows, above=0)
    width = max(convolutional)
    nearest = min(dense, key=lambda one: abs(one - width))
    what = f"feature space ÷ θ: convolutional, width {width:,}, less dense, width {nearest:,}"
    is_fair = len(rows.values("num_train")) == 1
    yield Finding(what, convolutional[width] - dense[nearest], below=0, resolved=is_fair)


def _ratios(rows: Rows, architecture: str, target: str) -> dict[int, Measure]:
    """The time of a step over that in θ, by width."""
    found = rows.where(architecture=architecture, target=target)
    return dict(zip(sorted(found.values("width")), found.over("width", "ratio", "ratio_error"), strict=True))
