"""Functions of the state summarised while chains run, in memory that does not grow with their length.

``wb.sample(..., stream={"potential": wb.potential})`` folds each value into a summary inside the compiled
loop, so that a chain of $10⁷$ steps is never stored. A summary holds

- moments by Welford's recursion, in compensated sums, so that float32 does not stall after $2²⁴$ steps;
- the means of 32 to 64 equally long batches: when there are 64, neighbours are merged and batches are from
  then on twice as long. They give the effective sample size, and $R̂$ of the two halves of each chain.

These are 71 numbers per chain and entry of the function's value.

Welford 1962; Chan, Golub & LeVeque 1983; Knuth, TAOCP vol. 2, §4.2.2 (exact error of a sum); Glynn & Whitt
1991 (batch means).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

__all__ = ["Batches", "Streamed", "Sum", "Summary"]

NUM_BATCHES = 64


class Sum(NamedTuple):
    """A sum of many small terms, `high` + `low`; `low` is what rounding has taken from `high`."""

    high: Float[Array, "*shape"]
    low: Float[Array, "*shape"]


class Batches(NamedTuple):
    """Means over batches of `length` values; only the first `num` are whole."""

    means: Float[Array, "batch chain *event"]
    num: Int[Array, ""]
    length: Int[Array, ""]
    total: Sum  # of the batch under way


class Summary(NamedTuple):
    """What is kept of the values of one function in all chains, all relative to the first value of each."""

    num: Int[Array, ""]  # of values
    origin: Float[Array, "chain *event"]
    mean: Sum
    squares: Sum  # Σ (x − mean)²
    batches: Batches


def start(values: Shaped[Array, "chain *event"] | jax.ShapeDtypeStruct) -> Summary:
    """The summary of no values yet.

    Parameters
    ----------
    values
        An array like those that will come, one row per chain, or its shape and dtype.
    """
    if not jnp.isdtype(values.dtype, ("bool", "integral", "real floating")):
        raise TypeError(f"a streamed function must return real numbers; it returned {values.dtype}")
    dtype = jnp.float64 if values.dtype == jnp.float64 else jnp.float32

    def zeros(*leading):
        return jnp.zeros((*leading, *values.shape), dtype)

    def integer(value):
        return jnp.full((), value, jnp.int32)

    return Summary(
        num=integer(0),
        origin=zeros(),
        mean=Sum(zeros(), zeros()),
        squares=Sum(zeros(), zeros()),
        batches=Batches(zeros(NUM_BATCHES), integer(0), integer(1), Sum(zeros(), zeros())),
    )


def update(summary: Summary, values: Shaped[Array, "chain *event"]) -> Summary:
    """Fold in one value of every chain."""
    values = values.astype(summary.origin.dtype)
    count = summary.num + 1
    origin = jnp.where(summary.num == 0, values, summary.origin)
    relative = values - origin
    before = _minus(relative, summary.mean)
    mean = add(summary.mean, before / count.astype(before.dtype))
    squares = add(summary.squares, before * _minus(relative, mean))
    return Summary(count, origin, mean, squares, _into_batches(summary.batches, relative, count))


def add(total: Sum, term: Float[Array, "*shape"]) -> Sum:
    """The sum after one more term."""
    term = term + total.low
    high = total.high + term
    of_term = high - total.high
    return Sum(high, (total.high - (high - of_term)) + (term - of_term))


def _minus(value: Float[Array, "*shape"], total: Sum) -> Float[Array, "*shape"]:
    return (value - total.high) - total.low


def _into_batches(batches: Batches, value: Float[Array, "chain *event"], count: Int[Array, ""]) -> Batches:
    total = add(batches.total, value)
    is_whole = count == (batches.num + 1) * batches.length
    batches = Batches(
        means=batches.means.at[batches.num].set(total.high / batches.length.astype(total.high.dtype)),
        num=batches.num + is_whole.astype(batches.num.dtype),
        length=batches.length,
        total=jax.tree.map(lambda part: jnp.where(is_whole, 0, part), total),
    )

    def merged(batches):
        pairs = (batches.means[::2] + batches.means[1::2]) / 2
        means = batches.means.at[: NUM_BATCHES // 2].set(pairs)
        return Batches(means, batches.num // 2, batches.length * 2, batches.total)

    return jax.lax.cond(batches.num == NUM_BATCHES, merged, lambda batches: batches, batches)


@dataclass(frozen=True, eq=False)
class Streamed:
    """Estimates from the summary of a streamed function, over $C$ chains of $n$ values each.

    They are in float64 and have the shape of one value, `chain_mean` with one row per chain.

    Attributes
    ----------
    summary
        The summary at the end of the run, in NumPy arrays.
    """

    summary: Summary

    @property
    def count(self) -> int:
        """$n$, the number of values of each chain."""
        return int(self.summary.num)

    @property
    def chain_mean(self) -> Float[np.ndarray, "chain *event"]:
        """The mean of each chain."""
        return np.add(self.summary.origin, value_of(self.summary.mean), dtype=np.float64)

    @property
    def mean(self) -> Float[np.ndarray, "*event"]:
        """The mean over all chains."""
        return np.asarray(self.chain_mean.mean(axis=0))

    @property
    def variance(self) -> Float[np.ndarray, "*event"]:
        """The unbiased variance of all values of all chains as one sample; NaN for a single value."""
        chain_mean = self.chain_mean
        between = self.count * ((chain_mean - chain_mean.mean(axis=0)) ** 2).sum(axis=0)
        with np.errstate(invalid="ignore"):
            squares = value_of(self.summary.squares).sum(axis=0) + between
            return np.asarray(squares / np.float64(self.count * len(chain_mean) - 1))

    @property
    def std(self) -> Float[np.ndarray, "*event"]:
        """The root of `variance`."""
        return np.asarray(np.sqrt(self.variance))

    @property
    def effective_sample_size(self) -> Float[np.ndarray, "*event"]:
        """The effective sample size of all chains by batch means, $C n W / (b V)$.

        $W$ is the mean variance within a chain, $V$ the mean over chains of the variance of batch means. A
        batch has $b$ values, and $a$ is the number of whole batches of a chain. The relative standard error
        is $√(2/(C(a − 1)))$, at most $0.26/√C$ from $n = 32$ on; where the integrated autocorrelation time
        $τ$ is no longer small against $b ≥ n/64$, the estimate is too large by a share of about $τ/(2b)$. It
        sees each chain alone: only `rhat` shows that chains are stuck in different places. NaN where no chain
        moves.

        Raises
        ------
        ValueError
            If there are fewer than two values of each chain.
        """
        means, length = self._batch_means()
        within = (value_of(self.summary.squares) / (self.count - 1)).mean(axis=0)
        of_means = means.var(axis=0, ddof=1).mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(means.shape[1] * self.count * within / (length * of_means))

    @property
    def mcse(self) -> Float[np.ndarray, "*event"]:
        """Monte Carlo standard error of `mean`, $√(b V/(C n))$ in the terms of `effective_sample_size`."""
        means, length = self._batch_means()
        of_means = means.var(axis=0, ddof=1).mean(axis=0)
        return np.asarray(np.sqrt(length * of_means / (means.shape[1] * self.count)))

    @property
    def rhat(self) -> Float[np.ndarray, "*event"]:
        """Split $R̂$, `widebnn.diagnostics.rhat` of half chains; the first half ends with a batch.

        The variance within halves is that within chains less the part that lies between the halves, which is
        exact: $S = S₁ + S₂ + (n₁n₂/n)(m₁ − m₂)²$, each $S$ a sum of squares about the mean $m$ of $n$ values.
        """
        means, length = self._batch_means()
        n = self.count
        n1 = length * (len(means) // 2)
        n2 = n - n1
        m = value_of(self.summary.mean)
        m1 = means[: len(means) // 2].mean(axis=0)
        m2 = (n * m - n1 * m1) / n2
        squares = value_of(self.summary.squares) - n1 * n2 / n * (m1 - m2) ** 2
        origin = np.asarray(self.summary.origin, np.float64)
        of_means = np.concatenate([origin + m1, origin + m2]).var(axis=0, ddof=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            within = np.maximum(squares, 0).mean(axis=0) / (n - 2)
            return np.asarray(np.sqrt(1 - 2 / n + (1 + 0.5 / len(m)) * of_means / within))

    def _batch_means(self) -> tuple[Float[np.ndarray, "batch chain *event"], int]:
        num = int(self.summary.batches.num)
        if num < 2:
            raise ValueError(f"batch means need two values of each chain or more; got {self.count}")
        return np.asarray(self.summary.batches.means[:num], np.float64), int(self.summary.batches.length)


def value_of(total: Sum) -> Float[np.ndarray, "*shape"]:
    """Both parts together, in float64."""
    return np.add(total.high, total.low, dtype=np.float64)
