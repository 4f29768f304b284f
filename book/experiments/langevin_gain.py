"""What repriorisation gains Langevin Monte Carlo: width, data and architecture (Hron et al. 2022)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Float

from book.experiments.chain_summaries import (
    at_checkpoints,
    behind,
    ess_with_error,
    is_resolved,
    pooled_ess_per_draw,
)
from book.experiments.experiment import SETTINGS, Experiment, experiment
from book.experiments.findings import Finding
from book.experiments.networks import in_span, network, observed
from book.experiments.posterior import of_parameters
from book.experiments.tuned_chains import best_damped, best_damping
from widebnn import targets
from widebnn.diagnostics import convergence_summary, effective_sample_size, random_projections
from widebnn.driver import Draws, sample
from widebnn.samplers import tuned
from widebnn.tables import Measure, Results, Row, Rows

FIRST_STEP_SIZE = 1e-3  # stable in θ: where an uncorrected chain is carried away, tuning ends
MAX_RUNS = 5  # after the first of a length, until one has the acceptance


def langevin_gain(
    *,
    architecture,
    dataset,
    depth,
    widths,
    num_train,
    parametrisations,
    num_test,
    target_acceptance,
    least_acceptance,
    burn_in,
    num_steps,
    thin,
    num_checkpoints,
    num_chains,
    num_projections,
    reg_grows,
    noise_std,
    seed,
) -> Iterator[Row]:
    """Langevin without correction on one posterior in θ and in φ, each with the step and damping it likes.

    The step is tuned during burn-in to the acceptance that a correction would have. A chain that goes on to
    where U is steeper, as one on its way from the prior may, loses that acceptance: such a run is made again
    with another step, until it has the acceptance on the whole, a tenth of it first. The damping is γ = 2ε
    (`best_damped`).

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
    `convergence_summary` says. At last `ess_per_second`, pooled, of projections.
    """
    run = partial(sample, thin=thin, burn_in=burn_in, num_chains=num_chains)
    for width, num in product(widths, num_train):
        images = observed(architecture, dataset, num, num_test)
        point = {"width": width, "num_train": num, "num_test": len(images.x_test)}
        if architecture == "dense":
            images = in_span(images)
        bnn = network(architecture, images, width, depth, noise_std, seed)
        x, y, x_new = images.x_train, images.y_train, jnp.asarray(images.x_test)
        labels = np.argmax(images.y_test, axis=1, keepdims=True)
        reg = noise_std**2 * (num if reg_grows else 1)
        standard, phi = targets.standard(bnn, x, y), targets.repriorised(bnn, x, y, reg)
        projection_key, start_key, rng_key = jax.random.split(jax.random.key(seed), 3)
        quantities = {
            "projections": random_projections(projection_key, bnn.template(x), num=num_projections),
            "predictions": Partial(_own_outputs, bnn, x_new, labels),
        }
        prior = jax.jit(jax.vmap(phi.draw_prior))(jax.random.split(start_key, num_chains))
        starts = {"θ": (standard, jax.jit(jax.vmap(phi.to_parameters))(prior)), "φ": (phi, prior)}
        for name in parametrisations:
            target, start = starts[name]
            collect = of_parameters(quantities)
            go = partial(run, rng_key, target=target, initial=start, collect=collect)
            tune = partial(_with_acceptance, go, goal=target_acceptance, least=least_acceptance)
            step_size, _ = tune(num_samples=math.ceil(num_steps // thin / 10))
            step_size, draws = tune(num_samples=num_steps // thin, step_size=step_size)
            found = {"step_size": step_size, "damping": float(best_damping(step_size))}
            for row in at_checkpoints(draws, num_checkpoints, draws.collected, partial(_worth, thin=thin)):
                per_step = row["pooled_projections"]
                row["ess_per_second"] = None if per_step is None else 1e3 * per_step / row["ms_per_step"]
                yield point | {"parametrisation": name} | found | row


def _own_outputs(bnn, x, labels, target, theta):
    return jnp.take_along_axis(bnn(theta, x), labels, axis=1)


def _with_acceptance(
    run, *, num_samples: int, goal: float, least: float, step_size: float | None = None
) -> tuple[float, Draws]:
    """A step (tuned if none is given) by which a run of this length has the acceptance, and that run."""
    first = best_damped(FIRST_STEP_SIZE if step_size is None else step_size, metropolis=False)
    draws = run(sampler=tuned(first, goal) if step_size is None else first, num_samples=num_samples)
    found: Any = draws.step_size if step_size is None else step_size
    for _ in range(MAX_RUNS):
        if least < draws.acceptance_rate < 2 * goal - least:
            break
        # What is rejected grows like ε³, and faster where a shorter step does not come so far.
        rejected = max(1 - draws.acceptance_rate, (1 - goal) / 16)
        found *= ((1 - goal) / rejected) ** (1 / 4)
        draws = run(sampler=best_damped(found, metropolis=False), num_samples=num_samples)
    return found, draws


def _worth(draws: Float[np.ndarray, "chain draw *event"], thin: int) -> dict[str, float | None]:
    """Effective samples per step, chain by chain and pooled, with errors, and how far the chains agree."""
    draws = draws.reshape(*draws.shape[:2], -1)
    num_draws = draws.shape[1]
    alone = np.array([effective_sample_size(chain[None]) for chain in draws], float) / num_draws
    each = alone.mean(axis=0)
    per_draw = {
        "ess": each.mean(),
        "ess_error": Measure.mean(alone.mean(axis=1)).error,
        "ess_low": each.min(),
        "ess_high": each.max(),
        **pooled_ess_per_draw(draws).columns("pooled"),
    }
    is_moving = np.isfinite(alone).all()
    per_step = {name: float(value) / thin if is_moving else None for name, value in per_draw.items()}
    return per_step | convergence_summary(draws)


def _declared(name: str, over: str) -> Experiment:
    def gain(**settings: Any) -> Iterator[Row]:
        return langevin_gain(**settings)

    gain.__name__, gain.__doc__ = name, f"Effective samples of Langevin in φ and in θ, {over}."
    return experiment(SETTINGS[name], parts=("widths", "num_train", "parametrisations"))(gain)


gain_over_width = _declared("gain_over_width", "over width")
gain_over_data = _declared("gain_over_data", "over the number of observations")
gain_dense = _declared("gain_dense", "of a dense network over steps")
gain_resnet = _declared("gain_resnet", "of a Wide ResNet-20 over steps (Figure 8)")

LEAST_ACCEPTANCE = 0.98  # of the protocol
MOST_RHAT = 1.2  # a ratio of variances, at which chains agree
TENFOLD_RHAT = 3.5  # where that in φ is `MOST_RHAT`, in stationary chains that gain tenfold


@gain_over_width.claim("H-F7a")
def grows_with_width(results: Results) -> Iterator[Finding]:
    *narrower, widest = _gains(results, "width")
    yield from narrower
    yield replace(widest, above=25, null=1, decides=True)
    if narrower:
        yield _change("gain, widest ÷ narrowest", narrower[0], widest, above=1)
    *_, (width, _, phi) = _pairs(results.rows, "width")
    for quantity in ("projections", "predictions"):
        per_draw = _alone(phi, quantity) / (1 / results.settings["thin"])
        known = {"degrees": widest.degrees, "resolved": widest.resolved, "chains": widest.chains}
        yield Finding(f"ESS of {quantity} per kept draw in φ, width {width:,}", per_draw, above=0.9, **known)


DAMPINGS = np.geomspace(1e-3, 1, 31)
"""Those that a step is offered where the damping is tuned."""


@gain_over_width.claim("X-9")
def damping_makes_fifty(results: Results) -> Iterator[Finding]:
    *_, (_, theta, phi) = _pairs(results.rows, "width")
    thin = results.settings["thin"]

    def worth(row: Row, damping: float) -> float:
        return worth_where_flat(row["step_size"], damping, thin)

    def best(row: Row) -> float:
        return max(worth(row, damping) for damping in DAMPINGS)

    gain = worth(phi, phi["damping"]) / worth(theta, theta["damping"])
    yield Finding("gain of the two tuned steps where U is constant, γ = 2ε", gain, below=25)
    yield Finding("the same two steps, each with its best γ", best(phi) / best(theta), below=25)
    for damping in (0.01, 0.1, 1.0):
        bound: dict[str, Any] = {"below": 25} if damping < 0.1 else {"above": 25}
        what = f"the same two steps, γ = {damping:g} for both"
        yield Finding(what, worth(phi, damping) / worth(theta, damping), **bound)


def worth_where_flat(step_size: float, damping: float, thin: int = 1) -> float:
    """Effective samples per draw where U is constant, by the papers' sum until the first ρ below 0."""
    cosine, kept = 1 - step_size**2 / 2, math.sqrt(1 - damping)
    back = -step_size * (1 - step_size**2 / 4)
    step = np.array([[cosine, kept * step_size], [back, kept * cosine]])
    step = np.linalg.matrix_power(step, thin)
    mean, total = step @ (1.0, 0.0), 0.0
    while mean[0] > 1e-6:
        mean, total = step @ mean, total + mean[0]
    return float(1 / (1 + 2 * total))


