"""R̂ and traces of three chains from the prior, over width (Pezzetti et al. 2025, Figures 3 to 6)."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.chain_summaries import LEAST_DRAWS, behind, convergence_summary, trace_summary
from book.experiments.configuration import Configuration, Count, Counts, Fraction, NonNegative
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, NumChains, NumProjections, NumTest, NumTrain, Seed, Thin
from book.experiments.findings import Chains, Finding
from book.experiments.images import images
from book.experiments.posterior import LMC, SAMPLERS, Posterior, one_layer
from book.experiments.repeats import degrees_of_freedom
from jax.flatten_util import ravel_pytree
from jaxtyping import Float
from widebnn import samplers, targets
from widebnn._check import one_of
from widebnn.diagnostics import random_projections
from widebnn.sampling import Draws, sample
from widebnn.tables import Measure, Results, Row, Rows

__all__ = ["Convergence", "convergence"]

PRIOR = "pCN, U = 0"
"""Chains of pCN on the prior, which are in equilibrium from the first draw."""


class Convergence(Configuration):
    """The grid, and how long chains run."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 256
    num_test: NumTest = 10
    widths: Annotated[Counts, "Of the hidden layer: part of the grid."] = (512, 1_024, 2_048, 4_096)
    samplers: Annotated[tuple[str, ...], partial(one_of, [*SAMPLERS, PRIOR]), "Part of the grid."] = (
        "Langevin",
        "pCN",
        "pCNL",
        "Langevin, γ = 0.01",
        PRIOR,
    )
    num_steps: Annotated[Counts, "Of a chain of each of `samplers`."] = (20_000,) * 5
    num_checkpoints: Annotated[Count, "Times at which chains are compared, evenly spaced."] = 4
    step_size: Annotated[Fraction, "Coefficient of the noise; where γ is not 1, the leapfrog step."] = 0.1
    num_chains: Annotated[NumChains, "Chains, each from a prior draw; the same for all samplers."] = 3
    thin: Thin = 25
    num_projections: NumProjections = 100
    noise_std: Noise = 0.1
    repeats: Annotated[tuple[NonNegative, ...], "Each has starts and randomness of its own."] = (
        0,
        1,
        2,
        3,
        4,
    )
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
            num_steps=(1_500,) * 5,
            step_size=0.2,
            thin=10,
            num_projections=20,
            repeats=(0, 1),
        ),
        "laptop": Convergence(
            num_train=128,  # half of the paper's, and half of its widths: ratios as in the paper
            widths=(256, 512, 1_024),
            num_steps=(5_000,) * 5,
            repeats=tuple(range(8)),
            seed=2,
        ),
        "colab": Convergence(num_steps=(8_000,) * 5, thin=40),
        "paper": Convergence(num_test=5_000, repeats=(0,)),
    },
    parts=["widths", "repeats", ("samplers", "num_steps")],
)
def convergence(config: Convergence) -> Iterator[Row]:
    """Compare chains that start at the prior, while they run, on the posterior of one hidden layer.

    "paper" has the widths and the number of steps of Pezzetti et al.

    All samplers run on the rotated marginal target from the same starting points, and so does pCN on the
    prior of the same weights, "pCN, U = 0", by which the others are judged. For pCN and pCNL the target is
    all of φ in law, since neither sees the dimension; Langevin carries the norm of the rest (`num_flat` of
    `widebnn.samplers.langevin`). Every comparison is of all draws since the start, without burn-in; the
    rank-normalised R̂ is given once more for the later half of them.

    Principal components are exact, of all the weights that the potential sees: these are kept, draw by draw,
    until their inner products are made, so that a run needs 4 · `num_chains` · draws · width · `num_train`
    bytes of memory.

    Yields
    ------
    A row for each width, repeat, sampler and checkpoint: num_test; `step`, the number of steps until then,
    the acceptance so far, milliseconds per step of one chain, and `convergence_summary` of the potential, of
    projections of the weights and of predictions. The last row of a chain has `trace_summary` of the weights
    too, with the traces in repeat 0 alone.
    """
    dataset = images(config.dataset, config.num_train, config.num_test)
    for width in config.widths:
        posterior = one_layer(dataset, width, config.noise_std, config.seed)
        template = posterior.rotated.template
        for repeat in config.repeats:
            repeat_key = jax.random.fold_in(jax.random.key(config.seed), repeat)
            projection_key, rng_key = jax.random.split(repeat_key)
            project = random_projections(projection_key, template, num=config.num_projections)
            collect = posterior.collect(posterior.rotated, project)
            for name, num_steps in zip(config.samplers, config.num_steps, strict=True):
                sampler, target = _chain(posterior, name, config.step_size)
                draws = sample(
                    rng_key,
                    sampler,
                    target,
                    num_samples=num_steps // config.thin,
                    thin=config.thin,
                    num_chains=config.num_chains,
                    collect=collect | {"position": lambda position: ravel_pytree(position)[0]},
                )
                point = {"width": width, "num_test": len(dataset.x_test), "sampler": name, "repeat": repeat}
                rows = _compared(config, draws)
                if repeat > 0:  # one is enough to draw
                    del rows[-1]["pc_traces"]
                yield from (point | row for row in rows)


