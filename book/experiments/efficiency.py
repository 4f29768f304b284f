"""Effective samples per second: samplers on one target over width, and one sampler on three targets."""

import math
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import jax
import numpy as np

from book.experiments.chain_summaries import behind, is_resolved, jackknife, of_chains
from book.experiments.clock import Clock, step_times, steps
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.own_samplers import METHODS
from book.experiments.posterior import Posterior, dense, size
from widebnn.diagnostics import effective_sample_size, random_projections
from widebnn.driver import Draws, sample
from widebnn.samplers import tuned
from widebnn.tables import Measure, Results, Row

TARGETS = ("repriorised", "marginal", "rotated")
"""All of φ; without the readout; and without the weights that no image sees."""

ROUNDS = 5  # of timings
MAX_DRAWS = 2_000  # that are kept of a chain; longer runs are thinned


@experiment(SETTINGS["efficiency"])
def efficiency(
    dataset,
    num_train,
    num_test,
    widths,
    samplers,
    work,
    compared_width,
    compared_steps,
    num_chains,
    burn_in,
    num_projections,
    timed_seconds,
    noise_std,
    seed,
) -> Iterator[Row]:
    """Effective samples per second of samplers and of targets, in a network with one hidden layer.

    The figure of merit is the least effective sample size over the potential, random projections of the
    weights that the data inform, and Rao–Blackwellised predictions on the part of test images that lies in
    the span of the training images. A step is timed apart, on one chain, all samplers of a width in turn.

    The papers report no effective samples per second, and the scale "paper" is a size chosen for a GPU.

    Yields
    ------
    Rows with width, target, sampler; dimension of the chain; step_size as tuned (None where there is none)
    and acceptance; num_steps, ess and ess_per_step with its standard error (jackknife over chains); worst,
    what has the least effective samples; ms_per_step, ess_per_second; and the potential's mean over the chain
    with its standard error, and its standard deviation.
    """
    dataset = images(dataset, num_train, num_test)
    for width in dict.fromkeys((compared_width, *widths)):
        posterior = dense(dataset, width, 1, noise_std, seed)
        runs = []
        if width == compared_width:
            runs += [("HMC", kind, compared_steps) for kind in TARGETS]
        if width in widths:
            lengths = {name: work // (width * METHODS[name].cost) for name in samplers}
            runs += [(name, "rotated", max(burn_in, num_steps)) for name, num_steps in lengths.items()]
        rng_key = jax.random.fold_in(jax.random.key(seed), width)
        found = _run(rng_key, posterior, runs, burn_in, num_chains, num_projections)
        rows, clocks = zip(*found, strict=True)
        rounds = step_times(clocks, timed_seconds, ROUNDS)
        for row, ms in zip(rows, np.median(rounds, axis=0), strict=True):
            yield {"width": width} | timed(row, float(ms))


def _run(
    rng_key, posterior: Posterior, runs, burn_in: int, num_chains: int, num_projections: int
) -> Iterator[tuple[Row, Clock]]:
    """What is said of each run, and the clock of the sampler as tuned."""
    projection_key, start_key, unseen_key, rng_key = jax.random.split(rng_key, 4)
    rotated = posterior.rotated
    project = random_projections(projection_key, rotated.template, num=num_projections)
    start = posterior.equilibrium(start_key, burn_in, num_chains).position
    unseen_keys = jax.random.split(unseen_key, num_chains)
    parameters = jax.jit(jax.vmap(rotated.to_parameters))(start, unseen_keys)
    for name, kind, num_steps in runs:
        target = getattr(posterior, kind)
        sampler = METHODS[name].sampler
        is_tuned = isinstance(sampler, tuned)
        thin = -(-num_steps // MAX_DRAWS)
        initial = jax.jit(jax.vmap(target.from_parameters))(parameters)
        draws = sample(
            rng_key,
            target,
            sampler,
            num_samples=num_steps // thin,
            thin=thin,
            burn_in=max(burn_in, num_steps // 10) if is_tuned else 0,
            num_chains=num_chains,
            initial=initial,
            collect=posterior.collect(target, project),
        )
        row = {"target": kind, "sampler": name, "dimension": size(target)} | of_chains(draws) | counted(draws)
        if isinstance(sampler, tuned):
            assert draws.step_size is not None
            sampler = sampler.at(draws.step_size)
        yield row, steps(target, sampler, jax.tree.map(lambda leaf: leaf[0], initial))


def counted(draws: Draws) -> Row:
    """Steps of a chain, the least effective samples and of what, and per step with the error over chains."""
    num_steps = draws["potential"].shape[1] * draws.thin
    ess, worst = least(draws.collected)

    def per_step(collected: Mapping[str, np.ndarray]) -> float:
        return least(collected)[0] / (len(collected["potential"]) * num_steps)

    rate = jackknife(per_step, dict(draws.collected))
    return {"num_steps": num_steps, "ess": ess, "worst": worst} | rate.columns("ess_per_step")


def timed(row: Row, ms: float) -> Row:
    """A row with what `counted` says, the milliseconds of a step, and effective samples per second."""
    return row | {"ms_per_step": ms, "ess_per_second": 1e3 * row["ess_per_step"] / ms}


def least(collected: Mapping[str, np.ndarray]) -> tuple[float, str]:
    """The least effective sample size, 0 of a chain that never moved, and of what it is."""
    sizes = {
        name: float(np.nan_to_num(effective_sample_size(values)).min()) for name, values in collected.items()
    }
    worst = min(sizes, key=sizes.__getitem__)
    return sizes[worst], worst


PAPERS = ("pCN", "pCNL", "Langevin")


@efficiency.claim("X-1")
def faster(results: Results) -> Iterator[Finding]:
    for width in sorted(results.rows.where(sampler="unit-wise").values("width")):
        here = results.rows.where(width=width, target="rotated")
        best = max((row for row in here if row["sampler"] in PAPERS), key=itemgetter("ess_per_second"))
        for name in ("function-space HMC", "unit-wise"):
            what = f"width {width:,}: ESS per second, {name} ÷ {best['sampler']}, log₁₀"
            yield _gain(results, what, here.one(sampler=name), best, "ess_per_second", above=0)


@efficiency.claim("P-C2")
def langevin_leads_where_narrow(results: Results) -> Iterator[Finding]:
    here = results.rows.where(width=min(results.rows.values("width")), target="rotated")
    langevin, pcn, pcnl = (here.one(sampler=name) for name in ("Langevin", "pCN", "pCNL"))
    best = max(pcn, pcnl, key=itemgetter("ess_per_step"))
    what = f"width {best['width']:,}: ESS per step, Langevin ÷ {best['sampler']}, log₁₀"
    yield _gain(results, what, langevin, best, "ess_per_step", above=0)


@efficiency.claim("X-2")
def targets_agree(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, results.settings["num_chains"] - 1
    whole = rows.one(sampler="HMC", target="repriorised")
    potential = Measure.of(whole, "potential")
    for row in (row for row in rows.where(sampler="HMC") if row is not whole):
        shift = (Measure.of(row, "potential") - potential) / whole["potential_std"]
        what = f"{row['target']} against {whole['target']}"
        yield Finding(f"{what}: shift of U in its deviations", shift, above=-0.5, below=0.5, degrees=degrees)
        is_rotated = row["target"] == "rotated"
        interval: dict[str, Any] = {"above": 0} if is_rotated else {"above": -0.3, "below": 0.3}
        words = f"{what}: ESS per {{}}, log₁₀ of the ratio"
        yield _gain(results, words.format("step"), row, whole, "ess_per_step", **interval)
        judged: dict[str, Any] = {"above": 0, "decides": is_rotated}
        yield _gain(results, words.format("second"), row, whole, "ess_per_second", **judged)


def _gain(results: Results, what: str, row: Row, other: Row, column: str, **judged: Any) -> Finding:
    """log₁₀ of a ratio, whose error is that of the effective samples; times are medians."""
    relative = [one["ess_per_step_error"] / one["ess_per_step"] for one in (row, other)]
    ratio = Measure(math.log10(row[column] / other[column]), math.hypot(*relative) / math.log(10))
    ess = row["ess"], other["ess"]
    known = {"degrees": results.settings["num_chains"] - 1, "resolved": is_resolved(*ess)}
    return Finding(what, ratio, chains=behind(ess), **known, **judged)