@gain_over_width.claim("H-F7c")
def predictions_too(results: Results) -> Iterator[Finding]:
    *narrower, widest = _gains(results, "width", "predictions")
    yield from narrower
    yield replace(widest, decides=True)


@gain_over_width.claim("H-F7d")
def never_worse(results: Results) -> Iterator[Finding]:
    least = min(_gains(results, "width"), key=lambda gain: gain.value)
    yield replace(least, what=f"least {least.what}", decides=True)


@gain_over_data.claim("H-F7b")
def shrinks_with_data(results: Results) -> Iterator[Finding]:
    *fewer, most = _gains(results, "num_train")
    yield from fewer
    yield replace(most, decides=True)
    yield _change("gain, most images ÷ fewest", fewer[0], most, below=1)


@gain_over_data.claim("H-AD2")
def step_in_theta(results: Results, beside: Sequence[Results]) -> Iterator[Finding]:
    rows = [theta for run in (results, *beside) for _, theta, _ in _pairs(run.rows, "num_train", "width")]
    sizes = sorted({row["num_train"] for row in rows})
    sigma = results.settings["noise_std"]
    scaled = [_tuned(row, math.sqrt(row["num_train"]) / sigma) for row in rows]
    least, *_, greatest = sorted(scaled, key=lambda one: one.value)
    chains = behind(*([row[f"{name}_projections"] for row in rows] for name in ("ess_bulk", "rhat")))
    what = f"ε√n/σ in θ, greatest ÷ least, n = {sizes[0]:,} to {sizes[-1]:,}"
    if_constant = math.sqrt(sizes[-1] / sizes[0])
    yield Finding(what, greatest / least, below=3, null=if_constant, decides=True, chains=chains)
    yield Finding("the same if ε were constant", if_constant, above=3)


