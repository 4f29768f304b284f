"""What is said of chains: R̂ and effective sample sizes over many quantities, and how steady traces are."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh

from book.experiments.findings import Chains
from widebnn.diagnostics import LEAST_RESOLVED, bulk_and_tail, convergence, effective_sample_size
from widebnn.driver import Draws
from widebnn.estimates import mean_and_mcse
from widebnn.tables import Measure, Row, Rows

MAX_TRACE = 200


def is_resolved(ess: float | None, *others: float | None) -> bool:
    """Whether the least of these estimates, None where chains do not move, stands for a hundred samples."""
    return all(one is not None and one >= LEAST_RESOLVED for one in (ess, *others))


def behind(ess: Iterable[float | None], rhat: Iterable[float | None] = (None,)) -> Chains:
    """Chains of these effective sample sizes and R̂, each None or NaN where it is not known."""

    least, most = (np.array([*numbers], float) for numbers in (ess, rhat))  # None becomes NaN
    return Chains(finite(np.min(least)), finite(np.max(most)))


def ess_with_error(ess: float | None, least_of: int = 1) -> Measure:
    """An estimated number of effective samples with its standard error; NaN where chains do not move.

    Estimates of AR(1) chains scatter by 3/√ESS of their mean, within a fifth from 100 effective samples to
    800. The least of many independent ones scatters by π/√(12 ln `least_of`) of that (Gumbel's law).
    """
    if ess is None:
        return Measure(math.nan)
    gumbel = math.pi / math.sqrt(12 * math.log(least_of)) if least_of > 1 else 1.0
    return Measure(ess, 3 * math.sqrt(ess) * gumbel)


def mean_of_chains(series: Float[np.ndarray, "chain draw"]) -> Measure:
    """The mean of a quantity, its error from effective samples; NaN where nothing moves."""
    value, error = mean_and_mcse(series)
    return Measure(float(value), float(error))


def of_chains(draws: Draws) -> Row:
    """How a sampler was tuned and how it accepts, and the potential: its mean, the error, its deviation."""
    potential = draws["potential"].astype(np.float64)
    return {
        "step_size": draws.step_size,
        "acceptance": float(draws.acceptance_rate),
        **mean_of_chains(potential).columns("potential"),
        "potential_std": float(potential.std()),
    }


def ess_per_step(draws: Float[np.ndarray, "chain draw *event"], num_steps: int) -> Measure:
    """Effective samples per step of chains so long, each by itself: mean over entries, and over chains."""
    each = [float(np.mean(effective_sample_size(chain[None]))) for chain in draws]
    return Measure.mean(np.array(each) / num_steps)


def jackknife(statistic: Callable[[Any], float], draws: Any) -> Measure:
    """A statistic of chains with its standard error, from what it is with each chain left out in turn.

    Tukey's jackknife. `draws` are arrays of shape (chain, draw, ...), one or a mapping of several. The
    statistic must not grow with the number of chains: effective samples per step, and not effective samples.
    """
    num_chains = len(jax.tree.leaves(draws)[0])
    left_out = [
        statistic(jax.tree.map(lambda of: np.delete(of, i, axis=0), draws))  # noqa: B023
        for i in range(num_chains)
    ]
    return Measure(statistic(draws), float(np.std(left_out)) * math.sqrt(num_chains - 1))


def pooled_ess_per_draw(draws: Float[np.ndarray, "chain draw *event"]) -> Measure:
    """`ess_bulk` of all chains together per kept draw, mean over the entries, with its jackknife error."""
    return jackknife(lambda kept: bulk_and_tail(kept)["ess_bulk"] / math.prod(kept.shape[:2]), draws)


def at_checkpoints(
    draws: Draws,
    num_checkpoints: int,
    quantities: Iterable[str],
    summary: Callable[[np.ndarray], Mapping[str, Any]],
) -> Rows:
    """Rows of the steps, acceptance and summaries of quantities by all draws until then, as chains go on."""
    rates = draws.stats["acceptance_rate"]
    num_chains, num_draws = rates.shape
    ms_per_step = 1e3 * draws.seconds / (num_chains * (draws.burn_in + num_draws * draws.thin))
    rows = Rows()
    for checkpoint in range(1, num_checkpoints + 1):
        until = num_draws * checkpoint // num_checkpoints
        row: Row = {"step": until * draws.thin, "acceptance": float(rates[:, :until].mean())}
        row["ms_per_step"] = ms_per_step
        for quantity in quantities:
            found = summary(draws[quantity][:, :until])
            row |= {f"{name}_{quantity}": number for name, number in found.items()}
        rows.append(row)
    return rows


def trace_summary(draws: Float[np.ndarray, "chain draw feature"], *, thin: int = 1) -> dict[str, Any]:
    """How steady the traces of the first two principal components are.

    In many dimensions the components of a finite run say less than they seem to. Directions that hold still
    within each chain and differ between chains vary most, even where all chains are in equilibrium: compare
    with chains of as many dimensions and steps at U = 0.

    Returns
    -------
    - `pc_between`, the variance of the chains' means over that of all draws, mean over the components;
    - `pc_traces`, at most 200 points of each chain, by component, chain and draw, and `pc_thin`, steps from
      one to the next.
    """
    scores = _principal_components(draws)
    with np.errstate(invalid="ignore", divide="ignore"):  # where a chain never moves
        between = scores.mean(axis=1).var(axis=0) / scores.var(axis=(0, 1))
    stride = -(-scores.shape[1] // MAX_TRACE)
    points = np.moveaxis(scores[:, ::stride], 2, 0)
    shown = [[[float(f"{point:.4g}") for point in chain] for chain in component] for component in points]
    return {"pc_between": finite(between.mean()), "pc_traces": shown, "pc_thin": thin * stride}


def finite(value: Any) -> float | None:
    """A number that JSON can hold; None for what is not finite."""
    return float(value) if np.isfinite(value) else None


def shares(values: Float[np.ndarray, "..."], edges: Float[np.ndarray, " edge"]) -> list[float]:
    """The share of `values` in each bin; what lies beyond the outer edges is in the outer bins."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return rounded((counts / np.size(values)).tolist())


def rounded(values: Any) -> Any:
    """Numbers, or a tree of them, to six digits, about what float32 holds."""
    return jax.tree.map(lambda value: float(f"{float(value):.6g}"), values)


def _principal_components(draws: Float[np.ndarray, "chain draw feature"]) -> np.ndarray:
    """Scores (chain, draw, 2) of all chains pooled, by the Gram matrix."""
    pooled = draws.reshape(-1, draws.shape[2]).astype(np.float64)
    centred = pooled - pooled[:1]  # exactly 0 where nothing varies
    centred -= centred.mean(axis=0)
    gram = centred @ centred.T
    variances, left = eigh(gram, subset_by_index=(len(gram) - 2, len(gram) - 1))
    scores = (left * np.sqrt(np.maximum(variances, 0)))[:, ::-1]
    return scores.reshape(*draws.shape[:2], 2)


def resolved_sample_size(draws: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, "*event"]:
    """The least effective sample size of each entry, by four functions of it; NaN below `LEAST_RESOLVED`.

    The functions are its rank, whether it is in the lower or in the upper tail, and its distance from the
    median, which stands for its square. Chains that oscillate, such as those of weakly damped Langevin
    dynamics, have alternating autocorrelations, which cancel for the rank but not for the distance. The
    autocorrelations of the distance oscillate too, and would end Geyer's sum early: therefore the distance
    is averaged over pairs of draws.
    """
    import arviz

    draws = np.asarray(draws, np.float64)
    distance = np.abs(draws - np.median(draws, axis=(0, 1)))
    pairs = distance[:, : draws.shape[1] // 2 * 2].reshape(len(draws), -1, 2, *draws.shape[2:]).mean(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):  # where nothing moves
        gained = distance.var(axis=(0, 1)) / pairs.var(axis=(0, 1))
        least = np.minimum(convergence(draws).ess, gained * arviz.ess(pairs, method="mean"))
    return np.where(least >= LEAST_RESOLVED, least, np.nan)
