"""Fresh prior draws of single units: how often they are accepted, and what a sweep is worth, over width."""

from collections.abc import Iterator
from typing import Annotated

import jax
import numpy as np
from book.experiments.chain_summaries import (
    LEAST_DRAWS,
    behind,
    convergence_summary,
    ess_per_step,
    mean_of_chains,
)
from book.experiments.configuration import Configuration, Count, Counts, NonNegative
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, NumChains, NumProjections, NumTrain, Seed
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.posterior import one_layer
from book.experiments.trends import vanishing
from widebnn import samplers
from widebnn._check import at_least
from widebnn.diagnostics import effective_sample_size, random_projections
from widebnn.sampling import sample
from widebnn.tables import Results, Row

__all__ = ["Unitwise", "unitwise"]


class Unitwise(Configuration):
    """The widths, and how long chains run."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 128
    widths: Annotated[Counts, "Of the one hidden layer."] = (256, 512, 1_024, 2_048, 4_096, 8_192)
    num_chains: NumChains = 4
    num_sweeps: Annotated[Count, "Sweeps of each chain that count."] = 300
    burn_in: Annotated[NonNegative, "Sweeps before them."] = 100
    num_projections: NumProjections = 100
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """A chain has eight draws or more."""
        at_least(LEAST_DRAWS, num_sweeps=self.num_sweeps)


@experiment(
    "fresh units and sweeps of them, over width",
    scales={
        "smoke": Unitwise(dataset="digits", num_train=8, widths=(16, 64, 128), num_sweeps=60, burn_in=20),
        "laptop": Unitwise(num_chains=8, seed=1),
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
    },
    parts="widths",
)
def unitwise(config: Unitwise) -> Iterator[Row]:
    """Unit-wise chains on the posterior of a network with one hidden layer, over its width.

    No paper has this sampler, and the scale "paper" is a size chosen for a GPU.

    Yields
    ------
    Rows with width; rejection, the mean share of fresh units that are rejected; effective samples per sweep
    of the potential and of the weights (the mean over random projections) as ess_potential and ess_weights,
    and ess_least, the least of all projections; each of the first three with its standard error, that of the
    effective samples from the scatter over chains; R̂ of the potential and of the weights as rhat_potential
    and rhat_weights; ms_per_sweep.
    """
    dataset = images(config.dataset, config.num_train, 1)
    for width in config.widths:
        target = one_layer(dataset, width, config.noise_std, config.seed).rotated
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
        row = {"width": width} | mean_of_chains(1 - draws.stats["acceptance_rate"]).columns("rejection")
        for name in ("potential", "weights"):
            row |= ess_per_step(draws[name], config.num_sweeps).columns(f"ess_{name}")
            row[f"rhat_{name}"] = convergence_summary(draws[name])["rhat"]
        least = float(np.min(effective_sample_size(draws["weights"])))
        yield row | {
            "ess_least": least / (config.num_chains * config.num_sweeps),
            "ms_per_sweep": 1e3 * draws.seconds / (config.num_chains * (config.num_sweeps + config.burn_in)),
        }


@unitwise.claim(
    "X-5",
    claim="Fresh prior draws of single units are accepted ever more often, and a sweep tends to an "
    "independent draw.",
    rule="The share that is rejected falls as a power of the width (exponent below 0, with a first "
    "correction for finite width), to less than half from the narrowest network to the widest; "
    "effective samples per sweep, of U and of the mean projection, rise, and to above three quarters. "
    "Their errors, over chains, are judged by Student's t.",
    page="13-unitwise#fig-unitwise",
)
def fresh(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, results.settings["num_chains"] - 1
    num_sweeps = results.settings["num_chains"] * results.settings["num_sweeps"]
    rejected = rows.over("width", "rejection", "rejection_error")
    yield from vanishing("share of fresh units rejected", sorted(rows.values("width")), rejected)
    for column, name in (("potential", "U"), ("weights", "projections")):
        ess = rows.over("width", f"ess_{column}", f"ess_{column}_error")
        what = f"ESS per sweep of {name}"
        rhat = [one.value for one in rows.over("width", f"rhat_{column}")]
        chains = behind((one.value * num_sweeps for one in (ess[0], ess[-1])), (rhat[0], rhat[-1]))
        yield Finding(
            f"{what}, widest less narrowest", ess[-1] - ess[0], above=0, degrees=degrees, chains=chains
        )
        yield Finding(f"{what}, widest", ess[-1], above=0.75, degrees=degrees, chains=chains)