@gain_dense.claim("H-F8a")
def stays(results: Results) -> Iterator[Finding]:
    *fewer, most = _gains(results, "num_train")
    yield from fewer
    yield replace(most, above=5, null=1, decides=True)
    *_, (num_train, theta, phi) = _pairs(results.rows, "num_train")
    yield replace(
        most,
        what=f"the same, chain by chain as in the paper, {num_train:,} images",
        measure=_alone(phi) / _alone(theta),
    )


def _tuned(row: Row, times: float = 1.0) -> Measure:
    """Its step; any rejection from 0.01 to 0.02 would do, and it grows like ε³."""
    step = row["step_size"] * times
    return Measure(step, step * math.log(2) / 3 / math.sqrt(12))


@gain_dense.claim("H-F8c")
def worst_projections(results: Results) -> Iterator[Finding]:
    found = []
    for num_train, theta, phi in _pairs(results.rows, "num_train"):
        worst = [row["ess_low_projections"] for row in (phi, theta)]
        each = [ess and ess * row["step"] for ess, row in zip(worst, (phi, theta), strict=True)]
        together = [ess and ess * results.settings["num_chains"] for ess in each]
        chains = behind(together, [row["rhat_projections"] for row in (phi, theta)])
        in_phi, in_theta = (ess_with_error(ess, results.settings["num_projections"]) for ess in together)
        gain, of_mean = in_phi / in_theta, _alone(phi) / _alone(theta)
        known = {"resolved": is_resolved(*each), "chains": chains}
        at = f"{num_train:,} images"
        found.append(Finding(f"ESS of the worst projection, φ ÷ θ, {at}", gain, above=1, **known))
        found.append(
            Finding(
                f"gain of the worst projection ÷ gain of the mean, {at}", gain / of_mean, above=1, **known
            )
        )
    largest = max(found[::2], key=lambda gain: gain.value)
    decides = found.index(largest) + 1
    found[decides] = replace(found[decides], above=10, null=1, decides=True)
    yield from found


