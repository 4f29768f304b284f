"""Run every benchmark and write `_build/bench.json`, in some three hours.

With names of samplers, such as `python -m benchmarks pCNL "BlackJAX NUTS"`, only they are run, beside those
of ours that they are compared with, at the sizes where they are listed. Their rows take the place of those
that the file has.

Chains run first, since effective samples per step do not depend on the machine; then everything is timed, on
a machine that should do nothing else. The file is written anew after each row, so that a run that is
interrupted leaves what it has measured.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import widebnn as wb
from benchmarks.depth import gradient_exponent, gradients_whitened_vs_weights
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
from benchmarks.machine import Machine, machine
from benchmarks.peak_memory import peak_memory
from benchmarks.steps import (
    gradient_vs_potential,
    pcn_step_vs_paper,
    pcn_step_vs_parts,
    repriorised_overhead,
    sweep_vs_potential,
)
from benchmarks.timing import Comparison
from benchmarks.vi_epoch import vi_epoch
from benchmarks.waterfall import waterfall
from book.experiments.clock import Clock
from book.experiments.efficiency import least, timed
from widebnn._check import one_of
from widebnn.tables import Row
from widebnn.versions import device

OUTPUT = Path("_build/bench.json")
COSTS = "costs"
"""The name, on the command line, of what a step, an epoch and a fit cost."""
STEPS = (
    (pcn_step_vs_paper, (1_024, 2_048, 4_096)),
    (pcn_step_vs_parts, (1_024,)),
    (gradient_vs_potential, (1_024,)),
    (sweep_vs_potential, (1_024, 4_096)),
    (repriorised_overhead, (512, 1_024, 2_048)),
)
"""Comparisons and the widths that each is made at."""
COMPARED = ("unit-wise", "function-space HMC", "function-space HMC, one radian")
"""Of ours, what others are compared with."""
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
PEERS = {
    "ess_vs_paper_pcn": [f"paper {name}" for name in PCN],
    "ess_vs_paper_lmc": ["paper LMC"],
    "ess_vs_blackjax_nuts": ["BlackJAX NUTS"],
    "ess_vs_blackjax_hmc": [name for name in BLACKJAX if name.startswith("BlackJAX HMC")],
    "ess_vs_blackjax_amclmc": ["BlackJAX adjusted MCLMC"],
    "ess_vs_mgrad": ["BlackJAX mgrad"],
    "ess_whitened_vs_weights": list(ON_WEIGHTS),
}
"""Whose best the best of ours is compared with, by row."""

KEYS = {"rows": ("id",), "efficiency": ("width", "depth", "sampler"), "waterfall": ("name",)}
"""The tables, and what tells a row of each from the others."""


class Record:
    """What has been measured, on the screen and on disk; `before` is what the file had, to be kept."""

    def __init__(self, before: dict[str, Any]) -> None:
        self.start = time.perf_counter() - before.get("seconds", 0)
        self.tables = {table: {_key(table, row): row for row in before.get(table, [])} for table in KEYS}
        self.machine: Machine | None = before.get("machine")

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
    """All samplers of one network: how they mix, their draws, and how they are timed."""

    posterior: Posterior
    found: dict[str, Row]
    draws: dict[str, wb.Draws]
    clocks: dict[str, Clock]


def main(names: Sequence[str] = ()) -> None:
    """Every table, one row after another; with `names`, their rows in place of those of the file."""
    for name in names:
        one_of([COSTS, *SAMPLERS], name=name)
    record = Record(json.loads(OUTPUT.read_text()) if names else {})
    data = wb.data.cifar10(num_train=256, num_test=100)
    followed = {network: follow(Posterior(data, *network), those) for network, those in chosen(names)}
    print("from here on, everything is timed", flush=True)
    record.machine = machine()
    for row in costs(data) if not names or COSTS in names else ():
        record.add("rows", row)
    for network, chains in followed.items():
        rows = {name: timed(chains.found[name], ms) for name, ms in median_times(chains.clocks).items()}
        for row in rows.values():
            record.add("efficiency", row)
        for row in comparisons(size(*network), rows, chains.draws):
            record.add("rows", row)
    for row in () if names else waterfall(followed[1_024, 1].posterior, followed[1_024, 1].found):
        record.add("waterfall", row)


def chosen(names: Sequence[str] = ()) -> Iterator[tuple[tuple[int, int], list[str]]]:
    """Widths and depths, and samplers there: all, or those in `names` and what they are compared with."""
    for network, listed in EFFICIENCY.items():
        if not names or set(names) & set(listed):
            yield network, [name for name in listed if not names or name in (*COMPARED, *names)]


def costs(data: wb.data.Dataset) -> Iterator[Comparison]:
    """What a step costs, and an epoch, and a chain in memory."""
    for benchmark, widths in STEPS:
        for width in widths:
            yield benchmark(data, width)
    yield from gradients_whitened_vs_weights(data)
    yield gradient_exponent(data)
    yield from vi_epoch()
    yield from peak_memory()


def follow(posterior: Posterior, names: Iterable[str]) -> Followed:
    """Set and run every sampler that `names` says."""
    chains = Followed(posterior, {}, {}, {})
    for name in names:
        chains.found[name], chains.draws[name], chains.clocks[name] = mixing(posterior, name)
        print(chains.found[name], flush=True)
        if name in PCN:
            found, clock = paper_pcn(posterior, chains.found[name])
            chains.found[found["sampler"]], chains.clocks[found["sampler"]] = found, clock
    return chains


def size(width: int, depth: int) -> str:
    """A network's in the name of a row: 1024, and 1024x2 where there are two hidden layers."""
    return f"{width}" if depth == 1 else f"{width}x{depth}"


def comparisons(network: str, found: dict[str, Row], draws: dict[str, wb.Draws]) -> Iterator[Comparison]:
    """The best of ours against each of the others that were run."""

    def best(names: Iterable[str]) -> Row:
        return max((found[name] for name in names if name in found), key=lambda row: row["ess_per_second"])

    for id, names in PEERS.items():
        if not found.keys().isdisjoint(names):
            yield _comparison(f"{id}_{network}", best(OURS), best(names), draws)


def _comparison(id: str, ours: Row, peer: Row, draws: dict[str, wb.Draws]) -> Comparison:
    """Where both were followed draw by draw, the same number of draws of each: the least of many effective
    sample sizes is the lower, the fewer draws it is estimated from."""
    rates = [row["ess_per_second"] for row in (ours, peer)]
    chains = [draws[row["sampler"]] for row in (ours, peer) if row["sampler"] in draws]
    if len(chains) == 2 and all(one.thin == 1 for one in chains):
        num_chains, num_draws = np.min([one["potential"].shape for one in chains], axis=0)
        for i, (one, row) in enumerate(zip(chains, (ours, peer))):
            ess, _ = least({name: x[:, :num_draws] for name, x in one.collected.items()})
            rates[i] = float(1e3 * ess / (num_chains * num_draws * row["ms_per_step"]))
    ratio = rates[0] / rates[1]
    error = ratio * math.hypot(*(row["error"] / row["ess_per_step"] for row in (ours, peer)))
    return Comparison(
        id=id,
        ours=rates[0],
        peer=rates[1],
        ratio=ratio,
        spread=(ratio - error, ratio + error),
        unit="effective samples/s",
        device=device(),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    choices = [COSTS, *SAMPLERS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(choices).replace("%", "%%"))
    names = parser.parse_args().names
    with tempfile.TemporaryDirectory() as folder:  # a program that is timed again need not be compiled again
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        main(names)
