"""Running a declared experiment: in parts, each stored as soon as it is there, on any executor."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from widebnn import data
from widebnn._check import one_of
from widebnn.experiments.claims import CLAIMS
from widebnn.experiments.declared import DECLARED
from widebnn.scale import SCALES, current_scale
from widebnn.study import sweep as sweeps
from widebnn.study.experiment import Claim, Experiment, Finding
from widebnn.study.results import Results, config_hash, gather, load
from widebnn.study.speed import Speed, flops_on_record

__all__ = ["Forecast", "find", "forecast", "largest", "run", "summarise"]

SHIPPED = Path(__file__).parents[2] / "book" / "results"
"""What ships with the book; only a checkout has it."""


def find(name: str) -> Experiment:
    """The experiment of this name, or the one that serves the row of the ledger with this id.

    Raises
    ------
    ValueError
        If there is none; the message says which there are.
    """
    if name in DECLARED:
        return DECLARED[name]
    claims = [claim for claim in CLAIMS if claim.id == name]
    if not claims:
        one_of({*DECLARED, *(claim.id for claim in CLAIMS)}, name=name)
    names = list(dict.fromkeys(claim.experiment for claim in claims))
    if len(names) > 1:
        raise ValueError(f"name must be one of the experiments of {name}, {' or '.join(names)}; got {name!r}")
    return DECLARED[names[0]]


def run(
    name: str,
    scale: str | None = None,
    results: str | os.PathLike = "results",
    *,
    resume: bool = False,
    executor: Executor | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
    progress: bool = True,
) -> Results:
    """The results of an experiment at a scale: those stored, or else computed and stored.

    They are stored as `<experiment>_<scale>.json`. Until all is computed, every part that is finished lies in
    a folder beside it that has the configuration's hash in its name: an interruption costs one part, and
    results of a changed configuration mix with nothing.

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
        As for `widebnn.sweep.sweep`, for the parts.
    on_row
        Called with each row as soon as it is there; only without an executor.
    progress
        Whether to show a progress bar, one unit a part.

    Raises
    ------
    ValueError
        If there is no such experiment or scale, the folder holds other things and no results, or they are
        damaged, or a part observes more than the data at hand hold.
    FileExistsError
        If the folder holds results of another configuration under the same name, or those of an interrupted
        run that is not to be resumed. They are kept.
    OSError
        If data cannot be found or downloaded, or results not be stored; what was stored before is kept.
    ExceptionGroup
        If parts failed for different reasons.

    Examples
    --------
    >>> from widebnn import experiments
    >>> results = experiments.run("tempering", scale="smoke")  # doctest: +SKIP
    >>> experiments.summarise("tempering", scale="smoke")  # doctest: +SKIP
    """
    experiment = find(name)
    scale = current_scale() if scale is None else scale
    config = experiment.config(scale)
    folder = check_folder(results)
    path = folder / f"{experiment.name}_{scale}.json"
    if path.exists():
        return _stored(path, config)
    parts_folder = folder / f"{path.stem}-{config_hash(config)[:12]}.parts"
    stored = len(list(parts_folder.glob("*.json")))
    if stored and not resume:
        raise FileExistsError(
            f"results hold {stored} of {len(experiment.parts(config))} parts of an interrupted run: "
            f"resume it (--resume), or delete {parts_folder.name} to begin anew"
        )
    for loader, num_train in experiment.observes(config):  # what is not there ends the run before it begins
        getattr(data, loader)(num_train, 1)
    function = experiment.function if on_row is None else partial(experiment.function, on_row=on_row)
    try:
        parts = sweeps.sweep(function, experiment.parts(config), parts_folder, executor, progress)
    except ExceptionGroup as failures:
        if len({(type(error), str(error)) for error in failures.exceptions}) == 1:
            raise failures.exceptions[0] from None  # the same for all parts
        raise
    whole = gather(path, config, experiment.joined([part.rows for part in parts]), parts)
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
    ours = {f"{name}_{scale}" for name in DECLARED for scale in SCALES}
    held = [path.name for path in folder.iterdir()]
    if held and not any(name.split(".")[0].split("-")[0] in ours for name in held):
        raise ValueError(
            f"results must be a folder that is new, empty or has results of experiments in it; "
            f"{folder.name} holds {sorted(held)[0]} and none of these"
        )
    return folder


def largest(experiment: Experiment, results: str | os.PathLike) -> str | None:
    """The largest scale that has results in the folder."""
    folder = check_folder(results, must_exist=True)
    stored = (s for s in reversed(SCALES) if (folder / f"{experiment.name}_{s}.json").exists())
    return next(stored, None)


def summarise(
    name: str, scale: str | None = None, results: str | os.PathLike = "results"
) -> list[tuple[Claim, list[Finding]]]:
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
    """
    experiment = find(name)
    folder = check_folder(results, must_exist=True)
    scale = largest(experiment, folder) if scale is None else scale
    if scale is None:
        raise FileNotFoundError(f"results hold none of {experiment.name}: run it first")
    found = load(folder / f"{experiment.name}_{scale}.json", experiment.config(scale))
    return [
        (claim, claim.summarise(found))
        for claim in CLAIMS
        if claim.experiment == experiment.name and claim.summarise and name in (claim.id, experiment.name)
    ]


