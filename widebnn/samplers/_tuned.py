"""Tuning of a step size to an acceptance rate, by stochastic approximation.

Robbins & Monro, "A stochastic approximation method", Annals of Mathematical Statistics 22 (1951); Andrieu &
Thoms, "A tutorial on adaptive MCMC", Statistics and Computing 18 (2008), §4.2; the average is that of
Hoffman & Gelman, "The No-U-Turn sampler", JMLR 15 (2014), §3.2.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from widebnn._check import Number, positive, proper_fraction
from widebnn._pytree import pytree
from widebnn.samplers._base import Sampler, check_sampler


@pytree
@dataclass(frozen=True, eq=False)
class tuned:
    """A sampler whose step size $ε$ is tuned during burn-in to a mean acceptance rate $a*$.

    After step $t = 1, 2, …$, where $a$ is the acceptance rate averaged over the chains,

    $$log ε ← min(log ε + c, log ε_max),$$

    with $c = t^(−0.6) (a − a*)/(a*(1 − a*))$, clipped to $[−1, 1]$.

    After burn-in $ε$ no longer changes: its logarithm is the average of $log ε$ over burn-in in which step
    $t$ enters with weight $t^(−0.75)$, and what came before with the rest. It is ``step_size`` of the
    `widebnn.Draws`.

    Parameters
    ----------
    sampler
        A sampler with a step size, at which tuning starts, or one that holds such a sampler.
    target_acceptance
        $a*$ in (0, 1).
    max_step_size
        $ε_max$, the largest step size that tuning may reach: 1 for pCN and pCNL, $π/2$ for function-space
        HMC.
    """

    sampler: Sampler
    target_acceptance: Number
    max_step_size: Number = 1.0

    def __post_init__(self):
        check_sampler(sampler=self.sampler)
        proper_fraction(target_acceptance=self.target_acceptance)
        positive(max_step_size=self.max_step_size)
        if self.step_size > self.max_step_size:
            raise ValueError(
                f"step_size must not exceed max_step_size={self.max_step_size}; got {self.step_size}"
            )
        try:
            self.at(self.max_step_size)
        except ValueError as error:
            raise ValueError(
                f"max_step_size must be a step size that the sampler takes; got {self.max_step_size}: {error}"
            ) from error

    def prepare(self, target: Any) -> "tuned":
        """The same with the sampler prepared for a target."""
        return replace(self, sampler=self.sampler.prepare(target))

    @property
    def step_size(self) -> Number:
        """The step size at which tuning starts."""
        held = self.sampler
        while isinstance(held, Sampler):
            held = getattr(held, held.tunes, None)
        if held is None:
            raise TypeError(f"sampler must have a step size to be tuned; got {self.sampler!r}")
        return held

    def at(self, step_size: Number) -> Sampler:
        """The sampler at a step size."""
        return _at(self.sampler, step_size)


def _at(sampler: Any, step_size: Number) -> Any:
    held = getattr(sampler, sampler.tunes)
    new = _at(held, step_size) if isinstance(held, Sampler) else step_size
    return replace(sampler, **{sampler.tunes: new})


class StepSize(NamedTuple):
    """A step size while it is tuned."""

    log: Float[Array, ""]
    log_average: Float[Array, ""]
    """Weighted average of `log`, which stays when tuning ends."""

    @classmethod
    def start(cls, value: Number, dtype: Any) -> "StepSize":
        """Before the first step."""
        log = jnp.log(jnp.asarray(value, dtype))
        return cls(log, log)

    def update(self, acceptance_rate: Float[Array, ""], step: Int[Array, ""], sampler: tuned) -> "StepSize":
        """After step number `step`, counted from 0, with this acceptance rate."""
        goal, t = sampler.target_acceptance, (step + 1).astype(self.log.dtype)
        gain = t**-0.6 / (goal * (1 - goal))
        change = jnp.clip(gain * (acceptance_rate - goal), -1, 1)
        log = jnp.minimum(self.log + change, jnp.log(sampler.max_step_size)).astype(self.log.dtype)
        weight = t**-0.75
        return StepSize(log, weight * log + (1 - weight) * self.log_average)
