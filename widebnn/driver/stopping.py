"""Runs that end when their chains have converged: ``wb.sample(..., until=wb.Until(ess=400))``."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from widebnn._check import Number, positive

__all__ = ["Until"]


@dataclass(frozen=True)
class Until:
    """When a run of `widebnn.sample` may end before all its `num_samples` draws are made.

    It ends when every entry of all that is collected or streamed has reached both the effective sample size
    and $R̂$, or when the seconds are spent. Of what is collected, that is the smaller of bulk and tail
    effective sample size and the rank-normalised split $R̂$ (`widebnn.diagnostics.convergence`); of what is
    streamed, the effective sample size by batch means and the split $R̂$ of `widebnn.streaming.Streamed`.
    Entries that never change are left out. A run that ends when its estimates look good favours estimates
    that happen to be too high: in 60 runs of autoregressive chains that asked for 400 effective samples,
    there were 490 on average, because looks are some draws apart, and at least 300.

    The draws are looked at when there are 100 of each chain and whenever their number has grown by a quarter.
    A look begins with the entries that were worst at the last one and ends with the first that fall short, so
    that only the final look costs much: about 15 ms per entry at 2,000 draws of four chains. A resumed run
    looks after the same numbers of draws, and ends after the same number.

    Parameters
    ----------
    ess
        Least effective sample size of all chains together; None for no such criterion.
    rhat
        Largest $R̂$; None for no such criterion. $R̂$ is about $√(1 + 1/e)$, with $e$ the effective sample
        size of half a chain: 1.01 asks for $e = 50$, which many short chains do not have.
    seconds
        Wall time of burn-in and sampling, without compilation, of all calls together where there is a
        checkpoint; None for no limit. The clock is read between chunks, of about half a second.
    names
        Names of what is looked at, among what is collected or streamed; all unless given.

    References
    ----------
    Vehtari et al. 2021 (400 and 1.01).

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> target = wb.targets.linear(jnp.eye(2), jnp.ones((2, 1)), noise_std=1.0)
    >>> sampler = wb.samplers.pcn(step_size=0.5)
    >>> draws = wb.sample(
    ...     jax.random.key(0), target, sampler,
    ...     num_samples=100_000, num_chains=4, progress=False,
    ...     until=wb.Until(ess=400, rhat=1.05),
    ... )
    >>> draws.stopped
    'converged'
    """

    ess: Number | None = 400
    rhat: Number | None = 1.01
    seconds: Number | None = None
    names: Collection[str] | None = None

    def __post_init__(self):
        if self.ess is not None:
            positive(ess=self.ess)
        if self.rhat is not None and positive(rhat=self.rhat) <= 1:
            raise ValueError(f"rhat must be above 1, which no chains reach; got {self.rhat}")
        if self.seconds is not None:
            positive(seconds=self.seconds)
        if isinstance(self.names, str):
            raise TypeError(f"names must be a collection such as {[self.names]!r}; got {self.names!r}")
        if self.ess is self.rhat is self.seconds is None:
            raise ValueError("ess, rhat and seconds must not all be None: the run would never end by them")

    def of[T](self, found: Mapping[str, T]) -> dict[str, T]:
        """The entries of `found` that are looked at."""
        return {name: value for name, value in found.items() if self.names is None or name in self.names}

    @property
    def looks(self) -> bool:
        """Whether `ess` or `rhat` is given, so that the draws are looked at."""
        return self.ess is not None or self.rhat is not None

    def is_met(self, reached: "Reached") -> bool:
        """Whether the draws meet both criteria; NaN meets none."""
        is_enough = self.ess is None or reached.ess >= float(self.ess)
        return is_enough and (self.rhat is None or reached.rhat <= float(self.rhat))

    def __str__(self) -> str:
        ess = None if self.ess is None else f"an ESS of {self.ess:g}"
        rhat = None if self.rhat is None else f"an R̂ of at most {self.rhat:g}"
        return " and ".join(filter(None, [ess, rhat]))


class Reached(NamedTuple):
    """Where the entries that mix worst stand; NaN where nothing can be said."""

    ess: float = math.nan
    least: str = ""
    """Which entry has the least ESS."""
    rhat: float = math.nan
    worst: str = ""
    """Which entry has the largest R̂."""

    @property
    def note(self) -> str:
        """For a progress bar."""
        return f"ESS {self.ess:.0f}, R̂ {self.rhat:.3f}"

    def __str__(self) -> str:
        if math.isnan(self.ess):
            return "nothing that is looked at varies, or there are too few draws of it"
        return f"least ESS {self.ess:.0f} ({self.least}), worst R̂ {self.rhat:.3f} ({self.worst})"
