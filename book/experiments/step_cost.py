"""What a step costs with repriorisation and without, over width (Hron et al. 2022, Figure 6)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import jax
import numpy as np
from book.experiments.configuration import Configuration, Positive, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Noise, Seed
from book.experiments.findings import Finding
from book.experiments.networks import Network, network, observed, observes, over_widths
from book.experiments.posterior import size
from book.experiments.step_times import median_error, step_times
from widebnn import samplers, targets
from widebnn.models import BNN
from widebnn.tables import Measure, Results, Row, Rows

__all__ = ["StepCost", "step_cost"]

TARGETS: Mapping[str, Callable[[BNN, Any, Any], targets.Target]] = {
    "θ": targets.standard,
    "φ": targets.repriorised,
    "φ, feature space": lambda bnn, x, y: targets.repriorised(bnn, x, y, space="feature"),
    "φ without the readout": targets.marginal,
}
"""By name; φ factorises the smaller of a matrix of images and one of units, the published code the latter."""


class StepCost(Configuration):
    """The networks, and how long their steps are timed."""

    networks: Annotated[tuple[Network, ...], "The networks; those that differ in width alone are compared."]
    num_rounds: Annotated[Several, "Times that each step is timed, all in turn."] = 7
    timed_seconds: Annotated[Positive, "Of one timing, about."] = 0.3
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """all networks have known names."""
        for one in self.networks:
            one.check()


@experiment(
    "milliseconds of a step with the map and without, over width",
    scales={
        "smoke": StepCost(
            networks=over_widths("dense", "digits", 1, 32, (128,))
            + over_widths("convolutional", "digits", 1, 8, (16,)),
            num_rounds=5,
            timed_seconds=0.05,
        ),
        "laptop": StepCost(
            networks=over_widths("dense", "cifar10", 3, 64, (64, 256, 1_024, 4_096))
            + over_widths("convolutional", "cifar10", 3, 64, (16, 64, 256)),
            seed=1,
        ),
        "colab": StepCost(
            networks=over_widths("dense", "cifar10", 3, 64, (64, 256, 1_024, 2_048, 4_096))
            + over_widths("convolutional", "cifar10", 3, 64, (16, 64, 256, 512))
        ),
        "paper": StepCost(
            networks=over_widths(
                "dense", "cifar10", 3, 256, (32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192)
            )
            + over_widths("convolutional", "cifar10", 3, 256, (32, 64, 128, 256, 512, 1_024)),
            num_rounds=25,
        ),
    },
    parts="networks",
    observes=lambda c: observes(c.networks),
)
def step_cost(config: StepCost) -> Iterator[Row]:
    """Time steps of Langevin, one value and one gradient of the potential each, in θ and in φ.

    One chain starts at a draw from the prior, and its step size is so small that it goes nowhere: what a step
    takes does not depend on where it is.

    The paper states no sizes; "paper" has the 256 images of its experiments over width.

    Yields
    ------
    Rows with the network and the target ("θ", "φ" in the smaller space, "φ, feature space", "φ without the
    readout"); dimension of the chain; ms_per_step and ms_least, the median over rounds and the least; ratio,
    the median over rounds of the time relative to that of θ in the same round, and its standard error.
    """
    for one in config.networks:
        dataset = observed(one.architecture, one.dataset, one.num_train, num_test=1)
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


@step_cost.claim(
    "H-F6",
    where="Figure 6",
    claim="A step with repriorisation takes about as long as one without, except at very large width.",
    paper="a step without, on an accelerator; the cost is notable only in very large FCNs, and in CNNs that "
    "are larger still",
    number="never above 1.5 times",
    rule="The time of a step of Langevin in φ over that in θ, in feature space, where the published code "
    "always is. The greatest over all networks decides: it has to be below 1.5, and is resolved on an "
    "accelerator, of which the paper's number is. Shown are that the ratio is greater in the widest dense "
    "network than in the narrowest, and less in the widest convolutional network than in the dense one "
    "nearest in width, resolved where both observe as many images; and that in the smaller space it is below "
    "2 up to width 1,024.",
    would_change="A run on an accelerator.",
    page="15-step-cost#fig-step-cost",
)
def step_takes(results: Results) -> Iterator[Finding]:
    rows, device = results.rows, results.provenance.get("device", "cpu")
    every = [of for name in ("dense", "convolutional") for of in _ratios(rows, name, FEATURE).values()]
    greatest = max(every, key=lambda ratio: ratio.value)
    on_card = not device.startswith("cpu")
    yield Finding("feature space ÷ θ, greatest", greatest, below=1.5, decides=True, resolved=on_card)
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
