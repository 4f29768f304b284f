"""Choose between samplers by effective samples per unit of cost, each at a tuned step size."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from widebnn._check import Number, at_least, positive, proper_fraction
from widebnn._interrupts import raised_at_once
from widebnn.diagnostics import effective_sample_size
from widebnn.samplers._base import AnySampler
from widebnn.samplers._tuned import Tuned
from widebnn.samplers._unitwise import HasUnits, unitwise
from widebnn.sampling import Collector, sample
from widebnn.targets._base import Target
from widebnn.tree import Position

__all__ = ["Candidate", "Choice", "tune", "tune_block_size"]


class Candidate(NamedTuple):
    """A sampler with all its settings but the step size.

    Attributes
    ----------
    sampler
        What `widebnn.samplers.tuned` returns, such as
        ``wb.samplers.tuned(functools.partial(wb.samplers.hmc, target.potential, num_steps=8), 0.8)``.
    cost
        Cost of a step, in gradients or any other unit that all candidates share.
    """

    sampler: Tuned
    cost: Number


class Choice(NamedTuple):
    """What `tune` chose.

    Attributes
    ----------
    name
        Name of the best candidate.
    sampler
        Its sampler, ready to run at the step size that was found.
    step_size
        That step size.
    efficiency
        By candidate, the least effective sample size per unit of cost, over all that was collected.
    position
        Where the best candidate's chains ended, leaves (num_chains, ...): in the posterior, if the budget was
        large enough.
    """

    name: str
    sampler: AnySampler
    step_size: float
    efficiency: dict[str, float]
    position: Position


@raised_at_once()
def tune(
    rng_key: Key[Array, ""],
    candidates: Mapping[str, Candidate],
    target: Target,
    *,
    budget: Number,
    num_chains: int = 4,
    collect: Mapping[str, Collector] | None = None,
    initial: Position | None = None,
) -> Choice:
    """The candidate with the largest effective sample size per unit of cost.

    The rule: every candidate spends the same budget, the first half on tuning its step size to its target
    acceptance, the second on a run at that step size. Its efficiency is the effective sample size of the
    quantity that mixes worst, over all entries of all that is collected, divided by what the run has cost.
    The candidate of the highest efficiency is chosen. A step size is tuned to an acceptance rate because an
    effective sample size is too noisy to maximise. Which acceptance rate is best is left to the candidates:
    give several that differ in it.

    Parameters
    ----------
    rng_key
        Seed for all randomness.
    candidates
        Candidates by name.
    target
        Target to sample.
    budget
        Units of cost for each candidate and chain, at least eight steps of the most expensive candidate.
    num_chains
        Number of chains of each candidate.
    collect
        By name, functions of a position whose mixing counts, as in `widebnn.sample`; the potential alone
        unless given.
    initial
        Positions to start from, leaves (num_chains, ...); prior draws unless given. Chains that begin far
        from the posterior spend the budget on getting there.

    Raises
    ------
    TypeError
        If the sampler of a candidate is not tuned.
    ValueError
        If there are no candidates, a cost is not positive, `num_chains` is below 1, or the budget is too
        small for one of the candidates.

    Examples
    --------
    >>> from functools import partial
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> from widebnn.tuning import Candidate, tune
    >>> target = wb.targets.linear(jnp.eye(2), jnp.ones((2, 1)), noise_std=1.0)
    >>> mala = wb.samplers.tuned(partial(wb.samplers.mala, target.potential), 0.57)
    >>> rwm = wb.samplers.tuned(partial(wb.samplers.rwm, target.potential), 0.23)
    >>> candidates = {"MALA": Candidate(mala, cost=2), "random walk": Candidate(rwm, cost=1)}
    >>> tune(jax.random.key(0), candidates, target, budget=4_000).name
    'MALA'
    """
    if not candidates:
        raise ValueError("candidates must hold at least one; got none")
    at_least(1, num_chains=num_chains)
    positive(budget=budget)
    for name, candidate in candidates.items():
        if not isinstance(candidate.sampler, Tuned):
            raise TypeError(
                f"candidates[{name!r}].sampler must be made by samplers.tuned; got {candidate.sampler!r}"
            )
        if budget < 8 * positive(cost=candidate.cost):
            raise ValueError(f"budget must be at least eight times the cost of {name!r}; got {budget}")

    efficiency, runs = {}, {}
    for i, (name, candidate) in enumerate(candidates.items()):
        num_steps = int(budget / candidate.cost / 2)
        draws = sample(
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
        worst = min(_least(effective_sample_size(values)) for values in draws.collected.values())
        efficiency[name] = worst / (num_chains * num_steps * float(candidate.cost))
        runs[name] = draws
    best = max(efficiency, key=efficiency.__getitem__)
    found = runs[best]
    sampler = candidates[best].sampler.make(found.step_size)
    return Choice(best, sampler, found.step_size, efficiency, found.position)


@raised_at_once()
def tune_block_size(
    rng_key: Key[Array, ""],
    target: Target,
    *,
    target_acceptance: Number = 0.8,
    num_sweeps: int = 20,
    num_chains: int = 4,
    initial: Position | None = None,
) -> tuple[int, Position]:
    """The block size of `widebnn.samplers.unitwise`, from its acceptance during burn-in.

    The rule: begin with blocks of m = 1 unit and double m for as long as it divides the number of units and
    the mean acceptance over `num_sweeps` sweeps stays at or above the target. The largest m for which that is
    true needs the fewest updates. The acceptance falls like 1 − c √m/d_L.

    Parameters
    ----------
    rng_key
        Seed for all randomness.
    target
        `widebnn.targets.marginal`, or that target rotated or whitened.
    target_acceptance
        The least mean acceptance, in (0, 1).
    num_sweeps
        Sweeps for each m; they are also burn-in, since every m goes on where the last one ended.
    num_chains
        Chains over which the acceptance is averaged.
    initial
        Positions to start from, leaves (num_chains, ...); prior draws unless given.

    Returns
    -------
    The block size, and the last positions of the chains, from which a run can continue.

    Raises
    ------
    TypeError
        If `target` has no units.
    ValueError
        If `target_acceptance` lies outside (0, 1), or a number is below 1.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from flax import nnx
    >>> import widebnn as wb
    >>> from widebnn.tuning import tune_block_size
    >>> bnn = wb.BNN(wb.models.FCN(1, 8, rngs=nnx.Rngs(0)), out_features=1, noise_std=0.5)
    >>> x = jnp.linspace(-1, 1, 8)[:, None]
    >>> target = wb.targets.marginal(bnn, x, x**2)
    >>> block_size, position = tune_block_size(jax.random.key(0), target)
    >>> sampler = wb.samplers.unitwise(target, block_size)
    """
    proper_fraction(target_acceptance=target_acceptance)
    at_least(1, num_sweeps=num_sweeps)
    at_least(1, num_chains=num_chains)
    if not isinstance(target, HasUnits):
        raise TypeError(f"target must offer its units, as marginal does; got {type(target).__name__}")
    found, size = 1, 1
    while True:
        draws = sample(
            jax.random.fold_in(rng_key, size),
            unitwise(target, size),
            target,
            num_samples=num_sweeps,
            burn_in=num_sweeps if size == 1 else 0,
            num_chains=num_chains,
            initial=initial,
            progress=False,
        )
        initial = draws.position
        if size == 1 or draws.acceptance_rate >= target_acceptance:
            found = size
        if draws.acceptance_rate < target_acceptance or target.units.num_units % (2 * size):
            return found, initial
        size *= 2


def _least(ess: Float[np.ndarray, "*event"] | Any) -> float:
    """The least entry; a chain that never moved has no effective samples."""
    return float(np.min(np.nan_to_num(np.asarray(ess, float), nan=0.0)))
