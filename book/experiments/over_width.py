"""Acceptance and mixing of four samplers over width (Pezzetti et al. 2025, Figures 1 and 2)."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import jax
import numpy as np
from scipy.stats import norm

from book.experiments.chain_summaries import behind, ess_with_error, is_resolved, mean_of_chains
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Chains, Finding
from book.experiments.images import images
from book.experiments.langevin_gain import worth_where_flat
from book.experiments.posterior import LMC, Posterior, dense, size
from book.experiments.posterior import SAMPLERS as ON_INFORMED
from widebnn import samplers
from widebnn._failures import ChainWarning
from widebnn.diagnostics import bulk_and_tail, effective_sample_size, random_projections
from widebnn.driver import Draws, sample
from widebnn.tables import Measure, Results, Row, Rows

SAMPLERS: Mapping[str, Callable[[Posterior, float], samplers.Sampler]] = {
    **ON_INFORMED,
    "random walk": lambda posterior, step_size: samplers.rwm(step_size),
}
"""By name; `step_size` is the coefficient of the noise for each, and the leapfrog step where γ is not 1."""
PAPERS = ("pCN", "pCNL", *LMC.values())
REACHED = 0.9  # of the effective samples of another sampler


@experiment(SETTINGS["over_width"], parts="widths")
def over_width(
    dataset,
    num_train,
    num_test,
    widths,
    step_sizes,
    samplers,
    num_steps,
    burn_in,
    thin,
    num_projections,
    noise_std,
    seed,
) -> Iterator[Row]:
    """Acceptance of four samplers over width, on the posterior of a network with one hidden layer.

    pCN, pCNL and Langevin run on the rotated marginal target, and accept in law as on all of φ: what that
    target leaves out has a constant potential, the first two never see it, and Langevin carries its norm
    (`num_flat` of `widebnn.samplers.langevin`). Random walk runs on all of φ. Effective sample sizes are of
    the same functions for all, each informed by the data: the potential, projections of the rotated weights,
    and Rao–Blackwellised predictions on the part of test images that lies in the span of the training images.

    Yields
    ------
    Rows with width, num_test, sampler, step_size; dimension that the acceptance depends on, of the rotated
    target for pCN and pCNL and of all of φ for the others; acceptance and its standard error; effective
    samples per step of the potential, of the weights and of the predictions, mean over projections and over
    test images × outputs (`ess_`, by the papers' definition, with the least and the largest, `ess_low_` and
    `ess_high_`; but for the predictions rank-normalised, `ess_bulk_` and `ess_tail_`; None for a chain that
    never moved); milliseconds per step.
    """
    dataset = images(dataset, num_train, num_test)
    projection_key, start_key, unseen_key, rng_key = jax.random.split(jax.random.key(seed), 4)
    for width in widths:
        posterior = dense(dataset, width, 1, noise_std, seed)
        rotated = posterior.rotated
        project = random_projections(projection_key, rotated.template, num=num_projections)
        start = posterior.equilibrium(start_key, burn_in).position
        for name, steps in zip(samplers, num_steps, strict=True):
            target = posterior.repriorised if name == "random walk" else rotated
            initial = start
            if target is not rotated:
                first = jax.tree.map(lambda leaf: leaf[0], start)
                of_all = target.from_parameters(rotated.to_parameters(first, unseen_key))
                initial = jax.tree.map(lambda leaf: leaf[None], of_all)
            collect = posterior.collect(target, project)
            for step_size in step_sizes:
                with warnings.catch_warnings():  # a sampler that accepts nothing is a result here
                    warnings.simplefilter("ignore", ChainWarning)
                    draws = sample(
                        rng_key,
                        target,
                        SAMPLERS[name](posterior, step_size),
                        num_samples=steps // thin,
                        thin=thin,
                        burn_in=0,
                        num_chains=1,
                        initial=initial,
                        collect=collect,
                    )
                counted = rotated if name in ("pCN", "pCNL") else posterior.repriorised
                point = {"width": width, "num_test": len(dataset.x_test), "sampler": name}
                yield point | {"step_size": step_size, "dimension": size(counted)} | _summary(draws, steps)


@experiment(SETTINGS["mixing_over_width"], parts=("widths", "step_sizes"))
def mixing_over_width(**settings) -> Iterator[Row]:
    """Mixing of four samplers over width: the same grid, on chains that are long enough to count by.

    pCNL has one effective sample in a hundred steps at β = 0.2 and pCN in a wide network one in two hundred.
    In networks narrower than those at scale "laptop" pCN hardly moves at this β, and half of it asks for four
    times as many steps.
    """
    return over_width(**settings)


def _summary(draws: Draws, num_steps: int) -> Row:
    rates = draws.stats["acceptance_rate"]
    rate = mean_of_chains(rates) if rates.std() else Measure(draws.acceptance_rate, 0.0)
    row: Row = rate.columns("acceptance") | {"ms_per_step": 1e3 * draws.seconds / num_steps}
    for quantity, values in draws.collected.items():
        ess = effective_sample_size(values)
        found = {"ess": ess.mean(), "ess_low": ess.min(), "ess_high": ess.max()}
        if quantity != "predictions":  # ArviZ would take hours for those of 5,000 images
            found |= bulk_and_tail(values)
        has_moved = np.isfinite(ess).all()
        for kind, value in found.items():
            row[f"{kind}_{quantity}"] = float(value) / num_steps if has_moved else None
    return row


@over_width.claim("P-F1")
def acceptance(rows: Rows) -> Iterator[Finding]:
    largest, alone = max(rows.values("step_size")), Chains(None)
    for beta, at in rows.by("step_size"):
        rates = {
            name: at.where(sampler=name).over("width", "acceptance", "acceptance_error") for name in PAPERS
        }
        for name in ("pCN", "pCNL"):
            rise = rates[name][-1] - rates[name][0]
            yield Finding(f"{name}, β = {beta:g}: widest less narrowest", rise, above=0, chains=alone)
        gaps = [a - b for a, b in zip(rates["pCNL"], rates["pCN"], strict=True)]
        closing = gaps[-1] - max(gaps, key=attrgetter("value"))
        yield Finding(f"pCNL less pCN, β = {beta:g}: widest less greatest", closing, below=0, chains=alone)
        if beta >= 0.1:
            yield Finding(
                f"pCNL less pCN, β = {beta:g}, least",
                min(gaps, key=attrgetter("value")),
                below=0,
                chains=alone,
            )
        if beta == largest:
            first, *_, last = (a - b for a, b in zip(rates["pCN"], rates["Langevin"], strict=True))
            what = f"pCN less LMC, β = {beta:g}: widest less narrowest"
            yield Finding(what, last - first, above=0, decides=True, chains=alone)
        if beta >= 0.1:  # a small step makes up for the width
            for lmc, name in LMC.items():
                falls = rates[name][-1] - max(rates[name], key=attrgetter("value"))
                yield Finding(f"{lmc}, β = {beta:g}: widest less greatest", falls, below=0, chains=alone)


@mixing_over_width.claim("P-F2")
def mixing(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    runs = [*beside, results]
    for quantity in ("weights", "predictions"):
        for beta in results.rows.values("step_size"):
            ess = {name: over_widths(runs, beta, name, quantity) for name in PAPERS}
            at = f"{quantity}, β = {beta:g}"
            for name in ("pCN", "pCNL"):
                known = [one for one in ess[name] if one.is_known] or ess[name][-1:]
                what = f"{name}, {at}: {ess[name][-1].width:,} ÷ {known[0].width:,}, the narrowest resolved"
                rise = ess[name][-1].per_step / known[0].per_step if len(known) > 1 else Measure(math.nan)
                yield Finding(what, rise, above=1, chains=behind((known[0].least, ess[name][-1].least)))
            for lmc, name in LMC.items():
                few, many = ess[name][-1], ess["pCN"][-1]
                what = f"{lmc} ÷ pCN, {at}, widest{'' if few.is_known else ', at most'}"
                most = few.per_step if few.is_known else few.moves
                chains = behind([many.least, few.least] if few.is_known else [many.least])
                yield Finding(what, most / many.per_step, below=1, chains=chains)


@mixing_over_width.claim("P-V1")
def pcn_reaches_pcnl(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    for beta in results.rows.values("step_size"):
        of_pcn, of_pcnl = (over_widths([*beside, results], beta, name, "weights") for name in ("pCN", "pCNL"))
        pairs = [(a, b) for a, b in zip(of_pcn, of_pcnl, strict=True) if a.is_known]
        *narrower, widest = (
            Finding(
                f"pCN ÷ pCNL, weights, β = {beta:g}, width {pcn.width:,}",
                pcn.per_step / pcnl.per_step,
                below=1,
                chains=behind((pcn.least, pcnl.least)),
            )
            for pcn, pcnl in pairs
        )
        yield from narrower
        at_first = narrower[0].value if narrower else 0
        yield replace(widest, above=REACHED, below=math.inf, null=at_first, decides=True)


@mixing_over_width.claim("P-N")
def pcnl_leads_where_narrow(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    beta = max(results.rows.values("step_size"))
    for quantity in ("weights", "predictions"):
        (pcn, *_), (pcnl, *_) = (
            over_widths([*beside, results], beta, name, quantity) for name in ("pCN", "pCNL")
        )
        most = pcn.per_step if pcn.is_known else pcn.moves
        what = (
            f"pCNL ÷ pCN, {quantity}, β = {beta:g}, width {pcn.width:,}{'' if pcn.is_known else ', at least'}"
        )
        yield Finding(what, pcnl.per_step / most, above=2, chains=behind([pcnl.least]))


BURN_IN, LEAST_IN_BURN_IN = 20_000, 10


@mixing_over_width.claim("P-B")
def burn_in_suffices(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    beta = max(results.rows.values("step_size"))
    for name in PAPERS:
        narrowest, *_ = over_widths([*beside, results], beta, name, "weights")
        is_known = narrowest.is_known
        found = (narrowest.per_step if is_known else narrowest.moves) / (1 / BURN_IN)
        at = f"{name}, β = {beta:g}, width {narrowest.width:,}{'' if is_known else ', at most'}"
        what = f"effective samples of weights in {BURN_IN:,} steps, {at}"
        resolved = is_known or found.value < LEAST_IN_BURN_IN  # a bound from above can only refute
        chains = behind([narrowest.least]) if is_known else None
        yield Finding(what, found, above=LEAST_IN_BURN_IN, resolved=resolved, chains=chains)
    at_most = BURN_IN * worth_of_pcn(0.01)
    what = f"effective samples in {BURN_IN:,} steps, pCN, β = 0.01, U = 0"
    yield Finding(what, at_most, above=LEAST_IN_BURN_IN)


@over_width.claim("P-V2")
def langevin_at_a_small_step(results: Results) -> Iterator[Finding]:
    beta = min(results.rows.values("step_size"))
    published, full = (worth_where_flat(beta, damping) / worth_of_pcn(beta) for damping in (0.01, 1.0))
    what = f"Langevin ÷ pCN where U is constant, β = {beta:g}, γ = "
    yield Finding(f"{what}0.01", published, above=10, decides=True)
    yield Finding(f"{what}1", full, below=10)
    rates = results.rows.where(sampler=LMC["LMC with γ = 0.01"], step_size=beta).column("acceptance")
    yield Finding(f"acceptance of Langevin, γ = 0.01, β = {beta:g}, least", min(rates), above=0.99)


def worth_of_pcn(beta: float) -> float:
    """Effective samples per step of pCN where U is constant."""
    a = math.sqrt(1 - beta**2)
    return (1 - a) / (1 + a)


@over_width.claim("P-V3")
def pcnl_declines(results: Results) -> Iterator[Finding]:
    ess = over_widths([results], 0.1, "pCNL", "weights")
    known = [one for one in ess if one.is_known] or ess
    best = max(known, key=lambda one: one.per_step.value)
    chains = behind((best.least, ess[-1].least))
    what = "pCNL, weights, β = 0.1: widest ÷ best"
    yield Finding(what, ess[-1].per_step / best.per_step, below=1, decides=True, chains=chains)


class Mixing(NamedTuple):
    """How one chain mixes.

    Attributes
    ----------
    width, num_train
        Of the network, and the number of images.
    per_step
        Effective samples per step, NaN where these are too few to be known.
    least
        The least estimate of their number.
    moves
        Accepted moves per step, and one: a chain has at most as many effective samples.
    ms_per_step
        Milliseconds per step.
    """

    width: int
    num_train: int
    per_step: Measure
    least: float | None
    moves: Measure
    ms_per_step: float

    @property
    def is_known(self) -> bool:
        """Whether there are enough effective samples to count."""
        return math.isfinite(self.per_step.value)


def over_widths(runs: Iterable[Results], beta: float, sampler: str, quantity: str) -> list[Mixing]:
    """Chains of one sampler over the widths of these runs, at each width of the last run that has it."""
    found = {
        row["width"]: _mixing(run, row, quantity)
        for run in runs
        for row in run.rows.where(sampler=sampler, step_size=beta)
    }
    return [found[width] for width in sorted(found)]


def _mixing(results: Results, row: Row, quantity: str) -> Mixing:
    num = results.settings["num_projections"]
    # Blom's expected range of `num` normal values with unit variance, times the root that a mean gains.
    ranges = 2 * float(norm.ppf((num - 3 / 8) / (num + 1 / 4))) * math.sqrt(num)
    steps = dict(zip(results.settings["samplers"], results.settings["num_steps"], strict=True))[
        row["sampler"]
    ]
    kinds = ("ess",) if quantity == "predictions" else ("ess", "ess_bulk", "ess_tail")
    per_step = [row[f"{kind}_{quantity}"] for kind in kinds]
    every = [ess and ess * steps for ess in per_step]
    if not is_resolved(*every):
        measure = Measure(math.nan)
    elif quantity == "weights":
        spread = row["ess_high_weights"] - row["ess_low_weights"]
        measure = Measure(per_step[0], spread / ranges)
    else:  # those of one image after another are not independent
        measure = ess_with_error(every[0]) / steps
    moves = Measure(row["acceptance"] + 1 / steps, row["acceptance_error"])
    return Mixing(
        row["width"], results.settings["num_train"], measure, behind(every).ess, moves, row["ms_per_step"]
    )
