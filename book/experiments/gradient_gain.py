"""Whether a gradient pays: effective samples of pCN and of pCNL, per step and per second."""

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from book.experiments.chain_summaries import behind, finite, is_resolved, pooled_ess_per_draw
from book.experiments.clock import median_error, step_times, steps
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.over_width import over_widths
from book.experiments.own_samplers import METHODS
from book.experiments.posterior import SAMPLERS, dense
from widebnn.diagnostics import convergence_summary, random_projections
from widebnn.driver import Draws, sample
from widebnn.samplers import tuned
from widebnn.tables import Measure, Results, Row

COMPARED = ("pCN", "pCNL")


@experiment(SETTINGS["gradient_gain"])
def gradient_gain(
    dataset,
    num_train,
    width,
    step_size,
    num_steps,
    num_tuned_steps,
    burn_in,
    num_chains,
    thin,
    num_projections,
    num_rounds,
    timed_seconds,
    noise_std,
    seed,
) -> Iterator[Row]:
    """Effective samples per second of pCN and of pCNL, in a network with one hidden layer.

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
    dataset = images(dataset, num_train, num_test=1)
    posterior = dense(dataset, width, 1, noise_std, seed)
    projection_key, start_key, rng_key = jax.random.split(jax.random.key(seed), 3)
    rotated = posterior.rotated
    project = random_projections(projection_key, rotated.template, num=num_projections)
    start = posterior.equilibrium(start_key, burn_in, num_chains).position
    common = {name: SAMPLERS[name](posterior, step_size) for name in COMPARED}
    rows = []
    for name in COMPARED:
        for sampler, length in (common[name], num_steps), (METHODS[name].sampler, num_tuned_steps):
            is_tuned = isinstance(sampler, tuned)
            draws = sample(
                rng_key,
                rotated,
                sampler,
                num_samples=length // thin,
                thin=thin,
                burn_in=length if is_tuned else 0,
                num_chains=num_chains,
                initial=start,
                collect={"weights": project},
            )
            size = draws.step_size if is_tuned else step_size
            rows.append({"sampler": name, "is_tuned": is_tuned, "step_size": size} | _summary(draws))
    one_chain = jax.tree.map(lambda leaf: leaf[0], start)
    clocks = [steps(rotated, sampler, one_chain) for sampler in common.values()]
    rounds = step_times(clocks, timed_seconds, num_rounds)
    for row in rows:
        ms = rounds[:, COMPARED.index(row["sampler"])]
        ratio = ms / rounds[:, 0]
        relative = Measure(float(np.median(ratio)), median_error(ratio))
        yield row | {"ms_per_step": float(np.median(ms))} | relative.columns("relative_time")


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


@gradient_gain.claim("P-C")
def pcn_suffices(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    beta = results.settings["step_size"]
    shared = [run for run in beside if run.name == "mixing_over_width"]
    for quantity, name in (("weights", "weights"), ("potential", "U")):
        of_pcn, of_pcnl = (over_widths(shared, beta, sampler, quantity) for sampler in COMPARED)
        pairs = list(zip(of_pcn, of_pcnl, strict=True))
        for pcn, pcnl in pairs if quantity == "weights" else pairs[-1:]:
            at = f"n = {pcn.num_train:,}, width {pcn.width:,}, β = {beta:g}"
            yield Finding(
                f"ESS of {name} per second, pCNL ÷ pCN, {at}",
                pcnl.per_step / pcn.per_step / (pcnl.ms_per_step / pcn.ms_per_step),
                below=1,
                chains=behind((pcn.least, pcnl.least)),
            )
    for run in (run for run in beside if run.name == "efficiency"):
        rows = run.rows.where(width=max(run.rows.values("width")))
        pcn, pcnl = (rows.one(sampler=name) for name in COMPARED)
        per_step = Measure.of(pcnl, "ess_per_step") / Measure.of(pcn, "ess_per_step")
        at = f"n = {run.settings['num_train']:,}, width {pcn['width']:,}, each β tuned"
        yield Finding(
            f"least ESS per second, pCNL ÷ pCN, {at}",
            per_step / (pcnl["ms_per_step"] / pcn["ms_per_step"]),
            below=1,
            degrees=run.settings["num_chains"] - 1,
            resolved=is_resolved(pcn["ess"], pcnl["ess"]),
            chains=behind((pcn["ess"], pcnl["ess"])),
        )
    for run in sorted((one for one in (*beside, results) if one.name == results.name), key=_width):
        yield from _timed(run)


def _width(run: Results) -> int:
    return run.settings["width"]


def _timed(results: Results) -> Iterator[Finding]:
    """Effective samples per second, pCNL ÷ pCN, of one run of `gradient_gain`."""
    degrees = min(results.settings["num_chains"], results.settings["num_rounds"]) - 1
    width, num_train = (results.settings[name] for name in ("width", "num_train"))
    for is_tuned, rows in results.rows.by("is_tuned"):
        pcn, pcnl = (rows.one(sampler=name) for name in COMPARED)
        of_pcn, of_pcnl = (
            rows.where(sampler=name).measure("ess_per_step", "ess_per_step_error") for name in COMPARED
        )
        sizes = [row[kind] for row in (pcn, pcnl) for kind in ("ess_bulk", "ess_tail")]
        how = "each β tuned" if is_tuned else f"β = {results.settings['step_size']:g}"
        yield Finding(
            f"ESS of weights per second, pCNL ÷ pCN, n = {num_train:,}, width {width:,}, {how}",
            of_pcnl / of_pcn / Measure.of(pcnl, "relative_time"),
            below=1,
            degrees=degrees,
            resolved=is_resolved(*sizes),
            chains=behind(sizes, [pcn["rhat"], pcnl["rhat"]]),
        )