def _chain(posterior: Posterior, name: str, step_size: float) -> tuple[samplers.Sampler, targets.Target]:
    """A sampler by its name, and what it samples."""
    if name == PRIOR:
        prior = targets.from_potential(lambda position: jnp.zeros(()), posterior.rotated.template)
        return samplers.pcn(prior.potential, step_size), prior
    return SAMPLERS[name](posterior, step_size), posterior.rotated


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
        for quantity in ("potential", "weights", "predictions"):
            found = convergence_summary(draws[quantity][:, :until])
            row |= {f"{name}_{quantity}": number for name, number in found.items()}
        rows.append(row)
    rows[-1] |= trace_summary(draws["position"], thin=config.thin)
    return rows


BETWEEN = "share of variance between chains over that at U = 0"
ERRORS = "Errors are from the scatter of repeats, judged by Student's t."
EXCESS = (
    "The share of the variance of the first two principal components of all weights that the potential sees "
    "that is between chains, less that of chains of pCN at U = 0 of as many weights and steps: even those "
    "seem apart in components that are chosen for their variance among many. " + ERRORS + " "
)


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
    "greater at the widest than at the narrowest, both with γ = 1 and with 0.01, the published default. "
    + ERRORS,
    would_change="The paper's 256 images and 20,000 steps, up to width 4,096.",
    page="08-convergence#fig-rhat",
)
def disagreement(results: Results) -> Iterator[Finding]:
    def rhat(name: str, quantity: str) -> Float[np.ndarray, "repeat width"]:
        return _at_the_end(results, name, f"rhat_squared_{quantity}")

    def finding(
        what: str, name: str, quantity: str, place: int, less: int | None = None, **bounds: float | int
    ):
        found, places = (rhat(name, quantity), [place] if less is None else [place, less])
        values = found[:, place] - (0 if less is None else found[:, less])
        chains = _chains(results, *((name, place) for place in places), quantity=quantity)
        return _finding(results, what, values, chains=chains, **bounds)

    for quantity in ("weights", "predictions"):
        what, highest = (f"pCN, {quantity}: widest", int(rhat("pCNL", quantity).mean(axis=0).argmax()))
        yield finding(f"{what} less narrowest", "pCN", quantity, -1, 0, below=0)
        yield finding(what, "pCN", quantity, -1, below=1.2)
        yield finding(f"pCNL, {quantity}: greatest over widths", "pCNL", quantity, highest, below=1.2)
    for lmc, name in LMC.items():  # the claim is not of predictions
        yield finding(f"{lmc}, weights: widest less narrowest", name, "weights", -1, 0, above=0)


