"""Configurations: frozen dataclasses whose fields say what they mean and what they must be."""

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Annotated, Any, dataclass_transform, get_args, get_type_hints

from widebnn._check import at_least, fraction, positive

__all__ = ["Configuration", "Count", "Counts", "Fraction", "NonNegative", "Positive", "Positives", "Several"]

NonNegative = Annotated[int, partial(at_least, 0)]
Count = Annotated[int, partial(at_least, 1)]
Several = Annotated[int, partial(at_least, 2)]
Positive = Annotated[float, positive]
Fraction = Annotated[float, fraction]
Counts = tuple[Count, ...]
Positives = tuple[Positive, ...]


@dataclass_transform(frozen_default=True)
class Configuration:
    """What an experiment is run with. A subclass is a frozen dataclass of numbers, names and tuples of them.

    The annotation of a field gives its type, the checks of its value, and its meaning in words. A check is a
    function that takes the value under the name of the field and raises an error. It is called on each entry
    of a tuple, which must have at least one.

    Examples
    --------
    >>> from typing import Annotated
    >>> from book.experiments.configuration import Count
    >>> from widebnn.study import Configuration
    >>> class Walk(Configuration):
    ...     "A walk in one dimension."
    ...
    ...     num_steps: Annotated[Count, "Steps from the start to the end."] = 10
    >>> Walk(num_steps=0)
    Traceback (most recent call last):
        ...
    ValueError: num_steps must be at least 1; got 0
    """

    def __init_subclass__(cls):
        plain, inherited = (get_type_hints(cls), getattr(cls, "__dataclass_fields__", {}))
        own = inspect.get_annotations(cls)
        for name, annotation in own.items():
            marks = _marks(annotation)
            if not marks and name in inherited:  # with another default
                marks = inherited[name].metadata["marks"]
            setattr(cls, name, field(default=cls.__dict__.get(name, MISSING), metadata={"marks": marks}))
        cls.__annotations__ = {name: plain[name] for name in own}
        dataclass(frozen=True)(cls)

    def __post_init__(self):
        for one in fields(self):  # type: ignore[arg-type]
            for entry in _entries(one.name, getattr(self, one.name), one.type):
                for check in filter(callable, one.metadata["marks"]):
                    check(**{one.name: entry})
        self.check()

    def check(self) -> None:
        """Raise a ValueError where fields do not go together; a subclass may override it."""

    def one_each(self, of: str, *names: str) -> None:
        """Raise a ValueError where the fields `names` have more or fewer entries than the field `of`."""
        wanted = getattr(self, of)
        for name in names:
            if len(given := getattr(self, name)) != len(wanted):
                raise ValueError(f"{name} must have one entry for each of {of}, {wanted}; got {given}")


def _marks(annotation: Any) -> tuple[Any, ...]:
    """What `Annotated` adds to a type and to those that it is made of, from the inside out."""
    inner = (mark for part in get_args(annotation) for mark in _marks(part))
    return (*inner, *getattr(annotation, "__metadata__", ()))


def _entries(name: str, value: Any, kind: Any) -> Iterator[Any]:
    parts = get_args(kind)  # of a tuple, with ... where it may have any length
    if not parts:
        yield value
        return
    if not isinstance(value, tuple):
        raise TypeError(f"{name} must be a tuple; got {value!r}")
    if not value:
        raise ValueError(f"{name} must have at least one entry; got {value}")
    if ... not in parts and len(value) != len(parts):
        raise ValueError(f"{name} must hold {len(parts)} numbers together; got {value}")
    for entry in value:
        yield from _entries(name, entry, parts[0])
