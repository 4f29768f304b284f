"""A kernel on some parts of the position, the rest held: Metropolis within Gibbs."""

from dataclasses import field
from typing import Any, ClassVar

import jax

from widebnn._pytree import STATIC
from widebnn.samplers._base import Density, PositionState, Sampler, check_sampler


class conditional(Sampler):
    """A step of a sampler of the conditional density of one part of the position, or of several.

    Parameters
    ----------
    part
        Field of the position, a named tuple, that moves, or a tuple of fields that move together.
    sampler
        Sampler of that field, or of a dict of those fields, by their potential, such as `elliptical_slice`.

    Examples
    --------
    >>> import widebnn as wb
    >>> slices = wb.samplers.elliptical_slice()
    >>> first = wb.samplers.conditional("scale", slices)
    >>> second = wb.samplers.conditional("weights", wb.samplers.pcn(0.3))
    >>> sampler = wb.samplers.alternate(first, second)
    """

    tunes: ClassVar[str] = "sampler"

    part: str | tuple[str, ...] = field(metadata=STATIC)
    sampler: Sampler

    def __post_init__(self):
        check_sampler(sampler=self.sampler)

    def init(self, target, position, rng_key=None):
        fields = getattr(position, "_fields", ())
        for name in (self.part,) if isinstance(self.part, str) else self.part:
            if name not in fields:
                raise ValueError(f"part must be a field of the position, one of {fields}; got {name!r}")
        return PositionState(position)

    def step(self, target, rng_key, state):
        def of_part(value):
            return target.potential(self._with_part(state.position, value))

        init_key, step_key = jax.random.split(rng_key)
        density = Density(of_part)
        inside = self.sampler.init(density, self._part_of(state.position), init_key)
        inside, info = self.sampler.step(density, step_key, inside)
        return PositionState(self._with_part(state.position, inside.position)), info

    def _part_of(self, position: Any) -> Any:
        if isinstance(self.part, str):
            return getattr(position, self.part)
        return {name: getattr(position, name) for name in self.part}

    def _with_part(self, position: Any, value: Any) -> Any:
        return position._replace(**({self.part: value} if isinstance(self.part, str) else value))
