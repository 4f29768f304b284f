"""One row for each fit: what was fitted, its scores, and what it was computed with."""

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tabular.data_sets import CLASSES, DATA_SETS, split
from benchmarks.tabular.methods import CLASSIFIERS, METHODS, REGRESSORS
from widebnn.versions import device

__all__ = ["NUM_SPLITS", "Row", "read", "run", "shipped"]

NUM_SPLITS = 5
DIGITS = 5
COMMON = ("data", "method", "version", "device")
"""What the rows of a method on a set share."""


@dataclass(frozen=True)
class Row:
    """A fit and its scores.

    Attributes
    ----------
    data, method, split
        What was fitted.
    scores
        On the test rows, in the units of y, by name.
    fit_seconds, predict_seconds
        Processor seconds, compilation included, of the fit and of the predictions of the test rows; None
        where they were not measured.
    place
        Fits of the same method and set in the same process before this one, whose programs may be reused.
    said
        What the fit says of itself.
    version
        Package and version of the method.
    device
        What it was computed on.
    """

    data: str
    method: str
    split: int
    scores: dict[str, float]
    fit_seconds: float | None
    predict_seconds: float | None
    place: int
    said: str
    version: str
    device: str

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
    """
    made = {row.key for row in read(path)}
    fits: Counter[tuple[str, str]] = Counter()
    tables = {name: DATA_SETS[name]() for name in data}
    path.parent.mkdir(parents=True, exist_ok=True)
    for seed in splits:
        for name, table in tables.items():
            fitting = CLASSIFIERS if name in CLASSES else REGRESSORS
            for method in methods:
                if (name, method, seed) in made or method not in fitting:
                    continue
                train, test = split(table, seed)
                start = time.process_time()
                fitted = fitting[method].fit(train, seed)
                fit_end = time.process_time()
                prediction = fitted.predict(test.x)
                predict_end = time.process_time()
                row = Row(
                    data=name,
                    method=method,
                    split=seed,
                    scores={key: _rounded(value) for key, value in prediction.scores(test.y).items()},
                    fit_seconds=_rounded(fit_end - start),
                    predict_seconds=_rounded(predict_end - fit_end),
                    place=fits[name, method],
                    said=fitted.said,
                    version=fitting[method].version,
                    device=device(),
                )
                fits[name, method] += 1
                with path.open("a") as file:
                    file.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")
                yield row


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def shipped(path: Path) -> str:
    """What rows of a method share once, and the rest in columns: a line for each method on each set."""

    def place(row: Row) -> tuple[int, int, int]:
        return list(DATA_SETS).index(row.data), list(METHODS).index(row.method), row.split

    groups: dict[tuple, list[Row]] = {}
    for row in sorted(read(path), key=place):
        groups.setdefault(tuple(getattr(row, name) for name in COMMON), []).append(row)
    columns = ["split", "fit_seconds", "predict_seconds", "place", "said"]
    lines: dict[str, list[str]] = {"fits": [], "classes": []}
    for shared, group in groups.items():
        line = dict(zip(COMMON, shared)) | {name: [getattr(row, name) for row in group] for name in columns}
        line |= {name: [row.scores[name] for row in group] for name in group[0].scores}
        lines["classes" if line["data"] in CLASSES else "fits"].append(json.dumps(line, ensure_ascii=False))
    parts = (f'"{key}": [\n' + ",\n".join(of) + "\n]" for key, of in lines.items())
    return "{" + ",\n".join(parts) + "}\n"
