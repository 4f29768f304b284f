"""What repriorisation gains Langevin Monte Carlo: width, data and architecture (Hron et al. 2022)."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from book.experiments.chain_summaries import (
    LEAST_DRAWS,
    behind,
    convergence_summary,
    ess_with_error,
    is_resolved,
    pooled_ess_per_draw,
)
from book.experiments.configuration import Configuration, Count, Counts
from book.experiments.experiment import Experiment, experiment
from book.experiments.fields import Images, Noise, NumChains, NumProjections, NumTest, Seed, Thin
from book.experiments.findings import Finding
from book.experiments.networks import NETWORKS, Network, in_span, network, observed, observes
from book.experiments.posterior import of_parameters
from book.experiments.tuned_chains import best_damping
from jaxtyping import Float
from widebnn import samplers, targets
from widebnn._check import Number, at_least, one_of, proper_fraction
from widebnn.diagnostics import band, effective_sample_size, random_projections
from widebnn.samplers import Potential
from widebnn.sampling import Draws, sample
from widebnn.tables import Measure, Results, Row, Rows

__all__ = ["LangevinGain", "gain_dense", "gain_over_data", "gain_over_width", "gain_resnet", "langevin_gain"]

TARGETS: Mapping[str, Callable[..., targets.NetworkTarget]] = {
    "θ": lambda bnn, x, y, reg: targets.standard(bnn, x, y),
    "φ": targets.repriorised,
}
"""By name, targets of one posterior; `reg` is λ."""

FIRST_STEP_SIZE = 1e-3  # stable in θ: where an uncorrected chain is carried away, tuning ends
MAX_RUNS = 5  # after the first of a length, until one has the acceptance


class LangevinGain(Configuration):
    """The grid, how a step is tuned, and how long chains run.

    Acceptances are those of the correction that is left out. ε, the leapfrog step, is tuned anew where the
    acceptance of a run is not between `least_acceptance` and 2 `target_acceptance` − `least_acceptance`.
    """

    dataset: Images = "cifar10"
    architecture: Annotated[str, partial(one_of, NETWORKS), "Of the networks."] = "dense"
    depth: Annotated[Count, "L; a residual network has 20 layers at any."] = 3
    widths: Annotated[Counts, "d_L: part of the grid."] = (32, 64, 128, 384, 512, 768, 1_024)
    num_train: Annotated[Counts, "Images that are observed: part of the grid."] = (256,)
    parametrisations: Annotated[tuple[str, ...], partial(one_of, TARGETS), "Part of the grid."] = ("θ", "φ")
    num_test: NumTest = 5_000
    target_acceptance: Annotated[float, proper_fraction, "What ε is tuned to."] = 0.985
    least_acceptance: Annotated[float, "Where a run does not keep this, ε is tuned anew."] = 0.98
    burn_in: Annotated[Count, "Steps during which ε is tuned."] = 20_000
    num_steps: Annotated[Count, "Steps from then on."] = 3_000_000
    thin: Thin = 25
    num_checkpoints: Annotated[Count, "Times, evenly spaced over the steps, at which chains are seen."] = 6
    num_chains: Annotated[NumChains, "Chains, each from T of a prior draw of its own."] = 3
    num_projections: Annotated[NumProjections, "Random directions in the space of all parameters."] = 100
    reg_grows: Annotated[bool, "Whether λ is nσ², as the paper has it for residual networks, or σ²."] = False
    noise_std: Noise = 0.1
    seed: Seed = 0

    def check(self):
        """0 ≤ `least_acceptance` < `target_acceptance` and there are eight draws per checkpoint."""
        if not 0 <= self.least_acceptance < self.target_acceptance:
            raise ValueError(
                "least_acceptance must be below target_acceptance, and both in [0, 1); "
                f"got {self.least_acceptance} and {self.target_acceptance}"
            )
        at_least(LEAST_DRAWS * self.num_checkpoints * self.thin, num_steps=self.num_steps)

    @property
    def networks(self) -> list[Network]:
        """The networks of the grid."""
        return [
            Network(self.architecture, self.dataset, self.depth, num_train, width)
            for width in self.widths
            for num_train in self.num_train
        ]


def langevin_gain(config: LangevinGain) -> Iterator[Row]:
    """Langevin without correction on one posterior in θ and in φ, each with the step and damping it likes.

    The step is tuned during burn-in to the acceptance that a correction would have. A chain that goes on to
    where U is steeper, as one on its way from the prior may, loses that acceptance: such a run is made again
    with another step, until it has the acceptance on the whole, a tenth of it first. The damping is γ = 2ε
    (`without_correction`).

    Chains of both parametrisations start at the same parameters T(φ), φ ~ N(0, I), which a wide network's
    posterior is close to: what θ is spared, the way from the prior, is no part of the comparison. Dense
    networks are sampled in the span of the training images (`in_span`): of the weights that no image sees
    both parametrisations have the prior, and a step that is small enough for thousands of those, as the
    paper's is, tells little of either. Projections are of θ and predictions are f at new images, the output
    of each one's class, whatever the chain moves. A step costs one gradient.

    Yields
    ------
    Rows with width, num_train, num_test, parametrisation and `step`, of a checkpoint; damping and step_size
    as tuned, `acceptance` that a correction would have had so far, milliseconds per step of one chain. Then,
    of projections and of predictions: `ess_` per step, chain by chain as in the paper, the mean over entries,
    its standard error from the scatter over chains, and `_low` and `_high`, the least and the largest (None
    where a chain never moved); `pooled_` per step, the mean of the rank-normalised `ess_bulk`, which
    disagreeing chains lower, and its standard error (jackknife over chains); and what
    `book.experiments.convergence_summary` says. At last `ess_per_second`, pooled, of projections.
    """
    for one in config.networks:
        start = _Start(config, one)
        point = {"width": one.width, "num_train": one.num_train, "num_test": start.num_test}
        for name in config.parametrisations:
            for row in start.rows(name):
                yield point | {"parametrisation": name} | row


class _Start:
    """Where the chains of both parametrisations start, and what is collected of their parameters."""

    def __init__(self, config: LangevinGain, one: Network):
        self.config = config
        dataset = observed(one.architecture, one.dataset, one.num_train, config.num_test)
        self.num_test = len(dataset.x_test)
        if one.architecture == "dense":
            dataset = in_span(dataset)
        bnn = network(one.architecture, dataset, one.width, one.depth, config.noise_std, config.seed)
        reg = config.noise_std**2 * (one.num_train if config.reg_grows else 1)
        x, y, x_new = (dataset.x_train, dataset.y_train, jnp.asarray(dataset.x_test))
        labels = np.argmax(dataset.y_test, axis=1, keepdims=True)
        self.targets = {name: make(bnn, x, y, reg) for name, make in TARGETS.items()}
        projection_key, start_key, self.rng_key = jax.random.split(jax.random.key(config.seed), 3)
        self.quantities = {
            "projections": random_projections(projection_key, bnn.template(x), num=config.num_projections),
            "predictions": lambda parameters: jnp.take_along_axis(bnn(parameters, x_new), labels, axis=1),
        }
        phi = self.targets["φ"]
        keys = jax.random.split(start_key, config.num_chains)
        prior = jax.jit(jax.vmap(phi.draw_prior))(keys)
        self.starts = {"θ": jax.jit(jax.vmap(phi.to_parameters))(prior), "φ": prior}

    def rows(self, name: str) -> list[Row]:
        num_samples = self.config.num_steps // self.config.thin
        step_size, _ = self._with_acceptance(name, math.ceil(num_samples / 10))
        step_size, draws = self._with_acceptance(name, num_samples, step_size)
        tuned = {"step_size": step_size, "damping": float(best_damping(step_size))}
        return [tuned | row for row in _over_time(self.config, draws)]

    def _with_acceptance(
        self, name: str, num_samples: int, step_size: float | None = None
    ) -> tuple[float, Draws]:
        """A step (tuned if none is given) by which a run of this length has the acceptance, and that run."""
        goal, least = (self.config.target_acceptance, self.config.least_acceptance)
        make = partial(without_correction, self.targets[name].potential)
        first = samplers.tuned(make, goal, FIRST_STEP_SIZE) if step_size is None else make(step_size)
        draws = self._sample(name, first, num_samples)
        found: Any = draws.step_size if step_size is None else step_size
        for _ in range(MAX_RUNS):
            if least < draws.acceptance_rate < 2 * goal - least:
                break
            # What is rejected grows like ε³, and faster where a shorter step does not come so far.
            rejected = max(1 - draws.acceptance_rate, (1 - goal) / 16)
            found *= ((1 - goal) / rejected) ** (1 / 4)
            draws = self._sample(name, make(found), num_samples)
        return found, draws

    def _sample(self, name: str, sampler: Any, num_samples: int) -> Draws:
        config, target = self.config, self.targets[name]
        return sample(
            self.rng_key,
            sampler,
            target,
            num_samples=num_samples,
            thin=config.thin,
            burn_in=config.burn_in,
            num_chains=config.num_chains,
            initial=self.starts[name],
            collect=of_parameters(target, self.quantities),
        )


def without_correction(potential: Potential, step_size: Number) -> samplers.Sampler:
    """Langevin that makes every move, with the best damping."""
    return samplers.langevin(potential, step_size, best_damping(step_size), metropolis=False)


def _over_time(config: LangevinGain, draws: Draws) -> list[Row]:
    rates = draws.stats["acceptance_rate"]
    num_chains, num_draws = rates.shape
    ms_per_step = 1e3 * draws.seconds / (num_chains * (config.burn_in + num_draws * config.thin))
    rows = []
    for checkpoint in range(1, config.num_checkpoints + 1):
        until = num_draws * checkpoint // config.num_checkpoints
        row = {
            "step": until * config.thin,
            "acceptance": float(rates[:, :until].mean()),
            "ms_per_step": ms_per_step,
        }
        for quantity, values in draws.collected.items():
            seen = values[:, :until].reshape(num_chains, until, -1)
            row |= {f"{name}_{quantity}": number for name, number in _worth(seen, config.thin).items()}
        per_step = row["pooled_projections"]
        row["ess_per_second"] = None if per_step is None else 1e3 * per_step / ms_per_step
        rows.append(row)
    return rows


def _worth(draws: Float[np.ndarray, "chain draw entry"], thin: int) -> dict[str, float | None]:
    """Effective samples per step, chain by chain and pooled, with errors, and how far the chains agree."""
    num_draws = draws.shape[1]
    alone = np.array([effective_sample_size(chain[None]) for chain in draws], float) / num_draws
    mean, low, high = band(alone.mean(axis=0))
    per_draw = {
        "ess": mean,
        "ess_error": Measure.mean(alone.mean(axis=1)).error,
        "ess_low": low,
        "ess_high": high,
        **pooled_ess_per_draw(draws).columns("pooled"),
    }
    is_moving = np.isfinite(alone).all()
    per_step = {name: float(value) / thin if is_moving else None for name, value in per_draw.items()}
    return per_step | convergence_summary(draws)


SMOKE = LangevinGain(
    dataset="digits",
    depth=2,
    widths=(16, 64),
    num_train=(16,),
    num_test=4,
    burn_in=300,
    num_steps=800,
    thin=4,
    num_checkpoints=2,
    num_projections=20,
)
LAPTOP = LangevinGain(num_test=100, burn_in=2_000, num_steps=30_000, num_checkpoints=4, seed=1)
COLAB = LangevinGain(num_test=1_000, burn_in=5_000, num_steps=50_000)
PAPER = LangevinGain()
RESIDUAL: dict[str, Any] = {"architecture": "residual", "reg_grows": True}


def _declared(title: str, **scales: LangevinGain) -> Callable[[Callable[..., Iterator[Row]]], Experiment]:
    return experiment(
        f"effective samples of Langevin in φ and in θ, {title}",
        scales=scales,
        parts=["widths", "num_train", "parametrisations"],
        observes=lambda c: observes(c.networks),
    )


@_declared(
    "over width",
    smoke=SMOKE,
    laptop=replace(LAPTOP, widths=(32, 128, 512), num_train=(64,), num_chains=8),
    colab=replace(  # many short chains: on a card a step of sixteen takes little longer than one
        COLAB, widths=(32, 256, 1_024), burn_in=2_000, num_steps=16_000, num_checkpoints=4, num_chains=16
    ),
    paper=PAPER,
)
def gain_over_width(config: LangevinGain) -> Iterator[Row]:
    """The gain at several widths; "paper" has those of Hron et al., with three chains where they have one."""
    return langevin_gain(config)


@_declared(
    "over the number of observations",
    smoke=replace(SMOKE, widths=(16,), num_train=(8, 32)),
    laptop=replace(LAPTOP, widths=(128,), num_train=(16, 64, 256), num_steps=36_000, num_chains=8, seed=2),
    colab=replace(COLAB, widths=(512,), num_train=(64, 256, 1_024)),
    paper=replace(PAPER, widths=(512,), num_train=(64, 256, 1_024, 4_096, 16_384)),
)
def gain_over_data(config: LangevinGain) -> Iterator[Row]:
    """The gain at several numbers of images, which the paper does not state."""
    return langevin_gain(config)


@_declared(
    "of a dense network over steps",
    smoke=replace(SMOKE, widths=(8,), num_train=(8, 80)),
    laptop=replace(
        LAPTOP,
        widths=(32,),
        num_train=(32, 320, 1_280),
        burn_in=20_000,
        num_steps=100_000,
        num_checkpoints=20,
        num_chains=4,
        seed=4,
    ),
    colab=replace(COLAB, widths=(1_024,), num_train=(1_024, 4_096), burn_in=1_000, num_steps=10_000),
    paper=replace(PAPER, widths=(1_024,), num_train=(1_024, 10_240, 40_960), thin=100),
)
def gain_dense(config: LangevinGain) -> Iterator[Row]:
    """The gain of a dense network; "paper" goes from one image per unit to forty (Figure 8)."""
    return langevin_gain(config)


@_declared(
    "of a residual network over steps",
    smoke=replace(  # twenty layers take minutes to compile
        SMOKE, architecture="convolutional", reg_grows=True, widths=(8,), num_train=(4, 16), num_steps=200
    ),
    laptop=replace(
        LAPTOP,
        **RESIDUAL,
        dataset="cifar10-8x8",  # a gradient of 32 × 32 costs too much for images that outnumber channels
        widths=(16,),
        num_train=(16, 32),
        num_test=20,
        burn_in=6_000,
        num_steps=45_000,
        thin=20,
        num_chains=4,
        seed=6,
    ),
    colab=replace(COLAB, **RESIDUAL, widths=(32,), num_train=(8, 32), burn_in=500, num_steps=6_000),
    paper=replace(PAPER, **RESIDUAL, widths=(512,), num_train=(1_024, 10_240), thin=100),
)
def gain_resnet(config: LangevinGain) -> Iterator[Row]:
    """The gain of a Wide ResNet-20 (Figure 8)."""
    return langevin_gain(config)


LEAST_ACCEPTANCE = 0.98  # of the protocol
MOST_RHAT = 1.2  # a ratio of variances, at which chains agree
MEASURE = (
    "By effective samples per step of random projections of θ, chains pooled, ε tuned for each and "
    "γ = 2ε, which is best for squares where U is constant, of chains that move in the span of the images "
    "alone where the network is dense. A gain is resolved where acceptances are above 0.98, and bulk and "
    "tail of both chains have 150 effective samples, which stand for a hundred. Its error is a jackknife "
    "over the chains, judged by Student's t. "
)


@gain_over_width.claim(
    "H-F7a",
    where="Figure 7, left",
    claim="Langevin mixes faster in φ than in θ at every width, and the gain grows with it.",
    paper="the effective samples per step where the width is above n = 256, of widths up to 1,024",
    number="50 times",
    rule=MEASURE
    + "The gain at the widest network decides: it has to be above 25, half of the paper's. Shown are "
    "the gains at the other widths, and that it grows.",
    would_change="The paper's width of 1,024 at n = 256.",
    page="09-width-data-architecture#fig-gain-width",
)
def grows_with_width(results: Results) -> Iterator[Finding]:
    *narrower, widest = _gains(results, "width")
    yield from narrower
    yield replace(widest, above=25, null=1, decides=True)
    yield _change("gain, widest ÷ narrowest", narrower[0], widest, above=1)


@gain_over_width.claim(
    "H-F7c",
    where="Figure 7, left",
    claim="Predictions at new images mix faster in φ too.",
    paper="higher effective sample size of f at 5,000 test points too, at every width",
    rule=MEASURE + "The same of predictions. The gain at the widest network decides: it has to be above 1.",
    would_change="The paper's 5,000 new images and its width of 1,024 at n = 256.",
    page="09-width-data-architecture#fig-gain-width",
)
def predictions_too(results: Results) -> Iterator[Finding]:
    *narrower, widest = _gains(results, "width", "predictions")
    yield from narrower
    yield replace(widest, decides=True)


@gain_over_width.claim(
    "H-F7d",
    where="Section 4.2.1",
    claim="No width is so small that chains in φ mix worse than chains in θ.",
    paper="improvements at all widths, with λ = σ² best even at the smallest",
    rule=MEASURE
    + "The least gain over all widths decides: it has to be above 1. That λ = σ² is best is not tested.",
    would_change="More widths, and narrower networks; a grid over λ.",
    page="09-width-data-architecture#fig-gain-width",
)
def never_worse(results: Results) -> Iterator[Finding]:
    least = min(_gains(results, "width"), key=lambda gain: gain.value)
    yield replace(least, what=f"least {least.what}", decides=True)


@gain_over_data.claim(
    "H-F7b",
    where="Figure 7, right",
    claim="The gain shrinks with the number of observations and stays above one.",
    paper="higher effective sample size in φ at every n, width 512",
    rule=MEASURE
    + "The gain at the most images decides: it has to be above 1. Shown are those at fewer, and that "
    "it shrinks.",
    would_change="The paper's width of 512, and more images.",
    page="09-width-data-architecture#fig-gain-data",
)
def shrinks_with_data(results: Results) -> Iterator[Finding]:
    *fewer, most = _gains(results, "num_train")
    yield from fewer
    yield replace(most, decides=True)
    yield _change("gain, most images ÷ fewest", fewer[0], most, below=1)


@gain_dense.claim(
    "H-F8a",
    where="Figure 8, left",
    claim="A dense network keeps its gain up to forty observations per unit.",
    paper="the effective samples per step at width 1,024 and n = 1,024, 10,240 and 40,960",
    number="about 10 times",
    rule=MEASURE
    + "The gain at the most images, forty per unit, decides: it has to be above 5, half of the paper's.",
    would_change="The paper's width of 1,024 with up to 40,960 images, on an accelerator.",
    page="09-width-data-architecture#fig-gain-architecture",
)
def stays(results: Results) -> Iterator[Finding]:
    *fewer, most = _gains(results, "num_train")
    yield from fewer
    yield replace(most, above=5, null=1, decides=True)


@gain_dense.claim(
    "H-F8c",
    where="Figure 8, left",
    claim="The worst of the projections gain up to two hundred times, which is more than their mean does.",
    paper="the effective samples per step of the worst projections, compared with one another",
    number="up to 200 times",
    rule="By the least effective samples per step over random projections of θ, chain by chain as in the "
    "paper and mean over chains. The largest ratio over the numbers of images decides: it has to be "
    "above 100, half of the paper's. It is resolved where each chain has 150 of the worst projection on its "
    "own.",
    would_change="Chains of the paper's length, on an accelerator: the least of a hundred short estimates is "
    "their floor.",
    page="09-width-data-architecture#fig-gain-architecture",
)
def worst_projections(results: Results) -> Iterator[Finding]:
    gains = []
    for num_train, theta, phi in _pairs(results.rows, "num_train"):
        worst = [row["ess_low_projections"] for row in (phi, theta)]
        each = [ess and ess * row["step"] for ess, row in zip(worst, (phi, theta), strict=True)]
        together = [ess and ess * results.settings["num_chains"] for ess in each]
        chains = behind(together, [row["rhat_projections"] for row in (phi, theta)])
        in_phi, in_theta = (ess_with_error(ess, results.settings["num_projections"]) for ess in together)
        gain = in_phi / in_theta
        what = f"ESS of the worst projection, φ ÷ θ, {num_train:,} images"
        gains.append(Finding(what, gain, above=1, resolved=is_resolved(*each), chains=chains))
    largest = max(gains, key=lambda gain: gain.value)
    yield from (replace(gain, above=100, null=1, decides=True) if gain is largest else gain for gain in gains)


@gain_resnet.claim(
    "H-F8b",
    where="Figure 8, right",
    claim="In a Wide ResNet-20 the gain is there where the top layer is as wide as the data are many.",
    paper="the effective samples per step at n = 1,024; at 10,240 about as many as without the map, in "
    "chains that may be far from equilibrium",
    number="more than 10 times",
    rule=MEASURE
    + "The gain at the fewest images decides: it has to be above 10. Shown is that it is smaller at the "
    "most, resolved if these outnumber the channels of the top group.",
    would_change="The paper's 512 channels with 1,024 and 10,240 images of 32 × 32 pixels, on an "
    "accelerator: the gain grows with the width of dense networks (H-F7a), and this one is narrow. "
    "Acceptances closer to one another: between 0.98 and 0.99 a step may vary by a fourth, and a gain too.",
    page="09-width-data-architecture#fig-gain-architecture",
)
def gains_where_wide(results: Results) -> Iterator[Finding]:
    fewest, *_, most = _gains(results, "num_train")
    yield replace(fewest, above=10, null=1, decides=True)
    falls = _change("gain, most images ÷ fewest", fewest, most, below=1)
    is_beyond = max(results.rows.values("num_train")) > max(results.rows.values("width"))
    yield replace(falls, resolved=falls.resolved and is_beyond)


@gain_dense.claim(
    "H-F9",
    where="Figure 9",
    claim="Chains in φ agree long before chains in θ do.",
    paper="in θ, where in φ it is near 1 already",
    number="squared R-hat of order 100",
    rule="By R̂² of the chains of a dense network, started at the same parameters in φ and in θ, mean over "
    "random projections of θ. At the most images, at the first checkpoint at which R̂² in φ is below 1.2, "
    "that in θ decides: it is above 10, a tenth of the paper's order. It is not resolved where chains in φ "
    "never agree. Shown are ratios of R̂² − 1 at the end, whose standard errors count projections, not "
    "chains.",
    would_change="The paper's width of 1,024 with up to 40,960 images, on an accelerator, and its damping, "
    "which it does not state.",
    page="09-width-data-architecture#fig-gain-rhat",
)
def chains_agree(results: Results) -> Iterator[Finding]:
    def squared(row: Row, less: int = 0) -> Measure:
        error = row["rhat_squared_std_projections"] / math.sqrt(results.settings["num_projections"])
        return Measure(row["rhat_squared_projections"] - less, error)

    pairs = _pairs(results.rows, "num_train")
    for num_train, theta, phi in pairs:
        what = f"R̂² − 1 of projections, φ ÷ θ, {num_train:,} images"
        yield Finding(what, squared(phi, 1) / squared(theta, 1), below=1)
    most = results.rows.where(num_train=pairs[-1][0])
    agreeing = [
        row["step"] for row in most.where(parametrisation="φ") if row["rhat_squared_projections"] < MOST_RHAT
    ]
    then = squared(most.one(parametrisation="θ", step=min(agreeing))) if agreeing else math.nan
    what = f"R̂² in θ when chains in φ agree, {pairs[-1][0]:,} images"
    ess, rhat = ([row[f"{column}_projections"] for row in pairs[-1][1:]] for column in ("ess_bulk", "rhat"))
    yield Finding(what, then, above=10, null=MOST_RHAT, decides=True, chains=behind(ess, rhat))


def _gains(results: Results, over: str, quantity: str = "projections") -> list[Finding]:
    """Effective samples per step, φ ÷ θ, in the order of `over`."""
    degrees = results.settings["num_chains"] - 1
    what = {"width": "width {:,}", "num_train": "{:,} images"}[over]
    found = []
    for value, *pair in _pairs(results.rows, over):
        theta, phi = (
            Measure(row[f"pooled_{quantity}"], row[f"pooled_error_{quantity}"])
            if row[f"pooled_{quantity}"] is not None
            else Measure(math.nan)
            for row in pair
        )
        ess = [row[f"ess_{kind}_{quantity}"] for row in pair for kind in ("bulk", "tail")]
        rhat = [row[f"rhat_{quantity}"] for row in pair]
        is_kept = min(row["acceptance"] for row in pair) > LEAST_ACCEPTANCE
        name = f"ESS of {quantity}, φ ÷ θ, {what.format(value)}"
        resolved, chains = is_kept and is_resolved(*ess), behind(ess, rhat)
        gain = phi / theta
        found.append(Finding(name, gain, above=1, resolved=resolved, degrees=degrees, chains=chains))
    return found


def _change(
    what: str, first: Finding, last: Finding, above: float | int = -math.inf, below: float | int = math.inf
) -> Finding:
    """The last gain over the first."""
    change = Measure(last.value, last.error) / Measure(first.value, first.error)
    resolved = first.resolved and last.resolved
    return Finding(what, change, above=above, below=below, resolved=resolved, degrees=first.degrees)


def _pairs(rows: Rows, over: str) -> list[tuple[int, Row, Row]]:
    """The last rows in θ and in φ at each point, in the order of `over`."""
    at_the_end = rows.where(step=max(rows.values("step")))
    return [
        (value, here.one(parametrisation="θ"), here.one(parametrisation="φ"))
        for value, here in sorted(at_the_end.by(over))
    ]
