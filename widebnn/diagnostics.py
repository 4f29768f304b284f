"""MCMC diagnostics: effective sample size, agreement of chains, and the projections that both papers monitor.

Statistics take draws as an array (chain, draw, *event) and return one number for each entry of the event.
They compute on the host in float64, and results are arrays of NumPy. `convergence` gives ArviZ's
rank-normalised versions of the same two diagnostics. ArviZ itself takes all that a run collected:
``arviz.ess(draws.to_datatree())`` and ``arviz.rhat(draws.to_datatree())``.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Bool, Float, Key, PyTree, Real

from widebnn._arrays import real
from widebnn._check import at_least, finite, one_key
from widebnn.tree import normal_like

__all__ = [
    "LEAST_RESOLVED",
    "Convergence",
    "bulk_and_tail",
    "convergence",
    "convergence_summary",
    "effective_sample_size",
    "random_projections",
    "rhat",
    "rhat_squared",
]

LEAST_RESOLVED = 150
"""The least estimate of an effective sample size that counts as resolved, as a hundred or more.

Of AR(1) chains with fewer than a hundred effective samples, at most one entry in twenty is estimated at as
many as this: for one chain of 200 to 40,000 draws as for four of 2,000, whatever the thinning, which is part
of the autocorrelation."""

ChainDraws = Real[Array | np.ndarray, "chain draw *event"] | Bool[Array | np.ndarray, "chain draw *event"]
"""Booleans are 0 and 1."""

NUMBERS = {2: "two draws", 8: "eight draws"}
SERIES_AT_ONCE = 256  # spectra in float64 take many times the memory of draws, which may be all that fits


def chain_draws(name: str, draws: Any, min_draws: int = 2) -> Real[np.ndarray, "..."]:
    """Finite draws (chain, draw, ...), enough of them for what is asked."""
    if hasattr(draws, "collected"):
        raise TypeError(
            f"{name} must be an array (chain, draw, ...) such as draws['potential']; got a whole run"
        )
    draws = np.asarray(real(**{name: draws}))
    shape = draws.shape
    if len(shape) < 2 or shape[0] < 1 or shape[1] < min_draws:
        number = NUMBERS[min_draws]
        raise ValueError(f"{name} must have shape (chain, draw, ...) and {number} or more; got {shape}")
    return finite(**{name: draws.astype(int) if draws.dtype == bool else draws})


def _over_event(
    statistic: Callable[[Float[np.ndarray, "chain draw series"]], Float[np.ndarray, " series"]],
    draws: Real[np.ndarray, "chain draw *event"],
) -> Float[np.ndarray, "*event"]:
    """A statistic of each entry of the event, a block of them at a time.

    The first draw of all is taken off, which changes no statistic here: what never moves is exactly 0.
    """
    series = draws.reshape(*draws.shape[:2], -1)
    found = np.empty(series.shape[2])
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never move
        for i in range(0, len(found), SERIES_AT_ONCE):
            block = series[:, :, i : i + SERIES_AT_ONCE].astype(np.float64)
            found[i : i + SERIES_AT_ONCE] = statistic(block - block[:1, :1])
    return found.reshape(draws.shape[2:])


def _lag_products(x: Float[np.ndarray, "... draw"]) -> Float[np.ndarray, "... draw"]:
    """Σᵢ x_i x_{i+k} for the lags k = 0, …, draw − 1, by FFT; zero padding keeps the ends from meeting."""
    num_draws = x.shape[-1]
    length = 1 << (2 * num_draws - 1).bit_length()
    return np.fft.irfft(np.abs(np.fft.rfft(x, length)) ** 2, length)[..., :num_draws]


def effective_sample_size(draws: ChainDraws) -> Float[np.ndarray, "*event"]:
    """Effective sample size (ESS) as both papers define it, summed over chains.

    For each chain of $N$ draws, with $ρ̂_k$ the autocorrelation at lag $k$ (estimated from $N − k$ products),

    $$ESS = N / (1 + 2 ∑_k (1 − k/N) ρ̂_k),$$

    summed over $k = 1, …, N − 1$, where the first negative $ρ̂_k$ and all later ones are dropped. This is the
    default of TensorFlow Probability's `tfp.mcmc.effective_sample_size`, chain by chain, which both papers
    call. It never exceeds $N$, so that antithetic chains are worth more than it says. It sees each chain
    alone: that chains are stuck in different places is seen by $R̂$ and by `convergence`.

    Parameters
    ----------
    draws
        Draws, (chain, draw, *event), at least two per chain: `draws["potential"]` of a run.

    Returns
    -------
    Array
        The ESS of each entry of the event. NaN where a chain never moves (its autocorrelation is 0/0; ArviZ
        reports a perfect score there).

    Notes
    -----
    The papers' "per-step ESS" is `ess / (num_chains * num_samples)`, per kept draw. Per step of the sampler,
    which is what a method is paid for, it is `thin` times smaller.

    References
    ----------
    Hron et al. 2022, eq. (7); Pezzetti et al. 2025, §4.2.
    """
    return _over_event(_effective_sample_size, chain_draws("draws", draws))


def _effective_sample_size(draws: Float[np.ndarray, "chain draw series"]) -> Float[np.ndarray, " series"]:
    x = np.moveaxis(draws - draws[:, :1], 1, 2)
    products = _lag_products(x - x.mean(axis=2, keepdims=True))
    weighted = products / products[:, :, :1]  # (1 − k/N) ρ̂_k: the N − k of ρ̂_k cancels against the weight
    is_cut = np.logical_or.accumulate(weighted < 0, axis=2)
    integrated_time = 2 * np.where(is_cut, 0, weighted).sum(axis=2) - 1
    return (draws.shape[1] / integrated_time).sum(axis=0)


def rhat_squared(draws: ChainDraws) -> Float[np.ndarray, "*event"]:
    """$R̂²$, the variance over all chains relative to the variance within them; 1 when chains agree.

    With $N$ draws in each of $M$ chains, $W$ the mean of the chains' variances and $B/N$ the variance of
    their means (both unbiased),

    $$R̂² = (N − 1)/N + (1 + 1/M) (B/N) / W,$$

    which is the number that `tfp.mcmc.potential_scale_reduction` returns with its defaults (chains not
    split), rearranged. It is a ratio of variances, no root taken: what Hron et al. define and plot as $R̂²$
    is what Pezzetti et al. print, compute by that function and call $R̂$, so that their threshold of 1.2 is
    one on $R̂²$. Thresholds such as the 1.01 of Vehtari et al. 2021 are meant for the root, `rhat`.

    Parameters
    ----------
    draws
        Draws, (chain, draw, *event), two chains or more: `draws["potential"]` of a run.

    Returns
    -------
    Array
        $R̂²$ of each entry of the event. NaN where no chain moves and all agree, infinite where no chain
        moves and they differ.

    Notes
    -----
    The papers print $(N − 1)/N + (B/N)/W$ and $1 + (1 − 1/M)(B/N)/W$, which weigh the variance of the means
    differently. Chains that drift together have a good $R̂$; ArviZ's version splits each chain in two to see
    that.

    References
    ----------
    Brooks & Gelman 1998; Hron et al. 2022, eq. (6); Pezzetti et al. 2025, Appendix B.1.
    """
    draws = chain_draws("draws", draws)
    if len(draws) < 2:
        raise ValueError(f"draws must hold two chains or more to compare; got shape {draws.shape}")
    return _over_event(_rhat_squared, draws)


def _rhat_squared(draws: Float[np.ndarray, "chain draw series"]) -> Float[np.ndarray, " series"]:
    num_chains, num_draws, _ = draws.shape
    within = (draws - draws[:, :1]).var(axis=1, ddof=1).mean(axis=0)
    of_means = draws.mean(axis=1).var(axis=0, ddof=1)
    return (num_draws - 1) / num_draws + (1 + 1 / num_chains) * of_means / within


def rhat(draws: ChainDraws) -> Float[np.ndarray, "*event"]:
    """$R̂$, the root of `rhat_squared`: a ratio of standard deviations, on the scale that ArviZ reports.

    Parameters, errors and references are those of `rhat_squared`, of whose result it is the root.
    """
    return np.asarray(np.sqrt(rhat_squared(draws)))


class Convergence(NamedTuple):
    """How far chains have converged.

    Attributes
    ----------
    ess
        The smaller of bulk and tail effective sample size, of all chains together.
    rhat
        The larger of $R̂$ of ranks and of folded ranks, of the two halves of each chain.
    """

    ess: Float[np.ndarray, "*event"]
    rhat: Float[np.ndarray, "*event"]


def convergence(draws: ChainDraws) -> Convergence:
    """Rank-normalised effective sample sizes and $R̂$ by ArviZ, which need no finite variance.

    They are what `widebnn.stopping.Until` looks at. Unlike `effective_sample_size` they see chains that
    disagree.

    Parameters
    ----------
    draws
        Draws, (chain, draw, *event), at least eight per chain.

    Returns
    -------
    Convergence
        NaN where all draws of all chains are the same number. For a single chain, $R̂$ compares its quarters.

    References
    ----------
    Vehtari et al. 2021.
    """
    import arviz  # a second, which only those pay who look

    x = np.asarray(chain_draws("draws", draws, min_draws=8), np.float64)
    entries = x.reshape(*x.shape[:2], -1)
    varies = (entries != entries[:1, :1]).any(axis=(0, 1))
    ess, rhat = np.full((2, len(varies)), np.nan)
    if varies.any():
        moving = entries[:, :, varies]
        half = x.shape[1] // 2
        chains = moving if len(x) > 1 else np.concatenate([moving[:, :half], moving[:, -half:]])
        with np.errstate(divide="ignore", invalid="ignore"):  # chains that are stuck
            tail = arviz.ess(moving, method="tail", prob=(0.05, 0.95))
            ess[varies] = np.minimum(arviz.ess(moving, method="bulk"), tail)
            rhat[varies] = arviz.rhat(chains, method="rank")
    return Convergence(ess.reshape(x.shape[2:]), rhat.reshape(x.shape[2:]))


def convergence_summary(draws: ChainDraws) -> dict[str, float | None]:
    """How far chains agree, over all entries of what was collected.

    Parameters
    ----------
    draws
        Draws, two chains or more of eight draws or more.

    Returns
    -------
    - `rhat_squared`, which Pezzetti et al. call $R̂$: mean over the entries, and `_std`, `_median` and
      `_high`, their deviation, median and largest; `share_below`, the share of entries below 1.2;
    - `rhat`, rank-normalised, of split chains and the larger of bulk and folded draws (Vehtari et al. 2021),
      mean and `_high`; `rhat_late`, the same of the later half of the draws alone;
    - `ess_bulk` and `ess_tail`, of all chains together, mean over the entries.

    None where a number is not finite, as where no chain moves.
    """
    import arviz

    exact = chain_draws("draws", draws, min_draws=8).astype(float)
    exact = exact.reshape(*exact.shape[:2], -1)
    squared = rhat_squared(exact)
    late = exact[:, -(exact.shape[1] // 2) :]
    with np.errstate(invalid="ignore", divide="ignore"):  # where no chain moves
        ranked = {"rhat": arviz.rhat(exact), "rhat_late": arviz.rhat(late)}
        deviation = squared.std(ddof=min(1, len(squared) - 1))
    found = {
        "rhat_squared": squared.mean(),
        "rhat_squared_std": deviation,
        "rhat_squared_median": np.median(squared),
        "rhat_squared_high": squared.max(),
        "share_below": np.mean(squared < 1.2),
    }
    for name, values in ranked.items():
        found |= {name: np.mean(values), f"{name}_high": np.max(values)}
    found |= bulk_and_tail(exact)
    return {name: float(value) if np.isfinite(value) else None for name, value in found.items()}


def bulk_and_tail(draws: ChainDraws) -> dict[str, float]:
    """`ess_bulk` and `ess_tail` of all chains by ArviZ, mean over the entries; NaN where one does not move.

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> sizes = wb.diagnostics.bulk_and_tail(draws)
    >>> all(ess > 1_000 for ess in sizes.values())
    True
    """
    import arviz

    exact = chain_draws("draws", draws, min_draws=8).astype(float)
    if not np.ptp(exact, axis=1).any(axis=0).all():
        return {"ess_bulk": math.nan, "ess_tail": math.nan}
    tail = arviz.ess(exact, method="tail", prob=(0.05, 0.95))
    return {"ess_bulk": float(np.mean(arviz.ess(exact, method="bulk"))), "ess_tail": float(np.mean(tail))}


def random_projections(
    rng_key: Key[Array, ""], template: PyTree, num: int = 100
) -> Callable[[Any, PyTree], Float[Array, " num"]]:
    """Inner products of a position with random unit vectors: a high-dimensional chain seen on `num` lines.

    Directions are uniform on the sphere of the flattened position, so that under $N(0, I)$ each projection is
    $N(0, 1)$. They are held leaf by leaf, (num, *leaf.shape): `num` times the memory of a position.

    Parameters
    ----------
    rng_key
        Key of the directions.
    template
        A position, or its shapes and dtypes (`jax.eval_shape`).
    num
        Number of directions; both papers take 100.

    Returns
    -------
    Callable
        Collector of the projections, (num,): a function of `(target, position)` that looks at the position
        alone. It is a `jax.tree_util.Partial`: programs take the directions as arguments.

    References
    ----------
    Hron et al. 2022, §4.1.2.
    """
    one_key(rng_key=rng_key)
    at_least(1, num=num)
    leaves, structure = jax.tree.flatten(template)
    if sum(math.prod(leaf.shape) for leaf in leaves) == 0:
        raise ValueError("template must have at least one entry; got an empty position")
    directions = _directions(rng_key, tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves), num)
    return Partial(_project, jax.tree.unflatten(structure, directions))


def _project(directions: PyTree, target: Any, position: PyTree) -> Float[Array, " num"]:
    (along, structure), (entries, given) = (jax.tree.flatten(tree) for tree in (directions, position))
    if given != structure or [x.shape for x in entries] != [u.shape[1:] for u in along]:
        raise ValueError(
            "position must have the template's structure and shapes, "
            f"{jax.tree.map(lambda u: u.shape[1:], directions)}; got {jax.tree.map(jnp.shape, position)}"
        )
    inner = [jnp.tensordot(u, x, axes=x.ndim, precision="highest") for u, x in zip(along, entries)]
    return jnp.sum(jnp.stack(inner), axis=0)


@functools.partial(jax.jit, static_argnames=("leaves", "num"))
def _directions(
    rng_key: Key[Array, ""], leaves: tuple[jax.ShapeDtypeStruct, ...], num: int
) -> list[Float[Array, "num ..."]]:
    """Unit vectors, leaf by leaf."""
    normals = jax.vmap(lambda key: normal_like(key, list(leaves)))(jax.random.split(rng_key, num))
    norm = jnp.sqrt(sum(jnp.sum(normal**2, axis=range(1, normal.ndim)) for normal in normals))
    return [normal / jnp.expand_dims(norm, range(1, normal.ndim)) for normal in normals]
