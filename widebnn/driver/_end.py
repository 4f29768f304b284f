"""Where a run ends: all its draws are made, they are what was wanted of them, or someone wants no more."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Shaped

from widebnn._failures import warn
from widebnn.diagnostics import convergence, rhat
from widebnn.driver._chains import Carry
from widebnn.driver.checkpoints import Snapshot
from widebnn.driver.stopping import BLOCK, FIRST_LOOK, Until, label
from widebnn.driver.streaming import Streamed

Stopped = Literal["num_samples", "converged", "seconds", "interrupted"]

GROWTH = 4  # the draws grow by one part in so many from one look to the next
LOOSE_RHAT = 1.1
"""Above it chains disagree beyond doubt. It is √(1 + 1/e) at e = 5 effective samples of half a chain: of a
hundred draws, ten times fewer than if they were independent."""
MAX_ENTRIES = 1_000
"""Of one function, evenly spaced, whose R̂ is looked at where nobody asked for it."""


class End:
    """Sees between chunks whether a run is over."""

    def __init__(self, until: Until | None, num_samples: int):
        self.num_samples = num_samples
        self.wanted = until if until is not None and until.looks else None
        self.seconds = until.seconds if until is not None and until.seconds is not None else math.inf
        self.watch = self.wanted and self.wanted.watch()
        self.first_look = FIRST_LOOK if self.wanted is None else self.wanted.first_look
        self.reached: Any = None

    def next_look(self, num_draws: int) -> int:
        """The number of draws with which the next chunk must end, if it has come so far."""
        return (
            min(self.num_samples, next_look(num_draws, self.first_look)) if self.wanted else self.num_samples
        )

    def reached_by(self, num_draws: int, snapshot: Snapshot, *, is_interrupted: bool) -> Stopped | None:
        """What ends the run here, if anything does."""
        stopped = None
        if is_interrupted:
            stopped = "interrupted"
        elif num_draws == self.num_samples:
            stopped = "num_samples"
        elif snapshot.seconds >= self.seconds:
            stopped = "seconds"
        is_look = num_draws > 0 and (
            stopped is not None or num_draws == next_look(num_draws - 1, self.first_look)
        )
        if self.wanted and self.watch and is_look and not is_interrupted:
            values = [collected for collected, _ in snapshot.draws]
            self.reached = self.watch.look(values, on_host(snapshot.carry), everywhere=stopped is not None)
            stopped = "converged" if self.wanted.is_met(self.reached) else stopped
        return stopped

    @property
    def note(self) -> str:
        """For the progress bar."""
        return "" if self.reached is None else f", {self.reached.note}"

    def without_draws(self, stopped: Stopped, steps: int, burn_in: int) -> BaseException:
        """What is raised where the run is over before there is a draw."""
        where = f"after {steps:,} of {burn_in:,} steps of burn-in, before the first draw"
        if stopped == "interrupted":
            return KeyboardInterrupt(f"interrupted {where}")
        return TimeoutError(
            f"until.seconds={self.seconds} were spent {where}: give more, or burn in for less"
        )

    def told(self, stopped: Stopped, num_draws: int) -> str:
        """The end in a sentence, with a warning where it is not the one that was wanted."""
        made = f"{num_draws:,} of {self.num_samples:,} draws of each chain"
        reached = "" if self.reached is None else f"; {self.reached}"
        if stopped == "interrupted":
            warn(f"the run was interrupted after {made}, which are returned")
        elif self.wanted and stopped != "converged":
            warn(
                f"the run ended after {made} without {self.wanted}{reached}: "
                "give it more draws or seconds, or take a sampler or a step size that mixes better"
            )
        return f"{stopped}: {made}{reached}"


def on_host(carry: Carry) -> dict[str, Streamed]:
    """What was streamed."""
    return {name: Streamed(summary) for name, summary in jax.device_get(carry.streamed).items()}


def next_look(num_draws: int, first: int) -> int:
    """The first number of draws above `num_draws` at which they are looked at."""
    look = first
    while look <= num_draws:
        look += look // GROWTH
    return look


def warn_of_disagreement(
    collected: Mapping[str, Shaped[np.ndarray, "chain draw ..."]], streamed: Mapping[str, Streamed]
) -> None:
    """Warn where the chains of a run that no criterion ended disagree; see `LOOSE_RHAT`."""
    found = []
    for name, values in collected.items():
        num_chains, num_draws, *shape = values.shape
        if num_chains > 1 and num_draws >= FIRST_LOOK and values.dtype.kind in "biuf":
            spacing = -(-math.prod(shape) // MAX_ENTRIES) or 1
            entries = values.reshape(num_chains, num_draws, -1)[:, :, ::spacing]
            entries = np.where(np.isfinite(entries).all(axis=(0, 1)), entries, 0)
            plain = rhat(entries[:, : num_draws // 2 * 2].reshape(2 * num_chains, num_draws // 2, -1))
            worst = np.argsort(-np.nan_to_num(plain))[:BLOCK]
            if len(worst := worst[plain[worst] > LOOSE_RHAT]):
                by_ranks = convergence(entries[:, :, worst])  # which no start far away moves
                rhats = np.where(np.isinf(plain[worst]), np.inf, by_ranks.rhat)
                labels = [label(name, tuple(shape), int(i) * spacing) for i in worst]
                found += zip(rhats, np.nan_to_num(by_ranks.ess), labels)
    for name, summary in streamed.items():
        if summary.count >= FIRST_LOOK and len(summary.chain_mean) > 1:
            rhats = np.where(np.isfinite(summary.variance), summary.rhat, 0).ravel()
            labels = [label(name, summary.mean.shape, i) for i in range(len(rhats))]
            found += zip(rhats, np.nan_to_num(summary.effective_sample_size).ravel(), labels)
    found = [one for one in found if one[0] > LOOSE_RHAT]
    if found:
        worst, ess, entry = max(found)
        warn(
            f"the chains disagree: {entry} has an R̂ of {worst:.2f} and an ESS of {ess:.0f}. Make more draws, "
            "as until=wb.Until() does until they agree, or take a sampler or a step size that mixes better"
        )