@convergence.claim(
    "P-F4",
    where="Figure 4",
    claim="Traces of the first two principal components: LMC mixes worse in wider networks.",
    paper="traces",
    rule=EXCESS + "How much greater it is at the widest network than at the narrowest, with γ = 0.01, the "
    "published default, decides: above 0. Shown is the same with γ = 1.",
    would_change="The paper's 256 images and 20,000 steps, up to width 4,096.",
    page="08-convergence#fig-traces-langevin",
)
def langevin_traces(results: Results) -> Iterator[Finding]:
    for lmc, name in LMC.items():
        excess = _excess(results, name)
        what, more = (f"{lmc}, {BETWEEN}: widest less narrowest", excess[:, -1] - excess[:, 0])
        decides, chains = (name == "Langevin, γ = 0.01", _chains(results, (name, 0), (name, -1)))
        yield _finding(results, what, more, above=0, decides=decides, chains=chains)


@convergence.claim(
    "P-F5",
    where="Figure 5",
    claim="Traces of the first two principal components: pCN becomes steadier in wider networks.",
    paper="traces",
    rule=EXCESS + "That it is smaller at the widest network than at the narrowest decides.",
    would_change="The paper's 256 images and 20,000 steps, up to width 4,096.",
    page="08-convergence#fig-traces-pcn",
)
def pcn_traces(results: Results) -> Iterator[Finding]:
    excess, chains = (_excess(results, "pCN"), _chains(results, ("pCN", 0), ("pCN", -1)))
    what, less = (f"{BETWEEN}: widest less narrowest", excess[:, -1] - excess[:, 0])
    yield _finding(results, what, less, below=0, decides=True, chains=chains)


@convergence.claim(
    "P-F6",
    where="Figure 6",
    claim="Traces of the first two principal components: pCNL mixes well at small widths too.",
    paper="traces",
    rule=EXCESS + "At the narrowest network, that under pCNL less that under pCN decides: below 0. pCNL is "
    "the corrected one; the paper's samples a different distribution (X-4).",
    would_change="The paper's 256 images and 20,000 steps.",
    page="08-convergence#fig-traces-pcnl",
)
def pcnl_traces(results: Results) -> Iterator[Finding]:
    pcnl, pcn = (_excess(results, name)[:, 0] for name in ("pCNL", "pCN"))
    chains = _chains(results, ("pCNL", 0), ("pCN", 0))
    what = f"{BETWEEN}, narrowest: pCNL less pCN"
    yield _finding(results, what, pcnl - pcn, below=0, decides=True, chains=chains)


def _finding(results: Results, what: str, values: Float[np.ndarray, " repeat"], **options: Any) -> Finding:
    """The mean over repeats, which is not resolved in one alone."""
    measure = Measure.mean(values) if len(values) > 1 else Measure(math.nan)
    return Finding(what, measure, degrees=degrees_of_freedom(results), **options)


def _excess(results: Results, sampler: str) -> Float[np.ndarray, "repeat width"]:
    """How much more of the variance is between chains than at U = 0."""
    return _at_the_end(results, sampler, "pc_between") - _at_the_end(results, PRIOR, "pc_between")


def _chains(results: Results, *compared: tuple[str, int], quantity: str = "weights") -> Chains:
    """Of a quantity, under these samplers at these places among the widths, in the worst repeat."""
    ess, rhat = (
        [number for name, place in compared for number in _at_the_end(results, name, column)[:, place]]
        for column in (f"ess_bulk_{quantity}", f"rhat_{quantity}")
    )
    return behind(ess, rhat)


def _at_the_end(results: Results, sampler: str, column: str) -> Float[np.ndarray, "repeat width"]:
    """A column of the last rows of a sampler, in the order of width; NaN where no chain moves."""
    last = (row for row in results.rows.where(sampler=sampler) if "pc_between" in row)
    in_order = Rows(sorted(last, key=lambda row: (row["repeat"], row["width"])))
    return in_order.column(column).astype(float).reshape(len(in_order.values("repeat")), -1)
