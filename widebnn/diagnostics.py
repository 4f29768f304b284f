"""MCMC diagnostics: effective sample size, R̂, and the projections on which both papers report them.

Statistics take draws as an array (chain, draw, *event) and return an array with one number for each entry of
the event. `convergence` gives ArviZ's rank-normalised versions of the same two diagnostics. ArviZ itself
takes all that a run collected: ``arviz.ess(draws.to_datatree())`` and ``arviz.rhat(draws.to_datatree())``.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree, Real

from widebnn._check import at_least, finite
from widebnn.tree import normal_like

__all__ = [
    "LEAST_RESOLVED",
    "Band",
    "Convergence",
    "PrincipalComponents",
    "band",
    "by_layer",
    "convergence",
    "effective_sample_size",
    "layer_projections",
    "nested_rhat",
    "principal_components",
    "random_projections",
    "resolved_sample_size",
    "rhat",
    "rhat_squared",
]

LEAST_RESOLVED = 150
"""The least estimate of an effective sample size that counts as resolved, as a hundred or more.

Of AR(1) chains with fewer than a hundred effective samples, at most one entry in twenty is estimated at as
many as this: for one chain of 200 to 40,000 draws as for four of 2,000, whatever the thinning, which is part
of the autocorrelation."""

NUMBERS = {1: "one draw", 2: "two draws", 8: "eight draws"}
SERIES_AT_ONCE = 256  # spectra take several times the memory of draws, which may be all that fits


def _chains(
    name: str, draws: Real[Array | np.ndarray, "..."], min_draws: int = 2
) -> Real[Array | np.ndarray, "..."]:
    if hasattr(draws, "collected"):
        raise TypeError(
            f"{name} must be an array (chain, draw, ...) such as draws['potential']; got a whole run"
        )
    shape = np.shape(draws)
    if len(shape) < 2 or shape[0] < 1 or shape[1] < min_draws:
        number = NUMBERS[min_draws]
        raise ValueError(f"{name} must have shape (chain, draw, ...) and {number} or more; got {shape}")
    return finite(**{name: draws})


def _lag_products(x: Float[Array, "chain draw"]) -> Float[Array, "chain draw"]:
    """Σᵢ x_i x_{i+k} for the lags k = 0, …, draw − 1, by FFT; zero padding keeps the ends from meeting."""
    num_draws = x.shape[1]
    length = 1 << (2 * num_draws - 1).bit_length()
    spectrum = jnp.abs(jnp.fft.rfft(x, length)) ** 2
    return jnp.fft.irfft(spectrum, length)[:, :num_draws]


def effective_sample_size(draws: Real[Array | np.ndarray, "chain draw *event"]) -> Float[Array, "*event"]:
    """Effective sample size (ESS) as both papers define it, summed over chains.

    For each chain of N draws, with ρ̂_k the autocorrelation at lag k (estimated from N − k products),

        ESS = N / (1 + 2 Σ_k (1 − k/N) ρ̂_k),  k = 1, …, N − 1,

    where the first negative ρ̂_k and all later ones are dropped. This is the default of TensorFlow
    Probability's `tfp.mcmc.effective_sample_size`, chain by chain, which both papers call. It never
    exceeds N, so that antithetic chains are worth more than it says. It sees each chain alone: that
    chains are stuck in different places is seen by R̂ and by `convergence`.

    Parameters
    ----------
    draws
        Kept draws, (chain, draw, *event), at least two per chain: `draws["potential"]` of a run.

    Returns
    -------
    Array
        The ESS of each entry of the event. NaN where a chain never moves (its autocorrelation is 0/0; ArviZ
        reports a perfect score there).

    Raises
    ------
    TypeError
        If `draws` is a run and not an array.
    ValueError
        If `draws` has fewer than two axes, fewer than two draws, or entries that are not finite.

    Notes
    -----
    Per kept draw: `ess / (num_chains * num_samples)`. Per step of the sampler, which is what a method
    is paid for: `ess / (num_chains * num_samples * thin)`. The papers' "per-step ESS" is the first:
    Hron et al. divide by S, the number of samples, all computed "based on the thinned sample"; Pezzetti
    et al. (§4.2) by the N of the formula, keeping every 25th step. For a slowly mixing chain their
    number is thus `thin` times ours.

    References
    ----------
    Hron et al. 2022, eq. (7); Pezzetti et al. 2025, §4.2.
    """
    return _over_event(jnp.asarray(_chains("draws", draws)))


@jax.jit
def _over_event(draws: Real[Array, "chain draw *event"]) -> Float[Array, "*event"]:
    series = jnp.moveaxis(draws.reshape(*draws.shape[:2], -1), 2, 0)
    return jax.lax.map(_effective_sample_size, series, batch_size=SERIES_AT_ONCE).reshape(draws.shape[2:])


def _effective_sample_size(draws: Real[Array, "chain draw"]) -> Float[Array, ""]:
    # Centred twice: a potential of 10⁴ that varies by 0.1 would lose its mean to float32 otherwise. The
    # division by the largest value keeps squares in range, and makes a chain that never moves NaN.
    x = draws - draws[:, :1]
    x = x - x.mean(axis=1, keepdims=True)
    x = x / jnp.abs(x).max(axis=1, keepdims=True)
    products = _lag_products(x)
    weighted = products / products[:, :1]  # (1 − k/N) ρ̂_k: the N − k of ρ̂_k cancels against the weight
    before_cut = jnp.cumsum(weighted < 0, axis=1) == 0
    integrated_time = 2 * jnp.where(before_cut, weighted, 0).sum(axis=1) - 1
    return (draws.shape[1] / integrated_time).sum()


def rhat_squared(draws: Real[Array | np.ndarray, "chain draw *event"]) -> Float[Array, "*event"]:
    """R̂², the variance over all chains relative to the variance within them; 1 when chains agree.

    With N draws in each of M chains, W the mean of the chains' variances and B/N the variance of their
    means (both unbiased),

        R̂² = (N − 1)/N + (1 + 1/M) (B/N) / W,

    which is the number that `tfp.mcmc.potential_scale_reduction` returns with its defaults (chains not
    split), rearranged. It is a ratio of variances, no root taken: what Hron et al. define and plot as R̂²
    is what Pezzetti et al. print, compute by that function and call R̂, so that their threshold of 1.2 is one
    on R̂². Thresholds such as the 1.01 of Vehtari et al. 2021 are meant for the root, `rhat`.

    Parameters
    ----------
    draws
        Kept draws, (chain, draw, *event), two chains or more: `draws["potential"]` of a run.

    Returns
    -------
    Array
        R̂² of each entry of the event. NaN where no chain moves and all agree, infinite where no chain moves
        and they differ.

    Raises
    ------
    TypeError
        If `draws` is a run and not an array.
    ValueError
        If `draws` has fewer than two chains or two draws, or entries that are not finite.

    Notes
    -----
    The papers' formulas weigh the variance of the means differently: Pezzetti et al. print
    (N − 1)/N + (B/N)/W; eq. (6) of Hron et al., taken with its 1/(MS) weights, is 1 + (1 − 1/M)(B/N)/W with
    a biased W. At three chains the excess over 1 is then 3/4 and 1/2 of what is computed here.
    Chains that drift together have a good R̂; ArviZ's version splits each chain in two to see that.

    References
    ----------
    Brooks & Gelman 1998; Hron et al. 2022, eq. (6); Pezzetti et al. 2025, Appendix B.1.
    """
    draws = jnp.asarray(_chains("draws", draws))
    num_chains, num_draws = draws.shape[:2]
    if num_chains < 2:
        raise ValueError(f"draws must hold two chains or more to compare; got shape {draws.shape}")
    x = draws - draws[:1, :1]  # no change to any variance, and exact in float32 where the draws are close
    within = x.var(axis=1, ddof=1).mean(axis=0)
    of_means = x.mean(axis=1).var(axis=0, ddof=1)
    return (num_draws - 1) / num_draws + (1 + 1 / num_chains) * of_means / within


def rhat(draws: Real[Array | np.ndarray, "chain draw *event"]) -> Float[Array, "*event"]:
    """R̂, the root of `rhat_squared`: a ratio of standard deviations, on the scale that ArviZ reports.

    Parameters, errors and references are those of `rhat_squared`, of whose result it is the root.
    """
    return jnp.sqrt(rhat_squared(draws))


def nested_rhat(
    draws: Real[Array | np.ndarray, "chain draw *event"], num_superchains: int
) -> Float[Array, "*event"]:
    """Nested R̂, for many chains that are too short for R̂: superchains agree once the start is forgotten.

    A superchain is a group of M chains that start at the same point. With B the unbiased variance of the
    means of K superchains, and V the mean over superchains of

    - the variance of the means of its chains (unbiased; 0 where M = 1), plus
    - the mean of its chains' own variances (unbiased; 0 where there is one draw),

    nested R̂ is √(1 + B/V). Where the chains have forgotten their start it is at most about √(1 + 1/M),
    whatever the number of draws: 50 chains of each superchain bring it below 1.01 with a single draw each.

    Parameters
    ----------
    draws
        Kept draws, (chain, draw, *event): the chains of the first superchain, then those of the second, and
        so on.
    num_superchains
        K, at least two; it must divide the number of chains.

    Returns
    -------
    Array
        Nested R̂ of each entry of the event. NaN where nothing moves and all agree, infinite where nothing
        moves and the superchains differ.

    Raises
    ------
    TypeError
        If `draws` is a run and not an array, or `num_superchains` is not an integer.
    ValueError
        If `draws` has fewer than two axes or entries that are not finite, `num_superchains` is below 2 or
        does not divide the number of chains, or there is one draw of one chain in each.

    Notes
    -----
    With M = 1 it is close to `rhat`: R̂² − (N − 1)/N = (1 + 1/K)(nested R̂² − 1).

    References
    ----------
    Margossian et al. 2024 (arXiv 2110.13017), §3.

    Examples
    --------
    64 chains, 16 of which start at each of 4 draws from the prior:

    >>> import jax
    >>> import numpy as np
    >>> import widebnn as wb
    >>> target = wb.targets.linear(np.eye(2), np.ones((2, 1)), noise_std=1.0)
    >>> starts = jax.vmap(target.draw_prior)(jax.random.split(jax.random.key(1), 4))
    >>> draws = wb.sample(
    ...     jax.random.key(2),
    ...     wb.samplers.pcn(target.potential, step_size=0.5),
    ...     target,
    ...     num_samples=20,
    ...     burn_in=20,
    ...     num_chains=64,
    ...     initial=starts.repeat(16, axis=0),
    ...     collect={"potential": target.potential},
    ...     progress=False,
    ... )
    >>> bool(wb.diagnostics.nested_rhat(draws["potential"], num_superchains=4) < 1.1)
    True
    """
    draws = jnp.asarray(_chains("draws", draws, min_draws=1))
    num_chains, num_draws = draws.shape[:2]
    if num_chains % at_least(2, num_superchains=num_superchains):
        raise ValueError(
            f"num_superchains must divide the number of chains, {num_chains}; got {num_superchains}"
        )
    if num_draws == 1 and num_chains == num_superchains:
        raise ValueError(
            f"draws must hold two draws, or two chains of each superchain, or more; got {draws.shape}"
        )
    x = (draws - draws[:1, :1]).reshape(num_superchains, -1, *draws.shape[1:])  # as in `rhat_squared`
    of_chains = x.mean(axis=2)
    between = of_chains.mean(axis=1).var(axis=0, ddof=1)
    of_draws = x.var(axis=2, ddof=1).mean(axis=(0, 1)) if num_draws > 1 else 0.0
    inside = of_chains.var(axis=1, ddof=1).mean(axis=0) if num_chains > num_superchains else 0.0
    return jnp.sqrt(1 + between / (inside + of_draws))


class Convergence(NamedTuple):
    """How far chains have converged.

    Attributes
    ----------
    ess
        The smaller of bulk and tail effective sample size, of all chains together.
    rhat
        The larger of R̂ of ranks and of folded ranks, of the two halves of each chain.
    """

    ess: Float[np.ndarray, "*event"]
    rhat: Float[np.ndarray, "*event"]


def convergence(draws: Real[Array | np.ndarray, "chain draw *event"]) -> Convergence:
    """Rank-normalised effective sample sizes and R̂ by ArviZ, which need no finite variance.

    They are what `widebnn.until.Until` looks at. Unlike `effective_sample_size` they see chains that
    disagree.

    Parameters
    ----------
    draws
        Kept draws, (chain, draw, *event), at least eight per chain.

    Returns
    -------
    Convergence
        NaN where all draws of all chains are the same number. For a single chain, R̂ compares its quarters.

    Raises
    ------
    TypeError
        If `draws` is a run and not an array.
    ValueError
        If `draws` has fewer than two axes, fewer than eight draws, or entries that are not finite.

    References
    ----------
    Vehtari et al. 2021.
    """
    import arviz  # a second, which only those pay who look

    x = np.asarray(_chains("draws", draws, min_draws=8), np.float64)
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


def resolved_sample_size(draws: Real[Array | np.ndarray, "chain draw *event"]) -> Float[np.ndarray, "*event"]:
    """The least effective sample size of each entry, by four functions of it, where it is resolved.

    The functions are its rank, whether it is in the lower or in the upper tail, and its distance from the
    median, which stands for its square. Autocorrelations of all chains together are summed by Geyer's initial
    monotone sequence: the sum does not end at the first value that noise makes negative.

    Chains that oscillate, such as those of weakly damped Langevin dynamics, have alternating
    autocorrelations, which cancel for the rank but not for the distance. The autocorrelations of the distance
    oscillate too, and would end the sum early: therefore the distance is averaged over pairs of draws.

    Parameters
    ----------
    draws
        Kept draws, (chain, draw, *event), at least eight per chain.

    Returns
    -------
    Array
        One number for each entry of the event; NaN where the estimate is below `LEAST_RESOLVED`, since short
        chains are estimated at some ten effective samples however few they have.

    Raises
    ------
    TypeError, ValueError
        As `convergence`.

    References
    ----------
    Geyer 1992, §3.3; Vehtari et al. 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> bool(wb.diagnostics.resolved_sample_size(draws) > 1_500)
    True
    >>> walks = draws.cumsum(axis=1)  # a correlation as long as the chains
    >>> bool(np.isnan(wb.diagnostics.resolved_sample_size(walks)))
    True
    """
    import arviz

    x = np.asarray(_chains("draws", draws, min_draws=8), np.float64)
    distance = np.abs(x - np.median(x, axis=(0, 1)))
    pairs = distance[:, : len(x[0]) // 2 * 2].reshape(len(x), -1, 2, *x.shape[2:]).mean(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):  # where nothing moves
        gained = distance.var(axis=(0, 1)) / pairs.var(axis=(0, 1))
        least = np.minimum(convergence(x).ess, gained * arviz.ess(pairs, method="mean"))
    return np.where(least >= LEAST_RESOLVED, least, np.nan)


def layer_projections(
    rng_key: Key[Array, ""], template: PyTree, num: int = 10
) -> dict[str, Callable[[PyTree], Float[Array, " num_and_norm"]]]:
    """Functions to collect of each leaf of a position, which show the layer that mixes worst.

    Parameters
    ----------
    rng_key
        Key of the directions.
    template
        A position, or its shapes and dtypes: `target.template`.
    num
        Number of `random_projections` of each leaf.

    Returns
    -------
    dict
        By the path of a leaf in the position, such as "hidden.0.weight", a function from a position to an
        array (num + 1,), the leaf's projections and its mean square, to be collected during a run.

    Raises
    ------
    TypeError, ValueError
        If `num` is not an integer of at least 1, or a leaf of `template` has no entries.

    Examples
    --------
    >>> import jax
    >>> import numpy as np
    >>> import widebnn as wb
    >>> target = wb.targets.linear(np.eye(2), np.ones((2, 1)), noise_std=1.0)
    >>> layers = wb.diagnostics.layer_projections(jax.random.key(1), target.template, num=3)
    >>> sampler = wb.samplers.pcn(target.potential, step_size=0.5)
    >>> options = {"num_samples": 200, "num_chains": 4, "progress": False}
    >>> draws = wb.sample(jax.random.key(2), sampler, target, collect=layers, **options)
    >>> {name: values.shape for name, values in draws.collected.items()}
    {'position': (4, 200, 4)}
    """

    def function(i, leaf, key):
        project = random_projections(key, leaf, num)

        def of_position(position: PyTree) -> Float[Array, " num_and_norm"]:
            leaf = jax.tree.leaves(position)[i]
            return jnp.append(project(leaf), jnp.mean(leaf**2))

        return of_position

    leaves = jax.tree.leaves_with_path(template)
    return {
        jax.tree_util.keystr(path, simple=True, separator=".") or "position": function(
            i, leaf, jax.random.fold_in(rng_key, i)
        )
        for i, (path, leaf) in enumerate(leaves)
    }


def by_layer(draws: Any) -> dict[str, dict[str, float]]:
    """Least effective sample size and worst R̂ of everything that was collected, worst first.

    Parameters
    ----------
    draws
        A run, or what it collected: by name, arrays (chain, draw, ...), such as those of
        `layer_projections`.

    Returns
    -------
    dict
        By name, the least "ess" and the worst "rhat" over all entries, by `convergence`; NaN where nothing
        varies. ``pandas.DataFrame(by_layer(draws)).T`` is a table of it.

    Raises
    ------
    TypeError
        If `draws` is neither a run nor a dict.
    ValueError
        As `convergence`.

    Examples
    --------
    >>> import numpy as np
    >>> import widebnn as wb
    >>> rng = np.random.default_rng(0)
    >>> draws = {"kernel": rng.normal(size=(4, 500, 3)), "bias": rng.normal(size=(4, 500)).cumsum(1)}
    >>> list(wb.diagnostics.by_layer(draws))
    ['bias', 'kernel']
    """
    collected = getattr(draws, "collected", draws)
    if not isinstance(collected, Mapping):
        raise TypeError(f"draws must be a run, or a dict of what it collected; got {type(draws).__name__}")
    rows = {}
    for name, values in collected.items():
        found = convergence(values)
        ess, rhat = (of[~np.isnan(of)].tolist() for of in found)
        rows[name] = {"ess": min(ess, default=math.nan), "rhat": max(rhat, default=math.nan)}
    return dict(sorted(rows.items(), key=lambda row: np.nan_to_num(row[1]["ess"], nan=-1.0)))


def random_projections(
    rng_key: Key[Array, ""], template: PyTree, num: int = 100
) -> Callable[[PyTree], Float[Array, " num"]]:
    """Inner products of a position with random unit vectors: a high-dimensional chain seen on `num` lines.

    Directions are uniform on the sphere of the flattened position, so that under N(0, I) each projection is
    N(0, 1). They are held leaf by leaf, (num, *leaf.shape): `num` times the memory of a position.

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
        Function from a position to its projections, (num,), to be collected during a run.

    Raises
    ------
    TypeError, ValueError
        If `num` is not an integer of at least 1, or `template` has no entries. The projection raises a
        ValueError for a position of other structure or shapes than the template.

    References
    ----------
    Hron et al. 2022, §4.1.2.
    """
    at_least(1, num=num)
    leaves, structure = jax.tree.flatten(template)
    if sum(math.prod(leaf.shape) for leaf in leaves) == 0:
        raise ValueError("template must have at least one entry; got an empty position")
    normals = jax.vmap(lambda key: normal_like(key, leaves))(jax.random.split(rng_key, num))
    norm = jnp.sqrt(sum(jnp.sum(normal**2, axis=range(1, normal.ndim)) for normal in normals))
    directions = [normal / jnp.expand_dims(norm, range(1, normal.ndim)) for normal in normals]

    def project(position: PyTree) -> Float[Array, " num"]:
        entries, given = jax.tree.flatten(position)
        if given != structure or [x.shape for x in entries] != [leaf.shape for leaf in leaves]:
            raise ValueError(
                "position must have the template's structure and shapes, "
                f"{jax.tree.map(jnp.shape, template)}; got {jax.tree.map(jnp.shape, position)}"
            )
        inner = [jnp.tensordot(u, x, axes=x.ndim, precision="highest") for u, x in zip(directions, entries)]
        return jnp.sum(jnp.stack(inner), axis=0)

    return project


class PrincipalComponents(NamedTuple):
    """Draws on their main axes of variation.

    Attributes
    ----------
    scores
        Coordinates on the principal directions, centred over all chains.
    explained
        Share of the total variance along each direction, largest first; NaN when nothing varies.
    """

    scores: Float[Array, "chain draw num"]
    explained: Float[Array, " num"]


def principal_components(
    draws: Real[Array | np.ndarray, "chain draw feature"], num: int = 2
) -> PrincipalComponents:
    """Scores of the draws on the first principal directions of all chains pooled.

    Where features outnumber draws they come from the Gram matrix, the inner products of centred draws, so
    that all weights of a wide network can be features. A direction's sign is arbitrary; the one with its
    largest entry positive is taken, so that the same draws always give the same picture.

    Parameters
    ----------
    draws
        Kept draws of a vector, (chain, draw, feature).
    num
        Number of directions, at most the smaller of `feature` and the number of draws in all chains.

    Raises
    ------
    TypeError, ValueError
        If `num` is not an integer or is out of range, or `draws` has other than three axes or entries that
        are not finite.

    References
    ----------
    Pezzetti et al. 2025, Appendix B.2 (traces of the first two).
    """
    draws = jnp.asarray(_chains("draws", draws))
    if draws.ndim != 3:
        raise ValueError(f"draws must have shape (chain, draw, feature); got {draws.shape}")
    pooled = draws.reshape(-1, draws.shape[2])
    if at_least(1, num=num) > min(pooled.shape):
        raise ValueError(
            f"num must be at most {min(pooled.shape)} for draws of shape {draws.shape}; got {num}"
        )
    centred = pooled - pooled[:1]
    centred = centred - centred.mean(axis=0, keepdims=True)
    if centred.shape[0] < centred.shape[1]:  # by SVD too, whose values are in order and not below zero
        left, variances, _ = jnp.linalg.svd(jnp.matmul(centred, centred.T, precision="highest"))
        scores = left * jnp.sqrt(variances)[None, :]
    else:
        left, singular, _ = jnp.linalg.svd(centred, full_matrices=False)
        scores, variances = left * singular[None, :], singular**2
    scores = scores[:, :num]
    directions = jnp.matmul(scores.T, centred, precision="highest")
    largest = jnp.take_along_axis(directions, jnp.abs(directions).argmax(axis=1, keepdims=True), axis=1)
    scores = scores * jnp.sign(largest[:, 0])[None, :]
    return PrincipalComponents(scores.reshape(*draws.shape[:2], num), variances[:num] / jnp.sum(variances))


class Band(NamedTuple):
    """A mean and two quantiles: a line and the edges of the band around it."""

    mean: Float[Array, "*batch"]
    low: Float[Array, "*batch"]
    high: Float[Array, "*batch"]


def band(
    values: Real[Array | np.ndarray, "*batch projection"], probs: tuple[float, float] = (0.0, 1.0)
) -> Band:
    """Mean and two quantiles over the last axis: how a diagnostic varies over projections or test points.

    Parameters
    ----------
    values
        Values (..., projection), one per projection on the last axis.
    probs
        Lower and upper probability; both papers draw (0, 1), the minimum and the maximum.

    Raises
    ------
    ValueError
        Unless 0 ≤ probs[0] ≤ probs[1] ≤ 1 and there is a last axis with entries. NaN is not an error: the
        band of an ESS that is undefined somewhere is undefined.

    References
    ----------
    Hron et al. 2022, Figure 7; Pezzetti et al. 2025, Figure 2.
    """
    if not 0 <= probs[0] <= probs[1] <= 1:
        raise ValueError(f"probs must be two ordered numbers in [0, 1]; got {probs}")
    if values.ndim < 1 or values.shape[-1] < 1:
        raise ValueError(f"values must have at least one entry on the last axis; got shape {values.shape}")
    values = jnp.asarray(values)
    low, high = jnp.quantile(values, jnp.asarray(probs), axis=-1)
    return Band(values.mean(axis=-1), low, high)