class Forecast(NamedTuple):
    """What a run will probably take.

    Attributes
    ----------
    seconds
        Wall time, without an executor.
    peak_bytes
        The most memory, by "host" and "device"; empty where that is not on record.
    basis
        What the numbers come from, in words.
    """

    seconds: float
    peak_bytes: dict[str, int]
    basis: str


def forecast(
    name: str,
    scale: str | None = None,
    results: str | os.PathLike = "results",
    *,
    speed: Speed | None = None,
) -> Forecast | None:
    """What a run will probably take: by a run of the same scale that is on record, or else by one of another.

    Results in the folder and those shipped with the book are what is on record. Those of another scale are
    multiplied by the ratio of the numbers of operations, a guess that knows nothing of the time to compile;
    those of another device than that of `speed` by the ratio of speeds besides, and what its steps take to
    start is added.

    Parameters
    ----------
    name, scale, results
        As for `run`.
    speed
        Of the device that is to run it; without one, that of the run on record.

    Returns
    -------
    None where no run of any scale is on record, or where `speed` is of another device than the one that made
    it and the speed of that is not on record: results of `over_width` tell it.

    Raises
    ------
    ValueError
        If there is no such experiment or scale.
    """
    experiment = find(name)
    scale = current_scale() if scale is None else scale
    config = experiment.config(scale)
    known = {other: found.provenance for other, found in _recorded(experiment, Path(results))}
    # the nearest in effort, whose time has the least to be multiplied by
    wanted = experiment.effort(config)
    efforts = {other: experiment.effort(experiment.configs[other]) for other in known}
    nearest = min(efforts, key=lambda s: max(efforts[s] / wanted, wanted / efforts[s]), default=None)
    nearest = scale if scale in known else nearest
    if nearest is None:
        return None
    made = known[nearest]
    if speed is None or made["device"] == speed.device:
        if nearest == scale:
            return Forecast(made["seconds"], made.get("peak_bytes", {}), f"as it took on {made['device']}")
        seconds = made["seconds"] * wanted / efforts[nearest]
        basis = (
            "an estimate, by operations and without compiling, "
            f"from {made['seconds']:,.0f} s at {nearest} scale on {made['device']}"
        )
        return Forecast(seconds, {}, basis)
    return _elsewhere(experiment, config, speed, made, wanted / efforts[nearest], Path(results))


def _elsewhere(
    experiment: Experiment, config: Any, speed: Speed, made: dict[str, Any], ratio: float, folder: Path
) -> Forecast | None:
    """On another device than the one that made the record, whose run was 1/ratio as large."""
    peak = {} if experiment.floats is None else {"device": int(4 * experiment.floats(config))}
    of = f"an estimate from {made['seconds']:,.0f} s on {made['device']}"
    if experiment.steps is None:
        return Forecast(made["seconds"] * ratio, peak, f"{of}, as the host computes it there too")
    records = [found for _, found in _recorded(DECLARED["over_width"], folder)]
    flops = [flops_on_record(r) for r in records if _kind(r.provenance["device"]) == _kind(made["device"])]
    if not flops:
        return None
    faster, starts = speed.flops / max(flops), experiment.steps(config) * speed.latency
    basis = f"{of}: arithmetic {faster:.2g} times as fast, {starts:,.0f} s to start steps; {speed.basis}"
    return Forecast(made["seconds"] * ratio / faster + starts, peak, basis)


def _kind(device: str) -> str:
    """A device, whatever the number of cores."""
    return device.rpartition(",")[0] if device.endswith((" core", " cores")) else device


def _recorded(experiment: Experiment, folder: Path) -> Iterator[tuple[str, Results]]:
    for place in (SHIPPED, folder):
        for scale, config in experiment.configs.items():
            with contextlib.suppress(
                FileNotFoundError, ValueError
            ):  # a forecast makes do without what is damaged
                yield scale, load(place / f"{experiment.name}_{scale}.json", config)
