"""R̂ and traces of three chains from the prior, over width (Pezzetti et al. 2025, Figures 3 to 6)."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Annotated

import jax

from widebnn._check import one_of
from widebnn.diagnostics import random_projections
from widebnn.experiments.settings.chain_summaries import (
    LEAST_DRAWS,
    behind,
    convergence_summary,
    trace_summary,
)
from widebnn.experiments.settings.fields import (
    Images,
    Noise,
    NumChains,
    NumProjections,
    NumTest,
    NumTrain,
    Seed,
    Thin,
)
from widebnn.experiments.settings.images import images
from widebnn.experiments.settings.posterior import LMC, SAMPLERS, one_layer
from widebnn.sampling import Draws, sample
from widebnn.study import Chains, Cost, Finding, Measure, Results, Row, Rows, experiment
from widebnn.study.configuration import Configuration, Count, Counts, Fraction

__all__ = ["Convergence", "convergence"]


class Convergence(Configuration):
    """The grid, and how long chains run."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 256
    num_test: NumTest = 10
    widths: Annotated[Counts, "Of the hidden layer: part of the grid."] = (512, 1_024, 2_048, 4_096)
    samplers: Annotated[tuple[str, ...], partial(one_of, SAMPLERS), "Part of the grid."] = (
        "Langevin",
        "pCN",
        "pCNL",
        "Langevin, γ = 0.01",
    )
    num_steps: Annotated[Counts, "Of a chain of each of `samplers`."] = (20_000,) * 4
    num_checkpoints: Annotated[Count, "Times at which chains are compared, evenly spaced."] = 4
    step_size: Annotated[Fraction, "Coefficient of the noise; where γ is not 1, the leapfrog step."] = 0.1
    num_chains: Annotated[NumChains, "Chains, each from a prior draw; the same for all samplers."] = 3
    thin: Thin = 25
    num_projections: NumProjections = 100
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """`num_steps` has an entry for each of `samplers`, and a checkpoint has eight draws or more."""
        self.one_each("samplers", "num_steps")
        least = LEAST_DRAWS * self.num_checkpoints * self.thin
        if min(self.num_steps) < least:
            raise ValueError(
                f"num_steps must be at least {least}, {LEAST_DRAWS} draws per checkpoint; "
                f"got {self.num_steps}"
            )


@experiment(
    "R-hat and traces of three chains over width",
    scales={
        "smoke": Convergence(
            dataset="digits",
            num_train=32,
            num_test=4,
            widths=(32, 128),
            num_steps=(1_500,) * 4,
            step_size=0.2,
            thin=5,
            num_projections=20,
        ),
        "laptop": Convergence(widths=(512, 1_024, 2_048), num_steps=(5_000,) * 4, thin=10, seed=1),
        "colab": Convergence(num_steps=(40_000,) * 4),
        "paper": Convergence(num_test=5_000),
    },
    parts=["widths", ("samplers", "num_steps")],
    cost=lambda c: Cost(
        operations=sum(c.widths) * sum(c.num_steps) * c.num_chains * c.num_train,
        steps=len(c.widths) * sum(c.num_steps),
    ),
)
def convergence(config: Convergence) -> Iterator[Row]:
    """Compare chains that start at the prior, while they run, on the posterior of one hidden layer.

    "paper" has the widths and the number of steps of Pezzetti et al.

    All samplers run on the rotated marginal target from the same starting points. For pCN and pCNL that is
    all of φ in law, since neither sees the dimension; Langevin carries the norm of the rest (`num_flat` of
    `widebnn.samplers.langevin`). Every comparison is of all draws since the start, without burn-in; the
    rank-normalised R̂ is given once more for the later half of them.

    Yields
    ------
    A row for each width, sampler and checkpoint: num_test; `step`, the number of steps until then, the
    acceptance so far, milliseconds per step of one chain, and `convergence_summary` of the potential, of
    projections of the weights and of predictions. The last row of a chain has `trace_summary` of the
    projections too.
    """
    dataset = images(config.dataset, config.num_train, config.num_test)
    for width in config.widths:
        posterior = one_layer(dataset, width, config.noise_std, config.seed)
        projection_key, rng_key = jax.random.split(jax.random.key(config.seed))
        project = random_projections(projection_key, posterior.rotated.template, num=config.num_projections)
        for name, num_steps in zip(config.samplers, config.num_steps, strict=True):
            draws = sample(
                rng_key,
                SAMPLERS[name](posterior, config.step_size),
                posterior.rotated,
                num_samples=num_steps // config.thin,
                thin=config.thin,
                num_chains=config.num_chains,
                collect=posterior.collect(posterior.rotated, project),
            )
            for row in _compared(config, draws):
                yield {"width": width, "num_test": len(dataset.x_test), "sampler": name} | row


def _compared(config: Convergence, draws: Draws) -> Rows:
    rates = draws.stats["acceptance_rate"]
    num_chains, num_draws = rates.shape
    rows = Rows()
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


BETWEEN = "share of variance between chains"
WAVES = (
    0.25 / 1.96
)  # a standard error: at U = 0 two runs of a dozen correlation times differ by 0.25, 1 in 20


