"""The samplers of BlackJAX, or of another library with the same two functions, in this package's driver."""

from collections.abc import Callable
from dataclasses import field
from typing import Any

from widebnn._check import Number
from widebnn._pytree import STATIC
from widebnn.samplers._base import Sampler


class from_blackjax(Sampler):
    """A sampler that is made from a log density, as BlackJAX's are.

    Parameters
    ----------
    make
        Function from a log density, and `step_size` where that is given, to an object with
        ``init(position, rng_key)`` and ``step(rng_key, state)``, such as ``blackjax.mala`` or
        ``lambda logdensity, step_size: blackjax.hmc(logdensity, step_size, inverse_mass_matrix, 8)``.
    step_size
        Step size, which `tuned` can change; for samplers that take none, None.
    """

    make: Callable[..., Any] = field(metadata=STATIC)
    step_size: Number | None = None

    def __post_init__(self):
        if not callable(self.make):
            raise TypeError(f"make must be a function from a log density to a sampler; got {self.make!r}")

    def init(self, target, position, rng_key=None):
        return self._on(target).init(position, rng_key=rng_key)

    def step(self, target, rng_key, state):
        return self._on(target).step(rng_key, state)

    def _on(self, target):
        given = {} if self.step_size is None else {"step_size": self.step_size}
        return self.make(target.logdensity, **given)
