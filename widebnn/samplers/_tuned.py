"""Tuning of a step size to an acceptance rate, by stochastic approximation.

Robbins & Monro, "A stochastic approximation method", Annals of Mathematical Statistics 22 (1951); Andrieu &
Thoms, "A tutorial on adaptive MCMC", Statistics and Computing 18 (2008), §4.2; the average is that of
Hoffman & Gelman, "The No-U-Turn sampler", JMLR 15 (2014), §3.2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from widebnn._check import Number, positive, proper_fraction
from widebnn._compile import lifted
from widebnn.samplers._base import AnySampler, is_sampler

__all__ = ["StepSize", "Tuned", "tuned"]


class Tuned(NamedTuple):
    """A sampler whose step size `widebnn.sample` tunes during burn-in.

    It holds the arguments of `tuned`, which makes it.
    """

    make: Callable[[Any], AnySampler]
    target_acceptance: Number
    step_size: Number
    max_step_size: Number


class StepSize(NamedTuple):
    """A step size while it is tuned."""

    log: Float[Array, ""]
    log_average: Float[Array, ""]
    """Weighted average of `log`, which stays when tuning ends."""

    @classmethod
    def start(cls, value: Number, dtype: Any) -> "StepSize":
        """Before the first step."""
        log = jnp.log(jnp.asarray(lifted(value)(), dtype))
        return cls(log, log)

    def update(self, acceptance_rate: Float[Array, ""], step: Int[Array, ""], sampler: Tuned) -> "StepSize":
        """After step number `step`, counted from 0, with this acceptance rate."""
        goal = sampler.target_acceptance
        gain = (step + 1.0) ** -0.6 / (goal * (1 - goal))
        change = jnp.clip(gain * (acceptance_rate - goal), -1, 1)
        log = jnp.minimum(self.log + change, jnp.log(sampler.max_step_size)).astype(self.log.dtype)
        weight = ((step + 1.0) ** -0.75).astype(log.dtype)
        return StepSize(log, weight * log + (1 - weight) * self.log_average)


def tuned(
    make: Callable[[Any], AnySampler],
    target_acceptance: Number,
    step_size: Number = 0.1,
    max_step_size: Number = 1.0,
) -> Tuned:
    """A sampler whose step size ε is tuned during burn-in to a mean acceptance rate a*.

    After step t = 1, 2, …, where a is the acceptance rate averaged over the chains,

        log ε ← min(log ε + c, log ε_max),  c = t^(−0.6) (a − a*)/(a*(1 − a*)), clipped to [−1, 1].

    After burn-in ε no longer changes: its logarithm is the average of log ε over burn-in in which step t
    enters with weight t^(−0.75), and what came before with the rest.

    Parameters
    ----------
    make
        Function from a step size to a sampler of this package or of BlackJAX, such as
        ``functools.partial(wb.samplers.pcn, target.potential)``.
    target_acceptance
        a* in (0, 1).
    step_size
        Step size at which tuning starts.
    max_step_size
        ε_max, the largest step size that tuning may reach: 1 for pCN and pCNL, π/2 for function-space HMC.

    Returns
    -------
    Tuned
        To be passed to `widebnn.sample` as the sampler; ``step_size`` of the `widebnn.Draws` is the step size
        that was found.

    Raises
    ------
    TypeError
        If `make` is not a function from a step size to a sampler, or another argument is not a number.
    ValueError
        If `target_acceptance` lies outside (0, 1), a step size is not positive, `step_size` exceeds
        `max_step_size`, or the sampler refuses one of the two.
    """
    if not callable(make):
        raise TypeError(f"make must be a function from a step size to a sampler; got {make!r}")
    proper_fraction(target_acceptance=target_acceptance)
    positive(max_step_size=max_step_size)
    if positive(step_size=step_size) > max_step_size:
        raise ValueError(f"step_size must not exceed max_step_size={max_step_size}; got {step_size}")
    for name, value in {"step_size": step_size, "max_step_size": max_step_size}.items():
        try:
            sampler = make(value)
        except ValueError as error:
            raise ValueError(f"{name} must be one that the sampler takes; got {value}: {error}") from error
        if not is_sampler(sampler):
            raise TypeError(f"make must return a sampler (init, step); it returned {sampler!r}")
    return Tuned(make, target_acceptance, step_size, max_step_size)
