"""What a run will probably take, by the runs that are on record."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from widebnn.scale import current_scale
from widebnn.study.experiment import Experiment
from widebnn.study.results import Results, load
from widebnn.study.speed import Speed

__all__ = ["COMPILE_SECONDS", "Forecast", "forecast"]

COMPILE_SECONDS = 15.0
"""A guess of what a part takes to compile, where no record tells: 6 to 20 s in four experiments on a CPU."""


class Forecast(NamedTuple):
    """What a run will probably take.

    Attributes
    ----------
    seconds
        Wall time, without an executor.
    compile_seconds
        Those of them that compiling will take, in proportion to the number of parts.
    peak_bytes
        The most memory, by "host" and "device"; empty where that is not on record.
    basis
        What the numbers come from, in words.
    """

    seconds: float
    compile_seconds: float
    peak_bytes: dict[str, int]
    basis: str


def forecast(
    experiment: Experiment,
    scale: str | None,
    places: Sequence[Path],
    speed: Speed | None,
    others: Iterable[Experiment],
) -> Forecast | None:
    """What `widebnn.experiments.forecast` does, by results in `places`, also those of `others`."""
    scale = current_scale() if scale is None else scale
    config = experiment.config(scale)
    known = {found.scale: found.provenance for found in _recorded(experiment, places)}
    # the nearest in operations, whose time has the least to be multiplied by
    wanted = experiment.cost(config)
    ratios = {
        other: wanted.operations / experiment.cost(experiment.scales[other]).operations for other in known
    }
    nearest = min(ratios, key=lambda other: max(ratios[other], 1 / ratios[other]), default=None)
    nearest = scale if scale in known else nearest
    if nearest is None:
        return None
    made, ratio = known[nearest], ratios[nearest]
    parts, parts_before = (len(experiment.parts(one)) for one in (config, experiment.scales[nearest]))
    compiled, compiling = made.get("compile_seconds"), "measured there"
    if compiled is None:
        compiled = min(parts_before * COMPILE_SECONDS, made["seconds"])
        compiling = f"a guess, {COMPILE_SECONDS:.0f} s for a part"
    work, compiles = (made["seconds"] - compiled) * ratio, compiled * parts / parts_before
    compiling = f"{compiles:,.0f} s to compile {parts} parts, {compiling}"
    if speed is None or made["device"] == speed.device:
        if nearest == scale:
            basis, peak = f"as it took on {made['device']}; {compiling}", made.get("peak_bytes", {})
            return Forecast(made["seconds"], compiled, peak, basis)
        basis = (
            f"an estimate, from {made['seconds']:,.0f} s at {nearest} scale on {made['device']}: "
            f"{work:,.0f} s by operations, and {compiling}"
        )
        return Forecast(work + compiles, compiles, {}, basis)
    # on another device than the one that made the record; the host compiles, there as here
    peak = {} if wanted.floats is None else {"device": int(4 * wanted.floats)}
    of = f"an estimate from {made['seconds']:,.0f} s on {made['device']}: {compiling}"
    if wanted.steps is None:
        basis = f"{of}; {work:,.0f} s as the host computes it there too"
        return Forecast(work + compiles, compiles, peak, basis)
    flops = [
        other.flops(found)
        for other in others
        if other.flops is not None
        for found in _recorded(other, places)
        if _kind(found.provenance["device"]) == _kind(made["device"])
    ]
    if not flops:
        return None
    faster, starts = speed.flops / max(flops), wanted.steps * speed.latency
    basis = f"{of}; arithmetic {faster:.2g} times as fast, {starts:,.0f} s to start steps; {speed.basis}"
    return Forecast(compiles + work / faster + starts, compiles, peak, basis)


def _kind(device: str) -> str:
    """A device, or all whose parts were joined, whatever the number of cores."""
    each = device.split("; ")
    kinds = (one.rpartition(",")[0] if one.endswith((" core", " cores")) else one for one in each)
    return "; ".join(dict.fromkeys(kinds))


def _recorded(experiment: Experiment[Any], places: Iterable[Path]) -> Iterator[Results]:
    for place in places:
        for scale, path in experiment.files(place).items():
            with contextlib.suppress(ValueError):  # a forecast makes do without what is damaged
                yield load(path, experiment.config(scale))
