"""R̂ and traces of three chains from the prior, over width (Pezzetti et al. 2025, Figures 3 to 6)."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from book.experiments.chain_summaries import at_checkpoints, behind, trace_summary
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Chains, Finding
from book.experiments.images import images
from book.experiments.posterior import LMC, SAMPLERS, Posterior, dense, prior
from book.experiments.trends import degrees_of_freedom
from widebnn import samplers, targets
from widebnn.diagnostics import convergence_summary, random_projections
from widebnn.driver import sample
from widebnn.tables import Measure, Results, Row, Rows

PRIOR = "pCN, U = 0"  # chains of pCN on the prior, in equilibrium from the first draw


@experiment(SETTINGS["convergence"], parts=("widths", "repeats", ("samplers", "num_steps")))
def convergence(
    dataset,
    num_train,
    num_test,
    widths,
    samplers,
    num_steps,
    num_checkpoints,
    step_size,
    num_chains,
    thin,
    num_projections,
    noise_std,
    repeats,
    seed,
) -> Iterator[Row]:
    """R̂ and traces of three chains from the prior, while they run, over width.

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
    dataset = images(dataset, num_train, num_test)
    for width in widths:
        posterior = dense(dataset, width, 1, noise_std, seed)
        template = posterior.rotated.template
        for repeat in repeats:
            repeat_key = jax.random.fold_in(jax.random.key(seed), repeat)
            projection_key, rng_key = jax.random.split(repeat_key)
            project = random_projections(projection_key, template, num=num_projections)
            collect = posterior.collect(posterior.rotated, project)
            for name, steps in zip(samplers, num_steps, strict=True):
                sampler, target = _chain(posterior, name, step_size)
                draws = sample(
                    rng_key,
                    target,
                    sampler,
                    num_samples=steps // thin,
                    thin=thin,
                    burn_in=0,
                    num_chains=num_chains,
                    collect=collect | {"position": _flat},
                )
                point = {"width": width, "num_test": len(dataset.x_test), "sampler": name, "repeat": repeat}
                rows = at_checkpoints(draws, num_checkpoints, collect, convergence_summary)
                rows[-1] |= trace_summary(draws["position"], thin=thin)
                if repeat > 0:  # one is enough to draw
                    del rows[-1]["pc_traces"]
                yield from (point | row for row in rows)


def _chain(posterior: Posterior, name: str, step_size: float) -> tuple[samplers.Sampler, targets.Target]:
    """A sampler by its name, and what it samples."""
    if name == PRIOR:
        return samplers.pcn(step_size), prior(posterior.rotated.template)
    return SAMPLERS[name](posterior, step_size), posterior.rotated


def _flat(target, position):
    return ravel_pytree(position)[0]


@experiment(SETTINGS["other_steps"], parts=("step_sizes", "widths", "repeats"))
def other_steps(step_sizes, **settings) -> Iterator[Row]:
    """R̂ and traces at other steps: the rows of `convergence` with `step_size`."""
    for step_size in step_sizes:
        for row in convergence(step_size=step_size, **settings):
            yield {"step_size": step_size} | row


BETWEEN = "share of variance between chains, less the share at U = 0"


@convergence.claim("P-F3")
def disagreement(results: Results) -> Iterator[Finding]:
    def rhat(name, quantity):
        return _at_the_end(results, name, f"rhat_squared_{quantity}")

    def finding(what, name, quantity, *places, **bounds):
        """At a place among the widths, less that at a second if there is one."""
        first, *less = (rhat(name, quantity)[:, place] for place in places)
        chains = _chains(results, *((name, place) for place in places), quantity=quantity)
        return _finding(results, what, first - sum(less), chains=chains, **bounds)

    for quantity in ("weights", "predictions"):
        halfway = _at(results, "pCN", f"rhat_squared_{quantity}", share=1 / 2)
        what = f"pCN, {quantity}: halfway, widest less narrowest"
        yield _finding(results, what, halfway[:, -1] - halfway[:, 0], below=0)
        what, highest = f"pCN, {quantity}: widest", int(rhat("pCNL", quantity).mean(axis=0).argmax())
        yield finding(f"{what} less narrowest", "pCN", quantity, -1, 0, below=0)
        yield finding(what, "pCN", quantity, -1, below=1.2)
        yield finding(f"pCNL, {quantity}: greatest over widths", "pCNL", quantity, highest, below=1.2)
    for lmc, name in LMC.items():  # the claim is not of predictions
        yield finding(f"{lmc}, weights: widest less narrowest", name, "weights", -1, 0, above=0)


@convergence.claim("P-F4")
def langevin_traces(results: Results) -> Iterator[Finding]:
    for lmc, name in LMC.items():
        chains = _chains(results, (name, 0), (name, -1))

        def change(what, found, chains=chains, lmc=lmc, **bounds):
            return _finding(
                results,
                f"{lmc}, {what}: widest less narrowest",
                found[:, -1] - found[:, 0],
                chains=chains,
                **bounds,
            )

        decides = name == "Langevin, γ = 0.01"
        yield change(
            "R-hat of weights", _at_the_end(results, name, "rhat_squared_weights"), above=0, decides=decides
        )
        yield change(
            "log₁₀ ESS of weights", np.log10(_at_the_end(results, name, "ess_bulk_weights")), below=0
        )
        yield change(BETWEEN, _excess(results, name), above=0)


@other_steps.claim("P-F4b")
def traces_at_other_steps(results: Results) -> Iterator[Finding]:
    for beta in results.rows.values("step_size"):
        at = replace(results, rows=results.rows.where(step_size=beta))
        excess = {name: _excess(at, name) for name in ("pCN", "Langevin, γ = 0.01", "pCNL")}
        for name, bound in (("pCN", {"below": 0}), ("Langevin, γ = 0.01", {"above": 0})):
            change = excess[name][:, -1] - excess[name][:, 0]
            chains = _chains(at, (name, 0), (name, -1))
            what = f"{name}, β = {beta:g}, {BETWEEN}: widest less narrowest"
            yield _finding(at, what, change, chains=chains, **bound)
        lead = (excess["pCNL"] - excess["pCN"])[:, 0]
        chains = _chains(at, ("pCNL", 0), ("pCN", 0))
        yield _finding(at, f"β = {beta:g}, narrowest: pCNL less pCN", lead, below=0, chains=chains)


@convergence.claim("P-F5")
def pcn_traces(results: Results) -> Iterator[Finding]:
    excess, chains = _excess(results, "pCN"), _chains(results, ("pCN", 0), ("pCN", -1))
    what, less = f"{BETWEEN}: widest less narrowest", excess[:, -1] - excess[:, 0]
    yield _finding(results, what, less, below=0, decides=True, chains=chains)


@convergence.claim("P-F6")
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
    return _at(results, sampler, column, share=1.0)


def _at(results: Results, sampler: str, column: str, *, share: float) -> Float[np.ndarray, "repeat width"]:
    """The same, at the first checkpoint by which so large a share of the steps is made."""
    rows = results.rows.where(sampler=sampler)
    steps = rows.values("step")
    then = min(step for step in steps if step >= share * max(steps))
    in_order = Rows(sorted(rows.where(step=then), key=lambda row: (row["repeat"], row["width"])))
    return in_order.column(column).astype(float).reshape(len(in_order.values("repeat")), -1)