@gain_resnet.claim("H-F8b")
def gains_where_wide(results: Results) -> Iterator[Finding]:
    fewest, *_, most = _gains(results, "num_train")
    yield replace(fewest, above=10, null=1, decides=True)
    falls = _change("gain, most images ÷ fewest", fewest, most, below=1)
    is_beyond = max(results.rows.values("num_train")) > max(results.rows.values("width"))
    yield replace(falls, resolved=falls.resolved and is_beyond)


@gain_dense.claim("H-F9")
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
    yield Finding(what, then, above=TENFOLD_RHAT, null=MOST_RHAT, decides=True, chains=behind(ess, rhat))


def _alone(row: Row, quantity: str = "projections") -> Measure:
    """Effective samples per step, mean over chains that are rated one by one."""
    return Measure(row[f"ess_{quantity}"], row[f"ess_error_{quantity}"])


def _gains(results: Results, over: str, quantity: str = "projections") -> list[Finding]:
    """Effective samples per step, φ ÷ θ, in the order of `over`."""
    degrees = results.settings["num_chains"] - 1
    what = {"width": "width {:,}", "num_train": "{:,} images"}[over]
    found = []
    for value, *pair in _pairs(results.rows, over):
        theta, phi = (
            Measure(math.nan)
            if row[f"pooled_{quantity}"] is None
            else Measure(row[f"pooled_{quantity}"], row[f"pooled_error_{quantity}"])
            for row in pair
        )
        ess = [row[f"ess_{kind}_{quantity}"] for row in pair for kind in ("bulk", "tail")]
        rhat = [row[f"rhat_{quantity}"] for row in pair]
        is_kept = min(row["acceptance"] for row in pair) > LEAST_ACCEPTANCE
        name = f"ESS of {quantity}, φ ÷ θ, {what.format(value)}"
        resolved, chains = is_kept and is_resolved(*ess), behind(ess, rhat)
        found.append(Finding(name, phi / theta, above=1, resolved=resolved, degrees=degrees, chains=chains))
    return found


def _change(
    what: str, first: Finding, last: Finding, above: float | int = -math.inf, below: float | int = math.inf
) -> Finding:
    """The last gain over the first."""
    change = Measure(last.value, last.error) / Measure(first.value, first.error)
    resolved = first.resolved and last.resolved
    return Finding(what, change, above=above, below=below, resolved=resolved, degrees=first.degrees)


def _pairs(rows: Rows, *over: str) -> list[tuple[Any, Row, Row]]:
    """The last rows in θ and in φ at each point, in the order of `over`."""

    def last(here: Rows, name: str) -> Row:
        return max(here.where(parametrisation=name), key=lambda row: row["step"])

    return [(value, last(here, "θ"), last(here, "φ")) for value, here in sorted(rows.by(*over))]
