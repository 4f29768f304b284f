"""Running an experiment: in parts, each stored as soon as it is there, on any executor."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from widebnn import data
from widebnn.scale import SCALES, current_scale
from widebnn.study._sweep import sweep
from widebnn.study.experiment import Experiment
from widebnn.study.results import Results, config_hash, gather, load
from widebnn.study.rows import Row, Rows

__all__ = ["check_folder", "run"]


def run(
    experiment: Experiment,
    scale: str | None,
    results: str | os.PathLike,
    resume: bool,
    executor: Executor | None,
    on_row: Callable[[Row], None] | None,
    progress: bool,
) -> Results:
    """What `widebnn.experiments.run` does."""
    scale = current_scale() if scale is None else scale
    config = experiment.config(scale)
    folder = check_folder(results)
    path = folder / f"{experiment.name}_{scale}.json"
    if path.exists():
        return _stored(path, config)
    configs = experiment.parts(config)
    parts_folder = folder / f"{path.stem}-{config_hash(config)[:12]}.parts"
    stored = len(list(parts_folder.glob("*.json")))
    if stored and not resume:
        raise FileExistsError(
            f"results hold {stored} of {len(configs)} parts of an interrupted run: "
            f"resume it (--resume), or delete {parts_folder.name} to begin anew"
        )
    for loader, num_train in experiment.observes(config):  # what is not there ends the run before it begins
        getattr(data, loader)(num_train, 1)

    def watched(part: Any) -> Iterator[Row]:
        for row in experiment(part):
            on_row(row)  # type: ignore[misc]
            yield row

    try:
        parts = sweep(experiment if on_row is None else watched, configs, parts_folder, executor, progress)
    except ExceptionGroup as failures:
        if len({(type(error), str(error)) for error in failures.exceptions}) == 1:
            raise failures.exceptions[0] from None  # the same for all parts
        raise
    whole = gather(path, config, Rows(row for part in parts for row in part.rows), parts)
    shutil.rmtree(parts_folder)
    return whole


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


def check_folder(results: str | os.PathLike, *, must_exist: bool = False) -> Path:
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
