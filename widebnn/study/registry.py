"""Experiments by name and claims in the order of the ledger: what is asked of all of them together."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from widebnn import data
from widebnn._check import one_of
from widebnn.scale import SCALES, current_scale
from widebnn.study.claim import Claim
from widebnn.study.experiment import Experiment
from widebnn.study.ledger import Entry
from widebnn.study.results import Results, config_hash, gather, load, load_or_run, place
from widebnn.study.rows import Row

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
        on_row: Callable[[Row], None] = lambda row: None,
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
        on_row
            Called with each row as soon as it is there.
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

        Examples
        --------
        >>> import tempfile
        >>> from widebnn import experiments
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = experiments.run("counterexample", "smoke", folder, progress=False)
        >>> experiments.report("H-AE1", results).verdict
        'reproduced'
        """
        experiment = self.find(name)
        scale = current_scale() if scale is None else scale
        config = experiment.config(scale)
        folder = _checked(results)
        path = folder / f"{experiment.name}_{scale}.json"
        if path.exists():
            return _stored(path, config)
        parts_folder = folder / f"{path.stem}-{config_hash(config)[:12]}.parts"
        parts = [(place(parts_folder, part), part) for part in experiment.parts(config)]
        stored = [(file, part) for file, part in parts if file.exists()]
        if stored and not resume:
            raise FileExistsError(
                f"results hold {len(stored)} of {len(parts)} parts of an interrupted run: "
                f"resume it (--resume), or delete {parts_folder.name} to begin anew"
            )
        for file, part in stored:  # a damaged one ends the run before it begins
            load(file, part)
        for loader, num_train in experiment.observes(config):  # and so do data that are not there
            getattr(data, loader)(num_train, 1)

        def watched(part: Any) -> Iterator[Row]:
            for row in experiment(part):
                on_row(row)
                yield row

        parts_folder.mkdir(parents=True, exist_ok=True)
        is_silent = not progress or os.environ.get("TQDM_DISABLE") == "1"
        bar = tqdm(parts, unit="part", disable=is_silent)
        whole = gather(path, config, [load_or_run(file, part, watched) for file, part in bar])
        shutil.rmtree(parts_folder)
        return whole

    def ledger(self, results: str | os.PathLike = "results") -> list[Entry]:
        """Every claim with the verdict that stored results give it.

        The largest scale that has results counts; smoke scale, which tests code and not claims, never does.

        Parameters
        ----------
        results
            The folder of results.

        Raises
        ------
        FileNotFoundError, NotADirectoryError
            If there is no such folder.
        ValueError
            If the folder holds other things and no results, or they are damaged or of another configuration.

        Examples
        --------
        >>> import widebnn as wb
        >>> folder = wb.experiments.results_folder()
        >>> wb.experiments.ledger(folder)[0].claim.id
        'H-F1'
        """
        folder = _checked(results, must_exist=True)
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


def _stored(path: Path, config: Any) -> Results:
    try:
        return load(path, config)
    except ValueError as error:
        if "another configuration" not in str(error):
            raise
        raise FileExistsError(
            f"results hold {path.name} of another configuration, which is kept: "
            "move it away, or name another folder"
        ) from None


def _checked(results: str | os.PathLike, *, must_exist: bool = False) -> Path:
    """The folder, if it is new, empty, or has results of ours in it."""
    folder = Path(results)
    if not folder.exists():
        if must_exist:
            raise FileNotFoundError(f"results must be a folder of results; there is no {str(results)!r}")
        return folder
    if not folder.is_dir():
        raise NotADirectoryError(f"results must be a folder; {folder.name} is a file")
    held = [path.name for path in folder.iterdir()]
    if held and not any(re.match(rf"\w+_({'|'.join(SCALES)})[.-]", name) for name in held):
        raise ValueError(
            f"results must be a folder that is new, empty or has results of experiments in it; "
            f"{folder.name} holds {sorted(held)[0]} and none of these"
        )
    return folder
