"""How far chains move on whitened layers, and on weights, over depth and width."""

from collections.abc import Iterator

import jax

from book.experiments.chain_summaries import behind, of_chains
from book.experiments.experiment import SETTINGS, experiment
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.own_samplers import METHODS, kicks
from book.experiments.posterior import WATCHED, dense
from book.experiments.trends import degrees_of_freedom
from widebnn import targets
from widebnn.diagnostics import convergence
from widebnn.driver import sample
from widebnn.tables import Measure, Results, Row

TARGETS = {"weights": targets.rotated, "whitened": targets.whitened}
"""By what a chain moves on. Inputs are rotated in both: where there is one layer they are the same."""


@experiment(SETTINGS["whitening"], parts=("widths", "depths"))
def whitening(
    dataset, num_train, widths, depths, num_repeats, num_chains, num_samples, burn_in, noise_std, seed
) -> Iterator[Row]:
    """Function-space HMC on weights and on whitened layers, over depth and width.

    Trajectories are of one radian and the angle is tuned to an acceptance of 0.8. The scale "paper" is a size
    chosen for a GPU.

    Yields
    ------
    Rows with depth, width, target ("weights" or "whitened"; with one hidden layer these are one target) and
    repeat; step_size as tuned, acceptance; kicks of a proposal; ess, the least over U and ten entries of ΨΨᵀ,
    and rhat, the largest; ess_per_gradient; the mean of the potential with its standard error, and its
    standard deviation.
    """
    dataset = images(dataset, num_train, 1)
    for width in widths:
        for depth in depths:
            for name in TARGETS if depth > 1 else ("whitened",):
                for repeat in range(num_repeats):
                    target = TARGETS[name](dense(dataset, width, depth, noise_std).marginal)
                    number = 1_000 * width + 100 * depth + repeat
                    rng_key = jax.random.fold_in(jax.random.key(seed), number)
                    found = _run(rng_key, target, num_samples, burn_in, num_chains)
                    yield {"depth": depth, "width": width, "target": name, "repeat": repeat} | found


def _run(rng_key, target, num_samples: int, burn_in: int, num_chains: int) -> Row:
    draws = sample(
        rng_key,
        target,
        METHODS["function-space HMC, one radian"].sampler,
        num_samples=num_samples,
        burn_in=burn_in,
        num_chains=num_chains,
        collect=WATCHED,
        progress=False,
    )
    found = [convergence(values) for values in draws.collected.values()]
    ess, num_kicks = float(min(one.ess.min() for one in found)), int(kicks(draws))
    return of_chains(draws) | {
        "kicks": num_kicks,
        "ess": ess,
        "rhat": float(max(one.rhat.max() for one in found)),
        "ess_per_gradient": ess / (num_kicks * num_chains * num_samples),
    }


@whitening.claim("X-6")
def as_easy(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, degrees_of_freedom(results)
    deepest, widths = max(rows.values("depth")), sorted(rows.values("width"))

    def over_runs(column: str, **where) -> Measure:
        return Measure.mean([row[column] for row in rows.where(**where)])

    widest = {"width": widths[-1], "target": "whitened"}
    ratio = over_runs("ess_per_gradient", depth=deepest, **widest) / over_runs(
        "ess_per_gradient", depth=1, **widest
    )
    what = f"width {widths[-1]:,}: ESS per gradient, {deepest} layers ÷ 1"
    compared = [row for row in rows.where(**widest) if row["depth"] in (1, deepest)]
    chains = behind((row["ess"] for row in compared), (row["rhat"] for row in compared))
    yield Finding(what, ratio, above=0.75, degrees=degrees, chains=chains)
    for width in widths:
        here = {"width": width, "depth": deepest}
        angles = {name: over_runs("step_size", target=name, **here) for name in TARGETS}
        longer = angles["whitened"] / angles["weights"]
        yield Finding(f"width {width:,}: angle, whitened ÷ weights", longer, above=1.25, degrees=degrees)
        means = {name: over_runs("potential", target=name, **here) for name in TARGETS}
        deviation = over_runs("potential_std", target="weights", **here).value
        shift = (means["whitened"] - means["weights"]) / deviation
        what = f"width {width:,}: shift of U in its deviations"
        yield Finding(what, shift, above=-0.25, below=0.25, degrees=degrees)
