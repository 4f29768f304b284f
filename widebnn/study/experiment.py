"""An experiment in one piece: a function that yields rows, its scales, its cost and its claims."""

import dataclasses
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from widebnn._check import one_of
from widebnn.scale import SCALES
from widebnn.study.claim import Claim, Finding
from widebnn.study.results import Results
from widebnn.study.rows import Row

__all__ = ["Cost", "Experiment", "experiment"]

Summary = Callable[..., Iterable[Finding]]


class Cost(NamedTuple):
    """Guesses of what a configuration costs.

    Attributes
    ----------
    operations
        A number proportional to its arithmetic operations.
    steps
        Number of steps that it takes one after another; None where the host computes, and no other device
        makes it faster.
    floats
        Number of floats that it holds on the device at once; None where that is not known.
    """

    operations: float
    steps: float | None = None
    floats: float | None = None


class Experiment[C]:
    """A function of a configuration that yields rows, and what belongs to it; made by `experiment`.

    It has the name and the module of the function, by which a worker of a sweep imports it. Called with a
    configuration, it yields the rows.

    Attributes
    ----------
    name
        Name of the function. Results are stored as ``<name>_<scale>.json``.
    title, cost
        As given to `experiment`.
    scales
        Configurations by scale.
    observes
        Loaders and numbers of records, as given to `experiment`.
    flops
        As given to `experiment`; None if not given.
    claims
        The rows of the ledger that rest on it.
    """

    def __init__(
        self,
        function: Callable[[C], Iterable[Row]],
        title: str,
        scales: Mapping[str, C],
        parts: str | Sequence[str | tuple[str, ...]],
        cost: Callable[[C], Cost],
        observes: Callable[[C], Iterable[tuple[str, int]]],
        flops: Callable[[Results], float] | None,
    ):
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self.name: str = function.__name__
        self.title, self.scales, self.cost, self.observes, self.flops = title, scales, cost, observes, flops
        self.claims: list[Claim] = []
        self._function = function
        self._axes = [
            (axis,) if isinstance(axis, str) else axis
            for axis in ((parts,) if isinstance(parts, str) else parts)
        ]
        for scale, config in scales.items():
            one_of(SCALES, scale=scale)
            for field in itertools.chain.from_iterable(self._axes):
                one_of((one.name for one in dataclasses.fields(config)), parts=field)  # type: ignore[arg-type]

    def __call__(self, config: C) -> Iterator[Row]:
        """The rows of a configuration, each as soon as it is there.

        Raises
        ------
        TypeError
            If it is a configuration of something else.
        ValueError, OSError
            Where rows are computed, if it observes more than the data at hand hold, or they cannot be
            downloaded.
        """
        kind = type(next(iter(self.scales.values())))
        if not isinstance(config, kind):
            raise TypeError(f"config must be an instance of {kind.__name__}; got {config!r}")
        return iter(self._function(config))

    def __repr__(self) -> str:
        return f"<experiment {self.name}: {self.title}>"

    def config(self, scale: str) -> C:
        """The configuration at a scale.

        Raises
        ------
        ValueError
            If there is none; the message names the scales that have one.
        """
        return self.scales[one_of(self.scales, scale=scale)]

    def files(self, folder: str | os.PathLike) -> dict[str, Path]:
        """Files with its results in a folder, by scale, the smallest first."""
        paths = {scale: Path(folder) / f"{self.name}_{scale}.json" for scale in SCALES}
        return {scale: path for scale, path in paths.items() if path.exists()}

    def parts(self, config: C) -> list[C]:
        """Configurations whose rows together are those of ``config``, in some order."""
        parts = [config]
        for fields in self._axes:
            entries = list(zip(*(getattr(config, name) for name in fields), strict=True))
            changes = [{name: (one,) for name, one in zip(fields, entry)} for entry in entries]
            parts = [dataclasses.replace(part, **change) for part in parts for change in changes]  # type: ignore[type-var]
        return parts

    def claim(self, id: str, **words: Any) -> Callable[[Summary], Summary]:
        """A decorator that registers the claim which a function's findings decide.

        The function takes `Rows`, or `Results` where its parameter is called ``results``, and yields
        findings. Rows are in the order in which parts were declared, and no finding may depend on it. The
        function is returned as it is, so that it can serve several claims.

        Parameters
        ----------
        id
            Id of the row of the ledger.
        words
            The other fields of `widebnn.study.Claim`, except ``experiment`` and ``summarise``.
        """

        def register(summary: Summary) -> Summary:
            takes_all = "results" in inspect.signature(summary).parameters

            def summarise(results: Results) -> list[Finding]:
                return list(summary(results if takes_all else results.rows))

            self.claims.append(Claim(id, experiment=self.name, summarise=summarise, **words))
            return summary

        return register


def experiment[C](
    title: str,
    *,
    scales: Mapping[str, C],
    cost: Callable[[C], Cost],
    parts: str | Sequence[str | tuple[str, ...]] = (),
    observes: Callable[[C], Iterable[tuple[str, int]]] = lambda config: (),
    flops: Callable[[Results], float] | None = None,
) -> Callable[[Callable[[C], Iterable[Row]]], Experiment[C]]:
    """Make an experiment of a function that takes a configuration and yields rows.

    Parameters
    ----------
    title
        What the experiment looks at, in a phrase.
    scales
        The configuration of each scale, all of one class: a subclass of `widebnn.study.Configuration`, or
        another frozen dataclass of numbers, names and tuples of them.
    cost
        Function from a configuration to a guess of its cost.
    parts
        Fields whose entries are independent of one another: the experiment splits into one part for each
        combination of them, the first field outermost. Fields that go together stand in one tuple. Without
        any, the experiment is not split.
    observes
        Function from a configuration to names of loaders of `widebnn.data`, each with the number of records
        to observe: a run looks for the data of all parts before it begins the first.
    flops
        Function from results to the speed of the device that made them, in operations per second, if they
        tell it.

    Returns
    -------
    A decorator that makes an `Experiment` of the function.

    Raises
    ------
    ValueError
        If a scale is unknown, or `parts` names a field that the configuration does not have.

    Examples
    --------
    >>> from typing import Annotated
    >>> from widebnn.study.configuration import Configuration, Count
    >>> from widebnn.study import Cost, experiment
    >>> class Walk(Configuration):
    ...     "A walk in one dimension."
    ...     num_steps: Annotated[Count, "Steps from the start to the end."] = 10
    >>> @experiment("a walk", scales={"smoke": Walk()}, cost=lambda config: Cost(config.num_steps))
    ... def walk(config):
    ...     yield {"steps": config.num_steps}
    >>> list(walk(Walk(num_steps=3)))
    [{'steps': 3}]
    """
    return lambda function: Experiment(function, title, scales, parts, cost, observes, flops)
