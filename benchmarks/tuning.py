"""Choose between samplers by effective samples per unit of cost, each at a tuned step size."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

import widebnn as wb

__all__ = ["Candidate", "Choice", "tune"]


class Candidate(NamedTuple):
    """What `widebnn.samplers.tuned` returns, and the cost of its step in a unit that candidates share."""

    sampler: wb.samplers.Tuned
    cost: float


class Choice(NamedTuple):
    """The best candidate, ready to run at its step size, and where its chains ended.

    `efficiency` has for each candidate the least effective sample size per unit of cost.
    """

    name: str
    sampler: wb.samplers.Sampler
    step_size: float
    efficiency: dict[str, float]
    position: wb.tree.Position


def tune(
    rng_key, candidates: Mapping[str, Candidate], target, *, budget, num_chains=4, collect=None, initial=None
) -> Choice:
    """The candidate with the most effective samples per unit of cost, of the quantity that mixes worst.

    Each spends the same budget, the first half on tuning its step size to its target acceptance, the second
    on a run at that step size. A step size is tuned to an acceptance because an effective sample size is too
    noisy to maximise; which acceptance is best is left to candidates that differ in it.
    """
    efficiency, runs = {}, {}
    for i, (name, candidate) in enumerate(candidates.items()):
        if budget < 8 * candidate.cost:
            raise ValueError(f"budget must be at least eight times the cost of {name!r}; got {budget}")
        num_steps = int(budget / candidate.cost / 2)
        draws = wb.sample(
            jax.random.fold_in(rng_key, i),
            candidate.sampler,
            target,
            num_samples=num_steps,
            burn_in=num_steps,
            num_chains=num_chains,
            collect=collect,
            initial=initial,
            progress=False,
        )
        ess = [np.nan_to_num(wb.effective_sample_size(x)).min() for x in draws.collected.values()]
        efficiency[name] = float(min(ess)) / (num_chains * num_steps * candidate.cost)
        runs[name] = draws
    best = max(efficiency, key=efficiency.__getitem__)
    found = runs[best]
    sampler = candidates[best].sampler.make(found.step_size)
    return Choice(best, sampler, found.step_size, efficiency, found.position)
