"""One row for each fit: what was fitted, its scores, and what it was computed with."""

import dataclasses
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tabular.data_sets import DATA_SETS, split
from benchmarks.tabular.methods import METHODS
from benchmarks.tabular.scores import scores
from widebnn._check import at_least, one_of
from widebnn.versions import device

__all__ = ["NUM_SPLITS", "Row", "read", "run"]

NUM_SPLITS = 20
DIGITS = 5


@dataclass(frozen=True)
class Row:
    """A fit and its scores.

    Attributes
    ----------
    data, method, split
        What was fitted.
    rmse, nll, crps, coverage
        On the test rows, in the units of y.
    seconds
        Wall time of the fit, compilation included.
    place
        Fits of the same method and set in the same process before this one, whose programs may be reused.
    said
        What the fit says of its convergence.
    version
        Package and version of the method.
    device
        What it was computed on.
    cpu_seconds
        Of the fit, on all cores; None where it was not measured.
    load
        Processes that were running or waiting on the machine, this one among them: the mean of a minute.
    """

    data: str
    method: str
    split: int
    rmse: float
    nll: float
    crps: float
    coverage: float
    seconds: float
    place: int
    said: str
    version: str
    device: str
    load: float
    cpu_seconds: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.data, self.method, self.split


def read(path: Path) -> list[Row]:
    """The rows of a file of JSON lines; none if there is no file."""
    if not path.exists():
        return []
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()]


def run(
    path: Path,
    data: Sequence[str] = tuple(DATA_SETS),
    methods: Sequence[str] = tuple(METHODS),
    splits: Sequence[int] = tuple(range(NUM_SPLITS)),
) -> Iterator[Row]:
    """Make the rows that the file lacks, and append each to it when it is made.

    Split by split, so that a run that is stopped has as many of each set.

    Raises
    ------
    ValueError
        If a set, a method or a split is unknown.
    """
    for name in data:
        one_of(DATA_SETS, data=name)
    for name in methods:
        one_of(METHODS, method=name)
    for seed in splits:
        if at_least(0, split=seed) >= NUM_SPLITS:
            raise ValueError(f"split must be below {NUM_SPLITS}; got {seed}")
    return _run(path, data, methods, splits)


def _run(path: Path, data: Sequence[str], methods: Sequence[str], splits: Sequence[int]) -> Iterator[Row]:
    made = {row.key for row in read(path)}
    fits: Counter[tuple[str, str]] = Counter()
    tables = {name: DATA_SETS[name]() for name in data}
    path.parent.mkdir(parents=True, exist_ok=True)
    for seed in splits:
        for name, table in tables.items():
            for method in methods:
                if (name, method, seed) in made:
                    continue
                train, test = split(table, seed)
                start, cpu_start = time.perf_counter(), time.process_time()
                fitted = METHODS[method].fit(train, seed)
                times = {
                    "seconds": time.perf_counter() - start,
                    "cpu_seconds": time.process_time() - cpu_start,
                }
                numbers = scores(fitted.predict(test.x), test.y)._asdict() | times
                row = Row(
                    data=name,
                    method=method,
                    split=seed,
                    **{key: float(f"{value:.{DIGITS}g}") for key, value in numbers.items()},
                    place=fits[name, method],
                    said=fitted.said,
                    version=METHODS[method].version,
                    device=device(),
                    load=round(os.getloadavg()[0], 2),
                )
                fits[name, method] += 1
                with path.open("a") as file:
                    file.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")
                yield row
