"""What every sampler is made of: a state, a report of the step, and the accept–reject rule."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from widebnn.tree import Position

__all__ = ["AnySampler", "Info", "Potential", "Sampler", "State", "accept", "check_potential", "is_sampler"]

Potential = Callable[[Position], Float[Array, ""]]
"""U, minus the log density relative to N(0, I): takes a position, returns a scalar."""


@runtime_checkable
class State(Protocol):
    """What a chain carries from step to step: at least its position."""

    @property
    def position(self) -> Position: ...


class Info(NamedTuple):
    """What a step reports: the acceptance probability and whether the proposal was accepted."""

    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]


class Sampler(NamedTuple):
    """A Markov kernel as two pure functions, the pair that BlackJAX's loops expect.

    Attributes
    ----------
    init
        ``init(position, rng_key=None) -> state``; samplers with a momentum need the key.
    step
        ``step(rng_key, state) -> (state, info)``; the report is an `Info`, or has at least its fields.
    potentials
        The potentials it was built on, which `widebnn.sample` compares with that of the target.
    """

    init: Callable[..., State]
    step: Callable[[Key[Array, ""], Any], tuple[Any, Any]]
    potentials: tuple[Potential, ...] = ()


@runtime_checkable
class AnySampler(Protocol):
    """A `Sampler`, or another library's with the same two functions."""

    @property
    def init(self) -> Callable[..., Any]: ...

    @property
    def step(self) -> Callable[..., Any]: ...


def check_potential(potential: Any) -> None:
    """See that it is a function.

    Raises
    ------
    TypeError
        If it is not a function, such as the target itself.
    """
    if not callable(potential):
        hint = ": give target.potential" if hasattr(potential, "potential") else ""
        raise TypeError(f"potential must be a function of a position; got {type(potential).__name__}{hint}")


def is_sampler(thing: Any) -> bool:
    """Whether it has the two functions of a sampler."""
    return callable(getattr(thing, "init", None)) and callable(getattr(thing, "step", None))


def accept[S: State](
    rng_key: Key[Array, ""], log_ratio: Float[Array, ""], state: S, proposal: S
) -> tuple[S, Info]:
    """Metropolis–Hastings: move to `proposal` with probability min(1, exp(log_ratio)).

    A ratio that is not a number rejects: a diverged proposal must never be kept.

    Parameters
    ----------
    rng_key
        Key of the decision.
    log_ratio
        Log of the acceptance ratio.
    state, proposal
        The state now, and the one proposed.

    Returns
    -------
    The state that is kept, and the report.

    Raises
    ------
    ValueError
        If `log_ratio` is not one number.
    """
    if jnp.shape(log_ratio) != ():
        raise ValueError(f"log_ratio must be one number; got shape {jnp.shape(log_ratio)}")
    rate = jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
    is_accepted = jax.random.uniform(rng_key, dtype=rate.dtype) < rate
    kept = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposal, state)
    return kept, Info(rate, is_accepted)
