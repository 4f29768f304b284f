"""How far a finite network is from its infinite-width limit: Monte Carlo estimates, each with its error.

Sums run in float64 on the host, whatever the precision of the draws.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key, Real
from scipy.special import ndtr

from widebnn._arrays import real
from widebnn._check import at_least, brief, finite, one_key
from widebnn.collectors import check, prepared, values_of
from widebnn.diagnostics import chain_draws
from widebnn.targets._base import Target
from widebnn.tree import Position

__all__ = [
    "MIN_EFFECTIVE_DRAWS",
    "Divergence",
    "Estimate",
    "PowerLaw",
    "by_groups",
    "kl_from_prior",
    "kolmogorov_distance",
    "mean_and_mcse",
    "power_law",
    "prior_draws",
]

Reals = Real[Array | np.ndarray, "..."]

MIN_EFFECTIVE_DRAWS = 100
"""The fewest effective draws with which a divergence is reported."""


class Estimate(NamedTuple):
    """A Monte Carlo estimate and its standard error."""

    value: Float[np.ndarray, "*batch"] | float
    error: Float[np.ndarray, "*batch"] | float


class Divergence(NamedTuple):
    """An estimated KL divergence, in nats; see `kl_from_prior`.

    Attributes
    ----------
    value
        The estimate, its bias of order $1/N$ removed.
    error
        Its standard error.
    bias
        What was removed, $−Var(w)/(2N E[w]²)$ to first order, $w = exp(−U)$.
    effective_draws
        $(∑w)²/∑w²$.
    """

    value: Float[np.ndarray, "*batch"] | float
    error: Float[np.ndarray, "*batch"] | float
    bias: Float[np.ndarray, "*batch"] | float
    effective_draws: Float[np.ndarray, "*batch"] | float


class PowerLaw(NamedTuple):
    """$value = amplitude · width^exponent · exp(correction/width)$; see `power_law`.

    Attributes
    ----------
    exponent
        With its standard error.
    amplitude, correction
        Of the formula; the correction is 0 where none was fitted.
    chi2
        Sum of the squared residuals in units of their errors.
    degrees
        Number of widths minus number of fitted parameters: the mean of $χ²$ where the law holds.
    """

    exponent: Estimate
    amplitude: float
    correction: float
    chi2: float
    degrees: int

    def __call__(self, width: Reals) -> Float[np.ndarray, " width"]:
        """Values of the law at these widths."""
        width = np.asarray(width, np.float64)
        return self.amplitude * width**self.exponent.value * np.exp(self.correction / width)


def prior_draws(
    rng_key: Key[Array, ""],
    target: Target,
    collect: Mapping[str, Callable[[Position], Float[Array, "..."]]],
    num_draws: int,
    batch_size: int = 64,
) -> dict[str, np.ndarray]:
    """Functions of independent draws from $N(0, I)$, the prior of every target.

    Parameters
    ----------
    rng_key
        Key of the draws.
    target
        Target whose positions are drawn.
    collect
        A dict of collectors, as in `widebnn.sample`.
    num_draws
        Number of draws.
    batch_size
        Number of draws that are made side by side; memory grows with it.

    Returns
    -------
    A dict of arrays (draw, ...).
    """
    one_key(rng_key=rng_key)
    at_least(1, num_draws=num_draws)
    at_least(1, batch_size=batch_size)
    if not isinstance(collect, Mapping):
        raise TypeError(f"collect must be a dict from names to functions; got {brief(collect)}")
    for name, function in collect.items():
        check(f"collect[{name!r}]", function)

    functions = {name: prepared(function, target) for name, function in collect.items()}
    num_batches = -(-num_draws // batch_size)
    sizes = num_batches, batch_size
    batches = [
        jax.device_get(_at_prior_draws(rng_key, np.int32(i), target, functions, sizes))
        for i in range(num_batches)
    ]
    return {name: np.concatenate([batch[name] for batch in batches])[:num_draws] for name in collect}


@functools.partial(jax.jit, static_argnames="sizes")
def _at_prior_draws(
    rng_key: Key[Array, ""],
    number: Int[Array, ""],
    target: Target,
    functions: dict[str, Any],
    sizes: tuple[int, int],
) -> dict[str, Array]:
    """Batch `number` of so many of such a size."""
    num_batches, batch_size = sizes

    def draw(rng_key):
        return values_of("collect", functions, target, target.draw_prior(rng_key), rng_key)

    return jax.vmap(draw)(jax.random.split(jax.random.split(rng_key, num_batches)[number], batch_size))


def kl_from_prior(potential: Reals, conditional: Reals | float = 0.0) -> Divergence:
    """$KL(N(0, I) ‖ P) = log E[exp(−U)] + E[U]$ of $p(u) ∝ exp(−½‖u‖² − U(u))$, from independent prior draws.

    The log of a mean is biased down by $Var(w)/(2N E[w]²)$, $w = exp(−U)$; the jackknife estimates this bias
    and the standard error at once. Noise of first order in $U$ cancels between the two terms, so that a small
    divergence is found to a small relative error, near $√(2/N)$.

    Parameters
    ----------
    potential
        $U$ at draws from $N(0, I)$, (..., draw).
    conditional
        Where `potential` is that of a part of the parameters, the KL divergence of the others given that
        part, for each draw: by the chain rule its mean is added.

    Returns
    -------
    Divergence
        Estimate and error are NaN where there are fewer than `MIN_EFFECTIVE_DRAWS` effective draws: the mean
        of $exp(−U)$ is then that of a few draws, and its error cannot be trusted either.

    References
    ----------
    Hron et al. 2022, Theorem 2.1 and Proposition 2.3.
    """
    u = finite(potential=np.asarray(real(potential=potential), np.float64))
    if u.ndim < 1 or u.shape[-1] < 2:
        raise ValueError(f"potential must hold two draws or more; got shape {u.shape}")
    conditional = np.asarray(real(conditional=conditional), np.float64)
    if conditional.shape not in ((), u.shape) or not np.isfinite(conditional).all():
        raise ValueError(
            f"conditional must be finite and have the shape of potential, {u.shape}; got {conditional.shape}"
        )
    energy = u + conditional
    n = u.shape[-1]
    low = u.min(axis=-1, keepdims=True)
    weight = np.exp(low - u)
    share = weight / weight.sum(axis=-1, keepdims=True)
    effective_draws = 1 / np.sum(share**2, axis=-1)

    mean_energy = energy.mean(axis=-1, keepdims=True)
    whole = np.log(weight.mean(axis=-1, keepdims=True)) - low + mean_energy
    with np.errstate(divide="ignore", invalid="ignore"):  # one draw has all the weight: NaN below
        change = np.log1p(-share) - math.log1p(-1 / n) + (mean_energy - energy) / (n - 1)
        bias = (n - 1) * change.mean(axis=-1)
        error = np.sqrt((n - 1) * change.var(axis=-1))
    known = effective_draws >= MIN_EFFECTIVE_DRAWS
    value, error, bias = (np.where(known, x, np.nan) for x in (whole[..., 0] - bias, error, bias))
    return Divergence(value, error, bias, effective_draws)


def kolmogorov_distance(
    mean: Reals, variance: Reals, limit_mean: Reals, limit_variance: Reals, num_points: int = 161
) -> Estimate:
    """How far a mixture of normals is from one normal, by their distribution functions.

    $$sup_t |E[Φ((t − m)/s)] − Φ((t − m_∞)/s_∞)|$$

    Given its inner weights a network's output is normal, so that no outputs are drawn and nothing is counted.
    The largest of many noisy differences is biased up; so $t$ is chosen on one half of the draws and the
    difference there is measured on the other, and vice versa: on average, the mean of both never exceeds the
    supremum.

    Parameters
    ----------
    mean, variance
        $m$ and $s²$ of each draw, (draw, *batch).
    limit_mean, limit_variance
        $m_∞$ and $s_∞²$, (*batch).
    num_points
        Values of $t$, evenly from $4s_∞$ below to $4s_∞$ above $m_∞$.

    Returns
    -------
    Estimate
        The largest distance over the batch.
    """
    shapes = [np.shape(x) for x in (mean, variance, limit_mean, limit_variance)]
    if shapes[0] != shapes[1] or shapes[2] != shapes[3] or shapes[0][1:] != shapes[2] or shapes[0][0] < 4:
        raise ValueError(
            f"mean and variance must be (draw, *batch), four draws or more, and limits (*batch); got {shapes}"
        )
    m, v = (np.moveaxis(np.asarray(x, np.float64), 0, -1) for x in (mean, variance))
    limit_m, limit_v = (np.asarray(x, np.float64)[..., None, None] for x in (limit_mean, limit_variance))
    if not ((v > 0).all() and (limit_v > 0).all()):
        raise ValueError("variance and limit_variance must be above 0, for every draw; they are not")
    t = np.linspace(-4, 4, num_points)[:, None]
    gap = ndtr((limit_m + np.sqrt(limit_v) * t - m[..., None, :]) / np.sqrt(v)[..., None, :]) - ndtr(t)
    gap = gap.reshape(-1, gap.shape[-1])
    halves = gap[:, ::2], gap[:, 1::2]
    found = []
    for chosen, measured in (halves, halves[::-1]):
        means = chosen.mean(axis=1)
        worst = np.abs(means).argmax()
        found.append(_mean(np.sign(means[worst]) * measured[worst]))
    (a, a_error), (b, b_error) = found
    return Estimate((a + b) / 2, float(np.hypot(a_error, b_error)) / 2)


def by_groups(statistic: Callable[..., Any], *draws: Reals, num_groups: int = 20) -> Estimate:
    """Any statistic of independent draws, with an error from its scatter over groups of draws.

    Parameters
    ----------
    statistic
        A function of as many arrays as are given.
    *draws
        Arrays (draw, ...) of one length.
    num_groups
        Number of groups; of $k$ groups the error is itself known to about $1/√(2k)$ of its size.
    """
    at_least(2, num_groups=num_groups)
    lengths = {len(x) for x in draws}
    if len(lengths) != 1 or min(lengths) < num_groups:
        raise ValueError(
            f"draws must have one length, num_groups={num_groups} or more; got {sorted(lengths)}"
        )
    groups = zip(*(np.array_split(np.asarray(x), num_groups) for x in draws), strict=True)
    values = np.array([statistic(*group) for group in groups], np.float64)
    return Estimate(statistic(*draws), values.std(axis=0, ddof=1) / math.sqrt(num_groups))


def mean_and_mcse(draws: Reals) -> Estimate:
    """The mean of draws (chain, draw), with its Monte Carlo standard error by ArviZ.

    The variance between chains is part of it: where they disagree, all draws count for hardly more than one
    for each chain.

    Returns
    -------
    Estimate
        Its error is NaN where all draws are the same number.

    References
    ----------
    Vehtari et al. 2021.
    """
    import arviz  # a second, which only those pay who ask

    x = chain_draws("draws", draws, min_draws=8).astype(np.float64)
    if x.ndim != 2:
        raise ValueError(f"draws must have shape (chain, draw); got {x.shape}")
    moves = (x != x[0, 0]).any()
    return Estimate(float(x.mean()), float(arviz.mcse(x, method="mean")) if moves else math.nan)


def power_law(width: Reals, value: Reals, error: Reals, correction: bool = False) -> PowerLaw:
    """Weighted least squares of log value on log width, where the error of log value is error/value.

    The exponent's error assumes that the law holds: look at $χ²$, which exceeds its degrees of freedom by far
    where the law does not hold, or not yet.

    Parameters
    ----------
    width, value, error
        Widths, estimates there and their independent standard errors, each (width,); at least three different
        widths, and four with a correction.
    correction
        Whether log value has a third term $c/width$, the first correction to the law at finite width.
    """
    least = 4 if correction else 3
    given = {"width": width, "value": value, "error": error}
    w, v, e = (np.asarray(real(**{name: x}), np.float64) for name, x in given.items())
    for name, x in zip(given, (w, v, e)):
        if x.ndim != 1 or x.shape != w.shape:
            raise ValueError(f"{name} must have one entry per width; got {x.shape}")
        if not (np.isfinite(x) & (x > 0)).all():
            raise ValueError(f"{name} must be finite and above 0; got {x}")
    if len(np.unique(w)) < least:
        raise ValueError(f"width must hold {least} different widths or more; got {w}")
    terms = np.stack([np.ones_like(w), np.log(w), 1 / w][: least - 1], axis=1)
    weight = v / e
    solution, _, _, _ = np.linalg.lstsq(weight[:, None] * terms, weight * np.log(v))
    covariance = np.linalg.inv((weight[:, None] * terms).T @ (weight[:, None] * terms))
    residual = weight * (np.log(v) - terms @ solution)
    return PowerLaw(
        exponent=Estimate(float(solution[1]), float(np.sqrt(covariance[1, 1]))),
        amplitude=math.exp(solution[0]),
        correction=float(solution[2]) if correction else 0.0,
        chi2=float(np.sum(residual**2)),
        degrees=len(w) - terms.shape[1],
    )


def _mean(x: Float[np.ndarray, " draw"]) -> tuple[float, float]:
    return float(x.mean()), float(x.std(ddof=1) / math.sqrt(len(x)))