@convergence.claim(
    "P-F3",
    where="Figure 3",
    claim="R-hat of three chains falls below 1.2 earlier in wider networks for pCN and pCNL, and not for "
    "LMC.",
    paper="as the line that marks convergence, at β = 0.1 over 5,000 to 20,000 steps, widths 512 to 4,096",
    number="R-hat of 1.2",
    rule="The paper's R-hat, a ratio of variances, at the last checkpoint, mean over projections of the "
    "weights and over predictions: that of pCN is smaller at the widest network than at the narrowest "
    "and below 1.2 there, that of pCNL is below 1.2 at every width, and that of LMC, of the weights, is "
    "greater at the widest than at the narrowest, both with γ = 1 and with 0.01, the published default. Of "
    "predictions there is no standard error.",
    would_change="The paper's 20,000 steps up to width 4,096, with several seeds.",
    page="08-convergence#fig-rhat",
)
def disagreement(results: Results) -> Iterator[Finding]:
    for quantity in ("weights", "predictions"):
        pcn, pcnl = (_rhat_squared(results, name, quantity) for name in ("pCN", "pCNL"))
        yield Finding(f"pCN, {quantity}: widest less narrowest", pcn[-1] - pcn[0], below=0)
        yield Finding(f"pCN, {quantity}: widest", pcn[-1], below=1.2)
        greatest = max(pcnl, key=lambda measure: measure.value)
        yield Finding(f"pCNL, {quantity}: greatest over widths", greatest, below=1.2)
    for lmc, name in LMC.items():  # not of predictions: too small to be told without a standard error
        rhat = _rhat_squared(results, name, "weights")
        yield Finding(f"{lmc}, weights: widest less narrowest", rhat[-1] - rhat[0], above=0)


def _rhat_squared(results: Results, sampler: str, quantity: str) -> list[Measure]:
    """The mean at the last checkpoint, over width; projections are independent, predictions are not."""
    found = []
    for row in _at_the_end(results.rows, sampler):
        value, deviation = (row[f"rhat_squared{part}_{quantity}"] for part in ("", "_std"))
        if value is None:  # chains that do not move
            found.append(Measure(math.inf))
        elif quantity == "weights":
            found.append(Measure(value, deviation / math.sqrt(results.config["num_projections"])))
        else:
            found.append(Measure(value))
    return found


def _at_the_end(rows: Rows, sampler: str) -> list[Row]:
    """The last row of a sampler at each width, in the order of width."""
    found = (row for row in rows.where(sampler=sampler) if "pc_drift" in row)
    return sorted(found, key=lambda row: row["width"])


@convergence.claim(
    "P-F4",
    where="Figure 4",
    claim="Traces of the first two principal components: LMC mixes worse in wider networks.",
    paper="traces",
    rule="How much greater the share of the variance of the first two principal components that is between "
    "chains is at the widest network than at the narrowest, with γ = 0.01, the published default, decides: "
    "above 0. Shown is the same with γ = 1. The error is that at U = 0, for chains of a dozen correlation "
    "times.",
    would_change="Ten seeds or more, whose scatter is an error.",
    page="08-convergence#fig-traces-langevin",
)
def langevin_traces(rows: Rows) -> Iterator[Finding]:
    for lmc, name in LMC.items():
        between, last = _between(rows, name), _at_the_end(rows, name)
        what = f"{lmc}, {BETWEEN}: widest less narrowest"
        decides = name == "Langevin, γ = 0.01"
        chains = _chains(last[0], last[-1])
        yield Finding(what, between[-1] - between[0], above=0, decides=decides, chains=chains)


@convergence.claim(
    "P-F5",
    where="Figure 5",
    claim="Traces of the first two principal components: pCN becomes steadier in wider networks.",
    paper="traces",
    rule="The share of the variance of the first two principal components that is between chains decides: it "
    "is smaller at the widest network than at the narrowest.",
    would_change="Ten seeds or more, whose scatter is an error.",
    page="08-convergence#fig-traces-pcn",
)
def pcn_traces(rows: Rows) -> Iterator[Finding]:
    between, last = _between(rows, "pCN"), _at_the_end(rows, "pCN")
    less, chains = between[-1] - between[0], _chains(last[0], last[-1])
    yield Finding(f"{BETWEEN}: widest less narrowest", less, below=0, decides=True, chains=chains)


@convergence.claim(
    "P-F6",
    where="Figure 6",
    claim="Traces of the first two principal components: pCNL mixes well at small widths too.",
    paper="traces",
    rule="At the narrowest network, the share of the variance of the first two principal components that is "
    "between chains, under pCNL less under pCN, decides: below 0. pCNL is the corrected one; the paper's "
    "samples a different distribution (X-4).",
    would_change="Ten seeds or more, whose scatter is an error.",
    page="08-convergence#fig-traces-pcnl",
)
def pcnl_traces(rows: Rows) -> Iterator[Finding]:
    pcnl, pcn = _between(rows, "pCNL")[0], _between(rows, "pCN")[0]
    chains = _chains(*(_at_the_end(rows, name)[0] for name in ("pCNL", "pCN")))
    yield Finding(f"{BETWEEN}, narrowest: pCNL less pCN", pcnl - pcn, below=0, decides=True, chains=chains)


def _chains(*ends: Row) -> Chains:
    """Of the weights, in what is compared."""
    return behind((row["ess_bulk_weights"] for row in ends), (row["rhat_weights"] for row in ends))


def _between(rows: Rows, sampler: str) -> list[Measure]:
    """Over width, each with half of the variance of a difference; NaN where no chain moves."""
    found = [row["pc_between"] for row in _at_the_end(rows, sampler)]
    return [Measure(math.nan if share is None else share, WAVES / math.sqrt(2)) for share in found]
