"""What every sampler is made of: a state, a report of the step, and the accept–reject rule."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from widebnn._check import brief
from widebnn._pytree import Record
from widebnn.tree import Position

Potential = Callable[[Position], Float[Array, ""]]
"""$U$, minus the log density relative to $N(0, I)$: takes a position, returns a scalar."""


@runtime_checkable
class State(Protocol):
    """What a chain carries from step to step: at least its position."""

    @property
    def position(self) -> Position: ...


class PositionState(NamedTuple):
    """A position, from which every step computes what it needs."""

    position: Position


class PotentialState(NamedTuple):
    """A position $u$ and $U(u)$."""

    position: Position
    potential: Float[Array, ""]


class GradientState(NamedTuple):
    """A position $u$, $U(u)$ and $∇U(u)$."""

    position: Position
    potential: Float[Array, ""]
    gradient: Position


class MomentumState(NamedTuple):
    """A position $u$, $U(u)$, $∇U(u)$ and a momentum."""

    position: Position
    potential: Float[Array, ""]
    gradient: Position
    momentum: Position


class Info(NamedTuple):
    """What a step reports: the acceptance probability and whether the proposal was accepted."""

    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]


class Kernel(NamedTuple):
    """The two functions that BlackJAX's loops expect.

    Attributes
    ----------
    init
        ``init(position, rng_key=None) -> state``; samplers with a momentum need the key.
    step
        ``step(rng_key, state) -> (state, info)``.
    """

    init: Callable[..., Any]
    step: Callable[..., tuple[Any, Any]]


class Sampler(Record, ABC):
    """A Markov kernel that leaves a target invariant: a pytree of settings that is given the target.

    A subclass is made a frozen dataclass, as one of Equinox is, whose fields are its settings. Numbers and
    arrays are leaves, and so are the data and scales of a target: another step size, noise level or data set
    of the same shape is the same program, and a grid of them a `jax.vmap` over samplers, targets and keys
    whose leaves are stacked. Fields marked ``field(metadata={"static": True})`` are known to programs.

    Examples
    --------
    A sampler of one's own, which proposes independent draws from the prior:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import widebnn as wb
    >>> from widebnn.samplers import PotentialState, Sampler, accept
    >>> class prior_draws(Sampler):
    ...     def init(self, target, position, rng_key=None):
    ...         return PotentialState(position, target.potential(position))
    ...
    ...     def step(self, target, rng_key, state):
    ...         draw_key, accept_key = jax.random.split(rng_key)
    ...         proposal = self.init(target, target.draw_prior(draw_key))
    ...         return accept(accept_key, state.potential - proposal.potential, state, proposal)
    >>> half = wb.targets.from_potential(lambda u: jnp.sum(u**2) / 2, jnp.zeros(1))
    >>> collect = {"u": lambda target, position: position}
    >>> options = {"num_samples": 2_000, "collect": collect, "progress": False}
    >>> draws = wb.sample(jax.random.key(0), half, prior_draws(), **options)
    >>> bool(abs(draws["u"].var() - 1 / 2) < 0.05)
    True

    Acceptance rates of chains over a grid of step sizes, by one program:

    >>> def rate(rng_key, target, sampler):
    ...     init, step = sampler.bind(target)
    ...     start_key, *keys = jax.random.split(rng_key, 101)
    ...     start = init(target.draw_prior(start_key))
    ...     move = lambda state, key: step(key, state)
    ...     _, info = jax.lax.scan(move, start, jnp.stack(keys))
    ...     return info.acceptance_rate.mean()
    >>> potential = lambda u: jnp.sum(u**4)
    >>> target = wb.targets.from_potential(potential, jnp.zeros(3))
    >>> samplers = [wb.samplers.pcn(beta) for beta in (0.1, 0.3, 0.9)]
    >>> grid = jax.tree.map(lambda *leaves: jnp.stack(leaves), *samplers)
    >>> run = jax.jit(jax.vmap(rate, in_axes=(None, None, 0)))
    >>> rates = run(jax.random.key(0), target, grid)
    >>> bool((jnp.diff(rates) < 0).all())
    True
    """

    tunes: ClassVar[str] = "step_size"
    """The field that tuning changes, the step size or the sampler inside that has one."""

    @abstractmethod
    def init(self, target: Any, position: Position, rng_key: Key[Array, ""] | None = None) -> Any:
        """The state of a chain at a position; samplers with a momentum need the key."""

    @abstractmethod
    def step(self, target: Any, rng_key: Key[Array, ""], state: Any) -> tuple[Any, Any]:
        """The next state, and a report that is an `Info` or has its fields."""

    def prepare(self, target: Any) -> "Sampler":
        """The sampler with all that it has to know of a target; `widebnn.sample` calls it once.

        Raises
        ------
        TypeError, ValueError
            If the target lacks what the sampler needs.
        """
        return self

    def bind(self, target: Any) -> Kernel:
        """The sampler of one target as ``(init, step)``, for BlackJAX's loops."""
        if not hasattr(target, "potential"):
            raise TypeError(
                "target must be one of widebnn.targets, such as from_potential(potential, template); "
                f"got {type(target).__name__}"
            )
        sampler = self.prepare(target)
        return Kernel(partial(sampler.init, target), partial(sampler.step, target))


def check_sampler(**named: Any) -> None:
    """See that each is a sampler."""
    for name, sampler in named.items():
        if not isinstance(sampler, Sampler):
            raise TypeError(f"{name} must be one of widebnn.samplers; got {brief(sampler)}")


def required_key(rng_key: Key[Array, ""] | None) -> Key[Array, ""]:
    """The key of a momentum, or an error that says what it is for."""
    if rng_key is None:
        raise TypeError("rng_key is required: the momentum is part of the state and drawn with it")
    return rng_key


def accept[S: State](
    rng_key: Key[Array, ""], log_ratio: Float[Array, ""], state: S, proposal: S
) -> tuple[S, Info]:
    """Metropolis–Hastings: move to `proposal` with probability $min(1, exp(r))$, $r$ = `log_ratio`.

    A ratio that is not a number rejects: a diverged proposal must never be kept. The state that is kept is
    returned with the report.

    Parameters
    ----------
    rng_key
        Key of the decision.
    log_ratio
        Log of the acceptance ratio.
    state, proposal
        The state now, and the one proposed.
    """
    if jnp.shape(log_ratio) != ():
        raise ValueError(f"log_ratio must be one number; got shape {jnp.shape(log_ratio)}")
    rate = jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
    is_accepted = jax.random.uniform(rng_key, dtype=rate.dtype) < rate
    kept = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), proposal, state)
    return kept, Info(rate, is_accepted)
