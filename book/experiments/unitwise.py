"""Fresh prior draws of single units: how often they are accepted, and what a sweep is worth, over width."""

from collections.abc import Iterator

import jax

from book.experiments.chain_summaries import behind, ess_per_step, mean_of_chains
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.posterior import dense
from book.experiments.trends import vanishing
from widebnn import samplers
from widebnn.collectors import potential
from widebnn.diagnostics import convergence_summary, random_projections
from widebnn.driver import sample
from widebnn.tables import Results, Row


@experiment(SETTINGS["unitwise"], parts="widths")
def unitwise(
    dataset, num_train, widths, num_chains, num_sweeps, burn_in, num_projections, noise_std, seed
) -> Iterator[Row]:
    """Unit-wise chains on the posterior of a network with one hidden layer, over its width.

    The scale "paper" is a size chosen for a GPU.

    Yields
    ------
    Rows with width; rejection, the mean share of fresh units that are rejected; effective samples per sweep
    of the potential and of the weights (the mean over random projections) as ess_potential and ess_weights;
    each with its standard error, that of the effective samples from the scatter over chains; R̂ of the
    potential and of the weights as rhat_potential and rhat_weights.
    """
    dataset = images(dataset, num_train, 1)
    for width in widths:
        target = dense(dataset, width, 1, noise_std, seed).rotated
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), width))
        draws = sample(
            keys[0],
            target,
            samplers.unitwise(),
            num_samples=num_sweeps,
            burn_in=burn_in,
            num_chains=num_chains,
            collect={
                "potential": potential,
                "weights": random_projections(keys[1], target.template, num=num_projections),
            },
        )
        row = {"width": width} | mean_of_chains(1 - draws.stats["acceptance_rate"]).columns("rejection")
        for name in ("potential", "weights"):
            row |= ess_per_step(draws[name], num_sweeps).columns(f"ess_{name}")
            row[f"rhat_{name}"] = convergence_summary(draws[name])["rhat"]
        yield row


@unitwise.claim("X-5")
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
