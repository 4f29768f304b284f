"""Run every benchmark and write `_build/bench.json`, in some three hours.

With names of samplers, such as `python -m benchmarks pCNL "BlackJAX NUTS"`, only they are run, at the sizes
where they are listed. Their rows take the place of those that the file has.

Chains run first, since effective samples per step do not depend on the machine; then everything is timed, on
a machine that should do nothing else. The file is written anew after each row, so that a run that is
interrupted leaves what it has measured.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

import widebnn as wb
from benchmarks.effective_samples import (
    BLACKJAX,
    ON_WEIGHTS,
    OURS,
    PAPERS,
    PCN,
    SAMPLERS,
    Posterior,
    median_times,
    mixing,
    paper_pcn,
)
from benchmarks.steps import gradients_whitened_vs_weights, pcn_step_vs_paper
from benchmarks.timing import Comparison
from benchmarks.vi_epoch import vi_epoch
from benchmarks.waterfall import waterfall
from book.experiments.clock import Clock
from book.experiments.efficiency import timed
from widebnn._check import one_of
from widebnn.tables import Row
from widebnn.versions import device

OUTPUT = Path("_build/bench.json")
WIDTHS = (1_024, 2_048, 4_096)
"""At which steps of pCN are compared."""
COSTS = "costs"
"""The name, on the command line, of what a step, a gradient and an epoch cost."""
SHALLOW = ("unit-wise", "function-space HMC", "pCN, acceptance 0.4")
DEEP = ("function-space HMC, one radian", "BlackJAX adjusted MCLMC")
_FIRST = (*SHALLOW, *PAPERS, *BLACKJAX)
EFFICIENCY = {
    (1_024, 1): (*_FIRST, *(name for name in OURS if name not in (*_FIRST, *DEEP))),
    (4_096, 1): (*SHALLOW, *(name for name in BLACKJAX if name != "BlackJAX mgrad")),
    (128, 1): SHALLOW,
    (512, 1): SHALLOW,
    (2_048, 1): SHALLOW,
    (8_192, 1): SHALLOW,
    (1_024, 2): (*DEEP, *ON_WEIGHTS),
    (1_024, 3): DEEP,
    (4_096, 2): ("function-space HMC, one radian", *ON_WEIGHTS),
}
"""Samplers whose effective samples are counted, by width and depth; the papers' pCN goes with ours."""
KEYS = {"rows": ("id",), "efficiency": ("width", "depth", "sampler"), "waterfall": ("name",)}
"""The tables, and what tells a row of each from the others."""


class Record:
    """What has been measured, on the screen and on disk; `before` is what the file had, to be kept."""

    def __init__(self, before: dict[str, Any]) -> None:
        self.start = time.perf_counter() - before.get("seconds", 0)
        self.tables = {table: {_key(table, row): row for row in before.get(table, [])} for table in KEYS}
        self.machine = before.get("machine")

    def add(self, table: str, row: Any) -> None:
        row = dict(row)
        self.tables[table][_key(table, row)] = row
        print(
            table, {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}, flush=True
        )
        OUTPUT.parent.mkdir(exist_ok=True)
        content: dict[str, Any] = {"device": device(), "seconds": round(time.perf_counter() - self.start)}
        content["machine"] = self.machine
        content |= {table: list(rows.values()) for table, rows in self.tables.items()}
        OUTPUT.write_text(json.dumps(content, indent=1) + "\n")


def _key(table: str, row: dict[str, Any]) -> tuple:
    return tuple(row.get(key, 1) for key in KEYS[table])  # an early row has no depth, which was 1


class Followed(NamedTuple):
    """All samplers of one network: how they mix, and how they are timed."""

    posterior: Posterior
    found: dict[str, Row]
    clocks: dict[str, Clock]


def main(names: Sequence[str] = ()) -> None:
    """Every table, one row after another; with `names`, their rows in place of those of the file."""
    for name in names:
        one_of([COSTS, *SAMPLERS], name=name)
    record = Record(json.loads(OUTPUT.read_text()) if names else {})
    data = wb.data.cifar10(num_train=256, num_test=100)
    followed = {network: follow(Posterior(data, *network), those) for network, those in chosen(names)}
    print("from here on, everything is timed", flush=True)
    record.machine = {"processor": processor(), "cores": os.cpu_count()}
    for row in costs(data) if not names or COSTS in names else ():
        record.add("rows", row)
    for chains in followed.values():
        rows = {name: timed(chains.found[name], ms) for name, ms in median_times(chains.clocks).items()}
        for row in rows.values():
            record.add("efficiency", row)
    for row in () if names else waterfall(followed[1_024, 1].posterior, followed[1_024, 1].found):
        record.add("waterfall", row)


def chosen(names: Sequence[str] = ()) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Widths and depths, and samplers there: all, or those in `names`."""
    for network, listed in EFFICIENCY.items():
        if wanted := [name for name in listed if not names or name in names]:
            yield network, wanted


def processor() -> str:
    """Its name, as the system gives it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def costs(data: wb.data.Dataset) -> Iterator[Comparison]:
    """What a step, a gradient and an epoch cost."""
    for width in WIDTHS:
        yield pcn_step_vs_paper(data, width)
    yield from gradients_whitened_vs_weights(data)
    yield from vi_epoch()


def follow(posterior: Posterior, names: Iterable[str]) -> Followed:
    """Set and run every sampler that `names` says."""
    chains = Followed(posterior, {}, {})
    for name in names:
        chains.found[name], chains.clocks[name] = mixing(posterior, name)
        print(chains.found[name], flush=True)
        if name in PCN:
            found, clock = paper_pcn(posterior, chains.found[name])
            chains.found[found["sampler"]], chains.clocks[found["sampler"]] = found, clock
    return chains


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    choices = [COSTS, *SAMPLERS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(choices).replace("%", "%%"))
    names = parser.parse_args().names
    with tempfile.TemporaryDirectory() as folder:  # a program that is timed again need not be compiled again
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        main(names)
