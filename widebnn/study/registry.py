"""Experiments by name and claims in the order of the ledger: what is asked of all of them together."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from widebnn._check import one_of
from widebnn.study import forecast as forecasts
from widebnn.study import run as runs
from widebnn.study.claim import Claim
from widebnn.study.experiment import Experiment
from widebnn.study.forecast import Forecast
from widebnn.study.ledger import Entry
from widebnn.study.results import Results, load
from widebnn.study.rows import Row
from widebnn.study.run import check_folder
from widebnn.study.speed import Speed

__all__ = ["Registry"]


class Registry:
    """Experiments and the claims that rest on them.

    Parameters
    ----------
    experiments
        All that there are.
    order
        The ids of the rows of the ledger.
    shipped
        Gives the folder of the results that ship with the book, whether or not it is there.

    Raises
    ------
    ValueError
        If two experiments have one name or serve one row, or `order` lacks the row of a claim or has one that
        nothing serves.
    """

    def __init__(self, experiments: Iterable[Experiment], order: Sequence[str], shipped: Callable[[], Path]):
        every = list(experiments)
        self.experiments = {experiment.name: experiment for experiment in every}
        self.order, self.shipped_folder = tuple(order), shipped
        if len(self.experiments) < len(every):
            raise ValueError("experiments must have names of their own; two have the same")
        served = [claim.id for experiment in every for claim in experiment.claims]
        if sorted(served) != sorted(order):
            differing = sorted((Counter(served) - Counter(order)) + (Counter(order) - Counter(served)))
            raise ValueError(
                f"order must name each row that experiments serve once; they differ in {differing}"
            )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """In the order of the ledger."""
        claims = (claim for experiment in self.experiments.values() for claim in experiment.claims)
        return tuple(sorted(claims, key=lambda claim: self.order.index(claim.id)))

    def find(self, name: str) -> Experiment:
        """The experiment of this name, or the one that serves the row of the ledger with this id.

        Raises
        ------
        ValueError
            If there is none; the message says which there are.
        """
        serving = {claim.id: self.experiments[claim.experiment] for claim in self.claims}
        return (serving | self.experiments)[one_of(serving | self.experiments, name=name)]

    def run(
        self,
        name: str,
        scale: str | None = None,
        results: str | os.PathLike = "results",
        *,
        resume: bool = False,
        executor: Executor | None = None,
        on_row: Callable[[Row], None] | None = None,
        progress: bool = True,
    ) -> Results:
        """The results of an experiment at a scale: those stored, or else computed and stored.

        They are stored as `<experiment>_<scale>.json`. Until all is computed, every part that is finished
        lies in a folder beside it that has the configuration's hash in its name: an interruption costs one
        part, and results of a changed configuration mix with nothing.

        Parameters
        ----------
        name
            Of an experiment, or the id of a row of the ledger.
        scale
            "smoke", "laptop", "colab" or "paper", as far as the experiment has them; without one, that of
            `WIDEBNN_SCALE`.
        results
            The folder of results; made if there is none.
        resume
            Whether to go on where a run of this configuration was interrupted.
        executor
            As for `widebnn.study.sweep`, for the parts.
        on_row
            Called with each row as soon as it is there; only without an executor.
        progress
            Whether to show a progress bar, one unit per part.

        Raises
        ------
        ValueError
            If there is no such experiment or scale, the folder holds other things and no results, or they
            are damaged, or a part observes more than the data at hand hold.
        FileExistsError
            If the folder holds results of another configuration under the same name, or those of an
            interrupted run that is not to be resumed. They are kept.
        OSError
            If data cannot be found or downloaded, or results not be stored; what was stored before is kept.
        ExceptionGroup
            If parts failed for different reasons.

        Examples
        --------
        >>> import tempfile
        >>> from widebnn import experiments
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = experiments.run("counterexample", "smoke", folder, progress=False)
        ...     (entry,) = experiments.summarise("counterexample", "smoke", folder)
        >>> entry.verdict
        'reproduced'
        """
        return runs.run(self.find(name), scale, results, resume, executor, on_row, progress)

    def forecast(
        self,
        name: str,
        scale: str | None = None,
        results: str | os.PathLike = "results",
        *,
        speed: Speed | None = None,
    ) -> Forecast | None:
        """What a run will probably take: by one of the same scale that is on record, or else of another.

        Results in the folder and those shipped with the book are what is on record. Of those of another scale
        the time to compile is multiplied by the ratio of the numbers of parts, the rest by that of the
        numbers of operations; on another device than the one that made them the rest also by the ratio of
        speeds, and what steps take to start there is added. Where a record does not tell the time to compile,
        15 s for a part are taken.

        Parameters
        ----------
        name, scale, results
            As for `run`.
        speed
            Of the device that is to run it; without one, that of the run on record.

        Returns
        -------
        None where no run of any scale is on record, or where `speed` is of another device than the one that
        made it and no results on record tell the speed of that.

        Raises
        ------
        ValueError
            If there is no such experiment or scale.
        """
        places = (self.shipped_folder(), Path(results))
        return forecasts.forecast(self.find(name), scale, places, speed, self.experiments.values())

    def summarise(
        self, name: str, scale: str | None = None, results: str | os.PathLike = "results"
    ) -> list[Entry]:
        """What stored results say of the claims that rest on them.

        Parameters
        ----------
        name
            Of an experiment, or the id of a row of the ledger.
        scale
            Without one, the largest that has results.
        results
            The folder of results.

        Raises
        ------
        ValueError
            If there is no such experiment or scale, the folder is not ours, or the results are damaged or of
            another configuration.
        FileNotFoundError
            If there are no results.

        Examples
        --------
        >>> import widebnn as wb
        >>> folder = wb.experiments.results_folder()
        >>> [entry.claim.id for entry in wb.experiments.summarise("H-F5", results=folder)]
        ['H-F5']
        """
        experiment = self.find(name)
        found = self._load(experiment, scale, check_folder(results, must_exist=True))
        claims = (one for one in experiment.claims if name in (one.id, experiment.name))
        return [Entry(one, experiment, found) for one in claims]

    def ledger(self, results: str | os.PathLike = "results") -> list[Entry]:
        """Every claim with the verdict that stored results give it.

        The largest scale that has results counts; smoke scale, which tests code and not claims, never does.

        Parameters
        ----------
        results
            The folder of results.

        Raises
        ------
        FileNotFoundError, NotADirectoryError, ValueError
            As for `summarise`, except that missing results are not an error.

        Examples
        --------
        >>> import widebnn as wb
        >>> folder = wb.experiments.results_folder()
        >>> wb.experiments.ledger(folder)[0].claim.id
        'H-F1'
        """
        folder = check_folder(results, must_exist=True)
        found = {}
        for name, experiment in self.experiments.items():
            if scales := [scale for scale in experiment.files(folder) if scale != "smoke"]:
                found[name] = self._load(experiment, scales[-1], folder)
        return [
            Entry(claim, self.experiments[claim.experiment], found.get(claim.experiment))
            for claim in self.claims
        ]

    def shipped(self, name: str, scale: str | None = None) -> Results:
        """The results of an experiment that ship with the book.

        Parameters
        ----------
        name
            Of an experiment, or the id of a row of the ledger.
        scale
            Without one, the largest that has results.

        Raises
        ------
        ValueError
            If there is no such experiment or scale.
        FileNotFoundError
            If none are shipped; the message says which experiments and scales have some.
        """
        return self._load(self.find(name), scale, self.shipped_folder())

    def report(self, row: str, results: Results | None = None) -> Entry:
        """A row of the ledger: its claim, what results say of it, and the verdict.

        Parameters
        ----------
        row
            The id.
        results
            Of the experiment that serves the row; without them, those that ship with the book.

        Raises
        ------
        ValueError
            If there is no such row, or the results are of another experiment.
        FileNotFoundError
            If none are shipped.
        """
        one_of(self.order, row=row)
        (claim,) = (claim for claim in self.claims if claim.id == row)
        if results is None:
            results = self.shipped(row)
        wanted = claim.experiment
        if (results.name or wanted) != wanted:
            raise ValueError(f"results must be those of {wanted}, on which {row} rests; got {results.name!r}")
        return Entry(claim, self.experiments[wanted], results)

    def _load(self, experiment: Experiment, scale: str | None, folder: Path) -> Results:
        files = experiment.files(folder)
        scale = next(reversed(files), None) if scale is None else one_of(experiment.scales, scale=scale)
        if scale not in files:
            every = (one.files(folder).values() for one in self.experiments.values())
            held = ", ".join(path.stem for paths in every for path in paths)
            wanted = f"{experiment.name}_{scale}" if scale else experiment.name
            raise FileNotFoundError(
                f"results hold none of {wanted}: run it first; {folder} holds {held or 'none at all'}"
            )
        return load(files[scale], experiment.config(scale))
