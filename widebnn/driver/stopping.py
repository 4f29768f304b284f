"""Runs that end when their chains have converged: ``wb.sample(..., until=wb.Until(ess=400))``."""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Shaped

from widebnn._check import Number, positive
from widebnn.diagnostics import convergence
from widebnn.driver.streaming import Streamed

__all__ = ["Until"]

FIRST_LOOK = 100
"""Draws of each chain, before which no estimate tells much: R̂ of 1.01 takes some 50 in each half chain."""
MIN_DRAWS = 8
BLOCK = 32  # entries that are looked at together


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
    """

    first_look: ClassVar[int] = FIRST_LOOK

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

    def watch(self) -> Any:
        """What looks at the draws of a run, by a method like `Watch.look`."""
        return Watch(self)

    def is_met(self, reached: Any) -> bool:
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


class Watch:
    """Looks at the draws of one run, first at those that stood worst when it last looked."""

    def __init__(self, until: Until):
        self._until = until
        self._order: list[tuple[str, slice]] | None = None

    def look(
        self,
        draws: Sequence[Mapping[str, Shaped[np.ndarray, "_ chain ..."]]],  # chunk by chunk
        streamed: Mapping[str, Streamed],
        *,
        everywhere: bool,
    ) -> Reached:
        """What was reached, by all entries or, unless `everywhere`, by the first block that falls short."""
        until = self._until
        if self._order is None:
            sizes = {name: math.prod(x.shape[2:]) for name, x in until.of(draws[0]).items()} if draws else {}
            self._order = [
                (name, slice(start, start + BLOCK))
                for name, size in sizes.items()
                for start in range(0, size, BLOCK)
            ]
        found = [_of_stream(name, summary) for name, summary in until.of(streamed).items()]
        if not everywhere and (reached := _worst(found)) and not until.is_met(reached):
            return reached
        for i, (name, block) in enumerate(self._order):
            found.append(_of_block(name, block, [chunk[name] for chunk in draws]))
            if not everywhere and (reached := _worst(found)) and not until.is_met(reached):
                self._order.insert(0, self._order.pop(i))
                return reached
        return _worst(found) or Reached()


def _of_block(name, block, parts) -> list[tuple[str, float, float]]:
    """Name, ESS and R̂ of each entry of a block that varies."""
    shape = parts[0].shape[2:]
    values = np.concatenate([x.reshape(*x.shape[:2], -1)[:, :, block] for x in parts])
    values = np.moveaxis(values.astype(np.float64), 0, 1)
    if values.shape[1] < MIN_DRAWS:
        return []
    is_finite = np.isfinite(values).all(axis=(0, 1))
    found = convergence(np.where(is_finite, values, 0))
    return _entries(
        name, shape, block.start, found.ess, found.rhat, is_finite, is_finite & np.isnan(found.ess)
    )


def _of_stream(name, summary) -> list[tuple[str, float, float]]:
    """As `_of_block`, of all entries of what is streamed."""
    if summary.count < MIN_DRAWS:
        return []
    ess, rhat, variance = (
        np.atleast_1d(x).ravel() for x in (summary.effective_sample_size, summary.rhat, summary.variance)
    )
    return _entries(name, summary.mean.shape, 0, ess, rhat, np.isfinite(variance), variance == 0)


def _entries(name, shape, start, ess, rhat, is_finite, is_constant):
    ess = np.where(is_finite & ~np.isnan(ess), ess, 0)
    rhat = np.where(is_finite & ~np.isnan(rhat), rhat, np.inf)
    return [
        (label(name, shape, start + i), float(ess[i]), float(rhat[i]))
        for i in range(len(ess))
        if not is_constant[i]
    ]


def label(name: str, shape: tuple[int, ...], entry: int) -> str:
    return f"{name}[{', '.join(map(str, np.unravel_index(entry, shape)))}]" if shape else name


def _worst(found: list[list[tuple[str, float, float]]]) -> Reached | None:
    entries = list(itertools.chain.from_iterable(found))
    if not entries:
        return None
    least, worst = min(entries, key=lambda entry: entry[1]), max(entries, key=lambda entry: entry[2])
    return Reached(least[1], least[0], worst[2], worst[0])
