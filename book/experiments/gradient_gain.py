"""Whether a gradient pays: effective samples of pCN and of pCNL, per step and per second."""

from collections.abc import Iterator
from typing import Annotated

import jax
import numpy as np
from book.experiments.chain_summaries import (
    LEAST_DRAWS,
    behind,
    convergence_summary,
    finite,
    is_resolved,
    pooled_ess_per_draw,
)
from book.experiments.configuration import Configuration, Count, Positive, Several
from book.experiments.efficiency import METHODS
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, NumProjections, NumTrain, Seed, Thin
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.posterior import SAMPLERS, one_layer
from book.experiments.step_times import median_error, step_times
from widebnn import samplers
from widebnn._check import at_least
from widebnn.diagnostics import random_projections
from widebnn.sampling import Draws, sample
from widebnn.tables import Measure, Results, Row

__all__ = ["GradientGain", "gradient_gain"]

COMPARED = ("pCN", "pCNL")


class GradientGain(Configuration):
    """One network, and how long chains are at a common β and at a β that is tuned."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 256
    width: Annotated[Count, "Units of the hidden layer."] = 8_192
    step_size: Annotated[Positive, "β of both samplers, where they have a common one."] = 0.2
    num_steps: Annotated[Count, "Of each chain at the common β."] = 3_000
    num_tuned_steps: Annotated[Count, "Of each chain at a tuned β, after as many that tune it."] = 500
    burn_in: Annotated[Count, "HMC proposals that lead to the posterior."] = 100
    num_chains: Annotated[Several, "Chains, all from the posterior."] = 10
    thin: Thin = 10
    num_projections: NumProjections = 100
    num_rounds: Annotated[Several, "Of timings, in each of which both samplers are timed once."] = 15
    timed_seconds: Annotated[Positive, "Of one timing, about."] = 1.0
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """A chain has eight draws or more."""
        at_least(LEAST_DRAWS * self.thin, num_steps=self.num_steps)
        at_least(LEAST_DRAWS * self.thin, num_tuned_steps=self.num_tuned_steps)


@experiment(
    "effective samples per second of pCN and of pCNL",
    scales={
        "smoke": GradientGain(
            dataset="digits",
            num_train=8,
            width=64,
            num_steps=400,
            num_tuned_steps=200,
            burn_in=50,
            num_chains=3,
            thin=2,
            num_projections=10,
            num_rounds=3,
            timed_seconds=0.02,
        ),
        "laptop": GradientGain(num_train=128, seed=1),
        "colab": GradientGain(),
        "paper": GradientGain(num_steps=1_000_000, num_tuned_steps=100_000, thin=25),
    },
)
def gradient_gain(config: GradientGain) -> Iterator[Row]:
    """What the gradients of pCNL are worth in the posterior of a network with one hidden layer.

    Chains run on the rotated marginal target, at a common β and at one that each sampler is tuned to: as for
    `efficiency`, to an acceptance of 0.25 for pCN and of 0.6 for pCNL. Effective samples are those of random
    projections of the weights that the data inform, in bulk and of all chains together, mean over
    projections: of chains this short the papers' estimator makes too many, and this one does not. A step is
    timed apart, on one chain, both samplers in turn; what it takes does not depend on β.

    Yields
    ------
    Rows with sampler, is_tuned, step_size and acceptance; ess_per_step with its standard error (chains left
    out in turn); ess_bulk, ess_tail and rhat (all None for a chain that never moved); ms_per_step, the median
    over rounds; relative_time, the median over rounds of the time relative to that of pCN in the same round,
    and its standard error.
    """
    dataset = images(config.dataset, config.num_train, num_test=1)
    posterior = one_layer(dataset, config.width, config.noise_std, config.seed)
    projection_key, start_key, rng_key = jax.random.split(jax.random.key(config.seed), 3)
    rotated = posterior.rotated
    project = random_projections(projection_key, rotated.template, num=config.num_projections)
    start = posterior.equilibrium(start_key, config.burn_in, config.num_chains).position
    common = {name: SAMPLERS[name](posterior, config.step_size) for name in COMPARED}
    rows = []
    for name in COMPARED:
        for sampler, num_steps in (
            (common[name], config.num_steps),
            (METHODS[name].make(rotated), config.num_tuned_steps),
        ):
            is_tuned = isinstance(sampler, samplers.Tuned)
            draws = sample(
                rng_key,
                sampler,
                rotated,
                num_samples=num_steps // config.thin,
                thin=config.thin,
                burn_in=num_steps if is_tuned else 0,
                num_chains=config.num_chains,
                initial=start,
                collect={"weights": project},
            )
            step_size = draws.step_size if is_tuned else config.step_size
            rows.append({"sampler": name, "is_tuned": is_tuned, "step_size": step_size} | _summary(draws))
    one_chain = jax.tree.map(lambda leaf: leaf[0], start)
    cases = [(sampler, one_chain) for sampler in common.values()]
    rounds = step_times(cases, config.timed_seconds, config.num_rounds)
    for row in rows:
        ms = rounds[:, COMPARED.index(row["sampler"])]
        ratio = ms / rounds[:, 0]
        relative = Measure(float(np.median(ratio)), median_error(ratio))
        yield (row | {"ms_per_step": float(np.median(ms))} | relative.columns("relative_time"))


def _summary(draws: Draws) -> Row:
    weights = draws["weights"]
    per_step = pooled_ess_per_draw(weights) / draws.thin
    ranked = convergence_summary(weights)
    return {
        "acceptance": draws.acceptance_rate,
        "ess_per_step": finite(per_step.value),
        "ess_per_step_error": finite(per_step.error),
        **{name: ranked[name] for name in ("ess_bulk", "ess_tail", "rhat")},
    }


@gradient_gain.claim(
    "P-C",
    where="Section 5",
    claim="pCN suffices: in wide networks pCNL is not worth what its gradients cost.",
    paper="the performance of pCNL is not striking enough to justify its high computational cost",
    rule="By effective samples of the weights in bulk per second, in the paper's widest network: pCNL ÷ pCN "
    "at the paper's β = 0.2 decides: it has to be below 1. Shown are the same where β is tuned for each, and "
    "how much longer a step of pCNL takes. The error of effective samples is from chains left out in turn, "
    "that of times from rounds of timings; both are judged by Student's t. Resolved are 150 effective "
    "samples in bulk and tail.",
    would_change="256 images, as in the paper; another device.",
    page="07-cifar10-over-width#fig-ess",
)
def pcn_suffices(results: Results) -> Iterator[Finding]:
    degrees = min(results.settings["num_chains"], results.settings["num_rounds"]) - 1
    width = results.settings["width"]
    for is_tuned, rows in results.rows.by("is_tuned"):
        pcn, pcnl = (rows.one(sampler=name) for name in COMPARED)
        of_pcn, of_pcnl = (
            rows.where(sampler=name).measure("ess_per_step", "ess_per_step_error") for name in COMPARED
        )
        sizes = [row[kind] for row in (pcn, pcnl) for kind in ("ess_bulk", "ess_tail")]
        how = "each β tuned" if is_tuned else f"β = {pcn['step_size']:g}"
        yield Finding(
            f"ESS per second, pCNL ÷ pCN, width {width:,}, {how}",
            of_pcnl / of_pcn / Measure.of(pcnl, "relative_time"),
            below=1,
            decides=not is_tuned,
            degrees=degrees,
            resolved=is_resolved(*sizes),
            chains=behind(sizes, [pcn["rhat"], pcnl["rhat"]]),
        )
    slower = Measure.of(results.rows.one(sampler="pCNL", is_tuned=False), "relative_time")
    yield Finding("time per step, pCNL ÷ pCN", slower, above=1, degrees=degrees)
