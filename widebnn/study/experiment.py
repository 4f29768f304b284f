"""An experiment in one piece: a function that yields rows, its scales and its claims."""

import dataclasses
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from widebnn._check import one_of
from widebnn.scale import SCALES
from widebnn.study.claim import Claim, Finding
from widebnn.study.results import Results
from widebnn.study.rows import Row

__all__ = ["Experiment", "experiment"]

Summary = Callable[..., Iterable[Finding]]


class Experiment[C]:
    """A function of a configuration that yields rows, and what belongs to it; made by `experiment`.

    Called with a configuration, it yields the rows. Other processes import it by the name and the module of
    the function.

    Attributes
    ----------
    name
        Name of the function. Results are stored as ``<name>_<scale>.json``.
    title
        What it looks at, in a phrase.
    scales
        Configurations by scale.
    observes
        Loaders and numbers of records, as given to `experiment`.
    claims
        The rows of the ledger that rest on it.
    """

    def __init__(
        self,
        function: Callable[[C], Iterable[Row]],
        title: str,
        scales: Mapping[str, C],
        parts: str | Sequence[str | tuple[str, ...]],
        observes: Callable[[C], Iterable[tuple[str, int]]],
    ):
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self.name: str = function.__name__
        self.title, self.scales, self.observes = title, scales, observes
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

    def __reduce__(self) -> str:
        return self.name

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
    parts: str | Sequence[str | tuple[str, ...]] = (),
    observes: Callable[[C], Iterable[tuple[str, int]]] = lambda config: (),
) -> Callable[[Callable[[C], Iterable[Row]]], Experiment[C]]:
    """Make an experiment of a function that takes a configuration and yields rows.

    Parameters
    ----------
    title
        What the experiment looks at, in a phrase.
    scales
        The configuration of each scale, all of one class: a subclass of `widebnn.study.Configuration`, or
        another frozen dataclass of numbers, names and tuples of them.
    parts
        Fields whose entries are independent of one another: the experiment splits into one part for each
        combination of them, the first field outermost. Fields that go together stand in one tuple. Without
        any, the experiment is not split.
    observes
        Function from a configuration to names of loaders of `widebnn.data`, each with the number of records
        to observe: a run looks for the data of all parts before it begins the first.

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
    >>> from widebnn.study import experiment
    >>> class Walk(Configuration):
    ...     "A walk in one dimension."
    ...     num_steps: Annotated[Count, "Steps from the start to the end."] = 10
    >>> @experiment("a walk", scales={"smoke": Walk()})
    ... def walk(config):
    ...     yield {"steps": config.num_steps}
    >>> list(walk(Walk(num_steps=3)))
    [{'steps': 3}]
    """
    return lambda function: Experiment(function, title, scales, parts, observes)
