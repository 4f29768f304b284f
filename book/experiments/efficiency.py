"""Effective samples per second: samplers on one target over width, and one sampler on three targets."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
from book.experiments.chain_summaries import behind, is_resolved, jackknife, mean_of_chains
from book.experiments.configuration import Configuration, Count, Counts, Positive, Several
from book.experiments.experiment import experiment
from book.experiments.fields import Images, Noise, NumProjections, NumTest, NumTrain, Seed
from book.experiments.findings import Finding
from book.experiments.images import images
from book.experiments.posterior import Posterior, one_layer, size
from book.experiments.step_times import step_times
from widebnn import samplers
from widebnn._check import one_of
from widebnn.diagnostics import effective_sample_size, random_projections
from widebnn.samplers import tuned
from widebnn.sampling import Draws, sample
from widebnn.tables import Measure, Results, Row
from widebnn.tree import Position

__all__ = ["METHODS", "Efficiency", "efficiency"]


class Method(NamedTuple):
    """From a target to a sampler, tuned where it has a step size; and the cost of a step in potentials."""

    make: Callable[[Any], samplers.Sampler | samplers.Tuned]
    cost: int


METHODS: Mapping[str, Method] = {
    "pCN": Method(lambda t: tuned(partial(samplers.pcn, t.potential), 0.25), 1),
    "pCNL": Method(lambda t: tuned(partial(samplers.pcnl, t.potential), 0.6), 3),
    "Langevin": Method(lambda t: tuned(partial(samplers.langevin, t.potential, damping=0.01), 0.9), 3),
    "HMC": Method(lambda t: tuned(partial(samplers.hmc, t.potential, num_steps=10), 0.8), 30),
    "function-space HMC": Method(
        lambda t: tuned(
            partial(samplers.function_space_hmc, t.potential, num_steps=6, jitter=0.2),
            0.8,
            max_step_size=math.pi / 2,
        ),
        18,
    ),
    "unit-wise": Method(samplers.unitwise, 10),
}
"""By name. Those of the papers have the settings that `python -m benchmarks` finds best at width 1,024."""

GRID = ("pCN", "pCNL", "Langevin", "function-space HMC", "unit-wise")
TARGETS = ("repriorised", "marginal", "rotated")
"""All of φ; without the readout; and without the weights that no image sees."""

ROUNDS = 5  # of timings
MAX_DRAWS = 2_000  # that are kept of a chain; longer runs are thinned


class Efficiency(Configuration):
    """The grid of samplers, and where three targets are compared."""

    dataset: Images = "cifar10"
    num_train: NumTrain = 32
    num_test: NumTest = 20
    widths: Annotated[Counts, "Part of the grid, all on the rotated marginal target."] = (16, 64, 256, 1_024)
    samplers: Annotated[tuple[str, ...], partial(one_of, METHODS), "Part of the grid."] = GRID
    work: Annotated[Count, "Of each chain of the grid, in potentials times width."] = 1_000_000
    compared_width: Annotated[Count, "Where HMC runs on each of three targets."] = 64
    compared_steps: Annotated[Count, "Its proposals there."] = 800
    num_chains: Annotated[Several, "Chains, all from the posterior."] = 4
    burn_in: Annotated[Count, "HMC proposals that lead there, and the least steps for tuning."] = 200
    num_projections: NumProjections = 50
    timed_seconds: Annotated[Positive, "Of one of five timings of a sampler's steps."] = 0.3
    noise_std: Noise = 0.1
    seed: Seed = 0


@experiment(
    "effective samples per second of samplers and of targets",
    scales={
        "smoke": Efficiency(
            dataset="digits",
            num_train=8,
            num_test=5,
            widths=(64,),
            samplers=("pCN", "unit-wise"),
            work=30_000,
            compared_width=16,
            compared_steps=50,
            num_chains=2,
            burn_in=50,
            num_projections=10,
            timed_seconds=0.02,
        ),
        "laptop": Efficiency(num_chains=10, seed=1),
        "colab": Efficiency(
            num_train=256,
            num_test=100,
            widths=(128, 512, 1_024, 2_048, 4_096, 8_192),
            work=40_000_000,
            compared_width=512,
            num_projections=100,
        ),
        "paper": Efficiency(
            num_train=256,
            num_test=100,
            widths=(128, 512, 1_024, 2_048, 4_096, 8_192, 16_384),
            work=400_000_000,
            compared_width=1_024,
            compared_steps=2_000,
            num_projections=100,
        ),
    },
)
def efficiency(config: Efficiency) -> Iterator[Row]:
    """What a second of each sampler is worth in the posterior of a network with one hidden layer.

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
    dataset = images(config.dataset, config.num_train, config.num_test)
    for width in dict.fromkeys((config.compared_width, *config.widths)):
        posterior = one_layer(dataset, width, config.noise_std, config.seed)
        rows, cases = zip(*_runs(config, posterior, width), strict=True)
        rounds = step_times(cases, config.timed_seconds, ROUNDS)
        for row, ms in zip(rows, np.median(rounds, axis=0), strict=True):
            speed = {"ms_per_step": float(ms), "ess_per_second": 1e3 * row["ess_per_step"] / float(ms)}
            yield {"width": width} | row | speed


def _runs(config: Efficiency, posterior: Posterior, width: int) -> Iterator[tuple[Row, tuple[Any, Position]]]:
    """What is said of each run, and the sampler as tuned with where one chain of it starts."""
    rng_key = jax.random.fold_in(jax.random.key(config.seed), width)
    projection_key, start_key, unseen_key, rng_key = jax.random.split(rng_key, 4)
    rotated = posterior.rotated
    project = random_projections(projection_key, rotated.template, num=config.num_projections)
    start = posterior.equilibrium(start_key, config.burn_in, config.num_chains).position
    unseen_keys = jax.random.split(unseen_key, config.num_chains)
    parameters = jax.jit(jax.vmap(rotated.to_parameters))(start, unseen_keys)
    runs = []
    if width == config.compared_width:
        runs += [("HMC", kind, config.compared_steps) for kind in TARGETS]
    if width in config.widths:
        steps = {name: config.work // (width * METHODS[name].cost) for name in config.samplers}
        runs += [(name, "rotated", max(config.burn_in, num_steps)) for name, num_steps in steps.items()]
    for name, kind, num_steps in runs:
        target = getattr(posterior, kind)
        sampler = METHODS[name].make(target)
        is_tuned = isinstance(sampler, samplers.Tuned)
        thin = -(-num_steps // MAX_DRAWS)
        initial = jax.jit(jax.vmap(target.from_parameters))(parameters)
        draws = sample(
            rng_key,
            sampler,
            target,
            num_samples=num_steps // thin,
            thin=thin,
            burn_in=max(config.burn_in, num_steps // 10) if is_tuned else 0,
            num_chains=config.num_chains,
            initial=initial,
            collect=posterior.collect(target, project),
        )
        row = {"target": kind, "sampler": name, "dimension": size(target)} | _summary(draws)
        made = sampler.make(draws.step_size) if is_tuned else sampler
        yield row, (made, jax.tree.map(lambda leaf: leaf[0], initial))


def _summary(draws: Draws) -> Row:
    num_draws = draws["potential"].shape[1]
    num_steps = num_draws * draws.thin
    ess, worst = _least(draws.collected)

    def per_step(collected: Mapping[str, np.ndarray]) -> float:
        return _least(collected)[0] / (len(collected["potential"]) * num_steps)

    u = draws["potential"].astype(np.float64)
    return {
        "step_size": draws.step_size,
        "acceptance": draws.acceptance_rate,
        "num_steps": num_steps,
        "ess": ess,
        "worst": worst,
        **jackknife(per_step, dict(draws.collected)).columns("ess_per_step"),
        **mean_of_chains(u).columns("potential"),
        "potential_std": float(u.std()),
    }


def _least(collected: Mapping[str, np.ndarray]) -> tuple[float, str]:
    """The least effective sample size, and of what it is."""
    sizes = {name: float(np.min(effective_sample_size(values))) for name, values in collected.items()}
    worst = min(sizes, key=sizes.__getitem__)
    return sizes[worst], worst


PAPERS = ("pCN", "pCNL", "Langevin")


@efficiency.claim(
    "X-1",
    claim="Function-space HMC and the unit-wise sampler outrun every sampler of the papers, per second and "
    "over width.",
    rule="By the least effective samples per second of U, projections of the weights and predictions, on "
    "one target: at each width function-space HMC and the unit-wise sampler each have more than the "
    "best of pCN, pCNL and Langevin. Errors are judged by Student's t.",
    would_change="n = 256, at colab scale: with 32 images the widest networks are nearly at their limit, "
    "where every sampler is fast.",
    page="14-faster#fig-efficiency",
)
def faster(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, results.settings["num_chains"] - 1
    for width in sorted(rows.where(sampler="unit-wise").values("width")):
        here = rows.where(width=width, target="rotated")
        best = max((row for row in here if row["sampler"] in PAPERS), key=lambda row: row["ess_per_second"])
        for name in ("function-space HMC", "unit-wise"):
            what = f"width {width:,}: ESS per second, {name} ÷ {best['sampler']}, log₁₀"
            gain = _gain(here.one(sampler=name), best, "ess_per_second")
            ess = here.one(sampler=name)["ess"], best["ess"]
            known = {"degrees": degrees, "resolved": is_resolved(*ess), "chains": behind(ess)}
            yield Finding(what, gain, above=0, **known)


@efficiency.claim(
    "X-2",
    claim="Marginalising the readout and rotating the inputs change no posterior. Without the readout, "
    "which is a few independent coordinates, a step is worth as much as one on all of φ; with inputs rotated "
    "too, a second is worth more.",
    rule="Of HMC on all of φ, without the readout, and with inputs rotated too. Effective samples per second "
    "of the last ÷ the first decide: the logarithm is above 0. Shown are that the mean of U is that on all "
    "of φ (to half of its deviation), and effective samples per step, which without the readout are as many "
    "(to 0.3 of their logarithm, a factor of two). Errors are judged by Student's t.",
    would_change="More images or a wider network, and a peer that tunes its number of leapfrog steps.",
    page="14-faster#fig-cifar10",
)
def targets_agree(results: Results) -> Iterator[Finding]:
    rows, degrees = results.rows, results.settings["num_chains"] - 1
    whole = rows.one(sampler="HMC", target="repriorised")
    potential = Measure.of(whole, "potential")
    for row in (row for row in rows.where(sampler="HMC") if row is not whole):
        shift = (Measure.of(row, "potential") - potential) / whole["potential_std"]
        what = f"{row['target']} against {whole['target']}"
        yield Finding(f"{what}: shift of U in its deviations", shift, above=-0.5, below=0.5, degrees=degrees)
        is_rotated = row["target"] == "rotated"
        ess = row["ess"], whole["ess"]
        known = {"degrees": degrees, "resolved": is_resolved(*ess), "chains": behind(ess)}
        interval = {"above": 0} if is_rotated else {"above": -0.3, "below": 0.3}
        words = f"{what}: ESS per {{}}, log₁₀ of the ratio"
        yield Finding(words.format("step"), _gain(row, whole, "ess_per_step"), **interval, **known)
        per_second = _gain(row, whole, "ess_per_second")
        yield Finding(words.format("second"), per_second, above=0, decides=is_rotated, **known)


def _gain(row: Row, other: Row, column: str) -> Measure:
    """log₁₀ of a ratio, whose error is that of the effective samples; times are medians."""
    relative = [one["ess_per_step_error"] / one["ess_per_step"] for one in (row, other)]
    return Measure(math.log10(row[column] / other[column]), math.hypot(*relative) / math.log(10))
